"""Intended differences between pyulog and rovelog: log -> text of the difference -> rule.

The rules are those of docs/formats/ulog.md.
"""

REASONS = {
    "D4": "rovelog skips an unknown message; pyulog seeks before the start of the file",
    "D6": "rovelog accepts a format in the data section",
    "D7": "a repeated field name becomes `x#2`; pyulog refuses the topic",
    "D8": "a changed format applies to later subscriptions; pyulog uses the first one only",
    "D9": "a row may have its trailing padding or not; pyulog drops rows that have it",
    "D10": "rovelog omits all padding, also within a row and in nested types; pyulog omits it only at the end",
    "D12": "`[0]` has no data; pyulog reads one value and drops the rows as too short",
    "D14": "a time above 64 bits of nanoseconds is ignored, so the log does not end there",
    "D15": "rovelog reads rows without a timestamp; pyulog stops at the first one",
    "D16": "rovelog reads narrow timestamps; pyulog stops there, or reads eight bytes as one",
    "D18": "a repeated subscription continues its series; pyulog drops the rows before it",
    "D19": "a reused id starts a new series; pyulog drops the series before",
    "D24": "rovelog shows defaults whether or not the compatibility flag announces them",
    "D25": "rovelog escapes bytes that are not UTF-8, pyulog drops them; a numeric level is that level",
    "D28": "subscriptions also apply after an appended offset; pyulog drops the rows after it",
    "D30": "in a damaged log rovelog has more rows, and all of pyulog's",
    "D35": "the name of a key is everything after the first space; pyulog stops at the next space",
    "D39": "blanks and NULs around the names of a format are left out; pyulog reads no rows of such a format",
    "D40": "a log with a damaged header is read from its first message on; pyulog refuses it",
    "D41": "topics of a second log in the file are further series; pyulog drops their rows",
    "stale": "a time far before all others does not move the log time; pyulog assigns it to everything after it",
    "start": "without a start time in the header, the log starts at the median of the first times of its topics",
}

INTENDED = {
    "px4-ulog-rs__corrupt_unregistered_msg_id": {
        "9 padding columns in 1 topics only pyulog shows": "D10",
        "57 topics: 276 rows more than pyulog's 59735, which are all among ours": "D30",
        "start 408944362, pyulog 0": "start",
    },
    "px4-ulog-rs__esc_status_log": {
        "60 padding columns in 1 topics only pyulog shows": "D10",
    },
    "pyulog__sample_2016_original": {
        "10 padding columns in 1 topics only pyulog shows": "D10",
    },
    "robologs__test": {
        "52 padding columns in 2 topics only pyulog shows": "D10",
    },
    "sample_log_small": {
        "63 padding columns in 3 topics only pyulog shows": "D10",
    },
    "sample_logging_tagged_and_default_params": {
        "18 padding columns in 1 topics only pyulog shows": "D10",
    },
    "sample_px4_events": {
        "63 padding columns in 2 topics only pyulog shows": "D10",
    },
    "ulog-rs__sample-small": {
        "3 padding columns in 1 topics only pyulog shows": "D10",
    },
    "corpus/timestamps-stale": {
        "change (30590000, 'P', 1.5): pyulog (1200000000, 'P', 1.5)": "stale",
    },
    "corpus/appended-offset-inside-a-row": {
        "t/0: 5 rows more than pyulog's 5, which are all among ours": "D28",
        "end 1090000, pyulog 1040000": "D28",
    },
    "corpus/appended-offset-inside-a-row+behind-unknown": {
        "t/0: 5 rows more than pyulog's 5, which are all among ours": "D28",
        "end 1090000, pyulog 1040000": "D28",
    },
    "corpus/appended-offsets-descending": {
        "t/0: 3 rows more than pyulog's 8, which are all among ours": "D28",
        "end 1100000, pyulog 1070000": "D28",
    },
    "corpus/appended": {
        "t/0: 3 rows more than pyulog's 5, which are all among ours": "D28",
        "end 1070000, pyulog 1040000": "D28",
    },
    "corpus/array-of-one+array-of-none": {
        "t/0: 3 rows, pyulog has none": "D12",
        "end 1020000, pyulog 1000000": "D12",
    },
    "corpus/field-name-twice": {
        "t/0: 3 rows, pyulog has none": "D7",
        "end 1020000, pyulog 1000000": "D7",
    },
    "corpus/format-in-data-section": {
        "late/0: 3 rows, pyulog has none": "D6",
    },
    "corpus/format-redefined+after-subscription": {
        "t/0#2: 4 rows, pyulog has none": "D8",
    },
    "corpus/info-keys-of-other-writers": {
        "parameter max: only pyulog has it": "D35",
        "parameter max speed: only rovelog has it": "D35",
    },
    "corpus/msg-id-reused": {
        "t/0: 4 rows, pyulog has none": "D19",
    },
    "corpus/same-topic+inner-type-redefined": {
        "t/0.timestamp: values differ": "D19",
        "t/0.at.x: values differ": "D19",
        "t/0#2: 3 rows, pyulog has none": "D19",
    },
    "corpus/nested-trailing-padding": {
        "9 padding columns in 1 topics only pyulog shows": "D10",
    },
    "corpus/no-timestamp+nested-timestamp": {
        "t/0: 2 rows more than pyulog's 1, which are all among ours": "D15",
    },
    "corpus/no-timestamp": {
        "t/0: 4 rows more than pyulog's 1, which are all among ours": "D15",
    },
    "corpus/no-timestamp+start-0": {
        "t/0: 4 rows more than pyulog's 1, which are all among ours": "D15",
    },
    "corpus/one-topic+multi-id+sync+dropout+texts+appended": {
        "u/0: 1 rows more than pyulog's 1, which are all among ours": "D28",
        "end 1120000, pyulog 1100000": "D28",
    },
    "corpus/padding-in-the-middle": {
        "3 padding columns in 1 topics only pyulog shows": "D10",
    },
    "corpus/padding-of-type-uint32": {
        "1 padding columns in 1 topics only pyulog shows": "D10",
    },
    "corpus/parameter-of-other-types": {
        "system_default KX: only rovelog has it": "D24",
    },
    "corpus/subscription-repeated": {
        "t/0: 3 rows more than pyulog's 3, which are all among ours": "D18",
    },
    "corpus/sync+sync-inside-payload": {
        "text '\\x08\\x00S/s\\x13 %\\x0c\\\\xbb\\x12' of level 54: pyulog '\\x08\\x00S/s\\x13 %\\x0c\\x12' of level 54": "D25",
    },
    "corpus/texts-latin-1": {
        "text '\\\\xff\\\\xfe and \\\\xc3' of level 54: pyulog ' and ' of level 54": "D25",
        "text 'caf\\\\xe9' of level 54: pyulog 'caf' of level 54": "D25",
    },
    "corpus/formats-with-blanks": {
        "t/0: 3 rows, pyulog has none": "D39",
        "u/0: 3 rows, pyulog has none": "D39",
        "v/0: 3 rows, pyulog has none": "D39",
        "end 1020000, pyulog 1000000": "D39",
    },
    "corpus/header-cut-at-its-start": {
        "pyulog fails: ULogException": "D40",
    },
    "corpus/header-damaged": {
        "pyulog fails: ULogException": "D40",
    },
    "corpus/header-missing": {
        "pyulog fails: ULogException": "D40",
    },
    "corpus/header-zeroed": {
        "pyulog fails: ULogException": "D40",
    },
    "corpus/two-logs": {
        "t/0#2: 5 rows, pyulog has none": "D41",
    },
    "corpus/texts-level-as-number": {
        "text 'raw level 0' of level 48: pyulog 'raw level 0' of level 0": "D25",
        "text 'raw level 6' of level 54: pyulog 'raw level 6' of level 6": "D25",
    },
    "corpus/timestamp-out-of-range": {
        "end 1050000, pyulog 18446744073709551615": "D14",
    },
    "corpus/timestamp-u16+dropout": {
        "n/0: 9 rows more than pyulog's 1, which are all among ours": "D16",
        "dropouts (2, 1000, 600), pyulog (0, 0, 0)": "D16",
    },
    "corpus/timestamp-u16+quiet-topic": {
        "n/0: 2 rows more than pyulog's 1, which are all among ours": "D16",
        "t/0: 7 rows more than pyulog's 3, which are all among ours": "D16",
        "end 4000000, pyulog 1600000": "D16",
    },
    "corpus/timestamp-u16-out-of-range": {
        "n/0: 3 rows more than pyulog's 1, which are all among ours": "D16",
        "end 9223372036844775, pyulog 9223372036824775": "D16",
    },
    "corpus/timestamp-u16": {
        "n/0: 11 rows more than pyulog's 1, which are all among ours": "D16",
    },
    "corpus/timestamp-u32": {
        "end 4292967296, pyulog 4674736413212074848": "D16",
    },
    "corpus/timestamp-u8-ms": {
        "n/0: 11 rows more than pyulog's 1, which are all among ours": "D16",
    },
    "corpus/trailing-padding-full": {
        "t/0: 4 rows, pyulog has none": "D9",
        "end 1030000, pyulog 1000000": "D9",
    },
    "corpus/trailing-padding-run+trimmed+full": {
        "t/0: 3 rows more than pyulog's 3, which are all among ours": "D9",
        "end 1050000, pyulog 1040000": "D9",
    },
    "corpus/unknown-messages+hundreds-in-a-row": {
        "t/0: 5 rows more than pyulog's 1, which are all among ours": "D4",
        "end 1050000, pyulog 1000000": "D4",
    },
    "corpus/unknown-messages": {
        "pyulog fails: OSError": "D4",
    },
}
