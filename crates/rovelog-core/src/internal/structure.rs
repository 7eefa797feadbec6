//! The fields of a structure in a file, as rows with an offset, a length, a name and a value.
//!
//! A structure of a specification is declared once, in `wire.rs` of a format crate. The macro
//! [`structure!`](crate::structure!) lists its fields, and the code does not compile if one is
//! missing. The value that was read from the file then adds a row for each of its fields to a
//! [`FieldList`]. The fields follow each other without gaps, so their lengths give their offsets.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use zerocopy::{Immutable, IntoBytes};

use super::layout::{Element, Layout, Len, scalar_value};
use super::text::{count, hex};
use crate::Value;

/// Maximum number of characters in a value.
const MAX_TEXT: usize = 60;

/// Maximum size in bytes of a field whose value is decoded.
const MAX_DECODED: usize = 64 << 10;

/// Number of bytes in a row of bytes without a structure.
const RAW_ROW: usize = 16;

/// Number of rows before and after the wanted byte, if bytes have no structure.
const RAW_ROWS: usize = 2;

/// If the list has more rows than this, nested structures are shown as one row, unless they contain
/// the wanted byte. Otherwise, a few nested types could need millions of rows.
const MAX_EXPANDED: usize = 100;

/// A field of a structure in a file, or a structure that contains other fields.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldPlace {
    /// Number of structures that contain the field.
    pub depth: usize,
    /// Byte range of the field in the file.
    pub range: Range<u64>,
    /// Name of the field.
    pub name: String,
    /// Value of the field as text. A long value is shortened. A structure may have no value.
    pub value: String,
    /// Section of the specification that describes the field. Empty if no section describes it.
    pub section: &'static str,
}

/// A value of a declared structure that can be shown as rows of a [`FieldList`].
pub trait Shown {
    /// Adds the value as a field with the name `name`. The field starts at the end of the previous
    /// field.
    fn show(&self, name: &str, fields: &mut FieldList);
}

/// Implements [`Shown`](crate::internal::structure::Shown) for a declared structure. The arguments
/// are the structure, the section of the specification, and the fields in the order of their bytes.
/// A field in brackets is not in the structure, because it is computed when the structure is
/// written.
///
/// ```
/// use rovelog_core::internal::structure::{FieldList, Shown as _};
/// use rovelog_core::internal::wire::U16Le;
///
/// struct Info<'a> {
///     kind: U16Le,
///     key: &'a [u8],
/// }
///
/// rovelog_core::structure!(Info<'_>, "Information", { kind, [key_len = key.len() as u8] key });
///
/// let mut list = FieldList { at: 100, ..FieldList::default() };
/// Info { kind: U16Le::new(5), key: b"abc" }.show("info", &mut list);
/// let fields = list.list;
/// assert_eq!((fields[0].range.clone(), fields[0].section), (100..106, "Information"));
/// assert_eq!((fields[3].range.clone(), &*fields[3].value), (103..106, r#""abc""#));
/// ```
#[macro_export]
macro_rules! structure {
    ($name:ty, $section:expr, { $($([$computed:ident = $value:expr])? $field:ident),* $(,)? }) => {
        impl $crate::internal::structure::Shown for $name {
            fn show(&self, name: &str, fields: &mut $crate::internal::structure::FieldList) {
                use $crate::internal::structure::Shown;
                let Self { $($field),* } = self;
                fields.group(name, $section, |fields| {
                    $( $( Shown::show(&$value, stringify!($computed), fields); )?
                       Shown::show($field, stringify!($field), fields); )*
                });
            }
        }
    };
}

macro_rules! shown_integers {
    ($($ty:ty),*) => { $(
        impl Shown for $ty {
            fn show(&self, name: &str, fields: &mut FieldList) {
                fields.leaf(name, size_of::<Self>(), self.to_string());
            }
        }
    )* };
}

shown_integers!(u8, u16, u32, u64);

impl<T: Shown + Debug + IntoBytes + Immutable, const N: usize> Shown for [T; N] {
    fn show(&self, name: &str, fields: &mut FieldList) {
        fields.repeated(name, self);
    }
}

impl Shown for &[u8] {
    fn show(&self, name: &str, fields: &mut FieldList) {
        match fields.layout.take() {
            Some(layout) => fields.group(name, fields.section, |fields| fields.record(&layout, self)),
            None => fields.leaf(name, self.len(), bytes_text(self)),
        }
    }
}

/// Builder for the fields of a region of the file.
#[derive(Debug, Default)]
pub struct FieldList {
    /// Offset in the file at which the next field starts.
    pub at: u64,
    /// Offset in the file of the byte that the caller asked for. A list of structures shows only the
    /// structure that contains this byte.
    pub wanted: u64,
    /// Section of the specification that describes the next field.
    pub section: &'static str,
    /// Layout of the next field of bytes, or `None` if the field is not decoded.
    pub layout: Option<Arc<Layout>>,
    /// The fields that have been added.
    pub list: Vec<FieldPlace>,
    /// Number of structures that contain the next field.
    pub depth: usize,
}

impl FieldList {
    /// Returns whether the wanted byte is in the next `len` bytes.
    pub fn holds(&self, len: usize) -> bool {
        (self.at..self.at.saturating_add(len as u64)).contains(&self.wanted)
    }

    /// Adds a field of `len` bytes.
    pub fn leaf(&mut self, name: &str, len: usize, value: impl Into<String>) {
        let range = self.at..self.at.saturating_add(len as u64);
        self.at = range.end;
        let (depth, section, value) = (self.depth, self.section, shortened(value.into()));
        self.list.push(FieldPlace { depth, range, name: name.to_owned(), value, section });
    }

    /// Adds a structure. `add` adds its fields.
    pub fn group(&mut self, name: &str, section: &'static str, add: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.section, section);
        let (start, index) = (self.at, self.list.len());
        self.leaf(name, 0, "");
        self.depth += 1;
        add(self);
        self.depth -= 1;
        self.section = outer;
        self.list[index].range = start..self.at;
    }

    /// Replaces the value of the field that was added last.
    pub fn set_value(&mut self, value: impl Into<String>) {
        if let Some(last) = self.list.last_mut() {
            last.value = shortened(value.into());
        }
    }

    /// Adds values of the same size as one field. The value that contains the wanted byte is a field
    /// of its own.
    pub fn repeated<T: Shown + Debug + IntoBytes + Immutable>(&mut self, name: &str, items: &[T]) {
        let text = match size_of::<T>() {
            1 => bytes_text(items.as_bytes()),
            _ => format!("{}: {:?}", count(items.len() as u64, "element"), &items[..items.len().min(4)]),
        };
        self.elements(name, size_of_val(items), size_of::<T>(), text, |index, fields| {
            items[index..].iter().take(1).for_each(|item| item.show(&format!("[{index}]"), fields));
        });
    }

    /// Adds a field of `total` bytes, which consists of elements of `len` bytes. If an element
    /// contains the wanted byte, calls `add` with its index to add the fields of the element.
    pub fn elements(
        &mut self,
        name: &str,
        total: usize,
        len: usize,
        value: String,
        add: impl FnOnce(usize, &mut Self),
    ) {
        let (start, is_here) = (self.at, self.holds(total));
        self.leaf(name, total, value);
        let index =
            usize::try_from(self.wanted.saturating_sub(start)).ok().and_then(|at| at.checked_div(len));
        if let Some(index) = index.filter(|_| is_here) {
            let end = std::mem::replace(&mut self.at, start + (index * len) as u64);
            self.depth += 1;
            add(index, self);
            self.depth -= 1;
            self.at = end;
        }
    }

    /// Adds bytes as rows without a structure. If there are many rows, adds those around the wanted
    /// byte.
    pub fn raw(&mut self, bytes: &[u8]) {
        let (start, end) = (self.at, self.at + bytes.len() as u64);
        let offset = usize::try_from(self.wanted.saturating_sub(start)).unwrap_or(0);
        let first = (offset / RAW_ROW).saturating_sub(RAW_ROWS);
        for (number, row) in bytes.chunks(RAW_ROW).enumerate().skip(first).take(2 * RAW_ROWS + 1) {
            self.at = start + (number * RAW_ROW) as u64;
            let hex = hex(row, "");
            let shown = |byte: &u8| if matches!(byte, b' '..=b'~') { char::from(*byte) } else { '.' };
            self.leaf("", row.len(), format!("{hex:32} {}", row.iter().map(shown).collect::<String>()));
        }
        self.at = end;
    }

    /// Adds the fields of a record that is encoded by `layout`. `bytes` are all bytes of the record.
    pub fn record(&mut self, layout: &Layout, bytes: &[u8]) {
        let (mut at, mut integers) = (0, Vec::new());
        for (index, (field, slot)) in layout.fields().enumerate() {
            let Ok(end) = slot.end(bytes, at, &mut integers) else { break };
            if slot.padding > 0 {
                self.leaf("padding", slot.padding, "");
            }
            let start = usize::try_from(at).unwrap_or(usize::MAX).saturating_add(slot.padding);
            let mut content = part(bytes, start as u64..end);
            at = end;
            if let (Element::Struct(inner), Len::One) = (&slot.element, slot.len)
                && (self.holds(content.len()) || self.list.len() < MAX_EXPANDED)
            {
                self.group(&field.name, self.section, |fields| fields.record(inner, content));
                continue;
            }
            let is_decoded = content.len() <= MAX_DECODED && !matches!(slot.len, Len::Field(_));
            let value = if is_decoded { layout.value_at(index, bytes, start).ok() } else { None };
            let value = value.map_or_else(|| bytes_text(content), |value| value_text(&value));
            let unit = field.unit.as_deref().map_or_else(String::new, |unit| format!(" {unit}"));
            if let (Len::Counted, Some((count, elements))) = (slot.len, content.split_first_chunk()) {
                let name = format!("{} count", field.name);
                self.leaf(&name, count.len(), u32::from_le_bytes(*count).to_string());
                content = elements;
            }
            // A single value is not divided into elements.
            let size = slot.element.size().filter(|size| slot.len != Len::One && *size > 1);
            let size = size.and_then(|size| usize::try_from(size).ok()).unwrap_or(0);
            self.elements(&field.name, content.len(), size, value + &unit, |index, fields| {
                let name = format!("[{index}]");
                let element = content.chunks(size).nth(index).unwrap_or_default();
                if let Element::Struct(inner) = &slot.element {
                    fields.group(&name, fields.section, |list| list.record(inner, element));
                } else if let Element::Scalar(scalar) = &slot.element {
                    fields.leaf(&name, size, value_text(&scalar_value(*scalar, element)));
                }
            });
        }
        let rest = part(bytes, at..bytes.len() as u64);
        if !rest.is_empty() {
            self.leaf("(rest)", rest.len(), bytes_text(rest));
        }
    }
}

/// Returns a range of `bytes`. The result is empty if the range is not in `bytes`.
pub fn part(bytes: &[u8], range: Range<u64>) -> &[u8] {
    let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    bytes.get(index(range.start)..index(range.end)).unwrap_or_default()
}

/// Returns a value as text.
pub fn value_text(value: &Value) -> String {
    match value {
        Value::Int(value, _) => value.to_string(),
        Value::UInt(value, _) => value.to_string(),
        Value::Bytes(bytes) => bytes_text(bytes),
        value => value.to_json(),
    }
}

/// Returns bytes as text. A text is in quotes, without NUL at its end. Other bytes are in
/// hexadecimal.
pub fn bytes_text(bytes: &[u8]) -> String {
    let first = &bytes[..bytes.len().min(MAX_TEXT + 1)];
    let text = std::str::from_utf8(first).unwrap_or("\0").trim_end_matches('\0');
    if text.chars().any(|c| c.is_control() && !c.is_whitespace()) || (text.is_empty() && !bytes.is_empty()) {
        return hex(first, " ");
    }
    format!("{text:?}")
}

/// Shortens a value to [`MAX_TEXT`] characters.
fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MAX_TEXT) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scalar;
    use crate::internal::layout::TextDecoder;
    use crate::internal::wire::U16Le;

    #[derive(Debug, IntoBytes, Immutable)]
    #[repr(C)]
    struct Point {
        x: U16Le,
        y: [u8; 2],
    }

    structure!(Point, "Points", { x, y });

    fn rows(fields: FieldList) -> Vec<(usize, Range<u64>, String, String)> {
        let row = |field: FieldPlace| (field.depth, field.range, field.name, field.value);
        fields.list.into_iter().map(row).collect()
    }

    fn row(depth: usize, range: Range<u64>, name: &str, value: &str) -> (usize, Range<u64>, String, String) {
        (depth, range, name.to_owned(), value.to_owned())
    }

    #[test]
    fn only_the_wanted_element_is_shown() {
        let point = |x| Point { x: U16Le::new(x), y: *b"ab" };
        let mut fields = FieldList { at: 10, wanted: 16, ..FieldList::default() };
        [point(1), point(2), point(3)].show("points", &mut fields);
        7_u8.show("end", &mut fields);
        let expected = [
            row(0, 10..22, "points", "3 elements: [Point { x: 1, y: [97, 98] }, Point { x: 2, y: […"),
            row(1, 14..18, "[1]", ""),
            row(2, 14..16, "x", "2"),
            row(2, 16..18, "y", "\"ab\""),
            row(3, 16..17, "[0]", "97"),
            row(0, 22..23, "end", "7"),
        ];
        assert_eq!(rows(fields), expected);
    }

    fn layout() -> Layout {
        let mut inner = Layout::builder("inner");
        inner.field("b", Element::Byte, Len::One, String::new());
        inner.field("text", Element::Text(TextDecoder::UTF8), Len::One, String::new());
        let inner = Element::Struct(Arc::new(inner.finish()));
        let mut builder = Layout::builder("outer");
        builder.field("n", Element::Scalar(Scalar::UInt16), Len::One, String::new());
        builder.unit("m");
        builder.padding(1);
        builder.field("inner", inner.clone(), Len::One, String::new());
        builder.field("list", inner, Len::Counted, String::new());
        builder.field("time", Element::Time, Len::One, String::new());
        builder.field("numbers", Element::Scalar(Scalar::Int16), Len::Fixed(5), String::new());
        builder.finish()
    }

    const RECORD: &[u8] =
        b"\x05\0\xff\x07\x01\0\0\0a\x02\0\0\0\x08\0\0\0\0\x09\x01\0\0\0b\x01\0\0\0\x02\0\0\0\
        \xff\xff\x01\0\x02\0\x03\0\x04\0z";

    fn shown(record: &[u8], wanted: u64) -> Vec<(usize, Range<u64>, String, String)> {
        let mut fields = FieldList { at: 100, wanted, ..FieldList::default() };
        fields.record(&layout(), record);
        rows(fields)
    }

    #[test]
    fn a_record_is_shown_by_its_layout() {
        let expected = [
            row(0, 100..102, "n", "5 m"),
            row(0, 102..103, "padding", ""),
            row(0, 103..109, "inner", ""),
            row(1, 103..104, "b", "7"),
            row(1, 104..109, "text", "\"a\""),
            row(0, 109..113, "list count", "2"),
            row(0, 113..124, "list", r#"[{"b":8,"text":""},{"b":9,"text":"b"}]"#),
            row(0, 124..132, "time", r#"{"sec":1,"nsec":2}"#),
            row(0, 132..142, "numbers", "[-1,1,2,3,4]"),
            row(0, 142..143, "(rest)", "\"z\""),
        ];
        assert_eq!(shown(RECORD, 119), expected);
        assert_eq!(shown(RECORD, 137)[9], row(1, 136..138, "[2]", "2"));
    }

    /// A record that ends too early must not cause a panic, and its last bytes must be in a field.
    #[test]
    fn a_short_record_is_shown_up_to_its_end() {
        for len in 0..RECORD.len() {
            let rows = shown(&RECORD[..len], 100 + len as u64);
            let end = rows.iter().map(|row| row.1.end).max();
            assert_eq!(end.unwrap_or(100), 100 + len as u64, "{rows:?}");
        }
        assert_eq!(shown(&RECORD[..7], 0)[1], row(0, 102..107, "(rest)", "ff 07 01 00 00"));
    }

    #[test]
    fn bytes_without_a_structure_are_shown_around_the_wanted_byte() {
        let bytes: Vec<u8> = (0..=255).collect();
        let mut fields = FieldList { at: 1000, wanted: 1100, ..FieldList::default() };
        fields.raw(&bytes);
        let rows = rows(fields);
        assert_eq!((rows.len(), rows[0].1.clone(), rows[4].1.clone()), (5, 1064..1080, 1128..1144));
        assert_eq!(rows[0].3, "404142434445464748494a4b4c4d4e4f @ABCDEFGHIJKLMNO");
    }

    #[test]
    fn bytes_are_shown_as_text_or_in_hexadecimal() {
        for (bytes, text) in [
            (&b""[..], "\"\""),
            (b"V1\0\0", "\"V1\""),
            (b"a\n", "\"a\\n\""),
            (b"\0\0", "00 00"),
            (b"\x01a", "01 61"),
            (b"\xff", "ff"),
        ] {
            assert_eq!(bytes_text(bytes), text);
        }
        assert_eq!(shortened(bytes_text(&[b'x'; 90])).chars().count(), MAX_TEXT + 1);
    }
}
