//! Types of fields, arrays, nesting and padding.

use super::log::Log;
use super::shape::{
    BOOL, CHAR, F32, F64, I8, I16, I32, I64, Shape, Type, U8, U16, U32, U64, Value, array, nested, values,
};
use super::{START, time};
use crate::corpus::{Case, Made};

pub(super) const CASES: &[Case] = &[
    Case::ulog("all-basic-types", "every basic type at both ends of its range", &["D12"], all_basic_types),
    Case::ulog(
        "arrays-of-all-basic-types",
        "an array of every basic type",
        &["D12"],
        arrays_of_all_basic_types,
    ),
    Case::ulog("array-of-one+array-of-none", "[1] is an array, [0] has no data", &["D12"], short_arrays),
    Case::ulog("wide-row", "one row of 60 kB with a char[60000]", &["D12"], wide_row),
    Case::ulog("char-arrays", "texts end at the first NUL; Latin-1 and full arrays", &["D12"], char_arrays),
    Case::ulog("bool-bytes", "any byte but 0 is true", &["D13"], bool_bytes),
    Case::ulog(
        "float-specials",
        "not-a-number, infinities, negative zero, the smallest and largest floats",
        &[],
        float_specials,
    ),
    Case::ulog("nested-types", "a type in a type in a type, and arrays of them", &["D7"], nested_types),
    Case::ulog(
        "padding-in-the-middle",
        "padding between fields is on the wire and never shown",
        &["D10"],
        padding_in_the_middle,
    ),
    Case::ulog(
        "padding-of-type-uint32",
        "padding is known by its name, whatever its type",
        &["D10"],
        padding_of_type_uint32,
    ),
    Case::ulog(
        "trailing-padding-trimmed",
        "padding at the end is not logged: how PX4 writes",
        &["D9"],
        trailing_padding_trimmed,
    ),
    Case::ulog("trailing-padding-full", "padding at the end is logged", &["D9"], trailing_padding_full),
    Case::ulog(
        "trailing-padding-run+trimmed+full",
        "a run of two padding fields at the end, rows of both sizes in one topic",
        &["D9"],
        trailing_padding_run,
    ),
    Case::ulog(
        "nested-trailing-padding",
        "padding at the end of a nested type is on the wire, even when that type is last",
        &["D10"],
        nested_trailing_padding,
    ),
];

fn all_basic_types() -> Made {
    let shape = Shape::new("all")
        .with("timestamp", U64)
        .with("a", BOOL)
        .with("b", CHAR)
        .with("c", I8)
        .with("d", U8)
        .with("e", I16)
        .with("f", U16)
        .with("g", I32)
        .with("h", U32)
        .with("i", I64)
        .with("j", U64)
        .with("k", F32)
        .with("l", F64);
    let mut log = Log::new(START);
    let t = log.topic(&shape);
    log.row(
        &t,
        &values![
            time(0),
            Value::Bool(0),
            Value::Char(b'A'),
            i8::MIN,
            0u8,
            i16::MIN,
            0u16,
            i32::MIN,
            0u32,
            i64::MIN,
            0u64,
            -1.5f32,
            -1e300f64
        ],
    );
    log.row(
        &t,
        &values![
            time(1),
            Value::Bool(1),
            Value::Char(0),
            i8::MAX,
            u8::MAX,
            i16::MAX,
            u16::MAX,
            i32::MAX,
            u32::MAX,
            i64::MAX,
            u64::MAX,
            16_777_216f32,
            0.1f64
        ],
    );
    log.done()
}

fn arrays_of_all_basic_types() -> Made {
    let shape = Shape::new("arrays")
        .with("timestamp", U64)
        .with("a", array(BOOL, 3))
        .with("b", Type::Text(4))
        .with("c", array(I8, 2))
        .with("d", array(U8, 5))
        .with("e", array(I16, 2))
        .with("f", array(U16, 3))
        .with("g", array(I32, 2))
        .with("h", array(U32, 2))
        .with("i", array(I64, 2))
        .with("j", array(U64, 2))
        .with("k", array(F32, 4))
        .with("l", array(F64, 2));
    let mut log = Log::new(START);
    let t = log.topic(&shape);
    for i in 0..2u16 {
        let flag = u8::from(i == 0);
        log.row(
            &t,
            &values![
                time(i),
                Value::list([Value::Bool(1), Value::Bool(flag), Value::Bool(0)]),
                Value::text(b"abcd", 4),
                Value::list([-1i8, 1]),
                Value::list([1u8, 2, 3, 4, 255]),
                Value::list([-300i16, 300]),
                Value::list([i, 1000, 65535]),
                Value::list([-70_000i32, 70_000]),
                Value::list([0u32, 4_000_000_000]),
                Value::list([-1i64, 1 << 53]),
                Value::list([(1u64 << 53) + 1, u64::MAX]),
                Value::list([0.5f32, 0.25, -2.0, f32::from(i)]),
                Value::list([0.1f64, -1e-300]),
            ],
        );
    }
    log.done()
}

fn short_arrays() -> Made {
    let shape = Shape::new("t")
        .with("timestamp", U64)
        .with("one", array(F32, 1))
        .with("none", array(U16, 0))
        .with("no_text", Type::Text(0))
        .with("x", U8);
    let mut log = Log::new(START);
    let t = log.topic(&shape);
    for i in 0..3u16 {
        let one = Value::list([f32::from(i)]);
        let none = Value::List(Vec::new());
        log.row(&t, &values![time(i), one, none, Value::text(b"", 0), 40u8]);
    }
    log.done()
}

fn wide_row() -> Made {
    let shape = Shape::new("wide").with("timestamp", U64).with("s", Type::Text(60_000)).with("x", F32);
    let mut log = Log::new(START);
    let t = log.topic(&shape);
    // NUL right after the words keeps the truth small; bytes behind it must not show.
    let mut text = Value::text(b"sixty thousand\0", 50_000);
    if let Value::Text(bytes) = &mut text {
        bytes.resize(60_000, b'~');
    }
    log.row(&t, &values![time(0), text, 0.75f32]);
    log.done()
}

fn char_arrays() -> Made {
    let shape = Shape::new("t").with("timestamp", U64).with("s", Type::Text(8)).with("c", CHAR);
    let mut log = Log::new(START);
    let t = log.topic(&shape);
    let texts: [&[u8]; 6] = [
        b"ab\0cd\xE9\0\0",
        b"full8chr",
        b"\0after\0\0",
        b"caf\xE9 ol\xE9",
        "zw\u{f6}lf \u{b5}".as_bytes(),
        b"cut \xE2\x82\0x",
    ];
    for (i, text) in (0u16..).zip(texts) {
        // The bytes for "zwölf µ" are nine: one too many, which leaves half a letter at the end.
        let text = Value::text(&text[..text.len().min(8)], 8);
        log.row(&t, &values![time(i), text, Value::Char(b'x')]);
    }
    log.done()
}

fn bool_bytes() -> Made {
    let shape = Shape::new("t").with("timestamp", U64).with("b", BOOL).with("bs", array(BOOL, 2));
    let mut log = Log::new(START);
    let t = log.topic(&shape);
    for (i, byte) in (0u16..).zip([0, 1, 2, 0x41, 0x99, 0xFF]) {
        let pair = Value::list([Value::Bool(0), Value::Bool(byte)]);
        log.row(&t, &values![time(i), Value::Bool(byte), pair]);
    }
    log.done()
}

fn float_specials() -> Made {
    let shape = Shape::new("t").with("timestamp", U64).with("f", F32).with("d", F64);
    let mut log = Log::new(START);
    let t = log.topic(&shape);
    let pairs = [
        (f32::NAN, f64::NAN),
        (f32::INFINITY, f64::INFINITY),
        (f32::NEG_INFINITY, f64::NEG_INFINITY),
        (-0.0, -0.0),
        (f32::from_bits(1), f64::from_bits(1)),
        (f32::MAX, f64::MAX),
        // A signalling not-a-number with a payload and a sign.
        (f32::from_bits(0xFFA0_0001), f64::from_bits(0xFFF4_0000_0000_0001)),
    ];
    for (i, (f, d)) in (0u16..).zip(pairs) {
        log.row(&t, &values![time(i), f, d]);
    }
    log.done()
}

fn nested_types() -> Made {
    let leaf = Shape::new("leaf").with("v", F32).with("k", array(U8, 2));
    let branch =
        Shape::new("branch").with("id", U16).with("leaves", array(nested(&leaf), 2)).with("timestamp", U64);
    let shape = Shape::new("tree")
        .with("timestamp", U64)
        .with("one", nested(&branch))
        .with("many", array(nested(&branch), 3))
        .with("x", F32);
    let leaf_of = |v: f32| Value::Struct(values![v, Value::list([1u8, 2])]);
    let branch_of = |id: u16| {
        let leaves = Value::list([leaf_of(0.5), leaf_of(f32::from(id))]);
        Value::Struct(values![id, leaves, 5u64])
    };
    let mut log = Log::new(START);
    log.format(&leaf);
    log.format(&branch);
    let t = log.topic(&shape);
    for i in 0..3u16 {
        let many = Value::list([branch_of(10), branch_of(20), branch_of(30 + i)]);
        log.row(&t, &values![time(i), branch_of(i), many, f32::from(i)]);
    }
    log.done()
}

fn padding_in_the_middle() -> Made {
    let shape =
        Shape::new("t").with("timestamp", U64).with("a", U8).with("_padding0", array(U8, 3)).with("x", F32);
    let mut log = Log::new(START);
    let t = log.topic(&shape);
    for i in 0..3u16 {
        let pad = Value::list([0xA1u8, 0xA2, 0xA3]);
        log.row(&t, &values![time(i), 7u8, pad, f32::from(i)]);
    }
    log.done()
}

fn padding_of_type_uint32() -> Made {
    let shape = Shape::new("t")
        .with("timestamp", U64)
        .with("_padding0", U32)
        .with("x", F32)
        .with("_padding_of_mine", F64);
    let mut log = Log::new(START);
    let t = log.topic(&shape);
    for i in 0..3u16 {
        log.row(&t, &values![time(i), 0xA1A2_A3A4u32, f32::from(i), 0.0f64]);
    }
    log.done()
}

/// Two bytes of padding at the end.
fn tail_padded() -> Shape {
    Shape::new("t").with("timestamp", U64).with("x", F32).with("k", U16).with("_padding0", array(U8, 2))
}

fn trailing_padding_trimmed() -> Made {
    let mut log = Log::new(START);
    let t = log.topic(&tail_padded());
    for i in 0..4u16 {
        let pad = Value::repeated(0u8, 2);
        log.row(&t, &values![time(i), f32::from(i), 3u16, pad]);
    }
    log.done()
}

fn trailing_padding_full() -> Made {
    let mut log = Log::new(START);
    let t = log.topic(&tail_padded());
    for i in 0..4u16 {
        let pad = Value::repeated(0xA1u8, 2);
        log.full_row(&t, &values![time(i), f32::from(i), 3u16, pad]);
    }
    log.done()
}

fn trailing_padding_run() -> Made {
    let shape = Shape::new("t")
        .with("timestamp", U64)
        .with("x", U8)
        .with("_padding0", array(U8, 3))
        .with("_padding1", U32);
    let mut log = Log::new(START);
    let t = log.topic(&shape);
    for i in 0..6u16 {
        let row = values![time(i), 50u8, Value::repeated(0xA1u8, 3), 0xA2A2_A2A2u32];
        if i % 2 == 0 {
            log.row(&t, &row);
        } else {
            log.full_row(&t, &row);
        }
    }
    log.done()
}

fn nested_trailing_padding() -> Made {
    let inner = Shape::new("e").with("v", F32).with("k", U8).with("_padding0", array(U8, 3));
    let shape = Shape::new("t")
        .with("timestamp", U64)
        .with("two", array(nested(&inner), 2))
        .with("x", F32)
        .with("last", nested(&inner));
    let inner_of = |v: f32| Value::Struct(values![v, 9u8, Value::repeated(0xA1u8, 3)]);
    let mut log = Log::new(START);
    log.format(&inner);
    let t = log.topic(&shape);
    for i in 0..3u16 {
        let two = Value::list([inner_of(1.0), inner_of(2.0)]);
        log.row(&t, &values![time(i), two, f32::from(i), inner_of(4.0)]);
    }
    log.done()
}
