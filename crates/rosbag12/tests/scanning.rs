//! Tests of losses and diagnostics. The bags consist of single records and random bytes.

mod support;

use rosbag12::wire::VERSION_LINE;
use rosbag12::{BagOptions, BagReader, BagStream};
use rovelog_core::{Diagnostic, LogReader, LogStream};
use rovelog_testing::{Dribble, READ_SIZES};
use support::{LOGS, definition, message, message_of, open, options, record};

/// Bytes that are not a valid record.
const JUNK: &[u8] = &[0xff; 20];

/// Returns a bag that consists of the version line and `parts`.
fn bag(parts: &[&[u8]]) -> Vec<u8> {
    [&[&VERSION_LINE[..]][..], parts].concat().concat()
}

fn open_parts(parts: &[&[u8]]) -> BagReader {
    open(&bag(parts).into())
}

/// Returns the time of each message in seconds, in file order.
fn seconds(bag: &BagReader) -> Vec<i64> {
    bag.records_in_file_order().map(|record| record.time.unwrap().nanos / 1_000_000_000).collect()
}

/// Returns the time of each message in seconds, read from a stream. Each read of the stream returns
/// a piece with the next of the `sizes`.
fn streamed_seconds(bytes: &[u8], sizes: &[usize], options: &BagOptions) -> Vec<i64> {
    let mut stream = BagStream::new(Dribble::new(bytes, sizes), options).expect("a bag that opens");
    let mut found = Vec::new();
    while let Some(record) = stream.next_record().expect("a readable input") {
        found.push(record.time.unwrap().nanos / 1_000_000_000);
    }
    found
}

/// Returns the diagnostics of a bag that have the given name.
fn noticed<'a>(bag: &'a BagReader, name: &str) -> Vec<&'a Diagnostic> {
    bag.diagnostics().list().iter().filter(|noticed| noticed.rule.name == name).collect()
}

/// Returns a message record whose length field also covers the bytes `more` after the record. The
/// data of the message have `data` bytes.
fn lengthened(mut message: Vec<u8>, data: usize, more: &[&[u8]]) -> Vec<u8> {
    let more: usize = more.iter().map(|part| part.len()).sum();
    let at = message.len() - data - 4;
    message[at..at + 4].copy_from_slice(&u32::try_from(data + more).unwrap().to_le_bytes());
    message
}

/// A length that is too large is detected because the message does not match its definition.
/// Without a definition, it is detected by the records inside the message.
#[test]
fn a_message_with_a_too_large_length_does_not_hide_later_ones() {
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

/// A message is truncated at the end of the file. Records inside the message may be part of its
/// payload, unless their topic is known.
#[test]
fn a_record_of_an_unknown_topic_in_a_cut_message_is_ignored() {
    let inside = message_of(&[("topic", b"/other")], 8, b"\x02\0\0\0m0");
    let cut = lengthened(message(2), 6, &[&[0; 5000]]);
    assert_eq!(seconds(&open_parts(&[&message(1), &cut, &inside, &message(9)])), [1, 9]);
    assert_eq!(seconds(&open_parts(&[&message(1), &cut, &inside])), [1]);
}

#[test]
fn a_search_starts_after_the_damage() {
    // Together with the LF of the version line, the first bytes of the message would form a header
    // length of 266.
    let hidden = message_of(&[("pad", &[b'x'; 149])], 1, b"\x02\0\0\0m0");
    assert_eq!(hidden[..4], [b'\n', 1, 0, 0]);
    let bag = open_parts(&[&hidden[1..], &message(2), &message(3)]);
    assert_eq!(seconds(&bag), [2, 3]);
    assert_eq!(noticed(&bag, "gap")[0].range, 16..15 + hidden.len() as u64);
}

#[test]
fn a_short_message_is_reported_at_its_incomplete_field() {
    let definition = definition("uint32 number\nstring data\n");
    let message = message_of(&[], 1, b"\x07\0\0\0\x05\0\0\0abc");
    let bytes = bag(&[&definition, &message]);
    let end = bytes.len() as u64;
    assert_eq!(noticed(&open(&bytes.into()), "payload_short")[0].range, end - 7..end);
}

/// Records in a compressed chunk have no bytes in the file, so their diagnostics refer to one byte.
#[test]
fn diagnostics_in_a_compressed_chunk_have_a_range_of_one_byte() {
    let bag = open(&LOGS.case("v2.0+payload-surplus+compressed").bytes);
    let ranges = ["payload_short", "payload_surplus"].map(|name| noticed(&bag, name)[0].range.clone());
    assert!(ranges.iter().all(|range| range.end == range.start + 1), "{ranges:?}");
}

/// For a bag without messages, recorders store the end of the file as the index position.
#[test]
fn a_bag_without_messages_can_have_a_wrong_index_position() {
    for (off, wrong) in [(0, 0), (1, 1)] {
        let header = |pos: u64| record(&[("op", &[3]), ("index_pos", &pos.to_le_bytes())], &[b' '; 64]);
        let end = bag(&[&header(0)]).len() as u64;
        assert_eq!(noticed(&open_parts(&[&header(end - off)]), "index_pos_wrong").len(), wrong, "{off}");
    }
}

#[test]
fn messages_with_an_earlier_time_are_counted() {
    let bag = open_parts(&[1, 3, 2, 2, 2].map(message).each_ref().map(|message| &message[..]));
    assert_eq!(bag.times_going_back(), 1);
}

#[test]
fn a_duplicate_field_of_a_definition_is_reported() {
    let topic: [(&str, &[u8]); 2] = [("topic", b"/b"), ("topic", b"/a")];
    let others: [(&str, &[u8]); 4] = [("type", b"a/B"), ("md5", b"*"), ("def", b"int8 x\n"), ("op", &[1])];
    let definition = record(&[&topic[..], &others].concat(), b"");
    let bag = open_parts(&[&definition, &message(1)]);
    let [noticed] = noticed(&bag, "duplicate_field")[..] else { panic!("once") };
    assert_eq!(noticed.range, 16..16 + definition.len() as u64);
}

#[test]
fn crlf_line_ends_alone_do_not_indicate_a_text_mode_copy() {
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

/// After a bag header without data, padding ends 4096 bytes after the start of the bag header.
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
        // There are more spaces than any padding can have.
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
        for sizes in READ_SIZES {
            assert_eq!(streamed_seconds(&bytes, sizes, &options("bag")), [1, 2, 3], "{what}");
        }
    }
}

#[test]
fn an_appended_bag_is_reported_at_its_version_line() {
    let bag = open(&LOGS.case("two-sections").bytes);
    let at = bag.sections()[1].offset;
    assert_eq!(noticed(&bag, "appended_section")[0].range, at..at + VERSION_LINE.len() as u64);
}

/// A stream buffers one record at a time, even while it skips lost bytes.
#[test]
fn a_stream_buffers_only_one_record() {
    let messages = |seconds: std::ops::Range<u32>| seconds.map(message).collect::<Vec<_>>().concat();
    let junk = [0xff; 3000];
    let bytes = bag(&[&messages(1..50), &junk, &messages(50..60)]);
    let mut options = BagOptions::default();
    options.streamed_record = 1000;
    assert_eq!(streamed_seconds(&bytes, &[64], &options), (1..60).collect::<Vec<i64>>());
}

/// The index comes after the messages, so a stream cannot use it to find messages after damage.
#[test]
fn a_stream_does_not_use_the_index() {
    let fields: [(&str, &[u8]); 2] = [("op", &[3]), ("index_pos", &[16, 0, 0, 0, 0, 0, 0, 0])];
    let header = record(&fields, &[b' '; 50]);
    let last = message(4);
    let bytes = bag(&[&header, &message(1), &message(2), &message(3), &last[..last.len() - 3]]);
    assert_eq!(seconds(&open(&bytes.clone().into())), [1, 2, 3]);
    for sizes in READ_SIZES {
        assert_eq!(streamed_seconds(&bytes, sizes, &options("bag")), [1, 2, 3]);
    }
}

#[test]
fn diagnostics_describe_the_loss() {
    let lost = |parts: &[&[u8]], name: &str| noticed(&open_parts(parts), name)[0].message.clone();
    let (definition, first, next) = (definition("string data\n"), message(1), message(2));
    assert_eq!(
        lost(&[&first, JUNK, &next], "gap"),
        "no valid record was found in 20 bytes, so this data is lost; the message of /a directly before, at \
         byte 16, may be corrupt"
    );
    assert_eq!(
        lost(&[&first, &definition, JUNK, &next], "gap"),
        "no valid record was found in 20 bytes, so this data is lost"
    );
    assert_eq!(lost(&[JUNK, &next], "gap"), "no valid record was found in 20 bytes, so this data is lost");
    // A record has a valid length but no op (record type). The record is tested in the middle and
    // at the end of the file.
    let bad = record(&[("topic", b"/a")], b"data");
    let size = format!("a record of {} bytes is lost, because its header is invalid", bad.len());
    assert_eq!(lost(&[&first, &bad, &next], "bad_record"), size);
    assert_eq!(lost(&[&first, &bad], "bad_record"), size);
    let at = 16 + first.len();
    assert_eq!(
        lost(&[&first, &next[..40]], "cut"),
        format!("the file ends inside the record at byte {at}, after 40 bytes of it")
    );
}

#[test]
fn a_bag_without_a_version_line_may_be_lost_from_its_start() {
    let bag = BagReader::open_v0(JUNK.to_vec().into(), &BagOptions::default()).unwrap();
    assert_eq!(
        noticed(&bag, "gap")[0].message,
        "no valid record was found in 20 bytes, so this data is lost"
    );
    assert_eq!((noticed(&bag, "gap")[0].range.clone(), bag.info().records), (0..20, 0));
}

/// Returns a V1.1 bag with one message of each topic, at 1 s.
fn old(topics: std::ops::Range<u32>) -> Vec<u8> {
    let messages = topics.map(|topic| {
        [format!("/{topic}\n*\na/B\n").as_bytes(), &1u32.to_le_bytes(), &[0; 4], &[0; 4]].concat()
    });
    b"#ROSLOG V1.1\n".iter().copied().chain(messages.flatten()).collect()
}

/// After damage in a bag before V1.2, messages cannot be found again, so everything up to the end
/// of the file is lost.
#[test]
fn a_damaged_old_bag_is_lost_to_its_end() {
    let bytes = [old(0..3), b"no\nsum\n".repeat(200)].concat();
    assert_eq!(seconds(&open(&bytes.clone().into())), [1, 1, 1]);
    for sizes in READ_SIZES {
        assert_eq!(streamed_seconds(&bytes, sizes, &options("bag")), [1, 1, 1]);
    }
}

#[test]
fn topics_are_limited() {
    let bag = open(&old(0..(1 << 16) + 1).into());
    assert_eq!((bag.info().records, bag.connections().len()), (1 << 16, 1 << 16));
    let [noticed] = noticed(&bag, "too_many_topics")[..] else { panic!("once") };
    assert_eq!(noticed.message, "a record is skipped, because the bag has more than 65536 topics");
}
