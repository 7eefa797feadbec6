//! Checks of a lake. Every file that the table `_logs` lists must exist. All files that it does not
//! list are reported.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use rovelog_export::sha256;
use serde::Serialize;

use super::layout::{Lake, Lock, files_below, remove_if_there};
use super::logs::{TableFile, from_parquet};
use super::tables::is_name;
use crate::ScaleError;

/// Maximum time to wait for the workers of a killed `ingest`. Workers end as soon as they notice
/// that the `ingest` was killed, but this can take time on a busy machine.
const MAX_DELAY: Duration = Duration::from_secs(10);

/// Result of checking a lake.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// Number of logs in the lake, including failed logs.
    pub logs: usize,
    /// Number of logs that could not be added to the lake.
    pub failed: usize,
    /// Number of intact Parquet files in all tables of the lake except `_logs`.
    pub files: usize,
    /// Number of rows in the intact files of all tables except `_logs`.
    pub rows: u64,
    /// Total size in bytes of the intact files of all tables except `_logs`.
    pub bytes: u64,
    /// Descriptions of problems. For example, a file is missing, was written by another program, or
    /// does not have the size that the table `_logs` states.
    pub problems: Vec<String>,
    /// Paths of files that the table `_logs` does not list, because the `ingest` that wrote them
    /// was killed or is still running.
    pub unnamed: Vec<String>,
}

/// Compares the files of a lake with the table `_logs`, which states their sizes and hashes. The
/// hashes are compared only if `content` is true, because this requires reading each file
/// completely.
///
/// # Errors
/// Returns an error if the lake cannot be read.
pub fn check(lake: &Lake, content: bool) -> Result<Checked, ScaleError> {
    let mut checked = Checked::default();
    let mut ids = BTreeMap::new();
    let named = listed_files(lake, &mut |path, logs, _| {
        for log in logs {
            checked.logs += 1;
            checked.failed += usize::from(log.failed);
            if let Some(id) = &log.id
                && let Some(first) = ids.insert(id.clone(), path.to_owned())
            {
                checked.problems.push(format!("log {id} is in the lake twice, in {first} and in {path}"));
            }
        }
    })?;
    for (path, file) in &named {
        match rows_of(&lake.root().join(path)) {
            Ok((rows, bytes)) if (rows, bytes) == (file.rows, file.bytes) => {
                if content && let Err(why) = compare_hash(&lake.root().join(path), file) {
                    checked.problems.push(format!("{path}: {why}"));
                }
                (checked.files, checked.rows, checked.bytes) =
                    (checked.files + 1, checked.rows + rows, checked.bytes + bytes);
            }
            Ok((rows, bytes)) => checked.problems.push(format!(
                "{path} has {rows} rows and {bytes} bytes, but it had {} rows and {} bytes when it was added",
                file.rows, file.bytes
            )),
            Err(error) => checked.problems.push(format!("{path}: {error}")),
        }
    }
    let (own, foreign) = unlisted_files(lake, &named)?;
    checked.unnamed = own.iter().map(|path| path.display().to_string()).collect();
    checked.problems.extend(foreign.iter().map(|path| {
        let path = path.display();
        format!("{path} was not written by rovelog, but programs that read this table would read it, too")
    }));
    Ok(checked)
}

/// Removes the files that a killed `ingest` left in the lake, and returns their paths. If another
/// program writes to the lake, `wait` is called once, and the function waits until that program has
/// finished.
///
/// # Errors
/// Returns an error if the lake cannot be read or changed.
pub fn clean(lake: &Lake, wait: impl FnOnce()) -> Result<Vec<PathBuf>, ScaleError> {
    let lock = lake.lock(wait)?;
    remove_unlisted(lake, &lock)
}

/// Removes the files that the table `_logs` does not list.
///
/// The caller holds the lock of the lake, so no other `ingest` is writing. The removed files were
/// therefore left behind by a killed `ingest`. Files of other programs have other names and are
/// never removed.
pub(crate) fn remove_unlisted(lake: &Lake, _: &Lock) -> Result<Vec<PathBuf>, ScaleError> {
    let named = listed_files(lake, &mut |_, _, _| {})?;
    let (unnamed, _) = unlisted_files(lake, &named)?;
    for path in &unnamed {
        // A worker of a killed `ingest` may have removed the file in the meantime, so a missing
        // file is not an error.
        remove_if_there(path)?;
    }
    clear(&lake.staging())?;
    Ok(unnamed)
}

/// Removes all files in the staging folder. Workers of a killed `ingest` end shortly after it, and
/// may write more files before they end. So the removal is repeated until the folder is empty.
fn clear(staging: &Path) -> Result<(), ScaleError> {
    let started = Instant::now();
    loop {
        match fs::remove_dir_all(staging) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty && started.elapsed() < MAX_DELAY => {
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

/// Function that is called for each file of the table `_logs`. Its arguments are the path of this
/// file, the logs that the file describes, and the Parquet files that it lists.
type Visit<'a> = &'a mut dyn FnMut(&str, &[super::logs::KnownLog], &[TableFile]);

/// Returns the files that the table `_logs` lists, by their paths relative to the lake.
fn listed_files(lake: &Lake, visit: Visit<'_>) -> Result<BTreeMap<String, TableFile>, ScaleError> {
    let mut named = BTreeMap::new();
    for path in files_below(&lake.logs(), "parquet")? {
        let (logs, files) = from_parquet(&path)?;
        let name = path.strip_prefix(lake.root()).unwrap_or(&path).display().to_string();
        visit(&name, &logs, &files);
        named.extend(files.into_iter().map(|file| (file.path.clone(), file)));
    }
    Ok(named)
}

/// Returns the files of the lake that the table `_logs` does not list. The search covers Parquet
/// files in tables and in the staging folder, and incomplete files of `_logs`.
///
/// The first list contains files with names that this program uses. The second list contains files
/// of other programs.
fn unlisted_files(
    lake: &Lake,
    named: &BTreeMap<String, TableFile>,
) -> Result<(Vec<PathBuf>, Vec<PathBuf>), ScaleError> {
    let mut found = files_below(lake.root(), "parquet")?;
    let logs = lake.logs();
    // Checkpoints of Delta tables are also Parquet files. They are not reported.
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

/// Compares the hash of a file with the hash that the table `_logs` states.
fn compare_hash(path: &Path, file: &TableFile) -> Result<(), String> {
    let Some(expected) = &file.sha256 else {
        return Err(
            "the content cannot be compared, because an earlier version added this file without a hash"
                .to_owned(),
        );
    };
    let hash = File::open(path).and_then(sha256).map_err(|error| error.to_string())?;
    if hash == *expected {
        return Ok(());
    }
    Err("the content has changed since it was added; to restore the file, remove it and ingest again"
        .to_owned())
}

/// Returns the number of rows and the size in bytes of a Parquet file.
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
    fn removal_waits_for_workers_that_still_write() {
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
                // Errors are ignored, because the folder may just have been removed.
                let _ = fs::create_dir_all(&pack);
                let _ = fs::write(pack.join(number.to_string()), "PAR1");
            }
        });
        // The folder may have to be removed several times before the worker writes its last file.
        while !worker.is_finished() {
            remove_unlisted(&lake, &lock).unwrap();
        }
        worker.join().unwrap();
        remove_unlisted(&lake, &lock).unwrap();
        assert_eq!(fs::read_dir(lake.staging()).unwrap().count(), 0);
    }
}
