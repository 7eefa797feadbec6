//! Decoded points are compared with those of an independent decoder, and with the scene from which
//! the packets were made.

mod support;

use std::fs;
use std::path::PathBuf;

use support::{LOGS, open};
use vel_format::VelReader;
use vel_format::velodyne::{
    Calibration, Decoder, Model, OffsetModel, PacketClock, Point, PointOptions, Return, ReturnMode, Sensor,
};
use vel_format::wire::VelodynePacket;

fn expected(name: &str) -> PathBuf {
    LOGS.folder().expect("there are real logs").join("expected").join(name)
}

fn packets(reader: &VelReader) -> Vec<VelodynePacket> {
    reader.packets().flat_map(|(_, packets)| packets).copied().collect()
}

struct Row {
    at: [f64; 3],
    intensity: f64,
    time: f64,
    ring: u8,
    returned: u8,
}

fn rows(name: &str) -> Vec<Row> {
    let text = fs::read_to_string(expected(name)).expect("an expected result");
    let row = |line: &str| {
        let n: Vec<f64> = line.split(',').map(|cell| cell.parse().expect("a number")).collect();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small integers")]
        Row { at: [n[0], n[1], n[2]], intensity: n[3], time: n[4], ring: n[6] as u8, returned: n[7] as u8 }
    };
    text.lines().skip(1).map(row).collect()
}

/// Returns the points of packets. The times of points are counted from the timestamp of their
/// packet.
fn decode(decoder: &mut Decoder, packets: &[VelodynePacket]) -> Vec<Point> {
    let mut points = Vec::new();
    for packet in packets {
        let offset = i64::from(packet.stamp.get()) - i64::from(packets[0].stamp.get());
        decoder.packet(packet, i32::try_from(offset * 1000).unwrap(), &mut points);
    }
    points
}

fn compare(name: &str, got: &[Point], want: &[Row], limits: [f64; 3]) {
    assert_eq!(got.len(), want.len(), "{name}");
    let first = (got[0].nanos, want[0].time);
    let mut off = 0;
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        assert_eq!((got.ring, got.returned as u8), (want.ring, want.returned), "{name} {i}");
        assert!(
            (f64::from(got.intensity) - want.intensity).abs() < 0.01,
            "{name} {i}: {got:?} {}",
            want.intensity
        );
        let time = f64::from(got.nanos - first.0) / 1e9 - (want.time - first.1);
        assert!(time.abs() < 2e-6, "{name} {i}: {time}");
        let xyz = [got.x, got.y, got.z].map(f64::from);
        let far = (0..3).any(|axis| (xyz[axis] - want.at[axis]).abs() > limits[axis]);
        if far {
            // If an interpolated azimuth is halfway between two hundredths of a degree, it may be
            // rounded up or down.
            let range = xyz.iter().map(|x| x * x).sum::<f64>().sqrt();
            let by = (0..3).map(|axis| (xyz[axis] - want.at[axis]).abs()).fold(0.0, f64::max);
            assert!(by < range * 1.8e-4, "{name} {i}: {xyz:?} {:?}", want.at);
            off += 1;
        }
    }
    assert!(off * 50 <= got.len(), "{name}: {off} of {} points are elsewhere", got.len());
}

#[test]
fn points_equal_those_of_another_decoder() {
    for (name, model, mode, millimetre) in [
        ("hdl32e", Model::Hdl32, ReturnMode::Strongest, false),
        ("vlp16", Model::Vlp16, ReturnMode::Strongest, false),
        ("vlp16_dual", Model::Vlp16, ReturnMode::Dual, false),
        ("puck_hires", Model::PuckHiRes, ReturnMode::Strongest, true),
        ("vlp32c", Model::Vlp32C, ReturnMode::Strongest, false),
        ("vls128", Model::Vls128, ReturnMode::Strongest, false),
    ] {
        let Some(log) = LOGS.real_log(name) else { return };
        let reader = open(&log.bytes);
        let sensor = reader.meaning().velodyne.clone().expect("a model");
        assert_eq!(
            (sensor.model, sensor.mode, sensor.assumed),
            (model, mode, false),
            "{name}: {}",
            sensor.evidence
        );
        let mut decoder = Decoder::of(&sensor, None, PointOptions::default()).unwrap();
        let points = decode(&mut decoder, &packets(&reader)[..6]);
        let z = if millimetre { 1e-3 } else { 1e-4 };
        compare(name, &points, &rows(&format!("{name}_first6packets.csv")), [1.01e-4, 1.01e-4, z]);
        if model != Model::Vls128 {
            let exact = PointOptions::default().with_exact_azimuth();
            let mut decoder = Decoder::of(&sensor, None, exact).unwrap();
            for (exact, rounded) in decode(&mut decoder, &packets(&reader)[..6]).iter().zip(&points) {
                let range = f32::from(rounded.distance) * 0.004;
                assert!((exact.x - rounded.x).hypot(exact.y - rounded.y) < 1e-4 * range.max(1.0), "{name}");
            }
        }
    }
}

fn calibration() -> Calibration {
    Calibration::parse(&fs::read_to_string(expected("hdl64_db.xml")).unwrap()).unwrap()
}

#[test]
fn points_of_an_hdl64_equal_those_of_another_decoder() {
    let Some(log) = LOGS.real_log("hdl64_revolution") else { return };
    let reader = open(&log.bytes);
    let sensor = reader.meaning().velodyne.clone().expect("a model");
    assert_eq!((sensor.model, sensor.mode), (Model::Hdl64S2, ReturnMode::Strongest), "{}", sensor.evidence);
    let options = PointOptions::default().plain().with_corrected_intensity();
    let packets = packets(&reader);
    let mut decoder = Decoder::of(&sensor, Some(&calibration()), options).unwrap();
    let points = decode(&mut decoder, &packets[..6]);
    compare("hdl64", &points, &rows("hdl64_first6packets.csv"), [1.01e-4; 3]);

    let mut two_point = calibration();
    for laser in &mut two_point.lasers {
        laser.distance_x = laser.distance + 0.03;
        laser.distance_y = laser.distance - 0.02;
    }
    let mut decoder = Decoder::of(&sensor, Some(&two_point), options).unwrap();
    let points = decode(&mut decoder, &packets[..3]);
    compare("two points", &points, &rows("hdl64_first3packets_twopoint.csv"), [1.01e-4; 3]);
    assert!(Decoder::of(&sensor, None, options).is_err());
}

/// If the vertical offsets are perpendicular to the beams, nearly all points of the walls are on
/// the walls. If the offsets are along the z axis, they are not.
#[test]
fn points_are_on_the_walls() {
    let Some(log) = LOGS.real_log("hdl64_revolution") else { return };
    let reader = open(&log.bytes);
    let calibration = calibration();
    for (offsets, limit) in [(OffsetModel::Perpendicular, 0.001), (OffsetModel::Plain, 0.028)] {
        let mut options = PointOptions::default().with_exact_azimuth();
        options.offsets = offsets;
        let mut revolutions = reader.revolutions(None, Some(&calibration), options, 0).unwrap();
        let mut distances = Vec::new();
        while let Some(revolution) = revolutions.next() {
            for point in revolution.points.iter().filter(|p| p.z > -1.5) {
                if (point.y + 12.0).abs() < 0.3 {
                    distances.push((point.y + 12.0).abs());
                } else if (point.y - 10.0).abs() < 0.3 {
                    distances.push((point.y - 10.0).abs());
                }
            }
        }
        distances.sort_by(f32::total_cmp);
        assert!(distances.len() > 10_000);
        let p95 = distances[distances.len() * 95 / 100];
        assert!(p95 < limit * 1.3, "{offsets:?}: 95 % within {p95} m");
    }
}

/// The calibration is decoded from the status bytes, regardless of where in the calibration table
/// the log starts.
#[test]
fn a_calibration_is_recovered_from_status_bytes() {
    let Some(log) = LOGS.real_log("hdl64_revolution") else { return };
    let template = packets(&open(&log.bytes))[0];
    let bytes = fs::read(expected("hdl64_status.bin")).unwrap();
    let status: Vec<VelodynePacket> = bytes
        .chunks_exact(2)
        .map(|pair| VelodynePacket { return_mode: pair[0], product: pair[1], ..template })
        .collect();
    let want = calibration();
    let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
    let check = |found: &Calibration| {
        assert_eq!(found.lasers.len(), 64);
        for (a, b) in found.lasers.iter().zip(&want.lasers) {
            assert_eq!((a.id, a.min_intensity, a.max_intensity), (b.id, b.min_intensity, b.max_intensity));
            assert!(
                near(a.vertical, b.vertical) && near(a.rotation, b.rotation) && near(a.distance, b.distance)
            );
            assert!(
                near(a.vertical_offset, b.vertical_offset) && near(a.horizontal_offset, b.horizontal_offset)
            );
            assert!(near(a.focal_distance, b.focal_distance) && near(a.focal_slope, b.focal_slope));
        }
    };
    for start in [0, 5, 160, 300] {
        let found = Calibration::from_status(&status[start..]).expect("a whole table");
        assert!(!found.verified);
        check(&found);
    }
    // The sensor sends the table repeatedly. 4500 packets contain one complete table, and 340
    // packets of the next table.
    let whole = &status[..4160];
    let twice: Vec<_> = whole[1000..].iter().chain(whole).chain(whole).copied().collect();
    let found = Calibration::from_status(&twice).expect("a whole table");
    assert!(found.verified);
    check(&found);
    // If a packet is missing in every table, no table is complete.
    let torn: Vec<_> = status.iter().enumerate().filter(|(i, _)| i % 3000 != 2999).map(|(_, p)| *p).collect();
    assert_eq!(Calibration::from_status(&torn), None);
    assert_eq!(Calibration::from_status(&status[..4000]), None);
}

#[test]
fn revolutions_have_every_point_once() {
    for name in ["hdl32e", "vlp16", "vlp16_dual", "hdl64_revolution", "vls128", "good"] {
        let Some(log) = LOGS.real_log(name) else { return };
        let reader = open(&log.bytes);
        let sensor = reader.meaning().velodyne.clone().expect("a model");
        let calibration = sensor.model.is_hdl64().then(calibration);
        let mut decoder = Decoder::of(&sensor, calibration.as_ref(), PointOptions::default()).unwrap();
        let all = decode(&mut decoder, &packets(&reader));
        let mut revolutions =
            reader.revolutions(None, calibration.as_ref(), PointOptions::default(), 0).unwrap();
        let (mut count, mut last, mut partial) = (0, i64::MIN, 0);
        while let Some(revolution) = revolutions.next() {
            for (i, point) in revolution.points.iter().enumerate() {
                let want = all[count + i];
                assert_eq!(
                    (point.x, point.distance, point.laser),
                    (want.x, want.distance, want.laser),
                    "{name}"
                );
            }
            count += revolution.points.len();
            partial += u32::from(revolution.partial);
            assert!(revolution.nanos > last, "{name}");
            last = revolution.nanos;
        }
        assert_eq!(count, all.len(), "{name}");
        assert!(partial >= 1, "{name}: the last one has no end");
    }
}

#[test]
fn packets_are_timed_by_their_timestamps() {
    let Some(log) = LOGS.real_log("vlp16") else { return };
    let reader = open(&log.bytes);
    let sensor = reader.meaning().velodyne.clone().expect("a model");
    let clock = reader.packet_clock(&sensor);
    assert!(matches!(clock, PacketClock::Timestamps(_)), "{clock:?}");
    let mut last = i64::MIN;
    for (message, packets) in reader.packets() {
        for i in 0..packets.len() {
            let at = clock.at(message.nanos, packets, i);
            assert!(at > last && (message.nanos - at).abs() < 1_000_000_000);
            last = at;
        }
    }
}

fn packet(timestamp: u32, bytes: (u8, u8)) -> VelodynePacket {
    let zero = [0; 1206];
    let mut packet: VelodynePacket = zerocopy::FromBytes::read_from_bytes(&zero[..]).unwrap();
    packet.stamp = rovelog_core::internal::wire::U32Le::new(timestamp);
    (packet.return_mode, packet.product) = bytes;
    for block in &mut packet.blocks {
        block.flag = rovelog_core::internal::wire::U16Le::new(0xEEFF);
    }
    packet
}

#[test]
fn models_need_several_packets_and_timestamps_may_pass_the_hour() {
    let one = vel_format::velodyne::detect(&[packet(0, (0x37, 0x22))]).unwrap();
    assert!(one.assumed);
    let unset: Vec<_> = (0..20).map(|i| packet(i * 553, (0, 0))).collect();
    let old: Sensor = vel_format::velodyne::detect(&unset).unwrap();
    assert_eq!((old.model, old.assumed), (Model::Hdl32, false), "{}", old.evidence);
    let hour = 3_600_000_000_u32;
    let timestamps: Vec<_> =
        [hour - 600, hour - 47, 506, 1059].map(|timestamp| packet(timestamp % hour, (0x37, 0x21))).to_vec();
    let messages = [(1_000_000_000, &timestamps[..2]), (1_001_106_000, &timestamps[2..])];
    let clock = PacketClock::infer(Model::Hdl32, ReturnMode::Strongest, messages);
    let times: Vec<_> = messages
        .iter()
        .flat_map(|(nanos, packets)| (0..2).map(|i| clock.at(*nanos, packets, i)).collect::<Vec<_>>())
        .collect();
    let steps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(steps, [553_000; 3]);
    assert_eq!(Return::Both as u8, 3);
}

/// Returns a log of a VLP-16 that does not turn. It has packets for `seconds` seconds, and each
/// message has 20 packets.
fn standing_still(seconds: u32) -> Vec<u8> {
    let block = [&[0xFF, 0xEE, 0x28, 0x23][..], &[0x88, 0x13, 50].repeat(32)].concat();
    let message = |first: u32| {
        let packets = (first..first + 20).flat_map(|number| {
            let end = [&(number * 1327).to_le_bytes()[..], &[0x37, 0x22]].concat();
            [block.repeat(12), end].concat()
        });
        message_of(&packets.collect::<Vec<_>>(), 20, 1000.0 + f64::from(first) * 1.327)
    };
    let messages = (0..seconds * 753 / 20).flat_map(|number| message(20 * number));
    SIGNATURE.iter().copied().chain(messages).collect()
}

const SIGNATURE: &[u8] = b"\xa4VEL\x01\0\x01\0\0\0\0\0";

/// Returns a message with Velodyne packets.
fn message_of(packets: &[u8], count: u32, millis: f64) -> Vec<u8> {
    let data = [&count.to_le_bytes()[..], packets].concat();
    let size = u32::try_from(17 + data.len()).expect("small");
    let head = [&size.to_le_bytes()[..], &[0x49], &0x3112b_i32.to_le_bytes(), &100_i32.to_le_bytes()];
    [&head.concat()[..], &millis.to_le_bytes(), &data].concat()
}

/// In dual return mode, four blocks of an HDL-64E belong to one firing. A new revolution starts only
/// between two firings, even if the azimuth passes the cut between two blocks of a firing.
#[test]
fn a_revolution_starts_between_two_firings() {
    let mut packets = [0, 1, 2].map(|number| packet(288 * number, (0x39, 0xA1)));
    for (number, block) in (0_u16..).zip(packets.iter_mut().flat_map(|packet| &mut packet.blocks)) {
        // Block 22 of all blocks is the first behind the cut, and belongs to the firing of 20 to 23.
        block.azimuth = rovelog_core::internal::wire::U16Le::new((36_000 - 2_150 + 100 * number) % 36_000);
        block.flag = rovelog_core::internal::wire::U16Le::new([0xEEFF, 0xDDFF][usize::from(number % 2)]);
        for shot in &mut block.returns {
            shot.distance = rovelog_core::internal::wire::U16Le::new(1000);
        }
    }
    let reader = open(
        &[SIGNATURE, &message_of(zerocopy::IntoBytes::as_bytes(&packets[..]), 3, 1000.0)].concat().into(),
    );
    let sensor = Sensor::named(Model::Hdl64S3, ReturnMode::Dual);
    let laser =
        |id: i32| format!("<item><px><id_>{id}</id_><vertCorrection_>{id}</vertCorrection_></px></item>");
    let xml = format!("<DB><points_>{}</points_></DB>", (0..64).map(laser).collect::<String>());
    let calibration = Calibration::parse(&xml).unwrap();
    let mut revolutions =
        reader.revolutions(Some(&sensor), Some(&calibration), PointOptions::default(), 0).unwrap();
    // The strongest and the last return are equal, so two blocks have one point per laser.
    let mut blocks = Vec::new();
    while let Some(revolution) = revolutions.next() {
        blocks.push(revolution.points.len() as f64 / 16.0);
    }
    assert_eq!(blocks, [24.0, 12.0]);
}

/// A sensor that does not turn has no revolutions. So its points are returned in parts of one
/// second.
#[test]
fn points_of_a_sensor_that_stands_still_are_returned_by_the_second() {
    let reader = open(&standing_still(6).into());
    let all: usize = reader.packets().map(|(_, packets)| 12 * 32 * packets.len()).sum();
    let mut revolutions = reader.revolutions(None, None, PointOptions::default(), 0).unwrap();
    let (mut count, mut number) = (0, 0);
    while let Some(revolution) = revolutions.next() {
        assert!(revolution.partial);
        let last = revolution.points.iter().map(|point| point.nanos).max().expect("points");
        assert!((0..1_100_000_000).contains(&last), "{last}");
        (count, number) = (count + revolution.points.len(), number + 1);
    }
    assert_eq!((count, number), (all, 6));
}
