//! Recovery of a damaged log: keeps every complete row, corrects the counts, and repairs known
//! faults of writers. Every byte is kept or reported as lost.

use std::io::Write;
use std::ops::Range;

use rovelog_core::{Detail, LogReader as _, Recovery, Severity, Value, ranges};

use crate::clock::follows;
use crate::diagnostics as rules;
use crate::error::RldError;
use crate::reader::RldReader;

/// Writes every intact row of `log` to one file, also if the log has several.
///
/// An undamaged log of one file is copied unchanged. Otherwise the counts and lengths in the header
/// are corrected; rows after those that the header counts are kept as long as the times of their
/// blocks follow each other; an extra word in each row is left out.
///
/// # Errors
/// Returns an error if writing fails or rows cannot be located.
pub(crate) fn recover(log: &RldReader, out: &mut dyn Write) -> Result<Recovery, RldError> {
    let changes = |severity| severity != Severity::Note;
    let rewritten = log.diagnostics().list().iter().any(|d| {
        let only_views = [&rules::STAMPS_IMPLAUSIBLE, &rules::NAME_ALIAS].contains(&d.rule);
        changes(d.rule.severity) && !only_views
    });
    if !rewritten && log.parts.len() == 1 {
        return Ok(Recovery::copied(log.rows(), &log.parts[0].bytes, out)?);
    }
    let whole = all_rows(log)?;
    let damaged = log;
    let (log, rows) = whole.as_ref().map_or((log, log.rows()), |(all, rows)| (all, *rows));
    let size: u64 = log.parts.iter().map(|part| part.bytes.len() as u64).sum();
    let lost = lost(log, rows);
    if rows == 0 || log.table.is_none() {
        out.write_all(&log.clean_header(0)?.to_bytes())?;
    } else {
        log.write_rows(0..rows, &mut *out)?;
    }
    out.flush()?;
    let repairs = [Severity::Repaired, Severity::LeftOut];
    let repaired = damaged.diagnostics().list().iter().filter(|d| repairs.contains(&d.rule.severity));
    let repaired: Vec<Value> = repaired.map(|d| Value::Text(d.rule.name.to_owned())).collect();
    let details = if repaired.is_empty() {
        Vec::new()
    } else {
        vec![Detail::new(
            "repaired",
            format!("{} faults of the writer", repaired.len()),
            Value::List(repaired),
        )]
    };
    Ok(Recovery {
        records: rows,
        kept_bytes: size - ranges::total(&lost),
        lost,
        missing_records: damaged.info().lost.missing_records,
        details,
        ..Recovery::default()
    })
}

/// Returns the log read regardless of the counts in its header, if the last file continues after
/// them, and the number of its rows: whole blocks from the last counted one on whose times follow
/// each other.
fn all_rows(log: &RldReader) -> Result<Option<(RldReader, u64)>, RldError> {
    let Some(table) = &log.table else { return Ok(None) };
    let last = log.parts.last().map_or(0, |part| part.rows);
    let size = table.layout.block_rows;
    let goes_on = log.diagnostics().list().iter().any(|d| d.rule == &rules::HEADER_BEHIND);
    if !goes_on || size == 0 || !last.is_multiple_of(size) {
        return Ok(None);
    }
    let all = log.reopened_whole()?;
    let (mut rows, mut before) = (log.rows(), None);
    for (row, block_times) in all.block_times() {
        if row >= log.rows() {
            if before.is_some_and(|before| !follows(&before, block_times))
                || !crate::clock::is_plausible(block_times)
            {
                break;
            }
            rows = all.rows().min(row + size);
        }
        before = Some(*block_times);
    }
    Ok(Some((all, rows)))
}

/// Returns the bytes that are neither header, block times, nor one of the first `rows` rows.
fn lost(log: &RldReader, rows: u64) -> Vec<Range<u64>> {
    let mut lost: Vec<Range<u64>> = Vec::new();
    for part in &log.parts {
        let kept = rows.saturating_sub(part.row).min(part.rows);
        let body = log.table.as_ref().map_or(0, |table| table.layout.body(kept));
        let end = part.base + part.header.size() + u64::try_from(body).unwrap_or_default();
        let len = part.base + part.bytes.len() as u64;
        if end < len {
            lost.push(end..len);
        }
    }
    lost
}
