//! Options for the content of columns.

use crate::analysis::MARGIN_SETTLED;
use crate::clock::TimeOptions;

/// Rows of a batch: its columns and their source stay in the second-level cache.
const BATCH_ROWS: usize = 4096;

/// Number of rows that are copied column by column at a time.
pub(super) const GROUP: u64 = 512;

/// The content of analog columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Values {
    /// Raw integers, in 32 bits if the log's fit; scale and unit are in the metadata.
    #[default]
    Raw,
    /// Physical values, correctly rounded; raw ones if the scale is beyond 30.
    Physical,
}

/// Options for converting rows to columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnOptions {
    /// Raw or physical values.
    pub(crate) values: Values,
    /// True to make values null that are out of range by their range bit.
    pub(crate) nulls: bool,
    /// The time column; `None` omits it.
    pub(crate) times: Option<TimeOptions>,
    /// Rows of a batch.
    pub(crate) batch_rows: usize,
    /// Currents of two ranges as further columns after the channels: `I1`, and `I1_source` with
    /// `low`, `high`, or `transition` for a high value because the low one has not settled. Null if
    /// neither range has a value.
    pub(crate) merged: Option<Merging>,
}

impl Default for ColumnOptions {
    fn default() -> Self {
        Self::raw()
    }
}

impl ColumnOptions {
    /// Selects raw integers without nulls.
    pub fn raw() -> Self {
        let times = Some(TimeOptions::default());
        Self { values: Values::Raw, nulls: false, times, batch_rows: BATCH_ROWS, merged: None }
    }

    /// Selects physical values, null if out of range.
    pub fn physical() -> Self {
        Self { values: Values::Physical, nulls: true, ..Self::raw() }
    }

    /// Sets the times; `None` omits them.
    #[must_use]
    pub fn with_times(mut self, times: Option<TimeOptions>) -> Self {
        self.times = times;
        self
    }

    /// Sets whether values out of range are null.
    #[must_use]
    pub fn with_nulls(mut self, nulls: bool) -> Self {
        self.nulls = nulls;
        self
    }

    /// Adds merged currents.
    #[must_use]
    pub fn with_merged(mut self, merging: Merging) -> Self {
        self.merged = Some(merging);
        self
    }

    /// Sets the number of rows per batch.
    #[must_use]
    pub fn with_batch_rows(mut self, rows: usize) -> Self {
        self.batch_rows = rows.clamp(1, 1 << 16);
        self
    }
}

/// The method to merge currents that were measured in two ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merging {
    /// Rows around a change of range whose low samples are not used.
    pub margin: u64,
    /// True if values decide which range is used; see [`Current::deriving`].
    pub(crate) derived: bool,
}

impl Merging {
    /// Uses the range bit of each row.
    pub fn instant() -> Self {
        Self { margin: 0, derived: false }
    }

    /// Excludes low samples that have not settled, as energy calculations do.
    pub fn settled() -> Self {
        Self { margin: MARGIN_SETTLED, ..Self::instant() }
    }

    /// Uses values instead of range bits, for logs with unreliable range bits.
    #[must_use]
    pub fn deriving(mut self) -> Self {
        self.derived = true;
        self
    }
}
