//! Tests of the header, the flags and appended data, and of logs that are fetched in part.

mod support;

use std::ops::Range;

use rovelog_core::internal::partial::Unread;
use rovelog_core::{Bytes, LogReader as _, ReadOptions};
use support::built::{Built, NOISE, lost, row, rows, string, subscription, unknown};
use ulog_format::{UlogError, UlogReader};

/// Offset at which the flag bits message ends.
const FLAGS_END: u64 = 59;

fn refused(bytes: &'static [u8]) -> UlogError {
    UlogReader::new(Bytes::from_static(bytes), &ReadOptions::default()).expect_err("no log")
}

#[test]
fn a_cut_header_is_distinguished_from_another_format() {
    assert!(matches!(refused(b"ULo"), UlogError::HeaderCut { len: 3 }));
    assert!(matches!(refused(b"ULog\x01\x12\x35\x01\0\0"), UlogError::HeaderCut { len: 10 }));
    assert!(matches!(refused(b""), UlogError::NotUlog));
    assert!(matches!(refused(b"URL"), UlogError::NotUlog));
    assert!(matches!(refused(b"a text that is no log"), UlogError::NotUlog));
}

#[test]
fn encrypted_logs_and_key_files_are_distinguished() {
    assert!(matches!(refused(b"ULogEnc\x01 and more"), UlogError::Encrypted { what: "log" }));
    assert!(matches!(refused(b"ULogKey\x01 and more"), UlogError::Encrypted { what: "key file" }));
}

/// Returns the rules and byte ranges of all diagnostics of a log.
fn notes(log: &UlogReader) -> Vec<(&'static str, Range<u64>)> {
    log.diagnostics().list().iter().map(|note| (note.rule.name, note.range.clone())).collect()
}

#[test]
fn undefined_compatible_flags_are_reported() {
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
fn data_may_be_appended_directly_after_the_flags() {
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

/// The content of a text does not confirm the text's length. As appended data, the text is accepted
/// because it ends exactly at the end of the file.
#[test]
fn appended_data_may_be_a_single_text() {
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

/// If an offset of appended data is wrong and inside a row, neither the row nor the message before
/// it is lost.
#[test]
fn an_offset_inside_a_row_is_ignored() {
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
fn a_repeated_offset_is_ignored() {
    let mut log = Built::flagged();
    let appended = log.messages(&rows(4..7)).start;
    log.append_at(&[appended, appended]);
    let log = log.open();
    assert_eq!((log.appended_offsets(), notes(&log)), (&[appended][..], vec![IGNORED]));
}

#[test]
fn appended_data_may_be_empty() {
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
    assert_eq!(log.diagnostics().list()[0].message, "a message is lost, because it ends inside its header");
}

/// The header of the damaged message claims an end before the offset of appended data. So the
/// reader finds the wrong offset only when it searches for valid messages.
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
fn an_offset_of_appended_data_ends_a_chain() {
    let mut log = Built::flagged();
    // The text has an invalid level, and its last bytes look like a row.
    let text = log.raw(&[&[23, 0, b'L'][..], &[0xFF; 9]].concat());
    let appended = log.messages(&[row(4)]).end;
    let noise = log.raw(&NOISE);
    log.messages(&rows(5..8));
    log.append_at(&[appended]);
    assert_eq!(lost(&log), [text, noise]);
    assert_eq!(log.open().appended_offsets(), [appended]);
}

/// Returns a log of which only the byte ranges in `read` were fetched. All other bytes are zeros.
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
fn reading_continues_after_bytes_that_were_not_read() {
    let mut log = Built::flagged();
    let end = log.0.len() as u64;
    let unread = log.messages(&rows(4..40));
    let next = log.messages(&rows(40..50));
    // One offset of appended data is in the range that is not fetched, and the other is after this
    // range.
    log.append_at(&[unread.start + 14, next.start + 28]);
    // The second fetched range starts inside a row.
    let reader = partly(&log, &[0..end, unread.end - 5..next.end]);
    assert_eq!(reader.info().records, 3 + 10);
    let last = reader.records_in_file_order().last().expect("a record");
    assert_eq!((last.offset, last.time.map(|time| time.nanos)), (next.end - 14, Some(49_000_000)));
    assert_eq!((reader.appended_offsets(), notes(&reader)), (&[next.start + 28][..], vec![]));
    assert_eq!(lost(&log), []);
    // The first byte of the second fetched range is an offset of appended data. No message before
    // it must end there.
    let reader = partly(&log, &[0..end, next.start + 28..next.end]);
    assert_eq!((reader.info().records, reader.appended_offsets(), notes(&reader)), (3 + 8, &[][..], vec![]));
}
