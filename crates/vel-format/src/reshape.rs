//! Cutting logs by time and by topic, and merging them, without touching the bytes of messages.

use std::io::Write;

use rovelog_core::{LogReader, Select, Sliced};

use crate::error::VelError;
use crate::indexing::{IndexOrigin, IndexState};

use crate::reader::{PartKind, VelReader};
use crate::writer::{NewMessage, WriteOptions, Written, write_log};

/// The conventions of a log, to write another one like it.
pub(crate) fn conventions(log: &VelReader) -> WriteOptions {
    let header = log.header();
    let mut options = WriteOptions::default();
    options.size_rule = log.size_rule();
    options.version = (header.major.get(), header.minor.get());
    if *log.index() == IndexState::Good(IndexOrigin::ProgramStart) {
        options.origin = IndexOrigin::ProgramStart;
    }
    options.terminator = log.parts.iter().any(|part| part.what == PartKind::Terminator);
    options
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
    let written = write_log(&messages, &conventions(log), out)?;
    let topics = log.topics().iter().filter(|topic| select.keeps_topic(topic)).count();
    let others = places.len() as u64 - records;
    Ok(Sliced { records, others, topics, bytes: written.bytes, details: Vec::new() })
}

/// By what the times of several logs are brought together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Alignment {
    /// Their own timestamps, as they are: recordings of one program.
    #[default]
    Timestamps,
    /// UTC; timestamps of all but the first log are moved to its clock.
    Utc,
}

/// Merges logs into one, by time.
///
/// Messages keep their data and markers. The size rule and version are those of the first log.
///
/// # Errors
/// Where the output refuses, and where times are to be brought together by UTC that a log does not have.
pub fn merge(logs: &[&VelReader], alignment: Alignment, out: impl Write) -> Result<Written, VelError> {
    let Some(first) = logs.first() else {
        return Err(VelError::CannotMerge { why: "there is none".to_owned() });
    };
    let mut all = Vec::new();
    for (number, log) in logs.iter().enumerate() {
        let shift = match alignment {
            Alignment::Timestamps => 0,
            Alignment::Utc => {
                let offset = |log: &VelReader| log.meaning().gps.utc.as_ref().map(|utc| utc.offset_nanos);
                let (own, of_first) = (offset(log), offset(first));
                own.zip(of_first).map(|(own, first)| own.saturating_sub(first)).ok_or_else(|| {
                    VelError::CannotMerge { why: format!("log {} has no UTC", number + 1) }
                })?
            }
        };
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
    write_log(&messages, &options, out)
}
