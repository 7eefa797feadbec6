//! `ULog` cases, grouped by theme.

mod appended;
mod bad_messages;
mod damage;
mod definitions;
mod expected;
mod hostile;
mod keyed;
pub(super) mod large;
mod lay;
mod log;
mod other_writers;
mod shape;
mod subscriptions;
mod texts;
mod timestamps;
mod types;
mod utc;

use super::{Case, Made};
use log::{Log, Subscribed};
use shape::{F32, Shape, U64, Value, values};

impl Case {
    /// A `ULog`; `rules` are the numbers in `docs/formats/ulog.md`.
    const fn ulog(
        name: &'static str,
        purpose: &'static str,
        rules: &'static [&'static str],
        recipe: fn() -> Made,
    ) -> Self {
        Self { format: "ulog", extension: "ulg", name, purpose, rules, recipe }
    }
}

/// All cases, in the order of the manifest.
pub(crate) fn cases() -> impl Iterator<Item = &'static Case> {
    [
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
    ]
    .into_iter()
    .flatten()
}

/// The start of most logs here: one second after boot.
const START: u64 = 1_000_000;

/// The time of plain row number `i`: 10 ms apart, so that every damaged case stays far from a
/// jump of a second, which would be a sign of stale data.
fn time(i: u16) -> u64 {
    START + 10_000 * u64::from(i)
}

/// The topic most logs here have.
fn plain() -> Shape {
    Shape::new("t").with("timestamp", U64).with("x", F32)
}

/// Row number `i` of the plain topic.
fn plain_row(i: u16) -> Vec<Value> {
    values![time(i), f32::from(i)]
}

/// A log with the plain topic, id 0.
fn plain_log() -> (Log, Subscribed) {
    let mut log = Log::new(START);
    let topic = log.topic(&plain());
    (log, topic)
}

/// Rows of the plain topic.
fn plain_rows(log: &mut Log, topic: &Subscribed, numbers: std::ops::Range<u16>) {
    for i in numbers {
        log.row(topic, &plain_row(i));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_of_message_occurs() {
        let mut letters = BTreeSet::new();
        for case in cases() {
            let expected = (case.recipe)().expected;
            let counts = expected["ulog"]["messages"].as_object().cloned();
            letters.extend(counts.unwrap_or_default().into_iter().map(|(key, _)| key));
        }
        for letter in "BFIMPQARDLCSO".chars() {
            assert!(letters.contains(&letter.to_string()), "no case has {letter}");
        }
    }
}
