//! Files that were found as logs, and properties that follow from their file names.

use std::path::Path;

use rovelog::format_by_name;
use serde::{Deserialize, Serialize};

/// Number of bytes that can be read in the time that it takes to open a log. This number is added
/// to the size of each log to estimate the time for opening and reading it.
#[cfg(feature = "lake")]
const OPENING_COST_BYTES: u64 = 64 << 10;

/// File name extensions of compressed files and archives, in lower case. An archive with a single log
/// has a name such as `flight.ulg.zip`.
pub const COMPRESSED: &[&str] = &["gz", "bz2", "xz", "zst", "lz4", "zip"];

/// A log that was found. The size and the time of the last change show whether the file has been
/// changed after it was found.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LogFile {
    /// Path or URL of the log.
    pub uri: String,
    /// Size of the file in bytes. If an RLD recording consists of several files, it is the sum of
    /// their sizes.
    pub size: u64,
    /// Time of the last change of the file, in microseconds since 1970.
    pub changed_us: i64,
}

impl LogFile {
    /// Returns an estimate of the time for opening and reading the log. It is expressed as the
    /// number of bytes that can be read in this time.
    #[cfg(feature = "lake")]
    pub(crate) fn cost(&self) -> u64 {
        self.size.saturating_add(OPENING_COST_BYTES)
    }

    /// Returns `true` if the extension of the file shows that it is compressed as a whole. Such a
    /// file cannot be divided into parts, because a part cannot be decompressed without the bytes
    /// before it.
    #[cfg(feature = "lake")]
    pub(crate) fn is_compressed(&self) -> bool {
        let extension = Path::new(&self.uri).extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| COMPRESSED.contains(&extension.to_ascii_lowercase().as_str()))
    }
}

/// Returns `true` if a file has the extension of a log, such as `.ulg` or `.bag.gz`.
pub fn is_log(path: &Path) -> bool {
    let Some(name) = path.file_name() else { return false };
    let name = name.to_string_lossy().to_ascii_lowercase();
    format_by_name(name.strip_suffix(".zip").unwrap_or(&name)).is_some()
}
