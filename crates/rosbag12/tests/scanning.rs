//! Bags made of single records and of bytes that are none: what is lost, and what is noticed.

mod support;

use rosbag12::wire::VERSION_LINE;
use rosbag12::{BagOptions, BagReader, BagStream};
use rovelog_core::{Diagnostic, LogReader, LogStream};
use rovelog_testing::{Dribble, PIECES};
use support::{LOGS, definition, message, message_of, open, options, record};

/// Bytes that are no record.
const JUNK: &[u8] = &[0xff; 20];

/// Returns a bag of these parts behind the version line.
fn bag(parts: &[&[u8]]) -> Vec<u8> {
    [&[&VERSION_LINE[..]][..], parts].concat().concat()
}

fn open_parts(parts: &[&[u8]]) -> BagReader {
    open(&bag(parts).into())
}

/// The seconds of all messages, in file order.
fn seconds(bag: &BagReader) -> Vec<i64> {
    bag.records_in_file_order().map(|record| record.time.unwrap().nanos / 1_000_000_000).collect()
}

/// The same by a stream in pieces of these sizes.
fn streamed_seconds(bytes: &[u8], sizes: &[usize], options: &BagOptions) -> Vec<i64> {
    let mut stream = BagStream::new(Dribble::new(bytes, sizes), options).expect("a bag that opens");
    let mut found = Vec::new();
    while let Some(record) = stream.next_record().expect("a readable input") {
        found.push(record.time.unwrap().nanos / 1_000_000_000);
    }
    found
}

/// What was noticed of this kind.
fn noticed<'a>(bag: &'a BagReader, name: &str) -> Vec<&'a Diagnostic> {
    bag.diagnostics().list().iter().filter(|noticed| noticed.rule.name == name).collect()
}

/// Returns a message whose length says that it has all of `more` as well.
fn lengthened(mut message: Vec<u8>, data: usize, more: &[&[u8]]) -> Vec<u8> {
    let more: usize = more.iter().map(|part| part.len()).sum();
    let at = message.len() - data - 4;
    message[at..at + 4].copy_from_slice(&u32::try_from(data + more).unwrap().to_le_bytes());
    message
}

/// The definition tells that a length is wrong; without one the records inside do.
#[test]
fn a_message_that_is_too_long_does_not_swallow_those_behind_it() {
    let other: [(&str, &[u8]); 3] = [("topic", b"/other"), ("type", b"x/Y"), ("md5", b"*")];
    let (third, fourth) = (message(3), message(4));
    let inside = [&third[..], &fourth, &JUNK[..10]];
    for further in [&[][..], &other] {
        let (first, second) =
            (message_of(further, 1, b"\x02\0\0\0m0"), message_of(further, 2, b"\x02\0\0\0m0"));
        let second = lengthened(second, 6, &inside);
        let (definition, last) = (definition("string data\n"), [message(5), message(6)].concat());
        let mut parts = vec![&definition[..], &first, &second];
        parts.extend(inside);
        parts.extend([JUNK, &last]);
        assert_eq!(seconds(&open_parts(&parts)), [1, 3, 4, 5, 6], "{further:?}");
    }
}

/// What is found behind the start of a message that the file cuts may be part of it, unless it is
/// of a topic of the bag.
#[test]
fn a_record_of_an_unknown_topic_in_a_cut_message_is_part_of_it() {
    let inside = message_of(&[("topic", b"/other")], 8, b"\x02\0\0\0m0");
    let cut = lengthened(message(2), 6, &[&[0; 5000]]);
    assert_eq!(seconds(&open_parts(&[&message(1), &cut, &inside, &message(9)])), [1, 9]);
    assert_eq!(seconds(&open_parts(&[&message(1), &cut, &inside])), [1]);
}

#[test]
fn a_search_does_not_begin_before_the_damage() {
    // The LF of the version line would be the first byte of the length of a header: 266.
    let hidden = message_of(&[("pad", &[b'x'; 149])], 1, b"\x02\0\0\0m0");
    assert_eq!(hidden[..4], [b'\n', 1, 0, 0]);
    let bag = open_parts(&[&hidden[1..], &message(2), &message(3)]);
    assert_eq!(seconds(&bag), [2, 3]);
    assert_eq!(noticed(&bag, "gap")[0].range, 16..15 + hidden.len() as u64);
}

#[test]
fn a_short_message_is_noticed_where_its_last_field_begins() {
    let definition = definition("uint32 number\nstring data\n");
    let message = message_of(&[], 1, b"\x07\0\0\0\x05\0\0\0abc");
    let bytes = bag(&[&definition, &message]);
    let end = bytes.len() as u64;
    assert_eq!(noticed(&open(&bytes.into()), "payload_short")[0].range, end - 7..end);
}

/// What is in a compressed chunk has no bytes of its own in the file.
#[test]
fn what_is_noticed_in_a_compressed_chunk_has_the_range_of_one_byte() {
    let bag = open(&LOGS.case("v2.0+payload-surplus+compressed").bytes);
    let ranges = ["payload_short", "payload_surplus"].map(|name| noticed(&bag, name)[0].range.clone());
    assert!(ranges.iter().all(|range| range.end == range.start + 1), "{ranges:?}");
}

/// The recorder points at the end of the file then.
#[test]
fn a_bag_without_messages_can_have_a_wrong_index_position() {
    for (off, wrong) in [(0, 0), (1, 1)] {
        let header = |pos: u64| record(&[("op", &[3]), ("index_pos", &pos.to_le_bytes())], &[b' '; 64]);
        let end = bag(&[&header(0)]).len() as u64;
        assert_eq!(noticed(&open_parts(&[&header(end - off)]), "index_pos_wrong").len(), wrong, "{off}");
    }
}

#[test]
fn messages_that_go_back_in_time_are_counted() {
    let bag = open_parts(&[1, 3, 2, 2, 2].map(message).each_ref().map(|message| &message[..]));
    assert_eq!(bag.times_going_back(), 1);
}

#[test]
fn a_repeated_field_of_a_definition_is_noticed() {
    let topic: [(&str, &[u8]); 2] = [("topic", b"/b"), ("topic", b"/a")];
    let others: [(&str, &[u8]); 4] = [("type", b"a/B"), ("md5", b"*"), ("def", b"int8 x\n"), ("op", &[1])];
    let definition = record(&[&topic[..], &others].concat(), b"");
    let bag = open_parts(&[&definition, &message(1)]);
    let [noticed] = noticed(&bag, "duplicate_field")[..] else { panic!("once") };
    assert_eq!(noticed.range, 16..16 + definition.len() as u64);
}

#[test]
fn line_ends_alone_do_not_make_a_copy_in_text_mode() {
    let messages = [message(1), message(2), message(3)];
    let [first, second, third] = messages.each_ref().map(|message| &message[..]);
    let few: &[u8] = b"\xff\xff\xff\xff\r\n\r\n\xff\xff\xff\xff";
    let many: &[u8] = b"\xff\xff\xff\xff\r\n\r\n\r\n\r\n\xff\xff\xff\xff";
    let plain: &[u8] = b"\xff\xff\xff\xff\n\n\n\n\xff\xff\xff\xff";
    for (line, junk, is_copy) in [
        (&VERSION_LINE[..], many, false),
        (b"#ROSRECORD V1.2\r\n", few, false),
        (b"#ROSRECORD V1.2\r\n", plain, false),
        (b"#ROSRECORD V1.2\r\n", many, true),
    ] {
        let bag = open(&[line, first, junk, second, third].concat().into());
        assert_eq!(seconds(&bag), [1, 2, 3]);
        assert_eq!(noticed(&bag, "text_mode_copy").len(), usize::from(is_copy), "{}", junk.escape_ascii());
    }
}

/// The padding of a bag header without data ends 4096 bytes behind its start.
#[test]
fn spaces_are_padding_up_to_the_size_of_a_bag_header() {
    let header = |size: usize| {
        let fields: [(&str, &[u8]); 2] = [("op", &[3]), ("index_pos", &[0; 8])];
        let pad = vec![b'x'; size - record(&[&fields[..], &[("pad", b"")]].concat(), b"").len()];
        record(&[&fields[..], &[("pad", &pad)]].concat(), b"")
    };
    for (size, spaces, want) in [
        (100, 0, None),
        (100, 3996, Some(3996)),
        (4092, 4, Some(4)),
        (4096, 0, None),
        // Longer than any padding.
        (4200, 0, None),
    ] {
        let what = format!("a bag header of {size} bytes, {spaces} spaces");
        let spaces = vec![b' '; spaces];
        let bytes = bag(&[&header(size), &spaces, &message(1), &message(2), &message(3)]);
        let bag = open(&bytes.clone().into());
        assert_eq!(seconds(&bag), [1, 2, 3], "{what}");
        assert_eq!(bag.info().lost.losses, 0, "{what}");
        assert_eq!(bag.sections()[0].raw_padding, want, "{what}");
        assert_eq!(noticed(&bag, "raw_padding").len(), usize::from(want.is_some()), "{what}");
        if let Some(noticed) = noticed(&bag, "raw_padding").first() {
            let start = 16 + size as u64;
            assert_eq!(noticed.range, start..start + spaces.len() as u64, "{what}");
        }
        for sizes in PIECES {
            assert_eq!(streamed_seconds(&bytes, sizes, &options("bag")), [1, 2, 3], "{what}");
        }
    }
}

#[test]
fn an_appended_bag_is_noticed_at_its_version_line() {
    let bag = open(&LOGS.case("two-sections").bytes);
    let at = bag.sections()[1].offset;
    assert_eq!(noticed(&bag, "appended_section")[0].range, at..at + VERSION_LINE.len() as u64);
}

/// A stream holds one record, not the bag, whatever is lost of it.
#[test]
fn a_stream_keeps_only_what_it_still_looks_at() {
    let messages = |seconds: std::ops::Range<u32>| seconds.map(message).collect::<Vec<_>>().concat();
    let junk = [0xff; 3000];
    let bytes = bag(&[&messages(1..50), &junk, &messages(50..60)]);
    let mut options = BagOptions::default();
    options.streamed_record = 1000;
    assert_eq!(streamed_seconds(&bytes, &[64], &options), (1..60).collect::<Vec<i64>>());
}

/// The index that a bag header points at is of no use to a stream, which let go of what is there.
#[test]
fn a_stream_does_not_look_back() {
    let fields: [(&str, &[u8]); 2] = [("op", &[3]), ("index_pos", &[16, 0, 0, 0, 0, 0, 0, 0])];
    let header = record(&fields, &[b' '; 50]);
    let last = message(4);
    let bytes = bag(&[&header, &message(1), &message(2), &message(3), &last[..last.len() - 3]]);
    assert_eq!(seconds(&open(&bytes.clone().into())), [1, 2, 3]);
    for sizes in PIECES {
        assert_eq!(streamed_seconds(&bytes, sizes, &options("bag")), [1, 2, 3]);
    }
}

#[test]
fn diagnostics_say_what_is_lost() {
    let lost = |parts: &[&[u8]], name: &str| noticed(&open_parts(parts), name)[0].message.clone();
    let (definition, first, next) = (definition("string data\n"), message(1), message(2));
    assert_eq!(
        lost(&[&first, JUNK, &next], "gap"),
        "no valid record in 20 bytes; the message of /a at byte 16 right before may be corrupt"
    );
    assert_eq!(lost(&[&first, &definition, JUNK, &next], "gap"), "no valid record in 20 bytes");
    assert_eq!(lost(&[JUNK, &next], "gap"), "no valid record in 20 bytes");
    // A valid length, and no op: also at the end of the file.
    let bad = record(&[("topic", b"/a")], b"data");
    let size = format!("{} bytes: invalid record header", bad.len());
    assert_eq!(lost(&[&first, &bad, &next], "bad_record"), size);
    assert_eq!(lost(&[&first, &bad], "bad_record"), size);
    let at = 16 + first.len();
    assert_eq!(
        lost(&[&first, &next[..40]], "cut"),
        format!("the record at byte {at} is cut by the end of the file; 40 bytes of it are present")
    );
}

#[test]
fn a_bag_without_a_version_line_may_be_lost_from_its_start() {
    let bag = BagReader::open_v0(JUNK.to_vec().into(), &BagOptions::default()).unwrap();
    assert_eq!(noticed(&bag, "gap")[0].message, "no valid record in 20 bytes");
    assert_eq!((noticed(&bag, "gap")[0].range.clone(), bag.info().records), (0..20, 0));
}

/// Returns a bag of V1.1 with a message of each topic at 1 s.
fn old(topics: std::ops::Range<u32>) -> Vec<u8> {
    let messages = topics.map(|topic| {
        [format!("/{topic}\n*\na/B\n").as_bytes(), &1u32.to_le_bytes(), &[0; 4], &[0; 4]].concat()
    });
    b"#ROSLOG V1.1\n".iter().copied().chain(messages.flatten()).collect()
}

/// Nothing tells where messages of old bags start, so all of the pipe is read.
#[test]
fn a_damaged_old_bag_is_lost_to_its_end() {
    let bytes = [old(0..3), b"no\nsum\n".repeat(200)].concat();
    assert_eq!(seconds(&open(&bytes.clone().into())), [1, 1, 1]);
    for sizes in PIECES {
        assert_eq!(streamed_seconds(&bytes, sizes, &options("bag")), [1, 1, 1]);
    }
}

#[test]
fn topics_are_limited() {
    let bag = open(&old(0..(1 << 16) + 1).into());
    assert_eq!((bag.info().records, bag.connections().len()), (1 << 16, 1 << 16));
    let [noticed] = noticed(&bag, "too_many_topics")[..] else { panic!("once") };
    assert_eq!(noticed.message, "a record of a topic beyond the limit");
}
