//! Cases about laser scanners and Velodyne packets. The expected points of packets are computed with
//! the formulas in section 7 of docs/formats/vel.md.

use std::f64::consts::TAU;

use super::prelude::*;

cases! {
    "laser-latin-1" [D37] "names that are no UTF-8, and empty ones" =>
        Log::new().laser(10.0, (b"", ""), (b"vorn\xfc", "vorn\u{fc}"), &[]).laser(20.0, (b"", ""), (b"", ""), &[5, 6])
            .laser(30.0, (b"x", "x"), ("h\u{f6}her".as_bytes(), "h\u{f6}her"), &[7]);
    "laser-same-name" [D37] "scans of one name are one topic" =>
        Log::new().laser(10.0, (b"A", "A"), (b"front", "front"), &[1]).laser(20.0, (b"B", "B"), (b"front", "front"), &[2])
            .laser(30.0, (b"A", "A"), (b"rear", "rear"), &[3]);
    "laser-urg" [D32] "a URG-04LX: angles and codes" =>
        // A revolution has 1024 steps from right to left. Step 384 points to the front.
        scan("Hokuyo_URG-04LX", 682, |i| (i as f64 + 44.0 - 384.0) * TAU / 1024.0, &[(3, 0), (5, 1), (8, 19), (9, 6)]);
    "laser-utm" [D32] "a UTM-30LX: angles and codes" =>
        // A revolution has 1440 steps. Step 540 points to the front.
        scan("Hokuyo_UTM-30LX", 1081, |i| (i as f64 - 540.0) * TAU / 1440.0, &[(3, 1), (5, 2), (8, 5)]);
    "laser-odd-count" [D32] "another number of ranges is centred on the front" =>
        // If a scan has 101 ranges, the range with the index 50 points to the front.
        scan("Hokuyo_UTM-30LX", 101, |i| (i as f64 - 50.0) * TAU / 1440.0, &[(7, 4)]);
    "velodyne-vlp16" [D29 D31 D35] "a VLP-16: points, azimuths of single shots" => vlp16();
    "velodyne-vlp16-dual" [D31] "two returns a shot; equal ones are one point" => dual();
    "velodyne-hdl32-old" [D29 D35] "old firmware leaves the last bytes unset: stamps tell" =>
        Log::new().velodyne(500.0, &empty(16, 7000, (0, 0))).choice("velodyne", "HDL-32E strongest");
    "velodyne-few-packets" [D29] "too few packets to be sure" =>
        Log::new().velodyne(500.0, &empty(2, 7000, (0x38, 0x21))).assumed("velodyne", "HDL-32E last");
    "velodyne-hdl64-s2" [D29 D30] "status bytes that change: an HDL-64E, without its calibration" => hdl64();
    "velodyne-hour" [D35] "stamps that run over the hour" =>
        Log::new().velodyne(500.0, &empty(8, 3_600_000_000 - 8 * 553, (0x37, 0x21)))
            .velodyne(500.0 + 8.0 * 0.553, &empty(8, 0, (0x37, 0x21))).choice("velodyne", "HDL-32E strongest");
}

/// Returns a log with a scan of `count` ranges. The ranges at the indices in `codes` are codes
/// instead of distances. The expected result has the angle and position, or the code, of a few
/// ranges.
fn scan(sensor: &str, count: usize, angle: impl Fn(usize) -> f64, codes: &[(usize, u32)]) -> Log {
    let code_at = |i: usize| codes.iter().find(|code| code.0 == i).map(|code| code.1);
    let ranges: Vec<u32> = (0..count).map(|i| code_at(i).unwrap_or(1000 + u32_of(i))).collect();
    let point = |i: usize| {
        let (angle, metres) = (angle(i), f64::from(ranges[i]) / 1000.0);
        let place = [metres * angle.cos(), metres * angle.sin()].map(|metres| format!("{metres:.6}"));
        let place = code_at(i).is_none().then_some(place);
        json!({"index": i, "angle": format!("{angle:.6}"), "xy": place, "code": code_at(i)})
    };
    let shown = (0..count).step_by(count / 7).chain(codes.iter().map(|code| code.0));
    let truth: Json = shown.map(point).collect();
    Log::new().laser(10.0, (sensor.as_bytes(), sensor), (b"front", "front"), &ranges).fact("scan", truth)
}

/// Vertical angles in degrees of the lasers of a VLP-16, in firing order.
const VLP16: [f64; 16] =
    [-15.0, 1.0, -13.0, 3.0, -11.0, 5.0, -9.0, 7.0, -7.0, 9.0, -5.0, 11.0, -3.0, 13.0, -1.0, 15.0];

/// Returns the blocks of a packet. `block` returns the flag and azimuth of a block, and `shot` the
/// distance and intensity of a shot in a block.
pub(super) fn blocks(
    block: impl Fn(usize) -> (u16, u16),
    shot: impl Fn(usize, usize) -> (u16, u8),
) -> Vec<u8> {
    (0..12).flat_map(|b| lay![block(b), (0..32).map(|i| shot(b, i)).collect::<Vec<_>>()]).collect()
}

/// Returns the flag and azimuth of a block of an HDL-64E, whose banks of lasers alternate.
pub(super) fn bank(b: usize, azimuth: usize) -> (u16, u16) {
    (if b.is_multiple_of(2) { 0xEEFF } else { 0xDDFF }, u16_of(azimuth))
}

/// Returns a packet whose intensities are the numbers of the shots.
fn packet(
    block: impl Fn(usize) -> (u16, u16),
    distance: impl Fn(usize, usize) -> u16,
    timestamp: u32,
    bytes: (u8, u8),
) -> Vec<u8> {
    let shots = (0..32_u8).collect::<Vec<_>>();
    lay![blocks(block, |b, i| (distance(b, i), shots[i])), timestamp, bytes]
}

fn u16_of(number: usize) -> u16 {
    u16::try_from(number).expect("small")
}

fn place(azimuth: u16, laser: usize, raw: u16) -> Json {
    let (angle, turned) = (VLP16[laser].to_radians(), (f64::from(azimuth) / 100.0).to_radians());
    let metres = f64::from(raw) * 0.002;
    let ground = metres * angle.cos();
    let height = metres * angle.sin() - 0.04191 * angle.tan();
    let place = [ground * turned.cos(), -ground * turned.sin(), height];
    place.iter().map(|metres| format!("{metres:.5}")).collect()
}

/// Returns 16 packets with 0.44 degrees per block. The lasers 0 and 15 have returns in both firings
/// of the blocks 0 and 11.
fn vlp16() -> Log {
    let seen = |b: usize, shot: usize| (b == 0 || b == 11) && matches!(shot, 0 | 15 | 16 | 31);
    let raw = |b: usize, shot: usize| 2000 + 100 * u16_of(b + shot);
    let mut packets = Vec::new();
    let mut points: Vec<Json> = Vec::new();
    for i in 0..16_u16 {
        let azimuth = |b: usize| (35_000 + 528 * i + 44 * u16_of(b)) % 36_000;
        let distance = |b, shot| if seen(b, shot) { raw(b, shot) } else { 0 };
        let block = |b| (0xEEFF, azimuth(b));
        packets.push(packet(block, distance, 1_000_000 + 1327 * u32::from(i), (0x37, 0x22)));
        for b in [0, 11] {
            // The sensor turns by 44 hundredths of a degree in 110.592 µs. The second firing is
            // half of this time later, which adds 22. Laser 15 fires later than laser 0, which adds
            // 13.75.
            for (shot, step) in [(0, 0), (15, 14), (16, 22), (31, 36)] {
                points.push(place((azimuth(b) + step) % 36_000, shot % 16, raw(b, shot)));
            }
        }
    }
    // The azimuth passes 0 only in packet 1.
    let log = Log::new().velodyne(500.0, &packets).choice("velodyne", "VLP-16 strongest");
    log.fact("points", points).fact("revolutions", 2)
}

/// Returns packets with dual returns. Two blocks with the same azimuth contain the last and the
/// strongest return. Laser 0 has two different returns, and laser 15 only one.
fn dual() -> Log {
    let mut packets = Vec::new();
    let mut points: Vec<Json> = Vec::new();
    for i in 0..16_u16 {
        let azimuth = |b: usize| 100 + 264 * i + 44 * u16_of(b / 2);
        let raw = |b: usize, shot: usize| match (b, shot) {
            (0, 0) => 3000,
            (1, 0) => 2500,
            (0 | 1, 15) => 4000,
            _ => 0,
        };
        packets.push(packet(|b| (0xEEFF, azimuth(b)), raw, 1_000_000 + 664 * u32::from(i), (0x39, 0x22)));
        for (step, laser, raw) in [(0, 0, 3000), (0, 0, 2500), (14, 15, 4000)] {
            points.push(place(azimuth(0) + step, laser, raw));
        }
    }
    let log = Log::new().velodyne(500.0, &packets).choice("velodyne", "VLP-16 dual");
    log.fact("points", points).fact("revolutions", 1)
}

/// Returns `n` packets without returns, which are 553 microseconds apart.
fn empty(n: u32, from: u32, bytes: (u8, u8)) -> Vec<Vec<u8>> {
    let block = |b| (0xEEFF, u16_of(b));
    (0..n).map(|i| packet(block, |_, _| 0, (from + 553 * i) % 3_600_000_000, bytes)).collect()
}

fn hdl64() -> Log {
    let status = b"H\x0cM\x22S\x38D\x0eN\x06Y\x0aGAT\x24VG1U2N3I4T5#6\x187\x18";
    let one = |i: usize| {
        let block = |b| bank(b, 90 * i + 18 * (b / 2));
        packet(block, |_, _| 0, 5000 + 288 * u32_of(i), (status[2 * i], status[2 * i + 1]))
    };
    let log = Log::new().velodyne(500.0, &(0..16).map(one).collect::<Vec<_>>());
    log.choice("velodyne", "HDL-64E S2 strongest").fact("points_refused", "calibration")
}
