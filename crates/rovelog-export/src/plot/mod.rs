//! Plots of signals and states over time, for terminals and as SVG, PNG and PDF.
//!
//! While a signal is read, it is reduced to the width of the plot. In each pixel column, only the
//! first, minimum, maximum and last value remain, each at its own time. The line through these
//! points covers the same pixels as the line through all values. The plot therefore looks the same,
//! but needs little memory for logs of any size. For example, the values 3, 9, 1, 4, 5 in a column
//! are drawn as 3, 9, 1, 5.
//!
//! PNG and PDF are rendered from the SVG with an embedded font. They require the feature
//! `pictures`.

mod axis;
mod measure;
mod model;
mod pyramid;
#[cfg_attr(not(feature = "pictures"), path = "no_raster.rs")]
mod raster;
mod series;
pub mod spectrum;
mod state;
mod svg;
mod terminal;
mod text;
mod theme;

use std::io::Write;

pub use axis::{has_prefixes, significant, with_prefix};
pub use measure::{Measures, measure};
pub use model::{Band, Panel, Picture, Plot, Theme};
pub use pyramid::Overview;
pub(crate) use series::{Look, Reducer, Side};
pub use series::{Series, read};
pub use terminal::terminal;

use rovelog::LogReader;

use crate::ExportError;
use crate::signal::{NoSignal, Signal, Signals, split_list};

/// True if this build can write PNG and PDF (feature `pictures`).
pub const PICTURES: bool = cfg!(feature = "pictures");

/// An argument of a plot, and the signals that it selects.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Wanted {
    /// The argument, which is the title of its panels.
    pub title: String,
    /// The selected signals.
    pub signals: Vec<Signal>,
    /// Kind of spectrum that is drawn instead of the values, if any.
    pub spectrum: Option<spectrum::Kind>,
}

impl Wanted {
    /// Looks up the signals that an argument selects. An argument is a signal, a pattern, an
    /// expression, a spectrum such as `psd(x)`, or a list of these separated by commas.
    ///
    /// # Errors
    /// Returns an error if one of the signals is unknown.
    pub fn new(signals: &Signals<'_>, argument: &str) -> Result<Self, NoSignal> {
        let (spectrum, names) = match spectrum::requested(argument) {
            Some((kind, names)) => (Some(kind), names),
            None => (None, split(argument)),
        };
        let found = names.into_iter().map(|name| signals.find(name)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { title: argument.to_owned(), signals: found.concat(), spectrum })
    }

    /// Creates an argument from signals whose values are drawn.
    pub fn of(title: impl Into<String>, signals: Vec<Signal>) -> Self {
        Self { title: title.into(), signals, spectrum: None }
    }

    /// Distributes the lines of the signals to panels. If the argument is a list separated by
    /// commas, the lines share a panel as in [`Panel::overlay`]. Otherwise, each unit has a panel.
    fn panels(&self, lines: Vec<Series>) -> Vec<Panel> {
        let is_overlay = split(&self.title).len() > 1;
        if is_overlay { Panel::overlay(&self.title, lines) } else { Panel::by_unit(&self.title, lines) }
    }
}

/// Splits an argument at its commas. An argument with a single element is not split.
fn split(argument: &str) -> Vec<&str> {
    let parts: Vec<_> = split_list(argument).collect();
    if parts.len() < 2 { vec![argument] } else { parts }
}

/// Draws the signals of all arguments in a plot without a title. `span` is the time range in
/// nanoseconds of the log's clock. Its start is second 0 of the plot. Each line is reduced to
/// `columns` pixel columns.
///
/// # Errors
/// Returns an error if the log cannot be read, or if power spectral densities are combined with
/// other signals, which have another horizontal axis.
pub fn draw(
    log: &dyn LogReader,
    wanted: &[Wanted],
    span: (i64, i64),
    columns: usize,
) -> Result<Plot, ExportError> {
    let is_density = |wanted: &&Wanted| wanted.spectrum == Some(spectrum::Kind::Density);
    if let Some(density) = wanted.iter().find(is_density) {
        return match wanted.iter().find(|wanted| !is_density(wanted)) {
            None => spectrum::density_plot(log, wanted, span),
            Some(Wanted { title, .. }) => Err(ExportError::Format(format!(
                "{title} cannot be in the same plot as {}, whose horizontal axis shows frequencies",
                density.title
            ))),
        };
    }
    let values = |wanted: &Wanted| if wanted.spectrum.is_some() { 0 } else { wanted.signals.len() };
    let signals: Vec<Signal> =
        wanted.iter().flat_map(|wanted| &wanted.signals[..values(wanted)]).cloned().collect();
    let mut series = read(log, &signals, span, columns, span.0)?.into_iter();
    let mut panels = Vec::new();
    for wanted in wanted {
        panels.extend(wanted.panels(series.by_ref().take(values(wanted)).flatten().collect()));
        if wanted.spectrum.is_some() {
            for signal in &wanted.signals {
                panels.extend(spectrum::spectrogram(log, signal, span)?);
            }
        }
    }
    let seconds = span.1.saturating_sub(span.0).max(1) as f64 / 1e9;
    Ok(Plot::new("", panels, (0.0, seconds), "seconds since the start of the plot"))
}

/// Returns a plot as SVG.
pub fn svg(plot: &Plot, picture: &Picture) -> String {
    svg::draw(plot, picture)
}

/// Writes a plot as PNG.
///
/// # Errors
/// Returns an error if the picture is too large, writing to the output fails, or PNG is not built
/// in.
pub fn png(plot: &Plot, picture: &Picture, out: impl Write) -> Result<(), ExportError> {
    raster::png(&svg::draw(plot, picture), picture, out)
}

/// Writes a plot as a PDF of one page.
///
/// # Errors
/// Returns an error if writing to the output fails, or PDF is not built in.
pub fn pdf(plot: &Plot, picture: &Picture, out: impl Write) -> Result<(), ExportError> {
    raster::pdf(&svg::draw(plot, picture), out)
}
