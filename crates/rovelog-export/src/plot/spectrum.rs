//! Spectra of signals: the power spectral density over the frequency (`psd(x)`), and the density
//! over time and frequency (`spectrogram(x)`).
//!
//! Both are computed with Welch's method. The samples are divided into windows that overlap by half.
//! Each window is multiplied by a Hann window and transformed by an FFT. The squared magnitudes of
//! windows are averaged, which reduces noise. For example, 1000 samples per second and windows of
//! 1024 samples give a spectrum up to 500 Hz with a resolution of about 1 Hz.
//!
//! The samples are read once and not stored, so logs of any size need little memory.

use std::sync::Arc;

use rovelog::{LogReader, Select};
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};

use super::Wanted;
use super::model::{Heat, Panel, Plot};
use super::series::Series;
use crate::ExportError;
use crate::signal::{Signal, Stream};

/// Maximum number of samples in a window of a power spectral density.
const WINDOW: usize = 1024;

/// Maximum number of samples in a window of a spectrogram. Shorter windows show changes over time
/// more precisely, and frequencies less precisely.
const SHORT_WINDOW: usize = 256;

/// A gap is a distance between two samples that exceeds the mean distance by this factor.
const GAP: f64 = 10.0;

/// Minimum number of samples in a window. Signals with fewer samples have no spectrum.
pub const MIN_WINDOW: usize = 64;

/// Number of frequencies that are omitted at the lower end. The Hann window spreads what remains of
/// the mean over them.
const SKIPPED: usize = 2;

/// Maximum number of columns of a spectrogram.
const COLUMNS: usize = 400;

/// Kind of a spectrum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Power spectral density over the frequency.
    Density,
    /// Power spectral density over time and frequency.
    Spectrogram,
}

/// Returns the kind of spectrum and the signals that a plot argument such as `psd(gyro_rad[0])`
/// requests. An argument may be a list of spectra of the same kind, separated by commas. Returns
/// `None` if any part of the argument requests no spectrum, or another kind.
pub fn requested(argument: &str) -> Option<(Kind, Vec<&str>)> {
    let parts = super::split(argument).into_iter().map(requested_one).collect::<Option<Vec<_>>>()?;
    let kind = parts.first()?.0;
    let signals = parts.into_iter().map(|(of, signal)| (of == kind).then_some(signal));
    Some((kind, signals.collect::<Option<_>>()?))
}

/// Returns the kind of spectrum and the signal of one element of an argument.
fn requested_one(argument: &str) -> Option<(Kind, &str)> {
    let functions = [("psd(", Kind::Density), ("spectrogram(", Kind::Spectrogram)];
    functions.into_iter().find_map(|(start, kind)| {
        let inner = argument.trim().strip_prefix(start)?.strip_suffix(')')?;
        // `psd(a) + psd(b)` is no spectrum of the signal `a) + psd(b`.
        let mut depth = 0_i32;
        let is_closed = inner.chars().all(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth >= 0
        });
        is_closed.then_some((kind, inner))
    })
}

/// Accumulates the squared magnitudes of overlapping windows.
struct Welch {
    fft: Arc<dyn Fft<f64>>,
    weights: Vec<f64>,
    /// Samples of the window that is being filled.
    samples: Vec<f64>,
}

impl Welch {
    fn new(window: usize) -> Self {
        let hann = |i: usize| (std::f64::consts::PI * i as f64 / window as f64).sin().powi(2);
        let fft = FftPlanner::new().plan_fft_forward(window);
        Self { fft, weights: (0..window).map(hann).collect(), samples: Vec::with_capacity(window) }
    }

    /// Adds a sample. Returns the density of each frequency if the sample completes a window. The
    /// unit is the squared unit of the signal times the distance between two samples.
    fn push(&mut self, sample: f64) -> Option<Vec<f64>> {
        self.samples.push(sample);
        let window = self.weights.len();
        if self.samples.len() < window {
            return None;
        }
        let mean = self.samples.iter().sum::<f64>() / window as f64;
        let weighted =
            self.samples.iter().zip(&self.weights).map(|(sample, weight)| (sample - mean) * weight);
        let mut parts: Vec<Complex<f64>> = weighted.map(|part| Complex::new(part, 0.0)).collect();
        self.fft.process(&mut parts);
        self.samples.drain(..window / 2);
        let norm: f64 = self.weights.iter().map(|weight| weight * weight).sum();
        // Negative frequencies are not shown, so their power is added to that of the positive ones.
        // The first and the last frequency have no negative counterpart.
        let sides = |i: usize| if i == 0 || i == window / 2 { 1.0 } else { 2.0 };
        let density = |(i, part): (usize, &Complex<f64>)| sides(i) * part.norm_sqr() / norm;
        Some(parts[..=window / 2].iter().enumerate().map(density).collect())
    }
}

/// Divides the samples of a signal into windows.
struct Windows {
    /// Number of samples in a window, unless the signal has fewer samples.
    longest: usize,
    /// First samples of the signal with their times in nanoseconds, up to `longest` samples.
    first: Vec<(i64, f64)>,
    /// `None` as long as the signal has fewer than `longest` samples.
    welch: Option<Welch>,
}

impl Windows {
    fn new(longest: usize) -> Self {
        Self { longest, first: Vec::new(), welch: None }
    }

    /// Adds a sample. Returns the density of each frequency if the sample completes a window.
    fn push(&mut self, time: i64, value: f64) -> Option<Vec<f64>> {
        // A single NaN would turn all values of a window into NaN.
        if !value.is_finite() {
            return None;
        }
        if let Some(welch) = &mut self.welch {
            return welch.push(value);
        }
        self.first.push((time, value));
        if self.first.len() < self.longest {
            return None;
        }
        let welch = self.welch.insert(Welch::new(self.longest));
        // Only the last of these samples completes a window.
        self.first.iter().filter_map(|(_, value)| welch.push(*value)).last()
    }

    /// Passes the windows of a signal with fewer than `longest` samples to `each`. Returns the sample
    /// rate in hertz, or `None` if the signal has too few samples.
    fn finish(self, mut each: impl FnMut(i64, &[f64])) -> Option<f64> {
        if self.first.len() < MIN_WINDOW {
            return None;
        }
        if self.welch.is_none() {
            let mut short = Welch::new(1 << self.first.len().ilog2());
            for (time, value) in &self.first {
                if let Some(density) = short.push(*value) {
                    each(*time, &density);
                }
            }
        }
        let step = |pair: &[(i64, f64)]| pair[1].0.saturating_sub(pair[0].0) as f64;
        let mut steps: Vec<f64> = self.first.windows(2).map(step).collect();
        // The gaps of dropouts are left out. A long gap hides shorter ones, so this is repeated.
        loop {
            let (mean, count) = (steps.iter().sum::<f64>() / steps.len() as f64, steps.len());
            steps.retain(|step| *step <= GAP * mean);
            if steps.len() == count {
                return (mean > 0.0).then(|| 1e9 / mean);
            }
        }
    }
}

/// Passes the density of each window of all signals to `each`, with the index of the signal and the
/// time at which the window ends. The signals must use the same topics, which are read once.
/// Returns the sample rate of each signal in hertz, or `None` for a signal with too few samples.
fn windows(
    log: &dyn LogReader,
    signals: &[Signal],
    span: (i64, i64),
    longest: usize,
    mut each: impl FnMut(usize, i64, &[f64]),
) -> Result<Vec<Option<f64>>, ExportError> {
    let mut windows: Vec<_> = signals.iter().map(|_| Windows::new(longest)).collect();
    let select = Select::all().between(Some(span.0), span.1.checked_add(1));
    for rows in Stream::new(log, &signals.iter().collect::<Vec<_>>(), &select)? {
        let (times, columns) = rows?;
        for (index, (windows, values)) in windows.iter_mut().zip(&columns).enumerate() {
            for (time, value) in times.iter().zip(values) {
                if let Some(density) = windows.push(*time, *value) {
                    each(index, *time, &density);
                }
            }
        }
    }
    let rates = windows.into_iter().enumerate();
    Ok(rates.map(|(index, windows)| windows.finish(|time, density| each(index, time, density))).collect())
}

/// Converts a power spectral density to decibels. 0 dB is one squared unit of the signal per hertz.
fn decibels(density: f64) -> f64 {
    10.0 * density.max(1e-20).log10()
}

/// Sum of the densities of windows.
#[derive(Clone, Default)]
struct Sum {
    densities: Vec<f64>,
    windows: f64,
}

impl Sum {
    fn add(&mut self, density: &[f64]) {
        self.densities.resize(density.len(), 0.0);
        self.densities.iter_mut().zip(density).for_each(|(sum, density)| *sum += density);
        self.windows += 1.0;
    }

    /// Returns the mean density of each frequency in decibels. `rate` is the sample rate in hertz.
    fn decibels(&self, rate: f64) -> impl Iterator<Item = f64> {
        self.densities.iter().map(move |sum| decibels(sum / self.windows / rate))
    }
}

/// Returns the power spectral densities of signals within a time range. The signals must use the
/// same topics. The points of a line are frequencies in hertz and densities in decibels. Signals
/// with too few samples have no line.
fn densities(log: &dyn LogReader, signals: &[Signal], span: (i64, i64)) -> Result<Vec<Series>, ExportError> {
    let mut sums = vec![Sum::default(); signals.len()];
    let rates = windows(log, signals, span, WINDOW, |index, _, density| sums[index].add(density))?;
    let line = |((signal, sum), rate): ((&Signal, &Sum), Option<f64>)| {
        let rate = rate?;
        let window = 2 * (sum.densities.len() - 1);
        let frequency = |i: usize| i as f64 * rate / window as f64;
        let points = sum.decibels(rate).enumerate().skip(SKIPPED).map(|(i, value)| (frequency(i), value));
        let mut line = Series::new(signal.name(), points.collect());
        line.unit = Some("dB".to_owned());
        Some(line)
    };
    Ok(signals.iter().zip(&sums).zip(rates).filter_map(line).collect())
}

/// Returns a plot of power spectral densities over the frequency. Signals with too few samples have
/// no line, and panels without lines are omitted.
pub(crate) fn density_plot(
    log: &dyn LogReader,
    wanted: &[Wanted],
    span: (i64, i64),
) -> Result<Plot, ExportError> {
    let mut drawn = Vec::new();
    for Wanted { title, signals, .. } in wanted {
        let by_topics = signals.chunk_by(|a, b| a.topics() == b.topics());
        let lines = by_topics.map(|signals| densities(log, signals, span));
        let lines = lines.collect::<Result<Vec<_>, _>>()?.concat();
        if !lines.is_empty() {
            drawn.push(Panel::new(format!("{title}, 0 dB = 1 {}/Hz", squared(signals)), lines));
        }
    }
    let points = drawn.iter().flat_map(|panel| &panel.series).flat_map(|line| &line.points);
    let highest = points.fold(0.0, |highest, point| f64::max(highest, point.0));
    let mut plot = Plot::new("", drawn, (0.0, highest), "Hz");
    plot.hertz = true;
    Ok(plot)
}

/// Returns the squared unit of the signals for labels, such as `(m/s²)²`.
fn squared(signals: &[Signal]) -> String {
    signals.first().and_then(Signal::unit).map_or_else(|| "unit²".to_owned(), |unit| format!("({unit})²"))
}

/// Returns a panel with the spectrogram of a signal within a time range, whose start is second 0 of
/// the plot. Returns `None` if the signal has too few samples.
pub(super) fn spectrogram(
    log: &dyn LogReader,
    signal: &Signal,
    span: (i64, i64),
) -> Result<Option<Panel>, ExportError> {
    let length = span.1.saturating_sub(span.0).max(1) as f64;
    let mut columns = vec![Sum::default(); COLUMNS];
    let mut before = None;
    let rate = windows(log, std::slice::from_ref(signal), span, SHORT_WINDOW, |_, time, density| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let column = |time: i64| {
            let part = time.saturating_sub(span.0) as f64 / length;
            ((part * COLUMNS as f64) as usize).min(COLUMNS - 1)
        };
        // If windows are longer than columns, a window fills all columns since the window before.
        let last = column(time);
        let first = before.map_or(last, |before| (column(before) + 1).min(last));
        before = Some(time);
        columns[first..=last].iter_mut().for_each(|sum| sum.add(density));
    })?;
    let Some(rate) = rate[0] else { return Ok(None) };
    let of_column = |sum: &Sum| -> Vec<f64> {
        let values = sum.decibels(rate).enumerate();
        values.map(|(i, value)| if i < SKIPPED { f64::NAN } else { value }).collect()
    };
    let heat = Heat {
        span: (0.0, span.1.saturating_sub(span.0) as f64 / 1e9),
        highest: rate / 2.0,
        columns: columns.iter().map(of_column).collect(),
    };
    let (low, high) = heat.range();
    let title = format!(
        "spectrogram({}), {low:.0} to {high:.0} dB, 0 dB = 1 {}/Hz",
        signal.name(),
        squared(std::slice::from_ref(signal))
    );
    Ok(Some(Panel::heat(title, heat)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sine_has_its_frequency_and_its_power() {
        let rate = 250.0;
        let sine = |i: u32| 3.0 + 2.0 * (std::f64::consts::TAU * 40.0 * f64::from(i) / rate).sin();
        let mut welch = Welch::new(WINDOW);
        let windows: Vec<Vec<f64>> = (0..5000).filter_map(|i| welch.push(sine(i))).collect();
        assert_eq!(windows.len(), 8);
        for density in windows {
            let peak = (SKIPPED..density.len()).max_by(|a, b| density[*a].total_cmp(&density[*b])).unwrap();
            assert!((peak as f64 * rate / WINDOW as f64 - 40.0).abs() < rate / WINDOW as f64);
            // The power of a sine wave is half the square of its amplitude.
            let power = density[SKIPPED..].iter().sum::<f64>() / WINDOW as f64;
            assert!((power - 2.0).abs() < 0.01, "{power}");
        }
    }

    /// The highest frequency has no negative counterpart.
    #[test]
    fn an_alternating_signal_has_its_power() {
        let mut welch = Welch::new(WINDOW);
        let density = (0..WINDOW).filter_map(|i| welch.push(if i % 2 == 0 { 1.0 } else { -1.0 })).last();
        let power = density.unwrap().iter().sum::<f64>() / WINDOW as f64;
        // The window spreads a part of the power to frequencies of which only one side is shown.
        assert!((power - 1.0).abs() < 0.01, "{power}");
    }

    /// The samples come in bursts, so most of their distances are much shorter than the mean.
    #[test]
    fn the_rate_is_that_of_all_samples() {
        let mut windows = Windows::new(WINDOW);
        for i in 0..500 {
            let time = i / 2 * 10_000_000 + i % 2 * 20_000;
            assert!(windows.push(time, 1.0).is_none());
        }
        let rate = windows.finish(|_, _| ()).unwrap();
        assert!((rate - 200.0).abs() < 1.0, "{rate}");
    }

    #[test]
    fn spectra_are_requested_by_functions() {
        assert_eq!(requested("psd(norm(gyro_rad))"), Some((Kind::Density, vec!["norm(gyro_rad)"])));
        assert_eq!(requested(" spectrogram(a.b[0])"), Some((Kind::Spectrogram, vec!["a.b[0]"])));
        assert_eq!(requested("psd(a),psd(b)"), Some((Kind::Density, vec!["a", "b"])));
        for other in ["psd(a) + psd(b)", "a", "psd(a", "psd(a),b", "psd(a),spectrogram(b)"] {
            assert_eq!(requested(other), None, "{other}");
        }
    }
}
