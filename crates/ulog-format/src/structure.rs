//! Structures of a ULog around an offset.

use std::sync::Arc;

use rovelog_core::internal::structure::{FieldList, Shown as _, part, value_text};
use rovelog_core::{Around, LogReader as _, Region, Structure, TopicId};
use zerocopy::FromBytes as _;

use crate::reader::UlogReader;
use crate::row::info_value;
use crate::usage;
use crate::wire::{DefaultParameter, FLAG_BITS_AT, FileHeader, Message, MessageHeader, MultiInfo};

/// Kind of the header of a log.
const FILE_HEADER: &str = "file header";

/// Returns the structures of a ULog around an offset.
pub(crate) fn structure_at(log: &UlogReader, around: Around) -> Structure {
    let mut headers = vec![Region::new(FILE_HEADER, log.scanner().start.at..log.first())];
    let later = log.boundaries().iter().filter(|boundary| boundary.has_header).map(|boundary| boundary.at);
    headers.extend(later.map(|at| Region::new(FILE_HEADER, at..at + FLAG_BITS_AT)));
    let clock = &log.scanner().clock;
    let messages = log.cursor().map(|msg| match msg.row {
        Some(row) => {
            Region::new("data", msg.at..msg.end()).of_topic(TopicId(row.series), clock.timestamp(row.time))
        }
        None => Region::new(usage::name(msg.msg_type), msg.at..msg.end()),
    });
    Structure::find(log.info().size, around, headers, messages, |region, fields| show(log, region, fields))
}

/// Adds the fields of a region of the log.
fn show(log: &UlogReader, region: &Region, fields: &mut FieldList) {
    let bytes = part(log.bytes(), region.range.clone());
    if region.kind == FILE_HEADER
        && let Ok((header, _)) = FileHeader::ref_from_prefix(bytes)
    {
        return header.show("FileHeader", fields);
    }
    let message = MessageHeader::split(bytes).filter(|_| region.is_readable());
    let Some((header, payload)) = message else { return fields.raw(bytes) };
    header.show("MessageHeader", fields);
    fields.set_value(format!("{} {:?}", header.msg_type, char::from(header.msg_type)));
    let Some(message) = Message::parse(header.msg_type, payload) else { return fields.raw(payload) };
    let topic = region.topic.and_then(|topic| log.topics().get(topic.index()));
    let layout = topic.and_then(|topic| log.definitions().row_layout(topic).ok());
    fields.layout = layout.map(|layout| Arc::clone(&layout.record));
    message.show(fields);
    if let Message::Info(info)
    | Message::Parameter(info)
    | Message::MultiInfo(MultiInfo { info, .. })
    | Message::DefaultParameter(DefaultParameter { info, .. }) = message
        && let Some(key) = info.parse_key()
    {
        let decoding = &log.definitions().formats.decoding;
        fields.set_value(value_text(&info_value(key.ty, info.value, decoding)));
    }
}
