//! A row: its bits, raw integers and physical values, read without copying.

use std::sync::Arc;

use rovelog_core::wire::U32Le;
use rovelog_core::{Decode, Error, ErrorKind, Result, Schema, Topic, Value};
use zerocopy::FromBytes;

use crate::layout::{Layout, value};
use crate::schema::Channel;

/// The channels and their layout, which are needed to read values from rows.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) channels: Vec<Channel>,
    pub(crate) layout: Layout,
    pub(crate) schema: Arc<Schema>,
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
    /// Creates a row from its bytes, which must have the length of a row.
    pub(crate) fn new(bytes: &'a [u8], table: &'a Table) -> Self {
        Self { bytes, table }
    }

    /// Returns the bytes of the row: words of bits, then analog values.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns a word of 32 bits as stored, including bits that belong to no channel.
    pub fn word(&self, word: usize) -> Option<u32> {
        let words = self.bytes.get(..4 * self.table.layout.words)?;
        <[U32Le]>::ref_from_bytes(words).ok()?.get(word).map(|word| word.get())
    }

    /// Returns the bit of a binary channel. The first channel is the least significant bit of the
    /// first word.
    pub fn bit(&self, channel: usize) -> Option<bool> {
        (channel < self.table.binary())
            .then(|| self.word(channel / 32))
            .flatten()
            .map(|w| w >> (channel % 32) & 1 == 1)
    }

    /// Returns the raw integer of an analog channel.
    pub fn raw(&self, channel: usize) -> Option<i64> {
        let slot = self.table.layout.slots.get(channel.checked_sub(self.table.binary())?)?;
        Some(value(&self.bytes[slot.offset..slot.offset + slot.size]))
    }

    /// Returns whether the value of an analog channel is in range by its linked bit. True without a
    /// link.
    pub fn is_valid(&self, channel: usize) -> Option<bool> {
        match self.table.channels.get(channel)?.valid {
            Some(bit) => self.bit(bit),
            None => Some(true),
        }
    }

    /// Returns the physical value of an analog channel in the unit of its channel, correctly
    /// rounded.
    pub fn physical(&self, channel: usize) -> Option<f64> {
        Some(self.table.channels.get(channel)?.physical()?.apply(self.raw(channel)?))
    }

    fn value(&self, channel: usize) -> Value {
        if let Some(bit) = self.bit(channel) {
            return Value::Bool(bit);
        }
        if self.is_valid(channel) == Some(false) {
            return Value::Null;
        }
        let raw = || self.raw(channel).map_or(Value::Null, |raw| Value::Int(raw, 64));
        self.physical(channel).map_or_else(raw, Value::F64)
    }
}

impl Decode for Table {
    fn value(&self, topic: &Topic, payload: &[u8]) -> Result<Value> {
        if payload.len() != self.layout.row {
            let why = format!(
                "a row of {} bytes, but rows of {} have {}",
                payload.len(),
                topic.name,
                self.layout.row
            );
            return Err(Error::new(crate::wire::INFO.id, ErrorKind::Malformed, None, why));
        }
        let row = Row::new(payload, self);
        let fields = self.channels.iter().enumerate();
        Ok(Value::Struct(fields.map(|(i, channel)| (Arc::clone(&channel.name), row.value(i))).collect()))
    }
}
