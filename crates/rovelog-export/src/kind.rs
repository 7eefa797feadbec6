//! The output formats of `export`, and file names for topics.

use std::collections::HashSet;

use rovelog::Topic;

use crate::table;

/// An output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A table: one topic per file.
    Table(table::Kind),
    /// Records as NDJSON, all topics in one file.
    Ndjson,
    /// MCAP, all topics in one file.
    Mcap,
    /// ROS bag V2.0: all topics of an older bag in one file.
    Bag2,
}

impl Kind {
    /// Returns the kind with this option name or file extension.
    pub fn by_name(name: &str) -> Option<Self> {
        match name.to_ascii_lowercase().as_str() {
            "ndjson" | "jsonl" => Some(Self::Ndjson),
            "mcap" => Some(Self::Mcap),
            "bag2" | "bag" => Some(Self::Bag2),
            name => table::Kind::by_name(name).map(Self::Table),
        }
    }

    /// Returns the name in options.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Table(table) => table.name(),
            Self::Ndjson => "ndjson",
            Self::Mcap => "mcap",
            Self::Bag2 => "bag2",
        }
    }

    /// Returns the file extension.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Bag2 => "bag",
            kind => kind.name(),
        }
    }

    /// Returns the feature that this build would need to write the format, if it does not.
    pub const fn missing(self) -> Option<&'static str> {
        match self {
            Self::Table(table::Kind::Parquet | table::Kind::Arrow) if cfg!(not(feature = "parquet")) => {
                Some("parquet")
            }
            Self::Mcap if cfg!(not(feature = "mcap")) => Some("mcap"),
            _ => None,
        }
    }

    /// Returns whether the output has a place for metadata about the source file.
    pub const fn tells_source(self) -> bool {
        match self {
            Self::Table(table) => !matches!(table, table::Kind::Csv),
            Self::Mcap => true,
            Self::Ndjson | Self::Bag2 => false,
        }
    }
}

/// Maximum length of a topic's part of a file name. File systems allow 255 bytes, of which the name
/// of the log, a number, the extension and `.partial` need some.
const LONGEST: usize = 120;

/// Returns a distinct file name part for each of `topics`. Names that are too long are cut and end
/// with a hash of the whole name.
pub fn topic_names(topics: &[&Topic]) -> Vec<String> {
    let mut taken = HashSet::new();
    let name = |topic: &&Topic| {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let mut base: String = topic.name.chars().map(plain).collect();
        if base.len() > LONGEST {
            let hash = crc32fast::hash(topic.name.as_bytes());
            base.truncate(LONGEST - 9);
            base = format!("{base}-{hash:08x}");
        }
        let mut name = base.clone();
        // Names may differ only in characters that a file name cannot hold, in case, or after the
        // cut.
        for number in 2.. {
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
        assert!(names[3..].iter().all(|name| name.len() == LONGEST), "{names:?}");
        assert!(names[3].starts_with("_camera__camera_") && names[3] != names[4], "{names:?}");
        // The suffix does not depend on the other topics.
        assert_eq!(topic_names(&[&topics[4]]), names[4..5]);
    }
}
