//! Options of the table exports.

use rovelog::core::internal::parallel::Jobs;

pub use crate::leaf::Names;
use crate::signal::Signal;

/// A file format for tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Apache Parquet.
    Parquet,
    /// Apache Arrow IPC file format.
    Arrow,
    /// Comma-separated values.
    Csv,
}

impl Kind {
    /// All file formats for tables.
    pub const ALL: [Self; 3] = [Self::Parquet, Self::Arrow, Self::Csv];

    /// Returns the name of the format in options, which is also the file extension.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
            Self::Csv => "csv",
        }
    }

    /// Returns the format with the option name or file extension `name`, ignoring case.
    pub fn by_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let name = match name.as_str() {
            "pq" => "parquet",
            "feather" | "ipc" => "arrow",
            name => name,
        };
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Dialect of a CSV file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// Rovelog's own dialect. The columns are `time`, `t_ns` and the fields. Numbers are written
    /// with the fewest digits that convert back to the same value.
    #[default]
    Plain,
    /// The dialect of `ulog2csv` from pyulog. The column `timestamp` comes first, and `time` and
    /// `t_ns` are omitted. Numbers are formatted as in `numpy`, and booleans as 0 and 1. Rows are
    /// in file order.
    Pyulog,
}

/// Options of the table exports.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TableOptions {
    /// Unit of the column `time` and of other times in Parquet files.
    pub time_unit: TimeUnit,
    /// True if struct members and array elements become separate columns in Parquet and Arrow. In
    /// CSV, they are always separate columns.
    pub flatten: bool,
    /// Naming scheme for columns that contain array elements.
    pub names: Names,
    /// True if Parquet files only use types and encodings that Spark can read. Unsigned 64-bit
    /// integers then become signed.
    pub spark: bool,
    /// True if Parquet files include fields of raw bytes, such as images.
    pub blobs: bool,
    /// Dialect of CSV files.
    pub dialect: Dialect,
    /// Delimiter between the cells of CSV files. `None` is a comma.
    pub delimiter: Option<u8>,
    /// If set, the times of CSV files count from this time, which is in nanoseconds of the log's
    /// clock: `time` is in seconds, and `t_ns` in nanoseconds. Otherwise, `time` is in UTC, and
    /// `t_ns` is on the log's clock.
    pub times_from: Option<i64>,
    /// Signals that are computed. Each signal becomes a column in the topic whose fields it uses.
    pub derived: Vec<Signal>,
    /// Number of threads that write tables.
    pub jobs: Jobs,
}

/// Unit of times in Parquet files. The column `t_ns` always has nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeUnit {
    /// Microseconds, rounded down. This is the default, because Spark cannot read nanoseconds.
    #[default]
    Microseconds,
    /// Nanoseconds, as in Arrow files.
    Nanoseconds,
}
