//! Moving a table of a lake to another name.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::layout::{Lake, files_below, remove_if_there, write_atomically};
use super::logs::{self, TableFile};
use super::tables::logs_in;
use crate::ScaleError;

/// Gives the files of a table the name of another one, and returns the logs that have rows in them.
/// `placed` are files of the table that no file in `_logs` names yet.
///
/// A run that is killed leaves each pack whole, under the old name or the new one: files get a second
/// name, then the file of the pack in `_logs` is replaced, then the old names are removed.
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
            // A file that is gone is repaired by its logs, under the new name.
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
        write_atomically(
            &path,
            &logs::with_files(&path, &files, |id| ids.contains(id).then_some((topic, to)))?,
        )?;
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

/// Returns the path of a file of table `from` in table `to`.
fn renamed(path: &str, from: &str, to: &str) -> Option<String> {
    let rest = path.strip_prefix(from)?.strip_prefix('/')?;
    Some(format!("{to}/{rest}"))
}

fn name_again(source: &Path, target: &Path) -> Result<(), ScaleError> {
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder).map_err(ScaleError::lake(folder))?;
    }
    remove_if_there(target)?;
    // A file system without hard links gets a copy.
    fs::hard_link(source, target)
        .or_else(|_| fs::copy(source, target).map(drop))
        .map_err(ScaleError::lake(target))
}
