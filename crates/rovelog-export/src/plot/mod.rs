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

use crate::ExportError;
use crate::signal::{NoSignal, Signal, Signals, split_list};

/// True if this build can write PNG and PDF (feature `pictures`).
pub const PICTURES: bool = cfg!(feature = "pictures");

/// Returns the signals that an argument of a plot selects. An argument is a signal, a pattern, an
/// expression, or a list of these separated by commas.
///
/// # Errors
/// Returns an error if one of the signals is unknown.
pub fn find(signals: &Signals<'_>, argument: &str) -> Result<Vec<Signal>, NoSignal> {
    let mut parts: Vec<_> = split_list(argument).collect();
    if parts.len() < 2 {
        parts = vec![argument];
    }
    let found = parts.into_iter().map(|part| signals.find(part)).collect::<Result<Vec<_>, _>>()?;
    Ok(found.concat())
}

/// Distributes the lines of an argument to panels. If the argument is a list separated by commas,
/// the lines share a panel as in [`Panel::overlay`]. Otherwise, each unit has a panel.
pub fn panels(argument: &str, lines: Vec<Series>) -> Vec<Panel> {
    let is_overlay = split_list(argument).nth(1).is_some();
    if is_overlay { Panel::overlay(argument, lines) } else { Panel::by_unit(argument, lines) }
}

/// Writes a plot as SVG.
///
/// # Errors
/// Returns an error if writing to the output fails.
pub fn svg(plot: &Plot, picture: &Picture, mut out: impl Write) -> Result<(), ExportError> {
    Ok(out.write_all(svg::draw(plot, picture).as_bytes())?)
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
