//! Structures of a V2.0 bag around an offset.

use std::collections::HashMap;

use rovelog_core::internal::scan::Window;
use rovelog_core::internal::structure::{FieldList, part};
use rovelog_core::internal::text::count;
use rovelog_core::{Around, LogReader as _, Region, Structure};

use super::chunks::{CHUNK_HEADER, ChunkScan, kind};
use super::records::{ChunkItem, Hints};
use super::scan::{ChunkExtent, Step};
use super::wire::{ConnectionCount, ConnectionHeader, Header, IndexEntry};
use crate::headers::show_fields;
use crate::reader::BagReader;
use crate::structure::{message_region, show_payload};

/// Kind of a version line.
const LINE: &str = "version line";

/// Kind of a chunk that is not divided into its records.
const CHUNK: &str = "chunk";

/// Maximum number of records of a compressed chunk that are listed.
const MAX_LISTED: usize = 20;

impl BagReader {
    /// Returns the structures of a bag V2.0 around an offset. If an uncompressed chunk contains the
    /// offset, the chunk is divided into its records.
    pub(crate) fn chunked_structure_at(&self, around: Around) -> Structure {
        let window = Window::whole(&self.bytes);
        let regions = self.steps().flat_map(|step| match step {
            Step::Line { at, end } => vec![Region::new(LINE, at..end)],
            Step::Record { at, end } => vec![Region::new(kind(window, at), at..end)],
            Step::Chunk(extent) if extent.is_plain() && (extent.at..extent.end).contains(&around.at) => {
                let mut regions = self.records_in(&extent, extent.data_at);
                if !extent.headless {
                    regions.insert(0, Region::new(CHUNK_HEADER, extent.at..extent.data_at));
                }
                regions
            }
            Step::Chunk(extent) => vec![Region::new(CHUNK, extent.at..extent.end)],
            Step::Lost(_) | Step::End => Vec::new(),
        });
        let show = |region: &Region, fields: &mut FieldList| self.show(region, fields);
        Structure::find(self.info().size, around, Vec::new(), regions, show)
    }

    /// Returns the records in a chunk. `base` is the offset of the chunk's data in the file, which is
    /// added to the offset of each record in the data.
    fn records_in(&self, extent: &ChunkExtent, base: u64) -> Vec<Region> {
        let chunks = &self.scanner.content.chunks;
        let number = chunks.iter().position(|chunk| chunk.extent.at == extent.at);
        let Some(loaded) = number.and_then(|number| self.loader(vec![number]).load()) else {
            return Vec::new();
        };
        let (chunk, mut messages) = (&chunks[loaded.number], HashMap::new());
        ChunkScan::default().visit(self, &loaded, |message| {
            messages.insert(message.at, message_region(self, &message, base));
        });
        let hints = Hints::new(&chunk.index.ranges, &self.bytes, chunk.extent.declared_len());
        let records = chunk.records(loaded.data(self), loaded.result.status, hints, None);
        let region =
            |kind, at: usize, end: usize| Some(Region::new(kind, base + at as u64..base + end as u64));
        let records = records.with_known_lost(&chunk.lost_ranges).filter_map(|item| match item {
            ChunkItem::Message(message) => messages.remove(&message.at),
            ChunkItem::Connection { at, record } => {
                region("connection", at, at + record.head.len() + record.data.len())
            }
            ChunkItem::Other { at, end, .. } => region("other record", at, end),
            ChunkItem::Lost { .. } | ChunkItem::Tail { .. } => None,
        });
        records.collect()
    }

    /// Adds the fields of a region of the file.
    fn show(&self, region: &Region, fields: &mut FieldList) {
        let bytes = part(&self.bytes, region.range.clone());
        let found = if region.is_readable() { Header::show(bytes, fields) } else { None };
        match found {
            None => fields.raw(bytes),
            Some((Header::IndexData(_), data)) => fields.repeated("data", IndexEntry::all_of(data)),
            Some((Header::ChunkInfo(_), data)) => fields.repeated("data", ConnectionCount::all_of(data)),
            Some((Header::Connection(_), data)) => fields.group("data", fields.section, |fields| {
                let header = ConnectionHeader::read(data).unwrap_or_default();
                show_fields(data, |name| header.text_of(name), fields);
            }),
            Some((Header::Chunk(_), data)) if region.kind == CHUNK => self.show_chunk(region, data, fields),
            Some((_, data)) => show_payload(self, region, data, fields),
        }
    }

    /// Adds the data of a compressed chunk, and the first records in the decompressed data.
    fn show_chunk(&self, region: &Region, data: &[u8], fields: &mut FieldList) {
        let chunks = &self.scanner.content.chunks;
        let chunk = chunks.iter().find(|chunk| chunk.extent.at == region.range.start);
        let records = chunk.map_or_else(Vec::new, |chunk| self.records_in(&chunk.extent, 0));
        let text = count(records.len() as u64, "record");
        fields.elements("compressed", data.len(), data.len(), text, |_, fields| {
            for Region { range, kind, topic, .. } in records.into_iter().take(MAX_LISTED) {
                let topic = topic.map_or("", |topic| &self.topics()[topic.index()].name);
                fields.leaf(&format!("{}..{}", range.start, range.end), 0, format!("{kind} {topic}"));
            }
        });
    }
}
