//! Formats of image files that are stored in logs.

/// Format of an image file. The format is detected from the first bytes of the file, because a log
/// may state a wrong format.
///
/// ```
/// use rovelog_core::internal::media::ImageFormat;
///
/// assert_eq!(ImageFormat::of(b"\x89PNG\r\n\x1a\n"), Some(ImageFormat::Png));
/// assert_eq!(ImageFormat::of(b"text"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageFormat {
    /// JPEG.
    Jpeg,
    /// PNG.
    Png,
    /// Windows bitmap.
    Bmp,
    /// WebP.
    WebP,
    /// TIFF.
    Tiff,
    /// JPEG 2000, as a file or as a codestream without a file header.
    Jp2,
    /// Netpbm: PBM, PGM or PPM.
    Pnm,
}

impl ImageFormat {
    /// Detects the format of an image from its first bytes. Returns `None` if the format is
    /// unknown.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            // Data of another kind can also start with the two letters `BM`. Therefore, the size of
            // the second header must also match. It has only a few valid values.
            [b'B', b'M', ..]
                if matches!(bytes.get(14..18), Some([12 | 40 | 52 | 56 | 64 | 108 | 124, 0, 0, 0])) =>
            {
                Some(Self::Bmp)
            }
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::WebP),
            [b'I', b'I', 42, 0, ..] | [b'M', b'M', 0, 42, ..] => Some(Self::Tiff),
            [0, 0, 0, 12, b'j', b'P', b' ', b' ', ..] | [0xff, 0x4f, 0xff, 0x51, ..] => Some(Self::Jp2),
            [b'P', b'1'..=b'6', b' ' | b'\t' | b'\r' | b'\n', b'0'..=b'9' | b'#', ..] => Some(Self::Pnm),
            _ => None,
        }
    }

    /// Returns the name of the format as used in media types.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jpeg => "jpeg",
            Self::Png => "png",
            Self::Bmp => "bmp",
            Self::WebP => "webp",
            Self::Tiff => "tiff",
            Self::Jp2 => "jp2",
            Self::Pnm => "pnm",
        }
    }

    /// Returns the extension of files in this format, without the dot.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Jpeg => "jpg",
            Self::Tiff => "tif",
            other => other.name(),
        }
    }

    /// Returns the media type of the format, such as `image/jpeg`.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::Bmp => "image/bmp",
            Self::WebP => "image/webp",
            Self::Tiff => "image/tiff",
            Self::Jp2 => "image/jp2",
            Self::Pnm => "image/x-portable-anymap",
        }
    }

    /// Returns whether web browsers can show images of this format.
    pub const fn is_for_browsers(self) -> bool {
        !matches!(self, Self::Tiff | Self::Jp2 | Self::Pnm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_formats_are_detected() {
        let bitmap = [&b"BM"[..], &[0; 12], &40_u32.to_le_bytes()].concat();
        for (bytes, format) in [
            (&b"\xff\xd8\xff\xe0"[..], Some(ImageFormat::Jpeg)),
            (b"\x89PNG\r\n\x1a\n..", Some(ImageFormat::Png)),
            (&bitmap, Some(ImageFormat::Bmp)),
            (b"RIFF\x10\0\0\0WEBPVP8 ", Some(ImageFormat::WebP)),
            (b"II*\0", Some(ImageFormat::Tiff)),
            (b"MM\0*", Some(ImageFormat::Tiff)),
            (b"\0\0\0\x0cjP  \r\n\x87\n", Some(ImageFormat::Jp2)),
            (b"\xff\x4f\xff\x51\0\x2f", Some(ImageFormat::Jp2)),
            (b"P5\n640 480\n255\n", Some(ImageFormat::Pnm)),
            (b"P5 is no image", None),
            (b"BMW is no bitmap, nor is this text", None),
            (b"RIFF\x10\0\0\0WAVEfmt ", None),
            (b"\xff\xd8", None),
            (b"", None),
        ] {
            assert_eq!(ImageFormat::of(bytes), format, "{bytes:?}");
        }
        assert_eq!(ImageFormat::Tiff.extension(), "tif");
        assert_eq!((ImageFormat::Jpeg.name(), ImageFormat::WebP.media_type()), ("jpeg", "image/webp"));
    }
}
