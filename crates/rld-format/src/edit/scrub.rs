//! Removal of data that identifies the person who made the recording: the MAC address and the
//! comment.
//!
//! In published files, seven bytes were overwritten instead of the six bytes of the address. The
//! seventh byte is the lowest byte of the start time, so the start times of these files are wrong
//! by minutes. This module overwrites exactly six bytes. The comment keeps its length, so no block
//! moves.

use std::io::Write;

use zerocopy::IntoBytes;

use crate::error::RldError;
use crate::reader::RldReader;

/// Parts of the header that are replaced with zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scrub {
    /// True to replace the MAC address with zeros.
    pub mac: bool,
    /// True to replace the comment with zeros.
    pub comment: bool,
}

impl Default for Scrub {
    fn default() -> Self {
        Self { mac: true, comment: true }
    }
}

impl RldReader {
    /// Writes one file of the log. The parts of the header that `scrub` selects are replaced with
    /// zeros. Every other byte stays the same.
    ///
    /// # Errors
    /// Returns an error if the log has no file with the number `part`, or if writing fails.
    pub fn scrub(&self, part: usize, scrub: Scrub, mut out: impl Write) -> Result<(), RldError> {
        let part = self.parts.get(part).ok_or_else(|| RldError::refused("no such part"))?;
        let mut lead_in = part.header.lead_in;
        if scrub.mac {
            lead_in.mac = [0; 6];
        }
        out.write_all(lead_in.as_bytes())?;
        let at = lead_in.as_bytes().len();
        let end = at + part.header.comment.len();
        if scrub.comment {
            out.write_all(&vec![0; part.header.comment.len()])?;
        } else {
            out.write_all(&part.header.comment)?;
        }
        out.write_all(&part.bytes[end..])?;
        Ok(out.flush()?)
    }
}
