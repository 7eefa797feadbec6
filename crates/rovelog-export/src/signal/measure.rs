//! Units of the values in an expression, as far as they are known.

use super::unit::Unit;

/// Unit of a value, as far as known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Measure {
    /// The log does not state the unit of a field.
    Unknown,
    /// A number without a unit, such as a literal. It takes the unit of the value that it is
    /// compared with or added to.
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

    /// Returns the unit as text for an error message.
    pub(super) fn write(self) -> String {
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

/// Returns the common unit of two values that are added or compared. `sign` is the operator.
pub(super) fn shared(a: Measure, b: Measure, sign: &str) -> Result<Measure, String> {
    match (a, b) {
        (Measure::Known(one), Measure::Known(other)) if !one.is_same(other) => {
            let (a, b) = (a.write(), b.write());
            Err(format!("the units of {a} {sign} {b} differ; convert one of them with in(SIGNAL, UNIT)"))
        }
        (Measure::Known(_), _) => Ok(a),
        (_, Measure::Known(_)) => Ok(b),
        (Measure::Literal, Measure::Literal) => Ok(Measure::Literal),
        _ => Ok(Measure::Unknown),
    }
}
