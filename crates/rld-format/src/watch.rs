//! Diagnostics that need the rows: set bits of no channel, and values with known faults of the
//! logger's software.
//!
//! For most logs the first rows are enough. All rows are checked only if version and rate are those
//! of a known fault.

use std::ops::Range;

use rovelog_core::Rule;

use crate::diagnostics as rules;
use crate::row::{Row, Table};
use crate::schema::Channel;
use crate::unit::Unit;
use crate::validate::Validated;

/// Number of rows that are checked for set bits of no channel.
const DIRTY_ROWS: u64 = 1024;

/// Checks the rows of a log, in order.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Number of the first row that need not be checked.
    pub(crate) until: u64,
    dirty: Option<Dirty>,
    wraps: Vec<Wrap>,
    means: Option<Means>,
}

/// The check for set bits of no channel.
#[derive(Debug)]
struct Dirty {
    binary: usize,
    /// Channels whose range bits are unreliable in this case.
    untrusted: Vec<String>,
}

/// The check of a current at 32 kSPS or more.
#[derive(Debug)]
struct Wrap {
    channel: usize,
    name: String,
    /// Nine tenths of its full scale, in raw units.
    near: u64,
    last: Option<i64>,
    /// The jump of values: the first row, its offset, the values before and after.
    run: Option<(u64, u64, i64, i64)>,
    /// Offset of the end of the last row of the run.
    end: u64,
}

/// The check of means at fewer than a thousand rows per second.
#[derive(Debug)]
struct Means {
    /// Converter rows per mean.
    of: u32,
    /// Upper bound of means of sums modulo 2^32.
    bound: i64,
    channels: Vec<(usize, String)>,
    /// The first value of each channel just below the bound: its row, its offset, the value.
    high: Vec<Option<(u64, u64, i64)>>,
}

impl Watch {
    pub(crate) fn new(validated: &Validated, table: Option<&Table>) -> Self {
        let mut watch = Self { until: 0, dirty: None, wraps: Vec::new(), means: None };
        let Some(table) = table else { return watch };
        let (version, rate) = (validated.version.number, validated.header.lead_in.sample_rate.get());
        let (channels, binary) = (&table.channels, table.binary());
        if !binary.is_multiple_of(32) {
            let mixed = version == 3 && binary <= 2;
            let linked = channels.iter().filter(|channel| mixed && channel.valid.is_some());
            let untrusted = linked.map(|channel| channel.name.to_string()).collect();
            watch.dirty = Some(Dirty { binary, untrusted });
            watch.until = DIRTY_ROWS;
        }
        if version <= 3 && rate >= 32_000 {
            watch.wraps =
                channels.iter().enumerate().filter_map(|(i, channel)| Wrap::new(i, channel)).collect();
        }
        let slow = (1..1000).contains(&rate) && 1000 % rate == 0;
        if slow && !validated.is_ambient() {
            watch.means = Some(Means::new(1000 / u32::from(rate), channels));
        }
        if !watch.wraps.is_empty() || watch.means.is_some() {
            watch.until = u64::MAX;
        }
        watch
    }

    /// Checks the row at offset `at`.
    pub(crate) fn row(
        &mut self,
        number: u64,
        at: u64,
        row: Row<'_>,
        mut note: impl FnMut(&'static Rule, Range<u64>, String),
    ) {
        if number < DIRTY_ROWS
            && let Some(word) = self.dirty.as_ref().and_then(|dirty| dirty.word(row))
            && let Some(Dirty { binary, untrusted }) = self.dirty.take()
        {
            let words = 4 * (binary as u64 / 32 + 1);
            note(
                &rules::DIRTY_BITS,
                at..at + words,
                format!(
                    "row {number} has bits set that belong to no channel (word {word:#010x}, {binary} binary \
                     channels): they are ignored"
                ),
            );
            if !untrusted.is_empty() {
                let text = format!(
                    "the range bits of {} are unreliable: use stats --ranges values",
                    untrusted.join(", ")
                );
                note(&rules::VALIDITY_UNTRUSTED, at..at + words, text);
            }
        }
        for wrap in &mut self.wraps {
            wrap.row(number, at, row, &mut note);
        }
        if self.means.as_mut().is_some_and(|means| !means.row(number, at, row)) {
            self.means = None;
            if self.wraps.is_empty() {
                self.until = DIRTY_ROWS;
            }
        }
    }

    /// Passes rows that were not read: no jump of values is known across them.
    pub(crate) fn pass(&mut self, mut note: impl FnMut(&'static Rule, Range<u64>, String)) {
        for wrap in &mut self.wraps {
            wrap.close(&mut note);
            wrap.last = None;
        }
    }

    /// Reports what remains after the last row.
    pub(crate) fn end(&mut self, mut note: impl FnMut(&'static Rule, Range<u64>, String)) {
        self.wraps.iter_mut().for_each(|wrap| wrap.close(&mut note));
        for (high, (_, name)) in self.means.iter().flat_map(|means| means.high.iter().zip(&means.channels)) {
            let (Some((row, at, value)), Some(means)) = (high, &self.means) else { continue };
            let text = format!(
                "row {row}: {name} is {value}, just below 2^32 / {}, and no value in the log is below 0: subtract it",
                means.of
            );
            note(&rules::MEANS_WRAPPED, *at..at + size_of::<u32>() as u64, text);
        }
    }
}

impl Dirty {
    /// Returns the word, if it has set bits that belong to no channel.
    fn word(&self, row: Row<'_>) -> Option<u32> {
        let last = row.word(self.binary / 32)?;
        (last >> (self.binary % 32) != 0).then_some(last)
    }
}

impl Wrap {
    /// Makes the check of a channel, if it is a current with a known full scale.
    fn new(index: usize, channel: &Channel) -> Option<Self> {
        let nanoamperes: i64 = match channel.name.as_bytes() {
            [b'I', .., b'H'] => 500_000_000,
            [b'I', .., b'L'] => 2_000_000,
            _ => return None,
        };
        let full: i64 = match channel.unit {
            // Without a calibration, the converter's own 16 bits are stored.
            _ if channel.is_binary => return None,
            Unit::Undefined if channel.scale == 0 => 1 << 15,
            Unit::Ampere if (-12..=-9).contains(&channel.scale) => {
                nanoamperes * 10i64.pow(channel.scale.unsigned_abs() - 9)
            }
            _ => return None,
        };
        let (near, name) = (full.unsigned_abs() / 10 * 9, channel.name.to_string());
        Some(Self { channel: index, name, near, last: None, run: None, end: 0 })
    }

    fn row(
        &mut self,
        number: u64,
        at: u64,
        row: Row<'_>,
        note: &mut impl FnMut(&'static Rule, Range<u64>, String),
    ) {
        // Values out of range are not used, so they need no check.
        let value = row.raw(self.channel).filter(|_| row.is_valid(self.channel) == Some(true));
        let jumped = self.last.zip(value).is_some_and(|(last, value)| {
            let near = |value: i64| value.unsigned_abs() >= self.near;
            last.signum() != value.signum() && near(last) && near(value)
        });
        if value.is_none() || jumped && self.run.is_some() {
            self.close(note);
        } else if jumped && let Some((last, value)) = self.last.zip(value) {
            self.run = Some((number, at, last, value));
        }
        self.end = at + row.bytes().len() as u64;
        self.last = value;
    }

    fn close(&mut self, note: &mut impl FnMut(&'static Rule, Range<u64>, String)) {
        if let Some((row, at, last, value)) = self.run.take() {
            let text = format!(
                "{} jumps from {last} to {value} in row {row}: do not use it until it jumps back",
                self.name
            );
            note(&rules::CURRENT_WRAPS, at..self.end, text);
        }
    }
}

impl Means {
    fn new(of: u32, channels: &[Channel]) -> Self {
        let analog = channels.iter().enumerate().filter(|(_, channel)| !channel.is_binary);
        let channels: Vec<_> = analog.map(|(i, channel)| (i, channel.name.to_string())).collect();
        let high = vec![None; channels.len()];
        Self { of, bound: (1 << 32) / i64::from(of), channels, high }
    }

    /// Checks a row; false if a value shows that sums do not wrap.
    fn row(&mut self, number: u64, at: u64, row: Row<'_>) -> bool {
        for ((channel, _), high) in self.channels.iter().zip(&mut self.high) {
            let value = row.raw(*channel).unwrap_or_default();
            if !(0..=self.bound).contains(&value) {
                return false;
            }
            if high.is_none() && value >= self.bound - self.bound / 1024 {
                *high = Some((number, at, value));
            }
        }
        true
    }
}
