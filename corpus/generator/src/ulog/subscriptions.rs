//! Cases about subscriptions, ids and instances.

use super::prelude::*;

cases! {
    "format-after-subscription" [D6 D21]
        "a topic whose format comes after its subscription: rows behind the format are decoded" =>
        plain().undecodable("undefined_format", "late", 0, 1).rows(0..3).lose("undecodable", data(1, [1; 12]))
            .rows(3..6).note("format_in_data_section").late_format(1, "late:uint64_t timestamp;float x;")
            .each(6..9, |log, i| log.rows_of(1, i..i + 1).rows(i..i + 1));
    "one-topic+multi-id" [D17] "two instances of one topic, one after the other and mixed" =>
        mixed_rows(two_instances(), 1, 0);
    "one-topic+multi-id+sync+dropout+texts+appended" [D14 D17 D27 D28]
        "what a PX4 log has beside rows, together" =>
        Log::new().appended_bit().format(PLAIN).format(OTHER).info("char[3] sys_name", "PX4")
            .parameter("int32_t SYS_AUTOSTART", 4001).subscribe("t", 0, 0).subscribe("t", 1, 1).sync().rows(0..3)
            .text(b'6', time(3), "[commander] Takeoff detected\t").rows_of(1, 2..4).dropout(26).rows(6..8).sync()
            .subscribe("u", 0, 2).row(2, values![time(8), 1]).tagged(b'4', 7, time(9), "from seven").rows_of(1, 9..11)
            .append_here().part(false, "char[14] hardfault_plain", "r0: 0x00000000").row(2, values![time(12), 2]);
    "late-subscription" [D6] "a subscription near the end of the file, far from the others" =>
        with_other().rows(0..40).subscribe("u", 0, 1).row(1, values![time(40), 1]).row(1, values![time(41), 2]);
    "text-before-subscription" [D6 D24] "a text begins the data section: a parameter after it is a change" =>
        Log::new().format(PLAIN).parameter("int32_t COM_A", 1).text(b'6', START + 5, "early words")
            .parameter("int32_t COM_B", 2).info("char[3] sys_name", "PX4").subscribe("t", 0, 0).rows(0..5);
    "subscription-repeated" [D18] "the same subscription twice is one series" =>
        plain().rows(0..3).note("subscription_repeated").take(b'A', subscription(0, 0, "t")).rows(3..6);
    "msg-id-reused" [D19] "an id that names another topic from its second subscription on" =>
        with_other().rows(0..4).note("msg_id_reused").subscribe("u", 0, 0)
            .rows_with(1, 4..8, |i| values![time(i), 3]);
    "same-topic+inner-type-redefined" [D8 D19]
        "a type inside a format is redefined, the topic subscribed again: rows from there are of the new type" =>
        Log::new().format("e:uint16_t x;uint16_t y;").topic("t:uint64_t timestamp;e at;")
            .rows_with(0, 0..3, |i| values![time(i), values![1, 2]])
            .note("format_in_data_section").note("format_redefined").format("e:int16_t y;int16_t x;")
            .note("msg_id_reused").subscribe("t", 0, 0)
            .rows_with(1, 3..6, |i| values![time(i), values![-1, 2]]);
    "same-topic+new-id" [D19] "one topic and instance under a second id: a second series" =>
        mixed_rows(plain().rows(0..3).subscribe("t", 0, 1), 1, 0);
    "unsubscribed+data-after" [D17] "rows after an unsubscription are kept" =>
        two_instances().take(b'R', [0; 2]).rows_of(1, 3..5).note("data_after_unsubscribe").rows(3..6);
    "unknown-id" [D20] "rows of an id that is never subscribed, and one before its subscription" =>
        plain().rows(0..3).lose("unknown_id", stranger(9, 3)).rows(3..6).lose("unknown_id", stranger(9, 6))
            .lose("unknown_id", stranger(1, 6)).rows(6..9).subscribe("t", 1, 1).rows_of(1, 9..12);
    "undefined-format" [D21]
        "a subscription to a format that is nowhere: its rows are lost, the other topic is whole" =>
        plain().undecodable("undefined_format", "nope", 0, 1).rows(0..3)
            .each(3..6, |log, i| log.lose("undecodable", data(1, [1; 12])).rows(i..i + 1)).rows(6..9);
    "undefined-format+to-the-end" [D21]
        "most rows belong to a format that is nowhere, and the log ends with three of them" =>
        gone(6, 3);
    "undefined-format+often" [D21]
        "seventy rows of a format that is nowhere behind each row of the other topic, which is whole" =>
        gone(4, 70).rows(4..6);
    "unsubscribed-unknown-id" [D17] "the end of a subscription that never was: a message like others" =>
        plain().rows(0..3).take(b'R', lay![99_u16]).rows(3..6);
    "subscription-ids-with-holes" [D34] "ids that begin at 5 and leave some out" =>
        Log::new().format(PLAIN).subscribe("t", 0, 5).subscribe("t", 1, 6).subscribe("t", 2, 9)
            .each(0..3, |log, topic| log.rows_of(topic, 0..3));
    "data-before-definitions" [D20] "rows before the first format and the first subscription" =>
        Log::new().each(0..3, |log, i| log.lose("unknown_id", stranger(0, i))).note("format_in_data_section")
            .topic(PLAIN).rows(3..9);
}

/// Format of a second topic.
const OTHER: &str = "u:uint64_t timestamp;uint8_t n;";

/// Returns a log with the plain topic, and the format of the second topic.
fn with_other() -> Log {
    Log::new().format(PLAIN).format(OTHER).subscribe("t", 0, 0)
}

/// Returns a log with alternating rows of two instances of the plain topic.
fn two_instances() -> Log {
    Log::new().format(PLAIN).subscribe("t", 0, 0).subscribe("t", 1, 1).rows(0..3).rows_of(1, 0..3)
}

/// Adds alternating rows of two topics.
fn mixed_rows(log: Log, first: usize, second: usize) -> Log {
    log.each(3..6, |log, i| log.rows_of(first, i..i + 1).rows_of(second, i..i + 1))
}

/// Adds rows of the plain topic, each followed by `each` rows of an undefined format.
fn gone(rows: u16, each: usize) -> Log {
    plain().undecodable("undefined_format", "gone", 0, 1).each(0..rows, |log, i| {
        log.rows(i..i + 1).each(0..each, |log, _| log.lose("undecodable", data(1, [1; 12])))
    })
}

/// Returns a row whose id is not subscribed.
fn stranger(id: u16, i: u16) -> Vec<u8> {
    data(id, lay![time(i), [0_u8; 4]])
}
