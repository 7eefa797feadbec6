//! `Time` and `Duration` of ROS messages, as the rosbag package has them.

use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError, PyZeroDivisionError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyType;

const NANOS: i64 = 1_000_000_000;

/// Seconds as scripts pass them.
#[derive(FromPyObject)]
enum Seconds {
    Whole(i64),
    Float(f64),
}

impl Seconds {
    /// Returns seconds and nanoseconds; a float allows no separate nanoseconds.
    fn with(self, nsecs: i64) -> PyResult<(i64, i64)> {
        match self {
            Self::Whole(secs) => Ok((secs, nsecs)),
            Self::Float(_) if nsecs != 0 => {
                Err(PyValueError::new_err("where the seconds are a float, there are no nanoseconds"))
            }
            Self::Float(secs) if secs.is_finite() => {
                let whole = secs.trunc();
                #[expect(clippy::cast_possible_truncation, reason = "saturates far outside of any time")]
                Ok(carried(whole as i64, ((secs - whole) * 1e9) as i64))
            }
            Self::Float(_) => Err(PyValueError::new_err("the seconds are no number")),
        }
    }
}

/// Normalises nanoseconds to less than a second.
fn carried(secs: i64, nsecs: i64) -> (i64, i64) {
    (secs.saturating_add(nsecs.div_euclid(NANOS)), nsecs.rem_euclid(NANOS))
}

/// Common parts of both classes; their operators are added to them.
macro_rules! stamp {
    ($class:ident, $what:literal, $demand:path, { $($sums:item)* }) => {
        #[doc = $what]
        #[pyclass(get_all, set_all, from_py_object, module = "rovelog.compat.rosbag")]
        #[derive(Clone)]
        pub(crate) struct $class {
            pub(crate) secs: i64,
            pub(crate) nsecs: i64,
        }

        impl $class {
            fn nanos(&self) -> i128 {
                i128::from(self.secs) * i128::from(NANOS) + i128::from(self.nsecs)
            }

            pub(crate) fn carried(secs: i64, nsecs: i64) -> Self {
                let (secs, nsecs) = carried(secs, nsecs);
                Self { secs, nsecs }
            }
        }

        #[pymethods]
        impl $class {
            #[new]
            #[pyo3(signature = (secs=Seconds::Whole(0), nsecs=0), text_signature = "(secs=0, nsecs=0)")]
            fn new(secs: Seconds, nsecs: i64) -> PyResult<Self> {
                let (secs, nsecs) = secs.with(nsecs)?;
                $demand(Self::carried(secs, nsecs))
            }

            /// From seconds as a float.
            #[staticmethod]
            fn from_sec(float_secs: f64) -> PyResult<Self> {
                Self::new(Seconds::Float(float_secs), 0)
            }

            /// Seconds as a float, which is not exact.
            fn to_sec(&self) -> f64 {
                self.secs as f64 + self.nsecs as f64 / 1e9
            }

            /// Nanoseconds, exact.
            fn to_nsec(&self) -> PyResult<i64> {
                i64::try_from(self.nanos())
                    .map_err(|_| PyOverflowError::new_err("more nanoseconds than 64 bits hold"))
            }

            /// Sets both parts.
            fn set(&mut self, secs: i64, nsecs: i64) {
                (self.secs, self.nsecs) = (secs, nsecs);
            }

            /// Carries nanoseconds of a second or more to the seconds.
            fn canon(&mut self) {
                (self.secs, self.nsecs) = carried(self.secs, self.nsecs);
            }

            /// Returns whether it is zero.
            fn is_zero(&self) -> bool {
                self.secs == 0 && self.nsecs == 0
            }

            fn __bool__(&self) -> bool {
                !self.is_zero()
            }

            fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<bool> {
                match (other.extract(), op) {
                    (Ok(Other::$class(other)), _) => Ok(op.matches(self.nanos().cmp(&other.nanos()))),
                    (_, CompareOp::Eq) => Ok(false),
                    (_, CompareOp::Ne) => Ok(true),
                    _ => Err(PyTypeError::new_err(concat!(
                        "a ",
                        stringify!($class),
                        " is compared with its like only"
                    ))),
                }
            }

            fn __hash__(&self) -> u64 {
                // Equal times have equal nanoseconds, and so equal parts after normalisation.
                let (secs, nsecs) = carried(self.secs, self.nsecs);
                secs.wrapping_mul(NANOS).wrapping_add(nsecs).cast_unsigned()
            }

            fn __repr__(&self) -> String {
                format!(concat!(stringify!($class), "({}, {})"), self.secs, self.nsecs)
            }

            fn __str__(&self) -> String {
                self.nanos().to_string()
            }

            fn __reduce__(this: &Bound<'_, Self>) -> (Py<PyAny>, (), (i64, i64)) {
                let held = this.borrow();
                (this.get_type().into_any().unbind(), (), (held.secs, held.nsecs))
            }

            fn __setstate__(&mut self, state: (i64, i64)) {
                (self.secs, self.nsecs) = state;
            }

            $($sums)*
        }
    };
}

/// Second operand of an addition, subtraction or comparison.
enum Other {
    Time(Time),
    Duration(Duration),
}

impl<'py> FromPyObject<'_, 'py> for Other {
    type Error = PyErr;

    /// Takes our own classes, and those of other packages with the same names and parts (genpy, rospy).
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(time) = object.cast::<Time>() {
            return Ok(Self::Time(time.borrow().clone()));
        }
        if let Ok(span) = object.cast::<Duration>() {
            return Ok(Self::Duration(span.borrow().clone()));
        }
        let py = object.py();
        for class in object.get_type().mro() {
            let name = class.getattr(intern!(py, "__name__"))?;
            let is = |wanted| name.eq(wanted);
            let parts = || -> PyResult<(i64, i64)> {
                let part = |name| object.getattr(name)?.extract();
                Ok((part(intern!(py, "secs"))?, part(intern!(py, "nsecs"))?))
            };
            if is("Time")? {
                let (secs, nsecs) = parts()?;
                return Ok(Self::Time(Time { secs, nsecs }));
            }
            if is("Duration")? {
                let (secs, nsecs) = parts()?;
                return Ok(Self::Duration(Duration { secs, nsecs }));
            }
        }
        Err(PyTypeError::new_err("neither a Time nor a Duration"))
    }
}

/// Classes of the times in messages: ours, or those of genpy in a process that uses it. Ours keep
/// nanoseconds of a second or more, which some bags have, so that a message is written as it was read.
pub(crate) struct Stamps(pub(crate) Option<(Py<PyType>, Py<PyType>)>);

impl Stamps {
    pub(crate) fn time<'py>(&self, py: Python<'py>, secs: i64, nsecs: i64) -> PyResult<Bound<'py, PyAny>> {
        match &self.0 {
            None => Ok(Bound::new(py, Time { secs, nsecs })?.into_any()),
            Some((time, _)) => time.bind(py).call1((secs, nsecs)),
        }
    }

    pub(crate) fn duration<'py>(
        &self,
        py: Python<'py>,
        secs: i64,
        nsecs: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        match &self.0 {
            None => Ok(Bound::new(py, Duration { secs, nsecs })?.into_any()),
            Some((_, duration)) => duration.bind(py).call1((secs, nsecs)),
        }
    }
}

/// Divisor of a duration.
enum Divisor {
    Number(f64),
    Duration(Duration),
}

impl<'py> FromPyObject<'_, 'py> for Divisor {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match object.extract() {
            Ok(Other::Duration(span)) => Ok(Self::Duration(span)),
            Ok(Other::Time(_)) => {
                Err(PyTypeError::new_err("a Duration is divided by a number or a Duration"))
            }
            Err(_) => Ok(Self::Number(object.extract()?)),
        }
    }
}

impl Divisor {
    /// Returns the divisor in seconds or as a number.
    fn value(&self) -> PyResult<f64> {
        let value = match self {
            Self::Number(number) => *number,
            Self::Duration(span) => span.to_sec(),
        };
        if value == 0.0 { Err(PyZeroDivisionError::new_err("division by zero")) } else { Ok(value) }
    }
}

/// Returns the quotient and the remainder of floats as Python does: the remainder has the sign of
/// the divisor.
fn floored(value: f64, by: f64) -> (f64, f64) {
    let mut rest = value % by;
    if rest != 0.0 && (rest < 0.0) != (by < 0.0) {
        rest += by;
    }
    (((value - rest) / by).round(), rest)
}

/// Refuses a time before 1970, as the ROS class does.
fn after_1970(time: Time) -> PyResult<Time> {
    if time.secs < 0 { Err(PyTypeError::new_err("a Time is not below zero")) } else { Ok(time) }
}

stamp!(Time, "A point in time: seconds and nanoseconds.", after_1970, {
    /// Seconds as a float, which is not exact.
    fn to_time(&self) -> f64 {
        self.to_sec()
    }

    fn __add__(&self, other: Other) -> PyResult<Self> {
        match other {
            Other::Duration(other) => after_1970(Self::carried(
                self.secs.saturating_add(other.secs),
                self.nsecs.saturating_add(other.nsecs),
            )),
            Other::Time(_) => Err(PyTypeError::new_err("two times have no sum")),
        }
    }

    fn __radd__(&self, other: Other) -> PyResult<Self> {
        self.__add__(other)
    }

    fn __sub__<'py>(&self, py: Python<'py>, other: Other) -> PyResult<Bound<'py, PyAny>> {
        let span = |secs, nsecs| (self.secs.saturating_sub(secs), self.nsecs.saturating_sub(nsecs));
        match other {
            Other::Time(other) => {
                let (secs, nsecs) = span(other.secs, other.nsecs);
                Ok(Bound::new(py, Duration::carried(secs, nsecs))?.into_any())
            }
            Other::Duration(other) => {
                let (secs, nsecs) = span(other.secs, other.nsecs);
                Ok(Bound::new(py, after_1970(Self::carried(secs, nsecs))?)?.into_any())
            }
        }
    }

    fn __rsub__(&self, other: Other) -> PyResult<Duration> {
        match other {
            Other::Time(other) => Ok(Duration::carried(
                other.secs.saturating_sub(self.secs),
                other.nsecs.saturating_sub(self.nsecs),
            )),
            Other::Duration(_) => Err(PyTypeError::new_err("a Time is not subtracted from a Duration")),
        }
    }
});

stamp!(Duration, "A span of time: seconds and nanoseconds.", Ok, {
    fn __add__<'py>(&self, py: Python<'py>, other: Other) -> PyResult<Bound<'py, PyAny>> {
        match other {
            Other::Time(time) => Ok(Bound::new(py, time.__add__(Other::Duration(self.clone()))?)?.into_any()),
            Other::Duration(other) => {
                let (secs, nsecs) =
                    (self.secs.saturating_add(other.secs), self.nsecs.saturating_add(other.nsecs));
                Ok(Bound::new(py, Self::carried(secs, nsecs))?.into_any())
            }
        }
    }

    fn __radd__<'py>(&self, py: Python<'py>, other: Other) -> PyResult<Bound<'py, PyAny>> {
        self.__add__(py, other)
    }

    fn __sub__(&self, other: Other) -> PyResult<Self> {
        match other {
            Other::Duration(other) => Ok(Self::carried(
                self.secs.saturating_sub(other.secs),
                self.nsecs.saturating_sub(other.nsecs),
            )),
            Other::Time(_) => Err(PyTypeError::new_err("a Time is not subtracted from a Duration")),
        }
    }

    fn __rsub__<'py>(&self, py: Python<'py>, other: Other) -> PyResult<Bound<'py, PyAny>> {
        match other {
            Other::Time(time) => time.__sub__(py, Other::Duration(self.clone())),
            Other::Duration(span) => {
                Ok(Bound::new(py, span.__sub__(Other::Duration(self.clone()))?)?.into_any())
            }
        }
    }

    fn __neg__(&self) -> Self {
        Self::carried(self.secs.saturating_neg(), self.nsecs.saturating_neg())
    }

    fn __abs__(&self) -> Self {
        if self.secs < 0 { self.__neg__() } else { self.clone() }
    }

    fn __mul__(&self, by: Seconds) -> PyResult<Self> {
        match by {
            Seconds::Whole(by) => {
                Ok(Self::carried(self.secs.saturating_mul(by), self.nsecs.saturating_mul(by)))
            }
            Seconds::Float(by) => Self::from_sec(self.to_sec() * by),
        }
    }

    fn __rmul__(&self, by: Seconds) -> PyResult<Self> {
        self.__mul__(by)
    }

    fn __truediv__<'py>(&self, py: Python<'py>, by: Divisor) -> PyResult<Bound<'py, PyAny>> {
        let quotient = self.to_sec() / by.value()?;
        match by {
            Divisor::Number(_) => Ok(Bound::new(py, Self::from_sec(quotient)?)?.into_any()),
            Divisor::Duration(_) => Ok(quotient.into_pyobject(py)?.into_any()),
        }
    }

    fn __floordiv__<'py>(&self, py: Python<'py>, by: Divisor) -> PyResult<Bound<'py, PyAny>> {
        let (quotient, _) = floored(self.to_sec(), by.value()?);
        match by {
            Divisor::Number(_) => Ok(Bound::new(py, Self::from_sec(quotient)?)?.into_any()),
            #[expect(clippy::cast_possible_truncation, reason = "saturates far outside of any count")]
            Divisor::Duration(_) => Ok((quotient as i64).into_pyobject(py)?.into_any()),
        }
    }

    fn __mod__(&self, by: Divisor) -> PyResult<Self> {
        Self::from_sec(floored(self.to_sec(), by.value()?).1)
    }

    fn __divmod__<'py>(&self, py: Python<'py>, by: Divisor) -> PyResult<(Bound<'py, PyAny>, Self)> {
        let rest = Self::from_sec(floored(self.to_sec(), by.value()?).1)?;
        Ok((self.__floordiv__(py, by)?, rest))
    }
});
