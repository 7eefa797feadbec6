//! Messages of a bag as objects, made of their bytes without any of Python's code and without values between.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use rovelog::core::Scalar;
use rovelog::rosbag12::msg::{Array, Kind, Plan, Slot};

use crate::compat::stamp::{Duration, Time};

/// Arrays of more bytes are not kept for the next message.
const KEPT_BYTES: usize = 1024;

/// How the messages of a type become objects: the class, and its fields in order.
#[derive(FromPyObject)]
pub(crate) struct Maker(Py<PyType>, Vec<Part>);

/// A field: its name, what makes the messages in it, and what the last message had here.
struct Part {
    name: Py<PyString>,
    message: Option<Maker>,
    last: Option<Kept>,
}

/// A text or a tuple of numbers, neither of which changes, with the bytes that it was made of. Much in a log
/// stays as it was from message to message: names of frames and joints, covariances.
struct Kept {
    bytes: Vec<u8>,
    object: Py<PyAny>,
}

impl<'py> FromPyObject<'_, 'py> for Part {
    type Error = PyErr;

    fn extract(part: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (name, message) = part.extract()?;
        Ok(Self { name, message, last: None })
    }
}

impl Maker {
    /// A message; the payload decodes by the plan.
    pub(crate) fn make<'py>(
        &mut self,
        py: Python<'py>,
        plan: &Plan,
        payload: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        self.take(py, plan, &mut { payload })
    }

    fn take<'py>(&mut self, py: Python<'py>, plan: &Plan, rest: &mut &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let message = self.0.bind(py).call0()?;
        for (part, slot) in self.1.iter_mut().zip(plan.slots()) {
            let value = part.take(py, slot, rest)?;
            message.setattr(part.name.bind(py), value)?;
        }
        Ok(message)
    }
}

impl Part {
    fn take<'py>(&mut self, py: Python<'py>, slot: &Slot, rest: &mut &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let len = match slot.array {
            Array::One => return self.one(py, &slot.kind, rest),
            Array::Fixed(len) => len as usize,
            Array::Any => count(rest),
        };
        match &slot.kind {
            Kind::Byte => Ok(PyBytes::new(py, split(rest, len)).into_any()),
            Kind::Scalar(scalar) => {
                let bytes = split(rest, len * scalar.size());
                self.kept(py, bytes, || {
                    let numbers = bytes.chunks_exact(scalar.size()).map(|bytes| number(py, *scalar, bytes));
                    Ok(PyTuple::new(py, numbers)?.into_any())
                })
            }
            kind => {
                let list = PyList::empty(py);
                for _ in 0..len {
                    list.append(self.one(py, kind, rest)?)?;
                }
                Ok(list.into_any())
            }
        }
    }

    #[inline]
    fn one<'py>(&mut self, py: Python<'py>, kind: &Kind, rest: &mut &[u8]) -> PyResult<Bound<'py, PyAny>> {
        Ok(match kind {
            Kind::Scalar(scalar) => number(py, *scalar, split(rest, scalar.size())),
            Kind::Byte => number(py, Scalar::UInt8, split(rest, 1)),
            Kind::Time => {
                let [secs, nsecs] = [word(rest), word(rest)].map(i64::from);
                Bound::new(py, Time { secs, nsecs })?.into_any()
            }
            Kind::Duration => {
                let [secs, nsecs] = [word(rest), word(rest)].map(|part| part.cast_signed().into());
                Bound::new(py, Duration { secs, nsecs })?.into_any()
            }
            Kind::Text => {
                let len = count(rest);
                let bytes = split(rest, len);
                self.kept(py, bytes, || {
                    Ok(match str::from_utf8(bytes) {
                        Ok(text) => PyString::new(py, text).into_any(),
                        Err(_) => PyBytes::new(py, bytes).into_any(),
                    })
                })?
            }
            Kind::Nested(plan) => match &mut self.message {
                Some(maker) => maker.take(py, plan, rest)?,
                None => unreachable!("the maker was made of the plan's schema"),
            },
        })
    }

    /// The object that was made of the same bytes the last time, or a new one.
    #[inline]
    fn kept<'py>(
        &mut self,
        py: Python<'py>,
        bytes: &[u8],
        new: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match &mut self.last {
            Some(last) if last.bytes == bytes => Ok(last.object.bind(py).clone()),
            _ if bytes.len() > KEPT_BYTES => new(),
            last => {
                let object = new()?;
                let kept = last.get_or_insert_with(|| Kept { bytes: Vec::new(), object: py.None() });
                kept.bytes.clear();
                kept.bytes.extend_from_slice(bytes);
                kept.object = object.clone().unbind();
                Ok(object)
            }
        }
    }
}

/// The next `len` bytes; the payload was measured.
#[inline]
fn split<'a>(rest: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (bytes, behind) = rest.split_at(len);
    *rest = behind;
    bytes
}

#[inline]
fn word(rest: &mut &[u8]) -> u32 {
    u32::from_le_bytes(array(split(rest, 4)))
}

#[inline]
fn count(rest: &mut &[u8]) -> usize {
    word(rest) as usize
}

#[inline]
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("a scalar's own size")
}

/// A scalar of exactly its bytes.
#[inline]
fn number<'py>(py: Python<'py>, scalar: Scalar, bytes: &[u8]) -> Bound<'py, PyAny> {
    let int = |value: i64| PyInt::new(py, value).into_any();
    match scalar {
        Scalar::Bool => PyBool::new(py, bytes[0] != 0).to_owned().into_any(),
        Scalar::Int8 => int(i8::from_le_bytes(array(bytes)).into()),
        Scalar::UInt8 => int(bytes[0].into()),
        Scalar::Int16 => int(i16::from_le_bytes(array(bytes)).into()),
        Scalar::UInt16 => int(u16::from_le_bytes(array(bytes)).into()),
        Scalar::Int32 => int(i32::from_le_bytes(array(bytes)).into()),
        Scalar::UInt32 => int(u32::from_le_bytes(array(bytes)).into()),
        Scalar::Int64 => int(i64::from_le_bytes(array(bytes))),
        Scalar::UInt64 => PyInt::new(py, u64::from_le_bytes(array(bytes))).into_any(),
        Scalar::Float32 => PyFloat::new(py, f32::from_le_bytes(array(bytes)).into()).into_any(),
        Scalar::Float64 => PyFloat::new(py, f64::from_le_bytes(array(bytes))).into_any(),
    }
}
