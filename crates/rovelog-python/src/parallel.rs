//! Parallel work on parts of a log, and memory that numpy takes over.

use std::io;
use std::num::NonZero;
use std::ops::Range;

use memmap2::MmapMut;

/// Returns the number of processors.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Divides `total` into about equal parts, as many as processors; none is smaller than `min`,
/// unless it is the only one.
pub(crate) fn parts(total: usize, min: usize) -> Vec<Range<usize>> {
    let parts = processors().min(total / min.max(1)).max(1);
    (0..parts).map(|part| part * total / parts..(part + 1) * total / parts).collect()
}

/// Returns zeroed memory for an array, in huge pages if the system has them, which halves the time
/// to fill a large array.
pub(crate) fn pages(bytes: usize) -> io::Result<MmapMut> {
    let memory = MmapMut::map_anon(bytes.max(1))?;
    #[cfg(target_os = "linux")]
    // Fails if huge pages are switched off; normal pages work too.
    let _ = memory.advise(memmap2::Advice::HugePage);
    Ok(memory)
}
