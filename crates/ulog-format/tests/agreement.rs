//! Tests that all readers return the same content of a log, that parsed messages can be encoded
//! again, and that records are sorted by time and offset.

mod support;

use std::collections::{BTreeSet, HashMap, HashSet};

use proptest::prelude::*;
use rovelog_core::{LogReader, LogStream, ReadOptions, Select};
use rovelog_testing::{Dribble, Log, READ_SIZES, assert_alike, check_order};
use support::{LOGS, common_of_reader, common_of_stream, log_of, open, quirks, readable, try_open};
use ulog_format::wire::{FileHeader, Message, MessageHeader, kind};
use ulog_format::{FormatBuilder, Scanned, UlogStream, UlogWriter};
use zerocopy::FromBytes;

fn check_stream(log: &Log, sizes: &[usize]) {
    let Some(reader) = try_open(&log.bytes) else {
        let dribble = Dribble::new(&log.bytes, sizes);
        assert!(UlogStream::new(dribble, &ReadOptions::default()).is_err(), "{}", log.name);
        return;
    };
    let (want, want_messages) = common_of_reader(&reader);
    let (got, got_messages) = common_of_stream(Dribble::new(&log.bytes, sizes));
    assert_alike(&format!("{} {sizes:?}", log.name), &want, &got);
    assert_eq!(got_messages, want_messages, "{}", log.name);
}

#[test]
fn the_stream_equals_the_slice_for_chunks_of_any_size() {
    for log in LOGS.corpus() {
        for sizes in READ_SIZES {
            check_stream(&log, sizes);
        }
    }
}

/// Timestamps of fewer than 64 bits are completed with the times of other rows, even with a stale
/// time. The random-access reader recognizes the stale time, but a pipe does not. Both must return
/// the same times.
#[test]
fn narrow_timestamps_do_not_depend_on_how_the_log_is_read() {
    let row = |id: u16, time: &[u8]| (kind::DATA, [&id.to_le_bytes(), time, &[7]].concat());
    let mut messages = vec![
        (kind::FORMAT, b"wide:uint64_t timestamp;uint8_t x;".to_vec()),
        (kind::FORMAT, b"narrow:uint16_t timestamp;uint8_t x;".to_vec()),
        (kind::SUBSCRIPTION, b"\0\0\0wide".to_vec()),
        (kind::SUBSCRIPTION, b"\0\x01\0narrow".to_vec()),
    ];
    for i in 0..400_u16 {
        let micros = 1_000_000 + 10_000 * u64::from(i);
        let far = if i == 398 { 1 << 42 } else { micros };
        messages.push(row(0, &far.to_le_bytes()));
        if i % 200 == 199 {
            messages.push(row(1, &micros.to_le_bytes()[..2]));
        }
    }
    let mut log = LOGS.case("timestamp-u16");
    (log.name, log.bytes) = ("a time far from others".to_owned(), log_of(&messages));
    let info = open(&log.bytes).info().clone();
    assert!(info.end.unwrap().nanos > info.data.unwrap().end.nanos);
    check_stream(&log, &[1000]);
}

#[test]
fn the_stream_equals_the_slice_on_real_logs() {
    for log in LOGS.real().into_iter().chain(quirks()) {
        let Some(reader) = try_open(&log.bytes) else { continue };
        let want: Vec<_> =
            reader.records_in_file_order().map(|r| (r.offset, r.seq, r.time, r.payload.to_vec())).collect();
        for size in [1, 1000] {
            let dribble = Dribble::new(&log.bytes, [size]);
            let mut stream = UlogStream::new(dribble, &ReadOptions::default()).expect(&log.name);
            let mut rows = 0;
            while let Some(r) = stream.next_record().expect("readable") {
                let same = (r.offset, r.seq, r.time, &*r.payload)
                    == (want[rows].0, want[rows].1, want[rows].2, &*want[rows].3);
                assert!(same, "{}: row {rows}", log.name);
                rows += 1;
            }
            assert_eq!(rows, want.len(), "{}", log.name);
            assert_eq!(stream.diagnostics().list(), reader.diagnostics().list(), "{}", log.name);
            assert_eq!(format!("{:?}", stream.info()), format!("{:?}", reader.info()), "{}", log.name);
            assert_eq!(format!("{:?}", stream.topics()), format!("{:?}", reader.topics()), "{}", log.name);
        }
    }
}

/// Parses a message and checks that encoding it returns the same bytes. Returns `false` if the
/// message cannot be parsed.
fn reads_and_writes(msg_type: u8, payload: &[u8]) -> bool {
    let message = Message::parse(msg_type, payload);
    if let Some(message) = message {
        assert_eq!(message.msg_type(), msg_type);
        assert_eq!(message.payload().expect("writes"), payload, "{}", msg_type.escape_ascii());
    }
    message.is_some()
}

#[test]
fn every_message_is_encoded_as_it_was_parsed() {
    let mut types = BTreeSet::new();
    for log in LOGS.corpus() {
        let Ok((_, mut rest)) = FileHeader::ref_from_prefix(&log.bytes) else { continue };
        // Messages are found only by their headers, so this loop also tests invalid messages.
        while let Ok((header, behind)) = MessageHeader::ref_from_prefix(rest) {
            let size = usize::from(header.msg_size.get()).min(behind.len());
            if reads_and_writes(header.msg_type, &behind[..size]) {
                types.insert(header.msg_type);
            }
            rest = &behind[size..];
        }
    }
    let missing: Vec<_> = ulog_format::wire::kind::ALL.into_iter().filter(|t| !types.contains(t)).collect();
    assert!(missing.is_empty(), "the corpus has no message of types {missing:?}");
}

/// Checks the minimum size of the payload for each message type, and whether longer payloads are
/// valid.
#[test]
fn payloads_that_are_too_short_or_too_long_are_rejected() {
    for (letter, least, more) in [
        (b'B', 40, true),
        (b'F', 0, true),
        (b'I', 1, true),
        (b'M', 2, true),
        (b'P', 1, true),
        (b'Q', 2, true),
        (b'A', 3, true),
        (b'R', 2, false),
        (b'D', 2, true),
        (b'L', 9, true),
        (b'C', 11, true),
        (b'S', 8, false),
        (b'O', 2, false),
        (b'Z', 0, true),
    ] {
        for len in 0..60 {
            let fits = len >= least && (more || len == least);
            assert_eq!(reads_and_writes(letter, &vec![0; len]), fits, "{} {len}", letter.escape_ascii());
        }
    }
    // The key of this information message is longer than its payload.
    assert!(!reads_and_writes(b'I', b"\x05four") && reads_and_writes(b'I', b"\x04four"));
}

proptest! {
    #[test]
    fn any_bytes_are_encoded_as_they_were_parsed(
        letter in prop::sample::select(b"BFIMPQARDLCSOZ".to_vec()),
        payload in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        reads_and_writes(letter, &payload);
    }
}

#[test]
fn records_are_sorted_by_time_and_offset() {
    for (log, reader) in readable() {
        let mut now = reader.header().timestamp.get();
        let (_, end) = reader.info().span().expect("a ULog has a start and an end");
        let end = end.nanos.unsigned_abs() / 1000;
        let mut last = HashMap::new();
        let records = reader.records_in_file_order().map(|record| {
            let row = reader.row(&record).expect("a sound row");
            let at = row.layout().place("timestamp");
            let wide = at.and_then(|place| row.read::<u64>(place));
            now = now.max(wide.filter(|micros| record.time.is_some() && *micros <= end).unwrap_or(0));
            let own = record.time.map(|time| time.nanos);
            if let (Some(own), id) = (own, record.topic.id) {
                last.insert(id, own.unsigned_abs() / 1000);
            } else if at.is_some() && wide.is_none() {
                // A row with a time after the year 2262 is sorted directly after the rows before
                // it.
                now = now.max(last.get(&record.topic.id).copied().unwrap_or(0));
            }
            (own.unwrap_or_else(|| i64::try_from(now * 1000).expect("in range")), record)
        });
        check_order(&log.name, &reader, records);
    }
}

#[test]
fn topics_count_their_records_and_bytes() {
    for (log, reader) in readable() {
        let mut want = vec![(0, 0); reader.topics().len()];
        for record in reader.records_in_file_order() {
            let (count, bytes) = &mut want[record.topic.id.index()];
            (*count, *bytes) = (*count + 1, *bytes + record.payload.len() as u64);
        }
        let got = reader.topics().iter().map(|topic| (topic.count, topic.bytes));
        assert!(got.eq(want), "{}", log.name);
    }
}

#[test]
fn latched_records_are_each_topics_last_before_the_window() {
    let reader = open(&LOGS.case("one-topic+multi-id").bytes);
    let end = reader.info().end.expect("an end").nanos;
    let select = Select::all().between(Some(end + 1), None).with_last_before();
    let got: Vec<_> = reader
        .records(&select)
        .map(|r| r.expect("sound"))
        .map(|r| (r.topic.name.clone(), r.seq + 1))
        .collect();
    let want: Vec<_> = reader.topics().iter().map(|t| (t.name.clone(), t.count)).collect();
    assert_eq!(BTreeSet::from_iter(got), BTreeSet::from_iter(want));
}

/// Returns a log whose index has several blocks. The topic `early` has rows only in the first part
/// of the log, and the topic `late` only in the last part.
fn long_log() -> Vec<u8> {
    let mut log = UlogWriter::new(Vec::new(), 0).unwrap();
    for name in ["early", "always", "late"] {
        log.define(&FormatBuilder::new(name).field::<u64>("timestamp").array::<u8>("filler", 1000)).unwrap();
    }
    let [early, always] = ["early", "always"].map(|name| log.subscribe(name, 0).unwrap());
    let mut late = None;
    for time in 0..15_000_u64 {
        let row: Vec<u8> = time.to_le_bytes().into_iter().chain([7; 1000]).collect();
        log.write_row_bytes(always, &row).unwrap();
        if time < 4000 {
            log.write_row_bytes(early, &row).unwrap();
        } else if time > 9000 {
            let late = *late.get_or_insert_with(|| log.subscribe("late", 0).unwrap());
            log.write_row_bytes(late, &row).unwrap();
        }
    }
    log.finish().unwrap()
}

#[test]
fn the_parts_of_a_log_contain_all_of_its_messages() {
    let logs = LOGS.corpus().into_iter().map(|log| log.bytes).chain([long_log().into()]);
    let mut most = 0;
    for reader in logs.filter_map(|bytes| try_open(&bytes)) {
        let records: Vec<_> = reader.records_in_file_order().collect();
        let rows: HashSet<_> = records.iter().map(|record| record.offset).collect();
        let others: Vec<_> = reader.messages().filter(|(at, _)| !rows.contains(at)).collect();
        for parts in [1, 2, 3, 100] {
            let parts = reader.parts(parts);
            let mut want = records.iter();
            let mut got = Vec::new();
            for part in &parts {
                let mut rows = part.first_rows().to_vec();
                part.scan(|at, met| match met {
                    Scanned::Record(topic, payload) => {
                        let (row, want) =
                            (&mut rows[topic.id.index()], want.next().expect("no more records"));
                        assert_eq!((want.offset, want.topic.id, want.seq), (at, topic.id, *row));
                        assert_eq!(want.payload, payload);
                        assert!(at >= part.start());
                        *row += 1;
                    }
                    Scanned::Message(message) => got.push((at, message)),
                });
            }
            assert_eq!(want.count(), 0, "{} parts", parts.len());
            // A log without records has no parts.
            assert!(parts.is_empty() == records.is_empty());
            assert!(parts.is_empty() || got == others, "{} parts", parts.len());
            most = most.max(parts.len());
        }
    }
    assert!(most >= 5, "no log has more than {most} parts");
}

/// The payload of a record borrows the memory of the log. It is not copied.
#[test]
fn records_borrow_from_the_log() {
    let log = LOGS.case("one-topic");
    let reader = open(&log.bytes);
    for record in reader.records(&Select::all()) {
        let record = record.expect("sound");
        let offset = usize::try_from(record.offset).expect("small");
        assert!(std::ptr::eq(record.payload.as_ptr(), &raw const log.bytes[offset + 5]));
    }
}

fn plain_row(id: u16, time: u64) -> (u8, Vec<u8>) {
    (b'D', [&id.to_le_bytes()[..], &time.to_le_bytes(), &0.5f32.to_le_bytes()].concat())
}

fn subscription(multi_id: u8, id: u16, name: &str) -> (u8, Vec<u8>) {
    (b'A', [&[multi_id][..], &id.to_le_bytes(), name.as_bytes()].concat())
}

/// According to the specification, a parser "must ignore unknown messages". The test checks that
/// their number is unlimited, that reading takes linear time, and that a pipe buffers only a few of
/// them.
#[test]
fn any_number_of_unknown_messages_is_skipped() {
    for (msg_type, count) in [(b'X', 33), (b'X', 100), (b'~', 10), (b'7', 200), (b'X', 60_000)] {
        let mut messages = vec![(b'F', b"t:uint64_t timestamp;float x;".to_vec()), subscription(0, 0, "t")];
        for time in 1..=3 {
            messages.push(plain_row(0, 1000 * time));
            messages.extend(std::iter::repeat_n((msg_type, b"wxyz".to_vec()), count));
        }
        messages.push(plain_row(0, 4000));
        let bytes = log_of(&messages);
        let log = open(&bytes);
        assert_eq!((log.info().records, log.info().lost.losses), (4, 0), "{count}");
        let counts = log.diagnostics().counts();
        assert_eq!(counts.get("W-ULOG-102"), Some(&(3 * count as u64)), "{count}");
        let (got, want) = (common_of_stream(&*bytes), common_of_reader(&log));
        assert!(got == want, "{count}: the stream differs");
    }
}

/// A hostile log can subscribe one message id again and again, so the number of subscriptions is
/// limited.
#[test]
fn subscriptions_are_limited() {
    const LIMIT: usize = 1 << 17;
    let formats = ["t:uint64_t timestamp;float x;", "u:uint64_t timestamp;float x;"];
    let mut messages: Vec<_> = formats.iter().map(|text| (b'F', text.as_bytes().to_vec())).collect();
    messages.push(subscription(0, 1, "t"));
    messages.push(plain_row(1, 1000));
    for i in 0..LIMIT + 1000 {
        messages.push(subscription(0, 0, ["t", "u"][i % 2]));
    }
    for time in 2..5 {
        messages.extend([plain_row(1, 1000 * time), plain_row(0, 1000 * time)]);
    }
    messages.push(plain_row(1, 5000));
    let bytes = log_of(&messages);
    let log = open(&bytes);
    assert_eq!(log.topics().len(), LIMIT);
    let counts = log.diagnostics().counts();
    assert_eq!(counts.get("W-ULOG-121"), Some(&1001));
    // The message id that exceeded the limit is no longer subscribed. The other message id is not
    // affected.
    assert_eq!((log.info().records, counts.get("E-ULOG-004")), (5, Some(&3)));
    assert_eq!(log.records_in_file_order().filter(|record| record.topic.name == "t/0").count(), 5);
    let mut stream = UlogStream::new(&*bytes, &ReadOptions::default()).expect("a log that opens");
    while stream.next_item().expect("a readable input").is_some() {}
    assert_eq!(stream.diagnostics().list(), log.diagnostics().list());
}

/// The times of all rows of a topic may be before the start time of the log.
#[test]
fn rows_from_before_the_start_of_the_log_are_found() {
    let topics = [("zero", 0), ("first", 1), ("old", 999), ("start", 1000), ("later", 5000)];
    let mut log = UlogWriter::new(Vec::new(), 1000).unwrap();
    for (name, _) in topics {
        log.define(&FormatBuilder::new(name).field::<u64>("timestamp")).unwrap();
    }
    for (name, time) in topics {
        let topic = log.subscribe(name, 0).unwrap();
        for _ in 0..3 {
            log.write_row_bytes(topic, &u64::to_le_bytes(time)).unwrap();
        }
    }
    let reader = open(&log.finish().unwrap().into());
    for (name, time) in topics {
        let nanos = i64::try_from(1000 * time).unwrap();
        let at_time = |select: Select| select.between(Some(nanos), Some(nanos + 1));
        let topic = Select::topic(format!("{name}/0"));
        for select in [at_time(topic.clone()), topic, at_time(Select::all())] {
            assert_eq!(reader.records(&select).count(), 3, "{name}");
        }
    }
    let times: Vec<_> = topics.iter().flat_map(|(_, time)| [*time; 3]).collect();
    let records = reader.records(&Select::all()).map(|record| record.unwrap());
    let got: Vec<_> = records.map(|record| record.time.unwrap().nanos.unsigned_abs() / 1000).collect();
    assert_eq!(got, times);
}

/// A timestamp of fewer than 64 bits depends on the previous rows. So the log cannot be divided
/// into parts that are read separately, even if the first such timestamp is late in the log.
#[test]
fn a_long_log_with_narrow_timestamps_is_read_as_one() {
    let format = |text: &str| (b'F', text.as_bytes().to_vec());
    let mut messages = vec![
        format("wide:uint64_t timestamp;uint8_t[1000] filler;"),
        format("narrow:uint16_t timestamp;"),
        subscription(0, 0, "wide"),
        subscription(0, 1, "narrow"),
    ];
    // Two blocks of the index precede the first row of the narrow topic. The earliest times are in
    // the second block.
    for number in 0..9000_u64 {
        let time = if (4200..4600).contains(&number) { 800 + number } else { 20_000 + number };
        messages.push((b'D', [&[0, 0], &time.to_le_bytes()[..], &[7; 1000]].concat()));
        if number > 4700 && number % 10 == 0 {
            // The time of this topic advances faster than the time of the other topic. So only the
            // previous row of this topic shows how often the timestamp has wrapped around.
            messages.push((b'D', [&[1, 0], &(number * 3000).to_le_bytes()[..2]].concat()));
        }
    }
    let reader = open(&log_of(&messages));
    let records: Vec<_> = reader.records_in_file_order().map(|record| (record.time, record.offset)).collect();
    let micros = |time: Option<rovelog_core::Timestamp>| time.unwrap().nanos / 1000;
    assert!(records.iter().map(|(time, _)| micros(*time)).max() > Some(12_000_000));
    for (start, end) in [(0, i64::MAX / 1000), (5000, 6000), (4_000_000, 5_000_000)] {
        let inside = records.iter().filter(|(time, _)| (start..end).contains(&micros(*time)));
        let mut want: Vec<_> = inside.copied().collect();
        want.sort_by_key(|(time, offset)| (micros(*time), *offset));
        let select = Select::all().between(Some(1000 * start), Some(1000 * end));
        let got = reader.records(&select).map(|record| record.unwrap());
        assert!(got.map(|record| (record.time, record.offset)).eq(want), "from {start} to {end}");
    }
}
