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

    /// The extension of its files.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Bag2 => "bag",
            kind => kind.name(),
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

/// The longest part of a file name for a topic. File systems take 255 bytes, of which the name of the log, a number, the
/// extension and `.partial` need some.
const LONGEST: usize = 120;

/// A part of a file name for each of `topics`, all different. Names that are too long for a file are cut, and end with
/// a hash of the whole name.
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
        // Names that differ only where a file name cannot, in the case of letters, or in what they start with.
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
