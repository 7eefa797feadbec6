//! The channel table: names, units, scales and links. The same in all versions.

use std::ops::Range;
use std::sync::Arc;

use rovelog_core::names::UniqueNames;
use rovelog_core::text::up_to_nul;
use rovelog_core::{Field, FieldType, Rule, Scalar, Schema};

use crate::diagnostics as rules;
use crate::unit::{Scale, Unit, raw_unit};
use crate::wire::{CHANNEL_LEN, ChannelRecord, Header, LeadIn, NO_LINK, Version};

/// A channel of a log.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Channel {
    /// The name. Unique in the log, because a second `V1` becomes `V1#2`.
    pub name: Arc<str>,
    /// The unit of physical values.
    pub unit: Unit,
    /// The exponent of ten: physical = raw * 10^scale. 0 for binary channels.
    pub scale: i32,
    /// Size of a raw value in bytes; 0 for binary channels.
    pub size: usize,
    /// Index of the binary channel whose bit is 1 if a value is in range.
    pub valid: Option<usize>,
    /// True for a binary channel.
    pub is_binary: bool,
}

impl Channel {
    /// Returns the scale for physical values; `None` for binary channels and exponents beyond 30.
    pub fn physical(&self) -> Option<Scale> {
        if self.is_binary { None } else { Scale::new(self.scale) }
    }

    /// Returns the unit of raw values as the logger's CSV writes it, for example `10nV`.
    pub fn raw_unit(&self) -> String {
        raw_unit(self.unit, self.scale)
    }

    /// Returns the unit of physical values, for example `V`, or `unit:77` for an unknown code.
    pub fn unit_text(&self) -> String {
        match self.unit {
            Unit::Other(_) => self.unit.to_string(),
            unit => unit.symbol().to_owned(),
        }
    }
}

/// Diagnostics to report, each with its rule, byte range and message.
pub(crate) type Notes = Vec<(&'static Rule, Range<u64>, String)>;

/// Returns whether a known writer can have written a channel table: names are printable, units are
/// known, and exponents, links and sizes are in range.
pub(crate) fn is_plausible(channels: &[ChannelRecord], binary: usize, version: &Version) -> bool {
    channels.iter().enumerate().all(|(i, channel)| {
        let name = is_printable(&channel.name);
        let unit = matches!(channel.unit.get(), 0..=10 | 0xFFFF_FFFF);
        let scale = channel.scale.get().unsigned_abs() <= 24;
        let link = link(channel, channels.len(), version).is_ok();
        let size = i < binary || (1..=8).contains(&channel.data_size.get());
        name && unit && scale && link && size
    })
}

fn is_printable(name: &[u8; 16]) -> bool {
    let name = up_to_nul(name);
    !name.is_empty() && name.iter().all(|byte| (0x20..0x7f).contains(byte))
}

/// Returns the index of the linked channel. Returns the stored link as an error if it refers to no
/// channel of the table.
fn link(channel: &ChannelRecord, channels: usize, version: &Version) -> Result<Option<usize>, u16> {
    let raw = channel.valid_link.get();
    if raw == NO_LINK {
        return Ok(None);
    }
    let index = raw.checked_sub(version.link_base).map(usize::from);
    index.filter(|index| *index < channels).map(Some).ok_or(raw)
}

/// Returns the channels of a header, and adds diagnostics about them to `notes`. `at` is the offset
/// of the channel table.
pub(crate) fn channels(header: &Header, version: &Version, at: u64, notes: &mut Notes) -> Vec<Channel> {
    let binary = usize::from(header.lead_in.binary_count.get());
    let mut names = UniqueNames::default();
    let mut list = Vec::with_capacity(header.channels.len());
    for (i, record) in header.channels.iter().enumerate() {
        let range = at + i as u64 * CHANNEL_LEN..at + (i as u64 + 1) * CHANNEL_LEN;
        let mut note = |rule, text: String| notes.push((rule, range.clone(), text));
        let mut name = record.name_text();
        if !is_printable(&record.name) {
            note(&rules::NAME_CORRUPT, format!("channel {i} is called {name:?}"));
        }
        if name == "BME280_preas" {
            note(&rules::NAME_ALIAS, format!("channel {i}: BME280_preas is BME280_press"));
            "BME280_press".clone_into(&mut name);
        }
        let unique = names.give(&name);
        if unique != name {
            note(
                &rules::NAME_REPEATED,
                format!("channel {i}: name {name:?} is used again, here as {unique:?}"),
            );
            name = unique;
        }
        let is_binary = i < binary;
        let unit = Unit::of(record.unit.get(), version.unit_zero_is_unitless);
        if let Unit::Other(code) = unit {
            note(&rules::UNKNOWN_UNIT, format!("channel {i} ({name}) has unit {code}"));
        } else if unit.is_binary() != is_binary {
            let kind = if is_binary { "binary" } else { "analog" };
            note(
                &rules::KIND_MISMATCH,
                format!("channel {i} ({name}) is among the {kind} channels, but has the unit {unit}"),
            );
        }
        // Messages number channels as links do, from 0 or from 1.
        let number = |index: usize| index + usize::from(version.link_base);
        let subject = format!("channel {} ({name})", number(i));
        let valid = match link(record, header.channels.len(), version) {
            Ok(Some(target)) if target >= binary => {
                note(
                    &rules::BAD_LINK,
                    format!("{subject} links to channel {}, which is not a binary channel", number(target)),
                );
                None
            }
            Err(raw) => {
                note(&rules::BAD_LINK, format!("{subject} links to channel {raw}, which does not exist"));
                None
            }
            Ok(target) => target,
        };
        let scale = if is_binary { 0 } else { record.scale.get() };
        if Scale::new(scale).is_none() {
            note(&rules::SCALE_REFUSED, format!("channel {i} ({name}) has scale 10^{scale}"));
        }
        let size = if is_binary { 0 } else { usize::from(record.data_size.get()) };
        list.push(Channel { name: name.into(), unit, scale, size, valid, is_binary });
    }
    list
}

/// Returns whether these are the channels of an ambient file, which has only sensor channels and
/// blocks of one row.
pub(crate) fn is_ambient(lead_in: &LeadIn, channels: &[Channel]) -> bool {
    let sensor =
        |channel: &Channel| channel.name.starts_with("TSL4531_") || channel.name.starts_with("BME280_");
    let is_slow = lead_in.binary_count.get() == 0 && lead_in.data_block_size.get() == 1;
    is_slow && !channels.is_empty() && channels.iter().all(sensor)
}

/// Returns the fields of a row: bits and physical values. A channel with an unsupported scale has
/// raw values.
pub(crate) fn schema(channels: &[Channel], name: &str) -> Schema {
    let field = |channel: &Channel| {
        let raw = format!("int{}", 8 * channel.size);
        match channel.physical() {
            _ if channel.is_binary => {
                Field::new(Arc::clone(&channel.name), FieldType::Scalar(Scalar::Bool), "bit")
            }
            Some(_) => {
                let ty = FieldType::Scalar(Scalar::Float64);
                let source = format!("{raw} * 10^{}", channel.scale);
                let field = Field::new(Arc::clone(&channel.name), ty, source);
                let unit = channel.unit_text();
                if unit.is_empty() { field } else { field.with_unit(unit) }
            }
            None => Field::new(Arc::clone(&channel.name), FieldType::Scalar(Scalar::Int64), raw)
                .with_unit(channel.raw_unit()),
        }
    };
    Schema { name: name.to_owned(), fields: channels.iter().map(field).collect() }
}
