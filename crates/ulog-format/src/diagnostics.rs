//! The diagnostics of ULog files, in one table. Codes and names are stable.

rovelog_core::rules! {
    LOST "E-ULOG-001" "gap" DataLost
        "these bytes contain no valid message and are lost; reading continues at the next valid message"
    CUT "E-ULOG-002" "cut" DataLost
        "the file ends, or appended data starts, inside a message; this message is lost"
    BAD_MESSAGE "E-ULOG-003" "bad_message" DataLost
        "the payload of a message is not valid for its type; this message is lost, and reading continues at \
         the next message"
    UNKNOWN_ID "E-ULOG-004" "unknown_id" DataLost
        "a data message has an id that no subscription defines, so it cannot be decoded and is lost"
    UNDECODABLE "E-ULOG-005" "undecodable" DataLost
        "a data message cannot be decoded and is lost, because the format of its topic is missing or unusable"

    UNKNOWN_VERSION "W-ULOG-101" "unknown_version" Note
        "the file version is higher than 1, the only known version; the file is read as version 1"
    UNKNOWN_MESSAGE "W-ULOG-102" "unknown_message" Note
        "a message has a type that is not in the specification; it is skipped when the log is read, and kept \
         when it is rewritten"
    FORMAT_REPEATED "W-ULOG-103" "format_repeated" Note
        "a format is defined twice in the same way; this does not affect the data"
    FORMAT_REDEFINED "W-ULOG-104" "format_redefined" Note
        "a format is defined again with other fields; topics that are subscribed later use the new fields, \
         and earlier topics keep the old fields"
    FORMAT_IN_DATA_SECTION "W-ULOG-105" "format_in_data_section" Note
        "a format is defined inside the data section instead of before it; the format is used"
    SUBSCRIPTION_REPEATED "W-ULOG-106" "subscription_repeated" Note
        "a topic is subscribed again with the same id; all its records stay in one topic"
    MSG_ID_REUSED "W-ULOG-107" "msg_id_reused" Note
        "a subscription reuses the id of another topic; later data with this id belongs to the new topic"
    UNDEFINED_FORMAT "W-ULOG-108" "undefined_format" Note
        "a subscription names a format that is not defined, so the records of this topic cannot be decoded"
    UNDECODABLE_TOPIC "W-ULOG-109" "undecodable_topic" Note
        "the format of a topic is circular or too large, or uses an undefined type, so the records of this \
         topic cannot be decoded"
    DATA_AFTER_UNSUBSCRIBE "W-ULOG-110" "data_after_unsubscribe" Note
        "a topic has data after it was unsubscribed; this data is read"
    NO_TIMESTAMP "W-ULOG-111" "no_timestamp" Note
        "a topic has no timestamp field; its records are read, but have no time"
    NARROW_TIMESTAMP "W-ULOG-112" "narrow_timestamp" Note
        "the timestamp of a topic has fewer than 64 bits; the full time is computed by counting overflows"
    CONTINUED_WITHOUT_FIRST "W-ULOG-113" "continued_without_first" Note
        "a multi info message continues a list whose start is missing; it is read as the start of a new list"
    LEVEL_NOT_A_DIGIT "W-ULOG-114" "level_not_a_digit" Note
        "the level of a logged text is stored as a number instead of an ASCII digit; the text is read with \
         this level"
    PARAMETER_TYPE "W-ULOG-115" "parameter_type" Note
        "a parameter has a type other than int32_t and float; its value is read"
    APPENDED_FLAG_MISMATCH "W-ULOG-116" "appended_flag_mismatch" Note
        "the flag for appended data contradicts the list of its offsets; data is read at every valid offset"
    APPENDED_OFFSET_IGNORED "W-ULOG-117" "appended_offset_ignored" Note
        "no message starts at an offset that the log states for appended data; this offset is ignored"
    TIMESTAMP_OUT_OF_RANGE "W-ULOG-118" "timestamp_out_of_range" Note
        "a timestamp is after the year 2262 and does not fit into 64-bit nanoseconds; the record is read, \
         but has no time"
    UNUSUAL_KEY "W-ULOG-119" "unusual_key" Note
        "the key of an info message or parameter contains extra spaces or non-ASCII characters; its value is \
         read"
    UNUSUAL_NAME "W-ULOG-120" "unusual_name" Note
        "the name of a format or field contains characters that PX4 does not use; its data is read"
    TOO_MANY_SUBSCRIPTIONS "W-ULOG-121" "too_many_subscriptions" Note
        "the log has more than 131072 subscriptions; data with the id of this subscription is lost from here \
         on"
    TIMESTAMPS_FALL "W-ULOG-122" "timestamps_fall" Note
        "some records of a topic are earlier than the record before them; all records are read (reported \
         once per topic, with their number)"
    INFO_REPEATED "W-ULOG-123" "info_repeated" Note
        "info messages repeat a key, so the last value is used (reported once per log, with the number of \
         such messages)"
    VALUE_LENGTH "W-ULOG-124" "value_length" Note
        "values of info messages are longer or shorter than their type; all their bytes are read (reported \
         once per log, with their number)"
    UNDEFINED_COMPAT_BITS "W-ULOG-125" "undefined_compat_bits" Note
        "the log sets compatible flag bits that the specification does not define; they do not affect how \
         data is read"
    EXTRA_BLANKS "W-ULOG-126" "extra_blanks" Note
        "a format or subscription contains blanks or NUL bytes that the specification does not allow; they \
         are ignored, and its data is read"
    DAMAGED_HEADER "W-ULOG-127" "damaged_header" Note
        "the header at the start of the log is damaged or missing; the messages after it are read, and \
         `rovelog recover` writes a new header"
    SECOND_HEADER "W-ULOG-128" "second_header" Note
        "another log with its own clock follows in the same file; both logs are read, and `rovelog split \
         --at-restart` separates them"
    CLOCK_RESTARTS "W-ULOG-129" "clock_restarts" Note
        "the clock restarts within the log, so no UTC offset is valid for all its records; `rovelog split \
         --at-restart` separates its parts"
    GPS_DATE "W-ULOG-130" "gps_date" Note
        "GPS fixes have dates from 2000 to 2011, before ULog existed, because the week number of the \
         receiver rolled over; UTC is computed without these fixes"
    UTC_JUMPS "W-ULOG-131" "utc_jumps" Note
        "the UTC time of GPS fixes jumps by more than 0.9 s within the log; the median is used, so UTC times \
         of records may be wrong by this jump"
}

#[cfg(test)]
mod tests {
    #[test]
    fn rules_are_distinct_and_in_order() {
        rovelog_testing::check_rules(super::ALL);
    }
}
