//! Everything that can be noticed in a VEL log, in one table. Codes and names are stable.

rovelog_core::rules! {
    GAP "E-VEL-001" "gap" DataLost
        "bytes in which no message could be recognised, skipped up to the next sound one"
    CUT "E-VEL-002" "cut" DataLost
        "a message that passes the end of the file"
    BAD_PAYLOAD "E-VEL-003" "bad_payload" DataLost
        "a message with sound framing that ends before its content does"

    UNKNOWN_VERSION "W-VEL-101" "unknown_version" Note
        "a file version other than 1.1, read as 1.1"
    DATA_ONLY_SIZES "W-VEL-102" "data_only_sizes" Note
        "sizes that count the data alone, against the text: recognised by the chain of messages"
    INVALID_MESSAGE "W-VEL-103" "invalid_message" Note
        "a message that its writer marked as not valid, passed over and kept for rewriting"
    TRAILING_DATA "W-VEL-104" "trailing_data" Note
        "a message that is longer than its content: the rest is kept"
    UNKNOWN_TYPE "W-VEL-105" "unknown_type" Note
        "a message type or version that is not described: its data is kept as bytes"
    TAIL "W-VEL-106" "tail" Note
        "bytes behind the end mark that hold no message: kept as they are"
    INDEX_REBUILT "W-VEL-107" "index_rebuilt" Repaired
        "an index that does not fit the messages: a new one was made by walking over them"
    TIMESTAMP_NOT_FINITE "W-VEL-108" "timestamp_not_finite" Note
        "a timestamp that is no number: the message takes the time of the one before"
    TIMESTAMP_OUT_OF_RANGE "W-VEL-109" "timestamp_out_of_range" Note
        "a timestamp beyond 292 years, held at that limit"
    JOINED "W-VEL-110" "joined" Note
        "a second file header: another log follows in the same file"
    IMAGE_SIZE "W-VEL-111" "image_size" Note
        "the width and height of an image message differ from those of the JPEG in it"
    IMAGE_HEADER "W-VEL-112" "image_header" Note
        "an image message that says compressed and holds no readable JPEG header"
    BAD_MAGIC "W-VEL-113" "bad_magic" Repaired
        "the first bytes are not those of a VEL log: read as one because that was asked for"
    ID_COLLISION "W-VEL-114" "id_collision" Note
        "a declared name whose id already belongs to a published type"
    DATE_UNWRAPPED "W-VEL-115" "date_unwrapped" Note
        "positions whose date jumps by whole days or by 1024 weeks: the time of day is trusted"
    MESSAGES_BEHIND_END "W-VEL-116" "messages_behind_end" LeftOut
        "messages behind an end mark: left out by reading, kept by recovery"
    MANY_TOPICS "W-VEL-120" "many_topics" Note
        "more cameras, scanners or message types than there are topics: the others of a kind share one"
}

#[cfg(test)]
mod tests {
    #[test]
    fn rules_are_documented_distinct_and_in_order() {
        rovelog_testing::check_rules(super::ALL, "docs/formats/vel.md");
    }
}
