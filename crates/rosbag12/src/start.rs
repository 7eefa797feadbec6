//! Reads the version line at the start of a bag. The version line may be damaged (rule D8 in
//! docs/formats/rosbag.md).

use rovelog_core::Diagnostics;

use crate::diagnostics as rules;
use crate::error::BagError;
use crate::version::{self, Version, VersionLine};
use crate::{v2, validate};

/// Reads the version line at the start of `head`. If the version line is damaged or missing,
/// searches for the first record of a V2.0 or V1.2 bag instead. Records of older versions have no
/// header by which they could be recognized.
pub(crate) fn find(head: &[u8]) -> Result<VersionLine, BagError> {
    version::parse(head).or_else(|error| match (&error, first_record(head)) {
        (BagError::NotBag | BagError::BadVersionLine, Some((version, len))) => {
            Ok(VersionLine { version, text: String::new(), len, crlf: false, is_damaged: true })
        }
        _ => Err(error),
    })
}

/// Returns whether a file that starts with `head` is a bag whose version line is damaged or
/// missing.
pub(crate) fn recognizes(head: &[u8]) -> bool {
    first_record(head).is_some()
}

/// Searches `head` for the first record of a bag. Returns the version of the bag and the offset of
/// the record. The version is known from the header fields, because the fields of V2.0 and V1.2
/// records differ.
fn first_record(head: &[u8]) -> Option<(Version, u64)> {
    let v2 = v2::first_record(head).map(|at| (Version::V2_0, at));
    v2.or_else(|| validate::first_record(head).map(|at| (Version::V1_2, at)))
}

/// Reports a version line that is damaged or that ends in CR LF.
pub(crate) fn report(line: &VersionLine, diagnostics: &mut Diagnostics) {
    let len = line.len;
    if line.is_damaged {
        diagnostics.push(&rules::VERSION_LINE_DAMAGED, 0..len, || {
            format!(
                "the file does not start with a valid version line; it is read as a V{} bag from its first \
                 record at byte {len}",
                line.version.name()
            )
        });
    }
    if line.crlf {
        diagnostics.push(&rules::VERSION_LINE_CRLF, 0..len, || {
            "the version line ends with CR LF instead of LF; all records are read".to_owned()
        });
    }
}
