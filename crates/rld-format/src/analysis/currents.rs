//! Merged currents. The channels of the low and the high range are combined to one value, an exact
//! integer at the scale of the low range.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::reader::RldReader;
use crate::row::Row;
use crate::schema::Channel;
use crate::unit::Unit;

/// Number of rows before and after a change of range in which samples of the low range have not
/// settled. This is the length of the converter's filter.
pub const MARGIN_SETTLED: u64 = 5;

/// A current that was measured in one or two ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Current {
    /// Name of the current without the letter of the range, for example `I1` for the channels `I1L`
    /// and `I1H`.
    pub name: String,
    /// Index of the channel that measures the low range. `None` if the log has no such channel.
    pub low: Option<usize>,
    /// Index of the channel that measures the high range. `None` if the log has no such channel.
    pub high: Option<usize>,
    /// Index of the binary channel that is 1 if the low range is valid.
    pub valid: Option<usize>,
    /// Exponent of ten of merged values. This is the exponent of the low channel, or of the high
    /// channel if there is no low channel.
    pub scale: i32,
    /// The factor that converts raw values of the high channel to the scale of merged values.
    pub factor: i64,
    /// Index of the voltage channel with the same number, for example `V1` for `I1`.
    pub voltage: Option<usize>,
    /// True if the range is inferred from the values, because the range bit is unreliable.
    pub derived: bool,
}

impl Current {
    /// Infers the range of each row from the values. This is for logs with unreliable range bits
    /// (diagnostic `validity_untrusted`).
    ///
    /// A low value is used if it is within 2 mA, the full scale of the low range, and differs from
    /// the high value by at most an eighth of 2 mA. Nothing changes if 2 mA cannot be represented
    /// at the scale of the channel.
    #[must_use]
    pub fn deriving(mut self) -> Self {
        self.derived = self.low.is_some() && self.full_scale().is_some();
        self
    }

    /// Returns 2 mA in raw units of the low channel, or `None` if the scale cannot represent this
    /// value.
    fn full_scale(&self) -> Option<i64> {
        (-18..=-3).contains(&self.scale).then(|| 2 * 10i64.pow(self.scale.unsigned_abs() - 3))
    }

    /// Returns whether the values of both ranges in a row show that the low range is valid.
    pub(super) fn derives(&self, low: i64, high: Option<i64>) -> bool {
        let full = self.full_scale().unwrap_or(i64::MAX).unsigned_abs();
        let high = high.map(|high| high.saturating_mul(self.factor));
        low.unsigned_abs() < full && high.is_none_or(|high| low.abs_diff(high) <= full / 8)
    }

    /// Returns whether the low range is valid in a row. Depending on the settings, the range bit or
    /// the values of the row decide.
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

/// Returns the currents of a log, in the order of their first channel. For example, the channels
/// `I1L` and `I1H` become the current `I1`.
///
/// Only channels in amperes are used. A log without a calibration has no units and scales, so its
/// channels cannot be merged.
pub fn currents(channels: &[Channel]) -> Vec<Current> {
    // For each name and unit, the index of the first analog channel.
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
                // Merged values are integers at the scale of the low range. If the scales of the
                // two ranges differ too much for this, the ranges are not merged.
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
        let (name, valid) = (stem.to_owned(), low.and_then(|low| channels[low].valid));
        let scale = scale(low).or(scale(high)).unwrap_or_default();
        list.push(Current { name, low, high, valid, scale, factor, voltage, derived: false });
    }
    list
}

/// The samples of the low range that are usable in a range of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LowSamples {
    All,
    None,
    /// Only samples in marked rows are usable. A row is marked if its element in `marks` is true.
    Some,
}

// Example: with a margin of 1, the range bits of eight rows (low range valid or not) and the marks
// for usable samples are
//
//     range bit    1 1 0 0 1 1 1 1
//     usable       1 0 0 0 0 1 1 1
//
// The samples of the low range next to a change of range have not settled. So consecutive zeros are
// extended by the margin on both sides. Changes of range in the rows just before and after the
// given rows count, too.

/// Marks the rows with a usable sample of the low range in `marks`. In such a row, and in the
/// `margin` rows before and after it, the low range is valid. Rows outside of the log count as
/// valid. `words` has a word for each row, and `mask` selects the range bit in this word.
pub(super) fn mark_usable(
    reader: &RldReader,
    current: &Current,
    margin: u64,
    rows: Range<u64>,
    words: &[u32],
    mask: u32,
    marks: &mut Vec<bool>,
) -> LowSamples {
    let (all, any) = words.iter().fold((u32::MAX, 0), |(all, any), word| (all & word, any | word));
    let zero = |row: u64| reader.row(row).is_some_and(|row| !current.in_range(row));
    let before = rows.start.saturating_sub(margin)..rows.start;
    let behind = rows.end..rows.end.saturating_add(margin).min(reader.rows());
    if any & mask == 0 {
        return LowSamples::None;
    }
    // Find the nearest rows before and after the range `rows` in which the low range is not valid.
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
    // Clear the marks of consecutive rows whose bit is 0, and those of the `margin` rows on both
    // sides.
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

/// The channel from which a merged value is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The value comes from the channel of the low range.
    Low,
    /// The value comes from the channel of the high range, because the low range is not valid.
    High,
    /// The value comes from the channel of the high range, because the low range is valid but has
    /// not settled after a change of range.
    Transition,
    /// There is no value, because the low range is not valid and the log has no channel of the high
    /// range.
    Missing,
}

/// Merges the ranges of currents. The buffers are kept between calls.
#[derive(Debug, Default)]
pub(crate) struct Merger {
    words: Vec<u32>,
    marks: Vec<bool>,
}

impl Merger {
    /// Merges the ranges of a current in the rows that are stored in `bytes`. `first` is the number
    /// of the first of these rows. For each row, calls `value` with the source and the merged
    /// value.
    pub(crate) fn merge(
        &mut self,
        reader: &RldReader,
        current: &Current,
        margin: u64,
        (first, bytes): (u64, &[u8]),
        mut value: impl FnMut(Source, i64),
    ) {
        let Some(table) = &reader.table else { return };
        let rows = || bytes.chunks_exact(table.layout.row).map(|row| Row::new(row, table));
        let range = first..first + rows().len() as u64;
        self.words.clear();
        self.words.extend(rows().map(|row| u32::from(current.in_range(row))));
        let counts = mark_usable(reader, current, margin, range, &self.words, 1, &mut self.marks);
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
    /// Returns the values of a merged current in the range `rows` of row numbers, each with its
    /// source.
    pub fn merged(&self, current: &Current, margin: u64, rows: Range<u64>) -> Vec<(Source, i64)> {
        let (mut values, mut merger) = (Vec::new(), Merger::default());
        for run in self.runs(rows, 4096) {
            merger.merge(self, current, margin, run, |source, value| values.push((source, value)));
        }
        values
    }
}
