//! Work on parts of a log at the same time, into memory that numpy takes over.

use std::io;
use std::num::NonZero;
use std::ops::Range;

use memmap2::MmapMut;

/// As many parts as there are processors.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// `total` in about equal parts, as many as there are processors, none smaller than `least` but the only one.
pub(crate) fn parts(total: usize, least: usize) -> Vec<Range<usize>> {
    let parts = processors().min(total / least.max(1)).max(1);
    (0..parts).map(|part| part * total / parts..(part + 1) * total / parts).collect()
}

/// Zeroed memory for an array, in huge pages where the system has them: a large array is filled in half the time.
pub(crate) fn pages(bytes: usize) -> io::Result<MmapMut> {
    let memory = MmapMut::map_anon(bytes.max(1))?;
    #[cfg(target_os = "linux")]
    // Refused where huge pages are switched off; the memory is as good without.
    let _ = memory.advise(memmap2::Advice::HugePage);
    Ok(memory)
}
