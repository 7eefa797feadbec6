//! Message types with known fields. They are described in the VEL specification, or declared by the
//! user as in section 4.2 of the specification. Messages of both kinds are read, written and
//! printed according to their layouts.
//!
//! A declaration has the name of a type in the recording program, its version, and its fields. The
//! data types are those in section 2 of the specification. For example:
//!
//! ```text
//! # comments and empty lines are ignored
//! message CompassM 100
//!   float heading deg
//!   unsigned int n
//!   float samples[n] uT
//!   string name
//! ```

use std::collections::HashMap;
use std::io::Read;
use std::sync::{Arc, LazyLock};

use rovelog_core::internal::layout::{
    Builder, DeclaredField, Element, Fit, Layout, Len, Misfit, TextDecoder,
};
use rovelog_core::internal::limits::read_description_text;
use rovelog_core::{Scalar, Value};

use crate::error::VelError;
use crate::hash::simple_hash;
use crate::message::Kind;
use crate::wire::{GpsData, ImageData, LaserRange, ObdData, RobotPose, VelodyneRawData};

/// Names of the data types in section 2 of the VEL specification.
const NAMES: [(&str, Element); 9] = [
    ("unsigned char", Element::Scalar(Scalar::UInt8)),
    ("unsigned short", Element::Scalar(Scalar::UInt16)),
    ("unsigned int", Element::Scalar(Scalar::UInt32)),
    ("long long", Element::Scalar(Scalar::Int64)),
    ("int", Element::Scalar(Scalar::Int32)),
    ("float", Element::Scalar(Scalar::Float32)),
    ("double", Element::Scalar(Scalar::Float64)),
    ("bool", Element::WideBool),
    ("string", Element::Text(TextDecoder::LATIN1)),
];

/// Returns the name of a data type in section 2 of the VEL specification.
fn type_name(element: &Element, len: Len) -> String {
    let name = match element {
        Element::Byte => "unsigned char",
        Element::Packed(_) => "VelodynePacket",
        other => NAMES.iter().find(|(_, element)| element == other).map_or("", |(name, _)| name),
    };
    match len {
        Len::One => name.to_owned(),
        Len::Fixed(len) => format!("{name}[{len}]"),
        Len::Counted | Len::Field(_) => format!("{name}[]"),
    }
}

/// A message type whose fields are known.
#[derive(Debug)]
pub struct Declared {
    type_id: u32,
    version: i32,
    kind: Option<Kind>,
    layout: Arc<Layout>,
}

impl Declared {
    fn new(type_id: u32, version: i32, kind: Option<Kind>, layout: Builder) -> Self {
        Self { type_id, version, kind, layout: Arc::new(layout.finish()) }
    }

    /// Creates a message type that the VEL specification describes.
    fn of(kind: Kind) -> Self {
        let fields: &[DeclaredField] = match kind {
            Kind::Obd => ObdData::FIELDS,
            Kind::Gps => GpsData::FIELDS,
            Kind::Image => ImageData::FIELDS,
            Kind::Pose => RobotPose::FIELDS,
            Kind::Velodyne => VelodyneRawData::FIELDS,
            Kind::Laser => LaserRange::FIELDS,
        };
        let mut layout = Layout::builder(kind.name());
        layout.declared(fields, type_name);
        Self::new(kind.type_id(), kind.version(), Some(kind), layout)
    }

    /// Returns the name of the message type.
    pub fn name(&self) -> &str {
        &self.layout.schema().name
    }

    /// Returns the id of the message type, which `simpleHash` computes from its name.
    pub fn type_id(&self) -> u32 {
        self.type_id
    }

    /// Returns the version of the message type.
    pub fn version(&self) -> i32 {
        self.version
    }

    /// Returns the kind of the message type if the specification describes it. Returns `None` for a
    /// type that the user declared.
    pub(crate) fn kind(&self) -> Option<Kind> {
        self.kind
    }

    /// Returns the layout of the message type's fields.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// Decodes the fields in the data of a message to a [`Value::Struct`]. Returns `None` if the
    /// data is too short.
    pub fn value(&self, data: &[u8]) -> Option<Value> {
        self.layout.value(data).ok().map(|(value, _)| value)
    }

    /// Encodes the fields in `value` as the data of a message.
    ///
    /// # Errors
    /// Returns an error if a field is missing, or if a value has a different type or length than
    /// its field.
    pub fn encode(&self, value: &Value) -> Result<Vec<u8>, VelError> {
        let mut out = Vec::new();
        let bad = |misfit: Misfit| VelError::BadValue { field: misfit.path, why: misfit.why };
        self.layout.encode(value, &mut out).map_err(bad)?;
        Ok(out)
    }
}

/// Message types of the specification, in the order of [`Kind::ALL`].
static BUILT_IN: LazyLock<[Arc<Declared>; 6]> =
    LazyLock::new(|| Kind::ALL.map(|kind| Arc::new(Declared::of(kind))));

/// Parser for the lines of a declaration, which describe one message type.
struct Parser {
    line: usize,
    name: String,
    version: i32,
    layout: Builder,
    /// Index of each field by its name.
    places: HashMap<String, usize>,
}

impl Parser {
    /// Parses a line that declares a field, for example `TYPE NAME`, `TYPE NAME[4] UNIT` or `TYPE
    /// NAME[count]`.
    fn field(&mut self, line: &str) -> Result<(), String> {
        let named = |(name, element): &(&str, Element)| {
            let rest = line.strip_prefix(name)?;
            rest.starts_with(char::is_whitespace).then(|| (element.clone(), rest.trim_start()))
        };
        let found = NAMES.iter().find_map(named);
        let (mut element, rest) = found
            .ok_or_else(|| format!("{line:?} does not start with a known type such as int or double"))?;
        let (name, unit) = match rest.split_once(char::is_whitespace) {
            Some((name, unit)) => (name, Some(unit.trim())),
            None => (rest, None),
        };
        let (name, len) = match name.split_once('[') {
            None => (name, Len::One),
            Some((name, len)) => (name, self.len(name, len)?),
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(plain) {
            return Err(format!("{name:?} is not a valid field name"));
        }
        if self.places.insert(name.to_owned(), self.places.len()).is_some() {
            return Err(format!("the message has two fields named {name}"));
        }
        // An array of bytes whose length is another field becomes a single value of bytes, not a
        // list of numbers.
        if element == Element::Scalar(Scalar::UInt8) && matches!(len, Len::Field(_)) {
            element = Element::Byte;
        }
        let source = type_name(&element, len);
        self.layout.field(name, element, len, source);
        if let Some(unit) = unit {
            self.layout.unit(unit);
        }
        Ok(())
    }

    /// Parses the length of an array field, which is in brackets after the name of the field. The
    /// length is a number or the name of an earlier integer field.
    fn len(&self, name: &str, len: &str) -> Result<Len, String> {
        let len = len.strip_suffix(']').ok_or_else(|| format!("the bracket after {name} is not closed"))?;
        let counts = |place: &&usize| {
            let slot = &self.layout.slots()[**place];
            let is_float = |scalar: Scalar| matches!(scalar, Scalar::Float32 | Scalar::Float64);
            slot.len == Len::One && matches!(slot.element, Element::Scalar(scalar) if !is_float(scalar))
        };
        match (len.parse(), self.places.get(len).filter(counts)) {
            (Ok(n), _) if n <= 65_535 => Ok(Len::Fixed(n)),
            (Err(_), Some(place)) => Ok(Len::Field(*place)),
            _ => Err(format!("{len} is neither a length up to 65535 nor an integer field before {name}")),
        }
    }
}

/// All message types whose fields are known. They come from the specification, and from the
/// declarations of the user.
#[derive(Clone, Debug, Default)]
pub struct Types {
    declared: Vec<Arc<Declared>>,
    by_id: HashMap<(u32, i32), usize>,
    text: String,
}

impl Types {
    /// Reads declarations of message types from a file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is longer than 1 MiB. Also returns the errors
    /// of [`parse`](Self::parse).
    pub fn read(file: impl Read) -> Result<Self, VelError> {
        Self::parse(&read_description_text(file)?)
    }

    /// Parses declarations of message types.
    ///
    /// # Errors
    /// Returns an error if a line is invalid, if a type is declared twice, or if two names have the
    /// same id.
    pub fn parse(text: &str) -> Result<Self, VelError> {
        let mut types = Self { text: text.to_owned(), ..Self::default() };
        let mut open: Option<Parser> = None;
        for (i, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            let bad = |why: String| VelError::BadDeclaration { line: i + 1, why };
            if line.is_empty() {
                continue;
            }
            if let Some(rest) = line.strip_prefix("message ") {
                types.close(open.take())?;
                let mut words = rest.split_whitespace();
                let (name, version, more) = (words.next(), words.next(), words.next());
                let version = version
                    .unwrap_or("100")
                    .parse()
                    .map_err(|_| bad("the version is not a number".to_owned()))?;
                let (Some(name), None) = (name, more) else {
                    return Err(bad("a message line must have a name and a version".to_owned()));
                };
                let (name, layout) = (name.to_owned(), Layout::builder(name));
                open = Some(Parser { line: i + 1, name, version, layout, places: HashMap::new() });
                continue;
            }
            let Some(open) = &mut open else {
                return Err(bad("the field comes before the first `message` line".to_owned()));
            };
            open.field(line).map_err(bad)?;
        }
        types.close(open)?;
        Ok(types)
    }

    fn close(&mut self, open: Option<Parser>) -> Result<(), VelError> {
        let Some(Parser { line, name, version, layout, .. }) = open else { return Ok(()) };
        let bad = |why: String| VelError::BadDeclaration { line, why };
        let type_id = simple_hash(&name).map_err(|error| bad(error.to_string()))?;
        let taken = |by: String| bad(format!("{name} {version} has the id 0x{type_id:08X}, which {by}"));
        if let Some(other) = self.by_id.get(&(type_id, version)) {
            return Err(taken(format!("{} already has", self.declared[*other].name())));
        }
        if let Some(kind) = Kind::of(type_id, version) {
            return Err(taken(format!("belongs to {}", kind.name())));
        }
        self.by_id.insert((type_id, version), self.declared.len());
        self.declared.push(Arc::new(Declared::new(type_id, version, None, layout)));
        Ok(())
    }

    /// Returns the declarations as text. The text can be passed to
    /// [`ReadOptions`](rovelog_core::ReadOptions).
    pub fn declarations(&self) -> &str {
        &self.text
    }

    /// Returns the message types that the user declared.
    pub fn declared(&self) -> &[Arc<Declared>] {
        &self.declared
    }

    /// Returns the message type with this id and version. Returns `None` if the fields of the type
    /// are unknown.
    #[inline]
    pub fn find(&self, type_id: u32, version: i32) -> Option<&Arc<Declared>> {
        let is_it = |known: &&Arc<Declared>| known.type_id == type_id && known.version == version;
        if let Some(built_in) = BUILT_IN.iter().find(is_it) {
            return Some(built_in);
        }
        if self.declared.is_empty() {
            return None;
        }
        self.by_id.get(&(type_id, version)).map(|i| &self.declared[*i])
    }

    /// Compares the length of a message's data with the layout of its type. Returns `None` if the
    /// fields of the type are unknown.
    #[inline]
    pub fn fit(&self, type_id: u32, version: i32, data: &[u8]) -> Option<Fit> {
        self.find(type_id, version).map(|declared| declared.layout.fit(data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPASS: &str = "
        # a compass
        message CompassM 100
          float heading deg
          bool ok
          unsigned int n
          float samples[n] uT
          unsigned char blob[n]
          unsigned short pair[2]
          string name
        message OtherM
          long long ticks
    ";

    #[test]
    fn declared_types_read_what_they_write() {
        let types = Types::parse(COMPASS).unwrap();
        let compass = types.find(0x0001_806E, 100).unwrap();
        let value = Value::record([
            ("heading", Value::F32(271.5)),
            ("ok", Value::Bool(true)),
            ("n", Value::UInt(2, 32)),
            ("samples", Value::List(vec![Value::F32(1.0), Value::F32(-2.0)])),
            ("blob", Value::Bytes(vec![7, 8])),
            ("pair", Value::List(vec![Value::UInt(1, 16), Value::UInt(2, 16)])),
            ("name", Value::Text("n\u{f6}rd".to_owned())),
        ]);
        let data = compass.encode(&value).unwrap();
        assert_eq!(data.len(), 4 + 4 + 4 + 8 + 2 + 4 + 4 + 5);
        assert_eq!(compass.value(&data).unwrap(), value);
        assert_eq!(compass.layout().fit(&data), Fit::Exact);
        for cut in 0..data.len() {
            assert!(matches!(compass.layout().fit(&data[..cut]), Fit::Short(_)), "{cut}");
            assert_eq!(compass.value(&data[..cut]), None);
        }
        assert_eq!(compass.layout().fit(&[&data[..], &[0]].concat()), Fit::Surplus(1));
        assert_eq!(types.declared()[1].version(), 100);
    }

    #[test]
    fn errors_in_declarations_state_the_line() {
        for (text, line) in [
            ("float x", 1),
            ("message", 1),
            ("message A 1\nfloat", 2),
            ("message A 1\nfloat x[n]", 2),
            ("message A 1\nfloat n\nfloat x[n]", 3),
            ("message A 1\nint x\nint x", 3),
            ("message A 1\nint x\nmessage A 1\nint y", 3),
            ("message LaserCloudM 1\nmessage CloudLaserM 1", 2),
            ("message VelodyneGridMapM 100\nint x", 1),
            ("message Stra\u{df}eM 1", 1),
            ("message A 1\nfloat x-y", 2),
            ("message A 1\nfloat [3]", 2),
            ("message A 1\nfloat x[65536]", 2),
        ] {
            match Types::parse(text) {
                Err(VelError::BadDeclaration { line: got, .. }) => assert_eq!(got, line, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn names_may_have_underscores_and_lengths_16_bits() {
        let types = Types::parse("message A_B 1\nfloat x_1[65535]").unwrap();
        assert_eq!(types.declared()[0].layout().schema().fields[0].name.as_ref(), "x_1");
    }

    #[test]
    fn declarations_are_read_up_to_their_limit() {
        let limit = usize::try_from(rovelog_core::internal::limits::DESCRIPTION).unwrap();
        let text = |len: usize| {
            let end = "\nmessage A 1\nfloat x\n";
            format!("{}{end}", "#".repeat(len - end.len()))
        };
        let types = Types::read(text(limit).as_bytes()).unwrap();
        assert_eq!((types.declared().len(), types.declarations()), (1, &*text(limit)));
        match Types::read(text(limit + 1).as_bytes()) {
            Err(VelError::Io(error)) => assert_eq!(error.to_string(), "the file is longer than 1 MiB"),
            other => panic!("{other:?}"),
        }
        assert_eq!(Types::default().declarations(), "");
    }

    /// If an element count exceeds the data, it must be rejected before memory is allocated for the
    /// elements.
    #[test]
    fn hostile_counts_are_rejected() {
        let types = Types::parse("message A 1\nunsigned int n\ndouble x[n]\nstring s[n]").unwrap();
        let declared = &types.declared()[0];
        assert!(matches!(declared.layout().fit(&[0xFF; 12]), Fit::Short(_)));
        assert_eq!(declared.value(&[0xFF; 12]), None);
    }
}
