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

/// Unpacks what `input` gives.
#[cfg(feature = "compressed")]
pub(crate) fn reader<'a>(packed: Packed, input: impl Read + Send + 'a) -> Box<dyn Read + Send + 'a> {
    match packed {
        Packed::Gzip => Box::new(flate2::read::MultiGzDecoder::new(input)),
        Packed::Bzip2 => Box::new(bzip2::read::MultiBzDecoder::new(input)),
    }
}

#[cfg(not(feature = "compressed"))]
pub(crate) fn reader<'a>(packed: Packed, _input: impl Read + Send + 'a) -> Box<dyn Read + Send + 'a> {
    struct Refused(Packed);
    impl Read for Refused {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other(format!(
                "built without feature `compressed`, which {} needs",
                self.0.name()
            )))
        }
    }
    Box::new(Refused(packed))
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

/// Fails with `InvalidData` once more than a limit was read.
pub(crate) struct Limited<R> {
    pub(crate) input: R,
    pub(crate) left: u64,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(out)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "the compressed input unpacks to more than is allowed")
        })?;
        Ok(read)
    }
}
