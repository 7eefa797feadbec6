//! The index of a bag of V2.0: its comparison with the messages, and opening by it alone.

use std::collections::BTreeMap;

use rovelog_core::Bytes;
use rovelog_core::partial::Unread;
use rovelog_core::scan::Window;
use rovelog_core::text::count;

use super::probe::{Probe, probe};
use super::scan::{Extent, Length};
use super::state::{Agrees, IndexRange, Origin, State};
use super::unpack::Compression;
use super::wire::{Header, IndexEntry};
use crate::scan::Scanner;
use crate::sections::{IndexState, IndexTopic};
use crate::tables::Tally;
use crate::wire::is_list_of;

impl Scanner {
    /// Says how the index of each bag of the file agrees with its chunks.
    pub(super) fn settle_index(&mut self, end: u64) {
        self.compare_chunks();
        let Some(state) = self.v2.as_deref() else { return };
        let whole = state.header.as_ref().filter(|_| self.sections.len() == 1);
        let mut origins: BTreeMap<u32, Vec<&Origin>> = BTreeMap::new();
        for origin in state.origins.iter().filter(|origin| origin.count + origin.named > 0) {
            origins.entry(origin.section).or_default().push(origin);
        }
        for (number, section) in (0u32..).zip(&mut self.sections) {
            // Chunks and chunk infos are in the order of the file.
            let chunks = of_section(&state.chunks, number, |chunk| chunk.section);
            let infos = of_section(&state.infos, number, |info| info.section).len();
            let mut why = Vec::new();
            let mut topics: BTreeMap<&[u8], IndexTopic> = BTreeMap::new();
            for origin in origins.remove(&number).unwrap_or_default() {
                let name = &*self.tables.connections[origin.connection as usize].topic;
                let topic = topics.entry(name).or_insert_with(|| {
                    let topic = name.to_vec();
                    IndexTopic { topic, entries: 0, in_scan: 0, exact: true }
                });
                topic.entries += origin.named;
                topic.in_scan += origin.count;
                topic.exact &= !origin.differs;
                if origin.count > 0 && !state.indexed.contains(&(number, origin.id)) {
                    why.push(format!("connection {} is not in it", origin.id));
                }
            }
            for chunk in chunks {
                let at = chunk.extent.at;
                match chunk.index_agrees {
                    Agrees::Exact => {}
                    Agrees::Differs => why.push(format!("index data of the chunk at byte {at}")),
                    Agrees::Absent => why.push(format!("no index data of the chunk at byte {at}")),
                }
                match chunk.info_agrees {
                    Agrees::Exact => {}
                    Agrees::Differs => why.push(format!("chunk info of the chunk at byte {at}")),
                    Agrees::Absent => why.push(format!("no chunk info of the chunk at byte {at}")),
                }
            }
            if infos != chunks.len() {
                why.push(format!("{} for {}", count(infos, "chunk info"), count(chunks.len(), "chunk")));
            }
            let header = whole.map(|header| (header.conn_count as usize, header.chunk_count as usize));
            // Of the only section.
            let real = (state.indexed.len(), chunks.len());
            if let Some(said) = header.filter(|said| *said != real) {
                why.push(format!("the bag header says {} connections and {} chunks", said.0, said.1));
            }
            let pos = section.first_index_at.map(|at| at - section.offset);
            if section.index_pos != pos {
                why.push("its position in the bag header".to_owned());
            }
            if section.unusable {
                why.push("another index in front of it".to_owned());
            }
            let encrypted = state.header.as_ref().is_some_and(|header| header.encryption.is_some());
            section.index = if encrypted {
                IndexState::Encrypted
            } else if section.bag_header_at.is_none() {
                IndexState::Absent
            } else if chunks.is_empty() {
                IndexState::Empty
            } else if infos == 0 {
                IndexState::Absent
            } else if why.is_empty() {
                IndexState::Exact
            } else {
                IndexState::Differs
            };
            if infos > 0 {
                section.index_topics = topics.into_values().collect();
            }
            section.why = why;
            section.note(end, &mut self.diagnostics);
        }
    }

    /// Compares each chunk with what the index says of it.
    fn compare_chunks(&mut self) {
        let Some(state) = self.v2.as_deref_mut() else { return };
        let mut missing = 0;
        for chunk in &mut state.chunks {
            let named = chunk.named.iter().filter(|(_, tally)| tally.count > 0);
            let named: Vec<(u32, Tally)> = named.map(|(id, tally)| (*id, *tally)).collect();
            chunk.index_agrees = match (named.is_empty(), chunk.found == named) {
                (_, true) => Agrees::Exact,
                (true, false) => Agrees::Absent,
                (false, false) => Agrees::Differs,
            };
            let base = self.sections.get(chunk.section as usize).map_or(0, |section| section.offset);
            let info = state.infos_at.get(&(chunk.section, chunk.extent.at - base));
            chunk.info_agrees = info.map_or(Agrees::Absent, |number| {
                let info = &state.infos[*number];
                let counts = chunk.found.iter().map(|(id, tally)| (*id, tally.count));
                let is_span = chunk.span.is_none_or(|span| span == (info.start.nanos(), info.end.nanos()));
                if is_span && counts.eq(info.counts.iter().copied()) {
                    Agrees::Exact
                } else {
                    Agrees::Differs
                }
            });
            let entries: u64 = named.iter().map(|(_, tally)| tally.count).sum();
            missing += entries.saturating_sub(chunk.messages);
            let ids = &state.ids[chunk.section as usize];
            // Both are ascending.
            let of = |id: u32, of: &[(u32, Tally)]| {
                let place = of.binary_search_by_key(&id, |(known, _)| *known);
                place.map_or(Tally::default(), |place| of[place].1)
            };
            for (id, _) in named.iter().chain(&chunk.found) {
                if let Some(origin) = ids.get(*id) {
                    state.origins[origin as usize].differs |= of(*id, &named) != of(*id, &chunk.found);
                }
            }
            for (id, tally) in &named {
                if let Some(origin) = ids.get(*id) {
                    state.origins[origin as usize].named += tally.count;
                }
            }
        }
        self.diagnostics.count_missing(missing);
    }

    /// Reads the index of the bag alone, if it agrees with itself: records of the index section
    /// fill the file to its end, the bag header counts them right, chunks with their index data
    /// fill it up to there, and chunk infos have the counts and times of these. Nothing is unpacked,
    /// and of index data the first and last entry is read.
    /// Chunks that were not read are taken as their chunk info says.
    pub(crate) fn read_index(&mut self, bytes: &Bytes, unread: &Unread) -> Option<()> {
        self.v2 = Some(Box::new(State { is_by_index: true, ..State::default() }));
        self.chunked_mut().begin_section();
        let window = Window::whole(bytes);
        let record = |at: u64| match probe(window, at) {
            Ok(Probe::Good(found)) if found.end() <= window.end() && found.meant.is_none() => Some(found),
            _ => None,
        };
        let first = self.line.len;
        let found = record(first)?;
        let Header::BagHeader(header) = found.header else { return None };
        let index_pos = header.index_pos.get();
        if unread.touches(&(index_pos..window.end())) {
            return None;
        }
        if self.line.crlf {
            return None;
        }
        self.take_record(window, first, found.end());
        if self.chunked().header.as_ref()?.encryption.is_some() {
            return None;
        }
        let mut at = index_pos;
        while at < window.end() {
            let found = record(at)?;
            if !matches!(found.header, Header::Connection(_) | Header::ChunkInfo(_)) {
                return None;
            }
            self.take_record(window, at, found.end());
            at = found.end();
        }
        let mut at = found.end();
        let mut number = 0;
        while at < index_pos {
            at = match self.unread_chunk(at, index_pos, unread) {
                Some(next) => self.believe_chunk(at, next, number)?,
                None => self.read_chunk_index(window, at, number)?,
            };
            number += 1;
        }
        let state = self.chunked();
        let header = state.header.as_ref()?;
        let counts = (state.indexed.len(), state.chunks.len());
        let said = (header.conn_count as usize, header.chunk_count as usize);
        (at == index_pos && counts == said && state.infos.len() == state.chunks.len()).then_some(())?;
        let messages: u64 = state.chunks.iter().map(|chunk| chunk.messages).sum();
        let chunks = state.chunks.len() as u64;
        self.ops[usize::from(super::wire::Message::OP)] = messages;
        self.ops[usize::from(super::wire::Chunk::OP)] = chunks;
        let section = self.sections.first_mut()?;
        section.index = if messages > 0 { IndexState::Believed } else { IndexState::Empty };
        Some(())
    }

    /// Settles a bag of which the index alone was read.
    pub(crate) fn believe_index(&mut self) {
        self.settle_origins();
        let is_whole = self.chunked().unread_span.is_none();
        for number in 0..self.tables.connections.len() {
            let id = u32::try_from(number).expect("connections are limited");
            self.tables.resolve(id);
            self.tables.publish(id);
            let topic = &mut self.tables.topics[number];
            // No one has looked.
            (topic.in_order, topic.bytes_known) = (topic.count < 2, topic.count == 0);
            if !is_whole {
                // Chunk info tells the times of chunks, not of topics.
                (topic.first, topic.last) = (None, None);
            }
            self.tables.note(number, &mut self.diagnostics);
        }
    }

    /// Returns the chunk at `at` by its header, its index data and its chunk info, which must
    /// agree: where the next one starts.
    fn read_chunk_index(&mut self, window: Window<'_>, at: u64, number: usize) -> Option<u64> {
        let Ok(Probe::Good(found)) = probe(window, at) else { return None };
        let Header::Chunk(header) = found.header else { return None };
        let compression = Some(Compression::of(header.compression)?);
        let (data_at, data_len, size, end) = (found.data_at, found.data_len, header.size.get(), found.end());
        let is_plain = compression == Some(Compression::None);
        // LZ4 makes at most 255 bytes of one.
        let is_too_much = compression == Some(Compression::Lz4) && size / 255 > data_len;
        if data_len == 0 || (is_plain && data_len != size) || is_too_much {
            return None;
        }
        let (length, headless) = (Length::Stored, false);
        self.begin_chunk(Extent { at, data_at, end, compression, data_len, size, length, headless });
        let mut entries: Vec<(u32, u64)> = Vec::new();
        let mut span: Option<(i64, i64)> = None;
        let mut next = end;
        while let Ok(Probe::Good(found)) = probe(window, next) {
            let Header::IndexData(_) = found.header else { break };
            let before = self.chunked().chunks[number].index.len();
            self.take_record(window, next, found.end());
            let range = *self.chunked().chunks[number].index.get(before)?;
            let data = window.slice(range.data_at, range.end).ok().flatten()?;
            let Header::IndexData(record) = found.header else { break };
            if !is_list_of::<IndexEntry>(data, record.count.get()) {
                return None;
            }
            entries.push((range.conn, record.count.get().into()));
            let (first, last) = self.count_index(range, data, at)?;
            span = Some(span.map_or((first, last), |(min, max)| (min.min(first), max.max(last))));
            next = found.end();
        }
        entries.sort_unstable();
        let state = self.v2.as_deref_mut()?;
        let info = &state.infos[*state.infos_at.get(&(0, at))?];
        // The times decide which chunks are read, and in which order.
        let is_span = span.is_none_or(|span| span == (info.start.nanos(), info.end.nanos()));
        if info.counts != entries || !is_span {
            return None;
        }
        state.chunks[number].unpacked = size.into();
        self.count_chunk(at, number)?;
        Some(next)
    }

    /// Counts the messages of a chunk as its chunk info says, after those of its connections.
    pub(super) fn count_chunk(&mut self, at: u64, number: usize) -> Option<()> {
        let state = self.v2.as_deref_mut()?;
        let info = &state.infos[*state.infos_at.get(&(0, at))?];
        let span = (info.start.nanos(), info.end.nanos());
        let mut counts: Vec<(u32, u64, u64)> = Vec::new();
        for (id, count) in &info.counts {
            let origin = state.ids[0].get(*id)?;
            state.origins[origin as usize].count += count;
            let connection = state.origins[origin as usize].connection;
            match counts.iter_mut().find(|(known, ..)| *known == connection) {
                Some((.., known)) => *known += count,
                None => counts.push((connection, 0, *count)),
            }
        }
        for (connection, before, count) in &mut counts {
            *before = self.tables.connections[*connection as usize].stats.count - *count;
        }
        counts.sort_unstable();
        let chunk = &mut state.chunks[number];
        chunk.messages = counts.iter().map(|(.., count)| count).sum();
        chunk.span = (chunk.messages > 0).then_some(span);
        chunk.counts = counts;
        (chunk.index_agrees, chunk.info_agrees) = (Agrees::Exact, Agrees::Exact);
        Some(())
    }

    /// Counts the messages that index data name, by their first and last entry: their times.
    fn count_index(&mut self, range: IndexRange, data: &[u8], at: u64) -> Option<(i64, i64)> {
        let known: &mut State = self.v2.as_deref_mut()?;
        let origin = &known.origins[known.ids[0].get(range.conn)? as usize];
        let entries = IndexEntry::all_of(data);
        let stats = &mut self.tables.connections[origin.connection as usize].stats;
        let (first, last) = (entries.first()?.time.nanos(), entries.last()?.time.nanos());
        if stats.count == 0 {
            (stats.first, stats.first_at) = (first, at);
        }
        stats.count += entries.len() as u64;
        stats.latched += if origin.publisher.latching { entries.len() as u64 } else { 0 };
        stats.last = last;
        stats.min = stats.min.min(first);
        stats.max = stats.max.max(last);
        // Simulations record messages of time 0 before their clock runs.
        let above_0 = entries.partition_point(|entry| entry.time.nanos() == 0);
        if let Some(entry) = entries.get(above_0) {
            let time = entry.time.nanos();
            stats.min_above_0 = Some(stats.min_above_0.map_or(time, |min| min.min(time)));
        }
        Some((first, last))
    }
}

/// Returns the items of one bag of the file, which are in the order of its bags.
fn of_section<T>(all: &[T], number: u32, section: impl Fn(&T) -> u32) -> &[T] {
    let first = all.partition_point(|item| section(item) < number);
    let len = all[first..].partition_point(|item| section(item) == number);
    &all[first..first + len]
}
