//! Merged currents: the low and the high range as one value, in exact integers at the scale of the
//! low range.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::reader::RldReader;
use crate::row::Row;
use crate::schema::Channel;
use crate::unit::Unit;

/// Number of rows before and after a change of range whose low samples have not settled. This is
/// the length of the converter's filter.
pub const MARGIN_SETTLED: u64 = 5;

/// A current that was measured in one or two ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Current {
    /// The name without the range, for example `I1`.
    pub name: String,
    /// Index of the channel of the low range.
    pub low: Option<usize>,
    /// Index of the channel of the high range.
    pub high: Option<usize>,
    /// Index of the bit that is 1 if the low range is valid.
    pub valid: Option<usize>,
    /// The exponent of ten of merged values, which is that of the low channel if there is one.
    pub scale: i32,
    /// The factor that converts raw values of the high channel to the scale of merged values.
    pub factor: i64,
    /// Index of the voltage channel with the same number, for example `V1` for `I1`.
    pub voltage: Option<usize>,
    /// True if values decide which range is used, because the bit is unreliable.
    pub derived: bool,
}

impl Current {
    /// Uses values instead of range bits to choose the range, for logs with unreliable bits
    /// (`validity_untrusted`).
    ///
    /// A low value is used if it is within 2 mA, the full scale of that range, and differs from the
    /// high value by at most an eighth of that. Nothing changes if 2 mA cannot be represented at
    /// the scale of the channel.
    #[must_use]
    pub fn deriving(mut self) -> Self {
        self.derived = self.low.is_some() && self.full_scale().is_some();
        self
    }

    /// Returns 2 mA in raw units of the low channel; `None` if the scale cannot represent it.
    fn full_scale(&self) -> Option<i64> {
        (-18..=-3).contains(&self.scale).then(|| 2 * 10i64.pow(self.scale.unsigned_abs() - 3))
    }

    /// Returns whether the low range is valid by its value and the high value.
    pub(super) fn derives(&self, low: i64, high: Option<i64>) -> bool {
        let full = self.full_scale().unwrap_or(i64::MAX).unsigned_abs();
        let high = high.map(|high| high.saturating_mul(self.factor));
        low.unsigned_abs() < full && high.is_none_or(|high| low.abs_diff(high) <= full / 8)
    }

    /// Returns whether the low range is valid in a row, by its bit or by values.
    fn in_range(&self, row: Row<'_>) -> bool {
        match (self.low, self.valid) {
            (None, _) => false,
            (Some(low), _) if self.derived => {
                row.raw(low).is_some_and(|low| self.derives(low, self.high.and_then(|high| row.raw(high))))
            }
            (Some(_), Some(bit)) => row.bit(bit) == Some(true),
            (Some(_), None) => true,
        }
    }
}

/// Returns the currents of a log, in the order of their first channel. `I1L` and `I1H` become `I1`.
///
/// Only channels in amperes are used. Without a calibration, a log has no units and no scales to
/// merge by.
pub fn currents(channels: &[Channel]) -> Vec<Current> {
    // The index of the first analog channel for each name and unit.
    let mut places: HashMap<(&str, Unit), usize> = HashMap::new();
    for (place, channel) in channels.iter().enumerate().filter(|(_, channel)| !channel.is_binary) {
        places.entry((&channel.name, channel.unit)).or_insert(place);
    }
    let find = |name: &str, unit| places.get(&(name, unit)).copied();
    let (mut list, mut known) = (Vec::new(), HashSet::new());
    for channel in channels.iter().filter(|channel| channel.unit == Unit::Ampere) {
        let Some(stem) = channel.name.strip_suffix(['L', 'H']).filter(|stem| !stem.is_empty()) else {
            continue;
        };
        if known.contains(stem) {
            continue;
        }
        let end = |end| find(&format!("{stem}{end}"), Unit::Ampere);
        let (low, high) = (end('L'), end('H'));
        let scale = |at: Option<usize>| at.map(|at| channels[at].scale);
        let factor = match (scale(low), scale(high)) {
            (Some(low), Some(high)) => {
                // Ranges whose scales differ too much for a merged integer stay separate.
                let Some(by) =
                    high.checked_sub(low).and_then(|by| u32::try_from(by).ok()).filter(|by| *by <= 9)
                else {
                    continue;
                };
                10i64.pow(by)
            }
            _ => 1,
        };
        let number = stem.strip_prefix('I').unwrap_or(stem);
        let voltage = find(&format!("V{number}"), Unit::Volt);
        known.insert(stem);
        list.push(Current {
            name: stem.to_owned(),
            low,
            high,
            valid: low.and_then(|low| channels[low].valid),
            scale: scale(low).or(scale(high)).unwrap_or_default(),
            factor,
            voltage,
            derived: false,
        });
    }
    list
}

/// Which low samples of a range of rows can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LowSamples {
    All,
    None,
    /// The low samples that are marked in the list.
    Some,
}

// Example: with a margin of 1, the range bits of eight rows (low range valid or not) and the marks
// are
//
//     range bit    1 1 0 0 1 1 1 1
//     usable       1 0 0 0 0 1 1 1
//
// The low samples next to a change of range have not settled, so the run of zeros is extended by
// the margin on both sides. Rows just outside of the given ones count, too.

/// Marks in `marks` which of `rows` have a usable low sample: the low range is valid in the row and
/// in `margin` rows before and after it. Rows outside of the log count as valid. `words` has the
/// word of each row; `mask` selects its range bit.
pub(super) fn mark_usable(
    reader: &RldReader,
    current: &Current,
    margin: u64,
    rows: Range<u64>,
    (words, mask): (&[u32], u32),
    marks: &mut Vec<bool>,
) -> LowSamples {
    let (all, any) = words.iter().fold((u32::MAX, 0), |(all, any), word| (all & word, any | word));
    let zero = |row: u64| reader.row(row).is_some_and(|row| !current.in_range(row));
    let before = rows.start.saturating_sub(margin)..rows.start;
    let behind = rows.end..rows.end.saturating_add(margin).min(reader.rows());
    if any & mask == 0 {
        return LowSamples::None;
    }
    // Find the nearest rows before and after `rows` in which the low range is not valid.
    let left = before.rev().find(|row| zero(*row));
    let right = { behind }.find(|row| zero(*row));
    if all & mask != 0 && left.is_none() && right.is_none() {
        return LowSamples::All;
    }
    marks.clear();
    marks.resize(words.len(), true);
    let mut clear = |from: u64, to: u64| {
        let index = |row: u64| usize::try_from(row.clamp(rows.start, rows.end) - rows.start).unwrap_or(0);
        marks[index(from)..index(to)].fill(false);
    };
    if let Some(left) = left {
        clear(rows.start, left + margin + 1);
    }
    if let Some(right) = right {
        clear(right - margin.min(right), rows.end);
    }
    // Clear each run of zeros, extended by the margin on both sides.
    let mut run: Option<u64> = None;
    for (row, word) in (rows.start..).zip(words) {
        match (word & mask == 0, run) {
            (true, None) => run = Some(row),
            (false, Some(first)) => {
                clear(first.saturating_sub(margin), row + margin);
                run = None;
            }
            _ => {}
        }
    }
    if let Some(first) = run {
        clear(first.saturating_sub(margin), rows.end);
    }
    LowSamples::Some
}

/// The source of a merged value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The low channel.
    Low,
    /// The high channel, because the low range is not valid.
    High,
    /// The high channel, because the low range is valid but has not settled.
    Transition,
    /// No channel, because the low range is not valid and there is no high channel.
    Missing,
}

/// Merges currents. Keeps its buffers for further calls.
#[derive(Debug, Default)]
pub(crate) struct Merger {
    words: Vec<u32>,
    marks: Vec<bool>,
}

impl Merger {
    /// Merges the rows in `bytes`, of which `first` is the number of the first one. Calls `value`
    /// with the source and the value of each row.
    pub(crate) fn merge(
        &mut self,
        reader: &RldReader,
        (current, margin): (&Current, u64),
        (first, bytes): (u64, &[u8]),
        mut value: impl FnMut(Source, i64),
    ) {
        let Some(table) = &reader.table else { return };
        let rows = || bytes.chunks_exact(table.layout.row).map(|row| Row::new(row, table));
        let range = first..first + rows().len() as u64;
        self.words.clear();
        self.words.extend(rows().map(|row| u32::from(current.in_range(row))));
        let counts = mark_usable(reader, current, margin, range, (&self.words, 1), &mut self.marks);
        for (i, row) in rows().enumerate() {
            let low = match counts {
                LowSamples::All => true,
                LowSamples::None => false,
                LowSamples::Some => self.marks[i],
            };
            let high = current.high.and_then(|high| row.raw(high));
            match (low, high) {
                (true, _) => value(Source::Low, current.low.and_then(|low| row.raw(low)).unwrap_or_default()),
                (false, Some(high)) => {
                    let source = if self.words[i] == 1 { Source::Transition } else { Source::High };
                    value(source, high.saturating_mul(current.factor));
                }
                (false, None) => value(Source::Missing, 0),
            }
        }
    }
}

impl RldReader {
    /// Returns the values of a merged current over `rows`, each with its source.
    pub fn merged(&self, current: &Current, margin: u64, rows: Range<u64>) -> Vec<(Source, i64)> {
        let (mut values, mut merger) = (Vec::new(), Merger::default());
        for run in self.runs(rows, 4096) {
            merger.merge(self, (current, margin), run, |source, value| values.push((source, value)));
        }
        values
    }
}
