//! Depth images that `compressed_depth_image_transport` compresses: a header of 12 bytes, and the
//! depth as PNG or RVL.
//!
//! RVL is described in A. D. Wilson, "Fast Lossless Depth Image Compression", 2017.

use std::io::Cursor;

use rovelog::core::internal::media::ImageFormat;
use rovelog::core::internal::text::count;

use super::Picture;
use super::pixels::{Pixels, Sample};

/// Maximum number of pixels of an image that is decompressed. An image without depth takes almost no
/// bytes, so the size of a message does not limit the size of its image.
const MAX_PIXELS: usize = 1 << 24;

/// Size in bytes of the header: the number of the quantization, and its parameters A and B as
/// 32-bit floats.
const HEADER_LEN: usize = 12;

/// Decodes the depth image in a `sensor_msgs/CompressedImage`. `data` and `encoding` are the fields
/// `data` and `format` of the message. An example of `encoding` is `16UC1; compressedDepth rvl`.
pub(super) fn of_message(data: &[u8], encoding: String) -> Result<Picture, String> {
    let (header, body) = data.split_at_checked(HEADER_LEN).unwrap_or_default();
    let is_png = ImageFormat::of(body) == Some(ImageFormat::Png);
    let is_float = encoding.starts_with("32F");
    let depth = if is_png && !is_float {
        return Ok(Picture { bytes: body.to_vec(), format: ImageFormat::Png, encoding, size: None });
    } else if is_png {
        png(body)?
    } else if encoding.contains("compressedDepth") && encoding.contains("rvl") && !header.is_empty() {
        rvl(body)?
    } else {
        let size = count(data.len(), "byte");
        return Err(format!("the data ({size}, format {encoding:?}) is not an image"));
    };
    let depth = if is_float { dequantized(header, &depth) } else { depth };
    let (bytes, format) = depth.file()?;
    Ok(Picture { bytes, format, encoding, size: Some(depth.size) })
}

/// Creates an image of 16-bit values.
fn gray(size: (u32, u32), data: Vec<u8>) -> Pixels {
    Pixels { size, channel_count: 1, sample: Sample::UInt, sample_len: 2, data }
}

/// Decodes a PNG file of 16-bit gray values.
fn png(file: &[u8]) -> Result<Pixels, String> {
    let bad = |error: png::DecodingError| format!("the depth cannot be decoded: {error}");
    let mut reader = png::Decoder::new(Cursor::new(file)).read_info().map_err(bad)?;
    let gray16 = (png::ColorType::Grayscale, png::BitDepth::Sixteen);
    let len = reader.output_buffer_size().filter(|len| *len <= 2 * MAX_PIXELS);
    let (Some(len), true) = (len, reader.output_color_type() == gray16) else {
        return Err(format!("the depth is not a PNG of at most {MAX_PIXELS} pixels of 16 bits"));
    };
    let mut data = vec![0; len];
    let size = reader.info().size();
    reader.next_frame(&mut data).map_err(bad)?;
    Ok(gray(size, data))
}

/// Decodes RVL data, which begins with the width and the height as 32-bit integers.
fn rvl(data: &[u8]) -> Result<Pixels, String> {
    let [width, height, words @ ..] = data.as_chunks::<4>().0 else {
        return Err("the RVL data has no size".to_owned());
    };
    let (width, height) = (u32::from_le_bytes(*width), u32::from_le_bytes(*height));
    let pixel_count = (width as usize).checked_mul(height as usize);
    let Some(pixel_count) = pixel_count.filter(|n| (1..=MAX_PIXELS).contains(n)) else {
        return Err(format!(
            "the size {width} x {height} of the RVL data is not from 1 to {MAX_PIXELS} pixels"
        ));
    };
    let values = rvl_values(words, pixel_count);
    let values = values.ok_or_else(|| format!("the RVL data does not have {width} x {height} pixels"))?;
    Ok(gray((width, height), values))
}

/// Decodes the pixels of RVL data. Returns `None` if their number is not `pixel_count`.
///
/// The pixels are stored as runs. A run consists of the number of zeros, the number of other pixels,
/// and the difference of each of these pixels to the previous one. An odd number is a negative
/// difference. Each number is stored in groups of 4 bits: 3 bits of the number, lowest bits first,
/// after a bit that is set if the number continues in the next group. The groups of each 32-bit
/// integer start with the highest one.
///
/// For example, the pixels 0, 0, 5, 4 have the numbers 2 (zeros), 2 (others), 10 (+5) and 1 (-1),
/// which are stored as the groups 2, 2, A, 1, 1.
fn rvl_values(words: &[[u8; 4]], pixel_count: usize) -> Option<Vec<u8>> {
    let mut groups = words.iter().flat_map(|word| {
        let word = u32::from_le_bytes(*word);
        (0..8).map(move |i| word >> (28 - 4 * i) & 15)
    });
    let mut number = || {
        let mut number = 0;
        for shift in (0..30).step_by(3) {
            let group = groups.next()?;
            number |= (group & 7) << shift;
            if group & 8 == 0 {
                return Some(number);
            }
        }
        None
    };
    let len = 2 * pixel_count;
    let mut values = Vec::new();
    let mut previous = 0_u16;
    while values.len() < len {
        let with_zeros = values.len() + 2 * number()? as usize;
        if with_zeros > len {
            return None;
        }
        values.resize(with_zeros, 0);
        if with_zeros == len {
            break;
        }
        let others = number()?;
        if values.len() + 2 * others as usize > len {
            return None;
        }
        for _ in 0..others {
            let number = number()?;
            let difference = (number >> 1) ^ (number & 1).wrapping_neg();
            // Encoders compute differences of larger integers, but only the lowest 16 bits matter.
            previous = previous.wrapping_add((difference & 0xffff) as u16);
            values.extend(previous.to_be_bytes());
        }
    }
    Some(values)
}

/// Converts 16-bit values to depths in meters with the parameters A and B of the header: the depth
/// is A / (value - B), and NaN if the value is 0.
fn dequantized(header: &[u8], values: &Pixels) -> Pixels {
    let parameter = |at: usize| header[at..].first_chunk().map_or(0.0, |bytes| f32::from_le_bytes(*bytes));
    let (a, b) = (parameter(4), parameter(8));
    let depth = |value: &[u8; 2]| match u16::from_be_bytes(*value) {
        0 => f32::NAN,
        value => a / (f32::from(value) - b),
    };
    let data = values.data.as_chunks::<2>().0.iter().flat_map(|value| depth(value).to_be_bytes()).collect();
    Pixels { size: values.size, channel_count: 1, sample: Sample::Float, sample_len: 4, data }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RVL: &str = "16UC1; compressedDepth rvl";

    /// Returns a message with RVL data of one row. `words` are the groups of 4 bits, 8 in each.
    fn message(width: u32, words: &[u32]) -> Vec<u8> {
        let numbers = [&[0, 1_f32.to_bits(), 0, width, 1][..], words].concat();
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    #[test]
    fn the_example_of_rvl_is_decoded() {
        let pixels = rvl(&message(4, &[0x22a1_1000])[HEADER_LEN..]).unwrap();
        assert_eq!(pixels, gray((4, 1), vec![0, 0, 0, 0, 0, 5, 0, 4]));
        let picture = of_message(&message(4, &[0x22a1_1000]), RVL.to_owned()).unwrap();
        assert_eq!((picture.format, picture.size), (ImageFormat::Png, Some((4, 1))));
        // The last run may consist of zeros only. Differences wrap around at 16 bits.
        assert_eq!(rvl(&message(2, &[0x0111_0000])[HEADER_LEN..]).unwrap().data, [0xff, 0xff, 0, 0]);
    }

    #[test]
    fn invalid_rvl_is_refused() {
        for words in [
            &[][..],               // no data
            &[0x3000_0000],        // more zeros than pixels
            &[0x0300_0000],        // more values than pixels
            &[0x1199_9999],        // a number without an end
            &[u32::MAX, u32::MAX], // a number of more than 30 bits
            &[0, 0, 0, 0],         // only empty runs
        ] {
            assert!(of_message(&message(2, words), RVL.to_owned()).is_err(), "{words:x?}");
        }
        for width in [0, 1 << 25, u32::MAX] {
            assert!(of_message(&message(width, &[0x2000_0000]), RVL.to_owned()).is_err(), "{width}");
        }
    }

    #[test]
    fn floats_are_computed_with_the_parameters_of_the_header() {
        let header: Vec<u8> = [0, 10_f32.to_bits(), (-3_f32).to_bits()].map(u32::to_le_bytes).concat();
        let values = gray((3, 1), vec![0, 0, 0, 1, 0, 7]);
        let found = dequantized(&header, &values).data;
        let floats: Vec<f32> =
            found.as_chunks::<4>().0.iter().map(|bytes| f32::from_be_bytes(*bytes)).collect();
        assert!(floats[0].is_nan(), "{floats:?}");
        assert_eq!(floats[1..], [2.5, 1.0]);
    }

    #[test]
    fn png_is_copied_or_decoded() {
        let file =
            super::super::png((2, 1), png::ColorType::Grayscale, png::BitDepth::Sixteen, &[0, 1, 0, 2]);
        let data = [&[0, 1_f32.to_bits(), 0].map(u32::to_le_bytes).concat()[..], &file.unwrap()].concat();
        let picture = |format: &str| of_message(&data, format.to_owned()).unwrap();
        assert_eq!(picture("16UC1; compressedDepth").bytes, data[HEADER_LEN..]);
        let float = picture("32FC1; compressedDepth png");
        assert_eq!((float.format, float.size), (ImageFormat::Tiff, Some((2, 1))));
        assert_eq!(float.bytes[8..16], [1_f32, 0.5].map(f32::to_be_bytes).concat());
        assert!(of_message(&data[..60], "32FC1; compressedDepth".to_owned()).is_err());
        let color = super::super::png((1, 1), png::ColorType::Rgb, png::BitDepth::Eight, &[0; 3]).unwrap();
        let data = [&[0; HEADER_LEN][..], &color].concat();
        assert!(of_message(&data, "32FC1; compressedDepth".to_owned()).unwrap_err().contains("16 bits"));
    }
}
