//! Everything that can be noticed in a ULog, in one table. Codes and names are stable.

rovelog_core::rules! {
    GAP "E-ULOG-001" "gap" DataLost
        "bytes in which no message could be recognised, skipped up to the next sound one"
    CUT "E-ULOG-002" "cut" DataLost
        "a message that passes the end of the file, or the start of appended data"
    BAD_MESSAGE "E-ULOG-003" "bad_message" DataLost
        "a message with sound framing whose payload contradicts its type"
    UNKNOWN_ID "E-ULOG-004" "unknown_id" DataLost
        "a data message whose id was not subscribed before it"
    UNDECODABLE "E-ULOG-005" "undecodable" DataLost
        "a data message of a topic whose format is missing or unusable"

    UNKNOWN_VERSION "W-ULOG-101" "unknown_version" Note
        "a file version above 1, read as version 1"
    UNKNOWN_MESSAGE "W-ULOG-102" "unknown_message" Note
        "a message type that is not in the specification, passed over and kept for rewriting"
    FORMAT_REPEATED "W-ULOG-103" "format_repeated" Note
        "the same format definition again"
    FORMAT_REDEFINED "W-ULOG-104" "format_redefined" Note
        "another definition for a format's name: later subscriptions use it, earlier ones keep theirs"
    FORMAT_IN_DATA_SECTION "W-ULOG-105" "format_in_data_section" Note
        "a format definition after the data section began"
    SUBSCRIPTION_REPEATED "W-ULOG-106" "subscription_repeated" Note
        "the same subscription again: one series"
    MSG_ID_REUSED "W-ULOG-107" "msg_id_reused" Note
        "a subscription id used again for something else: a new series from here"
    UNDEFINED_FORMAT "W-ULOG-108" "undefined_format" Note
        "a subscription to a format that is not defined"
    UNDECODABLE_TOPIC "W-ULOG-109" "undecodable_topic" Note
        "a subscription whose format is circular, too large or uses an undefined type"
    DATA_AFTER_UNSUBSCRIBE "W-ULOG-110" "data_after_unsubscribe" Note
        "data after the topic's unsubscription, kept"
    NO_TIMESTAMP "W-ULOG-111" "no_timestamp" Note
        "a topic without a timestamp: its rows are kept without a time"
    NARROW_TIMESTAMP "W-ULOG-112" "narrow_timestamp" Note
        "a topic whose timestamp has fewer than 64 bits: wrap-arounds are counted"
    CONTINUED_WITHOUT_FIRST "W-ULOG-113" "continued_without_first" Note
        "a continued multi information message without a first part: it begins a list"
    LEVEL_NOT_A_DIGIT "W-ULOG-114" "level_not_a_digit" Note
        "a log level stored as a number instead of an ASCII digit"
    PARAMETER_TYPE "W-ULOG-115" "parameter_type" Note
        "a parameter of a type other than int32_t and float"
    APPENDED_FLAG_MISMATCH "W-ULOG-116" "appended_flag_mismatch" Note
        "the flag for appended data and the offsets disagree"
    APPENDED_OFFSET_IGNORED "W-ULOG-117" "appended_offset_ignored" Note
        "an offset of appended data at which no message begins"
    TIMESTAMP_OUT_OF_RANGE "W-ULOG-118" "timestamp_out_of_range" Note
        "a timestamp past the year 2262: its rows are kept without a time"
    UNUSUAL_KEY "W-ULOG-119" "unusual_key" Note
        "a key of an information message or parameter with spaces in the name, or characters beyond ASCII"
    UNUSUAL_NAME "W-ULOG-120" "unusual_name" Note
        "a format or field name of other characters than PX4 writes"
    TOO_MANY_SUBSCRIPTIONS "W-ULOG-121" "too_many_subscriptions" Note
        "a subscription beyond the limit: its id means nothing from here"
    TIMESTAMPS_FALL "W-ULOG-122" "timestamps_fall" Note
        "rows of a topic that are earlier than the row before them, said once with their number"
    INFO_REPEATED "W-ULOG-123" "info_repeated" Note
        "information messages whose key occurred before, said once with their number: the last value counts"
    VALUE_LENGTH "W-ULOG-124" "value_length" Note
        "values of information messages that are not as long as their type says, said once with their number"
    UNDEFINED_COMPAT_BITS "W-ULOG-125" "undefined_compat_bits" Note
        "compatible flag bits that the specification does not define"
}

#[cfg(test)]
mod tests {
    #[test]
    fn rules_are_documented_distinct_and_in_order() {
        rovelog_testing::check_rules(super::ALL, "docs/formats/ulog.md");
    }
}
