//! List of the output files and folders that are not complete yet. They are removed if the command
//! fails, or if a signal ends the process.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Paths of incomplete files and folders. A folder sorts before the files in it. So the paths are
/// deleted from the end of the list, which removes the files before their folder.
static PATHS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Exclusive access to the list of incomplete outputs. While it exists, no signal ends the process.
pub(crate) struct Unfinished(MutexGuard<'static, BTreeSet<PathBuf>>);

/// Locks the list of incomplete outputs. The first call also starts to handle signals.
pub(crate) fn lock() -> Unfinished {
    #[cfg(unix)]
    signals::watch();
    Unfinished(PATHS.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Unfinished {
    pub(crate) fn add(&mut self, path: &Path) {
        self.0.insert(path.to_owned());
    }

    /// Removes `path` from the list, because the file is complete now.
    pub(crate) fn complete(&mut self, path: &Path) {
        self.0.remove(path);
    }

    /// Returns the paths in the list that are equal to `top` or below it.
    pub(crate) fn below(&self, top: &Path) -> Vec<PathBuf> {
        self.0.iter().filter(|path| path.starts_with(top)).cloned().collect()
    }

    /// Removes `top` and all paths below it from the list, because they are complete now.
    pub(crate) fn complete_below(&mut self, top: &Path) {
        self.0.retain(|path| !path.starts_with(top));
    }

    /// Deletes the file at `path` and removes the path from the list. An error is ignored, because
    /// the command has already failed for another reason.
    pub(crate) fn remove(&mut self, path: &Path) {
        if self.0.remove(path) {
            let _ = fs::remove_file(path);
        }
    }

    /// Deletes all files and folders in the list that are equal to `top` or below it. A folder that
    /// also contains files which are not in the list remains.
    pub(crate) fn remove_below(&mut self, top: &Path) {
        for path in self.below(top).iter().rev() {
            let _ = if path.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) };
        }
        self.complete_below(top);
    }
}

#[cfg(unix)]
mod signals {
    use std::path::Path;
    use std::sync::Once;

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    /// Starts to handle signals. A command that writes no file never calls this function, so a
    /// signal ends it immediately.
    pub(super) fn watch() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // If no signal handler can be installed, a signal leaves a partial file behind. The
            // next run of the command replaces it.
            let Ok(mut signals) = Signals::new(wanted()) else { return };
            std::thread::spawn(move || {
                for signal in signals.forever() {
                    let mut unfinished = super::lock();
                    unfinished.remove_below(Path::new(""));
                    // The list remains locked until the process ends. So no thread can create
                    // another file.
                    let _ = emulate_default_handler(signal);
                }
            });
        });
    }

    /// Returns the signals to handle. A signal that was already ignored when the process started
    /// remains ignored. For example, `nohup` starts a process with SIGHUP ignored.
    fn wanted() -> Vec<i32> {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        // Without `/proc`, it is unknown which signals are ignored. SIGHUP is then left alone, so
        // that `nohup` works.
        let ignored = ignored.unwrap_or(1 << (SIGHUP - 1));
        let ends = |signal: &i32| ignored >> (signal - 1) & 1 == 0;
        [SIGHUP, SIGINT, SIGTERM].into_iter().filter(ends).collect()
    }
}
