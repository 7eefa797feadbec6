//! Memory for columns: lent to batches and taken back, or mapped in huge pages where a column is
//! large.

use arrow_buffer::{Buffer, MutableBuffer};
use bytes::Bytes;
use memmap2::MmapMut;

/// Columns of at least this size get huge pages where the system has them: touching new memory page
/// by page costs more than decoding into it.
const HUGE: usize = 2 << 20;

/// Growable memory for the numbers of a column. It is zeroed once and never again: a buffer that
/// was lent to a batch is taken back when the batch is gone.
#[derive(Debug)]
pub struct ReusableBuffer {
    memory: Memory,
    used: usize,
    lent: Option<Buffer>,
}

#[derive(Debug)]
enum Memory {
    Heap(MutableBuffer),
    Mapped(MmapMut),
}

impl Memory {
    fn zeroed(bytes: usize) -> Self {
        let mapped = if bytes >= HUGE { mapped(bytes) } else { None };
        mapped.map_or_else(|| Self::Heap(MutableBuffer::from_len_zeroed(bytes)), Self::Mapped)
    }

    fn bytes(&mut self) -> &mut [u8] {
        match self {
            Self::Heap(buffer) => buffer.as_slice_mut(),
            Self::Mapped(map) => map,
        }
    }
}

/// Anonymous memory with huge pages; `None` where the system refuses.
fn mapped(bytes: usize) -> Option<MmapMut> {
    let map = MmapMut::map_anon(bytes).ok()?;
    #[cfg(target_os = "linux")]
    // Refused where huge pages are switched off; the memory is as good without.
    let _ = map.advise(memmap2::Advice::HugePage);
    Some(map)
}

impl ReusableBuffer {
    /// Creates an empty buffer with space for `bytes` bytes.
    pub fn with_bytes(bytes: usize) -> Self {
        Self { memory: Memory::zeroed(bytes), used: 0, lent: None }
    }

    /// Moves what was written to a memory of `bytes` bytes, if that is larger.
    pub fn reserve(&mut self, bytes: usize) {
        if self.memory.bytes().len() < bytes {
            let mut larger = Memory::zeroed(bytes);
            larger.bytes()[..self.used].copy_from_slice(&self.memory.bytes()[..self.used]);
            self.memory = larger;
        }
    }

    /// Appends `bytes` bytes and returns them, to be filled.
    pub fn extend(&mut self, bytes: usize) -> &mut [u8] {
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
                // What is streamed stays in the heap, where it can be taken back.
                Memory::Heap(_) => Memory::Heap(MutableBuffer::from_len_zeroed(bytes)),
                Memory::Mapped(_) => Memory::zeroed(bytes),
            };
            larger.bytes()[..from].copy_from_slice(&self.memory.bytes()[..from]);
            self.memory = larger;
        }
        self.used = to;
        &mut self.memory.bytes()[from..to]
    }

    /// Returns what was written; the buffer is empty again.
    pub fn lend(&mut self) -> Buffer {
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
    fn small_and_large_buffers_keep_what_is_written() {
        for size in [16, HUGE + 8] {
            let mut buffer = ReusableBuffer::with_bytes(size);
            buffer.extend(8).copy_from_slice(&[7; 8]);
            let last = size - 8;
            buffer.extend(last)[last - 8..].copy_from_slice(&[9; 8]);
            // More than was asked for at first.
            buffer.extend(8).copy_from_slice(&[1; 8]);
            let lent = buffer.lend();
            assert_eq!(lent.len(), size + 8);
            assert_eq!((&lent[..8], &lent[size..]), (&[7; 8][..], &[1; 8][..]));
            assert_eq!(lent[size - 8..size], [9; 8]);
            assert_eq!(buffer.lend().len(), 0);
        }
    }
}
