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
        // The factor 2 accounts for the power at negative frequencies, which are not shown.
        Some(parts[..=window / 2].iter().map(|part| 2.0 * part.norm_sqr() / norm).collect())
    }
}

/// Passes the density of each window of a signal to `each`, with the time at which the window ends.
/// Windows have at most `longest` samples, and fewer if the signal has fewer samples. Returns the
/// sample rate in hertz, or `None` if the signal has too few samples.
fn windows(
    log: &dyn LogReader,
    signal: &Signal,
    span: (i64, i64),
    longest: usize,
    mut each: impl FnMut(i64, &[f64]),
) -> Result<Option<f64>, ExportError> {
    let mut first: Vec<(i64, f64)> = Vec::new();
    let mut welch: Option<Welch> = None;
    let mut feed = |welch: &mut Welch, time: i64, value: f64| {
        if let Some(density) = welch.push(value) {
            each(time, &density);
        }
    };
    let select = Select::all().between(Some(span.0), span.1.checked_add(1));
    for rows in Stream::new(log, &[signal], &select)? {
        let (times, columns) = rows?;
        let values = columns.first().map(Vec::as_slice).unwrap_or_default();
        // A single NaN would turn all values of a window into NaN.
        for (time, value) in times.iter().zip(values).filter(|(_, value)| value.is_finite()) {
            if let Some(welch) = &mut welch {
                feed(welch, *time, *value);
                continue;
            }
            first.push((*time, *value));
            if first.len() == longest {
                let mut begun = Welch::new(longest);
                for (time, value) in &first {
                    feed(&mut begun, *time, *value);
                }
                welch = Some(begun);
            }
        }
    }
    if first.len() < MIN_WINDOW {
        return Ok(None);
    }
    if welch.is_none() {
        let mut short = Welch::new(1 << first.len().ilog2());
        for (time, value) in &first {
            feed(&mut short, *time, *value);
        }
    }
    let mut steps: Vec<i64> = first.windows(2).map(|pair| pair[1].0.saturating_sub(pair[0].0)).collect();
    steps.sort_unstable();
    // The median distance between samples is not affected by the gaps of dropouts.
    let median = steps[steps.len() / 2];
    Ok((median > 0).then(|| 1e9 / median as f64))
}

/// Converts a power spectral density to decibels. 0 dB is one squared unit of the signal per hertz.
fn decibels(density: f64) -> f64 {
    10.0 * density.max(1e-20).log10()
}

/// Returns the power spectral density of a signal within a time range. The points of the line are
/// frequencies in hertz and densities in decibels. Returns `None` if the signal has too few samples.
fn density(log: &dyn LogReader, signal: &Signal, span: (i64, i64)) -> Result<Option<Series>, ExportError> {
    let (mut sums, mut count) = (Vec::new(), 0.0);
    let rate = windows(log, signal, span, WINDOW, |_, density| {
        sums.resize(density.len(), 0.0);
        sums.iter_mut().zip(density).for_each(|(sum, density)| *sum += density);
        count += 1.0;
    })?;
    let Some(rate) = rate else { return Ok(None) };
    let window = 2 * (sums.len() - 1);
    let point = |(i, sum): (usize, &f64)| (i as f64 * rate / window as f64, decibels(sum / count / rate));
    let mut line = Series::new(signal.name(), sums.iter().enumerate().skip(SKIPPED).map(point).collect());
    line.unit = Some("dB".to_owned());
    Ok(Some(line))
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
        let lines = signals.iter().map(|signal| density(log, signal, span));
        let lines: Vec<Series> = lines.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
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

/// Returns a panel with the spectrogram of a signal within a time range. `zero` is the time that is
/// second 0 of the plot, in nanoseconds of the log's clock. Returns `None` if the signal has too few
/// samples.
pub(super) fn spectrogram(
    log: &dyn LogReader,
    signal: &Signal,
    span: (i64, i64),
    zero: i64,
) -> Result<Option<Panel>, ExportError> {
    let length = span.1.saturating_sub(span.0).max(1) as f64;
    let mut columns: Vec<(Vec<f64>, f64)> = vec![(Vec::new(), 0.0); COLUMNS];
    let mut before = None;
    let rate = windows(log, signal, span, SHORT_WINDOW, |time, density| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let column = |time: i64| {
            let part = time.saturating_sub(span.0) as f64 / length;
            ((part * COLUMNS as f64) as usize).min(COLUMNS - 1)
        };
        // If windows are longer than columns, a window fills all columns since the window before.
        let last = column(time);
        let first = before.map_or(last, |before| (column(before) + 1).min(last));
        before = Some(time);
        for (sums, count) in &mut columns[first..=last] {
            sums.resize(density.len(), 0.0);
            sums.iter_mut().zip(density).for_each(|(sum, density)| *sum += density);
            *count += 1.0;
        }
    })?;
    let Some(rate) = rate else { return Ok(None) };
    let of_column = |(sums, count): &(Vec<f64>, f64)| -> Vec<f64> {
        let value = |(i, sum): (usize, &f64)| {
            if i < SKIPPED { f64::NAN } else { decibels(sum / count / rate) }
        };
        sums.iter().enumerate().map(value).collect()
    };
    let heat = Heat {
        span: (span.0.saturating_sub(zero) as f64 / 1e9, span.1.saturating_sub(zero) as f64 / 1e9),
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
