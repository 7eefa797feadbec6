//! Conversion of records of variable size to columns. Supports lists, texts, times and structs.
//!
//! [`VariableBuilder`] decodes a record from its first to its last byte, because the offset of a
//! field depends on the lengths of earlier fields. The values of each column are appended to a
//! [`Store`]. Fields that are not selected are skipped.
//!
//! For example, the record `02 00 00 00 | 05 06 | 07` has a list of bytes with a count, and a
//! number. The count is 2, so `05 06` is appended to the bytes of the first column, and 2 is
//! appended to the offsets of this column. The number `07` follows at offset 6 and is appended to
//! the second column.

use std::collections::HashMap;
use std::sync::Arc;

use super::{TIME_COLUMN, arrow_type, column, new_batch, numbers, path_of};
use crate::internal::layout::{Element, Layout, Len, Number, Slot};
use crate::internal::text::up_to_nul;
use crate::internal::wire::U32Le;
use crate::{Scalar, Select};
use arrow_array::types::Int64Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, DurationNanosecondArray, FixedSizeListArray, ListArray,
    PrimitiveArray, RecordBatch, StringArray, StructArray, TimestampNanosecondArray,
};
use arrow_buffer::{BooleanBufferBuilder, Buffer, MutableBuffer, NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

/// Builder of record batches from records of any size.
pub struct VariableBuilder {
    /// Schema of the resulting batches.
    schema: SchemaRef,
    /// Times of the appended records in nanoseconds.
    times: Vec<i64>,
    /// Columns in the order of the layout's fields. A field that is not selected has no column.
    columns: Vec<Option<Store>>,
}

/// The values of a column. The variant depends on the type of the column.
enum Store {
    /// Numbers of this type, as bytes.
    Number(Scalar, MutableBuffer),
    /// Booleans, as bits.
    Bool(BooleanBufferBuilder),
    /// Times in nanoseconds.
    Time(Vec<i64>),
    /// Durations in nanoseconds.
    Duration(Vec<i64>),
    /// Bytes of all texts, and the offset at which each text ends.
    Text(Offsets, Vec<u8>),
    /// Bytes of all binary values, and the offset at which each value ends.
    Bytes(Offsets, Vec<u8>),
    /// Structs. `len` is the number of structs. It is stored separately, because a selection may
    /// skip all fields of the structs.
    Struct { fields: Fields, columns: Vec<Option<Store>>, len: usize },
    /// Lists of variable size. `child` contains the elements of all lists.
    List { field: Arc<Field>, offsets: Offsets, child: Box<Store> },
    /// Lists of a fixed size. `len` is the number of lists, and `child` contains the elements of
    /// all lists.
    Fixed { field: Arc<Field>, size: i32, len: usize, child: Box<Store> },
}

/// Offsets at which values of variable length end, in the format of Arrow. The first offset is 0.
struct Offsets(Vec<i32>);

impl Offsets {
    fn new() -> Self {
        Self(vec![0])
    }

    /// Appends the offset at which a value ends. Arrow's offsets cannot exceed 2 GiB. Batches are
    /// much smaller, but a single message may have such a size. In this case, an invalid offset is
    /// appended, and [`take`](Self::take) returns an error.
    fn push(&mut self, end: usize) {
        self.0.push(i32::try_from(end).unwrap_or(-1));
    }

    /// Returns the offsets. Afterwards, the list only contains the first offset 0.
    fn take(&mut self) -> Result<OffsetBuffer<i32>, ArrowError> {
        let offsets = std::mem::replace(&mut self.0, vec![0]);
        if offsets.is_sorted() {
            return Ok(OffsetBuffer::new(offsets.into()));
        }
        Err(ArrowError::InvalidArgumentError("more than 2 GiB in one column of a batch".to_owned()))
    }
}

impl VariableBuilder {
    /// Creates columns for the selected fields of records with this layout. `metadata` is added to
    /// the Arrow schema.
    pub fn new(layout: &Layout, select: &Select, metadata: HashMap<String, String>) -> Self {
        let mut fields = vec![Arc::new(Field::new(TIME_COLUMN, DataType::Int64, true))];
        let columns = columns(layout, "", select, &mut fields);
        Self { schema: Arc::new(Schema::new_with_metadata(fields, metadata)), times: Vec::new(), columns }
    }

    /// Returns the schema of the resulting batches.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Returns the number of records that have been appended.
    pub fn rows(&self) -> usize {
        self.times.len()
    }

    /// Appends a record. `layout` must be the layout for which the columns were created.
    ///
    /// # Panics
    /// Panics if the record ends before its last field. The caller must check the record with
    /// [`Layout::decodes`] first.
    pub fn push(&mut self, layout: &Layout, record: &[u8], time: i64) {
        self.times.push(time);
        let mut at = 0;
        append_fields(layout, &mut self.columns, record, &mut at);
    }

    /// Returns the records as a batch. The builder is empty afterwards.
    ///
    /// # Errors
    /// Returns an error if the values of a column exceed 2 GiB.
    pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let times = std::mem::take(&mut self.times);
        let rows = times.len();
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(PrimitiveArray::<Int64Type>::new(times.into(), None))];
        for store in self.columns.iter_mut().flatten() {
            arrays.push(store.finish()?);
        }
        new_batch(self.schema(), arrays, rows)
    }
}

/// Creates the columns for the fields of a struct. The Arrow fields of the selected fields are
/// appended to `fields`.
fn columns(layout: &Layout, path: &str, select: &Select, fields: &mut Vec<Arc<Field>>) -> Vec<Option<Store>> {
    let kept = |(field, slot): (&crate::Field, &Slot)| {
        let path = path_of(path, field);
        if !select.keeps_field(&path) {
            return None;
        }
        let (data_type, store) = store(slot, &path, select);
        fields.push(column(field, data_type));
        Some(store)
    };
    layout.fields().map(kept).collect()
}

/// Returns the Arrow type of a field and an empty store for its values.
fn store(slot: &Slot, path: &str, select: &Select) -> (DataType, Store) {
    let (data_type, one) = match &slot.element {
        Element::Char(_) => return (DataType::Utf8, Store::Text(Offsets::new(), Vec::new())),
        // An array of bytes becomes a single binary value instead of a list of numbers.
        Element::Byte if slot.len != Len::One => {
            return (DataType::Binary, Store::Bytes(Offsets::new(), Vec::new()));
        }
        // A computed record has no columns.
        Element::Packed(_) | Element::Optional(_) => {
            return (DataType::Binary, Store::Bytes(Offsets::new(), Vec::new()));
        }
        Element::Byte => (DataType::UInt8, Store::Number(Scalar::UInt8, MutableBuffer::new(0))),
        Element::Scalar(Scalar::Bool) | Element::WideBool => {
            (DataType::Boolean, Store::Bool(BooleanBufferBuilder::new(0)))
        }
        Element::Scalar(scalar) => (arrow_type(*scalar), Store::Number(*scalar, MutableBuffer::new(0))),
        Element::Time => (DataType::Timestamp(TimeUnit::Nanosecond, None), Store::Time(Vec::new())),
        Element::Duration => (DataType::Duration(TimeUnit::Nanosecond), Store::Duration(Vec::new())),
        Element::Text(_) => (DataType::Utf8, Store::Text(Offsets::new(), Vec::new())),
        Element::Struct(layout) => {
            let mut fields = Vec::new();
            let columns = columns(layout, path, select, &mut fields);
            let fields = Fields::from(fields);
            (DataType::Struct(fields.clone()), Store::Struct { fields, columns, len: 0 })
        }
    };
    let field = Arc::new(Field::new_list_field(data_type.clone(), false));
    let fixed = match slot.len {
        Len::One => return (data_type, one),
        // Arrow stores the size of a fixed-size list as `i32`. A longer array becomes a list of
        // variable size.
        Len::Fixed(size) => i32::try_from(size).ok(),
        Len::Counted | Len::Field(_) => None,
    };
    let child = Box::new(one);
    match fixed {
        Some(size) => {
            (DataType::FixedSizeList(Arc::clone(&field), size), Store::Fixed { field, size, len: 0, child })
        }
        None => (DataType::List(Arc::clone(&field)), Store::List { field, offsets: Offsets::new(), child }),
    }
}

/// Returns the next `len` bytes of the record and advances `at`. The caller has checked that the
/// record contains these bytes.
#[inline]
fn take<'a>(record: &'a [u8], at: &mut usize, len: usize) -> &'a [u8] {
    let bytes = &record[*at..*at + len];
    *at += len;
    bytes
}

/// Reads the 32-bit number of elements at offset `at`, and advances `at`.
#[inline]
fn count(record: &[u8], at: &mut usize) -> usize {
    U32Le::first(take(record, at, 4)).map_or(0, |count| count.get() as usize)
}

/// Returns the number of elements in the field at offset `at`. `integers` are the values of the
/// integer fields before it.
#[inline]
fn elements(slot: &Slot, integers: &[u64], record: &[u8], at: &mut usize) -> usize {
    match slot.len {
        Len::One => 1,
        Len::Fixed(len) => len as usize,
        Len::Counted => count(record, at),
        Len::Field(field) => usize::try_from(integers[field]).expect("the record was measured"),
    }
}

/// Calls `visit` for each field with its index, its slot in the layout, and its number of elements.
/// `visit` must advance the offset past the field.
#[inline]
fn each_field(
    layout: &Layout,
    record: &[u8],
    at: &mut usize,
    mut visit: impl FnMut(usize, &Slot, usize, &mut usize),
) {
    let mut integers = Vec::new();
    for (i, slot) in layout.slots().iter().enumerate() {
        *at += slot.padding;
        // Only linked layouts have fields whose length is the value of an earlier field.
        if layout.is_linked() {
            integers.push(slot.integer(record, *at as u64));
        }
        let len = elements(slot, &integers, record, at);
        visit(i, slot, len, at);
    }
}

/// Appends the selected fields of a struct to their columns, and skips all other fields.
fn append_fields(layout: &Layout, columns: &mut [Option<Store>], record: &[u8], at: &mut usize) {
    each_field(layout, record, at, |i, slot, len, at| match &mut columns[i] {
        Some(store) => store.take(&slot.element, len, record, at),
        None => skip(&slot.element, len, record, at),
    });
}

/// Advances `at` past `len` elements of a field that is not selected.
fn skip(element: &Element, len: usize, record: &[u8], at: &mut usize) {
    if let Some(size) = element.size() {
        *at += len * usize::try_from(size).expect("the record was measured");
        return;
    }
    for _ in 0..len {
        match element {
            Element::Struct(layout) => {
                each_field(layout, record, at, |_, slot, len, at| skip(&slot.element, len, record, at));
                *at += layout.tail();
            }
            _ => *at += count(record, at),
        }
    }
}

impl Store {
    /// Appends a field with `len` elements as one value.
    fn take(&mut self, element: &Element, len: usize, record: &[u8], at: &mut usize) {
        match self {
            Self::Bytes(offsets, bytes) => {
                let size = if let Element::Packed(size) = element { *size as usize } else { 1 };
                bytes.extend_from_slice(take(record, at, len * size));
                offsets.push(bytes.len());
            }
            Self::List { offsets, child, .. } => {
                child.append_many(element, len, record, at);
                let end = child.len();
                offsets.push(end);
            }
            Self::Fixed { len: lists, child, .. } => {
                *lists += 1;
                child.append_many(element, len, record, at);
            }
            one => one.append_many(element, len, record, at),
        }
    }

    /// Appends `n` consecutive elements as `n` separate values.
    #[inline]
    fn append_many(&mut self, element: &Element, n: usize, record: &[u8], at: &mut usize) {
        match (self, element) {
            (Self::Number(scalar, buffer), _) => {
                buffer.extend_from_slice(take(record, at, n * scalar.size()));
            }
            (Self::Bool(bits), Element::WideBool) => {
                let truths = take(record, at, 4 * n).chunks_exact(4);
                truths.for_each(|truth| bits.append(truth.iter().any(|byte| *byte != 0)));
            }
            (Self::Bool(bits), _) => take(record, at, n).iter().for_each(|byte| bits.append(*byte != 0)),
            (Self::Time(times), _) => {
                times.extend(pairs::<u32>(take(record, at, 8 * n)));
            }
            (Self::Duration(spans), _) => {
                spans.extend(pairs::<i32>(take(record, at, 8 * n)));
            }
            (Self::Text(offsets, bytes), Element::Char(text)) => {
                let chars = up_to_nul(take(record, at, n));
                bytes.extend_from_slice(text.decode(chars).as_bytes());
                offsets.push(bytes.len());
            }
            (Self::Text(offsets, bytes), Element::Text(text)) => {
                for _ in 0..n {
                    let len = count(record, at);
                    bytes.extend_from_slice(text.decode(take(record, at, len)).as_bytes());
                    offsets.push(bytes.len());
                }
            }
            (Self::Struct { columns, len, .. }, Element::Struct(layout)) => {
                for _ in 0..n {
                    append_fields(layout, columns, record, at);
                    *at += layout.tail();
                }
                *len += n;
            }
            _ => unreachable!("stores follow the elements, and no layout has arrays of arrays"),
        }
    }

    /// Returns the number of values in the store. A list stores this number as the offset at which
    /// its elements end.
    fn len(&self) -> usize {
        match self {
            Self::Number(scalar, buffer) => buffer.len() / scalar.size(),
            Self::Bool(bits) => bits.len(),
            Self::Time(values) | Self::Duration(values) => values.len(),
            Self::Text(offsets, _) | Self::Bytes(offsets, _) | Self::List { offsets, .. } => {
                offsets.0.len() - 1
            }
            Self::Struct { len, .. } | Self::Fixed { len, .. } => *len,
        }
    }

    /// Returns the values in the store as an array. The store is empty afterwards.
    fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Number(scalar, buffer) => numbers(*scalar, std::mem::take(buffer).into()),
            Self::Bool(bits) => Arc::new(BooleanArray::new(bits.finish(), None)),
            Self::Time(times) => Arc::new(TimestampNanosecondArray::new(std::mem::take(times).into(), None)),
            Self::Duration(spans) => {
                Arc::new(DurationNanosecondArray::new(std::mem::take(spans).into(), None))
            }
            Self::Text(offsets, bytes) => Arc::new(StringArray::try_new(
                offsets.take()?,
                Buffer::from_vec(std::mem::take(bytes)),
                None,
            )?),
            Self::Bytes(offsets, bytes) => Arc::new(BinaryArray::try_new(
                offsets.take()?,
                Buffer::from_vec(std::mem::take(bytes)),
                None,
            )?),
            Self::Struct { fields, columns, len } => {
                let len = std::mem::take(len);
                let mut arrays = Vec::with_capacity(fields.len());
                for store in columns.iter_mut().flatten() {
                    arrays.push(store.finish()?);
                }
                if arrays.is_empty() {
                    Arc::new(StructArray::new_empty_fields(len, None))
                } else {
                    Arc::new(StructArray::try_new(fields.clone(), arrays, None)?)
                }
            }
            Self::List { field, offsets, child } => {
                let values = child.finish()?;
                Arc::new(ListArray::try_new(Arc::clone(field), offsets.take()?, values, None)?)
            }
            Self::Fixed { field, size, len, child } => {
                let values = child.finish()?;
                let len = std::mem::take(len);
                // A list of empty arrays has no values, so only the validity bitmap stores the
                // number of lists.
                let nulls = (*size == 0).then(|| NullBuffer::new_valid(len));
                Arc::new(FixedSizeListArray::try_new(Arc::clone(field), *size, values, nulls)?)
            }
        })
    }
}

/// Converts pairs of seconds and nanoseconds to nanoseconds.
fn pairs<T: Number + Into<i64>>(bytes: &[u8]) -> impl Iterator<Item = i64> + '_ {
    let number = |bytes: &[u8]| T::from_wire(bytes).map_or(0, Into::into);
    bytes.chunks_exact(8).map(move |pair| number(pair) * 1_000_000_000 + number(&pair[4..]))
}
