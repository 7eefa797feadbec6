//! Rows in time order. Most topics are stored in that order. The others are read window by window;
//! each window is small enough to be sorted in memory.
//!
//! A row without a time keeps its place.

use arrow_array::cast::AsArray as _;
use arrow_array::types::Int64Type;
use arrow_array::{Array as _, RecordBatch};
use arrow_schema::SchemaRef;
use rovelog::core::select::Names;
use rovelog::{LogReader, Select, Topic, TopicId};

use crate::ExportError;
use crate::pick::Picks;

/// Rows that are sorted at once, and bytes of the log where rows are small. Each window takes a
/// pass over the log.
const WINDOW_ROWS: u64 = 1 << 16;
const WINDOW_BYTES: u64 = 8 << 20;

/// Bins of time for counting where the rows are.
const BINS: usize = 1024;

/// Order of a topic's rows.
#[derive(Clone, Copy, Debug)]
struct Rows {
    /// True if every row has a time that is not below the previous one.
    strict: bool,
    /// The same for the rows that have a time.
    kept: bool,
    /// The last time, the minimum and the maximum.
    last: i64,
    min: i64,
    max: i64,
}

impl Rows {
    const NONE: Self = Self { strict: true, kept: true, last: i64::MIN, min: i64::MAX, max: i64::MIN };

    fn take(&mut self, batch: &RecordBatch) {
        let times = batch.column(0).as_primitive::<Int64Type>();
        if times.null_count() == 0 && self.strict {
            // The common case, without a check of each row's validity.
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
            self.strict &= time.is_some_and(|time| time >= before);
            before = time.unwrap_or(before);
            let Some(time) = time else { continue };
            self.kept &= time >= self.last;
            self.last = time;
            (self.min, self.max) = (self.min.min(time), self.max.max(time));
        }
    }
}

/// Order of the rows of all topics.
pub(crate) struct Order {
    topics: Vec<Rows>,
    /// True if rows stay in file order.
    in_file_order: bool,
}

impl Order {
    /// Returns an order that keeps the rows in file order.
    pub(super) fn file(log: &dyn LogReader) -> Self {
        Self { topics: vec![Rows::NONE; log.topics().len()], in_file_order: true }
    }

    /// Returns the order of the selected rows. Most topics are in order as a whole; for the others,
    /// the times are read.
    pub(crate) fn of(log: &dyn LogReader, select: &Select) -> Result<Self, ExportError> {
        let mut topics = vec![Rows::NONE; log.topics().len()];
        let is_whole = |topic: &Topic| topic.in_order && topic.timed == topic.count;
        let others = log.topics().iter().filter(|topic| select.keeps_topic(topic) && !is_whole(topic));
        let others: Vec<_> = others.map(|topic| topic.name.as_str()).collect();
        if !others.is_empty() {
            let mut select = times_only(select);
            select.topics = Some(others.into_iter().collect());
            for item in log.batches(&select) {
                let (id, batch) = item?;
                topics[id.index()].take(&batch);
            }
        }
        Ok(Self { topics, in_file_order: false })
    }

    /// Returns whether every row of a topic has a time and the times ascend in file order, so that
    /// the table may be marked as sorted.
    pub(super) fn is_sorted(&self, topic: TopicId) -> bool {
        !self.in_file_order && self.topics[topic.index()].strict
    }

    /// Returns whether the rows of a topic have to be sorted.
    pub(crate) fn needs_sorting(&self, topic: TopicId) -> bool {
        !self.in_file_order && !self.topics[topic.index()].kept
    }

    /// Passes the rows of a topic to the sink in time order.
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

    /// Returns windows of time, in order, each with rows that can be sorted at once. `select` names
    /// the topic alone.
    pub(crate) fn windows(
        &self,
        log: &dyn LogReader,
        topic: &Topic,
        select: &Select,
    ) -> Result<Vec<Window>, ExportError> {
        let Rows { min, max, .. } = self.topics[topic.id.index()];
        let mut windows = Vec::new();
        divide(log, topic, select, (min, max), &mut windows)?;
        // The first and last window are open: a row without a time may be outside.
        let last = windows.len().saturating_sub(1);
        let windows = windows.into_iter().enumerate().map(|(i, (from, to))| Window {
            from: if i == 0 { select.start } else { Some(from) },
            to: if i == last { select.end } else { to.checked_add(1) },
        });
        Ok(windows.collect())
    }
}

/// A window of time whose rows are sorted at once.
pub(crate) struct Window {
    from: Option<i64>,
    to: Option<i64>,
}

impl Window {
    /// Returns its rows in time order.
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

fn times_only(select: &Select) -> Select {
    select.clone().with_fields(Vec::<String>::new())
}

/// Returns the rows of batches as one batch, sorted by time; rows without a time get the latest one
/// so far.
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

/// Divides the range `min..=max` into windows of about as many rows as can be sorted at once.
fn divide(
    log: &dyn LogReader,
    topic: &Topic,
    select: &Select,
    (min, max): (i64, i64),
    windows: &mut Vec<(i64, i64)>,
) -> Result<(), ExportError> {
    let width = (max.wrapping_sub(min).cast_unsigned()) / BINS as u64 + 1;
    // If that is unknown, all of the log may be of this topic.
    let bytes = if topic.bytes_known { topic.bytes } else { log.info().size };
    let most = WINDOW_ROWS.max(WINDOW_BYTES / (bytes / topic.count.max(1)).max(1));
    let mut bins = vec![0u64; BINS];
    let span = times_only(select).between(Some(min), max.checked_add(1));
    for batch in log.own(topic)?.columns(&span)? {
        for time in batch?.column(0).as_primitive::<Int64Type>().iter().flatten() {
            let bin = usize::try_from(time.wrapping_sub(min).cast_unsigned() / width).unwrap_or(usize::MAX);
            if let Some(rows) = bins.get_mut(bin) {
                *rows += 1;
            }
        }
    }
    let start_of = |bin: usize| min.saturating_add_unsigned(width.saturating_mul(bin as u64));
    let (mut from, mut rows) = (min, 0);
    for (bin, count) in bins.iter().enumerate() {
        let start = start_of(bin);
        if start > max || start < from {
            break;
        }
        if rows > 0 && rows + count > most {
            windows.push((from, start - 1));
            (from, rows) = (start, 0);
        }
        let end = start.saturating_add_unsigned(width - 1).min(max);
        if *count > most && width > 1 {
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
