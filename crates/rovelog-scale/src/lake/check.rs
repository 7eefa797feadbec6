//! Checks of a lake: every file that is named is there, and every file that is there is named.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use serde::Serialize;

use super::layout::{Lake, Lock, files_below, remove_if_there};
use super::logs::{Named, from_parquet};
use super::tables::is_name;
use crate::ScaleError;

/// How long workers of a run that was killed may still write. They notice at once, but a machine
/// can be busy.
const LAST_WRITES: Duration = Duration::from_secs(10);

/// What a lake has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// Logs, those that failed included.
    pub logs: usize,
    /// Logs that failed.
    pub failed: usize,
    /// Files in tables.
    pub files: usize,
    /// Rows in tables.
    pub rows: u64,
    /// Bytes of the files in tables.
    pub bytes: u64,
    /// What is wrong: a file that is missing, differs from what `_logs` says, or is of another
    /// program.
    pub problems: Vec<String>,
    /// Files that `_logs` does not name: of a run that was killed, or is running.
    pub unnamed: Vec<String>,
}

/// Compares the files of a lake with what `_logs` says.
///
/// # Errors
/// Returns an error if the lake cannot be read.
pub fn check(lake: &Lake) -> Result<Checked, ScaleError> {
    let mut checked = Checked::default();
    let mut ids = BTreeMap::new();
    let named = named(lake, &mut |path, logs, _| {
        for log in logs {
            checked.logs += 1;
            checked.failed += usize::from(log.failed);
            if let Some(id) = &log.id
                && let Some(first) = ids.insert(id.clone(), path.to_owned())
            {
                checked.problems.push(format!("log {id} is in {first} and {path}"));
            }
        }
    })?;
    for (path, file) in &named {
        match rows_of(&lake.root().join(path)) {
            Ok((rows, bytes)) if (rows, bytes) == (file.rows, file.bytes) => {
                (checked.files, checked.rows, checked.bytes) =
                    (checked.files + 1, checked.rows + rows, checked.bytes + bytes);
            }
            Ok((rows, bytes)) => checked.problems.push(format!(
                "{path}: {rows} rows, {bytes} bytes; there were {} rows, {} bytes when it was added",
                file.rows, file.bytes
            )),
            Err(error) => checked.problems.push(format!("{path}: {error}")),
        }
    }
    let (own, foreign) = unnamed(lake, &named)?;
    checked.unnamed = own.iter().map(|path| path.display().to_string()).collect();
    let foreign = foreign.iter();
    checked.problems.extend(
        foreign.map(|path| format!("{}: of another program; readers of the table read it", path.display())),
    );
    Ok(checked)
}

/// Removes the files of runs that were killed. Returns their paths.
///
/// # Errors
/// Returns an error if the lake cannot be read or changed.
pub fn clean(lake: &Lake, wait: impl FnOnce()) -> Result<Vec<PathBuf>, ScaleError> {
    let lock = lake.lock(wait)?;
    remove_unnamed(lake, &lock)
}

/// Removes what no file in `_logs` names. No other run writes: what is not named is of a run that was
/// killed. Files that are not named as ours are never removed.
pub(crate) fn remove_unnamed(lake: &Lake, _: &Lock) -> Result<Vec<PathBuf>, ScaleError> {
    let named = named(lake, &mut |_, _, _| {})?;
    let (unnamed, _) = unnamed(lake, &named)?;
    for path in &unnamed {
        // A worker that ends may remove its own.
        remove_if_there(path)?;
    }
    clear(&lake.staging())?;
    Ok(unnamed)
}

/// Removes what is in a folder that workers write to. Those of a run that was killed end with it,
/// but not in the same moment: until then their files can become more.
fn clear(staging: &Path) -> Result<(), ScaleError> {
    let started = Instant::now();
    loop {
        match fs::remove_dir_all(staging) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty && started.elapsed() < LAST_WRITES => {
                thread::sleep(Duration::from_millis(10));
            }
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(ScaleError::lake(staging)(error));
            }
            _ => break,
        }
    }
    fs::create_dir_all(staging).map_err(ScaleError::lake(staging))
}

type Visit<'a> = &'a mut dyn FnMut(&str, &[super::logs::Known], &[Named]);

/// Returns the files that `_logs` names, by their paths in the lake.
fn named(lake: &Lake, visit: Visit<'_>) -> Result<BTreeMap<String, Named>, ScaleError> {
    let mut named = BTreeMap::new();
    for path in files_below(&lake.logs(), "parquet")? {
        let (logs, files) = from_parquet(&path)?;
        let name = path.strip_prefix(lake.root()).unwrap_or(&path).display().to_string();
        visit(&name, &logs, &files);
        named.extend(files.into_iter().map(|file| (file.path.clone(), file)));
    }
    Ok(named)
}

/// Returns the Parquet files in tables and in staging, and parts of files in `_logs`, that are not
/// named: our own, and those of other programs.
fn unnamed(lake: &Lake, named: &BTreeMap<String, Named>) -> Result<(Vec<PathBuf>, Vec<PathBuf>), ScaleError> {
    let mut found = files_below(lake.root(), "parquet")?;
    let logs = lake.logs();
    // Checkpoints of a Delta log are Parquet files, too.
    found.retain(|path| {
        let inside = path.strip_prefix(lake.root()).unwrap_or(path);
        let of_delta = inside.iter().any(|part| part == "_delta_log");
        let name = inside.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/");
        !of_delta && !path.starts_with(&logs) && !named.contains_key(&name)
    });
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let is_own = |path: &PathBuf| {
        let in_month = path.parent().and_then(name).is_some_and(|folder| folder.starts_with("month="));
        path.starts_with(lake.staging()) || in_month && name(path).is_some_and(|name| is_name(&name))
    };
    let (mut own, foreign): (Vec<_>, Vec<_>) = found.into_iter().partition(is_own);
    own.extend(files_below(&logs, "part")?);
    Ok((own, foreign))
}

fn rows_of(path: &Path) -> Result<(u64, u64), String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let bytes = file.metadata().map_err(|error| error.to_string())?.len();
    let reader = SerializedFileReader::new(file).map_err(|error| error.to_string())?;
    Ok((u64::try_from(reader.metadata().file_metadata().num_rows()).unwrap_or(0), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_that_still_write_are_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let lake = Lake::new(folder.path());
        let lock = lake.lock(|| {}).unwrap();
        let pack = lake.staging().join("pack-1");
        fs::create_dir_all(&pack).unwrap();
        let until = Instant::now() + Duration::from_millis(300);
        let worker = thread::spawn(move || {
            for number in 0.. {
                if Instant::now() > until {
                    break;
                }
                // The folder may be gone just now.
                let _ = fs::create_dir_all(&pack);
                let _ = fs::write(pack.join(number.to_string()), "PAR1");
            }
        });
        // It may be removed several times before the last file is written.
        while !worker.is_finished() {
            remove_unnamed(&lake, &lock).unwrap();
        }
        worker.join().unwrap();
        remove_unnamed(&lake, &lock).unwrap();
        assert_eq!(fs::read_dir(lake.staging()).unwrap().count(), 0);
    }
}
