//! Plans: a definition compiled once, so that payloads are measured and decoded without looking at it again.

use std::sync::Arc;

use rovelog_core::{Field, FieldType, Scalar, Schema};

use super::text::{Array, Primitive};
use super::types::{DefinitionError, Types};

/// Values that a record may have without any byte for them: fields of types without fields.
pub(super) const MAX_NODES: u64 = 1 << 20;

/// Steps that are copied into the plan around them; larger plans are stepped into.
const INLINE: usize = 256;

/// How the payloads of one type are read.
#[derive(Debug)]
pub struct Plan {
    pub(super) fields: Vec<Slot>,
    steps: Vec<Step>,
    /// Bytes of the smallest payload.
    pub(super) min_size: u64,
    /// Whether all payloads are that long.
    fixed: bool,
    /// Values in a payload whose lists are empty.
    pub(super) nodes: u64,
    /// Whether there are lists of values without bytes: their counts are bounded by nothing in the payload.
    hollow: bool,
    schema: Arc<Schema>,
}

/// One field.
#[derive(Debug)]
#[non_exhaustive]
pub struct Slot {
    /// Its name.
    pub name: Arc<str>,
    /// What one element is.
    pub kind: Kind,
    /// How many elements there are.
    pub array: Array,
}

/// What one element of a field is (section 6.3). All integers are little-endian.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A number.
    Scalar(Scalar),
    /// A number of 8 bits without sign; an array of this is bytes.
    Byte,
    /// Seconds and nanoseconds, each 32 bits without sign.
    Time,
    /// Seconds and nanoseconds, each 32 bits with sign.
    Duration,
    /// A length of 32 bits, and as many bytes, mostly UTF-8.
    Text,
    /// The fields of another type.
    Nested(Arc<Plan>),
}

impl Kind {
    /// Bytes of one element; `None` where they differ.
    pub(super) fn size(&self) -> Option<u64> {
        match self {
            Self::Scalar(scalar) => Some(scalar.size() as u64),
            Self::Byte => Some(1),
            Self::Time | Self::Duration => Some(8),
            Self::Text => None,
            Self::Nested(plan) => plan.fixed.then_some(plan.min_size),
        }
    }

    /// Bytes of the smallest element.
    pub(super) fn min_size(&self) -> u64 {
        match self {
            Self::Text => 4,
            Self::Nested(plan) => plan.min_size,
            other => other.size().unwrap_or(0),
        }
    }

    fn nodes(&self) -> u64 {
        if let Self::Nested(plan) = self { plan.nodes.saturating_add(1) } else { 1 }
    }
}

/// How to pass a field without decoding it.
#[derive(Clone, Debug)]
enum Step {
    /// So many bytes.
    Pass(u64),
    /// A count, then so many bytes for each.
    Counted(u64),
    /// Texts: as many, or as many as the count says.
    Texts(Option<u32>),
    /// Values of another type, likewise.
    Each(Option<u32>, Arc<Plan>),
}

/// How the length of a payload fits its definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// Every byte is part of a field.
    Exact,
    /// So many bytes are left over.
    Surplus(u64),
    /// The payload ends inside a field that begins at this byte of it.
    Short(u64),
}

impl Plan {
    /// Compiles the root of `types`.
    ///
    /// # Errors
    /// Where a record would have more values than any payload holds bytes for.
    pub fn new(types: &Types) -> Result<Arc<Self>, DefinitionError> {
        let mut plans: Vec<Arc<Self>> = Vec::with_capacity(types.list.len());
        for ty in &types.list {
            let mut plan = Self {
                fields: Vec::with_capacity(ty.fields.len()),
                steps: Vec::new(),
                min_size: 0,
                fixed: true,
                nodes: 0,
                hollow: false,
                schema: Arc::new(Schema { name: ty.name.clone(), fields: Vec::new() }),
            };
            let mut fields = Vec::with_capacity(ty.fields.len());
            for (field, nested) in ty.message.fields.iter().zip(&ty.fields) {
                let kind = match nested {
                    Some(index) => Kind::Nested(Arc::clone(&plans[*index])),
                    None => Kind::of(&field.ty),
                };
                let described =
                    Field::new(field.name.as_str(), field_type(&kind, field.array), field.spelled());
                plan.take(Slot { name: Arc::clone(&described.name), kind, array: field.array });
                fields.push(described);
            }
            plan.schema = Arc::new(Schema { name: ty.name.clone(), fields });
            if plan.nodes > MAX_NODES || plan.min_size > u64::from(u32::MAX) {
                let what = "a record would have more values or bytes than a payload can hold";
                return Err(DefinitionError::TooLarge { name: ty.name.clone(), what });
            }
            plans.push(Arc::new(plan));
        }
        plans.pop().ok_or(DefinitionError::Empty)
    }

    /// The fields, in the words of all formats.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Bytes of every payload, where all are of one length.
    pub fn size(&self) -> Option<u64> {
        self.fixed.then_some(self.min_size)
    }

    fn take(&mut self, slot: Slot) {
        let size = slot.kind.size();
        match slot.array {
            Array::One => match (&slot.kind, size) {
                (_, Some(size)) => self.pass(size),
                (Kind::Nested(plan), None) if self.steps.len() + plan.steps.len() <= INLINE => {
                    for step in &plan.steps {
                        match step {
                            Step::Pass(bytes) => self.pass(*bytes),
                            step => self.steps.push(step.clone()),
                        }
                    }
                }
                (Kind::Nested(plan), None) => self.steps.push(Step::Each(Some(1), Arc::clone(plan))),
                _ => self.steps.push(Step::Counted(1)),
            },
            Array::Fixed(len) => match (&slot.kind, size) {
                (_, Some(size)) => self.pass(size.saturating_mul(len.into())),
                (_, None) if len == 0 => {}
                (Kind::Nested(plan), None) => self.steps.push(Step::Each(Some(len), Arc::clone(plan))),
                _ => self.steps.push(Step::Texts(Some(len))),
            },
            Array::Any => match (&slot.kind, size) {
                (_, Some(size)) => self.steps.push(Step::Counted(size)),
                (Kind::Nested(plan), None) => self.steps.push(Step::Each(None, Arc::clone(plan))),
                _ => self.steps.push(Step::Texts(None)),
            },
        }
        let (min_size, nodes, fixed) = match slot.array {
            Array::One => (slot.kind.min_size(), slot.kind.nodes(), size.is_some()),
            Array::Fixed(len) => {
                let len = u64::from(len);
                // Elements with bytes are as many as the payload has room for; others count here.
                let nodes = match &slot.kind {
                    Kind::Nested(_) => slot.kind.nodes().saturating_mul(len),
                    _ => 0,
                };
                (
                    slot.kind.min_size().saturating_mul(len),
                    nodes.saturating_add(1),
                    size.is_some() || len == 0,
                )
            }
            Array::Any => (4, 1, false),
        };
        if let Kind::Nested(plan) = &slot.kind {
            self.hollow |= plan.hollow || (slot.array == Array::Any && plan.min_size == 0);
        }
        self.min_size = self.min_size.saturating_add(min_size);
        self.nodes = self.nodes.saturating_add(nodes);
        self.fixed &= fixed;
        self.fields.push(slot);
    }

    fn pass(&mut self, bytes: u64) {
        match self.steps.last_mut() {
            Some(Step::Pass(known)) => *known = known.saturating_add(bytes),
            _ if bytes > 0 => self.steps.push(Step::Pass(bytes)),
            _ => {}
        }
    }

    /// Measures a payload: every byte of it must be part of a field.
    #[inline]
    pub fn fit(&self, payload: &[u8]) -> Fit {
        let len = payload.len() as u64;
        if self.fixed && len == self.min_size {
            return Fit::Exact;
        }
        match self.end(payload, 0) {
            Ok(end) if end == len => Fit::Exact,
            Ok(end) => Fit::Surplus(len - end),
            Err(at) => Fit::Short(at),
        }
    }

    /// The fields in the order of their bytes, for decoders into types of one's own. The elements of a field stand behind
    /// each other; those of an [`Array::Any`] behind a count of 32 bits.
    pub fn slots(&self) -> &[Slot] {
        &self.fields
    }

    /// Whether a payload has the bytes of all fields, and, unless it may have a surplus, none behind them. A decoder
    /// of such a payload runs against no end, and its lists have not more elements than the payload has room for.
    pub fn decodes(&self, payload: &[u8], may_have_surplus: bool) -> bool {
        let fits = match self.fit(payload) {
            Fit::Exact => true,
            Fit::Surplus(_) => may_have_surplus,
            Fit::Short(_) => false,
        };
        fits && (!self.hollow || self.value(payload).is_ok())
    }

    /// Where the value that begins at `at` ends; the offset of what is cut where the payload ends before.
    fn end(&self, payload: &[u8], mut at: u64) -> Result<u64, u64> {
        let len = payload.len() as u64;
        for step in &self.steps {
            match step {
                Step::Pass(bytes) => at = pass(at, *bytes, len)?,
                Step::Counted(size) => {
                    let (count, behind) = count(payload, at)?;
                    at = pass(behind, u64::from(count).saturating_mul(*size), len).map_err(|_| at)?;
                }
                Step::Texts(fixed) => {
                    let (texts, behind) = counted(*fixed, payload, at)?;
                    at = behind;
                    for _ in 0..texts {
                        let (chars, behind) = count(payload, at)?;
                        at = pass(behind, chars.into(), len).map_err(|_| at)?;
                    }
                }
                Step::Each(fixed, plan) => {
                    let (values, behind) = counted(*fixed, payload, at)?;
                    at = behind;
                    for _ in 0..values {
                        at = plan.end(payload, at)?;
                    }
                }
            }
        }
        Ok(at)
    }
}

fn pass(at: u64, bytes: u64, len: u64) -> Result<u64, u64> {
    if bytes > len - at { Err(at) } else { Ok(at + bytes) }
}

/// The count at `at`, and where the elements begin.
#[inline]
fn count(payload: &[u8], at: u64) -> Result<(u32, u64), u64> {
    let start = usize::try_from(at).map_err(|_| at)?;
    let bytes = payload.get(start..).and_then(<[u8]>::first_chunk).ok_or(at)?;
    Ok((u32::from_le_bytes(*bytes), at + 4))
}

fn counted(fixed: Option<u32>, payload: &[u8], at: u64) -> Result<(u32, u64), u64> {
    fixed.map_or_else(|| count(payload, at), |fixed| Ok((fixed, at)))
}

impl Kind {
    /// What a primitive's word means. Arrays of `uint8` and `char` are bytes.
    fn of(word: &str) -> Self {
        match Primitive::named(word) {
            Some(Primitive::Bool) => Self::Scalar(Scalar::Bool),
            Some(Primitive::Int8) => Self::Scalar(Scalar::Int8),
            Some(Primitive::UInt8) | None => Self::Byte,
            Some(Primitive::Int16) => Self::Scalar(Scalar::Int16),
            Some(Primitive::UInt16) => Self::Scalar(Scalar::UInt16),
            Some(Primitive::Int32) => Self::Scalar(Scalar::Int32),
            Some(Primitive::UInt32) => Self::Scalar(Scalar::UInt32),
            Some(Primitive::Int64) => Self::Scalar(Scalar::Int64),
            Some(Primitive::UInt64) => Self::Scalar(Scalar::UInt64),
            Some(Primitive::Float32) => Self::Scalar(Scalar::Float32),
            Some(Primitive::Float64) => Self::Scalar(Scalar::Float64),
            Some(Primitive::Time) => Self::Time,
            Some(Primitive::Duration) => Self::Duration,
            Some(Primitive::String) => Self::Text,
        }
    }
}

fn field_type(kind: &Kind, array: Array) -> FieldType {
    let one = match kind {
        Kind::Byte if array != Array::One => return FieldType::Bytes,
        Kind::Byte => FieldType::Scalar(Scalar::UInt8),
        Kind::Scalar(scalar) => FieldType::Scalar(*scalar),
        Kind::Time => FieldType::Time,
        Kind::Duration => FieldType::Duration,
        Kind::Text => FieldType::Text,
        Kind::Nested(plan) => FieldType::Struct(Arc::clone(&plan.schema)),
    };
    match array {
        Array::One => one,
        Array::Fixed(len) => FieldType::Array(Box::new(one), usize::try_from(len).unwrap_or(usize::MAX)),
        Array::Any => FieldType::List(Box::new(one)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Arc<Plan> {
        Plan::new(&Types::resolve("a/A", text.as_bytes(), 64, &|_| None).unwrap()).unwrap()
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
    fn types_without_fields_take_no_bytes() {
        let empty = plan("B[] b\nB[3] c\nB d\n===\nMSG: a/B\n");
        assert_eq!(empty.fit(&[9, 0, 0, 0]), Fit::Exact);
        // Its values would be as many as the count says.
        let hostile: String = (0..40)
            .fold("T0[] t".to_owned(), |text, i| format!("{text}\n===\nMSG: a/T{i}\nT{0} a\nT{0} b", i + 1))
            + "\n===\nMSG: a/T40\n";
        let types = Types::resolve("a/A", hostile.as_bytes(), 64, &|_| None).unwrap();
        assert!(matches!(Plan::new(&types), Err(DefinitionError::TooLarge { .. })));
        let types = Types::resolve("a/A", b"float64[4294967295] a", 64, &|_| None).unwrap();
        assert!(Plan::new(&types).is_err());
    }
}
