//! The stream and the reader must return the same results for all logs. Records must be in the same
//! order as after a plain sort.

mod support;

use std::io::Cursor;

use binrw::BinRead;
use rovelog_core::ReadOptions;
use rovelog_core::internal::layout::Fit;
use rovelog_testing::{Dribble, Log, READ_SIZES, assert_alike, check_order};
use support::{LOGS, picture, picture_of_stream, readable, try_open};
use vel_format::wire::FileIndex;
use vel_format::{Kind, Payload, VelStream};

fn check_stream(log: &Log, sizes: &[usize]) {
    let dribble = Dribble::new(&log.bytes, sizes);
    let Some(reader) = try_open(&log.bytes) else {
        assert!(VelStream::new(dribble, &ReadOptions::default()).is_err(), "{}", log.name);
        return;
    };
    assert_alike(&format!("{} {sizes:?}", log.name), &picture(&reader), &picture_of_stream(dribble));
}

#[test]
fn streams_of_any_chunk_size_equal_the_reader() {
    for log in LOGS.corpus() {
        for sizes in READ_SIZES {
            check_stream(&log, sizes);
        }
    }
}

#[test]
fn streams_equal_the_reader_on_real_logs() {
    for log in LOGS.real() {
        // Large logs are not read one byte at a time, because this would take too long.
        let first = usize::from(log.bytes.len() > 100_000);
        for sizes in &READ_SIZES[first..] {
            check_stream(&log, sizes);
        }
    }
}

/// If a message is truncated before the end of its content, it has no content. If bytes after the
/// content are truncated, the content does not change.
#[test]
fn content_is_complete_or_none() {
    for (_, reader) in readable() {
        for message in reader.messages().filter(|message| message.kind().is_some()) {
            let whole = message.payload();
            for cut in (0..message.data.len()).rev().step_by(1 + message.data.len() / 20) {
                let mut short = message;
                short.data = &message.data[..cut];
                let (id, version) = (short.header.type_id.get(), short.header.version.get());
                match (reader.types().fit(id, version, short.data), short.payload()) {
                    (Some(Fit::Short(_)), content) => assert!(content.is_none()),
                    // The message is truncated after its content.
                    (_, content) => assert_eq!(content, whole),
                }
            }
        }
    }
}

/// An element count is rejected if its elements would exceed the memory.
#[test]
fn counts_beyond_the_data_are_rejected() {
    let bytes = [0xFF; 64];
    assert!(FileIndex::read_args(&mut Cursor::new(&bytes), (&bytes,)).is_err());
    for kind in [Kind::Image, Kind::Velodyne, Kind::Laser] {
        assert!(Payload::view(kind, &bytes).is_none());
    }
}

#[test]
fn records_are_ordered_by_time_and_offset() {
    for (log, reader) in readable() {
        let records = reader.records_in_file_order();
        let timed = records.map(|record| (record.time.expect("messages have times").nanos, record));
        check_order(&log.name, &reader, timed);
    }
}

/// The data of a record is a part of the log in memory, so nothing is copied.
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
