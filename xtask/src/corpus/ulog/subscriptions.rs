//! Subscriptions, ids and instances.

use super::log::{Keyed, Log, Subscribed};
use super::shape::{F32, I32, Shape, U8, U64, values};
use super::{START, plain, plain_log, plain_row, plain_rows, time};
use crate::corpus::ulog::lay::{Lay, message, subscription};
use crate::corpus::{Case, Made};

pub(super) const CASES: &[Case] = &[
    Case::ulog(
        "format-after-subscription",
        "a topic whose format comes after its subscription: rows behind the format are decoded",
        &["D6", "D21"],
        format_after_subscription,
    ),
    Case::ulog(
        "one-topic+multi-id",
        "two instances of one topic, one after the other and mixed",
        &["D17"],
        multi_id,
    ),
    Case::ulog(
        "one-topic+multi-id+sync+dropout+texts+appended",
        "what a PX4 log has beside rows, together",
        &["D14", "D17", "D27", "D28"],
        all_together,
    ),
    Case::ulog(
        "late-subscription",
        "a subscription near the end of the file, far from the others",
        &["D6"],
        late_subscription,
    ),
    Case::ulog(
        "text-before-subscription",
        "a text begins the data section: a parameter after it is a change",
        &["D6", "D24"],
        text_before_subscription,
    ),
    Case::ulog(
        "subscription-repeated",
        "the same subscription twice is one series",
        &["D18"],
        subscription_repeated,
    ),
    Case::ulog(
        "msg-id-reused",
        "an id that names another topic from its second subscription on",
        &["D19"],
        msg_id_reused,
    ),
    Case::ulog(
        "same-topic+new-id",
        "one topic and instance under a second id: a second series",
        &["D19"],
        same_topic_new_id,
    ),
    Case::ulog("unsubscribed+data-after", "rows after an unsubscription are kept", &["D17"], unsubscribed),
    Case::ulog(
        "unknown-id",
        "rows of an id that is never subscribed, and one before its subscription",
        &["D20"],
        unknown_id,
    ),
    Case::ulog(
        "undefined-format",
        "a subscription to a format that is nowhere: its rows are lost, the other topic is whole",
        &["D21"],
        undefined_format,
    ),
    Case::ulog(
        "undefined-format+to-the-end",
        "most rows belong to a format that is nowhere, and the log ends with three of them",
        &["D21"],
        undefined_format_to_the_end,
    ),
    Case::ulog(
        "undefined-format+often",
        "seventy rows of a format that is nowhere behind each row of the other topic, which is whole",
        &["D21"],
        undefined_format_often,
    ),
    Case::ulog(
        "unsubscribed-unknown-id",
        "the end of a subscription that never was: a message like others",
        &["D17"],
        unsubscribed_unknown_id,
    ),
    Case::ulog(
        "subscription-ids-with-holes",
        "ids that begin at 5 and leave some out",
        &["D34"],
        ids_with_holes,
    ),
    Case::ulog(
        "data-before-definitions",
        "rows before the first format and the first subscription",
        &["D20"],
        data_before_definitions,
    ),
];

/// Another topic beside the plain one.
fn other() -> Shape {
    Shape::new("u").with("timestamp", U64).with("n", U8)
}

/// A log with the formats of both, and the plain topic.
fn with_other() -> (Log, Subscribed) {
    let mut log = Log::new(START);
    log.format(&plain());
    log.format(&other());
    let topic = log.subscribe(&plain(), 0, 0);
    (log, topic)
}

/// A log with two instances of the plain topic, and rows of one after the other.
fn two_instances() -> (Log, Subscribed, Subscribed) {
    let mut log = Log::new(START);
    log.format(&plain());
    let first = log.subscribe(&plain(), 0, 0);
    let second = log.subscribe(&plain(), 1, 1);
    plain_rows(&mut log, &first, 0..3);
    plain_rows(&mut log, &second, 0..3);
    (log, first, second)
}

/// Rows of two topics, mixed.
fn mixed_rows(log: &mut Log, first: &Subscribed, second: &Subscribed) {
    for i in 3..6 {
        log.row(first, &plain_row(i));
        log.row(second, &plain_row(i));
    }
}

fn multi_id() -> Made {
    let (mut log, first, second) = two_instances();
    mixed_rows(&mut log, &second, &first);
    log.done()
}

fn all_together() -> Made {
    let mut log = Log::new(START);
    log.set_appended_bit();
    log.format(&plain());
    log.format(&other());
    log.info(&Keyed::text("sys_name", "PX4"));
    log.parameter(&Keyed::scalar(&I32, "SYS_AUTOSTART", 4001i32));
    let first = log.subscribe(&plain(), 0, 0);
    let second = log.subscribe(&plain(), 1, 1);
    log.sync();
    plain_rows(&mut log, &first, 0..3);
    log.text(b'6', time(3), b"[commander] Takeoff detected\t");
    plain_rows(&mut log, &second, 2..4);
    log.dropout(26);
    plain_rows(&mut log, &first, 6..8);
    log.sync();
    let u = log.subscribe(&other(), 0, 2);
    log.row(&u, &values![time(8), 1u8]);
    log.tagged(b'4', 7, time(9), b"from seven");
    plain_rows(&mut log, &second, 9..11);
    log.append_here();
    let crash = Keyed::text("hardfault_plain", "r0: 0x00000000");
    log.multi_info(false, &crash);
    log.row(&u, &values![time(12), 2u8]);
    log.done()
}

fn late_subscription() -> Made {
    let (mut log, t) = with_other();
    plain_rows(&mut log, &t, 0..40);
    let u = log.subscribe(&other(), 0, 1);
    log.row(&u, &values![time(40), 1u8]);
    log.row(&u, &values![time(41), 2u8]);
    log.done()
}

fn text_before_subscription() -> Made {
    let mut log = Log::new(START);
    log.format(&plain());
    log.parameter(&Keyed::scalar(&I32, "COM_A", 1i32));
    log.text(b'6', START + 5, b"early words");
    log.parameter(&Keyed::scalar(&I32, "COM_B", 2i32));
    log.info(&Keyed::text("sys_name", "PX4"));
    let t = log.subscribe(&plain(), 0, 0);
    plain_rows(&mut log, &t, 0..5);
    log.done()
}

fn subscription_repeated() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..3);
    log.note("subscription_repeated");
    log.take(b'A', &subscription(0, 0, "t"));
    plain_rows(&mut log, &t, 3..6);
    log.done()
}

fn msg_id_reused() -> Made {
    let (mut log, t) = with_other();
    plain_rows(&mut log, &t, 0..4);
    log.note("msg_id_reused");
    let u = log.subscribe(&other(), 0, 0);
    for i in 4..8 {
        log.row(&u, &values![time(i), 3u8]);
    }
    log.done()
}

fn same_topic_new_id() -> Made {
    let (mut log, first) = plain_log();
    plain_rows(&mut log, &first, 0..3);
    let second = log.subscribe(&plain(), 0, 1);
    mixed_rows(&mut log, &second, &first);
    log.done()
}

fn unsubscribed() -> Made {
    let (mut log, first, second) = two_instances();
    log.unsubscribe(&first);
    plain_rows(&mut log, &second, 3..5);
    log.note("data_after_unsubscribe");
    plain_rows(&mut log, &first, 3..6);
    log.done()
}

fn unknown_id() -> Made {
    let stranger = |id: u16, i: u16| {
        let payload = Lay::new().u16(id).u64(time(i)).bytes(&[0; 4]).done();
        message(b'D', &payload)
    };
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..3);
    log.lose("unknown_id", &stranger(9, 3));
    plain_rows(&mut log, &t, 3..6);
    log.lose("unknown_id", &stranger(9, 6));
    log.lose("unknown_id", &stranger(1, 6));
    plain_rows(&mut log, &t, 6..9);
    let second = log.subscribe(&plain(), 1, 1);
    plain_rows(&mut log, &second, 9..12);
    log.done()
}

fn undefined_format() -> Made {
    let (mut log, t) = plain_log();
    log.note("undefined_format");
    let nope = log.subscribe_undecodable("nope", 0, 1);
    plain_rows(&mut log, &t, 0..3);
    for i in 3..6 {
        log.lose("undecodable", &nope.message_of(&[1; 12]));
        log.row(&t, &plain_row(i));
    }
    plain_rows(&mut log, &t, 6..9);
    log.done()
}

fn format_after_subscription() -> Made {
    let (mut log, t) = plain_log();
    log.note("undefined_format");
    let mut late = log.subscribe_undecodable("late", 0, 1);
    plain_rows(&mut log, &t, 0..3);
    log.lose("undecodable", &late.message_of(&[1; 12]));
    plain_rows(&mut log, &t, 3..6);
    log.note("format_in_data_section");
    log.late_format(&mut late, &Shape::new("late").with("timestamp", U64).with("x", F32));
    for i in 6..9 {
        log.row(&late, &plain_row(i));
        log.row(&t, &plain_row(i));
    }
    log.done()
}

fn undefined_format_often() -> Made {
    let (mut log, t) = plain_log();
    log.note("undefined_format");
    let gone = log.subscribe_undecodable("gone", 0, 1);
    for i in 0..4 {
        log.row(&t, &plain_row(i));
        for _ in 0..70 {
            log.lose("undecodable", &gone.message_of(&[1; 12]));
        }
    }
    plain_rows(&mut log, &t, 4..6);
    log.done()
}

fn unsubscribed_unknown_id() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..3);
    log.take(b'R', &99u16.to_le_bytes());
    plain_rows(&mut log, &t, 3..6);
    log.done()
}

fn ids_with_holes() -> Made {
    let mut log = Log::new(START);
    log.format(&plain());
    let topics = [(0, 5), (1, 6), (2, 9)].map(|(multi_id, msg_id)| log.subscribe(&plain(), multi_id, msg_id));
    for topic in &topics {
        plain_rows(&mut log, topic, 0..3);
    }
    log.done()
}

fn data_before_definitions() -> Made {
    let stranger = |i: u16| {
        let payload = Lay::new().u16(0).u64(time(i)).bytes(&[0; 4]).done();
        message(b'D', &payload)
    };
    let mut log = Log::new(START);
    for i in 0..3 {
        log.lose("unknown_id", &stranger(i));
    }
    log.note("format_in_data_section");
    let t = log.topic(&plain());
    plain_rows(&mut log, &t, 3..9);
    log.done()
}

fn undefined_format_to_the_end() -> Made {
    let (mut log, t) = plain_log();
    log.note("undefined_format");
    let gone = log.subscribe_undecodable("gone", 0, 1);
    for i in 0..6 {
        log.row(&t, &plain_row(i));
        for _ in 0..3 {
            log.lose("undecodable", &gone.message_of(&[1; 12]));
        }
    }
    log.done()
}
