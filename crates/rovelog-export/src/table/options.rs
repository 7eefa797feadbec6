//! What a user chooses about tables.

pub use crate::leaf::Names;

/// A kind of file that holds a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Apache Parquet.
    Parquet,
    /// Apache Arrow, the IPC file format.
    Arrow,
    /// Comma-separated values.
    Csv,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Parquet, Self::Arrow, Self::Csv];

    /// The name in options, which is the extension too.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
            Self::Csv => "csv",
        }
    }

    /// The kind of an option or of a file's extension.
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

/// Whose habits a CSV file follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// Ours: `time` and `t_ns`, then the fields; numbers in the shortest digits that give them again.
    #[default]
    Plain,
    /// What `ulog2csv` of pyulog writes: `timestamp` first, no times of ours, numbers as numpy prints them, truth
    /// values as their bytes, rows in the order of the file.
    Pyulog,
}

/// How tables are written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TableOptions {
    /// The unit of `time` and of other times in Parquet.
    pub time_unit: TimeUnit,
    /// Nested fields and fixed arrays become columns of their own.
    pub flatten: bool,
    /// Names of elements in flat columns.
    pub names: Names,
    /// Only types that Spark reads as they are: no unsigned 64-bit integers.
    pub spark: bool,
    /// Parquet holds fields of bytes too.
    pub blobs: bool,
    /// The habits of CSV.
    pub dialect: Dialect,
    /// What separates the cells of CSV.
    pub delimiter: u8,
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
        }
    }
}

/// The unit of times in Parquet. Spark refuses nanoseconds; `t_ns` holds them in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeUnit {
    /// Rounded down.
    #[default]
    Microseconds,
    /// As Arrow has them.
    Nanoseconds,
}
