//! A copy of a V2.0 bag in which values are changed in place. Compressed chunks are compressed again.

use std::collections::HashMap;
use std::io::{self, Write};

use rovelog_core::LogReader as _;
use rovelog_core::internal::edit::{Edit, EditCopy, Part, Patcher};
use rovelog_core::internal::structure::part;
use rovelog_core::internal::wire::U32Le;
use zerocopy::IntoBytes as _;

use super::buffer::DataStatus;
use super::chunks::ChunkScan;
use super::loader::LoadedChunk;
use super::records::{ChunkItem, Hints};
use super::scan::Step;
use super::wire::{ConnectionHeader, Header, IndexEntry};
use super::writer::pack;
use crate::error::BagError;
use crate::message::MessageRef;
use crate::reader::BagReader;
use crate::wire::RecordHead;

/// Name of a node that published messages.
pub(crate) const CALLER: Part<'_> = Part::Value { kind: "connection", name: "callerid", is_text: true };

/// Writes a copy of `bag`. Messages, times, node names and bytes that cannot be read are passed to
/// `edit`.
pub(crate) fn rewrite(bag: &BagReader, edit: &mut Edit<'_>, out: &mut dyn Write) -> Result<(), BagError> {
    // The bag header at the start has the offset of the index at the end, which depends on the sizes
    // of all compressed chunks. They are known after a first pass.
    let is_packed = bag.scanner.content.chunks.iter().any(|chunk| !chunk.extent.is_plain());
    let ends = if is_packed { rewrite_chunks(bag, edit, &mut io::sink(), &[])? } else { Vec::new() };
    rewrite_chunks(bag, edit, out, &ends)?;
    Ok(())
}

/// End of a chunk.
#[derive(Clone, Copy)]
struct ChunkEnd {
    /// Offset in the original bag.
    old: u64,
    /// Offset in the new bag.
    new: u64,
}

/// Converts an offset of the original bag to an offset of the new bag.
fn moved(at: u64, ends: &[ChunkEnd]) -> u64 {
    let last = ends.partition_point(|end| end.old <= at).checked_sub(1).map(|last| ends[last]);
    last.map_or(at, |end| (at - end.old).saturating_add(end.new))
}

/// Writes a copy of a V2.0 bag. `known` are the ends of the chunks from an earlier pass. If it is
/// empty, the chunks keep their sizes, or the offsets in the output are not needed.
fn rewrite_chunks(
    bag: &BagReader,
    edit: &mut Edit<'_>,
    out: &mut dyn Write,
    known: &[ChunkEnd],
) -> Result<Vec<ChunkEnd>, BagError> {
    let mut patcher = Patcher::new(&bag.bytes, out);
    edit(Part::Start, &mut []);
    let (mut ends, mut number, mut section) = (Vec::new(), 0, 0);
    let mut chunk_loader = bag.loader((0..bag.scanner.content.chunks.len()).collect());
    for step in bag.steps() {
        match step {
            Step::Line { at, .. } => section = at,
            Step::End => {}
            Step::Lost(lost) => patcher.edit(edit, Part::Unreadable, lost.at..lost.end)?,
            Step::Record { at, end } => {
                let mut copy = EditCopy::new(part(&bag.bytes, at..end));
                // Offsets in a bag that was appended count from its start.
                let place = |old: u64| {
                    moved(section.saturating_add(old), known).saturating_sub(moved(section, known))
                };
                edit_top_record(part(&bag.bytes, at..end), &place, edit, &mut copy);
                patcher.replace(at..end, &copy.bytes)?;
            }
            Step::Chunk(extent) => {
                let chunks = &bag.scanner.content.chunks;
                let is_known = chunks.get(number).is_some_and(|chunk| chunk.extent.at == extent.at);
                let loaded = if is_known { chunk_loader.load() } else { None };
                number += usize::from(is_known);
                // A damaged chunk is not compressed again, because its size would not match.
                let is_whole =
                    |loaded: &LoadedChunk| extent.is_plain() || loaded.result.status == DataStatus::Intact;
                let loaded = loaded.filter(is_whole);
                let (Some(compression), Some(loaded)) = (extent.compression, loaded) else {
                    patcher.edit(edit, Part::Unreadable, extent.data_at..extent.end)?;
                    continue;
                };
                let data = edit_chunk(bag, &loaded, edit);
                if data == loaded.data(bag) {
                    patcher.replace(extent.end..extent.end, &[])?;
                } else {
                    let packed = pack(compression, &data)?;
                    if let Some(packed) = &packed {
                        // The field `data_len` of the record is directly before the data.
                        let len_at = extent.data_at - size_of::<U32Le>() as u64;
                        let len = u32::try_from(packed.len()).unwrap_or(u32::MAX);
                        patcher.replace(len_at..extent.data_at, &len.to_le_bytes())?;
                    }
                    patcher.replace(extent.data_at..extent.end, &packed.unwrap_or(data))?;
                }
                chunk_loader.recycle(loaded);
                ends.push(ChunkEnd { old: extent.end, new: patcher.written() });
            }
        }
    }
    patcher.finish()?;
    Ok(ends)
}

/// Edits a record between chunks. `moved` converts an offset in the record.
fn edit_top_record(record: &[u8], moved: &dyn Fn(u64) -> u64, edit: &mut Edit<'_>, copy: &mut EditCopy<'_>) {
    let Some(head) = RecordHead::read(record) else { return };
    let data = record.get(head.size()..).unwrap_or_default();
    let mut place = |at: &[u8], old: u64| {
        copy.edit(&mut |_, bytes| bytes.copy_from_slice(&moved(old).to_le_bytes()), Part::Time(1), at);
    };
    match Header::read(head.header) {
        Some(Header::BagHeader(header)) => {
            place(header.index_pos.as_bytes(), header.index_pos.get());
        }
        Some(Header::ChunkInfo(info)) => {
            place(info.chunk_pos.as_bytes(), info.chunk_pos.get());
            copy.edit(edit, Part::Time(1), info.start_time.sec.as_bytes());
            copy.edit(edit, Part::Time(1), info.end_time.sec.as_bytes());
        }
        Some(Header::IndexData(_)) => {
            for entry in IndexEntry::all_of(data) {
                copy.edit(edit, Part::Time(1), entry.time.sec.as_bytes());
            }
        }
        Some(Header::Connection(_)) => edit_connection(data, edit, copy),
        _ => copy.edit(edit, Part::Unreadable, data),
    }
}

fn edit_connection(data: &[u8], edit: &mut Edit<'_>, copy: &mut EditCopy<'_>) {
    match ConnectionHeader::read(data) {
        Some(ConnectionHeader { callerid: Some(caller), .. }) => copy.edit(edit, CALLER, caller),
        Some(_) => {}
        None => copy.edit(edit, Part::Unreadable, data),
    }
}

/// Returns the edited data of a decompressed chunk.
fn edit_chunk(bag: &BagReader, loaded: &LoadedChunk, edit: &mut Edit<'_>) -> Vec<u8> {
    let (data, mut messages) = (loaded.data(bag), HashMap::new());
    let chunk = &bag.scanner.content.chunks[loaded.number];
    ChunkScan::default().visit(bag, loaded, |message| {
        messages.insert(message.at, message);
    });
    let mut copy = EditCopy::new(data);
    let hints = Hints::new(&chunk.index.ranges, &bag.bytes, chunk.extent.declared_len());
    for item in chunk.records(data, loaded.result.status, hints, None).with_known_lost(&chunk.lost_ranges) {
        let unreadable = match item {
            ChunkItem::Message(found) => {
                let record = part(data, found.at..found.end());
                let head = RecordHead::read(record);
                if let Some(Header::Message(header)) = head.and_then(|head| Header::read(head.header)) {
                    copy.edit(edit, Part::Time(1), header.time.sec.as_bytes());
                }
                if let Some(message) = messages.get(&found.at) {
                    edit_payload(bag, message, message.payload(data), edit, &mut copy);
                    continue;
                }
                // The message belongs to an unknown connection.
                record.get(head.map_or(0, |head| head.size())..).unwrap_or_default()
            }
            ChunkItem::Connection { record, .. } => {
                edit_connection(record.data, edit, &mut copy);
                continue;
            }
            ChunkItem::Other { at, end, .. } | ChunkItem::Lost { at, end } => &data[at..end],
            ChunkItem::Tail { at } => &data[at..],
        };
        copy.edit(edit, Part::Unreadable, unreadable);
    }
    copy.bytes
}

/// Edits the data of a message.
pub(crate) fn edit_payload(
    bag: &BagReader,
    message: &MessageRef,
    payload: &[u8],
    edit: &mut Edit<'_>,
    copy: &mut EditCopy<'_>,
) {
    let topic = &bag.topics()[message.connection as usize].name;
    let part = match bag.scanner.tables.layout(message.connection as usize, payload) {
        Ok(Some(layout)) => Part::Fields { topic, layout },
        _ => Part::Opaque(topic),
    };
    copy.edit(edit, part, payload);
}
