//! Files that were found as logs, and properties that follow from their names.

use std::path::Path;

use rovelog::FORMATS;
use serde::{Deserialize, Serialize};

/// Number of bytes whose reading takes as long as opening a log. It makes plans count the work of
/// many tiny logs.
#[cfg(feature = "lake")]
const OPENING: u64 = 64 << 10;

/// Endings of files that are compressed as a whole, and of archives with one log: `flight.ulg.zip`.
const COMPRESSED: &[&str] = &["gz", "bz2", "xz", "zst", "lz4", "zip"];

/// A log that was found, with its size and time of change, which show whether it has changed since.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LogFile {
    /// Path or URL of the file.
    pub uri: String,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last change in microseconds since 1970.
    pub changed_us: i64,
}

impl LogFile {
    /// Returns the estimated work of reading the log, in bytes.
    #[cfg(feature = "lake")]
    pub(crate) fn cost(&self) -> u64 {
        self.size.saturating_add(OPENING)
    }

    /// Returns whether the file is compressed as a whole, by its extension. Such a file cannot be
    /// divided, because a part cannot be read without the bytes before it.
    #[cfg(feature = "lake")]
    pub(crate) fn is_compressed(&self) -> bool {
        let extension = Path::new(&self.uri).extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| COMPRESSED.contains(&extension.to_ascii_lowercase().as_str()))
    }
}

/// Returns whether a file is a log, by its extension.
pub(crate) fn is_log(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    let name = name.to_ascii_lowercase();
    let (mut stem, mut extension) = name.rsplit_once('.').unwrap_or((&name, ""));
    if COMPRESSED.contains(&extension) {
        (stem, extension) = stem.rsplit_once('.').unwrap_or((stem, ""));
    }
    let known = FORMATS.iter().any(|format| format.extensions.contains(&extension));
    known && !stem.is_empty() && !is_further_part(path)
}

/// Returns whether a file is a further part of an RLD recording, by a name such as `x_p1.rld`.
pub(crate) fn is_further_part(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    let name = name.to_ascii_lowercase();
    let number = name.strip_suffix(".rld").and_then(|stem| stem.rsplit_once("_p")).map(|(_, number)| number);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}
