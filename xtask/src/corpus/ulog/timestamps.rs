//! Times: where they stand, how wide they are, how they go.

use super::log::{Keyed, Log, Subscribed};
use super::shape::{F32, Shape, Type, U8, U16, U32, U64, Value, nested, values};
use super::{START, plain, plain_log, plain_row, plain_rows, time};
use crate::corpus::{Case, Made};

pub(super) const CASES: &[Case] = &[
    Case::ulog(
        "timestamp-out-of-range",
        "two times past the year 2262, which nanoseconds in 64 bits cannot hold: rows without a time",
        &["D14"],
        out_of_range,
    ),
    Case::ulog("timestamp-not-first", "the time is a field in the middle", &["D14"], not_first),
    Case::ulog(
        "timestamps-zero+equal+falling",
        "such times are data, and rows stay in file order",
        &["D14"],
        zero_equal_falling,
    ),
    Case::ulog(
        "timestamps-stale",
        "one time 20 minutes behind all others, and a topic that is stuck before the log: the data ends where the others \
         do, and a dropout is where its gap is",
        &["D14"],
        stale,
    ),
    Case::ulog("timestamp-sample", "a second time field is an ordinary one", &["D14"], timestamp_sample),
    Case::ulog(
        "nested-timestamp",
        "only the top level's timestamp is the row's time",
        &["D14"],
        nested_timestamp,
    ),
    Case::ulog("no-timestamp", "rows without time are kept", &["D15"], no_timestamp),
    Case::ulog(
        "no-timestamp+nested-timestamp",
        "a nested timestamp gives the row no time",
        &["D14", "D15"],
        only_nested_timestamp,
    ),
    Case::ulog(
        "timestamp-u8-ms",
        "times of 8 bits count milliseconds and wrap four times a second",
        &["D16"],
        narrow_u8,
    ),
    Case::ulog("timestamp-u16", "times of 16 bits wrap every 65 ms", &["D16"], narrow_u16),
    Case::ulog(
        "timestamp-u16+dropout",
        "a dropout of one second lies between two rows",
        &["D16"],
        narrow_u16_dropout,
    ),
    Case::ulog(
        "timestamp-u16+quiet-topic",
        "rows a second apart are placed by the times of another topic",
        &["D16"],
        narrow_u16_quiet,
    ),
    Case::ulog("timestamp-u32", "times of 32 bits wrap after 71 minutes", &["D16"], narrow_u32),
];

fn not_first() -> Made {
    let shape = Shape::new("t").with("x", F32).with("k", U8).with("timestamp", U64).with("n", U16);
    let mut log = Log::new(START);
    let t = log.topic(&shape);
    for i in 0..4u16 {
        log.row(&t, &values![f32::from(i), 6u8, time(i), i]);
    }
    log.done()
}

fn zero_equal_falling() -> Made {
    let mut log = Log::new(START);
    let t = log.topic(&plain());
    for (i, us) in (0u16..).zip([time(0), 0, time(3), time(3), time(1), 1, time(2), 0]) {
        if i == 1 {
            // Said once, at the first of four: 0 is a time too.
            log.note("timestamps_fall");
        }
        log.row(&t, &values![us, f32::from(i)]);
    }
    // Takes the log time, which is that of the third row.
    log.dropout(4);
    log.done()
}

fn stale() -> Made {
    const BEGIN: u64 = 30_000_000;
    let mut log = Log::new(BEGIN);
    let counted = |name| Shape::new(name).with("timestamp", U64).with("n", U8);
    let shapes = [plain(), counted("stuck"), counted("mission")];
    for shape in &shapes {
        log.format(shape);
    }
    let [t, stuck, mission] = [0, 1, 2].map(|id| log.subscribe(&shapes[usize::from(id)], 0, id));
    let at = |i: u16| BEGIN + 10_000 * u64::from(i);
    log.note("stale_times");
    for i in 0..60u16 {
        log.row(&stuck, &values![2_069_758u64, u8::from(i % 2 == 0)]);
        log.row(&t, &values![at(i), f32::from(i)]);
    }
    log.row(&mission, &values![at(59), 1u8]);
    log.stale_row(&mission, 1_200_000_000, &values![1_200_000_000u64, 2u8]);
    // At the log time, which that row does not move.
    log.dropout(30);
    log.parameter(&Keyed::scalar(&F32, "P", 1.5f32));
    for i in 62..120u16 {
        log.row(&t, &values![at(i), f32::from(i)]);
    }
    log.note("timestamps_fall");
    log.row(&mission, &values![at(119), 3u8]);
    log.done()
}

fn timestamp_sample() -> Made {
    let shape = Shape::new("t").with("timestamp", U64).with("timestamp_sample", U64).with("x", F32);
    let mut log = Log::new(START);
    let t = log.topic(&shape);
    for i in 0..3u16 {
        log.row(&t, &values![time(i), time(i) - 700, f32::from(i)]);
    }
    log.done()
}

fn with_time() -> Shape {
    Shape::new("e").with("timestamp", U64).with("v", F32)
}

fn nested_timestamp() -> Made {
    let shape = Shape::new("t").with("e", nested(&with_time())).with("timestamp", U64).with("x", F32);
    let mut log = Log::new(START);
    log.format(&with_time());
    let t = log.topic(&shape);
    for i in 0..3u16 {
        let e = Value::Struct(values![5u64, 1.0f32]);
        log.row(&t, &values![e, time(i), f32::from(i)]);
    }
    log.done()
}

fn no_timestamp() -> Made {
    let shape = Shape::new("t").with("x", F32).with("k", U16);
    let mut log = Log::new(START);
    let t = log.topic(&shape);
    log.note("no_timestamp");
    for i in 0..5u16 {
        log.row(&t, &values![f32::from(i), i]);
    }
    log.done()
}

/// The topic's last time that nanoseconds in 64 bits can hold, and two that they cannot.
fn out_of_range() -> Made {
    let (mut log, t) = plain_log();
    plain_rows(&mut log, &t, 0..3);
    log.note("timestamp_out_of_range");
    for us in [u64::MAX, 1 << 63] {
        log.row_without_time(&t, &values![us, 0.5f32]);
    }
    plain_rows(&mut log, &t, 3..6);
    log.done()
}

fn only_nested_timestamp() -> Made {
    let shape = Shape::new("t").with("e", nested(&with_time()));
    let mut log = Log::new(START);
    log.format(&with_time());
    let t = log.topic(&shape);
    log.note("no_timestamp");
    for i in 0..3u16 {
        let e = Value::Struct(values![time(i), 1.0f32]);
        log.row(&t, &values![e]);
    }
    log.done()
}

/// A topic with a time of this type, and its subscription.
fn narrow(log: &mut Log, kind: Type) -> Subscribed {
    let shape = Shape::new("n").with("timestamp", kind).with("x", F32);
    log.format(&shape);
    log.subscribe(&shape, 0, 0)
}

/// The bits of a time that are stored.
fn low_u16(us: u64) -> u16 {
    u16::try_from(us & 0xFFFF).expect("sixteen bits")
}

fn narrow_u8() -> Made {
    let mut log = Log::new(START);
    let n = narrow(&mut log, U8);
    log.note("narrow_timestamp");
    // 100 ms apart: less than half the 256 ms after which the counter begins again.
    for i in 0..12u16 {
        let ms = 1000 + 100 * u64::from(i);
        let stored = u8::try_from(ms & 0xFF).expect("eight bits");
        log.row_at(&n, ms * 1000, &values![stored, f32::from(i)]);
    }
    log.done()
}

fn narrow_u16() -> Made {
    let mut log = Log::new(START);
    let n = narrow(&mut log, U16);
    log.note("narrow_timestamp");
    for i in 0..12u16 {
        let us = START + 20_000 * u64::from(i);
        log.row_at(&n, us, &values![low_u16(us), f32::from(i)]);
    }
    log.done()
}

fn narrow_u16_dropout() -> Made {
    let mut log = Log::new(START);
    let n = narrow(&mut log, U16);
    log.note("narrow_timestamp");
    for i in 0..5u16 {
        let us = START + 20_000 * u64::from(i);
        log.row_at(&n, us, &values![low_u16(us), f32::from(i)]);
    }
    // Two dropouts add up to the second that is missing.
    log.dropout(600);
    log.dropout(400);
    for i in 5..10u16 {
        let us = START + 1_000_000 + 20_000 * u64::from(i);
        log.row_at(&n, us, &values![low_u16(us), f32::from(i)]);
    }
    log.done()
}

fn narrow_u16_quiet() -> Made {
    let mut log = Log::new(START);
    log.format(&plain());
    let n = narrow(&mut log, U16);
    let t = log.subscribe(&plain(), 0, 1);
    log.note_at(log.at() + 3 * 17, "narrow_timestamp");
    for i in 0..9u16 {
        let us = START + 300_000 * u64::from(i);
        log.row(&t, &values![us, f32::from(i)]);
        if i % 3 == 2 {
            // Each falls 2 ms after a row of the other topic, and 0.9 s after its own last one.
            let us = us + 2_000;
            log.row_at(&n, us, &values![low_u16(us), f32::from(i)]);
        }
    }
    log.row(&t, &plain_row(300));
    log.done()
}

fn narrow_u32() -> Made {
    let start = (1 << 32) - 2_000_000;
    let mut log = Log::new(start);
    let n = narrow(&mut log, U32);
    log.note("narrow_timestamp");
    for i in 0..8u16 {
        let us = start + 500_000 * u64::from(i);
        let stored = u32::try_from(us & 0xFFFF_FFFF).expect("thirty-two bits");
        log.row_at(&n, us, &values![stored, f32::from(i)]);
    }
    log.done()
}
