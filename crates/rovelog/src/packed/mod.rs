//! Logs that are compressed as a whole, such as `.ulg.gz`, `.bag.bz2`, `.rld.zst`, `.vel.xz` and
//! `.bag.lz4`. The magic number determines the compression, and the content determines the format
//! of the log.

mod compression;
mod frames;
mod members;
mod store;
mod stream;

use std::io::{self, BufRead, Cursor, Read, Write as _};

use rovelog_core::internal::packed::{Ending, Packing};
use rovelog_core::{Bytes, Error, Limits, Result};

use self::members::Kind;

pub(crate) use compression::Compression;
pub(crate) use store::{Store, storage_error};
pub(crate) use stream::open_stream;

/// Decompresses an input with any compression. If the input is truncated, reading ends without an
/// error, and [`ending`](Self::ending) returns [`Ending::Cut`].
enum Decompressor<R: BufRead> {
    /// The compression is gzip, bzip2 or xz.
    Members(members::Members<R>),
    /// The compression is zstd or lz4.
    Frames(frames::Frames<R>),
}

impl<R: BufRead> Decompressor<R> {
    /// Creates a reader of the decompressed content of `input`.
    pub(super) fn new(compression: Compression, input: R) -> Self {
        match compression {
            Compression::Gzip => Self::Members(members::Members::new(Kind::Gzip, input)),
            Compression::Bzip2 => Self::Members(members::Members::new(Kind::Bzip2, input)),
            Compression::Xz => Self::Members(members::Members::new(Kind::Xz, input)),
            Compression::Zstd | Compression::Lz4 => Self::Frames(frames::Frames::new(compression, input)),
        }
    }

    /// Returns how the compressed data ends. The result is valid after reading has returned 0
    /// bytes.
    pub(crate) fn ending(&self) -> Ending {
        match self {
            Self::Members(members) => members.ending(),
            Self::Frames(frames) => frames.ending(),
        }
    }
}

impl<R: BufRead> Read for Decompressor<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Members(members) => members.read(out),
            Self::Frames(frames) => frames.read(out),
        }
    }
}

/// Returns the first `len` bytes of the decompressed content of `file`. If the content is shorter
/// or damaged, returns the bytes that can be decompressed.
pub(crate) fn first_bytes(compression: Compression, file: &[u8], len: usize) -> Vec<u8> {
    let mut head = Vec::new();
    // If decompression fails, the bytes before the error are still useful for detection.
    let _ = Decompressor::new(compression, file).take(len as u64).read_to_end(&mut head);
    head
}

/// Number of bytes that are decompressed at once.
const CHUNK: usize = 1 << 20;

/// Decompresses `file`. Returns the content, and how the compressed data ends.
///
/// # Errors
/// Returns an error if the data is damaged, cannot be stored, or exceeds the limits.
pub(crate) fn decompress(compression: Compression, file: &[u8], limits: &Limits) -> Result<(Bytes, Packing)> {
    let mut reader = Decompressor::new(compression, Cursor::new(file));
    let name = compression.name();
    // A large log may exceed the absolute limit if its compression ratio is plausible. The ratio of
    // a malicious file is much higher.
    let limit = limits.unpacked.max((file.len() as u64).saturating_mul(limits.expansion));
    let (mut store, mut buffer) = (Store::default(), vec![0; CHUNK]);
    loop {
        let read = match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) => return Err(compression.decoder_error(store.len(), error)),
        };
        if store.len() + read as u64 > limit {
            let what = format!("the {name} file decompresses to more than the limit of {limit} bytes");
            return Err(compression.error(rovelog_core::ErrorKind::LimitExceeded, what));
        }
        store.write_all(&buffer[..read]).map_err(|error| storage_error(&error))?;
    }
    let packing = Packing { name, ending: reader.ending(), size: store.len() };
    Ok((store.finish()?, packing))
}

/// Replaces an error about the content of a compressed file if the file is truncated. The content
/// of a truncated file may be too short for detection, so the original error would be misleading.
pub(crate) fn explain_cut(packing: &Packing, error: Error) -> Error {
    let Ending::Cut { at } = packing.ending else { return error };
    let what = format!("the {} file cannot be decompressed: it is truncated at byte {at}", packing.name);
    Error::new("rovelog", rovelog_core::ErrorKind::Truncated, None, what)
        .with_next("copy the log again from its source")
}
