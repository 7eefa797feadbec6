//! Records in time order, or in that of the file: chunks are merged by their times, and no more of
//! them are unpacked at once than overlap.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use rovelog_core::{LogReader as _, Record, Select};

use super::pass::{Loaded, Loader, Met, Way};
use super::state::Chunk;
use crate::reader::BagReader;

/// A chunk that is being read.
#[derive(Debug)]
struct Active {
    loaded: Loaded,
    /// Its messages, in the order in which they are due.
    due: Vec<Met>,
    next: usize,
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
    active: Vec<Option<Active>>,
    /// The next message of each active chunk: its time, the number of the chunk, its place among
    /// the active ones.
    heads: BinaryHeap<Reverse<(i64, usize, usize)>>,
    /// What comes before all others, last first.
    ready: Vec<Record<'a>>,
}

impl BagReader {
    /// Returns the selected records in time order, those that are latched first.
    pub(crate) fn chunked_in_time<'a>(&'a self, select: &Select) -> InTime<'a> {
        let mut all = InTime::start(self, select, false);
        if let Some(start) = select.start.filter(|_| select.last_before) {
            all.ready = latched(self, select, start);
        }
        all
    }

    /// Returns the selected records in file order.
    pub(crate) fn chunked_as_stored<'a>(&'a self, select: &Select) -> InTime<'a> {
        InTime::start(self, select, true)
    }
}

impl<'a> InTime<'a> {
    fn start(reader: &'a BagReader, select: &Select, as_stored: bool) -> Self {
        let wanted: Vec<bool> = reader.topics().iter().map(|topic| select.keeps_topic(topic)).collect();
        let chunks = &reader.scanner.chunked().chunks;
        let is_wanted = |chunk: &Chunk| {
            chunk.has_any(&wanted) && chunk.span.is_some_and(|(first, last)| select.keeps_span(first, last))
        };
        let mut plan: Vec<_> = (0..chunks.len()).filter(|number| is_wanted(&chunks[*number])).collect();
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
            active: Vec::new(),
            heads: BinaryHeap::new(),
            ready: Vec::new(),
        }
    }

    /// Returns whether a chunk that is not loaded yet may hold what is due before everything that
    /// is.
    fn is_due(&self) -> bool {
        let Some(number) = self.loader.peek() else { return false };
        let Some(Reverse((time, chunk, _))) = self.heads.peek() else { return true };
        let span = self.reader.scanner.chunked().chunks[number].span;
        !self.as_stored && span.is_some_and(|(first, _)| (first, number) < (*time, *chunk))
    }

    fn load(&mut self) {
        let Some(loaded) = self.loader.load(&self.reader.scanner.chunked().chunks) else { return };
        let (wanted, select) = (&self.wanted, &self.select);
        let mut due = Vec::new();
        self.way.visit(self.reader, &loaded, |met| {
            if wanted[met.connection as usize] && select.keeps_time(met.time) {
                due.push(met);
            }
        });
        if !self.as_stored && !due.is_sorted_by_key(|met| met.time) {
            due.sort_by_key(|met| met.time);
        }
        let Some(first) = due.first() else { return self.loader.give_back(loaded) };
        let place = self.active.iter().position(Option::is_none).unwrap_or(self.active.len());
        if place == self.active.len() {
            self.active.push(None);
        }
        self.heads.push(Reverse((first.time, loaded.number, place)));
        self.active[place] = Some(Active { loaded, due, next: 0 });
    }

    /// Returns the record that is due next of those at hand.
    fn pop(&mut self) -> Option<Record<'a>> {
        let Reverse((_, number, place)) = self.heads.pop()?;
        let active = self.active[place].as_mut()?;
        let record = active.loaded.record(self.reader, &active.due[active.next]);
        active.next += 1;
        match active.due.get(active.next) {
            Some(next) => self.heads.push(Reverse((next.time, number, place))),
            None => {
                if let Some(done) = self.active[place].take() {
                    self.loader.give_back(done.loaded);
                }
            }
        }
        Some(record)
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

/// Returns the last record of each selected topic before `start`, the latest one first.
fn latched<'a>(reader: &'a BagReader, select: &Select, start: i64) -> Vec<Record<'a>> {
    let wanted: Vec<bool> = reader.topics().iter().map(|topic| select.keeps_last_before(topic)).collect();
    let chunks = &reader.scanner.chunked().chunks;
    let is_before =
        |chunk: &Chunk| chunk.span.is_some_and(|(first, _)| first < start) && chunk.has_any(&wanted);
    let mut plan: Vec<_> = (0..chunks.len()).filter(|number| is_before(&chunks[*number])).collect();
    plan.sort_by_key(|number| Reverse((chunks[*number].span.map(|(_, last)| last), *number)));
    let mut last: BTreeMap<u32, ((i64, usize, usize), Record<'a>)> = BTreeMap::new();
    let mut way = Way::default();
    for number in plan {
        let chunk = &chunks[number];
        let may_be_later = |connection: u32| {
            let end = chunk.span.map_or(i64::MIN, |(_, end)| end);
            wanted[connection as usize] && last.get(&connection).is_none_or(|((time, ..), _)| *time <= end)
        };
        if !chunk.counts.iter().any(|(connection, ..)| may_be_later(*connection)) {
            continue;
        }
        let Some(loaded) = reader.loader(vec![number]).load(chunks) else { continue };
        let mut found: BTreeMap<u32, Met> = BTreeMap::new();
        way.visit(reader, &loaded, |met| {
            if wanted[met.connection as usize] && met.time < start {
                let known = found.entry(met.connection).or_insert(met);
                if (known.time, known.message.at) < (met.time, met.message.at) {
                    *known = met;
                }
            }
        });
        for (connection, met) in found {
            let place = (met.time, number, met.message.at);
            if last.get(&connection).is_none_or(|(known, _)| *known < place) {
                last.insert(connection, (place, loaded.record(reader, &met)));
            }
        }
    }
    let mut last: Vec<_> = last.into_values().collect();
    last.sort_by_key(|(place, _)| Reverse(*place));
    last.into_iter().map(|(_, record)| record).collect()
}
