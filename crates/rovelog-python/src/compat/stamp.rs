//! The classes `Time` and `Duration` for times in ROS messages, with the API of genpy.

use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError, PyZeroDivisionError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

const NANOS: i64 = 1_000_000_000;

/// A number passed by Python, as an integer or as a float.
#[derive(Clone, Copy, FromPyObject)]
enum Number {
    Whole(i64),
    Float(f64),
}

impl Number {
    /// Returns the number without its fraction.
    fn truncated(self) -> PyResult<i64> {
        match self {
            Self::Whole(number) => Ok(number),
            #[expect(clippy::cast_possible_truncation, reason = "saturates far outside of any time")]
            Self::Float(number) if number.is_finite() => Ok(number.trunc() as i64),
            Self::Float(_) => Err(PyValueError::new_err("a time cannot be made of infinity or NaN")),
        }
    }

    fn is_zero(self) -> bool {
        match self {
            Self::Whole(number) => number == 0,
            Self::Float(number) => number == 0.0,
        }
    }
}

/// Returns normalized seconds and nanoseconds for the arguments of a constructor.
///
/// As in genpy, nanoseconds may be a float, which is truncated. Float seconds cannot be combined
/// with nanoseconds.
fn seconds_and_nanos(secs: Number, nsecs: Number) -> PyResult<(i64, i64)> {
    let nsecs = match secs {
        Number::Whole(_) => nsecs,
        Number::Float(secs) if nsecs.is_zero() => Number::Float(secs.fract() * 1e9),
        Number::Float(_) => {
            return Err(PyValueError::new_err("nanoseconds cannot be combined with float seconds"));
        }
    };
    Ok(normalized(secs.truncated()?, nsecs.truncated()?))
}

/// Normalizes a time so that its nanoseconds are at least zero and less than one second. For
/// example, (1, -1) becomes (0, 999 999 999).
fn normalized(secs: i64, nsecs: i64) -> (i64, i64) {
    (secs.saturating_add(nsecs.div_euclid(NANOS)), nsecs.rem_euclid(NANOS))
}

/// Defines a class with the methods that `Time` and `Duration` have in common.
///
/// `$validate` is a function that checks new values. `$sums` are additional methods of the class.
/// As in genpy, Python classes can be derived from the class. Operators and `from_sec` then return
/// objects of the derived class.
macro_rules! stamp {
    ($class:ident, $what:literal, $validate:path, { $($sums:item)* }) => {
        #[doc = $what]
        #[pyclass(subclass, get_all, set_all, from_py_object, module = "rovelog.compat.rosbag")]
        #[derive(Clone)]
        pub(crate) struct $class {
            pub(crate) secs: i64,
            pub(crate) nsecs: i64,
        }

        impl $class {
            fn nanos(&self) -> i128 {
                i128::from(self.secs) * i128::from(NANOS) + i128::from(self.nsecs)
            }

            /// Returns the seconds and the nanoseconds of this value plus `secs` and `nsecs`.
            /// Scripts may set them to any 64-bit number, so sums saturate instead of overflowing.
            fn plus(&self, secs: i64, nsecs: i64) -> (i64, i64) {
                (self.secs.saturating_add(secs), self.nsecs.saturating_add(nsecs))
            }

            /// Returns the seconds and the nanoseconds of this value minus `secs` and `nsecs`.
            fn minus(&self, secs: i64, nsecs: i64) -> (i64, i64) {
                (self.secs.saturating_sub(secs), self.nsecs.saturating_sub(nsecs))
            }
        }

        #[pymethods]
        impl $class {
            /// Names of the attributes. Scripts read them to handle times like messages.
            #[classattr]
            #[pyo3(name = "__slots__")]
            fn slots() -> [&'static str; 2] {
                ["secs", "nsecs"]
            }

            #[classattr]
            #[pyo3(name = "_slot_types")]
            fn slot_types() -> [&'static str; 2] {
                ["int32", "int32"]
            }

            // The arguments are ignored here, because they are those of `__init__` in a derived
            // class.
            #[new]
            #[pyo3(signature = (*_args, **_kwargs), text_signature = "(secs=0, nsecs=0)")]
            fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
                Self { secs: 0, nsecs: 0 }
            }

            #[pyo3(signature = (secs=Number::Whole(0), nsecs=Number::Whole(0)))]
            fn __init__(&mut self, secs: Number, nsecs: Number) -> PyResult<()> {
                let (secs, nsecs) = seconds_and_nanos(secs, nsecs)?;
                $validate(Self { secs, nsecs }).map(|valid| *self = valid)
            }

            /// Creates a time or a duration from a number of seconds.
            #[classmethod]
            fn from_sec<'py>(
                class: &Bound<'py, PyType>,
                float_secs: f64,
            ) -> PyResult<Bound<'py, PyAny>> {
                class.call1(seconds_and_nanos(Number::Float(float_secs), Number::Whole(0))?)
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

            fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
                let py = this.py();
                // Unpickling does not call `__init__`, which may require arguments in a derived
                // class.
                let new = py.import(intern!(py, "copyreg"))?.getattr(intern!(py, "__newobj__"))?;
                let stamp = this.borrow();
                (new, (this.get_type(),), (stamp.secs, stamp.nsecs)).into_pyobject(py)
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

/// Returns a duration as a Python object.
fn duration(py: Python<'_>, (secs, nsecs): (i64, i64)) -> PyResult<Bound<'_, PyAny>> {
    py.get_type::<Duration>().call1((secs, nsecs))
}

stamp!(Time, "A point in time: seconds and nanoseconds.", check_time, {
    /// Returns the seconds as a float, like `to_sec`.
    fn to_time(&self) -> f64 {
        self.to_sec()
    }

    fn __add__<'py>(this: &Bound<'py, Self>, other: Other) -> PyResult<Bound<'py, PyAny>> {
        let time = this.borrow().clone();
        match other {
            Other::Duration(span) => this.get_type().call1(time.plus(span.secs, span.nsecs)),
            Other::Time(_) => Err(PyTypeError::new_err("two Times cannot be added")),
        }
    }

    fn __radd__<'py>(this: &Bound<'py, Self>, other: Other) -> PyResult<Bound<'py, PyAny>> {
        Self::__add__(this, other)
    }

    fn __sub__<'py>(this: &Bound<'py, Self>, other: Other) -> PyResult<Bound<'py, PyAny>> {
        let time = this.borrow().clone();
        match other {
            Other::Time(other) => duration(this.py(), time.minus(other.secs, other.nsecs)),
            Other::Duration(span) => this.get_type().call1(time.minus(span.secs, span.nsecs)),
        }
    }

    fn __rsub__<'py>(&self, py: Python<'py>, other: Other) -> PyResult<Bound<'py, PyAny>> {
        match other {
            Other::Time(other) => duration(py, other.minus(self.secs, self.nsecs)),
            Other::Duration(_) => Err(PyTypeError::new_err("a Time cannot be subtracted from a Duration")),
        }
    }
});

stamp!(Duration, "A span of time: seconds and nanoseconds.", Ok, {
    fn __add__<'py>(this: &Bound<'py, Self>, other: Other) -> PyResult<Bound<'py, PyAny>> {
        let span = this.borrow().clone();
        match other {
            Other::Time(time) => this.py().get_type::<Time>().call1(time.plus(span.secs, span.nsecs)),
            Other::Duration(other) => this.get_type().call1(span.plus(other.secs, other.nsecs)),
        }
    }

    fn __radd__<'py>(this: &Bound<'py, Self>, other: Other) -> PyResult<Bound<'py, PyAny>> {
        Self::__add__(this, other)
    }

    fn __sub__<'py>(this: &Bound<'py, Self>, other: Other) -> PyResult<Bound<'py, PyAny>> {
        let span = this.borrow().clone();
        match other {
            Other::Duration(other) => this.get_type().call1(span.minus(other.secs, other.nsecs)),
            Other::Time(_) => Err(PyTypeError::new_err("a Time cannot be subtracted from a Duration")),
        }
    }

    fn __rsub__<'py>(this: &Bound<'py, Self>, other: Other) -> PyResult<Bound<'py, PyAny>> {
        let span = this.borrow().clone();
        match other {
            Other::Time(time) => this.py().get_type::<Time>().call1(time.minus(span.secs, span.nsecs)),
            Other::Duration(other) => this.get_type().call1(other.minus(span.secs, span.nsecs)),
        }
    }

    fn __neg__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let span = this.borrow().clone();
        this.get_type().call1((span.secs.saturating_neg(), span.nsecs.saturating_neg()))
    }

    fn __abs__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let is_negative = this.borrow().secs < 0;
        if is_negative { Self::__neg__(this) } else { Ok(this.clone().into_any()) }
    }

    fn __mul__<'py>(this: &Bound<'py, Self>, by: Number) -> PyResult<Bound<'py, PyAny>> {
        let span = this.borrow().clone();
        match by {
            Number::Whole(by) => {
                this.get_type().call1((span.secs.saturating_mul(by), span.nsecs.saturating_mul(by)))
            }
            Number::Float(by) => Self::from_sec(&this.get_type(), span.to_sec() * by),
        }
    }

    fn __rmul__<'py>(this: &Bound<'py, Self>, by: Number) -> PyResult<Bound<'py, PyAny>> {
        Self::__mul__(this, by)
    }

    fn __truediv__<'py>(this: &Bound<'py, Self>, by: Divisor) -> PyResult<Bound<'py, PyAny>> {
        let quotient = this.borrow().to_sec() / by.value()?;
        match by {
            Divisor::Number(_) => Self::from_sec(&this.get_type(), quotient),
            Divisor::Duration(_) => Ok(quotient.into_pyobject(this.py())?.into_any()),
        }
    }

    fn __floordiv__<'py>(this: &Bound<'py, Self>, by: Divisor) -> PyResult<Bound<'py, PyAny>> {
        let (quotient, _) = floored(this.borrow().to_sec(), by.value()?);
        match by {
            Divisor::Number(_) => Self::from_sec(&this.get_type(), quotient),
            #[expect(clippy::cast_possible_truncation, reason = "saturates far outside of any count")]
            Divisor::Duration(_) => Ok((quotient as i64).into_pyobject(this.py())?.into_any()),
        }
    }

    fn __mod__<'py>(this: &Bound<'py, Self>, by: Divisor) -> PyResult<Bound<'py, PyAny>> {
        let (_, rest) = floored(this.borrow().to_sec(), by.value()?);
        Self::from_sec(&this.get_type(), rest)
    }

    fn __divmod__<'py>(
        this: &Bound<'py, Self>,
        by: Divisor,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let (_, rest) = floored(this.borrow().to_sec(), by.value()?);
        Ok((Self::__floordiv__(this, by)?, Self::from_sec(&this.get_type(), rest)?))
    }
});
