"""Tests of other packages that do not pass, with the reason."""

# Tests that fail with the original too: start of the error -> reason.
ABSENT = {
    "pyulog": {
        "FileNotFoundError": "needs `sample_appended.ulg`, which is not in the source package",
    },
}

DAMAGED_MAGIC = "expects an error for one damaged bit in the magic number, but the drop-in reads the log"

# Tests that pass with the original only: name -> reason.
INTENDED = {
    "pyulog": {},
    "rocketlogger": {
        "test_data.TestHeaderOnlyImport.test_invalid_header_data_sample_count": (
            "expects a warning that an incomplete last block is skipped, but the drop-in reads it"
        ),
        "test_data.TestFileImport.test_invalid_header_magic": DAMAGED_MAGIC,
        "test_data.TestHeaderOnlyImport.test_invalid_header_magic": DAMAGED_MAGIC,
    },
    "rosbag": {},
}
