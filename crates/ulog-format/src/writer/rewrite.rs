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

/// Writes a log again, byte for byte, by reading and writing each of its messages.
///
/// # Errors
/// Where the log is damaged: [`LogReader::recover`](crate::LogReader::recover) is for those. Where the output refuses.
pub fn rewrite<W: Write>(log: &UlogReader, out: W) -> Result<W, UlogError> {
    let losses = log.gaps().len();
    if losses > 0 {
        return Err(UlogError::Damaged { losses });
    }
    let mut copy = UlogWriter::copying(out, log.header())?;
    for (_, message) in log.messages() {
        copy.write_message(&message)?;
    }
    copy.finish()
}
