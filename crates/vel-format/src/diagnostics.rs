//! The diagnostics of VEL logs, in one table. Codes and names are stable.

rovelog_core::rules! {
    LOST "E-VEL-001" "gap" DataLost
        "lost range: no valid message was found up to the next valid one"
    CUT "E-VEL-002" "cut" DataLost
        "a message truncated at the end of the file"
    BAD_PAYLOAD "E-VEL-003" "bad_payload" DataLost
        "a message with a valid header that is too short for its content"

    UNKNOWN_VERSION "W-VEL-101" "unknown_version" Note
        "a file version other than 1.1, read as 1.1"
    DATA_ONLY_SIZES "W-VEL-102" "data_only_sizes" Note
        "message sizes that exclude the header, against the specification: inferred from consecutive messages"
    INVALID_MESSAGE "W-VEL-103" "invalid_message" Note
        "a message that its writer marked as invalid: skipped when reading, kept when rewriting"
    TRAILING_DATA "W-VEL-104" "trailing_data" Note
        "a message that is longer than its content: the extra bytes are kept"
    UNKNOWN_TYPE "W-VEL-105" "unknown_type" Note
        "an unknown message type or version: its data is kept as raw bytes"
    TAIL "W-VEL-106" "tail" Note
        "bytes after the end mark that are not a message: kept when rewriting"
    INDEX_REBUILT "W-VEL-107" "index_rebuilt" Repaired
        "an index that does not match the messages: it is rebuilt by scanning the file"
    TIMESTAMP_NOT_FINITE "W-VEL-108" "timestamp_not_finite" Note
        "a timestamp that is not a finite number: the message takes the time of the previous message"
    TIMESTAMP_OUT_OF_RANGE "W-VEL-109" "timestamp_out_of_range" Note
        "a timestamp beyond 292 years: clamped to that limit"
    JOINED "W-VEL-110" "joined" Note
        "a second file header: another log follows in the same file"
    IMAGE_SIZE "W-VEL-111" "image_size" Note
        "the width and height of an image message differ from those of the JPEG in it"
    IMAGE_HEADER "W-VEL-112" "image_header" Note
        "an image message whose data is not a JPEG with a readable header"
    BAD_MAGIC "W-VEL-113" "bad_magic" Repaired
        "the first bytes are not those of a VEL log: the file is read as a VEL log on request"
    DATE_UNWRAPPED "W-VEL-115" "date_unwrapped" Note
        "positions whose date jumps by whole days or by 1024 weeks: only the time of day is used"
    MESSAGES_BEHIND_END "W-VEL-116" "messages_behind_end" LeftOut
        "messages after an end mark: left out when reading, kept by recovery"
    MANY_TOPICS "W-VEL-120" "many_topics" Note
        "more cameras, scanners or message types than the limit of topics: the rest of each kind shares one topic"
}

#[cfg(test)]
mod tests {
    #[test]
    fn rules_are_distinct_and_in_order() {
        rovelog_testing::check_rules(super::ALL);
    }
}
