//! Conversion of the rows of a topic to the columns of a table.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int64Type, TimestampNanosecondType};
use arrow_array::{ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use rovelog::core::internal::columns::new_batch;
use rovelog::{LogReader, Select, Topic, TopicId};
use rovelog_export::TimeBase;

use crate::types::{Columns, Rules, fields, micros};
use crate::wanted::{Wanted, Window, split_instance};

/// Names of the columns that every table has before the fields of the topic:
///
/// - the log
/// - the topic without the number of its instance, and this number
/// - the number of the row within the log, topic and instance
/// - the time on the clock of the log in nanoseconds, and the time in UTC
pub const COLUMNS: [&str; 6] = ["log", "topic", "instance", "seq", "t_ns", "time"];

/// Name of the column with the number of the row.
pub(crate) const SEQ: &str = COLUMNS[3];

/// Returns `true` if a table has the column `name`. `only` are the columns of the table, or `None`
/// for a table with all columns.
pub(crate) fn has(only: Option<&SchemaRef>, name: &str) -> bool {
    only.is_none_or(|schema| schema.column_with_name(name).is_some())
}

/// Converts the batches of one topic of a log to rows of a table.
pub(crate) struct Rows {
    /// Value of the column `log` in all rows.
    log: Arc<str>,
    /// Name of the topic, without the number of its instance.
    topic: String,
    instance: Option<i32>,
    base: TimeBase,
    window: Window,
    rules: Rules,
    /// Columns that are returned. `None` returns all columns.
    only: Option<SchemaRef>,
    /// Number of the next row within the topic.
    next: i64,
    /// Number of values that were replaced by null, because no column type can represent them.
    pub(crate) lost: u64,
}

impl Rows {
    /// Creates a converter for the rows of a topic. Only rows in `blocks`, a byte range of the log,
    /// are converted. `label` is the value of the column `log`. If `only` is set, a column of
    /// [`COLUMNS`] is computed only if `only` has this column.
    ///
    /// # Errors
    /// Returns an error if the rows before `blocks` cannot be counted.
    pub(crate) fn new(
        log: &dyn LogReader,
        topic: &Topic,
        label: &Arc<str>,
        window: Window,
        rules: Rules,
        blocks: Option<&Range<u64>>,
        only: Option<&SchemaRef>,
    ) -> Result<Self, ArrowError> {
        let (name, instance) = split_instance(&topic.name);
        let base = TimeBase::of(log);
        let first = blocks.filter(|_| has(only, SEQ)).map_or(0, |blocks| blocks.start);
        let next = rows_before(log, topic.id, first)?;
        let only = only.cloned();
        let log = Arc::clone(label);
        Ok(Self { log, topic: name, instance, base, window, rules, only, next, lost: 0 })
    }

    /// Returns the name of the topic, without the number of its instance.
    pub(crate) fn topic(&self) -> &str {
        &self.topic
    }

    /// Returns the schema of the converted batches. `read` is the schema of the batches that are
    /// converted.
    ///
    /// # Errors
    /// Returns an error if a column has a type that tables do not support.
    pub(crate) fn schema(&mut self, read: &SchemaRef) -> Result<SchemaRef, ArrowError> {
        Ok(self.all(&RecordBatch::new_empty(Arc::clone(read)))?.schema())
    }

    /// Converts the next batch of the topic. Rows outside of the time window are dropped.
    ///
    /// # Errors
    /// Returns an error if a column has a type that tables do not support.
    pub(crate) fn convert(&mut self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let rows = self.all(batch)?;
        if self.window.is_open() {
            return Ok(rows);
        }
        let times = batch.column(0).as_primitive::<Int64Type>();
        let kept: BooleanArray =
            times.iter().map(|time| Some(time.is_some_and(|time| self.window.keeps(time)))).collect();
        filter_record_batch(&rows, &kept)
    }

    /// Converts all rows of a batch, including rows outside of the time window.
    fn all(&mut self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let rows = batch.num_rows();
        let times = batch.column(0).as_primitive::<Int64Type>();
        let text = |text: &str| Arc::new(StringArray::from_iter_values((0..rows).map(|_| text))) as ArrayRef;
        let count = i64::try_from(rows).unwrap_or(i64::MAX);
        let numbers = Int64Array::from_iter_values(self.next..self.next.saturating_add(count));
        self.next = self.next.saturating_add(count);
        let mut columns = Columns::new(self.rules);
        let [log, topic, instance, seq, t_ns, time] = COLUMNS;
        let mut add = |name, column: &dyn Fn() -> ArrayRef| {
            if has(self.only.as_ref(), name) {
                columns.push(name, column());
            } else {
                // A field with this name is renamed anyway, so that its name is always the same.
                columns.reserve(name);
            }
        };
        add(log, &|| text(&self.log));
        add(topic, &|| text(&self.topic));
        add(instance, &|| Arc::new(Int32Array::from(vec![self.instance; rows])));
        add(seq, &|| Arc::new(numbers.clone()));
        add(t_ns, &|| Arc::new(times.clone()));
        add(time, &|| {
            let unix = match &self.base {
                base @ TimeBase::Utc(_) => base.place_all(times),
                _ => Int64Array::new_null(rows),
            };
            if self.rules.native {
                Arc::new(unix.reinterpret_cast::<TimestampNanosecondType>().with_timezone("UTC"))
            } else {
                Arc::new(micros(&unix))
            }
        });
        // The name `month` is reserved, because lakes add a column with this name to partition
        // their tables.
        columns.reserve("month");
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()).skip(1) {
            columns.convert(field.name(), column)?;
        }
        self.lost += columns.lost;
        let schema = Arc::new(Schema::new(fields(&columns.all)));
        let arrays = columns.all.into_iter().map(|(_, array)| array).collect();
        new_batch(schema, arrays, rows)
    }
}

/// Returns the number of rows of a topic in the blocks that start before `offset`.
///
/// The rows are counted by reading batches without fields, which works for all formats.
fn rows_before(log: &dyn LogReader, topic: TopicId, offset: u64) -> Result<i64, ArrowError> {
    if offset == 0 {
        return Ok(0);
    }
    let mut times = Select::all().without_fields();
    times.blocks = Some(0..offset);
    let external = |error| ArrowError::ExternalError(Box::new(error));
    let topic = log.own(&log.topics()[topic.index()]).map_err(external)?;
    let mut rows = 0_i64;
    for batch in topic.columns(&times).map_err(external)? {
        rows = rows.saturating_add(i64::try_from(batch?.num_rows()).unwrap_or(i64::MAX));
    }
    Ok(rows)
}

impl Wanted {
    /// Returns the selected topics that have columns and may have rows in the time window.
    pub(crate) fn topics<'a>(&self, log: &'a dyn LogReader, window: Window) -> Vec<&'a Topic> {
        let wanted = |topic: &&Topic| {
            topic.schema.is_some()
                && topic.count > 0
                && self.keeps_topic(topic)
                && Self::may_have_rows(topic, window)
        };
        log.topics().iter().filter(wanted).collect()
    }
}
