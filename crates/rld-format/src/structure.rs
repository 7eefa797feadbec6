//! Structures of an RLD log around an offset.

use rovelog_core::internal::structure::{FieldList, Shown as _, part};
use rovelog_core::internal::text::count;
use rovelog_core::{Around, LogReader as _, Region, Structure, TopicId};
use zerocopy::FromBytes as _;

use crate::reader::RldReader;
use crate::row::{Row, Table};
use crate::wire::{BlockTimes, ChannelRecord};

/// Kind of a block, which consists of its times and its rows.
const BLOCK: &str = "block";

/// Kind of the rows of a block whose start is damaged.
const ROWS: &str = "rows";

/// Kind of the header of a file.
const FILE_HEADER: &str = "file header";

/// Returns the structures of an RLD log around an offset.
pub(crate) fn structure_at(log: &RldReader, around: Around) -> Structure {
    // The ambient file follows the last file of the log.
    let size = log.parts.iter().map(|part| part.bytes.len() as u64).sum();
    let ambient = log.ambient().map(|ambient| regions(ambient, size, TopicId(1)));
    let all = regions(log, 0, TopicId(0)).chain(ambient.into_iter().flatten());
    Structure::find(log.info().size, around, Vec::new(), all, |region, fields| match log.ambient() {
        Some(ambient) if region.range.start >= size => show(ambient, region, size, fields),
        _ => show(log, region, 0, fields),
    })
}

/// Returns the headers and blocks of all files as regions, in file order. The first file starts at
/// offset `base`.
fn regions(log: &RldReader, base: u64, topic: TopicId) -> impl Iterator<Item = Region> {
    log.parts.iter().enumerate().flat_map(move |(number, part)| {
        let base = base + part.base;
        let header = part.header.size().min(part.bytes.len() as u64);
        let header = Region::new(FILE_HEADER, base..base + header);
        let segments = log.segments.iter().filter(move |segment| segment.part == number);
        let layouts = segments.filter_map(|segment| Some((segment, &log.table.as_ref()?.layout)));
        let blocks = layouts.flat_map(move |(segment, layout)| {
            segment.blocks(layout).map(move |block| {
                let kind = if block.is_timed { BLOCK } else { ROWS };
                let region = Region::new(kind, base + block.range.start..base + block.range.end);
                region.of_topic(topic, log.times.rows.timestamp(block.row))
            })
        });
        std::iter::once(header).chain(blocks)
    })
}

/// Adds the fields of a region. The first file starts at offset `base`.
fn show(log: &RldReader, region: &Region, base: u64, fields: &mut FieldList) {
    let at = region.range.start - base;
    let Some(file) = log.parts.iter().rfind(|part| part.base <= at) else { return };
    let at = at - file.base;
    let bytes = part(&file.bytes, at..at + (region.range.end - region.range.start));
    match (region.kind, BlockTimes::ref_from_prefix(bytes), &log.table) {
        (FILE_HEADER, ..) => {
            file.header.lead_in.show("LeadIn", fields);
            fields.group("Comment", "Comment", |fields| (&file.header.comment[..]).show("comment", fields));
            fields.group("Channels", "Channels", |fields| {
                for (number, channel) in file.header.channels.iter().enumerate() {
                    let name = format!("[{number}]");
                    if fields.holds(size_of::<ChannelRecord>()) {
                        channel.show(&name, fields);
                    } else {
                        fields.leaf(&name, size_of::<ChannelRecord>(), channel.name_text());
                    }
                }
            });
        }
        (BLOCK, Ok((times, rows)), Some(table)) => {
            times.show("BlockTimes", fields);
            show_rows(rows, table, fields);
        }
        (ROWS, _, Some(table)) => show_rows(bytes, table, fields),
        _ => fields.raw(bytes),
    }
}

/// Adds the rows of a block.
fn show_rows(rows: &[u8], table: &Table, fields: &mut FieldList) {
    fields.section = "Channel Data";
    let len = table.layout.row.max(1);
    let text = count((rows.len() / len) as u64, "row");
    fields.elements("rows", rows.len(), len, text, |index, fields| {
        let Some(row) = rows.chunks_exact(len).nth(index) else { return };
        fields.group(&format!("[{index}]"), "Channel Data", |fields| show_row(row, table, fields));
    });
}

/// Adds the words of bits and the values of a row.
fn show_row(bytes: &[u8], table: &Table, fields: &mut FieldList) {
    let row = Row::new(bytes, table);
    for number in 0..table.layout.words {
        fields.leaf("bits", 4, format!("{:032b}", row.word(number).unwrap_or_default()));
    }
    for (index, channel) in table.channels.iter().enumerate().skip(table.binary()) {
        let raw = row.raw(index).unwrap_or_default();
        let physical = row.physical(index).map(|value| format!(" = {value} {}", channel.unit_text()));
        fields.leaf(&channel.name, channel.size, format!("{raw}{}", physical.unwrap_or_default().trim_end()));
    }
}
