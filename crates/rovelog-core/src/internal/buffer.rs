//! Buffers for the values of columns. Their memory is reused between batches. Large buffers use
//! huge pages.

use arrow_buffer::{Buffer, MutableBuffer};
use bytes::Bytes;
use memmap2::MmapMut;

/// Buffers of at least this size in bytes are mapped with huge pages. Page faults in new memory can
/// take more time than decoding values into it, and huge pages reduce the number of page faults.
const HUGE: usize = 2 << 20;

/// Growable buffer for the numbers of a column.
///
/// The memory of the buffer is zeroed only once. [`lend`](Self::lend) passes the memory to a record
/// batch. If the batch has been dropped when the buffer is used next, the same memory is used
/// again.
#[derive(Debug)]
pub struct ReusableBuffer {
    /// Memory to which new bytes are written.
    memory: Memory,
    /// Number of bytes that have been written to `memory`.
    used: usize,
    /// Memory that was lent to the last batch. It can be reused after all references to it are
    /// dropped.
    lent: Option<Buffer>,
}

/// Memory that a buffer has allocated.
#[derive(Debug)]
enum Memory {
    /// Memory allocated by Arrow. It can be reused after the batch that uses it is dropped.
    Heap(MutableBuffer),
    /// Memory mapped with huge pages. It is returned to the operating system when its batch is
    /// dropped.
    Mapped(MmapMut),
}

impl Memory {
    /// Allocates zeroed memory. A large block is mapped with huge pages if the operating system
    /// permits it.
    fn zeroed(bytes: usize) -> Self {
        let mapped = if bytes >= HUGE { mapped(bytes) } else { None };
        mapped.map_or_else(|| Self::Heap(MutableBuffer::from_len_zeroed(bytes)), Self::Mapped)
    }

    /// Returns the whole memory, including bytes that have not been written.
    fn bytes(&mut self) -> &mut [u8] {
        match self {
            Self::Heap(buffer) => buffer.as_slice_mut(),
            Self::Mapped(map) => map,
        }
    }
}

/// Maps anonymous memory with huge pages. Returns `None` if the operating system refuses.
fn mapped(bytes: usize) -> Option<MmapMut> {
    let map = MmapMut::map_anon(bytes).ok()?;
    #[cfg(target_os = "linux")]
    // The call fails if huge pages are disabled. The memory can then be used with normal pages.
    let _ = map.advise(memmap2::Advice::HugePage);
    Some(map)
}

impl ReusableBuffer {
    /// Creates an empty buffer with a capacity of `bytes` bytes.
    pub fn with_bytes(bytes: usize) -> Self {
        Self { memory: Memory::zeroed(bytes), used: 0, lent: None }
    }

    /// Increases the capacity of the buffer to at least `bytes` bytes. Bytes that have been written
    /// are copied.
    pub fn reserve(&mut self, bytes: usize) {
        if self.memory.bytes().len() < bytes {
            let mut larger = Memory::zeroed(bytes);
            larger.bytes()[..self.used].copy_from_slice(&self.memory.bytes()[..self.used]);
            self.memory = larger;
        }
    }

    /// Appends `bytes` bytes to the buffer, and returns them so that the caller overwrites them.
    pub fn extend(&mut self, bytes: usize) -> &mut [u8] {
        // If the last batch still exists, its memory cannot be reused, and new memory is allocated.
        if let Some(lent) = self.lent.take()
            && let Ok(buffer) = lent.into_mutable()
        {
            self.memory = Memory::Heap(buffer);
        }
        let (from, to) = (self.used, self.used + bytes);
        let len = self.memory.bytes().len();
        if len < to {
            let bytes = to.max(2 * len);
            let mut larger = match self.memory {
                // Memory that Arrow has allocated is replaced by memory of the same kind, because
                // only such memory can be taken back from a batch and used again.
                Memory::Heap(_) => Memory::Heap(MutableBuffer::from_len_zeroed(bytes)),
                Memory::Mapped(_) => Memory::zeroed(bytes),
            };
            larger.bytes()[..from].copy_from_slice(&self.memory.bytes()[..from]);
            self.memory = larger;
        }
        self.used = to;
        &mut self.memory.bytes()[from..to]
    }

    /// Returns the bytes that have been written as an Arrow buffer. This buffer is empty
    /// afterwards.
    pub fn lend(&mut self) -> Buffer {
        // If the previous batch has been dropped, this call takes back its memory.
        self.extend(0);
        let used = std::mem::take(&mut self.used);
        match std::mem::replace(&mut self.memory, Memory::Heap(MutableBuffer::new(0))) {
            Memory::Heap(buffer) => {
                let all = Buffer::from(buffer);
                let lent = all.slice_with_length(0, used);
                self.lent = Some(all);
                lent
            }
            Memory::Mapped(map) => Buffer::from(Bytes::from_owner(map)).slice_with_length(0, used),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_buffers_keep_their_bytes() {
        for size in [16, HUGE + 8] {
            let mut buffer = ReusableBuffer::with_bytes(size);
            buffer.extend(8).copy_from_slice(&[7; 8]);
            let last = size - 8;
            buffer.extend(last)[last - 8..].copy_from_slice(&[9; 8]);
            // These 8 bytes exceed the initial capacity of the buffer.
            buffer.extend(8).copy_from_slice(&[1; 8]);
            let lent = buffer.lend();
            assert_eq!(lent.len(), size + 8);
            assert_eq!((&lent[..8], &lent[size..]), (&[7; 8][..], &[1; 8][..]));
            assert_eq!(lent[size - 8..size], [9; 8]);
            assert_eq!(buffer.lend().len(), 0);
        }
    }
}
