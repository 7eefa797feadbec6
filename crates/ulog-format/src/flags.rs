//! Flag bits: what a reader must know of a log, and where data was appended to it.

use std::mem::offset_of;

use rovelog_core::Rule;

use crate::diagnostics as rules;
use crate::error::UlogError;
use crate::scan::{FLAGS_LEN, Scanner};
use crate::wire::{FLAG_BITS_AT, FlagBits, HEADER_LEN};

impl Scanner {
    /// "Must refuse to parse a log which contains unknown incompatibility bits set".
    pub(crate) fn take_flags(&mut self, flags: &FlagBits) -> Result<(), UlogError> {
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
        // Bit 0 of byte 0: 'Q' messages occur.
        let [first, others @ ..] = flags.compat_flags;
        if first & !1 != 0 || others != [0; 7] {
            self.note_flags(&rules::UNDEFINED_COMPAT_BITS, || {
                format!("compatible flags {:02x?} contain undefined bits", flags.compat_flags)
            });
        }
        self.take_appended(flags);
        Ok(())
    }

    /// Takes the offsets of appended data.
    pub(crate) fn take_appended(&mut self, flags: &FlagBits) {
        let offsets = flags.appended_offsets.iter().map(|offset| offset.get()).filter(|offset| *offset != 0);
        // Offsets count from the header, which is elsewhere if bytes before it were added or lost.
        let moved = |offset: u64| offset.saturating_add(self.first).saturating_sub(FLAG_BITS_AT);
        let mut offsets: Vec<_> = offsets.map(moved).collect();
        if (flags.incompat_flags[0] & 1 == 1) == offsets.is_empty() {
            self.note_flags(&rules::APPENDED_FLAG_MISMATCH, || {
                let (says, has) = if offsets.is_empty() { ("is", "no") } else { ("is not", "an") };
                format!("the flag for appended data {says} set, but there is {has} offset")
            });
        }
        offsets.sort_unstable();
        for offset in offsets {
            if offset >= self.first + FLAGS_LEN && self.candidates.last().is_none_or(|last| offset > *last) {
                self.candidates.push(offset);
            } else {
                self.ignore_offset(offset);
            }
        }
    }

    fn note_flags(&mut self, rule: &'static Rule, message: impl FnOnce() -> String) {
        self.diagnostics.push(rule, self.first..self.first + FLAGS_LEN, message);
    }

    pub(crate) fn ignore_offset(&mut self, offset: u64) {
        self.note_flags(&rules::APPENDED_OFFSET_IGNORED, || {
            format!("no appended data starts at byte {offset}: the offset is ignored")
        });
    }
}
