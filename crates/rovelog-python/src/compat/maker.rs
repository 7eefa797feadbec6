//! Deserialization of ROS messages to Python objects.
//!
//! The rosbag package generates Python code for each message type. This module does the same work
//! with a [`Maker`]. It walks through the layout of the type and the bytes of the message, and sets
//! the attributes of a new Python object.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use rovelog::core::Scalar;
use rovelog::core::internal::layout::{Element, Layout, Len, Number as _, Slot};

use crate::compat::stamp::TimeClasses;

/// Maximum size in bytes of a value that is kept for the next message. Comparing a larger value
/// with the next message costs more than it saves.
const MAX_CACHED_BYTES: usize = 1024;

/// Deserializer for the messages of one type.
pub(crate) struct Maker {
    /// Python class of the deserialized messages.
    class: Py<PyType>,
    /// The function `__new__` of the Python class. It is called directly, because `__init__` would
    /// first set default values for all fields.
    new_fn: Py<PyAny>,
    /// Fields of the message type, in the order of its definition.
    fields: Vec<MessageField>,
}

impl<'py> FromPyObject<'_, 'py> for Maker {
    type Error = PyErr;

    /// Extracts a [`Maker`] from the Python tuple `BagMaker`, which consists of the class and its
    /// fields.
    fn extract(maker: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (class, fields): (Bound<'py, PyType>, _) = maker.extract()?;
        let new_fn = class.getattr(intern!(maker.py(), "__new__"))?.unbind();
        Ok(Self { class: class.unbind(), new_fn, fields })
    }
}

/// A field of a message type.
struct MessageField {
    name: Py<PyString>,
    /// Deserializer for the nested messages in this field. `None` if the field contains no
    /// messages.
    message: Option<Maker>,
    /// Value of this field in the previous message, if it can be used again.
    last: Option<CachedValue>,
}

/// A string, or a tuple of numbers, with the bytes from which it was deserialized.
///
/// Many fields have the same value in consecutive messages, such as frame ids, joint names and
/// covariances. Python strings and tuples are immutable, so all these messages can share one
/// object.
struct CachedValue {
    /// Bytes of the value in the message.
    bytes: Vec<u8>,
    object: Py<PyAny>,
}

impl<'py> FromPyObject<'_, 'py> for MessageField {
    type Error = PyErr;

    fn extract(field: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (name, message) = field.extract()?;
        Ok(Self { name, message, last: None })
    }
}

impl Maker {
    /// Returns the Python class of the deserialized messages.
    pub(crate) fn class(&self) -> &Py<PyType> {
        &self.class
    }

    /// Deserializes a message. The caller has checked that the size of the payload matches the
    /// layout of the type.
    pub(crate) fn make<'py>(
        &mut self,
        py: Python<'py>,
        classes: &TimeClasses,
        layout: &Layout,
        payload: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        self.read(py, classes, layout, &mut { payload })
    }

    /// Reads a message from the start of `rest`, and removes its bytes from `rest`.
    fn read<'py>(
        &mut self,
        py: Python<'py>,
        classes: &TimeClasses,
        layout: &Layout,
        rest: &mut &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        let message = self.new_fn.bind(py).call1((&self.class,))?;
        for (field, slot) in self.fields.iter_mut().zip(layout.slots()) {
            let value = field.read(py, classes, slot, rest)?;
            message.setattr(field.name.bind(py), value)?;
        }
        Ok(message)
    }
}

impl MessageField {
    /// Reads this field from the start of `rest`, and removes its bytes from `rest`.
    fn read<'py>(
        &mut self,
        py: Python<'py>,
        classes: &TimeClasses,
        slot: &Slot,
        rest: &mut &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        let len = match slot.len {
            Len::One => return self.read_element(py, classes, &slot.element, rest),
            Len::Fixed(len) => len as usize,
            Len::Counted => read_count(rest),
            Len::Field(_) => unreachable!("a bag has no lengths in other fields"),
        };
        match &slot.element {
            Element::Byte => Ok(PyBytes::new(py, take_bytes(rest, len)).into_any()),
            // Scripts depend on the types that genpy returns. An array of numbers is a tuple, but
            // an array of booleans is a list.
            Element::Scalar(scalar) if *scalar == Scalar::Bool => {
                let truths = take_bytes(rest, len).iter().map(|byte| *byte != 0);
                Ok(PyList::new(py, truths.collect::<Vec<_>>())?.into_any())
            }
            Element::Scalar(scalar) => {
                let bytes = take_bytes(rest, len * scalar.size());
                self.cached(py, bytes, || {
                    let numbers =
                        bytes.chunks_exact(scalar.size()).map(|bytes| scalar_object(py, *scalar, bytes));
                    Ok(PyTuple::new(py, numbers)?.into_any())
                })
            }
            element => {
                let list = PyList::empty(py);
                for _ in 0..len {
                    // genpy returns lists of messages and times, which scripts may modify. So these
                    // lists are not shared between messages.
                    list.append(self.read_element(py, classes, element, rest)?)?;
                }
                Ok(list.into_any())
            }
        }
    }

    /// Reads one array element or one value from the start of `rest`, and removes its bytes from
    /// `rest`.
    #[inline]
    fn read_element<'py>(
        &mut self,
        py: Python<'py>,
        classes: &TimeClasses,
        element: &Element,
        rest: &mut &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        Ok(match element {
            Element::Scalar(scalar) => scalar_object(py, *scalar, take_bytes(rest, scalar.size())),
            Element::Byte => scalar_object(py, Scalar::UInt8, take_bytes(rest, 1)),
            Element::Time => {
                let [secs, nsecs] = [read_u32(rest), read_u32(rest)].map(i64::from);
                classes.time(py, secs, nsecs)?
            }
            Element::Duration => {
                let [secs, nsecs] = [read_u32(rest), read_u32(rest)].map(|word| word.cast_signed().into());
                classes.duration(py, secs, nsecs)?
            }
            Element::Text(_) => {
                let len = read_count(rest);
                let bytes = take_bytes(rest, len);
                self.cached(py, bytes, || {
                    // Like genpy, this function returns a string that is not valid UTF-8 as bytes.
                    Ok(match str::from_utf8(bytes) {
                        Ok(text) => PyString::new(py, text).into_any(),
                        Err(_) => PyBytes::new(py, bytes).into_any(),
                    })
                })?
            }
            Element::Struct(layout) => match &mut self.message {
                Some(maker) => maker.read(py, classes, layout, rest)?,
                None => unreachable!("the maker was made of the layout's schema"),
            },
            Element::Char(_) | Element::WideBool | Element::Packed(_) | Element::Optional(_) => {
                unreachable!("ROS has none")
            }
        })
    }

    /// Returns the object of the previous message if its bytes are equal to `bytes`. Otherwise
    /// creates a new object.
    #[inline]
    fn cached<'py>(
        &mut self,
        py: Python<'py>,
        bytes: &[u8],
        new: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match &mut self.last {
            Some(last) if last.bytes == bytes => Ok(last.object.bind(py).clone()),
            _ if bytes.len() > MAX_CACHED_BYTES => new(),
            last => {
                let object = new()?;
                let cached = last.get_or_insert_with(|| CachedValue { bytes: Vec::new(), object: py.None() });
                cached.bytes.clear();
                cached.bytes.extend_from_slice(bytes);
                cached.object = object.clone().unbind();
                Ok(object)
            }
        }
    }
}

/// Removes the first `len` bytes from `rest` and returns them. The caller has checked that the
/// payload is large enough.
#[inline]
fn take_bytes<'a>(rest: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (bytes, behind) = rest.split_at(len);
    *rest = behind;
    bytes
}

/// Reads a 32-bit little-endian integer from the start of `rest`.
#[inline]
fn read_u32(rest: &mut &[u8]) -> u32 {
    u32::from_wire(take_bytes(rest, 4)).expect(SIZE_CHECKED)
}

/// Reads the length that precedes an array or a string.
#[inline]
fn read_count(rest: &mut &[u8]) -> usize {
    read_u32(rest) as usize
}

/// Message of a panic that cannot occur, because the slice always has the size of the scalar.
const SIZE_CHECKED: &str = "a scalar's own size";

/// Converts a scalar to a Python object. The length of `bytes` is the size of the scalar.
#[inline]
fn scalar_object<'py>(py: Python<'py>, scalar: Scalar, bytes: &[u8]) -> Bound<'py, PyAny> {
    let int = |value: i64| PyInt::new(py, value).into_any();
    macro_rules! read {
        ($ty:ty) => {
            <$ty>::from_wire(bytes).expect(SIZE_CHECKED)
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
