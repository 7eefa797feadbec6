//! Reduces the colors of pictures, so that they fit into an answer.

use std::collections::BTreeMap;
use std::io::Cursor;

/// Maximum number of colors of a picture. A pixel then needs 4 bits.
const MAX_COLORS: u8 = 16;

type Color = [u8; 3];

/// Returns a PNG with at most [`MAX_COLORS`] colors. `picture` is a PNG in RGB.
///
/// A plot has few colors, but the smooth edges of its lines and letters have hundreds of shades,
/// which need most of the bytes. For example, a plot with 1533 colors becomes a quarter as large.
///
/// # Errors
/// Returns an error if the picture is not a PNG in RGB.
pub(super) fn with_few_colors(picture: &[u8]) -> Result<Vec<u8>, String> {
    let mut reader =
        png::Decoder::new(Cursor::new(picture)).read_info().map_err(|error| error.to_string())?;
    let mut pixels = vec![0; reader.output_buffer_size().unwrap_or(0)];
    let info = reader.next_frame(&mut pixels).map_err(|error| error.to_string())?;
    let (pixels, rest) = pixels.as_chunks::<3>();
    if info.color_type != png::ColorType::Rgb || info.bit_depth != png::BitDepth::Eight || !rest.is_empty() {
        return Err("the picture is not in RGB".to_owned());
    }
    let (palette, indices) = palette(pixels);
    let rows = pixels.chunks(info.width as usize);
    // The first pixel of a pair is in the upper bits. Each row starts with a new byte.
    let pack = |pair: &[Color]| pair.iter().enumerate().map(|(i, pixel)| indices[pixel] << (4 - 4 * i)).sum();
    let packed: Vec<u8> = rows.flat_map(|row| row.chunks(2).map(pack)).collect();
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, info.width, info.height);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Four);
    encoder.set_palette(palette.concat());
    // Filters are for continuous tones.
    encoder.set_filter(png::Filter::NoFilter);
    encoder.set_compression(png::Compression::High);
    let mut writer = encoder.write_header().map_err(|error| error.to_string())?;
    writer.write_image_data(&packed).map_err(|error| error.to_string())?;
    writer.finish().map_err(|error| error.to_string())?;
    Ok(out)
}

/// Chooses the colors of a palette, and returns the index of the nearest of them for each color of
/// the picture.
///
/// The first color is the most frequent one. Each further color is the one with the largest error
/// so far: its number of pixels multiplied by its distance to the chosen colors. So a rare color,
/// such as that of a thin line, is kept if it differs from all others.
fn palette(pixels: &[Color]) -> (Vec<Color>, BTreeMap<Color, u8>) {
    let mut counts = BTreeMap::<Color, u64>::new();
    for pixel in pixels {
        *counts.entry(*pixel).or_default() += 1;
    }
    // For each color, the index of the nearest chosen color, and the distance to it.
    let mut nearest: BTreeMap<Color, (u8, u64)> =
        counts.keys().map(|color| (*color, (0, u64::from(u32::MAX)))).collect();
    let mut palette = Vec::new();
    for index in 0..MAX_COLORS {
        let error = |color: &Color| counts[color] * nearest[color].1;
        let Some(chosen) = counts.keys().copied().max_by_key(error).filter(|color| error(color) > 0) else {
            break;
        };
        palette.push(chosen);
        for (color, best) in &mut nearest {
            *best = std::cmp::min_by_key(*best, (index, distance(*color, chosen)), |best| best.1);
        }
    }
    (palette, nearest.into_iter().map(|(color, (index, _))| (color, index)).collect())
}

/// Returns the square of the distance of two colors.
fn distance(a: Color, b: Color) -> u64 {
    a.iter().zip(b).map(|(a, b)| u64::from(a.abs_diff(b)).pow(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_colors_that_differ_are_kept() {
        // Shades of gray, and one red pixel.
        let mut pixels: Vec<Color> = (0..=255).flat_map(|gray| [[gray; 3]; 9]).collect();
        pixels.push([255, 0, 0]);
        let mut picture = Vec::new();
        let mut encoder = png::Encoder::new(&mut picture, 5, 461);
        encoder.set_color(png::ColorType::Rgb);
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(pixels.as_flattened()).unwrap();
        writer.finish().unwrap();
        let small = with_few_colors(&picture).unwrap();
        let mut decoder = png::Decoder::new(Cursor::new(&small));
        decoder.set_transformations(png::Transformations::EXPAND);
        let mut reader = decoder.read_info().unwrap();
        let mut reduced = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut reduced).unwrap();
        let reduced = reduced.as_chunks::<3>().0;
        assert_eq!(reduced.last(), Some(&[255, 0, 0]));
        assert!(pixels.iter().zip(reduced).all(|(a, b)| a[0].abs_diff(b[0]) < 25));
        assert_eq!(palette(reduced).0.len(), usize::from(MAX_COLORS));
    }
}
