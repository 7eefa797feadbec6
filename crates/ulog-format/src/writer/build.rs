//! Builders for format definitions and rows.

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

/// A builder for a format definition, which has a name and a list of fields.
///
/// The definition is checked by [`UlogWriter::define`](super::UlogWriter::define). The format of a
/// topic must start with `field::<u64>("timestamp")`. A format that is only nested in other formats
/// does not need a timestamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatBuilder {
    name: String,
    /// Type, array length and name of each field. The array length is `None` for a single value.
    fields: Vec<(String, Option<usize>, String)>,
    /// Number of padding fields so far, which is part of the name of the next padding field.
    paddings: usize,
}

impl FormatBuilder {
    /// Creates a format without fields.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), fields: Vec::new(), paddings: 0 }
    }

    /// Parses a format definition of the form `name:type field;type[n] field;`.
    ///
    /// # Errors
    /// Returns an error if the text violates the grammar of the specification.
    pub fn parse(text: &str) -> Result<Self, UlogError> {
        let format = FormatText::parse(text.as_bytes())
            .ok_or_else(|| bad_format(text, "a definition has the form `name:type field;type[n] field;`"))?;
        let mut fields = Vec::new();
        for (TypeName { base, len }, name) in format.fields() {
            let Ok(len) = len.map(usize::try_from).transpose() else {
                return Err(bad_format(format.name, "it contains an array that is too long"));
            };
            fields.push((base.to_owned(), len, name.to_owned()));
        }
        let paddings = fields.iter().filter(|(.., name)| is_padding(name)).count();
        Ok(Self { name: format.name.to_owned(), fields, paddings })
    }

    /// Returns the name of the format.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn with(mut self, ty: impl Into<String>, len: Option<usize>, name: &str) -> Self {
        self.fields.push((ty.into(), len, name.to_owned()));
        self
    }

    /// Adds a field that is a number or a Boolean.
    #[must_use]
    pub fn field<T: Number>(self, name: &str) -> Self {
        self.with(Basic::Scalar(T::SCALAR).name(), None, name)
    }

    /// Adds a field that is an array of numbers or Booleans.
    #[must_use]
    pub fn array<T: Number>(self, name: &str, len: usize) -> Self {
        self.with(Basic::Scalar(T::SCALAR).name(), Some(len), name)
    }

    /// Adds a field for a text of at most `len` bytes.
    #[must_use]
    pub fn text(self, name: &str, len: usize) -> Self {
        self.with(Basic::Char.name(), Some(len), name)
    }

    /// Adds a field whose type is another format.
    #[must_use]
    pub fn nested(self, format: &str, name: &str) -> Self {
        self.with(format, None, name)
    }

    /// Adds a field that is an array whose elements have another format.
    #[must_use]
    pub fn nested_array(self, format: &str, name: &str, len: usize) -> Self {
        self.with(format, Some(len), name)
    }

    /// Adds padding of `bytes` bytes, which aligns the next field. Padding at the end of a row is
    /// not written.
    #[must_use]
    pub fn padding(mut self, bytes: usize) -> Self {
        let name = format!("_padding{}", self.paddings);
        self.paddings += 1;
        self.with("uint8_t", Some(bytes), &name)
    }

    /// Checks the names and lengths in the format, and returns its definition text. The writer
    /// checks that the types of the fields exist when the data section starts.
    pub(super) fn definition(&self) -> Result<String, UlogError> {
        let refuse = |why: String| Err(bad_format(&self.name, why));
        if !is_type_name(&self.name) || Basic::parse(&self.name).is_some() {
            return refuse(
                "its name must consist of letters, digits, `_`, `/` and `-`, and must not be a basic type"
                    .into(),
            );
        }
        if self.fields.is_empty() {
            return refuse("it has no fields".into());
        }
        let mut text = format!("{}:", self.name);
        let mut names = HashSet::new();
        for (ty, len, name) in &self.fields {
            if !is_field_name(name) {
                return refuse(format!("field name {name:?} must consist of letters, digits and `_`"));
            }
            if !names.insert(name) {
                return refuse(format!("it has two fields named {name}"));
            }
            if !is_type_name(ty) {
                return refuse(format!("the type {ty:?} of field {name} is not a valid type name"));
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

/// A handle to a subscribed topic of a [`UlogWriter`](crate::UlogWriter).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TopicHandle {
    pub(super) msg_id: u16,
}

impl TopicHandle {
    /// Returns the message id of the topic's rows.
    pub fn msg_id(self) -> u16 {
        self.msg_id
    }
}

/// A row whose fields are set individually. All fields are initially zero.
///
/// The buffer can be written any number of times. Writing it does not reset the fields.
#[derive(Clone, Debug)]
pub struct RowBuffer {
    topic: TopicHandle,
    layout: Arc<Layout>,
    /// The encoded row, without the padding at its end.
    bytes: Vec<u8>,
    /// Buffer for the value that is being encoded. It is kept in the struct so that its memory is
    /// reused.
    value: Vec<u8>,
}

impl RowBuffer {
    pub(super) fn new(topic: TopicHandle, layout: Arc<Layout>) -> Self {
        let bytes = vec![0; layout.trimmed_len];
        Self { topic, layout, bytes, value: Vec::new() }
    }

    /// Returns the topic to which the row belongs.
    pub(crate) fn topic(&self) -> TopicHandle {
        self.topic
    }

    /// Returns the encoded row.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Sets all fields of the row to zero.
    pub fn clear(&mut self) {
        self.bytes.fill(0);
    }

    /// Finds a field by its flat name, such as `q[0]` or `esc[1].rpm`. The returned place is valid
    /// for all rows of the topic. See [`Layout::place`](rovelog_core::internal::layout::Layout::place).
    ///
    /// # Errors
    /// Returns an error if the format has no such field.
    pub fn place(&self, path: &str) -> Result<Place, UlogError> {
        let missing = || {
            encode::bad_value(path, format!("format {} has no such field", self.layout.record.schema().name))
        };
        self.layout.record.place(path).ok_or_else(missing)
    }

    /// Sets a field that is a number or a Boolean.
    ///
    /// # Errors
    /// Returns an error if the field has another type or is an array.
    pub fn set<T: Number>(&mut self, place: Place, value: T) -> Result<(), UlogError> {
        self.set_values(place, None, &[value])
    }

    /// Sets all elements of a field that is an array.
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
            // `place` is after the end of this row, so it is a field of another topic with longer
            // rows.
            None => return Err(self.mismatch(place, T::SCALAR.name(), len)),
        }
        Ok(())
    }

    /// Sets a field that is a text. The remaining bytes of the field become NUL.
    ///
    /// # Errors
    /// Returns an error if the field is not a text, or if the text is longer than the field.
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

    /// Returns the error for a value that does not match the type of its field. `got` is the type
    /// of the value. If the value is an array, `len` is its length.
    fn mismatch(&self, place: Place, got: &str, len: Option<usize>) -> UlogError {
        let shape =
            |name: &str, len: Option<usize>| len.map_or(name.to_owned(), |len| format!("{name}[{len}]"));
        let want = shape(place.scalar().map_or("char", rovelog_core::Scalar::name), place.elements());
        let field = format!("byte {} of {}", place.offset(), self.layout.record.schema().name);
        let why = format!("the value has type {}, but the field has type {want}", shape(got, len));
        encode::bad_value(&field, why)
    }
}
