//! Records of any size, one by one: structs, lists, times, bytes as binary.

use std::collections::HashMap;
use std::sync::Arc;

use super::{TIME_COLUMN, arrow_type, column, numbers, path_of};
use crate::layout::{Element, Layout, Len, Number, Slot};
use crate::text::up_to_nul;
use crate::wire::U32Le;
use crate::{Scalar, Select};
use arrow_array::types::Int64Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, DurationNanosecondArray, FixedSizeListArray, ListArray,
    PrimitiveArray, RecordBatch, RecordBatchOptions, StringArray, StructArray, TimestampNanosecondArray,
};
use arrow_buffer::{BooleanBufferBuilder, Buffer, MutableBuffer, NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

/// Columns that records are appended to one by one.
pub struct VariableBuilder {
    schema: SchemaRef,
    times: Vec<i64>,
    columns: Vec<Column>,
}

/// A field: where its values go, or that it is passed.
enum Column {
    Skipped,
    Kept(Store),
}

/// The values of one field.
enum Store {
    Number(Scalar, MutableBuffer),
    Bool(BooleanBufferBuilder),
    Time(Vec<i64>),
    Duration(Vec<i64>),
    Text(Offsets, Vec<u8>),
    Bytes(Offsets, Vec<u8>),
    Struct { fields: Fields, columns: Vec<Column>, len: usize },
    List { field: Arc<Field>, offsets: Offsets, child: Box<Store> },
    Fixed { field: Arc<Field>, size: i32, len: usize, child: Box<Store> },
}

/// Where each value of variable length ends.
struct Offsets(Vec<i32>);

impl Offsets {
    fn new() -> Self {
        Self(vec![0])
    }

    /// A batch ends long before its offsets do; a single message of more is refused when the batch
    /// is made.
    fn push(&mut self, end: usize) {
        self.0.push(i32::try_from(end).unwrap_or(-1));
    }

    fn take(&mut self) -> Result<OffsetBuffer<i32>, ArrowError> {
        let offsets = std::mem::replace(&mut self.0, vec![0]);
        if offsets.is_sorted() {
            return Ok(OffsetBuffer::new(offsets.into()));
        }
        Err(ArrowError::InvalidArgumentError("more than 2 GiB in one column of a batch".to_owned()))
    }
}

impl VariableBuilder {
    /// Columns for records with this layout, the fields that are selected; `metadata` goes into the
    /// Arrow schema.
    pub fn new(layout: &Layout, select: &Select, metadata: HashMap<String, String>) -> Self {
        let mut fields = vec![Arc::new(Field::new(TIME_COLUMN, DataType::Int64, true))];
        let columns = columns(layout, "", select, &mut fields);
        Self { schema: Arc::new(Schema::new_with_metadata(fields, metadata)), times: Vec::new(), columns }
    }

    /// Returns the schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Returns the records taken so far.
    pub fn rows(&self) -> usize {
        self.times.len()
    }

    /// Adds a record of the layout that the columns were made for.
    ///
    /// # Panics
    /// Panics if the record ends before its fields do: records are [measured](Layout::decodes)
    /// before.
    pub fn push(&mut self, layout: &Layout, record: &[u8], time: i64) {
        self.times.push(time);
        let mut at = 0;
        take_fields(layout, &mut self.columns, record, &mut at);
    }

    /// Returns the records as a batch; the columns are empty again.
    ///
    /// # Errors
    /// Returns an error if one column would hold more than 2 GiB.
    pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let times = std::mem::take(&mut self.times);
        let rows = times.len();
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(PrimitiveArray::<Int64Type>::new(times.into(), None))];
        for column in &mut self.columns {
            if let Column::Kept(store) = column {
                arrays.push(store.finish()?);
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema(), arrays, &options)
    }
}

fn columns(layout: &Layout, path: &str, select: &Select, fields: &mut Vec<Arc<Field>>) -> Vec<Column> {
    let kept = |(field, slot): (&crate::Field, &Slot)| {
        let path = path_of(path, field);
        if !select.keeps_field(&path) {
            return Column::Skipped;
        }
        let (data_type, store) = store(slot, &path, select);
        fields.push(column(field, data_type));
        Column::Kept(store)
    };
    layout.fields().map(kept).collect()
}

/// Returns the Arrow type of a field, and its empty store.
fn store(slot: &Slot, path: &str, select: &Select) -> (DataType, Store) {
    let (data_type, one) = match &slot.element {
        Element::Char(_) => return (DataType::Utf8, Store::Text(Offsets::new(), Vec::new())),
        Element::Byte if slot.len != Len::One => {
            return (DataType::Binary, Store::Bytes(Offsets::new(), Vec::new()));
        }
        Element::Packed(_) => return (DataType::Binary, Store::Bytes(Offsets::new(), Vec::new())),
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
        // Arrow's fixed lists are not longer.
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

/// Returns the next `len` bytes; the record was measured.
#[inline]
fn take<'a>(record: &'a [u8], at: &mut usize, len: usize) -> &'a [u8] {
    let bytes = &record[*at..*at + len];
    *at += len;
    bytes
}

#[inline]
fn count(record: &[u8], at: &mut usize) -> usize {
    U32Le::first(take(record, at, 4)).map_or(0, |count| count.get() as usize)
}

/// Returns how many elements the field at `at` has; `integers` are those of the fields before it.
#[inline]
fn elements(slot: &Slot, integers: &[u64], record: &[u8], at: &mut usize) -> usize {
    match slot.len {
        Len::One => 1,
        Len::Fixed(len) => len as usize,
        Len::Counted => count(record, at),
        Len::Field(field) => usize::try_from(integers[field]).expect("the record was measured"),
    }
}

/// Hands each field to `visit`, which takes or passes so many elements of it.
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
        if layout.is_linked() {
            integers.push(slot.integer(record, *at as u64));
        }
        let len = elements(slot, &integers, record, at);
        visit(i, slot, len, at);
    }
}

fn take_fields(layout: &Layout, columns: &mut [Column], record: &[u8], at: &mut usize) {
    each_field(layout, record, at, |i, slot, len, at| match &mut columns[i] {
        Column::Kept(store) => store.take(&slot.element, len, record, at),
        Column::Skipped => pass(&slot.element, len, record, at),
    });
}

/// Steps over `len` elements.
fn pass(element: &Element, len: usize, record: &[u8], at: &mut usize) {
    if let Some(size) = element.size() {
        *at += len * usize::try_from(size).expect("the record was measured");
        return;
    }
    for _ in 0..len {
        match element {
            Element::Struct(layout) => {
                each_field(layout, record, at, |_, slot, len, at| pass(&slot.element, len, record, at));
                *at += layout.tail();
            }
            _ => *at += count(record, at),
        }
    }
}

impl Store {
    /// Takes a field of `len` elements.
    fn take(&mut self, element: &Element, len: usize, record: &[u8], at: &mut usize) {
        match self {
            Self::Bytes(offsets, bytes) => {
                let size = if let Element::Packed(size) = element { *size as usize } else { 1 };
                bytes.extend_from_slice(take(record, at, len * size));
                offsets.push(bytes.len());
            }
            Self::List { offsets, child, .. } => {
                child.take_many(element, len, record, at);
                let end = child.len();
                offsets.push(end);
            }
            Self::Fixed { len: lists, child, .. } => {
                *lists += 1;
                child.take_many(element, len, record, at);
            }
            one => one.take_many(element, len, record, at),
        }
    }

    /// Takes `n` elements one behind the other.
    #[inline]
    fn take_many(&mut self, element: &Element, n: usize, record: &[u8], at: &mut usize) {
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
                    take_fields(layout, columns, record, at);
                    *at += layout.tail();
                }
                *len += n;
            }
            _ => unreachable!("stores follow the elements, and no layout has arrays of arrays"),
        }
    }

    /// Elements taken so far, of what a list can hold.
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
                for column in columns {
                    if let Column::Kept(store) = column {
                        arrays.push(store.finish()?);
                    }
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
                // Without elements only a null buffer can tell how many lists there are.
                let nulls = (*size == 0).then(|| NullBuffer::new_valid(len));
                Arc::new(FixedSizeListArray::try_new(Arc::clone(field), *size, values, nulls)?)
            }
        })
    }
}

/// Seconds and nanoseconds, as nanoseconds.
fn pairs<T: Number + Into<i64>>(bytes: &[u8]) -> impl Iterator<Item = i64> + '_ {
    let number = |bytes: &[u8]| T::from_wire(bytes).map_or(0, Into::into);
    bytes.chunks_exact(8).map(move |pair| number(pair) * 1_000_000_000 + number(&pair[4..]))
}
