//! Small logs are truncated at every length and damaged at every byte, and large logs at some bytes.
//! No function may panic, nothing before the damage may be lost, and every byte must be accounted for.

mod support;

use rovelog_core::{Bytes, LogReader, ReadOptions, RecoverOptions, Select};
use rovelog_testing::bit_flips;
use support::{LOGS, open, rewritten, try_open};
use vel_format::VelReader;
use vel_format::velodyne::PointOptions;

/// Returns the start and end offsets of all messages in a log.
fn offsets(log: &VelReader) -> Vec<(u64, u64)> {
    log.messages().map(|message| (message.offset, message.offset + message.wire_len())).collect()
}

/// Reads a log and writes it again. The written bytes must be the same, which shows that every byte
/// is accounted for.
fn exercise(bytes: &Bytes) -> Option<VelReader> {
    let log = VelReader::salvage(bytes.clone(), &ReadOptions::default()).ok()?;
    for record in log.records(&Select::all()) {
        record.expect("a valid record").value().expect("a valid record decodes");
    }
    assert!(rewritten(&log, bytes) == *bytes, "{} bytes", bytes.len());
    if let Ok(mut revolutions) = log.revolutions(None, None, PointOptions::default(), 0) {
        while revolutions.next().is_some() {}
    }
    let mut out = Vec::new();
    let report = log.recover(&mut out, &RecoverOptions::default()).expect("memory takes any bytes");
    assert_eq!(report.kept_bytes + report.lost_bytes(), bytes.len() as u64);
    Some(log)
}

#[test]
fn a_log_cut_anywhere_is_read_up_to_the_cut() {
    let mut tried = 0;
    for log in LOGS.corpus() {
        let Some(whole) = try_open(&log.bytes) else { continue };
        let all = offsets(&whole);
        // Large logs are truncated at fewer lengths, to save time.
        for cut in (0..log.bytes.len()).step_by(1 + log.bytes.len() / 700) {
            let Some(reader) = exercise(&log.bytes.slice(..cut)) else {
                // A log is refused if its index is missing, or is shorter than the header states.
                let unindexed = all.first().is_none_or(|(first, _)| cut as u64 <= *first);
                assert!(
                    unindexed || log.name.starts_with("index+count"),
                    "{} cut at {cut} does not open",
                    log.name
                );
                continue;
            };
            let mut before = all.iter().filter(|(_, end)| *end <= cut as u64).count();
            // If the last message has an unknown type, it is only accepted if valid data follows
            // it.
            let last = whole.messages().take(before).last();
            before -= usize::from(last.is_some_and(|message| message.kind().is_none()));
            let got = offsets(&reader);
            let same = got.len() >= before && got[..before] == all[..before];
            // The truncation may have removed the only message from which the size rule could be
            // inferred.
            assert!(same || before < 3, "{} cut at {cut}", log.name);
            tried += 1;
        }
    }
    assert!(tried > 10_000, "only {tried} cuts were tried");
}

#[test]
fn flipped_bytes_cause_no_panic() {
    let mut tried = 0;
    for log in LOGS.corpus() {
        let places = (0..log.bytes.len()).step_by(1 + log.bytes.len() / 500);
        for (at, mask, bytes) in bit_flips(&log.bytes, places) {
            let opened = exercise(&bytes).is_some();
            assert!(
                opened || at < 12 || try_open(&log.bytes).is_none(),
                "{} byte {at} ^ {mask:#x} does not open",
                log.name
            );
            tried += 1;
        }
    }
    assert!(tried > 40_000, "only {tried} flips were tried");
}

#[test]
fn a_flipped_byte_loses_at_most_two_messages() {
    let Some(log) = LOGS.real_log("all6_excl_49") else { return };
    let all = offsets(&open(&log.bytes));
    let mut bytes = log.bytes.to_vec();
    for (at, _) in &all {
        // Invert each byte of the size, marker, type and version of every message.
        for byte in 0..13 {
            let place = usize::try_from(*at).unwrap() + byte;
            bytes[place] ^= 0xFF;
            let reader = VelReader::new(bytes.clone().into(), &ReadOptions::default()).unwrap();
            let got = offsets(&reader);
            let lost = all.iter().filter(|place| !got.contains(place)).count();
            assert!(lost <= 2, "byte {place}: {lost} messages are lost");
            bytes[place] ^= 0xFF;
        }
    }
}
