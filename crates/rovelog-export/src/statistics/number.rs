//! Numbers for exact minima and maxima, and their format in text output.

use serde::Serialize;

/// A number in a record. Integers remain exact, because a 64-bit float cannot represent large
/// integers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer. A boolean is stored as 0 or 1.
    Int(i128),
    /// A float, or a value that was computed from numbers.
    Float(f64),
}

impl Number {
    /// Returns the float that is nearest to the number.
    pub fn as_f64(self) -> f64 {
        match self {
            // Converting a 64-bit integer takes one instruction, but converting a 128-bit integer
            // calls a function.
            Self::Int(value) => i64::try_from(value).map_or(value as f64, |value| value as f64),
            Self::Float(value) => value,
        }
    }

    /// Returns whether the number is less than `other`. Two integers are compared exactly.
    pub fn is_below(self, other: Self) -> bool {
        match (self, other) {
            (Self::Int(one), Self::Int(other)) => one < other,
            (one, other) => one.as_f64() < other.as_f64(),
        }
    }

    /// Formats the number for text output. Floats are rounded to seven digits.
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

/// Formats a number with seven significant digits for text output. The other output formats write
/// all digits.
pub fn short(value: Option<f64>) -> String {
    let Some(value) = value else { return String::new() };
    let text = format!("{value:.6e}");
    let rounded: f64 = text.parse().unwrap_or(value);
    let plain = rounded.to_string();
    // Very large and very small numbers are shorter with an exponent.
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
