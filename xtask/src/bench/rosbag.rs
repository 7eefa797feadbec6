//! What is measured on a ROS bag. The peers are Debian's python3-rosbag and librosbag-storage.

use super::{Bench, Group};

pub(super) const BENCH: Bench = Bench { format: "rosbag", python: &[], groups: GROUPS };

const GROUPS: &[Group] = &[
    Group {
        heading: "every message, its payload read",
        peer: "pyrosbag-raw",
        works: &[
            ("pyrosbag-raw", "python3-rosbag, raw messages by the index"),
            ("cpp-view", "librosbag-storage View by the index, payload read"),
            ("rovelog-scan", "a scan without index, payload read"),
            ("rovelog-open", "a scan without index, all headers, payloads measured"),
            ("rovelog-records", "records in the order of time, payload read"),
        ],
    },
    Group {
        heading: "every message decoded",
        peer: "pyrosbag-values",
        works: &[
            ("pyrosbag-values", "python3-rosbag, messages as objects"),
            ("rovelog-values", "values"),
            ("rovelog-columns", "Arrow batches of all topics"),
        ],
    },
];
