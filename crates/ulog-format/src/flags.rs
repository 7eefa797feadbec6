//! Evaluation of the flag bits message, which lists incompatible features and the offsets of
//! appended data.
//!
//! # Example
//!
//! A log of 4990 bytes ends in the middle of a message. PX4 then sets incompatible bit 0, stores
//! 4990 as the first offset and appends its crash data. The reader reports the message before byte
//! 4990 as cut and continues with a new message at 4990.

use std::mem::offset_of;

use rovelog_core::Rule;

use crate::diagnostics as rules;
use crate::error::UlogError;
use crate::scan::{FLAGS_LEN, Scanner};
use crate::wire::{FLAG_BITS_AT, FlagBits, HEADER_LEN};

impl Scanner {
    /// Applies the flag bits at the start of a log.
    ///
    /// # Errors
    /// Returns an error if an undefined incompatible bit is set. According to the specification, a
    /// parser "must refuse to parse a log which contains unknown incompatibility bits set".
    pub(crate) fn apply_flags(&mut self, flags: &FlagBits) -> Result<(), UlogError> {
        let is_set = |bit: &usize| flags.incompat_flags[bit / 8] >> (bit % 8) & 1 == 1;
        let unknown: Vec<_> = (1..64).filter(is_set).collect();
        if let Some(first) = unknown.first() {
            let bits: Vec<_> =
                unknown.iter().map(|bit| format!("byte {} bit {}", bit / 8, bit % 8)).collect();
            let field = self.first + HEADER_LEN + offset_of!(FlagBits, incompat_flags) as u64;
            let at = field + *first as u64 / 8;
            return Err(UlogError::IncompatibleFlags { bits: bits.join(", "), at });
        }
        self.flags = Some(*flags);
        // Bit 0 of byte 0 is defined and announces 'Q' messages. All other bits are undefined and
        // are reported.
        let [first, others @ ..] = flags.compat_flags;
        if first & !1 != 0 || others != [0; 7] {
            self.note_flags(&rules::UNDEFINED_COMPAT_BITS, || {
                format!(
                    "the compatible flags {:02x?} contain bits that the specification does not define",
                    flags.compat_flags
                )
            });
        }
        self.add_appended_offsets(flags);
        Ok(())
    }

    /// Adds the offsets of appended data in `flags` to the list of offsets that the scan will
    /// check.
    pub(crate) fn add_appended_offsets(&mut self, flags: &FlagBits) {
        let offsets = flags.appended_offsets.iter().map(|offset| offset.get()).filter(|offset| *offset != 0);
        // Stored offsets count from the start of the header. They are corrected here if the header
        // is not at the start of the file, because bytes before it were added or lost.
        let moved = |offset: u64| offset.saturating_add(self.first).saturating_sub(FLAG_BITS_AT);
        let mut offsets: Vec<_> = offsets.map(moved).collect();
        // The flag for appended data must be set if and only if the message contains an offset.
        if (flags.incompat_flags[0] & 1 == 1) == offsets.is_empty() {
            self.note_flags(&rules::APPENDED_FLAG_MISMATCH, || {
                let (says, has) = if offsets.is_empty() { ("is", "no") } else { ("is not", "an") };
                format!(
                    "the flag for appended data {says} set, but the log has {has} offset of appended data"
                )
            });
        }
        // The scan checks the offsets in file order, but the specification does not require that
        // they are stored in ascending order.
        offsets.sort_unstable();
        for offset in offsets {
            if offset >= self.first + FLAGS_LEN && self.candidates.last().is_none_or(|last| offset > *last) {
                self.candidates.push(offset);
            } else {
                self.ignore_offset(offset);
            }
        }
    }

    /// Reports a deviation in the flag bits message.
    fn note_flags(&mut self, rule: &'static Rule, message: impl FnOnce() -> String) {
        self.diagnostics.push(rule, self.first..self.first + FLAGS_LEN, message);
    }

    /// Reports an offset in the flag bits at which no appended data starts.
    pub(crate) fn ignore_offset(&mut self, offset: u64) {
        self.note_flags(&rules::APPENDED_OFFSET_IGNORED, || {
            format!("no appended data starts at byte {offset}, so this offset is ignored")
        });
    }
}
