//! Incomplete outputs. A signal that ends the program removes them first.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A folder sorts before its content, so the list is removed from its end.
static PATHS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// The files and folders to remove. No signal ends the program while it is locked.
pub(crate) struct Unfinished(MutexGuard<'static, BTreeSet<PathBuf>>);

/// Locks the list.
pub(crate) fn lock() -> Unfinished {
    #[cfg(unix)]
    signals::watch();
    Unfinished(PATHS.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Unfinished {
    pub(crate) fn add(&mut self, path: &Path) {
        self.0.insert(path.to_owned());
    }

    /// Keeps `path`: it is complete.
    pub(crate) fn keep(&mut self, path: &Path) {
        self.0.remove(path);
    }

    /// Returns all paths below `top`, and `top` itself.
    pub(crate) fn below(&self, top: &Path) -> Vec<PathBuf> {
        self.0.iter().filter(|path| path.starts_with(top)).cloned().collect()
    }

    /// Keeps all paths below `top`.
    pub(crate) fn keep_below(&mut self, top: &Path) {
        self.0.retain(|path| !path.starts_with(top));
    }

    /// Removes `path` from the disk. A path that cannot be removed stays; its failure was reported
    /// before.
    pub(crate) fn remove(&mut self, path: &Path) {
        if self.0.remove(path) {
            let _ = fs::remove_file(path);
        }
    }

    /// Removes everything in the list below `top`, and `top` itself. Folders with other files stay.
    pub(crate) fn remove_below(&mut self, top: &Path) {
        for path in self.below(top).iter().rev() {
            let _ = if path.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) };
        }
        self.keep_below(top);
    }
}

#[cfg(unix)]
mod signals {
    use std::path::Path;
    use std::sync::Once;

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;

    /// Starts to watch for signals. Commands that write no file never call it, and end as any
    /// program does.
    pub(super) fn watch() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // Without the watcher, a signal leaves a partial file, which the next run replaces.
            let Ok(mut signals) = Signals::new(wanted()) else { return };
            std::thread::spawn(move || {
                for signal in signals.forever() {
                    let mut unfinished = super::lock();
                    unfinished.remove_below(Path::new(""));
                    // The list stays locked, so nothing new is started.
                    let _ = emulate_default_handler(signal);
                }
            });
        });
    }

    /// Returns the signals that end this program, without those that are ignored from its start, as
    /// with `nohup`.
    fn wanted() -> Vec<i32> {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        // If that is unknown, `nohup` still has to work.
        let ignored = ignored.unwrap_or(1 << (SIGHUP - 1));
        let ends = |signal: &i32| ignored >> (signal - 1) & 1 == 0;
        [SIGHUP, SIGINT, SIGTERM].into_iter().filter(ends).collect()
    }
}
