//! What writers outside PX4 do that the specification allows, or does not forbid.

use super::log::{Keyed, Log};
use super::shape::{F32, I32, Shape, U8, U16, U64, Value, array, nested, values};
use super::{START, plain, plain_rows, time};
use crate::corpus::{Case, Made};

pub(super) const CASES: &[Case] = &[
    Case::ulog(
        "info-keys-of-other-writers",
        "spaces and letters beyond ASCII in the names of infos and parameters: names all the same",
        &["D35"],
        info_keys,
    ),
    Case::ulog(
        "names-of-other-writers",
        "formats and fields with dots, spaces, brackets, letters beyond ASCII",
        &["D36"],
        names,
    ),
    Case::ulog(
        "names-case-sensitive",
        "T and t are two formats, X and x two fields, Key and key two infos",
        &["D37"],
        case_sensitive,
    ),
    Case::ulog(
        "writer-outside-px4",
        "no flag bits, no parameters, Unix clock, ids from 27800, keys with spaces, infos after data, emergencies",
        &["D1", "D6", "D34", "D35", "U1"],
        outside_px4,
    ),
];

fn info_keys() -> Made {
    let mut log = Log::new(START);
    log.note("unusual_key");
    log.info(&Keyed::text("Build Date", "May 25 2022"));
    log.note("unusual_key");
    log.info(&Keyed::text("h\u{f6}he", "400"));
    log.info(&Keyed::text("sys_name", "other"));
    log.note("unusual_key");
    log.parameter(&Keyed::scalar(&I32, "max speed", 7i32));
    let t = log.topic(&plain());
    plain_rows(&mut log, &t, 0..3);
    log.note("unusual_key");
    log.multi_info(false, &Keyed::text("boot text", "one"));
    // The same list: said once.
    log.multi_info(true, &Keyed::text("boot text", "two"));
    plain_rows(&mut log, &t, 3..6);
    log.done()
}

fn names() -> Made {
    let inner = Shape::new("h\u{f6}he").with("x.y", F32).with("n", U8);
    let shapes = [
        Shape::new("a.b").with("timestamp", U64).with("x-y", F32),
        Shape::new("a b").with("timestamp", U64).with("x[1]", F32),
        Shape::new("\u{6e29}\u{5ea6}").with("timestamp", U64).with("h\u{f6}he", array(U16, 2)),
        Shape::new("t").with("timestamp", U64).with("e", nested(&inner)),
    ];
    let rows = |i: u16| {
        [
            values![time(i), f32::from(i)],
            values![time(i), f32::from(i)],
            values![time(i), Value::list([i, 7u16])],
            values![time(i), Value::Struct(values![f32::from(i), 9u8])],
        ]
    };
    let mut log = Log::new(START);
    for shape in [&inner].into_iter().chain(&shapes) {
        log.note("unusual_name");
        log.format(shape);
    }
    let topics: Vec<_> = (0..).zip(&shapes).map(|(id, shape)| log.subscribe(shape, 0, id)).collect();
    for i in 0..3 {
        for (topic, row) in topics.iter().zip(rows(i)) {
            log.row(topic, &row);
        }
    }
    log.done()
}

fn case_sensitive() -> Made {
    let upper = Shape::new("T").with("timestamp", U64).with("X", U8).with("x", U16);
    let mut log = Log::new(START);
    log.format(&plain());
    log.format(&upper);
    log.info(&Keyed::text("key", "lower"));
    log.info(&Keyed::text("Key", "upper"));
    log.parameter(&Keyed::scalar(&I32, "KP", 1i32));
    log.parameter(&Keyed::scalar(&I32, "kp", 2i32));
    let t = log.subscribe(&plain(), 0, 0);
    let u = log.subscribe(&upper, 0, 1);
    plain_rows(&mut log, &t, 0..3);
    for i in 3..6 {
        log.row(&u, &values![time(i), 3u8, 300u16]);
    }
    log.done()
}

fn outside_px4() -> Made {
    let start = 1_653_480_000_000_000;
    let mut log = Log::without_flag_bits(1, start);
    log.utc("clock_is_unix", 0);
    log.format(&plain());
    let topics = [(0, 27_800), (1, 27_801)].map(|(multi_id, id)| log.subscribe(&plain(), multi_id, id));
    for i in 0..4u16 {
        for topic in &topics {
            log.row(topic, &values![start + 10_000 * u64::from(i), f32::from(i)]);
        }
        log.text(b'0', start + 10_000 * u64::from(i), b"motor failure");
    }
    log.note("unusual_key");
    log.info(&Keyed::text("Build Date", "May 25 2022"));
    log.info(&Keyed::text("Firmware", "7"));
    for i in 4..7u16 {
        log.row(&topics[0], &values![start + 10_000 * u64::from(i), f32::from(i)]);
    }
    log.done()
}
