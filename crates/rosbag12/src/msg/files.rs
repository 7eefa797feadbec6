//! Definitions of types in files: `.msg` files, alone or in the folders of packages.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

use rovelog_core::limits::read_description;

/// Folders within folders that are looked into.
const DEPTH: usize = 8;

/// Maximum number of files and folders that are looked at. A folder may have links that lead to it
/// again.
const MAX_ENTRIES: usize = 100_000;

/// Maximum size in bytes of all definitions together.
const MAX_BYTES: usize = 64 << 20;

/// Reads the definitions at `path`: a file `.msg`, or a folder with such files, however deep. A
/// type is of the package whose folder `msg` its file is in (`std_msgs/msg/String.msg`), else of
/// the folder that it is in.
///
/// # Errors
/// Returns an error if nothing can be read there, there is no such file, or a file is longer than 1
/// MiB or all of them than 64 MiB.
pub fn read(path: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut found = Found::default();
    let path = path.canonicalize()?;
    collect(&path, DEPTH, &mut found)?;
    if found.definitions.is_empty() {
        return Err(Error::new(ErrorKind::NotFound, "there is no .msg file of a package"));
    }
    Ok(found.definitions)
}

/// The definitions so far, and what was looked at for them.
#[derive(Default)]
struct Found {
    definitions: BTreeMap<String, Vec<u8>>,
    entries: usize,
    bytes: usize,
}

fn collect(path: &Path, depth: usize, found: &mut Found) -> Result<()> {
    found.entries += 1;
    if found.entries > MAX_ENTRIES || found.bytes > MAX_BYTES {
        let why = format!("there are more than {MAX_ENTRIES} files, or more than 64 MiB of definitions");
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

/// Returns the full name of the type that a file defines: `std_msgs/String`. A file alone may have
/// it as `std_msgs-String.msg`.
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
    fn a_type_is_of_the_package_that_its_file_is_in() {
        for (path, name) in [
            ("/ros/std_msgs/msg/String.msg", "std_msgs/String"),
            ("/types/zoo_msgs/Blob.msg", "zoo_msgs/Blob"),
            ("/types/zoo_msgs-Blob.msg", "zoo_msgs/Blob"),
        ] {
            assert_eq!(name_of(Path::new(path)).as_deref(), Some(name));
        }
    }
}
