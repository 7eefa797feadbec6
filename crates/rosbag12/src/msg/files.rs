//! Definitions of types in files: `.msg` files, alone or in the folders of packages.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// Folders within folders that are looked into.
const DEPTH: usize = 8;

/// Reads the definitions at `path`: a file `.msg`, or a folder with such files, however deep. A
/// type is of the package whose folder `msg` its file is in (`std_msgs/msg/String.msg`), else of
/// the folder that it is in.
///
/// # Errors
/// Returns an error if nothing can be read there, or there is no such file.
pub fn read(path: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let path = path.canonicalize()?;
    collect(&path, DEPTH, &mut found)?;
    if found.is_empty() {
        return Err(Error::new(ErrorKind::NotFound, "there is no .msg file of a package"));
    }
    Ok(found)
}

fn collect(path: &Path, depth: usize, found: &mut BTreeMap<String, Vec<u8>>) -> Result<()> {
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
        found.insert(name, fs::read(path)?);
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
