//! Options for converting rows to Arrow columns.

use crate::analysis::MARGIN_SETTLED;
use crate::clock::TimeOptions;

/// Default number of rows in a batch. The columns of such a batch, and the rows from which they are
/// converted, fit into the second-level cache.
const BATCH_ROWS: usize = 4096;

/// Number of rows that are copied column by column at a time.
pub(super) const GROUP: u64 = 512;

/// Kind of values in the columns of analog channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Values {
    /// Raw integers. They have 32 bits if the values of the channel have at most four bytes, and
    /// otherwise 64 bits. The scale and the unit are in the metadata of the column.
    #[default]
    Raw,
    /// Physical values, correctly rounded. If the exponent of the channel's scale is beyond 30, the
    /// column has raw values.
    Physical,
}

/// Options for converting rows to columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnOptions {
    /// Kind of values in the columns of analog channels.
    pub(crate) values: Values,
    /// True if values whose range bit is 0 become null.
    pub(crate) nulls: bool,
    /// Content of the time column.
    pub(crate) times: Times,
    /// Maximum number of rows in a batch.
    pub(crate) batch_rows: usize,
    /// Method of merging currents that were measured in two ranges. If it is set, two columns for
    /// each current follow the channels, for example `I1` and `I1_source`. The source is `low`,
    /// `high` or `transition`, which is a high value that is used because the low value has not
    /// settled. Both columns are null if neither range has a value.
    pub(crate) merged: Option<Merging>,
}

/// The content of the time column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    /// The same times that records have.
    Records,
    /// Times that are computed with these options. If the options are `None`, there is no time
    /// column.
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

    /// Creates options for physical values. Values outside of their measuring range are null.
    pub fn physical() -> Self {
        Self { values: Values::Physical, nulls: true, ..Self::raw() }
    }

    /// Sets the options for the times in the time column. `None` omits the column. By default, the
    /// column has the times of records.
    #[must_use]
    pub fn with_times(mut self, times: Option<TimeOptions>) -> Self {
        self.times = Times::Chosen(times);
        self
    }

    /// Sets whether values outside of their measuring range are null.
    #[must_use]
    pub fn with_nulls(mut self, nulls: bool) -> Self {
        self.nulls = nulls;
        self
    }

    /// Adds the columns of merged currents.
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

/// Method of merging currents that were measured in two ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merging {
    /// Samples of the low range are ignored in this number of rows before and after each change of
    /// range, because they have not settled.
    pub margin: u64,
    /// True if the current range of a merged channel is inferred from the values, because the log
    /// has unreliable range bits.
    pub(crate) derived: bool,
}

impl Merging {
    /// Chooses the range of each row by its range bit alone.
    pub fn instant() -> Self {
        Self { margin: 0, derived: false }
    }

    /// Excludes samples of the low range that have not settled after a change of range. Energy is
    /// computed in the same way.
    pub fn settled() -> Self {
        Self { margin: MARGIN_SETTLED, ..Self::instant() }
    }

    /// Infers the range of each row from the values, for logs with unreliable range bits. See
    /// [`Current::deriving`](crate::analysis::Current::deriving).
    #[must_use]
    pub fn deriving(mut self) -> Self {
        self.derived = true;
        self
    }
}
