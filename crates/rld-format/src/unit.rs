//! Units of channels. This module defines the codes and names of units, and converts raw to
//! physical values.

use std::fmt;

/// Unit of a channel's physical values. The meaning of a value is the same for all file versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unit {
    /// The unit is not defined. Its code is 0xFFFFFFFF, or 0 before version 3. A logger without a
    /// calibration stores this code.
    Undefined,
    /// The values are numbers without a unit. The code is 0, since version 3.
    Unitless,
    /// Volt.
    Volt,
    /// Ampere.
    Ampere,
    /// The channel is binary.
    Binary,
    /// The channel is binary. Its value is 1 if the value of another channel is within its
    /// measuring range.
    RangeValid,
    /// Lux.
    Lux,
    /// Degrees Celsius.
    Celsius,
    /// The values are integers without a unit.
    Integer,
    /// Percent.
    Percent,
    /// Pascal.
    Pascal,
    /// Second.
    Second,
    /// The code of the unit, if no known version defines this code.
    Other(u32),
}

impl Unit {
    /// Returns the unit that a code in a file stands for. See "Unit codings" in the specification.
    pub const fn of(code: u32, unit_zero_is_unitless: bool) -> Self {
        match code {
            0 if unit_zero_is_unitless => Self::Unitless,
            0 | 0xFFFF_FFFF => Self::Undefined,
            1 => Self::Volt,
            2 => Self::Ampere,
            3 => Self::Binary,
            4 => Self::RangeValid,
            5 => Self::Lux,
            6 => Self::Celsius,
            7 => Self::Integer,
            8 => Self::Percent,
            9 => Self::Pascal,
            10 => Self::Second,
            code => Self::Other(code),
        }
    }

    /// Returns the unit's code in files of version 4.
    pub const fn code(self) -> u32 {
        match self {
            Self::Unitless => 0,
            Self::Volt => 1,
            Self::Ampere => 2,
            Self::Binary => 3,
            Self::RangeValid => 4,
            Self::Lux => 5,
            Self::Celsius => 6,
            Self::Integer => 7,
            Self::Percent => 8,
            Self::Pascal => 9,
            Self::Second => 10,
            Self::Undefined => 0xFFFF_FFFF,
            Self::Other(code) => code,
        }
    }

    /// Returns the symbol of the unit without a prefix, such as `V`. Returns an empty string if the
    /// unit has no symbol.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Volt => "V",
            Self::Ampere => "A",
            Self::Lux => "lx",
            Self::Celsius => "degC",
            Self::Percent => "%",
            Self::Pascal => "Pa",
            Self::Second => "s",
            _ => "",
        }
    }

    /// Returns whether channels with this unit are binary.
    pub const fn is_binary(self) -> bool {
        matches!(self, Self::Binary | Self::RangeValid)
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Undefined => "undefined",
            Self::Unitless => "unitless",
            Self::Volt => "voltage",
            Self::Ampere => "current",
            Self::Binary => "binary",
            Self::RangeValid => "range valid",
            Self::Lux => "illuminance",
            Self::Celsius => "temperature",
            Self::Integer => "integer",
            Self::Percent => "percent",
            Self::Pascal => "pressure",
            Self::Second => "time",
            Self::Other(code) => return write!(f, "unit:{code}"),
        };
        f.pad(name)
    }
}

/// Maximum magnitude of the exponent of ten for conversion to physical values. Channels with larger
/// exponents have raw values only.
pub const MAX_SCALE: i32 = 30;

/// The power of ten by which raw integers of a channel are multiplied to get physical values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    exponent: i32,
    /// The value 10^|exponent|. It is exact for exponents up to 22.
    power: f64,
}

impl Scale {
    /// Creates the scale 10^`exponent`. Returns `None` if the exponent is beyond [`MAX_SCALE`].
    pub fn new(exponent: i32) -> Option<Self> {
        (exponent.unsigned_abs() <= MAX_SCALE.unsigned_abs())
            .then(|| Self { exponent, power: 10f64.powi(exponent.abs()) })
    }

    /// Returns the power of ten by which raw integers are divided. Returns `None` if the exponent
    /// is positive or below -22, because a single division does not give the correctly rounded
    /// value in these cases.
    pub fn divisor(self) -> Option<f64> {
        (-22..=0).contains(&self.exponent).then_some(self.power)
    }

    /// Returns `raw` * 10^exponent, correctly rounded.
    ///
    /// Integers of up to 53 bits and powers of ten up to 10^22 are exact as `f64`, so their
    /// quotient is rounded only once. Multiplying by 10^-8, which is not exact, would give a wrong
    /// last digit for every eighth value. Larger values are formatted as decimal text, and the text
    /// is parsed.
    pub fn apply(self, raw: i64) -> f64 {
        let exact = raw.unsigned_abs() <= 1 << 53 && self.exponent.abs() <= 22;
        match (exact, self.exponent <= 0) {
            (true, true) => raw as f64 / self.power,
            (true, false) => raw as f64 * self.power,
            (false, _) => format!("{raw}e{}", self.exponent).parse().unwrap_or(f64::NAN),
        }
    }

    /// Returns `raw` * 10^exponent, correctly rounded. `raw` may be a sum of many values.
    pub fn apply_wide(self, raw: i128) -> f64 {
        match i64::try_from(raw) {
            Ok(raw) => self.apply(raw),
            Err(_) => format!("{raw}e{}", self.exponent).parse().unwrap_or(f64::NAN),
        }
    }
}

/// Returns the unit of raw values in the notation of the logger's CSV, for example `10nV`. If there
/// is no prefix for the scale, the notation is `1e5 V`.
pub fn raw_unit(unit: Unit, scale: i32) -> String {
    let symbol = unit.symbol();
    let prefix = match scale {
        0 => "",
        -1 => "100m",
        -2 => "10m",
        -3 => "m",
        -4 => "100u",
        -5 => "10u",
        -6 => "u",
        -7 => "100n",
        -8 => "10n",
        -9 => "n",
        -10 => "100p",
        -11 => "10p",
        -12 => "p",
        3 => "k",
        6 => "M",
        _ => return format!("1e{scale} {symbol}").trim_end().to_owned(),
    };
    match symbol {
        "" if scale == 0 => String::new(),
        "" => format!("1e{scale}"),
        symbol => format!("{prefix}{symbol}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The standard library rounds decimal text correctly. So it serves as the reference for the
    /// faster conversion.
    #[test]
    fn physical_values_are_correctly_rounded() {
        let mut state = 7u64;
        for exponent in [-12, -11, -9, -8, -6, -3, 0, 3, -22, -30, 30] {
            let scale = Scale::new(exponent).unwrap();
            for _ in 0..2000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                for raw in [state.cast_signed(), i64::from(((state >> 32) as u32).cast_signed())] {
                    let want: f64 = format!("{raw}e{exponent}").parse().unwrap();
                    assert_eq!(scale.apply(raw).to_bits(), want.to_bits(), "{raw}e{exponent}");
                }
            }
        }
        assert!(Scale::new(31).is_none());
    }

    #[test]
    fn codes_and_raw_units_are_those_of_the_format() {
        for code in (0..12).chain([0xFFFF_FFFF, 77]) {
            assert_eq!(Unit::of(code, true).code(), code);
        }
        assert_eq!(Unit::of(0, false), Unit::Undefined);
        assert_eq!(raw_unit(Unit::Volt, -8), "10nV");
        assert_eq!(raw_unit(Unit::Ampere, -11), "10pA");
        assert_eq!(raw_unit(Unit::Lux, 0), "lx");
    }
}
