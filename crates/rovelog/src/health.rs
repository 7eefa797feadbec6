//! Quality of the timestamps in a log of any format.

use rovelog_core::health::{self, Health, Pace};
use rovelog_core::{Result, Select};

use crate::AnyLog;

/// Examines the timestamps of the selected records. Finds gaps, missing records, jitter, and times
/// that decrease or repeat.
///
/// # Errors
/// Returns an error if the log cannot be read.
pub fn health(log: &AnyLog, select: &Select) -> Result<Health> {
    health_with(log, select, Vec::new())
}

/// Examines the timestamps as [`health()`] does, but does not read the times in `known` again; see
/// [`health::of`](rovelog_core::health::of).
///
/// # Errors
/// Returns an error if the log cannot be read.
pub fn health_with(log: &AnyLog, select: &Select, known: Vec<Option<Pace>>) -> Result<Health> {
    let dropouts = match log {
        #[cfg(feature = "ulog")]
        AnyLog::Ulog(log) => log.dropouts().iter().filter_map(ulog_format::Dropout::span).collect(),
        #[allow(unreachable_patterns, reason = "ULog may be the only format")]
        _ => Vec::new(),
    };
    health::of(&**log, select, dropouts, known)
}
