//! A log that is compressed as a whole (`.ulg.gz`): how its compressed data end, and what is noted
//! about that. The facade decompresses; readers get the bytes of the log.

use crate::Diagnostics;

crate::rules! {
    PACKED_CUT "E-FILE-001" "packed_cut" DataLost
        "a compressed file that is cut inside its data: the end of the log is missing"
    PACKED_UNCHECKED "E-FILE-002" "packed_unchecked" DataLost
        "a compressed file that is cut before its checksum: the log cannot be verified"
    PACKED_FOLLOWED "E-FILE-003" "packed_followed" DataLost
        "bytes after the compressed data that are not compressed data: not read"
    COMPRESSED "W-FILE-101" "compressed" Note
        "the whole file is compressed: offsets are those of the decompressed log"
    PACKED_PADDING "W-FILE-102" "packed_padding" Note
        "zero bytes after the compressed data, as tapes and block devices write them"
}

/// Rules of a compressed file whose content is not all there.
const LOSSES: [&crate::Rule; 3] = [&PACKED_CUT, &PACKED_UNCHECKED, &PACKED_FOLLOWED];

/// How the compressed data of a file end. Offsets count in the compressed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With a checksum that matches, or with the end of data that have no checksum.
    Checked,
    /// Inside of the data: the file is cut.
    Cut {
        /// The size of the file.
        at: u64,
    },
    /// Behind the data and before their checksum: the file is cut there.
    Unchecked {
        /// The size of the file.
        at: u64,
    },
    /// With a checksum that matches; bytes follow that are no compressed data.
    Followed {
        /// Offset of these bytes.
        at: u64,
        /// Their number.
        len: u64,
        /// Whether all of them are zero.
        zeros: bool,
    },
}

/// How the file that holds a log is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packing {
    /// Name of the compression: `gzip`.
    pub name: &'static str,
    /// How the compressed data end.
    pub ending: Ending,
    /// Bytes of the log, decompressed.
    pub size: u64,
}

impl Packing {
    /// Notes that the log was compressed, and how the compressed data end.
    pub fn note(&self, diagnostics: &mut Diagnostics) {
        let Self { name, ending, size } = *self;
        diagnostics.push(&COMPRESSED, 0..1, || {
            format!("the whole file is compressed with {name}: offsets are those of the decompressed log")
        });
        // The end of the log: no byte of what was decompressed is lost.
        let end = size..size;
        match ending {
            Ending::Checked => {}
            Ending::Cut { at } => diagnostics.push(&PACKED_CUT, end, || {
                format!("the {name} file is cut at its byte {at}: the end of the data is missing")
            }),
            Ending::Unchecked { at } => diagnostics.push(&PACKED_UNCHECKED, end, || {
                format!("the {name} file is cut at its byte {at}: the checksum of the data is missing")
            }),
            Ending::Followed { at, len, zeros: true } => diagnostics.push(&PACKED_PADDING, end, || {
                format!("{len} zero bytes follow the {name} data, from byte {at} of the compressed file on")
            }),
            Ending::Followed { at, len, zeros: false } => diagnostics.push(&PACKED_FOLLOWED, end, || {
                format!(
                    "{len} bytes after the {name} data, from byte {at} of the compressed file, are not {name} data"
                )
            }),
        }
    }
}

/// Returns how many losses say that the compressed file is cut.
pub fn cuts(diagnostics: &Diagnostics) -> u64 {
    let counts = diagnostics.counts();
    [&PACKED_CUT, &PACKED_UNCHECKED].iter().filter_map(|rule| counts.get(rule.code)).sum()
}

/// Returns whether some content of the compressed file is not there.
pub(crate) fn is_partial(diagnostics: &Diagnostics) -> bool {
    LOSSES.iter().any(|rule| diagnostics.counts().contains_key(rule.code))
}
