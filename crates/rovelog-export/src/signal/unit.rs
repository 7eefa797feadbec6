//! Units of signals: parsing, multiplication, comparison and formatting.
//!
//! A unit is a factor multiplied by powers of base units. For example, `mAh` is 3.6 A·s, and
//! `V * mA` is 0.001 kg·m²/s³, which is written as `mW`.

/// Exponents of the base units in [`BASE`], each multiplied by 2. Because of the factor 2, integers
/// can represent the exponents of a square root, such as `V/√Hz`.
type Powers = [i8; 7];

/// The names of the base units, in the order of their exponents.
const BASE: [&str; 7] = ["m", "kg", "s", "A", "K", "rad", "°C"];

/// Exponents of a number that has no unit.
const ONE: Powers = [0; 7];

/// Named units. Each entry has the symbol, the factor to the base units, and the doubled exponents
/// of the base units.
///
/// If several names denote the same unit, the first name is used for output. °C is a separate base
/// unit, because a temperature in °C is not a multiple of 1 K. The radian is a separate base unit,
/// so that adding an angle and a plain number is an error.
const NAMED: &[(&str, f64, Powers)] = &[
    ("m", 1.0, [2, 0, 0, 0, 0, 0, 0]),
    ("kg", 1.0, [0, 2, 0, 0, 0, 0, 0]),
    ("g", 1e-3, [0, 2, 0, 0, 0, 0, 0]),
    ("s", 1.0, [0, 0, 2, 0, 0, 0, 0]),
    ("min", 60.0, [0, 0, 2, 0, 0, 0, 0]),
    ("h", 3600.0, [0, 0, 2, 0, 0, 0, 0]),
    ("A", 1.0, [0, 0, 0, 2, 0, 0, 0]),
    ("K", 1.0, [0, 0, 0, 0, 2, 0, 0]),
    ("rad", 1.0, [0, 0, 0, 0, 0, 2, 0]),
    ("°", std::f64::consts::PI / 180.0, [0, 0, 0, 0, 0, 2, 0]),
    ("deg", std::f64::consts::PI / 180.0, [0, 0, 0, 0, 0, 2, 0]),
    ("°C", 1.0, [0, 0, 0, 0, 0, 0, 2]),
    ("%", 1e-2, ONE),
    ("N", 1.0, [2, 2, -4, 0, 0, 0, 0]),
    ("Pa", 1.0, [-2, 2, -4, 0, 0, 0, 0]),
    ("bar", 1e5, [-2, 2, -4, 0, 0, 0, 0]),
    ("J", 1.0, [4, 2, -4, 0, 0, 0, 0]),
    ("Wh", 3600.0, [4, 2, -4, 0, 0, 0, 0]),
    ("W", 1.0, [4, 2, -6, 0, 0, 0, 0]),
    ("C", 1.0, [0, 0, 2, 2, 0, 0, 0]),
    ("Ah", 3600.0, [0, 0, 2, 2, 0, 0, 0]),
    ("V", 1.0, [4, 2, -6, -2, 0, 0, 0]),
    ("Ω", 1.0, [4, 2, -6, -4, 0, 0, 0]),
    ("Ohm", 1.0, [4, 2, -6, -4, 0, 0, 0]),
    ("T", 1.0, [0, 2, -4, -2, 0, 0, 0]),
    ("G", 1e-4, [0, 2, -4, -2, 0, 0, 0]),
    ("Hz", 1.0, [0, 0, -2, 0, 0, 0, 0]),
];

/// Decimal prefixes and their factors.
const PREFIXES: &[(&str, f64)] =
    &[("k", 1e3), ("M", 1e6), ("c", 1e-2), ("m", 1e-3), ("µ", 1e-6), ("u", 1e-6), ("n", 1e-9), ("p", 1e-12)];

/// A unit: a factor multiplied by powers of the base units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Unit {
    scale: f64,
    powers: Powers,
}

impl Unit {
    pub(super) const NONE: Self = Self { scale: 1.0, powers: ONE };
    pub(super) const SECOND: Self = Self { scale: 1.0, powers: [0, 0, 2, 0, 0, 0, 0] };
    pub(super) const RADIAN: Self = Self { scale: 1.0, powers: [0, 0, 0, 0, 0, 2, 0] };

    /// Parses a unit such as `m/s2`, `m/s^2`, `m/s²`, `kg·m²`, `mAh`, `1/min` or `us`. Returns
    /// `None` if the unit is unknown.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut unit = Self::NONE;
        let mut divides = false;
        for part in text.trim().split_inclusive(['/', '·', '*', ' ']) {
            let factor = part.trim_end_matches(['/', '·', '*', ' ']);
            if !factor.is_empty() {
                let factor = Self::factor(factor)?;
                unit = if divides { unit.over(factor) } else { unit.times(factor) };
            }
            // Spaces around a `/` do not end the division, so `m / s` is the same as `m/s`.
            divides = part.ends_with('/') || (divides && part.ends_with(' ') && factor.is_empty());
        }
        (!text.trim().is_empty()).then_some(unit)
    }

    /// Parses a part of a unit that has one symbol and an optional exponent, such as `s2`, `s^-1`,
    /// `m²` or `1`.
    fn factor(text: &str) -> Option<Self> {
        if text == "1" {
            return Some(Self::NONE);
        }
        let plain = text.replace('²', "2").replace('³', "3").replace('^', "");
        let end = plain.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-').len();
        let (symbol, exponent) = plain.split_at(end);
        let exponent: i8 = if exponent.is_empty() { 1 } else { exponent.parse().ok()? };
        let found = |symbol: &str| NAMED.iter().find(|(name, ..)| *name == symbol);
        let (scale, powers) = match found(symbol) {
            Some((_, scale, powers)) => (*scale, *powers),
            None => PREFIXES.iter().find_map(|(prefix, factor)| {
                let (_, scale, powers) = found(symbol.strip_prefix(prefix)?)?;
                Some((scale * factor, *powers))
            })?,
        };
        if !(-4..=4).contains(&exponent) {
            return None;
        }
        Some(Self { scale: scale.powi(i32::from(exponent)), powers: powers.map(|power| power * exponent) })
    }

    pub(super) fn times(self, other: Self) -> Self {
        let powers = std::array::from_fn(|i| self.powers[i].saturating_add(other.powers[i]));
        Self { scale: self.scale * other.scale, powers }
    }

    pub(super) fn over(self, other: Self) -> Self {
        let powers = std::array::from_fn(|i| self.powers[i].saturating_sub(other.powers[i]));
        Self { scale: self.scale / other.scale, powers }
    }

    /// Returns the square root of this unit. Returns `None` if an exponent of this unit is not an
    /// integer, because the root would need fourths as exponents.
    pub(super) fn root(self) -> Option<Self> {
        let is_even = self.powers.iter().all(|power| power % 2 == 0);
        is_even.then(|| Self { scale: self.scale.sqrt(), powers: self.powers.map(|power| power / 2) })
    }

    pub(super) fn power(self, exponent: i8) -> Self {
        let powers = self.powers.map(|power| power.saturating_mul(exponent));
        Self { scale: self.scale.powi(i32::from(exponent)), powers }
    }

    /// Returns whether both units measure the same quantity, such as `km` and `m`.
    pub(super) fn is_alike(self, other: Self) -> bool {
        self.powers == other.powers
    }

    /// Returns whether both units are the same. Their factors may differ by rounding errors.
    pub(super) fn is_same(self, other: Self) -> bool {
        self.is_alike(other) && (self.scale / other.scale - 1.0).abs() < 1e-9
    }

    /// Returns the factor that converts a value in this unit to `other`.
    pub(super) fn factor_to(self, other: Self) -> f64 {
        self.scale / other.scale
    }

    /// Returns the unit as text. This is a name such as `mW`, or a product such as `m/s²` if the
    /// unit has no name. Returns `None` if the factor has no name or prefix, as for 7 m.
    pub(super) fn text(self) -> Option<String> {
        let named = |unit: Self| {
            let mut all = NAMED.iter();
            all.find(|(_, scale, powers)| unit.is_same(Self { scale: *scale, powers: *powers }))
        };
        if self.is_same(Self::NONE) {
            return Some(String::new());
        }
        if let Some((name, ..)) = named(self) {
            return Some((*name).to_owned());
        }
        let prefixed = PREFIXES.iter().find_map(|(prefix, factor)| {
            let (name, scale, _) = named(Self { scale: self.scale / factor, ..self })?;
            // Prefixes are only combined with SI units, `Wh` and `Ah`. Otherwise, 0.6 s would
            // become `cmin`.
            (scale.to_bits() == 1.0_f64.to_bits() || *name == "Wh" || *name == "Ah")
                .then(|| format!("{prefix}{name}"))
        });
        if prefixed.is_some() {
            return prefixed;
        }
        // As a product of base units, `V/s` would be `m²·kg/s^4/A`, which nobody recognizes.
        // Therefore, units such as `V/s` are written as a named unit divided by `s` or `m`.
        for (base, name) in ["s", "m"].into_iter().filter_map(|name| Some((Self::parse(name)?, name))) {
            if let Some((over, ..)) = named(self.times(base)).filter(|(name, ..)| !BASE.contains(name)) {
                return Some(format!("{over}/{name}"));
            }
        }
        self.composed()
    }

    /// Returns the unit as a product of base units, such as `m/s²`, `rad/s` or `kg·m²`.
    fn composed(self) -> Option<String> {
        // A rate in degrees, such as `°/s`, differs from `rad/s` by a factor without a name. If the
        // unit has this factor, the degree replaces the radian as the base unit.
        let degree = Self::parse("°")?;
        let (unit, angle) = if self.is_same(Self { scale: degree.scale, ..self }) && self.powers[5] == 2 {
            (Self { scale: self.scale / degree.scale, ..self }, "°")
        } else {
            (self, "rad")
        };
        if (unit.scale - 1.0).abs() > 1e-9 || unit.powers.iter().any(|power| power % 2 != 0) {
            return None;
        }
        let part = |sign: i8| {
            let powers = unit.powers.iter().zip(BASE).filter(|(power, _)| **power * sign > 0);
            let parts = powers.map(|(power, name)| {
                let name = if name == "rad" { angle } else { name };
                match power.abs() / 2 {
                    1 => name.to_owned(),
                    2 => format!("{name}²"),
                    3 => format!("{name}³"),
                    more => format!("{name}^{more}"),
                }
            });
            parts.collect::<Vec<_>>()
        };
        let (over, under) = (part(1).join("·"), part(-1));
        let over = if over.is_empty() { "1".to_owned() } else { over };
        Some(under.into_iter().fold(over, |text, name| format!("{text}/{name}")))
    }
}

/// Returns the unit of an integral over the time in seconds, such as `C` for `A` and `m` for
/// `km/h`, and the factor that converts the integral to this unit. Returns `None` if the unit of
/// the integral has no common name, as for `V`.
pub(crate) fn integral_unit(unit: &str) -> Option<(f64, String)> {
    let integral = Unit::parse(unit)?.times(Unit::SECOND);
    let base = Unit { scale: 1.0, ..integral };
    let plain = || Some((integral.factor_to(base), base.text()?));
    // A product such as `m·s` is longer than the unit of the values, and is of little use.
    integral.text().map(|text| (1.0, text)).or_else(plain).filter(|(_, text)| text.len() <= unit.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(a: &str, b: &str) -> String {
        Unit::parse(a).unwrap().times(Unit::parse(b).unwrap()).text().unwrap()
    }

    #[test]
    fn units_are_read_multiplied_and_written() {
        for (text, written) in [
            ("m/s2", "m/s²"),
            ("m/s^2", "m/s²"),
            ("rad/s", "rad/s"),
            ("deg", "°"),
            ("deg/s", "°/s"),
            ("us", "µs"),
            ("mAh", "mAh"),
            ("mV", "mV"),
            ("kg/m³", "kg/m³"),
            ("V/s", "V/s"),
        ] {
            assert_eq!(Unit::parse(text).and_then(Unit::text).as_deref(), Some(written), "{text}");
        }
        assert_eq!(product("V", "A"), "W");
        assert_eq!(product("V", "mA"), "mW");
        assert_eq!(product("W", "s"), "J");
        assert_eq!(product("m/s", "m/s"), "m²/s²");
        let speed = Unit::parse("m/s").unwrap();
        assert!(speed.times(speed).root().unwrap().is_same(speed));
        let integrals = ["A", "mW", "m/s", "°/s", "km/h", "V", "m"].map(integral_unit);
        let integrals = integrals.map(|found| found.map(|(_, unit)| unit).unwrap_or_default());
        assert_eq!(integrals, ["C", "mJ", "m", "°", "m", "", ""]);
        assert_eq!((Unit::parse("furlong"), Unit::parse("")), (None, None));
        let factor = Unit::parse("km/h").unwrap().factor_to(speed);
        assert!((factor * 3.6 - 1.0).abs() < 1e-12, "{factor}");
    }
}
