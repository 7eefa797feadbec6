//! Everything that reads the same bytes must say the same: stream and slice, declaration and view; and the order of
//! records is a plain sort.

mod support;

use proptest::prelude::*;
use rosbag12::header::HeaderRef;
use rosbag12::wire::{Header, RecordHead};
use rosbag12::{BagReader, BagStream};
use rovelog_core::{LogReader, LogStream, Select};
use rovelog_testing::{Dribble, Log, PIECES, assert_alike, check_order};
use support::{LOGS, common_of_reader, common_of_stream, open, options, readable};

/// Bags whose index tells the reader more than a pipe can know before its end, and one whose definition
/// comes behind its messages.
const TOLD_APART: [&str; 2] = ["damaged+bag-in-a-message", "definition-behind-its-messages"];

fn check_stream(log: &Log, sizes: &[usize]) {
    let options = options(&log.name);
    let dribble = Dribble::new(&log.bytes, sizes);
    let Ok(bag) = BagReader::new(log.bytes.clone(), &options) else {
        // A pipe shows only at its end that a checksum is wrong.
        let read =
            BagStream::new(dribble, &options).map_err(rovelog_core::Error::from).and_then(|mut stream| {
                while stream.next_record()?.is_some() {}
                Ok(())
            });
        assert!(read.is_err(), "{}", log.name);
        return;
    };
    let (want, got) = (common_of_reader(&bag), common_of_stream(dribble, &options));
    assert_alike(&format!("{} {sizes:?}", log.name), &want, &got);
}

#[test]
fn the_stream_fed_in_any_pieces_equals_the_slice() {
    for log in LOGS.corpus().into_iter().filter(|log| !TOLD_APART.contains(&&*log.name)) {
        for sizes in PIECES {
            check_stream(&log, sizes);
        }
    }
}

#[test]
fn the_stream_equals_the_slice_on_real_bags() {
    for log in LOGS.real() {
        for size in [1, 1000] {
            check_stream(&log, &[size]);
        }
    }
}

/// The declared struct and the borrowed view of one header: both or neither, and the same fields.
fn check_twins(header: &[u8]) {
    let record = [&u32::try_from(header.len()).unwrap().to_le_bytes(), header, &[0; 4]].concat();
    let declared = RecordHead::from_bytes(&record).ok();
    let typed = declared.as_ref().and_then(RecordHead::typed);
    let viewed = HeaderRef::parse(header);
    assert_eq!(typed.is_some(), viewed.is_some(), "{}", header.escape_ascii());
    if let Some(declared) = declared {
        assert_eq!(declared.to_bytes(), record, "{}", header.escape_ascii());
    }
    let (Some(typed), Some(viewed)) = (typed, viewed) else { return };
    let text = |part: Option<&[u8]>| part.map(<[u8]>::to_vec);
    match typed {
        Header::Definition(d) => {
            assert_eq!((Some(d.topic), Some(d.md5)), (text(viewed.topic), text(viewed.md5)));
            assert_eq!((Some(d.ty), Some(d.def)), (text(viewed.ty), text(viewed.def)));
        }
        Header::Data(d) => {
            assert_eq!((Some(d.topic), Some(d.md5)), (text(viewed.topic), text(viewed.md5)));
            assert_eq!((Some(d.sec), Some(d.nsec)), (viewed.sec.map(|s| s.0), viewed.nsec.map(|s| s.0)));
            assert_eq!((d.latching, d.callerid), (text(viewed.latching), text(viewed.callerid)));
            assert_eq!(Some(d.ty), text(viewed.ty));
        }
        Header::BagHeader(b) => assert_eq!(Some(b.index_pos), viewed.index_pos),
        Header::Index(i) => {
            assert_eq!((Some(i.topic), i.ty), (text(viewed.topic), text(viewed.ty)));
            assert_eq!((Some(i.ver), Some(i.count)), (viewed.ver, viewed.count));
        }
        Header::Unknown(op) => assert_eq!(op, viewed.op),
        other => panic!("{other:?}"),
    }
}

#[test]
fn declarations_and_views_agree_on_every_header() {
    let mut headers = 0;
    for log in LOGS.corpus().into_iter().filter(|log| log.bytes.starts_with(b"#ROSRECORD V1.2\n")) {
        // Plain framing: also what is not sound must be judged alike by both.
        let mut rest = &log.bytes[16..];
        while let Some(len) = rest.first_chunk().map(|len| u32::from_le_bytes(*len) as usize) {
            let Some(header) = rest.get(4..).and_then(|rest| rest.get(..len)) else { break };
            check_twins(header);
            headers += 1;
            let data = rest[4 + len..].first_chunk().map_or(0, |len| u32::from_le_bytes(*len) as usize);
            rest = rest.get(8 + len + data..).unwrap_or_default();
        }
    }
    assert!(headers > 300, "only {headers} headers");
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
    fn declarations_and_views_agree_on_any_header(fields in prop::collection::vec(any_field(), 0..9)) {
        check_twins(&fields.concat());
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

/// Zero copy: a record's payload is the bag's own memory.
#[test]
fn records_borrow_from_the_bag() {
    let log = LOGS.case("recorded");
    let bag = open(&log.bytes);
    let inside = log.bytes.as_ptr_range();
    for record in bag.records(&Select::all()) {
        assert!(inside.contains(&record.expect("sound").payload.as_ptr()));
    }
}

/// A record of V1.2: fields by name and value, then data.
fn record(fields: &[(&str, &[u8])], data: &[u8]) -> Vec<u8> {
    let len = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap().to_le_bytes();
    let fields = fields.iter().map(|(name, value)| [name.as_bytes(), b"=", value].concat());
    let header = fields.map(|field| [&len(&field), &field[..]].concat()).collect::<Vec<_>>().concat();
    [&len(&header), &header[..], &len(data), data].concat()
}

/// A definition in the middle of a bag holds for the very next message, however the input is split.
#[test]
fn a_definition_between_messages_holds_at_once() {
    let md5: &[u8] = b"992ce8a1687cec8c8bd883ec73ca41d1";
    let topic: [(&str, &[u8]); 3] = [("topic", b"/a"), ("type", b"std_msgs/String"), ("md5", md5)];
    let message = |sec: u32| {
        let stamp: [(&str, &[u8]); 3] = [("op", &[2]), ("sec", &sec.to_le_bytes()), ("nsec", &[0; 4])];
        record(&[&topic[..], &stamp].concat(), b"\x02\0\0\0m0")
    };
    let definition = record(&[&topic[..], &[("op", &[1][..]), ("def", b"uint64 data\n")]].concat(), &[]);
    let messages = || (1..6).flat_map(message);
    let bag = b"#ROSRECORD V1.2\n".iter().copied().chain(messages()).chain(definition).chain(messages());
    let bytes = bag.collect::<Vec<_>>().into();
    let bag = open(&bytes);
    for size in [1, 7, 64, 200, 4096] {
        let mut stream = BagStream::new(Dribble::new(&bytes, [size]), &options("bag")).unwrap();
        while stream.next_record().unwrap().is_some() {}
        assert_eq!(stream.diagnostics().list(), bag.diagnostics().list(), "{size}");
    }
    // Found by its type before, and eight bytes long from there on.
    let short = bag.diagnostics().list().iter().filter(|noticed| noticed.rule.name == "payload_short");
    assert_eq!(short.count(), 5);
}
