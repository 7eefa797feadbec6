//! Table of all diagnostics of bags. Codes and names are stable. The diagnostics of files that are
//! compressed as a whole are in `rovelog_core::internal::packed`.

rovelog_core::rules! {
    LOST "E-BAG-001" "gap" DataLost
        "the bytes between two valid records contain no valid record and are lost"
    CUT "E-BAG-002" "cut" DataLost
        "a record is truncated by the end of the file"
    BAD_RECORD "E-BAG-003" "bad_record" DataLost
        "a record has valid lengths, but an invalid header"
    TOO_MANY_TOPICS "E-BAG-004" "too_many_topics" DataLost
        "the bag has more topics than the limit; records of further topics are skipped"
    TOO_MANY_SECTIONS "E-BAG-005" "too_many_sections" DataLost
        "the file contains more bags than the limit; the bag that starts here is beyond it"

    CHUNK_DAMAGED "E-BAG-009" "chunk_damaged" DataLost
        "the compressed data of a chunk is damaged or truncated; the part before the damage is read"
    CHUNK_CHECKSUM "E-BAG-010" "chunk_checksum" DataLost
        "a chunk fails the checksum of its compression; its messages are kept, but may be wrong"
    CHUNK_UNREADABLE "E-BAG-011" "chunk_unreadable" DataLost
        "a chunk has an unknown compression, or its data is not compressed as its header states"
    CHUNK_TOO_LARGE "E-BAG-012" "chunk_too_large" DataLost
        "the decompressed data of a chunk exceeds both the size in its header and the limit; the rest is \
         not read"
    LOST_IN_CHUNK "E-BAG-013" "lost_in_chunk" DataLost
        "some bytes of a chunk contain no record that can be recognized"
    ENCRYPTED "E-BAG-014" "encrypted" DataLost
        "a chunk or connection record is encrypted and cannot be read"

    VERSION_LINE_CRLF "W-BAG-101" "version_line_crlf" Note
        "the version line ends in CR LF"
    TEXT_MODE_COPY "W-BAG-102" "text_mode_copy" Note
        "every LF became CR LF, because the file was copied in text mode; it cannot be repaired, so copy \
         it again"
    APPENDED_SECTION "W-BAG-103" "appended_section" Note
        "another bag follows in the same file; its positions count from its own start"
    RAW_PADDING "W-BAG-104" "raw_padding" Note
        "padding follows the bag header outside of any record, as written by recorders of December 2009"
    UNINDEXED "W-BAG-105" "unindexed" Note
        "the bag has no index, because it was not closed or its writer wrote no index"
    INDEX_DIFFERS "W-BAG-106" "index_differs" Note
        "the index does not match the messages of the bag; it is not used"
    INDEX_POS_WRONG "W-BAG-107" "index_pos_wrong" Note
        "the bag header does not point at the first index record"
    INDEX_UNUSABLE "W-BAG-108" "index_unusable" Note
        "an index record has an unknown version, or its length is not 16 bytes per entry"
    NO_DEFINITION "W-BAG-109" "no_definition" Note
        "the bag has no definition for the type of a topic; the messages of this topic are kept as raw bytes"
    DEFINITION_ELSEWHERE "W-BAG-110" "definition_elsewhere" Note
        "a topic has no definition of its own; it is decoded with a definition from another source"
    DEFINITION_DIFFERS "W-BAG-111" "definition_differs" Note
        "the md5 sum of a definition differs from the sum stated in the bag"
    DEFINITION_UNUSABLE "W-BAG-112" "definition_unusable" Note
        "a definition is empty, invalid or circular, or a type in it is not defined"
    PAYLOAD_SURPLUS "W-BAG-113" "payload_surplus" Note
        "a message has bytes after its last field"
    PAYLOAD_SHORT "W-BAG-114" "payload_short" Note
        "a message ends before its last field; it is kept, but cannot be decoded"
    STAMP_ZERO "W-BAG-115" "stamp_zero" Note
        "a message has time 0, as simulations write before their clock runs"
    STAMP_OUT_OF_RANGE "W-BAG-116" "stamp_out_of_range" Note
        "the nanoseconds of a time are one second or more; they are carried into the seconds"
    FIRST_STAMP_LATE "W-BAG-117" "first_stamp_late" Note
        "the first message of a topic is not its earliest; librosbag refuses such a bag"
    SECOND_TYPE "W-BAG-118" "second_type" Note
        "a topic has messages with another type or md5 sum; they are read as a separate topic"
    DEFINITION_WITH_DATA "W-BAG-119" "definition_with_data" Note
        "a definition record has data; the data is ignored"
    UNKNOWN_OP "W-BAG-120" "unknown_op" Note
        "a record is of an unknown kind; reading skips it, and rewriting keeps it"
    DUPLICATE_FIELD "W-BAG-121" "duplicate_field" Note
        "a header field is repeated; the last value is used"
    RELATIVE_STAMPS "W-BAG-123" "relative_stamps" Note
        "the bag is older than V1.1; its times may be relative to the start of the recording"
    DEFINITION_REPEATED "W-BAG-125" "definition_repeated" Note
        "a topic is defined again in the same bag"
    DEFINITION_LATE "W-BAG-126" "definition_late" Note
        "a definition comes after messages of its topic; if the bag is read as a stream, these messages \
         cannot be decoded"
    BAG_HEADER_LATE "W-BAG-127" "bag_header_late" Note
        "the bag header is not the first record of its bag, so reference readers do not find it"
    CHUNK_OPEN "W-BAG-128" "chunk_open" Note
        "a chunk was never closed, because the recorder was killed; its records are read up to their end"
    CHUNK_LENGTH "W-BAG-129" "chunk_length" Note
        "the length of a chunk is not the length stated in its header"
    CHUNK_SIZE "W-BAG-130" "chunk_size" Note
        "a chunk does not decompress to the length stated in its header"
    CHUNK_HEADLESS "W-BAG-131" "chunk_headless" Note
        "messages are outside of any chunk, because the header of their chunk is lost"
    CONNECTION_CONFLICT "W-BAG-132" "connection_conflict" Note
        "two connections share an id; the last connection record before a message applies"
    OTHER_TOPIC "W-BAG-133" "other_topic" Note
        "a connection was recorded under another topic than the one that its publisher named"
    OP_DAMAGED "W-BAG-134" "op_damaged" Note
        "the op (record type) of a record is damaged; the correct op follows from its other fields"
    OLD_INDEX "W-BAG-135" "old_index" Note
        "an index comes before the last chunks; it became outdated when messages were appended to the bag"
    INDEX_LENGTH "W-BAG-136" "index_length" Note
        "index data has an unknown version, or its length does not match its count, as written by \
         recorders before September 2010"
    CONNECTION_DAMAGED "W-BAG-137" "connection_damaged" Note
        "the data of a connection record cannot be parsed, lacks the type, md5 sum or definition, or \
         contradicts itself while another record of the connection is consistent"
    ZEROS_BEFORE_INDEX "W-BAG-138" "zeros_before_index" Note
        "zero bytes are between the chunks and the index, as `rosbag reindex` leaves them; all chunks of \
         the index were found"
    VERSION_LINE_DAMAGED "W-BAG-139" "version_line_damaged" Note
        "the version line of the bag is damaged, missing or not at its start; the bag is read from its \
         first record on, and `rovelog recover` writes a version line"
}

#[cfg(test)]
mod tests {
    #[test]
    fn rules_are_distinct_and_in_order() {
        rovelog_testing::check_rules(super::ALL);
    }
}
