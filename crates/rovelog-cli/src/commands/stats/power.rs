//! Statistics of RocketLogger logs. All sums are exact. If a current was measured in two ranges,
//! the values of both ranges are merged. Charge and energy are computed on request.
//!
//! The rows are divided into sections by time window, by the state of binary channels, or by a
//! threshold. Then each section is restricted to the time window given by `-S` and `-E`. For
//! example, a section has the rows 0 to 150, and the time window has the rows 100 to 250. The
//! statistics of the section are then computed for the rows 100 to 150.

use std::collections::BTreeMap;
use std::ops::Range;

use rovelog::core::internal::parallel::Jobs;
use rovelog::rld_format::RldReader;
use rovelog::rld_format::analysis::{
    Accumulator, Current, Events, Phase, StateRuns, Stats, StatsOptions, Sums, Threshold, Windows,
};
use rovelog::rld_format::clock::TimeMap;
use rovelog::rld_format::unit::Scale;
use rovelog_export::statistics::Number;

use super::section::{Line, Section, Sections};
use crate::context::Context;
use crate::failure::Failure;
use crate::machine::Count;
use crate::time_point::nonzero_duration;
use crate::times::Times;
use crate::window::Window;

/// Method to detect in which rows the low-range value of a current is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Ranges {
    /// Detect the valid range by the range bits in the log.
    Bits,
    /// Detect the valid range by the values that both ranges measured.
    Values,
}

/// Options for power logs.
#[derive(clap::Args)]
pub(super) struct PowerArgs {
    /// Power logs: show the charge of each current and the energy of each power. By default, each
    /// current is multiplied by the voltage with the same number
    #[arg(long)]
    energy: bool,
    /// Power logs: compute power and energy from this voltage and current, such as V1*I1 or
    /// (V2-V3)*I2; repeatable
    #[arg(long, value_name = "V*I")]
    power: Vec<String>,
    /// Power logs: ignore low-range samples within this many rows before and after a switch of the
    /// current range; default 5; 0 ignores none
    #[arg(long, value_name = "ROWS", default_value_t = 5, hide_default_value = true)]
    settle: u64,
    /// Power logs: select the current range by the logged range bits (bits, default) or by the
    /// measured values (values). Use values if rovelog check reports unreliable range bits
    #[arg(long, value_enum, value_name = "BY", default_value_t = Ranges::Bits)]
    #[arg(hide_default_value = true, hide_possible_values = true)]
    ranges: Ranges,
    /// Power logs: show separate results for each time window of this length, such as 1s, 500ms or
    /// 1m; the first window starts at the first row
    #[arg(long, value_name = "SPAN", value_parser = nonzero_duration, conflicts_with_all = ["by", "above"])]
    window: Option<i64>,
    /// With --window: start windows at round clock times, such as full minutes for 1m, instead of
    /// at the first row
    #[arg(long, requires = "window")]
    clock: bool,
    /// Power logs: show separate results for each combination of states of these binary channels,
    /// such as DI1,DI2
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "above")]
    by: Vec<String>,
    /// With --by: show separate results for each period in which a state lasts, instead of one sum
    /// per state
    #[arg(long, requires = "by")]
    runs: bool,
    /// Power logs: show separate results for each period that starts when NAME reaches ENTER and
    /// ends when it falls below LEAVE, such as I1=0.005,0.004
    #[arg(long, value_name = "NAME=ENTER[,LEAVE]")]
    above: Option<String>,
}

impl PowerArgs {
    /// Returns true if an option for power logs was given.
    pub(super) fn is_asked(&self) -> bool {
        self.energy
            || !self.power.is_empty()
            || self.window.is_some()
            || !self.by.is_empty()
            || self.above.is_some()
    }

    /// Describes the sections that the user requested, for the message that they contain no row.
    pub(super) fn missing_rows(&self) -> String {
        match &self.above {
            Some(above) => format!("no value reaches --above {above}"),
            None => "the log has no values in these sections".to_owned(),
        }
    }
}

/// Computes the sections of a log one at a time, because there may be as many sections as rows.
pub(super) struct Power<'a> {
    log: &'a RldReader,
    sums: Accumulator<'a>,
    builder: LineBuilder,
    clip: Clip,
    jobs: Jobs,
}

/// The rows within the time window given by `-S` and `-E`. `None` if the user gave no time window.
struct Clip(Option<Vec<Range<u64>>>);

impl Clip {
    /// Returns the ranges of `rows` that are within the time window.
    fn parts(&self, rows: &Range<u64>) -> Vec<Range<u64>> {
        let Some(within) = &self.0 else { return vec![rows.clone()] };
        let parts = within.iter().map(|window| rows.start.max(window.start)..rows.end.min(window.end));
        parts.filter(|part| !part.is_empty()).collect()
    }

    /// Restricts a section to the time window, and computes its statistics. Returns `None` if the
    /// whole section is outside of the time window.
    fn part(&self, sums: &mut Accumulator<'_>, rows: &Range<u64>) -> Option<(Range<u64>, Stats)> {
        let parts = self.parts(rows);
        let (first, last) = (parts.first()?.start, parts.last()?.end);
        let mut stats = sums.empty();
        for part in parts {
            stats.merge(&sums.stats(part));
        }
        Some((first..last, stats))
    }
}

impl<'a> Power<'a> {
    pub(super) fn new(
        log: &'a RldReader,
        args: &PowerArgs,
        window: Window,
        times: Times,
        context: &Context,
    ) -> Result<Self, Failure> {
        let mut options = StatsOptions::default().with_margin(args.settle);
        if args.ranges == Ranges::Values {
            options = options.deriving_ranges();
        }
        if !args.power.is_empty() {
            options = options.with_powers(args.power.clone());
        }
        let sums = log.accumulator(&options)?;
        let builder = LineBuilder::new(log, &sums, args, times, context);
        let clip = match window {
            Window { start: None, end: None } => Clip(None),
            Window { start, end } => Clip(Some(builder.rows.rows_between(start, end))),
        };
        Ok(Self { log, sums, builder, clip, jobs: context.jobs() })
    }

    /// Returns the sections that the options request.
    pub(super) fn sections<'p>(&'p mut self, args: &'p PowerArgs) -> Result<Sections<'p>, Failure> {
        let Self { log, sums, builder, clip, jobs } = self;
        let (log, builder, clip) = (*log, &*builder, &*clip);
        let rows = log.rows();
        if let Some(nanos) = args.window {
            let phase = if args.clock { Phase::Clock } else { Phase::Start };
            let rate = log.header().lead_in.sample_rate.get();
            let windows = Windows::new(nanos, phase, &builder.rows, (rows, rate));
            return Ok(Box::new(windows.filter_map(|window| {
                let (rows, stats) = clip.part(sums, &window.rows)?;
                Some(builder.section(Some(format!("window {}", window.number)), &rows, &stats))
            })));
        }
        if !args.by.is_empty() {
            return by_state(log, sums, args, builder, clip);
        }
        if let Some(above) = &args.above {
            let named = events(log, sums.currents(), above, args.settle)?.enumerate();
            return Ok(Box::new(named.filter_map(|(i, rows)| {
                let (rows, stats) = clip.part(sums, &rows)?;
                Some(builder.section(Some(format!("event {i}")), &rows, &stats))
            })));
        }
        let parts = clip.parts(&(0..rows));
        let whole = parts.first().zip(parts.last()).map(|(first, last)| first.start..last.end);
        let mut stats = sums.empty();
        for part in parts {
            stats.merge(&sums.stats_on(*jobs, part));
        }
        Ok(Box::new(whole.map(|rows| builder.section(None, &rows, &stats)).into_iter()))
    }
}

/// Returns one section for each state of the binary channels. With `--runs`, returns one section
/// for each period during which a state lasts.
fn by_state<'p, 'a: 'p>(
    log: &'a RldReader,
    sums: &'p mut Accumulator<'a>,
    args: &'p PowerArgs,
    builder: &'p LineBuilder,
    clip: &'p Clip,
) -> Result<Sections<'p>, Failure> {
    let bits = args.by.iter().map(|name| log.channel(name)).collect::<Result<Vec<_>, _>>()?;
    if let Some(analog) = bits.iter().find(|bit| !log.channels()[**bit].is_binary) {
        let name = &log.channels()[*analog].name;
        return Err(Failure::usage(format!(
            "{name} cannot be used with --by, because it is not a binary channel"
        ))
        .next("list the channels and their types: rovelog schema FILE"));
    }
    let name = move |state: u64| {
        // Bit `i` of the state is the value of the channel with index `i`.
        let bits = args.by.iter().enumerate().map(|(i, name)| format!("{name}={}", state >> i & 1));
        bits.collect::<Vec<_>>().join(" ")
    };
    let runs = StateRuns::new(log, &bits).filter_map(|run| {
        let (rows, stats) = clip.part(sums, &run.rows)?;
        Some((run.state, rows, stats))
    });
    if args.runs {
        return Ok(Box::new(
            runs.map(move |(state, rows, stats)| builder.section(Some(name(state)), &rows, &stats)),
        ));
    }
    let mut totals: BTreeMap<u64, Stats> = BTreeMap::new();
    for (state, _, stats) in runs {
        totals.entry(state).or_default().merge(&stats);
    }
    // The rows of a state are scattered over the log, so the section has no start time.
    let states = totals.into_iter();
    Ok(Box::new(states.map(move |(state, stats)| builder.section(Some(name(state)), &(0..0), &stats))))
}

/// Returns a section for each period in which a value is above a threshold such as
/// `I1=0.005,0.004`.
fn events<'a>(
    log: &'a RldReader,
    currents: &[Current],
    above: &str,
    margin: u64,
) -> Result<Events<'a>, Failure> {
    let usage = || {
        Failure::usage(format!(
            "{above:?} does not have the form NAME=ENTER[,LEAVE], where ENTER and LEAVE are numbers"
        ))
        .next("write, for example, --above I1=0.005,0.004")
    };
    let (name, values) = above.split_once('=').ok_or_else(usage)?;
    let (enter, leave) = values.split_once(',').unwrap_or((values, values));
    let number = |text: &str| text.parse().ok().filter(|value: &f64| value.is_finite()).ok_or_else(usage);
    let (enter, leave) = (number(enter)?, number(leave)?);
    let current = currents.iter().find(|current| current.name == name);
    let scale = match current {
        Some(current) => current.scale,
        None => log.channels()[log.channel(name)?].scale,
    };
    // The threshold is converted to raw integers, so that the loop over the rows needs no
    // conversion.
    let threshold = Threshold::new(raw_of(enter, scale), raw_of(leave, scale));
    Ok(match current {
        Some(current) => Events::of_current(log, current, margin, threshold),
        None => Events::of_channel(log, log.channel(name)?, threshold),
    })
}

/// Returns the smallest raw value whose physical value is at least `value`. A physical value is its
/// raw value times 10^`exponent`.
#[expect(clippy::cast_possible_truncation, reason = "a threshold outside the range of values never matches")]
fn raw_of(value: f64, exponent: i32) -> i64 {
    let near = (value * 10f64.powi(-exponent)).round() as i64;
    // The product may be rounded up or down. So the adjacent raw values are also tried, with the
    // same conversion that is used for output.
    let Some(scale) = Scale::new(exponent) else { return near };
    let reaches = |raw: &i64| scale.apply(*raw) >= value;
    (-1..=1).map(|step| near.saturating_add(step)).find(reaches).unwrap_or(near)
}

/// An analog channel.
struct ChannelLine {
    name: String,
    unit: String,
    scale: Option<Scale>,
    /// True if the channel is one of the two ranges of a current.
    is_range: bool,
}

/// A current or power that is computed from analog channels.
struct ComputedLine {
    name: String,
    scale: Option<Scale>,
}

/// Creates the output lines of a section from its sums.
struct LineBuilder {
    topic: String,
    rate: u16,
    energy: bool,
    /// The analog channels.
    channels: Vec<ChannelLine>,
    /// Names of the binary channels.
    bits: Vec<String>,
    currents: Vec<ComputedLine>,
    powers: Vec<ComputedLine>,
    /// Times of the rows in the log.
    rows: TimeMap,
    times: Times,
}

impl LineBuilder {
    fn new(
        log: &RldReader,
        sums: &Accumulator<'_>,
        args: &PowerArgs,
        times: Times,
        context: &Context,
    ) -> Self {
        let binary = log.channels().iter().filter(|channel| channel.is_binary).count();
        let (bits, analog) = log.channels().split_at(binary);
        if args.energy && sums.powers().is_empty() {
            let names: Vec<_> = sums.currents().iter().map(|current| current.name.as_str()).collect();
            let what = match names.first() {
                Some(first) => {
                    format!(
                        "energy cannot be computed, because it is unknown which voltage belongs to which \
                         current; name the pairs, such as --power 'V1*{first}'"
                    )
                }
                None => "energy cannot be computed, because the log has no current in amperes".to_owned(),
            };
            context.notices.warn("no energy", &what);
        }
        // A current without ranges is its own merged current, with the same name.
        let is_range = |at: usize, name: &str| {
            let is_part = |current: &Current| current.low == Some(at) || current.high == Some(at);
            sums.currents().iter().any(|current| is_part(current) && current.name != name)
        };
        let channels = analog.iter().zip(binary..).map(|(channel, at)| ChannelLine {
            name: channel.name.to_string(),
            unit: channel.unit_text(),
            scale: channel.physical(),
            is_range: is_range(at, &channel.name),
        });
        let computed =
            |name: &str, exponent| ComputedLine { name: name.to_owned(), scale: Scale::new(exponent) };
        Self {
            topic: log.rows_topic().name.clone(),
            rate: log.header().lead_in.sample_rate.get(),
            energy: args.energy,
            channels: channels.collect(),
            bits: bits.iter().map(|channel| channel.name.to_string()).collect(),
            currents: sums.currents().iter().map(|current| computed(&current.name, current.scale)).collect(),
            powers: sums.powers().iter().map(|power| computed(&power.name, power.scale)).collect(),
            rows: log.record_times().clone(),
            times,
        }
    }

    fn section(&self, name: Option<String>, rows: &Range<u64>, stats: &Stats) -> Section {
        let mut fields = Vec::new();
        for (power, sums) in self.powers.iter().zip(&stats.powers) {
            let line = self.line(&power.name, "W", power.scale, sums, Some("J"));
            fields.push(Line { std: None, ..line });
        }
        for ((current, sums), low) in self.currents.iter().zip(&stats.currents).zip(&stats.from_low) {
            let line = self.line(&current.name, "A", current.scale, sums, Some("C"));
            let mut remark = format!("low range {low}/{}", sums.count);
            let missing = stats.rows - sums.count;
            if missing > 0 {
                remark = format!("{remark}, {missing} missing");
            }
            fields.push(Line { remark: Some(remark), ..line });
        }
        for (channel, sums) in self.channels.iter().zip(&stats.channels) {
            let line = self.line(&channel.name, &channel.unit, channel.scale, sums, None);
            fields.push(Line { is_range: channel.is_range, ..line });
        }
        for (name, ones) in self.bits.iter().zip(&stats.ones) {
            let mean = (stats.rows > 0).then(|| *ones as f64 / stats.rows as f64);
            let line = Line { mean, ..self.line(name, "", None, &Sums::default(), None) };
            let remark = mean.map(|mean| format!("high {} %", hundredths(mean * 100.0)));
            fields.push(Line { count: Count(stats.rows), remark, ..line });
        }
        let start = self.rows.timestamp(rows.start).filter(|_| !rows.is_empty());
        let start = start.and_then(|time| self.times.short(time));
        let last = rows.end.checked_sub(1).and_then(|last| self.rows.time(last)).filter(|_| !rows.is_empty());
        let span = self.rows.time(rows.start).zip(last).and_then(|(first, last)| last.checked_sub(first));
        Section {
            name,
            start,
            rows: Some(Count(stats.rows)),
            duration_ns: Some(stats.duration(self.rate).to_string()),
            span_ns: span.map(|nanos| nanos.to_string()),
            fields,
        }
    }

    fn line(
        &self,
        name: &str,
        unit: &str,
        scale: Option<Scale>,
        sums: &Sums,
        integral: Option<&'static str>,
    ) -> Line {
        // Without a valid scale, raw values cannot be converted to physical values. Then the line
        // contains only the number of values.
        let of = |value: fn(&Sums, Scale) -> Option<f64>| scale.and_then(|scale| value(sums, scale));
        let integral = integral.filter(|_| self.energy && sums.count > 0).zip(scale);
        Line {
            topic: self.topic.clone(),
            field: name.to_owned(),
            unit: (!unit.is_empty()).then(|| unit.to_owned()),
            count: Count(sums.count),
            min: of(Sums::min).map(Number::Float),
            max: of(Sums::max).map(Number::Float),
            mean: of(Sums::mean),
            std: of(Sums::std),
            integral: integral.map(|(_, scale)| sums.integral(scale, self.rate)),
            integral_unit: integral.map(|(unit, _)| unit),
            ..Line::default()
        }
    }
}

/// Formats a number with at most two decimal places.
fn hundredths(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
