"""Intended differences between the readers of ROS and rovelog.

An entry of INTENDED has the message of a reader, the bags (ANY: any bag), and the key of the reason.
"""

ANY = "any"

REASONS = {
    "no index": "they read nothing, or not everything, without a complete index; rovelog scans the bag",
    "wrong index": "they follow a wrong index; rovelog scans the bag and compares the index",
    "damage": "they stop at a damaged record, or do not start; rovelog continues after it",
    "no definition": "they need a definition before the messages; rovelog looks for it elsewhere",
    "not decoded": "their messages are empty if they cannot parse a definition or its sum differs; rovelog returns the bytes, or decodes with the definition in the bag",
    "one definition": "they decode all messages of a topic with its first definition",
    "short": "their strings and arrays may end before their declared length; rovelog refuses the message",
    "normalised": "they convert negative nanoseconds, and nanoseconds of a second or more, to seconds; rovelog shows both as stored",
    "sum": "librosbag refuses the sum `*`, which the recorder wrote for topics of any type",
    "zero": "librosbag refuses the time 0",
    "order": "librosbag needs a definition before the earliest message, but the recorder wrote it before the first one; recovery copies an intact bag as it is",
    "names": "Python cannot read bags with such topic names, whatever their index",
    "header": "they read the first record as the bag header",
    "text mode": "a copy in which line ends were changed; rovelog reverts the change",
    "empty": "they fail on a bag without records",
    "index only": "of a V2.0 bag, they read what the index lists, with its numbers and connections, and of several bags the first one",
    "frames": "roslz4 reads one frame of independent blocks with a content checksum and the right size; recovery copies an intact bag as it is, and `bag reindex` writes frames that roslz4 reads",
    "equal stamps": "they have no fixed order of messages with equal timestamps; rovelog keeps the file order",
    "streams": "librosbag reads one bzip2 stream of the size in the header; recovery copies an intact bag as it is, and `bag reindex` writes one stream",
    "encrypted": "they need the key",
    "line ends": "they do not parse a definition with CR LF; rovelog does",
    "field twice": "they refuse a definition that has a field twice, or keep the last value; rovelog names the second field `x#2`",
}

UNINDEXED = "ROSBagUnindexedException, none of the messages"

FORMAT = "ROSBagFormatException, "
NO_DEFINITION = "librosbag: Expected MSG_DEF op not found"
PAST_THE_END = "librosbag: Error reading from file"

INTENDED = [
    ({UNINDEXED, "librosbag: Bag unindexed", "librosbag: Expected INDEX_DATA record"}, ANY, "no index"),
    ({"ok, none of the messages", "librosbag: 0"}, ["index-missing+pos-stale", "truncated_mid_message"], "no index"),
    ({"ok, fewer of the messages", "librosbag: 2"}, ["index-lacks-a-topic"], "wrong index"),
    (
        {FORMAT + "fewer of the messages", PAST_THE_END, "librosbag: Unsupported INDEX_DATA version"},
        [
            "damaged+index-names-the-lost",
            "index-count-wrong",
            "index-names-no-message",
            "index-of-a-topic-without-messages",
            "index-of-another-version",
        ],
        "wrong index",
    ),
    ({"DeserializationError, none of the messages", "librosbag: Field", "recovered: librosbag Field of 1"}, ["definition-crlf"], "line ends"),
    ({"ok, other values", "librosbag: Field", "recovered: librosbag Field of 3"}, ["definition-field-twice"], "field twice"),
    ({NO_DEFINITION, "recovered: librosbag Expected MSG_DEF op not found of 21"}, ["stamp-of-another-clock"], "order"),
    ({"librosbag: Required"}, ["v2.0+zeros-before-index+chunk-missing"], "wrong index"),
    ({"librosbag: Error seeking"}, ["gap+index-pos-out-of-range"], "wrong index"),
    ({NO_DEFINITION}, ["index-first-entry-is-data", "raw-padding", "raw_padding_2009"], "wrong index"),
    (
        {FORMAT + "fewer of the messages", FORMAT + "all messages", PAST_THE_END},
        ["damaged+bag-in-a-message", "damaged-definition+indexed", "damaged_record", "unindexed_truncated"],
        "damage",
    ),
    ({FORMAT + "fewer of the messages"}, ["bag-header-late"], "header"),
    (
        {FORMAT + "none of the messages", NO_DEFINITION},
        [
            "definition-behind-its-messages",
            "definition-missing",
            "definition-of-the-catalogue",
            "topic_without_definition",
        ],
        "no definition",
    ),
    (
        {"ok, other values"},
        [
            "definition-broken",
            "definition-header-of-roslib",
            "definition-hostile+circular",
            "definition-hostile+deep",
            "definition-hostile+large-array",
            "definition-of-the-root-alone",
            "robot",
            "sum-differs",
            "sum-wildcard",
            "types-without-fields",
        ],
        "not decoded",
    ),
    ({"ok, other values"}, ["definition-of-same-type", "second-type"], "one definition"),
    (
        {"ok, messages that we do not have", "DeserializationError, fewer of the messages"},
        ["payload-count-hostile", "payload-short", "payload-short+count"],
        "short",
    ),
    ({"ok, other values"}, ["types-scalars"], "normalised"),
    (
        {"librosbag: Field"} | {f"recovered: librosbag Field of {count}" for count in (1, 2, 3, 4, 5)},
        [
            "bag-in-a-message",
            "bytes-lost-in-a-message",
            "bytes-lost-in-a-message+bag-in-it",
            "damaged-header-length+behind-a-bag-in-a-message",
            "robot",
            "damaged+bag-in-a-message",
            "definition-header-of-roslib",
            "definition-of-the-root-alone",
            "sum-wildcard",
        ],
        "sum",
    ),
    (
        {"librosbag: Index entry", NO_DEFINITION}
        | {f"recovered: librosbag {why} of 3" for why in ("Index entry", "Expected MSG_DEF op not found")},
        ["stamp-zero"],
        "zero",
    ),
    (
        {NO_DEFINITION, "recovered: librosbag Expected MSG_DEF op not found of 5"},
        ["out_of_order", "stamps-going-back"],
        "order",
    ),
    (
        {FORMAT + "fewer of the messages", "recovered: python 0 of 3, ROSBagUnindexedException"},
        ["topic-names"],
        "names",
    ),
    (
        {FORMAT + "all messages", "librosbag: Received an invalid TCPROS header.  Each element must be prepended by a"},
        ["text-mode-copy"],
        "text mode",
    ),
    ({FORMAT + "all messages", PAST_THE_END}, ["version-line-only"], "empty"),
    ({FORMAT + "none of the messages"}, ["damaged-ops"], "damage"),
    # V2.0.
    (
        {"ok, fewer of the messages", "ok, messages that we do not have"}
        | {f"librosbag: {count}" for count in (0, 3, 4, 5, 192, 210)},
        [
            "chunk_info_missing_one",
            "v2.0+chunk-info-missing",
            "v2.0+connection-conflict",
            "v2.0+index-data-of-another-length",
            "v2.0+index-data-short",
            "v2.0+two-bags",
        ],
        "index only",
    ),
    (
        {
            "librosbag: 0",
            "librosbag: 4",
            "librosbag: 210",
            "librosbag: Error reading from file",
            "librosbag: Error parsing header",
            "librosbag: Expected CHUNK_INFO op not found",
            "librosbag: Expected CONNECTION op not found",
            "librosbag: signal 11",
            FORMAT + "fewer of the messages",
        },
        ANY,
        "wrong index",
    ),
    (
        {FORMAT + "messages that we do not have", "librosbag: Error reading connection header"},
        ["v2.0+byte-missing-in-a-chunk", "v2.0+connection-damaged"],
        "damage",
    ),
    (
        {FORMAT + "none of the messages", "librosbag: Expected MSG_DATA op not found"},
        ["v2.0+damaged-ops-in-a-chunk"],
        "damage",
    ),
    (
        {
            "ok, messages that we do not have",
            "librosbag: 8",
            "librosbag: Expected CHUNK op not found",
            "librosbag: Required",
            "librosbag: data integrity error was detected in the compressed data",
            "librosbag: size",
            "librosbag: ROSLZ",
            "librosbag: Unknown compression",
            "OSError, fewer of the messages",
            "ROSBagException, fewer of the messages",
            "ROSBagUnindexedException, all messages",
            FORMAT + "fewer of the messages",
        },
        [
            "bz2_damaged_block",
            "bomb_bz2_real",
            "damaged_chunk_header",
            "lz4_bad_checksum",
            "lz4_raw_block",
            "real_cut_in_bag_header",
            "truncated_in_bag_header",
            "unknown_compression",
            "v2.0+bomb",
            "v2.0+byte-missing-in-a-chunk+index-damaged",
            "v2.0+bz2-damaged",
            "v2.0+compression-unknown",
            "v2.0+damaged-bytes-in-a-chunk",
            "v2.0+damaged-chunk-op",
            "v2.0+damaged-message-length",
            "v2.0+lz4-checksum",
            "v2.0+lz4-damaged",
            "v2.0+lz4-raw-block",
            "zeroed_4k_block",
        ],
        "damage",
    ),
    (
        {"OSError, none of the messages", "OSError, fewer of the messages", "librosbag: ROSLZ"}
        | {f"recovered: python 0 of {count}, OSError" for count in (8, 240, 500)}
        | {f"recovered: librosbag ROSLZ of {count}" for count in (8, 240, 500)},
        [
            "bomb_declared",
            "lz4_linked_blocks",
            "lz4_two_frames",
            "size_field_too_small",
            "v2.0+lz4-frames",
            "v2.0+size-hostile",
            "v2.0+size-wrong",
            "written_rosbags_lz4",
        ],
        "frames",
    ),
    (
        {"librosbag: Error parsing header"}
        | {f"recovered: librosbag Error parsing header of {count}" for count in (8, 240)},
        ["bz2_multi_stream", "v2.0+bz2-streams"],
        "streams",
    ),
    (
        {"ROSBagEncryptException, all messages", "librosbag: Failed to decrypt bag"},
        ["encrypted_aes", "v2.0+encrypted"],
        "encrypted",
    ),
    ({"ok, other values"}, ["definitions_bad", "real_empty_definition_2020"], "not decoded"),
    ({"ok, other values"}, ["equal_stamps"], "equal stamps"),
    ({"ok, other values"}, ["v2.0+connection-conflict+same-topic"], "one definition"),
    ({"DeserializationError, fewer of the messages"}, ["v2.0+payload-short", "zero_length_payload"], "short"),
    ({"ok, messages that we do not have"}, ["v2.0+payload-surplus+compressed"], "short"),
    (
        {"ROSBagUnindexedException, all messages", "recovered: python 0 of 0, ROSBagUnindexedException"},
        ["real_dummy_90_bytes"],
        "empty",
    ),
    (
        {"librosbag: 1", "librosbag: 19", "librosbag: 236"}
        | {f"recovered: librosbag {count}" for count in ("1 of 3", "19 of 20", "236 of 240")},
        ["real_time_zero_2020", "time_zero", "v2.0+stamp-zero"],
        "zero",
    ),
]
