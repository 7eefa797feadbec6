//! Cases of ROS bags, grouped by theme.

mod chunked;
mod compressed;
mod damage;
mod definitions;
mod frames;
mod index;
mod large;
mod log;
mod messages;
mod old;

use super::Format;
use log::Stamp;

/// Names that the cases use.
mod prelude {
    pub(super) use super::log::*;
    pub(super) use super::stamp;
    pub(super) use crate::prelude::*;
}

/// The format. Its cases are in the order of the manifest.
pub(super) const FORMAT: Format = Format {
    id: "rosbag",
    extension: "bag",
    cases: &[
        frames::CASES,
        compressed::CASES,
        index::CASES,
        definitions::CASES,
        messages::CASES,
        damage::CASES,
        old::CASES,
        chunked::records::CASES,
        chunked::storage::CASES,
        chunked::index::CASES,
        chunked::damage::CASES,
    ],
    large: large::LARGE,
};

/// Returns time `i`. The times start at the beginning of 2010 and are 100 ms apart.
fn stamp(i: u32) -> Stamp {
    (1_262_304_000 + i / 10, i % 10 * 100_000_000)
}
