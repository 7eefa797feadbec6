//! Exact sums over rows, in one pass. About a thousand rows at a time are copied into columns.
//! These columns stay in the processor's cache while they are summed.

use std::convert::Infallible;
use std::ops::Range;

use rovelog_core::internal::parallel::{Jobs, in_order};
use rovelog_core::internal::wire::I32Le;

use super::currents::{Current, LowSamples, MARGIN_SETTLED, currents, mark_usable};
use super::stats::{Stats, Sums};
use crate::bits;
use crate::error::RldError;
use crate::layout::{self, values};
use crate::reader::RldReader;

/// Maximum number of rows that are summed as a group. The limit is small enough that the sums over
/// a group fit into 32 and 64 bits.
const GROUP_ROWS: u64 = 1024;

/// Number of rows that a thread sums as one task.
const TASK_ROWS: u64 = 64 * GROUP_ROWS;

/// A power whose values are summed. It is the product of a merged current and a voltage, or of a
/// merged current and the difference of two voltages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowerTerm {
    /// Name of the power, for example `V1*I1`.
    pub name: String,
    /// Index of the voltage channel.
    pub plus: usize,
    /// Index of the channel whose voltage is subtracted from that of `plus`. `None` if the power
    /// uses a single voltage.
    pub minus: Option<usize>,
    /// Index of the current in the list that [`currents`] returns.
    pub current: usize,
    /// Exponent of ten by which the product of raw values is converted to watts.
    pub scale: i32,
}

/// Options for statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatsOptions {
    /// Samples of the low range are ignored in this number of rows before and after each change of
    /// range, because they have not settled.
    pub(crate) margin: u64,
    /// True to exclude a channel's values outside of its measuring range from the channel's sums.
    pub(crate) valid_only: bool,
    /// Names of powers, for example `V1*I1` or `(V1-V2)*I1`. By default, there is one power if the
    /// log has one voltage and one current, and no power in other logs.
    pub(crate) powers: Option<Vec<String>>,
    /// True if the range of each current is inferred from its values, because the log has
    /// unreliable range bits. See [`Current::deriving`].
    pub(crate) derived: bool,
    /// True to sum only currents and powers, but not channels.
    pub(crate) only_currents: bool,
}

impl Default for StatsOptions {
    fn default() -> Self {
        Self { margin: MARGIN_SETTLED, valid_only: true, powers: None, derived: false, only_currents: false }
    }
}

impl StatsOptions {
    /// Sets the number of rows before and after each change of range in which samples of the low
    /// range are ignored. If the number is 0, only the range bit of a row selects the range.
    #[must_use]
    pub fn with_margin(mut self, margin: u64) -> Self {
        self.margin = margin.min(10_000);
        self
    }

    /// Sets the names of the powers that are summed.
    #[must_use]
    pub fn with_powers<N: Into<String>>(mut self, powers: impl IntoIterator<Item = N>) -> Self {
        self.powers = Some(powers.into_iter().map(Into::into).collect());
        self
    }

    /// Infers the ranges of currents from values. This is for logs with unreliable range bits.
    #[must_use]
    pub fn deriving_ranges(mut self) -> Self {
        self.derived = true;
        self
    }

    /// Sums only currents and powers, which is faster. The sums of channels are then empty.
    #[doc(hidden)]
    #[must_use]
    pub fn only_currents(mut self) -> Self {
        self.only_currents = true;
        self
    }

    /// Includes all raw values of a channel in its sums, even those outside of its measuring range.
    #[must_use]
    pub fn over_all(mut self) -> Self {
        self.valid_only = false;
        self
    }
}

/// The values of a channel in the rows of the current group.
#[derive(Clone, Debug)]
enum Column {
    Narrow(Vec<i32>),
    Wide(Vec<i64>),
}

/// Sums rows of a log. An accumulator keeps its buffers, so it should be reused for several ranges
/// of rows.
#[derive(Clone, Debug)]
pub struct Accumulator<'a> {
    reader: &'a RldReader,
    binary: usize,
    /// For each analog channel, the index of its range bit. A value counts only if this bit is set.
    /// `None` if all values count.
    valid: Vec<Option<usize>>,
    /// For each analog channel, true if its values are needed.
    needed: Vec<bool>,
    only_currents: bool,
    currents: Vec<Current>,
    powers: Vec<PowerTerm>,
    margin: u64,
    words: Vec<Vec<u32>>,
    columns: Vec<Column>,
    /// For each analog channel, the sums over all rows of the current group.
    sums: Vec<Sums>,
    marks: Vec<bool>,
    /// For each row, 1 if the values of a current show that its low range is valid.
    derived: Vec<u32>,
    kept: Vec<i32>,
}

impl RldReader {
    /// Creates an accumulator for this log.
    ///
    /// # Errors
    /// Returns an error if rows cannot be located, or if the name of a power contains an unknown
    /// channel.
    pub fn accumulator(&self, options: &StatsOptions) -> Result<Accumulator<'_>, RldError> {
        let table = self.table()?;
        let binary = table.binary();
        let mut list = currents(&table.channels);
        if options.derived {
            list = list.into_iter().map(Current::deriving).collect();
        }
        let powers: Vec<PowerTerm> = match &options.powers {
            Some(names) => names.iter().map(|name| self.power(name, &list)).collect::<Result<_, _>>()?,
            None => self.only_power(&list).into_iter().collect(),
        };
        let column = |slot: &crate::layout::Slot| match slot.size {
            0..=4 => Column::Narrow(Vec::new()),
            _ => Column::Wide(Vec::new()),
        };
        let of_currents = list.iter().flat_map(|current| [current.low, current.high]);
        let of_powers = powers.iter().flat_map(|power| [Some(power.plus), power.minus]);
        let of_both: Vec<_> = of_currents.chain(of_powers).flatten().collect();
        let needed = |channel: usize| !options.only_currents || of_both.contains(&channel);
        let valid = |channel: &crate::schema::Channel| channel.valid.filter(|_| options.valid_only);
        Ok(Accumulator {
            reader: self,
            binary,
            valid: table.channels[binary..].iter().map(valid).collect(),
            needed: (binary..table.channels.len()).map(needed).collect(),
            only_currents: options.only_currents,
            currents: list,
            powers,
            margin: options.margin,
            words: vec![Vec::new(); binary.div_ceil(32)],
            columns: table.layout.slots.iter().map(column).collect(),
            sums: Vec::new(),
            marks: Vec::new(),
            derived: Vec::new(),
            kept: Vec::new(),
        })
    }

    /// Returns the power of a log that has exactly one voltage and one current. Returns `None` for
    /// other logs.
    fn only_power(&self, list: &[Current]) -> Option<PowerTerm> {
        let volts = self.channels().iter().filter(|channel| channel.unit == crate::unit::Unit::Volt);
        let [volt] = volts.collect::<Vec<_>>()[..] else { return None };
        let [current] = list else { return None };
        self.power(&format!("{}*{}", volt.name, current.name), list).ok()
    }

    /// Parses the name of a power, such as `V1*I1` or `(V1-V2)*I1`. The factors can be in either
    /// order.
    fn power(&self, name: &str, list: &[Current]) -> Result<PowerTerm, RldError> {
        let refuse = || {
            let names: Vec<_> = list.iter().map(|current| current.name.as_str()).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            RldError::NotAPower { text: name.to_owned(), currents: names }
        };
        let current_of = |name: &str| list.iter().position(|current| current.name == name.trim());
        let (volts, amps) = name.rsplit_once('*').ok_or_else(refuse)?;
        let (volts, amps) = match name.split_once('*') {
            Some((first, second)) if current_of(amps).is_none() && current_of(first).is_some() => {
                (second, first)
            }
            _ => (volts, amps),
        };
        let volts = volts.trim().trim_start_matches('(').trim_end_matches(')');
        let (plus, minus) = match volts.split_once('-') {
            Some((plus, minus)) => (self.channel(plus.trim())?, Some(self.channel(minus.trim())?)),
            None => (self.channel(volts.trim())?, None),
        };
        let current = current_of(amps).ok_or_else(refuse)?;
        let channels = self.channels();
        let analog = |at: usize| !channels[at].is_binary;
        if !analog(plus)
            || minus.is_some_and(|minus| !analog(minus) || channels[minus].scale != channels[plus].scale)
        {
            return Err(RldError::refused(format!(
                "the power {name:?} needs voltages that are analog channels with the same scale"
            )));
        }
        let scale = channels[plus].scale.saturating_add(list[current].scale);
        Ok(PowerTerm { name: name.to_owned(), plus, minus, current, scale })
    }
}

impl Accumulator<'_> {
    /// Returns the merged currents of the log.
    pub fn currents(&self) -> &[Current] {
        &self.currents
    }

    /// Returns the powers that are summed.
    pub fn powers(&self) -> &[PowerTerm] {
        &self.powers
    }

    /// Returns sums over no rows, to which sums can be added.
    pub fn empty(&self) -> Stats {
        Stats::empty(self.columns.len(), self.binary, self.currents.len(), self.powers.len())
    }

    /// Returns the sums over `rows`.
    pub fn stats(&mut self, rows: Range<u64>) -> Stats {
        let mut stats = self.empty();
        self.add(rows, &mut stats);
        stats
    }

    /// Returns the sums over `rows`, computed on several threads. The result does not depend on the
    /// number of threads, because sums are exact.
    pub fn stats_on(&self, jobs: Jobs, rows: Range<u64>) -> Stats {
        let mut all = self.empty();
        let shares = (rows.start..rows.end).step_by(usize::try_from(TASK_ROWS).unwrap_or(usize::MAX));
        let Ok(()) = in_order(
            jobs,
            || self.clone(),
            Accumulator::stats,
            |push| shares.map(|from| from..rows.end.min(from + TASK_ROWS)).try_for_each(push),
            |stats| {
                all.merge(&stats);
                Ok::<_, Infallible>(())
            },
        );
        all
    }

    /// Adds the values in the range `rows` of row numbers to the sums in `stats`.
    pub(crate) fn add(&mut self, rows: Range<u64>, stats: &mut Stats) {
        let reader = self.reader;
        for (first, bytes) in reader.runs(rows, GROUP_ROWS) {
            self.group(first, bytes, stats);
        }
    }

    fn group(&mut self, first: u64, bytes: &[u8], stats: &mut Stats) {
        let Some(table) = &self.reader.table else { return };
        let row = table.layout.row;
        let count = bytes.len() / row;
        stats.rows += count as u64;
        for (i, words) in self.words.iter_mut().enumerate() {
            words.clear();
            // An extra word (rule D28 of docs/formats/rld.md) does not shift these bits, because it
            // only occurs in logs without binary channels.
            bits::copy_words(bytes, row, 4 * i, words);
            count_ones(words, i, &mut stats.ones);
        }
        self.sums.clear();
        for ((slot, column), needed) in table.layout.slots.iter().zip(&mut self.columns).zip(&self.needed) {
            match column {
                _ if !needed => self.sums.push(Sums::default()),
                Column::Narrow(column) => {
                    column.clear();
                    if slot.size == 4 {
                        column.extend(layout::column(bytes, row, slot.offset).map(|raw: &I32Le| raw.get()));
                    } else {
                        let raw = |value| i32::try_from(value).unwrap_or_default();
                        column.extend(values(bytes, row, *slot).map(raw));
                    }
                    self.sums.push(sum_narrow(column));
                }
                Column::Wide(column) => {
                    column.clear();
                    column.extend(values(bytes, row, *slot));
                    self.sums.push(sum_wide(column.iter().map(|value| i128::from(*value))));
                }
            }
        }
        if !self.only_currents {
            self.channels(stats);
        }
        for number in 0..self.currents.len() {
            self.current(number, first..first + count as u64, stats);
        }
    }

    /// Adds the sums of channels to `stats`. Values outside of the measuring range are excluded.
    fn channels(&mut self, stats: &mut Stats) {
        for (i, (valid, sums)) in self.valid.iter().zip(&self.sums).enumerate() {
            let Some(bit) = valid else {
                stats.channels[i].merge(sums);
                continue;
            };
            let (words, mask) = (&self.words[bit / 32], 1u32 << (bit % 32));
            let (all, any) = words.iter().fold((u32::MAX, 0), |(all, any), word| (all & word, any | word));
            if all & mask != 0 {
                stats.channels[i].merge(sums);
            } else if any & mask != 0 {
                match &self.columns[i] {
                    Column::Narrow(values) => {
                        self.kept.clear();
                        let kept = values.iter().zip(words).filter(|(_, word)| *word & mask != 0);
                        self.kept.extend(kept.map(|(value, _)| *value));
                        stats.channels[i].merge(&sum_narrow(&self.kept));
                    }
                    Column::Wide(values) => {
                        let kept = values.iter().zip(words).filter(|(_, word)| *word & mask != 0);
                        stats.channels[i].merge(&sum_wide(kept.map(|(value, _)| i128::from(*value))));
                    }
                }
            }
        }
    }

    /// Adds the sums of a merged current and of its powers to `stats`. Consecutive rows that use
    /// the same range of the current are summed together.
    fn current(&mut self, number: usize, rows: Range<u64>, stats: &mut Stats) {
        let current = &self.currents[number];
        let count = usize::try_from(rows.end - rows.start).unwrap_or_default();
        let counts = match (current.low, current.valid) {
            (None, _) => LowSamples::None,
            (Some(low), _) if current.derived => {
                let low = &self.columns[low - self.binary];
                let high = current.high.map(|high| &self.columns[high - self.binary]);
                let derives = |i| current.derives(low.at(i), high.map(|high| high.at(i)));
                self.derived.clear();
                self.derived.extend((0..count).map(|i| u32::from(derives(i))));
                mark_usable(self.reader, current, self.margin, rows, (&self.derived, 1), &mut self.marks)
            }
            (Some(_), None) => LowSamples::All,
            (Some(_), Some(bit)) => {
                let words = (&self.words[bit / 32][..], 1u32 << (bit % 32));
                mark_usable(self.reader, current, self.margin, rows, words, &mut self.marks)
            }
        };
        let source = |from_low: bool| {
            if from_low {
                current.low.map(|low| (low - self.binary, 1))
            } else {
                current.high.map(|high| (high - self.binary, current.factor))
            }
        };
        let mut segment = |rows: Range<usize>, from_low: bool| {
            // If the current has no channel for this range, these rows have no value.
            let Some((channel, factor)) = source(from_low) else { return };
            if from_low {
                stats.from_low[number] += (rows.end - rows.start) as u64;
            }
            let sums =
                if rows.len() == count { self.sums[channel] } else { self.columns[channel].sums(&rows) };
            stats.currents[number].merge(&sums.times(factor));
            for (i, power) in self.powers.iter().enumerate().filter(|(_, power)| power.current == number) {
                let volts = &self.columns[power.plus - self.binary];
                let minus = power.minus.map(|minus| &self.columns[minus - self.binary]);
                product(volts, minus, &self.columns[channel], &rows, factor, &mut stats.powers[i]);
            }
        };
        match counts {
            LowSamples::All => segment(0..count, true),
            LowSamples::None => segment(0..count, false),
            LowSamples::Some => {
                let mut from = 0;
                for marks in self.marks.chunk_by(|a, b| a == b) {
                    segment(from..from + marks.len(), marks[0]);
                    from += marks.len();
                }
            }
        }
    }
}

impl Column {
    fn at(&self, i: usize) -> i64 {
        match self {
            Self::Narrow(values) => values[i].into(),
            Self::Wide(values) => values[i],
        }
    }

    fn sums(&self, rows: &Range<usize>) -> Sums {
        match self {
            Self::Narrow(values) => sum_narrow(&values[rows.clone()]),
            Self::Wide(values) => sum_wide(values[rows.clone()].iter().map(|value| i128::from(*value))),
        }
    }
}

/// Counts in how many rows each bit is set. Usually, most bits do not change within a group, and
/// need not be counted row by row.
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
fn product(
    volts: &Column,
    minus: Option<&Column>,
    amps: &Column,
    rows: &Range<usize>,
    factor: i64,
    sums: &mut Sums,
) {
    if let (Column::Narrow(volts), None, Column::Narrow(amps)) = (volts, minus, amps) {
        return add_narrow_products(&volts[rows.clone()], &amps[rows.clone()], factor, sums);
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
