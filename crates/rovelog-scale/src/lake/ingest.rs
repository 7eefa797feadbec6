//! Adds logs to a lake. Finds new logs, divides them into packs, runs workers that write the files
//! of the packs, and adds these files to the lake. A pack consists of logs that are added together.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Mutex, mpsc};
use std::thread;

use rovelog::core::internal::parallel::lock;
use rovelog_export::sha256;
use serde::Serialize;

use super::check::remove_unlisted;
use super::commit::commit;
use super::layout::{Lake, Lock, files_below, remove_if_there, write_json};
use super::logs::{KnownLog, LogRow, Status, TableFile, from_parquet};
use super::member::{Member, Pack, short_hash};
use super::pack::{Failure, Packed};
use super::places::Split;
use super::work::Worker;
use crate::{LogFile, ScaleError, find};

/// Default total size in bytes of the logs that are added together as a pack.
const PACK_BYTES: u64 = 128 << 20;

/// Maximum number of attempts to write the files of a pack if its workers crash.
const MAX_ATTEMPTS: u32 = 2;

/// Options for adding logs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of worker processes that run at the same time.
    pub jobs: usize,
    /// Approximate total size in bytes of the logs that are added together as a pack.
    pub pack_bytes: u64,
    /// True to add logs again that crashed their worker process earlier.
    pub retry_quarantined: bool,
    /// Kind of worker that writes the files of the lake.
    pub worker: Worker,
}

impl Options {
    /// Creates options with one worker for each processor. Logs with a total of about 128 MiB are
    /// added together.
    pub fn new(worker: Worker) -> Self {
        let jobs = thread::available_parallelism().map_or(1, usize::from);
        Self { jobs, pack_bytes: PACK_BYTES, retry_quarantined: false, worker }
    }
}

/// Progress of adding logs to a lake, which is reported to the user.
#[derive(Debug)]
pub enum Progress<'a> {
    /// The program waits for another program that writes to the lake.
    Waiting,
    /// The sources were searched for logs.
    Found {
        /// Number of logs that are not in the lake.
        new: usize,
        /// Total size of the logs that are not in the lake, in bytes.
        bytes: u64,
        /// Number of logs that are already in the lake.
        known: usize,
    },
    /// A log was added to the lake, or could not be added.
    Log(&'a LogRow),
    /// A file of the lake is missing or damaged, and cannot be restored, because its log no longer
    /// exists or has changed. The value is the path or URL of the log.
    Gone(&'a str),
    /// A log was added before, and its content has changed since. The lake keeps the rows of both
    /// contents. The value is the path or URL of the log.
    Changed(&'a str),
    /// A pack of logs was added to the lake. The value is the total size of these logs in bytes.
    Pack(u64),
    /// A worker failed, so its pack of logs is tried again.
    Again {
        /// Reason for the failure.
        why: &'a str,
        /// Number of logs in the pack that is tried again.
        logs: usize,
    },
}

/// Result of adding logs to a lake.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ingested {
    /// Number of logs that were added completely.
    pub ok: usize,
    /// Number of logs that were added incompletely, because some of their bytes could not be read.
    pub partial: usize,
    /// Number of logs that could not be added. For each of them, the table `_logs` contains a row
    /// with the reason.
    pub failed: usize,
    /// Number of logs that were already in the lake.
    pub known: usize,
    /// Number of packs with missing or damaged files that cannot be written again, because one of the
    /// logs in the pack no longer exists or has changed.
    pub gone: usize,
    /// Number of logs that were skipped, because they have the same content as another log.
    pub same: usize,
    /// Number of files that were written to the lake.
    pub files: usize,
    /// Number of files that were removed, because a killed `ingest` had left them behind.
    pub removed: usize,
    /// Topics whose rows are partly in a table that is not named after the topic, because no column
    /// type can represent the values of all logs.
    pub splits: Vec<Split>,
}

impl Ingested {
    /// Returns `true` if the run opened no log and wrote no file.
    pub fn did_nothing(&self) -> bool {
        self.files == 0 && self.ok + self.partial + self.failed == 0
    }
}

/// Description of a log that crashed its worker. It is stored in the quarantine folder.
#[derive(Serialize)]
struct Quarantined {
    uri: String,
    sha256: String,
    attempts: u32,
    why: String,
}

/// Adds the logs of all sources that are not in the lake yet.
///
/// # Errors
/// Returns an error in these cases:
///
/// - A source has no logs.
/// - The folder of the lake contains files, but is not a lake.
/// - The lake cannot be read or written.
///
/// A log that cannot be read is not an error. The table `_logs` then gets a row with the reason. If
/// the reason may be temporary, such as a failure of the network, the next `ingest` tries the log
/// again.
pub fn ingest<S: AsRef<str>>(
    sources: &[S],
    lake: &Lake,
    options: &Options,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Ingested, ScaleError> {
    lake.check_folder()?;
    let found = find(sources)?;
    let lock = lake.lock(|| progress(Progress::Waiting))?;
    let removed = remove_unlisted(lake, &lock)?.len();
    let mut done = Ingested { removed, ..Ingested::default() };
    let known = LakeContent::of(lake, options.retry_quarantined)?;
    let (new, before): (Vec<_>, Vec<_>) = found.into_iter().partition(|log| !known.has(log));
    let bytes = new.iter().map(|log| log.size).sum();
    done.known = before.len();
    progress(Progress::Found { new: new.len(), bytes, known: before.len() });
    let mut run = Run { lake, lock: &lock, known: &known, progress, done };
    let members = run.members(&new, options.jobs)?;
    let mut packs = packs(members, options.pack_bytes);
    packs.extend(run.damaged_packs(options.jobs));
    run.run_workers(packs, options)?;
    Ok(run.done)
}

/// Divides logs into packs of about `target` bytes. The order of the logs does not change.
fn packs(members: Vec<Member>, target: u64) -> Vec<Pack> {
    let (mut packs, mut pack, mut filled) = (Vec::new(), Vec::new(), 0_u64);
    for member in members {
        let cost = member.log.cost();
        if !pack.is_empty() && filled.saturating_add(cost) > target {
            packs.push(Pack::new(std::mem::take(&mut pack)));
            filled = 0;
        }
        filled = filled.saturating_add(cost);
        pack.push(member);
    }
    if !pack.is_empty() {
        packs.push(Pack::new(pack));
    }
    packs
}

/// The logs that a lake already contains, as listed in the table `_logs`.
#[derive(Default)]
struct LakeContent {
    /// Paths, sizes and times of the last change of the logs.
    files: HashSet<LogFile>,
    /// Ids of the logs.
    ids: HashSet<String>,
    /// Failed logs that are tried again. The path of each log is mapped to the id of the pack whose
    /// file in the table `_logs` contains the row of the log.
    replaced: HashMap<String, String>,
    /// Packs that have a missing file or a file of a different size. Their logs are read again.
    damaged: Vec<Pack>,
}

impl LakeContent {
    /// Reads the list of the lake's logs from the table `_logs`. If `retry` is true, logs that
    /// crashed their worker are tried again.
    fn of(lake: &Lake, retry: bool) -> Result<Self, ScaleError> {
        let mut known = Self::default();
        for path in files_below(&lake.logs(), "parquet")? {
            let (rows, files) = from_parquet(&path)?;
            // A log that crashed its worker is stored in a pack of its own, so only packs with a
            // single log are replaced.
            let is_alone = rows.len() == 1;
            let is_there = |file: &TableFile| {
                fs::metadata(lake.root().join(&file.path)).is_ok_and(|found| found.len() == file.bytes)
            };
            if let Some(first) = rows.first()
                && !files.iter().all(is_there)
            {
                let member = |row: &KnownLog| Member { log: row.log.clone(), sha256: row.sha256.clone() };
                known.damaged.push(Pack { id: first.pack.clone(), logs: rows.iter().map(member).collect() });
            }
            for row in rows {
                let quarantined = || {
                    row.id.as_ref().is_some_and(|id| lake.quarantine().join(format!("{id}.json")).exists())
                };
                // Logs that could not be read have no id. Each `ingest` tries them again.
                if row.failed && (row.id.is_none() || (retry && is_alone && quarantined())) {
                    known.replaced.insert(row.log.uri.clone(), row.pack);
                    continue;
                }
                known.files.insert(row.log);
                known.ids.extend(row.id);
            }
        }
        Ok(known)
    }

    fn has(&self, log: &LogFile) -> bool {
        self.files.contains(log)
    }
}

/// State of an `ingest`, which adds logs to a lake.
struct Run<'a> {
    lake: &'a Lake,
    lock: &'a Lock,
    known: &'a LakeContent,
    progress: &'a mut dyn FnMut(Progress<'_>),
    done: Ingested,
}

impl Run<'_> {
    /// Computes the hashes of logs, and drops logs whose content is already in the lake. Writes a
    /// row to the table `_logs` for each log that cannot be read.
    fn members(&mut self, logs: &[LogFile], jobs: usize) -> Result<Vec<Member>, ScaleError> {
        let mut members = Vec::new();
        let mut hashes_seen = HashSet::new();
        let known_uris: HashSet<_> = self.known.files.iter().map(|log| &*log.uri).collect();
        for (log, hash) in hashes(logs, jobs) {
            match hash {
                Ok(sha256) => {
                    let member = Member { log, sha256 };
                    if self.known.ids.contains(member.id()) || !hashes_seen.insert(member.sha256.clone()) {
                        self.forget_failure(&member.log.uri)?;
                        self.done.same += 1;
                        continue;
                    }
                    if known_uris.contains(&*member.log.uri) {
                        (self.progress)(Progress::Changed(&member.log.uri));
                    }
                    members.push(member);
                }
                Err(error) => {
                    let unread = unread(log.clone(), error);
                    if self.known.replaced.get(&log.uri) == Some(&unread.id) {
                        // The log has failed for the same reason as in the previous `ingest`, so
                        // its row in the table `_logs` is kept.
                        self.count(&unread.logs);
                        continue;
                    }
                    self.commit(&unread)?;
                }
            }
        }
        Ok(members)
    }

    /// Returns the packs with missing or damaged files, if their logs still exist with the same
    /// content. A pack keeps its id, so its new files replace the damaged files.
    fn damaged_packs(&mut self, jobs: usize) -> Vec<Pack> {
        let mut packs = Vec::new();
        for pack in &self.known.damaged {
            let logs: Vec<_> = pack.logs.iter().map(|member| member.log.clone()).collect();
            let found = hashes(&logs, jobs);
            let gone =
                found.iter().zip(&pack.logs).find(|((_, hash), member)| hash.as_ref() != Ok(&member.sha256));
            match gone {
                None => packs.push(pack.clone()),
                Some(((log, _), _)) => {
                    self.done.gone += 1;
                    (self.progress)(Progress::Gone(&log.uri));
                }
            }
        }
        packs
    }

    /// Runs workers that write the files of the packs. The files are added to the lake in the order
    /// of the packs.
    fn run_workers(&mut self, packs: Vec<Pack>, options: &Options) -> Result<(), ScaleError> {
        let total = packs.len();
        let staging = self.lake.staging();
        let queue: Mutex<VecDeque<_>> = Mutex::new(packs.into_iter().enumerate().collect());
        thread::scope(|scope| {
            // The channel has room for one message. Fast workers therefore wait until their files
            // have been added to the lake, and do not fill the staging folder.
            let (send, receive) = mpsc::sync_channel(1);
            for _ in 0..options.jobs.clamp(1, total.max(1)) {
                let (send, queue, staging, options) = (send.clone(), &queue, &staging, &options);
                scope.spawn(move || {
                    loop {
                        let next = lock(queue).pop_front();
                        let Some((number, pack)) = next else { return };
                        let made = make(&pack, options, staging, &send);
                        if send.send(Message::Made(number, pack.bytes(), made)).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(send);
            let mut early = BTreeMap::new();
            let mut next = 0;
            for message in receive {
                match message {
                    Message::Again(why, logs) => (self.progress)(Progress::Again { why: &why, logs }),
                    Message::Made(number, bytes, made) => {
                        early.insert(number, (bytes, made));
                    }
                }
                // Packs are added to the lake in order. If the type of a column differs between
                // packs, the order determines which table the column is in.
                while let Some((bytes, made)) = early.remove(&next) {
                    for packed in made? {
                        self.commit(&packed)?;
                    }
                    (self.progress)(Progress::Pack(bytes));
                    next += 1;
                }
            }
            Ok(())
        })
    }

    /// Adds the files of a pack to the lake, and counts the logs of the pack.
    fn commit(&mut self, packed: &Packed) -> Result<(), ScaleError> {
        for row in packed.logs.iter().filter(|row| row.failed_worker()) {
            let (uri, sha256) = (row.uri.clone(), row.sha256.clone());
            let why = row.error.clone().unwrap_or_default();
            let quarantined = Quarantined { uri, sha256, attempts: MAX_ATTEMPTS, why };
            write_json(&self.lake.quarantine().join(format!("{}.json", row.id)), &quarantined)?;
        }
        for split in commit(self.lake, self.lock, packed)? {
            match self.done.splits.iter_mut().find(|known| known.table == split.table) {
                Some(known) => known.logs.extend(split.logs),
                None => self.done.splits.push(split),
            }
        }
        self.clear_staging(&packed.id)?;
        self.done.files += packed.files.len();
        self.count(&packed.logs);
        for row in &packed.logs {
            // The row of an earlier failure is removed from the table `_logs` only after the new
            // row has been written.
            if self.known.replaced.get(&row.uri) != Some(&packed.id) {
                self.forget_failure(&row.uri)?;
            }
            if !row.failed_worker() {
                remove_if_there(&self.lake.quarantine().join(format!("{}.json", row.id)))?;
            }
        }
        Ok(())
    }

    /// Counts logs by their results, and reports them.
    fn count(&mut self, logs: &[LogRow]) {
        for row in logs {
            match row.status {
                Status::Ok => self.done.ok += 1,
                Status::Partial => self.done.partial += 1,
                Status::Failed => self.done.failed += 1,
            }
            (self.progress)(Progress::Log(row));
        }
    }

    /// Removes the row of an earlier failure of a log from the table `_logs`.
    fn forget_failure(&self, uri: &str) -> Result<(), ScaleError> {
        let Some(pack) = self.known.replaced.get(uri) else { return Ok(()) };
        remove_if_there(&self.lake.logs().join(format!("{pack}.parquet")))
    }

    /// Removes all staging folders of a pack. Each attempt to write the pack has its own folder, which
    /// remains if the worker is killed.
    fn clear_staging(&self, pack: &str) -> Result<(), ScaleError> {
        for attempt in 1..=MAX_ATTEMPTS {
            let folder = self.lake.staging().join(format!("{pack}-{attempt}"));
            match fs::remove_dir_all(&folder) {
                // A query engine may have run the task twice, and one of the two workers may still
                // be writing to the folder. The next `ingest` removes this folder.
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => {}
                done => done.map_err(ScaleError::lake(&folder))?,
            }
        }
        Ok(())
    }
}

/// A message from a thread that runs workers to the main thread.
enum Message {
    /// A pack of logs is tried again. The values are the reason and the number of logs in the pack.
    Again(String, usize),
    /// The work on a pack has ended. The values are the number of the pack, the total size of its
    /// logs in bytes, and the result.
    Made(usize, u64, Result<Vec<Packed>, ScaleError>),
}

/// Runs workers until the files of a pack are written.
///
/// If a worker crashes, the pack is tried again. If the second worker crashes, too, a separate pack
/// is made for each log. Then only the logs that cause the crash are missing in the lake. For
/// example, a pack has three logs, and the second log crashes each worker. Two workers run for the
/// whole pack. Then one worker runs for the first log, two for the second, and one for the third.
fn make(
    pack: &Pack,
    options: &Options,
    staging: &Path,
    send: &mpsc::SyncSender<Message>,
) -> Result<Vec<Packed>, ScaleError> {
    let mut last = Failure::Ended(String::new());
    for attempt in 1..=MAX_ATTEMPTS {
        let folder = staging.join(format!("{}-{attempt}", pack.id));
        match options.worker.run(pack, &folder) {
            Ok(packed) => return Ok(vec![packed]),
            Err(failure) => last = failure,
        }
        remove_folder(&folder)?;
        let why = match &last {
            Failure::Stopped(why) => return Err(ScaleError::Worker(why.clone())),
            Failure::Refused(why) | Failure::Unread(why) | Failure::Ended(why) => why,
        };
        // If the receiver no longer exists, the `ingest` has already failed, so the message is not
        // needed.
        let _ = send.send(Message::Again(why.clone(), pack.logs.len()));
        if !matches!(last, Failure::Ended(_)) {
            break;
        }
    }
    if let [member] = &*pack.logs {
        let error = match last {
            Failure::Unread(why) | Failure::Stopped(why) => return Ok(vec![unread(member.log.clone(), why)]),
            Failure::Refused(why) => why,
            Failure::Ended(why) => format!("{}{MAX_ATTEMPTS} times: {why}", LogRow::ENDED_WORKER),
        };
        let row = LogRow::failed(member, &pack.id, error);
        return Ok(vec![Packed { id: pack.id.clone(), files: Vec::new(), logs: vec![row] }]);
    }
    let mut made = Vec::new();
    for member in &pack.logs {
        made.extend(make(&Pack::new(vec![member.clone()]), options, staging, send)?);
    }
    Ok(made)
}

/// Returns a row of the table `_logs` for a log that cannot be read at present. The row has no
/// hash, so each `ingest` tries the log again.
fn unread(log: LogFile, why: String) -> Packed {
    let id = format!("f{}", short_hash([&*log.uri, &*why]));
    let row = LogRow::failed(&Member { log, sha256: String::new() }, &id, why);
    Packed { id, files: Vec::new(), logs: vec![row] }
}

/// Removes a folder with its contents. Does nothing if the folder does not exist.
fn remove_folder(folder: &Path) -> Result<(), ScaleError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(ScaleError::lake(folder)(error)),
        _ => Ok(()),
    }
}

/// Computes the hash of each log's content. The results are in the order of the logs.
fn hashes(logs: &[LogFile], jobs: usize) -> Vec<(LogFile, Result<String, String>)> {
    let hash = |log: &LogFile| {
        let bytes = log.bytes().map_err(|error| error.to_string())?;
        let hash = sha256(bytes).map_err(|error| error.to_string())?;
        log.verify().map(|()| hash).map_err(|error| error.to_string())
    };
    let part = logs.len().div_ceil(jobs.max(1)).max(1);
    thread::scope(|scope| {
        let parts: Vec<_> = logs
            .chunks(part)
            .map(|part| {
                scope.spawn(move || part.iter().map(|log| (log.clone(), hash(log))).collect::<Vec<_>>())
            })
            .collect();
        // A panic in a thread is a bug, so the panic continues in this thread.
        let joined = parts
            .into_iter()
            .map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.flatten().collect()
    })
}
