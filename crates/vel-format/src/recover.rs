//! Recovery: the best sound log that a damaged one still holds, with an account of every byte.

use std::io::Write;
use std::ops::Range;

use rovelog_core::{Detail, LogReader, ReadOptions, Recovery, Value, ranges};

use crate::error::VelError;
use crate::indexing::{IndexOrigin, IndexState};
use crate::locate::INDEX_AT;
use crate::reader::{Part, PartKind, VelReader};
use crate::wire::{FileHeader, MAGIC};
use crate::writer::{head, index_entries};

/// Writes the best sound log that `log` still holds.
///
/// Kept are all messages with sound framing, byte for byte and in order, those included whose content cannot be
/// read or that are marked as not valid; and, where the log has an end mark, the messages behind it. Header and
/// index are made anew. A log without a loss, and with a good index or none, is copied as it is. To recover a
/// recovered log changes nothing.
///
/// # Errors
/// Where the output refuses.
pub(crate) fn recover(log: &VelReader, out: &mut dyn Write) -> Result<Recovery, VelError> {
    let behind = log.parts.iter().any(|part| part.what == PartKind::Tail);
    let beyond = if behind { Some(beyond_end(log)?) } else { None };
    // Bytes behind an end mark are only worth anything where there are messages among them.
    let log = match &beyond {
        Some(beyond) if beyond.entries.len() > log.entries.len() => beyond,
        _ => log,
    };
    let sound = !log.parts.iter().any(|part| matches!(part.what, PartKind::Lost | PartKind::Joined))
        && log.walk.start.magic
        && !matches!(log.index(), IndexState::Rebuilt(_))
        && beyond.as_ref().is_none_or(|beyond| beyond.entries.len() != log.entries.len());
    if sound {
        return Ok(Recovery::copied(log.info().records, &log.bytes, out)?);
    }
    let mut kept: Vec<(u64, u64, f64, bool)> = log
        .messages()
        .map(|message| {
            let end = message.offset + message.wire_len();
            (message.offset, end, message.header.timestamp.get(), true)
        })
        .collect();
    let invalid = log.parts.iter().filter(|part| part.what == PartKind::Invalid);
    kept.extend(invalid.map(|part| (part.range.start, part.range.end, f64::NAN, false)));
    kept.sort_unstable_by_key(|message| message.0);
    let mut at = 0;
    let mut places = Vec::with_capacity(kept.len());
    for (start, end, millis, indexed) in &kept {
        if *indexed {
            places.push((at, *millis));
        }
        at += end - start;
    }
    let (mut entries, _) = index_entries(&places, IndexOrigin::FirstMessage);
    let first = INDEX_AT + 8 * entries.len() as u64;
    for entry in &mut entries {
        *entry += first;
    }
    let header = FileHeader { magic: MAGIC, ..*log.header() };
    out.write_all(&head(header, &entries)?)?;
    for (start, end, ..) in &kept {
        out.write_all(bytes(log, *start..*end))?;
    }
    out.flush()?;
    Ok(account(log, first, at))
}

fn bytes(log: &VelReader, range: Range<u64>) -> &[u8] {
    let index = |at: u64| usize::try_from(at).expect("within the file");
    &log.bytes[index(range.start)..index(range.end)]
}

/// The same log, read past its end mark.
fn beyond_end(log: &VelReader) -> Result<VelReader, VelError> {
    let mut options = ReadOptions::default();
    log.walk.types.declarations().clone_into(&mut options.declarations);
    VelReader::with(log.bytes.clone(), &options, true, true)
}

/// Every byte of the damaged log: kept, or lost.
fn account(log: &VelReader, index_len: u64, messages: u64) -> Recovery {
    let mut gaps: Vec<Range<u64>> = Vec::new();
    if !log.walk.start.magic {
        gaps.push(0..4);
    }
    for Part { range, what } in &log.parts {
        if *what == PartKind::Lost {
            ranges::push(&mut gaps, range.clone());
        }
    }
    let size = log.bytes.len() as u64;
    let details = vec![
        Detail::hidden("messages", Value::count(log.entries.len() as u64)),
        Detail::hidden("message_bytes", Value::count(messages)),
        Detail::hidden("index_bytes", Value::count(index_len)),
    ];
    Recovery {
        records: log.info().records,
        // Header, index and end mark are kept in another form.
        kept_bytes: size - ranges::total(&gaps),
        lost: gaps,
        details,
        ..Recovery::default()
    }
}
