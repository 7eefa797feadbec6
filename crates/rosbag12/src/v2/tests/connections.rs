//! Tests of connection records that declare an id again that an earlier connection record has
//! declared.

use rovelog_core::LogReader as _;

use super::made::{Bag, Part, chunk, connection, connection_of, message};
use crate::tables::MAX_CONNECTIONS;
use crate::v2::wire::{self, VERSION_LINE};
use crate::{BagOptions, BagReader};

/// Returns a connection record that declares the id 0 with the topic `shown` in its header and the
/// topic `said` in its data.
fn another(shown: &str, said: &str, callerid: &str) -> Vec<u8> {
    connection_of(0, shown, said, callerid)
}

/// Scans a bag with one chunk whose data are `data`. Returns the names and offsets of the
/// diagnostics about connections, and the topics of the bag.
fn scan_chunk(data: &[u8]) -> (Vec<(&'static str, u64)>, Vec<String>) {
    let size = u32::try_from(data.len()).unwrap();
    let part = Part { chunk: chunk("none", size, data), index: Vec::new(), info: None };
    let bag = Bag::of(&[(0, "/a")], vec![part]);
    let options = BagOptions { indexed_from: u64::MAX, ..BagOptions::default() };
    let bag = BagReader::new(bag.bytes().into(), &options).unwrap();
    let wanted = ["connection_damaged", "connection_conflict", "too_many_topics"];
    let notes = bag.diagnostics().list().iter().filter(|note| wanted.contains(&note.rule.name));
    let notes = notes.map(|note| {
        assert_eq!(note.range.end, note.range.start + 1);
        (note.rule.name, note.range.start)
    });
    let notes = notes.collect();
    (notes, bag.topics().iter().map(|topic| topic.name.clone()).collect())
}

/// Scans a bag with one chunk in which a message follows each connection record. Returns the names
/// of the diagnostics, and the topics of the bag.
fn scan_records(records: &[Vec<u8>]) -> (Vec<&'static str>, Vec<String>) {
    let data: Vec<u8> =
        records.iter().flat_map(|record| [record.clone(), message(0, 5, b"xxxx")].concat()).collect();
    let (notes, topics) = scan_chunk(&data);
    (notes.into_iter().map(|(name, _)| name).collect(), topics)
}

#[test]
fn an_inconsistent_record_is_a_damaged_copy_of_the_first_one() {
    let right = connection(0, "/a");
    let damaged = another("/a", "/b", "/node0");
    let only_a = || vec!["/a".to_owned()];
    assert_eq!(scan_records(&[right.clone(), damaged.clone()]), (vec!["connection_damaged"], only_a()));
    // The damaged copy is reported once, although the chunk contains it twice.
    let twice = [right.clone(), damaged.clone(), right.clone(), damaged.clone()];
    assert_eq!(scan_records(&twice), (vec!["connection_damaged"], only_a()));
    // The diagnostic has the offset of the damaged record. Records of an uncompressed chunk have an
    // offset in the file.
    let before =
        [&VERSION_LINE[..], &wire::bag_header_record(0, 0, 0), &chunk("none", 0, &[]), &right].concat();
    let alone = scan_chunk(&[right, damaged].concat()).0;
    assert_eq!(alone, [("connection_damaged", before.len() as u64)]);
}

#[test]
fn a_consistent_record_declares_another_connection() {
    let right = connection(0, "/a");
    let conflict =
        |topics: &[&str]| (vec!["connection_conflict"], topics.iter().map(|t| (*t).to_owned()).collect());
    assert_eq!(
        scan_records(&[right.clone(), another("/a", "/a", "/other")]),
        conflict(&["/a"]),
        "another publisher"
    );
    assert_eq!(
        scan_records(&[right, another("/b", "/c", "/node0")]),
        conflict(&["/a", "/b"]),
        "topic and data differ"
    );
}

#[test]
fn damaged_copies_are_not_detected_beyond_the_connection_limit() {
    let mut data: Vec<u8> =
        (0..u32::try_from(MAX_CONNECTIONS).unwrap()).flat_map(|conn| connection(conn, "/a")).collect();
    data.extend(another("/a", "/b", "/node0"));
    let (notes, _) = scan_chunk(&data);
    let names: Vec<_> = notes.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["connection_conflict", "too_many_topics"]);
}

/// Opens a bag without an index whose chunks have the data `chunks`. Returns the bag and the topic
/// of each message.
fn topics_of(chunks: &[Vec<u8>]) -> (BagReader, Vec<String>) {
    let chunks = chunks.iter().flat_map(|data| chunk("none", u32::try_from(data.len()).unwrap(), data));
    let head = [&VERSION_LINE[..], &wire::bag_header_record(0, 0, 0)].concat();
    let bytes: Vec<u8> = head.into_iter().chain(chunks).collect();
    let bag = BagReader::new(bytes.into(), &BagOptions::default()).unwrap();
    let topics = bag.records_in_file_order().map(|record| record.topic.name.clone()).collect();
    (bag, topics)
}

#[test]
fn an_id_refers_to_its_last_record() {
    let message = |sec| message(0, sec, b"xxxx");
    let is = |topic: &str| another(topic, topic, "/node0");
    let all = [
        [is("/a"), message(1), is("/b"), message(2), is("/a"), message(3)].concat(),
        message(4),
        [message(5), is("/b"), message(6)].concat(),
        message(7),
        [is("/a"), is("/b"), is("/a")].concat(),
        message(8),
    ];
    let (bag, topics) = topics_of(&all);
    assert_eq!(topics, ["/a", "/b", "/a", "/a", "/a", "/b", "/b", "/a"]);
    assert_eq!(bag.topics().iter().map(|topic| topic.count).collect::<Vec<_>>(), [5, 3]);
}

/// A connection id that is declared again is stored once for the chunk, not once for each later
/// chunk.
#[test]
fn redeclared_ids_are_stored_once() {
    let of = |callerid: &str, sec| {
        [connection_of(65_535, "/a", "/a", callerid), message(65_535, sec, b"xxxx")].concat()
    };
    let mut chunks = vec![[of("/one", 1), of("/two", 2)].concat()];
    chunks.resize(1000, message(65_535, 3, b"xxxx"));
    let (bag, topics) = topics_of(&chunks);
    let changes = &bag.scanner.content.ids.changes;
    assert_eq!((topics.len(), changes.values().map(Vec::len).sum::<usize>()), (1001, 1));
    assert_eq!(bag.callerids(&bag.topics()[0]).into_values().collect::<Vec<_>>(), [1, 1000]);
}
