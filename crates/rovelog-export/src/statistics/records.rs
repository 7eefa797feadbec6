//! Statistics of topics whose columns are not suitable. One record is processed after the other.
//!
//! If the layout of a topic's records is fixed, the names of the fields are computed only once. For
//! example, if the first record of a topic has the numbers `q[0]`, `q[1]` and `temperature`, the
//! second number of any later record with the same layout is `q[1]`. If the layout has lists of
//! variable length, the names are computed for each record.

use std::collections::HashMap;
use std::sync::Arc;

use rovelog::core::internal::layout::{At, FieldKeys, Layout, Leaf, Visit, scalar_value};
use rovelog::core::internal::parallel::{self, Jobs};
use rovelog::{Field, LogReader, Record, Scalar, Select, Value};

use super::{FieldStatistics, Number, Progress, Statistics};
use crate::{Loss, leaf};

/// The fields of one topic, in the order in which they first occurred.
#[derive(Default)]
struct Fields {
    /// Name and statistics of each field.
    list: FieldStatistics,
    /// Index in `list` of each field, by name.
    numbers: HashMap<String, usize>,
    direct: Direct,
    /// Buffer for the numbers of one record.
    buffer: Vec<Number>,
    /// Number of records that cannot be decoded.
    undecodable: u64,
}

/// State of a fast path, which assigns the numbers of a record to fields without computing names.
#[derive(Default)]
enum Direct {
    /// The topic has had no record yet, so it is unknown whether the fast path can be used.
    #[default]
    Unknown,
    /// The fast path cannot be used, because the names depend on the content of the records.
    No,
    /// The fast path is used, because all records with this layout have the same fields. The list
    /// contains the field index of each number in a record.
    Yes(Arc<Layout>, Vec<usize>),
}

impl Fields {
    /// Adds the numbers of a record.
    fn push(&mut self, record: &Record<'_>) {
        let Ok(fields) = record.fields() else {
            self.undecodable += 1;
            return;
        };
        if let Direct::Yes(known, indices) = &self.direct
            && Arc::ptr_eq(known, fields.layout)
        {
            self.buffer.clear();
            let mut numbers = Numbers { buffer: &mut self.buffer, has_nulls: false };
            if fields.visit(&FieldKeys, &mut numbers).is_ok() && !numbers.has_nulls {
                for (index, number) in indices.iter().zip(&self.buffer) {
                    self.list[*index].1.push(*number);
                }
                return;
            }
        }
        let Ok(value) = fields.value() else {
            self.undecodable += 1;
            return;
        };
        if self.list.is_empty() {
            self.list.reserve_exact(leaf::count(fields.layout.schema(), true));
        }
        let (mut indices, mut has_nulls) = (Vec::new(), false);
        value.flatten(&mut |name, value| {
            has_nulls |= *value == Value::Null;
            let Some(number) = number(value) else { return };
            let index = self.named(name, indices.last().map_or(0, |last| last + 1));
            self.list[index].1.push(number);
            indices.push(index);
        });
        if let Direct::Unknown = self.direct {
            // The first record of the topic determines whether the fast path can be used.
            let is_fixed = !has_nulls && fields.layout.schema().is_fixed();
            self.direct = if is_fixed { Direct::Yes(Arc::clone(fields.layout), indices) } else { Direct::No };
        }
    }

    /// Returns the index of the field `name`. `next` is the expected index, which is right if the
    /// record has the same fields as the previous record. This saves a lookup in the map.
    fn named(&mut self, name: &str, next: usize) -> usize {
        if self.list.get(next).is_some_and(|(known, _)| known == name) {
            return next;
        }
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.list.len();
        self.list.push((name.to_owned(), Statistics::default()));
        self.numbers.insert(name.to_owned(), number);
        number
    }
}

/// Converts a value to a number. Returns `None` if the value is not numeric.
fn number(value: &Value) -> Option<Number> {
    match value {
        Value::Bool(bit) => Some(Number::Int(i128::from(*bit))),
        Value::Int(value, _) => Some(Number::Int(i128::from(*value))),
        Value::UInt(value, _) => Some(Number::Int(i128::from(*value))),
        value => value.as_f64().map(Number::Float),
    }
}

/// Collects the numbers of a record.
struct Numbers<'a> {
    buffer: &'a mut Vec<Number>,
    has_nulls: bool,
}

impl Visit<Field> for Numbers<'_> {
    #[inline]
    fn scalar(&mut self, _: &Field, scalar: Scalar, bytes: &[u8]) {
        // Most logs consist mostly of 32-bit floats, so these are converted without creating a
        // `Value`.
        if let (Scalar::Float32, Some(bytes)) = (scalar, bytes.first_chunk()) {
            self.buffer.push(Number::Float(f64::from(f32::from_le_bytes(*bytes))));
        } else {
            self.buffer.extend(number(&scalar_value(scalar, bytes)));
        }
    }

    fn scalars(&mut self, field: &Field, scalar: Scalar, bytes: &[u8]) {
        bytes.chunks_exact(scalar.size()).for_each(|bytes| self.scalar(field, scalar, bytes));
    }

    fn leaf(&mut self, field: &Field, _: At, leaf: Leaf<'_>) {
        match leaf {
            Leaf::Pair(scalar, bytes) => self.scalars(field, scalar, bytes),
            Leaf::Null => self.has_nulls = true,
            Leaf::Text(_) | Leaf::Bytes(_) => {}
        }
    }
}

/// Maximum number of records that are collected before they are passed to the worker threads.
const MAX_BATCH_RECORDS: usize = 4096;
/// Payload size in bytes of the collected records at which they are passed to the worker threads.
const MAX_BATCH_BYTES: usize = 1 << 20;

/// Records that are collected before they are passed to the worker threads.
struct PendingRecords<'a> {
    /// Collected records of each topic.
    topics: Vec<Vec<Record<'a>>>,
    /// Indices of the topics that have collected records.
    non_empty: Vec<usize>,
    /// Number of collected records of all topics.
    records: usize,
    /// Payload size in bytes of all collected records.
    bytes: usize,
}

impl<'a> PendingRecords<'a> {
    fn add(&mut self, record: Record<'a>) {
        let topic = record.topic.id.index();
        if self.topics[topic].is_empty() {
            self.non_empty.push(topic);
        }
        self.records += 1;
        self.bytes += record.payload.len();
        self.topics[topic].push(record);
    }

    /// Calls `push` with the collected records of each topic, and clears the collection.
    fn flush<E>(&mut self, push: &mut dyn FnMut(usize, Vec<Record<'a>>) -> Result<(), E>) -> Result<(), E> {
        (self.records, self.bytes) = (0, 0);
        self.non_empty.drain(..).try_for_each(|topic| push(topic, std::mem::take(&mut self.topics[topic])))
    }
}

/// Computes the statistics of the selected records of all topics except those with an entry in
/// `finished`. Adds the records that cannot be decoded to `losses`.
///
/// The records of a topic are processed in time order, by one thread at a time. Rounding errors of
/// the mean depend on the order of the values. Without this rule, the result would depend on the
/// number of threads.
pub(super) fn add(
    log: &dyn LogReader,
    select: &Select,
    jobs: Jobs,
    progress: &Progress<'_>,
    finished: &mut [Option<FieldStatistics>],
    losses: &mut Vec<Loss>,
) -> rovelog::Result<()> {
    let mut fields = Vec::new();
    fields.resize_with(finished.len(), Fields::default);
    let work = |fields: &mut Fields, records: Vec<Record<'_>>| {
        for record in &records {
            fields.push(record);
        }
        Ok::<_, rovelog::Error>(())
    };
    let fields = parallel::lanes(jobs, fields, work, |push| {
        let topics = vec![Vec::new(); finished.len()];
        let mut pending = PendingRecords { topics, non_empty: Vec::new(), records: 0, bytes: 0 };
        for record in log.intact_records(select) {
            let record = record?;
            if finished[record.topic.id.index()].is_some() {
                continue;
            }
            progress(record.offset);
            pending.add(record);
            // Passing each record separately to a thread would take longer than processing it.
            if pending.records == MAX_BATCH_RECORDS || pending.bytes >= MAX_BATCH_BYTES {
                pending.flush(push)?;
            }
        }
        pending.flush(push)
    })?;
    for ((topic, fields), finished) in log.topics().iter().zip(fields).zip(finished) {
        if fields.undecodable > 0 {
            losses.push(Loss::undecodable(topic, fields.undecodable));
        }
        finished.get_or_insert(fields.list);
    }
    Ok(())
}
