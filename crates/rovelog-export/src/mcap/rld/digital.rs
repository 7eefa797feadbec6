//! Digital inputs: a message for each row, or only for the rows before and after a change.

use std::collections::HashSet;
use std::sync::Arc;

use rovelog::rld_format::{Channel, RldReader, Row};
use rovelog::{Field, FieldType, Scalar, Schema};

use crate::mcap::proto::uint;

/// Binary inputs.
pub(super) struct Digital<'a> {
    reader: &'a RldReader,
    bits: Vec<usize>,
    /// Mask of the inputs in each 32-bit word.
    masks: Vec<u32>,
    /// True if only the rows before and after a change are messages.
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

    /// Returns whether the inputs of a row and of the next row differ.
    fn changes_after(&self, row: u64) -> bool {
        let (Some(a), Some(b)) = (self.reader.row(row), self.reader.row(row + 1)) else { return true };
        self.masks.iter().enumerate().any(|(word, mask)| {
            let word = |row: &Row<'_>| row.word(word).unwrap_or_default() & mask;
            word(&a) != word(&b)
        })
    }

    /// Returns the next row that is a message: the first and the last of a segment, and both sides
    /// of a change, so that lines between messages show the recorded values.
    pub(super) fn after(&self, row: u64, end: u64) -> u64 {
        if !self.changes {
            return row + 1;
        }
        let mut next = row + 1;
        if next >= end || self.changes_after(row) {
            return next;
        }
        while next + 1 < end && !self.changes_after(next) {
            next += 1;
        }
        next
    }
}

/// Returns the binary channels that are range-valid flags of other channels.
pub(super) fn range_bits(channels: &[Channel]) -> HashSet<usize> {
    channels.iter().filter_map(|channel| channel.valid).collect()
}
