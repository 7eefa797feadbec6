//! Position of a scan of a bag before V2.0.

use std::collections::HashSet;

use crate::message::MessageRef;
use crate::old::Table;
use crate::tables::Tallies;
use crate::validate::Search;

/// Type of the record before the current position of the scan.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum LastRecord {
    Message(MessageRef),
    Definition {
        at: u64,
        end: u64,
    },
    /// A bag header record without data. Some recorders write the padding after such a record.
    BareBagHeader {
        at: u64,
    },
    #[default]
    Other,
}

/// A range of damaged bytes whose end is being searched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DamagedRange {
    /// Offset of the first damaged byte.
    pub(crate) start: u64,
    /// Offset where the damaged record would end if its lengths were right.
    pub(crate) claimed: Option<u64>,
    /// True if the damaged record extends beyond the end of the file.
    pub(crate) cut: bool,
    /// State of the search for the next valid record.
    pub(crate) search: Search,
}

/// Comparison of each message time with the time of the previous message.
#[derive(Debug, Default)]
pub(crate) struct TimeOrder {
    /// Time of the last message in nanoseconds. Times are never negative, so the initial value 0 is
    /// not later than any time.
    pub(crate) last: i64,
    /// Number of messages whose time is earlier than the time of the previous message.
    pub(crate) backward: u64,
}

impl TimeOrder {
    #[inline]
    pub(crate) fn add(&mut self, time: i64) {
        self.backward += u64::from(time < self.last);
        self.last = time;
    }
}

/// Position of a scan of a bag before V2.0.
#[derive(Debug, Default)]
pub(crate) struct Position {
    /// Offset in the file of the next scan step.
    pub(crate) at: u64,
    /// Record before the current position.
    pub(crate) last: LastRecord,
    /// Index of the shape (header without time) of the last message.
    pub(crate) last_shape: u32,
    /// Damage at the current position. `None` if no damage is being skipped.
    pub(crate) damage: Option<DamagedRange>,
    /// By index of the connection, the count and checksum of the messages in the current section
    /// (bag within the file), for comparison with the index of the section.
    pub(crate) tallies: Tallies,
    /// Topics that the current section (bag within the file) defines.
    pub(crate) defined_topics: HashSet<Box<[u8]>>,
    /// Table of topics at the start of a V1.0 or V0 bag.
    pub(crate) table: Table,
    /// True after the version line was read.
    pub(crate) started: bool,
    /// True after the end of the file was reached.
    pub(crate) finished: bool,
}
