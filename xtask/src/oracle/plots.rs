//! The check of the plots of flight logs with Flight Review's expressions over pyulog.

use anyhow::Result;

use crate::place::{binary, real};
use crate::process::run_or;
use crate::python;

/// Real logs of three generations of PX4.
const LOGS: [&str; 3] = [
    "sample_logging_tagged_and_default_params.ulg",
    "sample_log_small.ulg",
    "pyulog__sample_2016_original.ulg",
];

/// Compares the points that reports draw with Flight Review's.
pub(super) fn check() -> Result<()> {
    let Some(real) = real() else { return Ok(()) };
    let mut checker = python::pyulog_script("flight_review.py")?;
    checker.arg(binary()?).args(LOGS.map(|log| real.join("ulog").join(log)));
    run_or(&mut checker, "reports differ from what Flight Review draws")
}
