//! Tests of bags whose index matches or does not match their chunks.

use rovelog_core::backend::Backend as _;
use rovelog_core::{ErrorKind, LogReader as _, Select, State};

use super::made::{Bag, Part, chunk, chunk_info, connection, message, unknown};
use crate::diagnostics as rules;
use crate::{BagOptions, BagReader, IndexState};

/// Result of comparing the index of a topic: the topic name, the number of index entries, the
/// number of messages, and whether the entries match the messages.
type Topic = (String, u64, u64, bool);

/// Opens a bag. If `by_index` is true and the index is consistent, the bag is opened by its index.
/// In all other cases, the bag is scanned.
fn open(bytes: Vec<u8>, by_index: bool) -> BagReader {
    let indexed_from = if by_index { 0 } else { u64::MAX };
    let options = BagOptions { indexed_from, ..BagOptions::default() };
    BagReader::new(bytes.into(), &options).unwrap()
}

fn is_by_index(bag: &Bag) -> bool {
    open(bag.bytes(), true).scanner.content.is_by_index
}

/// Returns a bag with two publishers of one topic, a latched topic, a topic without messages, a
/// topic with one message, and a topic that starts at time 0.
fn recorded() -> Bag {
    let first = Part::of(&[(0, 10, 4), (1, 11, 4), (0, 12, 9), (4, 13, 4), (3, 15, 4)]);
    let second = Part::of(&[(5, 0, 4), (1, 20, 4), (0, 9, 4), (3, 21, 4), (5, 8, 4)]);
    let connections = [(0, "/a"), (1, "/latched"), (2, "/c"), (3, "/a"), (4, "/single"), (5, "/zero")];
    Bag::of(&connections, vec![first, second])
}

/// Returns the result of the index comparison for each section (bag within the file).
fn index_of(bytes: Vec<u8>) -> Vec<(IndexState, Vec<Topic>)> {
    let bag = open(bytes, false);
    let sections = bag.sections().iter().map(|section| {
        let topics = section.index_topics.iter().map(|topic| {
            let name = String::from_utf8(topic.topic.clone()).unwrap();
            (name, topic.entries, topic.in_scan, topic.exact)
        });
        (section.index, topics.collect())
    });
    sections.collect()
}

/// Returns the result of the index comparison for a bag with one section.
fn index_of_bag(bag: &Bag) -> (IndexState, Vec<Topic>) {
    let [section] = index_of(bag.bytes()).try_into().unwrap();
    section
}

fn topic(name: &str, entries: u64, in_scan: u64, exact: bool) -> Topic {
    (name.to_owned(), entries, in_scan, exact)
}

fn all_exact() -> Vec<Topic> {
    let counts = [("/a", 5), ("/latched", 2), ("/single", 1), ("/zero", 2)];
    counts.into_iter().map(|(name, count)| topic(name, count, count, true)).collect()
}

/// Returns the message of the diagnostic about differences between the index and the messages.
fn why(bag: &Bag) -> String {
    let bag = open(bag.bytes(), false);
    let differs = bag.diagnostics().list().iter().find(|noticed| noticed.rule == &rules::INDEX_DIFFERS);
    differs.map(|noticed| noticed.message.clone()).unwrap_or_default()
}

#[test]
fn the_index_and_a_full_scan_give_the_same_summary() {
    let bag = recorded();
    let (by_index, whole) = (open(bag.bytes(), true), open(bag.bytes(), false));
    assert!(by_index.scanner.content.is_by_index && !whole.scanner.content.is_by_index);
    assert_eq!(by_index.sections()[0].index, IndexState::Believed);
    assert_eq!(by_index.info().records, 10);
    assert_eq!(by_index.info().start, whole.info().start);
    assert_eq!(by_index.info().end, whole.info().end);
    for op in [2, 5] {
        assert_eq!(by_index.records_of(op), whole.records_of(op));
    }
    for (topic, same) in by_index.topics().iter().zip(whole.topics()) {
        assert_eq!(topic.name, same.name);
        assert_eq!((topic.count, topic.first, topic.last), (same.count, same.first, same.last));
        assert_eq!(by_index.callerids(topic), whole.callerids(same));
        // The index does not contain the order of messages and the payload sizes.
        assert_eq!((topic.in_order, topic.bytes_known), (topic.count < 2, topic.count == 0));
    }
    for (connection, same) in by_index.connections().iter().zip(whole.connections()) {
        assert_eq!((connection.latched(), connection.span()), (same.latched(), same.span()));
    }
    let counts: Vec<u64> = by_index.topics().iter().map(|topic| topic.count).collect();
    assert_eq!(counts, [5, 2, 0, 1, 2]);
    let records = |bag: &BagReader| {
        let records = bag.records(&Select::all()).map(|record| record.unwrap());
        records.map(|record| (record.offset, record.seq, record.time, record.topic.id)).collect::<Vec<_>>()
    };
    assert_eq!(records(&by_index), records(&whole));
    // All chunks match the index, so the bag was not scanned again.
    assert_eq!((by_index.info().records, by_index.comparison.losses.get().is_none()), (10, true));
}

#[test]
fn a_loss_found_while_reading_is_added_to_the_losses() {
    let mut bag = recorded();
    let at = bag.parts[1].chunk.windows(5).rposition(|bytes| bytes == b"conn=").unwrap();
    bag.parts[1].chunk[at] = 0;
    let bag = open(bag.bytes(), true);
    assert_eq!((bag.info().records, bag.info().lost.losses), (10, 0));
    assert_eq!(bag.intact_records(&Select::all()).count(), 9);
    let lost = bag.losses();
    assert_eq!((lost.losses, lost.missing_records), (1, 1));
    assert_eq!((bag.info().records, bag.info().lost.losses), (10, 0), "the summary does not change");
}

#[test]
fn missing_messages_end_the_records_with_an_error() {
    let mut bag = recorded();
    let at = bag.parts[1].chunk.windows(5).rposition(|bytes| bytes == b"conn=").unwrap();
    bag.parts[1].chunk[at] = 0;
    let bag = open(bag.bytes(), true);
    let items: Vec<_> = bag.records(&Select::all()).collect();
    let (last, records) = items.split_last().unwrap();
    assert!(records.len() == 9 && records.iter().all(Result::is_ok));
    let error = last.as_ref().unwrap_err();
    assert_eq!((error.kind, error.offset), (ErrorKind::DataLost, Some(bag.losses().ranges[0].start)));
    assert!(error.to_string().contains("1 record"), "{error}");
    // The chunk that contains the messages of this topic is intact.
    assert!(bag.records(&Select::topic("/single")).all(|record| record.is_ok()));
    // A full scan finds the loss already when the bag is opened.
    let whole = open(bag.bytes.to_vec(), false);
    assert!(whole.records(&Select::all()).all(|record| record.is_ok()) && !whole.info().lost.is_empty());
}

#[test]
fn a_scan_detects_damaged_ops_in_chunks() {
    let mut bag = recorded();
    let at = bag.parts[1].chunk.windows(4).rposition(|bytes| bytes == b"op=\x02").unwrap();
    bag.parts[1].chunk[at + 3] = 0x82;
    let (bag, whole) = (open(bag.bytes(), true), open(bag.bytes(), false));
    let noted = |bag: &BagReader| bag.diagnostics().list().iter().any(|d| d.rule == &rules::OP_DAMAGED);
    assert!(!noted(&bag));
    assert_eq!(bag.records(&Select::all()).count(), 10);
    assert!(!noted(&bag), "the diagnostics do not change");
    assert!(bag.losses().is_empty() && noted(&whole));
}

#[test]
fn an_inconsistent_index_is_not_used() {
    let change = |change: &dyn Fn(&mut Bag)| {
        let mut bag = recorded();
        change(&mut bag);
        is_by_index(&bag)
    };
    let size = |size: u32| move |bag: &mut Bag| bag.parts[0].chunk = chunk("none", size, &[0; 100]);
    assert!(change(&|_| {}));
    assert!(change(&size(100)));
    assert!(!change(&size(101)));
    assert!(!change(&|bag| bag.line = b"#ROSBAG V2.0\r\n"));
    assert!(!change(&|bag| bag.counts = Some((5, 2))));
    assert!(!change(&|bag| bag.counts = Some((6, 3))));
    assert!(!change(&|bag| bag.index_pos = Some(100)));
    assert!(!change(&|bag| bag.index_pos = Some(1 << 40)));
    assert!(!change(&|bag| bag.parts[1].info = None));
    assert!(!change(&|bag| bag.parts[1].info.as_mut().unwrap().1[0].1 += 1));
    assert!(!change(&|bag| bag.parts[1].index.truncate(1)));
    assert!(!change(&|bag| bag.parts.push(Part::of(&[]))));
    assert!(!change(&|bag| bag.behind = chunk_info(20, (1, 2), &[])));
    assert!(!change(&|bag| bag.behind = unknown(9, b"")));
    assert!(!change(&|bag| bag.behind = connection(0, "/a")[..40].to_vec()));
    // Damage the op (record type) of a connection record.
    let mut bytes = recorded().bytes();
    let at = bytes.windows(3).rposition(|bytes| bytes == b"op=").unwrap() + 3;
    bytes[at] = 99;
    assert!(!open(bytes, true).scanner.content.is_by_index);
}

/// LZ4 expands data by a factor of at most 255, so larger stated sizes are impossible.
#[test]
fn an_index_whose_chunks_state_impossible_sizes_is_not_used() {
    for (compression, size, is_believed) in
        [("lz4", 25_754, true), ("lz4", 25_755, false), ("bz2", 1 << 20, true), ("zip", 100, false)]
    {
        let mut bag = recorded();
        bag.parts[1].chunk = chunk(compression, size, &[0; 100]);
        assert_eq!(is_by_index(&bag), is_believed, "{compression} {size}");
    }
}

#[test]
fn the_index_of_a_bag_without_messages_is_used() {
    let mut bag = recorded();
    bag.parts.clear();
    let opened = open(bag.bytes(), true);
    assert!(opened.scanner.content.is_by_index);
    assert_eq!(opened.sections()[0].index, IndexState::Empty);
    assert_eq!(index_of_bag(&bag), (IndexState::Empty, vec![]));
    // Test a chunk that contains only connection records.
    bag.parts = vec![Part::of(&[])];
    let declared = connection(2, "/c");
    bag.parts[0].chunk = chunk("none", u32::try_from(declared.len()).unwrap(), &declared);
    let opened = open(bag.bytes(), true);
    assert_eq!(opened.sections()[0].index, IndexState::Empty);
    let chunks = &opened.scanner.content.chunks;
    assert_eq!((chunks.len(), chunks[0].messages.span.range()), (1, None));
}

#[test]
fn an_index_that_matches_all_chunks_is_exact() {
    let mut bag = recorded();
    assert_eq!(index_of_bag(&bag), (IndexState::Exact, all_exact()));
    // An index data record without entries is not a difference.
    bag.parts[0].index.push((2, Vec::new()));
    assert_eq!(index_of_bag(&bag), (IndexState::Exact, all_exact()));
    // Index positions in an appended bag are relative to the version line of that bag.
    let mut other = recorded();
    other.parts.truncate(1);
    let both = [bag.bytes(), other.bytes()].concat();
    let [first, second] = index_of(both).try_into().unwrap();
    assert_eq!(first, (IndexState::Exact, all_exact()));
    let counts = [topic("/a", 3, 3, true), topic("/latched", 1, 1, true), topic("/single", 1, 1, true)];
    assert_eq!(second, (IndexState::Exact, counts.to_vec()));
}

#[test]
fn only_topics_whose_index_data_differ_are_reported() {
    let with = |changed: [Topic; 1]| {
        let mut topics = all_exact();
        let place = topics.iter().position(|topic| topic.0 == changed[0].0).unwrap();
        topics[place] = changed.into_iter().next().unwrap();
        (IndexState::Differs, topics)
    };
    // Change a time in the index data of the first chunk.
    let mut bag = recorded();
    bag.parts[0].index[1].1[0].0 += 1;
    assert_eq!(index_of_bag(&bag), with([topic("/latched", 2, 2, false)]));
    // Remove the index data of one topic.
    let mut bag = recorded();
    for part in &mut bag.parts {
        part.index.retain(|(conn, _)| *conn != 1);
    }
    assert_eq!(index_of_bag(&bag), with([topic("/latched", 0, 2, false)]));
    // Add an index entry for which there is no message.
    let mut bag = recorded();
    bag.parts[0].index[0].1.push((14, 999));
    bag.parts[1].index[0].1.push((14, 999));
    assert_eq!(index_of_bag(&bag), with([topic("/a", 7, 5, false)]));
    assert_eq!(open(bag.bytes(), false).info().lost.missing_records, 2);
}

/// A chunk and its index data are missing, so the later chunk has another offset than its chunk
/// info.
#[test]
fn a_chunk_that_only_the_index_lists_is_lost() {
    let bag = recorded();
    let mut bytes = bag.bytes();
    let offset_of = |part: usize| {
        let chunk = &bag.parts[part].chunk;
        bytes.windows(chunk.len()).position(|window| window == chunk).unwrap()
    };
    let missing = offset_of(0)..offset_of(1);
    bytes.drain(missing);
    let bag = open(bytes, false);
    let lost = &bag.info().lost;
    assert_eq!((lost.losses, lost.bytes, lost.missing_records), (1, 0, 5));
    assert_eq!(bag.info().state, State::Damaged);
}

#[test]
fn an_incomplete_index_differs() {
    let differs = |change: &dyn Fn(&mut Bag), text: &str| {
        let mut bag = recorded();
        change(&mut bag);
        let (content, topics) = index_of_bag(&bag);
        assert_eq!((content, topics), (IndexState::Differs, all_exact()), "{text}");
        assert!(why(&bag).contains(text), "{}", why(&bag));
    };
    differs(&|bag| bag.counts = Some((6, 3)), "the bag header states 6 connections and 3 chunks");
    differs(&|bag| bag.counts = Some((5, 2)), "the bag header states 5 connections and 2 chunks");
    differs(&|bag| bag.behind = chunk_info(20, (1, 2), &[]), "3 chunk infos for 2 chunks");
    differs(&|bag| bag.index_pos = Some(100), "another index position");
    differs(&|bag| bag.parts[0].info = None, "has no chunk info");
    differs(&|bag| bag.parts[0].info.as_mut().unwrap().0.0 -= 1, ": the chunk info of the chunk at byte");
    differs(&|bag| bag.parts[0].info.as_mut().unwrap().1[0].1 -= 1, ": the chunk info of the chunk at byte");
    let mut bag = recorded();
    bag.parts.iter_mut().for_each(|part| part.info = None);
    assert_eq!(index_of_bag(&bag), (IndexState::Absent, vec![]));
}

/// The index lacks the connection, because only a chunk declares it.
#[test]
fn an_index_without_a_used_connection_differs() {
    let bag = |messages: Vec<u8>, entries: &[(u32, u32)]| {
        let declared = [connection(0, "/a"), messages].concat();
        let counts = entries.iter().map(|_| (0, 1)).collect();
        let part = Part {
            chunk: chunk("none", u32::try_from(declared.len()).unwrap(), &declared),
            index: vec![(0, entries.to_vec())],
            info: Some(((1, 1), counts)),
        };
        Bag::of(&[], vec![part])
    };
    let at = u32::try_from(connection(0, "/a").len()).unwrap();
    let with = bag(message(0, 1, b"data"), &[(1, at)]);
    assert_eq!(index_of_bag(&with), (IndexState::Differs, vec![topic("/a", 1, 1, true)]));
    assert!(why(&with).contains("connection 0 is missing from the index"), "{}", why(&with));
    let without = bag(Vec::new(), &[(1, at)]);
    assert_eq!(index_of_bag(&without), (IndexState::Differs, vec![topic("/a", 1, 0, false)]));
    assert!(!why(&without).contains("is missing from the index"), "{}", why(&without));
}
