//! The diagnostics of ULog files, in one table. Codes and names are stable.

rovelog_core::rules! {
    LOST "E-ULOG-001" "gap" DataLost
        "lost range: no valid message was found up to the next valid one"
    CUT "E-ULOG-002" "cut" DataLost
        "a message truncated at the end of the file or at the start of appended data"
    BAD_MESSAGE "E-ULOG-003" "bad_message" DataLost
        "a message with a valid header whose payload contradicts its type"
    UNKNOWN_ID "E-ULOG-004" "unknown_id" DataLost
        "a data message with an id that is not subscribed"
    UNDECODABLE "E-ULOG-005" "undecodable" DataLost
        "a data message of a topic whose format is missing or unusable"

    UNKNOWN_VERSION "W-ULOG-101" "unknown_version" Note
        "a file version above 1, read as version 1"
    UNKNOWN_MESSAGE "W-ULOG-102" "unknown_message" Note
        "a message type that is not in the specification: skipped when reading, kept when rewriting"
    FORMAT_REPEATED "W-ULOG-103" "format_repeated" Note
        "a format definition that repeats an earlier one"
    FORMAT_REDEFINED "W-ULOG-104" "format_redefined" Note
        "a format defined again differently: later subscriptions use the new definition, earlier ones keep the old one"
    FORMAT_IN_DATA_SECTION "W-ULOG-105" "format_in_data_section" Note
        "a format definition inside the data section"
    SUBSCRIPTION_REPEATED "W-ULOG-106" "subscription_repeated" Note
        "a repeated subscription: the topic stays one series"
    MSG_ID_REUSED "W-ULOG-107" "msg_id_reused" Note
        "a subscription id that is reused for another topic: a new series starts here"
    UNDEFINED_FORMAT "W-ULOG-108" "undefined_format" Note
        "a subscription to a format that is not defined"
    UNDECODABLE_TOPIC "W-ULOG-109" "undecodable_topic" Note
        "a subscription whose format is circular, too large or uses an undefined type"
    DATA_AFTER_UNSUBSCRIBE "W-ULOG-110" "data_after_unsubscribe" Note
        "data after the unsubscription of its topic: kept"
    NO_TIMESTAMP "W-ULOG-111" "no_timestamp" Note
        "a topic without a timestamp: its rows are kept without a time"
    NARROW_TIMESTAMP "W-ULOG-112" "narrow_timestamp" Note
        "a topic whose timestamp has fewer than 64 bits: its wrap-arounds are counted"
    CONTINUED_WITHOUT_FIRST "W-ULOG-113" "continued_without_first" Note
        "a continued multi info message without a first part: it starts a new list"
    LEVEL_NOT_A_DIGIT "W-ULOG-114" "level_not_a_digit" Note
        "a log level stored as a number instead of an ASCII digit"
    PARAMETER_TYPE "W-ULOG-115" "parameter_type" Note
        "a parameter of a type other than int32_t and float"
    APPENDED_FLAG_MISMATCH "W-ULOG-116" "appended_flag_mismatch" Note
        "the flag for appended data and the offsets disagree"
    APPENDED_OFFSET_IGNORED "W-ULOG-117" "appended_offset_ignored" Note
        "an offset of appended data at which no message starts: ignored"
    TIMESTAMP_OUT_OF_RANGE "W-ULOG-118" "timestamp_out_of_range" Note
        "a timestamp after the year 2262: the row is kept without a time"
    UNUSUAL_KEY "W-ULOG-119" "unusual_key" Note
        "a key of an info message or parameter with spaces in the name or non-ASCII characters"
    UNUSUAL_NAME "W-ULOG-120" "unusual_name" Note
        "a format or field name with characters that PX4 does not use"
    TOO_MANY_SUBSCRIPTIONS "W-ULOG-121" "too_many_subscriptions" Note
        "a subscription beyond the limit: data of its id is lost from here on"
    TIMESTAMPS_FALL "W-ULOG-122" "timestamps_fall" Note
        "rows that are earlier than the previous row of the topic: reported once per topic with their number"
    INFO_REPEATED "W-ULOG-123" "info_repeated" Note
        "info messages that repeat a key: the last value is used; reported once with their number"
    VALUE_LENGTH "W-ULOG-124" "value_length" Note
        "values of info messages with another length than their type: reported once with their number"
    UNDEFINED_COMPAT_BITS "W-ULOG-125" "undefined_compat_bits" Note
        "compatible flag bits that the specification does not define"
    EXTRA_BLANKS "W-ULOG-126" "extra_blanks" Note
        "a format or subscription with blanks or NUL bytes that the grammar does not have: read without them"
    DAMAGED_HEADER "W-ULOG-127" "damaged_header" Note
        "a log whose header is damaged or missing: read from its first message on; `rovelog recover` writes a header"
    SECOND_HEADER "W-ULOG-128" "second_header" Note
        "the header of another log in the same file: its topics have their own clock; `rovelog split --at-restart` separates the logs"
    CLOCK_RESTARTS "W-ULOG-129" "clock_restarts" Note
        "a clock that restarts within a log, so that no UTC holds for all of it; `rovelog split --at-restart` separates the parts"
    GPS_DATE "W-ULOG-130" "gps_date" Note
        "GPS fixes with dates from 2000 to 2011, before ULog existed: a receiver with a week rollover, not used as UTC"
    UTC_JUMPS "W-ULOG-131" "utc_jumps" Note
        "the UTC of GPS fixes jumps by a second or more within the log"
}

#[cfg(test)]
mod tests {
    #[test]
    fn rules_are_distinct_and_in_order() {
        rovelog_testing::check_rules(super::ALL);
    }
}
