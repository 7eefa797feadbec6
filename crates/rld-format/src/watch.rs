//! Checks the rows of a log for bits that belong to no channel, and for values that show known
//! faults of the logger's software.
//!
//! For most logs, only the first rows are checked. All rows are checked only if the log has the
//! version and the rate of a known fault.

use std::ops::Range;

use rovelog_core::Rule;

use crate::diagnostics as rules;
use crate::row::{Row, Table};
use crate::schema::Channel;
use crate::unit::Unit;
use crate::validate::Validated;

/// Number of rows that are checked for set bits that belong to no channel.
const DIRTY_ROWS: u64 = 1024;

/// Checks the rows of a log. The rows must be passed in order.
#[derive(Debug)]
pub(crate) struct RowChecks {
    /// Number of the row at which the checks end.
    pub(crate) until: u64,
    dirty: Option<DirtyBits>,
    wraps: Vec<CurrentWrap>,
    means: Option<WrappedMeans>,
}

/// Check for set bits that belong to no channel (rule D8 of docs/formats/rld.md).
#[derive(Debug)]
struct DirtyBits {
    binary: usize,
    /// Names of the channels whose range bits cannot be trusted if the log has set bits that belong
    /// to no channel (rule D35 of docs/formats/rld.md).
    untrusted: Vec<String>,
}

/// Check of a current channel for values that wrapped around, which occurs at 32 kSPS and above
/// (rule D33 of docs/formats/rld.md).
#[derive(Debug)]
struct CurrentWrap {
    channel: usize,
    name: String,
    /// Nine tenths of the current's full scale, in raw units. Values beyond this threshold are near
    /// the end of the range.
    threshold: u64,
    last: Option<i64>,
    /// The last jump from one end of the range to the other, if the current has not jumped back
    /// yet.
    jump: Option<Jump>,
    /// Offset of the end of the last row that was checked.
    end: u64,
}

/// A jump of a current from one end of its range to the other.
#[derive(Debug)]
struct Jump {
    /// Number of the first row after the jump.
    row: u64,
    /// Offset of this row.
    at: u64,
    /// Values before and after the jump.
    values: [i64; 2],
}

/// Check for wrong means in logs below 1000 rows per second: the logger computed the means from
/// sums that overflowed 32 bits (rule D34 of docs/formats/rld.md).
#[derive(Debug)]
struct WrappedMeans {
    /// Number of converter samples whose mean is stored in one row.
    of: u32,
    /// Upper bound of a mean if the sum was taken modulo 2^32.
    bound: i64,
    channels: Vec<MeanChannel>,
}

/// An analog channel whose values may be means that the logger has computed incorrectly.
#[derive(Debug)]
struct MeanChannel {
    index: usize,
    name: String,
    /// First value that is just below the bound of [`WrappedMeans`].
    high: Option<HighMean>,
}

#[derive(Debug)]
struct HighMean {
    row: u64,
    /// Offset of the row.
    at: u64,
    value: i64,
}

impl RowChecks {
    pub(crate) fn new(validated: &Validated, table: Option<&Table>) -> Self {
        let mut watch = Self { until: 0, dirty: None, wraps: Vec::new(), means: None };
        let Some(table) = table else { return watch };
        let (version, rate) = (validated.version.number, validated.header.lead_in.sample_rate.get());
        let (channels, binary) = (&table.channels, table.binary());
        if !binary.is_multiple_of(32) {
            let mixed = version == 3 && binary <= 2;
            let linked = channels.iter().filter(|channel| mixed && channel.valid.is_some());
            let untrusted = linked.map(|channel| channel.name.to_string()).collect();
            watch.dirty = Some(DirtyBits { binary, untrusted });
            watch.until = DIRTY_ROWS;
        }
        if version <= 3 && rate >= 32_000 {
            watch.wraps =
                channels.iter().enumerate().filter_map(|(i, channel)| CurrentWrap::new(i, channel)).collect();
        }
        let slow = (1..1000).contains(&rate) && 1000 % rate == 0;
        if slow && !validated.is_ambient() {
            watch.means = Some(WrappedMeans::new(1000 / u32::from(rate), channels));
        }
        if !watch.wraps.is_empty() || watch.means.is_some() {
            watch.until = u64::MAX;
        }
        watch
    }

    /// Checks row `number`, which is stored at offset `at`, for all known faults.
    pub(crate) fn row(
        &mut self,
        number: u64,
        at: u64,
        row: Row<'_>,
        mut note: impl FnMut(&'static Rule, Range<u64>, String),
    ) {
        if number < DIRTY_ROWS
            && let Some(word) = self.dirty.as_ref().and_then(|dirty| dirty.word(row))
            && let Some(DirtyBits { binary, untrusted }) = self.dirty.take()
        {
            let words = 4 * (binary as u64 / 32 + 1);
            let text = format!(
                "row {number} has bits set that belong to no channel (word {word:#010x}, {binary} \
                 binary channels); they are ignored"
            );
            note(&rules::DIRTY_BITS, at..at + words, text);
            if !untrusted.is_empty() {
                let text = format!(
                    "the range bits of {} are unreliable; to use the measured values instead, call rovelog \
                     stats --ranges values",
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

    /// Skips rows that have not been read. Jumps of values across these rows are not detected.
    pub(crate) fn skip_unread(&mut self, mut note: impl FnMut(&'static Rule, Range<u64>, String)) {
        for wrap in &mut self.wraps {
            wrap.close(&mut note);
            wrap.last = None;
        }
    }

    /// Reports the faults that can be recognized only after the last row.
    pub(crate) fn end(&mut self, mut note: impl FnMut(&'static Rule, Range<u64>, String)) {
        self.wraps.iter_mut().for_each(|wrap| wrap.close(&mut note));
        let Some(WrappedMeans { of, channels, .. }) = &self.means else { return };
        for MeanChannel { name, high, .. } in channels {
            let Some(HighMean { row, at, value }) = high else { continue };
            let text = format!(
                "{name} is {value} in row {row}, just below 2^32 / {of}, which is probably an overflow of a \
                 negative mean; to correct such values, subtract 2^32 / {of}"
            );
            note(&rules::MEANS_WRAPPED, *at..at + size_of::<u32>() as u64, text);
        }
    }
}

impl DirtyBits {
    /// Returns the last 32-bit word of a row if it has set bits that belong to no channel.
    fn word(&self, row: Row<'_>) -> Option<u32> {
        let last = row.word(self.binary / 32)?;
        (last >> (self.binary % 32) != 0).then_some(last)
    }
}

impl CurrentWrap {
    /// Creates the check for a channel. Returns `None` if the channel is not a current with a known
    /// full scale.
    fn new(index: usize, channel: &Channel) -> Option<Self> {
        let nanoamperes: i64 = match channel.name.as_bytes() {
            [b'I', .., b'H'] => 500_000_000,
            [b'I', .., b'L'] => 2_000_000,
            _ => return None,
        };
        let full: i64 = match channel.unit {
            // Without a calibration, a channel stores the 16-bit codes of the converter.
            _ if channel.is_binary => return None,
            Unit::Undefined if channel.scale == 0 => 1 << 15,
            Unit::Ampere if (-12..=-9).contains(&channel.scale) => {
                nanoamperes * 10i64.pow(channel.scale.unsigned_abs() - 9)
            }
            _ => return None,
        };
        let (threshold, name) = (full.unsigned_abs() / 10 * 9, channel.name.to_string());
        Some(Self { channel: index, name, threshold, last: None, jump: None, end: 0 })
    }

    fn row(
        &mut self,
        number: u64,
        at: u64,
        row: Row<'_>,
        note: &mut impl FnMut(&'static Rule, Range<u64>, String),
    ) {
        // Values outside of the measuring range are not used, so they are not checked.
        let value = row.raw(self.channel).filter(|_| row.is_valid(self.channel) == Some(true));
        let jumped = self.last.zip(value).is_some_and(|(last, value)| {
            let is_near = |value: i64| value.unsigned_abs() >= self.threshold;
            last.signum() != value.signum() && is_near(last) && is_near(value)
        });
        if value.is_none() || jumped && self.jump.is_some() {
            self.close(note);
        } else if jumped && let Some((last, value)) = self.last.zip(value) {
            self.jump = Some(Jump { row: number, at, values: [last, value] });
        }
        self.end = at + row.bytes().len() as u64;
        self.last = value;
    }

    fn close(&mut self, note: &mut impl FnMut(&'static Rule, Range<u64>, String)) {
        if let Some(Jump { row, at, values: [before, after] }) = self.jump.take() {
            let text = format!(
                "{} jumps from {before} to {after} in row {row} due to an overflow in the logger; its \
                 values are wrong until it jumps back",
                self.name
            );
            note(&rules::CURRENT_WRAPS, at..self.end, text);
        }
    }
}

impl WrappedMeans {
    fn new(of: u32, channels: &[Channel]) -> Self {
        let analog = channels.iter().enumerate().filter(|(_, channel)| !channel.is_binary);
        let checked = analog.map(|(index, channel)| {
            let name = channel.name.to_string();
            MeanChannel { index, name, high: None }
        });
        Self { of, bound: (1 << 32) / i64::from(of), channels: checked.collect() }
    }

    /// Checks a row. Returns false if a value of this row could not result from sums modulo 2^32,
    /// so that the log does not have the fault.
    fn row(&mut self, number: u64, at: u64, row: Row<'_>) -> bool {
        for channel in &mut self.channels {
            let value = row.raw(channel.index).unwrap_or_default();
            if !(0..=self.bound).contains(&value) {
                return false;
            }
            if channel.high.is_none() && value >= self.bound - self.bound / 1024 {
                channel.high = Some(HighMean { row: number, at, value });
            }
        }
        true
    }
}
