//! Compressions of whole files, with their magic numbers and error messages.

use std::io::{self, ErrorKind};

use rovelog_core::Error;

use crate::magic;

/// Maximum size in KiB of the window of a decoder, which must be in memory. The limit is twice the
/// window of `xz -9`, and equals the default limit of `zstd -d`.
pub(super) const WINDOW_KIB: u32 = 128 << 10;

/// A compression method for whole files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    /// The compression of `gzip`, which RFC 1952 specifies.
    Gzip,
    /// The compression of `bzip2`.
    Bzip2,
    /// The compression of `xz`, which "The .xz File Format" specifies.
    Xz,
    /// The compression of `zstd`, which RFC 8878 specifies.
    Zstd,
    /// The compression of `lz4`, which "LZ4 Frame Format" specifies.
    Lz4,
}

impl Compression {
    /// Detects the compression of a file that starts with `head`. Returns `None` if it is not
    /// compressed.
    pub(crate) fn of(head: &[u8]) -> Option<Self> {
        let all = [Self::Gzip, Self::Xz, Self::Zstd, Self::Lz4];
        match head {
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Self::Bzip2),
            head => all.into_iter().find(|one| head.starts_with(one.magic())),
        }
    }

    /// Returns the magic number with which each member or frame of a compressed file starts.
    pub(super) const fn magic(self) -> &'static [u8] {
        match self {
            Self::Gzip => magic::GZIP,
            Self::Bzip2 => b"BZh",
            Self::Xz => magic::XZ,
            Self::Zstd => magic::ZSTD,
            Self::Lz4 => magic::LZ4,
        }
    }

    /// Returns the name of the compression, which is also the name of its command-line tool.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
            Self::Lz4 => "lz4",
        }
    }

    /// Creates an error about a file with this compression, with advice to the user.
    pub(super) fn error(self, kind: rovelog_core::ErrorKind, what: String) -> Error {
        let name = self.name();
        let next = match kind {
            rovelog_core::ErrorKind::LimitExceeded => format!(
                "if you trust the file, raise the limit (--max-unpacked 8GiB) or decompress it first: {name} -d"
            ),
            rovelog_core::ErrorKind::Malformed if self == Self::Bzip2 => {
                "save the intact blocks with bzip2recover FILE, then decompress and join them".to_owned()
            }
            rovelog_core::ErrorKind::Malformed => format!(
                "save what can be decompressed with {name} -dc FILE > part.log, then run rovelog recover \
                 part.log"
            ),
            _ => format!("decompress the file first with {name} -d, and open the result"),
        };
        Error::new("rovelog", kind, None, what).with_next(next)
    }

    /// Converts an error of the decoder. `len` is the number of bytes that were decompressed before
    /// the error.
    pub(super) fn decoder_error(self, len: u64, error: io::Error) -> Error {
        let name = self.name();
        match error.kind() {
            ErrorKind::InvalidData => {
                let what = format!("the {name} file cannot be decompressed: {error}");
                self.error(rovelog_core::ErrorKind::Malformed, what)
            }
            ErrorKind::OutOfMemory => {
                let what = format!(
                    "the memory is not sufficient to decompress the {name} file; it ran out after {len} bytes"
                );
                self.error(rovelog_core::ErrorKind::Io, what)
            }
            _ => Error::io("rovelog", error),
        }
    }
}
