//! What is counted of the rows of one topic.

use rovelog_core::span::Spread;

/// Rows of one topic.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stats {
    pub(crate) count: u64,
    /// The last block of the index in which it has rows, from 1.
    pub(crate) block: u32,
    pub(crate) bytes: u64,
    pub(crate) timed: u64,
    /// Microseconds of the first and last timed row.
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// Rows that are earlier than the one before them, and where the first one is.
    pub(crate) falls: u64,
    pub(crate) falls_at: u64,
    pub(crate) times: Spread,
}

impl Stats {
    /// Counts a row of `len` bytes at `at`.
    #[inline]
    pub(crate) fn row(&mut self, at: u64, len: usize, micros: Option<u64>) {
        self.count += 1;
        self.bytes += len as u64;
        if let Some(micros) = micros {
            if self.timed == 0 {
                self.first = micros;
            }
            if micros < self.last {
                self.fall(at);
            }
            self.timed += 1;
            self.last = micros;
            // Times past the range of nanoseconds are no times.
            self.times.push(micros.cast_signed().wrapping_mul(1000), at);
        }
    }

    #[cold]
    fn fall(&mut self, at: u64) {
        if self.falls == 0 {
            self.falls_at = at;
        }
        self.falls += 1;
    }
}
