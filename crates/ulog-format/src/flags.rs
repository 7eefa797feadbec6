//! Evaluation of the flag bits message, which lists incompatible features and the offsets of
//! appended data.
//!
//! # Example
//!
//! A log of 4990 bytes ends in the middle of a message. PX4 then sets incompatible bit 0, stores
//! 4990 as the first offset and appends its crash data. The reader reports the message before byte
//! 4990 as cut and continues with a new message at 4990.

use std::mem::offset_of;

use rovelog_core::{Diagnostics, Rule};
use zerocopy::FromBytes as _;

use crate::diagnostics as rules;
use crate::error::UlogError;
use crate::wire::{FLAG_BITS_AT, FlagBits, HEADER_LEN, MessageHeader, kind};

/// Size in bytes of a flag bits message with its header, without fields that later editions of the
/// specification may add.
pub(crate) const FLAGS_LEN: u64 = HEADER_LEN + size_of::<FlagBits>() as u64;

/// Returns the flag bits if `bytes` starts with a flag bits message.
///
/// The specification says: "A parser must not assume a fixed length of this message". So the
/// message may be longer than the known fields.
pub(crate) fn flag_bits(bytes: &[u8]) -> Option<&FlagBits> {
    let (message, rest) = MessageHeader::ref_from_prefix(bytes).ok()?;
    let long_enough = usize::from(message.msg_size.get()) >= size_of::<FlagBits>();
    let (flags, _) = FlagBits::ref_from_prefix(rest).ok()?;
    (message.msg_type == kind::FLAG_BITS && long_enough).then_some(flags)
}

/// Starts of appended data, as listed in the flag bits of the current log.
#[derive(Debug, Default)]
pub(crate) struct AppendedData {
    /// Offset of the first message in the current log. If the log has flag bits, this is the flag
    /// bits message.
    pub(crate) flag_bits_at: u64,
    /// Offsets at which appended data starts, as far as the scan has reached them.
    pub(crate) reached: Vec<u64>,
    /// Offsets in the flag bits that the scan has not reached yet, in ascending order.
    pub(crate) candidates: Vec<u64>,
    /// An offset among `candidates` at which messages were found. It is stored so that the offset
    /// is not checked again.
    pub(crate) confirmed: Option<u64>,
}

impl AppendedData {
    /// Returns the next offset at which appended data may start.
    #[inline]
    pub(crate) fn next(&self) -> Option<u64> {
        self.candidates.first().copied()
    }

    /// Updates the offsets when the scan has reached the offset `at`. If the scan has passed an
    /// offset, the offset was inside a message, so no appended data starts there.
    pub(crate) fn reach(&mut self, at: u64, notes: &mut Diagnostics) {
        while self.next().is_some_and(|next| next <= at) {
            let offset = self.candidates.remove(0);
            if offset == at { self.reached.push(at) } else { self.ignore(offset, notes) }
        }
    }

    /// Reports the offsets that the scan has not reached at the end of the file.
    pub(crate) fn finish(&mut self, notes: &mut Diagnostics) {
        for offset in std::mem::take(&mut self.candidates) {
            self.ignore(offset, notes);
        }
    }

    /// Reports an offset in the flag bits at which no appended data starts.
    pub(crate) fn ignore(&self, offset: u64, notes: &mut Diagnostics) {
        self.note(notes, &rules::APPENDED_OFFSET_IGNORED, || {
            format!("no appended data starts at byte {offset}, so this offset is ignored")
        });
    }

    /// Reports a deviation in the flag bits message.
    fn note(&self, notes: &mut Diagnostics, rule: &'static Rule, message: impl FnOnce() -> String) {
        notes.push(rule, self.flag_bits_at..self.flag_bits_at + FLAGS_LEN, message);
    }

    /// Adds the offsets of appended data in `flags` to the list of offsets that the scan will
    /// check.
    pub(crate) fn add(&mut self, flags: &FlagBits, notes: &mut Diagnostics) {
        let offsets = flags.appended_offsets.iter().map(|offset| offset.get()).filter(|offset| *offset != 0);
        // Stored offsets count from the start of the header. They are corrected here if the header
        // is not at the start of the file, because bytes before it were added or lost.
        let moved = |offset: u64| offset.saturating_add(self.flag_bits_at).saturating_sub(FLAG_BITS_AT);
        let mut offsets: Vec<_> = offsets.map(moved).collect();
        // The flag for appended data must be set if and only if the message contains an offset.
        if (flags.incompat_flags[0] & 1 == 1) == offsets.is_empty() {
            self.note(notes, &rules::APPENDED_FLAG_MISMATCH, || {
                let (says, has) = if offsets.is_empty() { ("is", "no") } else { ("is not", "an") };
                format!(
                    "the flag for appended data {says} set, but the log states {has} offset of appended \
                     data; the flag is ignored"
                )
            });
        }
        // The scan checks the offsets in file order, but the specification does not require that
        // they are stored in ascending order.
        offsets.sort_unstable();
        for offset in offsets {
            let is_after = self.candidates.last().is_none_or(|last| offset > *last);
            if is_after && offset >= self.flag_bits_at + FLAGS_LEN {
                self.candidates.push(offset);
            } else {
                self.ignore(offset, notes);
            }
        }
    }

    /// Applies the flag bits at the start of a log.
    ///
    /// # Errors
    /// Returns an error if an undefined incompatible bit is set. According to the specification, a
    /// parser "must refuse to parse a log which contains unknown incompatibility bits set".
    pub(crate) fn apply(&mut self, flags: &FlagBits, notes: &mut Diagnostics) -> Result<(), UlogError> {
        let is_set = |bit: &usize| flags.incompat_flags[bit / 8] >> (bit % 8) & 1 == 1;
        let unknown: Vec<_> = (1..64).filter(is_set).collect();
        if let Some(first) = unknown.first() {
            let bits: Vec<_> =
                unknown.iter().map(|bit| format!("byte {} bit {}", bit / 8, bit % 8)).collect();
            let field = self.flag_bits_at + HEADER_LEN + offset_of!(FlagBits, incompat_flags) as u64;
            let at = field + *first as u64 / 8;
            return Err(UlogError::IncompatibleFlags { bits: bits.join(", "), at });
        }
        // Bit 0 of byte 0 is defined and announces 'Q' messages. All other bits are undefined and
        // are reported.
        let [first, others @ ..] = flags.compat_flags;
        if first & !1 != 0 || others != [0; 7] {
            self.note(notes, &rules::UNDEFINED_COMPAT_BITS, || {
                format!(
                    "the compatible flags {:02x?} contain bits that the specification does not define; they \
                     are ignored",
                    flags.compat_flags
                )
            });
        }
        self.add(flags, notes);
        Ok(())
    }
}
