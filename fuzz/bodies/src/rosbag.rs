//! Bodies for ROS bags.

use std::io::Cursor;

use arbitrary::{Arbitrary, Unstructured};
use rovelog::rosbag12::BagWriter;
use rovelog::rosbag12::msg::Types;
use rovelog::rosbag12::wire::{Header, RecordHead};
use rovelog::rosbag12::{BagOptions, BagReader, BagStream, Publisher, Version};
use rovelog::{Bytes, LogReader, LogStream, ReadOptions, RecoverOptions, Select};

use crate::alike::{Pieces, both, read_records, stream_is_slice};

/// Options that limit decompression, so that the fuzzer stays fast.
fn options() -> BagOptions {
    let mut options = BagOptions::from(&ReadOptions::default());
    options.read.limits.unpacked = 1 << 20;
    options
}

fn open(data: &[u8]) -> Option<BagReader> {
    BagReader::new(Bytes::copy_from_slice(data), &options()).ok()
}

/// Reads the whole bag and adds up the bytes; also without a version line.
pub fn rosbag_read(data: &[u8]) {
    let old = BagReader::open_v0(Bytes::copy_from_slice(data), &options()).ok();
    for bag in open(data).into_iter().chain(old) {
        let mut at = 0;
        for (part, range) in bag.ledger() {
            assert!(range.start == at && range.end > at, "{part:?} {range:?} behind {at}");
            at = range.end;
        }
        assert_eq!(at, bag.info().size, "bytes are not accounted for");
        read_records(&bag, |record| {
            // Messages too short for their definition stay bytes.
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

/// The stream yields what the slice yields, however its input is split. In a bag with an index, the
/// index helps to resynchronise after damage; a pipe does not have it.
pub fn rosbag_stream(data: &[u8]) {
    let stream = BagStream::new(Pieces(data), &options());
    let Some((bag, mut stream)) = both(open(data), stream) else { return };
    // So does index data of V2.0; and a connection record there may come after its messages.
    let is_chunked = bag.version() == Version::V2_0;
    if is_chunked || bag.sections().iter().any(|section| section.index_pos.unwrap_or(0) > 0) {
        return read_to_the_end(stream);
    }
    stream_is_slice(&mut stream, &bag, bag.records_in_file_order(), |record| record.time);
}

fn read_to_the_end(mut stream: impl LogStream) {
    while let Ok(Some(_)) = stream.next_record() {}
}

/// The recovered bag is valid and holds every message; recovering it again changes nothing.
pub fn rosbag_rewrite(data: &[u8]) {
    let Some(bag) = open(data) else { return };
    let mut out = Vec::new();
    let report =
        LogReader::recover(&bag, &mut out, &RecoverOptions::default()).expect("memory can be written");
    assert_eq!(report.kept_bytes + report.lost_bytes(), bag.info().size);
    let again = open(&out).expect("a recovered bag opens");
    assert_eq!((again.info().records, again.info().lost.losses), (bag.info().records, 0));
    let mut twice = Vec::new();
    again.reindex(&mut twice).expect("memory can be written");
    // An index may be valid but in another order than a recorder's; once rebuilt, it stays.
    let remade = open(&twice).expect("a bag with a new index opens");
    assert_eq!(remade.info().records, bag.info().records);
    let mut thrice = Vec::new();
    remade.reindex(&mut thrice).expect("memory can be written");
    assert!(twice == thrice, "a new index is made otherwise the second time");
    if matches!(bag.version(), Version::V1_2 | Version::V2_0) && bag.is_intact() {
        assert_eq!(out, data, "an intact bag is copied");
    }
}

/// Writing a header keeps its meaning. Parsing any definition returns, and so does decoding any
/// payload with it.
pub fn rosbag_declarations(data: &[u8]) {
    if let Some(header) = Header::read(data) {
        let written = header.to_head(0);
        let head = RecordHead::read(&written).expect("a head that was written is read");
        assert_eq!(Header::read(head.header), Some(header));
    }
    let (text, payload) = data.split_at(data.len() / 2);
    if let Ok(types) = Types::resolve("pkg/Any", text, 64, &|_| None) {
        types.sum_v2();
        if let Ok(layout) = types.layout() {
            layout.fit(payload);
        }
    }
}

/// A bag to write.
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
    /// Name of a latching publisher.
    latching: Option<String>,
    payload: Vec<u8>,
}

/// The bag written from any model holds the model's messages, or the writer returns an error.
pub fn rosbag_write(data: &[u8]) {
    let Ok(model) = Model::arbitrary_take_rest(Unstructured::new(data)) else { return };
    let mut bag = BagWriter::new(Cursor::new(Vec::new())).expect("memory takes it");
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
    let bytes = bag.finish().expect("memory takes it").into_inner();
    let bag = open(&bytes).expect("what is written opens");
    assert_eq!(bag.info().lost.bytes, 0, "the written bag is intact: {:?}", bag.diagnostics().list());
    assert_eq!(bag.info().records, written.len() as u64);
    for (record, (nanos, publisher, payload)) in bag.records_in_file_order().zip(&written) {
        assert_eq!(record.payload, &payload[..]);
        assert_eq!(record.time.map(|time| time.nanos), Some(*nanos));
        assert_eq!(bag.publisher(&record), publisher.clone().unwrap_or_default());
    }
}
