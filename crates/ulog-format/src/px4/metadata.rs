//! Definitions of events, and messages made from them.
//!
//! The MAVLink events interface describes the format of the definitions (libevents,
//! `validation/schema.json` and the section on texts in its README). PX4 compresses the JSON with
//! xz and divides it into multi information messages with the name `metadata_events`.
//!
//! # Example
//!
//! The definition of an event has the message `Battery {1} at {2:.1} V` and the arguments `uint8_t`
//! and `float`. For the argument bytes `02 00 00 78 41`, the message is `Battery 2 at 15.5 V`.

use std::collections::BTreeMap;
use std::io::Read as _;

use serde::Deserialize;
use thiserror::Error;

use super::template::{self, Piece, Value};
use super::words::EventText;
use crate::UlogReader;
use crate::parameters::Description;
use crate::wire::{Message, MultiInfo};

/// Maximum size in bytes of the decompressed event definitions. The definitions of PX4 had 160 kB
/// in 2026.
const MAX_JSON: u64 = 16 << 20;

/// Maximum memory of the xz decoder in KiB. PX4's files declare a window of 64 MiB, but the decoder
/// allocates only as much memory as the decompressed data needs.
const MAX_XZ_KIB: u32 = 66 << 10;

/// Maximum size in bytes of an event message, and of each text inserted into it. Longer texts are
/// truncated.
pub(super) const MAX_TEXT: usize = 4096;

/// Reason why the event definitions in a log could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// The event definitions in the log are not a valid xz file.
    #[error("the event definitions in the log cannot be decompressed: {0}")]
    Xz(#[from] std::io::Error),
    /// The decompressed event definitions exceed the size limit.
    #[error("the event definitions in the log decompress to more than {} MB", MAX_JSON >> 20)]
    TooLarge,
    /// The event definitions are not valid JSON with the expected structure.
    #[error("the event definitions in the log cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// This version of the definitions is not supported.
    #[error("the event definitions in the log have version {0}, which is not supported")]
    Version(u32),
}

/// The definitions of all events of a firmware.
#[derive(Debug, Deserialize)]
pub struct EventDefinitions {
    version: u32,
    /// Components by number, which is the upper 8 bits of their event ids.
    #[serde(default)]
    components: BTreeMap<u32, Component>,
}

/// Definitions of a component, which is a program that sends events, such as the autopilot.
#[derive(Debug, Deserialize)]
struct Component {
    namespace: String,
    #[serde(default)]
    enums: BTreeMap<String, Enumeration>,
    #[serde(default)]
    event_groups: BTreeMap<String, Group>,
}

#[derive(Debug, Deserialize)]
struct Group {
    /// Definitions of events by the lower 24 bits of the event ids.
    #[serde(default)]
    events: BTreeMap<u32, Definition>,
}

#[derive(Debug, Deserialize)]
struct Definition {
    name: String,
    /// Message with placeholders for the event's arguments.
    message: String,
    #[serde(default)]
    arguments: Vec<Argument>,
}

#[derive(Debug, Deserialize)]
struct Argument {
    /// Type of the argument, which is the name of a basic type or of an enumeration.
    #[serde(rename = "type")]
    ty: String,
}

#[derive(Debug, Deserialize)]
struct Enumeration {
    /// Name of the basic type in which the value is stored.
    #[serde(rename = "type")]
    ty: String,
    /// True if each bit of the stored number has its own meaning.
    #[serde(default)]
    is_bitfield: bool,
    /// Text between the descriptions of bits that are set, for a bit field.
    separator: Option<String>,
    /// Descriptions of the values, by the value as a decimal number.
    entries: BTreeMap<String, Entry>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    description: String,
}

/// The definition of an event, with its message already parsed.
#[derive(Debug)]
pub struct EventDefinition<'a> {
    all: &'a EventDefinitions,
    component: &'a Component,
    /// Name of the group to which the event belongs.
    group: &'a str,
    event: &'a Definition,
    /// The message, divided into literal texts and placeholders.
    message: Vec<Piece<'a>>,
}

impl EventDefinitions {
    /// Returns the event definitions in a log, or `None` if the log has none.
    ///
    /// # Errors
    /// Returns an error if the definitions cannot be read, for example because one of their
    /// messages is lost.
    pub fn of(reader: &UlogReader) -> Result<Option<Self>, MetadataError> {
        let mut lists: Vec<Vec<u8>> = Vec::new();
        for Description { message, .. } in reader.descriptions() {
            let Message::MultiInfo(MultiInfo { is_continued, info: part }) = message else { continue };
            if part.parse_key().is_none_or(|key| key.name != "metadata_events") {
                continue;
            }
            match lists.last_mut() {
                Some(list) if is_continued != 0 => list.extend(part.value),
                _ => lists.push(part.value.to_vec()),
            }
        }
        // A log can contain several lists of `metadata_events` messages. They are copies of the
        // same definitions, so the first valid list is used.
        let mut failure = None;
        for list in lists {
            match Self::from_xz(&list) {
                Ok(definitions) => return Ok(Some(definitions)),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(None), Err)
    }

    /// Reads event definitions from JSON that is compressed with xz. The build of a PX4 firmware
    /// creates such files.
    ///
    /// # Errors
    /// Returns an error if the bytes are not an xz file, if they decompress to more than 16 MB, or
    /// if they do not contain valid definitions.
    pub fn from_xz(bytes: &[u8]) -> Result<Self, MetadataError> {
        let mut json = Vec::new();
        let xz = lzma_rust2::XzReader::new_mem_limit(bytes, true, MAX_XZ_KIB);
        // Up to one byte more than the limit is read. If this byte exists, the limit is exceeded.
        xz.take(MAX_JSON + 1).read_to_end(&mut json)?;
        if json.len() as u64 > MAX_JSON {
            return Err(MetadataError::TooLarge);
        }
        Self::from_json(&json)
    }

    /// Reads event definitions from JSON.
    ///
    /// # Errors
    /// Returns an error if the JSON is invalid, or if its version is not supported.
    pub fn from_json(json: &[u8]) -> Result<Self, MetadataError> {
        let definitions: Self = serde_json::from_slice(json)?;
        // Versions 1 and 2 of the format differ only in parts that this crate does not read.
        if !(1..=2).contains(&definitions.version) {
            return Err(MetadataError::Version(definitions.version));
        }
        Ok(definitions)
    }

    /// Returns the definition of the event with the given id, or `None` if the event is not
    /// defined.
    pub fn get(&self, id: u32) -> Option<EventDefinition<'_>> {
        let component = self.components.get(&(id >> 24))?;
        let (group, event) = component
            .event_groups
            .iter()
            .find_map(|(name, group)| Some((name, group.events.get(&(id & 0x00ff_ffff))?)))?;
        let message = template::parse(template::head(&event.message, MAX_TEXT));
        Some(EventDefinition { all: self, component, group, event, message })
    }

    /// Returns the enumeration that an argument refers to. `name` is either `namespace::name`, or
    /// the name of an enumeration in the component `here`.
    fn enumeration(&self, name: &str, here: &Component) -> Option<&Enumeration> {
        let (namespace, name) = name.rsplit_once("::").unwrap_or((&here.namespace, name));
        let of = |component: &'_ &Component| component.namespace == namespace;
        self.components.values().filter(of).find_map(|component| component.enums.get(name))
    }
}

impl EventDefinition<'_> {
    /// Returns the text of an event. `bytes` contains the arguments of the event, without gaps and
    /// in little-endian order.
    pub fn text(&self, bytes: &[u8]) -> EventText {
        let values = self.values(bytes);
        let mut message = String::new();
        for piece in &self.message {
            match *piece {
                Piece::Text(text) => message.push_str(text),
                Piece::Argument { number, decimals, unit, source } => match values.get(number) {
                    Some((value, enumeration)) => {
                        match enumeration {
                            Some(enumeration) => enumeration.push(*value, &mut message),
                            None => value.push(decimals, &mut message),
                        }
                        if let Some(unit) = unit {
                            message.push(' ');
                            message.push_str(unit);
                        }
                    }
                    // If the event does not have this argument, the placeholder itself is shown.
                    None => message.push_str(source),
                },
            }
            if message.len() > MAX_TEXT {
                message.truncate(template::head(&message, MAX_TEXT).len());
                message.push('…');
                break;
            }
        }
        let name = format!("{}::{}", self.component.namespace, self.event.name);
        EventText { name, group: self.group.to_owned(), message: message.trim().to_owned() }
    }

    /// Decodes the arguments of an event, up to the first argument that cannot be decoded.
    fn values(&self, mut bytes: &[u8]) -> Vec<(Value, Option<&Enumeration>)> {
        let value = |argument: &Argument| {
            let enumeration = self.all.enumeration(&argument.ty, self.component);
            let ty = enumeration.map_or(&argument.ty, |enumeration| &enumeration.ty);
            let (value, rest) = Value::split(ty, bytes)?;
            bytes = rest;
            Some((value, enumeration))
        };
        self.event.arguments.iter().map_while(value).collect()
    }
}

impl Enumeration {
    /// Appends the description of `value` to `text`. If the enumeration is a bit field, appends the
    /// description of each bit that is set.
    fn push(&self, value: Value, text: &mut String) {
        let unknown = |text: &mut String| {
            text.push_str("(unknown: ");
            value.push(None, text);
            text.push(')');
        };
        let entry = |number: &str| self.entries.get(number).map(|entry| entry.description.as_str());
        let Some(bits) = value.bits().filter(|_| self.is_bitfield) else {
            let mut number = String::new();
            value.push(None, &mut number);
            return match entry(&number) {
                Some(words) => text.push_str(template::head(words, MAX_TEXT)),
                None => unknown(text),
            };
        };
        let mut first = true;
        for bit in (0..64).map(|i| 1_u64 << i).filter(|bit| bits & bit != 0) {
            if !std::mem::take(&mut first) {
                text.push_str(template::head(self.separator.as_deref().unwrap_or("|"), MAX_TEXT));
            }
            match entry(&bit.to_string()) {
                Some(words) => text.push_str(template::head(words, MAX_TEXT)),
                None => unknown(text),
            }
        }
    }
}
