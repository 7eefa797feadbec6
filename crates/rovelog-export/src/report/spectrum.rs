//! Vibration spectra of a flight: the power spectral density of acceleration and angular velocity.
//!
//! The spectra are computed with Welch's method. The samples are divided into windows that overlap
//! by half. Each window is multiplied by a Hann window and transformed by an FFT. The squared
//! magnitudes of all windows are averaged, which reduces noise. For example, 1000 samples per
//! second and windows of 1024 samples give a spectrum up to 500 Hz with a resolution of about 1 Hz.

use std::fmt::Write as _;

use rovelog::LogReader;
use rustfft::FftPlanner;
use rustfft::num_complex::Complex;

use super::rows::{Span, each_row};
use crate::ExportError;
use crate::page::Page;
use crate::plot::{Panel, Picture, Plot, Series, Theme, svg};

/// Number of samples in a window. Consecutive windows overlap by half.
const WINDOW: usize = 1024;

/// Sources of the spectra. Each entry has the title, the topic, the array of three fields, and the
/// unit. If several entries have the same title, the first entry whose topic is in the log is used.
const SOURCES: &[(&str, &str, &str, &str)] = &[
    ("Acceleration", "sensor_combined", "accelerometer_m_s2", "m/s²"),
    ("Angular velocity", "vehicle_angular_velocity", "xyz", "rad/s"),
    ("Angular velocity", "sensor_combined", "gyro_rad", "rad/s"),
];

/// Writes the section with the spectra. A spectrum is omitted if the log has too few samples for
/// it.
pub(super) fn section(log: &dyn LogReader, at: Span, page: &mut Page) -> Result<(), ExportError> {
    let mut panels: Vec<(f64, Panel)> = Vec::new();
    for (title, topic, field, unit) in SOURCES {
        if panels.iter().any(|(_, panel)| panel.title.starts_with(title)) {
            continue;
        }
        let fields: Vec<String> = (0..3).map(|i| format!("{field}[{i}]")).collect();
        let mut times = Vec::new();
        let mut values: [Vec<f64>; 3] = Default::default();
        each_row(log, topic, &fields, at, |time, row| {
            // A single NaN would turn all values of the spectrum into NaN.
            if row.iter().all(|value| value.is_finite()) {
                times.push(time);
                values.iter_mut().zip(row).for_each(|(values, value)| values.push(*value));
            }
        })?;
        let Some(rate) = rate(&times) else { continue };
        let lines = ["x", "y", "z"].into_iter().zip(&values);
        let lines: Vec<Series> = lines
            .map(|(name, values)| {
                let mut line = Series::new(name, density(values, rate));
                line.unit = Some("dB".to_owned());
                line
            })
            .collect();
        panels.push((rate / 2.0, Panel::new(format!("{title} ({topic}), 0 dB = 1 ({unit})²/Hz"), lines)));
    }
    if panels.is_empty() {
        return Ok(());
    }
    page.section("spectrum", "Spectrum", "Spectrum of the vibration");
    for (highest, panel) in panels {
        let mut plot = Plot::new("", vec![panel], (0.0, highest), "Hz");
        plot.hertz = true;
        let picture = Picture { width: 1100, height: None, dpi: 96, theme: Theme::Light };
        let mut drawn = Vec::new();
        svg(&plot, &picture, &mut drawn)?;
        let _ = writeln!(page, "<div class=\"picture\">{}</div>", String::from_utf8_lossy(&drawn));
    }
    let _ = writeln!(
        page,
        "<p class=\"note\">Welch's method: Hann windows of {WINDOW} samples that overlap by half. Only what was \
         logged is seen: a vibration above half of the logging rate appears at a lower frequency.</p>"
    );
    Ok(())
}

/// Returns the sample rate in hertz. Returns `None` if there are fewer samples than in one window,
/// or if at least half of the times do not increase.
fn rate(times: &[i64]) -> Option<f64> {
    if times.len() < WINDOW {
        return None;
    }
    let mut steps: Vec<i64> = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    steps.sort_unstable();
    // The median distance between samples is not affected by the gaps of dropouts.
    let median = steps[steps.len() / 2];
    (median > 0).then(|| 1e9 / median as f64)
}

/// Returns the power spectral density. Each pair has a frequency in hertz and the density in
/// decibels.
fn density(values: &[f64], rate: f64) -> Vec<(f64, f64)> {
    let hann = |i: usize| {
        let part = (std::f64::consts::PI * i as f64 / WINDOW as f64).sin();
        part * part
    };
    let weights: Vec<f64> = (0..WINDOW).map(hann).collect();
    let norm = weights.iter().map(|weight| weight * weight).sum::<f64>() * rate;
    let fft = FftPlanner::new().plan_fft_forward(WINDOW);
    let mut sums = vec![0.0; WINDOW / 2 + 1];
    let mut windows = 0.0;
    for window in values.windows(WINDOW).step_by(WINDOW / 2) {
        let mean = window.iter().sum::<f64>() / WINDOW as f64;
        let mut parts: Vec<Complex<f64>> = window
            .iter()
            .zip(&weights)
            .map(|(value, weight)| Complex::new((value - mean) * weight, 0.0))
            .collect();
        fft.process(&mut parts);
        sums.iter_mut().zip(&parts).for_each(|(sum, part)| *sum += part.norm_sqr());
        windows += 1.0;
    }
    let of = |(i, sum): (usize, &f64)| {
        // The factor 2 accounts for the power at negative frequencies, which are not shown.
        let power = 2.0 * sum / (norm * windows);
        (i as f64 * rate / WINDOW as f64, 10.0 * power.max(1e-20).log10())
    };
    // The Hann window spreads what remains of the mean over the first two frequencies, so they are
    // omitted.
    sums.iter().enumerate().skip(2).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sine_has_its_frequency_and_its_power() {
        let rate = 250.0;
        let sine = |i: u32| 3.0 + 2.0 * (std::f64::consts::TAU * 40.0 * f64::from(i) / rate).sin();
        let values: Vec<f64> = (0..5000).map(sine).collect();
        let found = density(&values, rate);
        let peak = found.iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("lines");
        assert!((peak.0 - 40.0).abs() < rate / WINDOW as f64, "{peak:?}");
        // The power of a sine wave is half the square of its amplitude.
        let power: f64 =
            found.iter().map(|(_, db)| 10f64.powf(db / 10.0)).sum::<f64>() * rate / WINDOW as f64;
        assert!((power - 2.0).abs() < 0.01, "{power}");
        let steady: Vec<i64> = (0..2000).map(|i| i * 4_000_000).collect();
        assert_eq!((super::rate(&steady), super::rate(&steady[..100])), (Some(250.0), None));
    }
}
