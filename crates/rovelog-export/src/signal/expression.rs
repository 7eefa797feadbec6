//! Expressions of signals: their tree, their values, and their units.

use arrow_array::Int64Array;

use super::unit::Unit;
use crate::meaning;

/// Functions that depend on the current row only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Abs,
    Sqrt,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Atan2,
    Exp,
    Log,
    Log10,
    Floor,
    Ceil,
    Round,
    Min,
    Max,
    Norm,
    /// The first value that is not NaN.
    Coalesce,
    Roll,
    Pitch,
    Yaw,
    Deg,
    Rad,
}

/// Accepted arguments of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    Exactly(usize),
    Any,
    /// The four components of a quaternion, w first.
    Quaternion,
}

/// Function names as used in expressions, and their arguments.
pub(super) const FUNCTIONS: &[(&str, Function, Takes)] = &[
    ("abs", Function::Abs, Takes::Exactly(1)),
    ("sqrt", Function::Sqrt, Takes::Exactly(1)),
    ("sin", Function::Sin, Takes::Exactly(1)),
    ("cos", Function::Cos, Takes::Exactly(1)),
    ("tan", Function::Tan, Takes::Exactly(1)),
    ("asin", Function::Asin, Takes::Exactly(1)),
    ("acos", Function::Acos, Takes::Exactly(1)),
    ("atan", Function::Atan, Takes::Exactly(1)),
    ("atan2", Function::Atan2, Takes::Exactly(2)),
    ("exp", Function::Exp, Takes::Exactly(1)),
    ("log", Function::Log, Takes::Exactly(1)),
    ("log10", Function::Log10, Takes::Exactly(1)),
    ("floor", Function::Floor, Takes::Exactly(1)),
    ("ceil", Function::Ceil, Takes::Exactly(1)),
    ("round", Function::Round, Takes::Exactly(1)),
    ("min", Function::Min, Takes::Any),
    ("max", Function::Max, Takes::Any),
    ("norm", Function::Norm, Takes::Any),
    ("coalesce", Function::Coalesce, Takes::Any),
    ("roll", Function::Roll, Takes::Quaternion),
    ("pitch", Function::Pitch, Takes::Quaternion),
    ("yaw", Function::Yaw, Takes::Quaternion),
    ("deg", Function::Deg, Takes::Exactly(1)),
    ("rad", Function::Rad, Takes::Exactly(1)),
];

/// Functions that depend on earlier rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Series {
    /// Change since the previous row, per second.
    Derivative,
    /// Change since the previous row.
    Difference,
    /// Trapezoidal integral over time in seconds, since the first row.
    Integral,
}

pub(super) const SERIES: &[(&str, Series)] =
    &[("derivative", Series::Derivative), ("difference", Series::Difference), ("integral", Series::Integral)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Pow,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    And,
    Or,
}

impl Binary {
    fn of(self, a: f64, b: f64) -> f64 {
        let truth = |holds: bool| f64::from(u8::from(holds));
        match self {
            Self::Add => a + b,
            Self::Sub => a - b,
            Self::Mul => a * b,
            Self::Div => a / b,
            Self::Rem => a % b,
            Self::Pow => a.powf(b),
            Self::Less => truth(a < b),
            Self::LessEqual => truth(a <= b),
            Self::Greater => truth(a > b),
            Self::GreaterEqual => truth(a >= b),
            #[expect(clippy::float_cmp, reason = "the user asks for it")]
            Self::Equal => truth(a == b),
            #[expect(clippy::float_cmp, reason = "the user asks for it")]
            Self::NotEqual => truth(a != b && !a.is_nan() && !b.is_nan()),
            Self::And => truth(is_true(a) && is_true(b)),
            Self::Or => truth(is_true(a) || is_true(b)),
        }
    }

    /// Returns whether the result is a truth value, that is, 0 or 1.
    pub(super) fn is_truth(self) -> bool {
        self.is_comparison() || matches!(self, Self::And | Self::Or)
    }

    pub(super) fn is_comparison(self) -> bool {
        use Binary::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
        matches!(self, Less | LessEqual | Greater | GreaterEqual | Equal | NotEqual)
    }

    fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Rem => "%",
            Self::Pow => "^",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::And => "and",
            Self::Or => "or",
        }
    }
}

/// Returns whether a value counts as true: neither 0 nor NaN.
pub(super) fn is_true(value: f64) -> bool {
    value != 0.0 && !value.is_nan()
}

/// The tree of an expression. Fields and functions that depend on earlier rows are referred to by
/// index.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Number(f64),
    Field(usize),
    Negative(Box<Node>),
    Not(Box<Node>),
    Binary(Binary, Box<[Node; 2]>),
    Call(Function, Vec<Node>),
    /// A value converted to another unit: the value, the unit, and the unit's text in the
    /// expression.
    In(Box<Node>, Unit, String),
    Series(Series, Box<Node>, usize),
}

impl Node {
    fn parts(&self) -> &[Self] {
        match self {
            Self::Number(_) | Self::Field(_) => &[],
            Self::Negative(node) | Self::Not(node) | Self::In(node, ..) | Self::Series(_, node, _) => {
                std::slice::from_ref(node)
            }
            Self::Binary(_, both) => &**both,
            Self::Call(_, arguments) => arguments,
        }
    }

    /// Returns whether a value depends on rows before its own.
    pub(super) fn has_memory(&self) -> bool {
        matches!(self, Self::Series(..)) || self.parts().iter().any(Self::has_memory)
    }

    fn has_field(&self) -> bool {
        matches!(self, Self::Field(_)) || self.parts().iter().any(Self::has_field)
    }

    /// Returns the compared side of the first comparison: `x` for both `x > 50` and `50 < x`. The
    /// left side is used if it contains a field.
    pub(super) fn compared(&self) -> &Self {
        match self {
            Self::Binary(binary, both) if binary.is_truth() => {
                both[usize::from(!both[0].has_field())].compared()
            }
            Self::Not(node) => node.compared(),
            other => other,
        }
    }

    /// Returns the unit of the values as text. `fields` are the units of the fields. A unit without
    /// a standard name is returned as it was written in the expression.
    ///
    /// # Errors
    /// Returns the errors of [`measure`].
    pub(super) fn unit(&self, fields: &[Option<Unit>]) -> Result<Option<String>, String> {
        let named = measure(self, fields)?.known().and_then(Unit::text);
        let written = || match self {
            Self::In(.., written) => Some(meaning::written(written)),
            _ => None,
        };
        Ok(named.or_else(written).filter(|unit| !unit.is_empty()))
    }
}

/// State of a function that depends on earlier rows: time and value of the previous row, and the
/// integral.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memory {
    last: Option<(i64, f64)>,
    sum: f64,
}

/// Input of an expression: the field values of a batch.
pub(super) struct Rows<'a> {
    pub(super) times: &'a Int64Array,
    /// Values of each field, by index.
    pub(super) fields: &'a [Vec<f64>],
    /// Units of the fields, by index.
    pub(super) units: &'a [Option<Unit>],
}

impl Rows<'_> {
    /// Evaluates an expression for all rows. A missing value is NaN.
    pub(super) fn values(&self, node: &Node, memory: &mut [Memory]) -> Vec<f64> {
        match node {
            Node::Number(number) => vec![*number; self.times.len()],
            Node::Field(field) => self.fields[*field].clone(),
            Node::Negative(node) => map(self.values(node, memory), |value| -value),
            Node::Not(node) => map(self.values(node, memory), |value| f64::from(u8::from(!is_true(value)))),
            Node::In(node, unit, _) => {
                let from = measure(node, self.units).ok().and_then(Measure::known).unwrap_or(*unit);
                let factor = from.factor_to(*unit);
                map(self.values(node, memory), |value| value * factor)
            }
            Node::Binary(binary, both) => {
                let mut values = self.values(&both[0], memory);
                let others = self.values(&both[1], memory);
                values.iter_mut().zip(others).for_each(|(value, other)| *value = binary.of(*value, other));
                values
            }
            Node::Call(function, arguments) => {
                let all: Vec<Vec<f64>> =
                    arguments.iter().map(|argument| self.values(argument, memory)).collect();
                let mut row = vec![0.0; all.len()];
                let rows = (0..self.times.len()).map(|i| {
                    row.iter_mut().zip(&all).for_each(|(cell, values)| *cell = values[i]);
                    call(*function, &row)
                });
                rows.collect()
            }
            Node::Series(series, node, number) => {
                let values = self.values(node, memory);
                let memory = &mut memory[*number];
                // A row without a time has no predecessor, and is skipped as the predecessor of the
                // next row.
                let value = |(time, value): (Option<i64>, f64)| {
                    time.map_or(f64::NAN, |time| step(*series, time, value, memory))
                };
                self.times.iter().zip(values).map(value).collect()
            }
        }
    }
}

fn map(mut values: Vec<f64>, change: impl Fn(f64) -> f64) -> Vec<f64> {
    for value in &mut values {
        *value = change(*value);
    }
    values
}

fn call(function: Function, row: &[f64]) -> f64 {
    let first = row.first().copied().unwrap_or(f64::NAN);
    match function {
        Function::Abs => first.abs(),
        Function::Sqrt => first.sqrt(),
        Function::Sin => first.sin(),
        Function::Cos => first.cos(),
        Function::Tan => first.tan(),
        Function::Asin => first.asin(),
        Function::Acos => first.acos(),
        Function::Atan => first.atan(),
        Function::Atan2 => first.atan2(row[1]),
        Function::Exp => first.exp(),
        Function::Log => first.ln(),
        Function::Log10 => first.log10(),
        Function::Floor => first.floor(),
        Function::Ceil => first.ceil(),
        Function::Round => first.round_ties_even(),
        Function::Min => row.iter().copied().fold(f64::NAN, f64::min),
        Function::Max => row.iter().copied().fold(f64::NAN, f64::max),
        Function::Norm => row.iter().map(|value| value * value).sum::<f64>().sqrt(),
        Function::Coalesce => row.iter().copied().find(|value| !value.is_nan()).unwrap_or(f64::NAN),
        Function::Roll => angles(row)[0],
        Function::Pitch => angles(row)[1],
        Function::Yaw => angles(row)[2],
        Function::Deg => first.to_degrees(),
        Function::Rad => first.to_radians(),
    }
}

/// Converts a quaternion (w first, any length but 0) to roll, pitch and yaw in radians. The
/// rotations are about z, then y, then x, as in `rovelog::ulog_format::px4::roll_pitch_yaw`.
fn angles(quaternion: &[f64]) -> [f64; 3] {
    let length = quaternion.iter().map(|value| value * value).sum::<f64>().sqrt();
    let [w, x, y, z] = std::array::from_fn(|i| quaternion.get(i).map_or(f64::NAN, |value| value / length));
    let roll = (2.0 * (w * x + y * z)).atan2(1.0 - 2.0 * (x * x + y * y));
    // Rounding errors may exceed 1 if the nose points straight up, and `asin` would return NaN.
    let pitch = (2.0 * (w * y - z * x)).clamp(-1.0, 1.0).asin();
    let yaw = (2.0 * (w * z + x * y)).atan2(1.0 - 2.0 * (y * y + z * z));
    [roll, pitch, yaw]
}

fn step(series: Series, time: i64, value: f64, memory: &mut Memory) -> f64 {
    let last = memory.last;
    let seconds = |from: i64| time.wrapping_sub(from) as f64 / 1e9;
    match series {
        Series::Derivative | Series::Difference => {
            memory.last = Some((time, value));
            let Some((before, old)) = last else { return f64::NAN };
            let change = value - old;
            if series == Series::Difference { change } else { change / seconds(before) }
        }
        Series::Integral => {
            // A missing value interrupts the integral, because the signal is unknown on both sides
            // of it.
            if let Some((before, old)) = last
                && !value.is_nan()
                && !old.is_nan()
            {
                memory.sum += f64::midpoint(value, old) * seconds(before);
            }
            memory.last = Some((time, value));
            memory.sum
        }
    }
}

/// What is known about the unit of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Measure {
    /// The log does not say.
    Unknown,
    /// A number literal. It adopts the unit of the value that it is compared with or added to.
    Literal,
    Known(Unit),
}

impl Measure {
    pub(super) fn known(self) -> Option<Unit> {
        match self {
            Self::Known(unit) => Some(unit),
            _ => None,
        }
    }

    fn write(self) -> String {
        match self {
            Self::Known(unit) => match unit.text().as_deref() {
                Some("") => "a number without a unit".to_owned(),
                Some(text) => text.to_owned(),
                None => "another unit".to_owned(),
            },
            _ => "an unknown unit".to_owned(),
        }
    }
}

/// Checks the units in an expression and returns the unit of its result. `fields` are the units of
/// the fields.
///
/// # Errors
/// Returns an error for incompatible units: `V + A`.
pub(super) fn measure(node: &Node, fields: &[Option<Unit>]) -> Result<Measure, String> {
    let of = |node: &Node| measure(node, fields);
    Ok(match node {
        Node::Number(_) => Measure::Literal,
        Node::Field(field) => fields[*field].map_or(Measure::Unknown, Measure::Known),
        Node::Negative(node) => of(node)?,
        Node::Not(node) => {
            of(node)?;
            Measure::Literal
        }
        Node::In(node, unit, _) => match of(node)? {
            Measure::Known(from) if !from.is_alike(*unit) => {
                let (from, to) = (Measure::Known(from).write(), Measure::Known(*unit).write());
                return Err(format!("{from} cannot be converted to {to}"));
            }
            _ => Measure::Known(*unit),
        },
        Node::Binary(binary, both) => binary_measure(*binary, of(&both[0])?, of(&both[1])?, &both[1])?,
        Node::Series(series, node, _) => match (series, of(node)?) {
            (Series::Difference, inner) => inner,
            (Series::Derivative, Measure::Known(unit)) => Measure::Known(unit.over(Unit::SECOND)),
            (Series::Integral, Measure::Known(unit)) => Measure::Known(unit.times(Unit::SECOND)),
            _ => Measure::Unknown,
        },
        Node::Call(function, arguments) => {
            let all = arguments.iter().map(of).collect::<Result<Vec<_>, _>>()?;
            call_measure(*function, &all)?
        }
    })
}

/// Returns the common unit of two values that are added or compared.
fn shared(a: Measure, b: Measure, sign: &str) -> Result<Measure, String> {
    match (a, b) {
        (Measure::Known(one), Measure::Known(other)) if !one.is_same(other) => {
            let (a, b) = (a.write(), b.write());
            Err(format!("{a} {sign} {b}: the units differ; convert one with in(SIGNAL, UNIT)"))
        }
        (Measure::Known(_), _) => Ok(a),
        (_, Measure::Known(_)) => Ok(b),
        (Measure::Literal, Measure::Literal) => Ok(Measure::Literal),
        _ => Ok(Measure::Unknown),
    }
}

fn binary_measure(binary: Binary, a: Measure, b: Measure, right: &Node) -> Result<Measure, String> {
    let both = |combine: fn(Unit, Unit) -> Unit| match (a, b) {
        (Measure::Unknown, _) | (_, Measure::Unknown) => Measure::Unknown,
        (Measure::Literal, Measure::Literal) => Measure::Literal,
        _ => Measure::Known(combine(a.known().unwrap_or(Unit::NONE), b.known().unwrap_or(Unit::NONE))),
    };
    Ok(match binary {
        Binary::Add | Binary::Sub | Binary::Rem => shared(a, b, binary.sign())?,
        Binary::Mul => both(Unit::times),
        Binary::Div => both(Unit::over),
        Binary::Pow => match (a, right) {
            #[expect(clippy::cast_possible_truncation, reason = "checked")]
            (Measure::Known(unit), Node::Number(exponent))
                if exponent.fract() == 0.0 && exponent.abs() <= 4.0 =>
            {
                Measure::Known(unit.power(*exponent as i8))
            }
            #[expect(clippy::float_cmp, reason = "the number as it was typed")]
            (Measure::Known(unit), Node::Number(exponent)) if *exponent == 0.5 => {
                unit.root().map_or(Measure::Unknown, Measure::Known)
            }
            (Measure::Literal, _) => Measure::Literal,
            _ => Measure::Unknown,
        },
        Binary::And | Binary::Or => Measure::Literal,
        _ => {
            shared(a, b, binary.sign())?;
            Measure::Literal
        }
    })
}

fn call_measure(function: Function, all: &[Measure]) -> Result<Measure, String> {
    let first = all.first().copied().unwrap_or(Measure::Unknown);
    let needs = |wanted: Unit, what: &str| match first {
        Measure::Known(unit) if !unit.is_same(wanted) && !unit.is_same(Unit::NONE) => {
            Err(format!("{what}, not {}", first.write()))
        }
        _ => Ok(()),
    };
    let same = || all.iter().try_fold(Measure::Literal, |so_far, one| shared(so_far, *one, "and"));
    Ok(match function {
        Function::Abs | Function::Floor | Function::Ceil | Function::Round => first,
        Function::Sqrt => match first {
            Measure::Known(unit) => unit.root().map_or(Measure::Unknown, Measure::Known),
            other => other,
        },
        Function::Sin | Function::Cos | Function::Tan => {
            needs(Unit::RADIAN, "this function takes radians")?;
            Measure::Known(Unit::NONE)
        }
        Function::Atan2 => {
            same()?;
            Measure::Known(Unit::RADIAN)
        }
        Function::Exp | Function::Log | Function::Log10 => Measure::Unknown,
        Function::Min | Function::Max | Function::Norm | Function::Coalesce => same()?,
        Function::Asin
        | Function::Acos
        | Function::Atan
        | Function::Roll
        | Function::Pitch
        | Function::Yaw => Measure::Known(Unit::RADIAN),
        Function::Deg => {
            needs(Unit::RADIAN, "deg takes radians")?;
            Unit::parse("°").map_or(Measure::Unknown, Measure::Known)
        }
        Function::Rad => {
            let degrees = Unit::parse("°").unwrap_or(Unit::NONE);
            needs(degrees, "rad takes degrees")?;
            Measure::Known(Unit::RADIAN)
        }
    })
}
