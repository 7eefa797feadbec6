//! Exact sums over rows, in one pass.

use std::convert::Infallible;
use std::ops::Range;

use rovelog_core::internal::parallel::{Jobs, in_order};

use super::currents::{Current, LowSamples, MARGIN_SETTLED, currents, mark_usable};
use super::group::{GROUP_ROWS, Group, product};
use super::stats::Stats;
use crate::error::RldError;
use crate::reader::RldReader;

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
    /// Names of powers, for example `V1*I1` or `(V1-V2)*I1`. By default, each current is multiplied
    /// by the voltage with the same number.
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

/// Sums rows of a log. An accumulator keeps its buffers, so it should be reused for several ranges
/// of rows.
#[derive(Clone, Debug)]
pub struct Accumulator<'a> {
    reader: &'a RldReader,
    only_currents: bool,
    currents: Vec<Current>,
    powers: Vec<PowerTerm>,
    margin: u64,
    group: Group,
    marks: Vec<bool>,
    /// For each row, 1 if the values of a current show that its low range is valid.
    derived: Vec<u32>,
}

impl RldReader {
    /// Creates an accumulator for this log.
    ///
    /// # Errors
    /// Returns an error if rows cannot be located, or if the name of a power contains an unknown
    /// channel.
    pub fn accumulator(&self, options: &StatsOptions) -> Result<Accumulator<'_>, RldError> {
        let table = self.table()?;
        let mut list = currents(&table.channels);
        if options.derived {
            list = list.into_iter().map(Current::deriving).collect();
        }
        let powers: Vec<PowerTerm> = match &options.powers {
            Some(names) => names.iter().map(|name| self.power(name, &list)).collect::<Result<_, _>>()?,
            None => self.paired_powers(&list),
        };
        let of_currents = list.iter().flat_map(|current| [current.low, current.high]);
        let of_powers = powers.iter().flat_map(|power| [Some(power.plus), power.minus]);
        let of_both: Vec<_> = of_currents.chain(of_powers).flatten().collect();
        let is_needed = |channel: usize| !options.only_currents || of_both.contains(&channel);
        let group = Group::new(table, options.valid_only, is_needed);
        let StatsOptions { only_currents, margin, .. } = *options;
        let (marks, derived) = (Vec::new(), Vec::new());
        Ok(Accumulator { reader: self, only_currents, currents: list, powers, margin, group, marks, derived })
    }

    /// Returns the power of each current and the voltage with the same number, such as `V1` for `I1`.
    /// If the log has exactly one voltage and one current, they are a pair whatever their numbers.
    fn paired_powers(&self, list: &[Current]) -> Vec<PowerTerm> {
        let volts = || self.channels().iter().filter(|channel| channel.unit == crate::unit::Unit::Volt);
        let only = volts().next().filter(|_| list.len() == 1 && volts().count() == 1);
        let power = |current: &Current| {
            let volt = current.voltage.map(|at| &self.channels()[at]).or(only)?;
            self.power(&format!("{}*{}", volt.name, current.name), list).ok()
        };
        list.iter().filter_map(power).collect()
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
        Stats::empty(self.group.analog.len(), self.group.binary, self.currents.len(), self.powers.len())
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
        let count = (bytes.len() / table.layout.row) as u64;
        stats.rows += count;
        self.group.load(table, bytes, &mut stats.ones);
        if !self.only_currents {
            self.group.add_channels(stats);
        }
        for number in 0..self.currents.len() {
            self.current(number, first..first + count, stats);
        }
    }

    /// Adds the sums of a merged current and of its powers to `stats`. Consecutive rows that use
    /// the same range of the current are summed together.
    fn current(&mut self, number: usize, rows: Range<u64>, stats: &mut Stats) {
        let (current, group) = (&self.currents[number], &self.group);
        let count = usize::try_from(rows.end - rows.start).unwrap_or_default();
        let counts = match (current.low, current.valid) {
            (None, _) => LowSamples::None,
            (Some(low), _) if current.derived => {
                let low = group.column(low);
                let high = current.high.map(|high| group.column(high));
                let derives = |i| current.derives(low.at(i), high.map(|high| high.at(i)));
                self.derived.clear();
                self.derived.extend((0..count).map(|i| u32::from(derives(i))));
                mark_usable(self.reader, current, self.margin, rows, &self.derived, 1, &mut self.marks)
            }
            (Some(_), None) => LowSamples::All,
            (Some(_), Some(bit)) => {
                let (words, mask) = (&group.words[bit / 32], 1u32 << (bit % 32));
                mark_usable(self.reader, current, self.margin, rows, words, mask, &mut self.marks)
            }
        };
        let source = |from_low: bool| {
            if from_low {
                current.low.map(|low| (low, 1))
            } else {
                current.high.map(|high| (high, current.factor))
            }
        };
        let mut segment = |rows: Range<usize>, from_low: bool| {
            // If the current has no channel for this range, these rows have no value.
            let Some((channel, factor)) = source(from_low) else { return };
            if from_low {
                stats.from_low[number] += (rows.end - rows.start) as u64;
            }
            stats.currents[number].merge(&group.sums(channel, &rows, count).times(factor));
            for (i, power) in self.powers.iter().enumerate().filter(|(_, power)| power.current == number) {
                let (volts, minus) = (group.column(power.plus), power.minus.map(|minus| group.column(minus)));
                product(volts, minus, group.column(channel), &rows, factor, &mut stats.powers[i]);
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
