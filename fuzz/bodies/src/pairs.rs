//! Bodies for operations in sequence.

use std::collections::BTreeMap;

use rovelog::{Align, AnyLog, Bytes, ReadOptions, RecoverOptions, Select};

use crate::campaign::damage_one;
use crate::export::check_exports;

/// Maximum bytes of payloads of a log whose exports are checked.
const EXPORTED: usize = 64 << 10;

fn open(bytes: &[u8]) -> Option<AnyLog> {
    let mut options = ReadOptions::default();
    options.limits.unpacked = 1 << 20;
    rovelog::from_bytes(Bytes::copy_from_slice(bytes), &options).ok()
}

/// Damages a log in the way that the last two bytes select, recovers it, and exports the result: the
/// recovered log has what recovery reported, and its exports are what it holds.
pub fn any_recover(data: &[u8]) {
    let Some((log, [operator, seed])) = data.split_last_chunk() else { return };
    let damaged = damage_one(log, *operator, *seed);
    let Some(log) = open(&damaged) else { return };
    let mut out = Vec::new();
    let report = log.recover(&mut out, &RecoverOptions::default()).expect("memory takes it");
    if report.records == 0 {
        return;
    }
    let recovered = open(&out).expect("a recovered log opens");
    assert_eq!(recovered.info().records, report.records);
    let payloads = recovered.records(&Select::all()).map_while(Result::ok).map(|record| record.payload.len());
    if payloads.sum::<usize>() <= EXPORTED {
        check_exports(&recovered);
    }
}

/// Returns how often each record is in a log: topic, time, payload. Of an RLD, times are fitted to the
/// whole log, and unused words of rows are not written: its values are compared. A message of a VEL log
/// whose time is no number takes the time of the one before it, which may be another one.
fn records(log: &AnyLog) -> BTreeMap<(String, Option<i64>, Vec<u8>), u64> {
    let mut counts = BTreeMap::new();
    for record in log.records(&Select::all()) {
        let record = record.expect("a valid record");
        let (time, content) = match log {
            AnyLog::Rld(_) => (None, record.value().expect("a row decodes").to_json().into_bytes()),
            AnyLog::Vel(_) => (None, record.payload.to_vec()),
            _ => (record.time.map(|time| time.nanos), record.payload.to_vec()),
        };
        // `#2` tells topics apart that have records in this log.
        let name = record.topic.name.split('#').next().unwrap_or_default().to_owned();
        *counts.entry((name, time, content)).or_default() += 1;
    }
    counts
}

/// Two slices that meet at a time, merged, have the records of the whole log.
pub fn any_merge(data: &[u8]) {
    let Some((log, [at])) = data.split_last_chunk() else { return };
    let Some(log) = open(log) else { return };
    let Some((start, end)) = log.info().start.zip(log.info().end) else { return };
    // Where the clock of an RLD goes back, a time is in several places, and block times that do not
    // follow each other can mean rows of another size.
    if matches!(log, AnyLog::Rld(_)) && log.topics().iter().any(|topic| !topic.in_order) {
        return;
    }
    let span = i128::from(end.nanos) - i128::from(start.nanos);
    let cut =
        i64::try_from(i128::from(start.nanos) + span * i128::from(*at) / 255).expect("between two times");
    let all = Select::all();
    // What cannot be read, but has a place in time, is part of a slice.
    let intact = log.info().lost.is_empty();
    let mut parts = Vec::new();
    for select in [all.clone().between(None, Some(cut)), all.between(Some(cut), None)] {
        let mut out = Vec::new();
        let Ok(sliced) = log.slice(&select, &mut out) else { return };
        // A block of an RLD is kept whole where a gap follows in the next: its rows are in both.
        if sliced.details.iter().any(|detail| detail.key == "rows_more") {
            return;
        }
        let part = open(&out).expect("a slice opens");
        assert_eq!(part.info().records, sliced.records);
        assert!(!intact || part.info().lost.is_empty(), "a slice is intact: {:?}", part.diagnostics().list());
        parts.push(part);
    }
    let mut out = Vec::new();
    let Ok(merged) = rovelog::merge(&parts, Align::AsIs, &mut out) else { return };
    let again = open(&out).expect("a merged log opens");
    assert_eq!(again.info().records, merged.records);
    assert!(!intact || again.info().lost.is_empty(), "it is intact: {:?}", again.diagnostics().list());
    let (want, got) = (records(&log), records(&again));
    let missing: Vec<_> = want.iter().filter(|(record, count)| got.get(*record) < Some(*count)).collect();
    let more: Vec<_> = got.iter().filter(|(record, count)| want.get(*record) < Some(*count)).collect();
    // One RLD file cannot have a short block before a gap, which the time of the cut can be.
    let is_named = matches!(log, AnyLog::Rld(_)) && !merged.left_out.is_empty();
    let is_whole = missing.is_empty() || is_named;
    assert!(is_whole && more.is_empty(), "not in two halves: {missing:?}; only in them: {more:?}");
}
