//! `ULog` cases, grouped by theme.

mod appended;
mod bad_messages;
mod damage;
mod definitions;
mod hostile;
mod keyed;
mod large;
mod log;
mod other_writers;
mod subscriptions;
mod texts;
mod timestamps;
mod types;
mod utc;

use super::Format;

/// Cases in the order of the manifest.
pub(super) const FORMAT: Format = Format {
    id: "ulog",
    extension: "ulg",
    cases: &[
        definitions::CASES,
        subscriptions::CASES,
        types::CASES,
        timestamps::CASES,
        utc::CASES,
        texts::CASES,
        keyed::CASES,
        appended::CASES,
        bad_messages::CASES,
        damage::CASES,
        hostile::CASES,
        other_writers::CASES,
    ],
    large: large::LARGE,
};

/// Start time of most logs here: one second after boot.
const START: u64 = 1_000_000;

/// Returns the time of plain row `i`. Rows are 10 ms apart, so that every damaged case stays far
/// from a jump of a second, which would be a sign of stale data.
fn time(i: u16) -> u64 {
    START + 10_000 * u64::from(i)
}

/// The topic of most logs here; row `i` holds `time(i)` and `i`.
const PLAIN: &str = "t:uint64_t timestamp;float x;";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn every_kind_of_message_occurs() {
        let mut letters = BTreeSet::new();
        for case in super::FORMAT.cases() {
            let expected = (case.recipe)().expected;
            let counts = expected["ulog"]["messages"].as_object().cloned();
            letters.extend(counts.unwrap_or_default().into_iter().map(|(key, _)| key));
        }
        for letter in "BFIMPQARDLCSO".chars() {
            assert!(letters.contains(&letter.to_string()), "no case has {letter}");
        }
    }
}
