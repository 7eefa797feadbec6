//! Decoding of text fields.
//!
//! Text in logs should be UTF-8, but often is not. Bytes that are not UTF-8 are decoded with an
//! encoding that the user chose. If the user chose no encoding, these bytes are escaped as `\xcf`,
//! so that no output loses them. For example, the bytes `cf f0 e8` are `При` with the encoding
//! `cp1251`, and `\xcf\xf0\xe8` without an encoding.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use encoding_rs::Encoding;

use crate::internal::parallel::lock;
use crate::internal::text::escape_bytes;

/// An encoding for texts that are not UTF-8.
///
/// ```
/// use rovelog_core::internal::layout::TextEncoding;
///
/// assert_eq!(TextEncoding::named("cp1251").map(TextEncoding::name), Some("windows-1251"));
/// assert_eq!(TextEncoding::named("utf-16"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextEncoding(EncodingKind);

/// Implementation of an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EncodingKind {
    /// ISO 8859-1, in which each byte is the character with the same number. Rovelog implements
    /// this encoding itself, because `encoding_rs` replaces it with windows-1252, which differs in
    /// the bytes 0x80 to 0x9f.
    Latin1,
    /// An encoding that the crate `encoding_rs` implements.
    Other(&'static Encoding),
}

impl TextEncoding {
    /// Finds an encoding by its name on web pages or in Python, such as `cp1251`, `gbk` or
    /// `latin-1`. Encodings that do not contain ASCII, such as UTF-16, are not supported.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_lowercase().replace('_', "-");
        let found = match &*name {
            "latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" | "l1" => {
                return Some(Self(EncodingKind::Latin1));
            }
            "cp932" => "shift_jis",
            "cp936" => "gbk",
            "cp949" => "euc-kr",
            "cp950" => "big5",
            other => other,
        };
        // The name may contain hyphens that are missing in the list of web encodings, so it is also
        // tried without hyphens.
        let encoding = Encoding::for_label(found.as_bytes())
            .or_else(|| Encoding::for_label(found.replace('-', "").as_bytes()))?;
        encoding.is_ascii_compatible().then_some(Self(EncodingKind::Other(encoding)))
    }

    /// Returns the name of the encoding as used on web pages.
    pub fn name(self) -> &'static str {
        match self.0 {
            EncodingKind::Latin1 => "iso-8859-1",
            EncodingKind::Other(encoding) => encoding.name(),
        }
    }

    /// Decodes a text. Returns `None` if the bytes are not valid in the encoding.
    fn decode(self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        match self.0 {
            EncodingKind::Latin1 => Some(latin1(bytes)),
            EncodingKind::Other(encoding) => {
                encoding.decode_without_bom_handling_and_without_replacement(bytes)
            }
        }
    }
}

/// Decodes Latin-1 (ISO 8859-1), in which each byte is the character with the same number.
fn latin1(bytes: &[u8]) -> Cow<'_, str> {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// Number of texts with escaped bytes in a field. Bytes that are not UTF-8 are escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EscapedTexts {
    /// Name of the type and name of the field, such as `std_msgs/String.data`.
    pub field: String,
    /// Number of texts with escaped bytes.
    pub count: u64,
}

/// Text decoding for all fields of a log. Clones share the counters of texts with escaped bytes.
#[derive(Clone, Debug, Default)]
pub struct TextDecoding {
    /// Encoding for texts that are not UTF-8. If it is `None`, bytes that are not UTF-8 are
    /// escaped.
    encoding: Option<TextEncoding>,
    /// Number of texts with escaped bytes in each field.
    escaped: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl TextDecoding {
    /// Creates a text decoding. `encoding` is used for texts that are not UTF-8. If it is `None`,
    /// bytes that are not UTF-8 are escaped.
    pub fn new(encoding: Option<TextEncoding>) -> Self {
        Self { encoding, ..Self::default() }
    }

    /// Decodes a text in the field `field`. If bytes are escaped, the text is counted.
    pub fn decode<'a>(&self, field: &str, bytes: &'a [u8]) -> Cow<'a, str> {
        if let Some(text) = self.decode_valid(bytes) {
            return text;
        }
        let mut escaped = lock(&self.escaped);
        match escaped.get_mut(field) {
            Some(count) => *count += 1,
            None => _ = escaped.insert(field.to_owned(), 1),
        }
        Cow::Owned(escape_bytes(bytes))
    }

    /// Decodes a text that is not a field of a record, such as a constant in a definition. The text
    /// is not counted.
    pub fn decode_uncounted<'a>(&self, bytes: &'a [u8]) -> Cow<'a, str> {
        self.decode_valid(bytes).unwrap_or_else(|| Cow::Owned(escape_bytes(bytes)))
    }

    /// Decodes a text without escaping bytes. Returns `None` if the text is neither valid UTF-8 nor
    /// valid in the user's encoding.
    fn decode_valid<'a>(&self, bytes: &'a [u8]) -> Option<Cow<'a, str>> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Some(Cow::Borrowed(text)),
            Err(_) => self.encoding?.decode(bytes),
        }
    }

    /// Creates a decoder for the field `field` of the type `ty`.
    pub(super) fn decoder(&self, ty: &str, field: &str) -> TextDecoder {
        let field = format!("{ty}.{field}");
        TextDecoder(Fallback::Field(Arc::new(TextField { field, decoding: self.clone() })))
    }

    /// Returns the fields in which bytes were escaped since the last call, sorted by name.
    pub fn take_escaped(&self) -> Vec<EscapedTexts> {
        let escaped = std::mem::take(&mut *lock(&self.escaped));
        escaped.into_iter().map(|(field, count)| EscapedTexts { field, count }).collect()
    }
}

/// Text decoding for one field. All outputs of the field use it: values, structs, JSON and columns.
#[derive(Clone, Debug)]
pub struct TextDecoder(Fallback);

/// Handling of texts that are not UTF-8.
#[derive(Clone, Debug)]
enum Fallback {
    /// Escape the bytes that are not UTF-8.
    Utf8,
    /// Decode the text as Latin-1.
    Latin1,
    /// Decode the text with the encoding that the user chose for the log. If bytes are escaped,
    /// count the text.
    Field(Arc<TextField>),
}

/// A field, for which texts with escaped bytes are counted.
#[derive(Debug)]
struct TextField {
    /// Name of the type and name of the field, such as `std_msgs/String.data`.
    field: String,
    /// Text decoding of the log.
    decoding: TextDecoding,
}

impl TextDecoder {
    /// Decoder for UTF-8. Bytes that are not UTF-8 are escaped.
    pub const UTF8: Self = Self(Fallback::Utf8);
    /// Decoder for UTF-8. A text that is not UTF-8 is decoded as Latin-1.
    pub const LATIN1: Self = Self(Fallback::Latin1);

    /// Decodes a text.
    #[inline]
    pub fn decode<'a>(&self, bytes: &'a [u8]) -> Cow<'a, str> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => self.decode_other(bytes),
        }
    }

    /// Decodes a text that is not UTF-8.
    #[cold]
    fn decode_other<'a>(&self, bytes: &'a [u8]) -> Cow<'a, str> {
        match &self.0 {
            Fallback::Utf8 => Cow::Owned(escape_bytes(bytes)),
            Fallback::Latin1 => latin1(bytes),
            Fallback::Field(field) => field.decoding.decode(&field.field, bytes),
        }
    }
}

/// Decoders are equal if they use the same encoding. Their field names are not compared, so that
/// layouts with equal fields are equal.
impl PartialEq for TextDecoder {
    fn eq(&self, other: &Self) -> bool {
        let encoding = |decoder: &Self| match &decoder.0 {
            Fallback::Utf8 => None,
            Fallback::Latin1 => Some(TextEncoding(EncodingKind::Latin1)),
            Fallback::Field(field) => field.decoding.encoding,
        };
        encoding(self) == encoding(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CP1251: &[u8] = b"\xcf\xf0\xe8\xe2\xe5\xf2";

    fn decode(encoding: Option<&str>, bytes: &[u8]) -> (String, u64) {
        let decoding = TextDecoding::new(encoding.map(|name| TextEncoding::named(name).unwrap()));
        let text = decoding.decode("t.x", bytes).into_owned();
        (text, decoding.take_escaped().first().map_or(0, |escaped| escaped.count))
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_escaped_and_counted() {
        assert_eq!(decode(None, "größe \\".as_bytes()), ("größe \\".to_owned(), 0));
        assert_eq!(decode(None, CP1251), (r"\xcf\xf0\xe8\xe2\xe5\xf2".to_owned(), 1));
        assert_eq!(decode(None, b"C:\\xcf\xcf"), (r"C:\\xcf\xcf".to_owned(), 1));
    }

    #[test]
    fn an_encoding_decodes_text_that_is_not_utf_8() {
        assert_eq!(decode(Some("cp1251"), CP1251), ("Привет".to_owned(), 0));
        assert_eq!(decode(Some("cp1251"), "größe".as_bytes()), ("größe".to_owned(), 0));
        assert_eq!(decode(Some("GBK"), b"\xd6\xd0\xce\xc4"), ("中文".to_owned(), 0));
        assert_eq!(decode(Some("latin-1"), b"\x80\xe9"), ("\u{80}é".to_owned(), 0));
        // A text that ends inside a character is not valid in the encoding.
        assert_eq!(decode(Some("gbk"), b"a\xd6"), (r"a\xd6".to_owned(), 1));
    }

    #[test]
    fn encodings_have_the_names_of_web_pages_and_of_python() {
        let name = |name| TextEncoding::named(name).map(TextEncoding::name);
        assert_eq!(
            ["cp1251", "windows-1251", "Shift_JIS", "cp936", "koi8_r", "latin-1", "iso8859_5", "utf-8"]
                .map(|given| name(given).map(str::to_ascii_lowercase)),
            [
                "windows-1251",
                "windows-1251",
                "shift_jis",
                "gbk",
                "koi8-r",
                "iso-8859-1",
                "iso-8859-5",
                "utf-8"
            ]
            .map(|name| Some(name.to_owned()))
        );
        assert_eq!(["utf-16le", "iso-2022-jp", "cp9999", ""].map(name), [None; 4]);
    }

    #[test]
    fn escaped_texts_are_counted_by_field_and_reset() {
        let decoding = TextDecoding::default();
        let (a, b) = (decoding.decoder("t", "a"), decoding.decoder("t", "b"));
        for decoder in [&b, &a, &b] {
            assert_eq!(decoder.decode(b"\xff"), r"\xff");
        }
        let escaped = |field: &str, count| EscapedTexts { field: field.to_owned(), count };
        assert_eq!(decoding.take_escaped(), [escaped("t.a", 1), escaped("t.b", 2)]);
        assert_eq!(decoding.take_escaped(), []);
        assert_eq!(TextDecoder::UTF8.decode(b"\xe9"), r"\xe9");
        assert_eq!(TextDecoder::LATIN1.decode(b"\xe9"), "é");
    }
}
