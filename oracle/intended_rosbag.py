"""Where the reference readers of ROS bags say something else than rovelog, and why.

An entry of INTENDED is what they say, of which bags (ANY: of those where they say it), and the key of the reason.
"""

ANY = "any"

REASONS = {
    "no index": "they read nothing, or not all, without an index that is whole; we scan",
    "wrong index": "they go where a wrong index points; we scan, and compare it",
    "damage": "they stop, or never begin, where a record is damaged; we go on behind it",
    "no definition": "they need a definition in front of the messages; we look for it elsewhere",
    "not decoded": "their messages are empty where they cannot parse a definition, or its sum is another one; we give the bytes, or decode by the definition that stands in the bag",
    "one definition": "they decode all messages of a topic by its first definition",
    "short": "their strings and arrays may end before their length says; we refuse the message",
    "normalised": "they carry nanoseconds of a second and more, and negative ones, into the seconds; we show both as they stand",
    "sum": "librosbag refuses the sum `*`, which the recorder wrote for topics of any type",
    "zero": "librosbag refuses the time 0",
    "order": "librosbag asks for a definition in front of the earliest message, the recorder wrote it in front of the first; an intact bag is copied as it is",
    "names": "Python reads no bag with topics of such names, with whatever index",
    "header": "they take the first record for the bag header",
    "text mode": "a copy in which line ends were changed; we undo it",
    "empty": "they fail on a bag without records",
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
]
