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

/// In the order of the manifest.
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
        chunked::recorded::CASES,
        chunked::records::CASES,
        chunked::storage::CASES,
        chunked::index::CASES,
        chunked::damage::CASES,
    ],
    large: large::LARGE,
};

/// Returns time `i`: 100 ms apart, from the first second of 2010.
fn stamp(i: u32) -> Stamp {
    (1_262_304_000 + i / 10, i % 10 * 100_000_000)
}
