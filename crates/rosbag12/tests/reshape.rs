//! Tests of slicing and merging bags.

mod support;

use rosbag12::v2::Compression;
use rosbag12::v2::wire::ConnectionHeader;
use rosbag12::{BagError, BagOptions, BagReader, IndexState, Rosbag, Source};
use rovelog_core::{Align, Format, LogReader, Select};
use rovelog_testing::{Content, content};
use support::{LOGS, open, readable, record};

fn slice(bag: &BagReader, select: &Select) -> (BagReader, rovelog_core::Sliced) {
    let mut out = Vec::new();
    let sliced = LogReader::slice(bag, select, &mut out).expect("memory takes all");
    assert_eq!(sliced.bytes, out.len() as u64);
    (open(&out.into()), sliced)
}

#[test]
fn a_slice_contains_the_selected_messages() {
    for (log, bag) in readable() {
        let (Some(start), Some(end)) = (bag.info().start, bag.info().end) else { continue };
        let middle = start.nanos / 2 + end.nanos / 2;
        let topic =
            bag.topics().iter().find(|topic| topic.count > 0).expect("there are messages").name.clone();
        let selects = [
            Select::all(),
            Select::all().between(Some(middle), None),
            Select::all().between(None, Some(middle)),
            Select::topic(topic.clone()),
            Select::topic(topic).between(Some(middle), Some(end.nanos)).with_last_before(),
        ];
        for select in selects {
            let (part, sliced) = slice(&bag, &select);
            let mut want: Vec<Content> = bag.records(&select).map(|r| content(&r.expect("sound"))).collect();
            let mut got: Vec<Content> = part.records_in_file_order().map(|r| content(&r)).collect();
            want.sort();
            got.sort();
            // A topic with several types has one numbered name for each type. If the slice omits
            // the first type, the name of the second type has no number, so the names are not
            // compared.
            let bare = |list: &[Content]| list.iter().map(|s| (s.1, s.2.clone())).collect::<Vec<_>>();
            assert!(bare(&got) == bare(&want), "{} {select:?}", log.name);
            assert_eq!(sliced.records, want.len() as u64, "{}", log.name);
            assert_eq!(part.info().lost.losses, 0, "{}", log.name);
        }
    }
}

/// In ROS, a late subscriber receives the last message of each latching publisher. A slice
/// therefore keeps these messages.
#[test]
fn a_slice_keeps_the_last_message_of_each_latching_publisher() {
    // The columns are: the name of the bag, the start in tenths of a second, and four numbers of
    // records. These are the records without latched messages, the records with latched messages,
    // the records that are kept only because they are latched, and the latter if the last message
    // of each topic is kept too.
    for (name, start, without, with, latched, beside_topic) in
        [("latched+two-publishers", 3, 1, 3, 2, 1), ("v2.0+two-publishers", 2, 2, 3, 1, 1)]
    {
        let bag = open(&LOGS.case(name).bytes);
        let start = bag.info().start.expect("a time").nanos + start * 100_000_000;
        let select = Select::all().between(Some(start), None);
        let kept = |sliced: &rovelog_core::Sliced| {
            let detail = sliced.details.iter().find(|detail| detail.key == "latched");
            detail.map_or(0, |detail| detail.value.to_json().trim_matches('"').parse().expect("a count"))
        };
        let (_, sliced) = slice(&bag, &select);
        assert_eq!((sliced.records, kept(&sliced)), (without, 0), "{name}");
        let (part, sliced) = slice(&bag, &select.clone().with_latched());
        assert_eq!((sliced.records, kept(&sliced)), (with, latched), "{name}");
        let before = part.records_in_file_order().filter(|record| record.time.expect("a time").nanos < start);
        assert!(before.map(|record| part.publisher(&record)).all(|publisher| publisher.latching), "{name}");
        let (_, sliced) = slice(&bag, &select.clone().with_last_before().with_latched());
        assert_eq!(kept(&sliced), beside_topic, "{name}");
        let (_, sliced) = slice(&bag, &Select::topic("/nowhere").between(Some(start), None).with_latched());
        assert_eq!(sliced.records, 0, "{name}");
    }
}

/// The connection of `/b` has an empty definition, so its messages are decoded with the definition
/// of `/a`. A slice without `/a` must contain this definition.
#[test]
fn a_slice_keeps_the_definition_of_another_connection() {
    const TY: &[u8] = b"pkg/Point";
    const MD5: &[u8] = b"209f516d3eb691f0663e25cb750d67c1";
    const TEXT: &[u8] = b"float64 x\nfloat64 y\n";
    let names = |topic| [("topic", topic), ("md5", MD5), ("type", TY)];
    let definition =
        |topic, text| record(&[&names(topic)[..], &[("op", &[1][..]), ("def", text)]].concat(), &[]);
    let stamp: [(&str, &[u8]); 3] = [("op", &[2]), ("sec", &[1, 0, 0, 0]), ("nsec", &[0; 4])];
    let message = |topic| record(&[&names(topic)[..], &stamp].concat(), &[0; 16]);
    let old = [
        &b"#ROSRECORD V1.2\n"[..],
        &definition(b"/a", TEXT),
        &message(b"/a"),
        &definition(b"/b", b""),
        &message(b"/b"),
    ]
    .concat();
    let mut new = Vec::new();
    rosbag12::v2::write(&mut new, Compression::None, |writer| {
        for (topic, text) in [(&b"/a"[..], TEXT), (b"/b", b"")] {
            let (ty, md5sum, message_definition) = (Some(TY), Some(MD5), Some(text));
            let header = ConnectionHeader { ty, md5sum, message_definition, ..ConnectionHeader::default() };
            let id = writer.connect(topic, &header.to_data())?;
            writer.message(id, (1, 0), &[0; 16])?;
        }
        Ok::<_, BagError>(())
    })
    .expect("memory takes all");
    for bag in [old, new] {
        let (part, sliced) = slice(&open(&bag.into()), &Select::topic("/b"));
        assert_eq!((sliced.records, part.connections().len()), (1, 1));
        let definition = part.connections()[0].definition().expect("a definition");
        assert_eq!((&*definition.text, definition.source), (TEXT, Source::Topic), "{:?}", part.version());
    }
}

/// Merging the slice before a time with the slice after this time gives all messages of the bag.
#[test]
fn merged_slices_equal_the_bag() {
    for (log, bag) in readable().filter(|(_, bag)| bag.is_intact()) {
        let (Some(start), Some(end)) = (bag.info().start, bag.info().end) else { continue };
        let middle = start.nanos / 2 + end.nanos / 2;
        let (before, _) = slice(&bag, &Select::all().between(None, Some(middle)));
        let (behind, _) = slice(&bag, &Select::all().between(Some(middle), None));
        let mut out = Vec::new();
        let merged = Rosbag::merge(&[&behind, &before], Align::Shared, &mut out).expect("memory takes all");
        let whole = open(&out.into());
        assert_eq!(merged.records, bag.info().records, "{}", log.name);
        let got: Vec<Content> = whole.records_in_file_order().map(|r| content(&r)).collect();
        let want: Vec<Content> = bag.records(&Select::all()).map(|r| content(&r.expect("sound"))).collect();
        // Messages with equal times may have a different order.
        assert!(got.is_sorted_by_key(|seen| seen.1), "{}", log.name);
        let sorted = |mut list: Vec<Content>| {
            list.sort();
            list
        };
        assert!(sorted(got) == sorted(want), "{}", log.name);
        assert!(whole.is_intact(), "{}", log.name);
    }
}

#[test]
fn relative_times_are_merged_only_on_request() {
    let bag = open(&LOGS.case("v1.0").bytes);
    assert!(Rosbag::merge(&[&bag, &bag], Align::Shared, &mut Vec::new()).is_err());
    assert_eq!(Rosbag::merge(&[&bag, &bag], Align::AsIs, &mut Vec::new()).expect("asked for").records, 8);
}

/// Returns the bag after reindexing, after slicing and after merging. Each of the three bags is
/// opened by a full scan.
fn rewritten(bag: &mut BagReader) -> [(Vec<u8>, BagReader); 3] {
    bag.set_compression(Compression::None);
    let (mut all, mut part, mut merged) = (Vec::new(), Vec::new(), Vec::new());
    bag.reindex(&mut all).expect("memory takes all");
    LogReader::slice(bag, &Select::all(), &mut part).expect("memory takes all");
    let left_out = Rosbag::merge(&[bag], Align::Shared, &mut merged).expect("memory takes all").left_out;
    assert!(left_out.is_empty(), "{left_out:?}");
    let mut options = BagOptions::default();
    options.indexed_from = u64::MAX;
    [all, part, merged].map(|bytes| {
        let bag = BagReader::new(bytes.clone().into(), &options).expect("a bag");
        assert_eq!(bag.sections()[0].index, IndexState::Exact);
        (bytes, bag)
    })
}

fn count(bytes: &[u8], part: &[u8]) -> usize {
    bytes.windows(part.len()).filter(|window| *window == part).count()
}

/// This is rule K17 of docs/formats/rosbag.md.
#[test]
fn records_and_fields_of_unknown_kinds_are_kept() {
    let unknown = record(&[("op", &[9]), ("why", b"nobody knows")], b"data");
    for (case, kept, times) in
        [("v2.0+unknown-op", &*unknown, 2), ("v2.0+fields-unknown", b"\x0b\0\0\0colour=r=\0d", 3)]
    {
        let mut bag = open(&LOGS.case(case).bytes);
        let is_same = |other: &BagReader| {
            bag.records_in_file_order()
                .map(|r| content(&r))
                .eq(other.records_in_file_order().map(|r| content(&r)))
        };
        let made = rewritten(&mut open(&LOGS.case(case).bytes));
        assert!(made.iter().all(|(bytes, made)| count(bytes, kept) == times && is_same(made)), "{case}");
        // The records of unknown type are also kept in compressed chunks.
        bag.set_compression(Compression::Lz4);
        let mut packed = Vec::new();
        bag.reindex(&mut packed).expect("memory takes all");
        let made = rewritten(&mut open(&packed.into()));
        assert!(made.iter().all(|(bytes, _)| count(bytes, kept) == times), "{case}");
    }
}

/// The bag has a chunk without messages, records that fill a whole chunk, and an undefined field in
/// a connection record.
#[test]
fn records_of_unknown_kinds_are_kept_in_chunks_without_messages() {
    let (topic, id, time) = (("topic", &b"/a"[..]), ("conn", &[0; 4][..]), ("time", &[5; 8][..]));
    let connection = record(&[("colour", b"red"), id, ("op", &[7]), topic], b"");
    let message = record(&[id, ("op", &[2]), time], b"payload");
    let unknown = record(&[("op", &[9]), ("x", b"1")], &vec![7; 1 << 20]);
    let chunk = |records: &[&[u8]]| {
        let data = records.concat();
        let size = u32::try_from(data.len()).expect("a small chunk").to_le_bytes();
        record(&[("compression", b"none"), ("op", &[5]), ("size", &size)], &data)
    };
    let header = record(
        &[("chunk_count", &[0; 4]), ("conn_count", &[0; 4]), ("index_pos", &[0; 8]), ("op", &[3])],
        &[b' '; 4027],
    );
    let bag = [
        &b"#ROSBAG V2.0\n"[..],
        &header,
        &chunk(&[&unknown]),
        &chunk(&[&connection, &message, &unknown]),
        &chunk(&[&unknown, &unknown]),
    ]
    .concat();
    for (number, (bytes, made)) in rewritten(&mut open(&bag.into())).into_iter().enumerate() {
        assert_eq!(count(&bytes, b"colour=red"), 2, "in the chunk and in the index");
        assert_eq!(made.records_of(9), 4, "of {number}");
        assert_eq!(made.info().start, made.info().end, "chunks without messages have no times");
    }
}

/// A nanoseconds value of one second or more is copied as stored, both in messages and in the
/// index.
#[test]
fn times_are_kept_as_they_are_stored() {
    let log = LOGS.case("v2.0+nanoseconds-past-a-second");
    let time = [&1_262_304_000_u32.to_le_bytes()[..], &2_500_000_000_u32.to_le_bytes()].concat();
    for (bytes, _) in rewritten(&mut open(&log.bytes)) {
        assert_eq!(count(&bytes, &time), 3, "in the message, its index data and the chunk info");
    }
    // Test the last time in 32 bits, 2106-02-07T06:28:15, with a nanoseconds value of more than a
    // second.
    let last = [u32::MAX.to_le_bytes(), 1_500_000_000_u32.to_le_bytes()].concat();
    let mut bytes = log.bytes.to_vec();
    for at in (0..bytes.len() - 8).filter(|at| log.bytes[*at..].starts_with(&time)).collect::<Vec<_>>() {
        bytes[at..at + 8].copy_from_slice(&last);
    }
    for (bytes, made) in rewritten(&mut open(&bytes.into())) {
        assert_eq!((count(&bytes, &last), made.info().records), (3, 2));
    }
}
