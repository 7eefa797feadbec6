//! Joins topics into one table, with rows at the times of one topic or at regular times.
//!
//! The topics are read in parallel, one batch of each at a time, so memory does not grow with the
//! log.
//!
//! For example, topic `a` has rows at 10 and 20, and topic `b` has rows at 8, 15 and 30. The rows
//! of the table are at the times of `a`. With [`Method::Previous`], the row at 10 gets the values
//! of `b` at 8, and the row at 20 those at 15. With [`Method::Linear`], the row at 20 gets
//! interpolated values, one third of the way from those at 15 to those at 30.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{
    Array as _, ArrayRef, FixedSizeListArray, Float64Array, Int64Array, RecordBatch, StructArray,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use rovelog::core::internal::columns::{TIME_COLUMN, new_batch};
use rovelog::core::internal::text::count;
use rovelog::{LogReader, Select, Topic};

use super::cursor::Cursor;
use super::extend::Extended;
use super::find::{Signal, label};
use crate::ExportError;
use crate::leaf::numbers;
use crate::pick::{self, concat, concat_batches};

/// Number of rows in a batch if the times are regular or given as a list.
const GRID_ROWS: usize = 4096;

/// Rule that selects the values of a joined topic for a given time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Use the values of the last row at or before the time.
    #[default]
    Previous,
    /// Use the values of the nearest row. If two rows are equally near, use the earlier row.
    Nearest,
    /// Interpolate linearly between the rows before and after the time. Numbers become 64-bit
    /// floats. Values that are not numbers come from the row before the time.
    Linear,
}

impl Method {
    /// Returns the method with the command-line name `name`.
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "previous" => Some(Self::Previous),
            "nearest" => Some(Self::Nearest),
            "linear" => Some(Self::Linear),
            _ => None,
        }
    }
}

/// The times at which the joined table has rows.
#[derive(Clone, Debug)]
pub enum Base<'a> {
    /// The times of a topic. The fields of this topic are the first columns.
    Topic(&'a Topic),
    /// Every `step` nanoseconds from `first` to `last`, in nanoseconds of the log's clock.
    Every {
        /// The first time of the table.
        first: i64,
        /// Upper bound of the times, inclusive.
        last: i64,
        /// Distance between two rows in nanoseconds, at least 1.
        step: i64,
    },
    /// A list of times in ascending order, in nanoseconds of the log's clock.
    Times(Vec<i64>),
}

/// If a table has rows at regular times, maximum number of rows per record of the log.
const MAX_ROWS_PER_RECORD: u64 = 10;

/// If a table has rows at regular times, number of rows that is allowed for any log.
const ALWAYS_ALLOWED_ROWS: u64 = 10_000;

/// Checks that a table with rows every `step` nanoseconds from `first` to `last` is not far larger
/// than the log.
///
/// If the clock was set while the log was recorded, the log may appear to last for years, and such
/// a table would fill the disk.
///
/// # Errors
/// Returns a message with the numbers of rows and records.
pub fn check_regular_rows(log: &dyn LogReader, first: i64, last: i64, step: i64) -> Result<(), String> {
    let records = log.info().records;
    let rows = if first <= last { last.abs_diff(first) / step.max(1).unsigned_abs() + 1 } else { 0 };
    if rows <= ALWAYS_ALLOWED_ROWS.max(records.saturating_mul(MAX_ROWS_PER_RECORD)) {
        return Ok(());
    }
    Err(format!(
        "the table would have {rows} rows for the times of this log, which has only {}",
        count(records, "record")
    ))
}

/// Options of a join.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JoinOptions {
    /// Rule that selects the values of a joined topic for a given time.
    pub method: Method,
    /// Maximum distance in nanoseconds between a time and the row whose values are used. If no row
    /// is within this distance, the values are null.
    pub tolerance: Option<u64>,
}

/// Iterator over the batches of a joined table. The columns are `t_ns`, then `TOPIC.FIELD` for each
/// field.
pub struct Joined<'a> {
    base: Rows<'a>,
    others: Vec<JoinedTopic<'a>>,
    options: JoinOptions,
    /// Schema of the joined columns, before the computed signals are added.
    read: SchemaRef,
    /// Computes the signals that become additional columns after the joined columns.
    extended: Option<Extended>,
}

/// Source of the times of the remaining rows.
enum Rows<'a> {
    Topic(Cursor<'a>),
    Every { next: Option<i64>, last: i64, step: i64 },
    Times(std::vec::IntoIter<i64>),
}

/// Joins `topics` to the rows of `base`. `signals` are appended as computed columns.
///
/// `select` selects the fields, and limits the times of the base rows. The joined topics are read
/// without time limits, because the first base row may need a row of a topic before the start time.
///
/// # Errors
/// Returns an error if a topic has no columns, or the log cannot be read.
pub fn join<'a>(
    log: &'a dyn LogReader,
    base: Base<'a>,
    topics: &[&'a Topic],
    select: &Select,
    (options, signals): (JoinOptions, &[Signal]),
) -> Result<Joined<'a>, ExportError> {
    let read = Extended::reads(signals, select);
    let schema = |select: &Select| schema(log, &base, topics, select, options.method);
    let read_schema = schema(&read)?;
    let extended = match signals {
        [] => None,
        signals => Some(Extended::of(
            schema(select)?.as_ref(),
            &read_schema,
            signals.iter(),
            |signal| signal.name().to_owned(),
            |operand| format!("{}.{}", label(log, &operand.topic), operand.field),
        )),
    };
    let rows = match base {
        Base::Topic(topic) => Rows::Topic(Cursor::new(log, topic, &read)?),
        Base::Every { first, last, step } => {
            // With a step of 0, the last time would never be reached.
            Rows::Every { next: (first <= last).then_some(first), last, step: step.max(1) }
        }
        Base::Times(times) => Rows::Times(times.into_iter()),
    };
    let everything = read.between(None, None);
    let others = topics.iter().map(|topic| Ok(JoinedTopic::new(Cursor::new(log, topic, &everything)?)));
    let others = others.collect::<Result<_, ExportError>>()?;
    Ok(Joined { base: rows, others, options, read: read_schema, extended })
}

/// Returns the schema of the joined table: `t_ns`, then `TOPIC.FIELD` for each field.
fn schema(
    log: &dyn LogReader,
    base: &Base<'_>,
    topics: &[&Topic],
    select: &Select,
    method: Method,
) -> Result<SchemaRef, ExportError> {
    let mut fields = vec![Field::new(TIME_COLUMN, DataType::Int64, true)];
    let mut add = |topic: &Topic, linear: bool| {
        fields.extend(prefixed(label(log, &topic.name), &log.own(topic)?.columns(select)?.schema(), linear));
        Ok::<_, ExportError>(())
    };
    if let Base::Topic(topic) = base {
        add(topic, false)?;
    }
    topics.iter().try_for_each(|topic| add(topic, method == Method::Linear))?;
    Ok(Arc::new(Schema::new(fields)))
}

/// Prefixes the fields of a topic with the topic name and makes them nullable. A value is null if
/// the topic has no row for a time.
fn prefixed(topic: &str, schema: &Schema, linear: bool) -> Vec<Field> {
    let fields = schema.fields().iter().skip(1).map(|field| {
        let data_type = if linear { interpolated_type(field.data_type()) } else { field.data_type().clone() };
        let name = format!("{topic}.{}", field.name());
        Field::new(name, data_type, true).with_metadata(field.metadata().clone())
    });
    fields.collect()
}

impl Joined<'_> {
    /// Returns the schema of the joined batches, including the computed signals.
    pub fn schema(&self) -> &SchemaRef {
        self.extended.as_ref().map_or(&self.read, Extended::schema)
    }

    /// Returns the selections with which the topics are read, one for each topic.
    pub(crate) fn reads(&self) -> Vec<Select> {
        let base = if let Rows::Topic(cursor) = &self.base { Some(cursor) } else { None };
        let cursors = base.into_iter().chain(self.others.iter().map(|other| &other.rows));
        cursors.map(|cursor| cursor.select.clone()).collect()
    }

    /// Returns the number of base rows that were skipped because they have no time. The number grows
    /// while batches are read.
    pub(crate) fn untimed(&self) -> Arc<AtomicU64> {
        match &self.base {
            Rows::Topic(cursor) => Arc::clone(&cursor.untimed),
            Rows::Every { .. } | Rows::Times(_) => Arc::default(),
        }
    }

    /// Returns the next batch, or `None` after the last base row.
    fn batch(&mut self) -> Result<Option<RecordBatch>, ExportError> {
        let Some(mut columns) = self.base.next()? else { return Ok(None) };
        let times = columns[0].as_primitive::<Int64Type>().clone();
        for other in &mut self.others {
            columns.extend(other.columns_at(times.values(), self.options)?);
        }
        let batch = new_batch(Arc::clone(&self.read), columns, times.len())?;
        match &mut self.extended {
            Some(extended) => extended.extend(&batch).map(Some),
            None => Ok(Some(batch)),
        }
    }
}

impl Iterator for Joined<'_> {
    type Item = Result<RecordBatch, ExportError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batch().transpose()
    }
}

impl Rows<'_> {
    /// Returns the columns of the next base rows. The first column contains the times.
    fn next(&mut self) -> Result<Option<Vec<ArrayRef>>, ExportError> {
        let times: Vec<i64> = match self {
            Self::Topic(cursor) => {
                return Ok(cursor.next().transpose()?.map(|batch| batch.columns().to_vec()));
            }
            Self::Times(times) => times.by_ref().take(GRID_ROWS).collect(),
            Self::Every { next, last, step } => {
                let time = || {
                    let time = (*next)?;
                    // The sum may overflow, because the last time may be close to the largest
                    // 64-bit integer.
                    *next = time.checked_add(*step).filter(|next| *next <= *last);
                    Some(time)
                };
                std::iter::from_fn(time).take(GRID_ROWS).collect()
            }
        };
        Ok((!times.is_empty()).then(|| vec![Arc::new(Int64Array::from(times)) as ArrayRef]))
    }
}

/// A topic that is joined to the table. Its rows are read as the times of the table advance.
struct JoinedTopic<'a> {
    rows: Cursor<'a>,
    /// The batch that contains the current time. The last row of the previous batch is prepended to
    /// the batch, because that row is used for times before the batch's first row.
    current: Option<RecordBatch>,
    /// Number of rows in `current` whose time is at or before the current time.
    passed_count: usize,
    /// True if all batches of the topic have been read.
    is_finished: bool,
}

/// Rows of the current batch that were selected for consecutive times of the table.
#[derive(Default)]
struct RowPicks {
    /// For each time, the row whose values are used, or the row before the time for interpolation.
    before: Vec<Option<usize>>,
    /// For each time, the row after the time. Used for interpolation only.
    after: Vec<Option<usize>>,
    /// For each time, the interpolation weight. It is 0 at the row before the time, and 1 at the
    /// row after.
    share: Vec<f64>,
}

impl<'a> JoinedTopic<'a> {
    fn new(rows: Cursor<'a>) -> Self {
        Self { rows, current: None, passed_count: 0, is_finished: false }
    }

    /// Returns the times of the rows in the current batch.
    fn times(&self) -> &[i64] {
        self.current.as_ref().map_or(&[], |batch| batch.column(0).as_primitive::<Int64Type>().values())
    }

    /// Returns the columns of the topic at `times`. The times must ascend within a call and from
    /// one call to the next.
    fn columns_at(&mut self, times: &[i64], options: JoinOptions) -> Result<Vec<ArrayRef>, ExportError> {
        let mut parts: Vec<Vec<ArrayRef>> = vec![Vec::new(); self.rows.schema.fields().len() - 1];
        let mut picks = RowPicks::default();
        for time in times {
            loop {
                let own = self.times();
                self.passed_count += own[self.passed_count..].iter().take_while(|own| **own <= *time).count();
                // The first row after the time must be in memory too, because it may be the nearest
                // row.
                if self.passed_count < self.times().len() || self.is_finished {
                    break;
                }
                self.flush(&mut picks, options.method, &mut parts)?;
                self.read_more()?;
            }
            picks.add(self.times(), self.passed_count, *time, options);
        }
        self.flush(&mut picks, options.method, &mut parts)?;
        if times.is_empty() {
            return Ok(Vec::new());
        }
        parts.iter().map(|parts| Ok(concat(parts)?)).collect()
    }

    /// Reads the next batch and prepends the last row of the current batch.
    fn read_more(&mut self) -> Result<(), ExportError> {
        let Some(next) = self.rows.next().transpose()? else {
            self.is_finished = true;
            return Ok(());
        };
        let Some(current) = self.current.take() else {
            self.current = Some(next);
            return Ok(());
        };
        let last = current.slice(current.num_rows() - 1, 1);
        self.current = Some(concat_batches(&self.rows.schema, &[&last, &next])?);
        self.passed_count = 1;
        Ok(())
    }

    /// Appends the selected rows of the current batch to `parts`. Called before the batch is
    /// replaced, because `picks` refers to rows of that batch.
    fn flush(
        &self,
        picks: &mut RowPicks,
        method: Method,
        parts: &mut [Vec<ArrayRef>],
    ) -> Result<(), ExportError> {
        let RowPicks { before, after, share } = std::mem::take(picks);
        if before.is_empty() {
            return Ok(());
        }
        let nothing = || RecordBatch::new_empty(Arc::clone(&self.rows.schema));
        let current = self.current.clone().unwrap_or_else(nothing);
        let picks = |rows: Vec<Option<usize>>| -> pick::Picks {
            rows.into_iter().map(|row| row.map(|row| (0, row))).collect()
        };
        let (before, after) = (picks(before), picks(after));
        for (column, parts) in current.columns().iter().skip(1).zip(parts) {
            let mut found = before.of(&[column])?;
            if method == Method::Linear {
                found = interpolate(&found, &after.of(&[column])?, &share)?;
            }
            parts.push(found);
        }
        Ok(())
    }
}

impl RowPicks {
    /// Selects the rows for a time. `own` are the times of the rows in the current batch. The first
    /// `passed_count` of them are at or before `time`.
    fn add(&mut self, own: &[i64], passed_count: usize, time: i64, options: JoinOptions) {
        let within_tolerance = |row: usize| {
            let distance = own[row].abs_diff(time);
            options.tolerance.is_none_or(|most| distance <= most).then_some(row)
        };
        let (before, after) =
            (passed_count.checked_sub(1), Some(passed_count).filter(|row| *row < own.len()));
        let (mut share, mut other) = (0.0, None);
        let picked = match (options.method, before, after) {
            (Method::Nearest, Some(before), Some(after)) => {
                let is_later = own[after].abs_diff(time) < own[before].abs_diff(time);
                within_tolerance(if is_later { after } else { before })
            }
            (Method::Nearest, None, Some(after)) => within_tolerance(after),
            (Method::Linear, Some(before), after) => {
                // If a row has exactly this time, its values are used even if the next row is
                // missing.
                other = if own[before] == time { Some(before) } else { after.and_then(within_tolerance) };
                if let Some(after) = after.filter(|_| own[before] != time) {
                    // The times are subtracted as integers. Nanoseconds since 1970 exceed the 53
                    // bits of precision of a float, but the differences between nearby times do
                    // not.
                    share = own[before].abs_diff(time) as f64 / own[before].abs_diff(own[after]) as f64;
                }
                within_tolerance(before)
            }
            (_, before, _) => before.and_then(within_tolerance),
        };
        self.before.push(picked);
        self.after.push(other);
        self.share.push(share);
    }
}

/// Returns the type of interpolated values. Numbers become 64-bit floats, also within lists and
/// structs. Other types are unchanged.
fn interpolated_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::FixedSizeList(item, len) => {
            let data_type = interpolated_type(item.data_type());
            DataType::FixedSizeList(Arc::new(Field::new(item.name(), data_type, true)), *len)
        }
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| {
                let made = Field::new(field.name(), interpolated_type(field.data_type()), true);
                made.with_metadata(field.metadata().clone())
            });
            DataType::Struct(fields.collect())
        }
        other if other.is_integer() || other.is_floating() => DataType::Float64,
        other => other.clone(),
    }
}

/// Interpolates between two arrays with the weights `share`. A number is null if it is null in
/// either array. Values that are not numbers come from `before`.
fn interpolate(before: &ArrayRef, after: &ArrayRef, share: &[f64]) -> Result<ArrayRef, ExportError> {
    let data_type = interpolated_type(before.data_type());
    Ok(match &data_type {
        DataType::FixedSizeList(item, len) => {
            let (a, b) = (before.as_fixed_size_list(), after.as_fixed_size_list());
            let each = usize::try_from(*len).unwrap_or(0);
            // All elements of a row use the weight of the row.
            let share: Vec<f64> = share.iter().flat_map(|share| std::iter::repeat_n(*share, each)).collect();
            let values = interpolate(a.values(), b.values(), &share)?;
            Arc::new(FixedSizeListArray::try_new(
                Arc::clone(item),
                *len,
                values,
                common_validity(before, after),
            )?)
        }
        DataType::Struct(fields) => {
            let pairs = before.as_struct().columns().iter().zip(after.as_struct().columns());
            let columns = pairs.map(|(a, b)| interpolate(a, b, share)).collect::<Result<Vec<_>, _>>()?;
            let fields: Fields = fields.clone();
            Arc::new(StructArray::try_new_with_length(
                fields,
                columns,
                common_validity(before, after),
                before.len(),
            )?)
        }
        DataType::Float64 => {
            let (a, b) = (numbers(before), numbers(after));
            let values = share.iter().enumerate().map(|(i, share)| {
                // If a row has exactly the wanted time, the next row must not matter. Its value
                // could be NaN or infinite, for which `(b - a) * 0` is NaN.
                if *share == 0.0 { a[i] } else { a[i] + (b[i] - a[i]) * share }
            });
            Arc::new(Float64Array::new(values.collect(), common_validity(before, after)))
        }
        _ => Arc::clone(before),
    })
}

/// Returns a validity bitmap. A row is valid if both arrays have a value in this row.
fn common_validity(a: &ArrayRef, b: &ArrayRef) -> Option<NullBuffer> {
    NullBuffer::union(a.logical_nulls().as_ref(), b.logical_nulls().as_ref())
}
