//! What users put together before it is written: formats, and rows field by field.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;

use super::encode::{self, MAX_PAYLOAD};
use crate::error::UlogError;
use crate::layout::Layout;
use crate::row::{Number, Place};
use crate::schema::{Basic, FormatText, TypeName, is_field_name, is_padding, is_type_name};

pub(super) fn bad_format(name: &str, why: impl Into<String>) -> UlogError {
    UlogError::BadFormat { name: name.to_owned(), why: why.into() }
}

/// A format definition in the making: a name, and fields in the order of their bytes.
///
/// Nothing is checked until [`UlogWriter::define`](super::UlogWriter::define) takes it. A format
/// that is subscribed starts with `field::<u64>("timestamp")`; one that is only used inside others
/// need not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatBuilder {
    name: String,
    /// Type, number of elements, name.
    fields: Vec<(String, Option<usize>, String)>,
    paddings: usize,
}

impl FormatBuilder {
    /// Returns a format without fields.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), fields: Vec::new(), paddings: 0 }
    }

    /// Returns the format of a definition's text: `name:type field;type[n] field;`.
    ///
    /// # Errors
    /// Returns an error if the text breaks the grammar.
    pub fn parse(text: &str) -> Result<Self, UlogError> {
        let format = FormatText::parse(text.as_bytes())
            .ok_or_else(|| bad_format(text, "it is not `name:type field;type[n] field;`"))?;
        let mut fields = Vec::new();
        for (TypeName { base, len }, name) in format.fields() {
            let Ok(len) = len.map(usize::try_from).transpose() else {
                return Err(bad_format(format.name, "an array is too long"));
            };
            fields.push((base.to_owned(), len, name.to_owned()));
        }
        let paddings = fields.iter().filter(|(.., name)| is_padding(name)).count();
        Ok(Self { name: format.name.to_owned(), fields, paddings })
    }

    /// Returns the format's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn with(mut self, ty: impl Into<String>, len: Option<usize>, name: &str) -> Self {
        self.fields.push((ty.into(), len, name.to_owned()));
        self
    }

    /// Adds a number or truth value.
    #[must_use]
    pub fn field<T: Number>(self, name: &str) -> Self {
        self.with(Basic::Scalar(T::SCALAR).name(), None, name)
    }

    /// Adds an array of numbers or truth values.
    #[must_use]
    pub fn array<T: Number>(self, name: &str, len: usize) -> Self {
        self.with(Basic::Scalar(T::SCALAR).name(), Some(len), name)
    }

    /// Adds a text of at most `len` bytes.
    #[must_use]
    pub fn text(self, name: &str, len: usize) -> Self {
        self.with(Basic::Char.name(), Some(len), name)
    }

    /// Adds a field of another format.
    #[must_use]
    pub fn nested(self, format: &str, name: &str) -> Self {
        self.with(format, None, name)
    }

    /// Adds an array of another format.
    #[must_use]
    pub fn nested_array(self, format: &str, name: &str, len: usize) -> Self {
        self.with(format, Some(len), name)
    }

    /// Adds bytes that mean nothing, to keep what follows aligned. At the end of a row they are not
    /// written.
    #[must_use]
    pub fn padding(mut self, bytes: usize) -> Self {
        let name = format!("_padding{}", self.paddings);
        self.paddings += 1;
        self.with("uint8_t", Some(bytes), &name)
    }

    /// Returns the definition's text, checked as far as it can be without the other formats.
    pub(super) fn definition(&self) -> Result<String, UlogError> {
        let refuse = |why: String| Err(bad_format(&self.name, why));
        if !is_type_name(&self.name) || Basic::parse(&self.name).is_some() {
            return refuse(
                "a format's name consists of letters, digits, `_`, `/`, `-` and is no basic type".into(),
            );
        }
        if self.fields.is_empty() {
            return refuse("it has no fields".into());
        }
        let mut text = format!("{}:", self.name);
        let mut names = HashSet::new();
        for (ty, len, name) in &self.fields {
            if !is_field_name(name) {
                return refuse(format!("a field's name consists of letters, digits and `_`, not {name:?}"));
            }
            if !names.insert(name) {
                return refuse(format!("it has two fields {name}"));
            }
            if !is_type_name(ty) {
                return refuse(format!("{ty:?} of field {name} can be no type"));
            }
            if len.is_some_and(|len| len > MAX_PAYLOAD) {
                return refuse(format!("field {name} has more than {MAX_PAYLOAD} elements"));
            }
            let ty = TypeName { base: ty, len: len.map(|len| len as u64) };
            let _ = write!(text, "{ty} {name};");
        }
        encode::fits(&format!("the definition of {}", self.name), text.len(), MAX_PAYLOAD)?;
        Ok(text)
    }
}

/// A subscribed topic of one [`UlogWriter`](crate::UlogWriter).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TopicHandle {
    pub(super) msg_id: u16,
}

impl TopicHandle {
    /// Returns the id under which the topic's rows are written.
    pub fn msg_id(self) -> u16 {
        self.msg_id
    }
}

/// One row of a topic, filled field by field and written as often as wanted. It starts as all
/// zeros.
#[derive(Clone, Debug)]
pub struct RowBuffer {
    topic: TopicHandle,
    layout: Arc<Layout>,
    bytes: Vec<u8>,
    /// Bytes of the value at hand, kept for their memory.
    value: Vec<u8>,
}

impl RowBuffer {
    pub(super) fn new(topic: TopicHandle, layout: Arc<Layout>) -> Self {
        let bytes = vec![0; layout.trimmed];
        Self { topic, layout, bytes, value: Vec::new() }
    }

    /// Returns the topic whose row this is.
    pub(crate) fn topic(&self) -> TopicHandle {
        self.topic
    }

    /// Returns the bytes as they will be written.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Sets all fields to zero.
    pub fn clear(&mut self) {
        self.bytes.fill(0);
    }

    /// Finds a field by its flat name, as [`Layout::place`](rovelog_core::layout::Layout::place)
    /// does; valid for all rows of the topic.
    ///
    /// # Errors
    /// Returns an error if there is no such field.
    pub fn place(&self, path: &str) -> Result<Place, UlogError> {
        let missing =
            || encode::bad_value(path, format!("{} has no such field", self.layout.record.schema().name));
        self.layout.record.place(path).ok_or_else(missing)
    }

    /// Sets a number or truth value.
    ///
    /// # Errors
    /// Returns an error if the field is of another type, or an array.
    pub fn set<T: Number>(&mut self, place: Place, value: T) -> Result<(), UlogError> {
        self.set_values(place, None, &[value])
    }

    /// Sets all elements of an array.
    ///
    /// # Errors
    /// Returns an error if the field is not an array of this type and length.
    pub fn set_array<T: Number>(&mut self, place: Place, values: &[T]) -> Result<(), UlogError> {
        self.set_values(place, Some(values.len()), values)
    }

    fn set_values<T: Number>(
        &mut self,
        place: Place,
        len: Option<usize>,
        values: &[T],
    ) -> Result<(), UlogError> {
        if place.scalar() != Some(T::SCALAR) || place.elements() != len {
            return Err(self.mismatch(place, T::SCALAR.name(), len));
        }
        self.value.clear();
        for value in values {
            value.to_wire(&mut self.value);
        }
        let at = place.offset();
        let end = at + self.value.len();
        match self.bytes.get_mut(at..end) {
            Some(field) => field.copy_from_slice(&self.value),
            // The place is one of another topic.
            None => return Err(self.mismatch(place, T::SCALAR.name(), len)),
        }
        Ok(())
    }

    /// Sets a text; what is left of the field becomes NUL.
    ///
    /// # Errors
    /// Returns an error if the field is not text, or the text is longer than it.
    pub fn set_text(&mut self, place: Place, text: &str) -> Result<(), UlogError> {
        let len = place.elements().unwrap_or(1);
        let fits = place.scalar().is_none() && text.len() <= len;
        match self.bytes.get_mut(place.offset()..place.offset() + len).filter(|_| fits) {
            Some(field) => {
                field.fill(0);
                field[..text.len()].copy_from_slice(text.as_bytes());
                Ok(())
            }
            None => Err(self.mismatch(place, "char", Some(text.len()))),
        }
    }

    fn mismatch(&self, place: Place, got: &str, len: Option<usize>) -> UlogError {
        let shape =
            |name: &str, len: Option<usize>| len.map_or(name.to_owned(), |len| format!("{name}[{len}]"));
        let want = shape(place.scalar().map_or("char", rovelog_core::Scalar::name), place.elements());
        let field = format!("byte {} of {}", place.offset(), self.layout.record.schema().name);
        encode::bad_value(&field, format!("{} was given for {want}", shape(got, len)))
    }
}
