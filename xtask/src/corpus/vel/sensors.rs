//! Laser scanners: strings, angle tables, codes.

use serde_json::{Value as Json, json};

use super::log::Log;
use super::{Case, Made};

pub(super) const CASES: &[Case] = &[
    Case::vel("laser-latin-1", "names that are no UTF-8, and empty ones", &["D37"], latin_1),
    Case::vel("laser-same-name", "scans of one name are one topic", &["D37"], same_name),
    Case::vel("laser-urg", "a URG-04LX: angles and codes", &["D32"], urg),
    Case::vel("laser-utm", "a UTM-30LX: angles and codes", &["D32"], utm),
    Case::vel("laser-odd-count", "another number of ranges is centred on the front", &["D32"], odd_count),
];

fn latin_1() -> Made {
    let mut log = Log::new();
    log.laser(10.0, (b"", ""), (b"vorn\xfc", "vorn\u{fc}"), &[]);
    log.laser(20.0, (b"", ""), (b"", ""), &[5, 6]);
    log.laser(30.0, (b"x", "x"), ("h\u{f6}her".as_bytes(), "h\u{f6}her"), &[7]);
    log.finish()
}

fn same_name() -> Made {
    let mut log = Log::new();
    log.laser(10.0, (b"A", "A"), (b"front", "front"), &[1]);
    log.laser(20.0, (b"B", "B"), (b"front", "front"), &[2]);
    log.laser(30.0, (b"A", "A"), (b"rear", "rear"), &[3]);
    log.finish()
}

/// A scan with a distance at every hundredth index, codes at some, and what becomes of a few indices:
/// index, angle, x, y; code where it is none.
fn scan(sensor: &'static str, count: usize, angle: impl Fn(usize) -> f64, codes: &[(usize, u32)]) -> Made {
    let mut ranges: Vec<u32> = (0..count).map(|i| 1000 + u32::try_from(i).expect("small")).collect();
    for (index, code) in codes {
        ranges[*index] = *code;
    }
    let mut truth = Vec::new();
    for i in (0..count).step_by(count / 7).chain(codes.iter().map(|code| code.0)) {
        let angle = angle(i);
        let code = codes.iter().find(|code| code.0 == i).map(|code| code.1);
        let metres = f64::from(ranges[i]) / 1000.0;
        let (x, y) = (metres * angle.cos(), metres * angle.sin());
        let place: Json =
            if code.is_some() { Json::Null } else { json!([format!("{x:.6}"), format!("{y:.6}")]) };
        truth.push(json!({"index": i, "angle": format!("{angle:.6}"), "xy": place, "code": code}));
    }
    let mut log = Log::new();
    log.laser(10.0, (sensor.as_bytes(), sensor), (b"front", "front"), &ranges);
    log.fact("scan", truth.into());
    log.finish()
}

/// Steps of a turn, from the right to the left; the front is step 384 of 1024.
fn urg() -> Made {
    let angle = |i: usize| (i as f64 + 44.0 - 384.0) * std::f64::consts::TAU / 1024.0;
    scan("Hokuyo_URG-04LX", 682, angle, &[(3, 0), (5, 1), (8, 19), (9, 6)])
}

/// The front is step 540 of 1440.
fn utm() -> Made {
    let angle = |i: usize| (i as f64 - 540.0) * std::f64::consts::TAU / 1440.0;
    scan("Hokuyo_UTM-30LX", 1081, angle, &[(3, 1), (5, 2), (8, 5)])
}

/// 101 ranges: index 50 looks to the front.
fn odd_count() -> Made {
    let angle = |i: usize| (i as f64 - 50.0) * std::f64::consts::TAU / 1440.0;
    scan("Hokuyo_UTM-30LX", 101, angle, &[(7, 4)])
}
