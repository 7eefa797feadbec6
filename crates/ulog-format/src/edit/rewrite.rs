//! A copy of a log in which values are changed in place.

use std::io::{Result, Write};

use rovelog_core::internal::edit::{Edit, EditCopy, Part, Patcher};
use rovelog_core::internal::structure::part;
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::index::MessageRef;
use crate::reader::UlogReader;
use crate::schema::{Basic, TypeName};
use crate::wire::{DefaultParameter, FLAG_BITS_AT, FileHeader, Info, Message, MultiInfo};

/// A time in microseconds.
const MICROS: Part<'_> = Part::Time(1_000_000);

/// Writes a copy of `log`. Rows, console messages, infos, parameters, start times and bytes that
/// cannot be read are passed to `edit`.
pub(crate) fn rewrite(log: &UlogReader, edit: &mut Edit<'_>, out: &mut dyn Write) -> Result<()> {
    let bytes = log.bytes();
    let mut patcher = Patcher::new(bytes, out);
    edit(Part::Start, &mut []);
    let first = Some(log.scanner().start.at).filter(|at| at + FLAG_BITS_AT == log.first());
    let later = log.boundaries().iter().filter(|boundary| boundary.has_header).map(|boundary| boundary.at);
    let mut headers = first.into_iter().chain(later).peekable();
    let mut end = 0;
    let all = log.cursor().map(Some).chain([None]);
    for msg in all {
        let at = msg.as_ref().map_or(bytes.len() as u64, |msg| msg.at);
        while let Some(header) = headers.next_if(|header| *header < at) {
            patcher.edit(edit, Part::Unreadable, end..header)?;
            end = header + FLAG_BITS_AT;
            if let Ok((header, _)) = FileHeader::ref_from_prefix(part(bytes, header..end)) {
                patcher.edit_slice(edit, MICROS, header.timestamp.as_bytes())?;
            }
        }
        patcher.edit(edit, Part::Unreadable, end..at)?;
        let Some(msg) = msg else { break };
        end = msg.end();
        let mut copy = EditCopy::new(part(bytes, at..end));
        edit_message(log, &msg, edit, &mut copy);
        patcher.replace(at..end, &copy.bytes)?;
    }
    patcher.finish()
}

fn edit_message(log: &UlogReader, msg: &MessageRef<'_>, edit: &mut Edit<'_>, copy: &mut EditCopy<'_>) {
    const TEXT: Part<'_> = Part::Value { kind: "console", name: "message", is_text: true };
    match msg.message() {
        Some(Message::Info(info) | Message::MultiInfo(MultiInfo { info, .. })) => {
            edit_value("info", &info, edit, copy);
            if info.parse_key().is_some_and(|key| key.name == "boot_time_utc_us") && info.value.len() == 8 {
                copy.edit(edit, MICROS, info.value);
            }
        }
        Some(Message::Parameter(info) | Message::DefaultParameter(DefaultParameter { info, .. })) => {
            edit_value("parameter", &info, edit, copy);
        }
        Some(Message::LoggedString(text)) => {
            copy.edit(edit, TEXT, text.message);
            copy.edit(edit, MICROS, &msg.payload[1..9]);
        }
        Some(Message::TaggedString(text)) => {
            copy.edit(edit, TEXT, text.message);
            copy.edit(edit, MICROS, &msg.payload[3..11]);
        }
        Some(Message::Data(_)) => {
            let topic = msg.row.and_then(|row| log.definitions().topics.get(row.series as usize));
            let layout = topic.and_then(|topic| Some((topic, log.definitions().row_layout(topic).ok()?)));
            let part = match (layout, topic) {
                (Some((topic, layout)), _) => Part::Fields { topic: &topic.name, layout: &layout.record },
                (None, Some(topic)) => Part::Opaque(&topic.name),
                (None, None) => Part::Unreadable,
            };
            copy.edit(edit, part, msg.row_bytes());
        }
        Some(Message::Unknown { payload, .. }) => copy.edit(edit, Part::Unreadable, payload),
        None => copy.edit(edit, Part::Unreadable, msg.payload),
        Some(_) => {}
    }
}

fn edit_value(kind: &'static str, info: &Info<'_>, edit: &mut Edit<'_>, copy: &mut EditCopy<'_>) {
    let key = info.parse_key();
    let ty = key.as_ref().and_then(|key| TypeName::parse(key.ty));
    let is_text = ty.is_none_or(|ty| Basic::parse(ty.base) == Some(Basic::Char));
    let name = key.as_ref().map_or("", |key| key.name);
    copy.edit(edit, Part::Value { kind, name, is_text }, info.value);
}
