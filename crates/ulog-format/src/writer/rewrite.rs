//! A log again, from its messages.

use std::io::Write;

use rovelog_core::wire::U64Le;

use super::UlogWriter;
use crate::error::UlogError;
use crate::reader::UlogReader;
use crate::wire::FlagBits;

impl FlagBits {
    /// The same flags for a log in which appended data is ordinary data: for copies whose messages move.
    #[must_use]
    pub fn merged(mut self) -> Self {
        self.incompat_flags[0] &= !1;
        self.appended_offsets = [U64Le::new(0); 3];
        self
    }
}

/// Writes a log again, byte for byte, by reading and writing each of its messages. Where a log was cut before data was
/// appended to it, what is left of the last message is written as it is: the offsets of appended data stay right.
///
/// # Errors
/// Returns an error if the log is damaged, or the output refuses; [`LogReader::recover`](crate::LogReader::recover) is
/// for damaged logs.
pub fn rewrite<W: Write>(log: &UlogReader, out: W) -> Result<W, UlogError> {
    let cuts = log.cut_before_appended();
    if log.gaps() != cuts {
        return Err(UlogError::Damaged { losses: log.gaps().len() });
    }
    let mut cuts = cuts.into_iter().peekable();
    let mut copy = UlogWriter::copying(out, log.header())?;
    for (at, message) in log.messages() {
        while let Some(cut) = cuts.next_if(|cut| cut.end <= at) {
            copy.write_cut(log.slice_of(cut))?;
        }
        copy.write_message(&message)?;
    }
    cuts.try_for_each(|cut| copy.write_cut(log.slice_of(cut)))?;
    copy.finish()
}
