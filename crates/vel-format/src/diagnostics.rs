//! The diagnostics of VEL logs, in one table. Codes and names are stable.

rovelog_core::rules! {
    LOST "E-VEL-001" "gap" DataLost
        "the bytes between two valid messages contain no valid message and are lost"
    CUT "E-VEL-002" "cut" DataLost
        "a message is truncated by the end of the file"
    BAD_PAYLOAD "E-VEL-003" "bad_payload" DataLost
        "a message has a valid header, but its data is too short for its content"

    UNKNOWN_VERSION "W-VEL-101" "unknown_version" Note
        "the file version is not 1.1; the file is read as version 1.1"
    DATA_ONLY_SIZES "W-VEL-102" "data_only_sizes" Note
        "message sizes exclude the header, unlike in the specification; this was inferred from consecutive \
         messages"
    INVALID_MESSAGE "W-VEL-103" "invalid_message" Note
        "a message is marked as invalid by its writer; reading skips it, and rewriting keeps it"
    TRAILING_DATA "W-VEL-104" "trailing_data" Note
        "a message is longer than its fields; the extra bytes at its end are kept"
    UNKNOWN_TYPE "W-VEL-105" "unknown_type" Note
        "a message has an unknown type or version; its data is kept as raw bytes"
    TAIL "W-VEL-106" "tail" Note
        "bytes after the end mark are not a message; rewriting keeps them"
    INDEX_REBUILT "W-VEL-107" "index_rebuilt" Repaired
        "the index does not match the messages; it is rebuilt by scanning the file"
    TIMESTAMP_NOT_FINITE "W-VEL-108" "timestamp_not_finite" Note
        "a timestamp is not a finite number; the message gets the time of the previous message"
    TIMESTAMP_OUT_OF_RANGE "W-VEL-109" "timestamp_out_of_range" Note
        "a timestamp is too large for 64-bit nanoseconds (292 years); it is set to the maximum"
    JOINED "W-VEL-110" "joined" Note
        "another log with its own header follows in the same file"
    IMAGE_SIZE "W-VEL-111" "image_size" Note
        "the width and height of an image message differ from those of the JPEG in it"
    IMAGE_HEADER "W-VEL-112" "image_header" Note
        "the data of an image message is not a JPEG with a readable header"
    BAD_MAGIC "W-VEL-113" "bad_magic" Repaired
        "the first bytes are not those of a VEL log; the file is read as VEL on request"
    DATE_UNWRAPPED "W-VEL-115" "date_unwrapped" Note
        "the date of positions jumps by whole days or by 1024 weeks; only the time of day is used"
    MESSAGES_BEHIND_END "W-VEL-116" "messages_behind_end" LeftOut
        "messages follow an end mark; reading leaves them out, and `rovelog recover` keeps them"
    MANY_TOPICS "W-VEL-120" "many_topics" Note
        "the log has more cameras, scanners or message types than the limit of topics; the rest of each \
         kind shares one topic"
}

#[cfg(test)]
mod tests {
    #[test]
    fn rules_are_distinct_and_in_order() {
        rovelog_testing::check_rules(super::ALL);
    }
}
