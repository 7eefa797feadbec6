//! `ULog` cases, grouped by theme.

mod appended;
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

/// Names that the cases use.
mod prelude {
    pub(super) use super::log::*;
    pub(super) use super::{PLAIN, START, time};
    pub(super) use crate::prelude::*;
}

/// The format. Its cases are in the order of the manifest.
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
        damage::CASES,
        hostile::CASES,
        other_writers::CASES,
    ],
    large: large::LARGE,
};

/// Start time of most test logs in microseconds, which is one second after boot.
const START: u64 = 1_000_000;

/// Returns the time of plain row `i`. Rows are 10 ms apart, so that lost rows never leave a jump of
/// a second, which readers take as a sign of stale data.
fn time(i: u16) -> u64 {
    START + 10_000 * u64::from(i)
}

/// Format of the topic in most test logs. Row `i` has the values `time(i)` and `i`.
const PLAIN: &str = "t:uint64_t timestamp;float x;";

#[cfg(test)]
mod tests {
    #[test]
    fn every_kind_of_message_occurs() {
        let expected: Vec<_> = super::FORMAT.cases().map(|case| (case.recipe)().expected).collect();
        for letter in "BFIMPQARDLCSO".chars() {
            let mut counts =
                expected.iter().map(|expected| &expected["ulog"]["messages"][letter.to_string()]);
            assert!(counts.any(|count| !count.is_null()), "no case has {letter}");
        }
    }
}
