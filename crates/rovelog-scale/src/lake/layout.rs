//! Paths of the files in a lake, and the lock that ensures that only one program writes to the
//! lake.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ScaleError;

/// A lake, which is a folder of Parquet files with the content of many logs.
#[derive(Clone, Debug)]
pub struct Lake {
    root: PathBuf,
}

/// Lock of a lake. The operating system releases the lock when the program ends, even if the
/// program is killed.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "held until it is dropped")] File);

impl Lake {
    /// Creates a lake in a folder. The folder need not exist.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Returns the folder of the lake.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the folder of the table `_logs`.
    pub(crate) fn logs(&self) -> PathBuf {
        self.root.join("_logs")
    }

    /// Returns the folder `_rovelog` of the lake, which contains the files that are not part of a
    /// table.
    pub(crate) fn own(&self) -> PathBuf {
        self.root.join("_rovelog")
    }

    /// Returns the folder in which workers write files before they are added to the lake.
    pub(crate) fn staging(&self) -> PathBuf {
        self.own().join("staging")
    }

    /// Returns the folder with descriptions of the logs that crashed their worker.
    pub(crate) fn quarantine(&self) -> PathBuf {
        self.own().join("quarantine")
    }

    /// Returns the path of the file that describes the columns of a table.
    pub(crate) fn columns(&self, table: &str) -> PathBuf {
        self.own().join("tables").join(format!("{table}.json"))
    }

    /// Checks that the folder is a lake or can become a lake, that is, the folder is empty or does
    /// not exist.
    pub(crate) fn check_folder(&self) -> Result<(), ScaleError> {
        // An error that occurs while the folder is read is ignored here. Creating the lake then
        // returns the error.
        let is_filled = || fs::read_dir(&self.root).is_ok_and(|mut entries| entries.next().is_some());
        // The check for `_logs` comes last. Another program may be creating the lake at this
        // moment, and it creates `_logs` first.
        if !is_filled() || self.logs().is_dir() {
            return Ok(());
        }
        Err(ScaleError::NotLake(self.root.display().to_string()))
    }

    /// Creates the folders of the lake, and locks the lake. If another program writes to the lake,
    /// calls `wait` once, and waits until that program has finished.
    pub(crate) fn lock(&self, wait: impl FnOnce()) -> Result<Lock, ScaleError> {
        for folder in [self.logs(), self.staging(), self.quarantine()] {
            fs::create_dir_all(&folder).map_err(ScaleError::lake(&folder))?;
        }
        let path = self.own().join("lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(ScaleError::lake(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                wait();
                file.lock().map_err(ScaleError::lake(&path))?;
            }
            Err(TryLockError::Error(error)) => return Err(ScaleError::lake(&path)(error)),
        }
        Ok(Lock(file))
    }
}

/// Writes a file atomically. If the program is killed, the file has either its old or its new
/// content.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), ScaleError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(ScaleError::lake(folder))?;
    }
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    let write = || {
        let mut file = File::create(&part)?;
        file.write_all(bytes)?;
        // Without the call of `sync_all`, the file could be empty after a power failure.
        file.sync_all()?;
        fs::rename(&part, path)
    };
    write().map_err(|error| {
        // The error of writing or renaming is returned. If the incomplete file cannot be removed,
        // `rovelog lake check` reports it.
        let _ = fs::remove_file(&part);
        ScaleError::lake(path)(error)
    })
}

/// Removes a file. Does nothing if the file does not exist.
pub(crate) fn remove_if_there(path: &Path) -> Result<(), ScaleError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(ScaleError::lake(path)(error)),
        _ => Ok(()),
    }
}

/// Reads a JSON file. Returns `None` if the file does not exist.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, ScaleError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ScaleError::lake(path)(error)),
    };
    let value = serde_json::from_slice(&bytes);
    value.map(Some).map_err(|error| ScaleError::lake(path)(error.into()))
}

/// Writes a JSON file atomically.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), ScaleError> {
    let bytes = serde_json::to_vec(value).map_err(|error| ScaleError::lake(path)(error.into()))?;
    write_atomically(path, &bytes)
}

/// Returns the files in a folder and its subfolders that have the given extension, sorted by path.
///
/// The result is empty if the folder does not exist. Links to folders are not followed, because
/// they can lead out of the lake.
pub(crate) fn files_below(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, ScaleError> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(ScaleError::lake(&folder)(error)),
        };
        for entry in entries {
            let entry = entry.map_err(ScaleError::lake(&folder))?;
            let path = entry.path();
            if entry.file_type().map_err(ScaleError::lake(&path))?.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
