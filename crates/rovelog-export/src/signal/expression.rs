//! Expressions: their syntax tree, their evaluation, and the check of their units.
//!
//! For example, `norm(x, y) > 3` is parsed to
//!
//! ```text
//! Binary(Greater, [Call(norm, [Field(0), Field(1)]), Number(3)])
//! ```
//!
//! [`Rows::values`] evaluates each node for all rows of a batch before it evaluates the next node.
//! [`measure`] visits the same tree with units instead of values. If `x` and `y` are in m/s, their
//! norm is in m/s, and the literal 3 is also taken as m/s.

use arrow_array::Int64Array;

use super::function::Function;
use super::measure::{Measure, shared};
use super::unit::Unit;
use crate::meaning;

/// A function whose result depends on earlier rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Series {
    /// Change of the value since the previous row, divided by the time in seconds.
    Derivative,
    /// Change of the value since the previous row.
    Difference,
    /// Integral of the value over the time in seconds since the first row (trapezoidal rule).
    Integral,
}

/// The functions that depend on earlier rows, by name.
pub(super) const SERIES: &[(&str, Series)] =
    &[("derivative", Series::Derivative), ("difference", Series::Difference), ("integral", Series::Integral)];

/// Binary operators.
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

/// Binary operators with their precedence. If one operator starts with another, the longer operator
/// comes first, so that `<=` is not read as `<`. The unary operators have the precedences 3 and 7.
pub(super) const OPERATORS: &[(&str, Binary, u8)] = &[
    ("||", Binary::Or, 1),
    ("or", Binary::Or, 1),
    ("&&", Binary::And, 2),
    ("and", Binary::And, 2),
    ("<=", Binary::LessEqual, 4),
    (">=", Binary::GreaterEqual, 4),
    ("==", Binary::Equal, 4),
    ("!=", Binary::NotEqual, 4),
    ("<", Binary::Less, 4),
    (">", Binary::Greater, 4),
    ("+", Binary::Add, 5),
    ("-", Binary::Sub, 5),
    ("**", Binary::Pow, 8),
    ("*", Binary::Mul, 6),
    ("/", Binary::Div, 6),
    ("%", Binary::Rem, 6),
    ("^", Binary::Pow, 8),
];

impl Binary {
    /// Applies the operator to two values. A comparison with NaN is false, even with `!=`, so that
    /// a missing value never fulfills a condition.
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

    /// Returns whether the result of the operator is a truth value, that is, 0 or 1.
    pub(super) fn is_truth(self) -> bool {
        self.is_comparison() || matches!(self, Self::And | Self::Or)
    }

    pub(super) fn is_comparison(self) -> bool {
        use Binary::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
        matches!(self, Less | LessEqual | Greater | GreaterEqual | Equal | NotEqual)
    }

    /// Returns the operator as written in expressions.
    fn sign(self) -> &'static str {
        OPERATORS.iter().find(|(_, operator, _)| *operator == self).map_or("", |(sign, ..)| sign)
    }
}

/// Returns whether a value counts as true, that is, the value is neither 0 nor NaN.
pub(super) fn is_true(value: f64) -> bool {
    value != 0.0 && !value.is_nan()
}

/// A node in the syntax tree of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Number(f64),
    /// A field, given as an index in [`Signal::operands`](super::find::Signal).
    Field(usize),
    Negative(Box<Node>),
    Not(Box<Node>),
    Binary(Binary, Box<[Node; 2]>),
    Call(&'static Function, Vec<Node>),
    /// A conversion of a value to a unit. The text is the unit as written in the expression.
    In(Box<Node>, Unit, String),
    /// A function that depends on earlier rows. The number is the index of its state in the list of
    /// [`Memory`] values.
    Series(Series, Box<Node>, usize),
}

impl Node {
    /// Returns the child nodes of this node.
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

    /// Returns whether the value in a row depends on earlier rows.
    pub(super) fn has_memory(&self) -> bool {
        matches!(self, Self::Series(..)) || self.parts().iter().any(Self::has_memory)
    }

    fn has_field(&self) -> bool {
        matches!(self, Self::Field(_)) || self.parts().iter().any(Self::has_field)
    }

    /// Returns the compared side of the first comparison, such as `x` for both `x > 50` and
    /// `50 < x`. This is the left side if it contains a field. Otherwise, it is the right side.
    pub(super) fn compared(&self) -> &Self {
        match self {
            Self::Binary(binary, both) if binary.is_truth() => {
                both[usize::from(!both[0].has_field())].compared()
            }
            Self::Not(node) => node.compared(),
            other => other,
        }
    }

    /// Returns the unit of the values as text. `fields` are the units of the operands. If a value
    /// is converted to a unit without a standard name, the unit is returned as written in the
    /// expression.
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

/// State of a function that depends on earlier rows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memory {
    /// Time and value of the previous row.
    last: Option<(i64, f64)>,
    /// Integral up to the previous row.
    sum: f64,
}

/// Input of an expression: the rows of one batch.
pub(super) struct Rows<'a> {
    /// Times of the rows, in nanoseconds of the log's clock.
    pub(super) times: &'a Int64Array,
    /// Values of all rows, for each operand.
    pub(super) fields: &'a [Vec<f64>],
    /// Unit of each operand, if known.
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
                // The units were checked when the signal was created. If the unit of the value is
                // unknown, the value is returned unchanged.
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
                    (function.value)(&row)
                });
                rows.collect()
            }
            Node::Series(series, node, number) => {
                let values = self.values(node, memory);
                let memory = &mut memory[*number];
                // A row without a time does not change the state, so the next row is compared with
                // the last row that has a time.
                let value = |(time, value): (Option<i64>, f64)| {
                    time.map_or(f64::NAN, |time| step(*series, time, value, memory))
                };
                self.times.iter().zip(values).map(value).collect()
            }
        }
    }
}

/// Applies `change` to all values in place.
fn map(mut values: Vec<f64>, change: impl Fn(f64) -> f64) -> Vec<f64> {
    for value in &mut values {
        *value = change(*value);
    }
    values
}

/// Computes a function that depends on earlier rows for the next row.
///
/// For example, the values 1, 3 and 5 at 0 s, 1 s and 3 s have the differences NaN, 2 and 2, the
/// derivatives NaN, 2 and 1, and the integrals 0, 2 and 10.
fn step(series: Series, time: i64, value: f64, memory: &mut Memory) -> f64 {
    let last = memory.last;
    let seconds = |from: i64| time.wrapping_sub(from) as f64 / 1e9;
    match series {
        Series::Derivative | Series::Difference => {
            memory.last = Some((time, value));
            let Some((before, old)) = last else { return f64::NAN };
            let change = value - old;
            match series {
                Series::Difference => change,
                // Two rows with the same time have no derivative.
                _ if time == before => f64::NAN,
                _ => change / seconds(before),
            }
        }
        Series::Integral => {
            // A missing value interrupts the integral, because the signal is unknown between the
            // rows before and after it.
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

/// Checks the units in an expression and returns the unit of its result. `fields` are the units of
/// the operands.
///
/// # Errors
/// Returns an error for incompatible units, such as `V + A`.
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
            function.measure(&all)?
        }
    })
}

/// Returns the unit of the result of a binary operator. `right` is the right operand. Powers need
/// it, because the unit of a power depends on the exponent.
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
            // Larger exponents are not accepted, as in `Unit::parse`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_equal_times_have_no_derivative() {
        let mut memory = Memory::default();
        let rows = [(0, 1.0), (0, 2.0), (1_000_000_000, 5.0)];
        let [first, same, later] =
            rows.map(|(time, value)| step(Series::Derivative, time, value, &mut memory));
        assert!(first.is_nan() && same.is_nan() && (later - 3.0).abs() < 1e-12);
    }
}
