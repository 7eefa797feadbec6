//! Where chunks are unpacked to, and how that ends.

/// How the data of a chunk end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "compressed"), expect(dead_code, reason = "nothing is unpacked then"))]
pub(crate) enum Ending {
    /// As they should.
    Whole,
    /// Inside of a stream.
    Cut,
    /// With bytes that are no packed data.
    Broken,
    /// With a checksum that does not match: what was unpacked may be wrong.
    Checksum,
    /// At the limit of what a chunk may unpack to.
    Limit,
    /// They are not compressed as the header says.
    NotPacked,
    /// Their compression is not known.
    Unknown,
    /// They are encrypted.
    Encrypted,
}

impl Ending {
    /// Returns the class by which a chunk is told in `info` and in the report of recovery.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Cut => "cut",
            Self::Broken => "damaged: error",
            Self::Checksum => "damaged: checksum",
            Self::Limit => "damaged: limit",
            Self::NotPacked => "damaged: not a frame",
            Self::Unknown => "unknown compression",
            Self::Encrypted => "encrypted",
        }
    }
}

/// Where chunks are unpacked to, one after the other: it grows with what comes out and is never
/// zeroed twice.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    /// The first `len` of them are those of the chunk.
    pub(crate) bytes: Vec<u8>,
    pub(crate) len: usize,
}

impl Buffer {
    /// Returns what was unpacked, and space for `len` more bytes, or for those up to `limit`.
    pub(super) fn spare(&mut self, len: usize, limit: usize) -> (&[u8], &mut [u8]) {
        let end = limit.min(self.len + len).max(self.len);
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        let (done, spare) = self.bytes.split_at_mut(self.len);
        (done, &mut spare[..end - self.len])
    }

    /// Takes bytes up to `limit`.
    pub(super) fn extend(&mut self, bytes: &[u8], limit: usize) -> Result<(), Ending> {
        let (_, spare) = self.spare(bytes.len(), limit);
        let len = spare.len();
        spare.copy_from_slice(&bytes[..len]);
        self.len += len;
        if len < bytes.len() { Err(Ending::Limit) } else { Ok(()) }
    }

    pub(crate) fn filled(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}
