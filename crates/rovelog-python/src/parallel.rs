//! Functions that divide work among processors and allocate memory for large numpy arrays.

use std::io;
use std::num::NonZero;
use std::ops::Range;

use memmap2::MmapMut;

/// Returns the number of processors that this process may use.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Divides the range `0..total` into ranges of about equal length, at most one for each processor.
///
/// Each range has at least `min` elements, unless there is only one range. For example, 10 rows
/// with a minimum of 3 rows on 4 processors result in three ranges: `0..3`, `3..6` and `6..10`.
pub(crate) fn parts(total: usize, min: usize) -> Vec<Range<usize>> {
    let parts = processors().min(total / min.max(1)).max(1);
    (0..parts).map(|part| part * total / parts..(part + 1) * total / parts).collect()
}

/// Allocates zeroed memory for an array.
///
/// The memory uses huge pages if the system supports them. The system then has to map fewer pages,
/// which halves the time to fill a large array.
pub(crate) fn pages(bytes: usize) -> io::Result<MmapMut> {
    let memory = MmapMut::map_anon(bytes.max(1))?;
    #[cfg(target_os = "linux")]
    // This call fails if huge pages are disabled. The system then uses pages of normal size.
    let _ = memory.advise(memmap2::Advice::HugePage);
    Ok(memory)
}
