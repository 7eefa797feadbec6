//! Determines at which times, topics or recordings a log is split into several new logs.

use std::io;

use rovelog::ulog_format::{Session, UlogReader};
use rovelog::{AnyLog, LogReader, Select, Topic};
use rovelog_export::topic_names;

use crate::failure::Failure;
use crate::text::size as shown;
use crate::window::span;

/// Maximum number of parts into which a log can be split.
const MAX_PARTS: usize = 10_000;

/// A part of a log, which is written as a new log.
pub(super) struct Part {
    /// Unique name of the part, which becomes a part of the file name.
    pub(super) name: String,
    pub(super) content: Content,
}

/// The records that a part of a log consists of.
pub(super) enum Content {
    /// The records that this selection contains.
    Selection(Select),
    /// One recording in a file that contains several recordings.
    Session(Session),
}

impl Content {
    /// Returns the topic if the part contains a single topic.
    pub(super) fn topic(&self) -> Option<String> {
        let Self::Selection(Select { topics: Some(topics), .. }) = self else { return None };
        topics.iter().next().map(str::to_owned)
    }
}

/// Divides a log into parts at the times `bounds`. The first part has no start and the last part
/// has no end. So they also contain records whose times are far outside the time range of the log.
fn between(bounds: &[i64]) -> Vec<Part> {
    let width = (bounds.len() + 1).to_string().len();
    let part = |number: usize| {
        let (from, to) = window(bounds, number);
        let content = Content::Selection(Select::all().between(from, to));
        Part { name: format!("{:0width$}", number + 1), content }
    };
    (0..=bounds.len()).map(part).collect()
}

/// Returns the start and the end of a part, if the log is divided at the times `bounds`.
fn window(bounds: &[i64], number: usize) -> (Option<i64>, Option<i64>) {
    (number.checked_sub(1).map(|before| bounds[before]), bounds.get(number).copied())
}

fn too_many(parts: impl std::fmt::Display, next: &str) -> Failure {
    Failure::usage(format!("the log would be split into {parts} parts, but the limit is {MAX_PARTS}"))
        .next(next)
}

/// Moves cuts to the starts of blocks, if the log is an RLD log with gaps. A slice keeps blocks whole
/// if a gap follows, so other cuts would write some rows to two parts.
fn aligned(log: &AnyLog, cuts: &[i64]) -> Vec<i64> {
    let AnyLog::Rld(log) = log else { return cuts.to_vec() };
    let mut moved: Vec<i64> = Vec::new();
    for (number, cut) in cuts.iter().enumerate() {
        let select = Select::all().between(Some(*cut), cuts.get(number + 1).copied());
        let rows = log.rows_selected(&select).into_iter().next();
        let first = rows.map(|rows| (log.slice_start(&rows), rows.start)).filter(|(first, row)| first < row);
        let cut = first.and_then(|(first, _)| log.record_times().time(first)).unwrap_or(*cut);
        // Several cuts may be in one block.
        while moved.last().is_some_and(|last| *last >= cut) {
            moved.pop();
        }
        moved.push(cut);
    }
    moved
}

/// Divides a log into time windows of `every` nanoseconds, counted from the start of the log.
/// Returns a part for each window.
pub(super) fn by_time(log: &AnyLog, every: i64) -> Result<Vec<Part>, Failure> {
    // Records with times far outside the time range of all other records do not count for this
    // range. They are written to the first or the last part.
    let data = log.info().span().map(|(start, end)| (start.nanos, end.nanos));
    let (start, end) = data.filter(|(start, end)| start <= end).or_else(|| span(&**log)).unwrap_or((0, 0));
    let cuts = end.saturating_sub(start) / every;
    if usize::try_from(cuts).is_ok_and(|cuts| cuts >= MAX_PARTS) {
        return Err(too_many(cuts + 1, "choose a longer time, such as --every 60s"));
    }
    let bounds: Vec<_> = (1..=cuts)
        .map_while(|cut| cut.checked_mul(every).and_then(|after| start.checked_add(after)))
        .collect();
    Ok(between(&aligned(log, &bounds)))
}

/// Divides a log into parts of at most `size` bytes, in time order.
///
/// The times at which the log is cut are first estimated from the sizes of the records. Then the
/// size of each part is measured by writing the part without storing it. If a part is too large, it
/// is cut in the middle of its time range. This is repeated until all parts fit.
///
/// For example, a log has 250 MB, its definitions have 1 MB, and the limit is 100 MB. The log is
/// first cut after every 99 MB of records. If the second part turns out to have 104 MB, it is cut
/// into two parts.
pub(super) fn by_size(log: &AnyLog, size: u64) -> Result<Vec<Part>, Failure> {
    let Some((first, last)) = span(&**log) else { return Ok(between(&[])) };
    let measure = |from: Option<i64>, to: Option<i64>| -> Result<u64, Failure> {
        Ok(log.slice(&Select::all().between(from, to), &mut io::sink())?.bytes)
    };
    // Every part contains the definitions and the initial parameters. Their size is measured by
    // writing a part whose time window starts after the end of the log, so that it contains no
    // records.
    let head = measure(last.checked_add(1), last.checked_add(1))?;
    let free = size.saturating_sub(head);
    let known = log.topics().iter().all(|topic| topic.bytes_known);
    let payloads = if known { log.topics().iter().map(|topic| topic.bytes).sum() } else { log.info().size };
    // Definitions and payloads do not account for all bytes of the log. The remaining bytes are
    // headers of records, and every record is assumed to have an equal share of them.
    let each = log.info().size.saturating_sub(head + payloads) / log.info().records.max(1);
    let (mut bounds, mut filled) = (Vec::new(), 0);
    // If the whole log fits into one part, it is not cut.
    if head + payloads + each * log.info().records > size {
        for record in log.intact_records(&Select::all()) {
            let record = record?;
            filled += record.payload.len() as u64 + each;
            // Records with equal times must stay in the same part, so the log is cut only where the
            // time increases.
            if let Some(time) = record.time.filter(|_| filled > free)
                && *bounds.last().unwrap_or(&first) < time.nanos
            {
                bounds.push(time.nanos);
                filled = 0;
                if bounds.len() >= MAX_PARTS {
                    return Err(too_many("more", "choose a larger size, such as --size 100MB"));
                }
            }
        }
    }
    let mut number = 0;
    // After a cut, the first half of the part has the index that the whole part had before. So this
    // half is measured next.
    while number <= bounds.len() {
        let (from, to) = window(&bounds, number);
        if measure(from, to)? <= size {
            number += 1;
            continue;
        }
        let (start, end) = (from.unwrap_or(first), to.or(last.checked_add(1)));
        let middle = end.map(|end| start.saturating_add(end.saturating_sub(start) / 2));
        let Some(middle) = middle.filter(|middle| start < *middle && bounds.len() < MAX_PARTS) else {
            let what = format!(
                "the log cannot be split into parts of {}, because data that belongs together is larger",
                shown(size)
            );
            let why = format!("; each part also starts with {} of definitions", shown(head));
            return Err(Failure::usage(what + &why).next("choose a larger size, such as --size 100MB"));
        };
        bounds.insert(number, middle);
    }
    Ok(between(&aligned(log, &bounds)))
}

/// Returns a part for each topic that has records.
pub(super) fn by_topic(log: &dyn LogReader) -> Vec<Part> {
    let topics: Vec<_> = log.topics().iter().filter(|topic| topic.count > 0).collect();
    let names = topic_names(&topics);
    let parts = topics.iter().zip(names);
    let select = |topic: &Topic| Content::Selection(Select::topics([topic.name.clone()]));
    parts.map(|(topic, name)| Part { name, content: select(topic) }).collect()
}

/// Returns a part for each recording in a file. If the file contains a single recording, there is a
/// single part.
pub(super) fn at_restart(log: &UlogReader) -> Vec<Part> {
    let sessions = log.sessions();
    if sessions.len() < 2 {
        return between(&[]);
    }
    let width = sessions.len().to_string().len();
    let part =
        |(number, session)| Part { name: format!("{number:0width$}"), content: Content::Session(session) };
    (1..).zip(sessions).map(part).collect()
}
