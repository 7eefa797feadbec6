//! Draws plots of signals for notebooks.

use pyo3::prelude::*;
use rovelog_export::plot::{self, Panel, Picture, Plot, Theme, Wanted};
use rovelog_export::report;
use rovelog_export::signal::Signals;

use crate::errors::{ExceptionBuilder, from_export};
use crate::reader::{Reader, Window};
use crate::signal::not_found;

/// Returns a plot as SVG. Each argument is drawn in its own panels, as in [`plot::draw`]. Without
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
    let wanted = arguments.iter().map(|argument| Wanted::new(&signals, argument));
    let wanted: Vec<Wanted> =
        wanted.collect::<Result<_, _>>().map_err(|error| not_found(reader, py, error))?;
    let format = log.format().id;
    let refused = |what: &str| {
        ExceptionBuilder::new("UnsupportedError", what).in_format(format, reader.origin.path()).raise(py)
    };
    let whole = report::span(log).ok_or_else(|| refused("no record in this log has a time"))?;
    let span = window.within(whole);
    let columns = 2 * width as usize;
    let mut plot = reader.run(py, || {
        let drawn = if wanted.is_empty() {
            let seconds = span.1.saturating_sub(span.0).max(1) as f64 / 1e9;
            let panels = report::panels(log, span, columns);
            panels.map(|panels| Plot::new("", panels, (0.0, seconds), "seconds since the start of the plot"))
        } else {
            plot::draw(&***log, &wanted, span, columns)
        };
        drawn.map_err(from_export(format))
    })?;
    plot.panels.retain(Panel::has_values);
    if plot.panels.is_empty() {
        return Err(refused("the signals have no values to plot"));
    }
    if !plot.shows_frequencies() {
        plot.utc = rovelog_export::TimeBase::of(&***log).axis_start(span.0);
        plot.bands = report::bands(log, span);
    }
    let theme = if is_dark { Theme::Dark } else { Theme::Light };
    Ok(plot::svg(&plot, &Picture { width, height: None, dpi: 96, theme }))
}
