//! What makes messages of unknown kinds believable: those that follow (section 5 of
//! docs/formats/ulog.md, **passable**). A log made of logs may lack what followed there, so a
//! synchronization message is in for it. A valid log has all that is needed, and gets none.

use std::ops::Range;

use rovelog_core::scan::Window;

use crate::definitions::Definitions;
use crate::validate::{CHAIN, FREE_DEFINITIONS, Scan, Validator};
use crate::wire::{Message, MultiInfo};

/// Follows the messages of a log that is being written.
#[derive(Default)]
pub(super) struct Trust {
    /// Whether the last unknown message does not have its chain yet, the verifiable messages behind
    /// it, and whether the last of those confirms its length.
    open: bool,
    behind: usize,
    sure: bool,
}

impl Trust {
    /// Takes a message that is written.
    pub(super) fn take(&mut self, message: &Message<'_>) {
        match message {
            Message::Unknown { .. } => {
                self.sure |= !self.open;
                (self.open, self.behind) = (true, 0);
            }
            // Whether a subscription can be validated depends on definitions that may be missing.
            Message::Subscription(_) | Message::FlagBits(_) => {}
            Message::Info(info) | Message::MultiInfo(MultiInfo { info, .. }) => {
                self.verifiable(info.confirms_length());
            }
            Message::LoggedString(_) | Message::TaggedString(_) => self.verifiable(false),
            _ => self.verifiable(true),
        }
    }

    /// Returns whether a synchronization message has to end the log.
    pub(super) fn needs_sync(&self) -> bool {
        self.open && !self.sure
    }

    fn verifiable(&mut self, confirmed: bool) {
        (self.behind, self.sure) = (self.behind + 1, confirmed);
        self.open &= self.behind < CHAIN;
    }
}

/// Returns whether a reader with these definitions would find messages inside of an unknown one: a
/// damaged header has swallowed them. They may lead to its end, and the last may go beyond.
pub(super) fn hides_messages(definitions: &Definitions, log: Window<'_>, message: Range<u64>) -> bool {
    [message.end, log.end()].into_iter().any(|limit| {
        let validator = Validator::new(log, definitions, limit, FREE_DEFINITIONS);
        let chain = validator.scan(&mut Scan::from(message.start), message.end);
        chain.is_ok_and(|found| found.is_some())
    })
}
