//! Messages of a bag as objects, made directly from their bytes without Python code.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use rovelog::core::Scalar;
use rovelog::core::layout::{Element, Layout, Len, Number as _, Slot};

use crate::compat::stamp::Stamps;

/// Arrays of more bytes are not kept for the next message.
const KEPT_BYTES: usize = 1024;

/// Conversion of a type's messages to objects.
pub(crate) struct Maker {
    class: Py<PyType>,
    /// `__new__` of the class: `__init__` is for scripts, and fills all fields.
    new: Py<PyAny>,
    /// The fields in order.
    parts: Vec<Part>,
}

impl<'py> FromPyObject<'_, 'py> for Maker {
    type Error = PyErr;

    /// From the class and its fields.
    fn extract(maker: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (class, parts): (Bound<'py, PyType>, _) = maker.extract()?;
        let new = class.getattr(intern!(maker.py(), "__new__"))?.unbind();
        Ok(Self { class: class.unbind(), new, parts })
    }
}

/// A field: its name, the conversion of nested messages, and its last value.
struct Part {
    name: Py<PyString>,
    message: Option<Maker>,
    last: Option<Kept>,
}

/// A text or a tuple of numbers (both immutable) with the bytes that it was made from. Many fields
/// repeat from message to message: names of frames and joints, covariances.
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
    /// Returns the class of the messages.
    pub(crate) fn class(&self) -> &Py<PyType> {
        &self.class
    }

    /// Makes a message; the payload fits the layout.
    pub(crate) fn make<'py>(
        &mut self,
        py: Python<'py>,
        stamps: &Stamps,
        layout: &Layout,
        payload: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        self.take(py, stamps, layout, &mut { payload })
    }

    fn take<'py>(
        &mut self,
        py: Python<'py>,
        stamps: &Stamps,
        layout: &Layout,
        rest: &mut &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        let message = self.new.bind(py).call1((&self.class,))?;
        for (part, slot) in self.parts.iter_mut().zip(layout.slots()) {
            let value = part.take(py, stamps, slot, rest)?;
            message.setattr(part.name.bind(py), value)?;
        }
        Ok(message)
    }
}

impl Part {
    fn take<'py>(
        &mut self,
        py: Python<'py>,
        stamps: &Stamps,
        slot: &Slot,
        rest: &mut &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        let len = match slot.len {
            Len::One => return self.one(py, stamps, &slot.element, rest),
            Len::Fixed(len) => len as usize,
            Len::Counted => count(rest),
            Len::Field(_) => unreachable!("a bag has no lengths in other fields"),
        };
        match &slot.element {
            Element::Byte => Ok(PyBytes::new(py, split(rest, len)).into_any()),
            // As genpy: numbers are a tuple, truth values a list.
            Element::Scalar(scalar) if *scalar == Scalar::Bool => {
                let truths = split(rest, len).iter().map(|byte| *byte != 0);
                Ok(PyList::new(py, truths.collect::<Vec<_>>())?.into_any())
            }
            Element::Scalar(scalar) => {
                let bytes = split(rest, len * scalar.size());
                self.kept(py, bytes, || {
                    let numbers = bytes.chunks_exact(scalar.size()).map(|bytes| number(py, *scalar, bytes));
                    Ok(PyTuple::new(py, numbers)?.into_any())
                })
            }
            element => {
                let list = PyList::empty(py);
                for _ in 0..len {
                    list.append(self.one(py, stamps, element, rest)?)?;
                }
                Ok(list.into_any())
            }
        }
    }

    #[inline]
    fn one<'py>(
        &mut self,
        py: Python<'py>,
        stamps: &Stamps,
        element: &Element,
        rest: &mut &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        Ok(match element {
            Element::Scalar(scalar) => number(py, *scalar, split(rest, scalar.size())),
            Element::Byte => number(py, Scalar::UInt8, split(rest, 1)),
            Element::Time => {
                let [secs, nsecs] = [word(rest), word(rest)].map(i64::from);
                stamps.time(py, secs, nsecs)?
            }
            Element::Duration => {
                let [secs, nsecs] = [word(rest), word(rest)].map(|part| part.cast_signed().into());
                stamps.duration(py, secs, nsecs)?
            }
            Element::Text(_) => {
                let len = count(rest);
                let bytes = split(rest, len);
                self.kept(py, bytes, || {
                    Ok(match str::from_utf8(bytes) {
                        Ok(text) => PyString::new(py, text).into_any(),
                        Err(_) => PyBytes::new(py, bytes).into_any(),
                    })
                })?
            }
            Element::Struct(layout) => match &mut self.message {
                Some(maker) => maker.take(py, stamps, layout, rest)?,
                None => unreachable!("the maker was made of the layout's schema"),
            },
            Element::Char(_) | Element::WideBool | Element::Packed(_) => unreachable!("ROS has none"),
        })
    }

    /// Returns the object made from the same bytes last time, or a new one.
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

/// Returns the next `len` bytes; the length was checked before.
#[inline]
fn split<'a>(rest: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (bytes, behind) = rest.split_at(len);
    *rest = behind;
    bytes
}

#[inline]
fn word(rest: &mut &[u8]) -> u32 {
    u32::from_wire(split(rest, 4)).expect(SIZED)
}

#[inline]
fn count(rest: &mut &[u8]) -> usize {
    word(rest) as usize
}

/// The bytes have the size of the scalar.
const SIZED: &str = "a scalar's own size";

/// Returns a scalar from exactly its bytes.
#[inline]
fn number<'py>(py: Python<'py>, scalar: Scalar, bytes: &[u8]) -> Bound<'py, PyAny> {
    let int = |value: i64| PyInt::new(py, value).into_any();
    macro_rules! read {
        ($ty:ty) => {
            <$ty>::from_wire(bytes).expect(SIZED)
        };
    }
    match scalar {
        Scalar::Bool => PyBool::new(py, read!(bool)).to_owned().into_any(),
        Scalar::Int8 => int(read!(i8).into()),
        Scalar::UInt8 => int(read!(u8).into()),
        Scalar::Int16 => int(read!(i16).into()),
        Scalar::UInt16 => int(read!(u16).into()),
        Scalar::Int32 => int(read!(i32).into()),
        Scalar::UInt32 => int(read!(u32).into()),
        Scalar::Int64 => int(read!(i64)),
        Scalar::UInt64 => PyInt::new(py, read!(u64)).into_any(),
        Scalar::Float32 => PyFloat::new(py, read!(f32).into()).into_any(),
        Scalar::Float64 => PyFloat::new(py, read!(f64)).into_any(),
    }
}
