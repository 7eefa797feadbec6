"""Tests of other packages that do not pass, with the reason."""

# Tests that fail with the original too: start of the error -> reason.
ABSENT = {
    "pyulog": {
        "FileNotFoundError": "needs `sample_appended.ulg`, which is not in the source package",
    },
}

# Tests that pass with the original only: name -> reason.
INTENDED = {
    "pyulog": {},
    "rocketlogger": {
        "test_data.TestHeaderOnlyImport.test_invalid_header_data_sample_count": (
            "expects a warning that an incomplete last block is skipped, but the drop-in reads it"
        ),
    },
    "rosbag": {},
}
