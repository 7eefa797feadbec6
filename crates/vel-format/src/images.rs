//! Images: the JPEG as stored in the log, its header, and pixels. Rules D21 and D22 of
//! docs/formats/vel.md.

use rovelog_core::Rule;

use crate::diagnostics as rules;
use crate::wire::ImageData;

/// The header of a JPEG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JpegHeader {
    /// Pixels.
    pub width: u16,
    /// Pixels.
    pub height: u16,
    /// Grey, colour, or four components.
    pub components: u8,
}

impl JpegHeader {
    /// Reads the header of a JPEG without decoding the image.
    ///
    /// # Errors
    /// Returns the reason, as text, if there is no readable header.
    pub fn read(jpeg: &[u8]) -> Result<Self, String> {
        let mut decoder = jpeg_decoder::Decoder::new(jpeg);
        decoder.read_info().map_err(|error| error.to_string())?;
        let info = decoder.info().ok_or_else(|| "no frame header".to_owned())?;
        let components = match info.pixel_format {
            jpeg_decoder::PixelFormat::L8 | jpeg_decoder::PixelFormat::L16 => 1,
            jpeg_decoder::PixelFormat::RGB24 => 3,
            jpeg_decoder::PixelFormat::CMYK32 => 4,
        };
        Ok(Self { width: info.width, height: info.height, components })
    }
}

/// Returns what is wrong with an image by its header.
pub(crate) fn remark(image: &ImageData<'_>) -> Option<(&'static Rule, String)> {
    if image.encoding() != Encoding::Jpeg {
        return None;
    }
    let (width, height) = (image.width.get(), image.height.get());
    match JpegHeader::read(&image.data) {
        Ok(jpeg) if (i32::from(jpeg.width), i32::from(jpeg.height)) == (width, height) => None,
        Ok(jpeg) => Some((
            &rules::IMAGE_SIZE,
            format!("the message states {width}x{height}, but the JPEG is {}x{}", jpeg.width, jpeg.height),
        )),
        Err(why) => Some((&rules::IMAGE_HEADER, format!("no JPEG header can be read: {why}"))),
    }
}

/// The encoding of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// A JPEG.
    Jpeg,
    /// One byte a pixel.
    Grey,
    /// Two bytes a pixel: brightness, and one colour component.
    Yuyv,
    /// Three bytes a pixel; the order of red and blue is unknown.
    Rgb,
    /// Bytes that match none of these.
    Unknown,
}

impl Encoding {
    /// Returns the word used in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jpeg => "jpeg",
            Self::Grey => "mono8",
            Self::Yuyv => "yuyv",
            Self::Rgb => "rgb8",
            Self::Unknown => "unknown",
        }
    }
}

impl ImageData<'_> {
    /// Returns the encoding: JPEG if the message says so or its data starts like one, else by its
    /// length.
    pub fn encoding(&self) -> Encoding {
        if self.is_compressed.get() || self.data.starts_with(&[0xFF, 0xD8, 0xFF]) {
            return Encoding::Jpeg;
        }
        let side = |n: i32| u64::try_from(n).unwrap_or(0);
        let pixels = side(self.width.get()) * side(self.height.get());
        match self.data.len() as u64 {
            _ if pixels == 0 => Encoding::Unknown,
            len if len == pixels => Encoding::Grey,
            len if len == 2 * pixels && pixels.is_multiple_of(2) => Encoding::Yuyv,
            len if len == 3 * pixels => Encoding::Rgb,
            _ => Encoding::Unknown,
        }
    }
}

#[cfg(feature = "pixels")]
mod pixels {
    use std::io::Cursor;

    use image::{DynamicImage, GrayImage, ImageFormat, RgbImage};

    use super::{Encoding, JpegHeader};
    use crate::error::VelError;
    use crate::message::Message;
    use crate::wire::ImageData;

    /// Limits of decoding.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PixelLimits {
        /// Maximum number of pixels: 64 million.
        pub pixels: u64,
        /// Maximum memory of a decoder: 256 MiB.
        pub bytes: u64,
    }

    impl Default for PixelLimits {
        fn default() -> Self {
            Self { pixels: 64 << 20, bytes: 256 << 20 }
        }
    }

    impl ImageData<'_> {
        /// Decodes the image; its size is checked before. If `image` fails, `jpeg-decoder` is
        /// tried. `message` is named in errors.
        ///
        /// # Errors
        /// Returns an error if the image cannot be decoded or exceeds the limits.
        pub fn pixels(&self, message: &Message<'_>, limits: PixelLimits) -> Result<DynamicImage, VelError> {
            let bad = |why: String| VelError::BadImage { at: message.offset, why };
            let (width, height) = self.size_within(message, limits)?;
            let odd = || bad("its length does not match its size".to_owned());
            match self.encoding() {
                Encoding::Jpeg => jpeg(&self.data, limits).map_err(bad),
                Encoding::Grey => {
                    Ok(GrayImage::from_raw(width, height, self.data.to_vec()).ok_or_else(odd)?.into())
                }
                Encoding::Rgb => {
                    Ok(RgbImage::from_raw(width, height, self.data.to_vec()).ok_or_else(odd)?.into())
                }
                Encoding::Yuyv => {
                    Ok(RgbImage::from_raw(width, height, yuyv(&self.data)).ok_or_else(odd)?.into())
                }
                Encoding::Unknown => Err(bad("unknown layout".to_owned())),
            }
        }

        /// Returns the size, if it is within the limits.
        fn size_within(&self, message: &Message<'_>, limits: PixelLimits) -> Result<(u32, u32), VelError> {
            let at = message.offset;
            let (width, height) = self.size().map_err(|why| VelError::BadImage { at, why })?;
            let pixels = u64::from(width) * u64::from(height);
            if pixels > limits.pixels {
                return Err(VelError::ImageTooLarge { at, pixels, limit: limits.pixels });
            }
            Ok((width, height))
        }

        /// Returns the size in pixels: that of the JPEG, or else the fields.
        fn size(&self) -> Result<(u32, u32), String> {
            if self.encoding() == Encoding::Jpeg {
                let header = JpegHeader::read(&self.data)?;
                return Ok((header.width.into(), header.height.into()));
            }
            let side = |n: i32| u32::try_from(n).map_err(|_| "its size is negative".to_owned());
            Ok((side(self.width.get())?, side(self.height.get())?))
        }

        /// Decodes a small JPEG image of at least `side` pixels, an integer fraction of the size
        /// down to an eighth, which is faster than the whole. The limits are those of the whole
        /// image.
        ///
        /// # Errors
        /// Returns an error if the JPEG cannot be decoded or exceeds the limits.
        pub fn preview(
            &self,
            message: &Message<'_>,
            side: u16,
            limits: PixelLimits,
        ) -> Result<DynamicImage, VelError> {
            let bad = |why: String| VelError::BadImage { at: message.offset, why };
            self.size_within(message, limits)?;
            let mut decoder = jpeg_decoder::Decoder::new(self.data.0);
            decoder.scale(side, side).map_err(|error| bad(error.to_string()))?;
            decoded(decoder, limits).map_err(bad)
        }

        /// Encodes the image as PNG.
        ///
        /// # Errors
        /// Returns the errors of [`pixels`](Self::pixels).
        pub fn png(&self, message: &Message<'_>, limits: PixelLimits) -> Result<Vec<u8>, VelError> {
            let mut out = Cursor::new(Vec::new());
            let bad =
                |error: image::ImageError| VelError::BadImage { at: message.offset, why: error.to_string() };
            self.pixels(message, limits)?.write_to(&mut out, ImageFormat::Png).map_err(bad)?;
            Ok(out.into_inner())
        }
    }

    fn jpeg(data: &[u8], limits: PixelLimits) -> Result<DynamicImage, String> {
        let mut reader = image::ImageReader::with_format(Cursor::new(data), ImageFormat::Jpeg);
        let mut allowed = image::Limits::default();
        allowed.max_alloc = Some(limits.bytes);
        reader.limits(allowed);
        reader
            .decode()
            .or_else(|first| decoded(jpeg_decoder::Decoder::new(data), limits).map_err(|_| first.to_string()))
    }

    fn decoded(
        mut decoder: jpeg_decoder::Decoder<&[u8]>,
        limits: PixelLimits,
    ) -> Result<DynamicImage, String> {
        decoder.read_info().map_err(|error| error.to_string())?;
        let info = decoder.info().ok_or("no frame header")?;
        // The decoder compares only when it has decoded: half a minute for a header of a few bytes.
        let pixels = u64::from(info.width) * u64::from(info.height);
        let bytes = pixels * info.pixel_format.pixel_bytes() as u64;
        if bytes > limits.bytes {
            return Err(format!("its pixels take {bytes} bytes, more than {}", limits.bytes));
        }
        decoder.set_max_decoding_buffer_size(usize::try_from(limits.bytes).unwrap_or(usize::MAX));
        let data = decoder.decode().map_err(|error| error.to_string())?;
        let (width, height) = (info.width.into(), info.height.into());
        let made = match info.pixel_format {
            jpeg_decoder::PixelFormat::L8 => GrayImage::from_raw(width, height, data).map(DynamicImage::from),
            jpeg_decoder::PixelFormat::RGB24 => {
                RgbImage::from_raw(width, height, data).map(DynamicImage::from)
            }
            other => return Err(format!("pixels of {other:?} are not supported")),
        };
        made.ok_or_else(|| "fewer pixels than its header states".to_owned())
    }

    /// Converts YUYV to RGB by ITU-R BT.601, full range, as cameras send it.
    fn yuyv(data: &[u8]) -> Vec<u8> {
        let (pairs, _) = data.as_chunks::<4>();
        let mut out = Vec::new();
        for [y0, u, y1, v] in pairs {
            let (u, v) = (f32::from(*u) - 128.0, f32::from(*v) - 128.0);
            for y in [y0, y1] {
                let y = f32::from(*y);
                let rgb = [y + 1.402 * v, y - 0.344_136 * u - 0.714_136 * v, y + 1.772 * u];
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
                out.extend(rgb.map(|c| c.round().clamp(0.0, 255.0) as u8));
            }
        }
        out
    }
}

#[cfg(feature = "pixels")]
pub use pixels::PixelLimits;
