//! PNG pictures, drawn pixel by pixel.

use std::io::Write;

use super::font::{GLYPH_WIDTH, glyph};
use super::model::Size;
use super::paint::{Anchor, Area, Colour, Surface};
use crate::ExportError;

pub(super) struct Raster {
    size: Size,
    dots: Vec<u8>,
}

impl Raster {
    pub(super) fn new(size: Size) -> Self {
        Self { size, dots: vec![255; size.width as usize * size.height as usize * 3] }
    }

    fn dot(&mut self, x: i64, y: i64, colour: Colour) {
        let inside =
            (0..i64::from(self.size.width)).contains(&x) && (0..i64::from(self.size.height)).contains(&y);
        if let (true, Ok(x), Ok(y)) = (inside, usize::try_from(x), usize::try_from(y)) {
            let at = (y * self.size.width as usize + x) * 3;
            self.dots[at..at + 3].copy_from_slice(&colour);
        }
    }

    /// Draws a straight line (Bresenham).
    fn straight(&mut self, (mut x, mut y): (i64, i64), (to_x, to_y): (i64, i64), colour: Colour) {
        let (dx, dy) = ((to_x - x).abs(), -(to_y - y).abs());
        let (step_x, step_y) = ((to_x - x).signum(), (to_y - y).signum());
        let mut error = dx + dy;
        loop {
            self.dot(x, y, colour);
            if (x, y) == (to_x, to_y) {
                return;
            }
            let twice = 2 * error;
            if twice >= dy {
                error += dy;
                x += step_x;
            }
            if twice <= dx {
                error += dx;
                y += step_y;
            }
        }
    }

    pub(super) fn write(&self, out: impl Write) -> Result<(), ExportError> {
        let mut encoder = png::Encoder::new(out, self.size.width, self.size.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().map_err(failed)?;
        writer.write_image_data(&self.dots).map_err(failed)?;
        writer.finish().map_err(failed)
    }
}

fn failed(error: png::EncodingError) -> ExportError {
    match error {
        png::EncodingError::IoError(error) => ExportError::Io(error),
        error => ExportError::Format(error.to_string()),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "places on a picture")]
fn whole(value: f64) -> i64 {
    value.round() as i64
}

impl Surface for Raster {
    fn line(&mut self, points: &[(f64, f64)], colour: Colour, area: Area) {
        let inside = |(x, y): &(f64, f64)| {
            (whole(x.clamp(area.left, area.right)), whole(y.clamp(area.top, area.bottom)))
        };
        for pair in points.windows(2) {
            self.straight(inside(&pair[0]), inside(&pair[1]), colour);
        }
    }

    fn text(&mut self, (x, y): (f64, f64), text: &str, anchor: Anchor, colour: Colour) {
        let width = GLYPH_WIDTH * i64::try_from(text.chars().count()).unwrap_or(0);
        let mut x = whole(x)
            - match anchor {
                Anchor::Start => 0,
                Anchor::Middle => width / 2,
                Anchor::End => width,
            };
        let top = whole(y) - 7;
        for c in text.chars() {
            for (across, column) in (0..).zip(glyph(c)) {
                for down in (0..8).filter(|down| column >> down & 1 == 1) {
                    self.dot(x + across, top + down, colour);
                }
            }
            x += GLYPH_WIDTH;
        }
    }
}
