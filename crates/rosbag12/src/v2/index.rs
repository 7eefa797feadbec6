//! Compares the index of a V2.0 bag with its messages, and opens a bag by its index alone.

use std::collections::BTreeMap;

use rovelog_core::Bytes;
use rovelog_core::internal::index::Span;
use rovelog_core::internal::partial::Unread;
use rovelog_core::internal::scan::Window;
use rovelog_core::internal::text::count;

use super::compression::Compression;
use super::content::{Chunk, Content, Header as BagHeader, IndexMatch, Info, Origin, ScopedConn};
use super::probe::{Probe, ProbedRecord, probe};
use super::scan::ChunkExtent;
use super::wire::{Header, IndexEntry};
use crate::scan::Scanner;
use crate::sections::{IndexState, IndexTopic};
use crate::tables::{Connection, Tally};
use crate::wire::is_list_of;

/// Describes the differences between a chunk and its records in the index.
fn chunk_faults(chunk: &Chunk) -> impl Iterator<Item = String> {
    let (index, at) = (&chunk.index, chunk.extent.at);
    let fault = |result: IndexMatch, what: &str| match result {
        IndexMatch::Exact => None,
        IndexMatch::Differs => Some(format!("the {what} of the chunk at byte {at} differs")),
        IndexMatch::Absent => Some(format!("the chunk at byte {at} has no {what}")),
    };
    fault(index.data_match, "index data").into_iter().chain(fault(index.info_match, "chunk info"))
}

/// Returns the number of messages that the index of a section lists, but that its chunks do not
/// contain. `infos` has one chunk info for each offset.
fn missing_messages(chunks: &[Chunk], infos: &[&Info]) -> u64 {
    let listed = |chunk: &Chunk| chunk.index.tallies.values().map(|tally| tally.count).sum::<u64>();
    let known = |chunk: &Chunk| {
        let listed = if chunk.index.is_odd { 0 } else { listed(chunk) };
        listed.max(chunk.messages.count)
    };
    let known: u64 = chunks.iter().map(known).sum();
    let found: u64 = chunks.iter().map(|chunk| chunk.messages.count).sum();
    // Some recorders write wrong counts to chunk infos, so the counts are used only if a chunk is
    // missing. If its bytes were cut out, all later chunks have moved, and a chunk info can no longer
    // be matched to its chunk by the offset. So only the totals are compared.
    let is_chunk_missing = infos.len() > chunks.len();
    let counts = infos.iter().filter(|_| is_chunk_missing).flat_map(|info| &info.counts);
    let stated: u64 = counts.map(|(_, count)| count).sum();
    stated.max(known) - found
}

impl Scanner {
    /// Compares the index of each section (each bag in the file) with the chunks of the section,
    /// and reports differences.
    pub(super) fn check_index(&mut self, end: u64) {
        self.compare_chunks();
        let content = &self.content;
        // The bag header counts only the connections and chunks of its own section, so its counts
        // are compared only if the file has one section.
        let header = content.header.as_ref().filter(|_| self.sections.len() == 1);
        let mut origins: BTreeMap<u32, Vec<&Origin>> = BTreeMap::new();
        for origin in content.origins.iter().filter(|origin| origin.count + origin.index_count > 0) {
            origins.entry(origin.section).or_default().push(origin);
        }
        for (number, section) in (0u32..).zip(&mut self.sections) {
            let origins = origins.remove(&number).unwrap_or_default();
            // Chunks and chunk infos are in file order, so the items of one section are
            // consecutive.
            let chunks = of_section(&content.chunks, number, |chunk| chunk.section);
            let info_count = of_section(&content.infos, number, |info| info.section).len();
            let is_missing = |origin: &&&Origin| {
                let id = ScopedConn { section: number, conn: origin.id };
                origin.count > 0 && !content.ids.indexed.contains(&id)
            };
            let missing = origins.iter().filter(is_missing).map(|origin| origin.id);
            let missing = missing.map(|id| format!("connection {id} is missing from the index"));
            let mut faults: Vec<String> = missing.chain(chunks.iter().flat_map(chunk_faults)).collect();
            if info_count != chunks.len() {
                let (infos, chunks) = (count(info_count, "chunk info"), count(chunks.len(), "chunk"));
                faults.push(format!("the index has {infos} for {chunks}"));
            }
            if let Some(BagHeader { conn_count, chunk_count }) = header
                && (*conn_count as usize, *chunk_count as usize) != (content.ids.indexed.len(), chunks.len())
            {
                faults
                    .push(format!("the bag header states {conn_count} connections and {chunk_count} chunks"));
            }
            if section.index_pos != section.records.first_at.map(|at| at - section.offset) {
                faults.push("the bag header states another index position".to_owned());
            }
            if section.records.is_unusable {
                faults.push("another index comes before it".to_owned());
            }
            section.index = if content.is_encrypted(number) {
                IndexState::Encrypted
            } else if section.bag_header_at.is_none() {
                IndexState::Absent
            } else if chunks.is_empty() {
                IndexState::Empty
            } else if info_count == 0 {
                IndexState::Absent
            } else if faults.is_empty() {
                IndexState::Exact
            } else {
                IndexState::Differs
            };
            // The index can be compared by topic only if chunk infos exist.
            if info_count > 0 {
                section.index_topics = index_topics(&origins, &self.tables.connections);
            }
            section.report(end, &faults, &mut self.diagnostics);
            // If an old index lies between the chunks, a chunk has several chunk infos. The map has
            // one of them.
            let infos = content.info_at_offset.range((number, 0)..=(number, u64::MAX));
            let infos: Vec<&Info> = infos.map(|(_, info)| &content.infos[*info]).collect();
            section.report_missing(missing_messages(chunks, &infos), end, &mut self.diagnostics);
        }
    }

    /// Compares the messages of each chunk with the index data and the chunk info of the chunk.
    fn compare_chunks(&mut self) {
        let content = &mut self.content;
        for chunk in &mut content.chunks {
            let indexed = chunk.index.tallies.iter().filter(|(_, tally)| tally.count > 0);
            let indexed: Vec<(u32, Tally)> = indexed.map(|(id, tally)| (*id, *tally)).collect();
            chunk.index.data_match = if chunk.messages.tallies == indexed {
                IndexMatch::Exact
            } else if indexed.is_empty() {
                IndexMatch::Absent
            } else {
                IndexMatch::Differs
            };
            let base = self.sections.get(chunk.section as usize).map_or(0, |section| section.offset);
            let info = content.info_at_offset.get(&(chunk.section, chunk.extent.at - base));
            chunk.index.info_match = info.map_or(IndexMatch::Absent, |number| {
                let info = &content.infos[*number];
                let counts = chunk.messages.tallies.iter().map(|(id, tally)| (*id, tally.count));
                let has_span = chunk.messages.count == 0 || chunk.messages.span == info.span;
                if has_span && counts.eq(info.counts.iter().copied()) {
                    IndexMatch::Exact
                } else {
                    IndexMatch::Differs
                }
            });
            let ids = &content.ids.first[chunk.section as usize];
            for (id, tally) in &indexed {
                if let Some(origin) = ids.get(*id) {
                    let origin = &mut content.origins[origin as usize];
                    origin.index_count += tally.count;
                    // The list is sorted by connection id.
                    let found = chunk.messages.tallies.binary_search_by_key(id, |(known, _)| *known);
                    origin.index_differs |= found.is_err();
                }
            }
            for (id, tally) in &chunk.messages.tallies {
                if let Some(origin) = ids.get(*id) {
                    let indexed = chunk.index.tallies.get(id).copied().unwrap_or_default();
                    content.origins[origin as usize].index_differs |= *tally != indexed;
                }
            }
        }
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
        let bag_header_at = self.line.len;
        let bag_header = undamaged_record(window, bag_header_at)?;
        let Header::BagHeader(header) = bag_header.header else { return None };
        let index_pos = header.index_pos.get();
        // If the version line ends with CR LF, the file was probably copied in text mode, which
        // damages binary data.
        if self.line.crlf || unread.touches(&(index_pos..window.end())) {
            return None;
        }
        self.add_top_record(window, bag_header_at, bag_header.end());
        // No record of an encrypted bag can be read. The scan reports this.
        if self.content.is_encrypted(0) {
            return None;
        }
        self.read_index_section(window, index_pos)?;
        let mut at = bag_header.end();
        while at < index_pos {
            at = if let Some(next) = self.next_chunk_if_unread(at, index_pos, unread) {
                self.add_unread_chunk(at, next)?;
                next
            } else {
                self.read_chunk_index(window, at)?
            };
        }
        let content = &self.content;
        let header = content.header.as_ref()?;
        let counts = (content.ids.indexed.len(), content.chunks.len());
        let stated_counts = (header.conn_count as usize, header.chunk_count as usize);
        // If any count differs, the bag was not closed properly or is damaged. Only a scan is
        // reliable then.
        if at != index_pos || counts != stated_counts || content.infos.len() != content.chunks.len() {
            return None;
        }
        let messages: u64 = content.chunks.iter().map(|chunk| chunk.messages.count).sum();
        self.ops[usize::from(super::wire::Message::OP)] = messages;
        self.ops[usize::from(super::wire::Chunk::OP)] = content.chunks.len() as u64;
        let section = self.sections.first_mut()?;
        section.index = if messages > 0 { IndexState::Believed } else { IndexState::Empty };
        Some(())
    }

    /// Adds the connections and chunk infos of the index section, which extends from offset
    /// `index_pos` to the end of the file.
    fn read_index_section(&mut self, window: Window<'_>, index_pos: u64) -> Option<()> {
        let mut at = index_pos;
        while at < window.end() {
            let record = undamaged_record(window, at)?;
            if !matches!(record.header, Header::Connection(_) | Header::ChunkInfo(_)) {
                return None;
            }
            self.add_top_record(window, at, record.end());
            at = record.end();
        }
        Some(())
    }

    /// Adds the chunk at offset `at` if its header, index data and chunk info are consistent.
    /// Returns the offset of the next chunk.
    fn read_chunk_index(&mut self, window: Window<'_>, at: u64) -> Option<u64> {
        let Ok(Probe::Good(found)) = probe(window, at) else { return None };
        let Header::Chunk(header) = found.header else { return None };
        let compression = Some(Compression::of(header.compression)?);
        let (data_at, data_len, size, end) = (found.data_at, found.data_len, header.size.get(), found.end());
        let is_plain = compression == Some(Compression::None);
        // LZ4 expands data by a factor of at most 255, so a larger stated size is damaged.
        let is_too_large = compression == Some(Compression::Lz4) && size / 255 > data_len;
        if data_len == 0 || (is_plain && data_len != size) || is_too_large {
            return None;
        }
        let extent = ChunkExtent { at, data_at, end, compression, data_len, size, ..ChunkExtent::default() };
        self.begin_chunk(extent);
        let mut counts: Vec<(u32, u64)> = Vec::new();
        let mut span = Span::default();
        let mut next = end;
        while let Ok(Probe::Good(found)) = probe(window, next)
            && let Header::IndexData(record) = found.header
        {
            self.add_top_record(window, next, found.end());
            let data = window.slice(found.data_at, found.end()).ok().flatten()?;
            let (conn, count) = (record.conn.get(), record.count.get());
            // Message counts are taken from this count, so it must match the number of entries.
            if !is_list_of::<IndexEntry>(data, count) {
                return None;
            }
            counts.push((conn, count.into()));
            span = span.joined(self.count_index(conn, data, at)?);
            next = found.end();
        }
        counts.sort_unstable();
        let content = &mut self.content;
        let info = content.info(0, at)?;
        // Time order depends on the time spans of chunks, so a wrong time span is not accepted.
        if info.counts != counts || !(counts.is_empty() || span == info.span) {
            return None;
        }
        content.chunks.last_mut()?.decompressed_len = size.into();
        self.count_chunk(at)?;
        Some(next)
    }

    /// Adds the message counts in the chunk info of the last chunk, which starts at offset `at`, to
    /// the statistics. The chunk itself is not read.
    pub(super) fn count_chunk(&mut self, at: u64) -> Option<()> {
        let content = &mut self.content;
        let info = content.infos.get(*content.info_at_offset.get(&(0, at))?)?;
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        for (id, count) in &info.counts {
            let origin = &mut content.origins[content.ids.first[0].get(*id)? as usize];
            origin.count += count;
            *counts.entry(origin.connection).or_default() += count;
        }
        let chunk = content.chunks.last_mut()?;
        chunk.messages.set_counts(counts, &self.tables.connections);
        if chunk.messages.count > 0 {
            chunk.messages.span = info.span;
        }
        (chunk.index.data_match, chunk.index.info_match) = (IndexMatch::Exact, IndexMatch::Exact);
        Some(())
    }

    /// Counts the messages of connection `conn` that the index data of the chunk at offset `at`
    /// list. Returns the times of the first and last entry.
    fn count_index(&mut self, conn: u32, data: &[u8], at: u64) -> Option<Span> {
        let content = &self.content;
        let origin = &content.origins[content.ids.first[0].get(conn)? as usize];
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
        Some(Span { first, last })
    }
}

/// Returns the record at offset `at`, if it is complete and its op (record type) is undamaged.
fn undamaged_record(window: Window<'_>, at: u64) -> Option<ProbedRecord<'_>> {
    let Ok(Probe::Good(record)) = probe(window, at) else { return None };
    (record.end() <= window.end() && record.corrected_op.is_none()).then_some(record)
}

/// Returns the results of comparing the index of a section with its messages, by topic. `origins`
/// are the connection records of the section that have messages or index entries.
fn index_topics(origins: &[&Origin], connections: &[Connection]) -> Vec<IndexTopic> {
    let mut topics: BTreeMap<&[u8], IndexTopic> = BTreeMap::new();
    for origin in origins {
        let name = &*connections[origin.connection as usize].topic;
        let topic = topics.entry(name).or_insert_with(|| {
            let topic = name.to_vec();
            IndexTopic { topic, entries: 0, in_scan: 0, exact: true }
        });
        topic.entries += origin.index_count;
        topic.in_scan += origin.count;
        topic.exact &= !origin.index_differs;
    }
    topics.into_values().collect()
}

/// Returns the items of one section. The items must be sorted by the index of their section.
fn of_section<T>(all: &[T], number: u32, section: impl Fn(&T) -> u32) -> &[T] {
    let first = all.partition_point(|item| section(item) < number);
    let len = all[first..].partition_point(|item| section(item) == number);
    &all[first..first + len]
}
