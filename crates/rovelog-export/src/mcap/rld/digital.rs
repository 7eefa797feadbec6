//! Messages for the digital inputs of a `RocketLogger` log. Either each row becomes a message, or
//! only the rows before and after a change.

use std::collections::HashSet;
use std::sync::Arc;

use rovelog::rld_format::{Channel, RldReader, Row};
use rovelog::{Field, FieldType, Scalar, Schema};

use crate::mcap::proto::uint;

/// The digital inputs of a log.
pub(super) struct Digital<'a> {
    reader: &'a RldReader,
    /// Indices of the channels that are digital inputs.
    bits: Vec<usize>,
    /// For each 32-bit word of a row, the mask of the bits that are digital inputs.
    masks: Vec<u32>,
    /// True if only the rows before and after a change become messages.
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

    /// Encodes the message for a row.
    pub(super) fn message(&self, row: u64) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(row) = self.reader.row(row) {
            for (number, bit) in (1..).zip(&self.bits) {
                uint(number, row.bit(*bit).unwrap_or_default().into(), &mut out);
            }
        }
        out
    }

    /// Returns whether a digital input changes between a row and the next row.
    fn changes_after(&self, row: u64) -> bool {
        let (Some(a), Some(b)) = (self.reader.row(row), self.reader.row(row + 1)) else { return true };
        self.masks.iter().enumerate().any(|(word, mask)| {
            let word = |row: &Row<'_>| row.word(word).unwrap_or_default() & mask;
            word(&a) != word(&b)
        })
    }

    /// Returns the row after `row` that becomes the next message. The first and last row of a
    /// segment become messages, and the rows before and after each change. Viewers draw lines
    /// between messages, so the row before a change is needed to show a step.
    ///
    /// For example, if an input is 0 in the rows 0 to 99 and 1 in the rows 100 to 199, the rows 0,
    /// 99, 100 and 199 become messages.
    pub(super) fn next_message_row(&self, row: u64, end: u64) -> u64 {
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

/// Returns the indices of the binary channels that are not digital inputs. They are range-valid
/// flags, which state whether the value of another channel is valid.
pub(super) fn range_bits(channels: &[Channel]) -> HashSet<usize> {
    channels.iter().filter_map(|channel| channel.valid).collect()
}
