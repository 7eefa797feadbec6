//! Statistics of the fields in a section of a log.

use serde::Serialize;

/// A minimum or maximum: integers stay exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::commands) enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    pub(in crate::commands) fn as_f64(self) -> f64 {
        match self {
            // 64 bits are converted by one instruction.
            Self::Int(value) => i64::try_from(value).map_or(value as f64, |value| value as f64),
            Self::Float(value) => value,
        }
    }

    pub(in crate::commands) fn is_below(self, other: Self) -> bool {
        match (self, other) {
            (Self::Int(one), Self::Int(other)) => one < other,
            (one, other) => one.as_f64() < other.as_f64(),
        }
    }

    /// Returns the short form for text output.
    pub(in crate::commands) fn short(self) -> String {
        match self {
            Self::Int(value) => value.to_string(),
            Self::Float(value) => short(Some(value)),
        }
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Int(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
        }
    }
}

impl Serialize for Number {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Int(value) => out.serialize_i128(*value),
            Self::Float(value) => out.serialize_f64(*value),
        }
    }
}

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

/// Formats a number with seven digits for text; machine formats have all digits.
pub(in crate::commands) fn short(value: Option<f64>) -> String {
    let Some(value) = value else { return String::new() };
    let text = format!("{value:.6e}");
    let rounded: f64 = text.parse().unwrap_or(value);
    let plain = rounded.to_string();
    // Long numbers, and those of `e-5` and below, are shorter with an exponent.
    if plain.len() <= 14 { plain } else { format!("{rounded:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_stay_whole() {
        for value in [i128::from(u64::MAX), i128::from(i64::MIN), (1 << 53) + 1] {
            let number = Number::Int(value);
            let shown = [number.short(), number.to_string(), serde_json::to_string(&number).unwrap()];
            assert_eq!(shown, [(); 3].map(|()| value.to_string()));
            assert!(Number::Int(value - 1).is_below(number) && !number.is_below(number));
        }
        assert_eq!(serde_json::to_string(&Number::Float(1.0)).unwrap(), "1.0");
    }
}
