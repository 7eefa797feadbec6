//! Extracts images from ROS messages, and converts raw images to image files without losing a
//! value.

mod depth;
mod pixels;
mod raw;

use std::io;

use rovelog::Value;
use rovelog::core::internal::media::ImageFormat;
use rovelog::core::internal::text::count;
use rovelog::vel_format::Message;
#[cfg(feature = "pictures")]
use rovelog::vel_format::images::PixelLimits;
use rovelog::vel_format::wire::ImageData;

use crate::ExportError;
use raw::RawImage;

/// Type of the ROS messages that contain an image file, such as a JPEG file.
const COMPRESSED: &str = "sensor_msgs/CompressedImage";
/// Type of the ROS messages that contain the pixels of an image without compression.
const RAW: &str = "sensor_msgs/Image";

/// An image file that was extracted from a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Bytes of the image file.
    pub bytes: Vec<u8>,
    /// Format of the image file.
    pub format: ImageFormat,
    /// Encoding of the image according to the message, such as `jpeg` or `bgr8`.
    pub encoding: String,
    /// Width and height of the image in pixels. `None` if the image file of the message is copied,
    /// because it is not decoded.
    pub size: Option<(u32, u32)>,
}

/// Result for images with a Bayer pattern, in which each pixel has only one of the three colors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bayer {
    /// Color image. The two missing colors of each pixel are interpolated.
    Color,
    /// Gray image of the values as the sensor measured them.
    Mosaic,
}

/// Returns whether messages of the ROS type `type_name` are images.
pub fn is_image(type_name: &str) -> bool {
    [COMPRESSED, RAW].contains(&type_name)
}

/// Returns the image of a ROS message as a file.
///
/// - An image file in the message is copied byte for byte. Its format is detected from its content.
/// - Depth images of `compressedDepth` become PNG, or TIFF if the depth is a float.
/// - Raw images become PNG. If PNG cannot store their values, they become TIFF.
///
/// # Errors
/// Returns the reason as text if the message does not contain a valid image.
pub fn of_message(type_name: &str, value: &Value, bayer: Bayer) -> Result<Picture, String> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let Some(Value::Bytes(data)) = value.get("data") else {
        return Err("the message has no field data with bytes".to_owned());
    };
    if type_name == COMPRESSED {
        let encoding = text("format").to_owned();
        if let Some(format) = ImageFormat::of(data) {
            return Ok(Picture { bytes: data.clone(), format, encoding, size: None });
        }
        return depth::of_message(data, encoding);
    }
    let number = |name: &str| match value.get(name) {
        Some(Value::UInt(number, _)) => u32::try_from(*number).unwrap_or(0),
        _ => 0,
    };
    let image = RawImage {
        encoding: text("encoding"),
        size: (number("width"), number("height")),
        step: number("step") as usize,
        is_big_endian: number("is_bigendian") != 0,
        data,
    };
    let encoding = image.encoding.to_owned();
    let (width, height) = image.size;
    let pixels = image.pixels(bayer).ok_or_else(|| {
        let size = count(data.len(), "byte");
        format!("the data ({size}, encoding {encoding:?}) is not an image of {width} x {height} pixels")
    })?;
    let (bytes, format) = pixels.file()?;
    Ok(Picture { bytes, format, encoding, size: Some((width, height)) })
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

/// Writes pixels without padding as a PNG file. The values of 16-bit pixels are big-endian.
///
/// # Errors
/// Returns an error if the image has no pixels, or if `pixels` has the wrong size.
pub(crate) fn png(
    (width, height): (u32, u32),
    color: png::ColorType,
    depth: png::BitDepth,
    pixels: &[u8],
) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width, height);
    encoder.set_color(color);
    encoder.set_depth(depth);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(encoding: &str, (width, height): (u64, u64), step: u64, data: &[u8]) -> Value {
        Value::record([
            ("height", Value::UInt(height, 32)),
            ("width", Value::UInt(width, 32)),
            ("encoding", Value::Text(encoding.to_owned())),
            ("is_bigendian", Value::UInt(0, 8)),
            ("step", Value::UInt(step, 32)),
            ("data", Value::Bytes(data.to_vec())),
        ])
    }

    fn compressed(format: &str, data: &[u8]) -> Result<Picture, String> {
        let fields = [("format", Value::Text(format.to_owned())), ("data", Value::Bytes(data.to_vec()))];
        of_message(COMPRESSED, &Value::record(fields), Bayer::Color)
    }

    #[test]
    fn values_that_png_cannot_store_become_tiff() {
        for (encoding, format) in [
            ("mono16", ImageFormat::Png),
            ("16UC4", ImageFormat::Png),
            ("8UC2", ImageFormat::Tiff),
            ("8SC1", ImageFormat::Tiff),
            ("16SC1", ImageFormat::Tiff),
            ("32FC1", ImageFormat::Tiff),
        ] {
            let picture = of_message(RAW, &image(encoding, (1, 1), 8, &[0; 8]), Bayer::Color).unwrap();
            assert_eq!((picture.format, picture.size), (format, Some((1, 1))), "{encoding}");
        }
    }

    #[test]
    fn messages_without_an_image_are_refused_with_their_encoding() {
        let refused = |value| of_message(RAW, &value, Bayer::Color).unwrap_err();
        assert!(refused(image("nv21", (1, 1), 8, &[0; 8])).contains("\"nv21\""));
        assert!(refused(image("mono8", (2, 2), 2, &[0; 3])).contains("3 bytes"));
        assert!(refused(Value::record([("width", Value::UInt(1, 32))])).contains("data"));
        assert!(compressed("jpeg", b"hello").unwrap_err().contains("(5 bytes, format \"jpeg\")"));
        assert!(compressed("16UC1; compressedDepth rvl", &[0; 11]).is_err());
        assert!(compressed("", b"").is_err());
    }

    #[test]
    fn the_content_determines_the_format_of_an_image_file() {
        let jpeg = b"\xff\xd8\xff\xe0..";
        let picture = compressed("rgb8; png compressed", jpeg).unwrap();
        assert_eq!((picture.format, &*picture.bytes), (ImageFormat::Jpeg, &jpeg[..]));
    }
}
