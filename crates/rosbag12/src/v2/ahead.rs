//! Chunks unpacked ahead of who reads them, on two threads, in buffers that are used again.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rovelog_core::Bytes;

use super::buffer::{Buffer, Ending};
use super::unpack::{Compression, unpack};

/// Threads that unpack, where there are as many.
const THREADS: usize = 2;

/// Chunks that wait for their reader, in addition to those that threads have in hand.
const WAITING: usize = 2;

/// Packed bytes of a chunk from which on one is unpacked at a time.
const LARGE: usize = 32 << 20;

/// Buffers that are kept: as many as are in use at once.
const BUFFERS: usize = THREADS + WAITING;

/// A chunk to unpack.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) data: Range<usize>,
    pub(super) compression: Compression,
    pub(super) limit: usize,
}

/// An unpacked chunk.
#[derive(Debug)]
pub(super) struct Unpacked {
    pub(super) ending: Ending,
    /// Bytes of the packed data that were used.
    pub(super) used: usize,
    /// The first `len` of these bytes.
    pub(super) block: Arc<Vec<u8>>,
    pub(super) len: usize,
}

#[derive(Debug)]
struct Shared {
    file: Bytes,
    jobs: Vec<Job>,
    next: AtomicUsize,
    buffers: Mutex<Vec<Vec<u8>>>,
}

impl Shared {
    fn run(&self, job: usize) -> Unpacked {
        let Job { data, compression, limit } = self.jobs[job].clone();
        let buffer = self.buffers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut buffer = Buffer { bytes: buffer.unwrap_or_default(), len: 0 };
        let (ending, used) = unpack(compression, &self.file[data], limit, &mut buffer);
        Unpacked { ending, used, len: buffer.len, block: Arc::new(buffer.bytes) }
    }
}

/// Chunks that are unpacked one after the other.
#[derive(Debug)]
pub(super) struct Ahead {
    shared: Arc<Shared>,
    from: Option<Receiver<(usize, Unpacked)>>,
    /// Unpacked before their turn.
    early: BTreeMap<usize, Unpacked>,
    started: bool,
}

impl Ahead {
    pub(super) fn new(file: Bytes, jobs: Vec<Job>) -> Self {
        let shared = Shared { file, jobs, next: AtomicUsize::new(0), buffers: Mutex::default() };
        Self { shared: Arc::new(shared), from: None, early: BTreeMap::new(), started: false }
    }

    /// Starts threads if there are several chunks and processors.
    fn begin(&mut self) {
        self.started = true;
        let jobs = &self.shared.jobs;
        let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS).min(jobs.len());
        if threads < 2 || jobs.iter().any(|job| job.data.len() > LARGE) {
            return;
        }
        let (to, from) = sync_channel(WAITING);
        for _ in 0..threads {
            let (shared, to): (_, SyncSender<(usize, Unpacked)>) = (Arc::clone(&self.shared), to.clone());
            let work = move || {
                loop {
                    let job = shared.next.fetch_add(1, Ordering::Relaxed);
                    if job >= shared.jobs.len() || to.send((job, shared.run(job))).is_err() {
                        return;
                    }
                }
            };
            // Without threads the reader has to do it: nothing comes then.
            let _ = thread::Builder::new().spawn(work);
        }
        self.from = Some(from);
    }

    /// Returns the chunk of a job; jobs are taken in their order.
    pub(super) fn take(&mut self, job: usize) -> Unpacked {
        if !self.started {
            self.begin();
        }
        while let Some(from) = &self.from {
            if let Some(unpacked) = self.early.remove(&job) {
                return unpacked;
            }
            match from.recv() {
                Ok((number, unpacked)) => {
                    self.early.insert(number, unpacked);
                }
                Err(_) => self.from = None,
            }
        }
        if let Some(unpacked) = self.early.remove(&job) {
            return unpacked;
        }
        self.shared.run(job)
    }

    /// Takes back the buffer of a chunk that was read, unless a record still holds it.
    pub(super) fn give_back(&self, block: Arc<Vec<u8>>) {
        if let Ok(buffer) = Arc::try_unwrap(block) {
            let mut buffers = self.shared.buffers.lock().unwrap_or_else(PoisonError::into_inner);
            if buffers.len() < BUFFERS {
                buffers.push(buffer);
            }
        }
    }
}
