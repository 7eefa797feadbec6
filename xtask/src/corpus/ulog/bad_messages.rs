//! Messages whose frame is sound and whose content is not: only they are lost.
//!
//! Each is followed by at least three sound messages, which is what a reader needs to see before
//! it trusts the frame.

use super::log::{Keyed, Log};
use super::shape::{F32, Shape, Type, U8, U32, U64, Value, array, values};
use super::{START, plain, plain_log, plain_row, plain_rows, time};
use crate::corpus::ulog::lay::{self, Lay, SYNC, flag_bits, keyed, message};
use crate::corpus::{Case, Made};

pub(super) const CASES: &[Case] = &[
    Case::ulog("bad-data+1-byte", "a D message with half an id", &["D11"], data_of_1_byte),
    Case::ulog("bad-data+short", "a row one byte short is no row", &["D11"], data_short),
    Case::ulog("bad-data+long", "a row nine bytes long is no row", &["D11"], data_long),
    Case::ulog(
        "bad-data+between-trimmed-and-full",
        "a row with half of the padding at its end is neither trimmed nor full",
        &["D9", "D11"],
        data_between_sizes,
    ),
    Case::ulog(
        "bad-subscription",
        "an A message of one byte, and one whose name is no name",
        &["D22"],
        subscription,
    ),
    Case::ulog("bad-info", "a key without a space, and a key longer than the message", &["D22"], info),
    Case::ulog(
        "bad-multi-info",
        "a key longer than the message, and a flag that is neither 0 nor 1",
        &["D22"],
        multi_info,
    ),
    Case::ulog(
        "bad-parameter",
        "an int32_t of two bytes, a float of eight, a default of no table",
        &["D22"],
        parameter,
    ),
    Case::ulog("bad-format", "format texts that break the grammar", &["D22"], format),
    Case::ulog(
        "bad-text",
        "a level that does not exist, and a text too short for its time",
        &["D25", "D30"],
        text,
    ),
    Case::ulog("bad-dropout+bad-unsubscription", "both with one byte instead of two", &["D30"], dropout),
    Case::ulog("bad-sync", "a sync message with another magic", &["D27"], sync),
    Case::ulog(
        "sync+sync-inside-payload",
        "good sync messages, and whole ones inside a row and a text, where they are payload",
        &["D27"],
        sync_inside_payload,
    ),
    Case::ulog("bad-flag-bits-twice", "flag bits in the middle of the data", &["D30"], second_flag_bits),
];

fn data_of_1_byte() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..5);
    log.lose("bad_message", &message(b'D', &[0]));
    plain_rows(&mut log, &t, 5..10);
    log.done()
}

/// Plain rows around a D message whose row has these bytes.
fn around_row(change: impl Fn(&mut Vec<u8>)) -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..5);
    let mut bytes = plain().full_bytes(&plain_row(5));
    change(&mut bytes);
    log.lose("bad_message", &t.message_of(&bytes));
    plain_rows(&mut log, &t, 6..11);
    log.done()
}

fn data_short() -> Made {
    around_row(|bytes| bytes.truncate(11))
}

fn data_long() -> Made {
    around_row(|bytes| bytes.extend([0; 9]))
}

fn data_between_sizes() -> Made {
    let shape = Shape::new("t")
        .with("timestamp", U64)
        .with("x", U8)
        .with("_padding0", array(U8, 3))
        .with("_padding1", U32);
    let row = |i: u16| values![time(i), 50u8, Value::repeated(0u8, 3), 0u32];
    let mut log = Log::new(START);
    let t = log.topic(&shape);
    for i in 0..4 {
        log.row(&t, &row(i));
    }
    log.lose("bad_message", &t.message_of(&shape.first_bytes(&row(4), 3)));
    for i in 5..9 {
        log.full_row(&t, &row(i));
    }
    log.done()
}

fn subscription() -> Made {
    let (mut log, t) = plain_log();
    log.lose("bad_message", &message(b'A', &[0]));
    plain_rows(&mut log, &t, 0..5);
    let nameless = lay::subscription(0, 1, "\u{1}\u{2}\u{3}");
    log.lose("bad_message", &message(b'A', &nameless));
    plain_rows(&mut log, &t, 5..10);
    log.done()
}

fn info() -> Made {
    let mut log = Log::new(START);
    let key_alone = keyed("sys_name", b"PX4");
    log.lose("bad_message", &message(b'I', &key_alone));
    log.info(&Keyed::text("ver_hw", "good"));
    let t = log.topic(&plain());
    plain_rows(&mut log, &t, 0..5);
    let too_long = Lay::new().u8(200).bytes(b"char[3] late").done();
    log.lose("bad_message", &message(b'I', &too_long));
    plain_rows(&mut log, &t, 5..10);
    log.done()
}

fn multi_info() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..4);
    let too_long = Lay::new().u8(0).u8(99).bytes(b"char[3] late").done();
    log.lose("bad_message", &message(b'M', &too_long));
    plain_rows(&mut log, &t, 4..8);
    let flag = Lay::new().u8(7).bytes(&keyed("char[2] k", b"ab"));
    log.lose("bad_message", &message(b'M', &flag.done()));
    plain_rows(&mut log, &t, 8..12);
    log.multi_info(false, &Keyed::text("k", "good"));
    log.done()
}

fn parameter() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..4);
    let half = keyed("int32_t KI", &[1, 0]);
    log.lose("bad_message", &message(b'P', &half));
    plain_rows(&mut log, &t, 4..8);
    let double = keyed("float KF", &[0; 8]);
    log.lose("bad_message", &message(b'P', &double));
    plain_rows(&mut log, &t, 8..12);
    log.parameter(&Keyed::scalar(&F32, "KF", 1.5f32));
    let no_table = Lay::new().u8(0).bytes(&keyed("float KF", &[0; 4]));
    log.lose("bad_message", &message(b'Q', &no_table.done()));
    plain_rows(&mut log, &t, 12..16);
    log.done()
}

fn format() -> Made {
    let mut log = Log::new(START);
    log.lose("bad_message", &message(b'F', b"no colon here"));
    log.format(&plain());
    let t = log.subscribe(&plain(), 0, 0);
    plain_rows(&mut log, &t, 0..4);
    log.lose("bad_message", &message(b'F', b"u:float;"));
    plain_rows(&mut log, &t, 4..8);
    let open_bracket = b"v:uint64_t timestamp;float[3 x;";
    log.lose("bad_message", &message(b'F', open_bracket));
    plain_rows(&mut log, &t, 8..12);
    log.done()
}

fn text() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..4);
    let level = Lay::new().u8(b'9').u64(time(4)).bytes(b"no such level");
    log.lose("bad_message", &message(b'L', &level.done()));
    plain_rows(&mut log, &t, 5..9);
    log.lose("bad_message", &message(b'L', &[b'6', 0, 0, 0]));
    plain_rows(&mut log, &t, 9..13);
    log.lose("bad_message", &message(b'C', &[b'6', 1, 0, 0, 0, 0, 0]));
    plain_rows(&mut log, &t, 13..17);
    log.done()
}

fn dropout() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..4);
    log.lose("bad_message", &message(b'O', &[26]));
    plain_rows(&mut log, &t, 4..8);
    log.lose("bad_message", &message(b'R', &[0]));
    plain_rows(&mut log, &t, 8..12);
    log.done()
}

fn sync() -> Made {
    let (mut log, t) = plain_log();
    log.sync();
    plain_rows(&mut log, &t, 0..5);
    let mut magic = SYNC;
    magic[3] ^= 0x40;
    log.lose("bad_message", &message(b'S', &magic));
    plain_rows(&mut log, &t, 5..10);
    log.sync();
    log.done()
}

fn sync_inside_payload() -> Made {
    let shape = Shape::new("t").with("timestamp", U64).with("s", Type::Text(14));
    let sync = message(b'S', &SYNC);
    let mut log = Log::new(START);
    let t = log.topic(&shape);
    for i in 0..6u16 {
        if i % 2 == 0 {
            log.sync();
        }
        let text = [b"ab", &sync[..], b"c"].concat();
        log.row(&t, &values![time(i), Value::Text(text)]);
    }
    log.text(b'6', time(6), &sync);
    log.row(&t, &values![time(7), Value::text(b"last", 14)]);
    log.done()
}

fn second_flag_bits() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..5);
    let bits = flag_bits([0; 8], [0; 8], [0; 3]);
    log.lose("bad_message", &message(b'B', &bits));
    plain_rows(&mut log, &t, 5..10);
    log.done()
}
