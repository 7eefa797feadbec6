//! Paths of files in a lake, and the lock that its only writer holds.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ScaleError;

/// A lake in a folder.
#[derive(Clone, Debug)]
pub struct Lake {
    root: PathBuf,
}

/// The lock of the writer of a lake. The system releases it when the program ends in any way.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "held until it is dropped")] File);

impl Lake {
    /// Creates a lake in a folder, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Returns the folder of the lake.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.root.join("_logs")
    }

    pub(crate) fn own(&self) -> PathBuf {
        self.root.join("_rovelog")
    }

    pub(crate) fn staging(&self) -> PathBuf {
        self.own().join("staging")
    }

    pub(crate) fn quarantine(&self) -> PathBuf {
        self.own().join("quarantine")
    }

    /// Returns the path of the file that describes the columns of a table.
    pub(crate) fn columns(&self, table: &str) -> PathBuf {
        self.own().join("tables").join(format!("{table}.json"))
    }

    /// Checks that the folder is a lake, or is empty so that it can become one.
    pub(crate) fn check_folder(&self) -> Result<(), ScaleError> {
        // If the folder cannot be read, creating the lake returns the error.
        let is_filled = || fs::read_dir(&self.root).is_ok_and(|mut entries| entries.next().is_some());
        // `_logs` is checked last, because another run may just be creating the lake, starting with
        // this folder.
        if !is_filled() || self.logs().is_dir() {
            return Ok(());
        }
        Err(ScaleError::NotLake(self.root.display().to_string()))
    }

    /// Creates the folders of the lake, and waits until no other program writes to it. If another
    /// program does, `wait` is called once.
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

/// Writes a file atomically.
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
        file.sync_all()?;
        fs::rename(&part, path)
    };
    write().map_err(|error| {
        // The first error is returned. A part that cannot be removed is found by `lake check`.
        let _ = fs::remove_file(&part);
        ScaleError::lake(path)(error)
    })
}

/// Removes a file, if it exists.
pub(crate) fn remove_if_there(path: &Path) -> Result<(), ScaleError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(ScaleError::lake(path)(error)),
        _ => Ok(()),
    }
}

/// Reads a JSON file; `None` if it does not exist.
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

/// Returns the files in a folder and in all folders below that have an extension, sorted by path.
/// Empty if the folder does not exist. Links to folders are not followed, because they can lead out
/// of the lake.
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
