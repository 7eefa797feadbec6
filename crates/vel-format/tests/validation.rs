//! Tests of which bytes are accepted as messages. For each rule in section 4 of
//! docs/formats/vel.md, there is a log that follows the rule and a log that does not.
#![expect(clippy::single_range_in_vec_init, reason = "a list of ranges may have one")]

mod support;

use std::ops::Range;

use rovelog_core::internal::partial::Unread;
use rovelog_core::{LogReader as _, ReadOptions, Severity};
use support::open;
use vel_format::{NewMessage, SizeRule, VelReader, WriteOptions, write_log};

/// Returns a message whose type is known, so that its content confirms its size.
fn speed(millis: f64) -> NewMessage<'static> {
    NewMessage::raw(0x0001_4043, 100, millis, vec![0; 28])
}

/// Returns a message whose type is unknown, so that its content does not confirm its size.
fn unknown(id: u32) -> NewMessage<'static> {
    NewMessage::raw(id, 100, 900.0, vec![1; 12])
}

fn encode(messages: &[NewMessage<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    write_log(messages, &WriteOptions::default(), &mut out).expect("memory takes it");
    out
}

fn lost(bytes: &[u8]) -> Vec<Range<u64>> {
    let log = open(&bytes.to_vec().into());
    let lost = log.diagnostics().list().iter().filter(|note| note.rule.severity == Severity::DataLost);
    lost.map(|note| note.range.clone()).collect()
}

/// The content of a message with an unknown type cannot confirm its size, so the bytes after the
/// message must confirm it. If the next message is truncated, it confirms the size only if its type
/// is known, or is the type of the message before it.
#[test]
fn messages_of_unknown_types_are_confirmed_by_the_bytes_after_them() {
    let two = [speed(1.0), speed(2.0)];
    let first = encode(&two).len();
    let with = |more: &[NewMessage<'static>], cut: usize| {
        let mut bytes = encode(&[&two[..], more].concat());
        bytes.truncate(bytes.len() - cut);
        let (start, end) = (first as u64, bytes.len() as u64);
        (lost(&bytes), start, end)
    };
    let second = encode(&[&two[..], &[unknown(0xABC)]].concat()).len() as u64;
    for follower in [unknown(0xABC), speed(3.0)] {
        let (lost, _, end) = with(&[unknown(0xABC), follower], 4);
        assert_eq!(lost, [second..end]);
    }
    let (lost, start, end) = with(&[unknown(0xABC), unknown(0xDEF)], 4);
    assert_eq!(lost, [start..end]);
    let (lost, ..) = with(&[unknown(0xABC), unknown(0xDEF)], 0);
    assert_eq!(lost, []);
}

/// The content of the first message in an appended log confirms the size of this message. So noise
/// may follow the message.
#[test]
fn a_joined_log_may_be_damaged_after_its_first_message() {
    let mut bytes = encode(&[speed(1.0), speed(2.0)]);
    let joined = bytes.len();
    bytes.extend(encode(&[speed(3.0)]));
    let noise = bytes.len() as u64;
    bytes.extend([7; 40]);
    let end = bytes.len() as u64;
    let log = open(&bytes.into());
    let note = log.diagnostics().list().iter().find(|note| note.rule.name == "joined").expect("a note");
    assert_eq!(note.range.start, joined as u64);
    assert_eq!((log.info().records, &log.info().lost.ranges[..]), (3, &[noise..end][..]));
}

/// Returns the diagnostics of a log, each with its rule, byte range and message.
fn notes(bytes: &[u8]) -> Vec<(&'static str, Range<u64>, String)> {
    let log = open(&bytes.to_vec().into());
    let notes = log.diagnostics().list().iter();
    notes.map(|note| (note.rule.name, note.range.clone(), note.message.clone())).collect()
}

#[test]
fn diagnostics_describe_problems_of_messages() {
    let two = [speed(1.0), speed(2.0)];
    let at = encode(&two).len() as u64;
    let after = |message: NewMessage<'static>| {
        // If another message follows, this message is valid.
        let bytes = encode(&[&two[..], &[message.clone(), speed(3.0)]].concat());
        let mut found = notes(&bytes);
        // A timestamp that was clamped is also far outside of the log's time range.
        found.retain(|(rule, ..)| *rule != "stale_times");
        assert_eq!(found.len(), 1, "{found:?}");
        let (rule, range, text) = found.remove(0);
        (rule, range.start - at..range.end - at, text)
    };
    let obd = |data: usize, millis: f64| NewMessage::raw(0x0001_4043, 100, millis, vec![0; data]);
    let note = |rule: &'static str, range: Range<u64>, text: &str| (rule, range, text.to_owned());
    let late = "the timestamp inf is not a finite number, so its message gets the time of the previous \
                message";
    assert_eq!(after(obd(28, f64::INFINITY)), note("timestamp_not_finite", 13..21, late));
    let (rule, range, _) = after(obd(28, 1e300));
    assert_eq!((rule, range), ("timestamp_out_of_range", 13..21));
    assert_eq!(
        after(obd(30, 2.5)),
        note(
            "trailing_data",
            49..51,
            "the OBDDataM message has 2 bytes after its last field; its fields are read"
        )
    );
    assert_eq!(
        after(obd(5, 2.5)),
        note(
            "bad_payload",
            0..26,
            "the OBDDataM message is lost, because it has only 5 bytes of data, which is too short for its \
             fields"
        )
    );
    for (id, version, text) in [
        (0x0001_4043, 101, "version 101 of OBDDataM is unknown, so its messages are returned as raw bytes"),
        (
            0x0001_806E,
            7,
            "messages of the unknown type 0x0001806E (perhaps CompassM), version 7, are returned as raw \
             bytes",
        ),
        (0xABC, 7, "messages of the unknown type 0x00000ABC, version 7, are returned as raw bytes"),
    ] {
        let unknown = NewMessage::raw(id, version, 2.5, vec![0; 4]);
        assert_eq!(after(unknown), note("unknown_type", 0..25, text));
    }
}

#[test]
fn lost_bytes_are_distinguished_from_a_cut_message() {
    let bytes = encode(&[speed(1.0), speed(2.0)]);
    let (first, end) = (encode(&[speed(1.0)]).len(), bytes.len());
    let at = first as u64;
    let cut = |end: u64| {
        let text = format!("the message at byte {at} is lost, because the file ends inside it at byte {end}");
        vec![("cut", at..end, text)]
    };
    assert_eq!(notes(&bytes[..end - 1]), cut(end as u64 - 1));
    assert_eq!(notes(&bytes[..first + 5]), cut(at + 5));
    let mut noise = bytes[..first].to_vec();
    noise.extend([7; 40]);
    assert_eq!(
        notes(&noise),
        [("gap", at..at + 40, "no valid message was found in 40 bytes, so this data is lost".to_owned())]
    );
}

#[test]
fn sizes_without_the_header_are_reported_with_evidence() {
    let speeds = |n: u32| (0..n).map(|i| speed(f64::from(i))).collect::<Vec<_>>();
    let encode = |n, rule| {
        let mut out = Vec::new();
        write_log(&speeds(n), &WriteOptions::default().with_size_rule(rule), &mut out).expect("memory");
        open(&out.into())
    };
    let log = encode(20, SizeRule::DataOnly);
    let note = &log.diagnostics().list()[0];
    let first = log.messages().next().expect("a message").offset;
    assert_eq!((note.rule.name, note.range.clone()), ("data_only_sizes", first..first + 4));
    let text = "message sizes do not include the header, because only then they fit the content of 2 \
                messages; all messages are read";
    assert_eq!(note.message, text);
    // The scan ends when only one rule is left, or at the end of the file. Under the other rules, a
    // single message with an inclusive size would extend beyond the end of the file.
    for rule in SizeRule::ALL {
        let evidence = |n| encode(n, rule).choices()[0].evidence.clone();
        let (many, one) = (evidence(20), evidence(1));
        assert!(many.contains("2 messages") && !many.contains("end of the log"), "{rule:?}: {many}");
        let ends = one.contains("end of the log");
        assert!(one.contains("1 message") && ends == (rule != SizeRule::Inclusive), "{rule:?}: {one}");
    }
    let empty = encode(0, SizeRule::DataOnly);
    assert_eq!((empty.size_rule(), empty.diagnostics().total()), (SizeRule::Exclusive, 0));
}

/// If sizes excluded the header, every second message would be data of the message before it, up to
/// the end of the file.
#[test]
fn sixty_four_messages_count_like_the_end_of_the_file() {
    for n in [2_u32, 64, 66, 100] {
        let messages: Vec<_> =
            (0..n).map(|i| NewMessage::raw(0x0777_1234, 100, f64::from(i), vec![])).collect();
        let mut out = Vec::new();
        write_log(&messages, &WriteOptions::default().with_size_rule(SizeRule::Inclusive), &mut out)
            .expect("memory");
        let log = open(&out.into());
        assert_eq!((log.size_rule(), log.messages().len()), (SizeRule::Inclusive, n as usize));
    }
}

/// A second log in the file must have a header and an index. After the index, a message, an end
/// mark or the end of the file must follow.
#[test]
fn a_joined_log_needs_an_index_and_a_message_or_an_end() {
    let first = encode(&[speed(1.0), speed(2.0)]);
    let second = encode(&[speed(0.0), speed(1500.0), speed(2500.0)]);
    let head = 12 + 8 * 3;
    assert_eq!(second[8], 3, "seconds in the index");
    let at = first.len() as u64;
    let found = |more: &[u8]| {
        let found = notes(&[&first[..], more].concat());
        found.into_iter().map(|note| (note.0, note.1.start - at..note.1.end - at)).collect::<Vec<_>>()
    };
    let joined = [("joined", 0..head as u64)];
    assert_eq!(found(&second), joined);
    assert_eq!(found(&second[..head]), joined, "no message");
    assert_eq!(found(&[&second[..head], &[0xFF; 4]].concat()), joined, "an end mark");
    let lost = |len: usize| vec![("gap", 0..len as u64)];
    assert_eq!(found(&[&second[..head], &[7; 40]].concat()), lost(head + 40), "noise");
    assert_eq!(found(&second[..head - 1]), lost(head - 1), "a part of the index");
    // If the content of a message does not confirm its size, another message must follow.
    let unknown = |more: &[u8]| {
        let bytes = encode(&[unknown(0xABC)]);
        [&bytes[..], more].concat()
    };
    assert_eq!(found(&unknown(&[]))[0].0, "joined");
    assert_eq!(found(&unknown(&[7; 40]))[0].0, "gap");
}

/// A message after an end mark is accepted if its content confirms its size, or if another message
/// or the end of the file follows.
#[test]
fn messages_after_an_end_mark_are_confirmed_like_others() {
    let first = [&encode(&[speed(1.0), speed(2.0)])[..], &[0xFF; 4]].concat();
    let at = first.len() as u64;
    let start = encode(&[]).len();
    let of = |message| encode(&[message])[start + 8..].to_vec();
    let found = |more: &[u8]| notes(&[&first[..], more].concat());
    let one = "1 message after the end mark is not read; `rovelog recover` keeps it";
    let two = "2 messages after the end mark are not read; `rovelog recover` keeps them";
    let (known, other) = (of(speed(3.0)), of(unknown(0xABC)));
    let noise = [7; 40];
    let end = at + known.len() as u64;
    let confirmed = found(&[&known[..], &noise].concat());
    assert_eq!(confirmed[0], ("messages_behind_end", at - 4..end, one.to_owned()));
    assert_eq!((confirmed.len(), confirmed[1].0), (2, "gap"));
    let followed = found(&[&other[..], &known].concat());
    assert_eq!(
        followed.iter().map(|note| note.0).collect::<Vec<_>>(),
        ["messages_behind_end", "unknown_type"]
    );
    assert_eq!(followed[0].2, two);
    let alone = found(&[&other[..], &noise].concat());
    let text = format!(
        "the end mark is followed by {} bytes of data that is not a message and is not read",
        other.len() + 40
    );
    assert_eq!(alone, [("tail", at..at + other.len() as u64 + 40, text)]);
}

/// After bytes that were not fetched, the scan continues with the next message, and nothing is
/// reported as lost.
#[test]
fn bytes_that_were_not_fetched_are_skipped() {
    let bytes = encode(&(0..9).map(|i| speed(f64::from(i))).collect::<Vec<_>>());
    let whole = open(&bytes.clone().into());
    let at: Vec<u64> = whole.messages().map(|message| message.offset).collect();
    // The bytes from the middle of the third message to the middle of the sixth message have not
    // been fetched.
    let unread = at[2] + 30..at[5] + 3;
    let mut options = ReadOptions::default();
    let len = bytes.len() as u64;
    options.unread = Unread::behind(len, &[0..unread.start, unread.end..len]);
    let mut bytes = bytes;
    bytes[usize::try_from(unread.start).expect("small")..usize::try_from(unread.end).expect("small")].fill(0);
    let log = VelReader::new(bytes.into(), &options).expect("a log");
    let found: Vec<u64> = log.messages().map(|message| message.offset).collect();
    assert_eq!(found, [&at[..2], &at[6..]].concat());
    assert_eq!(log.diagnostics().total(), 0, "{:?}", log.diagnostics().list());
}
