//! Checks that a reader accepts the unknown messages in a new log.
//!
//! A reader skips an unknown message only if a chain of messages that agree with their type follows
//! (section 5 of docs/formats/ulog.md). A slice may omit these messages, for example the rows after
//! the unknown message. The slice then ends with a synchronization message, which any reader can
//! verify.

use std::ops::Range;

use rovelog_core::internal::scan::Window;
use rovelog_core::internal::splice::Splice;

use crate::definitions::Definitions;
use crate::error::UlogError;
use crate::validate::{CHAIN, FREE_DEFINITIONS, Scan, Validator};
use crate::wire::{Message, MultiInfo, SYNC_MAGIC, Sync};
use crate::writer::encoded;

/// Observes the messages of a log that is being written, to detect whether a reader would skip the
/// unknown messages.
#[derive(Default)]
pub(super) struct UnknownGuard {
    /// True if too few verifiable messages have followed the last unknown message, so that a reader
    /// would not skip it yet.
    is_pending: bool,
    /// Number of verifiable messages after the last unknown message.
    verifiable_count: usize,
    /// True if the content of the last verifiable message confirms the message's length. A reader
    /// then needs fewer than three messages at the end of the file.
    is_confirmed: bool,
}

impl UnknownGuard {
    /// Updates the state with the next message that is written to the new log.
    pub(super) fn observe(&mut self, message: &Message<'_>) {
        match message {
            Message::Unknown { .. } => {
                self.is_confirmed |= !self.is_pending;
                (self.is_pending, self.verifiable_count) = (true, 0);
            }
            // A subscription is unverifiable if its format is missing, so subscriptions are not
            // counted.
            Message::Subscription(_) | Message::FlagBits(_) => {}
            Message::Info(info) | Message::MultiInfo(MultiInfo { info, .. }) => {
                self.verifiable(info.confirms_length());
            }
            Message::LoggedString(_) | Message::TaggedString(_) => self.verifiable(false),
            _ => self.verifiable(true),
        }
    }

    /// Adds a synchronization message to the end of a new log, if a reader needs it to skip the
    /// unknown messages.
    pub(super) fn finish(&self, log: &mut Splice<'_>) -> Result<(), UlogError> {
        if self.needs_sync() {
            log.append(&encoded(&Message::Sync(Sync { sync_magic: SYNC_MAGIC }))?);
        }
        Ok(())
    }

    /// Returns `true` if the new log must end with a synchronization message, so that a reader
    /// skips its unknown messages.
    pub(super) fn needs_sync(&self) -> bool {
        self.is_pending && !self.is_confirmed
    }

    /// Counts a verifiable message. `confirmed` is true if the content of the message confirms its
    /// length.
    fn verifiable(&mut self, confirmed: bool) {
        (self.verifiable_count, self.is_confirmed) = (self.verifiable_count + 1, confirmed);
        self.is_pending &= self.verifiable_count < CHAIN;
    }
}

/// Returns `true` if a reader with the given definitions would find valid messages inside an
/// unknown message. The reader would then treat the unknown message as damage.
///
/// The last message inside may end exactly with the unknown message, or extend beyond its end. Both
/// cases are checked.
pub(super) fn hides_messages(definitions: &Definitions, log: Window<'_>, message: Range<u64>) -> bool {
    [message.end, log.end()].into_iter().any(|limit| {
        let validator = Validator::new(log, definitions, limit, FREE_DEFINITIONS);
        let chain = validator.scan(&mut Scan::from(message.start), message.end);
        chain.is_ok_and(|found| found.is_some())
    })
}
