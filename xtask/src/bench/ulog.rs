//! What is measured on a `ULog`.

use super::{Bench, Group};
use crate::python::PYULOG;

pub(super) const BENCH: Bench = Bench { format: "ulog", python: &[PYULOG, "numpy"], groups: GROUPS };

const GROUPS: &[Group] = &[
    Group {
        heading: "all topics",
        peer: "px4-ulog-kept",
        works: &[
            ("px4-ulog-kept", "px4-ulog 0.6.1, typed columns kept"),
            ("rovelog-streamed", "Arrow batches into reused buffers"),
            ("rovelog-kept", "Arrow columns kept"),
            ("yule_log-values", "yule_log 0.4.0, values, no columns"),
            ("pyulog-kept", "pyulog 1.3.0, numpy columns kept"),
        ],
    },
    Group {
        heading: "one topic of 43 (sensor_combined, a quarter of the rows)",
        peer: "px4-ulog-one-kept",
        works: &[
            ("px4-ulog-one-kept", "px4-ulog 0.6.1, callback that keeps typed columns"),
            ("rovelog-one-streamed", "Arrow batches into reused buffers"),
            ("rovelog-one-kept", "Arrow columns kept"),
            ("pyulog-one-kept", "pyulog 1.3.0 with its message filter"),
        ],
    },
    Group {
        heading: "information",
        peer: "pyulog-info",
        works: &[
            ("pyulog-info", "ulog_info of pyulog 1.3.0"),
            ("rovelog-info", "rovelog::open and its summary"),
        ],
    },
];
