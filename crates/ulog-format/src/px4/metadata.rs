//! The definitions of events that a log carries, and messages with their arguments filled in.
//!
//! Sources: the events interface of MAVLink (libevents, `validation/schema.json` and its README on
//! texts); PX4 compresses the JSON with xz and splits it over information messages
//! `metadata_events`.

use std::collections::BTreeMap;
use std::io::Read as _;

use serde::Deserialize;
use thiserror::Error;

use super::template::{self, Piece, Value};
use super::words::EventText;
use crate::UlogReader;
use crate::wire::{Message, MultiInfo};

/// What definitions may take when they are unpacked: a hundred times what PX4 has (160 kB in 2026).
const MAX_JSON: u64 = 16 << 20;

/// What a decoder of xz may ask for, KiB: PX4's files name a window of 64 MiB, of which only what
/// is really unpacked is allocated.
const MAX_XZ_KIB: u32 = 66 << 10;

/// The longest message and the longest text of it that is read; longer ones end there.
pub(super) const MAX_TEXT: usize = 4096;

/// Why definitions could not be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// The parts in the log do not make a valid xz file.
    #[error("the definitions of events cannot be unpacked: {0}")]
    Xz(#[from] std::io::Error),
    /// They unpack to more than definitions ever are.
    #[error("the definitions of events unpack to more than {} MB", MAX_JSON >> 20)]
    TooLarge,
    /// They are no JSON of this kind.
    #[error("the definitions of events cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// They are of another edition.
    #[error("the definitions of events are of version {0}, which is not supported")]
    Version(u32),
}

/// The definitions of all events of a firmware.
#[derive(Debug, Deserialize)]
pub struct EventDefinitions {
    version: u32,
    #[serde(default)]
    components: BTreeMap<u32, Component>,
}

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
    #[serde(default)]
    events: BTreeMap<u32, Definition>,
}

#[derive(Debug, Deserialize)]
struct Definition {
    name: String,
    message: String,
    #[serde(default)]
    arguments: Vec<Argument>,
}

#[derive(Debug, Deserialize)]
struct Argument {
    #[serde(rename = "type")]
    ty: String,
}

#[derive(Debug, Deserialize)]
struct Enumeration {
    #[serde(rename = "type")]
    ty: String,
    #[serde(default)]
    is_bitfield: bool,
    separator: Option<String>,
    entries: BTreeMap<String, Entry>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    description: String,
}

/// The definition of one event.
#[derive(Debug)]
pub struct EventDefinition<'a> {
    all: &'a EventDefinitions,
    component: &'a Component,
    group: &'a str,
    event: &'a Definition,
    message: Vec<Piece<'a>>,
}

impl EventDefinitions {
    /// Returns the definitions that a log carries; `None` where it carries none.
    ///
    /// # Errors
    /// Returns an error if what it carries cannot be read, for example because parts of it were
    /// lost.
    pub fn of(reader: &UlogReader) -> Result<Option<Self>, MetadataError> {
        let mut lists: Vec<Vec<u8>> = Vec::new();
        for (_, message, _) in reader.described() {
            let Message::MultiInfo(MultiInfo { is_continued, info: part }) = message else { continue };
            if part.parse_key().is_none_or(|key| key.name != "metadata_events") {
                continue;
            }
            match lists.last_mut() {
                Some(list) if is_continued != 0 => list.extend(part.value),
                _ => lists.push(part.value.to_vec()),
            }
        }
        // Several lists are copies of one firmware's definitions: the first valid one will do.
        let mut failure = None;
        for list in lists {
            match Self::from_xz(&list) {
                Ok(definitions) => return Ok(Some(definitions)),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(None), Err)
    }

    /// Definitions as a firmware's build makes them: JSON, packed with xz.
    ///
    /// # Errors
    /// Returns an error if the bytes are no xz file, unpack to more than 16 MB, or hold no
    /// definitions.
    pub fn from_xz(bytes: &[u8]) -> Result<Self, MetadataError> {
        let mut json = Vec::new();
        let xz = lzma_rust2::XzReader::new_mem_limit(bytes, true, MAX_XZ_KIB);
        xz.take(MAX_JSON + 1).read_to_end(&mut json)?;
        if json.len() as u64 > MAX_JSON {
            return Err(MetadataError::TooLarge);
        }
        Self::from_json(&json)
    }

    /// Definitions as JSON.
    ///
    /// # Errors
    /// Returns an error if the text is no JSON of this kind.
    pub fn from_json(json: &[u8]) -> Result<Self, MetadataError> {
        let definitions: Self = serde_json::from_slice(json)?;
        // 1 and 2 differ in what this crate does not read.
        if !(1..=2).contains(&definitions.version) {
            return Err(MetadataError::Version(definitions.version));
        }
        Ok(definitions)
    }

    /// Returns the definition of the event with this id.
    pub fn get(&self, id: u32) -> Option<EventDefinition<'_>> {
        let component = self.components.get(&(id >> 24))?;
        let (group, event) = component
            .event_groups
            .iter()
            .find_map(|(name, group)| Some((name, group.events.get(&(id & 0x00ff_ffff))?)))?;
        let message = template::parse(template::head(&event.message, MAX_TEXT));
        Some(EventDefinition { all: self, component, group, event, message })
    }

    /// Returns the enumeration of an argument: `name` of the component's own namespace, or
    /// `namespace::name`.
    fn enumeration(&self, name: &str, here: &Component) -> Option<&Enumeration> {
        let (namespace, name) = name.rsplit_once("::").unwrap_or((&here.namespace, name));
        let of = |component: &'_ &Component| component.namespace == namespace;
        self.components.values().filter(of).find_map(|component| component.enums.get(name))
    }
}

impl EventDefinition<'_> {
    /// Returns the event in words, with the arguments that are in `bytes`.
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
                    // An argument that the event does not have stays as it is in the definition.
                    None => message.push_str(source),
                },
            }
            if message.len() > MAX_TEXT {
                message.truncate(template::head(&message, MAX_TEXT).len());
                message.push('…');
                break;
            }
        }
        EventText {
            name: format!("{}::{}", self.component.namespace, self.event.name),
            group: self.group.to_owned(),
            message: message.trim().to_owned(),
        }
    }

    /// Returns the arguments in order, up to the first that cannot be read.
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
    /// The words for `value`: of each bit in a field of bits, else of the value.
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
