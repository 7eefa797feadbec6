//! A pass over the structs of a record that gives the byte range of each field, for callers that
//! change fields in place.
//!
//! For example, a record has the fields `uint16 n` and `point[] points`, and a point has the field
//! `float32 x`. For a record with two points, the callback is called for the record with the ranges
//! `0..2` and `2..14`, then for each point, with the ranges `6..10` and `10..14`.

use std::ops::Range;

use super::types::{Element, Layout, Len};

/// Callback for a struct. Its arguments are the layout of the struct, the path of the struct in the
/// record, such as `current.`, the bytes of the record, and the range of each field.
pub type StructVisitor<'a> = dyn FnMut(&Layout, &str, &mut [u8], &[Range<usize>]) + 'a;

impl Layout {
    /// Calls `visit` for a record and for each struct in it. The callback must not change counts.
    /// Returns the end of the last field, or `None` if the record is too short for the layout.
    pub fn visit_structs(&self, record: &mut [u8], visit: &mut StructVisitor<'_>) -> Option<usize> {
        self.structs_at(record, 0, &mut String::new(), visit)
    }

    fn structs_at(
        &self,
        record: &mut [u8],
        at: usize,
        path: &mut String,
        visit: &mut StructVisitor<'_>,
    ) -> Option<usize> {
        let (mut end, mut integers, mut ranges) = (at as u64, Vec::new(), Vec::new());
        for slot in &self.slots {
            let start = usize::try_from(end).ok()?.checked_add(slot.padding)?;
            end = slot.end(record, end, &mut integers).ok()?;
            ranges.push(start..usize::try_from(end).ok()?);
        }
        visit(self, path, record, &ranges);
        for ((field, slot), range) in self.fields().zip(&ranges) {
            let Element::Struct(inner) = &slot.element else { continue };
            let len = path.len();
            path.push_str(&field.name);
            path.push('.');
            let mut at = range.start + if slot.len == Len::Counted { size_of::<u32>() } else { 0 };
            while at < range.end {
                let next = inner.structs_at(record, at, path, visit)?;
                let next = next.checked_add(usize::try_from(inner.tail).ok()?)?;
                // A struct without bytes has nothing to visit, and its count may be any number.
                if next == at {
                    break;
                }
                at = next;
            }
            path.truncate(len);
        }
        usize::try_from(end).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{record, variable};
    use super::*;

    /// Each number and text of the sample record is found where its bytes are.
    #[test]
    fn ranges_are_the_bytes_of_the_fields() {
        for is_linked in [false, true] {
            let (layout, value) = variable(is_linked);
            let mut bytes = record(&layout, &value);
            let mut found = Vec::new();
            let end = layout.visit_structs(&mut bytes, &mut |layout, path, bytes, ranges| {
                for ((field, slot), range) in layout.fields().zip(ranges) {
                    if slot.len == Len::One && !matches!(slot.element, Element::Struct(_)) {
                        found.push((format!("{path}{}", field.name), bytes[range.clone()].to_vec()));
                    }
                }
            });
            assert_eq!(end, Some(bytes.len()));
            let has = |name: &str, bytes: &[u8]| found.contains(&(name.to_owned(), bytes.to_vec()));
            assert!(has("n", &[2, 0]) && has("point.a", &[13, 0]) && has("points.a", &[15, 0]));
            assert!(has("names.name", &[2, 0, 0, 0, b'f', b'g']) && has("two_names.n", &[7]));
            assert_eq!(is_linked, has("some_names.name", &[2, 0, 0, 0, b'q', b'r']));
            bytes.pop();
            assert_eq!(layout.visit_structs(&mut bytes, &mut |_, _, _, _| ()), None);
        }
    }
}
