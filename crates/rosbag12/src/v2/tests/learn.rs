//! Connection records that differ from the one before of the same number.

use rovelog_core::LogReader as _;

use super::made::{Bag, Part, chunk, connection, connection_of, message};
use crate::tables::MAX_CONNECTIONS;
use crate::v2::wire::{self, VERSION_LINE};
use crate::{BagOptions, BagReader};

/// A record of connection 0.
fn another(shown: &str, said: &str, callerid: &str) -> Vec<u8> {
    connection_of(0, shown, said, callerid)
}

/// What is said of damaged connections and of those of other data, with its place, and the topics, of a bag
/// with one chunk of these bytes, all of which is read.
fn learn(data: &[u8]) -> (Vec<(&'static str, u64)>, Vec<String>) {
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

/// Messages of the record right before them.
fn told(records: &[Vec<u8>]) -> (Vec<&'static str>, Vec<String>) {
    let data: Vec<u8> =
        records.iter().flat_map(|record| [record.clone(), message(0, 5, b"xxxx")].concat()).collect();
    let (notes, topics) = learn(&data);
    (notes.into_iter().map(|(name, _)| name).collect(), topics)
}

#[test]
fn a_record_that_contradicts_itself_is_a_copy_of_the_one_before() {
    let right = connection(0, "/a");
    let damaged = another("/a", "/b", "/node0");
    let only_a = || vec!["/a".to_owned()];
    assert_eq!(told(&[right.clone(), damaged.clone()]), (vec!["connection_damaged"], only_a()));
    // The same copy again is known.
    let twice = [right.clone(), damaged.clone(), right.clone(), damaged.clone()];
    assert_eq!(told(&twice), (vec!["connection_damaged"], only_a()));
    // Its place is that of the record, which a chunk that is stored plainly has in the file.
    let before =
        [&VERSION_LINE[..], &wire::bag_header_record(0, 0, 0), &chunk("none", 0, &[]), &right].concat();
    let alone = learn(&[right, damaged].concat()).0;
    assert_eq!(alone, [("connection_damaged", before.len() as u64)]);
}

#[test]
fn a_record_that_is_right_or_of_another_topic_is_a_connection_of_its_own() {
    let right = connection(0, "/a");
    let conflict =
        |topics: &[&str]| (vec!["connection_conflict"], topics.iter().map(|t| (*t).to_owned()).collect());
    assert_eq!(told(&[right.clone(), another("/a", "/a", "/other")]), conflict(&["/a"]), "another publisher");
    assert_eq!(
        told(&[right, another("/b", "/c", "/node0")]),
        conflict(&["/a", "/b"]),
        "topic and data differ"
    );
}

#[test]
fn beyond_the_limit_a_copy_is_no_longer_looked_for() {
    let mut data: Vec<u8> =
        (0..u32::try_from(MAX_CONNECTIONS).unwrap()).flat_map(|conn| connection(conn, "/a")).collect();
    data.extend(another("/a", "/b", "/node0"));
    let (notes, _) = learn(&data);
    let names: Vec<_> = notes.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["connection_conflict", "too_many_topics"]);
}

/// Returns a bag of these chunks, without an index, and the topics of its messages.
fn topics_of(chunks: &[Vec<u8>]) -> (BagReader, Vec<String>) {
    let chunks = chunks.iter().flat_map(|data| chunk("none", u32::try_from(data.len()).unwrap(), data));
    let head = [&VERSION_LINE[..], &wire::bag_header_record(0, 0, 0)].concat();
    let bytes: Vec<u8> = head.into_iter().chain(chunks).collect();
    let bag = BagReader::new(bytes.into(), &BagOptions::default()).unwrap();
    let topics = bag.records_in_file_order().map(|record| record.topic.name.clone()).collect();
    (bag, topics)
}

#[test]
fn a_number_means_what_the_last_record_of_it_says() {
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

/// What numbers mean in each of many chunks takes no memory of its own.
#[test]
fn numbers_that_change_are_noted_once() {
    let of = |callerid: &str, sec| {
        [connection_of(65_535, "/a", "/a", callerid), message(65_535, sec, b"xxxx")].concat()
    };
    let mut chunks = vec![[of("/one", 1), of("/two", 2)].concat()];
    chunks.resize(1000, message(65_535, 3, b"xxxx"));
    let (bag, topics) = topics_of(&chunks);
    let changes = &bag.scanner.chunked().changes;
    assert_eq!((topics.len(), changes.values().map(Vec::len).sum::<usize>()), (1001, 1));
    assert_eq!(bag.callerids(&bag.topics()[0]).into_values().collect::<Vec<_>>(), [1, 1000]);
}
