//! Recovery: the best valid log that a damaged one still holds, with an account of every byte.

use std::io::Write;
use std::ops::Range;

use rovelog_core::window::Window;
use rovelog_core::{Detail, LogReader, Recovery, Value, ranges};

use crate::error::VelError;
use crate::indexing::{IndexOrigin, IndexState};
use crate::locate::INDEX_AT;
use crate::reader::{PartKind, VelReader};
use crate::reshape::conventions;
use crate::scan::view;
use crate::writer::{NewMessage, WriteOptions, rule_that_is_read, write_all};

/// Writes the best valid log that `log` still holds.
///
/// Kept are, byte for byte and in order, all messages whose content can be read, those that are marked as not valid,
/// messages behind an end mark, and what lies behind the last end mark. Header and index are made anew. A log without a
/// loss, and with a good index or none, is copied as it is. To recover a recovered log changes nothing.
///
/// What is lost are the bytes that `log`'s diagnostics call lost, neither more nor less.
///
/// # Errors
/// Returns an error if the output refuses.
pub(crate) fn recover(log: &VelReader, out: &mut dyn Write) -> Result<Recovery, VelError> {
    let remade = [PartKind::Lost, PartKind::Joined, PartKind::Behind];
    let sound = !log.parts.iter().any(|part| remade.contains(&part.what))
        && log.entries.iter().all(|entry| log.topic_of(entry).is_some())
        && log.walk.start.magic
        && !matches!(log.index(), IndexState::Rebuilt(_));
    if sound {
        return Ok(Recovery::copied(log.info().records, &log.bytes, out)?);
    }
    let (mut kept, mut lost) = (Vec::new(), Vec::new());
    for (entry, message) in log.entries.iter().zip(log.messages()) {
        match log.topic_of(entry) {
            Some(_) => kept.push((entry.at, NewMessage::copy(&message))),
            None => lost.push(entry.at..log.end_of(entry.at)),
        }
    }
    // What frames messages and is made anew: header and index, headers of further logs, end marks between messages.
    let mut replaced = log.walk.start.index_end;
    let mut end = end(log);
    for part in &log.parts {
        let Range { start, end: to } = part.range;
        match part.what {
            PartKind::Invalid | PartKind::Behind => {
                let message = view(Window::whole(&log.bytes), start, to, 0);
                kept.push((start, NewMessage::copy(&message)));
            }
            PartKind::Lost => lost.push(start..to),
            PartKind::Terminator | PartKind::Joined if start < end.start => replaced += to - start,
            PartKind::Terminator | PartKind::Joined | PartKind::Tail => {}
        }
    }
    kept.sort_unstable_by_key(|(at, _)| *at);
    lost.sort_unstable_by_key(|range| range.start);
    let mut joined = Vec::new();
    for range in lost {
        ranges::push(&mut joined, range);
    }
    let lost = joined;

    let messages: Vec<NewMessage<'_>> = kept.into_iter().map(|(_, message)| message).collect();
    if messages.is_empty() {
        // Without a message, nobody can tell by which size rule these bytes hold none.
        replaced += end.end - end.start;
        end.start = end.end;
    }
    let index = |at: u64| usize::try_from(at).expect("within the file");
    let tail = &log.bytes[index(end.start)..index(end.end)];
    let options = WriteOptions { origin: IndexOrigin::FirstMessage, ..conventions(log) };
    let size_rule = rule_that_is_read(&messages, tail, &options, &log.walk.types)?;
    let written = write_all(&messages, &WriteOptions { size_rule, ..options }, tail, out)?;
    let head = INDEX_AT + 8 * written.index_entries;
    let details = vec![
        Detail::hidden("messages", Value::count(written.messages)),
        Detail::hidden("message_bytes", Value::count(written.bytes - head - (end.end - end.start))),
        Detail::hidden("index_bytes", Value::count(head)),
        Detail::hidden("replaced_bytes", Value::count(replaced)),
    ];
    Ok(Recovery {
        records: log.info().records + log.info().lost.left_out_records,
        kept_bytes: log.bytes.len() as u64 - ranges::total(&lost),
        lost,
        details,
        ..Recovery::default()
    })
}

/// The end mark that no message follows, and what lies behind it; empty at the end of the file if there is none.
fn end(log: &VelReader) -> Range<u64> {
    let len = log.bytes.len() as u64;
    let mut last = log.parts.iter().rev().skip_while(|part| part.what == PartKind::Tail);
    match last.next() {
        Some(part) if part.what == PartKind::Terminator => part.range.start..len,
        _ => len..len,
    }
}
