//! Velodyne packets: models, returns, revolutions, and points worked out by the formulas of section 7 of
//! docs/formats/vel.md.

use serde_json::Value as Json;

use super::log::Log;
use super::{Case, Made};
use crate::corpus::lay::Lay;

pub(super) const CASES: &[Case] = &[
    Case::vel("velodyne-vlp16", "a VLP-16: points, azimuths of single shots", &["D29", "D31", "D35"], vlp16),
    Case::vel("velodyne-vlp16-dual", "two returns a shot; equal ones are one point", &["D31"], dual),
    Case::vel(
        "velodyne-hdl32-old",
        "old firmware leaves the last bytes unset: stamps tell",
        &["D29", "D35"],
        hdl32_old,
    ),
    Case::vel("velodyne-few-packets", "too few packets to be sure", &["D29"], few),
    Case::vel(
        "velodyne-hdl64-s2",
        "status bytes that change: an HDL-64E, without its calibration",
        &["D29", "D30"],
        hdl64,
    ),
    Case::vel("velodyne-hour", "stamps that run over the hour", &["D35"], hour),
];

/// The vertical angles of a VLP-16 in firing order.
const VLP16: [f64; 16] =
    [-15.0, 1.0, -13.0, 3.0, -11.0, 5.0, -9.0, 7.0, -7.0, 9.0, -5.0, 11.0, -3.0, 13.0, -1.0, 15.0];

/// A packet: the flag and azimuth of each block, distances by block and shot, stamp and last bytes.
fn packet(
    block: impl Fn(usize) -> (u16, u16),
    distance: impl Fn(usize, usize) -> u16,
    stamp: u32,
    bytes: (u8, u8),
) -> Vec<u8> {
    let mut lay = Lay::new();
    for b in 0..12 {
        let (flag, azimuth) = block(b);
        lay = lay.u16(flag).u16(azimuth);
        for shot in 0..32 {
            lay = lay.u16(distance(b, shot)).u8(u8::try_from(shot).expect("small"));
        }
    }
    lay.u32(stamp).u8(bytes.0).u8(bytes.1).done()
}

fn place(azimuth: u16, laser: usize, raw: u16) -> Json {
    let (angle, turned) = (VLP16[laser].to_radians(), (f64::from(azimuth) / 100.0).to_radians());
    let metres = f64::from(raw) * 0.002;
    let ground = metres * angle.cos();
    let height = metres * angle.sin() - 0.04191 * angle.tan();
    let place = [ground * turned.cos(), -ground * turned.sin(), height];
    place.iter().map(|metres| format!("{metres:.5}")).collect()
}

/// 16 packets, 0.44 degrees a block; lasers 0 and 15 of both firings of blocks 0 and 11 see something.
fn vlp16() -> Made {
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
            // 44 hundredths of a degree in 110.592 us: 22 more for the second firing, 13.75 for laser 15.
            for (shot, step) in [(0, 0), (15, 14), (16, 22), (31, 36)] {
                points.push(place((azimuth(b) + step) % 36_000, shot % 16, raw(b, shot)));
            }
        }
    }
    let mut log = Log::new();
    log.velodyne(500.0, &packets);
    log.choice("velodyne", "VLP-16 strongest", false);
    log.fact("points", points.into());
    // The azimuth passes 0 once, in packet 1.
    log.fact("revolutions", 2.into());
    log.finish()
}

/// Blocks in pairs of one azimuth: last, then strongest. Laser 0 sees two things, laser 15 one.
fn dual() -> Made {
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
    let mut log = Log::new();
    log.velodyne(500.0, &packets);
    log.choice("velodyne", "VLP-16 dual", false);
    log.fact("points", points.into());
    log.fact("revolutions", 1.into());
    log.finish()
}

/// Packets without returns, so many microseconds apart.
fn empty(n: u32, apart: u32, from: u32, bytes: impl Fn(u32) -> (u8, u8)) -> Vec<Vec<u8>> {
    let one = |i: u32| {
        let stamp = (from + apart * i) % 3_600_000_000;
        packet(|b| (0xEEFF, u16::try_from(b).expect("small")), |_, _| 0, stamp, bytes(i))
    };
    (0..n).map(one).collect()
}

fn hdl32_old() -> Made {
    let mut log = Log::new();
    log.velodyne(500.0, &empty(16, 553, 7000, |_| (0, 0)));
    log.choice("velodyne", "HDL-32E strongest", false);
    log.finish()
}

fn few() -> Made {
    let mut log = Log::new();
    log.velodyne(500.0, &empty(2, 553, 7000, |_| (0x38, 0x21)));
    log.choice("velodyne", "HDL-32E last", true);
    log.finish()
}

fn hour() -> Made {
    let mut log = Log::new();
    log.velodyne(500.0, &empty(8, 553, 3_600_000_000 - 8 * 553, |_| (0x37, 0x21)));
    log.velodyne(500.0 + 8.0 * 0.553, &empty(8, 553, 0, |_| (0x37, 0x21)));
    log.choice("velodyne", "HDL-32E strongest", false);
    log.finish()
}

fn hdl64() -> Made {
    let status = b"H\x0cM\x22S\x38D\x0eN\x06Y\x0aGAT\x24VG1U2N3I4T5#6\x187\x18";
    let one = |i: usize| {
        let block = |b: usize| {
            let azimuth = u16::try_from(90 * i + 18 * (b / 2)).expect("small");
            (if b.is_multiple_of(2) { 0xEEFF } else { 0xDDFF }, azimuth)
        };
        let stamp = 5000 + 288 * u32::try_from(i).expect("small");
        packet(block, |_, _| 0, stamp, (status[2 * i], status[2 * i + 1]))
    };
    let mut log = Log::new();
    log.velodyne(500.0, &(0..16).map(one).collect::<Vec<_>>());
    log.choice("velodyne", "HDL-64E S2 strongest", false);
    log.fact("points_refused", "calibration".into());
    log.finish()
}
