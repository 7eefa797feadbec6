//! Layouts, which describe the offsets of a format's fields within a row. Each layout is computed
//! once and shared by all topics with the format.
//!
//! # Example
//!
//! ```text
//! t:uint64_t timestamp;uint8_t a;uint8_t[3] _padding0;e v;uint8_t[4] _padding1;
//! e:float x;uint8_t _padding0;
//! ```
//!
//! A row of `t` contains `timestamp` at offset 0, `a` at 8 and `v.x` at 12. Its full size is 21
//! bytes. A writer may omit `_padding1`, because "if the padding field is the last field, then this
//! field will not be logged": the trimmed size is 17 bytes. The padding of the nested `e` remains,
//! because "the padding is still needed when the message is used in a nested definition".

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use rovelog_core::internal::layout::{
    Builder as Fields, Element, Layout as Record, Len, TextDecoder, TextDecoding,
};
use rovelog_core::internal::names::UniqueNames;
use rovelog_core::{Limits, Scalar};

use crate::px4::fields::{self, Release};
use crate::schema::{Basic, FormatText, TypeName, is_padding};
use crate::wire::{Info, MSG_ID_LEN};

/// Maximum size of a row in bytes. The payload of a message has at most 65 535 bytes, and the first
/// two bytes are the message id.
const MAX_ROW: u64 = u16::MAX as u64 - MSG_ID_LEN as u64;

/// The layout of a format, which describes the fields in a row.
#[derive(Debug, PartialEq)]
pub(crate) struct Layout {
    /// Fields without padding, and their offsets. Padding counts toward offsets and sizes, but is
    /// not a field.
    pub(crate) record: Arc<Record>,
    /// Size in bytes of a row with all padding.
    pub(crate) full_len: usize,
    /// Size in bytes of a row without the padding at its end. Rows in a file usually have this
    /// size.
    pub(crate) trimmed_len: usize,
    /// The field `timestamp`, or `None` if the format has no such field of a valid type.
    pub(crate) timestamp: Option<TimeField>,
    /// Number of values in a row. Arrays and nested types count as the values they contain.
    leaves: u64,
    /// Number of levels of types that are nested in the format.
    height: usize,
}

/// Offset and type of the timestamp in the rows of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeField {
    /// Offset of the timestamp within a row.
    pub(crate) offset: usize,
    /// Type of the timestamp. See "Special field names" in the specification.
    pub(crate) width: TimeWidth,
}

/// Number of bits and unit of a timestamp. Specification: "The unit is always microseconds, except
/// for `uint8_t` it's milliseconds."
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeWidth {
    U8Millis,
    U16Micros,
    U32Micros,
    U64Micros,
}

/// Reason why a format has no layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Undecodable {
    /// The type with this name is not defined. A later message may still define it.
    Missing(String),
    /// The type with this name contains itself.
    Circular(String),
    /// The format exceeds a limit, which the text describes.
    TooLarge(&'static str),
}

impl fmt::Display for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(name) => write!(f, "type {name} is not defined"),
            Self::Circular(name) => write!(f, "type {name} contains itself"),
            Self::TooLarge(what) => write!(f, "the format has {what}"),
        }
    }
}

/// The latest definition of each format, and the layouts computed from the definitions.
#[derive(Debug)]
pub(crate) struct Formats {
    /// Definition texts by format name.
    texts: HashMap<String, Arc<str>>,
    /// Definition texts of the earlier logs in the file, by format name.
    #[cfg(feature = "arrow")]
    earlier_texts: HashMap<String, Arc<str>>,
    /// Computed layouts by format name.
    layouts: HashMap<String, Arc<Layout>>,
    /// Formats whose layout cannot be computed, with the reason. The entries are removed when a
    /// format is defined, because a missing type may then be available.
    failed: HashMap<String, Undecodable>,
    /// Decoder for the texts in rows.
    pub(crate) decoding: TextDecoding,
    /// True if PX4 has written the log, so that the units of fields in PX4's own message
    /// definitions apply.
    is_px4: bool,
    /// Release of PX4 that has written the log, or `None` if it is unknown.
    release: Option<Release>,
    /// Number of fields whose types may still be resolved. The number increases with the bytes of
    /// definitions that are read. Otherwise, a file could redefine formats again and again, and
    /// each redefinition would resolve all formats.
    budget: u64,
}

impl Default for Formats {
    fn default() -> Self {
        Self {
            texts: HashMap::new(),
            #[cfg(feature = "arrow")]
            earlier_texts: HashMap::new(),
            layouts: HashMap::new(),
            failed: HashMap::new(),
            decoding: TextDecoding::default(),
            is_px4: false,
            release: None,
            budget: 1 << 20,
        }
    }
}

/// Result of [`Formats::define`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defined {
    /// The log has not defined this name before.
    New,
    /// The definition is identical to the previous definition of the same name.
    Repeated,
    /// The definition differs from the previous definition of the same name.
    Redefined,
}

impl Formats {
    /// Adds the definition of a format. `payload` is the payload of the 'F' message from which
    /// `format` was parsed.
    ///
    /// # Panics
    /// Panics if `payload` is not UTF-8.
    pub(crate) fn define(&mut self, format: &FormatText<'_>, payload: &[u8]) -> Defined {
        // The declaration of a field has at least four bytes, such as `e x;`. Adding four fields
        // per byte to the budget allows resolving each field of the definition at least 16 times.
        self.budget += 4 * payload.len() as u64;
        let text = std::str::from_utf8(payload).expect("FormatText accepts only UTF-8");
        let known = self.texts.get(format.name);
        let defined = match known {
            Some(known) if **known == *text => return Defined::Repeated,
            Some(_) => Defined::Redefined,
            None => Defined::New,
        };
        if defined == Defined::Redefined {
            // All layouts are removed, because any of them may contain the redefined type.
            self.layouts.clear();
        }
        // Formats that could not be resolved before may need this format, so they are tried again.
        if !self.failed.is_empty() {
            self.failed = HashMap::new();
        }
        self.texts.insert(format.name.to_owned(), text.into());
        defined
    }

    /// Starts another log in the same file, which has its own formats.
    pub(crate) fn restart(&mut self) {
        #[cfg(feature = "arrow")]
        self.earlier_texts.extend(self.texts.drain());
        self.texts.clear();
        self.layouts.clear();
        self.failed.clear();
    }

    /// Detects from an information message that the log was written by PX4, and by which release.
    /// PX4 writes its information messages before the formats, so the result is known when layouts
    /// are computed.
    pub(crate) fn detect_px4(&mut self, info: Info<'_>) {
        match (info.parse_key().map(|key| key.name), info.value) {
            (Some("sys_name"), value) => self.is_px4 = value == b"PX4",
            // The number is 0xAABBCCTT, where AA is the major and BB the minor version. It is
            // stored in little-endian order. See "Predefined information messages" in the
            // specification.
            (Some("ver_sw_release"), [_, _, minor, major]) => self.release = Some((*major, *minor)),
            _ => {}
        }
    }

    /// Returns the definition text of the format `name`.
    pub(crate) fn text(&self, name: &str) -> Option<&Arc<str>> {
        self.texts.get(name)
    }

    /// Returns the name and the definition text of the format `name`, also if only an earlier log in
    /// the file defines it. The returned name is borrowed from `self`.
    #[cfg(feature = "arrow")]
    pub(crate) fn definition(&self, name: &str) -> Option<(&str, &str)> {
        let found = self.texts.get_key_value(name).or_else(|| self.earlier_texts.get_key_value(name));
        found.map(|(name, text)| (&**name, &**text))
    }

    /// Returns the layout of the format `name`, computed from the current definitions.
    ///
    /// # Errors
    /// Returns an error if a type is missing or contains itself, or if a limit is exceeded.
    pub(crate) fn layout(&mut self, name: &str, limits: &Limits) -> Result<Arc<Layout>, Undecodable> {
        if let Some(known) = self.known(name) {
            return known;
        }
        let layout = self.resolve(name, limits, &mut Vec::new());
        // Only the failure of the requested format is stored. A type nested in it may have failed
        // only because of the surrounding formats, for example in a cycle, and may be valid
        // elsewhere.
        if let Err(why) = &layout {
            self.failed.insert(name.to_owned(), why.clone());
        }
        layout
    }

    /// Returns `true` if the current layout of the format `name` equals the layout `earlier`. Two
    /// formats without a layout are also equal.
    ///
    /// Comparing the definition text of `name` is not enough, because a nested type may have been
    /// redefined.
    pub(crate) fn has_same_layout(
        &mut self,
        name: &str,
        earlier: &Result<Arc<Layout>, Undecodable>,
        limits: &Limits,
    ) -> bool {
        match (earlier, self.layout(name, limits)) {
            (Ok(earlier), Ok(now)) if Arc::ptr_eq(earlier, &now) => true,
            (Ok(earlier), Ok(now)) => {
                // A comparison visits every value of the layout, so its cost is subtracted from the
                // budget.
                let paid = self.budget.checked_sub(now.leaves);
                self.budget = paid.unwrap_or(0);
                let same = paid.is_some() && *earlier == now;
                if same {
                    self.layouts.insert(name.to_owned(), Arc::clone(earlier));
                }
                same
            }
            (earlier, now) => earlier.is_err() && now.is_err(),
        }
    }

    /// Returns the layout of the format `name`, or the reason why it has none. Returns `None` if
    /// the layout has not been computed with the current definitions.
    pub(crate) fn known(&self, name: &str) -> Option<Result<Arc<Layout>, Undecodable>> {
        let layout = self.layouts.get(name).map(|layout| Ok(Arc::clone(layout)));
        layout.or_else(|| self.failed.get(name).map(|why| Err(why.clone())))
    }

    /// Computes the layout of the format `name` and of all types nested in the format.
    ///
    /// `path` contains the names of the surrounding formats. Its length is limited by
    /// `limits.nesting`, which bounds the recursion. Each type is resolved only once, because its
    /// layout is stored.
    fn resolve(
        &mut self,
        name: &str,
        limits: &Limits,
        path: &mut Vec<String>,
    ) -> Result<Arc<Layout>, Undecodable> {
        if let Some(layout) = self.layouts.get(name) {
            return Ok(Arc::clone(layout));
        }
        if path.iter().any(|parent| parent == name) {
            return Err(Undecodable::Circular(name.to_owned()));
        }
        if path.len() > limits.nesting {
            return Err(Undecodable::TooLarge("too many levels of nested types"));
        }
        let text = self.texts.get(name).ok_or_else(|| Undecodable::Missing(name.to_owned()))?;
        let text = Arc::clone(text);
        let format = FormatText::parse(text.as_bytes()).expect("only valid texts are defined");

        path.push(name.to_owned());
        let mut builder = Builder::new(name, &self.decoding);
        // PX4 1.14 added this field, and changed the meaning of some flight mode numbers in the
        // same message.
        let old_modes = !format.fields().any(|(_, field)| field == "nav_state_user_intention");
        let px4 = self.is_px4.then_some((self.release, old_modes));
        for (ty, field) in format.fields() {
            self.budget =
                self.budget.checked_sub(1).ok_or(Undecodable::TooLarge("too many redefinitions"))?;
            let kind = match Basic::parse(ty.base) {
                Some(Basic::Scalar(scalar)) => Kind::Basic(Element::Scalar(scalar)),
                Some(Basic::Char) => Kind::Basic(Element::Char(TextDecoder::UTF8)),
                None => Kind::Nested(self.resolve(ty.base, limits, path)?),
            };
            builder.field(ty, field, kind, limits)?;
            if let Some((release, old_modes)) = px4 {
                builder.add_px4_metadata(field, release, old_modes);
            }
        }
        path.pop();
        let layout = Arc::new(builder.finish(limits)?);
        self.layouts.insert(name.to_owned(), Arc::clone(&layout));
        Ok(layout)
    }
}

/// Type of a field, or of the elements if the field is an array.
enum Kind {
    Basic(Element),
    Nested(Arc<Layout>),
}

/// Collects the fields of one format for a [`Layout`]. A field of this struct has the same meaning
/// as the field of [`Layout`] with the same name.
struct Builder {
    name: String,
    fields: Fields,
    full_len: u64,
    trimmed_len: u64,
    leaves: u64,
    height: usize,
    timestamp: Option<TimeField>,
    names: UniqueNames,
}

impl Builder {
    fn new(name: &str, decoding: &TextDecoding) -> Self {
        Self {
            name: name.to_owned(),
            fields: Record::builder(name).with_text_decoding(decoding),
            full_len: 0,
            trimmed_len: 0,
            leaves: 0,
            height: 0,
            timestamp: None,
            names: UniqueNames::default(),
        }
    }

    fn field(
        &mut self,
        ty: TypeName<'_>,
        name: &str,
        kind: Kind,
        limits: &Limits,
    ) -> Result<(), Undecodable> {
        const ARRAY: Undecodable = Undecodable::TooLarge("an array of more than 65535 elements");
        let len = match ty.len {
            Some(len) => Len::Fixed(u16::try_from(len).map_err(|_| ARRAY)?.into()),
            None => Len::One,
        };
        let count = ty.len.unwrap_or(1);
        // A type without any bytes counts as one value, because visiting the elements of an array
        // of this type takes time too.
        let (element, size, leaves) = match kind {
            Kind::Nested(layout) => {
                self.height = self.height.max(layout.height + 1);
                let leaves = count * layout.leaves.max(1);
                (Element::Struct(Arc::clone(&layout.record)), layout.full_len as u64, leaves)
            }
            Kind::Basic(element) => {
                let size = element.size().unwrap_or(0);
                (element, size, 1)
            }
        };
        // These sums cannot overflow, because `count` is at most 65 535, and `leaves` is limited
        // after each field.
        let offset = self.full_len;
        self.full_len += count * size;
        self.leaves += leaves;
        if self.leaves > limits.leaves as u64 {
            return Err(Undecodable::TooLarge("too many fields"));
        }
        // A padding field does not change `trimmed_len`. If a field follows it, the padding is
        // included.
        if is_padding(name) {
            self.fields.padding(count * size);
            return Ok(());
        }
        self.trimmed_len = self.full_len;
        if offset > MAX_ROW {
            return Err(Undecodable::TooLarge("a row longer than a message can be"));
        }
        let offset = usize::try_from(offset).expect("MAX_ROW fits");
        let mut unit = None;
        if name == "timestamp" && len == Len::One && self.timestamp.is_none() && !self.names.contains(name) {
            let width = match element {
                Element::Scalar(Scalar::UInt64) => Some(TimeWidth::U64Micros),
                Element::Scalar(Scalar::UInt32) => Some(TimeWidth::U32Micros),
                Element::Scalar(Scalar::UInt16) => Some(TimeWidth::U16Micros),
                Element::Scalar(Scalar::UInt8) => Some(TimeWidth::U8Millis),
                _ => None,
            };
            self.timestamp = width.map(|width| TimeField { offset, width });
            unit = width.map(|width| if width == TimeWidth::U8Millis { "ms" } else { "us" });
        }
        // Some logs have a field name twice in a format. The second field with the name `x` becomes
        // `x#2` (rule D7 of docs/formats/ulog.md).
        let name = self.names.assign(name);
        self.fields.field(name, element, len, ty.to_string());
        if let Some(unit) = unit {
            self.fields.unit(unit);
        }
        Ok(())
    }

    /// Adds the unit and the value names from PX4's message definitions to the last field.
    fn add_px4_metadata(&mut self, name: &str, release: Option<Release>, old_modes: bool) {
        if is_padding(name) {
            return;
        }
        if let Some(unit) = fields::unit(&self.name, name) {
            self.fields.unit(unit);
        }
        if let Some(names) = fields::names(&self.name, name, release, old_modes) {
            self.fields.names(names);
        }
    }

    fn finish(self, limits: &Limits) -> Result<Layout, Undecodable> {
        if self.trimmed_len > MAX_ROW || self.full_len > u64::from(u32::MAX) {
            return Err(Undecodable::TooLarge("a row longer than a message can be"));
        }
        // The check in `resolve` misses types whose layouts were computed earlier. The format
        // itself does not count as a level of nesting.
        if self.height > limits.nesting {
            return Err(Undecodable::TooLarge("too many levels of nested types"));
        }
        let size = |n: u64| usize::try_from(n).expect("checked above");
        let (full_len, trimmed_len) = (size(self.full_len), size(self.trimmed_len));
        let Self { fields, timestamp, leaves, height, .. } = self;
        let record = Arc::new(fields.finish());
        Ok(Layout { record, full_len, trimmed_len, timestamp, leaves, height })
    }
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
