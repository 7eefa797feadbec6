//! The diagnostics of VEL logs, in one table. Codes and names are stable.

rovelog_core::rules! {
    LOST "E-VEL-001" "gap" DataLost
        "these bytes contain no valid message and are lost; reading continues at the next valid message"
    CUT "E-VEL-002" "cut" DataLost
        "the file ends inside a message; this message is lost"
    BAD_PAYLOAD "E-VEL-003" "bad_payload" DataLost
        "the data of a message is too short for the fields of its type; this message is lost"

    UNKNOWN_VERSION "W-VEL-101" "unknown_version" Note
        "the file version is not 1.1, the only known version; the file is read as version 1.1"
    DATA_ONLY_SIZES "W-VEL-102" "data_only_sizes" Note
        "the size field of each message does not include its header, unlike in the specification; this was \
         inferred from the data, and all messages are read"
    INVALID_MESSAGE "W-VEL-103" "invalid_message" Note
        "the writer marked a message as invalid; it is skipped when the log is read, and kept when it is \
         rewritten"
    TRAILING_DATA "W-VEL-104" "trailing_data" Note
        "a message has extra bytes after its last field; its fields are read, and rewriting keeps the extra \
         bytes"
    UNKNOWN_TYPE "W-VEL-105" "unknown_type" Note
        "a message has an unknown type or version, so its data is returned as raw bytes"
    TAIL "W-VEL-106" "tail" Note
        "the end mark of the log is followed by bytes that are not a message; they are not read, but \
         rewriting keeps them"
    INDEX_REBUILT "W-VEL-107" "index_rebuilt" Repaired
        "the index does not match the messages; it is rebuilt from the messages, which are all read"
    TIMESTAMP_NOT_FINITE "W-VEL-108" "timestamp_not_finite" Note
        "a timestamp is infinite or not a number; its message gets the time of the previous message"
    TIMESTAMP_OUT_OF_RANGE "W-VEL-109" "timestamp_out_of_range" Note
        "a timestamp is beyond 292 years, the limit of 64-bit nanoseconds; it is set to this limit"
    JOINED "W-VEL-110" "joined" Note
        "another log with its own header follows in the same file; its messages are read as part of this log"
    IMAGE_SIZE "W-VEL-111" "image_size" Note
        "the width and height of an image message differ from those of the JPEG in it; pixels are read with \
         the size of the JPEG"
    IMAGE_HEADER "W-VEL-112" "image_header" Note
        "the data of an image message is not a JPEG, or the header of the JPEG is damaged; the message is \
         kept"
    BAD_MAGIC "W-VEL-113" "bad_magic" Repaired
        "the file does not start with the VEL magic number; it is read as VEL, because the user requested \
         this format"
    DATE_UNWRAPPED "W-VEL-115" "date_unwrapped" Note
        "the date of a position differs from the other positions by whole days or 1024 weeks; only its time \
         of day is used for UTC"
    MESSAGES_BEHIND_END "W-VEL-116" "messages_behind_end" LeftOut
        "messages follow the end mark of the log; they are not read, but `rovelog recover` keeps them"
    MANY_TOPICS "W-VEL-120" "many_topics" Note
        "the log has more cameras, scanners and message types than the limit of 65536 topics; the records of \
         all further ones are in shared topics"
}

#[cfg(test)]
mod tests {
    #[test]
    fn rules_are_distinct_and_in_order() {
        rovelog_testing::check_rules(super::ALL);
    }
}
