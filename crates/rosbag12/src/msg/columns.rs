//! Payloads into Arrow columns by a plan: structs, lists, times, bytes as binary.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::Int64Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, DurationNanosecondArray, FixedSizeListArray, ListArray,
    PrimitiveArray, RecordBatch, RecordBatchOptions, StringArray, StructArray, TimestampNanosecondArray,
};
use arrow_buffer::{BooleanBufferBuilder, Buffer, MutableBuffer, NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use rovelog_core::columns::{TIME_COLUMN, arrow_type, metadata, numbers};
use rovelog_core::{Scalar, Select};

use super::plan::{Kind, Plan, Slot};
use super::text::Array;

/// Rows of one type in the making.
pub(crate) struct RowBuilder {
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
    Fixed { field: Arc<Field>, size: usize, len: usize, child: Box<Store> },
}

/// Where each value of variable length ends.
struct Offsets(Vec<i32>);

impl Offsets {
    fn new() -> Self {
        Self(vec![0])
    }

    /// A batch ends long before its offsets do; a single message of more is refused when the batch is made.
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

impl RowBuilder {
    /// The columns of a type, those that are selected.
    pub(crate) fn new(plan: &Plan, select: &Select, metadata: HashMap<String, String>) -> Self {
        let mut fields = vec![Arc::new(Field::new(TIME_COLUMN, DataType::Int64, true))];
        let columns = columns(plan, "", select, &mut fields);
        Self { schema: Arc::new(Schema::new_with_metadata(fields, metadata)), times: Vec::new(), columns }
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    pub(crate) fn rows(&self) -> usize {
        self.times.len()
    }

    /// Adds a payload, which was measured to fit the plan.
    pub(crate) fn push(&mut self, plan: &Plan, payload: &[u8], time: i64) {
        self.times.push(time);
        let mut at = 0;
        take_fields(plan, &mut self.columns, payload, &mut at);
    }

    /// The rows as a batch; the builder is empty again.
    pub(crate) fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
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

fn columns(plan: &Plan, path: &str, select: &Select, fields: &mut Vec<Arc<Field>>) -> Vec<Column> {
    let described = &plan.schema().fields;
    let column = |(slot, described): (&Slot, &rovelog_core::Field)| {
        let path = if path.is_empty() { slot.name.to_string() } else { format!("{path}.{}", slot.name) };
        if !select.keeps_field(&path) {
            return Column::Skipped;
        }
        let (data_type, store) = store(slot, &path, select);
        let metadata = metadata([("source_type", described.source_type.as_str())]);
        fields.push(Arc::new(Field::new(&*slot.name, data_type, false).with_metadata(metadata)));
        Column::Kept(store)
    };
    plan.fields.iter().zip(described).map(column).collect()
}

/// The Arrow type of a field, and its empty store.
fn store(slot: &Slot, path: &str, select: &Select) -> (DataType, Store) {
    let (data_type, one) = match &slot.kind {
        Kind::Byte if slot.array != Array::One => {
            return (DataType::Binary, Store::Bytes(Offsets::new(), Vec::new()));
        }
        Kind::Byte => (DataType::UInt8, Store::Number(Scalar::UInt8, MutableBuffer::new(0))),
        Kind::Scalar(Scalar::Bool) => (DataType::Boolean, Store::Bool(BooleanBufferBuilder::new(0))),
        Kind::Scalar(scalar) => (arrow_type(*scalar), Store::Number(*scalar, MutableBuffer::new(0))),
        Kind::Time => (DataType::Timestamp(TimeUnit::Nanosecond, None), Store::Time(Vec::new())),
        Kind::Duration => (DataType::Duration(TimeUnit::Nanosecond), Store::Duration(Vec::new())),
        Kind::Text => (DataType::Utf8, Store::Text(Offsets::new(), Vec::new())),
        Kind::Nested(plan) => {
            let mut fields = Vec::new();
            let columns = columns(plan, path, select, &mut fields);
            let fields = Fields::from(fields);
            (DataType::Struct(fields.clone()), Store::Struct { fields, columns, len: 0 })
        }
    };
    let field = Arc::new(Field::new_list_field(data_type.clone(), false));
    match slot.array {
        Array::One => (data_type, one),
        Array::Any => {
            let list = DataType::List(Arc::clone(&field));
            (list, Store::List { field, offsets: Offsets::new(), child: Box::new(one) })
        }
        Array::Fixed(size) => {
            if let Ok(width) = i32::try_from(size) {
                let list = DataType::FixedSizeList(Arc::clone(&field), width);
                (list, Store::Fixed { field, size: size as usize, len: 0, child: Box::new(one) })
            } else {
                // Longer than Arrow's fixed lists can be.
                let list = DataType::List(Arc::clone(&field));
                (list, Store::List { field, offsets: Offsets::new(), child: Box::new(one) })
            }
        }
    }
}

/// The next `len` bytes; the payload was measured.
#[inline]
fn take<'a>(payload: &'a [u8], at: &mut usize, len: usize) -> &'a [u8] {
    let bytes = &payload[*at..*at + len];
    *at += len;
    bytes
}

#[inline]
fn count(payload: &[u8], at: &mut usize) -> usize {
    let bytes = take(payload, at, 4);
    u32::from_le_bytes(bytes.try_into().expect("four bytes")) as usize
}

fn take_fields(plan: &Plan, columns: &mut [Column], payload: &[u8], at: &mut usize) {
    for (slot, column) in plan.fields.iter().zip(columns) {
        match column {
            Column::Kept(store) => store.take(slot, payload, at),
            Column::Skipped => pass(slot, payload, at),
        }
    }
}

/// Steps over a field.
fn pass(slot: &Slot, payload: &[u8], at: &mut usize) {
    let len = match slot.array {
        Array::One => 1,
        Array::Fixed(len) => len as usize,
        Array::Any => count(payload, at),
    };
    if let Some(size) = slot.kind.size() {
        *at += len * usize::try_from(size).expect("the payload was measured");
        return;
    }
    for _ in 0..len {
        match &slot.kind {
            Kind::Nested(plan) => plan.fields.iter().for_each(|slot| pass(slot, payload, at)),
            _ => *at += count(payload, at),
        }
    }
}

impl Store {
    fn take(&mut self, slot: &Slot, payload: &[u8], at: &mut usize) {
        match self {
            Self::Bytes(offsets, bytes) => {
                let len = if let Array::Fixed(len) = slot.array { len as usize } else { count(payload, at) };
                bytes.extend_from_slice(take(payload, at, len));
                offsets.push(bytes.len());
            }
            Self::List { offsets, child, .. } => {
                let len = if let Array::Fixed(len) = slot.array { len as usize } else { count(payload, at) };
                child.take_many(&slot.kind, len, payload, at);
                let end = child.len();
                offsets.push(end);
            }
            Self::Fixed { size, len, child, .. } => {
                *len += 1;
                child.take_many(&slot.kind, *size, payload, at);
            }
            one => one.take_many(&slot.kind, 1, payload, at),
        }
    }

    /// Takes `n` elements one behind the other.
    #[inline]
    fn take_many(&mut self, kind: &Kind, n: usize, payload: &[u8], at: &mut usize) {
        match self {
            Self::Number(scalar, buffer) => buffer.extend_from_slice(take(payload, at, n * scalar.size())),
            Self::Bool(bits) => take(payload, at, n).iter().for_each(|byte| bits.append(*byte != 0)),
            Self::Time(times) => {
                times.extend(
                    pairs(take(payload, at, 8 * n))
                        .map(|(sec, nsec)| i64::from(sec) * 1_000_000_000 + i64::from(nsec)),
                );
            }
            Self::Duration(spans) => {
                spans.extend(pairs(take(payload, at, 8 * n)).map(|(sec, nsec)| {
                    i64::from(sec.cast_signed()) * 1_000_000_000 + i64::from(nsec.cast_signed())
                }));
            }
            Self::Text(offsets, bytes) => {
                for _ in 0..n {
                    let len = count(payload, at);
                    let text = take(payload, at, len);
                    match std::str::from_utf8(text) {
                        Ok(text) => bytes.extend_from_slice(text.as_bytes()),
                        Err(_) => bytes.extend_from_slice(String::from_utf8_lossy(text).as_bytes()),
                    }
                    offsets.push(bytes.len());
                }
            }
            Self::Struct { columns, len, .. } => {
                if let Kind::Nested(plan) = kind {
                    for _ in 0..n {
                        take_fields(plan, columns, payload, at);
                    }
                }
                *len += n;
            }
            Self::Bytes(..) | Self::List { .. } | Self::Fixed { .. } => {
                unreachable!("ROS has no arrays of arrays")
            }
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
                let size = i32::try_from(*size).expect("settled when the store was made");
                Arc::new(FixedSizeListArray::try_new(Arc::clone(field), size, values, nulls)?)
            }
        })
    }
}

/// Seconds and nanoseconds.
fn pairs(bytes: &[u8]) -> impl Iterator<Item = (u32, u32)> + '_ {
    let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
    bytes.chunks_exact(8).map(move |pair| (number(&pair[..4]), number(&pair[4..])))
}
