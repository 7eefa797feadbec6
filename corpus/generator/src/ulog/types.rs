//! Cases about types of fields, arrays, nested formats and padding.

use super::prelude::*;

cases! {
    "all-basic-types" [D12] "every basic type at both ends of its range" =>
        Log::new()
            .topic("all:uint64_t timestamp;bool a;char b;int8_t c;uint8_t d;int16_t e;uint16_t f;int32_t g;\
                    uint32_t h;int64_t i;uint64_t j;float k;double l;")
            .row(0, values![
                time(0), 0, b"A", i8::MIN, 0, i16::MIN, 0, i32::MIN, 0, i64::MIN, 0, -1.5, -1e300,
            ])
            .row(0, values![
                time(1), 1, b"\0", i8::MAX, u8::MAX, i16::MAX, u16::MAX, i32::MAX, u32::MAX, i64::MAX, u64::MAX,
                16_777_216.0, 0.1,
            ]);
    "arrays-of-all-basic-types" [D12] "an array of every basic type" =>
        Log::new()
            .topic("arrays:uint64_t timestamp;bool[3] a;char[4] b;int8_t[2] c;uint8_t[5] d;int16_t[2] e;\
                    uint16_t[3] f;int32_t[2] g;uint32_t[2] h;int64_t[2] i;uint64_t[2] j;float[4] k;double[2] l;")
            .rows_with(0, 0..2, |i| values![
                time(i), [true, i == 0, false], "abcd", [-1, 1], [1, 2, 3, 4, 255], [-300, 300], [i, 1000, 65535],
                [-70_000, 70_000], [0_u32, 4_000_000_000], [-1_i64, 1 << 53], [(1 << 53) + 1, u64::MAX],
                [0.5, 0.25, -2.0, f32::from(i)], [0.1, -1e-300],
            ]);
    "array-of-one+array-of-none" [D12] "[1] is an array, [0] has no data" =>
        Log::new().topic("t:uint64_t timestamp;float[1] one;uint16_t[0] none;char[0] no_text;uint8_t x;")
            .rows_with(0, 0..3, |i| values![time(i), [f32::from(i)], [0; 0], "", 40]);
    "wide-row" [D12] "one row of 60 kB with a char[60000]" => {
        // A NUL directly after the words keeps the expected result small. Readers must not return
        // the bytes after the NUL.
        let mut text = b"sixty thousand".to_vec();
        text.resize(50_000, 0);
        text.resize(60_000, b'~');
        Log::new().topic("wide:uint64_t timestamp;char[60000] s;float x;").row(0, values![time(0), &text[..], 0.75])
    };
    "char-arrays" [D12] "texts end at the first NUL; Latin-1 and full arrays" =>
        Log::new().topic("t:uint64_t timestamp;char[8] s;char c;")
            .rows_with(0, // The text "zwölf µ" has nine bytes, which is one too many, so the last character
                // is truncated.
                (0..).zip([
                    &b"ab\0cd\xE9\0\0"[..], b"full8chr", b"\0after\0\0", b"caf\xE9 ol\xE9",
                    &"zw\u{f6}lf \u{b5}".as_bytes()[..8], b"cut \xE2\x82\0x",
                ]), |(i, text)| values![time(i), text, b"x"]);
    "bool-bytes" [D13] "any byte but 0 is true" =>
        Log::new().topic("t:uint64_t timestamp;bool b;bool[2] bs;")
            .rows_with(0, (0..).zip([0, 1, 2, 0x41, 0x99, 0xFF]), |(i, byte)| {
                values![time(i), byte, [0, byte]]
            });
    "float-specials" [] "not-a-number, infinities, negative zero, the smallest and largest floats" =>
        Log::new().topic("t:uint64_t timestamp;float f;double d;")
            .rows_with(0, (0..).zip([
                    (f32::NAN, f64::NAN), (f32::INFINITY, f64::INFINITY), (f32::NEG_INFINITY, f64::NEG_INFINITY),
                    (-0.0, -0.0), (f32::from_bits(1), f64::from_bits(1)), (f32::MAX, f64::MAX),
                ]), |(i, (f, d))| values![time(i), f, d])
            // A negative signaling NaN with a payload.
            .row(0, values![
                time(6), Value::As(0xFFA0_0001_u32.to_le_bytes().into(), "NaN".into()),
                f64::from_bits(0xFFF4_0000_0000_0001),
            ]);
    "nested-types" [D7] "a type in a type in a type, and arrays of them" =>
        Log::new().format("leaf:float v;uint8_t[2] k;").format("branch:uint16_t id;leaf[2] leaves;uint64_t timestamp;")
            .topic("tree:uint64_t timestamp;branch one;branch[3] many;float x;")
            .each(0..3, |log, i| {
                let leaf = |v: f32| values![v, [1, 2]];
                let branch = |id: u16| values![id, [leaf(0.5), leaf(f32::from(id))], 5];
                log.row(0, values![time(i), branch(i), [branch(10), branch(20), branch(30 + i)], f32::from(i)])
            });
    "padding-in-the-middle" [D10] "padding between fields is on the wire and never shown" =>
        Log::new().topic("t:uint64_t timestamp;uint8_t a;uint8_t[3] _padding0;float x;")
            .rows_with(0, 0..3, |i| values![time(i), 7, [0xA1, 0xA2, 0xA3], f32::from(i)]);
    "padding-of-type-uint32" [D10] "padding is known by its name, whatever its type" =>
        Log::new().topic("t:uint64_t timestamp;uint32_t _padding0;float x;double _padding_of_mine;")
            .rows_with(0, 0..3, |i| values![time(i), 0xA1A2_A3A4_u32, f32::from(i), 0.0]);
    "trailing-padding-trimmed" [D9] "padding at the end is not logged: how PX4 writes" =>
        Log::new().topic(PADDED).rows_with(0, 0..4, |i| values![time(i), f32::from(i), 3, [0; 2]]);
    "trailing-padding-full" [D9] "padding at the end is logged" =>
        Log::new().topic(PADDED).each(0..4, |log, i| log.full_row(0, values![time(i), f32::from(i), 3, [0xA1; 2]]));
    "trailing-padding-run+trimmed+full" [D9]
        "a run of two padding fields at the end, rows of both sizes in one topic" =>
        Log::new().topic("t:uint64_t timestamp;uint8_t x;uint8_t[3] _padding0;uint32_t _padding1;")
            .each(0..6, |log, i| {
                let row = values![time(i), 50, [0xA1; 3], 0xA2A2_A2A2_u32];
                if i % 2 == 0 { log.row(0, row) } else { log.full_row(0, row) }
            });
    "nested-trailing-padding" [D10]
        "padding at the end of a nested type is on the wire, even when that type is last" =>
        Log::new().format("e:float v;uint8_t k;uint8_t[3] _padding0;")
            .topic("t:uint64_t timestamp;e[2] two;float x;e last;")
            .each(0..3, |log, i| {
                let e = |v: f32| values![v, 9, [0xA1; 3]];
                log.row(0, values![time(i), [e(1.0), e(2.0)], f32::from(i), e(4.0)])
            });
}

/// A format with two bytes of padding at its end.
const PADDED: &str = "t:uint64_t timestamp;float x;uint16_t k;uint8_t[2] _padding0;";
