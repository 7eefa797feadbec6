//! How long a record is, without decoding it.

use std::sync::Arc;

use super::scalar::scalar_value;
use super::types::{Element, Layout, Len, Slot, Step};
use super::value::length;
use crate::Scalar;
use crate::wire::U32Le;

/// Steps that are copied into the layout around them; larger layouts are stepped into.
const INLINE: usize = 256;

/// How the length of a record fits its layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// Every byte is part of a field.
    Exact,
    /// So many bytes are left over.
    Surplus(u64),
    /// The record ends inside a field that starts at this byte of it.
    Short(u64),
}

impl Layout {
    /// Measures a record: every byte of it must be part of a field.
    #[inline]
    pub fn fit(&self, record: &[u8]) -> Fit {
        let len = record.len() as u64;
        if self.is_fixed && len == self.min_size {
            return Fit::Exact;
        }
        match self.end(record, 0) {
            Ok(end) if end == len => Fit::Exact,
            Ok(end) => Fit::Surplus(len - end),
            Err(at) => Fit::Short(at),
        }
    }

    /// Returns whether a record has the bytes of all fields, and, unless it may have a surplus,
    /// none behind them. A decoder of such a record runs against no end, and its lists have not
    /// more elements than the record has space for.
    pub fn decodes(&self, record: &[u8], may_have_surplus: bool) -> bool {
        let fits = match self.fit(record) {
            Fit::Exact => true,
            Fit::Surplus(_) => may_have_surplus,
            Fit::Short(_) => false,
        };
        fits && (!self.is_hollow || self.value(record).is_ok())
    }

    pub(super) fn take(&mut self, slot: Slot) {
        let (element, len, size) = (&slot.element, slot.len, slot.element.size());
        match len {
            // Its count is known only to who reads the fields before it.
            Len::Field(_) => self.is_linked = true,
            Len::One => match (element, size) {
                (_, Some(size)) => self.pass(size),
                (Element::Struct(layout), None)
                    if self.steps.len() + layout.steps.len() < INLINE && !layout.is_linked =>
                {
                    for step in &layout.steps {
                        match step {
                            Step::Pass(bytes) => self.pass(*bytes),
                            step => self.steps.push(step.clone()),
                        }
                    }
                    self.pass(layout.tail);
                }
                (Element::Struct(layout), None) => self.steps.push(Step::Each(Some(1), Arc::clone(layout))),
                _ => self.steps.push(Step::Counted(1)),
            },
            Len::Fixed(len) => match (element, size) {
                (_, Some(size)) => self.pass(size.saturating_mul(len.into())),
                (_, None) if len == 0 => {}
                (Element::Struct(layout), None) => self.steps.push(Step::Each(Some(len), Arc::clone(layout))),
                _ => self.steps.push(Step::Texts(Some(len))),
            },
            Len::Counted => match (element, size) {
                (_, Some(size)) => self.steps.push(Step::Counted(size)),
                (Element::Struct(layout), None) => self.steps.push(Step::Each(None, Arc::clone(layout))),
                _ => self.steps.push(Step::Texts(None)),
            },
        }
        let (min_size, values, is_fixed) = match len {
            Len::One => (element.min_size(), element.values(), size.is_some()),
            Len::Fixed(len) => {
                let n = u64::from(len);
                // Elements with bytes are as many as the record has space for; others count here.
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

    pub(super) fn pass(&mut self, bytes: u64) {
        match self.steps.last_mut() {
            Some(Step::Pass(known)) => *known = known.saturating_add(bytes),
            _ if bytes > 0 => self.steps.push(Step::Pass(bytes)),
            _ => {}
        }
    }

    /// Returns where the value that starts at `at` ends; the offset of what is cut where the record
    /// ends before.
    fn end(&self, record: &[u8], mut at: u64) -> Result<u64, u64> {
        if self.is_linked {
            return self.linked_end(record, at);
        }
        let len = record.len() as u64;
        for step in &self.steps {
            match step {
                Step::Pass(bytes) => at = pass(at, *bytes, len)?,
                Step::Counted(size) => {
                    let (count, behind) = count(record, at)?;
                    at = pass(behind, u64::from(count).saturating_mul(*size), len).map_err(|_| at)?;
                }
                Step::Texts(fixed) => {
                    let (texts, behind) = counted(*fixed, record, at)?;
                    at = texts_end(record, behind, texts.into())?;
                }
                Step::Each(fixed, layout) => {
                    let (values, behind) = counted(*fixed, record, at)?;
                    at = behind;
                    for _ in 0..values {
                        at = pass(layout.end(record, at)?, layout.tail, len)?;
                    }
                }
            }
        }
        Ok(at)
    }

    /// Returns the same for layouts with lengths in other fields.
    #[cold]
    fn linked_end(&self, record: &[u8], mut at: u64) -> Result<u64, u64> {
        let mut integers = Vec::new();
        for slot in &self.slots {
            at = slot.end(record, at, &mut integers)?;
        }
        Ok(at)
    }

    /// Returns the size in bytes of the struct at the start of `bytes`, with its trailing padding.
    pub(super) fn full_end(&self, bytes: &[u8]) -> Result<u64, u64> {
        pass(self.end(bytes, 0)?, self.tail, bytes.len() as u64)
    }
}

impl Element {
    /// Returns the size in bytes of the element at the start of `bytes`.
    pub(super) fn end(&self, bytes: &[u8]) -> Result<u64, u64> {
        match (self, self.size()) {
            (_, Some(size)) => pass(0, size, bytes.len() as u64),
            (Self::Struct(layout), None) => layout.full_end(bytes),
            (_, None) => texts_end(bytes, 0, 1),
        }
    }
}

impl Slot {
    /// Returns the offset behind this field, whose padding starts at `at`. `integers` has one entry
    /// for each field of the struct that was passed before, and gets the entry of this field. It
    /// grows with the bytes, because a layout may have more fields than the record has bytes.
    pub(super) fn end(&self, record: &[u8], at: u64, integers: &mut Vec<u64>) -> Result<u64, u64> {
        let len = record.len() as u64;
        let at = pass(at, self.padding as u64, len)?;
        integers.push(self.integer(record, at));
        let (n, start) = match self.len {
            Len::One => (1, at),
            Len::Fixed(n) => (n.into(), at),
            Len::Counted => count(record, at).map(|(n, start)| (n.into(), start))?,
            Len::Field(field) => (integers.get(field).copied().unwrap_or(0), at),
        };
        match (&self.element, self.element.size()) {
            (_, Some(size)) => pass(start, n.saturating_mul(size), len).map_err(|_| at),
            (Element::Struct(layout), None) => {
                let mut end = start;
                for _ in 0..n {
                    end = pass(layout.end(record, end)?, layout.tail, len)?;
                }
                Ok(end)
            }
            (_, None) => texts_end(record, start, n),
        }
    }

    /// Returns what the field at `at` says as the length of others; more than there can be where it
    /// is negative, 0 where it is none or cut.
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

fn pass(at: u64, bytes: u64, len: u64) -> Result<u64, u64> {
    if bytes > len - at { Err(at) } else { Ok(at + bytes) }
}

/// Returns the count at `at`, and where the elements begin.
#[inline]
fn count(record: &[u8], at: u64) -> Result<(u32, u64), u64> {
    let start = usize::try_from(at).map_err(|_| at)?;
    let rest = record.get(start..).ok_or(at)?;
    Ok((U32Le::first(rest).ok_or(at)?.get(), at + 4))
}

fn counted(fixed: Option<u32>, record: &[u8], at: u64) -> Result<(u32, u64), u64> {
    fixed.map_or_else(|| count(record, at), |fixed| Ok((fixed, at)))
}

/// Returns where `texts` texts end that begin at `at`.
fn texts_end(record: &[u8], mut at: u64, texts: u64) -> Result<u64, u64> {
    for _ in 0..texts {
        let (chars, behind) = count(record, at)?;
        at = pass(behind, chars.into(), record.len() as u64).map_err(|_| at)?;
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
    fn a_record_is_as_long_as_its_fields() {
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
    fn a_record_that_is_cut_says_where() {
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

    /// Numbers of bytes and of values, and the steps that pass a record without decoding it.
    #[test]
    fn a_field_has_a_size_and_steps() {
        let number = Element::Scalar(Scalar::UInt16);
        let text = Element::Text(TextDecoder::LATIN1);
        let (empty, point, named) = (type_of(&[]), point(), named());
        let each = |count, layout: &Arc<Layout>| vec![Step::Each(count, Arc::clone(layout))];
        let (hollow, structs) = (Element::Struct(Arc::clone(&empty)), Element::Struct(Arc::clone(&named)));
        let points = Element::Struct(point);
        // Values: one for the field, and those of elements whose number the layout says.
        for (element, len, min_size, values, is_fixed, steps) in [
            (number.clone(), Len::One, 2, 1, true, vec![Step::Pass(2)]),
            (number.clone(), Len::Fixed(3), 6, 1, true, vec![Step::Pass(6)]),
            (number.clone(), Len::Fixed(0), 0, 1, true, vec![]),
            (number.clone(), Len::Counted, 4, 1, false, vec![Step::Counted(2)]),
            (text.clone(), Len::One, 4, 1, false, vec![Step::Counted(1)]),
            (text.clone(), Len::Fixed(2), 8, 1, false, vec![Step::Texts(Some(2))]),
            (text.clone(), Len::Fixed(0), 0, 1, true, vec![]),
            (text.clone(), Len::Counted, 4, 1, false, vec![Step::Texts(None)]),
            (points.clone(), Len::One, 6, 3, true, vec![Step::Pass(6)]),
            (points.clone(), Len::Fixed(3), 18, 10, true, vec![Step::Pass(18)]),
            (points.clone(), Len::Counted, 4, 1, false, vec![Step::Counted(6)]),
            (structs.clone(), Len::One, 7, 3, false, vec![Step::Counted(1), Step::Pass(3)]),
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
    fn neighbours_are_passed_at_once() {
        let number = Element::Scalar(Scalar::UInt16);
        let mut builder = Layout::builder("t");
        builder.field("a", number.clone(), Len::One, String::new());
        builder.padding(4);
        builder.field("named", Element::Struct(named()), Len::One, String::new());
        builder.field("b", number, Len::One, String::new());
        let steps = builder.finish().steps;
        assert_eq!(steps, [Step::Pass(6), Step::Counted(1), Step::Pass(5)]);
    }

    /// A few nested types can have millions of fields: large ones are not copied into others.
    #[test]
    fn small_types_are_part_of_the_types_around_them() {
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
        // With a length in another field, the steps do not say all.
        let linked = type_of(&[
            ("n", Element::Byte, Len::One),
            ("list", Element::Byte, Len::Field(0)),
            ("text", Element::Text(TextDecoder::UTF8), Len::One),
        ]);
        let outer = type_of(&[("inner", Element::Struct(Arc::clone(&linked)), Len::One)]);
        assert_eq!(outer.steps, [Step::Each(Some(1), linked)]);
        assert_eq!(outer.fit(&[2, 9, 9, 1, 0, 0, 0, b'a']), Fit::Exact);
    }

    /// Numbers, lists of values and visits agree on what a length is.
    #[test]
    fn any_integer_can_be_the_length_of_a_list() {
        for (element, count, len) in [
            (Element::Byte, vec![2], Some(2)),
            (Element::Scalar(Scalar::UInt8), vec![2], Some(2)),
            (Element::Scalar(Scalar::Int16), vec![2, 0], Some(2)),
            (Element::Scalar(Scalar::UInt64), vec![2, 0, 0, 0, 0, 0, 0, 0], Some(2)),
            // None of another type, and a negative one is more than there can be.
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
