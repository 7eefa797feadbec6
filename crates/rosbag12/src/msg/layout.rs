//! Converts message definitions into layouts, which compute the sizes of messages and decode
//! messages.

use std::sync::Arc;

use rovelog_core::Scalar;
use rovelog_core::internal::layout::{Element, Layout, Len, MAX_VALUES, TextDecoder, TextDecoding};
use rovelog_core::internal::names::UniqueNames;

use super::text::{Array, Primitive};
use super::types::{DefinitionError, Types};

impl Types {
    /// Returns the layout of the root type. The layout computes message sizes, decodes messages and
    /// builds columns. `decoding` sets how texts are decoded.
    ///
    /// # Errors
    /// Returns an error if a message would contain more values than the largest possible payload
    /// has bytes.
    pub fn layout(&self, decoding: &TextDecoding) -> Result<Arc<Layout>, DefinitionError> {
        let mut layouts: Vec<Arc<Layout>> = Vec::with_capacity(self.list.len());
        for ty in &self.list {
            let mut builder = Layout::builder(ty.name.clone()).with_text_decoding(decoding);
            let mut names = UniqueNames::default();
            for (field, nested) in ty.message.fields.iter().zip(&ty.fields) {
                let one = match nested {
                    Some(index) => Element::Struct(Arc::clone(&layouts[*index])),
                    None => element(&field.ty),
                };
                builder.field(names.assign(&field.name), one, field.array.into(), field.spelled());
            }
            let layout = builder.finish();
            if layout.values() > MAX_VALUES || layout.min_size() > u64::from(u32::MAX) {
                let what = "a record would have more values or bytes than a payload can hold";
                return Err(DefinitionError::TooLarge { name: ty.name.clone(), what });
            }
            layouts.push(Arc::new(layout));
        }
        layouts.pop().ok_or(DefinitionError::Empty)
    }
}

impl From<Array> for Len {
    fn from(array: Array) -> Self {
        match array {
            Array::One => Self::One,
            Array::Fixed(len) => Self::Fixed(len),
            Array::Any => Self::Counted,
        }
    }
}

/// Returns the layout element for the name of a built-in type (section 6.3 of
/// docs/formats/rosbag.md). Arrays of `uint8` and `char` are decoded as bytes.
fn element(word: &str) -> Element {
    match Primitive::named(word) {
        Some(Primitive::Scalar(Scalar::UInt8)) | None => Element::Byte,
        Some(Primitive::Scalar(scalar)) => Element::Scalar(scalar),
        Some(Primitive::Time) => Element::Time,
        Some(Primitive::Duration) => Element::Duration,
        Some(Primitive::String) => Element::Text(TextDecoder::UTF8),
    }
}

#[cfg(test)]
mod tests {
    use rovelog_core::internal::layout::{DecodeError, Fit};

    use super::*;

    fn plan(text: &str) -> Arc<Layout> {
        Types::resolve("a/A", text.as_bytes(), 64, &|_| None)
            .unwrap()
            .layout(&TextDecoding::default())
            .unwrap()
    }

    #[test]
    fn payloads_are_measured_exactly() {
        let fixed = plan("int16 a\ntime t\nfloat64[2] f");
        assert_eq!(fixed.size(), Some(26));
        assert_eq!(fixed.fit(&[0; 26]), Fit::Exact);
        assert_eq!(fixed.fit(&[0; 27]), Fit::Surplus(1));
        assert_eq!(fixed.fit(&[0; 25]), Fit::Short(0));

        let open = plan("int8 a\nstring s\nB[] b\n===\nMSG: a/B\nstring[2] n\nuint8[] d");
        assert_eq!(open.size(), None);
        let payload = b"\x07\x02\0\0\0hi\x01\0\0\0\x01\0\0\0x\0\0\0\0\x02\0\0\0zz";
        assert_eq!(open.fit(payload), Fit::Exact);
        for len in 0..payload.len() {
            assert!(matches!(open.fit(&payload[..len]), Fit::Short(at) if at <= len as u64), "{len}");
        }
        assert_eq!(open.fit(b"\0\0\0\0\0\0\0\0\0?"), Fit::Surplus(1));
        assert_eq!(open.fit(b"\0\xff\xff\xff\xff"), Fit::Short(1));
    }

    #[test]
    fn types_without_fields_have_no_bytes() {
        let empty = plan("B[] b\nB[3] c\nB d\n===\nMSG: a/B\n");
        assert_eq!(empty.fit(&[9, 0, 0, 0]), Fit::Exact);
        // A type without bytes can occur any number of times in an array. Without a limit, the
        // stored count alone would determine the number of values.
        let hostile: String = (0..40)
            .fold("T0[] t".to_owned(), |text, i| format!("{text}\n===\nMSG: a/T{i}\nT{0} a\nT{0} b", i + 1))
            + "\n===\nMSG: a/T40\n";
        let types = Types::resolve("a/A", hostile.as_bytes(), 64, &|_| None).unwrap();
        assert!(matches!(types.layout(&TextDecoding::default()), Err(DefinitionError::TooLarge { .. })));
        let types = Types::resolve("a/A", b"float64[4294967295] a", 64, &|_| None).unwrap();
        assert!(types.layout(&TextDecoding::default()).is_err());
    }

    #[test]
    fn the_number_of_values_is_limited_but_not_the_number_of_bytes() {
        let layout = |text: &str| {
            Types::resolve("a/A", text.as_bytes(), 64, &|_| None).unwrap().layout(&TextDecoding::default())
        };
        // The array counts as one value in addition to its elements.
        let values = |count: u64| layout(&format!("B[{count}] b\n===\nMSG: a/B\n"));
        assert_eq!(values(MAX_VALUES - 1).unwrap().values(), MAX_VALUES);
        assert!(values(MAX_VALUES).is_err());
        assert_eq!(layout("uint8[4294967295] a").unwrap().size(), Some(u32::MAX.into()));
        assert!(layout("uint8[4294967295] a\nuint8 b").is_err());
    }

    fn json(text: &str, payload: &[u8]) -> String {
        let (value, used) = plan(text).value(payload).unwrap();
        assert_eq!(used, payload.len());
        value.to_json()
    }

    #[test]
    fn every_primitive_is_decoded() {
        assert_eq!(
            json(
                "byte by\nchar ch\nbool b\nint64 i\nfloat32 f\ntime t\nduration d\nstring s",
                b"\xff\xff\x02\xff\xff\xff\xff\xff\xff\xff\xff\0\0\xc0\x7f\x01\0\0\0\x02\0\0\0\xff\xff\xff\xff\x03\0\0\0\x02\0\0\0hi",
            ),
            r#"{"by":-1,"ch":255,"b":true,"i":"-1","f":"NaN","t":{"sec":1,"nsec":2},"d":{"sec":-1,"nsec":3},"s":"hi"}"#
        );
        assert_eq!(
            json(
                "uint8[] a\nint8[2] b\nuint16[] c\nstring[1] s\nB[] e\n===\nMSG: a/B\nbool x",
                b"\x02\0\0\0\x01\x02\xff\x01\x01\0\0\0\x05\0\x01\0\0\0\xff\x01\0\0\0\x01"
            ),
            r#"{"a":"AQI=","b":[-1,1],"c":[5],"s":["\\xff"],"e":[{"x":true}]}"#
        );
    }

    #[test]
    fn a_duplicate_field_name_gets_a_number() {
        assert_eq!(json("int8 x\nint8 x\nint8 x", b"\x01\x02\x03"), r#"{"x":1,"x#2":2,"x#3":3}"#);
    }

    #[test]
    fn counts_are_not_trusted() {
        let list = plan("float64[] f");
        assert_eq!(list.value(b"\xff\xff\xff\xff\0").unwrap_err(), DecodeError::Short(4));
        let empty = plan("B[] b\n===\nMSG: a/B\n");
        assert_eq!(empty.value(b"\xff\xff\xff\xff").unwrap_err(), DecodeError::TooMany(4));
        assert!(empty.value(b"\x03\0\0\0").is_ok());
    }
}
