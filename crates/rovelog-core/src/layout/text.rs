//! Decoding of text fields. Text is UTF-8. Other bytes are escaped as `\xcf`, so that no output
//! loses them, or decoded by an encoding that the user names.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use encoding_rs::Encoding;

use crate::text::escape_bytes;

/// An encoding for texts that are not UTF-8.
///
/// ```
/// use rovelog_core::layout::TextEncoding;
///
/// assert_eq!(TextEncoding::named("cp1251").map(TextEncoding::name), Some("windows-1251"));
/// assert_eq!(TextEncoding::named("utf-16"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextEncoding(Known);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// Every byte is the character with its number. `encoding_rs` reads this name as windows-1252,
    /// which differs in the bytes 0x80 to 0x9f.
    Latin1,
    Other(&'static Encoding),
}

impl TextEncoding {
    /// Finds an encoding by its name, as web pages or Python spell it: `cp1251`, `gbk`, `latin-1`.
    /// Encodings in which ASCII text has other bytes, such as UTF-16, are not supported.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_lowercase().replace('_', "-");
        let found = match &*name {
            "latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" | "l1" => return Some(Self(Known::Latin1)),
            "cp932" => "shift_jis",
            "cp936" => "gbk",
            "cp949" => "euc-kr",
            "cp950" => "big5",
            other => other,
        };
        let encoding = Encoding::for_label(found.as_bytes())
            .or_else(|| Encoding::for_label(found.replace('-', "").as_bytes()))?;
        encoding.is_ascii_compatible().then_some(Self(Known::Other(encoding)))
    }

    /// Returns the name of the encoding on web pages.
    pub fn name(self) -> &'static str {
        match self.0 {
            Known::Latin1 => "iso-8859-1",
            Known::Other(encoding) => encoding.name(),
        }
    }

    /// Decodes a text; `None` if its bytes are not valid in this encoding.
    fn decode(self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        match self.0 {
            Known::Latin1 => Some(latin1(bytes)),
            Known::Other(encoding) => encoding.decode_without_bom_handling_and_without_replacement(bytes),
        }
    }
}

fn latin1(bytes: &[u8]) -> Cow<'_, str> {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// Number of texts of one field in which bytes were escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EscapedTexts {
    /// Type and name of the field, such as `std_msgs/String.data`.
    pub field: String,
    /// Number of texts.
    pub count: u64,
}

/// How the texts of one log are decoded. Clones share the counts of escaped texts.
#[derive(Clone, Debug, Default)]
pub struct TextDecoding {
    encoding: Option<TextEncoding>,
    escaped: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl TextDecoding {
    /// Uses `encoding` for texts that are not UTF-8; `None` escapes their bytes.
    pub fn new(encoding: Option<TextEncoding>) -> Self {
        Self { encoding, ..Self::default() }
    }

    /// Decodes a text of `field`, and counts it if bytes are escaped.
    pub fn decode<'a>(&self, field: &str, bytes: &'a [u8]) -> Cow<'a, str> {
        if let Some(text) = self.known(bytes) {
            return text;
        }
        let mut escaped = self.escaped.lock().unwrap_or_else(PoisonError::into_inner);
        match escaped.get_mut(field) {
            Some(count) => *count += 1,
            None => _ = escaped.insert(field.to_owned(), 1),
        }
        Cow::Owned(escape_bytes(bytes))
    }

    /// Decodes a text that is no field of a record, such as a constant of the log.
    pub fn decode_uncounted<'a>(&self, bytes: &'a [u8]) -> Cow<'a, str> {
        self.known(bytes).unwrap_or_else(|| Cow::Owned(escape_bytes(bytes)))
    }

    /// Decodes a text whose encoding is known: UTF-8, or the one that the user named.
    fn known<'a>(&self, bytes: &'a [u8]) -> Option<Cow<'a, str>> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Some(Cow::Borrowed(text)),
            Err(_) => self.encoding?.decode(bytes),
        }
    }

    /// Returns the decoder of a field of a type.
    pub(super) fn decoder(&self, ty: &str, field: &str) -> TextDecoder {
        let field = format!("{ty}.{field}");
        TextDecoder(Rule::Field(Arc::new(TextField { field, decoding: self.clone() })))
    }

    /// Returns the fields of which texts were escaped since the last call, by name.
    pub fn take_escaped(&self) -> Vec<EscapedTexts> {
        let escaped = std::mem::take(&mut *self.escaped.lock().unwrap_or_else(PoisonError::into_inner));
        escaped.into_iter().map(|(field, count)| EscapedTexts { field, count }).collect()
    }
}

/// How the texts of one field are decoded. All consumers of records decode text with it: values,
/// structs, JSON, and columns.
#[derive(Clone, Debug)]
pub struct TextDecoder(Rule);

#[derive(Clone, Debug)]
enum Rule {
    Utf8,
    Latin1,
    Field(Arc<TextField>),
}

#[derive(Debug)]
struct TextField {
    field: String,
    decoding: TextDecoding,
}

impl TextDecoder {
    /// UTF-8; other bytes are escaped.
    pub const UTF8: Self = Self(Rule::Utf8);
    /// UTF-8, or else Latin-1.
    pub const LATIN1: Self = Self(Rule::Latin1);

    /// Decodes a text.
    #[inline]
    pub fn decode<'a>(&self, bytes: &'a [u8]) -> Cow<'a, str> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => self.decode_other(bytes),
        }
    }

    #[cold]
    fn decode_other<'a>(&self, bytes: &'a [u8]) -> Cow<'a, str> {
        match &self.0 {
            Rule::Utf8 => Cow::Owned(escape_bytes(bytes)),
            Rule::Latin1 => latin1(bytes),
            Rule::Field(field) => field.decoding.decode(&field.field, bytes),
        }
    }
}

/// Two decoders are equal if they use the same encoding: the field is not part of a type.
impl PartialEq for TextDecoder {
    fn eq(&self, other: &Self) -> bool {
        let encoding = |decoder: &Self| match &decoder.0 {
            Rule::Utf8 => None,
            Rule::Latin1 => Some(TextEncoding(Known::Latin1)),
            Rule::Field(field) => field.decoding.encoding,
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
    fn an_encoding_decodes_what_is_not_utf_8() {
        assert_eq!(decode(Some("cp1251"), CP1251), ("Привет".to_owned(), 0));
        assert_eq!(decode(Some("cp1251"), "größe".as_bytes()), ("größe".to_owned(), 0));
        assert_eq!(decode(Some("GBK"), b"\xd6\xd0\xce\xc4"), ("中文".to_owned(), 0));
        assert_eq!(decode(Some("latin-1"), b"\x80\xe9"), ("\u{80}é".to_owned(), 0));
        // A text that is cut within a character is not valid.
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
    fn counts_are_by_field_and_are_taken_once() {
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
