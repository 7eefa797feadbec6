//! Draws plots of signals for notebooks.

use pyo3::prelude::*;
use rovelog_export::plot::{self, Panel, Picture, Plot, Theme};
use rovelog_export::report;
use rovelog_export::signal::Signals;

use crate::errors::{ExceptionBuilder, from_export};
use crate::reader::{Reader, Window};
use crate::signal::not_found;

/// Returns a plot as SVG. Each argument is drawn in its own panels, as in [`plot::panels`]. Without
/// arguments, the panels of a report are drawn. `width` is in pixels.
#[pyfunction]
pub(crate) fn plot_svg(
    py: Python<'_>,
    reader: &Reader,
    arguments: Vec<String>,
    window: Window,
    width: u32,
    is_dark: bool,
) -> PyResult<String> {
    let log = reader.whole_log(py)?;
    let signals = Signals::new(&***log);
    let found =
        arguments.iter().map(|argument| plot::find(&signals, argument)).collect::<Result<Vec<_>, _>>();
    let found = found.map_err(|error| not_found(reader, py, error))?;
    let format = log.format().id;
    let refused = |what: &str| {
        ExceptionBuilder::new("UnsupportedError", what).in_format(format, reader.origin.path()).raise(py)
    };
    let whole = report::span(log).ok_or_else(|| refused("no record in this log has a time"))?;
    let span = window.within(whole);
    let columns = 2 * width as usize;
    let panels = reader.run(py, || {
        let failed = from_export(format);
        if found.is_empty() {
            return report::panels(log, span, columns).map_err(failed);
        }
        let all = found.concat();
        let mut lines = plot::read(&***log, &all, span, columns, span.0).map_err(failed)?.into_iter();
        let of_argument = |(argument, signals): (&String, &Vec<_>)| {
            plot::panels(argument, lines.by_ref().take(signals.len()).flatten().collect())
        };
        Ok(arguments.iter().zip(&found).flat_map(of_argument).collect())
    })?;
    let panels: Vec<_> = panels.into_iter().filter(Panel::has_values).collect();
    if panels.is_empty() {
        return Err(refused("the signals have no values to plot"));
    }
    let seconds = span.1.saturating_sub(span.0).max(1) as f64 / 1e9;
    let mut plot = Plot::new("", panels, (0.0, seconds), "seconds since the start of the plot");
    plot.utc = rovelog_export::TimeBase::of(&***log).axis_start(span.0);
    plot.bands = report::bands(log, span);
    let theme = if is_dark { Theme::Dark } else { Theme::Light };
    let mut svg = Vec::new();
    let picture = Picture { width, height: None, dpi: 96, theme };
    plot::svg(&plot, &picture, &mut svg).map_err(|error| refused(&error.to_string()))?;
    Ok(String::from_utf8_lossy(&svg).into_owned())
}
