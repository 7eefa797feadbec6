//! Determining the size of a record without decoding it.
//!
//! A layout is compiled to a list of [`Step`]s. For example, the fields `uint16 n`, one byte of
//! padding and `string name` need two steps:
//!
//! 1. `Skip(3)` skips `n` and the padding.
//! 2. `Counted(1)` reads a count and skips one byte for each character.
//!
//! The record `05 00 | ff | 02 00 00 00 61 62` has 9 bytes. The first step arrives at offset 3. The
//! second step reads the count 2 at offset 3, and arrives at offset 9, which is the end of the
//! record. If the last byte is missing, the text that starts at offset 3 is incomplete, so the
//! result is `Short(3)`.
//!
//! Steps cannot express a count that is stored in another field. In layouts with such counts, the
//! end of a record is found field by field.

use std::sync::Arc;

use super::scalar::{length, scalar_value};
use super::types::{Element, Layout, Len, Slot, Step};
use crate::Scalar;
use crate::internal::wire::U32Le;

/// Maximum number of steps in a layout after the steps of a nested type are copied into it. If the
/// limit would be exceeded, a single step refers to the nested type instead. Without a limit, the
/// number of steps could grow exponentially with the nesting depth.
const MAX_STEPS: usize = 256;

/// Result of comparing the size of a record with its layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// Every byte of the record is part of a field or of padding.
    Exact,
    /// This number of bytes follows the last field of the record.
    Surplus(u64),
    /// The record ends inside the field that starts at this offset.
    Short(u64),
}

impl Layout {
    /// Compares the size of a record with the layout.
    #[inline]
    pub fn fit(&self, record: &[u8]) -> Fit {
        let len = record.len() as u64;
        // Most records have a fixed layout, and their size is right.
        if self.is_fixed && len == self.min_size {
            return Fit::Exact;
        }
        match self.end(record, 0) {
            Ok(end) if end == len => Fit::Exact,
            Ok(end) => Fit::Surplus(len - end),
            Err(at) => Fit::Short(at),
        }
    }

    /// Returns whether a record can be decoded completely. Bytes after the last field are accepted
    /// only if `may_have_surplus` is true.
    ///
    /// If the result is true, a decoder of the record needs no more checks: no field extends beyond
    /// the record, and the sizes of lists are plausible.
    pub fn decodes(&self, record: &[u8], may_have_surplus: bool) -> bool {
        let fits = match self.fit(record) {
            Fit::Exact => true,
            Fit::Surplus(_) => may_have_surplus,
            Fit::Short(_) => false,
        };
        // The size of a record does not limit the length of a list whose elements have no bytes,
        // such as structs without fields. The record is decoded once to check such lists.
        fits && (!self.is_hollow || self.value(record).is_ok())
    }

    /// Adds a slot to the layout, and updates the steps and sizes.
    pub(super) fn take(&mut self, slot: Slot) {
        self.add_step(&slot);
        let (element, len, size) = (&slot.element, slot.len, slot.element.size());
        let (min_size, values, is_fixed) = match len {
            Len::One => (element.min_size(), element.values(), size.is_some()),
            Len::Fixed(len) => {
                let n = u64::from(len);
                // The size of the record limits the number of elements that have bytes. Only
                // structs can be without bytes, so only the values of structs are counted.
                let values = match element {
                    Element::Struct(_) => element.values().saturating_mul(n),
                    _ => 0,
                };
                (element.min_size().saturating_mul(n), values.saturating_add(1), size.is_some() || len == 0)
            }
            Len::Counted => (4, 1, false),
            Len::Field(_) => (0, 1, false),
        };
        if let Element::Struct(layout) = element {
            let is_list = matches!(len, Len::Counted | Len::Field(_));
            self.is_hollow |= layout.is_hollow || (is_list && element.min_size() == 0);
        }
        self.min_size = self.min_size.saturating_add(min_size);
        self.values = self.values.saturating_add(values);
        self.is_fixed &= is_fixed;
        self.slots.push(slot);
    }

    /// Adds the step that measures a slot.
    fn add_step(&mut self, slot: &Slot) {
        let is_single = slot.len == Len::One;
        let fixed = match slot.len {
            Len::One => Some(1),
            Len::Fixed(len) => Some(len),
            Len::Counted => None,
            // The number of elements is known only after earlier fields have been read, so there is
            // no step for this slot.
            Len::Field(_) => {
                self.is_linked = true;
                return;
            }
        };
        match (&slot.element, slot.element.size(), fixed) {
            (_, _, Some(0)) => {}
            (_, Some(size), Some(len)) => self.skip(size.saturating_mul(len.into())),
            (_, Some(size), None) => self.steps.push(Step::Counted(size)),
            (Element::Struct(layout), ..)
                if is_single && self.steps.len() + layout.steps.len() < MAX_STEPS && !layout.is_linked =>
            {
                for step in &layout.steps {
                    match step {
                        Step::Skip(bytes) => self.skip(*bytes),
                        step => self.steps.push(step.clone()),
                    }
                }
                self.skip(layout.tail);
            }
            (Element::Struct(layout), ..) => self.steps.push(Step::Structs(fixed, Arc::clone(layout))),
            _ if is_single => self.steps.push(Step::Counted(1)),
            _ => self.steps.push(Step::Texts(fixed)),
        }
    }

    /// Adds a step that skips `bytes` bytes. If the last step also skips bytes, it is extended
    /// instead.
    pub(super) fn skip(&mut self, bytes: u64) {
        match self.steps.last_mut() {
            Some(Step::Skip(known)) => *known = known.saturating_add(bytes),
            // A field without bytes needs no step.
            _ if bytes > 0 => self.steps.push(Step::Skip(bytes)),
            _ => {}
        }
    }

    /// Returns the offset at which the record that starts at `at` ends. If `record` is too short,
    /// the error is the offset of the incomplete field.
    fn end(&self, record: &[u8], mut at: u64) -> Result<u64, u64> {
        if self.is_linked {
            return self.linked_end(record, at);
        }
        let len = record.len() as u64;
        for step in &self.steps {
            match step {
                Step::Skip(bytes) => at = skip(at, *bytes, len)?,
                Step::Counted(size) => {
                    let (count, behind) = count(record, at)?;
                    // If the elements are incomplete, the error is the offset of the count, because
                    // the field starts there.
                    at = skip(behind, u64::from(count).saturating_mul(*size), len).map_err(|_| at)?;
                }
                Step::Texts(fixed) => {
                    let (texts, behind) = counted(*fixed, record, at)?;
                    at = texts_end(record, behind, texts.into())?;
                }
                Step::Structs(fixed, layout) => {
                    let (values, behind) = counted(*fixed, record, at)?;
                    at = behind;
                    for _ in 0..values {
                        at = skip(layout.end(record, at)?, layout.tail, len)?;
                    }
                }
            }
        }
        Ok(at)
    }

    /// Implements [`end`](Self::end) for layouts in which the value of a field is the number of
    /// elements of another field.
    #[cold]
    fn linked_end(&self, record: &[u8], mut at: u64) -> Result<u64, u64> {
        let mut integers = Vec::new();
        for slot in &self.slots {
            at = slot.end(record, at, &mut integers)?;
        }
        Ok(at)
    }

    /// Returns the size in bytes of the struct at the start of `bytes`, including the padding after
    /// its last field.
    pub(super) fn full_end(&self, bytes: &[u8]) -> Result<u64, u64> {
        skip(self.end(bytes, 0)?, self.tail, bytes.len() as u64)
    }
}

impl Element {
    /// Returns the size in bytes of the element at the start of `bytes`.
    pub(crate) fn end(&self, bytes: &[u8]) -> Result<u64, u64> {
        match (self, self.size()) {
            (_, Some(size)) => skip(0, size, bytes.len() as u64),
            (Self::Struct(layout), None) => layout.full_end(bytes),
            (_, None) => texts_end(bytes, 0, 1),
        }
    }
}

impl Slot {
    /// Returns the offset at which a field ends. `at` is the offset of the padding before the
    /// field.
    ///
    /// `integers` has the values of the earlier fields in the same struct, and the value of this
    /// field is appended. The list is not allocated in advance, because a layout may have more
    /// fields than the record has bytes.
    pub(crate) fn end(&self, record: &[u8], at: u64, integers: &mut Vec<u64>) -> Result<u64, u64> {
        let len = record.len() as u64;
        let at = skip(at, self.padding as u64, len)?;
        integers.push(self.integer(record, at));
        let (n, start) = match self.len {
            Len::One => (1, at),
            Len::Fixed(n) => (n.into(), at),
            Len::Counted => count(record, at).map(|(n, start)| (n.into(), start))?,
            Len::Field(field) => (integers.get(field).copied().unwrap_or(0), at),
        };
        match (&self.element, self.element.size()) {
            (_, Some(size)) => skip(start, n.saturating_mul(size), len).map_err(|_| at),
            (Element::Struct(layout), None) => {
                let mut end = start;
                for _ in 0..n {
                    end = skip(layout.end(record, end)?, layout.tail, len)?;
                }
                Ok(end)
            }
            (_, None) => texts_end(record, start, n),
        }
    }

    /// Returns the value of the field at offset `at`, which is the number of elements of another
    /// field. A negative value becomes the largest `u64`, which is more than any record can have.
    /// The value is 0 if the field is incomplete or not an integer.
    pub(crate) fn integer(&self, record: &[u8], at: u64) -> u64 {
        let scalar = match (&self.element, self.len) {
            (Element::Scalar(scalar), Len::One) => *scalar,
            (Element::Byte, Len::One) => Scalar::UInt8,
            _ => return 0,
        };
        let bytes = usize::try_from(at).ok().and_then(|at| record.get(at..)?.get(..scalar.size()));
        match bytes.map(|bytes| scalar_value(scalar, bytes)) {
            Some(value) => length(&value),
            None => 0,
        }
    }
}

/// Returns the offset `at + bytes` in a record of `len` bytes. If the record is too short, the
/// error is `at`.
fn skip(at: u64, bytes: u64, len: u64) -> Result<u64, u64> {
    if bytes > len - at { Err(at) } else { Ok(at + bytes) }
}

/// Reads the 32-bit count at offset `at`. Returns the count and the offset of the first element.
#[inline]
fn count(record: &[u8], at: u64) -> Result<(u32, u64), u64> {
    let start = usize::try_from(at).map_err(|_| at)?;
    let rest = record.get(start..).ok_or(at)?;
    Ok((U32Le::first(rest).ok_or(at)?.get(), at + 4))
}

/// Returns the number of elements in a list and the offset of the first element. If `fixed` is
/// `None`, the number is read from the record.
fn counted(fixed: Option<u32>, record: &[u8], at: u64) -> Result<(u32, u64), u64> {
    fixed.map_or_else(|| count(record, at), |fixed| Ok((fixed, at)))
}

/// Returns the offset at which several texts end. `texts` is the number of texts, and `at` is the
/// offset of the first text.
fn texts_end(record: &[u8], mut at: u64, texts: u64) -> Result<u64, u64> {
    for _ in 0..texts {
        let (chars, behind) = count(record, at)?;
        at = skip(behind, chars.into(), record.len() as u64).map_err(|_| at)?;
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::super::samples::{fixed, named, point, record, type_of, variable};
    use super::super::{DecodeError, MAX_VALUES, TextDecoder};
    use super::*;
    use crate::Value;

    #[test]
    fn the_size_of_a_record_fits_its_layout() {
        let (builder, values) = fixed();
        let mut types = vec![(Arc::new(builder.finish()), Value::record(values))];
        types.extend([variable(false), variable(true)]);
        for (layout, value) in types {
            let mut bytes = record(&layout, &value);
            assert_eq!((layout.fit(&bytes), layout.decodes(&bytes, false)), (Fit::Exact, true));
            for len in 0..bytes.len() {
                let cut = &bytes[..len];
                assert!(matches!(layout.fit(cut), Fit::Short(at) if at <= len as u64), "{len} bytes");
                assert!(!layout.decodes(cut, true), "{len} bytes");
            }
            bytes.extend([0; 3]);
            assert_eq!(layout.fit(&bytes), Fit::Surplus(3));
            assert!(layout.decodes(&bytes, true) && !layout.decodes(&bytes, false));
        }
    }

    #[test]
    fn a_short_record_has_the_offset_of_the_cut_field() {
        let layout = type_of(&[
            ("a", Element::Scalar(Scalar::UInt16), Len::One),
            ("list", Element::Scalar(Scalar::UInt16), Len::Counted),
            ("text", Element::Text(TextDecoder::UTF8), Len::One),
        ]);
        let bytes = [1, 1, 2, 0, 0, 0, 5, 0, 6, 0, 3, 0, 0, 0, b'a', b'b', b'c'];
        assert_eq!(layout.fit(&bytes), Fit::Exact);
        for (len, at) in [(1, 0), (2, 2), (5, 2), (9, 2), (10, 10), (13, 10), (16, 10)] {
            assert_eq!(layout.fit(&bytes[..len]), Fit::Short(at), "{len} bytes");
        }
    }

    /// A field must have the right size, number of values and steps for each type of element and
    /// each length.
    #[test]
    fn a_field_has_a_size_and_steps() {
        let number = Element::Scalar(Scalar::UInt16);
        let text = Element::Text(TextDecoder::LATIN1);
        let (empty, point, named) = (type_of(&[]), point(), named());
        let each = |count, layout: &Arc<Layout>| vec![Step::Structs(count, Arc::clone(layout))];
        let (hollow, structs) = (Element::Struct(Arc::clone(&empty)), Element::Struct(Arc::clone(&named)));
        let points = Element::Struct(point);
        // The field itself counts as one value. If the number of elements is fixed, their values
        // are added.
        for (element, len, min_size, values, is_fixed, steps) in [
            (number.clone(), Len::One, 2, 1, true, vec![Step::Skip(2)]),
            (number.clone(), Len::Fixed(3), 6, 1, true, vec![Step::Skip(6)]),
            (number.clone(), Len::Fixed(0), 0, 1, true, vec![]),
            (number.clone(), Len::Counted, 4, 1, false, vec![Step::Counted(2)]),
            (text.clone(), Len::One, 4, 1, false, vec![Step::Counted(1)]),
            (text.clone(), Len::Fixed(2), 8, 1, false, vec![Step::Texts(Some(2))]),
            (text.clone(), Len::Fixed(0), 0, 1, true, vec![]),
            (text.clone(), Len::Counted, 4, 1, false, vec![Step::Texts(None)]),
            (points.clone(), Len::One, 6, 3, true, vec![Step::Skip(6)]),
            (points.clone(), Len::Fixed(3), 18, 10, true, vec![Step::Skip(18)]),
            (points.clone(), Len::Counted, 4, 1, false, vec![Step::Counted(6)]),
            (structs.clone(), Len::One, 7, 3, false, vec![Step::Counted(1), Step::Skip(3)]),
            (structs.clone(), Len::Fixed(2), 14, 7, false, each(Some(2), &named)),
            (structs.clone(), Len::Fixed(0), 0, 1, true, vec![]),
            (structs.clone(), Len::Counted, 4, 1, false, each(None, &named)),
            (hollow.clone(), Len::Fixed(5), 0, 6, true, vec![]),
        ] {
            let layout = type_of(&[("field", element.clone(), len)]);
            let what = format!("{element:?} {len:?}");
            let size = is_fixed.then_some(min_size);
            assert_eq!(
                (layout.min_size(), layout.values(), layout.size()),
                (min_size, values, size),
                "{what}"
            );
            assert_eq!((layout.steps.as_slice(), layout.is_linked), (steps.as_slice(), false), "{what}");
            assert!(!layout.is_hollow, "{what}");
        }
        let by_field =
            |element| type_of(&[("n", number.clone(), Len::One), ("field", element, Len::Field(0))]);
        let linked = by_field(number.clone());
        assert_eq!((linked.min_size(), linked.values(), linked.size()), (2, 2, None));
        assert!(linked.is_linked && !linked.is_hollow && by_field(hollow.clone()).is_hollow);
        let list = type_of(&[("list", hollow, Len::Counted), ("n", number, Len::One)]);
        assert!(list.is_hollow && type_of(&[("inner", Element::Struct(list), Len::One)]).is_hollow);
    }

    #[test]
    fn adjacent_fields_share_a_step() {
        let number = Element::Scalar(Scalar::UInt16);
        let mut builder = Layout::builder("t");
        builder.field("a", number.clone(), Len::One, String::new());
        builder.padding(4);
        builder.field("named", Element::Struct(named()), Len::One, String::new());
        builder.field("b", number, Len::One, String::new());
        let steps = builder.finish().steps;
        assert_eq!(steps, [Step::Skip(6), Step::Counted(1), Step::Skip(5)]);
    }

    /// The steps of nested types must only be copied if there are few of them, because a few nested
    /// types can describe millions of fields.
    #[test]
    fn steps_of_small_types_are_inlined() {
        let texts = |n: usize| {
            let mut builder = Layout::builder("t");
            for _ in 0..n {
                builder.field("text", Element::Text(TextDecoder::UTF8), Len::One, String::new());
            }
            builder
        };
        for (inner, steps) in [(55, 255), (56, 201)] {
            let mut outer = texts(200);
            outer.field("inner", Element::Struct(Arc::new(texts(inner).finish())), Len::One, String::new());
            assert_eq!(outer.finish().steps.len(), steps);
        }
        // If the value of a field is the number of elements of another field, the steps of the type
        // are incomplete. They must never be copied.
        let linked = type_of(&[
            ("n", Element::Byte, Len::One),
            ("list", Element::Byte, Len::Field(0)),
            ("text", Element::Text(TextDecoder::UTF8), Len::One),
        ]);
        let outer = type_of(&[("inner", Element::Struct(Arc::clone(&linked)), Len::One)]);
        assert_eq!(outer.steps, [Step::Structs(Some(1), linked)]);
        assert_eq!(outer.fit(&[2, 9, 9, 1, 0, 0, 0, b'a']), Fit::Exact);
    }

    /// Finding the end of a record, decoding it and visiting its fields must interpret a count in
    /// the same way.
    #[test]
    fn any_integer_can_be_the_length_of_a_list() {
        for (element, count, len) in [
            (Element::Byte, vec![2], Some(2)),
            (Element::Scalar(Scalar::UInt8), vec![2], Some(2)),
            (Element::Scalar(Scalar::Int16), vec![2, 0], Some(2)),
            (Element::Scalar(Scalar::UInt64), vec![2, 0, 0, 0, 0, 0, 0, 0], Some(2)),
            // A value that is not an integer counts as 0. A negative value is more than the number
            // of elements that a record can have.
            (Element::Scalar(Scalar::Float32), vec![0, 0, 0, 64], Some(0)),
            (Element::WideBool, vec![1, 0, 0, 0], Some(0)),
            (Element::Scalar(Scalar::Int8), vec![255], None),
        ] {
            let layout = type_of(&[("n", element.clone(), Len::One), ("list", Element::Byte, Len::Field(0))]);
            let record = [&count[..], &vec![7; len.unwrap_or(2)]].concat();
            let list = layout.value(&record).map(|(value, _)| value.get("list").cloned());
            if let Some(len) = len {
                assert_eq!(layout.fit(&record), Fit::Exact, "{element:?}");
                assert_eq!(list, Ok(Some(Value::Bytes(vec![7; len]))), "{element:?}");
            } else {
                assert_eq!(layout.fit(&record), Fit::Short(1), "{element:?}");
                assert_eq!(list, Err(DecodeError::Short(1)), "{element:?}");
            }
        }
    }

    #[test]
    fn a_list_of_too_many_empty_elements_is_not_decoded() {
        let hollow = Element::Struct(type_of(&[]));
        let layout =
            type_of(&[("n", Element::Scalar(Scalar::UInt64), Len::One), ("list", hollow, Len::Field(0))]);
        for (count, decodes) in [(3, true), (2 * MAX_VALUES, false)] {
            let bytes = count.to_le_bytes();
            assert_eq!((layout.fit(&bytes), layout.decodes(&bytes, false)), (Fit::Exact, decodes));
        }
    }
}
