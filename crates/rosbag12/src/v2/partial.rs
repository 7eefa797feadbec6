//! Reads parts of remote bags. The index lists the chunks that contain the selected messages, and
//! only these chunks are fetched.

use std::ops::Range;

use rovelog_core::internal::partial::{END, Ranges, Unread};
use rovelog_core::internal::scan::Window;
use rovelog_core::{LogReader as _, Result, Select};

use super::content::Chunk;
use super::probe::{Probe, probe};
use super::scan::ChunkExtent;
use super::wire::Header;
use crate::options::BagOptions;
use crate::reader::BagReader;
use crate::scan::Scanner;
use crate::version::Version;

/// Maximum size in bytes of an index that is fetched for a summary. A bag of 100 GB has an index of
/// about this size. A larger index is fetched only together with the whole bag.
const MAX_INDEX: u64 = 64 << 20;

/// Fetches the index section of a remote bag. The offset of the index section is in the bag header.
pub(crate) fn outline(file: &dyn Ranges) -> Result<()> {
    let (size, head) = (file.size(), file.read(0..END)?);
    // Errors are ignored here, because opening the bag reports the same errors.
    let options = BagOptions::default();
    let Ok(scanner) = Scanner::start(&head, &options) else { return Ok(()) };
    if scanner.line.version != Version::V2_0 {
        return Ok(());
    }
    let Ok(Probe::Good(found)) = probe(Window::whole(&head), scanner.line.len) else { return Ok(()) };
    let Header::BagHeader(header) = found.header else { return Ok(()) };
    let index_pos = header.index_pos.get();
    // A bag that was not closed has index position 0. Such a bag must be fetched completely, so no
    // index is fetched.
    if index_pos < found.end() || index_pos >= size || size - index_pos > MAX_INDEX {
        return Ok(());
    }
    file.fetch(std::slice::from_ref(&(index_pos..size)))
}

impl Scanner {
    /// If bytes between offset `at` and the next chunk were not fetched, returns the offset of the
    /// next chunk. After the last chunk, returns `index_pos`, the offset of the index section.
    /// Returns `None` if all bytes were fetched.
    pub(super) fn next_chunk_if_unread(&self, at: u64, index_pos: u64, unread: &Unread) -> Option<u64> {
        if unread.is_empty() {
            return None;
        }
        let infos = &self.content.info_at_offset;
        let next = infos.range((0, at + 1)..=(0, u64::MAX)).next().map_or(index_pos, |((_, pos), _)| *pos);
        unread.touches(&(at..next)).then_some(next)
    }

    /// Adds a chunk that was not fetched, with the message counts of its chunk info. The chunk and
    /// its index data end at offset `end`. Returns `None` if the index does not describe the chunk.
    pub(super) fn add_unread_chunk(&mut self, at: u64, end: u64) -> Option<()> {
        self.begin_chunk(ChunkExtent { at, data_at: at, end, ..ChunkExtent::default() });
        let content = &mut self.content;
        let info = content.info(0, at)?;
        for (id, count) in &info.counts {
            let origin = &content.origins[content.ids.first[0].get(*id)? as usize];
            let stats = &mut self.tables.connections[origin.connection as usize].stats;
            stats.count += count;
            // Every message of a latching publisher is counted as latched, as in a scan. The last
            // message of a latching publisher is also sent to later subscribers.
            stats.latched += if origin.publisher.latching { *count } else { 0 };
        }
        content.chunks.last_mut()?.is_unread = true;
        self.count_chunk(at)
    }
}

impl BagReader {
    /// Returns the byte ranges of the chunks that contain selected messages and have not been
    /// fetched yet. The ranges include the index data of the chunks. Returns `None` for bags before
    /// V2.0.
    pub(crate) fn needed_chunks(&self, select: &Select) -> Option<Vec<Range<u64>>> {
        if self.options.read.unread.is_empty() {
            return Some(Vec::new());
        }
        if self.version() != Version::V2_0 {
            return None;
        }
        let content = &self.scanner.content;
        let wanted: Vec<bool> = self.topics().iter().map(|topic| select.keeps_topic(topic)).collect();
        let selected = self.selected_chunks(&wanted, select);
        let mut chunks: Vec<_> = selected.into_iter().map(|number| &content.chunks[number]).collect();
        if let Some(start) = select.start.filter(|_| select.last_before) {
            let topics = self.topics().iter().enumerate();
            for (topic, _) in topics.filter(|(_, topic)| select.keeps_last_before(topic)) {
                chunks.extend(last_before(&content.chunks, topic, start));
            }
        }
        if let Some(start) = select.start.filter(|_| select.latched) {
            // Message counts in a chunk info are added up per topic, so they do not tell latching
            // publishers of a topic from others.
            let mut latching = vec![false; self.topics().len()];
            for origin in content.origins.iter().filter(|origin| origin.publisher.latching) {
                let topic = &self.topics()[origin.connection as usize];
                latching[origin.connection as usize] |= select.keeps_topic(topic);
            }
            let may_latch = |chunk: &&Chunk| chunk.messages.start_before(start) && chunk.has_any(&latching);
            chunks.extend(content.chunks.iter().filter(may_latch));
        }
        let unread = chunks.into_iter().filter(|chunk| chunk.is_unread);
        Some(unread.map(|chunk| chunk.extent.at..chunk.extent.end).collect())
    }
}

/// Returns the chunks that may contain the last message of a topic before the time `start`. These
/// are the latest chunk that ends before `start`, and all chunks that overlap with this chunk or
/// with `start`.
fn last_before(chunks: &[Chunk], topic: usize, start: i64) -> impl Iterator<Item = &Chunk> {
    let candidates = chunks.iter().filter(move |chunk| {
        let mut counts = chunk.messages.by_connection.iter();
        chunk.messages.start_before(start) && counts.any(|count| count.connection as usize == topic)
    });
    let spans = candidates.clone().map(|chunk| chunk.messages.span);
    let latest = spans.filter(|span| span.last < start).max_by_key(|span| span.last);
    let from = latest.map_or(i64::MIN, |span| span.first);
    candidates.filter(move |chunk| chunk.messages.span.last >= from)
}
