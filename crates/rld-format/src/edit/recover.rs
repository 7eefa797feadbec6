//! Recovery of a damaged log. It keeps every complete row, corrects the counts in the header, and
//! repairs known faults of the logger. Every byte is either kept or reported as lost.

use std::io::Write;
use std::ops::Range;

use rovelog_core::internal::ranges;
use rovelog_core::internal::text::count;
use rovelog_core::{Detail, LogReader as _, Recovery, Severity, Value};

use super::ambient_left_out;
use crate::diagnostics as rules;
use crate::error::RldError;
use crate::reader::RldReader;

/// Writes every intact row of `log` to a single file, even if the log consists of several files.
///
/// If the log is a single undamaged file, it is copied unchanged. In all other cases:
///
/// - The counts and lengths in the header are corrected.
/// - Rows that the header does not count are kept as long as the times of their blocks continue
///   each other.
/// - If a bug of the logger added a word to each row (rule D28 of docs/formats/rld.md), these words
///   are dropped.
///
/// # Errors
/// Returns an error if writing fails or rows cannot be located.
pub(crate) fn recover(log: &RldReader, out: &mut dyn Write) -> Result<Recovery, RldError> {
    let changes = |severity| severity != Severity::Note;
    let rewritten = log.diagnostics().list().iter().any(|d| {
        let only_views = [&rules::STAMPS_IMPLAUSIBLE, &rules::NAME_ALIAS].contains(&d.rule);
        changes(d.rule.severity) && !only_views
    });
    let ambient = ambient_left_out(log);
    if !rewritten && log.parts.len() == 1 {
        let copied = Recovery::copied(log.rows(), &log.parts[0].bytes, out)?;
        return Ok(Recovery { left_out: ambient.into_iter().collect(), ..copied });
    }
    let damaged = log;
    // Open the log again if the headers do not count all rows, so that all rows are read.
    let is_behind = log.parts.iter().any(|part| part.left_out > 0);
    let reopened = if is_behind { Some(log.reopened_whole()?) } else { None };
    let log = reopened.as_ref().unwrap_or(log);
    let rows = log.split_for_one_file(0..log.rows());
    let size: u64 = log.parts.iter().map(|part| part.bytes.len() as u64).sum();
    let lost = lost(log);
    if log.rows() == 0 {
        out.write_all(&log.clean_header(0)?.to_bytes())?;
    } else {
        log.write_blocks(&rows.blocks, &[], &mut *out)?;
    }
    out.flush()?;
    let repairs = [Severity::Repaired, Severity::LeftOut];
    let repaired = damaged.diagnostics().list().iter().filter(|d| repairs.contains(&d.rule.severity));
    let repaired: Vec<Value> = repaired.map(|d| Value::Text(d.rule.name.to_owned())).collect();
    let mut details = Vec::new();
    if !repaired.is_empty() {
        let text = format!("{} of the writer", count(repaired.len(), "fault"));
        details.push(Detail::new("repaired", text, Value::List(repaired)));
    }
    let missing = |log: &RldReader| log.info().lost.missing_records;
    let size_of_rows = |rows: &Range<u64>| {
        let bytes = log.table.as_ref().map(|table| table.layout.body(rows.end - rows.start));
        bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0)
    };
    let left_out_bytes: u64 = rows.short.iter().map(size_of_rows).sum();
    Ok(Recovery {
        records: log.rows() - rows.short_rows(),
        kept_bytes: size - ranges::total_len(&lost) - left_out_bytes,
        lost,
        // Missing records of the ambient file are counted when that file is recovered, not here.
        missing_records: missing(damaged) - damaged.ambient().map_or(0, missing),
        left_out: ambient.into_iter().chain(rows.left_out()).collect(),
        details,
        ..Recovery::default()
    })
}

/// Returns the byte ranges of a log that are not part of a header, block times or rows.
fn lost(log: &RldReader) -> Vec<Range<u64>> {
    let mut lost: Vec<Range<u64>> = Vec::new();
    let mut segments = log.segments.iter().peekable();
    for (number, part) in log.parts.iter().enumerate() {
        let mut end = part.base + part.header.size();
        while let Some(segment) = segments.next_if(|segment| segment.part == number) {
            let Some(table) = &log.table else { continue };
            let range = segment.range(&table.layout);
            lost.push(end..part.base + range.start);
            end = part.base + range.end;
        }
        lost.push(end..part.base + part.bytes.len() as u64);
    }
    lost.retain(|range| range.start < range.end);
    lost
}
