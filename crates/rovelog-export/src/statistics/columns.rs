//! Statistics of topics that are computed from their columns.
//!
//! A topic is computed from its columns if the result is the same as from its records. This is the
//! case for a topic in time order whose records can all be decoded, and whose columns have a number
//! for each number in a record.

use std::collections::HashSet;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_schema::DataType;
use rovelog::core::health::Pace;
use rovelog::core::internal::parallel::{self, Jobs};
use rovelog::{FieldType, LogReader, Select, Topic};

use super::running::{Block, LANES};
use super::{FieldStatistics, Number, Progress, Statistics};
use crate::ExportError;
use crate::leaf::{Bound, Leaf, Names, leaves};

/// Number of rows that are processed for all columns before the next rows. The values of these rows
/// fit into the first-level cache.
const BLOCK_ROWS: usize = 256;

/// Statistics of a topic.
#[derive(Default)]
struct TopicStatistics {
    /// The columns, which are known after the first batch.
    columns: Option<Vec<Column>>,
    pace: Pace,
}

/// A column of numbers.
struct Column {
    leaf: Leaf,
    statistics: Statistics,
    /// Minimum and maximum of 64-bit integers, which are not exact as floats.
    exact: Option<(i128, i128)>,
}

/// Computes the statistics and collects the times of the topics for which columns are suitable.
pub(super) fn add(
    log: &dyn LogReader,
    select: &Select,
    jobs: Jobs,
    progress: &Progress<'_>,
    fields: &mut [Option<FieldStatistics>],
    paces: &mut Vec<Option<Pace>>,
) -> Result<(), ExportError> {
    let topics = log.topics();
    let mut suitable: Vec<bool> = topics
        .iter()
        .map(|topic| select.keeps_topic(topic) && has_suitable_columns(log, topic, select))
        .collect();
    if !suitable.contains(&true) {
        return Ok(());
    }
    // Each name in a selection has to be looked up. If all topics are suitable, the selection stays
    // as it is.
    let names = topics.iter().filter(|topic| suitable[topic.id.index()]).map(|topic| topic.name.clone());
    let is_all = topics.iter().all(|topic| topic.count == 0 || suitable[topic.id.index()]);
    let mut select = select.clone();
    if !is_all {
        select.topics = Select::topics(names).topics;
    }
    let mut lanes = Vec::new();
    lanes.resize_with(topics.len(), TopicStatistics::default);
    let total = topics.iter().filter(|topic| select.keeps_topic(topic)).map(|topic| topic.count).sum::<u64>();
    let work = |statistics: &mut TopicStatistics, batch: RecordBatch| {
        statistics.add(&batch);
        Ok::<_, ExportError>(())
    };
    let lanes = parallel::lanes(jobs, lanes, work, |push| {
        let mut rows = 0_u128;
        for batch in log.batches(&select) {
            let (topic, batch) = batch?;
            if suitable[topic.index()] {
                rows += batch.num_rows() as u128;
                let bytes = u128::from(log.info().size) * rows / u128::from(total.max(1));
                progress(u64::try_from(bytes).unwrap_or(u64::MAX));
                push(topic.index(), batch)?;
            }
        }
        Ok(())
    })?;
    // A record that cannot be decoded has no row, but may have a value.
    for (topic, _) in log.undecodable(&select) {
        suitable[topic.index()] = false;
    }
    for ((lane, is_suitable), fields) in lanes.into_iter().zip(suitable).zip(fields) {
        let pace;
        (*fields, pace) = is_suitable.then(|| lane.finish()).unzip();
        paces.push(pace);
    }
    Ok(())
}

/// Returns whether the columns of a topic have the same numbers as its records, in the same order.
///
/// This is not the case for a ROS time, which is two numbers in a record, and if a record has
/// several rows or a field occurs twice. In the last two cases, the names of the numbers differ.
fn has_suitable_columns(log: &dyn LogReader, topic: &Topic, select: &Select) -> bool {
    let Some(schema) = topic.schema.as_deref() else { return false };
    let is_in_order = topic.in_order && topic.timed == topic.count;
    if topic.count == 0 || !is_in_order || !schema.is_fixed() {
        return false;
    }
    let mut all_fields = select.clone();
    all_fields.fields = None;
    let Ok(batches) = log.own(topic).and_then(|topic| topic.columns(&all_fields)) else { return false };
    let (mut names, mut has_times) = (HashSet::new(), false);
    schema.for_each_leaf(&mut |name, ty| {
        has_times |= matches!(ty, FieldType::Time | FieldType::Duration);
        names.insert(name.to_owned());
    });
    // The first column is the time, which is not a field.
    let columns = leaves(&batches.schema(), Names::Bracket);
    let is_same = columns.iter().skip(1).all(|leaf| names.contains(&leaf.name));
    !has_times && is_same && columns.len() == names.len() + 1
}

impl TopicStatistics {
    /// Adds the rows of a batch.
    fn add(&mut self, batch: &RecordBatch) {
        let times = batch.column(0).as_primitive::<Int64Type>();
        times.iter().flatten().for_each(|nanos| self.pace.push(nanos));
        let columns = self.columns.get_or_insert_with(|| {
            let leaves = leaves(&batch.schema(), Names::Bracket).into_iter().skip(1).filter(Leaf::is_number);
            leaves.map(|leaf| Column { leaf, statistics: Statistics::default(), exact: None }).collect()
        });
        let mut block = Block::default();
        for columns in columns.chunks_mut(LANES) {
            let bounds: Vec<Bound> = columns.iter().map(|column| column.leaf.bind(batch)).collect();
            for start in (0..batch.num_rows()).step_by(BLOCK_ROWS) {
                let rows = start..batch.num_rows().min(start + BLOCK_ROWS);
                block.reset(rows.len());
                for (lane, bound) in bounds.iter().enumerate() {
                    block.set(lane, bound.numbers(rows.clone()).into_iter());
                }
                let fields = columns.iter_mut().map(|column| &mut column.statistics);
                block.add_to(&mut fields.collect::<Vec<_>>());
            }
            for (column, bound) in columns.iter_mut().zip(&bounds) {
                column.finish_batch(bound, batch.num_rows());
            }
        }
    }

    /// Returns the statistics of all fields with at least one value, and the times.
    fn finish(self) -> (FieldStatistics, Pace) {
        let columns = self.columns.unwrap_or_default().into_iter();
        let columns = columns.filter(|column| column.statistics.count + column.statistics.nan > 0);
        (columns.map(Column::finish).collect(), self.pace)
    }
}

impl Column {
    /// Adds what a [`Block`] does not compute: missing values, and the exact range of integers.
    fn finish_batch(&mut self, bound: &Bound, rows: usize) {
        // A missing value is NaN in a block, but is not counted.
        let places = (0..rows).filter_map(|row| bound.at(row));
        self.statistics.nan -= (rows - places.clone().count()) as u64;
        self.exact = match self.leaf.data_type {
            DataType::Int64 => {
                let values = bound.array.as_primitive::<Int64Type>().values();
                range(self.exact, places.map(|place| i128::from(values[place])))
            }
            DataType::UInt64 => {
                let values = bound.array.as_primitive::<UInt64Type>().values();
                range(self.exact, places.map(|place| i128::from(values[place])))
            }
            _ => None,
        };
    }

    /// Returns the name and the statistics. The minimum and the maximum of integers are integers.
    #[expect(clippy::cast_possible_truncation, reason = "the values of an integer column are integers")]
    fn finish(mut self) -> (String, Statistics) {
        if !self.leaf.data_type.is_floating() {
            let integer = |number: Number| Number::Int(number.as_f64() as i128);
            self.statistics.min =
                self.exact.map(|(min, _)| Number::Int(min)).or(self.statistics.min.map(integer));
            self.statistics.max =
                self.exact.map(|(_, max)| Number::Int(max)).or(self.statistics.max.map(integer));
        }
        (self.leaf.name, self.statistics)
    }
}

/// Extends a range, which consists of a minimum and a maximum, by `values`.
fn range(range: Option<(i128, i128)>, values: impl Iterator<Item = i128>) -> Option<(i128, i128)> {
    let widened = |(min, max): (i128, i128), value: i128| (min.min(value), max.max(value));
    values.fold(range, |range, value| Some(range.map_or((value, value), |range| widened(range, value))))
}
