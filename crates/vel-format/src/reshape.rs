//! Cutting logs by time and by topic, and merging them, without touching the bytes of messages.

use std::io::Write;

use rovelog_core::{Align, LogReader, Merged, Select, Sliced};

use crate::error::VelError;
use crate::indexing::{IndexOrigin, IndexState};
use crate::reader::{PartKind, VelReader};
use crate::writer::{NewMessage, WriteOptions, write_copies};

/// The conventions of a log, to write another one like it.
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

/// Writes the part of `log` that `select` names, as a log of its own.
///
/// Kept are, byte for byte and in file order, the messages of the topics within the window, with those before
/// it that `select.latched` asks for. Without a choice of topics, messages whose content cannot be read are kept
/// too. Size rule, markers and version are the log's; the index is made anew from its origin.
///
/// # Errors
/// Where the output refuses.
pub fn slice(log: &VelReader, select: &Select, out: impl Write) -> Result<Sliced, VelError> {
    let mut places: Vec<usize> = log.selected(select).collect();
    let records = places.len() as u64;
    if select.topics.is_none() {
        let unread = log.entries.iter().enumerate().filter(|(_, entry)| log.topic_of(entry).is_none());
        places.extend(unread.filter(|(_, entry)| select.keeps_time(entry.nanos)).map(|(place, _)| place));
    }
    places.sort_unstable();
    let messages: Vec<_> =
        places.iter().map(|place| NewMessage::copy(&log.message_of(&log.entries[*place]))).collect();
    let written = write_copies(&messages, &conventions(log), &log.walk.types, out)?;
    let topics = log.topics().iter().filter(|topic| select.keeps_topic(topic)).count();
    let others = places.len() as u64 - records;
    Ok(Sliced { records, others, topics, bytes: written.bytes, details: Vec::new() })
}

/// Clocks whose zeros are nearer to each other than this, nanoseconds, are one: receivers say whole seconds.
const SAME_CLOCK: u64 = 2_000_000_000;

const FAR_APART: &str = "their clocks began more than 292 years apart";

/// Merges logs into one, by time.
///
/// Messages keep their data and markers; the size rule and version are those of the first log. Without another
/// wish the logs must show by their positions that they share a clock. By UTC, timestamps are moved to the clock
/// that began first.
///
/// # Errors
/// Where the output refuses, and where the clocks cannot be brought together.
pub fn merge(logs: &[&VelReader], align: Align, out: impl Write) -> Result<Merged, VelError> {
    let Some(first) = logs.first() else {
        return Err(VelError::CannotMerge { why: "there is none".to_owned() });
    };
    let shifts = shifts(logs, align)?;
    let mut all = Vec::new();
    for (number, (log, shift)) in logs.iter().zip(shifts).enumerate() {
        for (place, entry) in log.entries.iter().enumerate() {
            let mut message = NewMessage::copy(&log.message_of(entry));
            if shift != 0 {
                message.millis += shift as f64 / 1e6;
            }
            all.push((entry.nanos.saturating_add(shift), number, place, message));
        }
    }
    all.sort_by_key(|(nanos, number, place, _)| (*nanos, *number, *place));
    let messages: Vec<_> = all.into_iter().map(|(.., message)| message).collect();
    let options = WriteOptions { terminator: false, ..conventions(first) };
    let written = write_copies(&messages, &options, &first.walk.types, out)?;
    let names: std::collections::BTreeSet<&str> =
        logs.iter().flat_map(|log| log.topics()).map(|topic| topic.name.as_str()).collect();
    let records = logs.iter().map(|log| log.info().records).sum();
    let mut merged = Merged { records, topics: names.len(), bytes: written.bytes, ..Merged::default() };
    let gone = |kind, what: &str| {
        let n = logs.iter().flat_map(|log| &log.parts).filter(|part| part.what == kind).count();
        (n > 0).then(|| format!("{n} {what}"))
    };
    merged.left_out.extend(gone(PartKind::Invalid, "messages marked as not valid"));
    merged.left_out.extend(gone(PartKind::Behind, "messages behind end marks"));
    merged.left_out.extend(gone(PartKind::Tail, "ranges without messages behind end marks"));
    Ok(merged)
}

/// What is added to the times of each log.
fn shifts(logs: &[&VelReader], align: Align) -> Result<Vec<i64>, VelError> {
    let refuse = |why| VelError::CannotMerge { why };
    let offsets = logs.iter().enumerate().map(|(number, log)| {
        let utc = log.meaning().gps.utc.as_ref().map(|utc| utc.offset_nanos);
        utc.ok_or_else(|| refuse(format!("log {} has no UTC", number + 1)))
    });
    let apart = |apart| match i64::try_from(apart) {
        Ok(apart) => refuse(format!("their clocks began {} s apart", rovelog_core::time::Seconds(apart))),
        Err(_) => refuse(FAR_APART.to_owned()),
    };
    let shifts = align.shifts(offsets, SAME_CLOCK, apart)?;
    let shifts = shifts.into_iter().map(i64::try_from).collect::<Result<_, _>>();
    shifts.map_err(|_| refuse(FAR_APART.to_owned()))
}
