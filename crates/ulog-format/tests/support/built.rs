//! Logs of messages and noise, built byte by byte.

use std::ops::Range;

use rovelog_core::{Bytes, Diagnostic, LogReader as _, Severity};
use ulog_format::UlogReader;

use super::{laid, open};

/// A message: its type and payload.
pub type Laid = (u8, Vec<u8>);

/// Bytes that are no message: a length beyond the log, and a type that is none.
pub const NOISE: [u8; 40] = [0xFF; 40];

pub fn format(text: &str) -> Laid {
    (b'F', text.as_bytes().to_vec())
}

pub fn subscription(id: u16, name: &str) -> Laid {
    (b'A', [&[0], &id.to_le_bytes()[..], name.as_bytes()].concat())
}

/// A row of `t` with subscription 0: 11 bytes of payload.
pub fn row(number: u64) -> Laid {
    (b'D', [&[0, 0][..], &(1000 * number).to_le_bytes(), &[7]].concat())
}

pub fn rows(numbers: Range<u64>) -> Vec<Laid> {
    numbers.map(row).collect()
}

pub fn string(text: &str) -> Laid {
    (b'L', [b"6", &1000_u64.to_le_bytes()[..], text.as_bytes()].concat())
}

/// A message of a type that no version of the specification has.
pub fn unknown(len: usize) -> Laid {
    (b'x', vec![1; len])
}

pub fn keyed(letter: u8, key: &str, value: &[u8]) -> Laid {
    (letter, [&[u8::try_from(key.len()).expect("short")], key.as_bytes(), value].concat())
}

/// A log of a topic and three rows, and what comes behind them.
pub struct Built(pub Vec<u8>);

impl Built {
    pub fn new() -> Self {
        let head = [format("t:uint64_t timestamp;uint8_t v;"), subscription(0, "t")];
        Self(laid(&[&head[..], &rows(1..4)].concat()).to_vec())
    }

    /// The same behind flag bits; see [`flag`](Self::flag) and [`append_at`](Self::append_at).
    pub fn flagged() -> Self {
        let mut log = Self(laid(&[(b'B', vec![0; 40])]).to_vec());
        let header = laid(&[]).len();
        log.raw(&Self::new().0[header..]);
        log
    }

    /// Sets compatible flags of one byte.
    pub fn flag(&mut self, byte: usize, bits: u8) {
        self.0[19 + byte] = bits;
    }

    /// Says that data is appended at these offsets.
    pub fn append_at(&mut self, offsets: &[u64]) {
        self.0[27] = 1;
        for (place, offset) in self.0[35..59].chunks_exact_mut(8).zip(offsets) {
            place.copy_from_slice(&offset.to_le_bytes());
        }
    }

    /// Adds bytes; returns their range.
    pub fn raw(&mut self, bytes: &[u8]) -> Range<u64> {
        let start = self.0.len() as u64;
        self.0.extend_from_slice(bytes);
        start..self.0.len() as u64
    }

    pub fn messages(&mut self, messages: &[Laid]) -> Range<u64> {
        let header = laid(&[]).len();
        self.raw(&laid(messages)[header..])
    }

    pub fn open(&self) -> UlogReader {
        open(&Bytes::from(self.0.clone()))
    }
}

/// Returns the diagnostics about lost ranges.
pub fn losses(log: &UlogReader) -> Vec<Diagnostic> {
    let notes = log.diagnostics().list().iter();
    notes.filter(|note| note.rule.severity == Severity::DataLost).cloned().collect()
}

/// Returns the lost ranges of a log.
pub fn lost(log: &Built) -> Vec<Range<u64>> {
    losses(&log.open()).into_iter().map(|note| note.range).collect()
}
