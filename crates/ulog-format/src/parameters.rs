//! Information messages and parameters, which describe the vehicle and its settings.

use std::collections::BTreeMap;

use rovelog_core::internal::layout::TextDecoding;
use rovelog_core::{Timestamp, Value};

use crate::layout::Formats;
use crate::row::{info_value, nested_value};
use crate::schema::Basic;
use crate::wire::{DefaultParameter, Info, Message, MultiInfo};

/// Parameters of a log, with their changes and defaults. The specification allows the types
/// `int32_t` and `float`. Parameters of other types are also returned, and a diagnostic is reported
/// for them.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Parameters {
    /// Values of the parameters at the start of the data section, by name.
    pub initial: BTreeMap<String, Value>,
    /// Changes of parameters in the data section, in file order.
    pub changed: Vec<ParameterChange>,
    /// System-wide defaults of the parameters, by name. PX4 logs a default only if it differs from
    /// the initial value.
    pub system_defaults: BTreeMap<String, Value>,
    /// Parameter defaults of the current setup (airframe), by name. PX4 logs a default only if it
    /// differs from the initial value.
    pub setup_defaults: BTreeMap<String, Value>,
}

/// A change of a parameter during the log.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ParameterChange {
    /// Log time at the message with the change. The message itself does not contain a time.
    pub time: Option<Timestamp>,
    /// Name of the parameter.
    pub name: String,
    /// New value of the parameter.
    pub value: Value,
    /// Offset in the file of the message with the change.
    pub offset: u64,
}

/// Section of a log in which a message was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Definitions,
    /// The data section, with the log time at the message.
    Data(Option<Timestamp>),
}

/// A message with information, a parameter or a default.
pub(crate) struct Description<'a> {
    /// Offset of the message in the file.
    pub(crate) at: u64,
    pub(crate) message: Message<'a>,
    pub(crate) section: Section,
}

/// Returns the name and the value in an information or parameter message. If the type of the value
/// is not a basic type, the value is returned as bytes.
fn entry(part: Info<'_>, decoding: &TextDecoding) -> Option<(String, Value)> {
    let key = part.parse_key()?;
    Some((key.name.to_owned(), info_value(key.ty, part.value, decoding)))
}

/// Returns the name and the value in an information message.
///
/// According to the specification, the type of the value "can also be a custom type". Such a value
/// is decoded with the format of that name.
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
    /// Returns the values of all parameters at `time`, including the changes up to this time.
    pub fn at(&self, time: Timestamp) -> BTreeMap<String, Value> {
        let mut values = self.initial.clone();
        let until = self.changed.iter().take_while(|c| c.time.is_none_or(|t| t.nanos <= time.nanos));
        values.extend(until.map(|change| (change.name.clone(), change.value.clone())));
        values
    }

    /// Adds a 'P' (parameter) or 'Q' (default) message. Messages must be added in file order.
    pub(crate) fn add(&mut self, Description { at: offset, message, section }: Description<'_>) {
        match message {
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

/// Returns the values of information messages by name. If a name occurs several times, the last
/// value is returned (rule D26 of docs/formats/ulog.md).
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

/// Returns the values of multi information messages (rule D26 of docs/formats/ulog.md).
///
/// The result maps each name to its lists, and each list contains its values in file order.
/// Specification: "Parsers can store all information multi messages as a 2D list."
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
