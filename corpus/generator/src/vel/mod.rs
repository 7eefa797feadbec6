//! VEL cases, grouped by theme.

mod conventions;
mod damage;
mod kinds;
mod large;
mod layout;
mod log;
mod meaning;
mod payloads;
mod sensors;

use super::Format;

/// Names that the cases use.
mod prelude {
    pub(super) use super::kinds::{IMAGE, LASER, Message, Position, VELODYNE, jpeg, position, scan};
    pub(super) use super::log::{Log, Sizes};
    pub(super) use crate::prelude::*;
}

/// The format. Its cases are in the order of the manifest.
pub(super) const FORMAT: Format = Format {
    id: "vel",
    extension: "vel",
    cases: &[
        conventions::CASES,
        layout::CASES,
        payloads::CASES,
        meaning::CASES,
        sensors::CASES,
        damage::CASES,
    ],
    large: large::LARGE,
};
