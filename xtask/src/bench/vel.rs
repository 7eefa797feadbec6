//! What is measured on a VEL log.

use super::{Bench, Group};
use crate::corpus;

pub(super) const BENCH: Bench = Bench {
    format: "vel",
    log: corpus::large_vel,
    python: &["velodyne-decoder==3.1.0", "numpy"],
    groups: GROUPS,
};

const GROUPS: &[Group] = &[
    Group {
        heading: "information",
        peer: "vel-bare-walk",
        works: &[
            ("vel-bare-walk", "from header to header over a fresh map, nothing else"),
            ("vel-info", "rovelog::open and its summary"),
        ],
    },
    Group {
        heading: "packets to points, HDL-64E",
        peer: "pyvelodyne-points",
        works: &[
            ("pyvelodyne-points", "velodyne-decoder 3.1.0 (C++, from Python)"),
            ("vel-points", "revolutions into one buffer, calibration recovered"),
            ("vel-points-exact", "the same with exact azimuths and corrected intensities"),
        ],
    },
    Group {
        heading: "points beside the sensor itself",
        peer: "py-recorded",
        works: &[
            ("py-recorded", "the time that the recording took"),
            ("vel-points", "revolutions into one buffer, one thread"),
        ],
    },
    Group {
        heading: "JPEGs",
        peer: "vel-jpeg-decoded",
        works: &[
            ("vel-jpeg-decoded", "every image to pixels"),
            ("vel-jpeg-extracted", "every image to a file of its own in memory, as it lies"),
        ],
    },
];
