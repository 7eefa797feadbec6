//! Everything that reads the same bytes must say the same: stream and slice, declaration and view; and the order of
//! records is a plain sort.

mod support;

use std::io::Cursor;

use binrw::{BinRead, BinWrite};
use rovelog_core::ReadOptions;
use rovelog_testing::{Dribble, Log, PIECES, assert_alike, check_order};
use support::{LOGS, picture, picture_of_stream, readable, try_open};
use vel_format::wire::{FileIndex, GpsData, ImageData, LaserRange, ObdData, RobotPose, VelodyneRawData};
use vel_format::{Kind, Message, Payload, VelStream};

fn check_stream(log: &Log, sizes: &[usize]) {
    let dribble = Dribble::new(&log.bytes, sizes);
    let Some(reader) = try_open(&log.bytes) else {
        assert!(VelStream::new(dribble, &ReadOptions::default()).is_err(), "{}", log.name);
        return;
    };
    assert_alike(&format!("{} {sizes:?}", log.name), &picture(&reader), &picture_of_stream(dribble));
}

#[test]
fn the_stream_fed_in_any_pieces_equals_the_slice() {
    for log in LOGS.corpus() {
        for sizes in PIECES {
            check_stream(&log, sizes);
        }
    }
}

#[test]
fn the_stream_equals_the_slice_on_real_logs() {
    for log in LOGS.real() {
        // Large logs not byte by byte.
        let first = usize::from(log.bytes.len() > 100_000);
        for sizes in &PIECES[first..] {
            check_stream(&log, sizes);
        }
    }
}

/// A message through its declaration is the message through its view.
fn check_twins(message: &Message<'_>) {
    let data = message.data;
    let left = (data.len() as u64,);
    let view = message.payload();
    let reader = &mut Cursor::new(data);
    let mut out = Cursor::new(Vec::new());
    match message.kind() {
        Some(Kind::Obd) => match (ObdData::read(reader), view) {
            (Ok(declared), Some(Payload::Obd(view))) => assert_eq!(declared, *view),
            (declared, view) => assert!(declared.is_err() && view.is_none()),
        },
        Some(Kind::Gps) => match (GpsData::read(reader), view) {
            (Ok(declared), Some(Payload::Gps(view))) => assert_eq!(declared, *view),
            (declared, view) => assert!(declared.is_err() && view.is_none()),
        },
        Some(Kind::Pose) => match (RobotPose::read(reader), view) {
            (Ok(declared), Some(Payload::Pose(view))) => assert_eq!(declared, *view),
            (declared, view) => assert!(declared.is_err() && view.is_none()),
        },
        Some(Kind::Image) => match (ImageData::read_args(reader, left), view) {
            (Ok(declared), Some(Payload::Image(view))) => {
                assert_eq!((&declared.head, &declared.data[..]), (view.head, view.data));
            }
            (declared, view) => assert!(declared.is_err() && view.is_none()),
        },
        Some(Kind::Velodyne) => match (VelodyneRawData::read_args(reader, left), view) {
            (Ok(declared), Some(Payload::Velodyne(view))) => assert_eq!(declared.packets, view),
            (declared, view) => assert!(declared.is_err() && view.is_none()),
        },
        Some(Kind::Laser) => match (LaserRange::read_args(reader, left), view) {
            (Ok(declared), Some(Payload::Laser(view))) => {
                assert_eq!(declared.sensor_type.bytes, view.sensor_type);
                assert_eq!(declared.sensor_name.bytes, view.sensor_name);
                assert_eq!(declared.ranges, view.ranges);
                declared.write(&mut out).unwrap();
                assert_eq!(&data[..out.get_ref().len()], &out.get_ref()[..]);
            }
            (declared, view) => assert!(declared.is_err() && view.is_none()),
        },
        None => assert!(matches!(view, Some(Payload::Raw(raw)) if raw == data)),
    }
}

#[test]
fn declarations_and_views_agree_on_every_message() {
    for (_, reader) in readable() {
        for message in reader.messages() {
            check_twins(&message);
            for cut in (0..message.data.len()).rev().step_by(1 + message.data.len() / 20) {
                let mut short = message;
                short.data = &message.data[..cut];
                check_twins(&short);
            }
        }
    }
}

/// A count that memory cannot hold is refused before anything is reserved.
#[test]
fn absurd_counts_reserve_nothing() {
    let bytes = [0xFF; 64];
    let left = (64,);
    assert!(FileIndex::read_args(&mut Cursor::new(&bytes), left).is_err());
    assert!(ImageData::read_args(&mut Cursor::new(&bytes), left).is_err());
    assert!(VelodyneRawData::read_args(&mut Cursor::new(&bytes), left).is_err());
    assert!(LaserRange::read_args(&mut Cursor::new(&bytes), left).is_err());
}

#[test]
fn records_come_in_the_order_of_time_and_offset() {
    for (log, reader) in readable() {
        let records = reader.records_in_file_order();
        let timed = records.map(|record| (record.time.expect("messages have times").nanos, record));
        check_order(&log.name, &reader, timed);
    }
}

/// Zero copy: a record's payload is the log's own memory.
#[test]
fn records_borrow_from_the_log() {
    for log in LOGS.corpus() {
        let Some(reader) = try_open(&log.bytes) else { continue };
        let inside = log.bytes.as_ptr_range();
        for record in reader.records_in_file_order() {
            assert!(record.payload.is_empty() || inside.contains(&record.payload.as_ptr()));
        }
    }
}
