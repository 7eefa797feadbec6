//! Rows that a walk meets, gathered into columns by topic.
//!
//! A row is only noted when it is met; [`Gathering::copy`] copies what was noted column by column, while
//! the rows are still in the processor's cache.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use rovelog_core::columns::{Gathered, Plan, Times, metadata};
use rovelog_core::{Select, Topic, TopicId};

use crate::definitions::Definitions;
use crate::error::ID;
use crate::layout::{Layout, TimeWidth};
use crate::scan::{MetRow, ROW_AT};

/// Rows of a topic that are noted at most before they are copied.
const NOTED: usize = 1024;

/// A record batch and the topic that it is of.
pub(crate) type Batch = Result<(TopicId, RecordBatch), ArrowError>;

/// The columns of all topics that a selection keeps.
pub(crate) struct Gathering {
    select: Select,
    /// One topic, whatever its name.
    only: Option<TopicId>,
    windowed: bool,
    slots: Vec<Slot>,
    ready: VecDeque<Batch>,
    /// Rows from which a batch is handed out.
    batch_rows: usize,
}

/// What is known of a topic's place in the gathering.
enum Slot {
    Unmet,
    LeftOut,
    Kept(Box<Filling>),
}

/// What is being gathered of one topic.
pub(crate) struct Filling {
    topic: TopicId,
    columns: Gathered,
    /// Where the rows noted since the last copy begin.
    starts: Vec<usize>,
    /// Offset of a 64-bit timestamp; without one, the times of the rows noted.
    time_at: Option<usize>,
    times: Vec<Option<i64>>,
}

impl Gathering {
    pub(crate) fn new(select: &Select, only: Option<TopicId>, batch_rows: usize) -> Self {
        let windowed = select.start.is_some() || select.end.is_some();
        let select = select.clone();
        Self { select, only, windowed, slots: Vec::new(), ready: VecDeque::new(), batch_rows }
    }

    pub(crate) fn select(&self) -> &Select {
        &self.select
    }

    /// Whether the selection names a topic.
    pub(crate) fn wants(&self, topic: &Topic) -> bool {
        self.only.map_or_else(|| self.select.keeps_topic(topic), |only| only == topic.id)
    }

    /// Notes the row whose message begins at `at` in `data`, if it is wanted.
    #[inline]
    pub(crate) fn row(&mut self, definitions: &Definitions, data: &[u8], at: usize, row: MetRow) {
        if self.windowed && !self.select.keeps_time(row.time.in_order(row.now)) {
            return;
        }
        let filling = match self.slots.get_mut(row.series as usize) {
            Some(Slot::Kept(filling)) => filling,
            Some(Slot::LeftOut) => return,
            _ => match self.meet(definitions, row.series, 0) {
                Some(filling) => filling,
                None => return,
            },
        };
        filling.starts.push(at + ROW_AT);
        if filling.time_at.is_none() {
            filling.times.push(row.time.nanos());
        }
        if filling.starts.len() == NOTED {
            filling.copy(data);
        }
    }

    /// Makes the columns of a topic, with room for so many rows; `None` where it is left out.
    #[cold]
    pub(crate) fn meet(
        &mut self,
        definitions: &Definitions,
        series: u32,
        rows: usize,
    ) -> Option<&mut Filling> {
        let topic = &definitions.topics[series as usize];
        let filling = if self.wants(topic) {
            // What cannot be decoded has no rows either.
            let layout = definitions.row_layout(topic).ok()?;
            Some(Filling::new(topic, layout, &self.select, rows))
        } else {
            None
        };
        let series = series as usize;
        if series >= self.slots.len() {
            self.slots.resize_with(series + 1, || Slot::Unmet);
        }
        self.slots[series] = filling.map_or(Slot::LeftOut, |filling| Slot::Kept(Box::new(filling)));
        match &mut self.slots[series] {
            Slot::Kept(filling) => Some(filling),
            _ => None,
        }
    }

    fn kept(&mut self) -> impl Iterator<Item = &mut Filling> {
        self.slots.iter_mut().filter_map(|slot| match slot {
            Slot::Kept(filling) => Some(&mut **filling),
            _ => None,
        })
    }

    /// Copies the rows noted, which lie in `data`, and makes batches of the columns that are long enough.
    pub(crate) fn copy(&mut self, data: &[u8]) {
        let mut ready = std::mem::take(&mut self.ready);
        let batch_rows = self.batch_rows;
        for filling in self.kept() {
            if !filling.starts.is_empty() {
                filling.copy(data);
            }
            if filling.columns.rows() >= batch_rows {
                ready.push_back(filling.finish());
            }
        }
        self.ready = ready;
    }

    /// Makes room for what is to come, where so many parts like the one gathered make up the log.
    pub(crate) fn foresee(&mut self, parts: usize) {
        for filling in self.kept() {
            // And a quarter, as no part is quite like the others: memory that is not touched costs nothing.
            let rows = filling.columns.rows().saturating_mul(parts);
            filling.columns.reserve(rows.saturating_add(rows / 4));
        }
    }

    /// Makes batches of what is left.
    pub(crate) fn flush(&mut self) {
        let mut ready = std::mem::take(&mut self.ready);
        ready.extend(self.kept().filter(|filling| filling.columns.rows() > 0).map(Filling::finish));
        self.ready = ready;
    }

    /// The next batch, if one is ready.
    pub(crate) fn pop(&mut self) -> Option<Batch> {
        self.ready.pop_front()
    }
}

impl Filling {
    fn new(topic: &Topic, layout: &Layout, select: &Select, rows: usize) -> Self {
        let columns = Gathered::with_rows(Arc::new(plan(topic, layout, select)), rows);
        let wide = layout.timestamp.filter(|field| field.width == TimeWidth::U64Micros);
        let time_at = wide.map(|field| field.offset);
        Self { topic: topic.id, columns, starts: Vec::new(), time_at, times: Vec::new() }
    }

    fn finish(&mut self) -> Batch {
        Ok((self.topic, self.columns.finish()?))
    }

    fn copy(&mut self, data: &[u8]) {
        let times = self.time_at.map_or(Times::Given(&self.times), Times::MicrosAt);
        self.columns.gather(data, &self.starts, times);
        self.starts.clear();
        self.times.clear();
    }
}

/// The decode plan of a topic for the selected fields.
pub(crate) fn plan(topic: &Topic, layout: &Layout, select: &Select) -> Plan {
    let pairs = [("rovelog.format", ID), ("rovelog.topic", &topic.name), ("rovelog.type", &topic.type_name)];
    Plan::new(&layout.record, select, metadata(pairs)).expect("all rows of a format have one size")
}
