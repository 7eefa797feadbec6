//! The names of extracted files, and the table `index.csv`, which lists them.

use std::borrow::Cow;
use std::collections::HashSet;

use clap::ValueEnum;
use serde::Serialize;

/// Value after which files are named. The names have a fixed width, so that sorting them also sorts
/// the values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Naming {
    /// Time of the record in nanoseconds.
    #[default]
    Record,
    /// Field `header.stamp` of the message in nanoseconds. Messages without a header, or with the
    /// stamp 0, are named by the time of the record.
    Stamp,
    /// Number of the item within its folder, counted from 0.
    Index,
}

/// Columns of `index.csv`, in the order of the fields of [`Row`].
pub(super) const COLUMNS: [&str; 12] = [
    "t_ns", "time", "stamp_ns", "topic", "frame_id", "offset", "file", "encoding", "width", "height",
    "points", "partial",
];

/// A row of `index.csv`.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Row {
    /// Time of the record in nanoseconds.
    pub(super) t_ns: i64,
    pub(super) time: Option<String>,
    /// Field `header.stamp` of the message in nanoseconds.
    pub(super) stamp_ns: Option<i64>,
    pub(super) topic: String,
    pub(super) frame_id: Option<String>,
    /// Offset of the record in the log.
    pub(super) offset: u64,
    pub(super) file: FileFacts,
}

/// Columns of `index.csv` that describe the extracted file.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct FileFacts {
    pub(super) file: String,
    pub(super) encoding: Cow<'static, str>,
    pub(super) width: Option<u32>,
    pub(super) height: Option<u32>,
    pub(super) points: Option<usize>,
    pub(super) partial: Option<bool>,
}

/// Names of the files in one folder.
pub(super) struct Names {
    folder: String,
    naming: Naming,
    taken: HashSet<String>,
    /// Number of names that have been given.
    given: u64,
}

impl Names {
    pub(super) fn new(naming: Naming, folder: String) -> Self {
        Self { folder, naming, taken: HashSet::new(), given: 0 }
    }

    /// Returns a new file name without extension for the record of `row`. The name is preceded by
    /// the folder.
    ///
    /// A time is padded to 19 digits, the length of the largest 64-bit time. A repeated time is
    /// followed by a number, as in `images/0000000000000000017_2`.
    pub(super) fn next(&mut self, row: &Row) -> String {
        let base = match self.naming {
            Naming::Record => format!("{}/{:019}", self.folder, row.t_ns),
            Naming::Stamp => {
                let stamp = row.stamp_ns.filter(|stamp| *stamp != 0).unwrap_or(row.t_ns);
                format!("{}/{stamp:019}", self.folder)
            }
            Naming::Index => format!("{}/{:010}", self.folder, self.given),
        };
        self.given += 1;
        let mut name = base.clone();
        for number in 2.. {
            if self.taken.insert(name.clone()) {
                break;
            }
            name = format!("{base}_{number}");
        }
        name
    }
}
