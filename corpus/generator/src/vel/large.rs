//! Large VEL logs of a drive with an HDL-64E at full rate, three cameras, two laser scanners,
//! poses, GPS and vehicle data. The calibration of the HDL-64E is also written as a file, for
//! readers that need one.

use std::f64::consts::TAU;
use std::fs::{self, File};
use std::io::{BufWriter, Cursor, Seek, SeekFrom, Write};

use anyhow::Result;
use image::codecs::jpeg::JpegEncoder;

use super::kinds::{GPS, IMAGE, Kind, LASER, Message, OBD, POSE, Position, VELODYNE, position, scan};
use super::log::Log;
use super::sensors::{bank, blocks};
use crate::large::{Large, Order};
use crate::lay::{lay, u32_of};
use crate::shape::{Value, values};

pub(super) const LARGE: Large = Large { stem: "drive", default: 400_000_000, from: None, write };

/// Number of packets in a revolution at 600 revolutions per minute. A message has one revolution.
const PACKETS: usize = 348;
const PACKETS_OF_MESSAGE: usize = 29;
const PACKET: usize = 1206;

fn write(order: &Order, out: &mut BufWriter<File>) -> Result<String> {
    let lasers = lasers();
    let mut yaml = order.out.clone().into_os_string();
    yaml.push(".calibration.yaml");
    fs::write(yaml, calibration(&lasers))?;
    let drive = Drive { turn: revolution(), table: table(&lasers), pictures: pictures()? };
    let bytes_of_turn = drive.messages(0).iter().map(|message| message.data.len() + 21).sum::<usize>();
    let turns = usize::try_from(order.size)? / bytes_of_turn;
    // There are ten revolutions per second, so each index entry has the offset of the first message
    // of a revolution.
    let entries = turns.div_ceil(10);
    let mut index = Vec::new();
    out.seek(SeekFrom::Start(12 + 8 * entries as u64))?;
    let mut messages = 0;
    let log = Log::new();
    for turn in 0..turns {
        if turn % 10 == 0 {
            index.push(out.stream_position()?);
        }
        for message in drive.messages(turn) {
            out.write_all(&log.frame(&message))?;
            messages += 1;
        }
    }
    out.rewind()?;
    out.write_all(&lay![b"\xa4VEL\x01\x00\x01\x00", u32_of(entries), index])?;
    Ok(format!("{messages} messages, {} s", turns as f64 / 10.0))
}

/// Parts of the drive that are repeated.
struct Drive {
    turn: Vec<u8>,
    table: Vec<u8>,
    pictures: Vec<Vec<u8>>,
}

impl Drive {
    /// Returns the messages during a revolution, which takes a tenth of a second.
    fn messages(&self, turn: usize) -> Vec<Message> {
        let start = 5000.0 + 100.0 * turn as f64;
        let of = |kind: &Kind, more: f64, values: &[Value]| kind.message(start + more, values);
        let mut all: Vec<Message> = Vec::new();
        for (i, packets) in self.turn.chunks(PACKETS_OF_MESSAGE * PACKET).enumerate() {
            let mut data = lay![u32_of(PACKETS_OF_MESSAGE), packets];
            for (j, packet) in data[4..].chunks_mut(PACKET).enumerate() {
                self.set_timestamp(packet, turn * PACKETS + i * PACKETS_OF_MESSAGE + j);
            }
            let more = 100.0 / 12.0 * i as f64;
            all.push(Message::new(VELODYNE.id, start + more, data));
            if i % 3 == 1 {
                let picture = &self.pictures[(turn + i) % self.pictures.len()];
                let source = i32::try_from((turn * 4 + i / 3) % 3).expect("small");
                all.push(of(&IMAGE, more + 1.0, &values![source, true, 640, 480, &picture[..]]));
            }
            if i % 3 == 2 {
                all.push(of(&POSE, more + 1.0, &values![[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 9.81]]));
            }
        }
        let scanners = [("Hokuyo_URG-04LX", "front", 682, 93.0), ("Hokuyo_UTM-30LX", "rear", 1081, 94.0)];
        for (kind, name, count, more) in scanners {
            let ranges = (0..count).map(|i| 500 + (i * 37 + u32_of(turn)) % 4000).collect();
            all.push(of(&LASER, more, &scan((kind.as_bytes(), kind), (name.as_bytes(), name), ranges)));
        }
        let speed = 30 + i32::try_from(turn % 20).expect("small");
        all.push(of(&OBD, 95.0, &values![speed, 1800, 0.0, 0, 0, 12.5, 0]));
        if turn.is_multiple_of(10) {
            let seconds = i32::try_from(turn / 10).expect("small");
            let time = (12 + seconds / 3600, seconds / 60 % 60, seconds % 60);
            let latitude = 50.36 + 9e-5 * f64::from(seconds);
            all.push(of(&GPS, 96.0, &Position { time, latitude, speed: 36.0, ..position(0) }.values()));
        }
        all
    }

    /// Sets the timestamp and the status bytes of packet `n` of the drive.
    fn set_timestamp(&self, packet: &mut [u8], n: usize) {
        const STATE: &[u8] = b"H\x0cM\x22S\x38D\x0eN\x06Y\x0aGAT\x24VG";
        let micros = (n as u64 * 288) % 3_600_000_000;
        packet[1200..1204].copy_from_slice(&u32::try_from(micros).expect("less than an hour").to_le_bytes());
        let (cycle, place) = (n / 16, n % 16);
        let status = match place.checked_sub(9) {
            None => [STATE[2 * place], STATE[2 * place + 1]],
            Some(i) => [b"1234567"[i], self.table[(cycle * 7 + i) % self.table.len()]],
        };
        packet[1204..].copy_from_slice(&status);
    }
}

/// Returns a revolution, which has 2088 firings of both banks of lasers.
fn revolution() -> Vec<u8> {
    let packet = |packet: usize| {
        let block = |b| bank(b, (packet * 6 + b / 2) * 36_000 / (PACKETS * 6));
        lay![blocks(block, |b, shot| seen(b % 2 * 32 + shot, block(b).1)), [0_u8; 6]]
    };
    (0..PACKETS).flat_map(packet).collect()
}

/// Returns the distance and intensity of a shot. The scene has walls on both sides and the ground
/// between them. Some shots have no return.
fn seen(laser: usize, azimuth: u16) -> (u16, u8) {
    let noise = u32_of(laser).wrapping_mul(2_654_435_761) ^ u32::from(azimuth).wrapping_mul(40_503);
    if noise.is_multiple_of(19) {
        return (0, 0);
    }
    let side = (f64::from(azimuth) / 36_000.0 * TAU).sin().abs().max(0.08);
    let metres = (10.0 / side).min(4.0 + 1.7 * laser as f64).min(115.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and below 131 m")]
    let raw = (metres * 500.0) as u16 + u16::try_from(noise >> 8 & 15).expect("four bits");
    (raw, u8::try_from(noise >> 16 & 127).expect("seven bits"))
}

/// Returns the calibration of 64 lasers in the units of the status bytes: vertical angle, rotation,
/// distance, distX, distY, vertical offset, horizontal offset, focal distance, and slope.
fn lasers() -> Vec<[i16; 9]> {
    let laser = |i: i16| {
        let vertical = if i < 32 { 200 - i * 33 } else { -883 - (i - 32) * 50 };
        let (rotation, distance, focal) = ((i % 8 - 4) * 150, 1150 + i * 3, 1400 + i * 10);
        [vertical, rotation, distance, distance + 30, distance - 20, 205 - i, 26 - 52 * (i % 2), focal, 14]
    };
    (0..64).map(laser).collect()
}

/// Returns the table that the status bytes contain.
fn table(lasers: &[[i16; 9]]) -> Vec<u8> {
    let laser = |(id, values)| lay![u8::try_from(id).expect("small"), values, 30_u8, 235_u8, [0_u8; 7]];
    let lasers: Vec<_> = lasers.iter().enumerate().map(laser).collect();
    lay![b"UNIT#\x18\x18", lasers, 600_u16, [0_u8; 17], 1820_u16]
}

/// Returns the calibration in the YAML format of the ROS driver.
fn calibration(lasers: &[[i16; 9]]) -> String {
    let mut text = "distance_resolution: 0.002\nlasers:\n".to_owned();
    for (id, l) in lasers.iter().enumerate() {
        let angle = |i: usize| (f64::from(l[i]) / 100.0).to_radians();
        let metres = |i: usize| f64::from(l[i]) / 1000.0;
        let values = [
            ("  - dist_correction", metres(2)),
            ("    dist_correction_x", metres(3)),
            ("    dist_correction_y", metres(4)),
            ("    focal_distance", metres(7)),
            ("    focal_slope", f64::from(l[8]) / 10.0),
            ("    horiz_offset_correction", metres(6)),
            ("    laser_id", id as f64),
            ("    max_intensity", 235.0),
            ("    min_intensity", 30.0),
            ("    rot_correction", angle(1)),
            ("    vert_correction", angle(0)),
            ("    vert_offset_correction", metres(5)),
        ];
        text.extend(values.map(|(name, value)| format!("{name}: {value}\n")));
    }
    text + "num_lasers: 64\n"
}

/// Returns JPEG images of 640 x 480 pixels. Edges and noise make them as large as those of a
/// camera.
fn pictures() -> Result<Vec<Vec<u8>>> {
    let picture = |number: u32| {
        let picture = image::RgbImage::from_fn(640, 480, |x, y| {
            let mixed = x.wrapping_mul(1_103_515_245) ^ y.wrapping_mul(12_345) ^ number;
            let noise = mixed.wrapping_mul(2_654_435_761) >> 27;
            let sky = if y < 200 { 150 } else { 60 };
            let edge = if (x / 40 + y / 30 + number).is_multiple_of(3) { 50 } else { 0 };
            let value = |more: u32| u8::try_from((sky + edge + noise + more).min(255)).unwrap_or(255);
            image::Rgb([value(x / 16), value(y / 8), value(20)])
        });
        let mut out = Cursor::new(Vec::new());
        picture.write_with_encoder(JpegEncoder::new_with_quality(&mut out, 80))?;
        Ok(out.into_inner())
    };
    (0..8).map(picture).collect()
}
