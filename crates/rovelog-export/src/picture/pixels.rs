//! Image files of decoded pixels: PNG, and TIFF for values that PNG cannot store.

use rovelog::core::internal::media::ImageFormat;

use super::png;

/// Type of the values of an image. The numbers are those of the TIFF tag `SampleFormat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sample {
    /// Unsigned integer.
    UInt = 1,
    /// Signed integer.
    Int = 2,
    /// Floating-point number.
    Float = 3,
}

/// Decoded pixels without padding between the rows.
#[derive(Debug, PartialEq)]
pub(super) struct Pixels {
    /// Width and height of the image in pixels.
    pub(super) size: (u32, u32),
    /// Number of values of a pixel. Colors are red, green, blue, and alpha if it exists.
    pub(super) channel_count: u16,
    /// Type of the values.
    pub(super) sample: Sample,
    /// Size in bytes of a value.
    pub(super) sample_len: u16,
    /// All values, with the most significant byte of each first.
    pub(super) data: Vec<u8>,
}

impl Pixels {
    /// Writes an image file that has exactly these values.
    pub(super) fn file(&self) -> Result<(Vec<u8>, ImageFormat), String> {
        let color = match self.channel_count {
            1 => png::ColorType::Grayscale,
            3 => png::ColorType::Rgb,
            4 => png::ColorType::Rgba,
            _ => return self.tiff(),
        };
        let depth = match (self.sample, self.sample_len) {
            (Sample::UInt, 1) => png::BitDepth::Eight,
            (Sample::UInt, 2) => png::BitDepth::Sixteen,
            _ => return self.tiff(),
        };
        let file = png(self.size, color, depth, &self.data).map_err(|error| error.to_string())?;
        Ok((file, ImageFormat::Png))
    }

    /// Writes a big-endian TIFF file without compression. The file consists of these parts: the
    /// header of 8 bytes, the pixels, the directory with 12 bytes per tag, and the values of tags
    /// that need more than 4 bytes.
    fn tiff(&self) -> Result<(Vec<u8>, ImageFormat), String> {
        // The offsets in a TIFF file have 32 bits. The parts after the pixels are much smaller than
        // 1 MiB.
        let data_len = u32::try_from(self.data.len()).ok().filter(|len| *len < u32::MAX - (1 << 20));
        let data_len = data_len.ok_or("the image is too large for a TIFF file")?;
        let (width, height) = self.size;
        let channels = self.channel_count;
        let tags = [
            Tag::long(256, width),
            Tag::long(257, height),
            Tag::shorts(258, self.sample_len * 8, channels),
            Tag::shorts(259, 1, 1), // no compression
            Tag::shorts(262, 1, 1), // gray values, of which 0 is black
            Tag::long(273, 8),      // offset of the pixels
            Tag::shorts(277, channels, 1),
            Tag::long(278, height), // all rows are in one strip
            Tag::long(279, data_len),
            Tag::shorts(338, 0, channels - 1), // no meaning of further channels is stated
            Tag::shorts(339, self.sample as u16, channels),
        ];
        let tags: Vec<&Tag> = tags.iter().filter(|tag| tag.count > 0).collect();
        let tag_count = 10 + u16::from(channels > 1);
        let directory_at = 8 + data_len.next_multiple_of(2);
        let mut long_values_at = directory_at + 2 + 12 * u32::from(tag_count) + 4;
        let mut out = [&b"MM\0\x2a"[..], &directory_at.to_be_bytes(), &self.data].concat();
        out.resize(directory_at as usize, 0);
        out.extend(tag_count.to_be_bytes());
        for tag in &tags {
            out.extend([tag.id, tag.kind, 0, tag.count].map(u16::to_be_bytes).concat());
            if let Ok(value) = <[u8; 4]>::try_from(&*tag.value) {
                out.extend(value);
            } else {
                out.extend(long_values_at.to_be_bytes());
                long_values_at += 2 * u32::from(tag.count);
            }
        }
        out.extend([0; 4]);
        tags.iter().filter(|tag| tag.value.len() > 4).for_each(|tag| out.extend(&tag.value));
        Ok((out, ImageFormat::Tiff))
    }
}

/// Tag of a TIFF file.
struct Tag {
    id: u16,
    /// Number of the type: 3 for 16-bit integers, 4 for 32-bit integers.
    kind: u16,
    /// Number of values.
    count: u16,
    /// Values of the tag, padded to at least 4 bytes.
    value: Vec<u8>,
}

impl Tag {
    fn long(id: u16, value: u32) -> Self {
        Self { id, kind: 4, count: 1, value: value.to_be_bytes().to_vec() }
    }

    /// Returns a tag with `count` equal values.
    fn shorts(id: u16, value: u16, count: u16) -> Self {
        let mut bytes = value.to_be_bytes().repeat(count.into());
        bytes.resize(bytes.len().max(4), 0);
        Self { id, kind: 3, count, value: bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of channels decides whether the values of a tag fit into the directory.
    #[test]
    fn tiff_has_a_directory_and_all_pixels() {
        for channel_count in 1..=4 {
            let data: Vec<u8> = (0..16).take(4 * usize::from(channel_count)).collect();
            let pixels = Pixels { size: (1, 1), channel_count, sample: Sample::Float, sample_len: 4, data };
            let (file, format) = pixels.file().unwrap();
            assert_eq!(format, ImageFormat::Tiff);
            let at = 8 + pixels.data.len();
            assert_eq!(file[..8], [&b"MM\0*\0\0\0"[..], &[u8::try_from(at).unwrap()]].concat());
            assert_eq!(file[8..at], pixels.data);
            // The bits of each value are 32, in the directory or at the offset that it has.
            let bits = at + 2 + 2 * 12;
            let count = usize::from(channel_count);
            assert_eq!(file[bits..bits + 8], [1, 2, 0, 3, 0, 0, 0, u8::try_from(count).unwrap()]);
            let value = if count > 2 { usize::from(file[bits + 11]) } else { bits + 8 };
            assert_eq!(file[value..value + 2 * count], [0, 32].repeat(count));
            // The last tag is the sample format. Four zeros after it end the list of directories.
            let tag_count = usize::from(file[at + 1]);
            let last = at + 2 + 12 * (tag_count - 1);
            assert_eq!(file[last..last + 4], [1, 83, 0, 3]);
            assert_eq!(file[last + 12..last + 16], [0; 4]);
        }
    }
}
