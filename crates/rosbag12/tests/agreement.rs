//! Tests that different ways of reading the same bag give the same result: stream and file, reading
//! and writing, time order and sorting all records by time.

mod support;

use proptest::prelude::*;
use rosbag12::wire::{Header, RecordHead, VERSION_LINE};
use rosbag12::{BagReader, BagStream};
use rovelog_core::{LogReader, LogStream, Select};
use rovelog_testing::{Dribble, Log, READ_SIZES, check_order, differences};
use support::{LOGS, common_of_reader, common_of_stream, definition, message, open, options, readable};

/// Bags that are read differently from a stream and from a file. A stream cannot use the index, and
/// a stream cannot use definitions that come after their messages.
const TOLD_APART: [&str; 5] = [
    "damaged+bag-in-a-message",
    "definition-behind-its-messages",
    "v2.0+connection-damaged+index-intact",
    "v2.0+connections-only-at-the-end",
    "v2.0+damaged-bytes-in-a-chunk",
];

/// Reads a bag as a stream and as a file. Returns the differences between both results.
fn check_stream(log: &Log, sizes: &[usize]) -> Vec<String> {
    let options = options(&log.name);
    let dribble = Dribble::new(&log.bytes, sizes);
    let Ok(bag) = BagReader::new(log.bytes.clone(), &options) else {
        // A stream reports a wrong checksum only at the end of the stream.
        let read =
            BagStream::new(dribble, &options).map_err(rovelog_core::Error::from).and_then(|mut stream| {
                while stream.next_record()?.is_some() {}
                Ok(())
            });
        assert!(read.is_err(), "{}", log.name);
        return Vec::new();
    };
    let (want, got) = (common_of_reader(&bag), common_of_stream(dribble, &options));
    differences(&format!("{} {sizes:?}", log.name), &want, &got)
}

#[test]
fn the_stream_fed_in_any_pieces_equals_the_slice() {
    let mut wrong = Vec::new();
    for log in LOGS.corpus().into_iter().filter(|log| !TOLD_APART.contains(&&*log.name)) {
        for sizes in READ_SIZES {
            wrong.extend(check_stream(&log, sizes));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_stream_equals_the_slice_on_real_bags() {
    let mut wrong = Vec::new();
    for log in LOGS.real() {
        for size in [1, 1000] {
            wrong.extend(check_stream(&log, &[size]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Reads a header, writes the header again, and checks that reading the written header gives the
/// same fields.
fn check_header(bytes: &[u8]) -> bool {
    let Some(header) = Header::read(bytes) else { return false };
    let written = header.to_head(7);
    let head = RecordHead::read(&written).expect("the head of a record");
    assert_eq!((head.size(), head.data_len), (written.len(), 7));
    assert_eq!(Header::read(head.header), Some(header), "{}", bytes.escape_ascii());
    true
}

#[test]
fn every_header_is_written_as_it_was_read() {
    let (mut headers, mut same) = (0, 0);
    for log in LOGS.corpus().into_iter().filter(|log| log.bytes.starts_with(b"#ROSRECORD V1.2\n")) {
        // Split the file into records without validating them, so that invalid headers are compared
        // too.
        let mut rest = &log.bytes[16..];
        while let Some(head) = RecordHead::read(rest) {
            headers += usize::from(check_header(head.header));
            let written = Header::read(head.header).map(|header| header.to_head(head.data_len));
            same += usize::from(written.is_some_and(|written| rest.starts_with(&written)));
            rest = rest.get(head.size() + head.data_len as usize..).unwrap_or_default();
        }
    }
    assert!(headers > 300 && same > 200, "only {headers} headers, {same} of them as recorders write them");
}

fn any_field() -> impl Strategy<Value = Vec<u8>> {
    let names = [
        "op",
        "topic",
        "md5",
        "type",
        "def",
        "sec",
        "nsec",
        "latching",
        "index_pos",
        "ver",
        "count",
        "x",
        "",
    ];
    let value = prop_oneof![
        prop::collection::vec(0u8..5, 1),
        prop::collection::vec(any::<u8>(), 4),
        prop::collection::vec(any::<u8>(), 8),
        prop::collection::vec(any::<u8>(), 0..12),
    ];
    (prop::sample::select(names.to_vec()), value, 0..20u32).prop_map(|(name, value, off)| {
        let text = [name.as_bytes(), b"=", &value].concat();
        let len = u32::try_from(text.len()).unwrap() + u32::from(off == 0);
        [len.to_le_bytes().to_vec(), text].concat()
    })
}

proptest! {
    #[test]
    fn any_header_is_written_as_it_was_read(fields in prop::collection::vec(any_field(), 0..9)) {
        check_header(&fields.concat());
    }
}

#[test]
fn records_come_in_the_order_of_time_and_offset() {
    for (log, bag) in readable() {
        let records = bag.records_in_file_order();
        let timed = records.map(|record| (record.time.expect("messages have times").nanos, record));
        check_order(&log.name, &bag, timed);
    }
}

/// The payloads of records must refer to the memory of the bag instead of a copy.
#[test]
fn records_borrow_from_the_bag() {
    let log = LOGS.case("recorded");
    let bag = open(&log.bytes);
    let inside = log.bytes.as_ptr_range();
    for record in bag.records(&Select::all()) {
        assert!(inside.contains(&record.expect("sound").payload.as_ptr()));
    }
}

/// Returns a V1.2 record with the header fields `fields` and the data `data`.
fn record(fields: &[(&str, &[u8])], data: &[u8]) -> Vec<u8> {
    let len = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap().to_le_bytes();
    let fields = fields.iter().map(|(name, value)| [name.as_bytes(), b"=", value].concat());
    let header = fields.map(|field| [&len(&field), &field[..]].concat()).collect::<Vec<_>>().concat();
    [&len(&header), &header[..], &len(data), data].concat()
}

/// A bag header without data may be longer than a bag header with padding. In this case, no padding
/// follows, and a stream does not wait for the end of the file.
#[test]
fn a_bag_header_without_data_may_be_longer_than_its_padding() {
    let more = vec![b'x'; 5000];
    let header = record(&[("op", &[3]), ("index_pos", &[0; 8]), ("more", &more)], &[]);
    let fields: [(&str, &[u8]); 6] = [
        ("op", &[2]),
        ("topic", b"/a"),
        ("type", b"a/B"),
        ("md5", &[b'0'; 32]),
        ("sec", &[1, 0, 0, 0]),
        ("nsec", &[0; 4]),
    ];
    let bytes =
        [b"#ROSRECORD V1.2\n", &header[..], &record(&fields, b"m"), &record(&fields, b"n")].concat().into();
    let bag = open(&bytes);
    assert_eq!((bag.info().records, bag.info().lost.losses), (2, 0));
    let mut options = options("bag");
    options.streamed_record = 6000;
    let mut stream = BagStream::new(Dribble::new(&bytes, [64]), &options).unwrap();
    while stream.next_record().unwrap().is_some() {}
    assert_eq!(stream.diagnostics().list(), bag.diagnostics().list());
}

/// A definition in the middle of a bag applies from the next message on, even if a stream splits
/// the input at any byte.
#[test]
fn a_definition_between_messages_applies_at_once() {
    let messages = || (1..6).map(message).collect::<Vec<_>>().concat();
    let definition = definition("uint64 data\n");
    let bytes = [&VERSION_LINE[..], &messages(), &definition, &messages()].concat().into();
    let bag = open(&bytes);
    for size in [1, 7, 64, 200, 4096] {
        let mut stream = BagStream::new(Dribble::new(&bytes, [size]), &options("bag")).unwrap();
        while stream.next_record().unwrap().is_some() {}
        assert_eq!(stream.diagnostics().list(), bag.diagnostics().list(), "{size}");
    }
    // The definition is found first by its type name. Later definitions require eight more bytes in
    // each message.
    let short = bag.diagnostics().list().iter().filter(|noticed| noticed.rule.name == "payload_short");
    assert_eq!(short.count(), 5);
}
