//! A row of a log. Bits, raw integers and physical values are read from the bytes of the file
//! without copying.

use std::sync::Arc;

use rovelog_core::internal::wire::U32Le;
use rovelog_core::{Decode, Error, ErrorKind, Fields, Result, Topic};
use zerocopy::FromBytes;

use crate::layout::{Layout, value};
use crate::schema::Channel;

/// The channels of a log and the layout of its rows. Both are needed to read values from rows.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) channels: Vec<Channel>,
    pub(crate) layout: Layout,
    /// Layout of the values that are computed from a row.
    pub(crate) fields: Arc<rovelog_core::internal::layout::Layout>,
}

impl Table {
    /// Returns the number of binary channels.
    pub(crate) fn binary(&self) -> usize {
        self.channels.len() - self.layout.slots.len()
    }
}

/// A row of a log.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    bytes: &'a [u8],
    table: &'a Table,
}

impl<'a> Row<'a> {
    /// Creates a row from `bytes`, which must have exactly the size of a row.
    pub(crate) fn new(bytes: &'a [u8], table: &'a Table) -> Self {
        Self { bytes, table }
    }

    /// Returns the bytes of the row. Words with the bits of binary channels come first, followed by
    /// the analog values.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the 32-bit word with this index as stored. It may include bits that belong to no
    /// channel.
    pub fn word(&self, word: usize) -> Option<u32> {
        let words = self.bytes.get(..4 * self.table.layout.words)?;
        <[U32Le]>::ref_from_bytes(words).ok()?.get(word).map(|word| word.get())
    }

    /// Returns the value of a binary channel. Channel 0 is the least significant bit of the first
    /// word.
    pub fn bit(&self, channel: usize) -> Option<bool> {
        (channel < self.table.binary())
            .then(|| self.word(channel / 32))
            .flatten()
            .map(|w| w >> (channel % 32) & 1 == 1)
    }

    /// Returns the raw integer of an analog channel. Returns `None` if the channel is not analog.
    pub fn raw(&self, channel: usize) -> Option<i64> {
        let slot = self.table.layout.slots.get(channel.checked_sub(self.table.binary())?)?;
        Some(value(&self.bytes[slot.offset..slot.offset + slot.size]))
    }

    /// Returns whether the value of a channel is within its measuring range, according to the
    /// linked range bit. Returns true if the channel has no link.
    pub fn is_valid(&self, channel: usize) -> Option<bool> {
        match self.table.channels.get(channel)?.valid {
            Some(bit) => self.bit(bit),
            None => Some(true),
        }
    }

    /// Returns the physical value of an analog channel in the unit of the channel, correctly
    /// rounded.
    pub fn physical(&self, channel: usize) -> Option<f64> {
        Some(self.table.channels.get(channel)?.physical()?.apply(self.raw(channel)?))
    }

    /// Appends the value of a channel to `out`, in the layout that
    /// [`fields`](crate::schema::fields) returns.
    fn put(&self, channel: usize, out: &mut Vec<u8>) {
        if let Some(bit) = self.bit(channel) {
            return out.push(bit.into());
        }
        let Some(raw) = self.raw(channel) else { return };
        let channel = &self.table.channels[channel];
        if let Some(bit) = channel.valid {
            out.push(self.bit(bit).unwrap_or(true).into());
        }
        match channel.physical() {
            Some(scale) => out.extend_from_slice(&scale.apply(raw).to_le_bytes()),
            None => out.extend_from_slice(&raw.to_le_bytes()),
        }
    }
}

impl Decode for Table {
    fn fields<'a>(&'a self, topic: &Topic, payload: &'a [u8]) -> Result<Fields<'a>> {
        if payload.len() != self.layout.row {
            let (len, name, row) = (payload.len(), &topic.name, self.layout.row);
            let why = format!("the row has {len} bytes, but rows of {name} have {row}");
            return Err(Error::new(crate::wire::INFO.id, ErrorKind::Malformed, None, why));
        }
        let row = Row::new(payload, self);
        let mut bytes = Vec::with_capacity(9 * self.channels.len());
        (0..self.channels.len()).for_each(|channel| row.put(channel, &mut bytes));
        Ok(Fields { layout: &self.fields, bytes: bytes.into() })
    }
}
