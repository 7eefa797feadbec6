//! Bags that were compressed as a whole: a recorder of December 2009 wrote them, and people do.

use std::io::{self, Read};

use rovelog_core::{Bytes, Diagnostics};

use crate::diagnostics as rules;
use crate::error::BagError;
use crate::options::BagOptions;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packed {
    /// `1f 8b`.
    Gzip,
    /// `BZh`.
    Bzip2,
}

impl Packed {
    /// How the file that begins with `head` is compressed, if it is.
    pub fn of(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Self::Bzip2),
            _ => None,
        }
    }

    /// The name of the compression.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
        }
    }
}

/// How many times its size a file may unpack to.
const RATIO: u64 = 1000;

/// What a compressed input holds.
#[cfg(feature = "compressed")]
pub(crate) enum Unpacked<R> {
    Gzip(flate2::read::MultiGzDecoder<R>),
    Bzip2(bzip2::read::MultiBzDecoder<R>),
}

/// Unpacks what `input` gives.
#[cfg(feature = "compressed")]
pub(crate) fn reader<R: Read>(packed: Packed, input: R) -> Unpacked<R> {
    match packed {
        Packed::Gzip => Unpacked::Gzip(flate2::read::MultiGzDecoder::new(input)),
        Packed::Bzip2 => Unpacked::Bzip2(bzip2::read::MultiBzDecoder::new(input)),
    }
}

#[cfg(feature = "compressed")]
impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Gzip(input) => input.read(out),
            Self::Bzip2(input) => input.read(out),
        }
    }
}

/// A compressed input that this build cannot unpack.
#[cfg(not(feature = "compressed"))]
pub(crate) struct Unpacked<R>(Packed, std::marker::PhantomData<R>);

#[cfg(not(feature = "compressed"))]
pub(crate) fn reader<R>(packed: Packed, _input: R) -> Unpacked<R> {
    Unpacked(packed, std::marker::PhantomData)
}

#[cfg(not(feature = "compressed"))]
impl<R> Read for Unpacked<R> {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        let why = format!("built without feature `compressed`, which {} needs", self.0.name());
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }
}

/// The first bytes of what a compressed file holds; fewer than `len` where it ends or is broken.
///
/// ```
/// use rosbag12::unpack::first_bytes;
/// assert_eq!(first_bytes(b"#ROSRECORD V1.2\n", 64), None);
/// ```
pub fn first_bytes(file: &[u8], len: u64) -> Option<Vec<u8>> {
    let packed = Packed::of(file)?;
    let mut head = Vec::new();
    // What came before an error counts.
    let _ = reader(packed, file).take(len).read_to_end(&mut head);
    Some(head)
}

/// The bag in `file`, unpacked if it is compressed, and how it was.
pub(crate) fn whole(file: Bytes, options: &BagOptions) -> Result<(Bytes, Option<Packed>), BagError> {
    let Some(packed) = Packed::of(&file) else { return Ok((file, None)) };
    let what = packed.name();
    let limit = options.unpacked.min(RATIO.saturating_mul(file.len() as u64));
    let mut bag = Vec::new();
    let unpacked = reader(packed, &file[..]).take(limit.saturating_add(1)).read_to_end(&mut bag);
    if bag.len() as u64 > limit {
        return Err(BagError::UnpacksTooLarge { what, limit });
    }
    match unpacked {
        Ok(_) => Ok((bag.into(), Some(packed))),
        // What is whole in a cut file is a bag that is cut.
        Err(_) if bag.len() > crate::version::LINE_MAX => Ok((bag.into(), Some(packed))),
        Err(error) => Err(BagError::Unpack { what, why: error.to_string() }),
    }
}

/// Takes note that the bag was compressed.
pub(crate) fn note(packed: Packed, diagnostics: &mut Diagnostics) {
    diagnostics.push(&rules::COMPRESSED, 0..1, || {
        format!("the whole file is compressed with {}: offsets count in what it holds", packed.name())
    });
}

/// Fails once more than a limit was read.
pub(crate) struct Limited<R> {
    input: R,
    limit: u64,
    left: u64,
}

/// More than this many bytes were read.
#[derive(Debug, thiserror::Error)]
#[error("more than {0} bytes")]
struct TooMany(u64);

impl<R> Limited<R> {
    pub(crate) fn new(input: R, limit: u64) -> Self {
        Self { input, limit, left: limit }
    }
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(out)?;
        self.left =
            self.left.checked_sub(read as u64).ok_or_else(|| io::Error::other(TooMany(self.limit)))?;
        Ok(read)
    }
}

/// Why an input that is `packed` so could not be read.
pub(crate) fn failed(packed: Option<Packed>, error: io::Error) -> BagError {
    let Some(what) = packed.map(Packed::name) else { return error.into() };
    if let Some(TooMany(limit)) = error.get_ref().and_then(|error| error.downcast_ref()) {
        return BagError::UnpacksTooLarge { what, limit: *limit };
    }
    match error.kind() {
        // What the decoders say of bytes that they cannot make sense of.
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
            BagError::Unpack { what, why: error.to_string() }
        }
        _ => error.into(),
    }
}

#[cfg(all(test, feature = "compressed"))]
mod tests {
    use super::*;
    use crate::stream::BagStream;

    /// What cannot be unpacked is called the same from a pipe as from a file.
    #[test]
    fn a_pipe_that_cannot_be_unpacked_says_why() {
        for log in rovelog_testing::corpus("rosbag", "bag", 40) {
            if Packed::of(&log.bytes).is_none() {
                continue;
            }
            let few = BagOptions { unpacked: 10, ..BagOptions::default() };
            let read = BagStream::new(&log.bytes[..], &few).map(drop);
            assert!(
                matches!(read, Err(BagError::UnpacksTooLarge { limit: 10, .. })),
                "{}: {read:?}",
                log.name
            );
            let mut noise = log.bytes.to_vec();
            noise[4..].fill(0x55);
            let read = BagStream::new(&noise[..], &BagOptions::default()).map(drop);
            assert!(matches!(read, Err(BagError::Unpack { .. })), "{}: {read:?}", log.name);
        }
    }
}
