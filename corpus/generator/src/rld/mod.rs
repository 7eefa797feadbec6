//! RLD cases, grouped by theme.

mod channels;
mod counts;
mod faults;
mod headers;
mod large;
mod log;
mod times;

use super::Format;
use log::{Log, NONE};

/// Names that the cases use.
mod prelude {
    pub(super) use super::log::{Log, NONE, Row, TRUE_SECOND};
    pub(super) use super::{plain, single};
    pub(super) use crate::prelude::*;
}

/// The format. Its cases are in the order of the manifest.
pub(super) const FORMAT: Format = Format {
    id: "rld",
    extension: "rld",
    cases: &[headers::CASES, channels::CASES, counts::CASES, times::CASES, faults::CASES],
    large: large::LARGE,
};

/// Returns the log that most cases use. It has two bits, two voltages, and a current with a valid
/// bit, with 1000 rows per second and blocks of five rows.
fn plain() -> Log {
    let log = Log::new(1000, 5).bit("DI1").bit("DI2").range("I1L_valid").analogs(&["V1", "V2"], 1, -8);
    log.analog("I1L", 2, -11, 2).analog("I1H", 2, -9, NONE)
}

/// Returns a log with a single voltage and blocks of five rows.
fn single() -> Log {
    Log::new(1000, 5).analog("V1", 1, -8, NONE)
}
