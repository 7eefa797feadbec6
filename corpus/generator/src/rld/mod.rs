//! RLD cases, grouped by theme.

mod channels;
mod counts;
mod faults;
mod headers;
mod large;
mod log;
mod shifts;
mod times;

use super::Format;
use log::{Log, NONE};

/// In the order of the manifest.
pub(super) const FORMAT: Format = Format {
    id: "rld",
    extension: "rld",
    cases: &[headers::CASES, channels::CASES, counts::CASES, times::CASES, faults::CASES, shifts::CASES],
    large: large::LARGE,
};

/// Returns the log that most cases use: two bits, two voltages, a current with its range bit, 1
/// kSPS, blocks of five.
fn plain() -> Log {
    Log::new(1000, 5)
        .bit("DI1")
        .bit("DI2")
        .range("I1L_valid")
        .analog("V1", 1, -8, NONE)
        .analog("V2", 1, -8, NONE)
        .analog("I1L", 2, -11, 2)
        .analog("I1H", 2, -9, NONE)
}

/// Returns a log with one voltage and nothing else, blocks of five.
fn single() -> Log {
    Log::new(1000, 5).analog("V1", 1, -8, NONE)
}
