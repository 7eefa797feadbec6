//! The start of a bag whose version line may be damaged. Rule D8 of docs/formats/rosbag.md.

use crate::error::BagError;
use crate::v2;
use crate::version::{self, Version, VersionLine};

/// Reads the version line at the start of `head`, or finds the first record behind one that is
/// damaged: V2.0 only, whose records say what they are.
pub(crate) fn find(head: &[u8]) -> Result<VersionLine, BagError> {
    version::parse(head).or_else(|error| match (&error, v2::first_record(head)) {
        (BagError::NotBag | BagError::BadVersionLine, Some(len)) => {
            let (version, text) = (Version::V2_0, String::new());
            Ok(VersionLine { version, text, len, crlf: false, is_damaged: true })
        }
        _ => Err(error),
    })
}

/// Returns whether a file that starts with `head` is a bag of V2.0 with a damaged version line.
pub(crate) fn recognizes(head: &[u8]) -> bool {
    v2::first_record(head).is_some()
}
