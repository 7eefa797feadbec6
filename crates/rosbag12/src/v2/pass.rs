//! One way through chunks of a bag, in any order of them: each is unpacked once, and its records
//! are met in their order.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use rovelog_core::scan::{Scan as _, Window};
use rovelog_core::usage::UsageTally;
use rovelog_core::{LogReader as _, Payload, Record, Select, Timestamp, Topic, TopicId};

use super::ahead::{Ahead, Job, Unpacked};
use super::buffer::Ending;
use super::heads::{Message, Template};
use super::inner::{Hints, Inner, Item};
use super::probe::{Probe, probe};
use super::scan::{Length, Step, TopScan};
use super::state::Chunk;
use super::unpack::{Cap, Compression};
use super::wire::Header;
use crate::reader::BagReader;
use crate::tables::usize_of;

/// A message that was met.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Met {
    /// Its record and payload in the bytes of the chunk.
    pub(crate) at: usize,
    pub(crate) payload_at: usize,
    pub(crate) end: usize,
    pub(crate) origin: u32,
    pub(crate) connection: u32,
    pub(crate) seq: u64,
    pub(crate) time: i64,
}

/// A chunk whose bytes are at hand.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) number: usize,
    pub(crate) ending: Ending,
    /// Bytes of packed data that were used.
    pub(super) used: usize,
    /// Where it was unpacked to; `None` where its bytes are those of the file.
    pub(super) block: Option<Arc<Vec<u8>>>,
    len: usize,
}

impl Loaded {
    /// Returns the records of the chunk.
    pub(crate) fn data<'a>(&'a self, reader: &'a BagReader) -> &'a [u8] {
        self.data_of(reader.scanner.chunked().chunks[self.number].data(&reader.bytes))
    }

    /// Returns the same, where the data of the chunk in the file are these.
    pub(super) fn data_of<'a>(&'a self, file: &'a [u8]) -> &'a [u8] {
        match &self.block {
            Some(block) => &block[..self.len],
            None => &file[..self.len],
        }
    }

    /// Returns the bytes of memory that it holds.
    pub(super) fn held(&self) -> usize {
        self.block.as_ref().map_or(0, |block| block.len())
    }

    /// Returns a copy that has the records of these messages only, which refer to it from now on.
    /// The bytes of a chunk that was not unpacked are the file's: nothing is copied.
    pub(super) fn part(&self, messages: &mut [Met]) -> Self {
        let block = self.block.as_ref().map(|block| {
            let mut part = Vec::new();
            for met in messages {
                let (at, head_len) = (part.len(), met.payload_at - met.at);
                part.extend_from_slice(&block[met.at..met.end]);
                (met.at, met.payload_at, met.end) = (at, at + head_len, part.len());
            }
            Arc::new(part)
        });
        let len = block.as_ref().map_or(self.len, |block| block.len());
        Self { block, len, ..*self }
    }

    /// Returns where the record of a message starts: in the file, or the chunk that it is packed
    /// in.
    pub(crate) fn offset(&self, chunk: &Chunk, at: usize) -> u64 {
        if self.block.is_some() { chunk.extent.at } else { chunk.extent.data_at + at as u64 }
    }

    /// Returns the record of a message; its payload has the head of the record too where it is whole.
    pub(crate) fn record<'a>(&self, reader: &'a BagReader, met: &Met, is_whole: bool) -> Record<'a> {
        let chunk = &reader.scanner.chunked().chunks[self.number];
        let range = if is_whole { met.at } else { met.payload_at }..met.end;
        let payload = match &self.block {
            Some(block) => Payload::shared(block, range),
            None => Payload::from(&chunk.data(&reader.bytes)[range]),
        };
        let offset = self.offset(chunk, met.at);
        let tables = &reader.scanner.tables;
        let topic = &tables.topics[met.connection as usize];
        let time = Timestamp::new(met.time, tables.clock);
        Record::new(topic, Some(time), offset, met.seq, payload, tables).with_origin(met.origin + 1)
    }
}

impl Chunk {
    /// Returns whether nothing has to be unpacked.
    fn is_plain(&self) -> bool {
        self.ending == Ending::Encrypted || matches!(self.extent.compression, None | Some(Compression::None))
    }

    pub(super) fn job(&self, cap: Cap) -> Option<Job> {
        let compression = self.extent.compression.filter(|_| !self.is_plain())?;
        let data = usize_of(self.extent.data_at)..usize_of(self.extent.end);
        Some(Job {
            data,
            compression,
            limit: cap.limit(self.extent.size, self.extent.end - self.extent.data_at),
        })
    }

    /// Returns how its records are read from its bytes.
    pub(super) fn inner<'a>(
        &self,
        data: &'a [u8],
        ending: Ending,
        hints: Hints<'a>,
        template: Option<Template>,
    ) -> Inner<'a> {
        let extent = &self.extent;
        let claimed = match extent.length {
            Length::Unterminated => 0,
            Length::Cut if extent.compression == Some(Compression::None) => extent.data_len.into(),
            _ if ending == Ending::Whole => data.len() as u64,
            _ => extent.size.into(),
        };
        Inner::new(data, hints, claimed, template)
    }
}

/// Loads chunks in a given order.
#[derive(Debug)]
pub(crate) struct Loader {
    plan: Vec<usize>,
    next: usize,
    jobs: usize,
    ahead: Ahead,
}

impl Loader {
    /// `chunks` are those of the bag, `plan` the numbers of those to load.
    pub(crate) fn new(file: rovelog_core::Bytes, chunks: &[Chunk], plan: Vec<usize>, cap: Cap) -> Self {
        let jobs = plan.iter().filter_map(|number| chunks[*number].job(cap)).collect();
        Self { plan, next: 0, jobs: 0, ahead: Ahead::new(file, jobs) }
    }

    /// Returns the next chunk that [`load`](Self::load) gives.
    pub(super) fn peek(&self) -> Option<usize> {
        self.plan.get(self.next).copied()
    }

    pub(super) fn load(&mut self, chunks: &[Chunk]) -> Option<Loaded> {
        let number = self.peek()?;
        self.next += 1;
        let chunk = &chunks[number];
        if chunk.is_plain() {
            let len = chunk.extent.end - chunk.extent.data_at;
            let (ending, len) = match chunk.extent.compression {
                _ if chunk.ending == Ending::Encrypted => (Ending::Encrypted, 0),
                None => (Ending::Unknown, 0),
                Some(_) if chunk.extent.length == Length::Cut => (Ending::Cut, usize_of(len)),
                Some(_) => (Ending::Whole, usize_of(len)),
            };
            return Some(Loaded { number, ending, used: len, block: None, len });
        }
        let Unpacked { ending, used, block, len } = self.ahead.take(self.jobs);
        self.jobs += 1;
        Some(Loaded { number, ending, used, block: Some(block), len })
    }

    /// Takes back a chunk that was read.
    pub(crate) fn give_back(&self, loaded: Loaded) {
        if let Some(block) = loaded.block {
            self.ahead.give_back(block);
        }
    }
}

/// What goes through chunks keeps between them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Way {
    template: Option<Template>,
    /// The number of the next message of each connection, while a chunk is visited; else 0.
    seqs: Vec<u64>,
    /// The connections whose number may not be 0.
    touched: Vec<u32>,
    /// The records of unknown kinds of the chunk that was visited last.
    pub(super) others: Vec<Range<usize>>,
    /// Whether a chunk that was visited contradicts the index.
    pub(super) contradicts: bool,
}

impl Way {
    /// Hands the messages of a chunk to `sink`, in their order.
    #[inline]
    pub(crate) fn visit(&mut self, reader: &BagReader, loaded: &Loaded, mut sink: impl FnMut(Met)) {
        let state = reader.scanner.chunked();
        let chunk = &state.chunks[loaded.number];
        // Numbers that come to mean something else within the chunk.
        let mut local: HashMap<u32, u32> = HashMap::new();
        let (first, is_as_begun) = (&state.ids[chunk.section as usize], state.changes.is_empty());
        let meaning = |local: &HashMap<u32, u32>, conn: u32| {
            // Most numbers mean one thing in all of the bag.
            if is_as_begun && local.is_empty() {
                return first.get(conn);
            }
            local.get(&conn).copied().or_else(|| state.origin_at(loaded.number, conn))
        };
        let Self { template, seqs, touched, others, contradicts } = self;
        others.clear();
        seqs.resize(reader.topics().len(), 0);
        for (connection, before, _) in &chunk.counts {
            seqs[*connection as usize] = *before;
            touched.push(*connection);
        }
        let mut taken = 0;
        let mut span = (i64::MAX, i64::MIN);
        let mut agrees = loaded.ending == Ending::Whole;
        let data = loaded.data(reader);
        let hints = Hints::new(&chunk.index, &reader.bytes, chunk.extent.claimed());
        let mut inner = chunk.inner(data, loaded.ending, hints, *template);
        if !state.is_by_index {
            inner = inner.again(&chunk.lost);
        }
        let mut last = (u32::MAX, u32::MAX, 0);
        let mut take = |message: Message, local: &HashMap<u32, u32>| {
            // What was declared since may be of this connection.
            if last.0 != message.conn || last.1 == u32::MAX || !local.is_empty() {
                let Some(origin) = meaning(local, message.conn) else { return false };
                last = (message.conn, origin, state.origins[origin as usize].connection);
                if seqs[last.2 as usize] == 0 {
                    touched.push(last.2);
                }
            }
            let (_, origin, connection) = last;
            let seq = &mut seqs[connection as usize];
            let Message { at, payload_at, end, time, .. } = message;
            let met = Met { at, payload_at, end, origin, connection, seq: *seq, time: time.nanos() };
            *seq += 1;
            taken += 1;
            span = (span.0.min(met.time), span.1.max(met.time));
            sink(met);
            true
        };
        loop {
            inner.messages(|message| agrees &= take(message, &local));
            let item = inner.next();
            agrees &= inner.meant().is_none();
            match item {
                None => break,
                Some(Item::Message(message)) => agrees &= take(message, &local),
                Some(Item::Connection { conn, topic, data, .. }) => {
                    let key = (chunk.section, conn, Box::from(topic), Box::from(data));
                    match state.by_record.get(&key) {
                        Some(origin) if meaning(&local, conn) != Some(*origin) => {
                            local.insert(conn, *origin);
                            agrees &= !state.is_by_index;
                        }
                        Some(_) => {}
                        None => agrees = false,
                    }
                }
                Some(Item::Other { at, end, .. }) => others.push(at..end),
                Some(Item::Lost { .. } | Item::Tail { .. }) => agrees = false,
            }
        }
        *template = inner.template();
        if state.is_by_index {
            let counted = chunk
                .counts
                .iter()
                .all(|(connection, before, count)| seqs[*connection as usize] == before + count);
            let is_span = chunk.span.is_none_or(|known| known == span);
            if !(agrees && counted && is_span && taken == chunk.messages) {
                reader.comparison.contradict();
                *contradicts = true;
            }
        }
        for connection in touched.drain(..) {
            seqs[connection as usize] = 0;
        }
    }
}

impl BagReader {
    /// Returns what loads chunks, in this order.
    pub(crate) fn loader(&self, plan: Vec<usize>) -> Loader {
        let cap = Cap::of(&self.options.read.limits);
        Loader::new(self.bytes.clone(), &self.scanner.chunked().chunks, plan, cap)
    }

    /// Returns the chunks with messages of marked topics within a window, in file order.
    pub(super) fn selected_chunks(&self, wanted: &[bool], select: &Select) -> Vec<usize> {
        let chunks = &self.scanner.chunked().chunks;
        let is_wanted = |chunk: &Chunk| {
            select.keeps_block(chunk.extent.at)
                && chunk.has_any(wanted)
                && chunk.span.is_some_and(|(first, last)| select.keeps_span(first, last))
        };
        (0..chunks.len()).filter(|number| is_wanted(&chunks[*number])).collect()
    }

    /// Hands every message in file order to `visit`: offset, topic, stamp in nanoseconds, payload.
    pub(crate) fn scan_chunks(&self, mut visit: impl FnMut(u64, &Topic, i64, &[u8])) {
        let (topics, chunks) = (&self.scanner.tables.topics, &self.scanner.chunked().chunks);
        let mut pass = Pass::new(self, &vec![true; topics.len()], &Select::all());
        while pass.chunk(|loaded, met, payload| {
            let at = loaded.offset(&chunks[loaded.number], met.at);
            visit(at, &topics[met.connection as usize], met.time, payload);
        }) {}
    }

    /// Returns how many messages of a chunk there are by the number of their connection and time.
    pub(crate) fn messages_of(&self, number: usize) -> HashMap<(u32, i64), u64> {
        let mut found = HashMap::new();
        let state = self.scanner.chunked();
        if let Some(loaded) = self.loader(vec![number]).load(&state.chunks) {
            Way::default().visit(self, &loaded, |met| {
                *found.entry((state.origins[met.origin as usize].id, met.time)).or_default() += 1;
            });
        }
        found
    }
}

/// A way through the selected chunks in file order.
pub(crate) struct Pass<'a> {
    reader: &'a BagReader,
    loader: Loader,
    way: Way,
}

impl<'a> Pass<'a> {
    /// Through the chunks that hold messages of marked topics within a window.
    pub(crate) fn new(reader: &'a BagReader, wanted: &[bool], select: &Select) -> Self {
        let plan = reader.selected_chunks(wanted, select);
        Self { reader, loader: reader.loader(plan), way: Way::default() }
    }

    /// Hands the messages of the next chunk to `sink`, with their payloads; false at the end.
    pub(crate) fn chunk(&mut self, mut sink: impl FnMut(&Loaded, Met, &[u8])) -> bool {
        let reader = self.reader;
        let Some(loaded) = self.loader.load(&reader.scanner.chunked().chunks) else { return false };
        let data = loaded.data(reader);
        self.way.visit(reader, &loaded, |met| {
            sink(&loaded, met, &data[met.payload_at..met.end]);
        });
        self.loader.give_back(loaded);
        true
    }
}

impl BagReader {
    /// Where the bytes of the file are. Compressed messages have no bytes of their own: the bytes of
    /// a chunk are shared by what its content takes.
    pub(crate) fn chunk_usage(&self, tally: &mut UsageTally) {
        let window = Window::whole(&self.bytes);
        let mut scan = TopScan::new(self.scanner.line.len, Cap::of(&self.options.read.limits));
        // The window is the whole file, so there is never more to ask for.
        loop {
            match scan.step(window).expect("the window reaches the end of the file") {
                Step::Line { at, end } => tally.add("version line", None, end - at),
                Step::Record { at, end } => {
                    let kind = match probe(window, at) {
                        Ok(Probe::Good(found)) => match found.header {
                            Header::BagHeader(_) => "bag header",
                            Header::IndexData(_) => "index data",
                            Header::Connection(_) => "connection",
                            Header::ChunkInfo(_) => "chunk info",
                            _ => "other record",
                        },
                        _ => "other record",
                    };
                    tally.add(kind, None, end - at);
                }
                Step::Chunk(extent) => tally.add("chunk header", None, extent.data_at - extent.at),
                Step::Lost { .. } => {}
                Step::End => break,
            }
        }
        let chunks = &self.scanner.chunked().chunks;
        let mut loader = self.loader((0..chunks.len()).collect());
        let mut way = Way::default();
        while let Some(loaded) = loader.load(chunks) {
            let chunk = &chunks[loaded.number];
            let (start, end) = (chunk.extent.data_at, chunk.extent.end);
            let lost = chunk.lost.iter().map(|(from, to)| (*to).min(end).saturating_sub((*from).max(start)));
            let stored = end - start - lost.sum::<u64>();
            let mut messages: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
            way.visit(self, &loaded, |met| {
                let (count, bytes) = messages.entry(met.connection).or_default();
                *count += 1;
                *bytes += (met.end - met.at) as u64;
            });
            let is_plain = chunk.extent.compression == Some(Compression::None);
            let kind = if is_plain { "message" } else { "compressed message" };
            let unpacked = if is_plain { stored } else { loaded.len as u64 };
            let mut left = stored;
            for (connection, (count, bytes)) in messages {
                // Of compressed bytes each topic has its share of the content.
                let share = u128::from(bytes) * u128::from(stored) / u128::from(unpacked.max(1));
                let share = u64::try_from(share).unwrap_or(u64::MAX).min(left);
                tally.add_all(kind, Some(TopicId(connection)), count, share);
                left -= share;
            }
            tally.add("connection", None, left);
            loader.give_back(loaded);
        }
    }
}
