//! Adds logs to a lake: finds new logs, divides them into packs, runs workers, and commits the
//! packs.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use rovelog_export::sha256;
use serde::Serialize;

use super::check::remove_unlisted;
use super::commit::commit;
use super::layout::{Lake, Lock, files_below, remove_if_there, write_json};
use super::logs::{KnownLog, LogRow, Status, TableFile, from_parquet};
use super::member::{Member, Pack, short_hash};
use super::pack::Packed;
use super::places::Split;
use super::work::{Failure, Worker};
use crate::{LogFile, ScaleError, find};

/// Default size of the logs in a pack, in bytes.
const PACK_BYTES: u64 = 128 << 20;

/// Maximum number of attempts if a log crashes its worker.
const MAX_ATTEMPTS: u32 = 2;

/// Options for adding logs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of workers that run at the same time.
    pub jobs: usize,
    /// Approximate size of the logs in a pack, in bytes.
    pub pack_bytes: u64,
    /// True to try the logs again that crashed their worker in an earlier run.
    pub retry_quarantined: bool,
    /// How workers are started.
    pub worker: Worker,
}

impl Options {
    /// Creates options with one worker for each processor, and packs of 128 MiB.
    pub fn new(worker: Worker) -> Self {
        let jobs = thread::available_parallelism().map_or(1, usize::from);
        Self { jobs, pack_bytes: PACK_BYTES, retry_quarantined: false, worker }
    }
}

/// Progress reported to the user.
#[derive(Debug)]
pub enum Progress<'a> {
    /// Waiting for another program that writes to the lake.
    Waiting,
    /// The sources were searched for logs.
    Found {
        /// Number of logs that are not in the lake.
        new: usize,
        /// Total size of these logs in bytes.
        bytes: u64,
        /// Number of logs that are already in the lake.
        known: usize,
    },
    /// A log was added, or has failed.
    Log(&'a LogRow),
    /// A missing or damaged file of the lake cannot be restored, because this log, which it was
    /// made from, is gone or has changed.
    Gone(&'a str),
    /// A pack with logs of this many bytes was added.
    Pack(u64),
    /// A worker failed, and the pack is tried again.
    Again {
        /// How the worker ended.
        why: &'a str,
        /// Number of logs in the pack.
        logs: usize,
    },
}

/// Result of an ingestion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ingested {
    /// Number of logs that were added completely.
    pub ok: usize,
    /// Number of logs that were added in part, because the rest was lost.
    pub partial: usize,
    /// Number of logs that were not added. They have a row with the reason.
    pub failed: usize,
    /// Number of logs that were in the lake before.
    pub known: usize,
    /// Number of logs with the same content as another log.
    pub same: usize,
    /// Number of files that were written.
    pub files: usize,
    /// Number of files that were removed, because a killed run had left them.
    pub removed: usize,
    /// Topics with rows that are not in the table of their name.
    pub splits: Vec<Split>,
}

impl Ingested {
    /// Returns whether nothing was written.
    pub fn is_nothing(&self) -> bool {
        self.files == 0 && self.ok + self.partial + self.failed == 0
    }
}

/// Description of a log that crashed its worker.
#[derive(Serialize)]
struct Quarantined {
    uri: String,
    sha256: String,
    attempts: u32,
    why: String,
}

/// Adds the logs of sources that are not in the lake yet.
///
/// # Errors
/// Returns an error in these cases:
///
/// - A source has no logs.
/// - The folder of the lake has other files, and is not a lake.
/// - The lake cannot be read or written.
///
/// A log that cannot be read is not an error. It gets a row with the reason. If the reason may be
/// temporary, such as the network, the next run tries the log again.
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

/// Divides logs into packs of about `target` bytes, in order.
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

/// The logs that a lake has.
struct LakeContent {
    files: HashSet<LogFile>,
    ids: HashSet<String>,
    /// Ids of the packs of failed logs that are tried again, by the path of the log.
    replaced: HashMap<String, String>,
    /// Packs with a file that is missing or has another size. Their logs are read again.
    damaged: Vec<Pack>,
}

impl LakeContent {
    fn of(lake: &Lake, retry: bool) -> Result<Self, ScaleError> {
        let mut known = Self {
            files: HashSet::new(),
            ids: HashSet::new(),
            replaced: HashMap::new(),
            damaged: Vec::new(),
        };
        for path in files_below(&lake.logs(), "parquet")? {
            let (rows, files) = from_parquet(&path)?;
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
                // Logs that could not be read have no id, and are tried in each run.
                if row.failed && (row.id.is_none() || (retry && quarantined())) {
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

struct Run<'a> {
    lake: &'a Lake,
    lock: &'a Lock,
    known: &'a LakeContent,
    progress: &'a mut dyn FnMut(Progress<'_>),
    done: Ingested,
}

impl Run<'_> {
    /// Returns the logs with the hashes of their content, and drops logs with the same content.
    /// Logs that cannot be read get their row here.
    fn members(&mut self, logs: &[LogFile], jobs: usize) -> Result<Vec<Member>, ScaleError> {
        let mut members = Vec::new();
        let mut hashes_seen = HashSet::new();
        for (log, hash) in hashes(logs, jobs) {
            match hash {
                Ok(sha256) => {
                    let member = Member { log, sha256 };
                    if self.known.ids.contains(member.id()) || !hashes_seen.insert(member.sha256.clone()) {
                        self.done.same += 1;
                    } else {
                        members.push(member);
                    }
                }
                Err(error) => {
                    let unread = unread(log.clone(), error);
                    if self.known.replaced.get(&log.uri) == Some(&unread.id) {
                        // It fails for the same reason as before.
                        self.done.known += 1;
                        continue;
                    }
                    self.commit(&unread)?;
                }
            }
        }
        Ok(members)
    }

    /// Returns the damaged packs whose logs still exist with the same content. A pack keeps its id,
    /// so its new files replace the damaged ones.
    fn damaged_packs(&mut self, jobs: usize) -> Vec<Pack> {
        let mut packs = Vec::new();
        for pack in &self.known.damaged {
            let logs: Vec<_> = pack.logs.iter().map(|member| member.log.clone()).collect();
            let found = hashes(&logs, jobs);
            let gone =
                found.iter().zip(&pack.logs).find(|((_, hash), member)| hash.as_ref() != Ok(&member.sha256));
            match gone {
                None => packs.push(pack.clone()),
                Some(((log, _), _)) => (self.progress)(Progress::Gone(&log.uri)),
            }
        }
        packs
    }

    /// Runs workers that make the packs, and adds the packs to the lake in order.
    fn run_workers(&mut self, packs: Vec<Pack>, options: &Options) -> Result<(), ScaleError> {
        let total = packs.len();
        let staging = self.lake.staging();
        let queue: Mutex<VecDeque<_>> = Mutex::new(packs.into_iter().enumerate().collect());
        thread::scope(|scope| {
            let (send, receive) = mpsc::sync_channel(1);
            for _ in 0..options.jobs.clamp(1, total.max(1)) {
                let (send, queue, staging, options) = (send.clone(), &queue, &staging, &options);
                scope.spawn(move || {
                    loop {
                        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
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
                // Packs are added in order, because the table of a column with a new type depends
                // on the packs before.
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

    fn commit(&mut self, packed: &Packed) -> Result<(), ScaleError> {
        for row in packed.logs.iter().filter(|row| row.failed_worker()) {
            let quarantined = Quarantined {
                uri: row.uri.clone(),
                sha256: row.sha256.clone(),
                attempts: MAX_ATTEMPTS,
                why: row.error.clone().unwrap_or_default(),
            };
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
        for row in &packed.logs {
            match row.status {
                Status::Ok => self.done.ok += 1,
                Status::Partial => self.done.partial += 1,
                Status::Failed => self.done.failed += 1,
            }
            (self.progress)(Progress::Log(row));
            // The row of an earlier failure is removed after the new row was written.
            if let Some(old) = self.known.replaced.get(&row.uri).filter(|old| **old != packed.id) {
                let path = self.lake.logs().join(format!("{old}.parquet"));
                remove_if_there(&path)?;
            }
            if row.status != Status::Failed {
                remove_if_there(&self.lake.quarantine().join(format!("{}.json", row.id)))?;
            }
        }
        Ok(())
    }

    /// Removes the staging folders of all attempts to make a pack, including killed ones.
    fn clear_staging(&self, pack: &str) -> Result<(), ScaleError> {
        for attempt in 1..=MAX_ATTEMPTS {
            let folder = self.lake.staging().join(format!("{pack}-{attempt}"));
            match fs::remove_dir_all(&folder) {
                // An engine may have run the task twice, and one of its workers may still be
                // writing. The next run removes this folder.
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => {}
                done => done.map_err(ScaleError::lake(&folder))?,
            }
        }
        Ok(())
    }
}

enum Message {
    Again(String, usize),
    Made(usize, u64, Result<Vec<Packed>, ScaleError>),
}

/// Makes a pack. If its worker crashes, it is tried again. If that fails too, each log is tried in
/// a pack of its own, so that only the logs that cause the failure are missing.
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
        // If the receiver is gone, the run has already failed.
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

/// Returns the row of a log that cannot be read at present. It has no hash, so each run tries the
/// log again.
fn unread(log: LogFile, why: String) -> Packed {
    let id = format!("f{}", short_hash([&*log.uri, &*why]));
    let row = LogRow::failed(&Member { log, sha256: String::new() }, &id, why);
    Packed { id, files: Vec::new(), logs: vec![row] }
}

fn remove_folder(folder: &Path) -> Result<(), ScaleError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(ScaleError::lake(folder)(error)),
        _ => Ok(()),
    }
}

/// Returns the logs with the hashes of their content, in order.
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
        // A panic in a thread is a bug, so it is passed on.
        let joined = parts
            .into_iter()
            .map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.flatten().collect()
    })
}
