//! A buffer for decompressed chunks, and the status of the decompressed data.

/// Status of the data of a chunk after decompression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(not(feature = "compressed"), expect(dead_code, reason = "nothing is unpacked then"))]
pub(crate) enum DataStatus {
    /// The data are complete and undamaged.
    #[default]
    Intact,
    /// The data end in the middle of a compressed stream.
    Cut,
    /// The compressed data are damaged, or other bytes follow them.
    Broken,
    /// A checksum does not match, so the decompressed data may be wrong.
    Checksum,
    /// The decompressed data exceed the size limit.
    Limit,
    /// The chunk header names a compression, but the data are not compressed with it.
    NotPacked,
    /// The chunk header names an unknown compression.
    Unknown,
    /// The data are encrypted.
    Encrypted,
}

impl DataStatus {
    /// Returns the status as text, which `info` and the report of a recovery show as the state of
    /// the chunk.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Intact => "whole",
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

/// Buffer that is reused for one chunk after another. The buffer grows with the decompressed data,
/// and is not filled with zeros again for each chunk.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    /// All bytes of the buffer. The first `len` bytes are the data of the current chunk.
    pub(crate) bytes: Vec<u8>,
    /// Number of bytes in the buffer that belong to the current chunk.
    pub(crate) len: usize,
}

impl Buffer {
    /// Returns the bytes of the current chunk, and space for `len` more bytes. The chunk and the
    /// space together have at most `limit` bytes.
    pub(super) fn spare(&mut self, len: usize, limit: usize) -> (&[u8], &mut [u8]) {
        let end = limit.min(self.len + len).max(self.len);
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        let (done, spare) = self.bytes.split_at_mut(self.len);
        (done, &mut spare[..end - self.len])
    }

    /// Appends `bytes` to the current chunk, up to a total of `limit` bytes.
    pub(super) fn extend(&mut self, bytes: &[u8], limit: usize) -> Result<(), DataStatus> {
        let (_, spare) = self.spare(bytes.len(), limit);
        let len = spare.len();
        spare.copy_from_slice(&bytes[..len]);
        self.len += len;
        if len < bytes.len() { Err(DataStatus::Limit) } else { Ok(()) }
    }

    pub(crate) fn filled(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}
