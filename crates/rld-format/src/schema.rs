//! The channel table of the header: names, units, scales and links of channels. Its layout is the
//! same in all versions.

use std::ops::Range;
use std::sync::Arc;

use rovelog_core::internal::layout::{Element, Layout, Len};
use rovelog_core::internal::names::UniqueNames;
use rovelog_core::internal::text::up_to_nul;
use rovelog_core::{Rule, Scalar};

use crate::diagnostics as rules;
use crate::unit::{Scale, Unit, raw_unit};
use crate::wire::{CHANNEL_LEN, ChannelRecord, Header, LeadIn, NO_LINK, Version};

/// A channel of a log.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Channel {
    /// Name of the channel. Names are unique within a log: a second channel `V1` is renamed to
    /// `V1#2`.
    pub name: Arc<str>,
    /// Unit of the channel's physical values.
    pub unit: Unit,
    /// Exponent of ten of the channel: a physical value is the raw value times 10^scale. 0 for
    /// binary channels.
    pub scale: i32,
    /// Size of a raw value in bytes. 0 for binary channels.
    pub size: usize,
    /// Index of the binary channel that states whether the value of this channel is within its
    /// measuring range. `None` if there is no such channel.
    pub valid: Option<usize>,
    /// True if the channel is binary.
    pub is_binary: bool,
}

impl Channel {
    /// Returns the scale that converts raw to physical values. Returns `None` for binary channels,
    /// and for exponents beyond 30.
    pub fn physical(&self) -> Option<Scale> {
        if self.is_binary { None } else { Scale::new(self.scale) }
    }

    /// Returns the unit of the channel's raw values in the notation of the logger's CSV, for
    /// example `10nV`.
    pub fn raw_unit(&self) -> String {
        raw_unit(self.unit, self.scale)
    }

    /// Returns the unit of the channel's physical values, for example `V`, or `unit:77` for an
    /// unknown unit code.
    pub fn unit_text(&self) -> String {
        match self.unit {
            Unit::Other(_) => self.unit.to_string(),
            unit => unit.symbol().to_owned(),
        }
    }
}

/// A diagnostic to report, with its rule, byte range and message.
pub(crate) type Note = (&'static Rule, Range<u64>, String);

/// Diagnostics to report.
pub(crate) type Notes = Vec<Note>;

/// Returns whether a known writer could have written this channel table. Names must be printable
/// and units known. Exponents, links and sizes must have values that loggers use.
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

/// Returns the index of the channel that `channel` links to, or `None` if it has no link. If the
/// link refers to no channel of the table, returns the stored number as an error.
fn link(channel: &ChannelRecord, channels: usize, version: &Version) -> Result<Option<usize>, u16> {
    let raw = channel.valid_link.get();
    if raw == NO_LINK {
        return Ok(None);
    }
    let index = raw.checked_sub(version.link_base).map(usize::from);
    index.filter(|index| *index < channels).map(Some).ok_or(raw)
}

/// Returns the channels of a header, and appends diagnostics about them to `notes`. `at` is the
/// offset of the channel table.
pub(crate) fn channels(header: &Header, version: &Version, at: u64, notes: &mut Notes) -> Vec<Channel> {
    let binary = usize::from(header.lead_in.binary_count.get());
    let mut names = UniqueNames::default();
    let mut list = Vec::with_capacity(header.channels.len());
    for (i, record) in header.channels.iter().enumerate() {
        let range = at + i as u64 * CHANNEL_LEN..at + (i as u64 + 1) * CHANNEL_LEN;
        let mut note = |rule, text: String| notes.push((rule, range.clone(), text));
        // Depending on the version, links in the file count channels from 0 or from 1. Diagnostics
        // use the same numbers.
        let number = |index: usize| index + usize::from(version.link_base);
        let name = unique_name(record, number(i), &mut names, &mut note);
        let subject = format!("channel {} ({name})", number(i));
        let is_binary = i < binary;
        let unit = Unit::of(record.unit.get(), version.unit_zero_is_unitless);
        if let Unit::Other(code) = unit {
            note(
                &rules::UNKNOWN_UNIT,
                format!("{subject} has the unknown unit code {code}, which is shown instead of a unit"),
            );
        } else if unit.is_binary() != is_binary {
            let kind = if is_binary { "binary" } else { "analog" };
            let text = format!(
                "{subject} has the unit {unit}, but is read as {kind}, because it is among the {kind} \
                 channels"
            );
            note(&rules::KIND_MISMATCH, text);
        }
        let (valid, wrong) = match link(record, header.channels.len(), version) {
            Ok(Some(target)) if target >= binary => {
                (None, Some(format!("{}, which is not binary", number(target))))
            }
            Ok(target) => (target, None),
            Err(raw) => (None, Some(format!("{raw}, which does not exist"))),
        };
        if let Some(wrong) = wrong {
            let text = format!("{subject} links to channel {wrong}, so all its values count as valid");
            note(&rules::BAD_LINK, text);
        }
        let scale = if is_binary { 0 } else { record.scale.get() };
        if Scale::new(scale).is_none() {
            let text = format!(
                "{subject} has the unsupported scale 10^{scale}, so its values are returned as unscaled \
                 integers"
            );
            note(&rules::SCALE_REFUSED, text);
        }
        let size = if is_binary { 0 } else { usize::from(record.data_size.get()) };
        list.push(Channel { name: name.into(), unit, scale, size, valid, is_binary });
    }
    list
}

/// Returns the name of a channel, which is printable and differs from the names of all channels
/// before it. `note` gets a diagnostic for each change.
fn unique_name(
    record: &ChannelRecord,
    number: usize,
    names: &mut UniqueNames,
    note: &mut impl FnMut(&'static Rule, String),
) -> String {
    let mut name = record.name_text();
    if !is_printable(&record.name) {
        let text = format!(
            "the name {name:?} of channel {number} had bytes that are not printable ASCII, which were \
             replaced"
        );
        note(&rules::NAME_CORRUPT, text);
    }
    if name == "BME280_preas" {
        note(
            &rules::NAME_ALIAS,
            format!("the misspelled name BME280_preas of channel {number} is corrected to BME280_press"),
        );
        "BME280_press".clone_into(&mut name);
    }
    let unique = names.assign(&name);
    if unique != name {
        let text = format!(
            "channel {number} has the same name as an earlier channel, {name:?}, and is renamed to \
             {unique:?}"
        );
        note(&rules::NAME_REPEATED, text);
    }
    unique
}

/// Returns whether these are the channels of an ambient file. Such a file has only sensor channels,
/// and each of its blocks has one row.
pub(crate) fn is_ambient(lead_in: &LeadIn, channels: &[Channel]) -> bool {
    let sensor =
        |channel: &Channel| channel.name.starts_with("TSL4531_") || channel.name.starts_with("BME280_");
    let is_slow = lead_in.binary_count.get() == 0 && lead_in.data_block_size.get() == 1;
    is_slow && !channels.is_empty() && channels.iter().all(sensor)
}

/// Returns the layout of the values computed from a row: bits and physical values. A channel with an
/// unsupported scale has raw values. A channel with a link has no value where its bit is 0.
pub(crate) fn fields(channels: &[Channel], name: &str) -> Layout {
    let mut builder = Layout::builder(name);
    for channel in channels {
        let raw = format!("int{}", 8 * channel.size);
        let number = |scalar| match channel.valid {
            Some(_) => Element::Optional(scalar),
            None => Element::Scalar(scalar),
        };
        let (element, source, unit) = match channel.physical() {
            _ if channel.is_binary => (Element::Scalar(Scalar::Bool), "bit".to_owned(), None),
            Some(_) => {
                let unit = Some(channel.unit_text()).filter(|unit| !unit.is_empty());
                (number(Scalar::Float64), format!("{raw} * 10^{}", channel.scale), unit)
            }
            None => (number(Scalar::Int64), raw, Some(channel.raw_unit())),
        };
        builder.field(Arc::clone(&channel.name), element, Len::One, source);
        if let Some(unit) = unit {
            builder.unit(unit);
        }
    }
    builder.finish()
}
