//! Limits on memory and time for reading untrusted logs, and for reading files that describe logs.

use std::io::{Error, ErrorKind, Read, Result};

/// Limits that keep memory and time within a small multiple of the size of the input.
///
/// The defaults are sufficient for all logs from real devices that we have seen. If a limit is
/// exceeded, the reader reports this.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum nesting depth of types. Default: 64.
    pub nesting: usize,
    /// Maximum number of leaves in a record. A leaf is a field that has no fields inside, and each
    /// element of an array counts separately. Default: 65,535.
    pub leaves: usize,
    /// Maximum number of stored diagnostics of each kind. Further diagnostics are only counted.
    /// Default: 1000.
    pub diagnostics_per_kind: usize,
    /// Maximum size in bytes of a decompressed file. Default: 1 GiB. Logs from pipes have no such
    /// limit, because they are decompressed piece by piece.
    pub unpacked: u64,
    /// Maximum number of decompressed bytes for each byte of compressed data. Default: 64.
    ///
    /// A file may decompress to more than `unpacked` bytes if it does not exceed this ratio. Chunks
    /// of a bag that are larger than 64 MiB must not exceed this ratio either. If the value is 0,
    /// no ratio is checked, and `unpacked` is the limit for all files.
    pub expansion: u64,
}

impl Limits {
    /// Sets the maximum size of a decompressed file, regardless of how small the compressed file
    /// is.
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

/// Maximum size in bytes of a file that describes logs. Examples are type declarations, type
/// definitions and calibrations.
pub const DESCRIPTION: u64 = 1 << 20;

/// Reads a file that describes logs. The size is limited, because the file may come from an
/// untrusted source, or its path may link to a device that never ends.
///
/// # Errors
/// Returns an error if the file cannot be read or is larger than [`DESCRIPTION`].
pub fn read_description(file: impl Read) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than the limit is read. The result shows whether the file has more bytes than
    // allowed.
    file.take(DESCRIPTION + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > DESCRIPTION {
        return Err(Error::new(ErrorKind::FileTooLarge, "the file is longer than 1 MiB"));
    }
    Ok(bytes)
}

/// Reads a file that describes logs, and decodes it as UTF-8.
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
    fn an_endless_description_is_rejected() {
        assert_eq!(read_description(&b"<calibration/>"[..]).unwrap(), b"<calibration/>");
        assert_eq!(read_description(std::io::repeat(0).take(DESCRIPTION)).unwrap().len(), 1 << 20);
        assert_eq!(read_description(std::io::repeat(0)).unwrap_err().kind(), ErrorKind::FileTooLarge);
    }
}
