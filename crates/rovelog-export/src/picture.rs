//! Extracts images from messages, and converts raw images to PNG.

use std::io;

use rovelog::Value;
use rovelog::core::internal::media::ImageFormat;
use rovelog::core::internal::text::count;
use rovelog::vel_format::Message;
#[cfg(feature = "pictures")]
use rovelog::vel_format::images::PixelLimits;
use rovelog::vel_format::wire::ImageData;

use crate::ExportError;

/// Type of the ROS messages that contain an image file, such as a JPEG file.
const COMPRESSED: &str = "sensor_msgs/CompressedImage";
/// Type of the ROS messages that contain the pixels of an image without compression.
const RAW: &str = "sensor_msgs/Image";

/// An image file that was extracted from a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Bytes of the image file.
    pub bytes: Vec<u8>,
    /// Format of the image file, or `None` if it is unknown.
    pub format: Option<ImageFormat>,
    /// Encoding of the image according to the message, such as `jpeg` or `bgr8`.
    pub encoding: String,
    /// Width and height of the image in pixels. `None` for a compressed image, because it is not
    /// decoded.
    pub size: Option<(u32, u32)>,
}

/// Returns whether messages of the ROS type `type_name` are images.
pub fn is_image(type_name: &str) -> bool {
    [COMPRESSED, RAW].contains(&type_name)
}

/// Returns the image of a ROS message as a file. A compressed image is copied byte for byte, and a
/// raw image is converted to PNG. If the message has no valid image, the inner error is the reason.
///
/// # Errors
/// Returns an error if the PNG encoder fails.
pub fn of_message(type_name: &str, value: &Value) -> io::Result<Result<Picture, String>> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let Some(Value::Bytes(data)) = value.get("data") else {
        return Ok(Err("the image has no data".to_owned()));
    };
    if type_name == COMPRESSED {
        let encoding = text("format").to_owned();
        return Ok(Ok(Picture { bytes: data.clone(), format: ImageFormat::of(data), encoding, size: None }));
    }
    let number = |name: &str| match value.get(name) {
        Some(Value::UInt(number, _)) => u32::try_from(*number).unwrap_or(0),
        _ => 0,
    };
    let encoding = text("encoding").to_owned();
    let (width, height, step) = (number("width"), number("height"), number("step") as usize);
    let rows = (step, number("is_bigendian") != 0);
    let bytes = match Layout::by_name(&encoding) {
        Some(layout) => png((width, height), layout, rows, data)?,
        None => None,
    };
    let Some(bytes) = bytes else {
        let size = count(data.len(), "byte");
        return Ok(Err(format!(
            "the data ({size}, encoding {encoding:?}) is not an image of {width} x {height} pixels"
        )));
    };
    Ok(Ok(Picture { bytes, format: Some(ImageFormat::Png), encoding, size: Some((width, height)) }))
}

/// Pixel layout of a raw image, with the names used in `sensor_msgs/image_encodings`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// One gray value of 8 bits per pixel: `mono8`, `8UC1` and Bayer patterns. The colors of Bayer
    /// patterns are not reconstructed.
    Grey8,
    /// One gray value of 16 bits per pixel: `mono16` and `16UC1`.
    Grey16,
    /// 8 bits each of red, green and blue: `rgb8` and `8UC3`.
    Rgb8,
    /// 8 bits each of blue, green and red: `bgr8`.
    Bgr8,
    /// 8 bits each of red, green, blue and alpha: `rgba8`.
    Rgba8,
    /// 8 bits each of blue, green, red and alpha: `bgra8`.
    Bgra8,
}

impl Picture {
    /// Returns the extension of the image file. It is `bin` if the format is unknown.
    pub fn extension(&self) -> &'static str {
        self.format.map_or("bin", ImageFormat::extension)
    }
}

impl Layout {
    /// Returns the pixel layout with the ROS encoding `name`, or `None` if the encoding is not
    /// supported.
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

/// Converts a raw image of a VEL log to PNG.
///
/// # Errors
/// Returns an error if the image cannot be decoded, or if the crate was built without the feature
/// `pictures`.
#[cfg_attr(not(feature = "pictures"), expect(unused_variables, reason = "other builds decode it"))]
pub fn png_of_vel(image: &ImageData<'_>, message: &Message<'_>) -> Result<Vec<u8>, ExportError> {
    #[cfg(feature = "pictures")]
    return Ok(image.png(message, PixelLimits::default()).map_err(rovelog::Error::from)?);
    #[cfg(not(feature = "pictures"))]
    return Err(ExportError::NotBuiltIn { what: "a raw image as PNG", feature: "pictures" });
}

/// Converts a raw image to PNG. Each row of the image has `step` bytes, which start with the pixels
/// of the row and may end with padding. Returns `None` if the image has no pixels, or if `data` is
/// too short.
///
/// # Errors
/// Returns an error if the PNG encoder fails.
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
        // PNG stores the most significant byte of 16-bit pixels first.
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
    fn padding_of_rows_is_removed() {
        let bgr = [1, 2, 3, 4, 5, 6, 0, 7, 8, 9, 10, 11, 12, 0];
        let bytes = png((2, 2), Layout::Bgr8, (7, false), &bgr).unwrap().unwrap();
        assert_eq!(decoded(&bytes), (2, 2, vec![3, 2, 1, 6, 5, 4, 9, 8, 7, 12, 11, 10]));
        let grey = png((1, 2), Layout::Grey16, (2, false), &[1, 2, 3, 4]).unwrap().unwrap();
        assert_eq!(decoded(&grey), (1, 2, vec![2, 1, 4, 3]));
    }

    #[test]
    fn too_little_data_is_not_an_image() {
        assert!(png((2, 2), Layout::Grey8, (2, false), &[1, 2, 3]).unwrap().is_none());
        assert!(png((2, 1), Layout::Rgb8, (5, false), &[0; 6]).unwrap().is_none());
        assert!(png((0, 0), Layout::Grey8, (0, false), &[]).unwrap().is_none());
    }
}
