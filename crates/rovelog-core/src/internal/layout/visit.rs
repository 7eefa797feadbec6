//! A pass over the fields of a record. All code that uses the fields of records is based on this
//! pass.
//!
//! A consumer, such as a JSON writer, implements [`Visit`]. Before the pass, the consumer prepares
//! data for each field of a layout, such as the escaped name. The pass gets this data from the
//! consumer's [`Keys`]. For example, the layout has the fields `uint16 n` and `string name`, and
//! the record is `05 00 | 02 00 00 00 61 62`. The pass makes two calls:
//!
//! 1. `scalar("\"n\":", UInt16, [05, 00])`
//! 2. `leaf("\"name\":", At::Field, Leaf::Text("ab"))`
//!
//! Counts in a record are not trusted. [`Walk::granted`] checks a count before the elements are
//! visited. For example, a record of 10 bytes has a list of texts with the count 1000. A text needs
//! at least 4 bytes for its length. 4000 bytes are not left, so the record is rejected.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use super::types::{Element, Layout, Len, Slot};
use crate::internal::text::up_to_nul;
use crate::internal::wire::U32Le;
use crate::{Field, Fields, Result, Scalar, TopicId};

/// Maximum number of values without bytes in a record. Structs without fields are such values.
pub const MAX_VALUES: u64 = 1 << 20;

/// Reason why a record cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The record ends inside the field that starts at this offset.
    #[error("the payload ends inside the field at byte {0}")]
    Short(u64),
    /// The list that starts at this offset claims too many elements that have no bytes, such as
    /// structs without fields.
    #[error("the array at byte {0} of the payload claims an implausible number of empty elements")]
    TooMany(u64),
}

/// A consumer of the fields of records. `K` is the type of the data that the consumer prepared for
/// a field, such as the name in JSON or the number in protobuf. By default, the starts and ends of
/// structs and lists are ignored.
pub trait Visit<K> {
    /// Receives a field with a single number or Boolean. `bytes` are its bytes in the record.
    fn scalar(&mut self, key: &K, scalar: Scalar, bytes: &[u8]);

    /// Receives a field with a list of numbers or Booleans. `bytes` are their bytes in the record.
    fn scalars(&mut self, key: &K, scalar: Scalar, bytes: &[u8]);

    /// Receives a value that is neither a number, a Boolean, a struct nor a list, such as a text.
    fn leaf(&mut self, key: &K, at: At, leaf: Leaf<'_>);

    /// Receives the start of a struct.
    fn open(&mut self, _key: &K, _at: At) {}

    /// Receives the end of the struct that was started last.
    fn close(&mut self, _key: &K, _at: At) {}

    /// Called before the elements of a list that are not numbers. `len` is the number of elements.
    fn list(&mut self, _key: &K, _len: usize) {}

    /// Receives the end of the list that was started last.
    fn end_list(&mut self, _key: &K) {}
}

/// Position of a value in the struct or list that contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The value is a field of a struct.
    Field,
    /// The value is the first element of a list.
    First,
    /// The value is an element of a list after the first element.
    Next,
}

/// A value that is neither a number, a struct nor a list.
#[derive(Clone, Debug, PartialEq)]
pub enum Leaf<'a> {
    /// A decoded text.
    Text(Cow<'a, str>),
    /// Bytes that are not text.
    Bytes(&'a [u8]),
    /// Two 32-bit numbers: seconds and nanoseconds. The scalar is the type of both numbers.
    Pair(Scalar, &'a [u8; 8]),
    /// A missing value of a field that contains a number in other records.
    Null,
}

/// Data that a consumer of records has prepared for the fields of a layout.
pub trait Keys {
    /// Type of the data for one field.
    type Key;

    /// Returns the data for a field. `index` is the index of the field in its type.
    fn key<'k>(&'k self, index: usize, field: &'k Field) -> &'k Self::Key;

    /// Returns the data for the fields of a nested struct. `index` is the index of the struct's
    /// field.
    fn inside(&self, index: usize) -> &Self;
}

/// Keys of a consumer that prepares no data for the fields. The key of each field is the field
/// itself.
#[derive(Clone, Copy, Debug)]
pub struct FieldKeys;

impl Keys for FieldKeys {
    type Key = Field;

    #[inline]
    fn key<'k>(&'k self, _: usize, field: &'k Field) -> &'k Field {
        field
    }

    #[inline]
    fn inside(&self, _: usize) -> &Self {
        self
    }
}

/// The data that a consumer of records has prepared for each field of a layout.
#[derive(Debug)]
pub struct KeyTable<K> {
    fields: Vec<FieldKey<K>>,
}

/// The data for a field. If the field is a struct, `inside` is the data for the struct's fields.
#[derive(Debug)]
struct FieldKey<K> {
    key: K,
    inside: Option<Arc<KeyTable<K>>>,
}

impl<K> KeyTable<K> {
    /// Prepares the data for `layout`. `key` is called for each field, with the index of the field
    /// in its type.
    pub fn new(layout: &Arc<Layout>, key: &mut impl FnMut(usize, &Field) -> K) -> Arc<Self> {
        Self::shared(layout, key, &mut HashMap::new())
    }

    /// Prepares the data for a nested type. A type that is used several times is prepared only
    /// once, because a few nested types can describe millions of fields.
    fn shared(
        layout: &Arc<Layout>,
        key: &mut impl FnMut(usize, &Field) -> K,
        known: &mut HashMap<*const Layout, Arc<Self>>,
    ) -> Arc<Self> {
        if let Some(table) = known.get(&Arc::as_ptr(layout)) {
            return Arc::clone(table);
        }
        let fields = layout.fields().enumerate().map(|(index, (field, slot))| {
            let inside = match &slot.element {
                Element::Struct(inner) => Some(Self::shared(inner, key, known)),
                _ => None,
            };
            FieldKey { key: key(index, field), inside }
        });
        let table = Arc::new(Self { fields: fields.collect() });
        known.insert(Arc::as_ptr(layout), Arc::clone(&table));
        table
    }
}

impl<K> Keys for KeyTable<K> {
    type Key = K;

    #[inline]
    fn key<'k>(&'k self, index: usize, _: &'k Field) -> &'k K {
        &self.fields[index].key
    }

    #[inline]
    fn inside(&self, index: usize) -> &Self {
        self.fields[index].inside.as_deref().unwrap_or(self)
    }
}

/// The data that a consumer of records has prepared for the topics of a log. The data for a topic
/// is prepared when the first record of the topic is visited.
///
/// Topics with the same layout share this data, because a log may have thousands of topics with
/// tens of thousands of fields each.
#[derive(Debug)]
pub struct KeyCache<K> {
    /// The prepared data of each topic, by the topic's index.
    by_topic: Vec<Option<Known<K>>>,
    /// The prepared data of each layout, by the address of the layout. The address is unique as
    /// long as the layout is stored here.
    by_layout: HashMap<usize, Known<K>>,
}

/// A layout and the data that was prepared for it.
type Known<K> = (Arc<Layout>, Arc<KeyTable<K>>);

impl<K> Default for KeyCache<K> {
    fn default() -> Self {
        Self { by_topic: Vec::new(), by_layout: HashMap::new() }
    }
}

impl<K> KeyCache<K> {
    /// Visits the fields of a topic's record. `key` is passed to [`KeyTable::new`].
    ///
    /// # Errors
    /// Returns an error if the record cannot be decoded. The output of the visitor is then
    /// incomplete.
    #[inline]
    pub fn visit(
        &mut self,
        topic: TopicId,
        fields: &Fields<'_>,
        key: &mut impl FnMut(usize, &Field) -> K,
        visitor: &mut impl Visit<K>,
    ) -> Result<()> {
        let topic = topic.index();
        if self.by_topic.len() <= topic {
            self.by_topic.resize_with(topic + 1, || None);
        }
        let slot = &mut self.by_topic[topic];
        // In a stream, the layout of a topic can change during the log. The data is then prepared
        // again.
        let keys = match slot {
            Some((layout, keys)) if Arc::ptr_eq(layout, fields.layout) => keys,
            _ => {
                let layout = fields.layout;
                let known = self.by_layout.entry(Arc::as_ptr(layout).addr());
                let known = known.or_insert_with(|| (Arc::clone(layout), KeyTable::new(layout, key)));
                let (_, keys) = slot.insert(known.clone());
                keys
            }
        };
        fields.visit(&**keys, visitor)
    }
}

impl Layout {
    /// Visits the fields of a record, and returns the number of bytes that the fields occupy.
    ///
    /// # Errors
    /// Returns an error in two cases: the record ends before its last field, or a list claims too
    /// many elements that have no bytes, such as structs without fields.
    #[inline]
    pub fn visit<T: Keys>(
        &self,
        record: &[u8],
        keys: &T,
        visitor: &mut impl Visit<T::Key>,
    ) -> Result<usize, DecodeError> {
        let mut walk = Walk::new(record, 0);
        walk.fields(self, keys, visitor)?;
        Ok(walk.at)
    }
}

/// State of a pass over one record.
pub(super) struct Walk<'a> {
    record: &'a [u8],
    /// Offset of the next byte in the record.
    at: usize,
    /// Number of values that may still be visited. It limits the length of lists whose elements
    /// have no bytes.
    budget: u64,
    /// Index and value of each field whose value is the number of elements of another field.
    /// Includes the fields of all structs that contain the current field.
    lengths: Vec<(usize, u64)>,
}

impl<'a> Walk<'a> {
    /// Creates the state of a pass that starts at offset `at` of the record.
    pub(super) fn new(record: &'a [u8], at: usize) -> Self {
        Self { record, at, budget: MAX_VALUES + 2 * record.len() as u64, lengths: Vec::new() }
    }

    /// Returns the next `len` bytes of the record, and advances past them.
    #[inline]
    fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let bytes = self.record.get(self.at..).and_then(|rest| rest.get(..len));
        let bytes = bytes.ok_or(DecodeError::Short(self.at as u64))?;
        self.at += len;
        Ok(bytes)
    }

    /// Reads the 32-bit count before a list or text.
    #[inline]
    fn len(&mut self) -> Result<usize, DecodeError> {
        let at = self.at as u64;
        let len = U32Le::first(self.take(4)?).ok_or(DecodeError::Short(at))?;
        Ok(len.get() as usize)
    }

    /// Checks that the number of elements `len` of a list is plausible, and returns it. The record
    /// must have enough bytes left for these elements, and the budget must allow this many values.
    fn granted(&mut self, len: u64, element: &Element) -> Result<usize, DecodeError> {
        let left = (self.record.len() - self.at) as u64;
        let short = DecodeError::Short(self.at as u64);
        if element.min_size().saturating_mul(len) > left {
            return Err(short);
        }
        if let Element::Struct(_) = element {
            let values = element.values().saturating_mul(len);
            self.budget = self.budget.checked_sub(values).ok_or(DecodeError::TooMany(self.at as u64))?;
        }
        usize::try_from(len).map_err(|_| short)
    }

    /// Visits the fields of a struct. The limit on nested types also limits the depth of the
    /// recursion.
    fn fields<T: Keys>(
        &mut self,
        layout: &Layout,
        keys: &T,
        visitor: &mut impl Visit<T::Key>,
    ) -> Result<(), DecodeError> {
        let outer = self.lengths.len();
        for (index, slot) in layout.slots.iter().enumerate() {
            // Indexing is faster than zipping the fields and slots, because a zip would be created
            // for each struct.
            let field = &layout.schema.fields[index];
            if slot.padding > 0 {
                self.take(slot.padding)?;
            }
            let key = keys.key(index, field);
            // Most fields of most records are single numbers, so they are handled first.
            match (&slot.element, slot.len) {
                (Element::Scalar(scalar), Len::One) if !slot.is_length => {
                    visitor.scalar(key, *scalar, self.take(scalar.size())?);
                    continue;
                }
                (Element::Scalar(scalar), Len::Fixed(len)) => {
                    let size = (len as usize).saturating_mul(scalar.size());
                    visitor.scalars(key, *scalar, self.take(size)?);
                    continue;
                }
                _ => {}
            }
            let start = self.at;
            self.field(slot, key, keys.inside(index), outer, visitor)?;
            if slot.is_length {
                self.lengths.push((index, slot.integer(self.record, start as u64)));
            }
        }
        self.lengths.truncate(outer);
        Ok(())
    }

    /// Visits a field. `outer` is an index in `lengths`. The values from this index on belong to
    /// the struct that contains the field.
    pub(super) fn field<T: Keys>(
        &mut self,
        slot: &Slot,
        key: &T::Key,
        inside: &T,
        outer: usize,
        visitor: &mut impl Visit<T::Key>,
    ) -> Result<(), DecodeError> {
        let len = match (&slot.element, slot.len) {
            (Element::Char(text), len) => {
                let len = if let Len::Fixed(len) = len { len as usize } else { 1 };
                let text = text.decode(up_to_nul(self.take(len)?));
                visitor.leaf(key, At::Field, Leaf::Text(text));
                return Ok(());
            }
            (element, Len::One) => return self.one(element, key, inside, At::Field, visitor),
            (_, Len::Fixed(len)) => len.into(),
            (_, Len::Counted) => self.len()? as u64,
            (_, Len::Field(by)) => {
                let len = self.lengths[outer..].iter().find(|(index, _)| *index == by);
                len.map_or(0, |(_, len)| *len)
            }
        };
        self.many(&slot.element, len, key, inside, visitor)
    }

    /// Visits a single element of a field.
    fn one<T: Keys>(
        &mut self,
        element: &Element,
        key: &T::Key,
        inside: &T,
        at: At,
        visitor: &mut impl Visit<T::Key>,
    ) -> Result<(), DecodeError> {
        match element {
            Element::Scalar(scalar) => visitor.scalar(key, *scalar, self.take(scalar.size())?),
            Element::Byte => visitor.scalar(key, Scalar::UInt8, self.take(1)?),
            Element::WideBool => {
                visitor.scalar(key, Scalar::Bool, &[u8::from(self.take(4)? != [0; 4])]);
            }
            Element::Optional(scalar) => match self.take(1 + scalar.size())? {
                [0, ..] => visitor.leaf(key, at, Leaf::Null),
                bytes => visitor.scalar(key, *scalar, &bytes[1..]),
            },
            Element::Time => visitor.leaf(key, at, Leaf::Pair(Scalar::UInt32, self.pair()?)),
            Element::Duration => visitor.leaf(key, at, Leaf::Pair(Scalar::Int32, self.pair()?)),
            Element::Packed(bytes) => visitor.leaf(key, at, Leaf::Bytes(self.take(*bytes as usize)?)),
            Element::Text(text) => {
                let start = self.at;
                let len = self.len()?;
                let bytes = self.take(len).map_err(|_| DecodeError::Short(start as u64))?;
                visitor.leaf(key, at, Leaf::Text(text.decode(bytes)));
            }
            Element::Struct(layout) => {
                visitor.open(key, at);
                self.fields(layout, inside, visitor)?;
                visitor.close(key, at);
                self.take(usize::try_from(layout.tail).unwrap_or(usize::MAX))?;
            }
            // A field of characters is a single text, which `field` visits.
            Element::Char(_) => {}
        }
        Ok(())
    }

    /// Returns the 8 bytes of seconds and nanoseconds.
    fn pair(&mut self) -> Result<&'a [u8; 8], DecodeError> {
        let at = self.at as u64;
        self.take(8)?.first_chunk().ok_or(DecodeError::Short(at))
    }

    /// Visits a field that has `len` elements.
    fn many<T: Keys>(
        &mut self,
        element: &Element,
        len: u64,
        key: &T::Key,
        inside: &T,
        visitor: &mut impl Visit<T::Key>,
    ) -> Result<(), DecodeError> {
        let len = self.granted(len, element)?;
        match element {
            Element::Byte => visitor.leaf(key, At::Field, Leaf::Bytes(self.take(len)?)),
            Element::Packed(bytes) => {
                visitor.leaf(key, At::Field, Leaf::Bytes(self.take(len * *bytes as usize)?));
            }
            Element::Scalar(scalar) => visitor.scalars(key, *scalar, self.take(len * scalar.size())?),
            Element::WideBool => {
                let is_true = |bytes: &[u8]| u8::from(bytes != [0; 4]);
                let bytes: Vec<u8> = self.take(4 * len)?.chunks_exact(4).map(is_true).collect();
                visitor.scalars(key, Scalar::Bool, &bytes);
            }
            _ => {
                visitor.list(key, len);
                for i in 0..len {
                    let at = if i == 0 { At::First } else { At::Next };
                    self.one(element, key, inside, at, visitor)?;
                }
                visitor.end_list(key);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::type_of;
    use super::*;
    use crate::Value;

    /// Collects the names and values of the visited numbers.
    struct Numbers(Vec<(Arc<str>, Value)>);

    impl Visit<Arc<str>> for Numbers {
        fn scalar(&mut self, key: &Arc<str>, scalar: Scalar, bytes: &[u8]) {
            self.0.push((Arc::clone(key), super::super::scalar_value(scalar, bytes)));
        }
        fn scalars(&mut self, _: &Arc<str>, _: Scalar, _: &[u8]) {}
        fn leaf(&mut self, _: &Arc<str>, _: At, _: Leaf<'_>) {}
    }

    #[test]
    fn keys_are_prepared_once_for_each_layout() {
        let layout = |name| type_of(&[(name, Element::Byte, Len::One)]);
        let (first, second) = (layout("first"), layout("second"));
        let (mut cache, mut prepared) = (KeyCache::default(), Vec::new());
        let mut visit = |topic, layout: &Arc<Layout>, payload: &[u8]| {
            let fields = Fields::new(layout, payload);
            let mut key = |_: usize, field: &Field| {
                prepared.push(field.name.to_string());
                Arc::clone(&field.name)
            };
            let mut numbers = Numbers(Vec::new());
            cache.visit(TopicId(topic), &fields, &mut key, &mut numbers).ok()?;
            Some(Value::record(numbers.0).to_json())
        };
        let json = |text: &str| Some(text.to_owned());
        assert_eq!(visit(2, &first, &[7]), json(r#"{"first":7}"#));
        assert_eq!(visit(2, &first, &[8]), json(r#"{"first":8}"#));
        assert_eq!(visit(0, &first, &[9]), json(r#"{"first":9}"#));
        assert_eq!(visit(2, &second, &[10]), json(r#"{"second":10}"#));
        assert_eq!(visit(2, &second, &[]), None);
        assert_eq!(prepared, ["first", "second"]);
    }
}
