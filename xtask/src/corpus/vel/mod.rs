//! VEL cases, grouped by theme.

mod conventions;
mod damage;
mod ends;
mod index;
mod kinds;
pub(crate) mod large;
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::corpus::words;

    #[test]
    fn every_rule_has_a_case() {
        let ruled: BTreeSet<&str> = cases().flat_map(|case| case.rules).copied().collect();
        let wanted = (1..=38).map(|n| format!("D{n}"));
        let missing: Vec<String> = wanted.filter(|rule| !ruled.contains(rule.as_str())).collect();
        assert_eq!(missing, Vec::<String>::new());
        assert!(cases().count() >= 50);
    }

    #[test]
    fn every_word_occurs() {
        let words = words("vel");
        for word in [
            "gap",
            "cut",
            "bad_payload",
            "unknown_version",
            "data_only_sizes",
            "invalid_message",
            "trailing_data",
            "unknown_type",
            "tail",
            "index_rebuilt",
            "timestamp_not_finite",
            "timestamp_out_of_range",
            "joined",
            "image_size",
            "image_header",
            "date_unwrapped",
        ] {
            assert!(words.contains_key(word), "no case expects {word}");
        }
    }
}
