//! Table of all diagnostics of bags. Codes and names are stable. The diagnostics of files that are
//! compressed as a whole are in `rovelog_core::internal::packed`.

rovelog_core::rules! {
    LOST "E-BAG-001" "gap" DataLost
        "these bytes contain no valid record and are lost; reading continues at the next valid record"
    CUT "E-BAG-002" "cut" DataLost
        "the file ends inside a record or chunk; the records before this point are read"
    BAD_RECORD "E-BAG-003" "bad_record" DataLost
        "the header of a record is invalid; this record is lost, and reading continues at the next record"
    TOO_MANY_TOPICS "E-BAG-004" "too_many_topics" DataLost
        "the bag has more than 65536 topics; the messages of all further topics are skipped"
    TOO_MANY_SECTIONS "E-BAG-005" "too_many_sections" DataLost
        "the file contains more than 65536 bags, so the index of this bag is not used; its messages are read"

    CHUNK_DAMAGED "E-BAG-009" "chunk_damaged" DataLost
        "the compressed data of a chunk is damaged or truncated; the messages before the damage are read, \
         and the rest of the chunk is lost"
    CHUNK_CHECKSUM "E-BAG-010" "chunk_checksum" DataLost
        "a chunk does not match the checksum of its compressed data; its messages are read, but may be wrong"
    CHUNK_UNREADABLE "E-BAG-011" "chunk_unreadable" DataLost
        "a chunk has an unknown compression, or its data does not have the compression that its header \
         states; the messages of this chunk are lost"
    CHUNK_TOO_LARGE "E-BAG-012" "chunk_too_large" DataLost
        "a chunk decompresses to more data than its header states and the limit allows; only the data up to \
         the limit is read"
    LOST_IN_CHUNK "E-BAG-013" "lost_in_chunk" DataLost
        "some bytes of a chunk contain no valid record and are lost; reading continues at the next valid \
         record"
    ENCRYPTED "E-BAG-014" "encrypted" DataLost
        "a chunk or connection record is encrypted, so its messages cannot be read"
    MESSAGES_MISSING "E-BAG-015" "messages_missing" DataLost
        "the index lists more messages than the bag has, and no bytes are damaged, so a part of the file is \
         missing"

    VERSION_LINE_CRLF "W-BAG-101" "version_line_crlf" Note
        "the version line ends with CR LF instead of LF; all records are read"
    TEXT_MODE_COPY "W-BAG-102" "text_mode_copy" Note
        "the file was copied in text mode, which changed every LF byte to CR LF; this cannot be undone, so \
         copy the file again in binary mode"
    APPENDED_SECTION "W-BAG-103" "appended_section" Note
        "another bag follows in the same file; the messages of both bags are read"
    RAW_PADDING "W-BAG-104" "raw_padding" Note
        "padding follows the bag header outside of any record, as recorders of December 2009 write it; it is \
         skipped"
    UNINDEXED "W-BAG-105" "unindexed" Note
        "the bag has no index, because it was not closed or its writer wrote no index; messages are found by \
         reading the whole bag"
    INDEX_DIFFERS "W-BAG-106" "index_differs" Note
        "the index does not match the messages of the bag; it is ignored, and messages are found by reading \
         the whole bag"
    INDEX_POS_WRONG "W-BAG-107" "index_pos_wrong" Note
        "the bag header states a wrong offset of the index; messages are read without this offset"
    INDEX_UNUSABLE "W-BAG-108" "index_unusable" Note
        "an index record has an unknown version, or its length is not 16 bytes per entry; the index is \
         ignored, and all messages are read"
    NO_DEFINITION "W-BAG-109" "no_definition" Note
        "the bag has no definition for the type of a topic, so the messages of this topic stay raw bytes"
    DEFINITION_ELSEWHERE "W-BAG-110" "definition_elsewhere" Note
        "a topic has no definition of its own; it is decoded with a definition of the same type from \
         elsewhere, such as another topic"
    DEFINITION_DIFFERS "W-BAG-111" "definition_differs" Note
        "the md5 sum of a definition differs from the sum stated in the bag; messages are decoded, but their \
         values may be wrong"
    DEFINITION_UNUSABLE "W-BAG-112" "definition_unusable" Note
        "a message definition is empty, invalid or circular, or uses an undefined type; it is not used for \
         decoding"
    PAYLOAD_SURPLUS "W-BAG-113" "payload_surplus" Note
        "a message has extra bytes after its last field; its fields are decoded without these bytes"
    PAYLOAD_SHORT "W-BAG-114" "payload_short" Note
        "a message is too short for its fields; it is kept as raw bytes, but cannot be decoded"
    STAMP_ZERO "W-BAG-115" "stamp_zero" Note
        "a message has time 0, as simulations write it before their clock runs; it is read, but ignored for \
         the start time of the log"
    STAMP_OUT_OF_RANGE "W-BAG-116" "stamp_out_of_range" Note
        "a time has 10^9 nanoseconds or more; the whole seconds in them are added to its seconds"
    FIRST_STAMP_LATE "W-BAG-117" "first_stamp_late" Note
        "the first message of a topic is not its earliest; all messages are read, but librosbag refuses such \
         a bag"
    SECOND_TYPE "W-BAG-118" "second_type" Note
        "a topic has messages with different types or md5 sums; each type is read as a separate topic"
    DEFINITION_WITH_DATA "W-BAG-119" "definition_with_data" Note
        "a definition record has data, which such records should not have; the data is ignored"
    UNKNOWN_OP "W-BAG-120" "unknown_op" Note
        "a record has an unknown type (op); it is skipped when the bag is read, and kept when it is rewritten"
    DUPLICATE_FIELD "W-BAG-121" "duplicate_field" Note
        "a field occurs more than once in the header of a record; its last value is used"
    RELATIVE_STAMPS "W-BAG-123" "relative_stamps" Note
        "the bag is older than V1.1, so its times may count from the start of the recording; they are shown \
         as relative times"
    DEFINITION_REPEATED "W-BAG-125" "definition_repeated" Note
        "a topic has several definition records in the same bag; all of them are read"
    DEFINITION_LATE "W-BAG-126" "definition_late" Note
        "a definition comes after messages of its topic; these messages can be decoded from a file, but not \
         from a pipe"
    BAG_HEADER_LATE "W-BAG-127" "bag_header_late" Note
        "the bag header is not the first record of its bag; the bag is read completely, but the ROS tools do \
         not find this header"
    CHUNK_OPEN "W-BAG-128" "chunk_open" Note
        "a chunk was never closed, because the recorder was killed; all complete records in it are read"
    CHUNK_LENGTH "W-BAG-129" "chunk_length" Note
        "the length of a chunk differs from the length in its header; its records are read up to their \
         actual end"
    CHUNK_SIZE "W-BAG-130" "chunk_size" Note
        "the decompressed size of a chunk differs from the size in its header; all its data is read"
    CHUNK_HEADLESS "W-BAG-131" "chunk_headless" Note
        "the header of a chunk is lost; the messages of this chunk are read"
    CONNECTION_CONFLICT "W-BAG-132" "connection_conflict" Note
        "two different connections have the same id; for each message, the last connection record before it \
         is used"
    OTHER_TOPIC "W-BAG-133" "other_topic" Note
        "a connection record contains two different topics; the topic under which the messages were recorded \
         is used"
    OP_DAMAGED "W-BAG-134" "op_damaged" Note
        "the type (op) of a record is damaged; it is inferred from the other fields of the record, which is \
         read"
    OLD_INDEX "W-BAG-135" "old_index" Note
        "an old index lies between the chunks, because messages were appended to the bag; this index is \
         ignored"
    INDEX_LENGTH "W-BAG-136" "index_length" Note
        "index data has an unknown version, or its length does not match its count, as recorders before \
         September 2010 write it; no message is lost"
    CONNECTION_DAMAGED "W-BAG-137" "connection_damaged" Note
        "a connection record is damaged or incomplete; its messages are kept, and missing parts are taken \
         from another record of the same connection, if there is one"
    ZEROS_BEFORE_INDEX "W-BAG-138" "zeros_before_index" Note
        "zero bytes lie between the chunks and the index, as `rosbag reindex` leaves them; no chunk is \
         missing"
    VERSION_LINE_DAMAGED "W-BAG-139" "version_line_damaged" Note
        "the version line at the start of the bag is damaged or missing; the bag is read from its first \
         record, and `rovelog recover` writes a new version line"
}

#[cfg(test)]
mod tests {
    #[test]
    fn rules_are_distinct_and_in_order() {
        rovelog_testing::check_rules(super::ALL);
    }
}
