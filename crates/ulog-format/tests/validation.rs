//! Which bytes are believed after damage: each rule of section 5 of docs/formats/ulog.md, with a log
//! on either side of it.
#![expect(clippy::single_range_in_vec_init, reason = "a list of ranges may have one")]

mod support;

use std::ops::Range;

use rovelog_core::{Bytes, LogReader as _, RecoverOptions, Severity};
use support::{laid, open};

/// A message: its type and payload.
type Laid = (u8, Vec<u8>);

/// Bytes that are no message: a length beyond the log, and a type that is none.
const NOISE: [u8; 40] = [0xFF; 40];

fn format(text: &str) -> Laid {
    (b'F', text.as_bytes().to_vec())
}

fn subscription(id: u16, name: &str) -> Laid {
    (b'A', [&[0], &id.to_le_bytes()[..], name.as_bytes()].concat())
}

/// A row of `t` with subscription 0: 11 bytes of payload.
fn row(number: u64) -> Laid {
    (b'D', [&[0, 0][..], &(1000 * number).to_le_bytes(), &[7]].concat())
}

fn string(text: &str) -> Laid {
    (b'L', [b"6", &1000_u64.to_le_bytes()[..], text.as_bytes()].concat())
}

/// A message of a type that no version of the specification has.
fn unknown(len: usize) -> Laid {
    (b'x', vec![1; len])
}

fn keyed(letter: u8, key: &str, value: &[u8]) -> Laid {
    (letter, [&[u8::try_from(key.len()).expect("short")], key.as_bytes(), value].concat())
}

/// A log of a topic and three rows, and what comes behind them.
struct Built(Vec<u8>);

impl Built {
    fn new() -> Self {
        let head = [format("t:uint64_t timestamp;uint8_t v;"), subscription(0, "t")];
        Self(laid(&[&head[..], &[row(1), row(2), row(3)]].concat()).to_vec())
    }

    /// Adds bytes; returns their range.
    fn raw(&mut self, bytes: &[u8]) -> Range<u64> {
        let start = self.0.len() as u64;
        self.0.extend_from_slice(bytes);
        start..self.0.len() as u64
    }

    fn messages(&mut self, messages: &[Laid]) -> Range<u64> {
        let header = laid(&[]).len();
        self.raw(&laid(messages)[header..])
    }
}

/// Returns the lost ranges of a log.
fn lost(log: &Built) -> Vec<Range<u64>> {
    let log = open(&Bytes::from(log.0.clone()));
    let lost = log.diagnostics().list().iter().filter(|note| note.rule.severity == Severity::DataLost);
    lost.map(|note| note.range.clone()).collect()
}

/// Returns whether the reader goes on with `messages` behind noise. Noise follows them again, or the
/// end of the file.
fn after_noise(messages: &[Laid], noise_again: bool) -> bool {
    let mut log = Built::new();
    let noise = log.raw(&NOISE);
    let found = log.messages(messages);
    let whole = if noise_again { noise.start..log.raw(&NOISE).end } else { noise.start..found.end };
    let lost = lost(&log);
    // Either they are found, and the noise alone is lost, or nothing is found up to the end.
    let begins = lost.first() == Some(&noise);
    assert!(begins || lost == [whole.clone()], "{lost:?} of {noise:?} and {found:?} up to {}", whole.end);
    begins
}

#[test]
fn three_fitting_messages_make_a_chain_and_two_do_not() {
    assert!(after_noise(&[row(4), row(5), row(6)], true));
    assert!(!after_noise(&[row(4), row(5)], true));
    assert!(!after_noise(&[row(4)], true));
}

#[test]
fn the_end_of_the_file_ends_a_chain_after_a_message_that_confirms_its_length() {
    assert!(after_noise(&[row(4)], false));
    assert!(after_noise(&[row(4), row(5)], false));
    // A text may have any length.
    assert!(!after_noise(&[string("ready")], false));
    assert!(!after_noise(&[row(4), string("ready")], false));
    assert!(after_noise(&[string("ready"), row(4)], false));
}

#[test]
fn unverifiable_messages_in_a_chain_are_ignored() {
    assert!(after_noise(&[row(4), unknown(5), row(5), unknown(0), row(6)], true));
    assert!(!after_noise(&[row(4), unknown(5), row(5)], true));
    assert!(!after_noise(&[row(4), unknown(5)], true));
    // At the end of the file they say nothing either.
    assert!(after_noise(&[row(4), unknown(5)], false));
    assert!(!after_noise(&[string("ready"), unknown(5)], false));
    assert!(!after_noise(&[unknown(5), unknown(5)], false));
}

#[test]
fn a_chain_does_not_begin_with_an_unverifiable_message() {
    let mut log = Built::new();
    let noise = log.raw(&NOISE);
    // A row of a subscription that is not there.
    let unverifiable = log.messages(&[(b'D', vec![9, 0, 1, 2, 3])]);
    log.messages(&[row(4), row(5), row(6)]);
    assert_eq!(lost(&log), [noise.start..unverifiable.end]);
}

#[test]
fn unverifiable_messages_128_in_a_row_are_as_good_as_a_chain() {
    let run = |len: usize| [vec![row(4)], vec![unknown(1); len]].concat();
    assert!(after_noise(&run(128), true));
    assert!(!after_noise(&run(127), true));
}

#[test]
fn an_unverifiable_message_before_noise_is_lost_with_it() {
    let mut log = Built::new();
    let start = log.messages(&[unknown(5)]).start;
    let end = log.raw(&NOISE).end;
    log.messages(&[row(4), row(5), row(6)]);
    assert_eq!(lost(&log), [start..end]);
    // With a long run behind it, it is passed, and only the noise is lost.
    for (len, passed) in [(129, true), (128, false)] {
        let mut log = Built::new();
        let run = log.messages(&vec![unknown(1); len]);
        let noise = log.raw(&NOISE);
        log.messages(&[row(4), row(5), row(6)]);
        let start = if passed { noise.start } else { run.start };
        assert_eq!(lost(&log), [start..noise.end], "{len}");
    }
}

#[test]
fn a_message_without_payload_may_end_the_file() {
    let mut log = Built::new();
    log.messages(&[unknown(0)]);
    assert_eq!(lost(&log), []);
}

/// Where a search begins: the message is not believed, the rows behind it are.
fn begins_behind(message: &Laid) {
    let mut log = Built::new();
    let noise = log.raw(&NOISE);
    let first = log.messages(std::slice::from_ref(message));
    log.messages(&[row(4), row(5), row(6)]);
    assert_eq!(lost(&log), [noise.start..first.end], "{message:?}");
}

/// Where a message is due, it is believed, and nothing is lost.
fn fits_where_due(message: &Laid) {
    let mut log = Built::new();
    log.messages(&[message.clone(), row(4), row(5)]);
    assert_eq!(lost(&log), [], "{message:?}");
}

/// A subscription of a format that is not there can only be passed, and after damage only if PX4
/// could have written its name.
#[test]
fn subscriptions_of_undefined_formats_are_unverifiable() {
    let with = |name| [row(4), subscription(9, name), row(5), row(6)];
    assert!(after_noise(&with("later"), true));
    assert!(!after_noise(&with("gr\u{f6}\u{df}e"), true));
    assert!(!after_noise(&with("a:b"), true));
    fits_where_due(&subscription(9, "later"));
    fits_where_due(&subscription(9, "gr\u{f6}\u{df}e"));
}

#[test]
fn after_damage_only_what_px4_writes_is_believed() {
    let float = 1.5_f32.to_le_bytes();
    let unusual = [
        // Control characters, and a text that is too long.
        string("ready\x01"),
        string(&"a".repeat(2049)),
        // Names with signs that are no letters, digits or `_`.
        format("gr\u{f6}\u{df}e:uint64_t timestamp;"),
        format("u:uint64_t timestamp;float l\u{e4}nge;"),
        keyed(b'I', "float gr\u{f6}\u{df}e", &float),
        keyed(b'P', "float gr\u{f6}\u{df}e", &float),
        // Parameters of other types.
        keyed(b'P', "double GAIN", &2.5_f64.to_le_bytes()),
    ];
    for message in unusual {
        begins_behind(&message);
        fits_where_due(&message);
    }
    let usual = [
        string("ready\n"),
        string(&"a".repeat(2048)),
        format("u:uint64_t timestamp;float width;"),
        keyed(b'I', "float width", &float),
        keyed(b'P', "float GAIN", &float),
    ];
    for message in usual {
        let mut log = Built::new();
        let noise = log.raw(&NOISE);
        log.messages(&[message.clone(), row(4), row(5)]);
        assert_eq!(lost(&log), [noise], "{message:?}");
    }
}

/// A format and a subscription in a chain count for the rows behind them: 16 bytes in full, 13
/// without the padding at the end.
#[test]
fn definitions_in_a_chain_hold_for_its_rows() {
    let defined = |len: usize| {
        let text = "p:uint64_t timestamp;uint8_t v;uint8_t[3] _padding0;";
        let data = (b'D', [&[5, 0][..], &vec![1; len]].concat());
        after_noise(&[format(text), subscription(5, "p"), data], true)
    };
    assert!(defined(12) && defined(9));
    assert!(!defined(10) && !defined(8) && !defined(13));
}

/// A block of an older log between two losses: its rows and texts can be left out, the definitions
/// that only it has cannot.
#[test]
fn rows_of_another_time_are_left_out_on_request() {
    let rows = |numbers: Range<u64>| numbers.map(row).collect::<Vec<_>>();
    let mut log = Built::new();
    log.messages(&rows(4..40));
    log.raw(&NOISE);
    let block = [
        vec![format("u:uint64_t timestamp;"), subscription(1, "u")],
        vec![format("t:uint64_t timestamp;uint8_t v;"), subscription(0, "t"), subscription(2, "t")],
        vec![string("of another time")],
        rows(900_000..900_020),
    ]
    .concat();
    log.messages(&block);
    log.raw(&NOISE);
    log.messages(&rows(40..80));
    let log = open(&Bytes::from(log.0));
    assert_eq!(log.info().records, 3 + 36 + 20 + 40);

    let mut out = Vec::new();
    let report = log.recover(&mut out, &RecoverOptions::default().dropping_stale()).expect("memory takes it");
    let stale = block[2..].iter().map(|(_, payload)| 3 + payload.len() as u64).sum::<u64>();
    assert_eq!((report.records, report.stale_records, report.stale_bytes), (79, 20, stale));
    let lost: Vec<_> = report.lost.iter().map(|range| range.end - range.start).collect();
    assert_eq!(lost, [NOISE.len() as u64; 2]);
    let again = open(&Bytes::from(out));
    let counts = |letter: u8| again.messages().filter(|(_, message)| message.msg_type() == letter).count();
    assert_eq!([b'F', b'A', b'L', b'D'].map(counts), [2, 2, 0, 79]);
}

/// In a damaged log, a subscription of a format that is not there goes, and no other.
#[test]
fn recovery_leaves_out_subscriptions_without_a_format() {
    let mut log = Built::new();
    let gone = log.messages(&[subscription(9, "later")]);
    log.messages(&[format("u:uint64_t timestamp;"), subscription(1, "u"), row(4)]);
    let noise = log.raw(&NOISE);
    log.messages(&[row(5), row(6), row(7)]);
    let log = open(&Bytes::from(log.0));
    let mut out = Vec::new();
    let report = log.recover(&mut out, &RecoverOptions::default()).expect("memory takes it");
    assert_eq!(report.lost, [gone, noise]);
}
