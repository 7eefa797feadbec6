//! Structures of a bag around an offset. The module `v2::structure` has the structures of V2.0.

use std::sync::Arc;

use rovelog_core::internal::structure::{FieldList, Shown as _, part};
use rovelog_core::internal::wire::whole;
use rovelog_core::{Around, LogReader as _, Region, Structure, Timestamp, TopicId};

use crate::edit::Part;
use crate::message::MessageRef;
use crate::reader::BagReader;
use crate::version::Version;
use crate::wire::{Header, IndexEntry, OldStamp};

/// Kind of the bytes that belong to no record, such as the version line.
const FRAME: &str = "version line and padding";

/// Returns the structures of a bag around an offset.
pub(crate) fn structure_at(bag: &BagReader, around: Around) -> Structure {
    if bag.is_chunked() {
        return bag.chunked_structure_at(around);
    }
    let show = |region: &Region, fields: &mut FieldList| show(bag, region, fields);
    Structure::find(bag.info().size, around, frame(bag), records(bag), show)
}

/// Returns the regions of a bag before V2.0 that belong to no record.
pub(crate) fn frame(bag: &BagReader) -> Vec<Region> {
    let frame = bag.ledger().into_iter().filter(|(part, _)| *part == Part::Frame);
    frame.map(|(_, range)| Region::new(FRAME, range)).collect()
}

/// Returns the records of a bag before V2.0 as regions, in file order.
pub(crate) fn records(bag: &BagReader) -> impl Iterator<Item = Region> + '_ {
    bag.full_cursor().map(|record| {
        if let Some(message) = record.message {
            return message_region(bag, &message, 0);
        }
        let kind = match bag.wire_record(&record).map(|record| record.header) {
            Some(Header::Definition(_)) => "definition",
            Some(Header::BagHeader(_)) => "bag header",
            Some(Header::Index(_)) => "index",
            _ => "other record",
        };
        Region::new(kind, record.at..record.end)
    })
}

/// Returns the region of a message. The offsets in `message` count from offset `base` of the file.
pub(crate) fn message_region(bag: &BagReader, message: &MessageRef, base: u64) -> Region {
    let time = Timestamp::new(message.time(), bag.scanner.tables.clock);
    let range = base + message.at..base + message.end();
    Region::new("message", range).of_topic(TopicId(message.connection), Some(time))
}

/// Adds the fields of a region of a bag before V2.0.
fn show(bag: &BagReader, region: &Region, fields: &mut FieldList) {
    let bytes = part(&bag.bytes, region.range.clone());
    if !region.is_readable() || region.kind == FRAME {
        return fields.raw(bytes);
    }
    if bag.version() != Version::V1_2 {
        // Lines of text, the time and the length precede the data of the message.
        let head = bag.message_at(region.range.start).map_or(0, |message| message.head_len as usize);
        let (head, data) = bytes.split_at(head.min(bytes.len()));
        let (lines, stamp) = head.split_at(head.len().saturating_sub(size_of::<OldStamp>()));
        fields.section = "Version 1.1";
        lines.show("lines", fields);
        if let Some(stamp) = whole::<OldStamp>(stamp).first() {
            stamp.show("stamp", fields);
        }
        return show_payload(bag, region, data, fields);
    }
    match Header::show(bytes, fields) {
        Some((Header::Index(_), data)) => fields.repeated("data", IndexEntry::all_of(data)),
        Some((_, data)) => show_payload(bag, region, data, fields),
        None => fields.raw(bytes),
    }
}

/// Adds the data of a record. The data of a message are decoded if the definition is known.
pub(crate) fn show_payload(bag: &BagReader, region: &Region, data: &[u8], fields: &mut FieldList) {
    let layout = region.topic.and_then(|topic| bag.scanner.tables.layout(topic.index(), data).ok().flatten());
    fields.layout = layout.map(Arc::clone);
    data.show("data", fields);
}
