//! RLD only: charge and energy, currents of two ranges combined; `log.rld`.

use std::collections::BTreeMap;
use std::ops::Range;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rovelog::core::parallel::Jobs;
use rovelog::rld_format::analysis::{
    Accumulator, Phase, StateRuns, Stats, StatsOptions, Sums, Windows, currents,
};
use rovelog::rld_format::unit::Scale;
use rovelog::rld_format::{ColumnOptions, Merging, RldReader};
use rovelog::{AnyLog, Error, Select};

use crate::errors::{Raise, of_arrow};
use crate::reader::{Reader, Window};
use crate::table::{self, Table};

pub(crate) fn rld<'a>(py: Python<'_>, reader: &'a Reader) -> PyResult<&'a RldReader> {
    reader.only(py, "RLD log", |log| if let AnyLog::Rld(log) = log { Some(log) } else { None })
}

/// Returns the currents of a log: name, channels of the low and the high range, and the voltage
/// with the same number.
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

/// Some rows and their sums.
struct Section {
    window: Option<u64>,
    state: Option<u64>,
    /// The first row, if the rows are contiguous.
    first: Option<u64>,
    stats: Stats,
}

/// Number of the window, state of the binary channels, first time, rows, nanoseconds; and by name:
/// charge of the currents, energy of the powers, rows without a valid value.
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

/// Returns charge and energy of the whole log, of windows of this many nanoseconds, of the states
/// of binary channels, or of states within windows; only rows within `range` count.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "each is an option of its own")]
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
        return Err(no_power(py, reader, &sums));
    }
    let bits = by.iter().map(|name| log.channel(name)).collect::<std::result::Result<Vec<_>, _>>();
    let bits = bits.map_err(Error::from).map_err(failed)?;
    if let Some(analog) = bits.iter().find(|bit| !log.channels()[**bit].is_binary) {
        let what = format!("{} is not a binary channel", log.channels()[*analog].name);
        let raise = Raise::new("RovelogError", what).of("rld", reader.origin.path());
        return Err(raise.next("by= takes binary channels, bool in log[\"samples\"].fields").raise(py));
    }
    let phase = if clock { Phase::Clock } else { Phase::Start };
    let window = window.map(|nanos| (nanos, phase));
    let selected = log.rows_selected(&range.of(Select::all()));
    let sections = reader.run(py, || match (window, &selected[..]) {
        (None, [rows]) if bits.is_empty() => {
            let stats = sums.stats_on(Jobs::all(), rows.clone());
            Ok(vec![Section { window: None, state: None, first: Some(rows.start), stats }])
        }
        _ => Ok(sections(log, &mut sums, window, &bits, &selected)),
    })?;
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

fn no_power(py: Python<'_>, reader: &Reader, sums: &Accumulator<'_>) -> PyErr {
    let raise = match sums.currents().first() {
        Some(first) => Raise::new("RovelogError", "the voltage of each current is unknown")
            .next(format!("name the pairs: power=\"V1*{}\"", first.name)),
        None => Raise::new("UnsupportedError", "this log has no current in amperes"),
    };
    raise.of("rld", reader.origin.path()).raise(py)
}

/// Returns the sums of the selected rows.
fn sections<'a>(
    log: &'a RldReader,
    sums: &mut Accumulator<'a>,
    window: Option<(i64, Phase)>,
    bits: &[usize],
    selected: &[Range<u64>],
) -> Vec<Section> {
    let rows = log.rows();
    let whole = matches!(selected, [all] if *all == (0..rows));
    let Some((nanos, phase)) = window else {
        if bits.is_empty() {
            let mut stats = Stats::default();
            for range in selected {
                stats.merge(&sums.stats(range.clone()));
            }
            let first = selected.first().map(|range| range.start);
            return vec![Section { window: None, state: None, first, stats }];
        }
        let mut totals: BTreeMap<u64, Stats> = BTreeMap::new();
        if whole {
            for run in StateRuns::new(log, sums, bits) {
                totals.entry(run.state).or_default().merge(&run.stats);
            }
        } else {
            for (state, rows) in selected_runs(log, sums, bits, selected) {
                totals.entry(state).or_default().merge(&sums.stats(rows));
            }
        }
        let section = |(state, stats)| Section { window: None, state: Some(state), first: None, stats };
        return totals.into_iter().map(section).collect();
    };
    let rate = log.header().lead_in.sample_rate.get();
    let windows = Windows::new(sums, nanos, phase, log.record_times(), (rows, rate));
    if bits.is_empty() && whole {
        let section = |window: rovelog::rld_format::analysis::Window| Section {
            window: Some(window.number),
            state: None,
            first: Some(window.rows.start).filter(|_| !window.rows.is_empty()),
            stats: window.stats,
        };
        return windows.map(section).collect();
    }
    let windows: Vec<(u64, Range<u64>)> = windows.map(|window| (window.number, window.rows)).collect();
    if bits.is_empty() {
        let runs = selected.iter().map(|rows| (0, rows.clone())).collect();
        let found = states_in_windows(sums, &windows, runs).into_iter();
        return found.map(|section| Section { state: None, ..section }).collect();
    }
    let runs = selected_runs(log, sums, bits, selected);
    states_in_windows(sums, &windows, runs)
}

/// Returns the states of binary channels with their rows, as far as these are selected.
fn selected_runs<'a>(
    log: &'a RldReader,
    sums: &mut Accumulator<'a>,
    bits: &[usize],
    selected: &[Range<u64>],
) -> Vec<(u64, Range<u64>)> {
    let mut runs = Vec::new();
    for run in StateRuns::new(log, sums, bits) {
        // Both ascend; a log has few ranges.
        for range in selected {
            let rows = run.rows.start.max(range.start)..run.rows.end.min(range.end);
            if !rows.is_empty() {
                runs.push((run.state, rows));
            }
        }
    }
    runs
}

/// Returns the runs of states, cut at the ends of windows, grouped by window and state.
fn states_in_windows(
    sums: &mut Accumulator<'_>,
    windows: &[(u64, Range<u64>)],
    runs: Vec<(u64, Range<u64>)>,
) -> Vec<Section> {
    let mut windows = windows.iter().peekable();
    let mut totals: BTreeMap<(u64, u64), (u64, Stats)> = BTreeMap::new();
    for (state, rows) in runs {
        let mut from = rows.start;
        while from < rows.end {
            while windows.next_if(|(_, window)| window.end <= from).is_some() {}
            let Some((number, window)) = windows.peek() else { break };
            let end = rows.end.min(window.end);
            let (_, stats) =
                totals.entry((*number, state)).or_insert_with(|| (window.start, Stats::default()));
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

/// Returns merged currents in amperes, and the range of each value.
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
    let select = window.of(Select::all()).with_fields(names);
    let options = ColumnOptions::physical().with_merged(merging);
    let batch = reader.run(py, || {
        let batch = table::joined("rld", log.columns_with(&select, &options)?)?;
        reader.shape(None, None).apply(&batch).map_err(of_arrow("rld"))
    })?;
    py.check_signals()?;
    Ok(Table { batch })
}
