//! The compressions of whole files, with their magic numbers and their errors.

use std::io::{self, ErrorKind};

use rovelog_core::Error;

use crate::magic;

/// Maximum window size of compressed data in KiB. This is twice the size that `xz -9` uses, and the
/// default limit of `zstd -d`.
pub(super) const WINDOW_KIB: u32 = 128 << 10;

/// A compression of whole files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    /// gzip: RFC 1952.
    Gzip,
    /// bzip2.
    Bzip2,
    /// xz: "The .xz File Format".
    Xz,
    /// zstd: RFC 8878.
    Zstd,
    /// lz4: "LZ4 Frame Format".
    Lz4,
}

impl Compression {
    /// Returns the compression of a file that starts with `head`; `None` if it is not compressed.
    pub(crate) fn of(head: &[u8]) -> Option<Self> {
        let all = [Self::Gzip, Self::Xz, Self::Zstd, Self::Lz4];
        match head {
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Self::Bzip2),
            head => all.into_iter().find(|one| head.starts_with(one.magic())),
        }
    }

    /// Returns the first bytes of a member or frame.
    pub(super) const fn magic(self) -> &'static [u8] {
        match self {
            Self::Gzip => magic::GZIP,
            Self::Bzip2 => b"BZh",
            Self::Xz => magic::XZ,
            Self::Zstd => magic::ZSTD,
            Self::Lz4 => magic::LZ4,
        }
    }

    /// Returns the name of the compression.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
            Self::Lz4 => "lz4",
        }
    }

    /// Returns an error about a file with this compression, with the next step.
    pub(super) fn error(self, kind: rovelog_core::ErrorKind, what: String) -> Error {
        let name = self.name();
        let next = match kind {
            rovelog_core::ErrorKind::LimitExceeded => format!(
                "if you trust the file, raise the limit (--max-unpacked 8GiB) or decompress it first: {name} -d"
            ),
            rovelog_core::ErrorKind::Malformed if self == Self::Bzip2 => {
                "save the intact blocks: bzip2recover FILE, then decompress and join them".to_owned()
            }
            rovelog_core::ErrorKind::Malformed => format!(
                "save what can be decompressed: {name} -dc FILE > part.log, then rovelog recover part.log"
            ),
            _ => format!("decompress the file first with {name} -d, and open that"),
        };
        Error::new("rovelog", kind, None, what).with_next(next)
    }

    /// Converts an error of decompression, which occurred after `len` bytes of content.
    pub(super) fn failed(self, len: u64, error: io::Error) -> Error {
        let name = self.name();
        match error.kind() {
            ErrorKind::InvalidData => {
                let what = format!("the {name} file cannot be decompressed: {error}");
                self.error(rovelog_core::ErrorKind::Malformed, what)
            }
            ErrorKind::OutOfMemory => {
                let what =
                    format!("not enough memory to decompress the {name} file: it ran out after {len} bytes");
                self.error(rovelog_core::ErrorKind::Io, what)
            }
            _ => Error::io("rovelog", error),
        }
    }
}
