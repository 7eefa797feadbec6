//! Records in time order or file order: chunks are merged by their times, and no more of them are
//! unpacked at once than overlap. Above a limit only the next messages of each are held.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeMap, BinaryHeap};

use rovelog_core::{LogReader as _, Record, Result, Select};

use super::pass::{Loaded, Loader, Met, Way};
use super::state::Chunk;
use crate::reader::BagReader;
use crate::tables::usize_of;

/// The share of the limit for unpacked bytes that chunks that overlap may hold.
const SHARE: u64 = 8;

/// Bytes of payload that are held of each chunk above that share.
const PART: usize = 64 << 10;

/// The order of a message: its time, or 0 in file order, and its place in the chunk.
type Key = (i64, usize);

/// A chunk that is being read.
#[derive(Debug)]
struct Active {
    loaded: Loaded,
    /// Its messages in their order, or the next of them.
    due: Vec<Met>,
    next: usize,
    /// Whether no more of the chunk is held than has to be.
    is_part: bool,
    /// The last of `due` if more follow; the chunk is loaded again for these.
    last: Option<Key>,
}

impl Active {
    fn bytes(&self) -> usize {
        self.loaded.held() + self.due.capacity() * size_of::<Met>()
    }
}

/// An iterator over records.
pub(crate) struct InTime<'a> {
    reader: &'a BagReader,
    loader: Loader,
    way: Way,
    wanted: Vec<bool>,
    select: Select,
    /// Whether records come in file order.
    as_stored: bool,
    /// Whether the payload of a record is all of it, its head too.
    is_whole: bool,
    /// Records of unknown kinds of the chunks loaded so far, where records are whole.
    others: Vec<Vec<u8>>,
    active: Vec<Option<Active>>,
    /// Bytes of the active chunks, and how many they may be before chunks are held in part.
    held: usize,
    most: usize,
    /// The next message of each active chunk: its time, the number of the chunk, its place among
    /// the active ones.
    heads: BinaryHeap<Reverse<(i64, usize, usize)>>,
    /// Records before all others, last first.
    ready: Vec<Record<'a>>,
}

impl BagReader {
    /// Returns the selected records in time order, those before the window first.
    pub(crate) fn chunked_in_time<'a>(&'a self, select: &Select) -> InTime<'a> {
        let mut all = InTime::new(self, select, false, false);
        if let Some(start) = select.start.filter(|_| select.last_before) {
            all.ready = last_before(self, &Before::of_topics(self, select), start, false);
        }
        all
    }

    /// Returns the records before the window that a slice keeps, each with its head in its payload:
    /// the last one of each selected topic and of each latching publisher. The number is that of
    /// records that are kept only because their publisher latches.
    pub(crate) fn whole_before(&self, select: &Select) -> (Vec<Record<'_>>, u64) {
        let Some(start) = select.start else { return (Vec::new(), 0) };
        let of_topics = Before::of_topics(self, select);
        let asked = last_before(self, &of_topics, start, true).len();
        let mut records = last_before(self, &of_topics.with_latched(self, select), start, true);
        records.reverse();
        let latched = (records.len() - asked) as u64;
        (records, latched)
    }

    /// Returns the selected records, each with its head in its payload. Of all records, those of
    /// unknown kinds are found too in chunks that have no messages.
    pub(crate) fn whole_records<'a>(&'a self, select: &Select, as_stored: bool) -> InTime<'a> {
        InTime::new(self, select, as_stored, true)
    }

    /// Returns the selected records in file order.
    pub(crate) fn chunked_as_stored<'a>(&'a self, select: &Select) -> InTime<'a> {
        InTime::new(self, select, true, false)
    }
}

impl<'a> InTime<'a> {
    fn new(reader: &'a BagReader, select: &Select, as_stored: bool, is_whole: bool) -> Self {
        let wanted: Vec<bool> = reader.topics().iter().map(|topic| select.keeps_topic(topic)).collect();
        let chunks = &reader.scanner.chunked().chunks;
        let mut plan = reader.selected_chunks(&wanted, select);
        if is_whole && *select == Select::all() {
            plan.extend((0..chunks.len()).filter(|n| chunks[*n].has_others && chunks[*n].messages == 0));
            plan.sort_unstable();
        }
        if !as_stored {
            plan.sort_by_key(|number| (chunks[*number].span, *number));
        }
        Self {
            reader,
            loader: reader.loader(plan),
            way: Way::default(),
            wanted,
            select: select.clone(),
            as_stored,
            is_whole,
            others: Vec::new(),
            active: Vec::new(),
            held: 0,
            most: usize_of(reader.options.read.limits.unpacked / SHARE),
            heads: BinaryHeap::new(),
            ready: Vec::new(),
        }
    }

    /// Returns the next record; behind the last one, an error if chunks that were read lack messages.
    pub(crate) fn next_or_loss(&mut self) -> Option<Result<Record<'a>>> {
        if let Some(record) = self.next() {
            return Some(Ok(record));
        }
        std::mem::take(&mut self.way.contradicts).then(|| self.reader.found_loss()).flatten().map(Err)
    }

    /// Returns whether a chunk that is not loaded yet may hold what is due before everything that
    /// is.
    fn is_due(&self) -> bool {
        let Some(number) = self.loader.peek() else { return false };
        let Some(Reverse((time, chunk, _))) = self.heads.peek() else { return true };
        let span = self.reader.scanner.chunked().chunks[number].span;
        !self.as_stored && span.is_some_and(|(first, _)| (first, number) < (*time, *chunk))
    }

    /// Returns the records of unknown kinds of the chunks loaded since the last call.
    pub(crate) fn take_others(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.others)
    }

    fn key(&self, met: &Met) -> Key {
        (if self.as_stored { 0 } else { met.time }, met.at)
    }

    /// Returns the selected messages of a chunk in their order.
    fn due(&mut self, loaded: &Loaded) -> Vec<Met> {
        let mut way = std::mem::take(&mut self.way);
        let mut due = Vec::new();
        way.visit(self.reader, loaded, |met| {
            if self.wanted[met.connection as usize] && self.select.keeps_time(met.time) {
                due.push(met);
            }
        });
        self.way = way;
        if !due.is_sorted_by_key(|met| self.key(met)) {
            due.sort_by_key(|met| self.key(met));
        }
        due
    }

    fn load(&mut self) {
        let Some(loaded) = self.loader.load(&self.reader.scanner.chunked().chunks) else { return };
        let due = self.due(&loaded);
        if self.is_whole {
            let data = loaded.data(self.reader);
            self.others.extend(self.way.others.iter().map(|range| data[range.clone()].to_vec()));
        }
        if due.is_empty() {
            return self.loader.give_back(loaded);
        }
        let place = self.active.iter().position(Option::is_none).unwrap_or(self.active.len());
        if place == self.active.len() {
            self.active.push(None);
        }
        self.hold(place, loaded, due);
        while self.held > self.most {
            // The chunk that is needed last.
            let whole = |place: &usize| self.active[*place].as_ref().filter(|active| !active.is_part);
            let next = |active: &Active| active.due[active.next].time;
            let all = 0..self.active.len();
            let last = all.filter_map(|place| whole(&place).map(|active| (next(active), place))).max();
            let Some((_, place)) = last else { break };
            self.shrink(place);
        }
    }

    /// Puts messages at a place among the active ones.
    fn hold(&mut self, place: usize, loaded: Loaded, due: Vec<Met>) {
        if let Some(first) = due.first() {
            self.heads.push(Reverse((first.time, loaded.number, place)));
            let active = Active { loaded, due, next: 0, is_part: false, last: None };
            self.held += active.bytes();
            self.active[place] = Some(active);
        }
    }

    /// Keeps only the next messages of a chunk.
    fn shrink(&mut self, place: usize) {
        let Some(Active { loaded, due, next, .. }) = self.active[place].take() else { return };
        self.held -= loaded.held() + due.capacity() * size_of::<Met>();
        let (mut kept, mut bytes) = (Vec::new(), 0);
        for met in &due[next..] {
            bytes += met.end - met.payload_at + size_of::<Met>();
            if bytes > PART && !kept.is_empty() {
                break;
            }
            kept.push(*met);
        }
        let last = kept.last().map(|met| self.key(met));
        let last = last.filter(|_| kept.len() < due.len() - next);
        let part = loaded.part(&mut kept);
        self.loader.give_back(loaded);
        kept.shrink_to_fit();
        let active = Active { loaded: part, due: kept, next: 0, is_part: true, last };
        self.held += active.bytes();
        self.active[place] = Some(active);
    }

    /// Returns the record that is due next of those at hand.
    fn pop(&mut self) -> Option<Record<'a>> {
        let mut head = self.heads.peek_mut()?;
        let Reverse((_, number, place)) = *head;
        let active = self.active[place].as_mut()?;
        let record = active.loaded.record(self.reader, &active.due[active.next], self.is_whole);
        active.next += 1;
        if let Some(next) = active.due.get(active.next) {
            *head = Reverse((next.time, number, place));
        } else {
            PeekMut::pop(head);
            self.finish(place, number);
        }
        Some(record)
    }

    /// Gives back a chunk whose messages were read; loads it again if it was held in part.
    fn finish(&mut self, place: usize, number: usize) {
        let Some(done) = self.active[place].take() else { return };
        self.held -= done.bytes();
        self.loader.give_back(done.loaded);
        let Some(last) = done.last else { return };
        let again = self.reader.loader(vec![number]).load(&self.reader.scanner.chunked().chunks);
        let Some(loaded) = again else { return };
        let mut due = self.due(&loaded);
        due.drain(..due.partition_point(|met| self.key(met) <= last));
        self.hold(place, loaded, due);
        if self.held > self.most {
            self.shrink(place);
        }
    }
}

impl<'a> Iterator for InTime<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        if let Some(record) = self.ready.pop() {
            return Some(record);
        }
        while self.is_due() {
            self.load();
        }
        self.pop()
    }
}

/// Which records before a window are wanted.
struct Before {
    /// By topic: whether its last record is wanted.
    topics: Vec<bool>,
    /// By origin: whether its last record is wanted.
    origins: Vec<bool>,
}

/// What the last record is wanted of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Of {
    Topic(u32),
    Origin(u32),
}

impl Before {
    fn of_topics(reader: &BagReader, select: &Select) -> Self {
        let topics = reader.topics().iter().map(|topic| select.keeps_last_before(topic)).collect();
        Self { topics, origins: vec![false; reader.scanner.chunked().origins.len()] }
    }

    /// Returns the same with the latching publishers of the selected topics, if the selection asks
    /// for them.
    fn with_latched(mut self, reader: &BagReader, select: &Select) -> Self {
        let topics = reader.topics();
        for (wanted, origin) in self.origins.iter_mut().zip(&reader.scanner.chunked().origins) {
            let topic = &topics[origin.connection as usize];
            *wanted = select.latched && origin.publisher.latching && select.keeps_topic(topic);
        }
        self
    }

    /// Returns what is wanted, by connection.
    fn by_connection(&self, reader: &BagReader) -> Vec<Vec<Of>> {
        let topics = (0..).zip(&self.topics);
        let mut wanted: Vec<Vec<Of>> = topics
            .map(|(number, wanted)| wanted.then_some(Of::Topic(number)).into_iter().collect())
            .collect();
        for (number, origin) in (0..).zip(&reader.scanner.chunked().origins) {
            if self.origins[number as usize] {
                wanted[origin.connection as usize].push(Of::Origin(number));
            }
        }
        wanted
    }

    /// Returns for what the last record may be this one.
    fn of(&self, met: &Met) -> impl Iterator<Item = Of> + use<> {
        let topic = self.topics[met.connection as usize].then_some(Of::Topic(met.connection));
        let origin = self.origins[met.origin as usize].then_some(Of::Origin(met.origin));
        topic.into_iter().chain(origin)
    }
}

/// Returns the last records before `start` that are wanted, each once, the latest one first.
fn last_before<'a>(reader: &'a BagReader, before: &Before, start: i64, is_whole: bool) -> Vec<Record<'a>> {
    let by_connection = before.by_connection(reader);
    let wanted: Vec<bool> = by_connection.iter().map(|wanted| !wanted.is_empty()).collect();
    let chunks = &reader.scanner.chunked().chunks;
    let is_before =
        |chunk: &Chunk| chunk.span.is_some_and(|(first, _)| first < start) && chunk.has_any(&wanted);
    let mut plan: Vec<_> = (0..chunks.len()).filter(|number| is_before(&chunks[*number])).collect();
    plan.sort_by_key(|number| Reverse((chunks[*number].span.map(|(_, last)| last), *number)));
    let mut last: BTreeMap<Of, ((i64, usize, usize), Record<'a>)> = BTreeMap::new();
    let mut way = Way::default();
    for number in plan {
        let chunk = &chunks[number];
        let end = chunk.span.map_or(i64::MIN, |(_, end)| end);
        let may_be_later = |of: &Of| last.get(of).is_none_or(|((time, ..), _)| *time <= end);
        let mut of_chunk =
            chunk.counts.iter().flat_map(|(connection, ..)| &by_connection[*connection as usize]);
        if !of_chunk.any(may_be_later) {
            continue;
        }
        let Some(loaded) = reader.loader(vec![number]).load(chunks) else { continue };
        let mut found: BTreeMap<Of, Met> = BTreeMap::new();
        way.visit(reader, &loaded, |met| {
            if met.time < start {
                for of in before.of(&met) {
                    let known = found.entry(of).or_insert(met);
                    if (known.time, known.at) < (met.time, met.at) {
                        *known = met;
                    }
                }
            }
        });
        for (of, met) in found {
            let place = (met.time, number, met.at);
            if last.get(&of).is_none_or(|(known, _)| *known < place) {
                last.insert(of, (place, loaded.record(reader, &met, is_whole)));
            }
        }
    }
    // The last record of a topic may be that of a publisher too.
    let last: BTreeMap<_, _> = last.into_values().collect();
    last.into_values().rev().collect()
}
