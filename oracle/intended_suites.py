"""The tests of other packages that do not pass, with the reason, by the beginnings of their names."""

# Without what the tests need, neither the original nor the drop-in passes.
ABSENT = {
    "pyulog": {
        "FileNotFoundError": "needs `sample_appended.ulg`, which is not in the source package",
    },
}

INTENDED = {
    "pyulog": {},
    "rocketlogger": {
        "test_data.TestHeaderOnlyImport.test_invalid_header_data_sample_count": (
            "expects the warning that an incomplete last block is skipped; it is read here"
        ),
    },
    "rosbag": {},
}
