//! Returns records in time order or file order.
//!
//! For time order, chunks are loaded by their start time and merged with a priority queue. A chunk
//! stays in memory only while its time span overlaps with the current time. Example: the chunks A
//! (0 to 10 s), B (9 to 20 s) and C (30 to 40 s) are read with at most two chunks in memory,
//! because B is loaded at 9 s, A is dropped at 10 s, and C is loaded after the last message of B.
//!
//! If too many chunks overlap, only the next messages of a chunk are kept in memory. The chunk is
//! loaded again later for its remaining messages. This bounds the memory.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeMap, BinaryHeap};

use rovelog_core::{LogReader as _, Record, Result, Select, Topic};

use super::chunks::ChunkScan;
use super::loader::{LoadedChunk, Loader};
use crate::message::{MessageRef, usize_of};
use crate::reader::BagReader;

/// Overlapping chunks together may occupy the decompression limit divided by this number.
const ACTIVE_SHARE: u64 = 8;

/// Maximum size in bytes of the payloads kept for a chunk after overlapping chunks exceeded their
/// memory limit.
const MAX_PARTIAL_BYTES: usize = 64 << 10;

/// Key by which the messages of a chunk are sorted: the time of the message (0 in file order), then
/// the offset of the message.
type SortKey = (i64, u64);

/// A chunk in memory whose messages have not all been returned yet.
#[derive(Debug)]
struct ActiveChunk {
    /// Decompressed data of the chunk.
    loaded: LoadedChunk,
    /// Sorted messages of the chunk that match the selection. If `is_partial` is true, only the
    /// next messages are in the list.
    pending: Vec<MessageRef>,
    /// Index in `pending` of the message that is returned next.
    next: usize,
    /// True if only the next messages of the chunk are kept, to save memory.
    is_partial: bool,
    /// Key of the last message in `pending`, if the chunk has messages after it. The chunk is
    /// loaded again for these messages.
    last: Option<SortKey>,
}

impl ActiveChunk {
    fn bytes(&self) -> usize {
        // A chunk that is stored uncompressed has no buffer.
        let buffer_len = self.loaded.block.as_ref().map_or(0, |block| block.len());
        buffer_len + self.pending.capacity() * size_of::<MessageRef>()
    }
}

/// Next message of a chunk in memory. Messages are ordered by time, then by the index of their
/// chunk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Next {
    /// Time of the message.
    time: i64,
    /// Index of the chunk that contains the message.
    chunk: usize,
    /// Index of the chunk in [`ActiveChunks::slots`].
    slot: usize,
}

/// Chunks in memory whose messages have not all been returned yet.
#[derive(Default)]
struct ActiveChunks {
    /// All chunks in memory. An entry is `None` after all messages of its chunk have been returned.
    slots: Vec<Option<ActiveChunk>>,
    /// Size in bytes of all chunks in memory, for comparison with `max_held`.
    held: usize,
    /// Maximum value of `held`. Above this value, chunks in memory are reduced to their next
    /// messages.
    max_held: usize,
    /// Next message of each chunk in memory.
    queue: BinaryHeap<Reverse<Next>>,
}

impl ActiveChunks {
    fn put(&mut self, slot: usize, chunk: ActiveChunk) {
        self.held += chunk.bytes();
        self.slots[slot] = Some(chunk);
    }

    fn take(&mut self, slot: usize) -> Option<ActiveChunk> {
        let chunk = self.slots[slot].take()?;
        self.held -= chunk.bytes();
        Some(chunk)
    }

    /// Adds a loaded chunk and its first message. `pending` are its messages, of which there must be
    /// at least one. Returns the index of the chunk in `slots`.
    fn add(&mut self, loaded: LoadedChunk, pending: Vec<MessageRef>) -> usize {
        let slot = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        self.queue.push(Reverse(Next { time: pending[0].time(), chunk: loaded.number, slot }));
        self.put(slot, ActiveChunk { loaded, pending, next: 0, is_partial: false, last: None });
        slot
    }

    /// Returns the index of the chunk to reduce to its next messages, if the chunks occupy too much
    /// memory. This is the chunk whose next message has the latest time, because it is needed last.
    fn to_shrink(&self) -> Option<usize> {
        if self.held <= self.max_held {
            return None;
        }
        let next = |(slot, chunk): (usize, &Option<ActiveChunk>)| {
            let chunk = chunk.as_ref().filter(|chunk| !chunk.is_partial)?;
            Some((chunk.pending[chunk.next].time(), slot))
        };
        self.slots.iter().enumerate().filter_map(next).max().map(|(_, slot)| slot)
    }
}

/// Iterator that merges the messages of several chunks in time order or file order.
pub(crate) struct MessageMerge<'a> {
    reader: &'a BagReader,
    /// Loader of the chunks that have selected messages.
    loader: Loader,
    /// State that is carried from one chunk scan to the next.
    scan: ChunkScan,
    /// By index of a connection, true if the messages of the connection are selected.
    wanted: Vec<bool>,
    /// Topics and times that the caller selected.
    select: Select,
    form: MergeForm,
    /// Records of the loaded chunks whose op (record type) is unknown. Collected only if
    /// `form.with_head` is true.
    unknown_records: Vec<Vec<u8>>,
    /// Chunks in memory.
    active: ActiveChunks,
}

/// Order and form of the messages that a [`MessageMerge`] returns.
#[derive(Clone, Copy)]
pub(crate) struct MergeForm {
    /// True for messages in file order, false for messages in time order.
    pub(crate) in_file_order: bool,
    /// True if a payload starts with the header of the message record and the two length fields, as
    /// in the file.
    pub(crate) with_head: bool,
}

impl BagReader {
    /// Returns the selected records in time order. If the selection keeps the last record of a
    /// topic before the time window, these records come first. After the last record, an error is
    /// returned if the index lists messages that the chunks do not contain.
    pub(crate) fn chunked_by_time<'a>(
        &'a self,
        select: &Select,
    ) -> impl Iterator<Item = Result<Record<'a>>> + use<'a> {
        let mut merge = MessageMerge::new(self, select, MergeForm { in_file_order: false, with_head: false });
        let last = |start| last_before(self, &self.wanted_before(select, false), start, false);
        let before = select.start.filter(|_| select.last_before).map_or_else(Vec::new, last);
        before.into_iter().map(Ok).chain(std::iter::from_fn(move || merge.next_or_error()))
    }

    /// Returns the records before the selected time window that a slice of the bag keeps: the last
    /// record of each selected topic and of each latching publisher. A latching publisher is one
    /// whose last message is also sent to later subscribers. Payloads are preceded by the head of
    /// their record.
    ///
    /// Also returns the number of records that are kept only because their publisher latches.
    pub(crate) fn records_before(&self, select: &Select) -> (Vec<Record<'_>>, u64) {
        let Some(start) = select.start else { return (Vec::new(), 0) };
        let of_topics = last_before(self, &self.wanted_before(select, false), start, true).len();
        let records = last_before(self, &self.wanted_before(select, true), start, true);
        let latched = (records.len() - of_topics) as u64;
        (records, latched)
    }
}

impl<'a> MessageMerge<'a> {
    /// Returns the selected records. If payloads are preceded by the head of their record and
    /// everything is selected, chunks without messages are loaded for their records with an unknown
    /// op (record type).
    pub(crate) fn new(reader: &'a BagReader, select: &Select, form: MergeForm) -> Self {
        let wanted: Vec<bool> = reader.topics().iter().map(|topic| select.keeps_topic(topic)).collect();
        let chunks = &reader.scanner.content.chunks;
        let mut plan = reader.selected_chunks(&wanted, select);
        if form.with_head && *select == Select::all() {
            let is_extra = |n: &usize| chunks[*n].has_unknown_records && chunks[*n].messages.count == 0;
            plan.extend((0..chunks.len()).filter(is_extra));
            plan.sort_unstable();
        }
        if !form.in_file_order {
            // A chunk is needed from its start time on. Chunks with equal time spans stay in file
            // order.
            // Chunks without messages come first.
            plan.sort_by_key(|number| {
                let messages = &chunks[*number].messages;
                (messages.count > 0, messages.span, *number)
            });
        }
        let max_held = usize_of(reader.options.read.limits.unpacked / ACTIVE_SHARE);
        let active = ActiveChunks { max_held, ..ActiveChunks::default() };
        let (loader, select, scan) = (reader.loader(plan), select.clone(), ChunkScan::default());
        Self { reader, loader, scan, wanted, select, form, unknown_records: Vec::new(), active }
    }

    /// Returns the next record. After the last record, returns an error if the index lists messages
    /// that the chunks do not contain.
    fn next_or_error(&mut self) -> Option<Result<Record<'a>>> {
        if let Some(record) = self.next() {
            return Some(Ok(record));
        }
        std::mem::take(&mut self.scan.has_mismatch).then(|| self.reader.loss_error()).flatten().map(Err)
    }

    /// Returns whether the next chunk must be loaded, because it may have a message earlier than
    /// all messages in memory.
    fn must_load(&self) -> bool {
        let Some(number) = self.loader.peek() else { return false };
        let Some(Reverse(next)) = self.active.queue.peek() else { return true };
        let messages = &self.reader.scanner.content.chunks[number].messages;
        !self.form.in_file_order
            && messages.count > 0
            && (messages.span.first, number) < (next.time, next.chunk)
    }

    /// Returns the records with an unknown op (record type) in the chunks that were loaded since
    /// the last call of this function.
    pub(crate) fn take_unknown(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.unknown_records)
    }

    fn key(&self, message: &MessageRef) -> SortKey {
        (if self.form.in_file_order { 0 } else { message.time() }, message.at)
    }

    /// Returns the sorted messages of a chunk that match the selection.
    fn pending(&mut self, loaded: &LoadedChunk) -> Vec<MessageRef> {
        let mut scan = std::mem::take(&mut self.scan);
        let mut pending = Vec::new();
        // Messages in a chunk are nearly always in time order already, so most chunks need not be
        // sorted.
        let (mut last, mut is_sorted) = (i64::MIN, true);
        scan.visit(self.reader, loaded, |message| {
            let time = message.time();
            if self.wanted[message.connection as usize] && self.select.keeps_time(time) {
                is_sorted &= last <= time;
                last = time;
                pending.push(message);
            }
        });
        self.scan = scan;
        if !is_sorted {
            pending.sort_by_key(|message| self.key(message));
        }
        pending
    }

    fn load(&mut self) {
        let Some(loaded) = self.loader.load() else { return };
        let pending = self.pending(&loaded);
        if self.form.with_head {
            let data = loaded.data(self.reader);
            self.unknown_records
                .extend(self.scan.unknown_records.iter().map(|range| data[range.clone()].to_vec()));
        }
        if pending.is_empty() {
            return self.loader.recycle(loaded);
        }
        self.active.add(loaded, pending);
        while let Some(slot) = self.active.to_shrink() {
            self.shrink(slot);
        }
    }

    /// Reduces a chunk in memory to its next messages. The chunk is loaded again later for the
    /// remaining messages.
    fn shrink(&mut self, slot: usize) {
        let Some(ActiveChunk { loaded, pending, next, .. }) = self.active.take(slot) else { return };
        let (mut kept, mut bytes) = (Vec::new(), 0);
        for message in &pending[next..] {
            bytes += message.payload_len as usize + size_of::<MessageRef>();
            if bytes > MAX_PARTIAL_BYTES && !kept.is_empty() {
                break;
            }
            kept.push(*message);
        }
        let last = kept.last().map(|message| self.key(message));
        let last = last.filter(|_| kept.len() < pending.len() - next);
        let copy = loaded.copy_of(&mut kept);
        self.loader.recycle(loaded);
        // `held` includes the unused capacity of vectors. Unused capacity would cause more
        // reductions than necessary.
        kept.shrink_to_fit();
        self.active.put(slot, ActiveChunk { loaded: copy, pending: kept, next: 0, is_partial: true, last });
    }

    /// Returns the next record of the chunks in memory. Returns `None` if no messages are left in
    /// memory.
    fn pop(&mut self) -> Option<Record<'a>> {
        // Replacing the top of the heap in place reorders the heap once. A pop and a push would
        // reorder it twice.
        let mut head = self.active.queue.peek_mut()?;
        let Reverse(Next { chunk, slot, .. }) = *head;
        let active = self.active.slots[slot].as_mut()?;
        let record = active.loaded.record(self.reader, &active.pending[active.next], self.form.with_head);
        active.next += 1;
        if let Some(next) = active.pending.get(active.next) {
            *head = Reverse(Next { time: next.time(), chunk, slot });
        } else {
            PeekMut::pop(head);
            self.finish(slot, chunk);
        }
        Some(record)
    }

    /// Frees a chunk in memory after its last message was returned. If the chunk was reduced to its
    /// next messages, loads it again for the remaining messages.
    fn finish(&mut self, slot: usize, number: usize) {
        let Some(done) = self.active.take(slot) else { return };
        self.loader.recycle(done.loaded);
        let Some(last) = done.last else { return };
        let Some(loaded) = self.reader.loader(vec![number]).load() else { return };
        let mut pending = self.pending(&loaded);
        // Skip the messages that the reduced chunk has already returned.
        pending.drain(..pending.partition_point(|message| self.key(message) <= last));
        if pending.is_empty() {
            return;
        }
        let slot = self.active.add(loaded, pending);
        if self.active.held > self.active.max_held {
            self.shrink(slot);
        }
    }
}

impl<'a> Iterator for MessageMerge<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        while self.must_load() {
            self.load();
        }
        self.pop()
    }
}

/// A topic or a publisher whose last record before the time window is searched.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    /// Index of a topic whose last record is searched.
    Topic(u32),
    /// Index of an origin, that is, of a distinct connection record, which stands for one publisher
    /// of a topic.
    Origin(u32),
}

impl BagReader {
    /// Returns, by index of the connection, the topic and the latching publishers whose last record
    /// before the selected time window is wanted. A latching publisher is one whose last message is
    /// also sent to later subscribers. Publishers are included only if `with_latched` is true.
    fn wanted_before(&self, select: &Select, with_latched: bool) -> Vec<Vec<Scope>> {
        let scope = |topic: &Topic| select.keeps_last_before(topic).then_some(Scope::Topic(topic.id.0));
        let mut wanted: Vec<Vec<Scope>> =
            self.topics().iter().map(|topic| scope(topic).into_iter().collect()).collect();
        if with_latched && select.latched {
            for (number, origin) in (0..).zip(&self.scanner.content.origins) {
                let connection = origin.connection as usize;
                if origin.publisher.latching && select.keeps_topic(&self.topics()[connection]) {
                    wanted[connection].push(Scope::Origin(number));
                }
            }
        }
        wanted
    }
}

/// Position of a message in the time order of the bag.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct MessagePosition {
    /// Time of the message.
    time: i64,
    /// Index of the chunk that contains the message.
    chunk: usize,
    /// Offset of the message in the chunk.
    at: u64,
}

/// Returns the last record before `start` of each wanted topic and publisher, in ascending order.
/// If a record is the last record of its topic and also of its publisher, it is returned once.
fn last_before<'a>(
    reader: &'a BagReader,
    wanted: &[Vec<Scope>],
    start: i64,
    with_head: bool,
) -> Vec<Record<'a>> {
    let has_wanted: Vec<bool> = wanted.iter().map(|scopes| !scopes.is_empty()).collect();
    let chunks = &reader.scanner.content.chunks;
    let is_candidate =
        |number: &usize| chunks[*number].messages.start_before(start) && chunks[*number].has_any(&has_wanted);
    let mut plan: Vec<usize> = (0..chunks.len()).filter(is_candidate).collect();
    // The latest chunks are searched first, so that most earlier chunks need not be loaded.
    plan.sort_by_key(|number| Reverse((chunks[*number].messages.span.last, *number)));
    let mut last: BTreeMap<Scope, (MessagePosition, Record<'a>)> = BTreeMap::new();
    let mut scan = ChunkScan::default();
    for chunk in plan {
        let messages = &chunks[chunk].messages;
        let may_be_later =
            |scope: &Scope| last.get(scope).is_none_or(|(known, _)| known.time <= messages.span.last);
        let counts = messages.by_connection.iter();
        // For every wanted topic and publisher in this chunk, a later record was already found.
        if !counts.flat_map(|count| &wanted[count.connection as usize]).any(may_be_later) {
            continue;
        }
        let Some(loaded) = reader.loader(vec![chunk]).load() else { continue };
        for (scope, message) in last_in_chunk(reader, &mut scan, &loaded, wanted, start) {
            let position = MessagePosition { time: message.time(), chunk, at: message.at };
            if last.get(&scope).is_none_or(|(known, _)| *known < position) {
                last.insert(scope, (position, loaded.record(reader, &message, with_head)));
            }
        }
    }
    // A record may be the last record of its topic and also of its publisher. The map by position
    // of the record removes such duplicates.
    let by_position: BTreeMap<_, _> = last.into_values().collect();
    by_position.into_values().collect()
}

/// Returns the last message before `start` in a chunk, for each wanted topic and publisher.
fn last_in_chunk(
    reader: &BagReader,
    scan: &mut ChunkScan,
    loaded: &LoadedChunk,
    wanted: &[Vec<Scope>],
    start: i64,
) -> BTreeMap<Scope, MessageRef> {
    let mut last: BTreeMap<Scope, MessageRef> = BTreeMap::new();
    scan.visit(reader, loaded, |message| {
        if message.time() >= start {
            return;
        }
        for scope in &wanted[message.connection as usize] {
            if matches!(*scope, Scope::Origin(origin) if origin != message.origin) {
                continue;
            }
            let known = last.entry(*scope).or_insert(message);
            if (known.time(), known.at) < (message.time(), message.at) {
                *known = message;
            }
        }
    });
    last
}
