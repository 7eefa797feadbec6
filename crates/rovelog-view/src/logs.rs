//! Keeps the list of logs that the page in the browser shows, and a cache of open logs.

use std::collections::HashSet;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use rovelog::core::internal::parallel::lock;
use rovelog::{ReadOptions, Watch};
use rovelog_explore::{Answer, Explore};
use rovelog_scale::LogFile;
use serde_json::json;

use crate::error::ViewError;

/// Maximum number of logs that are open at the same time.
const MAX_OPEN_LOGS: usize = 8;

/// A log in the list that the page shows.
#[derive(Debug)]
pub(crate) struct ListedLog {
    pub(crate) file: LogFile,
    /// Name of the log on the page. It is the path relative to the folder that contains all logs.
    pub(crate) name: String,
    /// Lock that is held while the log is being opened, so that two requests do not open it twice.
    opening: Mutex<()>,
    /// Row of this log in the list, as JSON text. It is computed once.
    row: OnceLock<Box<[u8]>>,
}

/// All logs that the page can show.
#[derive(Debug)]
pub(crate) struct Logs {
    list: Vec<ListedLog>,
    options: ReadOptions,
    format: Option<String>,
    /// Open logs in the order in which they are closed when the cache is full. Logs that were
    /// opened only to fill their row in the list come before logs that are shown. Within each of
    /// these groups, the least recently used log comes first.
    open: Mutex<Vec<CachedLog>>,
}

/// Purpose for which a log was opened. If the cache is full, logs with the first purpose are closed
/// first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Purpose {
    Row,
    Shown,
}

/// An open log in the cache, with its number in the list.
#[derive(Debug)]
struct CachedLog {
    number: usize,
    purpose: Purpose,
    opened: Arc<Opened>,
}

/// An open log.
#[derive(Debug)]
pub(crate) struct Opened {
    explore: Explore,
    /// Detects whether the file of the log was shortened.
    watch: Watch,
}

impl Logs {
    /// Finds the logs of all sources.
    pub(crate) fn find<S: AsRef<str>>(
        sources: &[S],
        options: ReadOptions,
        format: Option<String>,
    ) -> Result<Self, ViewError> {
        let mut files = rovelog_scale::find(sources)?;
        let (folders, others): (Vec<&str>, Vec<&str>) =
            sources.iter().map(AsRef::as_ref).partition(|source| Path::new(source).is_dir());
        if !folders.is_empty() {
            // The user has allowed access to these folders, but not to files outside of them. So a
            // link that leads out of a folder is skipped, unless the user has also named its
            // target.
            let named = if others.is_empty() { Vec::new() } else { rovelog_scale::find(&others)? };
            let named: HashSet<&str> = named.iter().map(|file| &*file.uri).collect();
            let folders: Vec<PathBuf> =
                folders.iter().filter_map(|folder| Path::new(folder).canonicalize().ok()).collect();
            files.retain(|file| {
                // The path of a log in an archive starts with the path of the archive.
                let real =
                    Path::new(&file.uri).ancestors().find(|path| path.is_file()).map(Path::canonicalize);
                let is_inside = |path: PathBuf| folders.iter().any(|folder| path.starts_with(folder));
                named.contains(&*file.uri) || real.is_some_and(|path| path.is_ok_and(is_inside))
            });
        }
        let common = common(&files);
        let listed = |file: LogFile| {
            let name = Path::new(&file.uri).strip_prefix(&common).unwrap_or(Path::new(&file.uri));
            let name = name.to_string_lossy().into_owned();
            ListedLog { name, file, opening: Mutex::default(), row: OnceLock::new() }
        };
        let list = files.into_iter().map(listed).collect();
        Ok(Self { list, options, format, open: Mutex::default() })
    }

    pub(crate) fn list(&self) -> &[ListedLog] {
        &self.list
    }

    /// Returns a log that is to be shown. It comes from the cache, or is opened.
    pub(crate) fn open(&self, number: usize) -> Result<Arc<Opened>, String> {
        self.open_for(number, Purpose::Shown)
    }

    /// Returns the row of a log in the list of logs, as JSON. If the log cannot be opened, the row
    /// contains the error.
    ///
    /// The log is opened, or comes from the cache. If the cache is full, a log that was opened for
    /// this purpose is closed before a log that the page shows. So filling thousands of rows does
    /// not close the shown logs.
    pub(crate) fn row(&self, number: usize) -> Result<Vec<u8>, String> {
        let listed = self.list.get(number).ok_or("there is no such log")?;
        let row = || {
            let answer = self.open_for(number, Purpose::Row).and_then(|opened| opened.answer("row"));
            let failed = |error| json!({ "error": error, "file": listed.name }).to_string().into_bytes();
            answer.map_or_else(failed, |(answer, _)| answer.bytes).into()
        };
        Ok(listed.row.get_or_init(row).to_vec())
    }

    /// Returns a log from the cache, or opens it. If the file of a cached log was shortened, the
    /// log is opened again.
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
        let file = Path::new(&listed.file.uri);
        let path = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let explore = Explore::new(log, &*listed.name, path.to_string_lossy());
        let opened = Arc::new(Opened { explore, watch });
        self.keep(number, purpose, &opened);
        Ok(opened)
    }

    /// Removes a log from the cache and returns it.
    fn take(&self, number: usize) -> Option<(Purpose, Arc<Opened>)> {
        let mut open = lock(&self.open);
        let at = open.iter().position(|kept| kept.number == number)?;
        let kept = open.remove(at);
        Some((kept.purpose, kept.opened))
    }

    /// Adds a log to the cache. If the cache is full, evicts another log. A request that still uses
    /// the evicted log keeps it open until the request is done.
    fn keep(&self, number: usize, purpose: Purpose, opened: &Arc<Opened>) {
        let mut open = lock(&self.open);
        let at = open.partition_point(|kept| kept.purpose <= purpose);
        open.insert(at, CachedLog { number, purpose, opened: Arc::clone(opened) });
        let closed = (open.len() > MAX_OPEN_LOGS).then(|| open.remove(0));
        // The lock is released first, because closing a large log takes time.
        drop(open);
        drop(closed);
    }
}

impl Opened {
    /// Answers a request. Returns the answer, and a description of the bytes and records of the log
    /// that could not be read.
    pub(crate) fn answer(&self, request: &str) -> Result<(Answer, Option<String>), String> {
        let work = |explore: &Explore| explore.answer(request).map_err(|error| error.to_string());
        Ok((self.run(work)?, self.explore.losses()))
    }

    /// Calls `work` with the log. Returns an error if the file of the log has been shortened in the
    /// meantime.
    ///
    /// The memory map of a shortened file contains zeros where the index expects records, and `work`
    /// may panic. In this case, the panic becomes an error of this request.
    fn run<T>(&self, work: impl FnOnce(&Explore) -> Result<T, String>) -> Result<T, String> {
        let result = panic::catch_unwind(AssertUnwindSafe(|| work(&self.explore)));
        self.watch.check().map_err(|error| error.to_string())?;
        result.unwrap_or_else(|failed| panic::resume_unwind(failed))
    }
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
    fn a_panic_because_of_a_truncated_log_is_an_error_of_the_request() {
        /// Reads all records of the log. Panics in the same way as a reader that relies on an
        /// index.
        fn fail(explore: &Explore) -> Result<(), String> {
            let records =
                explore.log().records(&Select::all()).filter_map(|record| Some(record.ok()?.payload[0]));
            panic!("on purpose, after {} records", records.map(usize::from).sum::<usize>());
        }

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large.bag");
        // The file is so large that it is memory-mapped.
        let bag = std::fs::read(rovelog_testing::root().join("corpus/rosbag/recorded.bag")).unwrap();
        std::fs::write(&path, bag.repeat(300)).unwrap();
        let logs = Logs::find(&[path.to_str().unwrap()], ReadOptions::default(), None).unwrap();
        let opened = logs.open(0).unwrap();
        assert!(opened.explore.log().info().records > 1000);
        // If the file was not shortened, a panic is not converted to an error.
        assert!(panic::catch_unwind(AssertUnwindSafe(|| opened.run(fail))).is_err());
        std::fs::File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
        assert!(opened.run(fail).unwrap_err().contains("shortened"));
    }

    #[test]
    fn only_the_most_recently_used_logs_stay_open() {
        let folder = tempfile::tempdir().unwrap();
        let log = rovelog_testing::root().join("corpus/ulog/one-topic.ulg");
        for number in 0..3 * MAX_OPEN_LOGS {
            std::fs::copy(&log, folder.path().join(format!("{number:02}.ulg"))).unwrap();
        }
        let logs = Logs::find(&[folder.path().to_str().unwrap()], ReadOptions::default(), None).unwrap();
        let mut opened: Vec<Weak<Opened>> = Vec::new();
        for number in 0..logs.list().len() {
            opened.push(Arc::downgrade(&logs.open(number).unwrap()));
            // Log 0 is used repeatedly, so it stays in the cache.
            assert!(Weak::ptr_eq(&opened[0], &Arc::downgrade(&logs.open(0).unwrap())));
            let open = opened.iter().filter(|log| log.strong_count() > 0).count();
            assert_eq!(open, MAX_OPEN_LOGS.min(number + 1));
        }
        let last = opened.len() - (MAX_OPEN_LOGS - 1);
        assert!(opened[last..].iter().all(|log| log.strong_count() == 1));
        // If a log is evicted while it is used, it stays open.
        let used = logs.open(last).unwrap();
        (0..MAX_OPEN_LOGS).for_each(|number| drop(logs.open(number).unwrap()));
        assert_eq!(Arc::strong_count(&used), 1);
        assert!(used.explore.log().info().records > 0);
        // Logs that were opened for their rows in the list evict each other, but not the shown
        // logs.
        let shown: Vec<_> = (0..MAX_OPEN_LOGS).map(|number| logs.open(number).unwrap()).collect();
        (MAX_OPEN_LOGS..3 * MAX_OPEN_LOGS).for_each(|number| drop(logs.row(number).unwrap()));
        assert!(shown.iter().all(|log| Arc::strong_count(log) == 2));
    }
}
