//! Reads definitions from `.msg` files.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

use rovelog_core::internal::limits::read_description;

/// Maximum depth of nested folders that are searched for `.msg` files.
const DEPTH: usize = 8;

/// Maximum number of files and folders that are examined. Links to folders may form a cycle, so the
/// number of files may be infinite.
const MAX_ENTRIES: usize = 100_000;

/// Maximum size in bytes of all definitions that are read.
const MAX_BYTES: usize = 64 << 20;

/// Reads the definition in a `.msg` file, or all definitions in a folder and its subfolders.
///
/// The package of a type is the folder that contains the folder `msg` of the file. For example,
/// `std_msgs/msg/String.msg` belongs to the package `std_msgs`. If the file is not in a folder
/// `msg`, the package is the folder that contains the file.
///
/// # Errors
/// Returns an error if `path` cannot be read, if `path` contains no `.msg` file, if a file is
/// larger than 1 MiB, or if all files together are larger than 64 MiB.
pub fn read(path: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut found = FoundFiles::default();
    let path = path.canonicalize()?;
    collect(&path, DEPTH, &mut found)?;
    if found.definitions.is_empty() {
        return Err(Error::new(ErrorKind::NotFound, "the path contains no .msg file of a package"));
    }
    Ok(found.definitions)
}

/// Definitions found so far, and the totals that are limited.
#[derive(Default)]
struct FoundFiles {
    /// Map from the full name of a type to the text of its definition.
    definitions: BTreeMap<String, Vec<u8>>,
    /// Number of examined files and folders.
    entries: usize,
    /// Total size in bytes of the definitions found so far.
    bytes: usize,
}

fn collect(path: &Path, depth: usize, found: &mut FoundFiles) -> Result<()> {
    found.entries += 1;
    if found.entries > MAX_ENTRIES || found.bytes > MAX_BYTES {
        let why =
            format!("the path contains more than {MAX_ENTRIES} files, or more than 64 MiB of definitions");
        return Err(Error::new(ErrorKind::FileTooLarge, why));
    }
    if path.is_dir() {
        if depth > 0 {
            let mut inside =
                fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
            inside.sort();
            for path in inside {
                collect(&path, depth - 1, found)?;
            }
        }
        return Ok(());
    }
    if path.extension().is_some_and(|extension| extension == "msg")
        && let Some(name) = name_of(path)
    {
        let text = File::open(path).and_then(read_description);
        let named = |error: Error| Error::new(error.kind(), format!("{}: {error}", path.display()));
        let text = text.map_err(named)?;
        found.bytes += text.len();
        found.definitions.insert(name, text);
    }
    Ok(())
}

/// Returns the full name of the type that a file defines, such as `std_msgs/String`. If the file
/// name contains a hyphen, such as `std_msgs-String.msg`, the file name alone gives the full name.
fn name_of(path: &Path) -> Option<String> {
    let name = path.file_stem()?.to_str()?;
    if let Some((package, name)) = name.split_once('-') {
        return Some(format!("{package}/{name}"));
    }
    let folder = path.parent()?;
    let package = if folder.file_name()? == "msg" { folder.parent()? } else { folder };
    Some(format!("{}/{name}", package.file_name()?.to_str()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_file_determines_the_package() {
        for (path, name) in [
            ("/ros/std_msgs/msg/String.msg", "std_msgs/String"),
            ("/types/zoo_msgs/Blob.msg", "zoo_msgs/Blob"),
            ("/types/zoo_msgs-Blob.msg", "zoo_msgs/Blob"),
        ] {
            assert_eq!(name_of(Path::new(path)).as_deref(), Some(name));
        }
    }
}
