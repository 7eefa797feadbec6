//! A builder for test logs that consist of messages and noise.

use std::ops::Range;

use rovelog_core::{Bytes, Diagnostic, LogReader as _, Severity};
use ulog_format::UlogReader;

use super::{log_of, open};

/// Type and payload of a message.
pub type RawMessage = (u8, Vec<u8>);

/// Bytes that are not a valid message. As a message, they would be longer than the log and have an
/// invalid type.
pub const NOISE: [u8; 40] = [0xFF; 40];

pub fn format(text: &str) -> RawMessage {
    (b'F', text.as_bytes().to_vec())
}

pub fn subscription(id: u16, name: &str) -> RawMessage {
    (b'A', [&[0], &id.to_le_bytes()[..], name.as_bytes()].concat())
}

/// Returns a row of topic `t` with the message id 0. The payload of the message has 11 bytes.
pub fn row(number: u64) -> RawMessage {
    (b'D', [&[0, 0][..], &(1000 * number).to_le_bytes(), &[7]].concat())
}

pub fn rows(numbers: Range<u64>) -> Vec<RawMessage> {
    numbers.map(row).collect()
}

pub fn string(text: &str) -> RawMessage {
    (b'L', [b"6", &1000_u64.to_le_bytes()[..], text.as_bytes()].concat())
}

/// Returns a message with an undefined type.
pub fn unknown(len: usize) -> RawMessage {
    (b'x', vec![1; len])
}

pub fn keyed(letter: u8, key: &str, value: &[u8]) -> RawMessage {
    (letter, [&[u8::try_from(key.len()).expect("short")], key.as_bytes(), value].concat())
}

/// A log with a topic and three rows, to which tests add more bytes.
pub struct Built(pub Vec<u8>);

impl Built {
    pub fn new() -> Self {
        let head = [format("t:uint64_t timestamp;uint8_t v;"), subscription(0, "t")];
        Self(log_of(&[&head[..], &rows(1..4)].concat()).to_vec())
    }

    /// Creates a log with flag bits. [`flag`](Self::flag) and [`append_at`](Self::append_at) change
    /// the flag bits.
    pub fn flagged() -> Self {
        let mut log = Self(log_of(&[(b'B', vec![0; 40])]).to_vec());
        let header = log_of(&[]).len();
        log.raw(&Self::new().0[header..]);
        log
    }

    /// Sets compatible flags of the log, in the flag byte with the index `byte`.
    pub fn flag(&mut self, byte: usize, bits: u8) {
        self.0[19 + byte] = bits;
    }

    /// Stores offsets of appended data in the flag bits of the log.
    pub fn append_at(&mut self, offsets: &[u64]) {
        self.0[27] = 1;
        for (place, offset) in self.0[35..59].chunks_exact_mut(8).zip(offsets) {
            place.copy_from_slice(&offset.to_le_bytes());
        }
    }

    /// Adds bytes to the log and returns their range in the file.
    pub fn raw(&mut self, bytes: &[u8]) -> Range<u64> {
        let start = self.0.len() as u64;
        self.0.extend_from_slice(bytes);
        start..self.0.len() as u64
    }

    pub fn messages(&mut self, messages: &[RawMessage]) -> Range<u64> {
        let header = log_of(&[]).len();
        self.raw(&log_of(messages)[header..])
    }

    pub fn open(&self) -> UlogReader {
        open(&Bytes::from(self.0.clone()))
    }
}

/// Returns the diagnostics of a log that report lost byte ranges.
pub fn losses(log: &UlogReader) -> Vec<Diagnostic> {
    let notes = log.diagnostics().list().iter();
    notes.filter(|note| note.rule.severity == Severity::DataLost).cloned().collect()
}

/// Returns the lost byte ranges of a log.
pub fn lost(log: &Built) -> Vec<Range<u64>> {
    losses(&log.open()).into_iter().map(|note| note.range).collect()
}
