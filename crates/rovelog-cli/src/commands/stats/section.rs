//! Statistics of the fields in a section of a log.

use rovelog_export::statistics::{Number, Statistics};
use serde::Serialize;

/// Statistics of one field in one section.
#[derive(Clone, Debug, Default, Serialize)]
pub(in crate::commands) struct Line {
    pub(in crate::commands) topic: String,
    pub(in crate::commands) field: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) unit: Option<String>,
    pub(in crate::commands) count: String,
    pub(in crate::commands) min: Option<Number>,
    pub(in crate::commands) max: Option<Number>,
    pub(in crate::commands) mean: Option<f64>,
    pub(in crate::commands) std: Option<f64>,
    /// Values that are no numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) nan: Option<String>,
    /// Records in a row with one value, of a field whose value changes otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) stuck: Option<String>,
    /// Integral over time: charge of a current, energy of a power.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) integral: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) integral_unit: Option<&'static str>,
    /// Remark: missing values, or the share of the low range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) remark: Option<String>,
}

impl Line {
    /// Returns the line of a field with these values.
    pub(super) fn of(topic: String, field: String, unit: Option<String>, values: &Statistics) -> Self {
        let stuck = values.stuck();
        let nan = (values.nan > 0).then(|| format!("{} NaN", values.nan));
        let remarks = nan.into_iter().chain(stuck.map(|run| format!("stuck in {run} records in a row")));
        let remarks: Vec<_> = remarks.collect();
        Self {
            topic,
            field,
            unit,
            count: values.count.to_string(),
            min: values.min,
            max: values.max,
            mean: values.mean(),
            std: values.std(),
            nan: (values.nan > 0).then(|| values.nan.to_string()),
            stuck: stuck.map(|run| run.to_string()),
            remark: (!remarks.is_empty()).then(|| remarks.join(", ")),
            ..Self::default()
        }
    }
}

/// A section of a log: all of it, a window, an event, a state.
#[derive(Clone, Debug, Default, Serialize)]
pub(in crate::commands) struct Section {
    /// Name: `window 3`, `DI1=1`; `None` for the whole log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) start: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) rows: Option<String>,
    /// Duration of the rows, over which charge and energy are summed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) duration_ns: Option<String>,
    /// Time from the first row to the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) span_ns: Option<String>,
    pub(in crate::commands) fields: Vec<Line>,
}

/// Sections, computed on demand.
pub(super) type Sections<'a> = Box<dyn Iterator<Item = Section> + 'a>;
