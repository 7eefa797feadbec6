//! Plots: lines over time with axes and units, for a terminal, as SVG and as PNG.
//!
//! A series is read once and reduced to what a plot of its width can show: for each column of
//! pixels the first, the minimum, the maximum and the last value, each at its own time. The line
//! through them covers the same pixels as the line through all values, however long the log is.

mod axis;
mod braille;
mod font;
mod model;
mod paint;
mod png;
mod series;
mod svg;

use std::io::Write;

pub use braille::braille;
pub use model::{Panel, Plot, Size};
pub(crate) use paint::LINES;
pub(crate) use series::Thin;
pub use series::{Series, Signal, measured_fields, numeric_fields, read};

use crate::ExportError;

/// Writes a plot as SVG.
///
/// # Errors
/// Returns an error if writing to the output fails.
pub fn svg(plot: &Plot, size: Size, mut out: impl Write) -> Result<(), ExportError> {
    let mut surface = svg::Svg::new(size);
    paint::paint(plot, size, &mut surface);
    Ok(out.write_all(surface.finish().as_bytes())?)
}

/// Writes a plot as PNG.
///
/// # Errors
/// Returns an error if writing to the output fails.
pub fn png(plot: &Plot, size: Size, out: impl Write) -> Result<(), ExportError> {
    let mut surface = png::Raster::new(size);
    paint::paint(plot, size, &mut surface);
    surface.write(out)
}
