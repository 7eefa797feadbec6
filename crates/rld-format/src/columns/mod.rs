//! Rows as Arrow columns, converted directly from the bytes of the log.
//!
//! A few hundred rows at a time are copied column by column, while they are in the processor's
//! cache. The buffers are reused after the consumer has dropped the previous batch. Bits are
//! transposed in squares of 8x8 into the bitmaps of Arrow.

mod merged;
mod options;

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{ArrayRef, BooleanArray, PrimitiveArray, RecordBatch, RecordBatchReader};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use rovelog_core::Select;
use rovelog_core::internal::buffer::ReusableBuffer;
use rovelog_core::internal::columns::{TIME_COLUMN, metadata, new_batch};
use rovelog_core::internal::wire::I32Le;
use zerocopy::FromBytes;

use merged::MergedColumn;
pub use options::{ColumnOptions, Merging, Values};
use options::{GROUP, Times};

use crate::analysis::Merger;
use crate::bits;
use crate::clock::TimeMap;
use crate::error::RldError;
use crate::layout::{Slot, column, values};
use crate::reader::RldReader;
use crate::schema::Channel;
use crate::unit::Scale;

/// Builder for the values of a column.
#[derive(Debug)]
enum Builder {
    Bit(usize),
    Int32(Slot, ReusableBuffer),
    Int64(Slot, ReusableBuffer),
    Physical(Slot, Scale, ReusableBuffer),
}

#[derive(Debug)]
struct Column {
    builder: Builder,
    /// Index of the range bit of the channel. If the bit is 0, the value is null. `None` if the
    /// column has no nulls.
    valid: Option<usize>,
}

impl RldReader {
    /// Returns the selected rows and channels as record batches, in file order.
    ///
    /// # Errors
    /// Returns an error if the header does not allow rows to be located.
    pub fn columns_with(&self, select: &Select, options: &ColumnOptions) -> Result<RldBatches<'_>, RldError> {
        self.batches_as(&self.rows_topic().name, select, options)
    }

    pub(crate) fn batches_as(
        &self,
        topic: &str,
        select: &Select,
        options: &ColumnOptions,
    ) -> Result<RldBatches<'_>, RldError> {
        let table = self.table()?;
        let binary = table.binary();
        let mut fields = Vec::new();
        let mut columns = Vec::new();
        if options.times != Times::Chosen(None) {
            fields.push(Field::new(TIME_COLUMN, DataType::Int64, true));
        }
        for (i, channel) in table.channels.iter().enumerate().filter(|(_, c)| select.keeps_field(&c.name)) {
            let slot = i.checked_sub(binary).map(|i| table.layout.slots[i]);
            let physical = channel.physical().filter(|_| options.values == Values::Physical);
            let (data_type, builder) = match (slot, physical) {
                (None, _) => (DataType::Boolean, Builder::Bit(i)),
                (Some(slot), Some(scale)) => {
                    (DataType::Float64, Builder::Physical(slot, scale, ReusableBuffer::with_bytes(0)))
                }
                (Some(slot), None) if slot.size <= 4 && options.values == Values::Raw => {
                    (DataType::Int32, Builder::Int32(slot, ReusableBuffer::with_bytes(0)))
                }
                (Some(slot), None) => (DataType::Int64, Builder::Int64(slot, ReusableBuffer::with_bytes(0))),
            };
            // Values of binary channels are never null, even if the channel has a link to a range
            // bit. They are never null in records either.
            let valid = channel.valid.filter(|_| options.nulls && slot.is_some());
            let metadata = metadata_of(i, channel, &table.channels, physical.is_some());
            fields.push(Field::new(&*channel.name, data_type, valid.is_some()).with_metadata(metadata));
            columns.push(Column { builder, valid });
        }
        let merged = options.merged.map_or_else(Vec::new, |merging| {
            MergedColumn::of(&table.channels, select, merging, options.values)
        });
        fields.extend(merged.iter().flat_map(MergedColumn::fields));
        let schema = Arc::new(Schema::new_with_metadata(fields, self.metadata(topic)));
        let wanted = |column: &Column| match column.builder {
            Builder::Bit(bit) => [Some(bit), column.valid],
            _ => [column.valid, None],
        };
        let bits = Bitmaps::new(columns.iter().flat_map(wanted).flatten());
        let times = match options.times {
            Times::Records => Some(self.record_times().clone()),
            Times::Chosen(times) => times.map(|times| self.times(times)),
        };
        let times = times.map(|times| (times, ReusableBuffer::with_bytes(0)));
        Ok(RldBatches {
            reader: self,
            schema,
            columns,
            merged,
            merger: Merger::default(),
            bits,
            times,
            ranges: self.rows_selected(select).into(),
            batch_rows: options.batch_rows.max(1) as u64,
        })
    }

    fn metadata(&self, topic: &str) -> HashMap<String, String> {
        let lead_in = &self.header().lead_in;
        let pairs = [
            ("rovelog.format", crate::wire::INFO.id.to_owned()),
            ("rovelog.topic", topic.to_owned()),
            ("rld.version", lead_in.file_version.get().to_string()),
            ("rld.rate", lead_in.sample_rate.get().to_string()),
            ("rld.block_rows", lead_in.data_block_size.get().to_string()),
            ("rld.mac", lead_in.mac_text()),
            ("rld.start_sec", lead_in.start_sec.get().to_string()),
            ("rld.start_nsec", lead_in.start_nsec.get().to_string()),
            ("rld.comment", self.header().comment_text()),
        ];
        metadata(pairs)
    }
}

fn metadata_of(index: usize, channel: &Channel, all: &[Channel], physical: bool) -> HashMap<String, String> {
    let mut pairs = vec![("rld.index", index.to_string()), ("rld.quantity", channel.unit.to_string())];
    if !channel.is_binary {
        pairs.push(("rld.scale", channel.scale.to_string()));
        pairs.push(("rld.unit", channel.unit_text()));
        let unit = if physical { channel.unit_text() } else { channel.raw_unit() };
        if !unit.is_empty() {
            pairs.push(("unit", unit));
        }
        pairs.push(("source_type", format!("int{}", 8 * channel.size)));
    }
    if let Some(valid) = channel.valid.and_then(|bit| all.get(bit)) {
        pairs.push(("rld.valid_link", valid.name.to_string()));
    }
    metadata(pairs)
}

/// Builder of the bitmaps of binary channels.
#[derive(Debug)]
struct Bitmaps {
    /// Indices of the bytes of a row's bit words that contain bits of the selected channels. Byte i
    /// contains the bits of the channels 8 i to 8 i + 7.
    bytes: Vec<usize>,
    /// For each word of 32 channels, the words of the rows in the current batch.
    words: Vec<Vec<u32>>,
    /// Bitmaps of the current batch by index of the binary channel.
    maps: HashMap<usize, Buffer>,
}

impl Bitmaps {
    /// Creates a builder for the channels with the indices `bits`.
    fn new(bits: impl Iterator<Item = usize>) -> Self {
        let mut bytes: Vec<usize> = bits.map(|bit| bit / 8).collect();
        bytes.sort_unstable();
        bytes.dedup();
        let words = bytes.last().map_or(0, |last| last / 4 + 1);
        Self { bytes, words: vec![Vec::new(); words], maps: HashMap::new() }
    }

    /// Adds rows of `row` bytes to the current batch.
    fn copy(&mut self, rows: &[u8], row: usize) {
        for (i, words) in self.words.iter_mut().enumerate() {
            bits::copy_words(rows, row, 4 * i, words);
        }
    }

    /// Builds the bitmaps of the current batch, and starts the next batch.
    fn transpose(&mut self) {
        self.maps.clear();
        let mut maps: [Vec<u8>; 8] = Default::default();
        for byte in &self.bytes {
            let Some(words) = self.words.get(byte / 4) else { continue };
            for map in &mut maps {
                map.reserve(words.len().div_ceil(8));
            }
            bits::transpose(words, u32::try_from(byte % 4 * 8).unwrap_or_default(), &mut maps);
            for (k, map) in maps.iter_mut().enumerate() {
                self.maps.insert(8 * byte + k, Buffer::from_vec(std::mem::take(map)));
            }
        }
        self.words.iter_mut().for_each(Vec::clear);
    }
}

/// Iterator over the rows of a log, which returns them as Arrow record batches.
#[derive(Debug)]
pub struct RldBatches<'a> {
    reader: &'a RldReader,
    schema: SchemaRef,
    columns: Vec<Column>,
    merged: Vec<MergedColumn>,
    merger: Merger,
    bits: Bitmaps,
    times: Option<(TimeMap, ReusableBuffer)>,
    /// Rows that have not been returned yet, as ranges of row numbers.
    ranges: VecDeque<Range<u64>>,
    batch_rows: u64,
}

impl RldBatches<'_> {
    /// Restricts the batches to the row numbers in `rows`, so that several threads can read
    /// different parts of a log.
    #[must_use]
    pub fn within(mut self, rows: Range<u64>) -> Self {
        for range in &mut self.ranges {
            *range = range.start.max(rows.start)..range.end.min(rows.end);
        }
        self.ranges.retain(|range| !range.is_empty());
        self
    }

    fn batch(&mut self, rows: Range<u64>) -> Result<RecordBatch, ArrowError> {
        let count = usize::try_from(rows.end - rows.start)
            .map_err(|e| ArrowError::InvalidArgumentError(e.to_string()))?;
        let row = self.reader.table.as_ref().map_or(1, |table| table.layout.row);
        for (_, bytes) in self.reader.runs(rows.clone(), GROUP) {
            self.bits.copy(bytes, row);
            for column in &mut self.columns {
                column.builder.copy(bytes, row);
            }
        }
        self.bits.transpose();
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len() + 1);
        if let Some((map, buffer)) = &mut self.times {
            arrays.push(times(map, buffer, rows.clone(), count));
        }
        for column in &mut self.columns {
            let bits =
                |bit: usize| self.bits.maps.get(&bit).map(|map| BooleanBuffer::new(map.clone(), 0, count));
            let nulls = column.valid.and_then(bits).map(NullBuffer::new);
            arrays.push(match &mut column.builder {
                Builder::Bit(bit) => {
                    let bits = bits(*bit).unwrap_or_else(|| BooleanBuffer::new_unset(count));
                    Arc::new(BooleanArray::new(bits, nulls))
                }
                Builder::Int32(_, buffer) => {
                    Arc::new(PrimitiveArray::<Int32Type>::new(ScalarBuffer::from(buffer.lend()), nulls))
                }
                Builder::Int64(_, buffer) => {
                    Arc::new(PrimitiveArray::<Int64Type>::new(ScalarBuffer::from(buffer.lend()), nulls))
                }
                Builder::Physical(_, _, buffer) => {
                    Arc::new(PrimitiveArray::<Float64Type>::new(ScalarBuffer::from(buffer.lend()), nulls))
                }
            });
        }
        for merged in &self.merged {
            arrays.extend(merged.arrays(self.reader, &mut self.merger, &rows));
        }
        new_batch(Arc::clone(&self.schema), arrays, count)
    }
}

/// Returns the time column for `rows`. Rows without a time are null.
fn times(map: &TimeMap, buffer: &mut ReusableBuffer, rows: Range<u64>, count: usize) -> ArrayRef {
    let out = buffer.extend(8 * count);
    let filled = <[i64]>::mut_from_bytes(out).is_ok_and(|out| map.fill(rows.clone(), out));
    let values = ScalarBuffer::<i64>::from(buffer.lend());
    if filled {
        return Arc::new(PrimitiveArray::<Int64Type>::new(values, None));
    }
    Arc::new(rows.map(|row| map.time(row)).collect::<PrimitiveArray<Int64Type>>())
}

impl Builder {
    fn copy(&mut self, bytes: &[u8], row: usize) {
        let rows = bytes.len() / row;
        match self {
            Self::Bit(_) => {}
            Self::Int32(slot, buffer) => {
                let (out, _) = buffer.extend(4 * rows).as_chunks_mut::<4>();
                if slot.size == 4 {
                    for (out, value) in out.iter_mut().zip(column(bytes, row, slot.offset)) {
                        *out = I32Le::get(*value).to_ne_bytes();
                    }
                } else {
                    for (out, value) in out.iter_mut().zip(values(bytes, row, *slot)) {
                        *out = i32::try_from(value).unwrap_or_default().to_ne_bytes();
                    }
                }
            }
            Self::Int64(slot, buffer) => {
                let (out, _) = buffer.extend(8 * rows).as_chunks_mut::<8>();
                for (out, value) in out.iter_mut().zip(values(bytes, row, *slot)) {
                    *out = value.to_ne_bytes();
                }
            }
            Self::Physical(slot, scale, buffer) => {
                let (out, _) = buffer.extend(8 * rows).as_chunks_mut::<8>();
                match scale.divisor().filter(|_| slot.size == 4) {
                    Some(divisor) => {
                        for (out, raw) in out.iter_mut().zip(column(bytes, row, slot.offset)) {
                            *out = (f64::from(I32Le::get(*raw)) / divisor).to_ne_bytes();
                        }
                    }
                    None => {
                        for (out, raw) in out.iter_mut().zip(values(bytes, row, *slot)) {
                            *out = scale.apply(raw).to_ne_bytes();
                        }
                    }
                }
            }
        }
    }
}

impl Iterator for RldBatches<'_> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let range = self.ranges.front_mut()?;
        let end = range.end.min(range.start + self.batch_rows);
        let rows = range.start..end;
        range.start = end;
        if range.start >= range.end {
            self.ranges.pop_front();
        }
        Some(self.batch(rows))
    }
}

impl RecordBatchReader for RldBatches<'_> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
