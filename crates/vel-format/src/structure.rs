//! Structures of a VEL log around an offset, and the regions into which a log is divided.

use std::sync::Arc;

use rovelog_core::internal::structure::{FieldList, Shown as _, part};
use rovelog_core::internal::wire::{I64Le, U32Le, whole};
use rovelog_core::{Around, Clock, LogReader as _, Region, Structure, Timestamp};
use zerocopy::FromBytes as _;

use crate::message::{Kind, Payload};
use crate::reader::{PartKind, VelReader};
use crate::wire::{FileHeader, INDEX_AT, MessageHeader};

/// Kind of the header of a file, with the number of index entries.
const FILE_HEADER: &str = "file header";

/// Kind of the index of a file.
const INDEX: &str = "index";

/// Kind of the header and index of another log in the same file.
const JOINED: &str = "header of a joined log";

/// Kind of an end mark.
const END_MARK: &str = "end mark";

/// Kind of the bytes after the last end mark.
const TAIL: &str = "bytes after the end mark";

/// Returns the structures of a VEL log around an offset.
pub(crate) fn structure_at(log: &VelReader, around: Around) -> Structure {
    let show = |region: &Region, fields: &mut FieldList| show(log, region, fields);
    Structure::find(log.info().size, around, other_regions(log), messages(log), show)
}

/// Returns the messages of a log as regions, in file order.
pub(crate) fn messages(log: &VelReader) -> impl Iterator<Item = Region> {
    log.entries.iter().map(|entry| {
        let range = entry.at..log.end_of(entry.at);
        match log.topic_of(entry) {
            Some(topic) => {
                let time = Timestamp::new(entry.nanos, Clock::LogStart);
                Region::new("message", range).of_topic(topic.id, Some(time))
            }
            None => Region::new("message that cannot be read", range),
        }
    })
}

/// Returns the regions of a log that are not valid messages, in file order. Lost bytes are not
/// included.
pub(crate) fn other_regions(log: &VelReader) -> Vec<Region> {
    let header = 0..INDEX_AT.min(log.info().size);
    let index = header.end..log.scanner.start.index_end.max(header.end);
    let mut regions = vec![Region::new(FILE_HEADER, header)];
    if !index.is_empty() {
        regions.push(Region::new(INDEX, index));
    }
    regions.extend(log.parts.iter().filter_map(|part| {
        let kind = match part.what {
            PartKind::Invalid => "message marked as invalid",
            PartKind::Joined => JOINED,
            PartKind::Terminator => END_MARK,
            PartKind::AfterEnd => "message after the end mark",
            PartKind::Tail => TAIL,
            PartKind::Lost => return None,
        };
        Some(Region::new(kind, part.range.clone()))
    }));
    regions
}

/// Adds the fields of a region of the log.
fn show(log: &VelReader, region: &Region, fields: &mut FieldList) {
    let bytes = part(&log.bytes, region.range.clone());
    match region.kind {
        FILE_HEADER | JOINED => {
            let Ok((header, rest)) = FileHeader::ref_from_prefix(bytes) else { return fields.raw(bytes) };
            header.show("FileHeader", fields);
            let Ok((entries, rest)) = U32Le::ref_from_prefix(rest) else { return fields.raw(rest) };
            fields.section = "3.3";
            entries.show("entries", fields);
            show_positions(rest, fields);
        }
        INDEX => {
            fields.section = "3.3";
            show_positions(bytes, fields);
        }
        END_MARK => fields.group("end mark", "4.1", |fields| bytes.show("size", fields)),
        _ if !region.is_readable() || region.kind == TAIL => fields.raw(bytes),
        _ => show_message(log, bytes, fields),
    }
}

/// Adds the positions of an index. A truncated or damaged index may end within a position.
fn show_positions(bytes: &[u8], fields: &mut FieldList) {
    let positions = whole::<I64Le>(bytes);
    fields.repeated("positions", positions);
    fields.raw(bytes.get(size_of_val(positions)..).unwrap_or_default());
}

/// Adds the fields of a message.
fn show_message(log: &VelReader, bytes: &[u8], fields: &mut FieldList) {
    let Ok((header, data)) = MessageHeader::ref_from_prefix(bytes) else { return fields.raw(bytes) };
    header.show("MessageHeader", fields);
    let (type_id, version) = (header.type_id.get(), header.version.get());
    let kind = Kind::of(type_id, version);
    let section = kind.map_or("4.2", Kind::section);
    if let Some(Payload::Velodyne(raw)) = kind.and_then(|kind| Payload::view(kind, data)) {
        return fields.group(Kind::Velodyne.name(), section, |fields| {
            fields.leaf("count", size_of::<U32Le>(), raw.packets.len().to_string());
            fields.repeated("packets", &raw.packets);
        });
    }
    let declared = log.types().find(type_id, version);
    (fields.section, fields.layout) = (section, declared.map(|declared| Arc::clone(declared.layout())));
    data.show(declared.map_or("data", |declared| declared.name()), fields);
}
