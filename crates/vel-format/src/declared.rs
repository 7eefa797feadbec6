//! Own message types (section 4.2): declared by the user, then read, written and printed like built-in ones.
//!
//! A declaration names a type as the program did, and its fields in the words of section 2:
//!
//! ```text
//! # comments and empty lines are free
//! message CompassM 100
//!   float heading deg
//!   unsigned int n
//!   float samples[n] uT
//!   string name
//! ```

use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;

use rovelog_core::{Field, FieldType, Scalar, Schema, Value};

use crate::error::VelError;
use crate::hash::simple_hash;
use crate::message::{Fit, Kind, text};

/// Bytes of a file of declarations at most.
const FILE_LIMIT: u64 = 1 << 20;

/// The data types of section 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Basic {
    Scalar(Scalar),
    /// Four bytes, any but 0 is true.
    Bool,
    Text,
}

impl Basic {
    /// The type at the start of `line`, and what follows it.
    fn parse(line: &str) -> Option<(Self, &'static str, &str)> {
        const NAMES: &[(&str, Basic)] = &[
            ("unsigned char", Basic::Scalar(Scalar::UInt8)),
            ("unsigned short", Basic::Scalar(Scalar::UInt16)),
            ("unsigned int", Basic::Scalar(Scalar::UInt32)),
            ("long long", Basic::Scalar(Scalar::Int64)),
            ("int", Basic::Scalar(Scalar::Int32)),
            ("float", Basic::Scalar(Scalar::Float32)),
            ("double", Basic::Scalar(Scalar::Float64)),
            ("bool", Basic::Bool),
            ("string", Basic::Text),
        ];
        NAMES.iter().find_map(|(name, basic)| {
            let rest = line.strip_prefix(name)?;
            rest.starts_with(char::is_whitespace).then(|| (*basic, *name, rest.trim_start()))
        })
    }

    /// Bytes of one; `None` for text.
    fn size(self) -> Option<u64> {
        match self {
            Self::Scalar(scalar) => Some(scalar.size() as u64),
            Self::Bool => Some(4),
            Self::Text => None,
        }
    }

    fn field_type(self) -> FieldType {
        match self {
            Self::Scalar(scalar) => FieldType::Scalar(scalar),
            Self::Bool => FieldType::Scalar(Scalar::Bool),
            Self::Text => FieldType::Text,
        }
    }

    fn value(self, bytes: &[u8]) -> Option<Value> {
        macro_rules! number {
            ($ty:ty) => {
                <$ty>::from_le_bytes(*bytes.first_chunk()?)
            };
        }
        Some(match self {
            Self::Bool => Value::Bool(number!(u32) != 0),
            Self::Scalar(Scalar::UInt8) => Value::UInt(number!(u8).into(), 8),
            Self::Scalar(Scalar::UInt16) => Value::UInt(number!(u16).into(), 16),
            Self::Scalar(Scalar::UInt32) => Value::UInt(number!(u32).into(), 32),
            Self::Scalar(Scalar::Int64) => Value::Int(number!(i64), 64),
            Self::Scalar(Scalar::Float32) => Value::F32(number!(f32)),
            Self::Scalar(Scalar::Float64) => Value::F64(number!(f64)),
            Self::Scalar(_) => Value::Int(number!(i32).into(), 32),
            Self::Text => return None,
        })
    }

    fn encode(self, value: &Value, out: &mut Vec<u8>) -> Option<()> {
        macro_rules! integer {
            ($ty:ty) => {{
                let number = match *value {
                    Value::Int(v, _) => <$ty>::try_from(v).ok()?,
                    Value::UInt(v, _) => <$ty>::try_from(v).ok()?,
                    _ => return None,
                };
                out.extend_from_slice(&number.to_le_bytes());
            }};
        }
        match self {
            Self::Bool => {
                let Value::Bool(value) = value else { return None };
                out.extend_from_slice(&u32::from(*value).to_le_bytes());
            }
            Self::Scalar(Scalar::UInt8) => integer!(u8),
            Self::Scalar(Scalar::UInt16) => integer!(u16),
            Self::Scalar(Scalar::UInt32) => integer!(u32),
            Self::Scalar(Scalar::Int64) => integer!(i64),
            Self::Scalar(Scalar::Float32) => {
                let Value::F32(value) = value else { return None };
                out.extend_from_slice(&value.to_le_bytes());
            }
            Self::Scalar(Scalar::Float64) => {
                let Value::F64(value) = value else { return None };
                out.extend_from_slice(&value.to_le_bytes());
            }
            Self::Scalar(_) => integer!(i32),
            Self::Text => {
                let text = value.as_str()?;
                out.extend_from_slice(&u32::try_from(text.len()).ok()?.to_le_bytes());
                out.extend_from_slice(text.as_bytes());
            }
        }
        Some(())
    }
}

/// How many elements a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Len {
    One,
    Fixed(u32),
    /// As many as an earlier field says.
    Field(usize),
}

#[derive(Clone, Debug)]
struct Slot {
    name: Arc<str>,
    basic: Basic,
    len: Len,
}

impl Slot {
    /// Bytes without fields of their own.
    fn is_blob(&self) -> bool {
        self.basic == Basic::Scalar(Scalar::UInt8) && matches!(self.len, Len::Field(_))
    }
}

/// A message type that the user has declared.
#[derive(Clone, Debug)]
pub struct Declared {
    name: String,
    type_id: u32,
    version: i32,
    slots: Vec<Slot>,
    schema: Arc<Schema>,
}

impl Declared {
    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The id that `simpleHash` makes of the name.
    pub fn type_id(&self) -> u32 {
        self.type_id
    }

    /// The version.
    pub fn version(&self) -> i32 {
        self.version
    }

    /// The fields.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Calls `visit` with each field and its bytes, as far as `data` holds whole ones; the length of the
    /// content. `None` where `data` ends before it does.
    fn walk<'a>(&self, data: &'a [u8], mut visit: impl FnMut(&Slot, u64, &'a [u8])) -> Option<u64> {
        // Of each slot so far, as far as there are bytes: a type may have more slots than a message has bytes.
        let mut counts: Vec<u64> = Vec::new();
        let mut at = 0_u64;
        for slot in &self.slots {
            let count = match slot.len {
                Len::One => 1,
                Len::Fixed(n) => u64::from(n),
                Len::Field(field) => counts[field],
            };
            let from = usize::try_from(at).ok();
            let rest = from.and_then(|from| data.get(from..));
            let size = if let Some(size) = slot.basic.size() {
                size.checked_mul(count)?
            } else {
                let mut size = 0_u64;
                for _ in 0..count {
                    let at = usize::try_from(size).ok()?;
                    let len = u32::from_le_bytes(*rest?.get(at..)?.first_chunk()?);
                    size += 4 + u64::from(len);
                }
                size
            };
            let bytes = rest?.get(..usize::try_from(size).ok()?)?;
            counts.push(match slot.basic.value(bytes) {
                Some(Value::UInt(n, _)) => n,
                Some(Value::Int(n, _)) => u64::try_from(n).unwrap_or(u64::MAX >> 8),
                _ => 0,
            });
            visit(slot, count, bytes);
            at = at.checked_add(size)?;
        }
        Some(at)
    }

    /// How `data` fits the declaration.
    pub fn fit(&self, data: &[u8]) -> Fit {
        match self.walk(data, |_, _, _| {}) {
            Some(wanted) => Fit::of_length(wanted, data.len() as u64),
            None => Fit::Short,
        }
    }

    /// The fields in `data`, as a [`Value::Struct`]; `None` where it ends before they do.
    pub fn value(&self, data: &[u8]) -> Option<Value> {
        if self.fit(data) == Fit::Short {
            return None;
        }
        let mut fields = Vec::with_capacity(self.slots.len());
        self.walk(data, |slot, count, bytes| {
            fields.push((Arc::clone(&slot.name), slot_value(slot, count, bytes)));
        })?;
        Some(Value::Struct(fields))
    }

    /// The data of a message with these values.
    ///
    /// # Errors
    /// Where a field is missing, or its value is of another type or length than declared.
    pub fn encode(&self, value: &Value) -> Result<Vec<u8>, VelError> {
        let mut out = Vec::new();
        for slot in &self.slots {
            let bad = |why: &str| VelError::BadValue { field: slot.name.to_string(), why: why.to_owned() };
            let field = value.get(&slot.name).ok_or_else(|| bad("there is no value for it"))?;
            let count = match slot.len {
                Len::One => None,
                Len::Fixed(n) => Some(u64::from(n)),
                Len::Field(i) => match value.get(&self.slots[i].name) {
                    Some(Value::UInt(n, _)) => Some(*n),
                    Some(Value::Int(n, _)) => {
                        Some(u64::try_from(*n).map_err(|_| bad("its count is negative"))?)
                    }
                    _ => return Err(bad("its count is no integer")),
                },
            };
            let done = match (field, count) {
                (Value::Bytes(bytes), Some(count)) if slot.is_blob() => {
                    out.extend_from_slice(bytes);
                    (bytes.len() as u64 == count).then_some(())
                }
                (Value::List(items), Some(count)) if items.len() as u64 == count => {
                    items.iter().try_for_each(|item| slot.basic.encode(item, &mut out))
                }
                (value, None) => slot.basic.encode(value, &mut out),
                _ => None,
            };
            done.ok_or_else(|| bad("the value is not of the declared type and length"))?;
        }
        Ok(out)
    }
}

fn slot_value(slot: &Slot, count: u64, bytes: &[u8]) -> Value {
    if slot.is_blob() {
        return Value::Bytes(bytes.to_vec());
    }
    let mut rest = bytes;
    let mut one = || {
        if let Some(size) = slot.basic.size() {
            let (item, tail) = rest.split_at(usize::try_from(size).unwrap_or(rest.len()).min(rest.len()));
            rest = tail;
            return slot.basic.value(item).unwrap_or(Value::Null);
        }
        let len = rest.first_chunk().map_or(0, |len| u32::from_le_bytes(*len) as usize);
        let (item, tail) = rest.split_at((4 + len).min(rest.len()));
        rest = tail;
        Value::Text(text(item.get(4..).unwrap_or_default()).into_owned())
    };
    match slot.len {
        Len::One => one(),
        _ => Value::List((0..count).map(|_| one()).collect()),
    }
}

/// A declaration that is being read.
struct Open {
    line: usize,
    name: String,
    version: i32,
    slots: Vec<Slot>,
    fields: Vec<Field>,
    /// Where the slot of a name is.
    places: HashMap<Arc<str>, usize>,
}

impl Open {
    /// Takes a line: `TYPE NAME`, `TYPE NAME[4] UNIT`, `TYPE NAME[count]`.
    fn field(&mut self, line: &str) -> Result<(), String> {
        let (slot, field) = field(line, |name| {
            let place = *self.places.get(name)?;
            Some((place, &self.slots[place]))
        })?;
        if self.places.insert(Arc::clone(&slot.name), self.slots.len()).is_some() {
            return Err(format!("a second field {}", slot.name));
        }
        self.slots.push(slot);
        self.fields.push(field);
        Ok(())
    }
}

/// All types with a layout: those of the specification, and those declared.
#[derive(Clone, Debug, Default)]
pub struct Types {
    declared: Vec<Arc<Declared>>,
    by_id: HashMap<(u32, i32), usize>,
    text: String,
}

impl Types {
    /// Reads declarations from a file.
    ///
    /// # Errors
    /// Where it cannot be read or is longer than 1 MiB, and those of [`parse`](Self::parse).
    pub fn read(file: impl Read) -> Result<Self, VelError> {
        let mut text = String::new();
        file.take(FILE_LIMIT + 1).read_to_string(&mut text)?;
        if text.len() as u64 > FILE_LIMIT {
            let why = "declarations are not longer than 1 MiB".to_owned();
            return Err(VelError::BadDeclaration { line: text.lines().count(), why });
        }
        Self::parse(&text)
    }

    /// Reads declarations.
    ///
    /// # Errors
    /// Where a line cannot be read, a type is declared twice, or two names share an id.
    pub fn parse(text: &str) -> Result<Self, VelError> {
        let mut types = Self { text: text.to_owned(), ..Self::default() };
        let mut open: Option<Open> = None;
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
                    .map_err(|_| bad("the version is no number".to_owned()))?;
                match (name, more) {
                    (Some(name), None) => {
                        let name = name.to_owned();
                        open = Some(Open {
                            line: i + 1,
                            name,
                            version,
                            slots: Vec::new(),
                            fields: Vec::new(),
                            places: HashMap::new(),
                        });
                    }
                    _ => return Err(bad("a message has a name and a version".to_owned())),
                }
                continue;
            }
            let Some(open) = &mut open else {
                return Err(bad("a field before the first `message`".to_owned()));
            };
            open.field(line).map_err(bad)?;
        }
        types.close(open)?;
        Ok(types)
    }

    fn close(&mut self, open: Option<Open>) -> Result<(), VelError> {
        let Some(Open { line, name, version, slots, fields, .. }) = open else { return Ok(()) };
        let bad = |why: String| VelError::BadDeclaration { line, why };
        let type_id = simple_hash(&name).map_err(|error| bad(error.to_string()))?;
        if let Some(other) = self.by_id.get(&(type_id, version)) {
            let other = &self.declared[*other].name;
            return Err(bad(format!(
                "{name} {version} has the id 0x{type_id:08X}, which {other} has already"
            )));
        }
        if let Some(kind) = Kind::of(type_id, version) {
            return Err(bad(format!(
                "{name} {version} has the id 0x{type_id:08X}, which belongs to {}",
                kind.name()
            )));
        }
        let schema = Arc::new(Schema { name: name.clone(), fields });
        self.by_id.insert((type_id, version), self.declared.len());
        self.declared.push(Arc::new(Declared { name, type_id, version, slots, schema }));
        Ok(())
    }

    /// The text that they were read from: what [`ReadOptions`](rovelog_core::ReadOptions) takes.
    pub fn declarations(&self) -> &str {
        &self.text
    }

    /// The declared types.
    pub fn declared(&self) -> &[Arc<Declared>] {
        &self.declared
    }

    /// A declared type by its id and version.
    pub fn find(&self, type_id: u32, version: i32) -> Option<&Arc<Declared>> {
        if self.declared.is_empty() {
            return None;
        }
        self.by_id.get(&(type_id, version)).map(|i| &self.declared[*i])
    }

    /// Whether the layout of a type is known.
    #[inline]
    pub fn knows(&self, type_id: u32, version: i32) -> bool {
        Kind::of(type_id, version).is_some() || self.find(type_id, version).is_some()
    }

    /// How `data` fits the layout of a type.
    #[inline]
    pub fn fit(&self, type_id: u32, version: i32, data: &[u8]) -> Fit {
        match Kind::of(type_id, version) {
            Some(kind) => Fit::of(Some(kind), data),
            None => self.find(type_id, version).map_or(Fit::Unknown, |declared| declared.fit(data)),
        }
    }
}

/// The field of a line; `find` gives an earlier one by its name.
fn field<'a>(line: &str, find: impl Fn(&str) -> Option<(usize, &'a Slot)>) -> Result<(Slot, Field), String> {
    let (basic, spelled, rest) =
        Basic::parse(line).ok_or_else(|| format!("{line:?} does not begin with a type of section 2"))?;
    let (name, unit) = match rest.split_once(char::is_whitespace) {
        Some((name, unit)) => (name, Some(unit.trim())),
        None => (rest, None),
    };
    let (name, len) = match name.split_once('[') {
        None => (name, Len::One),
        Some((name, len)) => {
            let len = len.strip_suffix(']').ok_or_else(|| format!("{name}[ is not closed"))?;
            let counts = |slot: &Slot| {
                slot.len == Len::One
                    && matches!(slot.basic, Basic::Scalar(s) if !matches!(s, Scalar::Float32 | Scalar::Float64))
            };
            match (len.parse(), find(len).filter(|(_, slot)| counts(slot))) {
                (Ok(n), _) if n <= 65_535 => (name, Len::Fixed(n)),
                (Err(_), Some((field, _))) => (name, Len::Field(field)),
                _ => {
                    return Err(format!(
                        "{len} is neither a length up to 65535 nor an integer field before {name}"
                    ));
                }
            }
        }
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(plain) {
        return Err(format!("{name:?} is no name of a field"));
    }
    let slot = Slot { name: name.into(), basic, len };
    let element = Box::new(basic.field_type());
    let (ty, source) = match len {
        Len::One => (*element, spelled.to_owned()),
        Len::Fixed(n) => (FieldType::Array(element, n as usize), format!("{spelled}[{n}]")),
        Len::Field(_) if slot.is_blob() => (FieldType::Bytes, format!("{spelled}[]")),
        Len::Field(_) => (FieldType::List(element), format!("{spelled}[]")),
    };
    let field = Field::new(name, ty, source);
    Ok((slot, unit.map_or(field.clone(), |unit| field.with_unit(unit))))
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
    fn a_declared_type_reads_what_it_writes() {
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
        assert_eq!(compass.fit(&data), Fit::Exact);
        for cut in 0..data.len() {
            assert_eq!(compass.fit(&data[..cut]), Fit::Short, "{cut}");
            assert_eq!(compass.value(&data[..cut]), None);
        }
        assert_eq!(compass.fit(&[&data[..], &[0]].concat()), Fit::Longer(1));
        assert_eq!(types.declared()[1].version(), 100);
    }

    #[test]
    fn what_cannot_be_declared_says_its_line() {
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
        ] {
            match Types::parse(text) {
                Err(VelError::BadDeclaration { line: got, .. }) => assert_eq!(got, line, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    /// A count that would need more memory than there is asks for nothing.
    #[test]
    fn hostile_counts_are_short() {
        let types = Types::parse("message A 1\nunsigned int n\ndouble x[n]\nstring s[n]").unwrap();
        let declared = &types.declared()[0];
        assert_eq!(declared.fit(&[0xFF; 12]), Fit::Short);
        assert_eq!(declared.value(&[0xFF; 12]), None);
    }
}
