//! Existing logs are written back byte for byte. New logs are read as they were written.

mod support;

use std::io::Cursor;

use proptest::prelude::*;
use rovelog_core::internal::wire::{F32Le, F64Le, I32Le, U32Le};
use rovelog_core::{LogReader, ReadOptions, State, Value};
use rovelog_testing::Full;
use support::{LOGS, open, rewritten};
use vel_format::wire::{
    Counted, GpsData, LaserRange, MARKER_ASCII, MARKER_INVALID, MARKER_PRINTED, ObdData, RobotPose, VelString,
};
use vel_format::{
    IndexOrigin, IndexState, NewMessage, Payload, SizeRule, VelReader, VelWriter, WriteOptions, write_log,
};

#[test]
fn every_corpus_log_is_rewritten_byte_for_byte() {
    for log in LOGS.corpus() {
        let Ok(reader) = VelReader::salvage(log.bytes.clone(), &ReadOptions::default()) else { continue };
        assert!(rewritten(&reader, &log.bytes) == log.bytes, "{}", log.name);
    }
}

fn check_same(log: &VelReader, messages: &[NewMessage<'_>]) {
    assert_eq!(log.messages().len(), messages.len());
    for (got, want) in log.messages().zip(messages) {
        assert_eq!(got.header.type_id.get(), want.type_id);
        assert_eq!(got.header.version.get(), want.version);
        assert_eq!(got.header.timestamp.get().to_bits(), want.millis.to_bits());
        assert_eq!(got.data, &want.data[..]);
    }
    assert_eq!(log.info().state, State::Complete);
}

fn drive(n: u32, step: f64) -> Vec<NewMessage<'static>> {
    let obd = |i: u32| {
        let zero = [0_u8; 28];
        let mut obd: ObdData = zerocopy::FromBytes::read_from_bytes(&zero[..]).unwrap();
        obd.speed = I32Le::new(i32::try_from(i).unwrap());
        NewMessage::new(100.0 + step * f64::from(i), &Payload::Obd(&obd))
    };
    (0..n).map(obd).collect()
}

#[test]
fn all_conventions_can_be_written() {
    let messages = drive(30, 333.0);
    for rule in SizeRule::ALL {
        for marker in [MARKER_PRINTED, MARKER_ASCII] {
            for terminated in [false, true] {
                let mut options = WriteOptions::default().with_size_rule(rule).with_marker(marker);
                if terminated {
                    options = options.with_terminator();
                }
                let mut out = Vec::new();
                let written = write_log(&messages, &options, &mut out).unwrap();
                assert_eq!((written.bytes, written.index_entries), (out.len() as u64, 10));
                let log = open(&out.into());
                check_same(&log, &messages);
                assert_eq!(log.size_rule(), rule);
                assert_eq!(*log.index(), IndexState::Good(IndexOrigin::FirstMessage));
            }
        }
    }
}

#[test]
fn the_index_of_a_recording_is_filled_extended_or_empty() {
    let messages = drive(40, 250.0);
    for reserve in [0, 3, 10, 100] {
        let options = WriteOptions::default().with_reserve(reserve);
        let mut log = VelWriter::new(Cursor::new(Vec::new()), options).unwrap();
        for message in &messages {
            log.write(message).unwrap();
        }
        let (out, written) = log.finish().unwrap();
        let out = out.into_inner();
        assert_eq!(written.bytes, out.len() as u64);
        assert_eq!(written.index_entries, u64::from(reserve.max(10)));
        let log = open(&out.into());
        check_same(&log, &messages);
        assert_eq!(*log.index(), IndexState::Good(IndexOrigin::FirstMessage), "{reserve}");
    }
    let mut log = VelWriter::streaming(Vec::new(), &WriteOptions::default()).unwrap();
    for message in &messages {
        log.write(message).unwrap();
    }
    let (out, written) = log.finish_streaming().unwrap();
    assert_eq!(written.index_entries, 0);
    let log = open(&out.into());
    check_same(&log, &messages);
    assert_eq!(*log.index(), IndexState::Absent);
}

/// The index of a recording has the same entries as the index of `write_log`. Both refer only to
/// valid messages.
#[test]
fn a_recording_with_invalid_messages_has_an_exact_index() {
    let mut messages = drive(12, 250.0);
    for invalid in [0, 4, 5] {
        messages[invalid].marker = Some(MARKER_INVALID);
    }
    let mut log = VelWriter::new(Cursor::new(Vec::new()), WriteOptions::default()).unwrap();
    for message in &messages {
        log.write(message).unwrap();
    }
    let (out, written) = log.finish().unwrap();
    assert_eq!(written.messages, 12);
    let log = open(&out.into_inner().into());
    assert_eq!(log.info().records, 9);
    assert_eq!(*log.index(), IndexState::Good(IndexOrigin::FirstMessage));
}

/// After an output error, the writer reports the error again for each call.
#[test]
fn a_failed_output_cannot_be_finished() {
    let mut log = VelWriter::streaming(Full(100), &WriteOptions::default()).unwrap();
    let messages = drive(3, 1.0);
    log.write(&messages[0]).unwrap();
    assert!(log.write(&messages[1]).is_err());
    let again = log.write(&messages[2]);
    assert!(
        matches!(&again, Err(vel_format::VelError::Io(why)) if why.to_string().starts_with("an earlier write failed"))
    );
    assert!(log.finish_streaming().is_err());
}

#[test]
fn own_types_are_written_and_read() {
    let mut options = ReadOptions::default();
    options.declarations = "message CompassM 101\n double heading deg\n string name".to_owned();
    let types = vel_format::declared::Types::parse(&options.declarations).unwrap();
    let value = Value::record([("heading", Value::F64(12.5)), ("name", Value::Text("mast".to_owned()))]);
    let message = NewMessage::declared(5.0, &types.declared()[0], &value).unwrap();
    let mut out = Vec::new();
    write_log(&[message], &WriteOptions::default(), &mut out).unwrap();
    let log = VelReader::new(out.into(), &options).unwrap();
    let record = log.records_in_file_order().next().unwrap();
    assert_eq!((record.topic.name.as_str(), record.value().unwrap()), ("CompassM", value));
    assert_eq!(
        log.own(record.topic).unwrap().definition().unwrap(),
        "message CompassM\n  double heading deg\n  string name\n"
    );
    let bad = Value::record([("heading", Value::Int(12, 32)), ("name", Value::Null)]);
    assert!(NewMessage::declared(5.0, &types.declared()[0], &bad).is_err());
}

fn message() -> impl Strategy<Value = NewMessage<'static>> {
    let floats = || any::<[f32; 4]>();
    let pose = (floats(), floats()).prop_map(move |(q, a)| {
        let pose =
            RobotPose { quaternion: q.map(F32Le::new), acceleration: [a[0], a[1], a[2]].map(F32Le::new) };
        NewMessage::new(0.0, &Payload::Pose(&pose))
    });
    let gps = any::<([f64; 2], [i32; 9])>().prop_map(move |(place, n)| {
        let zero = [0_u8; 80];
        let mut gps: GpsData = zerocopy::FromBytes::read_from_bytes(&zero[..]).unwrap();
        (gps.latitude, gps.longitude) = (F64Le::new(place[0]), F64Le::new(place[1]));
        (gps.day, gps.month, gps.year) = (I32Le::new(n[0]), I32Le::new(n[1]), I32Le::new(n[2]));
        (gps.hour, gps.minute, gps.second) = (I32Le::new(n[3]), I32Le::new(n[4]), I32Le::new(n[5]));
        gps.quality = I32Le::new(n[6]);
        NewMessage::new(0.0, &Payload::Gps(&gps))
    });
    let bytes = || proptest::collection::vec(any::<u8>(), 0..40);
    let laser =
        (bytes(), bytes(), proptest::collection::vec(any::<u32>(), 0..20)).prop_map(|(a, b, ranges)| {
            let ranges: Vec<_> = ranges.into_iter().map(U32Le::new).collect();
            let [sensor_type, sensor_name] = [&a[..], &b].map(|text| VelString(Counted(text)));
            let scan = LaserRange { sensor_type, sensor_name, ranges: Counted(&ranges) };
            NewMessage::new(0.0, &Payload::Laser(scan))
        });
    let raw = (any::<u32>(), any::<i32>(), bytes())
        .prop_map(|(id, version, data)| NewMessage::raw(id, version, 0.0, data));
    (prop_oneof![pose, gps, laser, raw], -1e6..1e6_f64).prop_map(|(mut message, millis)| {
        message.millis = millis;
        message
    })
}

proptest! {
    /// Logs with any messages and any options are read as they were written, if the size rule can
    /// be inferred from the first message.
    #[test]
    fn written_messages_are_read_unchanged(
        mut messages in proptest::collection::vec(message(), 0..12),
        rule in 0..3_usize,
        reserve in 0..5_u32,
    ) {
        messages.splice(0..0, drive(2, 5.0));
        // Messages whose data is too short for their type are skipped.
        let fits = |m: &NewMessage<'_>| {
            vel_format::Kind::of(m.type_id, m.version).is_none_or(|kind| Payload::view(kind, &m.data).is_some())
        };
        messages.retain(fits);
        let options = WriteOptions::default().with_size_rule(SizeRule::ALL[rule]).with_reserve(reserve);
        let mut log = VelWriter::new(Cursor::new(Vec::new()), options).unwrap();
        for message in &messages {
            log.write(message).unwrap();
        }
        let (out, _) = log.finish().unwrap();
        let bytes = out.into_inner().into();
        let log = open(&bytes);
        check_same(&log, &messages);
        prop_assert_eq!(rewritten(&log, &bytes), bytes);
    }
}
