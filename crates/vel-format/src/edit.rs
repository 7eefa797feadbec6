//! Recovery, slices and merges. They write new logs from existing messages, whose data is not
//! changed.

use std::io::Write;
use std::ops::Range;

use rovelog_core::internal::edit::{Edit, Part, Patcher};
use rovelog_core::internal::ranges;
use rovelog_core::internal::scan::Window;
use rovelog_core::internal::structure::part;
use rovelog_core::internal::text::count;
use rovelog_core::time::Seconds;
use rovelog_core::{Align, Detail, LogReader, Merged, Recovery, Select, Sliced, Value};
use zerocopy::FromBytes as _;

use crate::error::VelError;
use crate::indexing::{IndexOrigin, IndexState};
use crate::reader::{PartKind, VelReader};
use crate::scan::view;
use crate::schema::type_name;
use crate::wire::{INDEX_AT, MessageHeader, entries_len};
use crate::writer::{NewMessage, WriteOptions, is_inferred, write_copies};

/// Writes every intact message of `log` to a new log.
///
/// The following are kept byte for byte and in order:
///
/// - messages whose data is long enough for their content
/// - messages that are marked as invalid
/// - messages after an end mark
/// - the bytes after the last end mark, unless a reader would find other messages in these bytes;
///   in this case, the report lists them as left out
///
/// The header and the index are new. A log without a loss is copied unchanged if its index is valid
/// or empty. If a recovered log is recovered again, it does not change. The lost bytes are exactly
/// those that the diagnostics of `log` report as lost.
///
/// # Errors
/// Returns an error if writing fails.
pub(crate) fn recover(log: &VelReader, out: &mut dyn Write) -> Result<Recovery, VelError> {
    let rewritten = [PartKind::Lost, PartKind::Joined, PartKind::AfterEnd];
    let undamaged = !log.parts.iter().any(|part| rewritten.contains(&part.what))
        && log.entries.iter().all(|entry| log.topic_of(entry).is_some())
        && log.scanner.start.magic
        && !matches!(log.index(), IndexState::Rebuilt(_));
    if undamaged {
        return Ok(Recovery::copied(log.info().records, &log.bytes, out)?);
    }
    let (mut kept, mut lost) = (Vec::new(), Vec::new());
    for entry in log.entries.iter() {
        let range = entry.at..log.end_of(entry.at);
        if log.topic_of(entry).is_some() { kept.push(range) } else { lost.push(range) }
    }
    // Number of bytes of the log that are not copied: the header and the index, the headers of
    // logs that were appended, and the end marks between messages. The new log has its own header
    // and index.
    let mut replaced = log.scanner.start.index_end;
    let mut end = end(log);
    for part in &log.parts {
        let Range { start, end: to } = part.range;
        match part.what {
            PartKind::Invalid | PartKind::AfterEnd => kept.push(start..to),
            PartKind::Lost => lost.push(start..to),
            PartKind::Terminator | PartKind::Joined if start < end.start => replaced += to - start,
            PartKind::Terminator | PartKind::Joined | PartKind::Tail => {}
        }
    }
    kept.sort_unstable_by_key(|range| range.start);
    let lost = ranges::joined(lost);

    let message = |range: &Range<u64>| view(Window::whole(&log.bytes), range.start, range.end, 0);
    let messages = kept.iter().map(|range| NewMessage::copy(&message(range)));
    let options = WriteOptions { origin: IndexOrigin::FirstMessage, ..conventions(log) };
    let index = |at: u64| usize::try_from(at).expect("within the file");
    let mut tail = &log.bytes[index(end.start)..index(end.end)];
    let mut left_out = Vec::new();
    // If the lost messages are left out, a reader may infer a different size rule. With that rule,
    // it would find messages in the bytes after the end mark. In this case, these bytes are not
    // copied.
    let types = &log.scanner.types;
    if kept.is_empty() || !tail.is_empty() && !is_inferred(messages.clone(), tail, &options, types)? {
        replaced += end.end - end.start;
        left_out.extend(describe_tail(log));
        end.start = end.end;
        tail = &[];
    }
    let written = write_copies(messages, &options, tail, types, out)?;
    let head = INDEX_AT + entries_len(written.index_entries);
    let details = vec![
        Detail::hidden("messages", Value::count(written.messages)),
        Detail::hidden("message_bytes", Value::count(written.bytes - head - (end.end - end.start))),
        Detail::hidden("index_bytes", Value::count(head)),
        Detail::hidden("replaced_bytes", Value::count(replaced)),
    ];
    Ok(Recovery {
        records: log.info().records + log.info().lost.left_out_records,
        kept_bytes: log.bytes.len() as u64 - ranges::total_len(&lost),
        lost,
        left_out,
        details,
        ..Recovery::default()
    })
}

/// Returns a description of the bytes after the last end mark. Returns `None` if the log has no
/// such bytes.
fn describe_tail(log: &VelReader) -> Option<String> {
    let Range { start, end } = log.parts.last().filter(|part| part.what == PartKind::Tail)?.range.clone();
    let bytes = count(end - start, "byte");
    Some(format!(
        "{bytes} at byte {start}, after the end mark, because a reader could find other messages in them"
    ))
}

/// Returns the byte range from the last end mark to the end of the file. If there is no end mark,
/// or if messages follow it, returns an empty range at the end of the file.
fn end(log: &VelReader) -> Range<u64> {
    let len = log.bytes.len() as u64;
    let mut last = log.parts.iter().rev().skip_while(|part| part.what == PartKind::Tail);
    match last.next() {
        Some(part) if part.what == PartKind::Terminator => part.range.start..len,
        _ => len..len,
    }
}

/// Returns options for writing a new log in the same way as `log`, for example with the same size
/// rule and version.
pub(crate) fn conventions(log: &VelReader) -> WriteOptions {
    let header = log.header();
    let from_start = *log.index() == IndexState::Good(IndexOrigin::ProgramStart);
    WriteOptions {
        size_rule: log.size_rule(),
        version: (header.major.get(), header.minor.get()),
        origin: if from_start { IndexOrigin::ProgramStart } else { IndexOrigin::FirstMessage },
        terminator: log.parts.iter().any(|part| part.what == PartKind::Terminator),
        ..WriteOptions::default()
    }
}

/// Writes the selected messages of `log` to a new log.
///
/// The messages are kept byte for byte and in file order. If all topics are selected, this includes
/// messages whose data is too short for their content. The size rule, the markers and the version
/// are those of `log`. The index is new. It counts seconds from the same time as the index of
/// `log`: the first message or the start of the program.
///
/// # Errors
/// Returns an error if writing fails.
pub(crate) fn slice(log: &VelReader, select: &Select, out: impl Write) -> Result<Sliced, VelError> {
    let mut places: Vec<usize> = log.selected(select).collect();
    let records = places.len() as u64;
    // Messages whose data is too short belong to no topic. So they are only copied if all topics
    // are selected.
    if select.topics.is_none() {
        let unread = log.entries.iter().enumerate().filter(|(_, entry)| log.topic_of(entry).is_none());
        places.extend(unread.filter(|(_, entry)| select.keeps_time(entry.nanos)).map(|(place, _)| place));
    }
    places.sort_unstable();
    let messages = places.iter().map(|place| NewMessage::copy(&log.message_of(&log.entries[*place])));
    let options = conventions(log);
    let written = write_copies(messages, &options, options.end(), &log.scanner.types, out)?;
    let topics = log.topics().iter().filter(|topic| select.keeps_topic(topic)).count();
    let others = places.len() as u64 - records;
    let is_whole = select.topics.is_none() && select.start.is_none() && select.end.is_none();
    let missing = if is_whole { not_copied(&[log]) } else { Vec::new() };
    let text = format!("the slice leaves out {}", missing.join(", and "));
    let is_complete = missing.is_empty();
    let missing = Value::List(missing.into_iter().map(Value::Text).collect());
    let details = if is_complete { Vec::new() } else { vec![Detail::new("left_out", text, missing)] };
    Ok(Sliced { records, others, topics, bytes: written.bytes, details })
}

/// Describes the messages and bytes that are neither in a slice nor in a merged log.
fn not_copied(logs: &[&VelReader]) -> Vec<String> {
    let left_out = |(kind, noun, what): (PartKind, &str, &str)| {
        let n = logs.iter().flat_map(|log| &log.parts).filter(|part| part.what == kind).count();
        (n > 0).then(|| format!("{} {what}", count(n, noun)))
    };
    let kinds = [
        (PartKind::Invalid, "message", "that the writer marked as invalid"),
        (PartKind::AfterEnd, "message", "that follow an end mark"),
        (PartKind::Tail, "range", "of other bytes that follow an end mark"),
    ];
    kinds.into_iter().filter_map(left_out).collect()
}

/// Maximum difference in nanoseconds between the UTC offsets of two logs that have the same clock.
/// Receivers report whole seconds, so the offsets are not exact.
const MAX_CLOCK_DIFFERENCE: u64 = 2_000_000_000;

/// Merges logs into one log in time order.
///
/// Messages keep their data and markers. The size rule and the version are those of the first log.
/// By default, the times of the positions in the logs must show that all logs have the same clock.
/// If the logs are aligned by UTC, timestamps are moved to the clock that started first.
///
/// # Errors
/// Returns an error if writing fails, or if the clocks cannot be aligned.
pub(crate) fn merge(logs: &[&VelReader], align: Align, out: impl Write) -> Result<Merged, VelError> {
    let Some(first) = logs.first() else {
        return Err(VelError::CannotMerge { why: "no log is given".to_owned() });
    };
    let shifts = shifts(logs, align)?;
    let mut all = Vec::new();
    for (number, (log, shift)) in logs.iter().zip(&shifts).enumerate() {
        let entries = log.entries.iter().enumerate();
        all.extend(entries.map(|(place, entry)| (entry.nanos.saturating_add(*shift), number, place)));
    }
    all.sort_unstable();
    let messages = all.iter().map(|(_, number, place)| {
        let (log, shift) = (logs[*number], shifts[*number]);
        let mut message = NewMessage::copy(&log.message_of(&log.entries[*place]));
        // If the clocks are the same, the timestamp must not change in any bit, even if it is not a
        // number.
        if shift != 0 {
            message.millis += shift as f64 / 1e6;
        }
        message
    });
    let options = WriteOptions { terminator: false, ..conventions(first) };
    let written = write_copies(messages, &options, options.end(), &first.scanner.types, out)?;
    let names: std::collections::BTreeSet<&str> =
        logs.iter().flat_map(|log| log.topics()).map(|topic| topic.name.as_str()).collect();
    let records = logs.iter().map(|log| log.info().records).sum();
    let left_out = not_copied(logs);
    Ok(Merged { records, topics: names.len(), bytes: written.bytes, left_out, ..Merged::default() })
}

/// Returns the number of nanoseconds to add to the times of each log, so that all logs have the
/// same clock.
fn shifts(logs: &[&VelReader], align: Align) -> Result<Vec<i64>, VelError> {
    let cannot = |why: String| VelError::CannotMerge { why };
    let offset = |(number, log): (usize, &&VelReader)| {
        let utc = log.meaning().gps.utc.as_ref().map(|utc| utc.offset_nanos);
        utc.ok_or_else(|| {
            cannot(format!(
                "log {} contains no UTC time, so it cannot be aligned with the other logs",
                number + 1
            ))
        })
    };
    let far = || cannot("their clocks started more than 292 years apart".to_owned());
    let apart = |most: u64| {
        i64::try_from(most)
            .map_or_else(|_| far(), |most| cannot(format!("their clocks started {} s apart", Seconds(most))))
    };
    let shifts = align.shifts(logs.iter().enumerate().map(offset), MAX_CLOCK_DIFFERENCE, apart)?;
    shifts.into_iter().map(|shift| i64::try_from(shift).map_err(|_| far())).collect()
}

/// Writes a copy of `log`. The data of messages, including invalid ones, and bytes that cannot be
/// read are passed to `edit`.
pub(crate) fn rewrite(log: &VelReader, edit: &mut Edit<'_>, out: &mut dyn Write) -> std::io::Result<()> {
    let mut patcher = Patcher::new(&log.bytes, out);
    edit(Part::Start, &mut []);
    let is_message = |part: &PartKind| matches!(part, PartKind::Invalid | PartKind::AfterEnd);
    let messages = log.entries.iter().map(|entry| (entry.at..log.end_of(entry.at), true));
    let others =
        log.parts.iter().filter(|part| !matches!(part.what, PartKind::Joined | PartKind::Terminator));
    let mut ranges: Vec<_> =
        messages.chain(others.map(|part| (part.range.clone(), is_message(&part.what)))).collect();
    ranges.sort_unstable_by_key(|(range, _)| range.start);
    for (range, is_message) in ranges {
        let message = part(&log.bytes, range.clone());
        let Some((header, data)) = MessageHeader::ref_from_prefix(message).ok().filter(|_| is_message) else {
            patcher.edit(edit, Part::Unreadable, range)?;
            continue;
        };
        let declared = log.types().find(header.type_id.get(), header.version.get());
        let name = declared.map_or_else(|| type_name(header.type_id.get()), |ty| ty.name().to_owned());
        let part = match declared.map(|declared| declared.layout()) {
            Some(layout) if layout.decodes(data, true) => Part::Fields { topic: &name, layout },
            _ => Part::Opaque(&name),
        };
        patcher.edit_slice(edit, part, data)?;
    }
    patcher.finish()
}
