//! VEL cases, grouped by theme.

mod conventions;
mod damage;
mod ends;
mod index;
mod kinds;
pub(super) mod large;
mod log;
mod meaning;
mod payloads;
mod sensors;
mod velodyne;

use super::{Case, Made};

impl Case {
    /// A VEL log; `rules` are the numbers in `docs/formats/vel.md`.
    const fn vel(
        name: &'static str,
        purpose: &'static str,
        rules: &'static [&'static str],
        recipe: fn() -> Made,
    ) -> Self {
        Self { format: "vel", extension: "vel", name, purpose, rules, recipe }
    }
}

/// All cases, in the order of the manifest.
pub(crate) fn cases() -> impl Iterator<Item = &'static Case> {
    [
        conventions::CASES,
        ends::CASES,
        index::CASES,
        payloads::CASES,
        meaning::CASES,
        sensors::CASES,
        velodyne::CASES,
        damage::CASES,
    ]
    .into_iter()
    .flatten()
}
