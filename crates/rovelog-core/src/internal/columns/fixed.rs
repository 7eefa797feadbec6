//! Fast conversion of records with a fixed size to columns.
//!
//! A [`Plan`] is compiled once from the layout of a topic. It lists the leaves, which are the
//! numbers, Booleans and texts in a row, with the offsets of their bytes. [`FixedBuilder`] copies
//! the rows of a batch to the columns in groups of 128 rows. The rows of a group stay in the
//! first-level cache until all of their columns have been copied. Buffers are reused after the
//! consumer has dropped the last batch.
//!
//! For example, a layout has the fields `uint16 x` and `Point e[2]`, and `Point` has the fields
//! `uint8 a` and `bool ok`. A row has 6 bytes. The plan has three leaves:
//!
//! | leaf | offsets in a row | bytes at each offset |
//! |--------|------------------|----------------------|
//! | `x` | 0 | 2 |
//! | `e.a` | 2, 4 | 1 |
//! | `e.ok` | 3, 5 | 1 |
//!
//! The column `e` is a list of 2 structs, which are assembled from the leaves `e.a` and `e.ok`.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use arrow_array::types::Int64Type;
use arrow_array::{
    ArrayRef, BooleanArray, FixedSizeListArray, PrimitiveArray, RecordBatch, StringArray, StructArray,
};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Fields, Schema, SchemaRef};

use super::copy::{self, GROUP};
use super::{TIME_COLUMN, arrow_type, column, new_batch, numbers, path_of};
use crate::internal::buffer::ReusableBuffer;
use crate::internal::layout::{Element, Layout, Len, Slot, TextDecoder};
use crate::internal::memory;
use crate::internal::text::up_to_nul;
use crate::internal::wire::U64Le;
use crate::{Scalar, Select};

/// Compiled conversion from the rows of a topic to columns.
#[derive(Debug)]
pub struct Plan {
    /// Schema of the resulting batches.
    schema: SchemaRef,
    /// Columns after the time column.
    parts: Vec<Part>,
    /// Leaves of all columns. A leaf is a number, Boolean or text in a row. Columns refer to leaves
    /// by index.
    leaves: Vec<Leaf>,
}

/// A column, as a tree of structs and lists. The numbers, Booleans and texts in this tree are given
/// by their index in [`Plan::leaves`].
#[derive(Debug)]
enum Part {
    /// A number, Boolean or text, given by its index in [`Plan::leaves`].
    Leaf(usize),
    /// A struct with its fields.
    Struct(Fields, Vec<Part>),
    /// A list with a fixed number of elements. The number is the list size, and the box contains
    /// the element.
    List(Arc<Field>, usize, Box<Part>),
}

/// A number, Boolean or text in a row. Its values in all rows are copied to a single array.
#[derive(Debug)]
struct Leaf {
    /// Type of the values.
    kind: LeafKind,
    /// Offsets of the values within a row. If the field is inside an array of structs, there is one
    /// offset for each struct. Otherwise, there is a single offset.
    offsets: Vec<usize>,
    /// Number of bytes that are copied from each offset.
    run: usize,
    /// Number of fields that are copied in one pass, starting with this field. The number is above
    /// 1 if this field and the next fields are adjacent numbers of 4 bytes.
    adjacent_count: usize,
}

/// Maximum number of adjacent fields that are copied in one pass.
const MAX_ADJACENT: usize = 4;

/// Type of the values that are copied from a field.
#[derive(Debug)]
enum LeafKind {
    /// Numbers of this type.
    Number(Scalar),
    /// Booleans, which Arrow stores as bits.
    Bool,
    /// Texts, which are decoded one after the other.
    Text(TextDecoder),
}

impl Plan {
    /// Compiles the conversion of the selected fields of records with this layout. `metadata` is
    /// added to the Arrow schema. Returns `None` if the records do not have a fixed size.
    pub fn new(layout: &Layout, select: &Select, metadata: HashMap<String, String>) -> Option<Self> {
        layout.size()?;
        let mut leaves = Vec::new();
        let (mut fields, parts) = compile_fields(layout, "", select, &[0], &mut leaves)?;
        fields.insert(0, Arc::new(Field::new(TIME_COLUMN, DataType::Int64, true)));
        // Adjacent 32-bit floats are common, for example as the components of a vector. If they are
        // copied together, each row is read once instead of once for each column.
        for first in 0..leaves.len() {
            let adjacent = leaves[first..].windows(2).take_while(|pair| pair[0].is_beside(&pair[1]));
            leaves[first].adjacent_count = (1 + adjacent.count()).min(MAX_ADJACENT);
        }
        Some(Self { schema: Arc::new(Schema::new_with_metadata(fields, metadata)), parts, leaves })
    }

    /// Returns the schema of the resulting batches.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Compiles the conversion of the selected fields of a struct. `bases` are the offsets of the
/// struct within a row. An array of structs has one offset for each element.
fn compile_fields(
    layout: &Layout,
    path: &str,
    select: &Select,
    bases: &[usize],
    leaves: &mut Vec<Leaf>,
) -> Option<(Vec<Arc<Field>>, Vec<Part>)> {
    let (mut fields, mut parts) = (Vec::new(), Vec::new());
    for (field, slot) in layout.fields() {
        let path = path_of(path, field);
        if select.keeps_field(&path) {
            let (data_type, part) = compile(slot, &path, select, bases, leaves)?;
            fields.push(column(field, data_type));
            parts.push(part);
        }
    }
    Some((fields, parts))
}

/// Compiles the conversion of a field. Returns `None` if the field can only be converted by a
/// [`VariableBuilder`](super::VariableBuilder).
fn compile(
    slot: &Slot,
    path: &str,
    select: &Select,
    bases: &[usize],
    leaves: &mut Vec<Leaf>,
) -> Option<(DataType, Part)> {
    let offset = slot.offset?;
    let at: Vec<usize> = bases.iter().map(|base| base + offset).collect();
    let len = match slot.len {
        Len::One => None,
        Len::Fixed(len) => Some(usize::try_from(len).ok()?),
        Len::Counted | Len::Field(_) => return None,
    };
    Some(match &slot.element {
        Element::Scalar(scalar) => {
            // If columns are read in the same way as by pyulog, Booleans are bytes.
            let is_byte = *scalar == Scalar::Bool && select.like_pyulog;
            let scalar = if is_byte { Scalar::Int8 } else { *scalar };
            let run = scalar.size() * len.unwrap_or(1);
            let kind = if scalar == Scalar::Bool { LeafKind::Bool } else { LeafKind::Number(scalar) };
            leaves.push(Leaf { kind, offsets: at, run, adjacent_count: 1 });
            listed(arrow_type(scalar), Part::Leaf(leaves.len() - 1), len)?
        }
        Element::Char(text) => {
            let kind = LeafKind::Text(text.clone());
            leaves.push(Leaf { kind, offsets: at, run: len.unwrap_or(1), adjacent_count: 1 });
            (DataType::Utf8, Part::Leaf(leaves.len() - 1))
        }
        Element::Struct(inner) => {
            let size = usize::try_from(inner.full_size()?).ok()?;
            let elements = len.unwrap_or(1);
            let at: Vec<usize> = at.iter().flat_map(|at| (0..elements).map(move |i| at + i * size)).collect();
            let (fields, parts) = compile_fields(inner, path, select, &at, leaves)?;
            let fields = Fields::from(fields);
            listed(DataType::Struct(fields.clone()), Part::Struct(fields, parts), len)?
        }
        _ => return None,
    })
}

/// Returns the column as the element of a list with `len` elements. If `len` is `None`, returns the
/// column unchanged.
fn listed(data_type: DataType, part: Part, len: Option<usize>) -> Option<(DataType, Part)> {
    let Some(len) = len else { return Some((data_type, part)) };
    let item = Arc::new(Field::new_list_field(data_type, false));
    let size = i32::try_from(len).ok()?;
    Some((DataType::FixedSizeList(Arc::clone(&item), size), Part::List(item, len, Box::new(part))))
}

/// Source of the times of appended rows.
#[derive(Clone, Copy, Debug)]
pub enum Times<'a> {
    /// Each row contains its time at this offset, as a 64-bit unsigned number of microseconds. A
    /// time becomes null if its nanoseconds do not fit into 64 bits.
    MicrosAt(usize),
    /// A list with the time of each row in nanoseconds. `None` becomes null.
    Given(&'a [Option<i64>]),
}

/// Builder of record batches. Rows are appended to it, and [`finish`](Self::finish) returns them as
/// a batch.
#[derive(Debug)]
pub struct FixedBuilder {
    /// Compiled conversion from rows to columns.
    plan: Arc<Plan>,
    /// Values of the time column in nanoseconds.
    times: ReusableBuffer,
    /// For each row, whether the row has a time. The list is empty as long as all rows have a time.
    timed: Vec<bool>,
    /// Appended values of each number, Boolean and text in the plan.
    stores: Vec<Store>,
    /// Number of rows that have been appended.
    rows: usize,
}

/// Appended values of a number, Boolean or text.
#[derive(Debug)]
enum Store {
    /// Numbers, as bytes.
    Number(ReusableBuffer),
    /// Booleans, as bits.
    Bool(BooleanBufferBuilder),
    /// UTF-8 texts. `offsets` starts with 0, followed by the end of each text in `bytes`.
    Text { offsets: Vec<i32>, bytes: Vec<u8> },
}

impl FixedBuilder {
    /// Creates a builder without rows.
    pub fn new(plan: Arc<Plan>) -> Self {
        let store = |leaf: &Leaf| match leaf.kind {
            LeafKind::Number(_) => Store::Number(ReusableBuffer::with_bytes(0)),
            LeafKind::Bool => Store::Bool(BooleanBufferBuilder::new(0)),
            LeafKind::Text(_) => Store::Text { offsets: vec![0], bytes: Vec::new() },
        };
        let stores = plan.leaves.iter().map(store).collect();
        let times = ReusableBuffer::with_bytes(0);
        Self { plan, times, timed: Vec::new(), stores, rows: 0 }
    }

    /// Increases the capacity to `rows` rows in total. Use it to avoid reallocation if all rows are
    /// collected in one batch.
    ///
    /// # Errors
    /// Returns an error if memory is not sufficient.
    pub fn reserve(&mut self, rows: usize) -> io::Result<()> {
        let row_bytes: usize = self.plan.leaves.iter().map(|leaf| leaf.offsets.len() * leaf.run).sum();
        memory::check(rows.saturating_mul(row_bytes + size_of::<i64>()))?;
        for (leaf, store) in self.plan.leaves.iter().zip(&mut self.stores) {
            let len = rows * leaf.offsets.len() * leaf.run;
            match store {
                Store::Number(buffer) => buffer.reserve(len),
                Store::Bool(bits) => bits.reserve(len),
                Store::Text { .. } => {}
            }
        }
        self.times.reserve(rows * size_of::<i64>());
        Ok(())
    }

    /// Returns the number of rows that have been appended.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Appends the rows that start at the offsets `starts` in `data`.
    ///
    /// # Panics
    /// Panics if a row extends beyond `data`. The caller must have checked the rows against the
    /// layout.
    pub fn append(&mut self, data: &[u8], starts: &[usize], times: Times<'_>) {
        // All columns of a group of rows are copied before the next group, so that the rows stay in
        // the cache.
        for (group, starts) in starts.chunks(GROUP).enumerate() {
            match times {
                Times::MicrosAt(offset) => self.gather_micros(data, starts, offset),
                Times::Given(times) => self.gather_times(&times[group * GROUP..][..starts.len()]),
            }
            let (mut leaves, mut stores) = (&self.plan.leaves[..], &mut self.stores[..]);
            while let Some(leaf) = leaves.first() {
                match leaf.adjacent_count {
                    4 => leaf.copy_adjacent::<4>(data, starts, stores),
                    3 => leaf.copy_adjacent::<3>(data, starts, stores),
                    2 => leaf.copy_adjacent::<2>(data, starts, stores),
                    _ => leaf.append(data, starts, &mut stores[0]),
                }
                leaves = &leaves[leaf.adjacent_count..];
                stores = &mut stores[leaf.adjacent_count..];
            }
            self.rows += starts.len();
        }
    }

    /// Appends the times of rows that contain their times as microseconds.
    fn gather_micros(&mut self, data: &[u8], starts: &[usize], offset: usize) {
        // If a time is out of range, the product wraps around. Such times are rare. They are
        // checked after the loop, so that the loop has no branches.
        let (out, _) = self.times.extend(size_of::<i64>() * starts.len()).as_chunks_mut::<8>();
        let mut out_of_range = false;
        for (out, start) in out.iter_mut().zip(starts) {
            let micros = U64Le::first(&data[start + offset..]).expect("a row is whole").get();
            out_of_range |= micros > i64::MAX as u64 / 1000;
            *out = micros.wrapping_mul(1000).to_ne_bytes();
        }
        if out_of_range || !self.timed.is_empty() {
            let micros = |start: &usize| U64Le::first(&data[start + offset..]).map(U64Le::get);
            let timed = starts.iter().map(|start| micros(start).is_some_and(|m| m <= i64::MAX as u64 / 1000));
            self.timed.resize(self.rows, true);
            self.timed.extend(timed);
        }
    }

    /// Appends times that are given in nanoseconds.
    fn gather_times(&mut self, times: &[Option<i64>]) {
        if times.iter().any(Option::is_none) || !self.timed.is_empty() {
            self.timed.resize(self.rows, true);
            self.timed.extend(times.iter().map(Option::is_some));
        }
        let (out, _) = self.times.extend(size_of::<i64>() * times.len()).as_chunks_mut::<8>();
        for (out, time) in out.iter_mut().zip(times) {
            *out = time.unwrap_or(0).to_ne_bytes();
        }
    }

    /// Returns the rows as a batch. The builder is empty afterwards.
    ///
    /// # Errors
    /// Returns an error if the texts of a column exceed 2 GiB.
    pub fn finish(&mut self) -> Result<RecordBatch, ArrowError> {
        let rows = std::mem::take(&mut self.rows);
        let valid = std::mem::take(&mut self.timed);
        let nulls = (!valid.is_empty()).then(|| NullBuffer::from(valid));
        let times = ScalarBuffer::<i64>::from(self.times.lend());
        let plan = Arc::clone(&self.plan);
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(1 + plan.parts.len());
        arrays.push(Arc::new(PrimitiveArray::<Int64Type>::new(times, nulls)));
        let leaves: Result<Vec<ArrayRef>, ArrowError> =
            plan.leaves.iter().zip(&mut self.stores).map(|(leaf, store)| leaf.finish(store)).collect();
        let leaves = leaves?;
        for part in &plan.parts {
            arrays.push(assemble(part, rows, &leaves)?);
        }
        new_batch(plan.schema(), arrays, rows)
    }
}

impl Store {
    /// Appends `bytes` bytes to the stored numbers, and returns these bytes. The caller must
    /// overwrite them.
    fn extend(&mut self, bytes: usize) -> &mut [u8] {
        match self {
            Self::Number(buffer) => buffer.extend(bytes),
            _ => unreachable!("stores follow the leaves"),
        }
    }
}

impl Leaf {
    /// Returns whether this field and the field `next` are numbers of 4 bytes, and `next` directly
    /// follows this field in each row.
    fn is_beside(&self, next: &Self) -> bool {
        let cell = |leaf: &Self| matches!(leaf.kind, LeafKind::Number(_)) && leaf.run == 4;
        let adjacent = |at: &[usize], next: &[usize]| matches!((at, next), ([a], [b]) if a + 4 == *b);
        cell(self) && cell(next) && adjacent(&self.offsets, &next.offsets)
    }

    /// Copies this field and the next `K - 1` fields to their columns in one pass. All of them must
    /// be adjacent numbers of 4 bytes.
    fn copy_adjacent<const K: usize>(&self, data: &[u8], starts: &[usize], stores: &mut [Store]) {
        let stores = stores.first_chunk_mut::<K>().expect("there are as many leaves");
        let columns = stores.each_mut().map(|store| store.extend(4 * starts.len()));
        copy::copy_adjacent(data, starts, self.offsets[0], columns);
    }

    /// Copies this field from all rows to its column.
    fn append(&self, data: &[u8], starts: &[usize], store: &mut Store) {
        match store {
            Store::Number(buffer) => {
                self.copy(data, starts, buffer.extend(starts.len() * self.offsets.len() * self.run));
            }
            Store::Bool(bits) => {
                if let ([offset], 1) = (&self.offsets[..], self.run) {
                    bits.append_packed_range(0..starts.len(), &copy::pack_bools(data, starts, *offset));
                } else {
                    self.each(data, starts, |bytes| bytes.iter().for_each(|byte| bits.append(*byte != 0)));
                }
            }
            Store::Text { offsets, bytes } => {
                let LeafKind::Text(text) = &self.kind else { unreachable!("stores follow the leaves") };
                self.each(data, starts, |value| {
                    bytes.extend_from_slice(text.decode(up_to_nul(value)).as_bytes());
                    // If the texts exceed 2 GiB, the offset is wrong, and `finish` reports the
                    // error.
                    offsets.push(i32::try_from(bytes.len()).unwrap_or(i32::MAX));
                });
            }
        }
    }

    /// Calls `take` with the bytes of this field in each row. A field inside an array of structs
    /// has several values in each row.
    fn each(&self, data: &[u8], starts: &[usize], mut take: impl FnMut(&[u8])) {
        for start in starts {
            for offset in &self.offsets {
                take(&data[start + offset..][..self.run]);
            }
        }
    }

    /// Copies the bytes of this field in each row to `out`. A field inside an array of structs has
    /// several values in each row.
    fn copy(&self, data: &[u8], starts: &[usize], out: &mut [u8]) {
        // An array of length 0 has no bytes, and `chunks_exact_mut` rejects the size 0.
        if self.run == 0 {
            return;
        }
        let [offset] = self.offsets[..] else {
            let mut out = out.chunks_exact_mut(self.run);
            self.each(data, starts, |bytes| out.next().expect("as many offsets").copy_from_slice(bytes));
            return;
        };
        match self.run {
            1 => copy::fixed::<1>(data, starts, offset, out),
            2 => copy::fixed::<2>(data, starts, offset, out),
            4 => copy::fixed::<4>(data, starts, offset, out),
            8 => copy::fixed::<8>(data, starts, offset, out),
            12 => copy::fixed::<12>(data, starts, offset, out),
            16 => copy::fixed::<16>(data, starts, offset, out),
            run => {
                for (out, start) in out.chunks_exact_mut(run).zip(starts) {
                    out.copy_from_slice(&data[start + offset..][..run]);
                }
            }
        }
    }

    /// Returns the appended values of this field as an array. `store` is empty afterwards.
    fn finish(&self, store: &mut Store) -> Result<ArrayRef, ArrowError> {
        Ok(match store {
            Store::Number(buffer) => {
                let LeafKind::Number(scalar) = self.kind else { unreachable!("stores follow the leaves") };
                numbers(scalar, buffer.lend())
            }
            Store::Bool(bits) => Arc::new(BooleanArray::new(bits.finish(), None)),
            Store::Text { offsets, bytes } => {
                if i32::try_from(bytes.len()).is_err() {
                    let why = "more than 2 GiB of text in one column: read it in batches".to_owned();
                    return Err(ArrowError::InvalidArgumentError(why));
                }
                let offsets = OffsetBuffer::new(std::mem::replace(offsets, vec![0]).into());
                Arc::new(StringArray::try_new(offsets, Buffer::from_vec(std::mem::take(bytes)), None)?)
            }
        })
    }
}

/// Creates the array for a column from the arrays of its numbers, Booleans and texts. `len` is the
/// number of values in the created array.
fn assemble(part: &Part, len: usize, leaves: &[ArrayRef]) -> Result<ArrayRef, ArrowError> {
    Ok(match part {
        Part::Leaf(leaf) => Arc::clone(&leaves[*leaf]),
        Part::Struct(fields, parts) if parts.is_empty() => {
            debug_assert!(fields.is_empty());
            Arc::new(StructArray::new_empty_fields(len, None))
        }
        Part::Struct(fields, parts) => {
            let arrays: Result<_, _> = parts.iter().map(|part| assemble(part, len, leaves)).collect();
            Arc::new(StructArray::try_new(fields.clone(), arrays?, None)?)
        }
        Part::List(item, size, part) => {
            let values = assemble(part, len * size, leaves)?;
            // A list of empty arrays has no values, so only the validity bitmap stores the number
            // of lists.
            let nulls = (*size == 0).then(|| NullBuffer::new_valid(len));
            let size = i32::try_from(*size).expect("arrays have at most 65535 elements");
            Arc::new(FixedSizeListArray::try_new(Arc::clone(item), size, values, nulls)?)
        }
    })
}

#[cfg(test)]
mod tests {
    use arrow_array::Array as _;
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::{UInt8Type, UInt16Type, UInt32Type};

    use super::*;

    fn add(builder: &mut crate::internal::layout::Builder, name: &str, element: Element, len: Len) {
        builder.field(name, element, len, String::new());
    }

    fn plan() -> Arc<Plan> {
        let mut inner = Layout::builder("inner");
        add(&mut inner, "a", Element::Scalar(Scalar::UInt8), Len::One);
        add(&mut inner, "ok", Element::Scalar(Scalar::Bool), Len::One);
        let mut outer = Layout::builder("outer");
        add(&mut outer, "x", Element::Scalar(Scalar::UInt16), Len::One);
        add(&mut outer, "e", Element::Struct(Arc::new(inner.finish())), Len::Fixed(2));
        add(&mut outer, "s", Element::Char(TextDecoder::UTF8), Len::Fixed(3));
        add(&mut outer, "none", Element::Scalar(Scalar::Float64), Len::Fixed(0));
        Arc::new(Plan::new(&outer.finish(), &Select::all(), HashMap::new()).unwrap())
    }

    const ROWS: &[u8] = b"\x01\x00\x05\x00\x06\x01ab\0\x02\x01\x07\x02\x08\x00\xff\0x";

    #[test]
    fn rows_become_columns() {
        let mut columns = FixedBuilder::new(plan());
        columns.append(ROWS, &[0, 9], Times::Given(&[Some(10), None]));
        let batch = columns.finish().unwrap();
        assert_eq!(batch.num_rows(), 2);
        let times = batch.column(0).as_primitive::<Int64Type>();
        assert_eq!(times.iter().collect::<Vec<_>>(), [Some(10), None]);
        assert_eq!(batch.column(1).as_primitive::<UInt16Type>().values(), &[1, 258]);
        let e = batch.column(2).as_fixed_size_list().values().as_struct();
        assert_eq!(e.column(0).as_primitive::<UInt8Type>().values(), &[5, 6, 7, 8]);
        let ok: Vec<_> = e.column(1).as_boolean().iter().flatten().collect();
        assert_eq!(ok, [false, true, true, false]);
        let texts: Vec<_> = batch.column(3).as_string::<i32>().iter().flatten().collect();
        assert_eq!(texts, ["ab", r"\xff"]);
        assert_eq!(batch.column(4).len(), 2);
    }

    #[test]
    fn adjacent_numbers_and_booleans_are_copied_correctly() {
        // Each row has one to six adjacent numbers of 4 bytes, followed by a Boolean. The number of
        // rows exceeds the size of a group.
        for fields in 1..=6 {
            let mut layout = Layout::builder("row");
            for i in 0..fields {
                add(&mut layout, &format!("n{i}"), Element::Scalar(Scalar::UInt32), Len::One);
            }
            add(&mut layout, "b", Element::Scalar(Scalar::Bool), Len::One);
            let plan = Plan::new(&layout.finish(), &Select::all(), HashMap::new()).unwrap();
            let (size, rows) = (4 * fields + 1, GROUP + 13);
            let data: Vec<u8> = (0..size * rows).map(|i| (i % 3 * i).to_le_bytes()[0]).collect();
            let starts: Vec<_> = (0..rows).map(|row| row * size).collect();
            let mut columns = FixedBuilder::new(Arc::new(plan));
            columns.append(&data, &starts, Times::Given(&vec![Some(0); rows]));
            let batch = columns.finish().unwrap();
            for (row, start) in starts.iter().enumerate() {
                for i in 0..fields {
                    let want = u32::from_le_bytes(*data[start + 4 * i..].first_chunk().unwrap());
                    assert_eq!(batch.column(1 + i).as_primitive::<UInt32Type>().value(row), want);
                }
                let truth = batch.column(1 + fields).as_boolean().value(row);
                assert_eq!(truth, data[start + 4 * fields] != 0);
            }
        }
    }

    #[test]
    fn a_buffer_is_reused_only_after_its_batch_is_dropped() {
        let mut columns = FixedBuilder::new(plan());
        let mut address = |rows: &[usize]| {
            columns.append(ROWS, rows, Times::Given(&vec![Some(0); rows.len()]));
            let batch = columns.finish().unwrap();
            (batch.column(1).to_data().buffers()[0].as_ptr(), batch)
        };
        let (first, batch) = address(&[0]);
        drop(batch);
        let (second, kept) = address(&[9]);
        assert_eq!(first, second);
        let (third, _) = address(&[0]);
        assert_ne!(second, third);
        assert_eq!(kept.column(1).as_primitive::<UInt16Type>().values(), &[258]);
    }
}
