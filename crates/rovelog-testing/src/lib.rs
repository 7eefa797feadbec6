//! What the tests of the format crates share: where logs are, a neutral picture of a log in the form of
//! the corpus' expected results, a slow pipe, runs of the examples, and checks of the tables of rules. Never published; panics are how it reports.
#![forbid(unsafe_code)]
#![expect(clippy::missing_panics_doc, reason = "only tests call it")]

mod examples;
mod logs;
mod picture;
mod rules;
mod sums;

pub use examples::{Example, run_examples};
pub use logs::{Log, corpus, expected, logs_in, real, root};
pub use picture::{Overview, assert_alike, differences, json_of, nanos, record_json};
pub use rules::check_rules;
pub use sums::{hex, sha256};

/// Sizes of the pieces in which a stream gets its bytes where it must equal the slice: one by one, and all at once or
/// nearly so, and odd ones between.
pub const PIECES: [&[usize]; 5] = [&[1], &[2, 3, 5, 7], &[64], &[1, 4096], &[100_000]];

/// Gives at most as many bytes at once as `sizes` says, over and over.
#[derive(Debug)]
pub struct Dribble<'a> {
    bytes: &'a [u8],
    sizes: Vec<usize>,
    turn: usize,
}

impl<'a> Dribble<'a> {
    /// A pipe that hands out `bytes` in pieces of `sizes`.
    pub fn new(bytes: &'a [u8], sizes: impl Into<Vec<usize>>) -> Self {
        Self { bytes, sizes: sizes.into(), turn: 0 }
    }
}

impl std::io::Read for Dribble<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let size = self.sizes[self.turn % self.sizes.len()].min(out.len()).min(self.bytes.len());
        self.turn += 1;
        out[..size].copy_from_slice(&self.bytes[..size]);
        self.bytes = &self.bytes[size..];
        Ok(size)
    }
}
