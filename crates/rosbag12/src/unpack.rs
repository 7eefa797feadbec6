//! Bags that were compressed as a whole: a recorder of December 2009 wrote them, and people do.

use std::io::{self, Read};

use rovelog_core::{Bytes, Diagnostics};

use crate::diagnostics as rules;
use crate::error::BagError;
use crate::options::BagOptions;
#[cfg(feature = "compressed")]
pub(crate) use crate::unpacker::Unpacked;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packed {
    /// `1f 8b`.
    Gzip,
    /// `BZh`.
    Bzip2,
}

impl Packed {
    /// Returns how the file that starts with `head` is compressed, if it is.
    pub fn of(head: &[u8]) -> Option<Self> {
        match head {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Self::Bzip2),
            _ => None,
        }
    }

    /// Returns the name of the compression.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
        }
    }
}

/// How the compressed data of a file end. Offsets count in the compressed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "compressed"), expect(dead_code, reason = "nothing is unpacked then"))]
pub(crate) enum Ending {
    /// With a checksum that matches.
    Checked,
    /// Inside of the data: the file is cut.
    Cut { at: u64 },
    /// Behind the data and before their checksum: the file is cut there.
    Unchecked { at: u64 },
    /// With a checksum that matches; bytes follow that are no compressed data.
    Followed { at: u64, len: u64, zeros: bool },
}

/// Unpacks what `input` gives.
#[cfg(feature = "compressed")]
pub(crate) fn reader<R: std::io::BufRead>(packed: Packed, input: R) -> Unpacked<R> {
    Unpacked::new(packed, input)
}

/// A compressed input that this build cannot unpack.
#[cfg(not(feature = "compressed"))]
pub(crate) struct Unpacked<R>(Packed, std::marker::PhantomData<R>);

#[cfg(not(feature = "compressed"))]
pub(crate) fn reader<R>(packed: Packed, _input: R) -> Unpacked<R> {
    Unpacked(packed, std::marker::PhantomData)
}

#[cfg(not(feature = "compressed"))]
impl<R> Unpacked<R> {
    pub(crate) fn ending(&self) -> Ending {
        Ending::Checked
    }
}

#[cfg(not(feature = "compressed"))]
impl<R> Read for Unpacked<R> {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        let why = format!("built without feature `compressed`, which {} needs", self.0.name());
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }
}

/// Returns the first bytes of what a compressed file holds; fewer than `len` where it ends or is
/// broken.
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

/// Bytes that are unpacked at once.
const CHUNK: usize = 1 << 20;

/// A bag, and where it was compressed, how, and how the compressed data end.
type Whole = (Bytes, Packing);

/// How a bag was compressed and how the compressed data end; `None` if it was not.
pub(crate) type Packing = Option<(Packed, Ending)>;

/// Returns the bag in `file`, unpacked if it is compressed.
///
/// It is unpacked into memory, never beyond the limit: see "Compressed files" in
/// docs/formats/rosbag.md.
pub(crate) fn whole(file: Bytes, options: &BagOptions) -> Result<Whole, BagError> {
    let Some(packed) = Packed::of(&file) else { return Ok((file, None)) };
    let what = packed.name();
    let limit = options.read.limits.unpacked;
    let mut reader = reader(packed, &file[..]);
    // The first `filled` bytes of `bag` are those of the bag.
    let (mut bag, mut filled) = (Vec::new(), 0);
    loop {
        if filled == bag.len() {
            // A quarter more at a time: what is reserved stays near to what is needed.
            let more = CHUNK.max(filled / 4);
            bag.try_reserve_exact(more).map_err(|_| BagError::UnpackMemory { what, len: filled as u64 })?;
            bag.resize(filled + CHUNK, 0);
        }
        match reader.read(&mut bag[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) => return Err(failed(Some(packed), filled as u64, error)),
        }
        if filled as u64 > limit {
            return Err(BagError::UnpacksTooLarge { what, limit });
        }
    }
    bag.truncate(filled);
    Ok((bag.into(), Some((packed, reader.ending()))))
}

/// Takes note that the bag was compressed.
pub(crate) fn note(packed: Packed, diagnostics: &mut Diagnostics) {
    diagnostics.push(&rules::COMPRESSED, 0..1, || {
        format!(
            "the whole file is compressed with {}: offsets are those of the decompressed bag",
            packed.name()
        )
    });
}

/// Takes note of how the compressed data end, which hold a bag of `size` bytes.
pub(crate) fn note_ending(packed: Packed, ending: Ending, size: u64, diagnostics: &mut Diagnostics) {
    let what = packed.name();
    // The end of the bag: no byte of what was unpacked is lost.
    let end = size..size;
    match ending {
        Ending::Checked => {}
        Ending::Cut { at } => diagnostics.push(&rules::PACKED_CUT, end, || {
            format!("the {what} file is cut at its byte {at}: the end of the data is missing")
        }),
        Ending::Unchecked { at } => diagnostics.push(&rules::PACKED_UNCHECKED, end, || {
            format!("the {what} file is cut at its byte {at}: the checksum of the data is missing")
        }),
        Ending::Followed { at, len, zeros: true } => {
            diagnostics.push(&rules::PACKED_PADDING, end, || {
                format!("{len} zero bytes follow the {what} data, from byte {at} of the compressed file on")
            });
        }
        Ending::Followed { at, len, zeros: false } => {
            diagnostics.push(&rules::PACKED_FOLLOWED, end, || {
                format!(
                    "{len} bytes after the {what} data, from byte {at} of the compressed file, are not {what} data"
                )
            });
        }
    }
}

/// Why a bag could not be started: what is too short of a compressed file that is cut is no bag of
/// another kind.
pub(crate) fn not_begun(packed: Option<(Packed, Ending)>, error: BagError) -> BagError {
    match packed {
        Some((packed, Ending::Cut { at })) => {
            BagError::Unpack { what: packed.name(), why: format!("it is cut at its byte {at}") }
        }
        _ => error,
    }
}

/// Why an input that is `packed` so could not be read, behind `len` unpacked bytes.
pub(crate) fn failed(packed: Option<Packed>, len: u64, error: io::Error) -> BagError {
    let Some(what) = packed.map(Packed::name) else { return error.into() };
    match error.kind() {
        io::ErrorKind::InvalidData => BagError::Unpack { what, why: error.to_string() },
        io::ErrorKind::OutOfMemory => BagError::UnpackMemory { what, len },
        _ => error.into(),
    }
}
