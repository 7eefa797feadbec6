//! List of the files in a tar archive, up to the first damage of the archive.

use std::io::Cursor;
use std::ops::Range;

use tar::EntryType;

/// Size of a block in bytes. Headers and file contents fill whole blocks.
const BLOCK: usize = 512;

/// A file in a tar archive.
pub(crate) struct TarFile {
    /// Path of the file in the archive.
    pub(super) name: String,
    /// Byte range of the file's contents within the archive.
    pub(super) data: Range<usize>,
}

/// The files in a tar archive, in archive order.
pub(crate) struct TarFiles {
    /// All files, or only the files before the damage if the archive is damaged.
    pub(super) list: Vec<TarFile>,
    /// Description of the first damage, or `None` if the archive is intact. Files after the damage
    /// cannot be found.
    pub(super) damage: Option<String>,
}

impl TarFiles {
    /// Lists the files of an archive up to its end or to the first damaged header.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut list = Vec::new();
        let damage = find(bytes, &mut list).err().map(|error| error.to_string());
        Self { list, damage }
    }
}

/// Returns whether a file that starts with `head` is a tar archive.
pub(super) fn is_tar(head: &[u8]) -> bool {
    let has_magic = head.get(257..262) == Some(b"ustar");
    // The iterator verifies the checksum of the header. The magic number alone is not sufficient,
    // because other files may contain the same bytes.
    let has_sum = |header| {
        matches!(tar::Archive::new(header).entries().map(|all| all.raw(true).next()), Ok(Some(Ok(_))))
    };
    has_magic && head.get(..BLOCK).is_some_and(has_sum)
}

/// Appends the files of an archive to `list`. Returns an error at the first damage.
fn find(bytes: &[u8], list: &mut Vec<TarFile>) -> std::io::Result<()> {
    let mut archive = tar::Archive::new(Cursor::new(bytes));
    for entry in archive.entries_with_seek()? {
        let entry = entry?;
        // Folders, links and devices have no data.
        if !matches!(entry.header().entry_type(), EntryType::Regular | EntryType::Continuous) {
            continue;
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let start = usize::try_from(entry.raw_file_position()).ok();
        let data = start.zip(usize::try_from(entry.size()).ok());
        let range = data.and_then(|(start, size)| Some(start..start.checked_add(size)?));
        match range.filter(|range| range.end <= bytes.len()) {
            Some(data) => list.push(TarFile { name, data }),
            None => return Err(std::io::Error::other(format!("it ends within {name}"))),
        }
    }
    Ok(())
}
