//! Loads chunks in a given order. Compressed chunks are decompressed on two threads before they are
//! needed. Buffers are reused.

use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

use rovelog_core::Bytes;
use rovelog_core::internal::parallel::lock;

use super::buffer::{Buffer, DataStatus};
use super::compression::{Compression, DECODER_BYTES, DecompressionLimit, decompress_chunk};
use super::content::Chunk;
use super::scan::{ChunkExtent, LengthSource};
use crate::message::{MessageRef, usize_of};

/// Maximum number of threads that decompress chunks.
const THREADS: usize = 2;

/// Number of decompressed chunks in the queue of each thread. Each thread also holds the chunk that
/// it is decompressing.
const MAX_QUEUED: usize = 1;

/// If any chunk has more stored bytes than this, chunks are decompressed one at a time, because
/// several decompressed chunks of this size would need too much memory.
const MAX_PARALLEL_BYTES: u64 = 32 << 20;

/// Highest number of decompressed bytes per stored byte that is expected of a chunk.
const MAX_COMMON_RATIO: u64 = 64;

/// Maximum number of buffers kept for reuse. The threads never use more buffers at the same time.
const MAX_BUFFERS: usize = THREADS * (MAX_QUEUED + 1);

/// Returns the number of bytes that a loader needs for these chunks. They are used by chunk buffers,
/// by coders of bzip2, and by the message list of the chunk with the most messages. A chunk header
/// may state a wrong size, so the size is limited to a common ratio of compression.
pub(crate) fn buffer_bytes(chunks: &[Chunk]) -> usize {
    let stored = |chunk: &Chunk| chunk.extent.end - chunk.extent.data_at;
    let compressed = chunks.iter().filter(|chunk| !chunk.extent.is_plain());
    let size = |chunk: &Chunk| u64::from(chunk.extent.size).min(stored(chunk) * MAX_COMMON_RATIO);
    let largest = compressed.clone().map(size).max().unwrap_or(0);
    let has_bz2 = compressed.clone().any(|chunk| chunk.extent.compression == Some(Compression::Bz2));
    let threads = threads(compressed.clone().map(|chunk| &chunk.extent));
    // An encoder, for an output with the same compression, needs the memory of two decoders.
    let coders = if has_bz2 { (threads.max(1) + 2) * DECODER_BYTES } else { 0 };
    // The caller reads one chunk while the threads decompress others.
    let buffers = (threads * (MAX_QUEUED + 1) + 1).min(compressed.count());
    let messages = chunks.iter().map(|chunk| chunk.messages.count).max().unwrap_or(0);
    // Buffers and lists of messages double their capacity when they are full.
    let largest = usize_of(largest).saturating_mul(2);
    let messages = usize_of(messages).saturating_mul(2 * size_of::<MessageRef>());
    largest.saturating_mul(buffers).saturating_add(coders).saturating_add(messages)
}

/// Returns the number of threads that decompress these chunks. It is 0 for a single chunk, on a
/// single processor, and if any chunk has more than [`MAX_PARALLEL_BYTES`].
fn threads<'a>(chunks: impl Iterator<Item = &'a ChunkExtent>) -> usize {
    let stored = chunks.map(|chunk| chunk.end - chunk.data_at);
    let (count, largest) = stored.fold((0, 0), |(count, largest), bytes| (count + 1, bytes.max(largest)));
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let threads = processors.min(THREADS).min(count);
    if threads < 2 || largest > MAX_PARALLEL_BYTES { 0 } else { threads }
}

/// Result of decompressing the data of a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadResult {
    /// Status of the decompressed data.
    pub(crate) status: DataStatus,
    /// Number of stored bytes that decompression consumed.
    pub(crate) used: usize,
    /// Size in bytes of the decompressed data.
    pub(crate) len: usize,
}

/// A decompressed chunk.
#[derive(Debug)]
pub(crate) struct LoadedChunk {
    /// Index of the chunk in the list of all chunks.
    pub(crate) number: usize,
    /// Status and size of the decompressed data.
    pub(crate) result: LoadResult,
    /// Buffer that starts with the decompressed data. `None` if the chunk is stored uncompressed,
    /// because its records are then read directly from the file.
    pub(super) block: Option<Arc<Vec<u8>>>,
}

impl ChunkExtent {
    /// Decompresses the stored `data` of the chunk into `buffer`. The data of an uncompressed chunk
    /// are not copied.
    pub(super) fn load(
        &self,
        is_encrypted: bool,
        data: &[u8],
        cap: DecompressionLimit,
        buffer: &mut Buffer,
    ) -> LoadResult {
        let used = data.len();
        match self.compression {
            // A chunk that is encrypted or has an unknown compression has no readable records.
            _ if is_encrypted => LoadResult { status: DataStatus::Encrypted, used, len: 0 },
            None => LoadResult { status: DataStatus::Unknown, used, len: 0 },
            Some(Compression::None) => {
                // An uncompressed chunk that is truncated at the end of the file is read up to the
                // end of the file.
                let is_cut = self.length == LengthSource::Cut;
                let status = if is_cut { DataStatus::Cut } else { DataStatus::Intact };
                LoadResult { status, used, len: used }
            }
            Some(compression) => {
                let limit = cap.limit(self.size, used as u64);
                let (status, used) = decompress_chunk(compression, data, limit, buffer);
                LoadResult { status, used, len: buffer.len }
            }
        }
    }
}

/// Task to load one chunk.
#[derive(Debug)]
struct Job {
    /// Index of the chunk in the list of all chunks.
    number: usize,
    /// Location of the chunk in the file, and content of the chunk header.
    extent: ChunkExtent,
    /// True if the chunk data are encrypted.
    is_encrypted: bool,
}

impl Job {
    fn is_compressed(&self) -> bool {
        !self.is_encrypted && !matches!(self.extent.compression, None | Some(Compression::None))
    }
}

#[derive(Debug)]
struct Shared {
    /// Bytes of the bag.
    file: Bytes,
    /// Limits on the decompressed size of each chunk.
    cap: DecompressionLimit,
    /// Chunks to load, in the order in which they are returned.
    jobs: Vec<Job>,
    /// Buffers of chunks that are no longer used, kept for reuse.
    buffers: Mutex<Vec<Vec<u8>>>,
}

impl Shared {
    fn run(&self, job: &Job) -> LoadedChunk {
        let Job { number, extent, is_encrypted } = *job;
        let data = &self.file[usize_of(extent.data_at)..usize_of(extent.end)];
        let mut buffer = Buffer::default();
        if job.is_compressed() {
            let reused = lock(&self.buffers).pop();
            buffer.bytes = reused.unwrap_or_default();
        }
        let result = extent.load(is_encrypted, data, self.cap, &mut buffer);
        let block = job.is_compressed().then(|| Arc::new(buffer.bytes));
        LoadedChunk { number, result, block }
    }
}

/// Loads chunks in a given order.
#[derive(Debug)]
pub(crate) struct Loader {
    /// Data shared with the decompressing threads.
    shared: Arc<Shared>,
    /// One receiver per thread. With two threads, the first thread decompresses the compressed
    /// chunks 0, 2, 4, ... and the second thread decompresses 1, 3, 5, .... With this assignment,
    /// no thread queues many chunks while another thread decompresses a large chunk.
    receivers: Vec<Receiver<LoadedChunk>>,
    /// Number of chunks loaded so far.
    next: usize,
    /// Number of compressed chunks loaded so far. `None` before the threads are started.
    decompressed: Option<usize>,
}

impl Loader {
    /// Creates a loader. `chunks` are all chunks of the bag, and `plan` lists the indices of the
    /// chunks to load.
    pub(crate) fn new(file: Bytes, chunks: &[Chunk], plan: Vec<usize>, cap: DecompressionLimit) -> Self {
        let job = |number: usize| {
            let Chunk { extent, status, .. } = chunks[number];
            Job { number, extent, is_encrypted: status == DataStatus::Encrypted }
        };
        let jobs = plan.into_iter().map(job).collect();
        let shared = Arc::new(Shared { file, cap, jobs, buffers: Mutex::default() });
        Self { shared, receivers: Vec::new(), next: 0, decompressed: None }
    }

    fn start_threads(&mut self) {
        let jobs = self.shared.jobs.iter().filter(|job| job.is_compressed());
        let threads = threads(jobs.map(|job| &job.extent));
        for first in 0..threads {
            let (shared, (sender, receiver)) = (Arc::clone(&self.shared), sync_channel(MAX_QUEUED));
            let work = move || {
                // Each thread has a fixed share of the chunks. With a shared queue, one thread
                // could run far ahead while another thread decompresses a large chunk.
                let jobs = shared.jobs.iter().filter(|job| job.is_compressed());
                // Sending fails after the receiver was dropped, which ends the thread.
                jobs.skip(first).step_by(threads).all(|job| sender.send(shared.run(job)).is_ok());
            };
            // If a thread cannot be started, `load` finds its channel closed and decompresses the
            // chunks on the calling thread.
            let _ = thread::Builder::new().spawn(work);
            self.receivers.push(receiver);
        }
    }

    /// Returns the index of the chunk that [`load`](Self::load) returns next.
    pub(super) fn peek(&self) -> Option<usize> {
        self.shared.jobs.get(self.next).map(|job| job.number)
    }

    /// Returns the next chunk in the given order.
    pub(super) fn load(&mut self) -> Option<LoadedChunk> {
        let shared = Arc::clone(&self.shared);
        let job = shared.jobs.get(self.next)?;
        self.next += 1;
        if !job.is_compressed() {
            return Some(shared.run(job));
        }
        if self.decompressed.is_none() {
            self.start_threads();
        }
        let number = self.decompressed.unwrap_or(0);
        self.decompressed = Some(number + 1);
        let receiver = self.receivers.get(number % self.receivers.len().max(1));
        Some(receiver.and_then(|receiver| receiver.recv().ok()).unwrap_or_else(|| shared.run(job)))
    }

    /// Reuses the buffer of a chunk for the next chunks, unless a record still refers to the
    /// buffer.
    pub(crate) fn recycle(&self, loaded: LoadedChunk) {
        if let Some(Ok(buffer)) = loaded.block.map(Arc::try_unwrap) {
            let mut buffers = lock(&self.shared.buffers);
            // A merge of many chunks may return many buffers. Buffers beyond the maximum are freed.
            if buffers.len() < MAX_BUFFERS {
                buffers.push(buffer);
            }
        }
    }
}
