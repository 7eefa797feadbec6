//! A layout compiled for one kind of output: records are visited field by field, straight from their
//! bytes and without a [`Value`](crate::Value).

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use super::scalar::scalar_value;
use super::types::{Element, Layout, Len};
use super::value::{Cursor, DecodeError, length};
use crate::text::up_to_nul;
use crate::{Field, Scalar, TopicId};

/// Output of the fields of records. `K` is what the output prepared for a field: its name as JSON,
/// its number as protobuf has it.
pub trait Visit<K> {
    /// Writes a field of one number or truth value; `bytes` are those of one.
    fn scalar(&mut self, key: &K, scalar: Scalar, bytes: &[u8]);

    /// Writes a field that is a list of numbers or truth values.
    fn scalars(&mut self, key: &K, scalar: Scalar, bytes: &[u8]);

    /// Writes any other value without fields of its own.
    fn leaf(&mut self, key: &K, at: At, leaf: Leaf<'_>);

    /// Starts a value with fields.
    fn open(&mut self, key: &K, at: At);

    /// Ends the value that was started last.
    fn close(&mut self);

    /// Starts a list of values that are no numbers.
    fn list(&mut self, key: &K);

    /// Ends the list.
    fn end_list(&mut self);
}

/// Place of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// A field of its own.
    Field,
    /// The first element of a list.
    First,
    /// Another element of a list.
    Next,
}

/// A value that is no number.
#[derive(Clone, Debug, PartialEq)]
pub enum Leaf<'a> {
    /// Decoded text.
    Text(Cow<'a, str>),
    /// Bytes without a text form.
    Bytes(&'a [u8]),
    /// Seconds and nanoseconds, 32 bits each, of this type.
    Pair(Scalar, &'a [u8; 8]),
}

/// The fields of a layout with what an output prepared for each.
#[derive(Debug)]
pub struct Plan<K> {
    fields: Vec<Planned<K>>,
    /// Bytes behind the last field of a struct that is a field.
    tail: usize,
}

#[derive(Debug)]
struct Planned<K> {
    padding: usize,
    element: Kind<K>,
    len: Len,
    /// Bytes of the smallest element.
    min_size: u64,
    /// Values that one element is made of, its lists being empty; 0 for what is no struct.
    values: u64,
    /// Whether it is the length of another field.
    is_length: bool,
    key: K,
}

/// [`Element`], with plans in place of layouts.
#[derive(Debug)]
enum Kind<K> {
    Struct(Arc<Plan<K>>),
    Other(Element),
}

impl<K> Plan<K> {
    /// Compiles `layout`; `key` prepares a field by its number in its type, from 0.
    pub fn new(layout: &Arc<Layout>, key: &mut impl FnMut(usize, &Field) -> K) -> Arc<Self> {
        Self::compile(layout, key, &mut HashMap::new())
    }

    /// Types that are used more than once are compiled once: a few of them can describe millions of
    /// fields.
    fn compile(
        layout: &Arc<Layout>,
        key: &mut impl FnMut(usize, &Field) -> K,
        known: &mut HashMap<*const Layout, Arc<Self>>,
    ) -> Arc<Self> {
        if let Some(plan) = known.get(&Arc::as_ptr(layout)) {
            return Arc::clone(plan);
        }
        let mut fields: Vec<Planned<K>> = Vec::with_capacity(layout.slots().len());
        for (number, (field, slot)) in layout.fields().enumerate() {
            if let Len::Field(length) = slot.len
                && let Some(length) = fields.get_mut(length)
            {
                length.is_length = true;
            }
            let (element, values) = match &slot.element {
                Element::Struct(inner) => {
                    (Kind::Struct(Self::compile(inner, key, known)), slot.element.values())
                }
                other => (Kind::Other(other.clone()), 0),
            };
            let (padding, len, min_size) = (slot.padding, slot.len, slot.element.min_size());
            let key = key(number, field);
            fields.push(Planned { padding, element, len, min_size, values, is_length: false, key });
        }
        let tail = usize::try_from(layout.tail).unwrap_or(usize::MAX);
        let plan = Arc::new(Self { fields, tail });
        known.insert(Arc::as_ptr(layout), Arc::clone(&plan));
        plan
    }

    /// Visits the fields of a record: those that [`Layout::value`] gives, in the same order.
    ///
    /// # Errors
    /// As [`Layout::value`]. What was visited before is incomplete.
    pub fn run(&self, record: &[u8], visit: &mut impl Visit<K>) -> Result<(), DecodeError> {
        Run { cursor: Cursor::new(record, 0), lengths: Vec::new() }.fields(self, visit)
    }
}

/// The plans of the topics of a log, each compiled at the first record of its topic. Topics with one
/// layout share a plan: a log may have thousands of them, with tens of thousands of fields each.
#[derive(Debug)]
pub struct Plans<K> {
    by_topic: Vec<Option<Known<K>>>,
    /// By the address of the layout, which stays the same as long as the layout is kept.
    by_layout: HashMap<usize, Known<K>>,
}

/// A layout and its plan.
type Known<K> = (Arc<Layout>, Arc<Plan<K>>);

impl<K> Default for Plans<K> {
    fn default() -> Self {
        Self { by_topic: Vec::new(), by_layout: HashMap::new() }
    }
}

impl<K> Plans<K> {
    /// Visits the fields of a record of a topic, which is decoded by `layout`; `key` prepares them as
    /// [`Plan::new`] says. Returns whether that was possible: if not, what was visited is to be
    /// dropped, and the value of the record says what it is.
    pub fn run(
        &mut self,
        topic: TopicId,
        layout: Option<&Arc<Layout>>,
        record: &[u8],
        key: &mut impl FnMut(usize, &Field) -> K,
        visit: &mut impl Visit<K>,
    ) -> bool {
        let (Some(layout), topic) = (layout, topic.index()) else { return false };
        if self.by_topic.len() <= topic {
            self.by_topic.resize_with(topic + 1, || None);
        }
        let slot = &mut self.by_topic[topic];
        // A topic of a stream may get another definition.
        if slot.as_ref().is_none_or(|(known, _)| !Arc::ptr_eq(known, layout)) {
            let known = self.by_layout.entry(Arc::as_ptr(layout).addr());
            let known = known.or_insert_with(|| (Arc::clone(layout), Plan::new(layout, key)));
            *slot = Some((Arc::clone(&known.0), Arc::clone(&known.1)));
        }
        slot.as_ref().is_some_and(|(_, plan)| plan.run(record, visit).is_ok())
    }
}

/// A place in a record.
struct Run<'a> {
    cursor: Cursor<'a>,
    /// Number and value of the fields that are lengths of others, of all open structs.
    lengths: Vec<(usize, u64)>,
}

impl<'a> Run<'a> {
    #[inline]
    fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        self.cursor.take(len)
    }

    /// The recursion follows the layout, whose depth is limited.
    fn fields<K>(&mut self, plan: &Plan<K>, visit: &mut impl Visit<K>) -> Result<(), DecodeError> {
        let outer = self.lengths.len();
        for (number, field) in plan.fields.iter().enumerate() {
            if field.padding > 0 {
                self.take(field.padding)?;
            }
            let start = self.cursor.at;
            match (&field.element, field.len) {
                (Kind::Other(Element::Scalar(scalar)), Len::One) => {
                    visit.scalar(&field.key, *scalar, self.take(scalar.size())?);
                }
                (Kind::Other(Element::Char(text)), len) => {
                    let len = if let Len::Fixed(len) = len { len as usize } else { 1 };
                    let text = text.decode(up_to_nul(self.take(len)?));
                    visit.leaf(&field.key, At::Field, Leaf::Text(text));
                }
                (_, Len::One) => self.one(field, At::Field, visit)?,
                (_, Len::Fixed(len)) => self.many(field, len.into(), visit)?,
                (_, Len::Counted) => {
                    let len = self.cursor.len()?;
                    self.many(field, len as u64, visit)?;
                }
                (_, Len::Field(by)) => {
                    let len = self.lengths[outer..].iter().find(|(number, _)| *number == by);
                    let len = len.map_or(0, |(_, len)| *len);
                    self.many(field, len, visit)?;
                }
            }
            if field.is_length {
                self.lengths.push((number, field.integer(&self.cursor.record[start..self.cursor.at])));
            }
        }
        self.lengths.truncate(outer);
        Ok(())
    }

    fn one<K>(&mut self, field: &Planned<K>, at: At, visit: &mut impl Visit<K>) -> Result<(), DecodeError> {
        let (key, element) = match (&field.key, &field.element) {
            (key, Kind::Struct(plan)) => {
                visit.open(key, at);
                self.fields(plan, visit)?;
                visit.close();
                self.take(plan.tail)?;
                return Ok(());
            }
            (key, Kind::Other(element)) => (key, element),
        };
        match element {
            Element::Scalar(scalar) => visit.scalar(key, *scalar, self.take(scalar.size())?),
            Element::Byte => visit.scalar(key, Scalar::UInt8, self.take(1)?),
            Element::WideBool => {
                visit.scalar(key, Scalar::Bool, &[u8::from(self.take(4)? != [0; 4])]);
            }
            Element::Time => visit.leaf(key, at, Leaf::Pair(Scalar::UInt32, self.pair()?)),
            Element::Duration => visit.leaf(key, at, Leaf::Pair(Scalar::Int32, self.pair()?)),
            Element::Packed(bytes) => visit.leaf(key, at, Leaf::Bytes(self.take(*bytes as usize)?)),
            Element::Text(text) => {
                let start = self.cursor.at;
                let len = self.cursor.len()?;
                let bytes = self.take(len).map_err(|_| DecodeError::Short(start as u64))?;
                visit.leaf(key, at, Leaf::Text(text.decode(bytes)));
            }
            // Texts of one byte are a field of their own, and structs are above.
            Element::Char(_) | Element::Struct(_) => {}
        }
        Ok(())
    }

    fn pair(&mut self) -> Result<&'a [u8; 8], DecodeError> {
        let at = self.cursor.at as u64;
        self.take(8)?.first_chunk().ok_or(DecodeError::Short(at))
    }

    fn many<K>(
        &mut self,
        field: &Planned<K>,
        len: u64,
        visit: &mut impl Visit<K>,
    ) -> Result<(), DecodeError> {
        let len = self.cursor.granted(len, field.min_size, field.values)?;
        let key = &field.key;
        match &field.element {
            Kind::Other(Element::Byte) => visit.leaf(key, At::Field, Leaf::Bytes(self.take(len)?)),
            Kind::Other(Element::Packed(bytes)) => {
                visit.leaf(key, At::Field, Leaf::Bytes(self.take(len * *bytes as usize)?));
            }
            Kind::Other(Element::Scalar(scalar)) => {
                visit.scalars(key, *scalar, self.take(len * scalar.size())?);
            }
            Kind::Other(Element::WideBool) => {
                let is_true = |bytes: &[u8]| u8::from(bytes != [0; 4]);
                let bytes: Vec<u8> = self.take(4 * len)?.chunks_exact(4).map(is_true).collect();
                visit.scalars(key, Scalar::Bool, &bytes);
            }
            _ => {
                visit.list(key);
                for i in 0..len {
                    self.one(field, if i == 0 { At::First } else { At::Next }, visit)?;
                }
                visit.end_list();
            }
        }
        Ok(())
    }
}

impl<K> Planned<K> {
    /// Returns what a field with these bytes says as the length of others.
    fn integer(&self, bytes: &[u8]) -> u64 {
        match (&self.element, self.len) {
            (Kind::Other(Element::Scalar(scalar)), Len::One) => length(&scalar_value(*scalar, bytes)),
            (Kind::Other(Element::Byte), Len::One) => length(&scalar_value(Scalar::UInt8, bytes)),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::TextDecoder;
    use super::super::samples::{fixed, record, type_of, variable};
    use super::*;
    use crate::Value;

    /// Builds the value of a record from what is visited.
    struct Built(Vec<(Arc<str>, At, Value)>);

    impl Built {
        fn new() -> Self {
            let mut built = Self(Vec::new());
            built.start(&"".into(), At::Field, Value::Struct(Vec::new()));
            built
        }

        fn start(&mut self, key: &Arc<str>, at: At, value: Value) {
            self.0.push((Arc::clone(key), at, value));
        }

        fn end(&mut self) {
            let (key, at, value) = self.0.pop().unwrap();
            self.add(&key, at, value);
        }

        fn add(&mut self, key: &Arc<str>, at: At, value: Value) {
            match &mut self.0.last_mut().unwrap().2 {
                Value::Struct(fields) => {
                    assert_eq!(at, At::Field);
                    fields.push((Arc::clone(key), value));
                }
                Value::List(items) => {
                    assert_eq!(at, if items.is_empty() { At::First } else { At::Next });
                    items.push(value);
                }
                other => panic!("{other:?} has no values in it"),
            }
        }
    }

    impl Visit<Arc<str>> for Built {
        fn scalar(&mut self, key: &Arc<str>, scalar: Scalar, bytes: &[u8]) {
            self.add(key, At::Field, scalar_value(scalar, bytes));
        }

        fn scalars(&mut self, key: &Arc<str>, scalar: Scalar, bytes: &[u8]) {
            let items = bytes.chunks_exact(scalar.size()).map(|bytes| scalar_value(scalar, bytes));
            self.add(key, At::Field, Value::List(items.collect()));
        }

        fn leaf(&mut self, key: &Arc<str>, at: At, leaf: Leaf<'_>) {
            let value = match leaf {
                Leaf::Text(text) => Value::Text(text.into_owned()),
                Leaf::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
                Leaf::Pair(scalar, bytes) => {
                    let (sec, nsec) = bytes.split_at(4);
                    Value::record(
                        [("sec", sec), ("nsec", nsec)]
                            .map(|(name, bytes)| (name, scalar_value(scalar, bytes))),
                    )
                }
            };
            self.add(key, at, value);
        }

        fn open(&mut self, key: &Arc<str>, at: At) {
            self.start(key, at, Value::Struct(Vec::new()));
        }

        fn close(&mut self) {
            self.end();
        }

        fn list(&mut self, key: &Arc<str>) {
            self.start(key, At::Field, Value::List(Vec::new()));
        }

        fn end_list(&mut self) {
            self.end();
        }
    }

    fn visited(layout: &Arc<Layout>, record: &[u8]) -> Result<Value, DecodeError> {
        let plan = Plan::new(layout, &mut |_, field| Arc::clone(&field.name));
        let mut built = Built::new();
        plan.run(record, &mut built)?;
        Ok(built.0.pop().unwrap().2)
    }

    #[test]
    fn a_visit_has_the_values_of_the_record() {
        let (builder, values) = fixed();
        let mut types = vec![(Arc::new(builder.finish()), Value::record(values))];
        types.extend([variable(false), variable(true)]);
        for (layout, value) in types {
            let bytes = record(&layout, &value);
            assert_eq!(visited(&layout, &bytes), Ok(value));
            for len in 0..bytes.len() {
                assert!(visited(&layout, &bytes[..len]).is_err(), "{len} of {} bytes", bytes.len());
            }
        }
    }

    #[test]
    fn a_visit_decodes_text_and_lengths_as_a_value_does() {
        let text = |decoder| type_of(&[("text", Element::Text(decoder), Len::One)]);
        let linked = |element| type_of(&[("n", element, Len::One), ("list", Element::Byte, Len::Field(0))]);
        let bytes = [2, 0, 0, 0, 0xe9, b'x'];
        for (layout, record) in [
            (text(TextDecoder::UTF8), &bytes[..]),
            (text(TextDecoder::LATIN1), &bytes),
            (text(TextDecoder::LATIN1), &bytes[..5]),
            (linked(Element::Byte), &[2, 7, 7]),
            (linked(Element::Scalar(Scalar::UInt16)), &[2, 0, 7, 7]),
            (linked(Element::Scalar(Scalar::Int8)), &[255, 7, 7]),
            (linked(Element::WideBool), &[1, 0, 0, 0]),
        ] {
            assert_eq!(visited(&layout, record), layout.value(record).map(|(value, _)| value));
        }
    }

    #[test]
    fn a_plan_is_made_once_for_each_layout() {
        let number = |name| type_of(&[(name, Element::Byte, Len::One)]);
        let (first, second) = (number("first"), number("second"));
        let (mut plans, mut made) = (Plans::default(), Vec::new());
        let mut run = |topic, layout: Option<&Arc<Layout>>, record: &[u8]| {
            let mut built = Built::new();
            let mut key = |_: usize, field: &Field| {
                made.push(field.name.to_string());
                Arc::clone(&field.name)
            };
            let done = plans.run(TopicId(topic), layout, record, &mut key, &mut built);
            done.then(|| built.0.pop().unwrap().2.to_json())
        };
        let json = |text: &str| Some(text.to_owned());
        assert_eq!(run(2, Some(&first), &[7]), json(r#"{"first":7}"#));
        assert_eq!(run(2, Some(&first), &[8]), json(r#"{"first":8}"#));
        assert_eq!(run(0, Some(&first), &[9]), json(r#"{"first":9}"#));
        assert_eq!(run(2, Some(&second), &[10]), json(r#"{"second":10}"#));
        assert_eq!((run(2, Some(&second), &[]), run(2, None, &[1])), (None, None));
        assert_eq!(made, ["first", "second"]);
    }
}
