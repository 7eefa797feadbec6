//! Layouts: where the fields of a format lie in a row. Resolved once per format, shared by its
//! topics.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use rovelog_core::layout::{Builder as Fields, Element, Layout as Record, Len, TextDecoder, TextDecoding};
use rovelog_core::names::UniqueNames;
use rovelog_core::{Limits, Scalar};

use crate::px4::fields::{self, Release};
use crate::schema::{Basic, FormatText, TypeName, is_padding};
use crate::wire::{Info, MSG_ID_LEN};

/// The largest row: a message's payload less the id. Section 6 of docs/formats/ulog.md.
const MAX_ROW: u64 = u16::MAX as u64 - MSG_ID_LEN as u64;

/// A format's record, and what only ULog knows of it.
#[derive(Debug, PartialEq)]
pub(crate) struct Layout {
    /// The visible fields with their places. Padding is counted in the sizes and shown nowhere.
    pub(crate) record: Arc<Record>,
    /// Bytes of all fields.
    pub(crate) full: usize,
    /// Bytes without the run of padding at the end: what is logged when this is a topic's own
    /// format.
    pub(crate) trimmed: usize,
    /// The field `timestamp`, if it is one.
    pub(crate) timestamp: Option<TimeField>,
    leaves: u64,
    /// Levels of types nested inside.
    height: usize,
}

/// Where and how wide a topic's timestamp is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeField {
    /// Offset within the row.
    pub(crate) offset: usize,
    /// Its width. "Special field names: timestamp"
    pub(crate) width: TimeWidth,
}

/// The type of a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeWidth {
    U8Millis,
    U16Micros,
    U32Micros,
    U64Micros,
}

/// Why a format cannot be laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Undecodable {
    /// This type is not defined (yet).
    Missing(String),
    /// This type contains itself.
    Circular(String),
    /// A limit was passed.
    TooLarge(&'static str),
}

impl fmt::Display for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(name) => write!(f, "type {name} is not defined"),
            Self::Circular(name) => write!(f, "type {name} contains itself"),
            Self::TooLarge(what) => write!(f, "it has {what}"),
        }
    }
}

/// The latest definition of each format, and the layouts made of them so far.
#[derive(Debug)]
pub(crate) struct Formats {
    texts: HashMap<String, Arc<str>>,
    layouts: HashMap<String, Arc<Layout>>,
    /// Names of formats that an earlier log in the file defined, and this one not yet.
    earlier: HashSet<String>,
    /// What could not be laid out, until another definition may have changed that.
    failed: HashMap<String, Undecodable>,
    /// How the texts of rows are decoded.
    pub(crate) decoding: TextDecoding,
    /// Whether the log is PX4's, so far; then names of types and fields say units.
    px4: bool,
    /// The release of PX4, where the log has said so.
    release: Option<Release>,
    /// Steps of work that resolving may still take. Grows with the bytes read, so that definitions
    /// which are redefined and resolved again and again cannot cost more than the file is worth.
    budget: u64,
}

impl Default for Formats {
    fn default() -> Self {
        Self {
            texts: HashMap::new(),
            layouts: HashMap::new(),
            earlier: HashSet::new(),
            failed: HashMap::new(),
            decoding: TextDecoding::default(),
            px4: false,
            release: None,
            budget: 1 << 20,
        }
    }
}

/// What [`Formats::define`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defined {
    /// A new name.
    New,
    /// The same text again.
    Repeated,
    /// Another text for a known name.
    Redefined,
}

impl Formats {
    /// Takes a definition, `payload` of an 'F' message that [`FormatText`] accepts.
    ///
    /// # Panics
    /// Panics if `payload` is not the text of `format`.
    pub(crate) fn define(&mut self, format: &FormatText<'_>, payload: &[u8]) -> Defined {
        self.budget += 4 * payload.len() as u64;
        let text = std::str::from_utf8(payload).expect("FormatText accepts only UTF-8");
        let is_new = !self.earlier.is_empty() && self.earlier.remove(format.name);
        match self.texts.get(format.name) {
            Some(known) if **known == *text => {
                if is_new {
                    Defined::New
                } else {
                    Defined::Repeated
                }
            }
            known => {
                let defined = if known.is_some() && !is_new { Defined::Redefined } else { Defined::New };
                if known.is_some() {
                    // Any layout may contain the old one.
                    self.layouts.clear();
                }
                if !self.failed.is_empty() {
                    self.failed = HashMap::new();
                }
                self.texts.insert(format.name.to_owned(), text.into());
                defined
            }
        }
    }

    /// Starts another log in the same file: a definition of a known name is a new one.
    pub(crate) fn restart(&mut self) {
        self.earlier = self.texts.keys().cloned().collect();
    }

    /// Takes an information message: PX4 writes what it is before its formats.
    pub(crate) fn learn(&mut self, info: Info<'_>) {
        match (info.parse_key().map(|key| key.name), info.value) {
            (Some("sys_name"), value) => self.px4 = value == b"PX4",
            // 0xAABBCCTT: "Predefined information messages"
            (Some("ver_sw_release"), [_, _, minor, major]) => self.release = Some((*major, *minor)),
            _ => {}
        }
    }

    /// Returns the definition text of a format.
    pub(crate) fn text(&self, name: &str) -> Option<&Arc<str>> {
        self.texts.get(name)
    }

    /// Returns the name of a format as it is kept, and its definition text.
    #[cfg(feature = "arrow")]
    pub(crate) fn definition(&self, name: &str) -> Option<(&str, &str)> {
        self.texts.get_key_value(name).map(|(name, text)| (&**name, &**text))
    }

    /// Returns the layout of format `name` as it is defined now.
    ///
    /// # Errors
    /// Returns an error if a type is missing or circular, or a limit is passed.
    pub(crate) fn layout(&mut self, name: &str, limits: &Limits) -> Result<Arc<Layout>, Undecodable> {
        if let Some(known) = self.known(name) {
            return known;
        }
        let layout = self.resolve(name, limits, &mut Vec::new());
        // Failures of inner formats depend on the way to them, so only the asked one is remembered.
        if let Err(why) = &layout {
            self.failed.insert(name.to_owned(), why.clone());
        }
        layout
    }

    /// Returns whether a subscription of format `name` would have the layout that an earlier one
    /// has: types inside may have been redefined since.
    pub(crate) fn still_gives(
        &mut self,
        name: &str,
        earlier: &Result<Arc<Layout>, Undecodable>,
        limits: &Limits,
    ) -> bool {
        match (earlier, self.layout(name, limits)) {
            (Ok(earlier), Ok(now)) if Arc::ptr_eq(earlier, &now) => true,
            (Ok(earlier), Ok(now)) => {
                // Comparing takes as many steps as there are leaves.
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

    /// Returns the layout of format `name`, where it was asked for before and nothing has changed
    /// since.
    pub(crate) fn known(&self, name: &str) -> Option<Result<Arc<Layout>, Undecodable>> {
        let layout = self.layouts.get(name).map(|layout| Ok(Arc::clone(layout)));
        layout.or_else(|| self.failed.get(name).map(|why| Err(why.clone())))
    }

    /// Depth is bounded by `limits.nesting`, so recursion is safe; what was resolved is never
    /// resolved twice.
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
        // The field came with 1.14, as the old meanings of flight modes had gone.
        let old_modes = !format.fields().any(|(_, field)| field == "nav_state_user_intention");
        let of_px4 = self.px4.then_some((self.release, old_modes));
        for (ty, field) in format.fields() {
            self.budget =
                self.budget.checked_sub(1).ok_or(Undecodable::TooLarge("too many redefinitions"))?;
            let kind = match Basic::parse(ty.base) {
                Some(Basic::Scalar(scalar)) => Kind::Basic(Element::Scalar(scalar)),
                Some(Basic::Char) => Kind::Basic(Element::Char(TextDecoder::UTF8)),
                None => Kind::Nested(self.resolve(ty.base, limits, path)?),
            };
            builder.field(ty, field, kind, limits)?;
            if let Some((release, old_modes)) = of_px4 {
                builder.of_px4(field, release, old_modes);
            }
        }
        path.pop();
        let layout = Arc::new(builder.finish(limits)?);
        self.layouts.insert(name.to_owned(), Arc::clone(&layout));
        Ok(layout)
    }
}

/// What one element of a field is.
enum Kind {
    Basic(Element),
    Nested(Arc<Layout>),
}

struct Builder {
    name: String,
    fields: Fields,
    full: u64,
    trimmed: u64,
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
            full: 0,
            trimmed: 0,
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
        // Zero-size types count too: visiting them costs the same.
        let (element, size, leaves) = match kind {
            Kind::Nested(layout) => {
                self.height = self.height.max(layout.height + 1);
                let leaves = count * layout.leaves.max(1);
                (Element::Struct(Arc::clone(&layout.record)), layout.full as u64, leaves)
            }
            Kind::Basic(element) => {
                let size = element.size().unwrap_or(0);
                (element, size, 1)
            }
        };
        let offset = self.full;
        self.full += count * size;
        self.leaves += leaves;
        if self.leaves > limits.leaves as u64 {
            return Err(Undecodable::TooLarge("too many fields"));
        }
        if is_padding(name) {
            self.fields.padding(count * size);
            return Ok(());
        }
        self.trimmed = self.full;
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
        let name = self.names.give(name);
        self.fields.field(name, element, len, ty.to_string());
        if let Some(unit) = unit {
            self.fields.unit(unit);
        }
        Ok(())
    }

    /// Adds what PX4's definitions say of the field that was added last.
    fn of_px4(&mut self, name: &str, release: Option<Release>, old_modes: bool) {
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
        if self.trimmed > MAX_ROW || self.full > u64::from(u32::MAX) {
            return Err(Undecodable::TooLarge("a row longer than a message can be"));
        }
        // The format itself is no nested level.
        if self.height > limits.nesting {
            return Err(Undecodable::TooLarge("too many levels of nested types"));
        }
        let size = |n: u64| usize::try_from(n).expect("checked above");
        Ok(Layout {
            record: Arc::new(self.fields.finish()),
            full: size(self.full),
            trimmed: size(self.trimmed),
            timestamp: self.timestamp,
            leaves: self.leaves,
            height: self.height,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formats(texts: &[&str]) -> Formats {
        let mut formats = Formats::default();
        for text in texts {
            formats.define(&FormatText::parse(text.as_bytes()).unwrap(), text.as_bytes());
        }
        formats
    }

    fn layout(texts: &[&str], name: &str) -> Result<Arc<Layout>, Undecodable> {
        formats(texts).layout(name, &Limits::default())
    }

    #[test]
    fn padding_counts_on_the_wire_and_is_shown_nowhere() {
        let texts =
            ["t:uint8_t a;uint32_t _padding0;e v;uint8_t[4] _padding1;", "e:float x;uint8_t _padding0;"];
        let t = layout(&texts, "t").unwrap();
        // The padding at the end of the nested type stays; only the top format is trimmed.
        assert_eq!((t.full, t.trimmed), (14, 10));
        assert_eq!(t.record.schema().fields.iter().map(|f| &*f.name).collect::<Vec<_>>(), ["a", "v"]);
        assert_eq!(t.record.slots()[1].offset, Some(5));
    }

    #[test]
    fn types_may_come_in_any_order_but_not_in_circles() {
        assert_eq!(layout(&["a:b x;", "b:a x;"], "a").unwrap_err(), Undecodable::Circular("a".into()));
        assert_eq!(layout(&["a:nope x;"], "a").unwrap_err(), Undecodable::Missing("nope".into()));
        assert_eq!(layout(&["a:b x;", "b:float y;"], "a").unwrap().full, 4);
    }

    #[test]
    fn levels_are_limited() {
        let chain = |n: usize| -> Vec<String> {
            (0..n)
                .map(|i| if i + 1 == n { format!("f{i}:float x;") } else { format!("f{i}:f{} x;", i + 1) })
                .collect()
        };
        for (n, ok) in [(65, true), (66, false)] {
            let texts = chain(n);
            let texts: Vec<_> = texts.iter().map(String::as_str).collect();
            assert_eq!(layout(&texts, "f0").is_ok(), ok);
            // The same limit when the inner types were laid out before.
            let mut formats = formats(&texts);
            formats.layout("f1", &Limits::default()).unwrap();
            assert_eq!(formats.layout("f0", &Limits::default()).is_ok(), ok);
        }
    }

    #[test]
    fn doubling_levels_end_at_a_limit() {
        let texts: Vec<_> = (0..60)
            .map(|i| if i == 59 { format!("f{i}:char[0] x;") } else { format!("f{i}:f{0} x;f{0} y;", i + 1) })
            .collect();
        let texts: Vec<_> = texts.iter().map(String::as_str).collect();
        assert_eq!(layout(&texts, "f0").unwrap_err(), Undecodable::TooLarge("too many fields"));
    }

    fn leaf_limit(leaves: usize) -> Limits {
        let mut limits = Limits::default();
        limits.leaves = leaves;
        limits
    }

    #[test]
    fn leaves_are_counted_through_arrays_of_types() {
        let texts = ["t:e[4] x;float y;", "e:float a;float b;float c;"];
        let with = |leaves| formats(&texts).layout("t", &leaf_limit(leaves));
        assert!(with(13).is_ok());
        assert_eq!(with(12).unwrap_err(), Undecodable::TooLarge("too many fields"));
    }

    #[test]
    fn a_row_is_no_longer_than_a_message() {
        let long = Err(Undecodable::TooLarge("a row longer than a message can be"));
        let len = |text: &str| layout(&[text], "t").map(|layout| (layout.trimmed, layout.full));
        assert_eq!(len("t:char[65533] x;char[0] y;"), Ok((65_533, 65_533)));
        assert_eq!(len("t:char[65533] x;char y;"), long);
        assert_eq!(len("t:char[65533] x;char[65535] _padding0;"), Ok((65_533, 131_068)));
        // Padding at its end is in no message, but all of it can be counted with 32 bits.
        let padded = |t: &str| {
            let texts = [t, "e:char[65535] _padding0;char _padding1;"];
            formats(&texts).layout("t", &leaf_limit(1 << 20)).map(|layout| (layout.trimmed, layout.full))
        };
        assert_eq!(padded("t:char[0] x;e[65535] _padding0;char[65535] _padding1;"), Ok((0, 0xFFFF_FFFF)));
        assert_eq!(padded("t:char[0] x;e[65535] _padding0;e _padding1;"), long);
    }

    #[test]
    fn resolving_takes_no_more_steps_than_the_texts_pay_for() {
        let mut formats = Formats { budget: 0, ..formats(&[]) };
        let text = b"t:float x;";
        formats.define(&FormatText::parse(text).unwrap(), text);
        let mut resolve = || {
            formats.layouts.clear();
            formats.failed.clear();
            formats.layout("t", &Limits::default()).map(|layout| layout.full)
        };
        for _ in 0..4 * text.len() {
            assert_eq!(resolve(), Ok(4));
        }
        assert_eq!(resolve(), Err(Undecodable::TooLarge("too many redefinitions")));
    }

    #[test]
    fn a_layout_is_still_given_while_no_type_inside_changes() {
        let mut formats = formats(&["t:e x;", "e:float y;"]);
        let first = formats.layout("t", &Limits::default());
        let mut still = |text: &str| {
            formats.define(&FormatText::parse(text.as_bytes()).unwrap(), text.as_bytes());
            formats.still_gives("t", &first, &Limits::default())
        };
        assert_eq!(
            ["u:float y;", "u:double y;", "e:int32_t y;", "e:float y;"].map(&mut still),
            [true, true, false, true]
        );
        // Nothing can be said of a topic without a layout.
        let missing = Err(Undecodable::Missing("e".to_owned()));
        assert!(!formats.still_gives("t", &missing, &Limits::default()));
        assert!(formats.still_gives("v", &missing, &Limits::default()));
    }

    #[test]
    fn px4_says_units_and_names_for_its_release() {
        let text = "vehicle_status:uint64_t timestamp;uint8_t arming_state;uint8_t nav_state;";
        let battery = "battery_status:float voltage_v;float[14] voltage_cell_v;";
        let of = |infos: &[(&[u8], &[u8])]| {
            let mut formats = formats(&[text, battery]);
            for (key, value) in infos {
                formats.learn(Info { key, value });
            }
            let mut fields = |name| {
                let layout = formats.layout(name, &Limits::default()).unwrap();
                layout.record.schema().fields.clone()
            };
            let (status, battery) = (fields("vehicle_status"), fields("battery_status"));
            let units: Vec<_> = battery.iter().map(|field| field.unit.clone()).collect();
            (status[0].unit.clone(), status[1].name_of(1), status[2].name_of(5), units)
        };
        let px4: (&[u8], &[u8]) = (b"char[3] sys_name", b"PX4");
        let volts = || vec![Some("V".to_owned()), Some("V".to_owned())];
        let us = Some("us".to_owned());
        assert_eq!(of(&[px4]), (us.clone(), Some("Disarmed"), Some("Return"), volts()));
        let release: (&[u8], &[u8]) = (b"uint32_t ver_sw_release", &[0xff, 2, 14, 1]);
        assert_eq!(of(&[px4, release]), (us.clone(), Some("Standby"), Some("Return"), volts()));
        assert_eq!(of(&[(b"char[3] sys_name", b"XYZ")]), (us, None, None, vec![None, None]));
    }

    #[test]
    fn flight_modes_have_the_meanings_of_the_fields_that_are_there() {
        let mode = |text: &str| {
            let mut formats = formats(&[text]);
            formats.learn(Info { key: b"char[3] sys_name", value: b"PX4" });
            let layout = formats.layout("vehicle_status", &Limits::default()).unwrap();
            layout.record.schema().fields[0].name_of(8)
        };
        assert_eq!(mode("vehicle_status:uint8_t nav_state;"), Some("Land on engine failure"));
        let later = "vehicle_status:uint8_t nav_state;uint8_t nav_state_user_intention;";
        assert_eq!(mode(later), Some("Altitude cruise"));
    }

    #[test]
    fn a_field_name_used_twice_is_numbered() {
        let t = layout(&["t:float x;float x;double x;"], "t").unwrap();
        assert_eq!(
            t.record.schema().fields.iter().map(|f| &*f.name).collect::<Vec<_>>(),
            ["x", "x#2", "x#3"]
        );
        // As many names as a format can hold are given in one go.
        let many = (2..6000).map(|n| format!("char x#{n};")).collect::<Vec<_>>().concat();
        let t = layout(&[&format!("t:char x;{many}{}", "char x;".repeat(6000))], "t").unwrap();
        assert_eq!(t.record.schema().fields.last().map(|f| &*f.name), Some("x#11999"));
        // Names that earlier fields have in the log are not given again.
        let t = layout(&["t:float x;float x#2;float x#3;float x;float x;"], "t").unwrap();
        assert_eq!(
            t.record.schema().fields.iter().map(|f| &*f.name).collect::<Vec<_>>(),
            ["x", "x#2", "x#3", "x#4", "x#5"]
        );
    }

    #[test]
    fn a_redefinition_reaches_the_types_that_contain_it() {
        let mut formats = formats(&["t:e x;", "e:float y;"]);
        assert_eq!(formats.layout("t", &Limits::default()).unwrap().full, 4);
        let text = b"e:double y;";
        assert_eq!(formats.define(&FormatText::parse(text).unwrap(), text), Defined::Redefined);
        assert_eq!(formats.layout("t", &Limits::default()).unwrap().full, 8);
    }
}
