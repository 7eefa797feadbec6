//! Tests that damage loses no more messages than necessary, and that recovered bags are valid.

mod support;

use std::io::Cursor;

use rosbag12::v2::Compression;
use rosbag12::{BagOptions, BagReader, BagWriter, IndexState, Part, Rosbag, Version};
use rovelog_core::{Align, Format as _, LogReader, Record, RecoverOptions, Recovery, Select, State};
use support::{LOGS, open, readable, record};

fn recover(bag: &BagReader) -> (Vec<u8>, Recovery) {
    let mut out = Vec::new();
    let recovery = LogReader::recover(bag, &mut out, &RecoverOptions::default()).expect("memory takes all");
    (out, recovery)
}

#[test]
fn recovered_bags_are_sound_and_accounted_for() {
    for (log, bag) in readable() {
        let (out, recovery) = recover(&bag);
        let name = &log.name;
        assert_eq!(recovery.kept_bytes + recovery.lost_bytes(), bag.info().size, "{name}");
        assert_eq!(recovery.records, bag.info().records, "{name}");
        assert_eq!(recovery.unchanged, bag.is_intact(), "{name}");
        let again = open(&out.into());
        assert_eq!(again.info().lost.losses, 0, "{name}");
        assert_eq!(again.info().records, recovery.records, "{name}");
        assert!(
            again.sections().iter().all(|s| matches!(s.index, IndexState::Exact | IndexState::Empty)),
            "{name}"
        );
        let counts = again.diagnostics().counts();
        assert!(!counts.contains_key("W-BAG-137"), "{name}: other readers refuse such a connection");
        let (_, twice) = recover(&again);
        assert!(twice.unchanged, "{name}: not sound enough to be copied");
        let ledger = bag.ledger();
        let size: u64 = ledger.iter().map(|(_, range)| range.end - range.start).sum();
        assert_eq!(size, bag.info().size, "{name}: the ledger");
        assert!(ledger.windows(2).all(|two| two[0].0 != two[1].0), "{name}: neighbours of one kind");
    }
}

/// An intact bag is copied, unless a different compression is set. This also applies to a bag that
/// was opened by its index.
#[test]
fn an_intact_bag_is_compressed_on_request() {
    let log = LOGS.corpus().into_iter().find(|log| log.name == "v2.0+several-chunks").unwrap();
    for indexed_from in [0, u64::MAX] {
        let mut options = BagOptions::default();
        options.indexed_from = indexed_from;
        let mut bag = BagReader::new(log.bytes.clone(), &options).unwrap();
        assert!(recover(&bag).1.unchanged);
        for compression in Compression::ALL {
            bag.set_compression(compression);
            let (out, recovery) = recover(&bag);
            assert_eq!(recovery.unchanged, compression == Compression::None);
            let name = format!("compression={}", compression.name());
            let chunks = out.windows(name.len()).filter(|bytes| *bytes == name.as_bytes()).count();
            assert!(chunks > 0 && open(&out.into()).info().records == bag.info().records, "{name}");
        }
    }
}

/// The index lists messages that are lost. If the bag is truncated, the list of recovered and lost
/// byte ranges ends with the truncated record.
#[test]
fn lost_messages_are_listed() {
    let bag = open(&LOGS.case("damaged+index-names-the-lost").bytes);
    let lost = bag.lost_messages();
    assert_eq!(lost.len(), 1);
    assert_eq!((&*lost[0].topic, lost[0].nanos), (&b"/chatter"[..], 1_262_304_000_300_000_000));
    let (_, recovery) = recover(&bag);
    assert!(recovery.details.iter().any(|detail| detail.key == "lost_messages"));

    let bag = open(&LOGS.case("cut-in-payload").bytes);
    assert!(matches!(bag.ledger().last(), Some((Part::Tail, _))));
    let bag = open(&LOGS.case("damaged-zeros").bytes);
    assert_eq!(bag.ledger().iter().filter(|(part, _)| *part == Part::Lost).count(), 1);
}

/// Lost messages that the index data list are both counted and listed in the report. Missing bytes
/// may have changed the offsets of later messages.
#[test]
fn lost_messages_in_chunks_are_counted_and_listed() {
    for (log, bag) in readable().filter(|(_, bag)| bag.version() == Version::V2_0) {
        let (_, recovery) = recover(&bag);
        let gone = rovelog_testing::detail(&recovery.details, "lost_messages").map(rovelog_testing::json_of);
        let named = gone.map_or(0, |gone| gone.as_array().unwrap().len() as u64);
        // Damaged or missing index data list no lost messages.
        let unnamed = match &*log.name {
            "v2.0+byte-missing-in-a-chunk+index-damaged" => 1,
            "v2.0+zeros-before-index+chunk-missing" => 3,
            _ => 0,
        };
        assert_eq!(named + unnamed, recovery.missing_records, "{}", log.name);
    }
    let (_, recovery) = recover(&open(&LOGS.case("v2.0+byte-missing-in-a-chunk").bytes));
    let gone = rovelog_testing::detail(&recovery.details, "lost_messages").map(rovelog_testing::json_of);
    assert_eq!(gone.unwrap()[0]["t_ns"], "1262304000400000000");
}

/// The bytes of a complete message are missing, so no damaged bytes remain.
#[test]
fn a_message_that_only_the_index_lists_is_lost() {
    let bytes = &LOGS.case("recorded+two-topics").bytes;
    let offset = |record: Record<'_>| usize::try_from(record.offset).unwrap();
    let offsets: Vec<_> = open(bytes).records_in_file_order().map(offset).collect();
    let [.., start, end] = offsets[..] else { panic!("{offsets:?}") };
    let bag = open(&[&bytes[..start], &bytes[end..]].concat().into());
    let lost = &bag.info().lost;
    assert_eq!((lost.losses, lost.bytes, lost.missing_records), (1, 0, 1));
    assert_eq!(bag.info().state, State::Damaged);
    assert_eq!(recover(&bag).1.missing_records, 1);
}

/// Thousands of index entries refer to a topic with a long name. The name must be stored only once.
#[test]
fn the_list_of_lost_messages_needs_less_memory_than_the_bag() {
    const ENTRIES: u32 = 5000;
    let topic = vec![b'a'; 100_000];
    let of = |topic, op| [("op", std::slice::from_ref(op)), ("topic", topic)];
    let number = |n: u32| n.to_le_bytes();
    let named = |bag: &BagReader| {
        let (_, recovery) = recover(bag);
        let gone =
            recovery.details.iter().find(|detail| detail.key == "lost_messages").expect("some are gone");
        let list = rovelog_testing::json_of(&gone.value);
        (gone.text.clone().unwrap(), list.as_array().unwrap().len())
    };

    let conn = ("conn", &[0; 4][..]);
    let content = [
        record(&[conn, of(&topic, &7)[0], of(&topic, &7)[1]], b""),
        record(&[conn, ("op", &[2]), ("time", &[1; 8])], b"x"),
    ]
    .concat();
    let entries: Vec<u8> =
        (0..ENTRIES).flat_map(|n| [number(n), number(0), number(100 * n)].concat()).collect();
    let bytes = [
        b"#ROSBAG V2.0\n".to_vec(),
        record(
            &[
                ("compression", b"none"),
                ("op", &[5]),
                ("size", &number(u32::try_from(content.len()).unwrap())),
            ],
            &content,
        ),
        record(&[conn, ("count", &number(ENTRIES)), ("op", &[4]), ("ver", &number(1))], &entries),
    ];
    assert_eq!(
        named(&open(&bytes.concat().into())),
        ("5000 messages listed in the index could not be found".to_owned(), 10)
    );

    let data = [&of(&topic, &2)[..], &[("type", b"a/B"), ("md5", b"*"), ("sec", &[0; 4]), ("nsec", &[0; 4])]];
    let message = record(&data.concat(), b"x");
    let lost = vec![0xff; 20_000];
    let place = |n: u32| (16 + message.len() as u64 + u64::from(n)).to_le_bytes();
    let entries =
        (0..ENTRIES).flat_map(|n| [&number(n)[..], &number(0), &place(n)].concat()).collect::<Vec<u8>>();
    let count = number(ENTRIES);
    let index = [&of(&topic, &4)[..], &[("count", &count), ("ver", &[0; 4])]].concat();
    let bytes = [&b"#ROSRECORD V1.2\n"[..], &message, &lost, &message, &record(&index, &entries)].concat();
    let bag = open(&bytes.into());
    let lost = bag.lost_messages();
    assert_eq!(lost.len(), 5000);
    assert!(lost.iter().all(|other| std::sync::Arc::ptr_eq(&lost[0].topic, &other.topic)));
    assert_eq!(named(&bag), ("5000 messages listed in the index could not be found".to_owned(), 10));
}

/// Returns a closed bag with four messages of one topic. The first message has the time `start`,
/// and the messages are one second apart.
fn closed(start: u32) -> Vec<u8> {
    let mut out = BagWriter::new(Cursor::new(Vec::new())).expect("memory");
    let id = out.connect(b"/a", b"a/B", &[b'0'; 32], b"uint8[] x").expect("a topic");
    for sec in start..start + 4 {
        out.message(id, sec, 0, None, b"\x02\0\0\0hi").expect("memory");
    }
    out.finish().expect("memory").into_inner()
}

/// The first index entry of the topic refers to its definition record, which is intact. Index
/// positions in an appended bag are relative to the start of that bag.
#[test]
fn lost_messages_of_all_sections_are_listed() {
    let one = closed(1);
    let offsets: Vec<u64> =
        open(&one.clone().into()).records_in_file_order().map(|record| record.offset).collect();
    for (section, message) in [(0, 0), (0, 1), (1, 0), (1, 2)] {
        let mut bytes = [&one[..], &closed(11)].concat();
        let offset = offsets[message] + section * one.len() as u64;
        let at = usize::try_from(offset).unwrap();
        bytes[at..at + 4].fill(0xff);
        let bag = open(&bytes.into());
        assert_eq!(bag.info().records, 7);
        let [lost] = &bag.lost_messages()[..] else { panic!("message {message} of bag {section}") };
        let nanos =
            (10 * i64::try_from(section).unwrap() + i64::try_from(message).unwrap() + 1) * 1_000_000_000;
        assert_eq!((&lost.topic[..], lost.nanos, lost.offset), (&b"/a"[..], nanos, offset));
    }
}

/// Other readers refuse these bags, although the indices of the bags list every message.
#[test]
fn bags_that_no_recorder_writes_are_not_intact() {
    assert!(open(&closed(1).into()).is_intact());
    assert!(!open(&[&closed(1)[..], &[0xff; 20]].concat().into()).is_intact());
    for case in ["index-first-entry-is-data", "index-of-a-topic-without-messages"] {
        let bag = open(&LOGS.case(case).bytes);
        assert_eq!(bag.sections()[0].index, IndexState::Exact, "{case}");
        assert!(!bag.is_intact(), "{case}");
    }
}

/// A damaged op (record type) is determined from the other header fields. Recovery and reindexing
/// write the right op, because other readers refuse a bag with a damaged op.
#[test]
fn damaged_ops_are_corrected() {
    for (case, ops) in [
        ("damaged-ops", &[16..54, 4120..4238, 4238..4361, 4367..4490, 4496..4619, 5012..5096][..]),
        ("v2.0+damaged-ops-in-a-chunk", &[4166..4167, 4367..4368]),
    ] {
        let bag = open(&LOGS.case(case).bytes);
        assert!(!bag.is_intact(), "{case}");
        let places: Vec<_> = bag.diagnostics().list().iter().map(|d| d.range.clone()).collect();
        assert_eq!(places, ops, "{case}");
        let (recovered, recovery) = recover(&bag);
        assert_eq!((bag.info().records, recovery.records), (6, 6), "{case}");
        let mut merged = Vec::new();
        Rosbag::merge(&[&bag], Align::AsIs, &mut merged).expect("memory takes all");
        let mut sliced = Vec::new();
        bag.slice(&Select::all(), &mut sliced).expect("memory takes all");
        for written in [recovered, sliced, merged] {
            let written = open(&written.into());
            assert!(written.is_intact() && written.diagnostics().list().is_empty(), "{case}");
            assert_eq!(written.info().records, 6, "{case}");
        }
    }
}

/// All other bytes of a V1.2 bag stay the same.
#[test]
fn only_the_damaged_ops_change() {
    let damaged = LOGS.case("damaged-ops").bytes;
    let (recovered, _) = recover(&open(&damaged));
    assert_eq!(recovered.len(), damaged.len());
    let changed: Vec<_> = std::iter::zip(&*damaged, &recovered).filter(|(was, is)| was != is).collect();
    assert_eq!(changed, [(&0x43, &3), (&0x81, &1), (&0x82, &2), (&3, &2), (&0, &2), (&0x14, &4)]);
}

/// If the damage is inside one message, only this message is lost.
#[test]
fn damage_in_one_message_loses_one_message() {
    for log in ["real_scan_splitter_v12", "indexed"].into_iter().filter_map(|name| LOGS.real_log(name)) {
        let whole = open(&log.bytes);
        let places: Vec<_> = whole.records_in_file_order().map(|r| (r.offset, r.payload.len())).collect();
        for (i, (offset, _)) in places.iter().enumerate().skip(1).step_by(7) {
            let at = usize::try_from(*offset).unwrap();
            for spoil in [0usize, 4, 8] {
                for byte in [0x00, 0xff, 0x55] {
                    let mut bytes = log.bytes.to_vec();
                    bytes[at + spoil..at + spoil + 4].fill(byte);
                    let what = format!("{} message {i}, byte {spoil} = {byte:#x}", log.name);
                    let bag = open(&bytes.into());
                    assert_eq!(bag.info().records, whole.info().records - 1, "{what}");
                    assert_eq!(bag.lost_messages().len(), 1, "{what}");
                }
            }
        }
    }
}
