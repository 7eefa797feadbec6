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
    // log that grows is read up to the length that it had. A log that is shortened ends this process with
    // SIGBUS: see `end_on_shortened_log`; the feature `mmap` can be left out.
    let map = unsafe { Mmap::map(file)? };
    Ok(Bytes::from_owner(map))
}

/// Ends this process with a message and exit code 1, instead of a crash, when a mapped log is shortened while it
/// is read. For programs whose main thing is to read logs: it takes the signal `SIGBUS`. Does nothing where there
/// is no such signal.
#[allow(unsafe_code)]
pub fn end_on_shortened_log() {
    #[cfg(unix)]
    {
        extern "C" fn end(_: libc::c_int) {
            const WHY: &[u8] =
                b"error: a log was shortened by another program while it was read, and what was \
                written of it is incomplete; copy the log, then read the copy\n";
            // SAFETY: both calls may be made in a signal handler, and WHY lives as long as the program.
            unsafe {
                libc::write(libc::STDERR_FILENO, WHY.as_ptr().cast(), WHY.len());
                libc::_exit(1);
            }
        }
        let end: extern "C" fn(libc::c_int) = end;
        // SAFETY: the handler only makes calls that may be made in one, and never returns.
        unsafe { libc::signal(libc::SIGBUS, end as libc::sighandler_t) };
    }
}

/// Ends this process with a message and exit code 1 where Rust would abort it, as it does when memory runs out. For
/// programs whose main thing is to read logs: it takes the signal `SIGABRT`. Does nothing where there is no such signal.
#[allow(unsafe_code)]
pub fn end_without_memory() {
    #[cfg(unix)]
    {
        extern "C" fn end(_: libc::c_int) {
            const WHY: &[u8] = b"error: out of memory, or what the line above says\n  \
                next: give the program more memory, or make a part of the log first: rovelog slice\n";
            // SAFETY: both calls may be made in a signal handler, and WHY lives as long as the program.
            unsafe {
                libc::write(libc::STDERR_FILENO, WHY.as_ptr().cast(), WHY.len());
                libc::_exit(1);
            }
        }
        let end: extern "C" fn(libc::c_int) = end;
        // SAFETY: the handler only makes calls that may be made in one, and never returns.
        unsafe { libc::signal(libc::SIGABRT, end as libc::sighandler_t) };
    }
}
