//! What makes messages of unknown kinds believable: those that follow (section 5 of docs/formats/ulog.md,
//! **passable**). A log made of logs may lack what followed there, so synchronization messages stand in for it.
//! A sound log has all that is needed, and gets none.

use crate::message::Message;
use crate::plausible::{CHAIN, MAX_UNJUDGEABLE};

/// Follows the messages of a log that is being written.
#[derive(Default)]
pub(super) struct Trust {
    /// Unknown messages in a row.
    run: usize,
    /// Whether the last unknown message does not have its chain yet, the judgeable messages behind it, and
    /// whether the last of those confirms its length.
    open: bool,
    behind: usize,
    sure: bool,
}

impl Trust {
    /// Synchronization messages that have to stand before a message; they are taken with it.
    pub(super) fn before(&mut self, message: &Message<'_>) -> usize {
        let full = matches!(message, Message::Unknown { .. }) && self.run > MAX_UNJUDGEABLE;
        let needed = if full { CHAIN } else { 0 };
        (0..needed).for_each(|_| self.judgeable(true));
        match message {
            Message::Unknown { .. } => {
                self.sure |= !self.open;
                (self.run, self.open, self.behind) = (self.run + 1, true, 0);
            }
            // Whether a subscription can be judged depends on definitions that may be missing.
            Message::Subscription { .. } | Message::FlagBits(..) => {}
            Message::Info(part) | Message::MultiInfo { part, .. } => self.judgeable(part.confirms_length()),
            Message::Text { .. } => self.judgeable(false),
            _ => self.judgeable(true),
        }
        needed
    }

    /// The same at the end of the log.
    pub(super) fn at_end(&self) -> usize {
        usize::from(self.open && !self.sure)
    }

    fn judgeable(&mut self, confirmed: bool) {
        (self.run, self.behind, self.sure) = (0, self.behind + 1, confirmed);
        self.open &= self.behind < CHAIN;
    }
}
