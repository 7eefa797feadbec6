//! What is measured on an RLD log.

use super::{Bench, Group};
use crate::python::ROCKETLOGGER;

pub(super) const BENCH: Bench = Bench { format: "rld", python: &[ROCKETLOGGER, "numpy"], groups: GROUPS };

const GROUPS: &[Group] = &[
    Group {
        heading: "columns",
        peer: "py-rocketlogger-load",
        works: &[
            ("py-rocketlogger-load", "rocketlogger 2.1.3, load (mapped; values are not decoded)"),
            ("rovelog-columns", "Arrow batches of raw integers, bits and times into reused buffers"),
            ("rovelog-columns-untimed", "the same without times"),
            ("memcpy", "the file copied into a touched buffer"),
        ],
    },
    Group {
        heading: "one channel",
        peer: "py-rocketlogger-one",
        works: &[
            ("py-rocketlogger-one", "rocketlogger 2.1.3, load and one channel as f64"),
            ("rovelog-one", "one channel as f64 into a reused buffer"),
            ("rovelog-one-timed", "the same with its times"),
        ],
    },
    Group {
        heading: "all channels as f64",
        peer: "py-rocketlogger-f64",
        works: &[
            ("py-rocketlogger-f64", "rocketlogger 2.1.3, load and all channels"),
            ("rovelog-f64", "Arrow batches of physical values, bits and times into reused buffers"),
        ],
    },
    Group {
        heading: "statistics and energy",
        peer: "py-rocketlogger-energy",
        works: &[
            (
                "py-rocketlogger-energy",
                "rocketlogger 2.1.3: load, merge; numpy: min, max, mean, std of voltages and currents, two energies",
            ),
            (
                "py-rocketlogger-energy-only",
                "rocketlogger 2.1.3: load, merge; numpy: two energies, no statistics",
            ),
            ("rovelog-energy", "the same of all channels, exact, settled currents, in one pass"),
        ],
    },
    Group {
        heading: "information",
        peer: "py-rocketlogger-header",
        works: &[
            ("py-rocketlogger-header", "rocketlogger 2.1.3, header_only"),
            ("rovelog-info", "rovelog::open and its summary"),
        ],
    },
];
