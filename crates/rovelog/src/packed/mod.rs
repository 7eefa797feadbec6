//! Logs that are compressed as a whole: `.ulg.gz`, `.bag.bz2`, `.rld.zst`, `.vel.xz`, `.bag.lz4`.
//! The compression is detected by its magic number; the content decides the format of the log.

mod compression;
mod frames;
mod members;
mod stream;

use std::io::{self, BufRead, Cursor, ErrorKind, Read};

use rovelog_core::packed::{Ending, Packing};
use rovelog_core::reader::PROBE_LEN;
use rovelog_core::{Bytes, Error, Result};

use self::members::Kind;

pub(crate) use compression::Compression;
pub(crate) use stream::open_stream;

/// What a compressed input holds. Reading ends without an error where the input is cut; see
/// [`ending`](Self::ending).
enum Unpacked<R: BufRead> {
    Members(members::Members<R>),
    Frames(frames::Frames<R>),
}

impl<R: BufRead> Unpacked<R> {
    pub(super) fn new(compression: Compression, input: R) -> Self {
        match compression {
            Compression::Gzip => Self::Members(members::Members::new(Kind::Gzip, input)),
            Compression::Bzip2 => Self::Members(members::Members::new(Kind::Bzip2, input)),
            Compression::Xz => Self::Members(members::Members::new(Kind::Xz, input)),
            Compression::Zstd | Compression::Lz4 => Self::Frames(frames::Frames::new(compression, input)),
        }
    }

    /// Returns how the data end, once reading gave 0 bytes.
    pub(crate) fn ending(&self) -> Ending {
        match self {
            Self::Members(members) => members.ending(),
            Self::Frames(frames) => frames.ending(),
        }
    }
}

impl<R: BufRead> Read for Unpacked<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Members(members) => members.read(out),
            Self::Frames(frames) => frames.read(out),
        }
    }
}

/// Returns the first bytes of the content of `file`; fewer where it ends or is damaged.
pub(crate) fn first_bytes(compression: Compression, file: &[u8]) -> Vec<u8> {
    let mut head = Vec::new();
    // What came before an error counts.
    let _ = Unpacked::new(compression, file).take(PROBE_LEN as u64).read_to_end(&mut head);
    head
}

/// Bytes that are decompressed at once.
const CHUNK: usize = 1 << 20;

/// Returns the content of `file` in memory, never more than `limit` bytes, and how its data end.
pub(crate) fn whole(compression: Compression, file: &[u8], limit: u64) -> Result<(Bytes, Packing)> {
    let mut reader = Unpacked::new(compression, Cursor::new(file));
    // The first `filled` bytes of `log` are those of the log.
    let (mut log, mut filled) = (Vec::new(), 0);
    loop {
        if filled == log.len() {
            // A quarter more at a time: what is reserved stays near to what is needed.
            let more = CHUNK.max(filled / 4);
            let reserved = log.try_reserve_exact(more);
            reserved.map_err(|_| compression.failed(filled as u64, ErrorKind::OutOfMemory.into()))?;
            log.resize(filled + CHUNK, 0);
        }
        match reader.read(&mut log[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) => return Err(compression.failed(filled as u64, error)),
        }
        if filled as u64 > limit {
            let name = compression.name();
            let what = format!("the {name} file decompresses to more than the limit of {limit} bytes");
            return Err(compression.error(rovelog_core::ErrorKind::LimitExceeded, what));
        }
    }
    log.truncate(filled);
    let packing = Packing { name: compression.name(), ending: reader.ending(), size: filled as u64 };
    Ok((log.into(), packing))
}

/// Returns why the content of a compressed file could not be opened. If the file is cut, that is the
/// reason, and not that its short content looks like another kind of file.
pub(crate) fn not_begun(packing: &Packing, error: Error) -> Error {
    let Ending::Cut { at } = packing.ending else { return error };
    let what = format!("the {} file cannot be decompressed: it is cut at its byte {at}", packing.name);
    Error::new("rovelog", rovelog_core::ErrorKind::Truncated, None, what)
        .with_next("copy the log again from its source")
}
