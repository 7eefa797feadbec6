//! Reads the rows of a topic in time order.
//!
//! Most topics are stored in time order and are read in one pass over the log. If a topic is not
//! stored in time order, its time range is divided into windows with about [`WINDOW_ROWS`] rows
//! each. One window after the other is read and sorted in memory.
//!
//! To find the windows, the time range is divided into [`BINS`] bins, the rows in each bin are
//! counted, and consecutive bins are joined. For example, if windows may have 100 rows, bins with
//! 40, 50, 30 and 250 rows become a window of 40 + 50 rows and a window of 30 rows. The bin with
//! 250 rows is divided into smaller bins.
//!
//! A row without a time stays behind the row that precedes it in the file.

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{Array as _, RecordBatch};
use arrow_schema::SchemaRef;
use rovelog::core::select::Names;
use rovelog::{LogReader, Select, Topic, TopicId};

use crate::ExportError;
use crate::pick::Picks;

/// Number of rows in a window. Reading a window needs a pass over the log, so windows must not be
/// small.
const WINDOW_ROWS: u64 = 1 << 16;
/// Size in bytes of a window. If rows are small, a window may have more than [`WINDOW_ROWS`] rows,
/// up to this size.
const WINDOW_BYTES: u64 = 8 << 20;

/// Number of bins into which a time range is divided to count the rows in each bin.
const BINS: usize = 1024;

/// Order of the rows in a topic, for the rows that have been read.
#[derive(Clone, Copy, Debug)]
struct RowOrder {
    /// True if every row has a time, and no time is earlier than that of the previous row.
    is_sorted: bool,
    /// True if the times never decrease. Rows without a time are ignored.
    is_sorted_by_known_times: bool,
    /// Time of the last row that has a time, in nanoseconds.
    last: i64,
    /// Earliest time of a row in nanoseconds.
    min: i64,
    /// Latest time of a row in nanoseconds.
    max: i64,
}

impl RowOrder {
    const NONE: Self = Self {
        is_sorted: true,
        is_sorted_by_known_times: true,
        last: i64::MIN,
        min: i64::MAX,
        max: i64::MIN,
    };

    /// Adds the rows of the next batch.
    fn add(&mut self, batch: &RecordBatch) {
        let times = batch.column(0).as_primitive::<Int64Type>();
        if times.null_count() == 0 && self.is_sorted {
            // Usually, all rows have a time and are sorted. This loop has no branches, so that the
            // compiler can vectorize it.
            let mut last = self.last;
            let ascending = times.values().iter().fold(true, |so_far, time| {
                let ascends = *time >= last;
                last = *time;
                so_far & ascends
            });
            if ascending {
                let (first, last) = (times.values().first(), times.values().last());
                self.min = first.map_or(self.min, |first| self.min.min(*first));
                self.max = last.map_or(self.max, |last| self.max.max(*last));
                self.last = last.copied().unwrap_or(self.last);
                return;
            }
        }
        let mut before = self.last;
        for time in times {
            self.is_sorted &= time.is_some_and(|time| time >= before);
            before = time.unwrap_or(before);
            let Some(time) = time else { continue };
            self.is_sorted_by_known_times &= time >= self.last;
            self.last = time;
            (self.min, self.max) = (self.min.min(time), self.max.max(time));
        }
    }
}

/// Order of the rows of all topics.
pub(crate) struct Order {
    topics: Vec<RowOrder>,
    /// True if rows stay in file order.
    in_file_order: bool,
}

impl Order {
    /// Returns an order in which all rows stay in file order.
    pub(super) fn file(log: &dyn LogReader) -> Self {
        Self { topics: vec![RowOrder::NONE; log.topics().len()], in_file_order: true }
    }

    /// Determines the order of the selected rows in each topic. If a whole topic is not in time
    /// order, its times are read, because the selected rows may still be in time order.
    pub(crate) fn of(log: &dyn LogReader, select: &Select) -> Result<Self, ExportError> {
        let mut topics = vec![RowOrder::NONE; log.topics().len()];
        let is_whole = |topic: &Topic| topic.in_order && topic.timed == topic.count;
        let others = log.topics().iter().filter(|topic| select.keeps_topic(topic) && !is_whole(topic));
        let others: Vec<_> = others.map(|topic| topic.name.as_str()).collect();
        if !others.is_empty() {
            let mut select = select.clone().without_fields();
            select.topics = Some(others.into_iter().collect());
            for item in log.batches(&select) {
                let (id, batch) = item?;
                topics[id.index()].add(&batch);
            }
        }
        Ok(Self { topics, in_file_order: false })
    }

    /// Returns whether every row of a topic has a time, and the rows are in time order. The table
    /// may then be marked as sorted.
    pub(super) fn is_sorted(&self, topic: TopicId) -> bool {
        !self.in_file_order && self.topics[topic.index()].is_sorted
    }

    /// Returns whether the rows of a topic have to be sorted by time.
    pub(crate) fn needs_sorting(&self, topic: TopicId) -> bool {
        !self.in_file_order && !self.topics[topic.index()].is_sorted_by_known_times
    }

    /// Calls `take` with batches of a topic in time order.
    pub(super) fn sorted(
        &self,
        log: &dyn LogReader,
        topic: &Topic,
        select: &Select,
        take: &mut dyn FnMut(&RecordBatch) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        let mut select = select.clone();
        select.topics = Some(Names::from_iter([&topic.name]));
        for window in self.windows(log, topic, &select)? {
            take(&window.read(log, topic, &select)?)?;
        }
        Ok(())
    }

    /// Returns time windows in ascending order that together contain all rows of a topic. The rows
    /// of each window fit in memory. `select` must select only this topic.
    pub(crate) fn windows(
        &self,
        log: &dyn LogReader,
        topic: &Topic,
        select: &Select,
    ) -> Result<Vec<Window>, ExportError> {
        let RowOrder { min, max, .. } = self.topics[topic.id.index()];
        let mut windows = Vec::new();
        divide(log, topic, select, (min, max), &mut windows)?;
        // A row without a time may come before or after all rows with a time. The first and last
        // window therefore extend to the limits of the selection.
        let last = windows.len().saturating_sub(1);
        let windows = windows.into_iter().enumerate().map(|(i, (from, to))| Window {
            from: if i == 0 { select.start } else { Some(from) },
            to: if i == last { select.end } else { to.checked_add(1) },
        });
        Ok(windows.collect())
    }
}

/// A time window whose rows are sorted in memory.
pub(crate) struct Window {
    /// Start of the window in nanoseconds of the log's clock, inclusive. `None` for no limit.
    from: Option<i64>,
    /// End of the window in nanoseconds of the log's clock, exclusive. `None` for no limit.
    to: Option<i64>,
}

impl Window {
    /// Reads the rows of the window and sorts them by time.
    pub(crate) fn read(
        &self,
        log: &dyn LogReader,
        topic: &Topic,
        select: &Select,
    ) -> Result<RecordBatch, ExportError> {
        let batches = log.own(topic)?.columns(&select.clone().between(self.from, self.to))?;
        let schema = batches.schema();
        let batches: Vec<RecordBatch> = batches.collect::<Result<_, _>>()?;
        in_order(&schema, &batches)
    }
}

/// Merges batches and sorts their rows by time. A row without a time is sorted as if it had the
/// latest time of the rows before it.
fn in_order(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<RecordBatch, ExportError> {
    let mut latest = i64::MIN;
    let mut order: Vec<(i64, usize, usize)> = Vec::new();
    for (number, batch) in batches.iter().enumerate() {
        for (row, time) in batch.column(0).as_primitive::<Int64Type>().iter().enumerate() {
            latest = latest.max(time.unwrap_or(latest));
            order.push((time.unwrap_or(latest), number, row));
        }
    }
    order.sort_unstable();
    let picks: Picks = order.into_iter().map(|(_, batch, row)| Some((batch, row))).collect();
    Ok(picks.of_batches(schema, &batches.iter().collect::<Vec<_>>())?)
}

/// Divides the time range `min..=max` into windows, and appends them to `windows`. Each window has
/// at most as many rows as can be sorted in memory. Only a window of a single time may have more
/// rows.
fn divide(
    log: &dyn LogReader,
    topic: &Topic,
    select: &Select,
    (min, max): (i64, i64),
    windows: &mut Vec<(i64, i64)>,
) -> Result<(), ExportError> {
    let bin_width = (max.wrapping_sub(min).cast_unsigned()) / BINS as u64 + 1;
    // If the size of the topic is unknown, the size of the log is used as an upper bound.
    let bytes = if topic.bytes_known { topic.bytes } else { log.info().size };
    let max_rows = WINDOW_ROWS.max(WINDOW_BYTES / (bytes / topic.count.max(1)).max(1));
    let mut bins = vec![0u64; BINS];
    let span = select.clone().without_fields().between(Some(min), max.checked_add(1));
    for batch in log.own(topic)?.columns(&span)? {
        for time in batch?.column(0).as_primitive::<Int64Type>().iter().flatten() {
            let bin =
                usize::try_from(time.wrapping_sub(min).cast_unsigned() / bin_width).unwrap_or(usize::MAX);
            if let Some(rows) = bins.get_mut(bin) {
                *rows += 1;
            }
        }
    }
    let start_of = |bin: usize| min.saturating_add_unsigned(bin_width.saturating_mul(bin as u64));
    let (mut from, mut rows) = (min, 0);
    // Consecutive bins are joined into windows. `from` is the start of the current window, and
    // `rows` is the number of rows in it. A bin with too many rows is divided separately.
    for (bin, count) in bins.iter().enumerate() {
        let start = start_of(bin);
        if start > max || start < from {
            break;
        }
        if rows > 0 && rows + count > max_rows {
            windows.push((from, start - 1));
            (from, rows) = (start, 0);
        }
        let end = start.saturating_add_unsigned(bin_width - 1).min(max);
        if *count > max_rows && bin_width > 1 {
            divide(log, topic, select, (start, end), windows)?;
            if end == max {
                return Ok(());
            }
            from = end + 1;
        } else {
            rows += count;
        }
    }
    windows.push((from, max));
    Ok(())
}
