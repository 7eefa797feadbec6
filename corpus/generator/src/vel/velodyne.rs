//! Velodyne packets: models, returns, revolutions, and points computed with the formulas of section
//! 7 of docs/formats/vel.md.

use serde_json::Value as Json;

use super::log::Log;
use crate::cases;
use crate::lay::{Laid, lay};

cases! {
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

/// Vertical angles of a VLP-16 in firing order.
const VLP16: [f64; 16] =
    [-15.0, 1.0, -13.0, 3.0, -11.0, 5.0, -9.0, 7.0, -7.0, 9.0, -5.0, 11.0, -3.0, 13.0, -1.0, 15.0];

/// Returns a packet: flag and azimuth of each block, distances by block and shot, timestamp and
/// last bytes.
fn packet(
    block: impl Fn(usize) -> (u16, u16),
    distance: impl Fn(usize, usize) -> u16,
    timestamp: u32,
    bytes: (u8, u8),
) -> Vec<u8> {
    let mut packet = Vec::new();
    for b in 0..12 {
        block(b).lay(&mut packet);
        for shot in 0..32_u8 {
            (distance(b, shot.into()), shot).lay(&mut packet);
        }
    }
    lay![packet, timestamp, bytes]
}

fn place(azimuth: u16, laser: usize, raw: u16) -> Json {
    let (angle, turned) = (VLP16[laser].to_radians(), (f64::from(azimuth) / 100.0).to_radians());
    let metres = f64::from(raw) * 0.002;
    let ground = metres * angle.cos();
    let height = metres * angle.sin() - 0.04191 * angle.tan();
    let place = [ground * turned.cos(), -ground * turned.sin(), height];
    place.iter().map(|metres| format!("{metres:.5}")).collect()
}

/// Returns 16 packets, 0.44 degrees per block; lasers 0 and 15 have returns in both firings of
/// blocks 0 and 11.
fn vlp16() -> Log {
    let seen = |b: usize, shot: usize| (b == 0 || b == 11) && matches!(shot, 0 | 15 | 16 | 31);
    let raw = |b: usize, shot: usize| 2000 + 100 * u16::try_from(b + shot).expect("small");
    let mut packets = Vec::new();
    let mut points: Vec<Json> = Vec::new();
    for i in 0..16_u16 {
        let azimuth = |b: usize| (35_000 + 528 * i + 44 * u16::try_from(b).expect("small")) % 36_000;
        packets.push(packet(
            |b| (0xEEFF, azimuth(b)),
            |b, shot| if seen(b, shot) { raw(b, shot) } else { 0 },
            1_000_000 + 1327 * u32::from(i),
            (0x37, 0x22),
        ));
        for b in [0, 11] {
            // 44 hundredths of a degree in 110.592 us: 22 more for the second firing, 13.75 for
            // laser 15.
            for (shot, step) in [(0, 0), (15, 14), (16, 22), (31, 36)] {
                points.push(place((azimuth(b) + step) % 36_000, shot % 16, raw(b, shot)));
            }
        }
    }
    // The azimuth passes 0 once, in packet 1.
    Log::new()
        .velodyne(500.0, &packets)
        .choice("velodyne", "VLP-16 strongest")
        .fact("points", points)
        .fact("revolutions", 2)
}

/// Returns blocks in pairs of one azimuth: last return, then strongest. Laser 0 has two returns,
/// laser 15 one.
fn dual() -> Log {
    let mut packets = Vec::new();
    let mut points: Vec<Json> = Vec::new();
    for i in 0..16_u16 {
        let azimuth = |b: usize| 100 + 264 * i + 44 * u16::try_from(b / 2).expect("small");
        let raw = |b: usize, shot: usize| match (b, shot) {
            (0, 0) => 3000,
            (1, 0) => 2500,
            (0 | 1, 15) => 4000,
            _ => 0,
        };
        packets.push(packet(|b| (0xEEFF, azimuth(b)), raw, 1_000_000 + 664 * u32::from(i), (0x39, 0x22)));
        points.push(place(azimuth(0), 0, 3000));
        points.push(place(azimuth(0), 0, 2500));
        points.push(place(azimuth(0) + 14, 15, 4000));
    }
    Log::new()
        .velodyne(500.0, &packets)
        .choice("velodyne", "VLP-16 dual")
        .fact("points", points)
        .fact("revolutions", 1)
}

/// Returns packets without returns, 553 microseconds apart.
fn empty(n: u32, from: u32, bytes: (u8, u8)) -> Vec<Vec<u8>> {
    let block = |b: usize| (0xEEFF, u16::try_from(b).expect("small"));
    (0..n).map(|i| packet(block, |_, _| 0, (from + 553 * i) % 3_600_000_000, bytes)).collect()
}

fn hdl64() -> Log {
    let status = b"H\x0cM\x22S\x38D\x0eN\x06Y\x0aGAT\x24VG1U2N3I4T5#6\x187\x18";
    let one = |i: usize| {
        let block = |b: usize| {
            let azimuth = u16::try_from(90 * i + 18 * (b / 2)).expect("small");
            (if b.is_multiple_of(2) { 0xEEFF } else { 0xDDFF }, azimuth)
        };
        let timestamp = 5000 + 288 * u32::try_from(i).expect("small");
        packet(block, |_, _| 0, timestamp, (status[2 * i], status[2 * i + 1]))
    };
    Log::new()
        .velodyne(500.0, &(0..16).map(one).collect::<Vec<_>>())
        .choice("velodyne", "HDL-64E S2 strongest")
        .fact("points_refused", "calibration")
}
