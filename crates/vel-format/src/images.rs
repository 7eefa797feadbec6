//! Images: the JPEG as it lies in the log, its header, and pixels. Decisions 21 and 22 of
//! docs/formats/vel.md.

use rovelog_core::Rule;

use crate::diagnostics as rules;
use crate::message::ImageRef;

/// What the header of a JPEG says.
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
    /// Reads the header of a JPEG, without decoding anything behind it.
    ///
    /// # Errors
    /// Where there is no header that can be read; why.
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

/// What is wrong with an image as its header shows it.
pub(crate) fn remark(image: &ImageRef<'_>) -> Option<(&'static Rule, String)> {
    if image.head.is_compressed.get() == 0 {
        return None;
    }
    let (width, height) = (image.head.width.get(), image.head.height.get());
    match JpegHeader::read(image.data) {
        Ok(jpeg) if (i32::from(jpeg.width), i32::from(jpeg.height)) == (width, height) => None,
        Ok(jpeg) => Some((
            &rules::IMAGE_SIZE,
            format!("the message says {width}x{height}, the JPEG is {}x{}", jpeg.width, jpeg.height),
        )),
        Err(why) => Some((&rules::IMAGE_HEADER, format!("no JPEG header can be read: {why}"))),
    }
}
