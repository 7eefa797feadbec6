//! Functions for RLD logs, which Python calls in `log.rld`. They compute charge and energy, and
//! merge the two ranges of a current.

use std::collections::BTreeMap;
use std::ops::Range;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rovelog::core::internal::parallel::Jobs;
use rovelog::rld_format::analysis::{
    Accumulator, Phase, StateRun, StateRuns, Stats, StatsOptions, Sums, Windows, currents,
};
use rovelog::rld_format::unit::Scale;
use rovelog::rld_format::{ColumnOptions, Merging, RldReader};
use rovelog::{AnyLog, Error, Select};

use crate::errors::{ExceptionBuilder, from_arrow};
use crate::reader::{Reader, Window};
use crate::table::{self, Table};

/// Returns the RLD reader of a log, or an exception if the log has another format.
pub(crate) fn rld<'a>(py: Python<'_>, reader: &'a Reader) -> PyResult<&'a RldReader> {
    reader.format_reader(py, "RLD log", |log| if let AnyLog::Rld(log) = log { Some(log) } else { None })
}

/// Returns the currents of a log.
///
/// Each row consists of the name of the current, its channels for the low and the high range, and
/// the voltage channel with the same number.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "a row of a table")]
pub(crate) fn rld_currents(
    py: Python<'_>,
    reader: &Reader,
) -> PyResult<Vec<(String, Option<String>, Option<String>, Option<String>)>> {
    let channels = rld(py, reader)?.channels();
    let name = |index: Option<usize>| Some(channels.get(index?)?.name.to_string());
    let rows = currents(channels).into_iter();
    Ok(rows
        .map(|found| (found.name.clone(), name(found.low), name(found.high), name(found.voltage)))
        .collect())
}

/// A set of rows and the sums over these rows. The rows are the whole log, a time window, all rows
/// with a state of the binary channels, or the rows with a state within a time window.
struct Section {
    /// Number of the time window.
    window: Option<u64>,
    /// State of the binary channels. Bit 0 is the value of the first channel of `by`, bit 1 of the
    /// second channel, and so on.
    state: Option<u64>,
    /// First row of the section or of its time window. `None` for a state without time windows,
    /// because its rows are spread over the log.
    first: Option<u64>,
    stats: Stats,
}

/// A row of the result of [`rld_energy`].
///
/// The columns are the number of the time window, the state of the binary channels, the time of the
/// first row, the number of rows, and the duration in nanoseconds. The last three columns are
/// dicts. The first dict contains the charge of each current, the second the energy of each power.
/// The third dict contains, for each current or power, the number of rows that have no valid value
/// for it.
type EnergyRow<'py> = (
    Option<u64>,
    Option<Bound<'py, PyDict>>,
    Option<i64>,
    u64,
    i128,
    Bound<'py, PyDict>,
    Bound<'py, PyDict>,
    Bound<'py, PyDict>,
);

/// Computes charge and energy.
///
/// - `window`: length of the time windows in nanoseconds; `None` for no time windows
/// - `clock`: true if time windows start at multiples of their length on the Unix clock
/// - `by`: binary channels for whose states separate sums are computed
/// - `powers`: products such as `V1*I1`; `None` derives them from the channels
/// - `settle`: number of rows next to a range switch in which low-range samples are ignored
/// - `derive`: true if the valid range is derived from the values
/// - `range`: time range of the rows to include
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "each argument is an independent option")]
pub(crate) fn rld_energy<'py>(
    py: Python<'py>,
    reader: &Reader,
    window: Option<i64>,
    clock: bool,
    by: Vec<String>,
    powers: Option<Vec<String>>,
    settle: u64,
    derive: bool,
    range: Window,
) -> PyResult<Vec<EnergyRow<'py>>> {
    let log = rld(py, reader)?;
    let failed = |error| reader.raise(py, &error);
    let mut options = StatsOptions::default().with_margin(settle).only_currents();
    if derive {
        options = options.deriving_ranges();
    }
    if let Some(powers) = powers {
        options = options.with_powers(powers);
    }
    let mut sums = log.accumulator(&options).map_err(Error::from).map_err(failed)?;
    if sums.powers().is_empty() {
        return Err(no_power_error(py, reader, &sums));
    }
    let bits = by.iter().map(|name| log.channel(name)).collect::<std::result::Result<Vec<_>, _>>();
    let bits = bits.map_err(Error::from).map_err(failed)?;
    if let Some(analog) = bits.iter().find(|bit| !log.channels()[**bit].is_binary) {
        let what = format!("{} is not a binary channel", log.channels()[*analog].name);
        let raise = ExceptionBuilder::new("RovelogError", what).in_format("rld", reader.origin.path());
        return Err(raise
            .next("use binary channels in by=; they have the type bool in log[\"samples\"].fields")
            .raise(py));
    }
    let phase = if clock { Phase::Clock } else { Phase::Start };
    let window = window.map(|nanos| (nanos, phase));
    let selected = log.rows_selected(&range.limit(Select::all()));
    let sections = reader.run(py, || Ok(sections_of(log, &mut sums, window, &bits, &selected)))?;
    py.check_signals()?;
    let times = log.record_times();
    let rate = log.header().lead_in.sample_rate.get();
    let rows = sections.into_iter().map(|section| {
        let Section { window, state, first, stats } = section;
        let bits = |state: u64| {
            let bits = PyDict::new(py);
            for (bit, name) in by.iter().enumerate() {
                bits.set_item(name, state >> bit & 1)?;
            }
            PyResult::Ok(bits)
        };
        let integral = |sums: &Sums, scale: i32| {
            Scale::new(scale).filter(|_| sums.count > 0).map(|scale| sums.integral(scale, rate))
        };
        let (charge, energy, missing) = (PyDict::new(py), PyDict::new(py), PyDict::new(py));
        for (current, found) in sums.currents().iter().zip(&stats.currents) {
            charge.set_item(&current.name, integral(found, current.scale))?;
            missing.set_item(&current.name, stats.rows - found.count)?;
        }
        for (power, found) in sums.powers().iter().zip(&stats.powers) {
            energy.set_item(&power.name, integral(found, power.scale))?;
            missing.set_item(&power.name, stats.rows - found.count)?;
        }
        let (state, start) = (state.map(bits).transpose()?, first.and_then(|row| times.time(row)));
        Ok((window, state, start, stats.rows, stats.duration(rate), charge, energy, missing))
    });
    rows.collect()
}

/// Returns the exception for a log in which no voltage belongs to a current.
fn no_power_error(py: Python<'_>, reader: &Reader, sums: &Accumulator<'_>) -> PyErr {
    let raise = match sums.currents().first() {
        Some(first) => {
            ExceptionBuilder::new("RovelogError", "it is unknown which voltage belongs to which current")
                .next(format!("name the pairs, such as power=\"V1*{}\"", first.name))
        }
        None => ExceptionBuilder::new("UnsupportedError", "the log has no current in amperes"),
    };
    raise.in_format("rld", reader.origin.path()).raise(py)
}

/// Returns the sections of the selected rows. There is one section for each time window, for each
/// state of `bits`, or for each state within each time window.
fn sections_of(
    log: &RldReader,
    sums: &mut Accumulator<'_>,
    window: Option<(i64, Phase)>,
    bits: &[usize],
    selected: &[Range<u64>],
) -> Vec<Section> {
    let rows = log.rows();
    if window.is_none() && bits.is_empty() {
        let mut stats = Stats::default();
        for range in selected {
            stats.merge(&sums.stats_on(Jobs::all(), range.clone()));
        }
        let first = selected.first().map(|range| range.start);
        return vec![Section { window: None, state: None, first, stats }];
    }
    let rate = log.header().lead_in.sample_rate.get();
    let windows = window.map(|(nanos, phase)| Windows::new(nanos, phase, log.record_times(), (rows, rate)));
    let windows = windows.map(|windows| windows.map(|window| (window.number, window.rows)).collect());
    let runs: Vec<StateRun> = match bits {
        [] => vec![StateRun { state: 0, rows: 0..rows }],
        bits => StateRuns::new(log, bits).collect(),
    };
    let is_windowed = windows.is_some();
    let windows: Vec<_> = windows.unwrap_or_else(|| vec![(0, 0..rows)]);
    let mut sections = states_in_windows(sums, &windows, &selected_runs(runs, selected));
    for section in &mut sections {
        if !is_windowed {
            (section.window, section.first) = (None, None);
        }
        section.state = section.state.filter(|_| !bits.is_empty());
    }
    sections
}

/// Returns the parts of the periods that are in the selected rows.
fn selected_runs(runs: Vec<StateRun>, selected: &[Range<u64>]) -> Vec<StateRun> {
    // There are few selected ranges, so each period is compared with all of them.
    let parts = runs.into_iter().flat_map(|run| {
        selected.iter().map(move |range| {
            let rows = run.rows.start.max(range.start)..run.rows.end.min(range.end);
            StateRun { state: run.state, rows }
        })
    });
    parts.filter(|run| !run.rows.is_empty()).collect()
}

/// Cuts periods with a constant state at the ends of time windows. Then merges the sums of each
/// state within each window.
///
/// `windows` and `runs` are in ascending order. For example, the windows have 10 rows, and a period
/// with state 1 covers the rows `0..15`. Then the rows `0..10` are added to state 1 in window 0,
/// and the rows `10..15` are added to state 1 in window 1.
fn states_in_windows(
    sums: &mut Accumulator<'_>,
    windows: &[(u64, Range<u64>)],
    runs: &[StateRun],
) -> Vec<Section> {
    let mut windows = windows.iter().peekable();
    let mut totals: BTreeMap<(u64, u64), (u64, Stats)> = BTreeMap::new();
    for StateRun { state, rows } in runs {
        let mut from = rows.start;
        while from < rows.end {
            // Skips all windows that end before the remaining rows of the period.
            while windows.next_if(|(_, window)| window.end <= from).is_some() {}
            let Some((number, window)) = windows.peek() else { break };
            let end = rows.end.min(window.end);
            let (_, stats) =
                totals.entry((*number, *state)).or_insert_with(|| (window.start, Stats::default()));
            stats.merge(&sums.stats(from..end));
            from = end;
        }
    }
    let section = |((window, state), (first, stats))| Section {
        window: Some(window),
        state: Some(state),
        first: Some(first),
        stats,
    };
    totals.into_iter().map(section).collect()
}

/// Returns the currents in amperes, with both ranges merged, and the range from which each value
/// comes.
#[pyfunction]
pub(crate) fn rld_merged(
    py: Python<'_>,
    reader: &Reader,
    settle: u64,
    derive: bool,
    window: Window,
) -> PyResult<Table> {
    let log = rld(py, reader)?;
    let mut merging = Merging::instant();
    merging.margin = settle.min(10_000);
    if derive {
        merging = merging.deriving();
    }
    let names = currents(log.channels()).into_iter().map(|current| current.name);
    let select = window.limit(Select::all()).with_fields(names);
    let options = ColumnOptions::physical().with_merged(merging);
    let batch = reader.run(py, || {
        let batch = table::concat("rld", log.columns_with(&select, &options)?)?;
        reader.projection(None, None).apply(&batch).map_err(from_arrow("rld"))
    })?;
    py.check_signals()?;
    Ok(Table { batch })
}
