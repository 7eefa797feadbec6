//! Limits on memory and time for untrusted logs, and for files that come with them.

use std::io::{Error, ErrorKind, Read, Result};

/// Limits that keep memory and time within a small multiple of the input.
///
/// The defaults fit every log seen in the field; what passes a limit is reported, not dropped
/// silently.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Levels of nested types: 64.
    pub nesting: usize,
    /// Leaves of one record, arrays of structs unrolled: 65 535.
    pub leaves: usize,
    /// Diagnostics of one kind that are kept one by one; further ones are only counted: 1 000.
    pub diagnostics_per_kind: usize,
    /// Bytes that a compressed file may be decompressed to: 1 GiB. A pipe is decompressed piece by
    /// piece and needs no limit.
    pub unpacked: u64,
    /// Number of bytes that one byte of compressed data may be decompressed to: 64. A file may pass
    /// `unpacked` by it, as a large log does. A chunk of a bag above 64 MiB may not pass it. 0 turns
    /// it off: then `unpacked` is the limit of all.
    pub expansion: u64,
}

impl Limits {
    /// Returns the same limits with this number of bytes for a decompressed file, whatever its size.
    #[must_use]
    pub fn with_unpacked(self, bytes: u64) -> Self {
        Self { unpacked: bytes, expansion: 0, ..self }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { nesting: 64, leaves: 65_535, diagnostics_per_kind: 1000, unpacked: 1 << 30, expansion: 64 }
    }
}

/// Maximum size in bytes of a file that describes logs: declarations, definitions of a type, a
/// calibration.
pub const DESCRIPTION: u64 = 1 << 20;

/// Reads a file that describes logs. It may be a link to a device that never ends, because such files
/// come from strangers as logs do.
///
/// # Errors
/// Returns an error if the file cannot be read, or is longer than [`DESCRIPTION`].
pub fn read_description(file: impl Read) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(DESCRIPTION + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > DESCRIPTION {
        return Err(Error::new(ErrorKind::FileTooLarge, "the file is longer than 1 MiB"));
    }
    Ok(bytes)
}

/// Reads a file that describes logs in UTF-8.
///
/// # Errors
/// Returns the errors of [`read_description`], and an error if the text is not UTF-8.
pub fn read_description_text(file: impl Read) -> Result<String> {
    String::from_utf8(read_description(file)?).map_err(|error| Error::new(ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_description_is_refused() {
        assert_eq!(read_description(&b"<calibration/>"[..]).unwrap(), b"<calibration/>");
        assert_eq!(read_description(std::io::repeat(0).take(DESCRIPTION)).unwrap().len(), 1 << 20);
        assert_eq!(read_description(std::io::repeat(0)).unwrap_err().kind(), ErrorKind::FileTooLarge);
    }
}
