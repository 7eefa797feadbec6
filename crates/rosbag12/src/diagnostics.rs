//! Table of all diagnostics of bags. Codes and names are stable. The diagnostics of files that are
//! compressed as a whole are in `rovelog_core::internal::packed`.

rovelog_core::rules! {
    LOST "E-BAG-001" "gap" DataLost
        "lost range: no valid record was found up to the next valid one"
    CUT "E-BAG-002" "cut" DataLost
        "a record truncated at the end of the file"
    BAD_RECORD "E-BAG-003" "bad_record" DataLost
        "a record with valid lengths, but an invalid header"
    TOO_MANY_TOPICS "E-BAG-004" "too_many_topics" DataLost
        "a record of a topic beyond the limit of topics"
    TOO_MANY_SECTIONS "E-BAG-005" "too_many_sections" DataLost
        "the version line of a section beyond the limit of sections"

    CHUNK_DAMAGED "E-BAG-009" "chunk_damaged" DataLost
        "a chunk whose compressed data are damaged or truncated: the part before the damage is read"
    CHUNK_CHECKSUM "E-BAG-010" "chunk_checksum" DataLost
        "a chunk that fails a checksum of its compression: its messages are kept, and may be wrong"
    CHUNK_UNREADABLE "E-BAG-011" "chunk_unreadable" DataLost
        "a chunk with an unknown compression, or whose data are not compressed as its header says"
    CHUNK_TOO_LARGE "E-BAG-012" "chunk_too_large" DataLost
        "a chunk whose decompressed data exceed both the size in its header and the limit: the rest is not read"
    LOST_IN_CHUNK "E-BAG-013" "lost_in_chunk" DataLost
        "bytes of a chunk in which no record could be recognized"
    ENCRYPTED "E-BAG-014" "encrypted" DataLost
        "an encrypted chunk or connection record, which cannot be read"

    VERSION_LINE_CRLF "W-BAG-101" "version_line_crlf" Note
        "a version line that ends in CR LF"
    TEXT_MODE_COPY "W-BAG-102" "text_mode_copy" Note
        "every LF became CR LF: the file was copied in text mode and cannot be repaired; copy it again"
    APPENDED_SECTION "W-BAG-103" "appended_section" Note
        "a second bag in the same file: its positions count from its own start"
    RAW_PADDING "W-BAG-104" "raw_padding" Note
        "padding after the bag header outside of any record, written by recorders of December 2009"
    UNINDEXED "W-BAG-105" "unindexed" Note
        "a bag without an index: it was not closed, or its writer made no index"
    INDEX_DIFFERS "W-BAG-106" "index_differs" Note
        "an index that does not match the messages of the bag: not used"
    INDEX_POS_WRONG "W-BAG-107" "index_pos_wrong" Note
        "a bag header that does not point at the first index record"
    INDEX_UNUSABLE "W-BAG-108" "index_unusable" Note
        "an index record of another version, or whose length is not 16 bytes per entry"
    NO_DEFINITION "W-BAG-109" "no_definition" Note
        "a topic without a definition of its type: its messages are kept as raw bytes"
    DEFINITION_ELSEWHERE "W-BAG-110" "definition_elsewhere" Note
        "a topic without its own definition: decoded with a definition from another source"
    DEFINITION_DIFFERS "W-BAG-111" "definition_differs" Note
        "a definition whose md5 sum differs from the one stated in the bag"
    DEFINITION_UNUSABLE "W-BAG-112" "definition_unusable" Note
        "a definition that is empty, invalid, circular or lacks a type"
    PAYLOAD_SURPLUS "W-BAG-113" "payload_surplus" Note
        "a message with bytes after its last field"
    PAYLOAD_SHORT "W-BAG-114" "payload_short" Note
        "a message that ends before its last field: kept, but not decodable"
    STAMP_ZERO "W-BAG-115" "stamp_zero" Note
        "a message of time 0, as simulations write before their clock runs"
    STAMP_OUT_OF_RANGE "W-BAG-116" "stamp_out_of_range" Note
        "a time with one second or more of nanoseconds: carried into the seconds"
    FIRST_STAMP_LATE "W-BAG-117" "first_stamp_late" Note
        "a topic whose first message is not its earliest: librosbag refuses such a bag"
    SECOND_TYPE "W-BAG-118" "second_type" Note
        "a topic with messages of another type or md5 sum: read as a separate topic"
    DEFINITION_WITH_DATA "W-BAG-119" "definition_with_data" Note
        "a definition record with data: the data is ignored"
    UNKNOWN_OP "W-BAG-120" "unknown_op" Note
        "a record of an unknown kind: skipped when reading, kept when rewriting"
    DUPLICATE_FIELD "W-BAG-121" "duplicate_field" Note
        "a repeated header field: the last one is used"
    RELATIVE_STAMPS "W-BAG-123" "relative_stamps" Note
        "a bag older than V1.1: its times may count from the start of the recording"
    DEFINITION_REPEATED "W-BAG-125" "definition_repeated" Note
        "a repeated definition of a topic in one section"
    DEFINITION_LATE "W-BAG-126" "definition_late" Note
        "a definition after messages of its topic: in a stream, these messages cannot be decoded"
    BAG_HEADER_LATE "W-BAG-127" "bag_header_late" Note
        "a bag header that is not the first record of its section, which reference readers do not find"
    CHUNK_OPEN "W-BAG-128" "chunk_open" Note
        "a chunk that was never closed: the recorder was killed, and its records are read up to where they end"
    CHUNK_LENGTH "W-BAG-129" "chunk_length" Note
        "a chunk with another length than its header says"
    CHUNK_SIZE "W-BAG-130" "chunk_size" Note
        "a chunk that decompresses to another length than its header says"
    CHUNK_HEADLESS "W-BAG-131" "chunk_headless" Note
        "messages outside of any chunk, because the header of their chunk is lost"
    CONNECTION_CONFLICT "W-BAG-132" "connection_conflict" Note
        "an id that two connections share: the last connection record before a message applies"
    OTHER_TOPIC "W-BAG-133" "other_topic" Note
        "a connection that was recorded under another topic than its publisher named"
    OP_DAMAGED "W-BAG-134" "op_damaged" Note
        "a record with a damaged op: the right op follows from its other fields"
    OLD_INDEX "W-BAG-135" "old_index" Note
        "an index before the last chunks, which became outdated when messages were appended to the bag"
    INDEX_LENGTH "W-BAG-136" "index_length" Note
        "index data of another version, or whose length does not match their count, as recorders before September 2010 wrote them"
    CONNECTION_DAMAGED "W-BAG-137" "connection_damaged" Note
        "a connection record whose data cannot be parsed, lack the type, md5 sum or definition, or contradict each other while another record of the connection is consistent"
    ZEROS_BEFORE_INDEX "W-BAG-138" "zeros_before_index" Note
        "zero bytes between chunks and index, as `rosbag reindex` leaves them: all chunks of the index were found"
    VERSION_LINE_DAMAGED "W-BAG-139" "version_line_damaged" Note
        "a bag whose version line is damaged, missing or not at its start: read from its first record on; `rovelog recover` writes one"
}

#[cfg(test)]
mod tests {
    #[test]
    fn rules_are_distinct_and_in_order() {
        rovelog_testing::check_rules(super::ALL);
    }
}
