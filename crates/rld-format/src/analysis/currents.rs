//! Currents: a low and a high range as one, exact integers at the scale of the low one.

use std::ops::Range;

use crate::reader::RldReader;
use crate::schema::Channel;
use crate::unit::Unit;

/// Rows around a switch whose low samples have not settled: the converter's filter is that long.
pub const MARGIN_SETTLED: u64 = 5;

/// A current that was measured in up to two ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Current {
    /// Its name without the range: `I1`.
    pub name: String,
    /// The channel of the low range.
    pub low: Option<usize>,
    /// The channel of the high range.
    pub high: Option<usize>,
    /// The bit that says whether the low one is in range.
    pub valid: Option<usize>,
    /// The exponent of ten of merged values: that of the low channel.
    pub scale: i32,
    /// What high values are multiplied with.
    pub factor: i64,
    /// The voltage of the same number: `V1`.
    pub voltage: Option<usize>,
}

/// The currents of a log: `I1L` and `I1H` as `I1`, in the order of their first channel.
///
/// Only channels in amperes: what is stored without a calibration has no unit, and no scale to merge by.
pub fn currents(channels: &[Channel]) -> Vec<Current> {
    let find = |name: &str| {
        let of =
            |channel: &Channel| &*channel.name == name && channel.unit == Unit::Ampere && !channel.is_binary;
        channels.iter().position(of)
    };
    let mut list: Vec<Current> = Vec::new();
    for channel in channels.iter().filter(|channel| channel.unit == Unit::Ampere) {
        let Some(stem) = channel.name.strip_suffix(['L', 'H']).filter(|stem| !stem.is_empty()) else {
            continue;
        };
        if list.iter().any(|known| known.name == stem) {
            continue;
        }
        let (low, high) = (find(&format!("{stem}L")), find(&format!("{stem}H")));
        let scale = |at: Option<usize>| at.map(|at| channels[at].scale);
        let factor = match (scale(low), scale(high)) {
            (Some(low), Some(high)) => {
                // Exponents that no merged integer can hold are left apart.
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
        let volts = format!("V{number}");
        let voltage = channels.iter().position(|c| *c.name == *volts && c.unit == Unit::Volt);
        list.push(Current {
            name: stem.to_owned(),
            low,
            high,
            valid: low.and_then(|low| channels[low].valid),
            scale: scale(low).or(scale(high)).unwrap_or_default(),
            factor,
            voltage,
        });
    }
    list
}

/// Which of some rows' low samples count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Usable {
    All,
    None,
    /// As the list says.
    Some,
}

/// Marks in `usable` which of `rows` have `bit` set, with `margin` rows before and behind; rows outside of the log
/// count as set. `words` are the words of `rows` that hold the bit.
pub(super) fn usable(
    reader: &RldReader,
    bit: usize,
    margin: u64,
    rows: Range<u64>,
    words: &[u32],
    usable: &mut Vec<bool>,
) -> Usable {
    let mask = 1u32 << (bit % 32);
    let (all, any) = words.iter().fold((u32::MAX, 0), |(all, any), word| (all & word, any | word));
    let zero = |row: u64| reader.row(row).and_then(|row| row.bit(bit)) == Some(false);
    let before = rows.start.saturating_sub(margin)..rows.start;
    let behind = rows.end..rows.end.saturating_add(margin).min(reader.rows());
    if any & mask == 0 {
        return Usable::None;
    }
    // The nearest zero on either side.
    let left = before.rev().find(|row| zero(*row));
    let right = { behind }.find(|row| zero(*row));
    if all & mask != 0 && left.is_none() && right.is_none() {
        return Usable::All;
    }
    usable.clear();
    usable.resize(words.len(), true);
    let mut clear = |from: u64, to: u64| {
        let index = |row: u64| usize::try_from(row.clamp(rows.start, rows.end) - rows.start).unwrap_or(0);
        usable[index(from)..index(to)].fill(false);
    };
    if let Some(left) = left {
        clear(rows.start, left + margin + 1);
    }
    if let Some(right) = right {
        clear(right - margin.min(right), rows.end);
    }
    // Runs of zeros, widened on both sides.
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
    Usable::Some
}

/// Where a merged value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The low channel.
    Low,
    /// The high channel, because the low one is out of range.
    High,
    /// The high channel, because the low one has not settled.
    Transition,
    /// Nothing: out of range, and there is no high channel.
    Missing,
}

impl RldReader {
    /// A merged current over `rows`, value by value with its source.
    pub fn merged(&self, current: &Current, margin: u64, rows: Range<u64>) -> Vec<(Source, i64)> {
        let mut values = Vec::new();
        let mut words = Vec::new();
        let mut marks = Vec::new();
        for (first, bytes) in self.runs(rows, 4096) {
            let Some(table) = &self.table else { break };
            let count = (bytes.len() / table.layout.row) as u64;
            let range = first..first + count;
            let counts = current.valid.map_or(Usable::All, |bit| {
                words.clear();
                crate::bits::gather_words(bytes, table.layout.row, bit / 32 * 4, &mut words);
                usable(self, bit, margin, range.clone(), &words, &mut marks)
            });
            for (i, row) in range.enumerate() {
                let Some(row) = self.row(row) else { break };
                let low = match counts {
                    Usable::All => current.low.is_some(),
                    Usable::None => false,
                    Usable::Some => marks[i],
                };
                let in_range = current.valid.and_then(|bit| row.bit(bit)) == Some(true);
                let high = current.high.and_then(|high| row.raw(high));
                values.push(match (low, high) {
                    (true, _) => (Source::Low, current.low.and_then(|low| row.raw(low)).unwrap_or_default()),
                    (false, Some(high)) => {
                        let source = if in_range { Source::Transition } else { Source::High };
                        (source, high.saturating_mul(current.factor))
                    }
                    (false, None) => (Source::Missing, 0),
                });
            }
        }
        values
    }
}
