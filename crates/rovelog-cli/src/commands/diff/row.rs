//! The rows of CSV and NDJSON.

use serde::Serialize;

/// A difference or a statistic in machine formats of rows.
#[derive(Serialize)]
pub(super) struct Row {
    /// `topic`, `field`, `param` or `signal`.
    pub(super) what: &'static str,
    pub(super) name: String,
    /// `type`, `count`, `rate_hz`, `order`, `value`, `min`, ...
    pub(super) property: &'static str,
    pub(super) change: &'static str,
    pub(super) a: Option<String>,
    pub(super) b: Option<String>,
}

impl Row {
    /// The columns of CSV.
    pub(super) const HEAD: [&'static str; 6] = ["what", "name", "property", "change", "a", "b"];

    pub(super) fn cells(self) -> [String; 6] {
        let Self { what, name, property, change, a, b } = self;
        let cell = Option::unwrap_or_default;
        [what.to_owned(), name, property.to_owned(), change.to_owned(), cell(a), cell(b)]
    }
}
