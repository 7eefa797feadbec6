//! Operations in sequence: damage, recover and export; slice and merge.

use std::collections::BTreeMap;

use rovelog::{Align, AnyLog, Bytes, ReadOptions, RecoverOptions, Select};

use crate::campaign::damage_one;
use crate::export::check_exports;

/// Maximum size of the payloads of a log whose exports are checked.
const MAX_EXPORTED_BYTES: usize = 64 << 10;

fn open(bytes: &[u8]) -> Option<AnyLog> {
    let mut options = ReadOptions::default();
    options.limits.unpacked = 1 << 20;
    rovelog::from_bytes(Bytes::copy_from_slice(bytes), &options).ok()
}

/// A damaged and recovered log has as many records as recovery reported, and its exports hold them. The
/// last two bytes of the input select the damage.
pub fn any_recover(data: &[u8]) {
    let Some((log, [operator, seed])) = data.split_last_chunk() else { return };
    let damaged = damage_one(log, *operator, *seed);
    let Some(log) = open(&damaged) else { return };
    let mut out = Vec::new();
    let report = log.recover(&mut out, &RecoverOptions::default()).expect("writing to memory succeeds");
    if report.records == 0 {
        return;
    }
    let recovered = open(&out).expect("a recovered log opens");
    assert_eq!(recovered.info().records, report.records);
    let payloads = recovered.records(&Select::all()).map_while(Result::ok).map(|record| record.payload.len());
    if payloads.sum::<usize>() <= MAX_EXPORTED_BYTES {
        check_exports(&recovered);
    }
}

/// Counts the records of a log by topic, time and payload.
///
/// For an RLD, times are left out because they are fitted to the whole log, and values take the place of
/// payloads because unused words of rows are not written. For a VEL log, times are left out because a
/// message whose time is not a number takes that of the message before it.
fn count_records(log: &AnyLog) -> BTreeMap<(String, Option<i64>, Vec<u8>), u64> {
    let mut counts = BTreeMap::new();
    for record in log.records(&Select::all()) {
        let record = record.expect("a valid record");
        let (time, content) = match log {
            AnyLog::Rld(_) => (None, record.value().expect("a row decodes").to_json().into_bytes()),
            AnyLog::Vel(_) => (None, record.payload.to_vec()),
            _ => (record.time.map(|time| time.nanos), record.payload.to_vec()),
        };
        // `#2` distinguishes topics of one name, depending on which of them have records.
        let name = record.topic.name.split('#').next().unwrap_or_default().to_owned();
        *counts.entry((name, time, content)).or_default() += 1;
    }
    counts
}

/// Two slices that meet at a time have the records of the whole log when they are merged.
pub fn any_merge(data: &[u8]) {
    let Some((log, [at])) = data.split_last_chunk() else { return };
    let Some(log) = open(log) else { return };
    let Some((start, end)) = log.info().start.zip(log.info().end) else { return };
    // If the clock of an RLD goes back, several rows have one time, and block times that do not follow each
    // other can be taken for rows of another size.
    if matches!(log, AnyLog::Rld(_)) && log.topics().iter().any(|topic| !topic.in_order) {
        return;
    }
    let span = i128::from(end.nanos) - i128::from(start.nanos);
    let cut =
        i64::try_from(i128::from(start.nanos) + span * i128::from(*at) / 255).expect("between two times");
    let all = Select::all();
    // A slice keeps damaged ranges within its times.
    let intact = log.info().lost.is_empty();
    let mut parts = Vec::new();
    for select in [all.clone().between(None, Some(cut)), all.between(Some(cut), None)] {
        let mut out = Vec::new();
        let Ok(sliced) = log.slice(&select, &mut out) else { return };
        // A slice of an RLD keeps a block as a whole before a gap, so both slices have its rows.
        if sliced.details.iter().any(|detail| detail.key == "rows_more") {
            return;
        }
        let part = open(&out).expect("a slice opens");
        assert_eq!(part.info().records, sliced.records);
        assert!(
            !intact || part.info().lost.is_empty(),
            "a slice of an intact log is damaged: {:?}",
            part.diagnostics().list()
        );
        parts.push(part);
    }
    let mut out = Vec::new();
    let Ok(merged) = rovelog::merge(&parts, Align::AsIs, &mut out) else { return };
    let again = open(&out).expect("a merged log opens");
    assert_eq!(again.info().records, merged.records);
    assert!(
        !intact || again.info().lost.is_empty(),
        "a merged log of intact ones is damaged: {:?}",
        again.diagnostics().list()
    );
    let (want, got) = (count_records(&log), count_records(&again));
    let missing: Vec<_> = want.iter().filter(|(record, count)| got.get(*record) < Some(*count)).collect();
    let more: Vec<_> = got.iter().filter(|(record, count)| want.get(*record) < Some(*count)).collect();
    // An RLD cannot have a short block before a gap. The merge reports the rows that it leaves out.
    let is_reported = matches!(log, AnyLog::Rld(_)) && !merged.left_out.is_empty();
    let is_complete = missing.is_empty() || is_reported;
    assert!(is_complete && more.is_empty(), "missing records: {missing:?}; additional records: {more:?}");
}
