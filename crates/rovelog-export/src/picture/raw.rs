//! Raw images of ROS: rows of pixels in one of the encodings of `sensor_msgs/image_encodings`.

use super::Bayer;
use super::pixels::{Pixels, Sample};

/// The fields of a `sensor_msgs/Image`.
pub(super) struct RawImage<'a> {
    pub(super) encoding: &'a str,
    /// Width and height in pixels.
    pub(super) size: (u32, u32),
    /// Size in bytes of a row, including padding.
    pub(super) step: usize,
    pub(super) is_big_endian: bool,
    pub(super) data: &'a [u8],
}

/// Meaning of the values of a pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// The values are in the order of the image file.
    Plain,
    /// Blue is first and red is third.
    Bgr,
    /// Each pixel has one color. Red is at this column and row of each square of 2 x 2 pixels.
    Bayer { red: (u32, u32) },
    /// Two pixels share their color. Their brightness is at these offsets of 4 bytes.
    Yuv422 { y: [usize; 2] },
}

/// Layout of a pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    sample: Sample,
    /// Size in bytes of a value.
    sample_len: u16,
    /// Number of values per pixel.
    channel_count: u16,
    meaning: Meaning,
}

/// Returns the layout of an encoding. Returns `None` if the encoding is unknown.
fn layout(encoding: &str) -> Option<Layout> {
    let unsigned = |bits: u16, channel_count, meaning| {
        Some(Layout { sample: Sample::UInt, sample_len: bits / 8, channel_count, meaning })
    };
    match encoding {
        "yuv422" | "uyvy" => return unsigned(8, 2, Meaning::Yuv422 { y: [1, 3] }),
        "yuv422_yuy2" | "yuyv" => return unsigned(8, 2, Meaning::Yuv422 { y: [0, 2] }),
        _ => {}
    }
    for (name, channel_count, meaning) in [
        ("mono", 1, Meaning::Plain),
        ("rgb", 3, Meaning::Plain),
        ("rgba", 4, Meaning::Plain),
        ("bgr", 3, Meaning::Bgr),
        ("bgra", 4, Meaning::Bgr),
        ("bayer_rggb", 1, Meaning::Bayer { red: (0, 0) }),
        ("bayer_grbg", 1, Meaning::Bayer { red: (1, 0) }),
        ("bayer_gbrg", 1, Meaning::Bayer { red: (0, 1) }),
        ("bayer_bggr", 1, Meaning::Bayer { red: (1, 1) }),
    ] {
        match encoding.strip_prefix(name) {
            Some("8") => return unsigned(8, channel_count, meaning),
            Some("16") => return unsigned(16, channel_count, meaning),
            _ => {}
        }
    }
    // The other names are those of OpenCV, such as `32FC1`: bits, type, and number of channels.
    let (depth, channels) = encoding.split_once('C').unwrap_or((encoding, "1"));
    let channel_count = if channels.is_empty() { 1 } else { channels.parse().ok()? };
    let (sample, sample_len) = match depth {
        "8U" => (Sample::UInt, 1),
        "8S" => (Sample::Int, 1),
        "16U" => (Sample::UInt, 2),
        "16S" => (Sample::Int, 2),
        "32S" => (Sample::Int, 4),
        "32F" => (Sample::Float, 4),
        "64F" => (Sample::Float, 8),
        _ => return None,
    };
    // OpenCV, and therefore `cv_bridge`, stores the colors of images in the order blue, green, red.
    let is_color = sample == Sample::UInt && matches!(channel_count, 3 | 4);
    let meaning = if is_color { Meaning::Bgr } else { Meaning::Plain };
    (1..=512).contains(&channel_count).then_some(Layout { sample, sample_len, channel_count, meaning })
}

impl RawImage<'_> {
    /// Decodes the image. Returns `None` if the encoding is unknown, if the image has no pixels, or
    /// if the data is too short.
    pub(super) fn pixels(&self, bayer: Bayer) -> Option<Pixels> {
        let Layout { sample, sample_len, mut channel_count, meaning } = layout(self.encoding)?;
        let (width, height) = self.size;
        let pixel_len = usize::from(sample_len) * usize::from(channel_count);
        let row = (width as usize).checked_mul(pixel_len).filter(|row| *row > 0 && *row <= self.step)?;
        // The last row may lack its padding.
        let rows = self.data.chunks(self.step).map(|line| line.get(..row)).take(height as usize);
        let mut data = rows.collect::<Option<Vec<_>>>()?.concat();
        if height == 0 || data.len() != row.checked_mul(height as usize)? {
            return None;
        }
        if !self.is_big_endian && sample_len > 1 {
            data.chunks_exact_mut(sample_len.into()).for_each(<[u8]>::reverse);
        }
        match meaning {
            Meaning::Bayer { red } if bayer == Bayer::Color => {
                data = demosaiced(&data, self.size, sample_len.into(), red);
                channel_count = 3;
            }
            Meaning::Yuv422 { y } => {
                // Two pixels share their color, so a row of an odd number of pixels is not valid.
                data = width.is_multiple_of(2).then(|| rgb_of_yuv422(&data, y))?;
                channel_count = 3;
            }
            Meaning::Bgr => {
                let len = usize::from(sample_len);
                for pixel in data.chunks_exact_mut(pixel_len) {
                    let (blue, others) = pixel.split_at_mut(len);
                    blue.swap_with_slice(&mut others[len..2 * len]);
                }
            }
            Meaning::Plain | Meaning::Bayer { .. } => {}
        }
        Some(Pixels { size: self.size, channel_count, sample, sample_len, data })
    }
}

/// Converts pairs of pixels to RGB according to ITU-R BT.601 with brightness from 16 to 235. The
/// result equals that of `cv::cvtColor` with `COLOR_YUV2RGB_UYVY`, which `cv_bridge` calls. Its
/// numbers are the coefficients of the standard multiplied by 2^20.
fn rgb_of_yuv422(data: &[u8], y_at: [usize; 2]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() / 2 * 3);
    for pair in data.as_chunks::<4>().0 {
        // The color is at the two other offsets.
        let [u, v] = y_at.map(|at| i32::from(pair[at ^ 1]) - 128);
        for at in y_at {
            let y = (i32::from(pair[at]) - 16).max(0) * 1_220_542 + (1 << 19);
            let rgb = [y + 1_673_527 * v, y - 852_492 * v - 409_993 * u, y + 2_116_026 * u];
            #[expect(clippy::cast_sign_loss, reason = "clamped")]
            out.extend(rgb.map(|color| (color >> 20).clamp(0, 255) as u8));
        }
    }
    out
}

/// Interpolates the two missing colors of each pixel of a Bayer pattern: the mean of the neighbors
/// that have the color. `red` is the position of red in each square of 2 x 2 pixels.
///
/// Example: rows of the pattern `rggb` alternate between R G R G and G B G B. At a red pixel, green
/// is the mean of the four pixels beside, above and below it, and blue is the mean of the four
/// diagonal pixels. Beyond its border, the image is mirrored, which continues the pattern.
fn demosaiced(mosaic: &[u8], (width, height): (u32, u32), sample_len: usize, red: (u32, u32)) -> Vec<u8> {
    let (columns, rows) = (width as usize, height as usize);
    let sample = |x: usize, y: usize| {
        let at = (y * columns + x) * sample_len;
        mosaic[at..at + sample_len].iter().fold(0_u32, |value, byte| value << 8 | u32::from(*byte))
    };
    let beside = |at: usize, count: usize| {
        let before = if at == 0 { 1.min(count - 1) } else { at - 1 };
        let after = if at + 1 == count { at.saturating_sub(1) } else { at + 1 };
        [before, after]
    };
    let mut out = Vec::with_capacity(mosaic.len() * 3);
    for y in 0..rows {
        let [above, below] = beside(y, rows);
        let is_red_row = y % 2 == red.1 as usize;
        for x in 0..columns {
            let [left, right] = beside(x, columns);
            let own = sample(x, y);
            let horizontal = sample(left, y) + sample(right, y);
            let vertical = sample(x, above) + sample(x, below);
            // `first` is the color that this row has besides green, and `second` is the other one.
            let [first, green, second] = if (x % 2 == red.0 as usize) == is_red_row {
                let diagonal = [(left, above), (right, above), (left, below), (right, below)];
                let diagonal: u32 = diagonal.map(|(x, y)| sample(x, y)).iter().sum();
                [own, (horizontal + vertical + 2) / 4, (diagonal + 2) / 4]
            } else {
                [horizontal.div_ceil(2), own, vertical.div_ceil(2)]
            };
            let rgb = if is_red_row { [first, green, second] } else { [second, green, first] };
            for color in rgb {
                out.extend(&color.to_be_bytes()[4 - sample_len..]);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(encoding: &str, size: (u32, u32), step: usize, data: &[u8]) -> Option<Vec<u8>> {
        let image = RawImage { encoding, size, step, is_big_endian: false, data };
        Some(image.pixels(Bayer::Color)?.data)
    }

    #[test]
    fn padding_of_rows_is_removed_and_red_is_first() {
        let padded = [1, 2, 3, 4, 5, 6, 0, 7, 8, 9, 10, 11, 12];
        let rgb = Some(vec![3, 2, 1, 6, 5, 4, 9, 8, 7, 12, 11, 10]);
        assert_eq!(decoded("bgr8", (2, 2), 7, &padded), rgb);
        assert_eq!(decoded("8UC3", (2, 2), 7, &padded), rgb);
        assert_eq!(
            decoded("bgra16", (1, 1), 8, &[1, 2, 3, 4, 5, 6, 7, 8]),
            Some(vec![6, 5, 4, 3, 2, 1, 8, 7])
        );
        assert_eq!(decoded("mono16", (1, 2), 2, &[1, 2, 3, 4]), Some(vec![2, 1, 4, 3]));
    }

    #[test]
    fn values_have_the_most_significant_byte_first() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        let big = RawImage { encoding: "64FC1", size: (1, 1), step: 8, is_big_endian: true, data: &bytes };
        assert_eq!(big.pixels(Bayer::Color).unwrap().data, bytes);
        assert_eq!(decoded("64FC1", (1, 1), 8, &bytes), Some(vec![8, 7, 6, 5, 4, 3, 2, 1]));
        assert_eq!(decoded("32FC2", (1, 1), 8, &bytes), Some(vec![4, 3, 2, 1, 8, 7, 6, 5]));
    }

    #[test]
    fn invalid_sizes_are_not_images() {
        assert_eq!(decoded("mono8", (2, 2), 2, &[1, 2, 3]), None);
        assert_eq!(decoded("rgb8", (2, 1), 5, &[0; 6]), None);
        assert_eq!(decoded("mono8", (0, 0), 0, &[]), None);
        assert_eq!(decoded("mono8", (1, 0), 1, &[]), None);
        assert_eq!(decoded("yuv422", (1, 1), 2, &[0; 2]), None);
        assert_eq!(decoded("64FC512", (u32::MAX, u32::MAX), usize::MAX, &[0; 2]), None);
        for encoding in ["8UC0", "8UC513", "8UCx", "8UC-1", "9UC1", "bayer_rgbg8", "mono", "rgb32", ""] {
            assert_eq!(decoded(encoding, (1, 1), 16, &[0; 16]), None, "{encoding}");
        }
    }

    #[test]
    fn both_orders_of_yuv_have_the_same_colors() {
        // Saturated red, and white of half the brightness, which share the color of red.
        let red = decoded("yuv422", (2, 1), 4, &[90, 81, 240, 16]).unwrap();
        assert_eq!(red, [254, 0, 0, 179, 0, 0]);
        assert_eq!(decoded("yuv422_yuy2", (2, 1), 4, &[81, 90, 16, 240]), Some(red));
        assert_eq!(decoded("yuv422", (2, 1), 4, &[128, 235, 128, 0]), Some(vec![255, 255, 255, 0, 0, 0]));
    }

    /// Each channel is constant, so interpolation must return the same color everywhere.
    #[test]
    fn colors_are_interpolated_from_the_pixels_of_each_pattern() {
        let color = [200_u8, 100, 50];
        for pattern in ["rggb", "bggr", "gbrg", "grbg"] {
            let letter = |x: usize, y: usize| "rgb".find(&pattern[y % 2 * 2 + x % 2..][..1]).unwrap();
            let places = (0..15).map(|i| letter(i % 5, i / 5));
            let mosaic: Vec<u8> = places.clone().map(|i| color[i]).collect();
            let found = decoded(&format!("bayer_{pattern}8"), (5, 3), 5, &mosaic);
            assert_eq!(found, Some(color.repeat(15)), "{pattern}");
            let wide = color.map(|value| u16::from(value) * 257 - 1);
            let mosaic: Vec<u8> = places.flat_map(|i| wide[i].to_le_bytes()).collect();
            let found = decoded(&format!("bayer_{pattern}16"), (5, 3), 10, &mosaic);
            assert_eq!(found, Some(wide.map(u16::to_be_bytes).concat().repeat(15)), "{pattern}");
        }
        let raw =
            RawImage { encoding: "bayer_rggb8", size: (2, 1), step: 2, is_big_endian: false, data: &[1, 2] };
        assert_eq!(raw.pixels(Bayer::Mosaic).unwrap().data, [1, 2]);
        // An image of one pixel has no neighbors.
        assert_eq!(decoded("bayer_rggb8", (1, 1), 1, &[9]), Some(vec![9, 9, 9]));
    }

    #[test]
    fn missing_colors_are_means_of_the_neighbors() {
        let mosaic = [10, 20, 30, 40, 50, 60, 70, 80, 90];
        let found = decoded("bayer_rggb8", (3, 3), 3, &mosaic).unwrap();
        // The pixel in the middle is blue.
        assert_eq!(found[12..15], [(10 + 30 + 70 + 90) / 4, (20 + 40 + 60 + 80) / 4, 50]);
        // The second pixel of the first row is green between two reds. The image is mirrored above.
        assert_eq!(found[3..6], [20, 20, 50]);
    }
}
