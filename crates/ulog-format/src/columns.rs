//! Topics as Arrow columns: the fast path, straight from the bytes of the log.
//!
//! A log that was only opened is judged and gathered in one pass. Where the index is there already, or
//! helps because only a span of time is wanted, the pass goes by the index. Both walk half a mebibyte at a
//! time and copy its rows while they are still in the processor's cache. Rows come in file order; the first
//! column, `t_ns`, is the row's time, unwrapped where the log stores fewer than 64 bits.

use std::io::Read;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use rovelog_core::columns::OneTopic;
use rovelog_core::scan::{Scan as _, Window};
use rovelog_core::{LogReader, Select, TopicId};

use crate::error::UlogError;
use crate::gather::{Gathering, plan};
use crate::index::Cursor;
use crate::reader::UlogReader;
use crate::scan::{MetRow, Step, Walk};
use crate::stream::UlogStream;

/// Rows from which a batch is handed out.
const BATCH_ROWS: usize = 1024;

/// Bytes of the log that are walked before their rows are copied.
const STRIDE: u64 = 512 << 10;

/// Room for columns that keep all rows is made after one of so many parts of the log.
const PARTS: usize = 32;

impl UlogReader {
    /// One topic as record batches of about a thousand rows.
    pub(crate) fn topic_batches(
        &self,
        topic: TopicId,
        select: &Select,
    ) -> Result<OneTopic<ColumnBatches<'_>>, UlogError> {
        let topic = &self.topics()[topic.index()];
        let layout = self.definitions().row_layout(topic)?;
        let schema = plan(topic, layout, select).schema();
        let gathering = Gathering::new(select, Some(topic.id), BATCH_ROWS);
        Ok(OneTopic::new(schema, ColumnBatches::new(self, gathering)))
    }

    /// All selected topics that can be decoded as record batches, in one pass over the log.
    pub fn batches(&self, select: &Select) -> ColumnBatches<'_> {
        ColumnBatches::new(self, Gathering::new(select, None, BATCH_ROWS))
    }

    /// All selected topics that can be decoded and have rows, each as one batch with all of its rows.
    ///
    /// # Errors
    /// Where one column would hold more than 2 GiB of text.
    pub fn tables(&self, select: &Select) -> Result<Vec<(TopicId, RecordBatch)>, ArrowError> {
        let mut gathering = Gathering::new(select, None, usize::MAX);
        let unbounded = select.start.is_none() && select.end.is_none();
        if unbounded && self.is_indexed() {
            // Every column is allocated once, at its final size.
            for topic in self.topics() {
                if gathering.wants(topic) && topic.count > 0 {
                    let rows = usize::try_from(topic.count).unwrap_or(usize::MAX);
                    gathering.meet(self.definitions(), topic.id.0, rows);
                }
            }
        }
        let mut batches = ColumnBatches::new(self, gathering);
        if unbounded && !self.is_indexed() {
            batches.walk_first_part();
        }
        batches.collect()
    }
}

/// Record batches of several topics, in one pass; each batch is of one topic.
pub struct ColumnBatches<'a> {
    data: &'a [u8],
    pass: Pass<'a>,
    gathering: Gathering,
}

/// What is still to be walked.
enum Pass<'a> {
    /// The walk that judges, and where its window ends.
    Judged(Box<Walk>, u64),
    Indexed(Indexed<'a>),
    Done,
}

/// A pass over the blocks of the index that hold something that is wanted.
struct Indexed<'a> {
    reader: &'a UlogReader,
    /// By topic. Made with the first row: who only asks for a schema does not wait for all topics.
    wanted: Vec<bool>,
    /// Blocks still to be walked, and the walk over the current one.
    blocks: std::ops::Range<usize>,
    cursor: Option<Cursor<'a>>,
}

impl<'a> ColumnBatches<'a> {
    fn new(reader: &'a UlogReader, gathering: Gathering) -> Self {
        let select = gathering.select();
        let pass = if reader.is_indexed() || select.start.is_some() || select.end.is_some() {
            let blocks = 0..reader.index().blocks.len();
            Pass::Indexed(Indexed { reader, wanted: Vec::new(), blocks, cursor: None })
        } else {
            Pass::Judged(Box::new(reader.start()), STRIDE)
        };
        Self { data: &reader.bytes, pass, gathering }
    }

    /// Gathers the first part of the log, and makes room for the others.
    fn walk_first_part(&mut self) {
        let part = (self.data.len() / PARTS) as u64;
        while let Pass::Judged(walk, until) = &mut self.pass
            && *until < part
            && judged(walk, self.data, until, &mut self.gathering)
        {
            self.gathering.copy(self.data);
        }
        self.gathering.foresee(PARTS);
    }
}

impl Iterator for ColumnBatches<'_> {
    type Item = Result<(TopicId, RecordBatch), ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.gathering.pop() {
                return Some(batch);
            }
            let more = match &mut self.pass {
                Pass::Judged(walk, until) => judged(walk, self.data, until, &mut self.gathering),
                Pass::Indexed(pass) => pass.advance(self.data, &mut self.gathering),
                Pass::Done => return None,
            };
            self.gathering.copy(self.data);
            if !more {
                self.pass = Pass::Done;
                self.gathering.flush();
            }
        }
    }
}

/// Walks up to `until`, which it moves on; false at the end of the log.
fn judged(walk: &mut Walk, data: &[u8], until: &mut u64, gathering: &mut Gathering) -> bool {
    let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    let end = index(*until).min(data.len());
    let window = Window { data: &data[..end], base: 0, eof: end == data.len() };
    loop {
        walk.rows(window, |definitions, row| gathering.row(definitions, data, index(row.at), row.met()));
        match walk.step(window) {
            Ok(Step::Row { at, shape, time, .. }) => {
                let row = MetRow { series: shape.series, time, now: walk.clock.now };
                gathering.row(&walk.definitions, data, index(at), row);
            }
            Ok(Step::Message { .. } | Step::Lost { .. }) => {}
            Ok(Step::End) => return false,
            Err(need) => {
                *until = need.0.max(walk.needed_from() + STRIDE);
                return true;
            }
        }
    }
}

impl Indexed<'_> {
    /// Walks one stride further; false at the end of the log.
    fn advance(&mut self, data: &[u8], gathering: &mut Gathering) -> bool {
        let reader = self.reader;
        if self.wanted.is_empty() {
            self.wanted = reader.topics().iter().map(|topic| gathering.wants(topic)).collect();
        }
        if self.cursor.is_none() {
            let select = gathering.select();
            let Some(block) = self.blocks.clone().find(|block| self.is_wanted(*block, select)) else {
                return false;
            };
            self.blocks.start = block + 1;
            self.cursor =
                Some(Cursor::blocks(&reader.bytes, reader.index(), reader.definitions(), block..block + 1));
        }
        let Some(cursor) = &mut self.cursor else { return false };
        let more = cursor.rows(cursor.at + STRIDE, |at, row| {
            let at = usize::try_from(at).expect("within the bytes at hand");
            gathering.row(reader.definitions(), data, at, row);
        });
        if !more {
            self.cursor = None;
        }
        true
    }

    fn is_wanted(&self, number: usize, select: &Select) -> bool {
        let index = self.reader.index();
        let span = index.blocks[number].whole_span();
        span.is_some_and(|(first, last)| select.keeps_span(first, last))
            && index.has_any(number, &self.wanted)
    }
}

impl<R: Read> UlogStream<R> {
    /// All selected topics that can be decoded as record batches, in one pass over the input; what was
    /// read from the stream before is not in them.
    pub fn batches(self, select: &Select) -> StreamBatches<R> {
        StreamBatches { stream: self, gathering: Gathering::new(select, None, BATCH_ROWS), done: false }
    }
}

/// Record batches of the topics of a [`UlogStream`]; each batch is of one topic.
pub struct StreamBatches<R> {
    stream: UlogStream<R>,
    gathering: Gathering,
    done: bool,
}

impl<R> StreamBatches<R> {
    /// The stream: its topics and definitions are those met so far, its summary and its diagnostics are
    /// complete when there are no more batches.
    pub fn stream(&self) -> &UlogStream<R> {
        &self.stream
    }
}

impl<R: Read> Iterator for StreamBatches<R> {
    type Item = Result<(TopicId, RecordBatch), ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.gathering.pop() {
                return Some(batch);
            }
            if self.done {
                return None;
            }
            match self.stream.gather(&mut self.gathering) {
                Ok(true) => {}
                Ok(false) => {
                    self.done = true;
                    self.gathering.flush();
                }
                Err(error) => {
                    self.done = true;
                    return Some(Err(ArrowError::ExternalError(Box::new(error))));
                }
            }
        }
    }
}
