//! Computation of the number of bytes that each message type and each topic takes in a log.

use rovelog_core::internal::usage::{Usage, UsageTally};
use rovelog_core::{LogReader as _, TopicId};

use crate::reader::UlogReader;
use crate::wire::{FLAG_BITS_AT, HEADER_SIZE, kind};

pub(crate) fn usage(log: &UlogReader) -> Vec<Usage> {
    // `UsageTally` looks up names, which is slow. Most messages of a log are rows, so rows are
    // first counted by topic number.
    let mut data = vec![(0, 0); log.topics().len()];
    let mut tally = UsageTally::default();
    tally.add("file header", None, log.first() - log.scanner().start.at);
    // If the file contains several logs, the headers after the first are not messages, and the
    // cursor does not return them.
    for _ in log.boundaries().iter().filter(|boundary| boundary.has_header) {
        tally.add("file header", None, FLAG_BITS_AT);
    }
    for msg in log.cursor() {
        let bytes = (HEADER_SIZE + msg.payload.len()) as u64;
        match msg.row {
            Some(row) => {
                let (count, sum) = &mut data[row.series as usize];
                *count += 1;
                *sum += bytes;
            }
            None => tally.add(name(msg.msg_type), None, bytes),
        }
    }
    for (series, (count, bytes)) in (0..).zip(data) {
        tally.add_all("data", Some(TopicId(series)), count, bytes);
    }
    tally.finish(log.info().size)
}

/// Returns the kind of messages with the type `msg_type` that are not rows of a topic.
pub(crate) fn name(msg_type: u8) -> &'static str {
    match msg_type {
        kind::FLAG_BITS => "flag bits",
        kind::FORMAT => "format",
        kind::INFO => "information",
        kind::MULTI_INFO => "multi information",
        kind::PARAMETER => "parameter",
        kind::DEFAULT_PARAMETER => "default parameter",
        kind::SUBSCRIPTION => "subscription",
        kind::UNSUBSCRIPTION => "unsubscription",
        kind::DATA => "data that cannot be used",
        kind::LOGGED_STRING => "logged string",
        kind::TAGGED_STRING => "tagged logged string",
        kind::SYNC => "synchronization",
        kind::DROPOUT => "dropout",
        _ => "unknown message",
    }
}
