//! Information and parameters: what a log says about the vehicle next to its data.

use std::collections::BTreeMap;

use rovelog_core::layout::TextDecoding;
use rovelog_core::{Timestamp, Value};

use crate::layout::Formats;
use crate::row::{info_value, nested_value};
use crate::schema::Basic;
use crate::wire::{DefaultParameter, Info, Message, MultiInfo};

/// The parameters of a log. Values are `int32_t` or `float`; other types are kept with a note.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Parameters {
    /// Values when the data section started.
    pub initial: BTreeMap<String, Value>,
    /// Set during the log, in file order.
    pub changed: Vec<ParameterChange>,
    /// System-wide defaults, where they differ from the value. Absent: the default equals the
    /// value.
    pub system_defaults: BTreeMap<String, Value>,
    /// Defaults of the current setup (airframe), where they differ from the value.
    pub setup_defaults: BTreeMap<String, Value>,
}

/// A parameter set during the log.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ParameterChange {
    /// The log time at its place.
    pub time: Option<Timestamp>,
    /// The parameter.
    pub name: String,
    /// Its new value.
    pub value: Value,
    /// The offset of the message.
    pub offset: u64,
}

/// Where in a log a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Definitions,
    /// With the log time at its place.
    Data(Option<Timestamp>),
}

fn entry(part: Info<'_>, decoding: &TextDecoding) -> Option<(String, Value)> {
    let key = part.parse_key()?;
    Some((key.name.to_owned(), info_value(key.ty, part.value, decoding)))
}

/// "Can also be a custom type": then its format says what the bytes are.
fn info(part: Info<'_>, formats: &Formats) -> Option<(String, Value)> {
    let (name, value) = entry(part, &formats.decoding)?;
    let custom = part.parse_key()?.type_name().filter(|ty| Basic::parse(ty.base).is_none());
    let value = match custom.and_then(|ty| Some((ty.len, formats.known(ty.base)?.ok()?))) {
        Some((len, layout)) => nested_value(&layout, len, part.value).unwrap_or(value),
        None => value,
    };
    Some((name, value))
}

impl Parameters {
    /// Returns the active values at `time`: the initial ones with all changes up to it.
    pub fn at(&self, time: Timestamp) -> BTreeMap<String, Value> {
        let mut values = self.initial.clone();
        let until = self.changed.iter().take_while(|c| c.time.is_none_or(|t| t.nanos <= time.nanos));
        values.extend(until.map(|change| (change.name.clone(), change.value.clone())));
        values
    }

    /// Takes a 'P' or 'Q' message; in file order.
    pub(crate) fn take(&mut self, message: &Message<'_>, offset: u64, section: Section) {
        match *message {
            Message::Parameter(part) => {
                let Some((name, value)) = entry(part, &TextDecoding::default()) else { return };
                match section {
                    Section::Definitions => drop(self.initial.insert(name, value)),
                    Section::Data(time) => self.changed.push(ParameterChange { time, name, value, offset }),
                }
            }
            Message::DefaultParameter(DefaultParameter { default_types: types, info }) => {
                let Some((name, value)) = entry(info, &TextDecoding::default()) else { return };
                if types & 1 != 0 {
                    self.system_defaults.insert(name.clone(), value.clone());
                }
                if types & 2 != 0 {
                    self.setup_defaults.insert(name, value);
                }
            }
            _ => {}
        }
    }
}

/// Information messages: the last value of each key (D26).
pub(crate) fn infos<'a>(
    messages: impl Iterator<Item = Message<'a>>,
    formats: &Formats,
) -> BTreeMap<String, Value> {
    let parts = messages.filter_map(|message| match message {
        Message::Info(part) => info(part, formats),
        _ => None,
    });
    parts.collect()
}

/// Information messages with several values: key -> lists -> parts, in file order (D26).
pub(crate) fn multi_infos<'a>(
    messages: impl Iterator<Item = Message<'a>>,
    formats: &Formats,
) -> BTreeMap<String, Vec<Vec<Value>>> {
    let mut infos: BTreeMap<String, Vec<Vec<Value>>> = BTreeMap::new();
    for message in messages {
        let Message::MultiInfo(MultiInfo { is_continued, info: part }) = message else { continue };
        let Some((name, value)) = info(part, formats) else { continue };
        let lists = infos.entry(name).or_default();
        match lists.last_mut() {
            Some(list) if is_continued != 0 => list.push(value),
            _ => lists.push(vec![value]),
        }
    }
    infos
}
