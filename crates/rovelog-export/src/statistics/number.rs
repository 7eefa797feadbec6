//! Minima and maxima, and numbers for people.

use serde::Serialize;

/// A minimum or maximum: integers stay exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Any integer, and a bit as 0 or 1.
    Int(i128),
    /// A float, or what was computed.
    Float(f64),
}

impl Number {
    /// Returns the nearest float.
    pub fn as_f64(self) -> f64 {
        match self {
            // 64 bits are converted by one instruction.
            Self::Int(value) => i64::try_from(value).map_or(value as f64, |value| value as f64),
            Self::Float(value) => value,
        }
    }

    /// Returns whether a number is less than another; integers are compared exactly.
    pub fn is_below(self, other: Self) -> bool {
        match (self, other) {
            (Self::Int(one), Self::Int(other)) => one < other,
            (one, other) => one.as_f64() < other.as_f64(),
        }
    }

    /// Returns the short form for text output.
    pub fn short(self) -> String {
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

/// Formats a number with seven digits for text; machine formats have all digits.
pub fn short(value: Option<f64>) -> String {
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
