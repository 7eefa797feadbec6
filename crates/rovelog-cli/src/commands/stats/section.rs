//! A section of the statistics, in the form in which it is written as JSON.

use crate::machine::Count;
use rovelog_export::statistics::{Number, Statistics};
use serde::Serialize;

/// Statistics of one field in one section.
#[derive(Clone, Debug, Default, Serialize)]
pub(in crate::commands) struct Line {
    pub(in crate::commands) topic: String,
    pub(in crate::commands) field: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) unit: Option<String>,
    pub(in crate::commands) count: Count,
    pub(in crate::commands) min: Option<Number>,
    pub(in crate::commands) max: Option<Number>,
    pub(in crate::commands) mean: Option<f64>,
    pub(in crate::commands) std: Option<f64>,
    /// Number of values that are NaN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) nan: Option<Count>,
    /// Number of records in the longest sequence with a constant value, if the field is stuck. A
    /// field is stuck if its value changes in most records outside of this sequence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) stuck: Option<Count>,
    /// Integral of the values over time. The integral of a current is a charge, and the integral of
    /// a power is an energy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) integral: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) integral_unit: Option<&'static str>,
    /// True if the field is one of the two ranges of a current. The merged current has its own line,
    /// so that text output leaves out the ranges.
    #[serde(skip)]
    pub(in crate::commands) is_range: bool,
    /// Remark for the user, such as the number of missing values, or the number of current values
    /// that were measured in the low range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) remark: Option<String>,
}

impl Line {
    /// Creates the statistics line of a field.
    pub(super) fn of(topic: String, field: String, unit: Option<String>, values: &Statistics) -> Self {
        let stuck = values.stuck();
        let nan = (values.nan > 0).then(|| format!("{} NaN", values.nan));
        let remarks = nan.into_iter().chain(stuck.map(|run| format!("stuck in {run} records in a row")));
        let remarks: Vec<_> = remarks.collect();
        Self {
            topic,
            field,
            unit,
            count: Count(values.count),
            min: values.min,
            max: values.max,
            mean: values.mean(),
            std: values.std(),
            nan: (values.nan > 0).then_some(Count(values.nan)),
            stuck: stuck.map(Count),
            remark: (!remarks.is_empty()).then(|| remarks.join(", ")),
            ..Self::default()
        }
    }
}

/// A section of the statistics. It covers the whole log, a time window, an event, or all rows with
/// a state of the binary channels.
#[derive(Clone, Debug, Default, Serialize)]
pub(in crate::commands) struct Section {
    /// Name of the section, such as `window 3` or `DI1=1`. `None` if the section covers the whole
    /// log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) start: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) rows: Option<Count>,
    /// Total duration of the rows in the section, for which charge and energy are computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) duration_ns: Option<String>,
    /// Time from the first row to the last row of the section.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) span_ns: Option<String>,
    pub(in crate::commands) fields: Vec<Line>,
}

/// Iterator over sections. Each section is computed when it is requested.
pub(super) type Sections<'a> = Box<dyn Iterator<Item = Section> + 'a>;
