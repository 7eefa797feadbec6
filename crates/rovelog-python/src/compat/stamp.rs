//! The classes `Time` and `Duration` for times in ROS messages, with the API of genpy.

use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError, PyZeroDivisionError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyType;

const NANOS: i64 = 1_000_000_000;

/// Seconds passed by Python, as an integer or as a float.
#[derive(FromPyObject)]
enum Seconds {
    Whole(i64),
    Float(f64),
}

impl Seconds {
    /// Returns these seconds plus `nsecs` nanoseconds, in normalized form.
    ///
    /// Like genpy, returns an exception if the seconds are a float and `nsecs` is not zero.
    fn with(self, nsecs: i64) -> PyResult<(i64, i64)> {
        match self {
            Self::Whole(secs) => Ok((secs, nsecs)),
            Self::Float(_) if nsecs != 0 => {
                Err(PyValueError::new_err("nanoseconds cannot be combined with float seconds"))
            }
            Self::Float(secs) if secs.is_finite() => {
                let whole = secs.trunc();
                #[expect(clippy::cast_possible_truncation, reason = "saturates far outside of any time")]
                Ok(normalized(whole as i64, ((secs - whole) * 1e9) as i64))
            }
            Self::Float(_) => Err(PyValueError::new_err("the seconds are not a finite number")),
        }
    }
}

/// Normalizes a time so that its nanoseconds are at least zero and less than one second. For
/// example, (1, -1) becomes (0, 999 999 999).
fn normalized(secs: i64, nsecs: i64) -> (i64, i64) {
    (secs.saturating_add(nsecs.div_euclid(NANOS)), nsecs.rem_euclid(NANOS))
}

/// Defines a class with the methods that `Time` and `Duration` have in common.
///
/// `$validate` is a function that checks new values. `$sums` are additional methods of the class.
macro_rules! stamp {
    ($class:ident, $what:literal, $validate:path, { $($sums:item)* }) => {
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

            pub(crate) fn normalized(secs: i64, nsecs: i64) -> Self {
                let (secs, nsecs) = normalized(secs, nsecs);
                Self { secs, nsecs }
            }
        }

        #[pymethods]
        impl $class {
            #[new]
            #[pyo3(signature = (secs=Seconds::Whole(0), nsecs=0), text_signature = "(secs=0, nsecs=0)")]
            fn new(secs: Seconds, nsecs: i64) -> PyResult<Self> {
                let (secs, nsecs) = secs.with(nsecs)?;
                $validate(Self::normalized(secs, nsecs))
            }

            /// Creates a time or a duration from a number of seconds.
            #[staticmethod]
            fn from_sec(float_secs: f64) -> PyResult<Self> {
                Self::new(Seconds::Float(float_secs), 0)
            }

            /// Returns the seconds as a float. The result is rounded, because a float has 53 bits.
            fn to_sec(&self) -> f64 {
                self.secs as f64 + self.nsecs as f64 / 1e9
            }

            /// Returns the nanoseconds as an exact integer.
            fn to_nsec(&self) -> PyResult<i64> {
                i64::try_from(self.nanos())
                    .map_err(|_| PyOverflowError::new_err("the nanoseconds do not fit into 64 bits"))
            }

            /// Sets seconds and nanoseconds without normalizing them.
            fn set(&mut self, secs: i64, nsecs: i64) {
                (self.secs, self.nsecs) = (secs, nsecs);
            }

            /// Normalizes the value, so that its nanoseconds are at least zero and less than a
            /// second.
            fn canon(&mut self) {
                (self.secs, self.nsecs) = normalized(self.secs, self.nsecs);
            }

            /// Returns true if seconds and nanoseconds are zero.
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
                        " can only be compared with a ",
                        stringify!($class)
                    ))),
                }
            }

            fn __hash__(&self) -> u64 {
                // Equal values may have different seconds and nanoseconds, such as (1, 0) and (0,
                // 1e9), but they must have the same hash. So the hash is computed from the
                // normalized value.
                let (secs, nsecs) = normalized(self.secs, self.nsecs);
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

/// Second operand of an addition, a subtraction or a comparison with a time.
enum Other {
    Time(Time),
    Duration(Duration),
}

impl<'py> FromPyObject<'_, 'py> for Other {
    type Error = PyErr;

    /// Accepts an object of a class in this module. Also accepts an object of a class in genpy or
    /// rospy, because these classes have the same names and attributes.
    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(time) = object.cast::<Time>() {
            return Ok(Self::Time(time.borrow().clone()));
        }
        if let Ok(span) = object.cast::<Duration>() {
            return Ok(Self::Duration(span.borrow().clone()));
        }
        let py = object.py();
        // `rospy.Time` is derived from `genpy.Time`, so the names of all base classes are compared.
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

/// Python classes for the times in messages. `None` selects the classes of this module. If the
/// process has imported genpy, they are its classes `Time` and `Duration`.
///
/// Some bags contain times whose nanoseconds are a second or more. The classes of this module do
/// not normalize such times. So a message that is read and written again keeps its bytes.
pub(crate) struct TimeClasses(pub(crate) Option<(Py<PyType>, Py<PyType>)>);

impl TimeClasses {
    /// Returns a Python object for a time.
    pub(crate) fn time<'py>(&self, py: Python<'py>, secs: i64, nsecs: i64) -> PyResult<Bound<'py, PyAny>> {
        match &self.0 {
            None => Ok(Bound::new(py, Time { secs, nsecs })?.into_any()),
            Some((time, _)) => time.bind(py).call1((secs, nsecs)),
        }
    }

    /// Returns a Python object for a duration.
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

/// Divisor of a duration, which is a number or another duration.
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
                Err(PyTypeError::new_err("a Duration can only be divided by a number or a Duration"))
            }
            Err(_) => Ok(Self::Number(object.extract()?)),
        }
    }
}

impl Divisor {
    /// Returns the divisor as a float. A duration is converted to seconds. Returns an exception if
    /// the divisor is zero.
    fn value(&self) -> PyResult<f64> {
        let value = match self {
            Self::Number(number) => *number,
            Self::Duration(span) => span.to_sec(),
        };
        if value == 0.0 { Err(PyZeroDivisionError::new_err("division by zero")) } else { Ok(value) }
    }
}

/// Returns the quotient and the remainder of two floats.
///
/// The remainder has the sign of the divisor, as in Python and unlike in Rust. For example, -7
/// divided by 2 is -4 with the remainder 1.
fn floored(value: f64, by: f64) -> (f64, f64) {
    let mut rest = value % by;
    if rest != 0.0 && (rest < 0.0) != (by < 0.0) {
        rest += by;
    }
    // A rounding error can make the result of the division slightly different from an integer.
    (((value - rest) / by).round(), rest)
}

/// Like genpy, returns an exception if the time is before 1970.
fn check_time(time: Time) -> PyResult<Time> {
    if time.secs < 0 { Err(PyTypeError::new_err("a Time cannot be negative")) } else { Ok(time) }
}

stamp!(Time, "A point in time: seconds and nanoseconds.", check_time, {
    /// Returns the seconds as a float, like `to_sec`.
    fn to_time(&self) -> f64 {
        self.to_sec()
    }

    fn __add__(&self, other: Other) -> PyResult<Self> {
        match other {
            // Scripts may set the seconds to any 64-bit number. So sums saturate instead of
            // overflowing.
            Other::Duration(other) => check_time(Self::normalized(
                self.secs.saturating_add(other.secs),
                self.nsecs.saturating_add(other.nsecs),
            )),
            Other::Time(_) => Err(PyTypeError::new_err("two Times cannot be added")),
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
                Ok(Bound::new(py, Duration::normalized(secs, nsecs))?.into_any())
            }
            Other::Duration(other) => {
                let (secs, nsecs) = span(other.secs, other.nsecs);
                Ok(Bound::new(py, check_time(Self::normalized(secs, nsecs))?)?.into_any())
            }
        }
    }

    fn __rsub__(&self, other: Other) -> PyResult<Duration> {
        match other {
            Other::Time(other) => Ok(Duration::normalized(
                other.secs.saturating_sub(self.secs),
                other.nsecs.saturating_sub(self.nsecs),
            )),
            Other::Duration(_) => Err(PyTypeError::new_err("a Time cannot be subtracted from a Duration")),
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
                Ok(Bound::new(py, Self::normalized(secs, nsecs))?.into_any())
            }
        }
    }

    fn __radd__<'py>(&self, py: Python<'py>, other: Other) -> PyResult<Bound<'py, PyAny>> {
        self.__add__(py, other)
    }

    fn __sub__(&self, other: Other) -> PyResult<Self> {
        match other {
            Other::Duration(other) => Ok(Self::normalized(
                self.secs.saturating_sub(other.secs),
                self.nsecs.saturating_sub(other.nsecs),
            )),
            Other::Time(_) => Err(PyTypeError::new_err("a Time cannot be subtracted from a Duration")),
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
        Self::normalized(self.secs.saturating_neg(), self.nsecs.saturating_neg())
    }

    fn __abs__(&self) -> Self {
        if self.secs < 0 { self.__neg__() } else { self.clone() }
    }

    fn __mul__(&self, by: Seconds) -> PyResult<Self> {
        match by {
            Seconds::Whole(by) => {
                Ok(Self::normalized(self.secs.saturating_mul(by), self.nsecs.saturating_mul(by)))
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
