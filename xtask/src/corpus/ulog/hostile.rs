//! Definitions made to exhaust a reader: that topic is undecodable, all else is read.

use super::log::Log;
use super::shape::{F32, Shape, U64, Value, nested, values};
use super::{START, plain, plain_row, plain_rows, time};
use crate::corpus::{Case, Made};

pub(super) const CASES: &[Case] = &[
    Case::ulog("hostile+circular-subscribed", "two types that contain each other", &["D32"], circular),
    Case::ulog(
        "hostile+self-containing-subscribed",
        "a type that contains itself",
        &["D32"],
        self_containing,
    ),
    Case::ulog(
        "hostile+undefined-nested-type",
        "a subscribed format with a field of a type that is nowhere",
        &["D7", "D21"],
        undefined_nested,
    ),
    Case::ulog(
        "hostile+60-doubling-levels",
        "each of 60 types holds the next one twice: 2^60 leaves",
        &["D32"],
        doubling,
    ),
    Case::ulog(
        "hostile+3000-levels",
        "a chain of 3000 types: no reader may walk it by calling itself",
        &["D32"],
        deep_chain,
    ),
    Case::ulog(
        "hostile+size-overflow",
        "arrays of arrays whose size does not fit 64 bits",
        &["D32"],
        size_overflow,
    ),
    Case::ulog("hostile+huge-array", "an array of 4294967295", &["D32"], huge_array),
    Case::ulog(
        "hostile+row-over-the-limit",
        "an array that is allowed in a row that fits no message",
        &["D32"],
        row_over_the_limit,
    ),
    Case::ulog(
        "hostile+leaves-without-size",
        "120000 empty arrays in a row of 8 bytes",
        &["D32"],
        leaves_without_size,
    ),
    Case::ulog(
        "nesting-64",
        "64 types one inside the other below the topic's own: read",
        &["D32"],
        nesting_64,
    ),
    Case::ulog("hostile+nesting-65", "one more is too deep", &["D32"], nesting_65),
];

/// These formats, the plain topic with id 0, the topic `h` with id 1, and rows of both in turn;
/// those of `h` have these bytes and cannot be decoded.
fn beside_plain(formats: &[String], row: &[u8]) -> Made {
    let mut log = Log::new(START);
    for text in formats {
        log.format_text(text);
    }
    let t = log.topic(&plain());
    log.note("undecodable_topic");
    let h = log.subscribe_undecodable("h", 0, 1);
    plain_rows(&mut log, &t, 0..3);
    for i in 3..8 {
        log.lose("undecodable", &h.message_of(row));
        log.row(&t, &plain_row(i));
    }
    plain_rows(&mut log, &t, 8..11);
    log.done()
}

fn texts(formats: &[&str]) -> Vec<String> {
    formats.iter().map(|text| (*text).to_owned()).collect()
}

fn circular() -> Made {
    let formats = texts(&["h:uint64_t timestamp;b b;", "b:uint8_t v;h h;"]);
    beside_plain(&formats, &[1; 12])
}

fn self_containing() -> Made {
    beside_plain(&texts(&["h:uint64_t timestamp;h[2] again;"]), &[1; 8])
}

fn undefined_nested() -> Made {
    let formats = texts(&["h:uint64_t timestamp;ghost g;float x;"]);
    beside_plain(&formats, &[1; 20])
}

fn doubling() -> Made {
    let mut formats = texts(&["h:uint64_t timestamp;d0 a;"]);
    formats.extend((0..59).map(|i| format!("d{i}:d{n} a;d{n} b;", n = i + 1)));
    formats.push("d59:uint8_t v;".to_owned());
    beside_plain(&formats, &[1; 30])
}

fn deep_chain() -> Made {
    let mut formats = texts(&["h:uint64_t timestamp;c0 a;"]);
    formats.extend((0..2999).map(|i| format!("c{i}:c{} v;", i + 1)));
    formats.push("c2999:uint8_t v;".to_owned());
    beside_plain(&formats, &[1; 9])
}

fn size_overflow() -> Made {
    let mut formats = texts(&["h:uint64_t timestamp;a5[65535] v;", "a0:uint8_t[65535] v;"]);
    formats.extend((1..6).map(|i| format!("a{i}:a{}[65535] v;", i - 1)));
    beside_plain(&formats, &[1; 40])
}

fn huge_array() -> Made {
    let formats = texts(&["h:uint64_t timestamp;uint8_t[4294967295] v;"]);
    beside_plain(&formats, &[1; 20])
}

fn row_over_the_limit() -> Made {
    let formats = texts(&["h:uint64_t timestamp;uint8_t[65535] v;"]);
    beside_plain(&formats, &[1; 20])
}

fn leaves_without_size() -> Made {
    let formats = texts(&["e:uint8_t[0] v;", "h:uint64_t timestamp;e[60000] a;e[60000] b;"]);
    beside_plain(&formats, &[1; 8])
}

fn nesting_64() -> Made {
    let mut shape = Shape::new("n64").with("v", F32);
    let mut formats = vec![shape.text()];
    for level in (1..64).rev() {
        shape = Shape::new(&format!("n{level}")).with("v", nested(&shape));
        formats.push(shape.text());
    }
    let top = Shape::new("deep").with("timestamp", U64).with("a", nested(&shape)).with("x", F32);
    let mut log = Log::new(START);
    for text in &formats {
        log.format_text(text);
    }
    let t = log.topic(&top);
    for i in 0..2u16 {
        let innermost = Value::Struct(values![7.0f32]);
        let value = (1..64).fold(innermost, |value, _| Value::Struct(vec![value]));
        log.row(&t, &values![time(i), value, f32::from(i)]);
    }
    log.done()
}

fn nesting_65() -> Made {
    let mut formats = texts(&["h:uint64_t timestamp;n1 a;float x;"]);
    formats.extend((1..65).map(|level| format!("n{level}:n{} v;", level + 1)));
    formats.push("n65:float v;".to_owned());
    beside_plain(&formats, &[1; 16])
}
