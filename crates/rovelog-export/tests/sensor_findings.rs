//! Findings of power logs, ROS bags and VEL logs that the tests write. The expected times and values
//! follow from what is written.

use std::io::Cursor;

use rovelog::rld_format::unit::Unit;
use rovelog::rld_format::wire::BlockTimes;
use rovelog::rld_format::{ChannelSpec, LogSpec, RldWriter, encode_row};
use rovelog::rosbag12::BagWriter;
use rovelog::vel_format::{Kind as MessageKind, NewMessage, VelReader, VelWriter, WriteOptions};
use rovelog::{AnyLog, ReadOptions};
use rovelog_export::findings::{Finding, Kind, Severity, findings};
use rovelog_testing::{VEL, root};

fn findings_of(bytes: Vec<u8>) -> Vec<Finding> {
    findings(&rovelog::from_bytes(bytes.into(), &ReadOptions::default()).unwrap()).unwrap()
}

/// Writes a power log of 4 s at 1 kHz. `current` returns the low range, which is always marked as
/// valid, and the high range at a row, both in µA.
fn power_log(current: impl Fn(usize) -> [i64; 2]) -> Vec<u8> {
    let channels = vec![
        ChannelSpec::range("I1L_valid"),
        ChannelSpec::analog("I1L", Unit::Ampere, -6).valid_if("I1L_valid"),
        ChannelSpec::analog("I1H", Unit::Ampere, -6),
    ];
    let spec = LogSpec { channels, ..LogSpec::new(1000) };
    let mut writer = RldWriter::new(Cursor::new(Vec::new()), spec.header().unwrap()).unwrap();
    let layout = writer.layout().clone();
    for block in 0..4_usize {
        let mut rows = Vec::new();
        for row in 0..1000 {
            encode_row(&layout, &[1], &current(1000 * block + row), &mut rows).unwrap();
        }
        let nanos = 1_500_000_000_000_000_000 + block as i128 * 1_000_000_000;
        let times = BlockTimes::new(nanos, nanos).unwrap();
        writer.block(&times, &rows).unwrap();
    }
    writer.finish_in_place().unwrap().0.into_inner()
}

#[test]
fn a_current_beyond_its_range_is_a_finding() {
    // The current is 0.6 A for 100 ms, and for a single row, which is a spike of a range switch.
    let found = findings_of(power_log(|row| {
        [0, if (2000..2100).contains(&row) || row == 500 { 600_000 } else { 0 }]
    }));
    let [over] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((over.kind, over.severity), (Kind::CurrentOutOfRange, Severity::Medium));
    let evidence = &over.evidence[0];
    assert_eq!((&*evidence.signal, evidence.value, evidence.limit), ("samples.I1H", Some(0.6), Some(0.5)));
    assert_eq!(over.end - over.start, 99_000_000);
}

#[test]
fn a_range_bit_that_contradicts_both_ranges_is_stuck() {
    // Both ranges measure 5 mA for 1.5 s, which the low range cannot measure.
    let found =
        findings_of(power_log(|row| if (1000..2500).contains(&row) { [5000, 5000] } else { [100, 100] }));
    let [stuck] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((stuck.kind, stuck.severity), (Kind::StuckRangeBit, Severity::High));
    assert_eq!((&*stuck.evidence[0].signal, stuck.end - stuck.start), ("samples.I1L", 1_499_000_000));
    assert_eq!(findings_of(power_log(|_| [100, 100])), [], "a current of 100 µA is in both ranges");
}

#[test]
fn a_message_that_arrives_late_is_a_finding() {
    let definition =
        "Header header\n================\nMSG: std_msgs/Header\nuint32 seq\ntime stamp\nstring frame_id\n";
    let mut writer = BagWriter::new(Cursor::new(Vec::new())).unwrap();
    let md5 = b"0123456789abcdef0123456789abcdef";
    let topic = writer.connect(b"/pose", b"test/Stamped", md5, definition.as_bytes()).unwrap();
    for number in 0..100u32 {
        let received = 1_000_000_000 + u64::from(number) * 100_000_000;
        // The measurement is 20 ms old, but 3 s in message 60.
        let stamp = received - if number == 60 { 3_000_000_000 } else { 20_000_000 };
        let parts = |nanos: u64| {
            [nanos / 1_000_000_000, nanos % 1_000_000_000].map(|part| u32::try_from(part).unwrap())
        };
        let received = parts(received);
        let measured = parts(stamp);
        let payload: Vec<u8> =
            [number, measured[0], measured[1], 0].iter().flat_map(|part| part.to_le_bytes()).collect();
        writer.message(topic, received[0], received[1], None, &payload).unwrap();
    }
    let found = findings_of(writer.finish().unwrap().into_inner());
    let [late] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((late.kind, late.start), (Kind::LateMessages, 1_000_000_000 + 60 * 100_000_000));
    let value = late.evidence[0].value.unwrap();
    assert!((value - 2.98).abs() < 1e-6, "{value}");
}

/// Writes a VEL log with the messages that `keep` selects. The argument of `keep` is the index of
/// the message among those of its kind.
fn copied(log: &VelReader, kind: MessageKind, keep: impl Fn(usize) -> bool) -> Vec<u8> {
    let mut writer = VelWriter::new(Cursor::new(Vec::new()), WriteOptions::default()).unwrap();
    let mut index = 0;
    for message in log.messages() {
        let is_kept = message.kind() != Some(kind) || keep(index);
        index += usize::from(message.kind() == Some(kind));
        if is_kept {
            writer.write(&NewMessage::copy(&message)).unwrap();
        }
    }
    writer.finish().unwrap().0.into_inner()
}

#[test]
fn a_sensor_that_repeats_its_values_is_frozen() {
    let bytes = std::fs::read(root().join("corpus/vel/pose-wxyz.vel")).unwrap();
    let log = VelReader::new(bytes.into(), &ReadOptions::default()).unwrap();
    let first = log.messages().find(|message| message.kind() == Some(MessageKind::Pose)).unwrap();
    let write = |count: u32| {
        let mut writer = VelWriter::new(Cursor::new(Vec::new()), WriteOptions::default()).unwrap();
        let header = first.header;
        for number in 0..count {
            let (id, version) = (header.type_id.get(), header.version.get());
            writer.write(&NewMessage::raw(id, version, 20.0 * f64::from(number), first.data)).unwrap();
        }
        findings_of(writer.finish().unwrap().0.into_inner())
    };
    let found = write(200);
    let frozen: Vec<_> = found.iter().filter(|finding| finding.kind == Kind::FrozenSensor).collect();
    let [frozen] = &frozen[..] else { panic!("{found:#?}") };
    let evidence = &frozen.evidence[0];
    assert_eq!((evidence.value, evidence.limit), (Some(199.0 * 0.02), Some(1.0)));
    assert!(write(50).iter().all(|finding| finding.kind != Kind::FrozenSensor), "less than a second");
}

#[test]
fn missing_packets_of_a_scanner_are_counted() {
    let Some(file) = VEL.real_log("vlp16") else { return };
    let AnyLog::Vel(log) = rovelog::from_bytes(file.bytes, &ReadOptions::default()).unwrap() else {
        panic!()
    };
    let packets: Vec<usize> = log.packets().map(|(_, packets)| packets.len()).collect();
    let lost = |bytes| {
        let found = findings_of(bytes);
        found.into_iter().find(|finding| finding.kind == Kind::LostPackets)
    };
    assert_eq!(lost(copied(&log, MessageKind::Velodyne, |_| true)), None);
    let middle = packets.len() / 2;
    let found = lost(copied(&log, MessageKind::Velodyne, |index| index != middle)).expect("a finding");
    assert!(found.sentence.contains(&format!("About {} packets", packets[middle])), "{}", found.sentence);
}
