//! The functions of expressions whose results only depend on the current row.

use super::measure::{Measure, shared};
use super::unit::Unit;

/// A function, with its name in expressions.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) name: &'static str,
    pub(super) arity: Arity,
    /// Computes the function for the arguments in one row.
    pub(super) value: fn(&[f64]) -> f64,
    unit: UnitRule,
}

/// Functions are equal if they have the same name.
impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// Number of arguments that a function accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arity {
    Exactly(usize),
    /// One or more arguments.
    Any,
    /// The four components of a quaternion, starting with w.
    Quaternion,
}

/// Unit of the result of a function.
#[derive(Clone, Copy, Debug)]
enum UnitRule {
    /// The unit of the argument.
    Same,
    /// The unit that all arguments share.
    Shared,
    /// The square root of the unit of the argument.
    Root,
    /// The argument is an angle in radians, and the result is a number.
    OfAngle,
    /// The result is an angle in radians.
    Angle,
    /// The arguments share a unit, and the result is an angle in radians.
    SharedThenAngle,
    /// The argument is an angle in radians, and the result is an angle in degrees.
    ToDegrees,
    /// The argument is an angle in degrees, and the result is an angle in radians.
    ToRadians,
    /// The unit of the result is not known.
    Unknown,
}

const fn function(name: &'static str, arity: Arity, value: fn(&[f64]) -> f64, unit: UnitRule) -> Function {
    Function { name, arity, value, unit }
}

const ONE: Arity = Arity::Exactly(1);

/// All functions.
pub(super) const FUNCTIONS: &[Function] = &[
    function("abs", ONE, |row| row[0].abs(), UnitRule::Same),
    function("sqrt", ONE, |row| row[0].sqrt(), UnitRule::Root),
    function("sin", ONE, |row| row[0].sin(), UnitRule::OfAngle),
    function("cos", ONE, |row| row[0].cos(), UnitRule::OfAngle),
    function("tan", ONE, |row| row[0].tan(), UnitRule::OfAngle),
    function("asin", ONE, |row| row[0].asin(), UnitRule::Angle),
    function("acos", ONE, |row| row[0].acos(), UnitRule::Angle),
    function("atan", ONE, |row| row[0].atan(), UnitRule::Angle),
    function("atan2", Arity::Exactly(2), |row| row[0].atan2(row[1]), UnitRule::SharedThenAngle),
    function("exp", ONE, |row| row[0].exp(), UnitRule::Unknown),
    function("log", ONE, |row| row[0].ln(), UnitRule::Unknown),
    function("log10", ONE, |row| row[0].log10(), UnitRule::Unknown),
    function("floor", ONE, |row| row[0].floor(), UnitRule::Same),
    function("ceil", ONE, |row| row[0].ceil(), UnitRule::Same),
    // A number halfway between two integers is rounded to the even integer, as in Python.
    function("round", ONE, |row| row[0].round_ties_even(), UnitRule::Same),
    // `f64::min` and `f64::max` ignore NaN, so a missing argument does not hide the others.
    function("min", Arity::Any, |row| row.iter().copied().fold(f64::NAN, f64::min), UnitRule::Shared),
    function("max", Arity::Any, |row| row.iter().copied().fold(f64::NAN, f64::max), UnitRule::Shared),
    function("norm", Arity::Any, norm, UnitRule::Shared),
    function("coalesce", Arity::Any, first_valid, UnitRule::Shared),
    function("roll", Arity::Quaternion, |row| angles(row)[0], UnitRule::Angle),
    function("pitch", Arity::Quaternion, |row| angles(row)[1], UnitRule::Angle),
    function("yaw", Arity::Quaternion, |row| angles(row)[2], UnitRule::Angle),
    function("deg", ONE, |row| row[0].to_degrees(), UnitRule::ToDegrees),
    function("rad", ONE, |row| row[0].to_radians(), UnitRule::ToRadians),
];

fn norm(row: &[f64]) -> f64 {
    row.iter().map(|value| value * value).sum::<f64>().sqrt()
}

/// Returns the first argument that is not NaN.
fn first_valid(row: &[f64]) -> f64 {
    row.iter().copied().find(|value| !value.is_nan()).unwrap_or(f64::NAN)
}

/// Converts a quaternion to roll, pitch and yaw in radians. The component w comes first. The
/// quaternion does not have to be normalized. The rotations are about z, then y, then x, as in
/// `rovelog::ulog_format::px4::roll_pitch_yaw`.
fn angles(quaternion: &[f64]) -> [f64; 3] {
    let length = quaternion.iter().map(|value| value * value).sum::<f64>().sqrt();
    let [w, x, y, z] = std::array::from_fn(|i| quaternion.get(i).map_or(f64::NAN, |value| value / length));
    let roll = (2.0 * (w * x + y * z)).atan2(1.0 - 2.0 * (x * x + y * y));
    // If the nose of the vehicle points straight up, rounding may produce a value above 1, for
    // which `asin` would return NaN.
    let pitch = (2.0 * (w * y - z * x)).clamp(-1.0, 1.0).asin();
    let yaw = (2.0 * (w * z + x * y)).atan2(1.0 - 2.0 * (y * y + z * z));
    [roll, pitch, yaw]
}

impl Function {
    /// Returns the unit of the result. `all` are the units of the arguments.
    pub(super) fn measure(&self, all: &[Measure]) -> Result<Measure, String> {
        let first = all.first().copied().unwrap_or(Measure::Unknown);
        // A number without a unit is accepted as an angle, because a radian is the number 1.
        let needs = |wanted: Unit, what: &str| match first {
            Measure::Known(unit) if !unit.is_same(wanted) && !unit.is_same(Unit::NONE) => {
                Err(format!("{what}, not {}", first.write()))
            }
            _ => Ok(()),
        };
        let same = || all.iter().try_fold(Measure::Literal, |so_far, one| shared(so_far, *one, "and"));
        let degrees = || Unit::parse("°").unwrap_or(Unit::NONE);
        Ok(match self.unit {
            UnitRule::Same => first,
            UnitRule::Shared => same()?,
            UnitRule::Root => match first {
                Measure::Known(unit) => unit.root().map_or(Measure::Unknown, Measure::Known),
                other => other,
            },
            UnitRule::OfAngle => {
                needs(Unit::RADIAN, "this function needs radians")?;
                Measure::Known(Unit::NONE)
            }
            UnitRule::Angle => Measure::Known(Unit::RADIAN),
            UnitRule::SharedThenAngle => {
                same()?;
                Measure::Known(Unit::RADIAN)
            }
            UnitRule::ToDegrees => {
                needs(Unit::RADIAN, "deg needs radians")?;
                Measure::Known(degrees())
            }
            UnitRule::ToRadians => {
                needs(degrees(), "rad needs degrees")?;
                Measure::Known(Unit::RADIAN)
            }
            UnitRule::Unknown => Measure::Unknown,
        })
    }
}
