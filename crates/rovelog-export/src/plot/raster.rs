//! Renders the SVG of a plot as PNG and PDF, with an embedded font.

use std::io::Write;
use std::sync::Arc;

use svg2pdf::usvg;
use usvg::fontdb::Database;

use super::model::Picture;
use crate::ExportError;

/// Subsets of the font Inter, in the weights regular and semibold. The license is in
/// assets/Inter-LICENSE.txt.
const FONTS: [&[u8]; 2] =
    [include_bytes!("../../assets/Inter-Regular.otf"), include_bytes!("../../assets/Inter-SemiBold.otf")];

/// Resolution in pixels per inch at which one SVG unit is one pixel.
const UNIT: u32 = 96;

/// Maximum number of pixels in a PNG. At 4 bytes per pixel, they need half a gigabyte of memory.
const MAX_PIXELS: f64 = 120e6;

/// Creates a font database that only contains the fonts in `files`.
fn fonts(files: &[&[u8]]) -> Database {
    let mut fonts = Database::new();
    for font in files {
        fonts.load_font_data(font.to_vec());
    }
    fonts.set_sans_serif_family("Inter");
    fonts
}

/// Parses an SVG. System fonts are not used, so that the result is the same on every machine.
fn tree(svg: &str, files: &[&[u8]]) -> Result<usvg::Tree, ExportError> {
    let mut options = usvg::Options { font_family: "Inter".to_owned(), ..usvg::Options::default() };
    options.fontdb = Arc::new(fonts(files));
    usvg::Tree::from_str(svg, &options).map_err(|error| ExportError::Format(error.to_string()))
}

pub(super) fn png(svg: &str, picture: &Picture, out: impl Write) -> Result<(), ExportError> {
    let tree = tree(svg, &FONTS)?;
    let scale = f64::from(picture.dpi) / f64::from(UNIT);
    let (width, height) = (f64::from(tree.size().width()) * scale, f64::from(tree.size().height()) * scale);
    if width * height > MAX_PIXELS {
        return Err(ExportError::Format(format!(
            "the picture would be too large with {width:.0} x {height:.0} pixels; draw fewer signals, or \
             lower --dpi"
        )));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "limited before")]
    let size = (width.round().max(1.0) as u32, height.round().max(1.0) as u32);
    let mut pixels = resvg::tiny_skia::Pixmap::new(size.0, size.1).ok_or_else(|| {
        ExportError::Format(format!("a picture cannot have {} x {} pixels", size.0, size.1))
    })?;
    #[expect(clippy::cast_possible_truncation, reason = "a factor")]
    let scale = resvg::tiny_skia::Transform::from_scale(scale as f32, scale as f32);
    resvg::render(&tree, scale, &mut pixels.as_mut());
    // The background is opaque, so the alpha channel is not needed.
    let rgb: Vec<u8> = pixels.data().chunks_exact(4).flat_map(|pixel| &pixel[..3]).copied().collect();
    let mut encoder = png::Encoder::new(out, size.0, size.1);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    // PNG stores the resolution in pixels per meter, and an inch is 0.0254 m.
    let per_metre = (picture.dpi * 10_000).div_ceil(254);
    let dimensions = png::PixelDimensions { xppu: per_metre, yppu: per_metre, unit: png::Unit::Meter };
    encoder.set_pixel_dims(Some(dimensions));
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(&rgb).map_err(failed)?;
    writer.finish().map_err(failed)
}

fn failed(error: png::EncodingError) -> ExportError {
    match error {
        png::EncodingError::IoError(error) => ExportError::Io(error),
        error => ExportError::Format(error.to_string()),
    }
}

pub(super) fn pdf(svg: &str, mut out: impl Write) -> Result<(), ExportError> {
    // With several fonts, `svg2pdf` numbers them in an order that differs from run to run. Only one
    // font is used, so that the output is reproducible.
    let page = svg2pdf::PageOptions { dpi: 96.0 };
    let bytes = svg2pdf::to_pdf(&tree(svg, &FONTS[..1])?, svg2pdf::ConversionOptions::default(), page)
        .map_err(|error| ExportError::Format(error.to_string()))?;
    Ok(out.write_all(&bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_of_text_are_those_of_the_font() {
        let fonts = fonts(&FONTS);
        let font = fonts.faces().next().expect("a font").id;
        let advances = fonts.with_face_data(font, |data, index| {
            let face = ttf_parser::Face::parse(data, index).expect("a font");
            let advance = |c: char| {
                let glyph = face.glyph_index(c).expect("a letter");
                f64::from(face.glyph_hor_advance(glyph).expect("a width")) / f64::from(face.units_per_em())
            };
            (' '..='~').map(|c| (c, advance(c))).collect::<Vec<_>>()
        });
        for (c, advance) in advances.expect("the data of a font") {
            let ours = super::super::text::width(&c.to_string(), 1.0) / 1.04;
            assert!((ours - advance).abs() < 1e-3, "{c:?}: {ours} {advance}");
        }
    }
}
