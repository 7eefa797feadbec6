//! What is measured on a VEL log.

use super::{Bench, Group};
use crate::python::VELODYNE_DECODER;

pub(super) const BENCH: Bench = Bench { format: "vel", python: &[VELODYNE_DECODER, "numpy"], groups: GROUPS };

const GROUPS: &[Group] = &[
    Group {
        heading: "information",
        peer: "bare-walk",
        works: &[
            ("bare-walk", "from header to header over a fresh map, nothing else"),
            ("rovelog-info", "rovelog::open and its summary"),
        ],
    },
    Group {
        heading: "packets to points, HDL-64E",
        peer: "pyvelodyne-points",
        works: &[
            ("pyvelodyne-points", "velodyne-decoder 3.1.0 (C++, from Python)"),
            ("rovelog-points", "revolutions into one buffer, calibration recovered"),
            ("rovelog-points-exact", "the same with exact azimuths and corrected intensities"),
        ],
    },
    Group {
        heading: "points beside the sensor itself",
        peer: "py-recorded",
        works: &[
            ("py-recorded", "the time that the recording took"),
            ("rovelog-points", "revolutions into one buffer, one thread"),
        ],
    },
    Group {
        heading: "JPEGs",
        peer: "rovelog-jpeg-decoded",
        works: &[
            ("rovelog-jpeg-decoded", "every image to pixels"),
            ("rovelog-jpeg-extracted", "every image to a file of its own in memory, as it lies"),
        ],
    },
];
