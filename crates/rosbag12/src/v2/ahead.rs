//! Chunks unpacked ahead of who reads them, on two threads, in buffers that are used again.

use std::ops::Range;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rovelog_core::Bytes;

use super::buffer::{Buffer, Ending};
use super::unpack::{Compression, unpack_chunk};

/// Threads that unpack, where there are as many.
const THREADS: usize = 2;

/// Chunks of each thread that wait for their reader, in addition to the one that it has in hand.
const WAITING: usize = 1;

/// Packed bytes of a chunk from which on one is unpacked at a time.
const LARGE: usize = 32 << 20;

/// Buffers that are kept: as many as are in use at once.
const BUFFERS: usize = THREADS * (WAITING + 1);

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
    buffers: Mutex<Vec<Vec<u8>>>,
}

impl Shared {
    fn run(&self, job: usize) -> Unpacked {
        let Job { data, compression, limit } = self.jobs[job].clone();
        let buffer = self.buffers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut buffer = Buffer { bytes: buffer.unwrap_or_default(), len: 0 };
        let (ending, used) = unpack_chunk(compression, &self.file[data], limit, &mut buffer);
        Unpacked { ending, used, len: buffer.len, block: Arc::new(buffer.bytes) }
    }
}

/// Chunks that are unpacked one after the other.
#[derive(Debug)]
pub(super) struct Ahead {
    shared: Arc<Shared>,
    /// The threads by turns: of two, the first one has all even jobs. So none is further ahead than
    /// its waiting chunks, however long another one takes.
    from: Vec<Receiver<Unpacked>>,
    started: bool,
}

impl Ahead {
    pub(super) fn new(file: Bytes, jobs: Vec<Job>) -> Self {
        let shared = Shared { file, jobs, buffers: Mutex::default() };
        Self { shared: Arc::new(shared), from: Vec::new(), started: false }
    }

    /// Starts threads if there are several chunks and processors.
    fn begin(&mut self) {
        self.started = true;
        let jobs = &self.shared.jobs;
        let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS).min(jobs.len());
        if threads < 2 || jobs.iter().any(|job| job.data.len() > LARGE) {
            return;
        }
        for first in 0..threads {
            let (shared, (to, from)) = (Arc::clone(&self.shared), sync_channel(WAITING));
            let work = move || {
                let mut own = (first..shared.jobs.len()).step_by(threads);
                // Until the reader is gone.
                while own.next().is_some_and(|job| to.send(shared.run(job)).is_ok()) {}
            };
            // Without the thread nothing comes, and the reader has to do it.
            let _ = thread::Builder::new().spawn(work);
            self.from.push(from);
        }
    }

    /// Returns the chunk of a job; jobs are taken in their order.
    pub(super) fn take(&mut self, job: usize) -> Unpacked {
        if !self.started {
            self.begin();
        }
        let from = self.from.get(job % self.from.len().max(1));
        from.and_then(|from| from.recv().ok()).unwrap_or_else(|| self.shared.run(job))
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
