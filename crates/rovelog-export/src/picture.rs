//! Raw images as PNG.

use std::io;

use rovelog::vel_format::Message;
#[cfg(feature = "pictures")]
use rovelog::vel_format::images::PixelLimits;
use rovelog::vel_format::wire::ImageData;

use crate::ExportError;

/// Pixel layout of a raw image, as named in `sensor_msgs/image_encodings`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// Grey, 8 bits: `mono8`, `8UC1`, and Bayer patterns, which stay grey.
    Grey8,
    /// Grey, 16 bits: `mono16`, `16UC1`.
    Grey16,
    /// Red, green, blue: `rgb8`, `8UC3`.
    Rgb8,
    /// Blue, green, red: `bgr8`.
    Bgr8,
    /// Red, green, blue, alpha: `rgba8`.
    Rgba8,
    /// Blue, green, red, alpha: `bgra8`.
    Bgra8,
}

impl Layout {
    /// Returns the layout with this name; `None` if the name is unknown.
    pub fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "mono8" | "8UC1" => Self::Grey8,
            "mono16" | "16UC1" => Self::Grey16,
            "rgb8" | "8UC3" => Self::Rgb8,
            "bgr8" => Self::Bgr8,
            "rgba8" | "8UC4" => Self::Rgba8,
            "bgra8" => Self::Bgra8,
            bayer if bayer.starts_with("bayer_") && bayer.ends_with('8') => Self::Grey8,
            _ => return None,
        })
    }

    /// Returns the size of a pixel in bytes.
    pub const fn pixel(self) -> usize {
        match self {
            Self::Grey8 => 1,
            Self::Grey16 => 2,
            Self::Rgb8 | Self::Bgr8 => 3,
            Self::Rgba8 | Self::Bgra8 => 4,
        }
    }
}

/// Returns a raw image of a VEL log as PNG.
///
/// # Errors
/// Returns an error if the image cannot be decoded, or in a build without the feature `pictures`.
#[cfg_attr(not(feature = "pictures"), expect(unused_variables, reason = "other builds decode it"))]
pub fn png_of_vel(image: &ImageData<'_>, message: &Message<'_>) -> Result<Vec<u8>, ExportError> {
    #[cfg(feature = "pictures")]
    return Ok(image.png(message, PixelLimits::default()).map_err(rovelog::Error::from)?);
    #[cfg(not(feature = "pictures"))]
    return Err(ExportError::NotBuiltIn { what: "a raw image as PNG", feature: "pictures" });
}

/// Returns a raw image as PNG. The image has rows of `step` bytes, which start with `width` pixels.
/// Returns `None` if there are too few bytes, or no pixels.
///
/// # Errors
/// Returns an error if the encoder fails.
pub fn png(
    (width, height): (u32, u32),
    layout: Layout,
    (step, big_endian): (usize, bool),
    data: &[u8],
) -> io::Result<Option<Vec<u8>>> {
    let Some(row) = (width as usize).checked_mul(layout.pixel()).filter(|row| *row > 0 && *row <= step)
    else {
        return Ok(None);
    };
    let rows = data.chunks(step).map(|line| line.get(..row)).take(height as usize);
    let Some(mut pixels) = rows.collect::<Option<Vec<_>>>().map(|rows| rows.concat()) else {
        return Ok(None);
    };
    if height == 0 || pixels.len() != row * height as usize {
        return Ok(None);
    }
    match layout {
        Layout::Bgr8 | Layout::Bgra8 => {
            pixels.chunks_exact_mut(layout.pixel()).for_each(|pixel| pixel.swap(0, 2));
        }
        // PNG stores the most significant byte first.
        Layout::Grey16 if !big_endian => pixels.chunks_exact_mut(2).for_each(|pixel| pixel.swap(0, 1)),
        _ => {}
    }
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width, height);
    encoder.set_color(match layout {
        Layout::Grey8 | Layout::Grey16 => png::ColorType::Grayscale,
        Layout::Rgb8 | Layout::Bgr8 => png::ColorType::Rgb,
        Layout::Rgba8 | Layout::Bgra8 => png::ColorType::Rgba,
    });
    encoder.set_depth(if layout == Layout::Grey16 { png::BitDepth::Sixteen } else { png::BitDepth::Eight });
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels)?;
    writer.finish()?;
    Ok(Some(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> (u32, u32, Vec<u8>) {
        let mut reader = png::Decoder::new(io::Cursor::new(bytes)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let frame = reader.next_frame(&mut pixels).unwrap();
        (frame.width, frame.height, pixels)
    }

    #[test]
    fn rows_are_taken_without_what_fills_them() {
        let bgr = [1, 2, 3, 4, 5, 6, 0, 7, 8, 9, 10, 11, 12, 0];
        let bytes = png((2, 2), Layout::Bgr8, (7, false), &bgr).unwrap().unwrap();
        assert_eq!(decoded(&bytes), (2, 2, vec![3, 2, 1, 6, 5, 4, 9, 8, 7, 12, 11, 10]));
        let grey = png((1, 2), Layout::Grey16, (2, false), &[1, 2, 3, 4]).unwrap().unwrap();
        assert_eq!(decoded(&grey), (1, 2, vec![2, 1, 4, 3]));
    }

    #[test]
    fn what_is_too_short_is_no_image() {
        assert!(png((2, 2), Layout::Grey8, (2, false), &[1, 2, 3]).unwrap().is_none());
        assert!(png((2, 1), Layout::Rgb8, (5, false), &[0; 6]).unwrap().is_none());
        assert!(png((0, 0), Layout::Grey8, (0, false), &[]).unwrap().is_none());
    }
}
