//! Header, flag bits, formats, and kinds of messages nobody knows.

use super::log::{Keyed, Log};
use super::shape::{F32, I32, Shape, U8, U16, U32, U64, nested, values};
use super::{START, plain, plain_log, plain_row, plain_rows, time};
use crate::corpus::ulog::expected::refused;
use crate::corpus::ulog::lay::header;
use crate::corpus::{Case, Made};

pub(super) const CASES: &[Case] = &[
    Case::ulog(
        "one-topic",
        "the plainest log: flag bits, one format, infos, a parameter, one subscription, rows",
        &["D1"],
        one_topic,
    ),
    Case::ulog(
        "no-flag-bits+version-0",
        "the oldest logs have neither flag bits nor a version",
        &["D1"],
        no_flag_bits,
    ),
    Case::ulog("version-2", "a later version is read, and named", &["D2"], version_2),
    Case::ulog(
        "long-flag-bits",
        "flag bits of 48 bytes: the 8 unknown ones are ignored",
        &["D3"],
        long_flag_bits,
    ),
    Case::ulog("unknown-compat-bits", "unknown compatible bits are ignored", &["D5"], unknown_compat_bits),
    Case::ulog(
        "unknown-incompat-bit-1-of-byte-0",
        "the bit beside the appended-data bit: refused",
        &["D5"],
        unknown_incompat_bit_in_byte_0,
    ),
    Case::ulog(
        "unknown-incompat-bit-6-of-byte-7",
        "a bit of the last byte, beside appended data: refused",
        &["D5"],
        unknown_incompat_bit_in_byte_7,
    ),
    Case::ulog(
        "header-only",
        "sixteen bytes and nothing else: a whole log without data",
        &["D31"],
        header_only,
    ),
    Case::ulog("no-data-section", "definitions only", &["D31"], no_data_section),
    Case::ulog(
        "cut-in-file-header",
        "twelve of the sixteen bytes: nothing to read",
        &["D31"],
        cut_in_file_header,
    ),
    Case::ulog(
        "type-before-definition",
        "a nested type whose format comes after its use",
        &["D7"],
        type_before_definition,
    ),
    Case::ulog(
        "bad-types-unused",
        "circular, self-containing and undefined types that nobody subscribes to",
        &["D7"],
        bad_types_unused,
    ),
    Case::ulog("no-last-semicolon", "a format text without its last semicolon", &["D7"], no_last_semicolon),
    Case::ulog("name-with-slash-and-dash", "a message name with / and -", &["D7"], name_with_slash_and_dash),
    Case::ulog("field-name-twice", "the second field x is shown as x#2", &["D7"], field_name_twice),
    Case::ulog("format-repeated", "the same format twice", &["D8"], format_repeated),
    Case::ulog(
        "format-redefined",
        "another format under the same name, before the subscription: the later one counts",
        &["D8"],
        format_redefined,
    ),
    Case::ulog(
        "format-redefined+after-subscription",
        "the older subscription keeps its format, the new one has the new format",
        &["D6", "D8", "D19"],
        format_redefined_after_subscription,
    ),
    Case::ulog(
        "format-in-data-section",
        "a format after data began, for a topic that starts late",
        &["D6"],
        format_in_data_section,
    ),
    Case::ulog(
        "unknown-messages",
        "kinds nobody knows: in both sections, of size 0, and twenty in a row",
        &["D4"],
        unknown_messages,
    ),
    Case::ulog(
        "unknown-messages+hundreds-in-a-row",
        "a hundred and fifty between two rows, again and again: however many there are, they are passed",
        &["D4"],
        unknown_messages_by_the_hundred,
    ),
    Case::ulog(
        "unknown-messages+signs",
        "kinds whose letter is a digit or a sign, ten in a row",
        &["D4"],
        unknown_signs,
    ),
];

fn one_topic() -> Made {
    let mut log = Log::new(START);
    log.info(&Keyed::text("sys_name", "PX4"));
    log.format(&plain());
    log.info(&Keyed::scalar(&U32, "ver_sw_release", 0x0110_00FFu32));
    log.parameter(&Keyed::scalar(&I32, "SYS_AUTOSTART", 4001i32));
    let t = log.subscribe(&plain(), 0, 0);
    plain_rows(&mut log, &t, 0..10);
    log.done()
}

fn no_flag_bits() -> Made {
    let mut log = Log::without_flag_bits(0, START);
    let t = log.topic(&plain());
    plain_rows(&mut log, &t, 0..10);
    log.done()
}

fn version_2() -> Made {
    let mut log = Log::without_flag_bits(2, START);
    log.note_at(7, "unknown_version");
    log.flag_bits([0; 8], [0; 8], [0; 3], &[]);
    let t = log.topic(&plain());
    plain_rows(&mut log, &t, 0..5);
    log.done()
}

fn long_flag_bits() -> Made {
    let mut log = Log::without_flag_bits(1, START);
    log.flag_bits([0; 8], [0; 8], [0; 3], b"\xC0\xFF\xEE\x00later");
    let t = log.topic(&plain());
    plain_rows(&mut log, &t, 0..5);
    log.done()
}

fn unknown_compat_bits() -> Made {
    let mut log = Log::without_flag_bits(1, START);
    log.note("undefined_compat_bits");
    log.flag_bits([0x82, 0, 0, 0x10, 0, 0, 0, 0x80], [0; 8], [0; 3], &[]);
    let t = log.topic(&plain());
    plain_rows(&mut log, &t, 0..5);
    log.done()
}

fn with_incompat_bits(incompat: [u8; 8]) -> Made {
    let mut log = Log::without_flag_bits(1, START);
    log.flag_bits([0; 8], incompat, [0; 3], &[]);
    let t = log.topic(&plain());
    plain_rows(&mut log, &t, 0..5);
    Made { expected: refused("1", "unsupported", "incompat"), ..log.done() }
}

fn unknown_incompat_bit_in_byte_0() -> Made {
    with_incompat_bits([0b10, 0, 0, 0, 0, 0, 0, 0])
}

fn unknown_incompat_bit_in_byte_7() -> Made {
    with_incompat_bits([1, 0, 0, 0, 0, 0, 0, 0x40])
}

fn header_only() -> Made {
    Log::without_flag_bits(1, START).done()
}

fn no_data_section() -> Made {
    let mut log = Log::new(START);
    log.format(&plain());
    log.info(&Keyed::text("sys_name", "PX4"));
    log.parameter(&Keyed::scalar(&F32, "MC_ROLL_P", 6.5f32));
    log.done()
}

fn cut_in_file_header() -> Made {
    Made { bytes: header(1, START)[..12].to_vec(), expected: refused("1", "truncated", "header") }
}

fn type_before_definition() -> Made {
    let inner = Shape::new("inner").with("v", F32).with("k", U8);
    let outer = Shape::new("outer").with("timestamp", U64).with("e", nested(&inner)).with("x", F32);
    let mut log = Log::new(START);
    log.format(&outer);
    log.format(&inner);
    let t = log.subscribe(&outer, 0, 0);
    for i in 0..3 {
        let e = super::Value::Struct(values![0.5f32, 7u8]);
        log.row(&t, &values![time(i), e, f32::from(i)]);
    }
    log.done()
}

fn bad_types_unused() -> Made {
    let mut log = Log::new(START);
    log.format_text("a:uint64_t timestamp;b b;");
    log.format_text("b:a a;");
    log.format_text("own:own again;");
    log.format_text("g:uint64_t timestamp;ghost g;");
    let t = log.topic(&plain());
    plain_rows(&mut log, &t, 0..5);
    log.done()
}

fn no_last_semicolon() -> Made {
    let mut log = Log::new(START);
    log.format_text("t:uint64_t timestamp;float x");
    let t = log.subscribe(&plain(), 0, 0);
    plain_rows(&mut log, &t, 0..5);
    log.done()
}

fn name_with_slash_and_dash() -> Made {
    let shape = Shape::new("ns/t-1").with("timestamp", U64).with("x", F32);
    let mut log = Log::new(START);
    let t = log.topic(&shape);
    plain_rows(&mut log, &t, 0..5);
    log.done()
}

fn field_name_twice() -> Made {
    let shape = Shape::new("t").with("timestamp", U64).with("x", F32).with_shown("x", "x#2", U16);
    let mut log = Log::new(START);
    let t = log.topic(&shape);
    for i in 0..3 {
        log.row(&t, &values![time(i), f32::from(i), 100 + i]);
    }
    log.done()
}

fn format_repeated() -> Made {
    let mut log = Log::new(START);
    log.format(&plain());
    log.note("format_repeated");
    log.format(&plain());
    let t = log.subscribe(&plain(), 0, 0);
    plain_rows(&mut log, &t, 0..5);
    log.done()
}

fn format_redefined() -> Made {
    let later = Shape::new("t").with("timestamp", U64).with("y", U16);
    let mut log = Log::new(START);
    log.format(&plain());
    log.note("format_redefined");
    log.format(&later);
    let t = log.subscribe(&later, 0, 0);
    for i in 0..5 {
        log.row(&t, &values![time(i), 500 + i]);
    }
    log.done()
}

fn format_redefined_after_subscription() -> Made {
    let later = Shape::new("t").with("timestamp", U64).with("y", U16);
    let (mut log, old) = plain_log();
    plain_rows(&mut log, &old, 0..3);
    log.note("format_in_data_section");
    log.note("format_redefined");
    log.format(&later);
    plain_rows(&mut log, &old, 3..5);
    let new = log.subscribe(&later, 0, 1);
    for i in 5..9 {
        log.row(&old, &plain_row(i));
        log.row(&new, &values![time(i), 500 + i]);
    }
    log.done()
}

fn format_in_data_section() -> Made {
    let late = Shape::new("late").with("timestamp", U64).with("n", U8);
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..4);
    log.note("format_in_data_section");
    log.format(&late);
    plain_rows(&mut log, &t, 4..6);
    let u = log.subscribe(&late, 0, 1);
    for i in 6..9 {
        log.row(&u, &values![time(i), 9u8]);
        log.row(&t, &plain_row(i));
    }
    log.done()
}

fn unknown_messages_by_the_hundred() -> Made {
    let (mut log, t) = plain_log();
    for i in 0..4 {
        log.row(&t, &plain_row(i));
        for size in 0..150 {
            log.unknown(b'X', &[0xEE; 2][..size % 3]);
        }
    }
    plain_rows(&mut log, &t, 4..6);
    log.done()
}

fn unknown_signs() -> Made {
    let (mut log, t) = plain_log();
    for (i, kind) in (0..).zip(*b"~1#") {
        plain_rows(&mut log, &t, 3 * i..3 * i + 3);
        for _ in 0..10 {
            log.unknown(kind, b"wxyz");
        }
    }
    plain_rows(&mut log, &t, 9..12);
    log.done()
}

fn unknown_messages() -> Made {
    let mut log = Log::new(START);
    log.unknown(b'X', b"before the formats");
    log.format(&plain());
    log.unknown(b'y', &[]);
    let t = log.subscribe(&plain(), 0, 0);
    plain_rows(&mut log, &t, 0..3);
    log.unknown(b'X', &[]);
    plain_rows(&mut log, &t, 3..6);
    for size in 0..20 {
        log.unknown(b'Z', &[0xEE; 20][..size]);
    }
    plain_rows(&mut log, &t, 6..10);
    log.done()
}
