//! VEL cases, grouped by theme.

mod conventions;
mod damage;
mod ends;
mod index;
mod kinds;
mod large;
mod log;
mod meaning;
mod payloads;
mod say;
mod sensors;
mod velodyne;

use super::Format;

/// In the order of the manifest.
pub(super) const FORMAT: Format = Format {
    id: "vel",
    extension: "vel",
    cases: &[
        conventions::CASES,
        ends::CASES,
        index::CASES,
        payloads::CASES,
        meaning::CASES,
        sensors::CASES,
        velodyne::CASES,
        damage::CASES,
    ],
    large: large::LARGE,
};
