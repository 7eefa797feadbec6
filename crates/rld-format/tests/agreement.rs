//! The reader and the stream must return the same results for all logs, and the declarations for
//! reading must agree with the zero-copy views. Records must be in the same order as after a plain
//! sort.

mod support;

use rld_format::clock::{TimeAxis, TimeBase, TimeOptions};
use rld_format::wire::{BlockTimes, Header, LeadIn};
use rld_format::{RldReader, RldStream};
use rovelog_core::{LogReader, LogStream, ReadOptions, Record, Select};
use rovelog_testing::{Dribble, Log, READ_SIZES, assert_alike, check_order};
use serde_json::{Value as Json, json};
use support::{LOGS, open, picture, picture_of_stream, readable, stream, try_open};
use zerocopy::{FromBytes, IntoBytes};

/// Replaces the times in `picture` with the times of a stream, which are counted at the true rate
/// from the first block time.
fn with_stream_times(log: &RldReader, mut picture: Json) -> Json {
    let times = log.times(TimeOptions::new(TimeAxis::TrueRate, TimeBase::Unix));
    let time = |row: u64| times.time(row).map_or(Json::Null, |nanos| nanos.to_string().into());
    for (row, record) in (0..).zip(picture["records"].as_array_mut().expect("records")) {
        record["t_ns"] = time(row);
    }
    picture["start_ns"] = time(0);
    picture["end_ns"] = log.rows().checked_sub(1).map_or(Json::Null, time);
    if !picture["data_ns"].is_null() {
        picture["data_ns"] = Json::Array(vec![picture["start_ns"].clone(), picture["end_ns"].clone()]);
    }
    // A stream uses the Unix clock, because it cannot know that the clock will be set later.
    if picture["clock"] == "boot" {
        (picture["clock"], picture["utc"]) = ("unix".into(), Json::Null);
    }
    picture.as_object_mut().expect("an object").remove("rld");
    picture
}

fn check_stream(log: &Log, sizes: &[usize]) {
    let Some(reader) = try_open(&log.bytes) else {
        let dribble = Dribble::new(&log.bytes, sizes);
        assert!(RldStream::new(dribble, &ReadOptions::default()).is_err(), "{}", log.name);
        return;
    };
    let want = with_stream_times(&reader, picture(&reader));
    let got = picture_of_stream(&mut stream(&log.bytes, sizes));
    assert_alike(&format!("{} {sizes:?}", log.name), &want, &got);
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
        let reader = open(&log.bytes);
        let times = reader.times(TimeOptions::new(TimeAxis::TrueRate, TimeBase::Unix));
        for size in [7, 1000] {
            let mut stream = stream(&log.bytes, &[size]);
            let mut records = reader.records_in_file_order();
            while let Some(got) = stream.next_record().expect("readable") {
                let want = records.next().expect("as many records");
                assert_eq!(
                    (got.offset, got.seq, got.payload),
                    (want.offset, want.seq, want.payload),
                    "{}",
                    log.name
                );
                assert_eq!(got.time.map(|t| t.nanos), times.time(got.seq), "{}", log.name);
                // The times of the fit and those of the stream differ by at most the delay of block
                // times.
                let apart = got.time.expect("a time").nanos - want.time.expect("a time").nanos;
                let slack = if reader.clock_report().mismatch { 15_000_000 } else { 600_000 };
                assert!(apart.abs() <= slack, "{}: {apart} ns", log.name);
            }
            assert!(records.next().is_none(), "{}", log.name);
            assert_eq!(stream.diagnostics().list(), reader.diagnostics().list(), "{}", log.name);
        }
    }
}

#[test]
fn declarations_and_views_agree() {
    for (log, reader) in readable() {
        let header = reader.header();
        // If the magic number is damaged, the header has the correct magic number instead.
        let mut bytes = log.bytes.to_vec();
        bytes[..4].copy_from_slice(&header.lead_in.magic);
        let view = LeadIn::ref_from_prefix(&bytes).expect("an opened log has a lead-in").0;
        assert_eq!(&header.lead_in, view, "{}", log.name);
        let len = usize::try_from(header.size()).expect("small");
        assert_eq!(header.to_bytes(), bytes[..len], "{}", log.name);
        let again = Header::from_bytes(&bytes, Some(u32::try_from(header.comment.len()).expect("small")));
        assert_eq!(&again.expect("the same header"), header, "{}", log.name);
        for (row, block_times) in reader.block_times() {
            let (first, copy) = reader.block_of(row).expect("a block");
            assert_eq!((first, &copy), (row, block_times), "{}", log.name);
            let read =
                <BlockTimes as binrw::BinRead>::read(&mut std::io::Cursor::new(block_times.as_bytes()));
            assert_eq!(&read.expect("block times"), block_times, "{}", log.name);
        }
    }
}

#[test]
fn records_are_ordered_by_time_and_offset() {
    for (log, reader) in readable() {
        // Records without a time come before all others.
        let time = |record: &Record<'_>| record.time.map_or(i64::MIN, |time| time.nanos);
        check_order(&log.name, &reader, reader.records_in_file_order().map(|record| (time(&record), record)));
    }
}

#[test]
fn an_ambient_file_is_a_second_topic() {
    let Some(folder) = LOGS.folder() else { return };
    let part = |name: &str| std::fs::read(folder.join(name)).expect("a real log").into();
    let names = |stem: &str| [format!("{stem}.rld"), format!("{stem}_p1.rld"), format!("{stem}_p2.rld")];
    let join = |stem| RldReader::join(names(stem).map(|name| part(&name)).to_vec(), &ReadOptions::default());
    let log = join("v4_split").expect("parts").with_ambient(join("v4_split-ambient").expect("parts"));
    assert_eq!(log.info().records, 2803);
    let topics: Vec<_> = log.topics().iter().map(|topic| (topic.name.as_str(), topic.count)).collect();
    assert_eq!(topics, [("samples", 2800), ("ambient", 3)]);
    let ambient: Vec<_> = log.records(&Select::topic("ambient")).map(|r| r.expect("valid").value()).collect();
    assert_eq!(ambient.len(), 3);
    let first = rovelog_testing::json_of(ambient[0].as_ref().expect("decodes"));
    assert_eq!(first["BME280_temp"], json!(23.456));
    let all = log.records(&Select::all()).map(|record| record.expect("valid").time.expect("a time").nanos);
    assert!(all.collect::<Vec<_>>().is_sorted());
}
