//! Vibration spectra of a flight: the power spectral density of acceleration and angular velocity.

use std::fmt::Write as _;

use rovelog::LogReader;

use super::rows::Span;
use crate::ExportError;
use crate::page::Page;
use crate::plot::spectrum::density_plot;
use crate::plot::{Picture, Theme, Wanted, svg};
use crate::signal::{Signal, Signals};

/// Sources of the spectra. Each entry has the title, the topic, and the array of three fields. If
/// several entries have the same title, the first entry whose topic is in the log is used.
const SOURCES: &[(&str, &str, &str)] = &[
    ("Acceleration", "sensor_combined", "accelerometer_m_s2"),
    ("Angular velocity", "vehicle_angular_velocity", "xyz"),
    ("Angular velocity", "sensor_combined", "gyro_rad"),
];

/// Writes the section with the spectra. A spectrum is omitted if the log has too few samples for
/// it.
pub(super) fn section(log: &dyn LogReader, at: Span, page: &mut Page) -> Result<(), ExportError> {
    let mut pictures: Vec<(&str, String)> = Vec::new();
    for (title, topic, field) in SOURCES {
        if pictures.iter().any(|(drawn, _)| drawn == title) {
            continue;
        }
        let Some(found) = log.topic(topic).filter(|topic| topic.count > 0) else { continue };
        let known = Signals::among(log, &[found.get()]);
        let names = (0..3).map(|i| format!("{topic}.{field}[{i}]"));
        // Older versions of PX4 lack some of these fields.
        let signals: Vec<Signal> = names.filter_map(|name| known.one(&name).ok()).collect();
        let wanted = Wanted::of(format!("{title} ({topic})"), signals);
        let mut plot = density_plot(log, &[wanted], at.times)?;
        let Some(panel) = plot.panels.first_mut() else { continue };
        panel.series.iter_mut().zip(["x", "y", "z"]).for_each(|(line, name)| name.clone_into(&mut line.name));
        let picture = Picture { width: 1100, height: None, dpi: 96, theme: Theme::Light };
        pictures.push((title, svg(&plot, &picture)));
    }
    if pictures.is_empty() {
        return Ok(());
    }
    page.section("spectrum", "Spectrum", "Spectrum of the vibration");
    for (_, picture) in pictures {
        let _ = writeln!(page, "<div class=\"picture\">{picture}</div>");
    }
    page.push_str(
        "<p class=\"note\">Welch's method: Hann windows of up to 1024 samples that overlap by half. Only what \
         was logged is seen: a vibration above half of the logging rate appears at a lower frequency.</p>\n",
    );
    Ok(())
}
