//! Rows of `rovelog diff` in CSV and NDJSON.

use serde::Serialize;

/// A row of the output, which describes one difference or one statistic.
#[derive(Serialize)]
pub(super) struct Row {
    /// Kind of the compared item: `topic`, `field`, `param` or `signal`.
    pub(super) what: &'static str,
    /// Name of the compared topic, field, parameter or signal.
    pub(super) name: String,
    /// Property that is compared, such as `type`, `count`, `rate_hz` or `min`.
    pub(super) property: &'static str,
    pub(super) change: &'static str,
    pub(super) a: Option<String>,
    pub(super) b: Option<String>,
}

impl Row {
    /// Columns of the CSV output.
    pub(super) const HEAD: [&'static str; 6] = ["what", "name", "property", "change", "a", "b"];
}
