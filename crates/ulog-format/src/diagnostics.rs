//! The diagnostics of ULog files, in one table. Codes and names are stable.

rovelog_core::rules! {
    LOST "E-ULOG-001" "gap" DataLost
        "the bytes between two valid messages contain no valid message and are lost"
    CUT "E-ULOG-002" "cut" DataLost
        "a message is truncated by the end of the file or by the start of appended data"
    BAD_MESSAGE "E-ULOG-003" "bad_message" DataLost
        "a message has a valid header, but its payload is not valid for its type"
    UNKNOWN_ID "E-ULOG-004" "unknown_id" DataLost
        "a data message has an id that no subscription defines"
    UNDECODABLE "E-ULOG-005" "undecodable" DataLost
        "a data message cannot be decoded, because the format of its topic is missing or unusable"

    UNKNOWN_VERSION "W-ULOG-101" "unknown_version" Note
        "the file version is above 1; the file is read as version 1"
    UNKNOWN_MESSAGE "W-ULOG-102" "unknown_message" Note
        "a message has a type that is not in the specification; reading skips the message, and rewriting \
         keeps it"
    FORMAT_REPEATED "W-ULOG-103" "format_repeated" Note
        "a format is defined twice, identically"
    FORMAT_REDEFINED "W-ULOG-104" "format_redefined" Note
        "a format is defined again in another way; later subscriptions use the new definition, and earlier \
         ones keep the old definition"
    FORMAT_IN_DATA_SECTION "W-ULOG-105" "format_in_data_section" Note
        "a format is defined inside the data section"
    SUBSCRIPTION_REPEATED "W-ULOG-106" "subscription_repeated" Note
        "a topic is subscribed again; its records stay in one topic"
    MSG_ID_REUSED "W-ULOG-107" "msg_id_reused" Note
        "a subscription reuses the id of another topic; a new topic starts here"
    UNDEFINED_FORMAT "W-ULOG-108" "undefined_format" Note
        "a subscription names a format that is not defined"
    UNDECODABLE_TOPIC "W-ULOG-109" "undecodable_topic" Note
        "a subscription names a format that is circular or too large, or that uses an undefined type"
    DATA_AFTER_UNSUBSCRIBE "W-ULOG-110" "data_after_unsubscribe" Note
        "a topic has data after its unsubscription; the data is kept"
    NO_TIMESTAMP "W-ULOG-111" "no_timestamp" Note
        "a topic has no timestamp; its records are kept without a time"
    NARROW_TIMESTAMP "W-ULOG-112" "narrow_timestamp" Note
        "the timestamp of a topic has fewer than 64 bits; overflows are counted to find the full time"
    CONTINUED_WITHOUT_FIRST "W-ULOG-113" "continued_without_first" Note
        "a multi info message is marked as the continuation of a list, but no list was started; it is \
         read as the start of a list"
    LEVEL_NOT_A_DIGIT "W-ULOG-114" "level_not_a_digit" Note
        "a log level is stored as a number instead of an ASCII digit"
    PARAMETER_TYPE "W-ULOG-115" "parameter_type" Note
        "a parameter has a type other than int32_t and float"
    APPENDED_FLAG_MISMATCH "W-ULOG-116" "appended_flag_mismatch" Note
        "the flag for appended data contradicts the list of offsets"
    APPENDED_OFFSET_IGNORED "W-ULOG-117" "appended_offset_ignored" Note
        "no message starts at an offset of appended data; the offset is ignored"
    TIMESTAMP_OUT_OF_RANGE "W-ULOG-118" "timestamp_out_of_range" Note
        "a timestamp is after the year 2262; the record is kept without a time"
    UNUSUAL_KEY "W-ULOG-119" "unusual_key" Note
        "the key of an info message or parameter has spaces in its name or contains non-ASCII characters"
    UNUSUAL_NAME "W-ULOG-120" "unusual_name" Note
        "the name of a format or field contains characters that PX4 does not use"
    TOO_MANY_SUBSCRIPTIONS "W-ULOG-121" "too_many_subscriptions" Note
        "the log has more subscriptions than the limit; data with the id of this subscription is lost from \
         here on"
    TIMESTAMPS_FALL "W-ULOG-122" "timestamps_fall" Note
        "records of a topic are earlier than the previous record; this is reported once per topic, with \
         the number of such records"
    INFO_REPEATED "W-ULOG-123" "info_repeated" Note
        "info messages repeat a key; the last value is used; this is reported once, with the number of \
         such messages"
    VALUE_LENGTH "W-ULOG-124" "value_length" Note
        "values of info messages do not have the length of their type; this is reported once, with the \
         number of such values"
    UNDEFINED_COMPAT_BITS "W-ULOG-125" "undefined_compat_bits" Note
        "the log sets compatible flag bits that the specification does not define"
    EXTRA_BLANKS "W-ULOG-126" "extra_blanks" Note
        "a format or subscription contains blanks or NUL bytes that the specification does not allow; they \
         are ignored"
    DAMAGED_HEADER "W-ULOG-127" "damaged_header" Note
        "the header of the log is damaged or missing; the log is read from its first message on, and \
         `rovelog recover` writes a new header"
    SECOND_HEADER "W-ULOG-128" "second_header" Note
        "another log follows in the same file and has its own clock; `rovelog split --at-restart` \
         separates the logs"
    CLOCK_RESTARTS "W-ULOG-129" "clock_restarts" Note
        "the clock restarts within the log, so no UTC offset is valid for the whole log; `rovelog split \
         --at-restart` separates the parts"
    GPS_DATE "W-ULOG-130" "gps_date" Note
        "GPS fixes have dates from 2000 to 2011, before ULog existed, because the week number of the \
         receiver has rolled over; they are not used as UTC"
    UTC_JUMPS "W-ULOG-131" "utc_jumps" Note
        "the UTC time of GPS fixes jumps by a second or more within the log"
}

#[cfg(test)]
mod tests {
    #[test]
    fn rules_are_distinct_and_in_order() {
        rovelog_testing::check_rules(super::ALL);
    }
}
