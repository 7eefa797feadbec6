//! Options of tables.

use rovelog::core::parallel::Jobs;

pub use crate::leaf::Names;
use crate::signal::Signal;

/// A file format for tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Apache Parquet.
    Parquet,
    /// Apache Arrow IPC file.
    Arrow,
    /// Comma-separated values.
    Csv,
}

impl Kind {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Parquet, Self::Arrow, Self::Csv];

    /// Returns the name in options, which is also the file extension.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
            Self::Csv => "csv",
        }
    }

    /// Returns the format with this option name or file extension.
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
    /// Rovelog's: `time` and `t_ns`, then the fields; numbers in the shortest digits that
    /// round-trip.
    #[default]
    Plain,
    /// The output of `ulog2csv` (pyulog): `timestamp` first, no `time` and `t_ns`, numbers as numpy
    /// prints them, booleans as their bytes, rows in file order.
    Pyulog,
}

/// Options of table output.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TableOptions {
    /// Unit of `time` and of other times in Parquet.
    pub time_unit: TimeUnit,
    /// True if nested fields and fixed-size arrays become separate columns.
    pub flatten: bool,
    /// Naming scheme for elements in flat columns.
    pub names: Names,
    /// True if only types are used that Spark reads directly: no unsigned 64-bit integers.
    pub spark: bool,
    /// True if Parquet also holds fields of bytes.
    pub blobs: bool,
    /// Dialect of CSV.
    pub dialect: Dialect,
    /// Delimiter between the cells of CSV.
    pub delimiter: u8,
    /// Signals that become further columns of the topics whose fields they use.
    pub derived: Vec<Signal>,
    /// Number of threads.
    pub jobs: Jobs,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self {
            time_unit: TimeUnit::Microseconds,
            flatten: false,
            names: Names::Bracket,
            spark: false,
            blobs: false,
            dialect: Dialect::Plain,
            delimiter: b',',
            derived: Vec::new(),
            jobs: Jobs::default(),
        }
    }
}

/// Unit of times in Parquet. Spark refuses nanoseconds; `t_ns` holds them in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeUnit {
    /// Rounded down.
    #[default]
    Microseconds,
    /// As in Arrow.
    Nanoseconds,
}
