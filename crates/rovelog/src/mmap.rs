//! Mapped files: the one place in the workspace with `unsafe`.

use std::fs::File;

use memmap2::Mmap;
use rovelog_core::Bytes;

/// Maps `file` for reading.
#[allow(unsafe_code)]
pub(crate) fn map(file: &File) -> std::io::Result<Bytes> {
    // SAFETY: the map is private to this process and only ever read, as `&[u8]`. What Rust cannot rule
    // out is that another process changes the file meanwhile. A log that is written to gives other bytes,
    // and every reader takes any bytes: none relies on reading the same value twice for memory safety. A
    // log that is shortened ends this process with SIGBUS; the feature `mmap` says so and can be left out.
    let map = unsafe { Mmap::map(file)? };
    Ok(Bytes::from_owner(map))
}
