//! Compressed files that contain a whole log, such as `flight.ulg.gz`.
//!
//! The facade `rovelog` decompresses the file and passes the bytes of the log to a reader. This
//! module describes whether the compressed data is complete, and reports a missing end as a
//! diagnostic.

use crate::Diagnostics;

crate::rules! {
    PACKED_CUT "E-FILE-001" "packed_cut" DataLost
        "the compressed file is truncated inside its data, so the end of the log is lost; the part before it \
         is read"
    PACKED_UNCHECKED "E-FILE-002" "packed_unchecked" DataLost
        "the compressed file is truncated before its checksum; all data is read, but damage in it cannot be \
         detected"
    PACKED_FOLLOWED "E-FILE-003" "packed_followed" DataLost
        "the compressed data is followed by other bytes, which are not read"
    COMPRESSED "W-FILE-101" "compressed" Note
        "the whole file is compressed; the offsets in messages refer to the decompressed log"
    PACKED_PADDING "W-FILE-102" "packed_padding" Note
        "zero bytes follow the compressed data, as tapes and block devices write them; no data is lost"
}

/// Rules of the diagnostics that report missing content of a compressed file.
const LOSSES: [&crate::Rule; 3] = [&PACKED_CUT, &PACKED_UNCHECKED, &PACKED_FOLLOWED];

/// State of the end of a compressed file: complete, missing, or followed by other bytes. All
/// offsets refer to the compressed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The compressed data is complete. Its checksum matches, or the compression format has no
    /// checksum.
    Checked,
    /// The file ends inside the compressed data.
    Cut {
        /// Size of the compressed file in bytes.
        at: u64,
    },
    /// The file ends after the compressed data and before the checksum.
    Unchecked {
        /// Size of the compressed file in bytes.
        at: u64,
    },
    /// The compressed data is complete and its checksum matches, but bytes follow that are not
    /// compressed data.
    Followed {
        /// Offset of the first byte after the compressed data.
        at: u64,
        /// Number of bytes after the compressed data.
        len: u64,
        /// True if all bytes after the compressed data are zero.
        zeros: bool,
    },
}

/// Compression of a file that contains a whole log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packing {
    /// Name of the compression, such as `gzip`.
    pub name: &'static str,
    /// State of the end of the compressed file.
    pub ending: Ending,
    /// Size of the decompressed log in bytes.
    pub size: u64,
}

impl Packing {
    /// Adds a diagnostic that the log was compressed. Adds another diagnostic if the compressed
    /// data is incomplete or followed by other bytes.
    pub fn note(&self, diagnostics: &mut Diagnostics) {
        let Self { name, ending, size } = *self;
        // The note concerns the whole file, so its range is the first byte.
        diagnostics.push(&COMPRESSED, 0..1, || {
            format!(
                "the whole file is compressed with {name}; the offsets in messages refer to the decompressed \
                 log"
            )
        });
        // The missing end has no bytes in the decompressed log, so its range is empty and at the
        // end of the log.
        let end = size..size;
        match ending {
            Ending::Checked => {}
            Ending::Cut { at } => diagnostics.push(&PACKED_CUT, end, || {
                format!("the {name} file is truncated at byte {at}, so the end of the log is lost")
            }),
            Ending::Unchecked { at } => diagnostics.push(&PACKED_UNCHECKED, end, || {
                format!(
                    "the {name} file is truncated at byte {at}, before its checksum, so damage in its data \
                     cannot be detected"
                )
            }),
            Ending::Followed { at, len, zeros: true } => diagnostics.push(&PACKED_PADDING, end, || {
                format!(
                    "{len} zero bytes follow the {name} data at byte {at} of the compressed file; no data is \
                     lost"
                )
            }),
            Ending::Followed { at, len, zeros: false } => diagnostics.push(&PACKED_FOLLOWED, end, || {
                format!(
                    "{len} bytes that are not {name} data follow at byte {at} of the compressed file and are \
                     not read"
                )
            }),
        }
    }
}

/// Returns the number of diagnostics about a compressed file whose end is missing.
pub fn cuts(diagnostics: &Diagnostics) -> u64 {
    let counts = diagnostics.counts();
    [&PACKED_CUT, &PACKED_UNCHECKED].iter().filter_map(|rule| counts.get(rule.code)).sum()
}

/// Returns whether part of the compressed file's content is missing.
pub(crate) fn is_partial(diagnostics: &Diagnostics) -> bool {
    LOSSES.iter().any(|rule| diagnostics.counts().contains_key(rule.code))
}
