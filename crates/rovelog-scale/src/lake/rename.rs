//! Renaming of a table in a lake.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::layout::{Lake, files_below, remove_if_there, write_atomically};
use super::logs::{self, TableFile};
use super::tables::logs_in;
use crate::ScaleError;

/// Moves the files of the table `from` to the table `to`. Returns the ids of the logs that have
/// rows in these files. `placed` lists the files of the table that are not yet listed in `_logs`.
///
/// For each pack, its Parquet files first get a second name in the table `to`. Then the pack's file
/// in `_logs` is replaced, and the old names are removed. If the program is killed between these
/// steps, `_logs` lists either all old names or all new names, and the listed files exist.
pub(super) fn move_table(
    lake: &Lake,
    from: &str,
    to: &str,
    topic: &str,
    placed: &mut [TableFile],
) -> Result<BTreeSet<String>, ScaleError> {
    let mut moved = BTreeSet::new();
    for path in files_below(&lake.logs(), "parquet")? {
        let (_, mut files) = logs::from_parquet(&path)?;
        let (mut old, mut ids) = (Vec::new(), BTreeSet::new());
        for file in &mut files {
            let Some(new) = renamed(&file.path, from, to) else { continue };
            let (source, target) = (lake.root().join(&file.path), lake.root().join(&new));
            // If the file is missing, only its name in `_logs` changes. The next `ingest` reads the
            // logs of the pack again, and writes the file under the new name.
            if source.exists() {
                name_again(&source, &target)?;
                ids.extend(logs_in(&target)?);
            }
            file.path = new;
            old.push(source);
        }
        if old.is_empty() {
            continue;
        }
        let content = logs::with_files(&path, &files, |id| ids.contains(id).then_some((topic, to)))?;
        write_atomically(&path, &content)?;
        old.iter().try_for_each(|path| remove_if_there(path))?;
        moved.extend(ids);
    }
    for file in placed {
        let Some(new) = renamed(&file.path, from, to) else { continue };
        let (source, target) = (lake.root().join(&file.path), lake.root().join(&new));
        name_again(&source, &target)?;
        moved.extend(logs_in(&target)?);
        remove_if_there(&source)?;
        file.path = new;
    }
    Ok(moved)
}

/// Returns the path that a file has after it was moved from the table `from` to the table `to`.
/// Returns `None` if the file is not in the table `from`.
fn renamed(path: &str, from: &str, to: &str) -> Option<String> {
    let rest = path.strip_prefix(from)?.strip_prefix('/')?;
    Some(format!("{to}/{rest}"))
}

/// Gives the file `source` a second name, which is `target`.
fn name_again(source: &Path, target: &Path) -> Result<(), ScaleError> {
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder).map_err(ScaleError::lake(folder))?;
    }
    remove_if_there(target)?;
    // If the file system does not support hard links, the file is copied.
    fs::hard_link(source, target)
        .or_else(|_| fs::copy(source, target).map(drop))
        .map_err(ScaleError::lake(target))
}
