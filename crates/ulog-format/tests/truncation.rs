//! Logs cut at every length and damaged at every byte: nothing panics, nothing before the damage is lost.

mod support;

use rovelog_core::{Bytes, LogReader, Select};
use rovelog_testing::{Content, content, flips};
use support::{LOGS, open, try_open};
use ulog_format::UlogReader;

/// A record and where it is.
type Seen = (u64, Content);

fn records(log: &UlogReader) -> Vec<Seen> {
    log.records_in_file_order().map(|record| (record.offset, content(&record))).collect()
}

fn end_of(record: &Seen) -> usize {
    usize::try_from(record.0).expect("small") + 5 + record.1.2.len()
}

/// Returns whether every message was recognised. Damage, and what may be damage, is validated by what follows it, so a
/// cut right behind it may be validated otherwise than the whole file.
fn is_undamaged(log: &UlogReader) -> bool {
    let notes = log.diagnostics().list();
    log.info().lost.losses == 0 && notes.iter().all(|note| note.rule.name != "unknown_message")
}

/// Opens what is left of a log; every byte of it must be accounted for, and every record decode.
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

/// Returns every length of a small log, some lengths of a large one.
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
                // Without its header a log is refused.
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
        for (at, mask, bytes) in flips(&log.bytes, steps(log.bytes.len())) {
            let what = format!("{} byte {at} ^ {mask:#x}", log.name);
            let Some(flipped) = reopen(&bytes, &what) else {
                // The magic, and flags that say how to read the log.
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
            // Not at round places.
            let len = (log.bytes.len() * i / 100 + i * 7).min(log.bytes.len());
            let cut = open(&log.bytes.slice(..len.max(16)));
            if undamaged {
                let want = all.iter().filter(|r| end_of(r) <= len).count();
                assert_eq!(cut.info().records, want as u64, "{} cut at {len}", log.name);
            }
        }
    }
}
