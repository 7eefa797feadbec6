//! Fuzz targets for ROS bags of all versions.

use std::io::Cursor;

use arbitrary::{Arbitrary, Unstructured};
use rovelog::core::internal::layout::TextDecoding;
use rovelog::rosbag12::BagWriter;
use rovelog::rosbag12::msg::Types;
use rovelog::rosbag12::wire::{Header, RecordHead};
use rovelog::rosbag12::{BagOptions, BagReader, BagStream, Publisher, Version};
use rovelog::{Bytes, LogReader, LogStream, ReadOptions, RecoverOptions, Select};

use crate::alike::{Pieces, both, check_stream, read_records};

/// Returns options with a low limit for decompression, which would make the fuzzer slow.
fn options() -> BagOptions {
    let mut options = BagOptions::from(&ReadOptions::default());
    options.read.limits.unpacked = 1 << 20;
    options
}

fn open(data: &[u8]) -> Option<BagReader> {
    BagReader::new(Bytes::copy_from_slice(data), &options()).ok()
}

/// Reads a bag with and without a version line. Checks that the sizes of its parts add up to the
/// file size.
pub fn rosbag_read(data: &[u8]) {
    let old = BagReader::open_v0(Bytes::copy_from_slice(data), &options()).ok();
    for bag in open(data).into_iter().chain(old) {
        let mut at = 0;
        for (part, range) in bag.ledger() {
            assert!(range.start == at && range.end > at, "{part:?} {range:?} after {at}");
            at = range.end;
        }
        assert_eq!(at, bag.info().size, "bytes are not accounted for");
        read_records(&bag, |record| {
            // If a message is shorter than its definition requires, it has no value.
            if let Ok(value) = record.value() {
                value.to_json();
            }
            bag.publisher(record);
        });
        let records = bag.info().records;
        let mut scanned = 0;
        bag.scan(|_, _, _, _| scanned += 1);
        assert_eq!(scanned, records);
        let rows: usize =
            bag.batches(&Select::all()).filter_map(Result::ok).map(|(_, batch)| batch.num_rows()).sum();
        assert!(rows as u64 <= records);
        bag.texts().into_iter().flatten().for_each(drop);
        bag.topics().iter().for_each(|topic| drop(bag.own(topic).unwrap().definition()));
        for section in bag.sections() {
            for topic in section.index_topics.iter().take(3) {
                bag.index_differences(section, &topic.topic);
            }
        }
        bag.lost_messages();
    }
}

/// Checks that a stream returns the same records as the reader, for any division of the input into
/// pieces.
///
/// If a bag has an index, the records are not compared. The reader uses the index to find the next
/// record after damage, and a stream cannot do this.
pub fn rosbag_stream(data: &[u8]) {
    let stream = BagStream::new(Pieces(data), &options());
    let Some((bag, mut stream)) = both(open(data), stream) else { return };
    // In a V2.0 bag, the reader also uses index data, and connection records that follow their
    // messages.
    let is_chunked = bag.version() == Version::V2_0;
    if is_chunked || bag.sections().iter().any(|section| section.index_pos.unwrap_or(0) > 0) {
        return read_to_the_end(stream);
    }
    check_stream(&mut stream, &bag, bag.records_in_file_order(), |record| record.time);
}

fn read_to_the_end(mut stream: impl LogStream) {
    while let Ok(Some(_)) = stream.next_record() {}
}

/// Checks that a recovered bag is valid and contains all messages, and that recovering it again
/// does not change it.
pub fn rosbag_rewrite(data: &[u8]) {
    let Some(bag) = open(data) else { return };
    let mut out = Vec::new();
    let report =
        LogReader::recover(&bag, &mut out, &RecoverOptions::default()).expect("writing to memory succeeds");
    assert_eq!(report.kept_bytes + report.lost_bytes(), bag.info().size);
    let again = open(&out).expect("a recovered bag opens");
    assert_eq!((again.info().records, again.info().lost.losses), (bag.info().records, 0));
    let mut twice = Vec::new();
    again.reindex(&mut twice).expect("writing to memory succeeds");
    // The entries of a valid index may have a different order than those of a recorder. If a
    // rebuilt index is rebuilt again, it does not change.
    let reindexed = open(&twice).expect("a bag with a new index opens");
    assert_eq!(reindexed.info().records, bag.info().records);
    let mut thrice = Vec::new();
    reindexed.reindex(&mut thrice).expect("writing to memory succeeds");
    assert!(twice == thrice, "rebuilding an index twice gives different bytes");
    if matches!(bag.version(), Version::V1_2 | Version::V2_0) && bag.is_intact() {
        assert_eq!(out, data, "an intact bag is changed");
    }
}

/// Checks that a header is the same after writing it and reading it again. Also checks that any
/// definition can be parsed, and that any payload can be decoded with it.
pub fn rosbag_declarations(data: &[u8]) {
    if let Some(header) = Header::read(data) {
        let written = header.to_head(0);
        let head = RecordHead::read(&written).expect("a written header can be read");
        assert_eq!(Header::read(head.header), Some(header));
    }
    let (text, payload) = data.split_at(data.len() / 2);
    if let Ok(types) = Types::resolve("pkg/Any", text, 64, &|_| None) {
        types.sum_v2();
        if let Ok(layout) = types.layout(&TextDecoding::default()) {
            layout.fit(payload);
        }
    }
}

/// Content of a bag to write.
#[derive(Arbitrary, Debug)]
struct Model {
    connections: Vec<ModelConnection>,
    messages: Vec<ModelMessage>,
}

#[derive(Arbitrary, Debug)]
struct ModelConnection {
    topic: Vec<u8>,
    ty: Vec<u8>,
    md5: u128,
    definition: Vec<u8>,
}

#[derive(Arbitrary, Debug)]
struct ModelMessage {
    connection: u8,
    sec: u32,
    nsec: u32,
    /// Name of the publisher, if the message is latched.
    latching: Option<String>,
    payload: Vec<u8>,
}

/// Checks that a written bag contains the generated messages. The writer may also return an error.
pub fn rosbag_write(data: &[u8]) {
    let Ok(model) = Model::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let mut bag = BagWriter::new(Cursor::new(Vec::new())).expect("writing to memory succeeds");
    let mut connections = Vec::new();
    for ModelConnection { topic, ty, md5, definition } in &model.connections {
        let md5 = format!("{md5:032x}");
        connections.extend(bag.connect(topic, ty, md5.as_bytes(), definition));
    }
    let mut written = Vec::new();
    for ModelMessage { connection, sec, nsec, latching, payload } in &model.messages {
        let Some(connection) = connections.get(usize::from(*connection)) else { continue };
        let publisher = latching.as_ref().map(Publisher::latching);
        if bag.message(*connection, *sec, *nsec, publisher.as_ref(), payload).is_ok() {
            written.push((i64::from(*sec) * 1_000_000_000 + i64::from(*nsec), publisher, payload));
        }
    }
    let bytes = bag.finish().expect("writing to memory succeeds").into_inner();
    let bag = open(&bytes).expect("a written log opens");
    assert_eq!(bag.info().lost.bytes, 0, "the written bag is damaged: {:?}", bag.diagnostics().list());
    assert_eq!(bag.info().records, written.len() as u64);
    for (record, (nanos, publisher, payload)) in bag.records_in_file_order().zip(&written) {
        assert_eq!(record.payload, &payload[..]);
        assert_eq!(record.time.map(|time| time.nanos), Some(*nanos));
        assert_eq!(bag.publisher(&record), publisher.clone().unwrap_or_default());
    }
}
