//! Compares the index of a V2.0 bag with its messages, and opens a bag by its index alone.

use std::collections::BTreeMap;

use rovelog_core::Bytes;
use rovelog_core::internal::partial::Unread;
use rovelog_core::internal::scan::Window;
use rovelog_core::internal::text::count;

use super::compression::Compression;
use super::content::{Chunk, Content, IndexMatch, IndexRange, Origin};
use super::probe::{Probe, probe};
use super::scan::ChunkExtent;
use super::wire::{Header, IndexEntry};
use crate::scan::Scanner;
use crate::sections::{IndexState, IndexTopic};
use crate::tables::Tally;
use crate::wire::is_list_of;

/// Describes the differences between a chunk and its records in the index.
fn chunk_faults(chunk: &Chunk) -> impl Iterator<Item = String> {
    let (index, at) = (&chunk.index, chunk.extent.at);
    let fault = |of: IndexMatch, what: &str| match of {
        IndexMatch::Exact => None,
        IndexMatch::Differs => Some(format!("the {what} of the chunk at byte {at} differs")),
        IndexMatch::Absent => Some(format!("the chunk at byte {at} has no {what}")),
    };
    fault(index.data_match, "index data").into_iter().chain(fault(index.info_match, "chunk info"))
}

impl Scanner {
    /// Compares the index of each section (each bag in the file) with the chunks of the section,
    /// and reports differences.
    pub(super) fn check_index(&mut self, end: u64) {
        self.compare_chunks();
        let content = &self.content;
        let whole = content.header.as_ref().filter(|_| self.sections.len() == 1);
        let mut origins: BTreeMap<u32, Vec<&Origin>> = BTreeMap::new();
        for origin in content.origins.iter().filter(|origin| origin.count + origin.index_count > 0) {
            origins.entry(origin.section).or_default().push(origin);
        }
        for (number, section) in (0u32..).zip(&mut self.sections) {
            // Chunks and chunk infos are in file order, so the items of one section are
            // consecutive.
            let chunks = of_section(&content.chunks, number, |chunk| chunk.section);
            let infos = of_section(&content.infos, number, |info| info.section).len();
            let mut why = Vec::new();
            let mut topics: BTreeMap<&[u8], IndexTopic> = BTreeMap::new();
            for origin in origins.remove(&number).unwrap_or_default() {
                let name = &*self.tables.connections[origin.connection as usize].topic;
                let topic = topics.entry(name).or_insert_with(|| {
                    let topic = name.to_vec();
                    IndexTopic { topic, entries: 0, in_scan: 0, exact: true }
                });
                topic.entries += origin.index_count;
                topic.in_scan += origin.count;
                topic.exact &= !origin.index_differs;
                if origin.count > 0 && !content.ids.indexed.contains(&(number, origin.id)) {
                    why.push(format!("connection {} is missing from the index", origin.id));
                }
            }
            why.extend(chunks.iter().flat_map(chunk_faults));
            if infos != chunks.len() {
                let (infos, chunks) = (count(infos, "chunk info"), count(chunks.len(), "chunk"));
                why.push(format!("the index has {infos} for {chunks}"));
            }
            // The totals in the bag header describe only one section (one bag within the file).
            let header = whole.map(|header| (header.conn_count as usize, header.chunk_count as usize));
            // The bag header counts only the connections and chunks of its own section. The counts
            // are compared only if the file has one section.
            let real = (content.ids.indexed.len(), chunks.len());
            if let Some(said) = header.filter(|said| *said != real) {
                why.push(format!("the bag header states {} connections and {} chunks", said.0, said.1));
            }
            let pos = section.records.first_at.map(|at| at - section.offset);
            if section.index_pos != pos {
                why.push("the bag header states another index position".to_owned());
            }
            if section.records.is_unusable {
                why.push("another index comes before it".to_owned());
            }
            section.index = if content.is_encrypted(number) {
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
            // The index can be compared by topic only if chunk infos exist.
            if infos > 0 {
                section.index_topics = topics.into_values().collect();
            }
            section.report(end, &why, &mut self.diagnostics);
        }
    }

    /// Compares the messages of each chunk with the index data and the chunk info of the chunk.
    fn compare_chunks(&mut self) {
        let content = &mut self.content;
        let mut missing = 0;
        for chunk in &mut content.chunks {
            let named = chunk.index.tallies.iter().filter(|(_, tally)| tally.count > 0);
            let named: Vec<(u32, Tally)> = named.map(|(id, tally)| (*id, *tally)).collect();
            chunk.index.data_match = match (named.is_empty(), chunk.messages.tallies == named) {
                (_, true) => IndexMatch::Exact,
                (true, false) => IndexMatch::Absent,
                (false, false) => IndexMatch::Differs,
            };
            let base = self.sections.get(chunk.section as usize).map_or(0, |section| section.offset);
            let info = content.info_at_offset.get(&(chunk.section, chunk.extent.at - base));
            chunk.index.info_match = info.map_or(IndexMatch::Absent, |number| {
                let info = &content.infos[*number];
                let counts = chunk.messages.tallies.iter().map(|(id, tally)| (*id, tally.count));
                let is_span = chunk.messages.span.is_none_or(|span| span == info.span);
                if is_span && counts.eq(info.counts.iter().copied()) {
                    IndexMatch::Exact
                } else {
                    IndexMatch::Differs
                }
            });
            let entries: u64 = named.iter().map(|(_, tally)| tally.count).sum();
            // Messages that the index data list and the chunk does not contain were lost.
            missing += entries.saturating_sub(chunk.messages.count);
            let ids = &content.ids.first[chunk.section as usize];
            // Both lists are sorted by connection id.
            let of = |id: u32, of: &[(u32, Tally)]| {
                let place = of.binary_search_by_key(&id, |(known, _)| *known);
                place.map_or(Tally::default(), |place| of[place].1)
            };
            for (id, _) in named.iter().chain(&chunk.messages.tallies) {
                if let Some(origin) = ids.get(*id) {
                    content.origins[origin as usize].index_differs |=
                        of(*id, &named) != of(*id, &chunk.messages.tallies);
                }
            }
            for (id, tally) in &named {
                if let Some(origin) = ids.get(*id) {
                    content.origins[origin as usize].index_count += tally.count;
                }
            }
        }
        self.diagnostics.count_missing(missing);
    }

    /// Opens the bag by its index. Returns `None` if the index is not consistent, so that the bag
    /// must be scanned.
    ///
    /// The index is consistent if all of the following hold:
    ///
    /// - The records of the index section reach exactly to the end of the file.
    /// - The bag header states the right number of connections and chunks.
    /// - The chunks with their index data fill the file up to the index section.
    /// - Each chunk info has the same message counts and times as the index data of its chunk.
    ///
    /// Nothing is decompressed. Only the first and last entry of the index data are read, because
    /// recorders sort entries by time. For chunks that were not fetched, the chunk info is used
    /// without this comparison.
    pub(crate) fn read_index(&mut self, bytes: &Bytes, unread: &Unread) -> Option<()> {
        self.content = Content { is_by_index: true, ..Content::default() };
        self.content.begin_section();
        let window = Window::whole(bytes);
        let record = |at: u64| match probe(window, at) {
            Ok(Probe::Good(found)) if found.end() <= window.end() && found.corrected_op.is_none() => {
                Some(found)
            }
            _ => None,
        };
        let first = self.line.len;
        let found = record(first)?;
        let Header::BagHeader(header) = found.header else { return None };
        let index_pos = header.index_pos.get();
        if unread.touches(&(index_pos..window.end())) {
            return None;
        }
        // The version line ends with CR LF, so the file was probably copied in text mode, which
        // damages binary data.
        if self.line.crlf {
            return None;
        }
        self.add_top_record(window, first, found.end());
        // No record of an encrypted bag can be read. The scan reports this.
        if self.content.is_encrypted(0) {
            return None;
        }
        let mut at = index_pos;
        while at < window.end() {
            let found = record(at)?;
            if !matches!(found.header, Header::Connection(_) | Header::ChunkInfo(_)) {
                return None;
            }
            self.add_top_record(window, at, found.end());
            at = found.end();
        }
        let mut at = found.end();
        let mut number = 0;
        while at < index_pos {
            at = match self.next_chunk_if_unread(at, index_pos, unread) {
                Some(next) => self.add_unread_chunk(at, next, number)?,
                None => self.read_chunk_index(window, at, number)?,
            };
            number += 1;
        }
        let content = &self.content;
        let header = content.header.as_ref()?;
        let counts = (content.ids.indexed.len(), content.chunks.len());
        let said = (header.conn_count as usize, header.chunk_count as usize);
        // If any count differs, the bag was not closed properly or is damaged. Only a scan is
        // reliable then.
        (at == index_pos && counts == said && content.infos.len() == content.chunks.len()).then_some(())?;
        let messages: u64 = content.chunks.iter().map(|chunk| chunk.messages.count).sum();
        let chunks = content.chunks.len() as u64;
        self.ops[usize::from(super::wire::Message::OP)] = messages;
        self.ops[usize::from(super::wire::Chunk::OP)] = chunks;
        let section = self.sections.first_mut()?;
        section.index = if messages > 0 { IndexState::Believed } else { IndexState::Empty };
        Some(())
    }

    /// Adds the chunk at offset `at` if its header, index data and chunk info are consistent.
    /// Returns the offset of the next chunk.
    fn read_chunk_index(&mut self, window: Window<'_>, at: u64, number: usize) -> Option<u64> {
        let Ok(Probe::Good(found)) = probe(window, at) else { return None };
        let Header::Chunk(header) = found.header else { return None };
        let compression = Some(Compression::of(header.compression)?);
        let (data_at, data_len, size, end) = (found.data_at, found.data_len, header.size.get(), found.end());
        let is_plain = compression == Some(Compression::None);
        // LZ4 expands data by a factor of at most 255, so a larger stated size is damaged.
        let is_too_much = compression == Some(Compression::Lz4) && size / 255 > data_len;
        if data_len == 0 || (is_plain && data_len != size) || is_too_much {
            return None;
        }
        self.begin_chunk(ChunkExtent {
            at,
            data_at,
            end,
            compression,
            data_len,
            size,
            ..ChunkExtent::default()
        });
        let mut entries: Vec<(u32, u64)> = Vec::new();
        let mut span: Option<(i64, i64)> = None;
        let mut next = end;
        while let Ok(Probe::Good(found)) = probe(window, next) {
            let Header::IndexData(_) = found.header else { break };
            let before = self.content.chunks[number].index.ranges.len();
            self.add_top_record(window, next, found.end());
            let range = *self.content.chunks[number].index.ranges.get(before)?;
            let data = window.slice(range.data_at, range.end).ok().flatten()?;
            let Header::IndexData(record) = found.header else { break };
            // Message counts are taken from this count, so it must match the number of entries.
            if !is_list_of::<IndexEntry>(data, record.count.get()) {
                return None;
            }
            entries.push((range.conn, record.count.get().into()));
            let (first, last) = self.count_index(range, data, at)?;
            span = Some(span.map_or((first, last), |(min, max)| (min.min(first), max.max(last))));
            next = found.end();
        }
        entries.sort_unstable();
        let content = &mut self.content;
        let info = &content.infos[*content.info_at_offset.get(&(0, at))?];
        // Time order depends on the time spans of chunks, so a wrong time span is not accepted.
        let is_span = span.is_none_or(|span| span == info.span);
        if info.counts != entries || !is_span {
            return None;
        }
        content.chunks[number].decompressed_len = size.into();
        self.count_chunk(at, number)?;
        Some(next)
    }

    /// Adds the message counts in the chunk info of a chunk to the statistics. The chunk itself is
    /// not read.
    pub(super) fn count_chunk(&mut self, at: u64, number: usize) -> Option<()> {
        let content = &mut self.content;
        let info = content.infos.get(*content.info_at_offset.get(&(0, at))?)?;
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        for (id, count) in &info.counts {
            let origin = &mut content.origins[content.ids.first[0].get(*id)? as usize];
            origin.count += count;
            *counts.entry(origin.connection).or_default() += count;
        }
        let chunk = &mut content.chunks[number];
        chunk.messages.set_counts(counts, &self.tables.connections);
        chunk.messages.span = (chunk.messages.count > 0).then_some(info.span);
        (chunk.index.data_match, chunk.index.info_match) = (IndexMatch::Exact, IndexMatch::Exact);
        Some(())
    }

    /// Counts the messages that an index data record lists. Returns the times of the first and last
    /// entry.
    fn count_index(&mut self, range: IndexRange, data: &[u8], at: u64) -> Option<(i64, i64)> {
        let content = &self.content;
        let origin = &content.origins[content.ids.first[0].get(range.conn)? as usize];
        let entries = IndexEntry::all_of(data);
        let stats = &mut self.tables.connections[origin.connection as usize].stats;
        let (first, last) = (entries.first()?.time.nanos(), entries.last()?.time.nanos());
        let times = &mut stats.times;
        if stats.count == 0 {
            (times.first, times.first_at) = (first, at);
        }
        stats.count += entries.len() as u64;
        stats.latched += if origin.publisher.latching { entries.len() as u64 } else { 0 };
        times.last = last;
        times.span.add(first);
        times.span.add(last);
        // In a simulation, messages have time 0 until the simulated clock starts.
        let above_0 = entries.partition_point(|entry| entry.time.nanos() == 0);
        if let Some(entry) = entries.get(above_0) {
            times.add_above_0(entry.time.nanos());
        }
        Some((first, last))
    }
}

/// Returns the items of one section. The items must be sorted by the index of their section.
fn of_section<T>(all: &[T], number: u32, section: impl Fn(&T) -> u32) -> &[T] {
    let first = all.partition_point(|item| section(item) < number);
    let len = all[first..].partition_point(|item| section(item) == number);
    &all[first..first + len]
}
