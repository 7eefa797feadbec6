//! The output formats of `export`, and file names for topics.

use std::collections::HashSet;

use rovelog::Topic;

use crate::table;

/// An output format of `export`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A table format. Each topic is written to its own file.
    Table(table::Kind),
    /// NDJSON. The records of all topics are written to one file.
    Ndjson,
    /// MCAP. All topics are written to one file.
    Mcap,
    /// ROS bag V2.0. All topics of an older bag are written to one file.
    Bag2,
}

impl Kind {
    /// Returns the format with the option name or file extension `name`, ignoring case.
    pub fn by_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "ndjson" | "jsonl" => Some(Self::Ndjson),
            "mcap" => Some(Self::Mcap),
            "bag2" | "bag" => Some(Self::Bag2),
            name => table::Kind::by_name(name).map(Self::Table),
        }
    }

    /// Returns the name of the format in options.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Table(table) => table.name(),
            Self::Ndjson => "ndjson",
            Self::Mcap => "mcap",
            Self::Bag2 => "bag2",
        }
    }

    /// Returns the extension of files in this format, without the dot.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Bag2 => "bag",
            kind => kind.name(),
        }
    }

    /// Returns the Cargo feature that is required for this format, if the crate was built without
    /// that feature.
    pub const fn missing(self) -> Option<&'static str> {
        match self {
            Self::Table(table::Kind::Parquet | table::Kind::Arrow) if cfg!(not(feature = "parquet")) => {
                Some("parquet")
            }
            Self::Mcap if cfg!(not(feature = "mcap")) => Some("mcap"),
            _ => None,
        }
    }

    /// Returns whether the format can store metadata about the source file.
    pub const fn tells_source(self) -> bool {
        match self {
            Self::Table(table) => !matches!(table, table::Kind::Csv),
            Self::Mcap => true,
            Self::Ndjson | Self::Bag2 => false,
        }
    }
}

/// Maximum length in bytes of the part of a file name that stands for a topic. File systems allow
/// names of 255 bytes, which must also have space for the name of the log, a number, the extension
/// and `.partial`.
const MAX_NAME_LEN: usize = 120;

/// Returns a part of a file name for each of `topics`. All parts differ. A topic name that is too
/// long is truncated, and a hash of the full name is appended.
pub fn topic_names(topics: &[&Topic]) -> Vec<String> {
    let mut taken = HashSet::new();
    let name = |topic: &&Topic| {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let mut base: String = topic.name.chars().map(plain).collect();
        if base.len() > MAX_NAME_LEN {
            let hash = crc32fast::hash(topic.name.as_bytes());
            base.truncate(MAX_NAME_LEN - 9);
            base = format!("{base}-{hash:08x}");
        }
        let mut name = base.clone();
        // The names of two topics may only differ in characters that are replaced, or in upper and
        // lower case, which Windows and macOS ignore in file names.
        for number in 2.. {
            // A leading `_` often stands for the leading `/` of a ROS topic. Names that only differ
            // in this `_` count as equal, so the second name gets a number.
            if taken.insert(name.trim_start_matches('_').to_lowercase()) {
                break;
            }
            name = format!("{base}-{number}");
        }
        name
    };
    topics.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use rovelog::TopicId;

    use super::*;

    #[test]
    fn names_of_topics_fit_a_file_name_and_differ() {
        let long = |end: &str| "/camera/".repeat(400) + end;
        let topics = ["/imu", "IMU", "/im.u", &long("left"), &long("right"), &"ä".repeat(200)];
        let topics = topics.map(|name| Topic::new(TopicId(0), name.to_owned(), String::new(), None));
        let names = topic_names(&topics.each_ref());
        assert_eq!(names[..3], ["_imu", "IMU-2", "_im_u"]);
        assert!(names[3..].iter().all(|name| name.len() == MAX_NAME_LEN), "{names:?}");
        assert!(names[3].starts_with("_camera__camera_") && names[3] != names[4], "{names:?}");
        // The suffix of a truncated name does not depend on the other topics.
        assert_eq!(topic_names(&[&topics[4]]), names[4..5]);
    }
}
