//! Runs watches over the columns of a log.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int64Type, TimestampNanosecondType};
use arrow_array::{Array as _, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use rovelog::core::select::field_path;
use rovelog::{LogReader, Select, Topic, TopicId};

use super::Finding;
use super::watch::{Check, Holds, Span, Watch};
use crate::ExportError;
use crate::leaf::{Leaf, Names, leaves};

/// A watch of a topic.
struct Job<'a> {
    topic: TopicId,
    /// Names of the fields that are passed to the watch, such as `q[0]`.
    fields: Vec<String>,
    watch: Box<dyn Watch + 'a>,
    /// The fields in the schema of the topic. A field that the topic lacks is `None`. The list is
    /// empty until the first batch, which has the schema.
    leaves: Vec<Option<Leaf>>,
}

/// A set of watches that all run in one pass over the log.
#[derive(Default)]
pub(crate) struct Scan<'a> {
    jobs: Vec<Job<'a>>,
    /// Start and exclusive end of the rows that are read, in nanoseconds of the log's clock.
    window: (Option<i64>, Option<i64>),
}

impl<'a> Scan<'a> {
    /// Adds a watch of `topic`. The values of `fields` are passed to the watch in this order.
    pub(super) fn add<F: Into<String>>(
        &mut self,
        topic: &Topic,
        fields: impl IntoIterator<Item = F>,
        watch: impl Watch + 'a,
    ) {
        let fields = fields.into_iter().map(Into::into).collect();
        self.jobs.push(Job { topic: topic.id, fields, watch: Box::new(watch), leaves: Vec::new() });
    }

    /// Adds a check of `topic`. See [`Check`].
    pub(super) fn check<F: Into<String>>(
        &mut self,
        topic: &Topic,
        fields: impl IntoIterator<Item = F>,
        holds: Holds,
        test: impl FnMut(i64, &[f64]) -> Option<f64> + 'a,
        report: impl Fn(&str, &Span) -> Finding + 'a,
    ) {
        self.add(topic, fields, Check { holds, test, report });
    }

    /// Reads the topics of all watches, and appends their findings to `found`.
    pub(super) fn run(mut self, log: &dyn LogReader, found: &mut Vec<Finding>) -> Result<(), ExportError> {
        if self.jobs.is_empty() {
            return Ok(());
        }
        let name = |job: &Job<'_>| log.topics()[job.topic.index()].name.clone();
        let fields = self.jobs.iter().flat_map(|job| job.fields.iter().map(|field| field_path(field)));
        let select = Select::topics(self.jobs.iter().map(name)).with_fields(fields);
        let select = select.between(self.window.0, self.window.1);
        for batch in log.batches(&select) {
            let (topic, batch) = batch?;
            self.jobs.iter_mut().filter(|job| job.topic == topic).for_each(|job| job.batch(&batch));
        }
        for job in &mut self.jobs {
            job.watch.finish(&log.topics()[job.topic.index()].name, found);
        }
        Ok(())
    }
}

impl Job<'_> {
    fn batch(&mut self, batch: &RecordBatch) {
        if self.leaves.is_empty() {
            let all = leaves(&batch.schema(), Names::Bracket);
            let named = |field: &String| all.iter().find(|leaf| leaf.name == *field);
            self.leaves = self.fields.iter().map(|field| named(field).cloned()).collect();
        }
        let columns: Vec<_> = self.leaves.iter().map(|leaf| Some(numbers(leaf.as_ref()?, batch))).collect();
        let times = batch.column(0).as_primitive::<Int64Type>();
        let mut values = vec![f64::NAN; columns.len()];
        for row in (0..batch.num_rows()).filter(|row| times.is_valid(*row)) {
            for (to, column) in values.iter_mut().zip(&columns) {
                *to = column.as_ref().map_or(f64::NAN, |column| column[row]);
            }
            self.watch.row(times.value(row), &values);
        }
    }
}

/// Returns the values of a field as floats. A time is returned in nanoseconds.
fn numbers(leaf: &Leaf, batch: &RecordBatch) -> Vec<f64> {
    if !matches!(leaf.data_type, DataType::Timestamp(TimeUnit::Nanosecond, _)) {
        return leaf.numbers(batch);
    }
    let bound = leaf.bind(batch);
    let times = bound.array.as_primitive::<TimestampNanosecondType>();
    let time = |row| bound.at(row).map_or(f64::NAN, |at| times.value(at) as f64);
    (0..batch.num_rows()).map(time).collect()
}

/// Calls `each` with the time and the fields of each row of a topic that has a time. `window` is the
/// start and the exclusive end of the rows. A field that the topic lacks is NaN. Does nothing if the
/// log lacks the topic or the topic has no rows.
pub(crate) fn each_row(
    log: &dyn LogReader,
    topic: &str,
    fields: &[&str],
    window: (Option<i64>, Option<i64>),
    each: impl FnMut(i64, &[f64]),
) -> Result<(), ExportError> {
    let Some(topic) = log.topic(topic).filter(|topic| topic.count > 0) else { return Ok(()) };
    let mut scan = Scan { window, ..Scan::default() };
    scan.add(topic.get(), fields.iter().copied(), each);
    scan.run(log, &mut Vec::new())
}

/// Window of [`each_row`] that contains all rows.
pub(crate) const WHOLE_LOG: (Option<i64>, Option<i64>) = (None, None);

/// A function receives the time and the values of each row. It reports no findings.
impl<F: FnMut(i64, &[f64])> Watch for F {
    fn row(&mut self, time: i64, values: &[f64]) {
        self(time, values);
    }
}
