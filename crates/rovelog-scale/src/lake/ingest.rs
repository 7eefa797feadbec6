//! Adding logs to a lake: which are new, packs of them, workers, commits.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use rovelog_export::sha256;
use serde::Serialize;

use super::check::remove_unnamed;
use super::commit::commit;
use super::layout::{Lake, Lock, files_below, remove_if_there, write_json};
use super::logs::{LogRow, Status, from_parquet};
use super::member::{Member, Pack, short_hash};
use super::pack::Packed;
use super::work::{Failure, Worker};
use crate::{LogFile, ScaleError, find};

/// Bytes of logs in a pack.
const PACK: u64 = 128 << 20;

/// Times that a log may end its worker before it is left alone.
const ATTEMPTS: u32 = 2;

/// How logs are added.
#[derive(Clone, Debug)]
pub struct Options {
    /// Workers at a time.
    pub jobs: usize,
    /// Bytes of logs in a pack, about.
    pub pack_bytes: u64,
    /// Try the logs again that ended their worker in an earlier run.
    pub retry_quarantined: bool,
    /// How a worker is started.
    pub worker: Worker,
}

impl Options {
    /// Returns the options for workers of this kind: one for each processor, packs of 128 MiB.
    pub fn new(worker: Worker) -> Self {
        let jobs = thread::available_parallelism().map_or(1, usize::from);
        Self { jobs, pack_bytes: PACK, retry_quarantined: false, worker }
    }
}

/// What is going on, for the user who waits.
#[derive(Debug)]
pub enum Progress<'a> {
    /// Another program writes to the lake.
    Waiting,
    /// New logs were found: their number and their bytes, and how many are in the lake already.
    Found {
        /// Logs that are not in the lake.
        new: usize,
        /// Their bytes.
        bytes: u64,
        /// Logs that are in the lake.
        known: usize,
    },
    /// A log is in the lake, or will not be.
    Log(&'a LogRow),
    /// A pack of this many bytes is in the lake.
    Pack(u64),
    /// A worker ended, and the pack is tried again.
    Again {
        /// How it ended.
        why: &'a str,
        /// The number of logs of its pack.
        logs: usize,
    },
}

/// What became of the logs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ingested {
    /// Logs that are in the lake with this run, whole.
    pub ok: usize,
    /// Logs of which a part was lost.
    pub partial: usize,
    /// Logs that are not in the lake, with a row that says why.
    pub failed: usize,
    /// Logs that were in the lake before.
    pub known: usize,
    /// Logs with the same content as another one.
    pub same: usize,
    /// Files that were written.
    pub files: usize,
    /// Files of a run that was killed, which were removed.
    pub removed: usize,
}

impl Ingested {
    /// Returns whether nothing was written.
    pub fn is_nothing(&self) -> bool {
        self.files == 0 && self.ok + self.partial + self.failed == 0
    }
}

/// A log that ended its worker.
#[derive(Serialize)]
struct Quarantined {
    uri: String,
    sha256: String,
    attempts: u32,
    why: String,
}

/// Adds the logs of sources to a lake, those that are not in it.
///
/// # Errors
/// Returns an error if a source has no logs, the folder has other files and no lake, or the lake
/// cannot be read or written. A log that cannot be read is not an error: it gets a row with the
/// reason. If that may be another one next time, as of the network, the next run tries it again.
pub fn ingest<S: AsRef<str>>(
    sources: &[S],
    lake: &Lake,
    options: &Options,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Ingested, ScaleError> {
    lake.demand()?;
    let found = find(sources)?;
    let lock = lake.lock(|| progress(Progress::Waiting))?;
    let removed = remove_unnamed(lake, &lock)?.len();
    let mut done = Ingested { removed, ..Ingested::default() };
    let known = Knowledge::of(lake, options.retry_quarantined)?;
    let (new, before): (Vec<_>, Vec<_>) = found.into_iter().partition(|log| !known.has(log));
    let bytes = new.iter().map(|log| log.size).sum();
    done.known = before.len();
    progress(Progress::Found { new: new.len(), bytes, known: before.len() });
    let mut run = Run { lake, lock: &lock, known: &known, progress, done };
    let members = run.members(&new, options.jobs)?;
    let packs = packs(members, options.pack_bytes);
    run.all(packs, options)?;
    Ok(run.done)
}

/// Divides logs into packs, in order.
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

/// What is in a lake.
struct Knowledge {
    files: HashSet<LogFile>,
    ids: HashSet<String>,
    /// Packs of failed logs that are tried again, by the path of the log.
    replaced: HashMap<String, String>,
}

impl Knowledge {
    fn of(lake: &Lake, retry: bool) -> Result<Self, ScaleError> {
        let mut known = Self { files: HashSet::new(), ids: HashSet::new(), replaced: HashMap::new() };
        for path in files_below(&lake.logs(), "parquet")? {
            for row in from_parquet(&path)?.0 {
                let quarantined = || {
                    row.id.as_ref().is_some_and(|id| lake.quarantine().join(format!("{id}.json")).exists())
                };
                // What could not even be read is tried each time.
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
    known: &'a Knowledge,
    progress: &'a mut dyn FnMut(Progress<'_>),
    done: Ingested,
}

impl Run<'_> {
    /// Returns the logs with the hashes of their content, each content once. A log that cannot be
    /// read gets its row here.
    fn members(&mut self, logs: &[LogFile], jobs: usize) -> Result<Vec<Member>, ScaleError> {
        let mut members = Vec::new();
        let mut met = HashSet::new();
        for (log, hash) in hashes(logs, jobs) {
            match hash {
                Ok(sha256) => {
                    let member = Member { log, sha256 };
                    if self.known.ids.contains(member.id()) || !met.insert(member.sha256.clone()) {
                        self.done.same += 1;
                    } else {
                        members.push(member);
                    }
                }
                Err(error) => {
                    let unread = unread(log.clone(), error);
                    if self.known.replaced.get(&log.uri) == Some(&unread.id) {
                        // It fails as before.
                        self.done.known += 1;
                        continue;
                    }
                    self.commit(&unread)?;
                }
            }
        }
        Ok(members)
    }

    /// Makes packs by workers, and adds them to the lake in order.
    fn all(&mut self, packs: Vec<Pack>, options: &Options) -> Result<(), ScaleError> {
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
                // Which table a column with a new type goes to depends on the order of commits.
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
                attempts: ATTEMPTS,
                why: row.error.clone().unwrap_or_default(),
            };
            write_json(&self.lake.quarantine().join(format!("{}.json", row.id)), &quarantined)?;
        }
        commit(self.lake, self.lock, packed)?;
        self.clear_staging(&packed.id)?;
        self.done.files += packed.files.len();
        for row in &packed.logs {
            match row.status {
                Status::Ok => self.done.ok += 1,
                Status::Partial => self.done.partial += 1,
                Status::Failed => self.done.failed += 1,
            }
            (self.progress)(Progress::Log(row));
            // The row of an earlier failure goes when the new one is there.
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

    /// Removes what the attempts at a pack have left, also those that were killed.
    fn clear_staging(&self, pack: &str) -> Result<(), ScaleError> {
        for attempt in 1..=ATTEMPTS {
            let folder = self.lake.staging().join(format!("{pack}-{attempt}"));
            match fs::remove_dir_all(&folder) {
                // An engine may have made the pack twice, and one of its workers still writes: the
                // next run removes that.
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

/// Has a pack made, again if its worker ends, log by log if that does not help.
fn make(
    pack: &Pack,
    options: &Options,
    staging: &Path,
    send: &mpsc::SyncSender<Message>,
) -> Result<Vec<Packed>, ScaleError> {
    let mut last = Failure::Ended(String::new());
    for attempt in 1..=ATTEMPTS {
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
        // If the receiver has ended, the run has failed anyway.
        let _ = send.send(Message::Again(why.clone(), pack.logs.len()));
        if !matches!(last, Failure::Ended(_)) {
            break;
        }
    }
    if let [member] = &*pack.logs {
        let error = match last {
            Failure::Unread(why) | Failure::Stopped(why) => return Ok(vec![unread(member.log.clone(), why)]),
            Failure::Refused(why) => why,
            Failure::Ended(why) => format!("{}{ATTEMPTS} times: {why}", LogRow::ENDED_WORKER),
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

/// Returns the row of a log that cannot be read now. It has no hash, so that each run tries it again.
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

/// Returns logs with the hashes of their content, in order.
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
        // A thread that panics has found a defect of ours: its panic goes on.
        let joined = parts
            .into_iter()
            .map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.flatten().collect()
    })
}
