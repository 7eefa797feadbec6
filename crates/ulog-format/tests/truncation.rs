//! Tests of small logs that are cut at every length or damaged at every byte, and of large logs that
//! are cut and damaged at some bytes. The reader must not panic, and nothing before the damage may be
//! lost.

mod support;

use rovelog_core::{Bytes, LogReader, Select};
use rovelog_testing::{Content, bit_flips, content};
use support::{LOGS, open, try_open};
use ulog_format::UlogReader;

/// Offset and content of a record.
type Seen = (u64, Content);

fn records(log: &UlogReader) -> Vec<Seen> {
    log.records_in_file_order().map(|record| (record.offset, content(&record))).collect()
}

fn end_of(record: &Seen) -> usize {
    usize::try_from(record.0).expect("small") + 5 + record.1.2.len()
}

/// Returns `true` if every message of a log is valid and known. Unknown messages are accepted only
/// because of the messages after them, so they may become invalid if the log is cut there.
fn is_undamaged(log: &UlogReader) -> bool {
    let notes = log.diagnostics().list();
    log.info().lost.losses == 0 && notes.iter().all(|note| note.rule.name != "unknown_message")
}

/// Opens a damaged log, and checks that every byte is accounted for and every record can be
/// decoded.
fn reopen(bytes: &Bytes, what: &str) -> Option<UlogReader> {
    let len = bytes.len() as u64;
    let log = try_open(bytes)?;
    for record in log.records_in_file_order() {
        assert!(record.value().is_ok(), "{what}: a record does not decode");
    }
    assert_eq!(log.records(&Select::all()).count() as u64, log.info().records, "{what}");
    assert!(log.messages().all(|(at, _)| at < len), "{what}: a message begins behind the end");
    let lost = log.info().lost.bytes;
    assert!(lost <= len, "{what}: {lost} bytes lost of {len}");
    Some(log)
}

/// Returns the lengths to which a log is cut. These are all lengths of a small log, and some
/// lengths of a large log.
fn steps(len: usize) -> impl Iterator<Item = usize> {
    let step = if len <= 4096 { 1 } else { len / 509 };
    (0..len).step_by(step)
}

#[test]
fn a_log_cut_anywhere_is_read_up_to_the_cut() {
    let mut tried = 0;
    for log in LOGS.corpus() {
        let Some(whole) = try_open(&log.bytes).filter(support::has_header) else { continue };
        let (all, undamaged) = (records(&whole), is_undamaged(&whole));
        for len in steps(log.bytes.len()) {
            let what = format!("{} cut at {len}", log.name);
            let Some(cut) = reopen(&log.bytes.slice(..len), &what) else {
                // A log that ends inside its 16-byte header is rejected.
                assert!(len < 16, "{what} does not open");
                continue;
            };
            let got = records(&cut);
            if undamaged {
                let want: Vec<_> = all.iter().filter(|r| end_of(r) <= len).cloned().collect();
                assert!(got.starts_with(&want), "{what}: {} records of {}", got.len(), want.len());
                assert_eq!(got.len(), want.len(), "{what}: invented records");
            }
            tried += 1;
        }
    }
    assert!(tried > 20_000, "only {tried} cuts were tried");
}

#[test]
fn a_flipped_byte_leaves_everything_before_it() {
    let mut tried = 0;
    for log in LOGS.corpus() {
        let Some(whole) = try_open(&log.bytes).filter(support::has_header) else { continue };
        let (all, undamaged) = (records(&whole), is_undamaged(&whole));
        for (at, mask, bytes) in bit_flips(&log.bytes, steps(log.bytes.len())) {
            let what = format!("{} byte {at} ^ {mask:#x}", log.name);
            let Some(flipped) = reopen(&bytes, &what) else {
                // If the magic number or the flags are damaged, the whole log is rejected.
                assert!(at < 7 || (27..35).contains(&at), "{what} does not open");
                continue;
            };
            if undamaged && at >= 59 {
                let want: Vec<_> = all.iter().filter(|r| end_of(r) <= at).cloned().collect();
                let got = records(&flipped);
                assert!(got.starts_with(&want), "{what}: {} records of {}", got.len(), want.len());
            }
            tried += 1;
        }
    }
    assert!(tried > 60_000, "only {tried} flips were tried");
}

#[test]
fn real_logs_cut_at_a_hundred_places() {
    for log in LOGS.real() {
        let whole = open(&log.bytes);
        let (all, undamaged) = (records(&whole), is_undamaged(&whole));
        for i in 1..100usize {
            // Adding `i * 7` avoids round numbers as lengths.
            let len = (log.bytes.len() * i / 100 + i * 7).min(log.bytes.len());
            let cut = open(&log.bytes.slice(..len.max(16)));
            if undamaged {
                let want = all.iter().filter(|r| end_of(r) <= len).count();
                assert_eq!(cut.info().records, want as u64, "{} cut at {len}", log.name);
            }
        }
    }
}
