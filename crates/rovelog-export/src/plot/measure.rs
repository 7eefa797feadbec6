//! Measures of signals in a time range: statistics, integral, and the values at both ends.
//!
//! The measures are computed from all rows in the range, not from the reduced points of a plot.
//!
//! For example, a current is 1 A at 0 s, 2 A at 1 s, and 3 A at 3 s. The integral uses the mean of
//! each pair of consecutive values: 1.5 A for 1 s and 2.5 A for 2 s. The result is 6.5 C.

use rovelog::{LogReader, Select};

use super::axis::with_prefix;
use super::series::{SignalInfo, Sink, collect, is_direct};
use crate::ExportError;
use crate::signal::{self, Signal, Stream};
use crate::statistics::{Number, Statistics};

/// Measures of a signal in a time range.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Measures {
    /// Unit of the values, if known.
    pub unit: Option<String>,
    /// Statistics of the rows in the range.
    pub statistics: Statistics,
    /// Value of the last row at or before the start of the range.
    pub at_start: Option<f64>,
    /// Value of the last row at or before the end of the range.
    pub at_end: Option<f64>,
    /// Start and end of the range in nanoseconds of the log's clock.
    span: (i64, i64),
    /// Integral over the time in seconds, computed by the trapezoidal rule.
    sum: f64,
    /// Time and value of the previous row in the range.
    last: Option<(i64, f64)>,
}

impl Measures {
    /// Formats a value of the signal with its unit, such as `1.2345 mA`.
    pub fn text(&self, value: f64) -> String {
        with_prefix(value, self.unit.as_deref().unwrap_or_default())
    }

    /// Returns the integral over the time, and its text with a unit. The text of a charge has
    /// coulombs and ampere-hours. Returns `None` if the unit of the values is unknown, or if the
    /// unit of the integral has no common name.
    pub fn integral(&self) -> Option<(f64, String)> {
        let (factor, unit) = signal::integral_unit(self.unit.as_deref()?)?;
        let value = self.sum * factor;
        let hours =
            if unit == "C" { format!(" = {}", with_prefix(value / 3600.0, "Ah")) } else { String::new() };
        Some((value, with_prefix(value, &unit) + &hours))
    }
}

impl Sink for Measures {
    fn push(&mut self, time: i64, value: f64) {
        let (start, end) = self.span;
        if time <= start {
            self.at_start = Some(value);
        }
        if time <= end {
            self.at_end = Some(value);
        }
        if time < start || time > end {
            return;
        }
        self.statistics.push(Number::Float(value));
        // A missing value interrupts the integral, because the signal is unknown between the rows
        // before and after it.
        if let Some((before, old)) = self.last.filter(|(_, old)| !old.is_nan() && !value.is_nan()) {
            self.sum += f64::midpoint(value, old) * (time - before) as f64 / 1e9;
        }
        self.last = Some((time, value));
    }
}

/// Measures signals in the time range `span`, which is in nanoseconds of the log's clock and
/// includes both ends. The results are in the order of `signals`. If the log lacks the topic or the
/// field of a signal, its result is `None`.
///
/// # Errors
/// Returns an error if the log cannot be read, or if a topic has no columns.
pub fn measure(
    log: &dyn LogReader,
    signals: &[Signal],
    span: (i64, i64),
) -> Result<Vec<Option<Measures>>, ExportError> {
    let new = || Measures { span, ..Measures::default() };
    // Reading an empty time range returns the units without any rows.
    let units = collect(log, signals, &Select::all().between(Some(0), Some(0)), new)?;
    let with_unit = |(info, measures): (SignalInfo, Measures)| Measures {
        unit: info.series(Vec::new(), 0).unit,
        ..measures
    };
    let mut found: Vec<_> = units.into_iter().map(|found| found.map(with_unit)).collect();
    let mut numbers: Vec<usize> = (0..signals.len()).filter(|i| found[*i].is_some()).collect();
    let kind = |i: &usize| (signals[*i].topics(), is_direct(&signals[*i]));
    numbers.sort_by_key(kind);
    // Signals of the same topics share a pass over the log.
    for group in numbers.chunk_by(|a, b| kind(a) == kind(b)) {
        let of_group: Vec<&Signal> = group.iter().map(|i| &signals[*i]).collect();
        let mut from = search_start(log, of_group[0], span.0);
        loop {
            let mut read: Vec<Measures> = group.iter().filter_map(|i| found[*i].clone()).collect();
            for rows in Stream::new(log, &of_group, &Select::all().between(from, span.1.checked_add(1)))? {
                let (times, columns) = rows?;
                for (measures, values) in read.iter_mut().zip(&columns) {
                    times.iter().zip(values).for_each(|(time, value)| measures.push(*time, *value));
                }
            }
            // If the last row before the range is earlier than expected, the value at the start is
            // unknown. The signals are then read again from the start of the log.
            if from.is_none() || read.iter().all(|measures| measures.at_start.is_some()) {
                group.iter().zip(read).for_each(|(i, measures)| found[*i] = Some(measures));
                break;
            }
            from = None;
        }
    }
    Ok(found)
}

/// Returns the time from which a signal is read so that it can be measured from `start` on. The
/// value at `start` comes from the last row before it, so the result is the time of about ten rows
/// before `start`. Returns `None` if the signal must be read from the start of the log. This is the
/// case if the signal may depend on any earlier row, or if the rate of its topic is unknown.
fn search_start(log: &dyn LogReader, signal: &Signal, start: i64) -> Option<i64> {
    let rate = log.topic(signal.topics().first()?)?.rate_hz().filter(|_| is_direct(signal))?;
    #[expect(clippy::cast_possible_truncation, reason = "saturates")]
    Some(start.saturating_sub((10e9 / rate) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::Signals;

    /// Reads all rows of a signal, and returns the measures of the rows in a time range: the number
    /// of values, the sum of the values, the integral, and the values at both ends of the range.
    fn expected(log: &dyn LogReader, signal: &Signal, (start, end): (i64, i64)) -> (u64, f64, f64, [f64; 2]) {
        let mut rows = Vec::new();
        signal::each(log, signal, &Select::all(), &mut |time, value| rows.push((time, value))).unwrap();
        let last = |limit: i64| rows.iter().rfind(|(time, _)| *time <= limit).map_or(f64::NAN, |row| row.1);
        let ends = [last(start), last(end)];
        rows.retain(|(time, _)| (start..=end).contains(time));
        let values = rows.iter().map(|(_, value)| *value).filter(|value| !value.is_nan());
        let areas =
            rows.windows(2).map(|pair| (pair[1].0 - pair[0].0) as f64 * (pair[0].1 + pair[1].1) / 2e9);
        let sum = |numbers: &mut dyn Iterator<Item = f64>| numbers.filter(|area| !area.is_nan()).sum::<f64>();
        (values.clone().count() as u64, sum(&mut values.clone()), sum(&mut areas.into_iter()), ends)
    }

    #[test]
    fn measures_are_those_of_all_rows_in_the_range() {
        for (name, signals) in [
            ("rld/v4.rld", &["V1", "V1*I1", "integral(V1)"][..]),
            ("ulog/utc-gps-int32.ulg", &["vehicle_gps_position.alt", "derivative(vehicle_gps_position.alt)"]),
            ("rosbag/robot.bag", &["latitude", "latitude + longitude"]),
            ("vel/all-kinds.vel", &["OBDDataM.speed"]),
        ] {
            let log = rovelog::open(rovelog_testing::root().join("corpus").join(name)).unwrap();
            let known = Signals::new(&*log);
            let signals: Vec<Signal> = signals.iter().map(|text| known.one(text).unwrap()).collect();
            let (first, last) = crate::report::span(&log).unwrap();
            for part in [(0, 1), (1, 3), (7, 8)] {
                let at = |eighth: i64| first + (last - first) / 8 * eighth;
                let span = (at(part.0), if part.1 == 8 { last } else { at(part.1) });
                for (signal, found) in signals.iter().zip(measure(&*log, &signals, span).unwrap()) {
                    let (found, of) = (found.unwrap(), format!("{name} {} {part:?}", signal.name()));
                    let (count, sum, area, ends) = expected(&*log, signal, span);
                    assert_eq!(found.statistics.count, count, "{of}");
                    let close =
                        |a: f64, b: f64| (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-9 * b.abs();
                    assert!(close(found.statistics.mean().unwrap_or(0.0) * count as f64, sum), "{of}");
                    if let Some((integral, _)) = found.integral() {
                        assert!(close(integral, area), "{of}: {integral} {area}");
                    }
                    for (value, end) in [found.at_start, found.at_end].into_iter().zip(ends) {
                        assert!(close(value.unwrap_or(f64::NAN), end), "{of}: {value:?} {end}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_charge_is_also_given_in_ampere_hours() {
        let measures = Measures { unit: Some("A".to_owned()), sum: 1.8, ..Measures::default() };
        assert_eq!(measures.integral(), Some((1.8, "1.8000 C = 500.00 µAh".to_owned())));
    }
}
