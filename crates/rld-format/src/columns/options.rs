//! Options: what columns hold, and how.

use crate::analysis::MARGIN_SETTLED;
use crate::clock::TimeOptions;

/// Rows of a batch: its columns and their source stay in the second-level cache.
const BATCH_ROWS: usize = 4096;

/// Rows that are copied column by column at a time.
pub(super) const GROUP: u64 = 512;

/// What analog columns hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Values {
    /// Raw integers, 32 bits wide where the log's are at most so; scale and unit are in the metadata.
    #[default]
    Raw,
    /// Physical values, correctly rounded; raw ones where the scale is beyond 30.
    Physical,
}

/// How rows become columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnOptions {
    /// Raw or physical values.
    pub(crate) values: Values,
    /// Whether a value that its range bit calls invalid is null.
    pub(crate) nulls: bool,
    /// The column of times; `None` leaves it out.
    pub(crate) times: Option<TimeOptions>,
    /// Rows of a batch.
    pub(crate) batch_rows: usize,
    /// Currents of two ranges as further columns behind the channels: `I1`, and `I1_source` with `low`, `high`, or
    /// `transition` for a high value because the low one has not settled. Null where neither range holds.
    pub(crate) merged: Option<Merging>,
}

impl Default for ColumnOptions {
    fn default() -> Self {
        Self::raw()
    }
}

impl ColumnOptions {
    /// Raw integers, no nulls.
    pub fn raw() -> Self {
        let times = Some(TimeOptions::default());
        Self { values: Values::Raw, nulls: false, times, batch_rows: BATCH_ROWS, merged: None }
    }

    /// Physical values, null where they are out of range.
    pub fn physical() -> Self {
        Self { values: Values::Physical, nulls: true, ..Self::raw() }
    }

    /// The same on other times, or without.
    #[must_use]
    pub fn with_times(mut self, times: Option<TimeOptions>) -> Self {
        self.times = times;
        self
    }

    /// The same with nulls where values are out of range, or without.
    #[must_use]
    pub fn with_nulls(mut self, nulls: bool) -> Self {
        self.nulls = nulls;
        self
    }

    /// The same with merged currents.
    #[must_use]
    pub fn with_merged(mut self, merging: Merging) -> Self {
        self.merged = Some(merging);
        self
    }

    /// The same in batches of so many rows.
    #[must_use]
    pub fn with_batch_rows(mut self, rows: usize) -> Self {
        self.batch_rows = rows.clamp(1, 1 << 16);
        self
    }
}

/// How currents that were measured in two ranges become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merging {
    /// Rows beside a switch of ranges whose low samples do not count.
    pub margin: u64,
    /// Whether values decide which range counts; see [`Current::deriving`].
    pub(crate) derived: bool,
}

impl Merging {
    /// By the range bit of each row.
    pub fn instant() -> Self {
        Self { margin: 0, derived: false }
    }

    /// The same without low samples that have not settled: what energy is reckoned from.
    pub fn settled() -> Self {
        Self { margin: MARGIN_SETTLED, ..Self::instant() }
    }

    /// The same by values, for logs whose range bits are not to be trusted.
    #[must_use]
    pub fn deriving(mut self) -> Self {
        self.derived = true;
        self
    }
}
