//! The first bytes of a log, its flags, where data is appended, and parts that were not read.

mod support;

use std::ops::Range;

use rovelog_core::partial::Unread;
use rovelog_core::{Bytes, LogReader as _, ReadOptions};
use support::built::{Built, NOISE, lost, row, rows, string, subscription, unknown};
use ulog_format::{UlogError, UlogReader};

/// Bytes from the header to behind the flag bits.
const FLAGS_END: u64 = 59;

fn refused(bytes: &'static [u8]) -> UlogError {
    UlogReader::new(Bytes::from_static(bytes), &ReadOptions::default()).expect_err("no log")
}

#[test]
fn a_start_that_is_cut_is_told_from_one_that_is_no_log() {
    assert!(matches!(refused(b"ULo"), UlogError::HeaderCut { len: 3 }));
    assert!(matches!(refused(b"ULog\x01\x12\x35\x01\0\0"), UlogError::HeaderCut { len: 10 }));
    assert!(matches!(refused(b""), UlogError::NotUlog));
    assert!(matches!(refused(b"URL"), UlogError::NotUlog));
    assert!(matches!(refused(b"a text that is no log"), UlogError::NotUlog));
}

#[test]
fn encrypted_logs_and_their_keys_are_told_apart() {
    assert!(matches!(refused(b"ULogEnc\x01 and more"), UlogError::Encrypted { what: "log" }));
    assert!(matches!(refused(b"ULogKey\x01 and more"), UlogError::Encrypted { what: "key file" }));
}

/// Returns the rules of diagnostics that are no losses, and their ranges.
fn notes(log: &UlogReader) -> Vec<(&'static str, Range<u64>)> {
    log.diagnostics().list().iter().map(|note| (note.rule.name, note.range.clone())).collect()
}

#[test]
fn compatible_flags_are_known_or_noted() {
    let noted = |byte: usize, bits: u8| {
        let mut log = Built::flagged();
        log.flag(byte, bits);
        let notes = notes(&log.open());
        assert!(notes.iter().all(|note| *note == ("undefined_compat_bits", 16..FLAGS_END)), "{notes:?}");
        !notes.is_empty()
    };
    assert!(!noted(0, 0) && !noted(0, 1));
    assert!(noted(0, 2) && noted(0, 0x81) && noted(1, 1) && noted(7, 0x80));
}

const IGNORED: (&str, Range<u64>) = ("appended_offset_ignored", 16..FLAGS_END);

#[test]
fn data_may_be_appended_right_behind_the_flags() {
    let mut log = Built::flagged();
    log.append_at(&[FLAGS_END]);
    let log = log.open();
    assert_eq!((log.appended_offsets(), notes(&log)), (&[FLAGS_END][..], vec![]));
}

#[test]
fn an_offset_inside_the_flags_is_ignored() {
    for offset in [1, 16, 19, FLAGS_END - 1] {
        let mut log = Built::flagged();
        log.append_at(&[offset]);
        let log = log.open();
        assert_eq!((log.appended_offsets(), notes(&log)), (&[][..], vec![IGNORED]), "{offset}");
    }
}

/// A text says nothing about its length; that it ends where the log ends does.
#[test]
fn what_is_appended_may_be_one_text() {
    for texts in [&["one"][..], &["one", "two"]] {
        let mut log = Built::flagged();
        let cut = log.messages(&[row(4)]);
        log.0.truncate(log.0.len() - 5);
        let appended = log.messages(&texts.iter().map(|text| string(text)).collect::<Vec<_>>()).start;
        log.append_at(&[appended]);
        assert_eq!(lost(&log).first(), Some(&(cut.start..appended)), "{texts:?}");
        let log = log.open();
        let found: Vec<_> = log.texts().expect("ULog has texts").map(|text| text.text).collect();
        assert_eq!(
            (log.appended_offsets(), log.info().records, found),
            (&[appended][..], 3, texts.iter().map(|text| (*text).to_owned()).collect())
        );
    }
}

#[test]
fn offsets_may_be_in_any_order() {
    let mut log = Built::flagged();
    log.messages(&[row(4)]);
    let first = log.messages(&rows(5..8)).start;
    let second = log.messages(&rows(8..11)).start;
    log.append_at(&[second, first]);
    let log = log.open();
    assert_eq!((log.appended_offsets(), notes(&log)), (&[first, second][..], vec![]));
}

/// A wrong offset inside of a row takes neither the row nor what is before it.
#[test]
fn an_offset_inside_a_row_is_ignored_whatever_is_before_the_row() {
    for before in [unknown(5), string("ready"), subscription(9, "later"), row(4)] {
        let mut log = Built::flagged();
        log.messages(std::slice::from_ref(&before));
        let inside = log.messages(&rows(5..8)).start + 6;
        log.append_at(&[inside]);
        assert_eq!(lost(&log), [], "{before:?}");
        let ignored = notes(&log.open()).into_iter().filter(|note| *note == IGNORED).count();
        assert_eq!(ignored, 1, "{before:?}");
    }
}

#[test]
fn an_offset_that_is_given_twice_is_ignored_once() {
    let mut log = Built::flagged();
    let appended = log.messages(&rows(4..7)).start;
    log.append_at(&[appended, appended]);
    let log = log.open();
    assert_eq!((log.appended_offsets(), notes(&log)), (&[appended][..], vec![IGNORED]));
}

#[test]
fn what_is_appended_may_be_nothing_yet() {
    let mut log = Built::flagged();
    let cut = log.raw(&[11, 0, b'D', 0]);
    log.append_at(&[cut.end]);
    let log = log.open();
    assert_eq!((log.appended_offsets(), notes(&log)), (&[cut.end][..], vec![("cut", cut)]));
}

#[test]
fn a_header_that_is_cut_before_appended_data_is_cut() {
    let mut log = Built::flagged();
    let cut = log.raw(&[11, 0]);
    log.messages(&rows(4..7));
    log.append_at(&[cut.end]);
    let log = log.open();
    assert_eq!((log.appended_offsets(), notes(&log)), (&[cut.end][..], vec![("cut", cut)]));
    assert_eq!(log.diagnostics().list()[0].message, "a message is cut within its header");
}

/// The message that is due seems to end before the offset, so that only the search comes to it.
#[test]
fn an_offset_in_the_middle_of_damage_is_ignored() {
    let mut log = Built::flagged();
    let noise = log.raw(&[&[1, 0, 0xFF][..], &NOISE].concat());
    log.messages(&rows(4..7));
    log.append_at(&[noise.start + 20]);
    assert_eq!(lost(&log), [noise]);
    let log = log.open();
    assert!(log.appended_offsets().is_empty() && notes(&log).contains(&IGNORED));
}

#[test]
fn an_offset_ends_a_chain_as_the_end_of_the_file_does() {
    let mut log = Built::flagged();
    // A text without a valid level, whose last bytes are a row.
    let text = log.raw(&[&[23, 0, b'L'][..], &[0xFF; 9]].concat());
    let appended = log.messages(&[row(4)]).end;
    let noise = log.raw(&NOISE);
    log.messages(&rows(5..8));
    log.append_at(&[appended]);
    assert_eq!(lost(&log), [text, noise]);
    assert_eq!(log.open().appended_offsets(), [appended]);
}

/// Returns a log of which some parts are read; the others are zeros.
fn partly(log: &Built, read: &[Range<u64>]) -> UlogReader {
    let mut options = ReadOptions::default();
    options.unread = Unread::behind(log.0.len() as u64, read);
    let mut bytes = log.0.clone();
    for range in options.unread.ranges() {
        let [start, end] = [range.start, range.end].map(|at| usize::try_from(at).expect("small"));
        bytes[start..end].fill(0);
    }
    UlogReader::new(bytes.into(), &options).expect("the header was read")
}

#[test]
fn reading_goes_on_behind_bytes_that_were_not_read() {
    let mut log = Built::flagged();
    let end = log.0.len() as u64;
    let unread = log.messages(&rows(4..40));
    let next = log.messages(&rows(40..50));
    // Data is appended in what is not read, and behind it.
    log.append_at(&[unread.start + 14, next.start + 28]);
    // The first byte of the second part is inside a row.
    let reader = partly(&log, &[0..end, unread.end - 5..next.end]);
    assert_eq!(reader.info().records, 3 + 10);
    let last = reader.records_in_file_order().last().expect("a record");
    assert_eq!((last.offset, last.time.map(|time| time.nanos)), (next.end - 14, Some(49_000_000)));
    assert_eq!((reader.appended_offsets(), notes(&reader)), (&[next.start + 28][..], vec![]));
    assert_eq!(lost(&log), []);
    // An offset exactly where reading goes on limits nothing any more.
    let reader = partly(&log, &[0..end, next.start + 28..next.end]);
    assert_eq!((reader.info().records, reader.appended_offsets(), notes(&reader)), (3 + 8, &[][..], vec![]));
}
