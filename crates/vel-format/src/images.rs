//! Images in a log: the stored image file, the header of a JPEG, and decoded pixels. See the rules
//! D21 and D22 of docs/formats/vel.md.

use rovelog_core::Rule;
use rovelog_core::internal::media::ImageFormat;

use crate::diagnostics as rules;
use crate::wire::ImageData;

/// The header of a JPEG image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JpegHeader {
    /// Width of the image in pixels.
    pub width: u16,
    /// Height of the image in pixels.
    pub height: u16,
    /// Number of color components: 1 for a gray image, 3 or 4 for a color image.
    pub components: u8,
}

impl JpegHeader {
    /// Reads the header of a JPEG without decoding the image.
    ///
    /// # Errors
    /// Returns the reason as text if the JPEG has no readable header.
    pub fn read(jpeg: &[u8]) -> Result<Self, String> {
        let mut decoder = jpeg_decoder::Decoder::new(jpeg);
        decoder.read_info().map_err(|error| error.to_string())?;
        let info = decoder.info().ok_or_else(|| "the JPEG has no frame header".to_owned())?;
        let components = match info.pixel_format {
            jpeg_decoder::PixelFormat::L8 | jpeg_decoder::PixelFormat::L16 => 1,
            jpeg_decoder::PixelFormat::RGB24 => 3,
            jpeg_decoder::PixelFormat::CMYK32 => 4,
        };
        Ok(Self { width: info.width, height: info.height, components })
    }
}

/// Compares the fields of an image message with the header of its JPEG. Returns a rule and a
/// message if the two contradict each other, or if the header cannot be read.
pub(crate) fn remark(image: &ImageData<'_>) -> Option<(&'static Rule, String)> {
    match image.encoding() {
        Encoding::File(ImageFormat::Jpeg) => {}
        Encoding::File(other) => {
            let why = format!("the image has the format {} instead of JPEG", other.name());
            return Some((&rules::IMAGE_HEADER, why));
        }
        _ if image.is_compressed.get() => {}
        _ => return None,
    }
    let (width, height) = (image.width.get(), image.height.get());
    match JpegHeader::read(&image.data) {
        Ok(jpeg) if (i32::from(jpeg.width), i32::from(jpeg.height)) == (width, height) => None,
        Ok(jpeg) => Some((
            &rules::IMAGE_SIZE,
            format!(
                "the message states {width}x{height}, but the JPEG has {}x{} pixels, which are used",
                jpeg.width, jpeg.height
            ),
        )),
        Err(why) => Some((&rules::IMAGE_HEADER, format!("the JPEG header cannot be read: {why}"))),
    }
}

/// Encoding of the data of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// The data is an image file, which is a JPEG in most logs.
    File(ImageFormat),
    /// Each pixel has one byte of brightness.
    Grey,
    /// Each pixel has two bytes: the brightness and one color component.
    Yuyv,
    /// Each pixel has three bytes. It is unknown whether red or blue comes first.
    Rgb,
    /// The number of bytes per pixel is not known.
    Unknown,
}

impl Encoding {
    /// The encoding of an image that is a JPEG file.
    pub const JPEG: Self = Self::File(ImageFormat::Jpeg);

    /// Returns the name of the encoding in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::File(format) => format.name(),
            Self::Grey => "mono8",
            Self::Yuyv => "yuyv",
            Self::Rgb => "rgb8",
            Self::Unknown => "unknown",
        }
    }
}

impl ImageData<'_> {
    /// Returns the encoding of the image data. If the data starts with the magic number of an image
    /// file, it is an image file. If it does not, the number of bytes per pixel decides.
    pub fn encoding(&self) -> Encoding {
        if let Some(format) = ImageFormat::of(&self.data) {
            return Encoding::File(format);
        }
        // The message states the number of pixels, but not the number of bytes per pixel.
        let side = |n: i32| u64::try_from(n).unwrap_or(0);
        let pixels = side(self.width.get()) * side(self.height.get());
        match self.data.len() as u64 {
            _ if pixels == 0 || self.is_compressed.get() => Encoding::Unknown,
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

    /// Limits for decoding images, which protect against exhausting the memory.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PixelLimits {
        /// Maximum number of pixels in an image. The default is 64 Mi.
        pub pixels: u64,
        /// Maximum memory in bytes that a decoder may use. The default is 256 MiB.
        pub bytes: u64,
    }

    impl Default for PixelLimits {
        fn default() -> Self {
            Self { pixels: 64 << 20, bytes: 256 << 20 }
        }
    }

    impl ImageData<'_> {
        /// Decodes the image after its size has been checked. If the crate `image` cannot decode a
        /// JPEG, `jpeg-decoder` is tried. `message` is the message that contains the image, which
        /// errors refer to.
        ///
        /// # Errors
        /// Returns an error if the image cannot be decoded or exceeds the limits.
        pub fn pixels(&self, message: &Message<'_>, limits: PixelLimits) -> Result<DynamicImage, VelError> {
            let bad = |why: String| VelError::BadImage { at: message.offset, why };
            let (width, height) = self.size_within(message, limits)?;
            let odd = || bad("its length does not match its size".to_owned());
            match self.encoding() {
                Encoding::JPEG => jpeg(&self.data, limits).map_err(bad),
                Encoding::File(other) => Err(bad(format!("{} is not decoded", other.name()))),
                Encoding::Grey => {
                    Ok(GrayImage::from_raw(width, height, self.data.to_vec()).ok_or_else(odd)?.into())
                }
                Encoding::Rgb => {
                    Ok(RgbImage::from_raw(width, height, self.data.to_vec()).ok_or_else(odd)?.into())
                }
                Encoding::Yuyv => {
                    Ok(RgbImage::from_raw(width, height, yuyv(&self.data)).ok_or_else(odd)?.into())
                }
                Encoding::Unknown => Err(bad("the layout of the image is unknown".to_owned())),
            }
        }

        /// Returns the width and height of the image in pixels. Returns an error if they exceed the
        /// limits.
        fn size_within(&self, message: &Message<'_>, limits: PixelLimits) -> Result<(u32, u32), VelError> {
            let at = message.offset;
            let (width, height) = self.size().map_err(|why| VelError::BadImage { at, why })?;
            let pixels = u64::from(width) * u64::from(height);
            // Without this check, a message of a few bytes could declare an image that exhausts the
            // memory.
            if pixels > limits.pixels {
                return Err(VelError::ImageTooLarge { at, pixels, limit: limits.pixels });
            }
            Ok((width, height))
        }

        /// Returns the width and height of the image in pixels. They come from the JPEG header, or
        /// from the fields of the message if the image is not a JPEG.
        fn size(&self) -> Result<(u32, u32), String> {
            if self.encoding() == Encoding::JPEG {
                let header = JpegHeader::read(&self.data)?;
                return Ok((header.width.into(), header.height.into()));
            }
            let side = |n: i32| u32::try_from(n).map_err(|_| "its size is negative".to_owned());
            Ok((side(self.width.get())?, side(self.height.get())?))
        }

        /// Decodes a JPEG at a reduced size, which is faster than decoding it completely. The
        /// reduced size is an integer fraction of the full size, down to an eighth, and is at least
        /// `side` pixels. The limits apply to the full size.
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

        /// Encodes the image as a PNG file.
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
        let info = decoder.info().ok_or("the JPEG has no frame header")?;
        // The decoder checks its limit only after decoding. For a header of a few bytes that
        // declares a huge image, this would take half a minute.
        let pixels = u64::from(info.width) * u64::from(info.height);
        let bytes = pixels * info.pixel_format.pixel_bytes() as u64;
        if bytes > limits.bytes {
            return Err(format!("its pixels need {bytes} bytes, but the limit is {}", limits.bytes));
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
        made.ok_or_else(|| "the image has fewer pixels than its header states".to_owned())
    }

    /// Converts YUYV pixels to RGB according to ITU-R BT.601 with the full range of values, which
    /// cameras use.
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
