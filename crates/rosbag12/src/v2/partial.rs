//! Bags of V2.0 of which parts are read: the index tells which chunks have the wanted messages.

use std::ops::Range;

use rovelog_core::partial::{END, Ranges, Unread};
use rovelog_core::scan::Window;
use rovelog_core::{LogReader as _, Result, Select};

use super::probe::{Probe, probe};
use super::scan::{Extent, Length};
use super::state::Chunk;
use super::wire::Header;
use crate::options::BagOptions;
use crate::reader::BagReader;
use crate::scan::Scanner;
use crate::version::Version;

/// Maximum size in bytes of an index that is fetched for a summary. A bag of 100 GB has an index of
/// about this size. A larger one is fetched only with the rest of the bag, which the caller asks for.
const MAX_INDEX: u64 = 64 << 20;

/// Fetches the index of the bag, from where the bag header says that it starts.
pub(crate) fn outline(file: &dyn Ranges) -> Result<()> {
    let (size, head) = (file.size(), file.read(0..END)?);
    // What is wrong with a bag is said where it is opened.
    let options = BagOptions::default();
    let Ok(scanner) = Scanner::start(&head[..head.len().min(Scanner::START)], &options) else {
        return Ok(());
    };
    if scanner.version != Version::V2_0 {
        return Ok(());
    }
    let Ok(Probe::Good(found)) = probe(Window::whole(&head), scanner.line.len) else { return Ok(()) };
    let Header::BagHeader(header) = found.header else { return Ok(()) };
    let index_pos = header.index_pos.get();
    if index_pos < found.end() || index_pos >= size || size - index_pos > MAX_INDEX {
        return Ok(());
    }
    file.fetch(std::slice::from_ref(&(index_pos..size)))
}

impl Scanner {
    /// Returns where the next chunk starts, or the index at `index_pos`, by what the index says;
    /// `None` if all bytes from `at` up to there were read.
    pub(super) fn unread_chunk(&self, at: u64, index_pos: u64, unread: &Unread) -> Option<u64> {
        if unread.is_empty() {
            return None;
        }
        let infos = &self.chunked().infos_at;
        let next = infos.range((0, at + 1)..=(0, u64::MAX)).next().map_or(index_pos, |((_, pos), _)| *pos);
        unread.touches(&(at..next)).then_some(next)
    }

    /// Takes a chunk that was not read, with its index data up to `next`, by its chunk info: where the
    /// next one starts.
    pub(super) fn believe_chunk(&mut self, at: u64, next: u64, number: usize) -> Option<u64> {
        let (length, headless) = (Length::Stored, false);
        let extent =
            Extent { at, data_at: at, end: next, compression: None, data_len: 0, size: 0, length, headless };
        self.begin_chunk(extent);
        let state = self.v2.as_deref_mut()?;
        let info = &state.infos[*state.infos_at.get(&(0, at))?];
        let (start, end) = (info.start.nanos(), info.end.nanos());
        for (id, count) in &info.counts {
            let origin = &state.origins[state.ids[0].get(*id)? as usize];
            let of = &mut self.tables.connections[origin.connection as usize].stats;
            of.count += count;
            of.latched += if origin.publisher.latching { *count } else { 0 };
        }
        if !info.counts.is_empty() {
            let span = state.unread_span.get_or_insert((start, end));
            *span = (span.0.min(start), span.1.max(end));
        }
        state.chunks[number].is_unread = true;
        self.count_chunk(at, number)?;
        Some(next)
    }
}

impl BagReader {
    /// Returns the chunks that are still to be fetched for the selected messages, each with its
    /// index data; `None` of a bag without chunks.
    pub(crate) fn still_needed(&self, select: &Select) -> Option<Vec<Range<u64>>> {
        if self.options.read.unread.is_empty() {
            return Some(Vec::new());
        }
        let state = self.scanner.v2.as_ref()?;
        let wanted: Vec<bool> = self.topics().iter().map(|topic| select.keeps_topic(topic)).collect();
        let selected = self.selected_chunks(&wanted, select);
        let mut chunks: Vec<_> = selected.into_iter().map(|number| &state.chunks[number]).collect();
        if let Some(start) = select.start.filter(|_| select.last_before) {
            let topics = self.topics().iter().enumerate();
            for (topic, _) in topics.filter(|(_, topic)| select.keeps_last_before(topic)) {
                chunks.extend(last_before(&state.chunks, topic, start));
            }
        }
        if let Some(start) = select.start.filter(|_| select.latched) {
            // Chunk infos do not tell publishers of one topic apart.
            let mut latching = vec![false; self.topics().len()];
            for origin in state.origins.iter().filter(|origin| origin.publisher.latching) {
                let topic = &self.topics()[origin.connection as usize];
                latching[origin.connection as usize] |= select.keeps_topic(topic);
            }
            let is_before = |chunk: &&Chunk| chunk.span.is_some_and(|(first, _)| first < start);
            chunks.extend(state.chunks.iter().filter(is_before).filter(|chunk| chunk.has_any(&latching)));
        }
        let unread = chunks.into_iter().filter(|chunk| chunk.is_unread);
        Some(unread.map(|chunk| chunk.extent.at..chunk.extent.end).collect())
    }
}

/// Returns the chunks that may have the last message of a topic before `start`: the last chunk that
/// ends before, and those that overlap with it or the start.
fn last_before(chunks: &[Chunk], topic: usize, start: i64) -> impl Iterator<Item = &Chunk> {
    let with = chunks.iter().filter(move |chunk| chunk.counts.iter().any(|(of, ..)| *of as usize == topic));
    let spans = with.filter_map(move |chunk| Some((chunk.span.filter(|(first, _)| *first < start)?, chunk)));
    let sure = spans.clone().filter(|((_, last), _)| *last < start).max_by_key(|((_, last), _)| *last);
    let from = sure.map_or(i64::MIN, |((first, _), _)| first);
    spans.filter(move |((_, last), _)| *last >= from).map(|(_, chunk)| chunk)
}
