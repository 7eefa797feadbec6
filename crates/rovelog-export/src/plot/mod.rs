//! Plots: lines over time with axes and units, for a terminal, as SVG and as PNG.
//!
//! A series is read once and thinned to what a plot of its width can show: of each column of pixels the first,
//! the least, the greatest and the last value, each at its own time. The line through them covers the same
//! pixels as the line through all of them, however long the log.

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
/// Where the output refuses.
pub fn svg(plot: &Plot, size: Size, mut out: impl Write) -> Result<(), ExportError> {
    let mut surface = svg::Svg::new(size);
    paint::paint(plot, size, &mut surface);
    Ok(out.write_all(surface.finish().as_bytes())?)
}

/// Writes a plot as PNG.
///
/// # Errors
/// Where the output refuses.
pub fn png(plot: &Plot, size: Size, out: impl Write) -> Result<(), ExportError> {
    let mut surface = png::Raster::new(size);
    paint::paint(plot, size, &mut surface);
    surface.write(out)
}
