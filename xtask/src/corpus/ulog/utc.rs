//! From log time to UTC.

use super::log::{Keyed, Log};
use super::shape::{F32, F64, I32, Shape, Type, U8, U64, Value, values};
use super::{START, plain, plain_rows};
use crate::corpus::{Case, Made};

pub(super) const CASES: &[Case] = &[
    Case::ulog("utc-clock-is-unix", "a simulation's clock is Unix time already", &["U1"], clock_is_unix),
    Case::ulog(
        "utc-boot-time",
        "the info boot_time_utc_us is the offset, and goes before GPS",
        &["U2"],
        boot_time,
    ),
    Case::ulog(
        "utc-gps-int32",
        "the lower median over fixes; older position fields in 1e-7 degrees",
        &["U3"],
        gps_int32,
    ),
    Case::ulog(
        "utc-gps-double",
        "newer position fields in degrees, from the first instance that has a fix",
        &["U3"],
        gps_double,
    ),
    Case::ulog(
        "utc-none+time-ref-utc",
        "a time zone and a receiver without fix place nothing",
        &["U4"],
        none,
    ),
];

/// 2023-11-14 22:13:20 UTC.
const BOOT: u64 = 1_700_000_000_000_000;

fn clock_is_unix() -> Made {
    let start = 1_710_773_350_346_000;
    let mut log = Log::new(start);
    log.utc("clock_is_unix", 0);
    let t = log.topic(&plain());
    for i in 0..5u16 {
        log.row(&t, &values![start + 10_000 * u64::from(i), f32::from(i)]);
    }
    log.done()
}

/// A receiver; positions are written in the type given.
fn receiver(name: &str, position: [&str; 3], kind: &Type) -> Shape {
    let shape = Shape::new(name).with("timestamp", U64).with("time_utc_usec", U64);
    let places = position.iter();
    places.fold(shape, |shape, name| shape.with(name, kind.clone())).with("eph", F32).with("fix_type", U8)
}

fn int32_receiver() -> Shape {
    receiver("vehicle_gps_position", ["lat", "lon", "alt"], &I32)
}

fn int32_row(us: u64, utc: u64, fix: u8) -> Vec<Value> {
    values![us, utc, 473_977_420i32, 85_455_938i32, 488_004i32, 0.5f32, fix]
}

fn boot_time() -> Made {
    let mut log = Log::new(START);
    log.info(&Keyed::scalar(&U64, "boot_time_utc_us", BOOT));
    log.utc("boot_time_utc_us", i128::from(BOOT));
    let t = log.topic(&int32_receiver());
    for i in 0..5 {
        let us = START + 200_000 * i;
        // The receiver says 0.684 s more: worth a word, not a change of rule.
        log.row(&t, &int32_row(us, BOOT + us + 684_000, 3));
    }
    log.done()
}

fn gps_int32() -> Made {
    let mut log = Log::new(START);
    let t = log.topic(&int32_receiver());
    // (fix, has a time, how far the offset is from the middle)
    let fixes = [
        (0, false, 0),
        (2, true, 5_000),
        (3, true, -3_000),
        (3, true, 1_000),
        (4, true, 0),
        (3, true, 90_000),
        (6, true, -1_000),
        (5, true, 2_000),
        (1, true, 0),
        (3, false, 0),
    ];
    for (i, (fix, timed, off)) in (0u64..).zip(fixes) {
        let us = START + 200_000 * i;
        let utc = (BOOT + us).saturating_add_signed(off);
        log.row(&t, &int32_row(us, if timed { utc } else { 0 }, fix));
    }
    // Six count: -3000, -1000, 0, 1000, 2000, 90000; the lower of the two in the middle is 0.
    log.utc("gps", i128::from(BOOT));
    log.done()
}

fn gps_double() -> Made {
    let position = ["latitude_deg", "longitude_deg", "altitude_msl_m"];
    let shape = receiver("sensor_gps", position, &F64);
    let row =
        |us: u64, utc: u64, fix: u8| values![us, utc, 47.397_742f64, 8.545_593_8f64, 488.004f64, 0.5f32, fix];
    let mut log = Log::new(START);
    log.format(&int32_receiver());
    log.format(&shape);
    let blind = log.subscribe(&int32_receiver(), 0, 0);
    let first = log.subscribe(&shape, 0, 1);
    let second = log.subscribe(&shape, 1, 2);
    let third = log.subscribe(&shape, 2, 3);
    for i in 0..3 {
        let us = START + 200_000 * i;
        log.row(&blind, &int32_row(us, BOOT + us, 2));
        // A fix, but its time is that of a receiver that does not know the date.
        log.row(&first, &row(us, 315_964_800_000_000 + us, 3));
        log.row(&third, &row(us + 1, BOOT + us + 7_000_000, 3));
        log.row(&second, &row(us + 2, BOOT + us + 2, 3));
    }
    log.utc("gps", i128::from(BOOT));
    log.done()
}

fn none() -> Made {
    let mut log = Log::new(START);
    log.info(&Keyed::scalar(&I32, "time_ref_utc", 3600i32));
    log.info(&Keyed::scalar(&U64, "boot_time_utc_us", 0u64));
    log.format(&plain());
    log.format(&int32_receiver());
    let gps = log.subscribe(&int32_receiver(), 0, 0);
    let t = log.subscribe(&plain(), 0, 1);
    log.row(&gps, &int32_row(START, 0, 3));
    log.row(&gps, &int32_row(START + 1, BOOT, 2));
    plain_rows(&mut log, &t, 1..3);
    log.done()
}
