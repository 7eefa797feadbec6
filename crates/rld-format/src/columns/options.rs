//! Options for columns.

use crate::analysis::MARGIN_SETTLED;
use crate::clock::TimeOptions;

/// Default number of rows in a batch. The columns of a batch and the rows they come from fit the
/// second-level cache.
const BATCH_ROWS: usize = 4096;

/// Number of rows that are copied column by column at a time.
pub(super) const GROUP: u64 = 512;

/// The kind of values in analog columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Values {
    /// Raw integers: 32-bit ones if values of the channel have at most four bytes, else 64-bit
    /// ones. The scale and the unit are in the metadata.
    #[default]
    Raw,
    /// Physical values, correctly rounded. Raw values if the exponent of the scale is beyond 30.
    Physical,
}

/// Options for converting rows to columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnOptions {
    /// The kind of values.
    pub(crate) values: Values,
    /// True to make values null if their range bit is 0.
    pub(crate) nulls: bool,
    /// The time column.
    pub(crate) times: Times,
    /// Maximum number of rows in a batch.
    pub(crate) batch_rows: usize,
    /// The method to merge currents of two ranges, which adds columns after the channels: `I1` and
    /// `I1_source`. The source is `low`, `high`, or `transition` for a high value that is used
    /// because the low one has not settled. Both are null if neither range has a value.
    pub(crate) merged: Option<Merging>,
}

/// The content of the time column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    /// The times that records have.
    Records,
    /// Times with these options; `None` omits the column.
    Chosen(Option<TimeOptions>),
}

impl Default for ColumnOptions {
    fn default() -> Self {
        Self::raw()
    }
}

impl ColumnOptions {
    /// Creates options for raw integers without nulls.
    pub fn raw() -> Self {
        Self {
            values: Values::Raw,
            nulls: false,
            times: Times::Records,
            batch_rows: BATCH_ROWS,
            merged: None,
        }
    }

    /// Creates options for physical values that are null if out of range.
    pub fn physical() -> Self {
        Self { values: Values::Physical, nulls: true, ..Self::raw() }
    }

    /// Sets the times in the time column. `None` omits the column. The default are the times of
    /// records.
    #[must_use]
    pub fn with_times(mut self, times: Option<TimeOptions>) -> Self {
        self.times = Times::Chosen(times);
        self
    }

    /// Sets whether values out of range are null.
    #[must_use]
    pub fn with_nulls(mut self, nulls: bool) -> Self {
        self.nulls = nulls;
        self
    }

    /// Adds columns of merged currents.
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

/// The method of merging currents that were measured in two ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merging {
    /// Number of rows before and after a change of range whose low samples are not used.
    pub margin: u64,
    /// True if values decide which range is used.
    pub(crate) derived: bool,
}

impl Merging {
    /// Chooses the range of each row by its range bit alone.
    pub fn instant() -> Self {
        Self { margin: 0, derived: false }
    }

    /// Excludes low samples that have not settled after a change of range, as energy calculations
    /// do.
    pub fn settled() -> Self {
        Self { margin: MARGIN_SETTLED, ..Self::instant() }
    }

    /// Chooses the range by values, for logs with unreliable range bits. See
    /// [`Current::deriving`](crate::analysis::Current::deriving).
    #[must_use]
    pub fn deriving(mut self) -> Self {
        self.derived = true;
        self
    }
}
