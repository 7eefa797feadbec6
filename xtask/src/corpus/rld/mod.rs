//! RLD cases, grouped by theme.

mod channels;
mod counts;
mod faults;
mod headers;
pub(crate) mod large;
mod lay;
mod log;
mod times;

use super::{Case, Made};
use log::Log;

impl Case {
    /// An RLD file; `rules` are the numbers in `docs/formats/rld.md`.
    const fn rld(
        name: &'static str,
        purpose: &'static str,
        rules: &'static [&'static str],
        recipe: fn() -> Made,
    ) -> Self {
        Self { format: "rld", extension: "rld", name, purpose, rules, recipe }
    }
}

/// All cases, in the order of the manifest.
pub(crate) fn cases() -> impl Iterator<Item = &'static Case> {
    [headers::CASES, channels::CASES, counts::CASES, times::CASES, faults::CASES].into_iter().flatten()
}

/// The log most cases are made of: two bits, two voltages, a current with its range bit, 1 kSPS, blocks of five.
fn plain() -> Log {
    Log::new(1000, 5)
        .bit("DI1")
        .bit("DI2")
        .range("I1L_valid")
        .analog("V1", 1, -8, 0xFFFF)
        .analog("V2", 1, -8, 0xFFFF)
        .analog("I1L", 2, -11, 2)
        .analog("I1H", 2, -9, 0xFFFF)
}

/// One voltage and nothing else, blocks of five.
fn single() -> Log {
    Log::new(1000, 5).analog("V1", 1, -8, 0xFFFF)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_rule_has_a_case() {
        let ruled: BTreeSet<&str> = cases().flat_map(|case| case.rules).copied().collect();
        let missing: Vec<String> =
            // D36 is about files of 2 GiB; a test of the crate has it.
            (1..=35).map(|n| format!("D{n}")).filter(|rule| !ruled.contains(rule.as_str())).collect();
        assert_eq!(missing, Vec::<String>::new());
    }

    #[test]
    fn every_word_occurs() {
        let words = super::super::words("rld");
        for word in [
            "cut",
            "header_behind",
            "trailing_bytes",
            "no_layout",
            "rows_missing",
            "counts_disagree",
            "unaligned_header",
            "header_length",
            "comment_without_nul",
            "comment_not_ascii",
            "unknown_unit",
            "kind_mismatch",
            "bad_link",
            "name_repeated",
            "name_corrupt",
            "scale_refused",
            "dirty_bits",
            "extra_word",
            "comment_excess",
            "negative_nanoseconds",
            "stamps_implausible",
            "gap",
            "clock_backwards",
            "clock_step",
            "averaged",
            "table_implausible",
            "name_alias",
            "rate_zero",
            "current_wraps",
            "means_wrapped",
            "validity_untrusted",
        ] {
            assert!(words.contains_key(word), "no case expects {word}");
        }
    }

    #[test]
    fn there_are_forty_cases() {
        assert!(cases().count() >= 40);
    }
}
