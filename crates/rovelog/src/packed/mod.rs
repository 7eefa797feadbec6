//! Logs that are compressed as a whole, such as `.ulg.gz`, `.bag.bz2`, `.rld.zst`, `.vel.xz` and
//! `.bag.lz4`. The compression is detected by its magic number, and the format of the log by its
//! content.

mod compression;
mod frames;
mod members;
mod store;
mod stream;

use std::io::{self, BufRead, Cursor, Read, Write as _};

use rovelog_core::packed::{Ending, Packing};
use rovelog_core::{Bytes, Error, Limits, Result};

use self::members::Kind;

pub(crate) use compression::Compression;
pub(crate) use store::{Store, refused};
pub(crate) use stream::open_stream;

/// Reads the decompressed content of an input. If the input is cut, reading ends without an error;
/// see [`ending`](Self::ending).
enum Decompressor<R: BufRead> {
    Members(members::Members<R>),
    Frames(frames::Frames<R>),
}

impl<R: BufRead> Decompressor<R> {
    pub(super) fn new(compression: Compression, input: R) -> Self {
        match compression {
            Compression::Gzip => Self::Members(members::Members::new(Kind::Gzip, input)),
            Compression::Bzip2 => Self::Members(members::Members::new(Kind::Bzip2, input)),
            Compression::Xz => Self::Members(members::Members::new(Kind::Xz, input)),
            Compression::Zstd | Compression::Lz4 => Self::Frames(frames::Frames::new(compression, input)),
        }
    }

    /// Returns how the data ends, after reading returned 0 bytes.
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

/// Returns the first `len` bytes of the content of `file`. Fewer if the file ends or is damaged
/// before.
pub(crate) fn first_bytes(compression: Compression, file: &[u8], len: usize) -> Vec<u8> {
    let mut head = Vec::new();
    // Bytes before an error are used.
    let _ = Decompressor::new(compression, file).take(len as u64).read_to_end(&mut head);
    head
}

/// Number of bytes that are decompressed at a time.
const CHUNK: usize = 1 << 20;

/// Returns the content of `file`, and how its data end.
///
/// # Errors
/// Returns an error if the data are damaged, cannot be kept, or are more than the limits allow.
pub(crate) fn decompress(compression: Compression, file: &[u8], limits: &Limits) -> Result<(Bytes, Packing)> {
    let mut reader = Decompressor::new(compression, Cursor::new(file));
    let name = compression.name();
    let limit = limits.unpacked.max((file.len() as u64).saturating_mul(limits.expansion));
    let (mut store, mut buffer) = (Store::default(), vec![0; CHUNK]);
    loop {
        let read = match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) => return Err(compression.failed(store.len(), error)),
        };
        if store.len() + read as u64 > limit {
            let what = format!("the {name} file decompresses to more than the limit of {limit} bytes");
            return Err(compression.error(rovelog_core::ErrorKind::LimitExceeded, what));
        }
        store.write_all(&buffer[..read]).map_err(|error| refused(&error))?;
    }
    let packing = Packing { name, ending: reader.ending(), size: store.len() };
    Ok((store.finish()?, packing))
}

/// Replaces an error about the content of a compressed file, if the file is cut. The content of a
/// cut file is too short, so it may look like another kind of file.
pub(crate) fn explain_cut(packing: &Packing, error: Error) -> Error {
    let Ending::Cut { at } = packing.ending else { return error };
    let what = format!("the {} file cannot be decompressed: it is cut at its byte {at}", packing.name);
    Error::new("rovelog", rovelog_core::ErrorKind::Truncated, None, what)
        .with_next("copy the log again from its source")
}
