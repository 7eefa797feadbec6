//! Everything that can be noticed in a bag, in one table. Codes and names are stable.

rovelog_core::rules! {
    GAP "E-BAG-001" "gap" DataLost
        "bytes in which no record could be recognised, skipped up to the next sound one"
    CUT "E-BAG-002" "cut" DataLost
        "a record that passes the end of the file"
    BAD_RECORD "E-BAG-003" "bad_record" DataLost
        "a record with sound lengths whose header breaks the format"
    TOO_MANY_TOPICS "E-BAG-004" "too_many_topics" DataLost
        "a record of yet another topic, where the limit of topics is reached"
    TOO_MANY_SECTIONS "E-BAG-005" "too_many_sections" DataLost
        "the version line of yet another section, where the limit of sections is reached"
    PACKED_CUT "E-BAG-006" "packed_cut" DataLost
        "a compressed file that is cut inside of its data: the end of the bag is missing"
    PACKED_UNCHECKED "E-BAG-007" "packed_unchecked" DataLost
        "a compressed file that is cut before its checksum: nothing proves that the bag is whole and right"
    PACKED_FOLLOWED "E-BAG-008" "packed_followed" DataLost
        "bytes behind the compressed data that are none: they are not read"

    VERSION_LINE_CRLF "W-BAG-101" "version_line_crlf" Note
        "a version line that ends in CR LF"
    TEXT_MODE_COPY "W-BAG-102" "text_mode_copy" Note
        "every LF became CR LF: the file was copied in text mode, and only another copy helps"
    APPENDED_SECTION "W-BAG-103" "appended_section" Note
        "a second bag in the same file: positions in it count from its own start"
    RAW_PADDING "W-BAG-104" "raw_padding" Note
        "spaces behind the bag header that belong to no record, as recorders of December 2009 left them"
    UNINDEXED "W-BAG-105" "unindexed" Note
        "messages without an index: not closed, or written by a tool that makes none"
    INDEX_DIFFERS "W-BAG-106" "index_differs" Note
        "an index that does not name exactly the messages of the bag; it is not used"
    INDEX_POS_WRONG "W-BAG-107" "index_pos_wrong" Note
        "a bag header that does not point at the first index record"
    INDEX_UNUSABLE "W-BAG-108" "index_unusable" Note
        "an index record of another version, or whose length is not 16 bytes for each entry"
    NO_DEFINITION "W-BAG-109" "no_definition" Note
        "a topic whose type is defined nowhere: its messages are kept as bytes"
    DEFINITION_ELSEWHERE "W-BAG-110" "definition_elsewhere" Note
        "a topic without a definition of its own, decoded by one from elsewhere"
    DEFINITION_DIFFERS "W-BAG-111" "definition_differs" Note
        "a definition whose md5 sum is not the one that the bag gives"
    DEFINITION_UNUSABLE "W-BAG-112" "definition_unusable" Note
        "a definition that is empty, breaks the grammar, lacks a type or is circular"
    PAYLOAD_SURPLUS "W-BAG-113" "payload_surplus" Note
        "a message with bytes behind its last field"
    PAYLOAD_SHORT "W-BAG-114" "payload_short" Note
        "a message that ends before its last field: it is kept, but cannot be decoded"
    STAMP_ZERO "W-BAG-115" "stamp_zero" Note
        "a message of time 0, as simulations record before their clock runs"
    STAMP_OUT_OF_RANGE "W-BAG-116" "stamp_out_of_range" Note
        "a time with a second or more of nanoseconds: they are carried into the seconds"
    FIRST_STAMP_LATE "W-BAG-117" "first_stamp_late" Note
        "a topic whose first message is not its earliest: librosbag refuses the bag"
    SECOND_TYPE "W-BAG-118" "second_type" Note
        "a topic with messages of another type or md5 sum: a topic of its own here"
    DEFINITION_WITH_DATA "W-BAG-119" "definition_with_data" Note
        "a definition record with data, which is passed over"
    UNKNOWN_OP "W-BAG-120" "unknown_op" Note
        "a record of an unknown kind, passed over and kept for rewriting"
    DUPLICATE_FIELD "W-BAG-121" "duplicate_field" Note
        "a header field twice: the last one counts"
    COMPRESSED "W-BAG-122" "compressed" Note
        "the whole file is compressed: offsets are those of the unpacked bag"
    RELATIVE_STAMPS "W-BAG-123" "relative_stamps" Note
        "a bag of before V1.1, whose times may count from the start of the recording"
    PACKED_PADDING "W-BAG-124" "packed_padding" Note
        "zero bytes behind the compressed data, as tapes and block devices leave them"
    DEFINITION_REPEATED "W-BAG-125" "definition_repeated" Note
        "a second definition of a topic in one section: a bag has one"
    DEFINITION_LATE "W-BAG-126" "definition_late" Note
        "a definition behind messages of its topic: pipes decode those without it"
    BAG_HEADER_LATE "W-BAG-127" "bag_header_late" Note
        "a bag header that is not the first record of its section: the reference readers look for it there only"
}

#[cfg(test)]
mod tests {
    #[test]
    fn rules_are_documented_distinct_and_in_order() {
        rovelog_testing::check_rules(super::ALL, "docs/formats/rosbag.md");
    }
}
