//! Large VEL logs: a drive with an HDL-64E at full rate, three cameras, two laser scanners, pose, GPS and vehicle data, as
//! long as it takes; and the sensor's calibration as a file, for readers that need one.

use std::f64::consts::TAU;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Cursor, Write};

use anyhow::Result;
use image::codecs::jpeg::JpegEncoder;

use super::kinds::{Position, gps_data, image_data, laser_data, obd_data, pose_data, position};
use super::log::{GPS, IMAGE, LASER, OBD, POSE, VELODYNE};
use crate::corpus::large::{Large, Order};
use crate::corpus::lay::Lay;

pub(super) const LARGE: Large = Large { stem: "drive", default: 400_000_000, from: None, write };

/// Packets of a revolution at 600 turns a minute, and of a message.
const PACKETS: usize = 348;
const PACKETS_OF_MESSAGE: usize = 29;
const PACKET: usize = 1206;

fn write(order: &Order, out: &mut BufWriter<File>) -> Result<String> {
    let lasers = lasers();
    let mut yaml = order.out.clone().into_os_string();
    yaml.push(".calibration.yaml");
    fs::write(yaml, calibration(&lasers))?;
    let drive = Drive { turn: revolution(), table: table(&lasers), pictures: pictures()? };
    let bytes_of_turn = drive.messages(0).iter().map(|message| message.1.len() + 21).sum::<usize>();
    let turns = usize::try_from(order.size)? / bytes_of_turn;
    // Ten turns a second, so that each entry names the first message of a turn.
    let entries = turns.div_ceil(10);
    let mut lay = Lay::new().bytes(b"\xa4VEL\x01\x00\x01\x00").u32(u32::try_from(entries)?);
    let mut at = 12 + 8 * entries;
    for turn in 0..turns {
        if turn % 10 == 0 {
            lay = lay.u64(at as u64);
        }
        at += drive.messages(turn).iter().map(|message| message.1.len() + 21).sum::<usize>();
    }
    out.write_all(&lay.done())?;
    let mut messages = 0;
    for turn in 0..turns {
        for (kind, data, millis) in drive.messages(turn) {
            let head =
                Lay::new().u32(u32::try_from(data.len())? + 17).u8(0x49).u32(kind.0).i32(kind.1).f64(millis);
            out.write_all(&head.done())?;
            out.write_all(&data)?;
            messages += 1;
        }
    }
    Ok(format!("{messages} messages, {} s", turns as f64 / 10.0))
}

/// What the drive repeats.
struct Drive {
    turn: Vec<u8>,
    table: Vec<u8>,
    pictures: Vec<Vec<u8>>,
}

type Message = ((u32, i32), Vec<u8>, f64);

impl Drive {
    /// The messages of a turn, a tenth of a second.
    fn messages(&self, turn: usize) -> Vec<Message> {
        let start = 5000.0 + 100.0 * turn as f64;
        let mut all: Vec<Message> = Vec::new();
        for (i, packets) in self.turn.chunks(PACKETS_OF_MESSAGE * PACKET).enumerate() {
            let mut data =
                Lay::new().u32(u32::try_from(PACKETS_OF_MESSAGE).expect("small")).bytes(packets).done();
            for (j, packet) in data[4..].chunks_mut(PACKET).enumerate() {
                self.stamp(packet, turn * PACKETS + i * PACKETS_OF_MESSAGE + j);
            }
            all.push((VELODYNE, data, start + 100.0 / 12.0 * i as f64));
            if i % 3 == 1 {
                let picture = &self.pictures[(turn + i) % self.pictures.len()];
                let source = i32::try_from((turn * 4 + i / 3) % 3).expect("small");
                all.push((
                    IMAGE,
                    image_data(source, 1, 640, 480, picture),
                    start + 100.0 / 12.0 * i as f64 + 1.0,
                ));
            }
            if i % 3 == 2 {
                let data = pose_data([1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 9.81]);
                all.push((POSE, data, start + 100.0 / 12.0 * i as f64 + 1.0));
            }
        }
        let ranges = |n: u32| {
            (0..n).map(|i| 500 + (i * 37 + u32::try_from(turn).expect("small")) % 4000).collect::<Vec<_>>()
        };
        all.push((LASER, laser_data(b"Hokuyo_URG-04LX", b"front", &ranges(682)), start + 93.0));
        all.push((LASER, laser_data(b"Hokuyo_UTM-30LX", b"rear", &ranges(1081)), start + 94.0));
        let speed = 30 + i32::try_from(turn % 20).expect("small");
        all.push((OBD, obd_data(speed, 1800, 12.5), start + 95.0));
        if turn.is_multiple_of(10) {
            let seconds = i32::try_from(turn / 10).expect("small");
            let place = Position {
                time: (12 + seconds / 3600, seconds / 60 % 60, seconds % 60),
                latitude: 50.36 + 9e-5 * f64::from(seconds),
                speed: 36.0,
                ..position(0)
            };
            all.push((GPS, gps_data(&place), start + 96.0));
        }
        all
    }

    /// Sets the stamp and the status bytes of packet `n` of the drive.
    fn stamp(&self, packet: &mut [u8], n: usize) {
        const STATE: &[u8] = b"H\x0cM\x22S\x38D\x0eN\x06Y\x0aGAT\x24VG";
        let micros = (n as u64 * 288) % 3_600_000_000;
        packet[1200..1204].copy_from_slice(&u32::try_from(micros).expect("less than an hour").to_le_bytes());
        let (cycle, place) = (n / 16, n % 16);
        let status = if place < 9 {
            [STATE[2 * place], STATE[2 * place + 1]]
        } else {
            let kind = b'1' + u8::try_from(place - 9).expect("small");
            [kind, self.table[(cycle * 7 + place - 9) % self.table.len()]]
        };
        packet[1204..].copy_from_slice(&status);
    }
}

/// One turn of 2088 firings of both banks.
fn revolution() -> Vec<u8> {
    let mut turn = Vec::new();
    for packet in 0..PACKETS {
        let mut lay = Lay::new();
        for block in 0..12 {
            let firing = packet * 6 + block / 2;
            let azimuth = u16::try_from(firing * 36_000 / (PACKETS * 6)).expect("a turn");
            lay = lay.u16(if block % 2 == 0 { 0xEEFF } else { 0xDDFF }).u16(azimuth);
            for shot in 0..32 {
                let laser = (block % 2) * 32 + shot;
                let (raw, intensity) = seen(laser, azimuth);
                lay = lay.u16(raw).u8(intensity);
            }
        }
        turn.extend(lay.bytes(&[0; 6]).done());
    }
    turn
}

/// Walls to both sides, the ground before them, and some shots that come back from nothing.
fn seen(laser: usize, azimuth: u16) -> (u16, u8) {
    let number = u32::try_from(laser).expect("small");
    let noise = number.wrapping_mul(2_654_435_761) ^ u32::from(azimuth).wrapping_mul(40_503);
    if noise.is_multiple_of(19) {
        return (0, 0);
    }
    let side = (f64::from(azimuth) / 36_000.0 * TAU).sin().abs().max(0.08);
    let metres = (10.0 / side).min(4.0 + 1.7 * laser as f64).min(115.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and below 131 m")]
    let raw = (metres * 500.0) as u16 + u16::try_from(noise >> 8 & 15).expect("four bits");
    (raw, u8::try_from(noise >> 16 & 127).expect("seven bits"))
}

/// Sixty-four lasers in raw status units: vertical, rotation, distance, distX, distY, vertical and horizontal
/// offset, focal distance, slope.
fn lasers() -> Vec<[i16; 9]> {
    let laser = |i: i16| {
        let vertical = if i < 32 { 200 - i * 33 } else { -883 - (i - 32) * 50 };
        let distance = 1150 + i * 3;
        [
            vertical,
            (i % 8 - 4) * 150,
            distance,
            distance + 30,
            distance - 20,
            205 - i,
            26 - 52 * (i % 2),
            1400 + i * 10,
            14,
        ]
    };
    (0..64).map(laser).collect()
}

/// The table that the status bytes spell.
fn table(lasers: &[[i16; 9]]) -> Vec<u8> {
    let mut lay = Lay::new().bytes(b"UNIT#\x18\x18");
    for (id, laser) in lasers.iter().enumerate() {
        lay = lay.u8(u8::try_from(id).expect("small"));
        for value in laser {
            lay = lay.u16(value.cast_unsigned());
        }
        lay = lay.u8(30).u8(235).bytes(&[0; 7]);
    }
    lay.u16(600).bytes(&[0; 17]).u16(1820).done()
}

/// The same as the YAML of the ROS driver.
fn calibration(lasers: &[[i16; 9]]) -> String {
    let mut text = "distance_resolution: 0.002\nlasers:\n".to_owned();
    for (id, l) in lasers.iter().enumerate() {
        let angle = |i: usize| (f64::from(l[i]) / 100.0).to_radians();
        let metres = |i: usize| f64::from(l[i]) / 1000.0;
        let _ = writeln!(
            text,
            "  - dist_correction: {}\n    dist_correction_x: {}\n    dist_correction_y: {}\n    focal_distance: {}\n    \
             focal_slope: {:.1}\n    horiz_offset_correction: {}\n    laser_id: {id}\n    max_intensity: 235\n    \
             min_intensity: 30\n    rot_correction: {}\n    vert_correction: {}\n    vert_offset_correction: {}",
            metres(2),
            metres(3),
            metres(4),
            metres(7),
            f64::from(l[8]) / 10.0,
            metres(6),
            angle(1),
            angle(0),
            metres(5),
        );
    }
    text.push_str("num_lasers: 64\n");
    text
}

/// Pictures of 640 x 480 with edges and noise, as a camera's JPEGs have them.
fn pictures() -> Result<Vec<Vec<u8>>> {
    (0..8_u32)
        .map(|number| {
            let picture = image::RgbImage::from_fn(640, 480, |x, y| {
                let noise = (x.wrapping_mul(1_103_515_245) ^ y.wrapping_mul(12_345) ^ number)
                    .wrapping_mul(2_654_435_761)
                    >> 27;
                let sky = if y < 200 { 150 } else { 60 };
                let edge = if (x / 40 + y / 30 + number).is_multiple_of(3) { 50 } else { 0 };
                let value = |more: u32| u8::try_from((sky + edge + noise + more).min(255)).unwrap_or(255);
                image::Rgb([value(x / 16), value(y / 8), value(20)])
            });
            let mut out = Cursor::new(Vec::new());
            picture.write_with_encoder(JpegEncoder::new_with_quality(&mut out, 80))?;
            Ok(out.into_inner())
        })
        .collect()
}
