//! The kinds of files that a log is handed on as, and how files of topics are called.

use std::collections::HashSet;

use rovelog::Topic;

use crate::table;

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A table: one topic per file.
    Table(table::Kind),
    /// Records as NDJSON, all topics in one file.
    Ndjson,
    /// MCAP, all topics in one file.
    Mcap,
    /// A ROS bag of V2.0, all topics of an older bag in one file.
    Bag2,
}

impl Kind {
    /// The kind of an option or of a file's extension.
    pub fn by_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "ndjson" | "jsonl" => Some(Self::Ndjson),
            "mcap" => Some(Self::Mcap),
            "bag2" | "bag" => Some(Self::Bag2),
            name => table::Kind::by_name(name).map(Self::Table),
        }
    }

    /// The name in options.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Table(table) => table.name(),
            Self::Ndjson => "ndjson",
            Self::Mcap => "mcap",
            Self::Bag2 => "bag2",
        }
    }

    /// Whether the output has a place for where the data come from.
    pub const fn tells_source(self) -> bool {
        match self {
            Self::Table(table) => !matches!(table, table::Kind::Csv),
            Self::Mcap => true,
            Self::Ndjson | Self::Bag2 => false,
        }
    }
}

/// A part of a file name for each of `topics`, all different.
pub fn topic_names(topics: &[&Topic]) -> Vec<String> {
    let mut taken = HashSet::new();
    let name = |topic: &&Topic| {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let base: String = topic.name.chars().map(plain).collect();
        let mut name = base.clone();
        // Names that differ only where a file name cannot, or in the case of letters.
        for number in 2.. {
            if taken.insert(name.to_lowercase()) {
                break;
            }
            name = format!("{base}-{number}");
        }
        name
    };
    topics.iter().map(name).collect()
}
