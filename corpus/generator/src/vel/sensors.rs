//! Laser scanners: strings, angle tables, codes.

use std::f64::consts::TAU;

use serde_json::{Value as Json, json};

use super::log::Log;
use crate::cases;

cases! {
    "laser-latin-1" [D37] "names that are no UTF-8, and empty ones" =>
        Log::new().laser(10.0, (b"", ""), (b"vorn\xfc", "vorn\u{fc}"), &[]).laser(20.0, (b"", ""), (b"", ""), &[5, 6])
            .laser(30.0, (b"x", "x"), ("h\u{f6}her".as_bytes(), "h\u{f6}her"), &[7]);
    "laser-same-name" [D37] "scans of one name are one topic" =>
        Log::new().laser(10.0, (b"A", "A"), (b"front", "front"), &[1]).laser(20.0, (b"B", "B"), (b"front", "front"), &[2])
            .laser(30.0, (b"A", "A"), (b"rear", "rear"), &[3]);
    "laser-urg" [D32] "a URG-04LX: angles and codes" =>
        // Steps of a revolution, from right to left; the front is step 384 of 1024.
        scan("Hokuyo_URG-04LX", 682, |i| (i as f64 + 44.0 - 384.0) * TAU / 1024.0, &[(3, 0), (5, 1), (8, 19), (9, 6)]);
    "laser-utm" [D32] "a UTM-30LX: angles and codes" =>
        // The front is step 540 of 1440.
        scan("Hokuyo_UTM-30LX", 1081, |i| (i as f64 - 540.0) * TAU / 1440.0, &[(3, 1), (5, 2), (8, 5)]);
    "laser-odd-count" [D32] "another number of ranges is centred on the front" =>
        // 101 ranges: index 50 looks to the front.
        scan("Hokuyo_UTM-30LX", 101, |i| (i as f64 - 50.0) * TAU / 1440.0, &[(7, 4)]);
}

/// Returns a scan with a distance at every hundredth index, codes at some, and the expected values
/// at a few indices: index, angle, x, y; the code if there is no distance.
fn scan(sensor: &str, count: usize, angle: impl Fn(usize) -> f64, codes: &[(usize, u32)]) -> Log {
    let mut ranges: Vec<u32> = (0..count).map(|i| 1000 + u32::try_from(i).expect("small")).collect();
    for (index, code) in codes {
        ranges[*index] = *code;
    }
    let point = |i: usize| {
        let angle = angle(i);
        let code = codes.iter().find(|code| code.0 == i).map(|code| code.1);
        let metres = f64::from(ranges[i]) / 1000.0;
        let (x, y) = (metres * angle.cos(), metres * angle.sin());
        let place = if code.is_some() { Json::Null } else { json!([format!("{x:.6}"), format!("{y:.6}")]) };
        json!({"index": i, "angle": format!("{angle:.6}"), "xy": place, "code": code})
    };
    let truth: Json =
        (0..count).step_by(count / 7).chain(codes.iter().map(|code| code.0)).map(point).collect();
    Log::new().laser(10.0, (sensor.as_bytes(), sensor), (b"front", "front"), &ranges).fact("scan", truth)
}
