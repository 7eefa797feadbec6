//! Fuzz targets that combine several operations: damage, recover and export; or slice and merge.

use std::collections::BTreeMap;

use rovelog::{Align, AnyLog, Bytes, ReadOptions, RecoverOptions, Select};

use crate::campaign::damage_one;
use crate::export::check_exports;

/// Maximum total size in bytes of the payloads in a log whose exports are checked.
const MAX_EXPORTED_BYTES: usize = 64 << 10;

fn open(bytes: &[u8]) -> Option<AnyLog> {
    let mut options = ReadOptions::default();
    options.limits.unpacked = 1 << 20;
    rovelog::from_bytes(Bytes::copy_from_slice(bytes), &options).ok()
}

/// Checks that a damaged log that was recovered has as many records as the recovery reported. Also
/// checks that its exports contain these records. The last two bytes of the input select the
/// damage.
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
/// For an RLD log, times are not compared, because they are computed from the whole log. Values are
/// compared instead of payloads, because rows may contain unused words, which are not written
/// again. For a VEL log, times are not compared either. A message whose time is NaN gets the time
/// of the previous message.
fn count_records(log: &AnyLog) -> BTreeMap<(String, Option<i64>, Vec<u8>), u64> {
    let mut counts = BTreeMap::new();
    for record in log.records(&Select::all()) {
        let record = record.expect("a valid record");
        let (time, content) = match log {
            AnyLog::Rld(_) => (None, record.value().expect("a row decodes").to_json().into_bytes()),
            AnyLog::Vel(_) => (None, record.payload.to_vec()),
            _ => (record.time.map(|time| time.nanos), record.payload.to_vec()),
        };
        // If several topics have one name, a suffix such as `#2` distinguishes them. The suffixes
        // depend on which of the topics have records, so they are removed.
        let name = record.topic.name.split('#').next().unwrap_or_default().to_owned();
        *counts.entry((name, time, content)).or_default() += 1;
    }
    counts
}

/// Slices a log before and after a time. Checks that the two slices together, after merging them,
/// contain all records of the log.
pub fn any_merge(data: &[u8]) {
    let Some((log, [at])) = data.split_last_chunk() else { return };
    let Some(log) = open(log) else { return };
    let Some((start, end)) = log.info().start.zip(log.info().end) else { return };
    // If the clock of an RLD log is set back, several rows may have the same time. Block times that
    // are not in order may also look like those of a log with a different row size. Such logs are
    // skipped.
    if matches!(log, AnyLog::Rld(_)) && log.topics().iter().any(|topic| !topic.in_order) {
        return;
    }
    let span = i128::from(end.nanos) - i128::from(start.nanos);
    let cut =
        i64::try_from(i128::from(start.nanos) + span * i128::from(*at) / 255).expect("between two times");
    let all = Select::all();
    // A slice keeps the damaged ranges within its time range.
    let intact = log.info().lost.is_empty();
    let mut parts = Vec::new();
    for select in [all.clone().between(None, Some(cut)), all.between(Some(cut), None)] {
        let mut out = Vec::new();
        let Ok(sliced) = log.slice(&select, &mut out) else { return };
        // In a slice of an RLD log, the block before a gap is kept as a whole. Then both slices
        // contain its rows.
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
    // In an RLD log, a block before a gap cannot be short. So the merge excludes some rows and
    // reports them.
    let is_reported = matches!(log, AnyLog::Rld(_)) && !merged.left_out.is_empty();
    let is_complete = missing.is_empty() || is_reported;
    assert!(is_complete && more.is_empty(), "missing records: {missing:?}; additional records: {more:?}");
}
