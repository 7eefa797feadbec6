//! The file of a log, which JavaScript reads on request.

#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ops::Range;

use rovelog::core::internal::partial::{Ranges, Unread};
use rovelog::{Bytes, Error, ErrorKind, Result};

/// Size in bytes of a page of the memory of WebAssembly.
const PAGE: usize = 64 << 10;

/// Maximum number of bytes that are read at once. JavaScript copies them.
const MAX_READ: u64 = 16 << 20;

#[link(wasm_import_module = "host")]
unsafe extern "C" {
    /// Reads `len` bytes of a file, from the offset `at` on, into the memory at `into`. Returns `len`,
    /// or a negative number if the file cannot be read.
    fn read(file: u32, at: f64, into: *mut u8, len: usize) -> i32;
}

/// Maximum size in bytes of a file that [`read_small`] reads.
pub(crate) const MAX_SMALL: u64 = 16 << 20;

/// Reads a small file as a whole. Unlike the memory of a [`HostFile`], its memory is freed and used
/// again, so that an instance of the module can read many small logs.
pub(crate) fn read_small(number: u32, size: u64) -> Result<Bytes> {
    let mut bytes = vec![0; usize::try_from(size.min(MAX_SMALL)).unwrap_or_default()];
    // SAFETY: the memory has this size.
    let done = unsafe { read(number, 0.0, bytes.as_mut_ptr(), bytes.len()) };
    if usize::try_from(done) == Ok(bytes.len()) { Ok(bytes.into()) } else { Err(unreadable(0)) }
}

fn unreadable(at: u64) -> Error {
    let why = "the file cannot be read; it may have been changed or removed";
    Error::new("rovelog", ErrorKind::Io, Some(at), why)
}

/// A file that is partly in memory. Its memory is reserved when it is opened. Pages of it that
/// are never written take no memory of the machine.
pub(crate) struct HostFile {
    number: u32,
    size: usize,
    /// Memory of `size` bytes, which are zeros if they were not read. It is never freed.
    /// JavaScript drops the memory of WebAssembly as a whole, together with its instance.
    memory: *mut u8,
    /// Byte ranges that were read, in the order in which they were read.
    fetched: RefCell<Vec<Range<u64>>>,
}

impl HostFile {
    /// Reserves the memory of a file. JavaScript knows the file by `number`.
    pub(crate) fn new(number: u32, size: u64) -> Result<Self> {
        let too_large = || {
            let why = format!("a file of {size} bytes does not fit into the memory of WebAssembly");
            Error::new("rovelog", ErrorKind::LimitExceeded, None, why)
                .with_next("open files of more than 2 GB with the command line: rovelog view FILE")
        };
        let fits = usize::try_from(size).ok().filter(|size| isize::try_from(*size).is_ok());
        let size = fits.ok_or_else(too_large)?;
        // The allocator would write zeros, so that all pages would take memory.
        let page = core::arch::wasm32::memory_grow::<0>(size.div_ceil(PAGE).max(1));
        if page == usize::MAX {
            return Err(too_large());
        }
        let memory = core::ptr::with_exposed_provenance_mut(page * PAGE);
        Ok(Self { number, size, memory, fetched: RefCell::default() })
    }

    /// Returns the byte ranges that were not read yet.
    pub(crate) fn unread(&self) -> Unread {
        Unread::behind(self.size as u64, &self.fetched.borrow())
    }

    /// Reads what was not read yet.
    pub(crate) fn fetch_all(&self) -> Result<()> {
        self.fetch(std::slice::from_ref(&(0..self.size as u64)))
    }

    /// Returns the bytes of the file.
    ///
    /// # Safety
    /// The bytes must be dropped before more of the file is read.
    pub(crate) unsafe fn bytes(&self) -> Bytes {
        // SAFETY: the memory has this size and is never freed. It is initialized, because new memory
        // of WebAssembly consists of zeros. By the contract of this function, it is not written while
        // it is borrowed.
        Bytes::from_static(unsafe { core::slice::from_raw_parts(self.memory, self.size) })
    }
}

impl Ranges for HostFile {
    fn size(&self) -> u64 {
        self.size as u64
    }

    fn fetch(&self, ranges: &[Range<u64>]) -> Result<()> {
        for Range { mut start, end } in self.unread().within(ranges) {
            while start < end {
                #[allow(clippy::cast_possible_truncation, reason = "both are less than the size")]
                let (at, len) = (start as usize, (end - start).min(MAX_READ) as usize);
                // SAFETY: `at + len` is at most the size of the memory, and no reference to the
                // memory exists, by the contract of `bytes`.
                let done = unsafe { read(self.number, start as f64, self.memory.add(at), len) };
                if usize::try_from(done) != Ok(len) {
                    return Err(unreadable(start));
                }
                self.fetched.borrow_mut().push(start..start + len as u64);
                start += len as u64;
            }
        }
        Ok(())
    }

    fn read(&self, range: Range<u64>) -> Result<Vec<u8>> {
        let range = range.start.min(self.size())..range.end.min(self.size());
        self.fetch(std::slice::from_ref(&range))?;
        #[allow(clippy::cast_possible_truncation, reason = "both are at most the size")]
        let (start, end) = (range.start as usize, range.end as usize);
        let mut bytes = vec![0; end.saturating_sub(start)];
        // SAFETY: the range is within the memory, and `bytes` has the same length.
        unsafe { self.memory.add(start).copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len()) };
        Ok(bytes)
    }
}
