//! `Time` and `Duration` of ROS messages, as the rosbag package has them.

use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;

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
    ($class:ident, $what:literal, { $($sums:item)* }) => {
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
                Ok(Self { secs, nsecs })
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

            /// Returns whether it is zero.
            fn is_zero(&self) -> bool {
                self.secs == 0 && self.nsecs == 0
            }

            fn __bool__(&self) -> bool {
                !self.is_zero()
            }

            fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<bool> {
                match other.cast::<Self>() {
                    Ok(other) => Ok(op.matches(self.nanos().cmp(&other.borrow().nanos()))),
                    Err(_) => match op {
                        CompareOp::Eq => Ok(false),
                        CompareOp::Ne => Ok(true),
                        _ => Err(PyTypeError::new_err(concat!(
                            "a ",
                            stringify!($class),
                            " is compared with its like only"
                        ))),
                    },
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

            fn __reduce__(this: &Bound<'_, Self>) -> (Py<PyAny>, (i64, i64)) {
                let held = this.borrow();
                (this.get_type().into_any().unbind(), (held.secs, held.nsecs))
            }

            $($sums)*
        }
    };
}

/// Second operand of an addition or subtraction.
#[derive(FromPyObject)]
enum Other {
    Time(Time),
    Duration(Duration),
}

stamp!(Time, "A point in time: seconds and nanoseconds.", {
    /// Seconds as a float, which is not exact.
    fn to_time(&self) -> f64 {
        self.to_sec()
    }

    fn __add__(&self, other: Duration) -> Self {
        Self::carried(self.secs.saturating_add(other.secs), self.nsecs.saturating_add(other.nsecs))
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
                Ok(Bound::new(py, Self::carried(secs, nsecs))?.into_any())
            }
        }
    }
});

stamp!(Duration, "A span of time: seconds and nanoseconds.", {
    fn __add__<'py>(&self, py: Python<'py>, other: Other) -> PyResult<Bound<'py, PyAny>> {
        match other {
            Other::Time(time) => Ok(Bound::new(py, time.__add__(self.clone()))?.into_any()),
            Other::Duration(other) => {
                let (secs, nsecs) =
                    (self.secs.saturating_add(other.secs), self.nsecs.saturating_add(other.nsecs));
                Ok(Bound::new(py, Self::carried(secs, nsecs))?.into_any())
            }
        }
    }

    fn __sub__(&self, other: Self) -> Self {
        Self::carried(self.secs.saturating_sub(other.secs), self.nsecs.saturating_sub(other.nsecs))
    }

    fn __neg__(&self) -> Self {
        Self::carried(self.secs.saturating_neg(), self.nsecs.saturating_neg())
    }

    fn __abs__(&self) -> Self {
        if self.secs < 0 { self.__neg__() } else { self.clone() }
    }
});
