//! Slice = stream, fed byte by byte too; declaration = view; the order of records = a plain sort.

mod support;

use std::io::Cursor;

use binrw::{BinRead, BinWrite};
use rovelog_core::{LogReader, ReadOptions, Select};
use rovelog_testing::{Dribble, PIECES, assert_alike};
use support::{corpus, picture, picture_of_stream, real};
use vel_format::wire::{FileIndex, GpsData, ImageData, LaserRange, ObdData, RobotPose, VelodyneRawData};
use vel_format::{Kind, Message, Payload, VelReader};

#[test]
fn the_stream_fed_in_any_pieces_equals_the_slice() {
    for log in corpus().into_iter().chain(real()) {
        let Ok(reader) = VelReader::new(log.bytes.clone(), &ReadOptions::default()) else {
            assert!(
                vel_format::VelStream::new(&log.bytes[..], &ReadOptions::default()).is_err(),
                "{}",
                log.name
            );
            continue;
        };
        let want = picture(&reader);
        // Large logs not byte by byte.
        let first = usize::from(log.bytes.len() > 100_000);
        for sizes in &PIECES[first..] {
            let got = picture_of_stream(Dribble::new(&log.bytes, *sizes));
            assert_alike(&format!("{} {sizes:?}", log.name), &want, &got);
        }
    }
}

/// A message through its declaration is the message through its view.
fn same(message: &Message<'_>) {
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
fn declarations_are_the_views() {
    for log in corpus().into_iter().chain(real()) {
        let Ok(reader) = VelReader::new(log.bytes.clone(), &ReadOptions::default()) else { continue };
        for message in reader.messages() {
            same(&message);
            for cut in (0..message.data.len()).rev().step_by(1 + message.data.len() / 20) {
                let mut short = message;
                short.data = &message.data[..cut];
                same(&short);
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
fn records_come_in_the_order_of_time() {
    for log in corpus().into_iter().chain(real()) {
        let Ok(reader) = VelReader::new(log.bytes.clone(), &ReadOptions::default()) else { continue };
        let mut want: Vec<_> = reader
            .records_in_file_order()
            .map(|record| (record.time.unwrap().nanos, record.offset, record.seq, record.topic.id))
            .collect();
        want.sort_by_key(|record| (record.0, record.1));
        let key = |record: rovelog_core::Result<rovelog_core::Record<'_>>| {
            let record = record.unwrap();
            (record.time.unwrap().nanos, record.offset, record.seq, record.topic.id)
        };
        let got: Vec<_> = reader.records(&Select::all()).map(key).collect();
        assert_eq!(got, want, "{}", log.name);
        let Some((middle, ..)) = want.get(want.len() / 2).copied() else { continue };
        let select = Select::all().between(Some(middle), None);
        let kept: Vec<_> = want.iter().filter(|record| record.0 >= middle).copied().collect();
        assert_eq!(reader.records(&select).map(key).collect::<Vec<_>>(), kept, "{}", log.name);
        // The last record of each topic before the window comes first.
        let latched: Vec<_> = reader.records(&select.with_latched()).map(key).collect();
        let before = latched.len() - kept.len();
        assert_eq!(latched[before..], kept);
        for topic in reader.topics() {
            let last = want.iter().rfind(|record| record.3 == topic.id && record.0 < middle);
            let got = latched[..before].iter().find(|record| record.3 == topic.id);
            assert_eq!(got, last, "{} {}", log.name, topic.name);
        }
    }
}

#[test]
fn payloads_are_borrowed_from_the_file() {
    for log in corpus() {
        let Ok(reader) = VelReader::new(log.bytes.clone(), &ReadOptions::default()) else { continue };
        let span = log.bytes.as_ptr_range();
        for record in reader.records_in_file_order() {
            assert!(record.payload.is_empty() || span.contains(&record.payload.as_ptr()));
        }
    }
}
