//! Sums the rows of an RLD log in groups. About a thousand rows at a time are copied into columns,
//! because columns of this size stay in the processor's cache while they are summed.

use std::ops::Range;

use rovelog_core::internal::wire::I32Le;

use super::dispatch::dispatch;
use super::stats::{Stats, Sums};
use crate::bits;
use crate::layout::{self, values};
use crate::row::Table;

/// Maximum number of rows in a group. The sums over a group of this size fit into the integers of
/// 32 and 64 bits that are used for them.
pub(super) const GROUP_ROWS: u64 = 1024;

/// Columns of a group of rows. The buffers are reused for the next group.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Bits of the binary channels, in words of 32 channels. Each word has a list with an element
    /// for each row.
    pub(super) words: Vec<Vec<u32>>,
    /// Number of binary channels, which come before the analog channels.
    pub(super) binary: usize,
    pub(super) analog: Vec<AnalogChannel>,
    /// Reusable buffer for the valid values of a channel.
    kept: Vec<i32>,
}

/// The rows of an analog channel in a group.
#[derive(Clone, Debug)]
pub(super) struct AnalogChannel {
    column: Column,
    /// Sums over all rows.
    sums: Sums,
    /// Index of the range bit. A value counts only if this bit is set. `None` if all values count.
    valid: Option<usize>,
    is_needed: bool,
}

/// The values of an analog channel in the rows of a group.
#[derive(Clone, Debug)]
pub(super) enum Column {
    Narrow(Vec<i32>),
    Wide(Vec<i64>),
}

impl Group {
    /// Creates an empty group. `is_needed` returns whether the values of an analog channel are
    /// needed. If `valid_only` is true, the sums of channels exclude values outside of the measuring
    /// range.
    pub(super) fn new(table: &Table, valid_only: bool, is_needed: impl Fn(usize) -> bool) -> Self {
        let binary = table.binary();
        let analog = table.layout.slots.iter().zip(&table.channels[binary..]).zip(binary..);
        let analog = analog.map(|((slot, channel), index)| AnalogChannel {
            column: if slot.size <= 4 { Column::Narrow(Vec::new()) } else { Column::Wide(Vec::new()) },
            sums: Sums::default(),
            valid: channel.valid.filter(|_| valid_only),
            is_needed: is_needed(index),
        });
        let words = vec![Vec::new(); binary.div_ceil(32)];
        Self { words, binary, analog: analog.collect(), kept: Vec::new() }
    }

    /// Replaces the rows of the group by the rows in `bytes`. Adds to `ones` in how many rows each
    /// bit is set.
    pub(super) fn load(&mut self, table: &Table, bytes: &[u8], ones: &mut [u64]) {
        let row = table.layout.row;
        for (i, words) in self.words.iter_mut().enumerate() {
            words.clear();
            // An extra word (rule D28 of docs/formats/rld.md) does not shift these bits, because it
            // only occurs in logs without binary channels.
            bits::copy_words(bytes, row, 4 * i, words);
            dispatch(|| count_ones(words, i, ones));
        }
        for (slot, channel) in table.layout.slots.iter().zip(&mut self.analog) {
            match &mut channel.column {
                _ if !channel.is_needed => {}
                Column::Narrow(column) => {
                    column.clear();
                    if slot.size == 4 {
                        column.extend(layout::column(bytes, row, slot.offset).map(|raw: &I32Le| raw.get()));
                    } else {
                        let raw = |value| i32::try_from(value).unwrap_or_default();
                        column.extend(values(bytes, row, *slot).map(raw));
                    }
                    channel.sums = dispatch(|| sum_narrow(column));
                }
                Column::Wide(column) => {
                    column.clear();
                    column.extend(values(bytes, row, *slot));
                    channel.sums = sum_wide(column.iter().map(|value| i128::from(*value)));
                }
            }
        }
    }

    /// Returns the values of an analog channel. `channel` is an index in the list of all channels.
    pub(super) fn column(&self, channel: usize) -> &Column {
        &self.analog[channel - self.binary].column
    }

    /// Returns the sums of an analog channel over `rows`. `count` is the number of rows in the group.
    pub(super) fn sums(&self, channel: usize, rows: &Range<usize>, count: usize) -> Sums {
        let AnalogChannel { column, sums, .. } = &self.analog[channel - self.binary];
        if rows.len() == count { *sums } else { column.sums(rows) }
    }

    /// Adds the sums of channels to `stats`. Values outside of the measuring range are excluded.
    pub(super) fn add_channels(&mut self, stats: &mut Stats) {
        for (channel, stats) in self.analog.iter().zip(&mut stats.channels) {
            let Some(bit) = channel.valid else {
                stats.merge(&channel.sums);
                continue;
            };
            let (words, mask) = (&self.words[bit / 32], 1u32 << (bit % 32));
            let (all, any) = words.iter().fold((u32::MAX, 0), |(all, any), word| (all & word, any | word));
            if all & mask != 0 {
                stats.merge(&channel.sums);
            } else if any & mask != 0 {
                match &channel.column {
                    Column::Narrow(values) => {
                        self.kept.clear();
                        let kept = values.iter().zip(words).filter(|(_, word)| *word & mask != 0);
                        self.kept.extend(kept.map(|(value, _)| *value));
                        stats.merge(&dispatch(|| sum_narrow(&self.kept)));
                    }
                    Column::Wide(values) => {
                        let kept = values.iter().zip(words).filter(|(_, word)| *word & mask != 0);
                        stats.merge(&sum_wide(kept.map(|(value, _)| i128::from(*value))));
                    }
                }
            }
        }
    }
}

impl Column {
    pub(super) fn at(&self, i: usize) -> i64 {
        match self {
            Self::Narrow(values) => values[i].into(),
            Self::Wide(values) => values[i],
        }
    }

    fn sums(&self, rows: &Range<usize>) -> Sums {
        match self {
            Self::Narrow(values) => dispatch(|| sum_narrow(&values[rows.clone()])),
            Self::Wide(values) => sum_wide(values[rows.clone()].iter().map(|value| i128::from(*value))),
        }
    }
}

/// Counts in how many rows each bit is set. Usually, most bits do not change within a group, and
/// need not be counted row by row.
#[inline(always)]
fn count_ones(words: &[u32], number: usize, ones: &mut [u64]) {
    let (all, any) = words.iter().fold((u32::MAX, 0), |(all, any), word| (all & word, any | word));
    for (bit, ones) in ones.iter_mut().skip(32 * number).take(32).enumerate() {
        let mask = 1u32 << bit;
        *ones += if all & mask != 0 {
            words.len() as u64
        } else if any & mask == 0 {
            0
        } else {
            words.iter().map(|word| u64::from(word >> bit & 1)).sum()
        };
    }
}

/// Distances from the minimum that are below this limit are summed in 32 bits, because 1024 of them
/// are less than 2^32.
const MAX_NARROW_DISTANCE: u32 = 1 << 22;

/// Returns the minimum and the maximum of the values.
#[inline(always)]
fn bounds(values: &[i32]) -> (i32, i32) {
    let (mut min, mut max) = (i32::MAX, i32::MIN);
    for &value in values {
        min = if value < min { value } else { min };
        max = if value > max { value } else { max };
    }
    (min, max)
}

// `sum_narrow` sums the distances of values from their minimum. Example: for the values 1003, 1001
// and 1005, the minimum m is 1001, and the distances d from m are 2, 0 and 4. The sum of d is 6 and
// the sum of d^2 is 20, so for n = 3
//
//     sum of values    = 6 + n m             = 3009
//     sum of squares   = 20 + 2 m 6 + n m^2  = 3018035
//
// The loops only process the small distances, which SIMD instructions multiply as unsigned 32-bit
// integers. The wide multiplications are done once per group.

/// Returns the exact sums of at most [`GROUP_ROWS`] values.
#[inline(always)]
fn sum_narrow(values: &[i32]) -> Sums {
    if values.is_empty() {
        return Sums::default();
    }
    let (min, max) = bounds(values);
    let distance = |value: &i32| value.wrapping_sub(min).cast_unsigned();
    let (distances, squares): (u64, u128) = if distance(&max) < MAX_NARROW_DISTANCE {
        let distances: u32 = values.iter().map(distance).fold(0, u32::wrapping_add);
        let squares: u64 =
            values.iter().map(|value| u64::from(distance(value)) * u64::from(distance(value))).sum();
        (distances.into(), squares.into())
    } else {
        let (mut low, mut high) = (0u64, 0u64);
        for value in values {
            let square = u64::from(distance(value)) * u64::from(distance(value));
            low += square & 0xFFFF_FFFF;
            high += square >> 32;
        }
        (
            values.iter().map(|value| u64::from(distance(value))).sum(),
            (u128::from(high) << 32) + u128::from(low),
        )
    };
    // The sum of squares follows from (d + m)^2 = d^2 + 2 m d + m^2, where d is a distance from the
    // minimum m.
    let (n, m, distances) = (values.len() as i128, i128::from(min), i128::from(distances));
    let sum_sq = squares.cast_signed() + 2 * m * distances + n * m * m;
    let sum = distances + n * m;
    Sums { count: values.len() as u64, sum, sum_sq: sum_sq.cast_unsigned(), min: m, max: max.into() }
}

fn sum_wide(values: impl Iterator<Item = i128>) -> Sums {
    let mut sums = Sums::default();
    values.for_each(|value| sums.push(value));
    sums
}

/// Adds the products of voltages and currents to `sums`. Each product is multiplied by `factor`,
/// which converts the current to the scale of merged values.
pub(super) fn product(
    volts: &Column,
    minus: Option<&Column>,
    amps: &Column,
    rows: &Range<usize>,
    factor: i64,
    sums: &mut Sums,
) {
    if let (Column::Narrow(volts), None, Column::Narrow(amps)) = (volts, minus, amps) {
        let (volts, amps) = (&volts[rows.clone()], &amps[rows.clone()]);
        return dispatch(|| add_narrow_products(volts, amps, factor, sums));
    }
    for i in rows.clone() {
        let volts = i128::from(volts.at(i)) - minus.map_or(0, |minus| i128::from(minus.at(i)));
        let product = volts.saturating_mul(amps.at(i).into());
        add_product(sums, product.saturating_mul(factor.into()));
    }
}

/// Adds a product of raw values to `sums`. The square of the product is not added, because it could
/// exceed 128 bits and is not needed.
fn add_product(sums: &mut Sums, product: i128) {
    sums.count += 1;
    sums.add(product);
    sums.min = sums.min.min(product);
    sums.max = sums.max.max(product);
}

#[inline(always)]
fn add_narrow_products(volts: &[i32], amps: &[i32], factor: i64, sums: &mut Sums) {
    if volts.is_empty() {
        return;
    }
    let ((v, v_max), (a, a_max)) = (bounds(volts), bounds(amps));
    let distance = |value: i32, from: i32| u64::from(value.wrapping_sub(from).cast_unsigned());
    let (mut both, mut high, mut of_volts, mut of_amps) = (0u64, 0u64, 0u64, 0u64);
    // If the signals vary little, the sum of the products of distances over a whole group fits into
    // 64 bits. If they vary more, the upper and lower halves of the products are summed separately.
    let fits_64_bits = distance(v_max, v).saturating_mul(distance(a_max, a)) < 1 << 54;
    for (volt, amp) in volts.iter().zip(amps) {
        of_volts += distance(*volt, v);
        of_amps += distance(*amp, a);
    }
    if fits_64_bits {
        both = volts.iter().zip(amps).map(|(volt, amp)| distance(*volt, v) * distance(*amp, a)).sum();
    } else {
        for (volt, amp) in volts.iter().zip(amps) {
            let product = distance(*volt, v) * distance(*amp, a);
            both += product & 0xFFFF_FFFF;
            high += product >> 32;
        }
    }
    // A product of a voltage and a current is (dv + v)(da + a) = dv da + v da + a dv + v a, where v
    // and a are the minima and dv and da the distances. Example: volts 1000 and 1003 times amperes
    // 50 and 51 have v = 1000, a = 50, dv = 0, 3 and da = 0, 1. The sum is 3 + 1000 * 1 + 50 * 3 +
    // 2 * 50000 = 101153.
    let (n, v, a, factor) = (volts.len() as i128, i128::from(v), i128::from(a), i128::from(factor));
    let products = (i128::from(high) << 32) + i128::from(both);
    let sum = products + v * i128::from(of_amps) + a * i128::from(of_volts) + n * v * a;
    sums.count += volts.len() as u64;
    sums.add(sum * factor);
    // A fast calculation with floats shows whether the group can have a new minimum or maximum. All
    // products are computed exactly only if it can.
    let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
    for (volt, amp) in volts.iter().zip(amps) {
        let product = f64::from(*volt) * f64::from(*amp);
        min = if product < min { product } else { min };
        max = if product > max { product } else { max };
    }
    // The slack covers the errors of the two roundings, with a margin.
    let slack = |value: f64| value.abs() * 1e-14;
    let (min, max) = (min * factor as f64, max * factor as f64);
    if min - slack(min) <= sums.min as f64 || max + slack(max) >= sums.max as f64 {
        for (volt, amp) in volts.iter().zip(amps) {
            let product = i128::from(i64::from(*volt) * i64::from(*amp)) * factor;
            sums.min = sums.min.min(product);
            sums.max = sums.max.max(product);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The code for the instructions of the processor must give the same results as the code that
    /// runs on all processors.
    #[cfg(feature = "simd")]
    #[test]
    fn all_instruction_sets_give_the_same_sums() {
        for shift in [0, 9, 20] {
            let value = |i: u32| i.wrapping_mul(2_654_435_761).cast_signed() >> shift;
            let values: Vec<i32> = (0..1023).map(value).collect();
            let others: Vec<i32> = (2000..3023).map(value).collect();
            assert_eq!(dispatch(|| sum_narrow(&values)), sum_narrow(&values), "{shift}");
            let (mut fast, mut plain) = (Sums::default(), Sums::default());
            dispatch(|| add_narrow_products(&values, &others, 100, &mut fast));
            add_narrow_products(&values, &others, 100, &mut plain);
            assert_eq!(fast, plain, "{shift}");
            let words: Vec<u32> = values.iter().map(|value| value.cast_unsigned()).collect();
            let (mut fast, mut plain) = ([0; 40], [0; 40]);
            dispatch(|| count_ones(&words, 1, &mut fast));
            count_ones(&words, 1, &mut plain);
            assert_eq!(fast, plain, "{shift}");
        }
    }

    #[test]
    fn fast_sums_equal_simple_ones() {
        let mut state = 3u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 32) as u32).cast_signed()
        };
        for shift in [0, 3, 6, 20, 31] {
            let values: Vec<i32> = (0..1024).map(|_| random() >> shift).collect();
            let others: Vec<i32> = (0..1024).map(|_| random()).collect();
            assert_eq!(sum_narrow(&values), sum_wide(values.iter().map(|v| i128::from(*v))), "{shift}");
            let (mut want, mut got) = (Sums::default(), Sums::default());
            for (values, others) in values.chunks(300).zip(others.chunks(300)) {
                add_narrow_products(values, others, 100, &mut got);
                for (a, b) in values.iter().zip(others) {
                    add_product(&mut want, i128::from(*a) * i128::from(*b) * 100);
                }
                assert_eq!(got, want, "{shift}");
            }
        }
        let extremes = [i32::MIN, i32::MAX, i32::MIN];
        assert_eq!(sum_narrow(&extremes), sum_wide(extremes.iter().map(|v| i128::from(*v))));
    }
}
