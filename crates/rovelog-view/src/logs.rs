//! The logs of the page: a fixed list, and a cache of open logs.

use std::collections::HashSet;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rovelog::{AnyLog, ReadOptions, Watch};
use rovelog_export::plot::Overview;
use rovelog_export::{TimeBase, report};
use rovelog_scale::LogFile;

use crate::error::ViewError;

/// Maximum number of logs open at a time.
const MOST_OPEN: usize = 8;

/// Maximum memory for the overviews of a log, in bytes. The oldest are evicted first.
const MOST_OVERVIEWS: usize = 128 << 20;

/// A log in the list.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) file: LogFile,
    /// Name shown on the page: the path relative to the common folder of all logs.
    pub(crate) name: String,
    /// Locked while the log is being opened, so that two requests do not open it twice.
    opening: Mutex<()>,
    /// Cached row of the list as JSON text, which takes a tenth of the memory of a JSON value.
    pub(crate) summary: OnceLock<Box<str>>,
}

/// All logs of the page.
#[derive(Debug)]
pub(crate) struct Logs {
    list: Vec<Listed>,
    options: ReadOptions,
    format: Option<String>,
    /// The open logs in eviction order: first those opened for a row of the list, then those shown,
    /// each least recently used first.
    open: Mutex<Vec<Kept>>,
}

/// Purpose for which a log was opened, in eviction order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Purpose {
    Row,
    Shown,
}

/// A cached open log with its number.
#[derive(Debug)]
struct Kept {
    number: usize,
    purpose: Purpose,
    opened: Arc<Opened>,
}

/// An open log.
pub(crate) struct Opened {
    pub(crate) log: AnyLog,
    watch: Watch,
    /// Shown time range in nanoseconds of the log's clock.
    pub(crate) span: (i64, i64),
    /// Overviews, the oldest first.
    overviews: Mutex<Vec<Arc<Overview>>>,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened").field("span", &self.span).finish_non_exhaustive()
    }
}

impl Logs {
    pub(crate) fn find<S: AsRef<str>>(
        sources: &[S],
        options: ReadOptions,
        format: Option<String>,
    ) -> Result<Self, ViewError> {
        let mut files = rovelog_scale::find(sources)?;
        let (folders, others): (Vec<&str>, Vec<&str>) =
            sources.iter().map(AsRef::as_ref).partition(|source| Path::new(source).is_dir());
        if !folders.is_empty() {
            // Links that lead out of a folder are skipped, unless the user also named their target.
            let named = if others.is_empty() { Vec::new() } else { rovelog_scale::find(&others)? };
            let named: HashSet<&str> = named.iter().map(|file| &*file.uri).collect();
            let folders: Vec<PathBuf> =
                folders.iter().filter_map(|folder| Path::new(folder).canonicalize().ok()).collect();
            files.retain(|file| {
                let path = Path::new(&file.uri).canonicalize();
                let is_inside = |path: PathBuf| folders.iter().any(|folder| path.starts_with(folder));
                named.contains(&*file.uri) || path.is_ok_and(is_inside)
            });
        }
        let common = common(&files);
        let listed = |file: LogFile| {
            let name = Path::new(&file.uri).strip_prefix(&common).unwrap_or(Path::new(&file.uri));
            let name = name.to_string_lossy().into_owned();
            Listed { name, file, opening: Mutex::default(), summary: OnceLock::new() }
        };
        let list = files.into_iter().map(listed).collect();
        Ok(Self { list, options, format, open: Mutex::default() })
    }

    pub(crate) fn list(&self) -> &[Listed] {
        &self.list
    }

    /// Opens a log to show it, or returns it from the cache.
    pub(crate) fn open(&self, number: usize) -> Result<Arc<Opened>, String> {
        self.open_for(number, Purpose::Shown)
    }

    /// Opens a log for its row in the list. Such logs are evicted first, so that thousands of rows
    /// do not close the logs that are shown.
    pub(crate) fn open_for_row(&self, number: usize) -> Result<Arc<Opened>, String> {
        self.open_for(number, Purpose::Row)
    }

    fn open_for(&self, number: usize, purpose: Purpose) -> Result<Arc<Opened>, String> {
        let listed = self.list.get(number).ok_or("there is no such log")?;
        let _opening = lock(&listed.opening);
        if let Some((known, open)) = self.take(number)
            && open.watch.check().is_ok()
        {
            self.keep(number, known.max(purpose), &open);
            return Ok(open);
        }
        let opened = rovelog::open_watched(&listed.file.uri, self.format.as_deref(), &self.options);
        let (log, watch) = opened.map_err(|error| error.to_string())?;
        let span = report::span(&log).unwrap_or((0, 1));
        let opened = Arc::new(Opened { log, watch, span, overviews: Mutex::default() });
        self.keep(number, purpose, &opened);
        Ok(opened)
    }

    /// Removes a log from the cache.
    fn take(&self, number: usize) -> Option<(Purpose, Arc<Opened>)> {
        let mut open = lock(&self.open);
        let at = open.iter().position(|kept| kept.number == number)?;
        let kept = open.remove(at);
        Some((kept.purpose, kept.opened))
    }

    /// Adds a log to the cache, and evicts another if the cache is full. A request that still uses
    /// an evicted log keeps it open until it is done.
    fn keep(&self, number: usize, purpose: Purpose, opened: &Arc<Opened>) {
        let mut open = lock(&self.open);
        let at = open.partition_point(|kept| kept.purpose <= purpose);
        open.insert(at, Kept { number, purpose, opened: Arc::clone(opened) });
        let closed = (open.len() > MOST_OPEN).then(|| open.remove(0));
        // Release the lock first, because closing a large log takes time.
        drop(open);
        drop(closed);
    }
}

impl Opened {
    /// Runs `work` on the log. If the file was truncated in the meantime, the memory map has zeros
    /// where the index expects records and `work` may panic. That panic becomes an error of the
    /// request, not a crash of the server.
    pub(crate) fn run<T>(&self, work: impl FnOnce(&Self) -> Result<T, String>) -> Result<T, String> {
        panic::catch_unwind(AssertUnwindSafe(|| work(self))).unwrap_or_else(|failed| {
            self.checked(())?;
            panic::resume_unwind(failed)
        })
    }

    /// Returns `result` if the file has not been truncated in the meantime.
    pub(crate) fn checked<T>(&self, result: T) -> Result<T, String> {
        self.watch.check().map_err(|error| error.to_string())?;
        Ok(result)
    }

    /// Returns the Unix time of the start in milliseconds, if the time axis can show UTC.
    pub(crate) fn unix_ms(&self) -> Option<f64> {
        TimeBase::of(&*self.log).axis_start(self.span.0).map(|nanos| nanos as f64 / 1e6)
    }

    /// Converts a time to seconds since the start of the log.
    pub(crate) fn seconds(&self, nanos: i64) -> f64 {
        nanos.saturating_sub(self.span.0) as f64 / 1e9
    }

    /// Converts seconds since the start of the log to a time.
    #[expect(clippy::cast_possible_truncation, reason = "saturates")]
    pub(crate) fn nanos(&self, seconds: f64) -> i64 {
        self.span.0.saturating_add((seconds * 1e9).round() as i64)
    }

    /// Locks the overviews. They stay locked during a pass over the log, so that no signal is read
    /// twice.
    pub(crate) fn overviews(&self) -> MutexGuard<'_, Vec<Arc<Overview>>> {
        lock(&self.overviews)
    }
}

/// Evicts the oldest overviews while they use too much memory, but none of the last `keep`.
pub(crate) fn limit(overviews: &mut Vec<Arc<Overview>>, keep: usize) {
    let mut bytes: usize = overviews.iter().map(|overview| overview.bytes()).sum();
    while bytes > MOST_OVERVIEWS && overviews.len() > keep {
        bytes -= overviews.remove(0).bytes();
    }
}

/// Locks a mutex even if another request panicked while holding it. The data is consistent at all
/// times.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the deepest folder that contains all files.
fn common(files: &[LogFile]) -> PathBuf {
    let folder = |file: &LogFile| Path::new(&file.uri).parent().map(Path::to_path_buf).unwrap_or_default();
    let join = |a: PathBuf, b: PathBuf| {
        a.components().zip(b.components()).take_while(|(a, b)| a == b).map(|(a, _)| a).collect()
    };
    files.iter().map(folder).reduce(join).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Weak;

    use rovelog::Select;

    use super::*;

    #[cfg(unix)]
    #[test]
    fn work_on_a_log_that_is_shortened_is_no_failure_of_the_server() {
        /// Reads all records of the log, and panics like a reader that relies on an index.
        fn fail(opened: &Opened) -> Result<(), String> {
            let records =
                opened.log.records(&Select::all()).filter_map(|record| Some(record.ok()?.payload[0]));
            panic!("on purpose, after {} records", records.map(usize::from).sum::<usize>());
        }

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large.bag");
        // Large enough to be memory mapped.
        let bag = std::fs::read(rovelog_testing::root().join("corpus/rosbag/recorded.bag")).unwrap();
        std::fs::write(&path, bag.repeat(300)).unwrap();
        let logs = Logs::find(&[path.to_str().unwrap()], ReadOptions::default(), None).unwrap();
        let opened = logs.open(0).unwrap();
        assert!(opened.log.info().records > 1000);
        // A panic with another cause is passed on.
        assert!(panic::catch_unwind(AssertUnwindSafe(|| opened.run(fail))).is_err());
        std::fs::File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
        assert!(opened.run(fail).unwrap_err().contains("shortened"));
    }

    #[test]
    fn only_the_logs_that_were_used_last_stay_open() {
        let folder = tempfile::tempdir().unwrap();
        let log = rovelog_testing::root().join("corpus/ulog/one-topic.ulg");
        for number in 0..3 * MOST_OPEN {
            std::fs::copy(&log, folder.path().join(format!("{number:02}.ulg"))).unwrap();
        }
        let logs = Logs::find(&[folder.path().to_str().unwrap()], ReadOptions::default(), None).unwrap();
        let mut opened: Vec<Weak<Opened>> = Vec::new();
        for number in 0..logs.list().len() {
            opened.push(Arc::downgrade(&logs.open(number).unwrap()));
            // Log 0 stays in use.
            assert!(Weak::ptr_eq(&opened[0], &Arc::downgrade(&logs.open(0).unwrap())));
            let open = opened.iter().filter(|log| log.strong_count() > 0).count();
            assert_eq!(open, MOST_OPEN.min(number + 1));
        }
        let last = opened.len() - (MOST_OPEN - 1);
        assert!(opened[last..].iter().all(|log| log.strong_count() == 1));
        // A log in use stays open after its eviction.
        let used = logs.open(last).unwrap();
        (0..MOST_OPEN).for_each(|number| drop(logs.open(number).unwrap()));
        assert_eq!(Arc::strong_count(&used), 1);
        assert!(used.log.info().records > 0);
        // Logs opened for rows evict each other, not the shown logs.
        let shown: Vec<_> = (0..MOST_OPEN).map(|number| logs.open(number).unwrap()).collect();
        (MOST_OPEN..3 * MOST_OPEN).for_each(|number| drop(logs.open_for_row(number).unwrap()));
        assert!(shown.iter().all(|log| Arc::strong_count(log) == 2));
    }
}
