//! Digital inputs: a message for each row, or for those beside a change.

use std::collections::HashSet;
use std::sync::Arc;

use rovelog::rld_format::{Channel, RldReader, Row};
use rovelog::{Field, FieldType, Scalar, Schema};

use crate::mcap::proto::uint;

/// Inputs that are on or off.
pub(super) struct Digital<'a> {
    reader: &'a RldReader,
    bits: Vec<usize>,
    /// By word of 32 bits: those of the inputs.
    masks: Vec<u32>,
    /// Whether only rows beside a change are messages.
    changes: bool,
    pub(super) schema: Arc<Schema>,
}

impl<'a> Digital<'a> {
    pub(super) fn new(reader: &'a RldReader, changes: bool) -> Option<Self> {
        let channels = reader.channels();
        let inputs = channels.iter().enumerate().filter(|(_, channel)| channel.is_binary);
        let ranges = range_bits(channels);
        let bits: Vec<usize> = inputs.map(|(bit, _)| bit).filter(|bit| !ranges.contains(bit)).collect();
        let field = |bit: &usize| {
            Field::new(channels[*bit].name.to_lowercase(), FieldType::Scalar(Scalar::Bool), "bit")
        };
        let schema =
            Arc::new(Schema { name: "Digital".to_owned(), fields: bits.iter().map(field).collect() });
        let mut masks = vec![0; bits.last()? / 32 + 1];
        for bit in &bits {
            masks[bit / 32] |= 1 << (bit % 32);
        }
        Some(Self { reader, bits, masks, changes, schema })
    }

    pub(super) fn message(&self, row: u64) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(row) = self.reader.row(row) {
            for (number, bit) in (1..).zip(&self.bits) {
                uint(number, row.bit(*bit).unwrap_or_default().into(), &mut out);
            }
        }
        out
    }

    /// Whether the inputs of a row and of the one behind it differ.
    fn changes_behind(&self, row: u64) -> bool {
        let (Some(a), Some(b)) = (self.reader.row(row), self.reader.row(row + 1)) else { return true };
        self.masks.iter().enumerate().any(|(word, mask)| {
            let word = |row: &Row<'_>| row.word(word).unwrap_or_default() & mask;
            word(&a) != word(&b)
        })
    }

    /// The next row that is a message: the first and the last of a stretch, and both sides of a change, so that
    /// lines between messages are what was there.
    pub(super) fn after(&self, row: u64, end: u64) -> u64 {
        if !self.changes {
            return row + 1;
        }
        let mut next = row + 1;
        if next >= end || self.changes_behind(row) {
            return next;
        }
        while next + 1 < end && !self.changes_behind(next) {
            next += 1;
        }
        next
    }
}

/// The binary channels that say whether others are in range.
pub(super) fn range_bits(channels: &[Channel]) -> HashSet<usize> {
    channels.iter().filter_map(|channel| channel.valid).collect()
}
