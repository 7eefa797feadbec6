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
mod sensors;
mod velodyne;

use super::{Case, Format, Made};

impl Case {
    /// A VEL log; `rules` are the numbers in `docs/formats/vel.md`.
    const fn vel(
        name: &'static str,
        purpose: &'static str,
        rules: &'static [&'static str],
        recipe: fn() -> Made,
    ) -> Self {
        Self { name, purpose, rules, recipe }
    }
}

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
