//! Logs made of logs: what recovering, slicing and merging leave, the same for every format.

use std::io::Write;
use std::ops::Range;

use crate::{Detail, Timestamp, ranges};

/// How to recover.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RecoverOptions {
    /// Leave out what stands in stretches of another time; see [`Stretch`]. Definitions in them stay, because
    /// later records may need them. Formats that know no such stretches leave out nothing.
    pub drop_stale: bool,
}

impl RecoverOptions {
    /// The same options with [`drop_stale`](Self::drop_stale).
    #[must_use]
    pub fn dropping_stale(mut self) -> Self {
        self.drop_stale = true;
        self
    }
}

/// What became of the bytes of a damaged log. Kept, lost and stale bytes together are its length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recovery {
    /// Records of the recovered log.
    pub records: u64,
    /// Bytes of the damaged log that the recovered one holds, as they are or in another place.
    pub kept_bytes: u64,
    /// Ranges of the damaged log that no reader can use: ascending, neighbours joined.
    pub lost: Vec<Range<u64>>,
    /// Records that the damaged log counts and that are not in it, as far as the log counts any.
    pub missing_records: u64,
    /// Sound bytes left out because they are of another time.
    pub stale_bytes: u64,
    /// The records among them.
    pub stale_records: u64,
    /// The parts of the damaged log by time; empty where nothing is damaged, or the format does not tell.
    pub stretches: Vec<Stretch>,
    /// Whether the log was sound, so that the recovered one is a plain copy.
    pub unchanged: bool,
    /// What only this format has to say.
    pub details: Vec<Detail>,
}

impl Recovery {
    /// Writes a sound log of so many records as it is.
    ///
    /// # Errors
    /// Where the output refuses.
    pub fn copied(records: u64, log: &[u8], out: &mut dyn Write) -> std::io::Result<Self> {
        out.write_all(log)?;
        out.flush()?;
        Ok(Self { records, kept_bytes: log.len() as u64, unchanged: true, ..Self::default() })
    }

    /// Bytes that no reader can use.
    pub fn lost_bytes(&self) -> u64 {
        ranges::total(&self.lost)
    }

    /// Whether all of the log is in the recovered one.
    pub fn is_complete(&self) -> bool {
        self.lost.is_empty() && self.missing_records == 0 && self.stale_bytes == 0
    }
}

/// A part of a damaged log whose records follow each other in time. A cluster of a card that was never
/// written keeps what it held before: sound records of another time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Its bytes, lost ones included.
    pub range: Range<u64>,
    /// Its records.
    pub records: u64,
    /// Those of them that were judged: with a time, and not the first of their topic, which often was
    /// latched long before.
    pub timed_records: u64,
    /// When it begins: the median of the first of these, because single records may be far off.
    pub first: Option<Timestamp>,
    /// When it ends: the median of the last of these.
    pub last: Option<Timestamp>,
    /// Whether it belongs to the log: `false` is a stale stretch.
    pub in_time_order: bool,
}

/// What a part of a log holds that was made a log of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sliced {
    /// Its records.
    pub records: u64,
    /// What else has a time: texts, dropouts, changes of parameters.
    pub others: u64,
    /// Its topics; those without records count.
    pub topics: usize,
    /// Its bytes.
    pub bytes: u64,
    /// What only this format has to say.
    pub details: Vec<Detail>,
}

impl Sliced {
    /// Whether it holds definitions and initial values only.
    pub fn is_empty(&self) -> bool {
        self.records + self.others == 0
    }
}

/// How the clocks of merged logs are brought together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// The logs must show that they share a clock; others are refused.
    #[default]
    Shared,
    /// The caller knows that they share a clock.
    AsIs,
    /// By the Unix time of each; the merged log has the clock of the one whose clock began first.
    Utc,
}

/// What logs became that were merged into one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Merged {
    /// Records of the merged log.
    pub records: u64,
    /// Its topics.
    pub topics: usize,
    /// Its bytes.
    pub bytes: u64,
    /// What one log cannot hold from all, in words. Nothing else is missing.
    pub left_out: Vec<String>,
    /// What only this format has to say.
    pub details: Vec<Detail>,
}
