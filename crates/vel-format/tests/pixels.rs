//! Decoded images are compared with small images whose pixels are known. Headers that contradict
//! the image must be detected.
#![cfg(feature = "pixels")]

use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, GrayImage, Rgb, RgbImage};
use rovelog_core::{LogReader, ReadOptions};
use vel_format::images::{Encoding, JpegHeader, PixelLimits};
use vel_format::{Kind, Payload, VelError, VelReader};

/// Returns a log with a single image.
fn log(compressed: u32, (width, height): (i32, i32), data: &[u8]) -> VelReader {
    let len = u32::try_from(data.len()).unwrap();
    let mut bytes = b"\xa4VEL\x01\x00\x01\x00\x00\x00\x00\x00".to_vec();
    bytes.extend((17 + 20 + len).to_le_bytes());
    bytes.push(0x49);
    bytes.extend(0x0001_09C9_u32.to_le_bytes());
    bytes.extend(100_i32.to_le_bytes());
    bytes.extend(1.5_f64.to_le_bytes());
    bytes.extend(7_i32.to_le_bytes());
    bytes.extend(compressed.to_le_bytes());
    bytes.extend(width.to_le_bytes());
    bytes.extend(height.to_le_bytes());
    bytes.extend(len.to_le_bytes());
    bytes.extend(data);
    VelReader::new(bytes.into(), &ReadOptions::default()).expect("a log that opens")
}

/// Returns the encoding of the image in a log, its decoded pixels, and its PNG file.
fn pixels(log: &VelReader, limits: PixelLimits) -> (Encoding, Result<(DynamicImage, Vec<u8>), VelError>) {
    let (message, payload) = log.payloads(Kind::Image).next().expect("an image");
    let Payload::Image(image) = payload else { panic!("{payload:?}") };
    let both = image.pixels(&message, limits).and_then(|made| Ok((made, image.png(&message, limits)?)));
    (image.encoding(), both)
}

fn decoded(log: &VelReader, encoding: Encoding) -> DynamicImage {
    let (told, made) = pixels(log, PixelLimits::default());
    let (image, png) = made.expect("pixels");
    assert_eq!(told, encoding);
    let again = image::load_from_memory_with_format(&png, image::ImageFormat::Png).expect("a PNG");
    assert_eq!(again, image, "a PNG loses nothing");
    image
}

fn jpeg(picture: &DynamicImage) -> Vec<u8> {
    let mut out = Vec::new();
    picture.write_with_encoder(JpegEncoder::new_with_quality(&mut out, 95)).expect("a JPEG");
    out
}

/// Returns an image of two halves, each with a single color. If it is stored as a JPEG, its pixels
/// hardly change.
fn halves() -> RgbImage {
    RgbImage::from_fn(16, 8, |x, _| if x < 8 { Rgb([200, 40, 40]) } else { Rgb([30, 60, 180]) })
}

/// Returns the names of all diagnostics of a log.
fn diagnostic_names(log: &VelReader) -> Vec<&'static str> {
    log.diagnostics().list().iter().map(|found| found.rule.name).collect()
}

#[test]
fn raw_layouts_are_recognized_by_their_length() {
    let grey = decoded(&log(0, (3, 2), &[0, 1, 2, 253, 254, 255]), Encoding::Grey);
    assert_eq!(grey, GrayImage::from_raw(3, 2, vec![0, 1, 2, 253, 254, 255]).unwrap().into());

    let rgb = decoded(&log(0, (2, 1), &[10, 20, 30, 40, 50, 60]), Encoding::Rgb);
    assert_eq!(rgb.to_rgb8().get_pixel(1, 0), &Rgb([40, 50, 60]));

    // In BT.601, U = V = 128 is gray. With V = 255, red is at its maximum, and green is reduced by
    // 0.714 * 127.
    let yuyv = decoded(&log(0, (2, 2), &[0, 128, 255, 128, 100, 128, 200, 255]), Encoding::Yuyv).to_rgb8();
    let row = |y: u32| [0, 1].map(|x| yuyv.get_pixel(x, y).0);
    assert_eq!(row(0), [[0; 3], [255; 3]]);
    assert_eq!(row(1), [[255, 9, 100], [255, 109, 200]]);

    for (size, data) in [((2, 2), vec![1; 7]), ((0, 2), vec![1]), ((-1, 2), vec![1; 2])] {
        let (encoding, made) = pixels(&log(0, size, &data), PixelLimits::default());
        assert_eq!(encoding, Encoding::Unknown, "{size:?}");
        assert!(matches!(made, Err(VelError::BadImage { at: 12, .. })), "{size:?}");
    }
}

#[test]
fn the_jpeg_header_takes_precedence_over_the_fields() {
    let data = jpeg(&halves().into());
    // If data starts like a JPEG file, it is read as a JPEG, even if the message states that it is
    // not compressed.
    let halves = halves();
    for (compressed, size, words) in
        [(1, (16, 8), &[][..]), (1, (640, 480), &["image_size"][..]), (0, (3, 3), &["image_size"][..])]
    {
        let log = log(compressed, size, &data);
        assert_eq!(diagnostic_names(&log), words, "{size:?}");
        let made = decoded(&log, Encoding::JPEG).to_rgb8();
        assert_eq!(made.dimensions(), (16, 8));
        let off = made
            .pixels()
            .zip(halves.pixels())
            .map(|(a, b)| a.0.iter().zip(b.0).map(|(a, b)| a.abs_diff(b)).max().unwrap_or(0));
        assert!(off.max().unwrap() <= 8, "colours are where they were");
    }
    let header = JpegHeader::read(&data).unwrap();
    assert_eq!((header.width, header.height, header.components), (16, 8, 3));
    let grey = jpeg(&DynamicImage::ImageLuma8(GrayImage::from_pixel(5, 9, image::Luma([77]))));
    assert_eq!(
        JpegHeader::read(&grey).map(|found| (found.width, found.height, found.components)),
        Ok((5, 9, 1))
    );
    let made = decoded(&log(1, (5, 9), &grey), Encoding::JPEG).to_luma8();
    assert!(made.pixels().all(|pixel| pixel.0[0].abs_diff(77) <= 1));
}

#[test]
fn data_that_is_not_a_jpeg_is_reported() {
    let log = log(1, (16, 8), b"no picture at all");
    assert_eq!(diagnostic_names(&log), ["image_header"]);
    assert_eq!(log.info().records, 1, "the message stays");
    let (_, made) = pixels(&log, PixelLimits::default());
    assert!(matches!(made, Err(VelError::BadImage { at: 12, .. })), "{made:?}");
}

/// The size in the image header is checked before the image is decoded.
#[test]
fn a_size_beyond_the_limits_is_refused() {
    let mut data = jpeg(&halves().into());
    let at = data.windows(2).position(|pair| pair == [0xFF, 0xC0]).expect("a frame header");
    data[at + 5..at + 9].copy_from_slice(&[0xFF; 4]);
    let (_, made) = pixels(&log(1, (65_535, 65_535), &data), PixelLimits::default());
    assert!(matches!(made, Err(VelError::ImageTooLarge { at: 12, pixels: 4_294_836_225, .. })), "{made:?}");
    let small = PixelLimits { pixels: 127, ..PixelLimits::default() };
    let (_, made) = pixels(&log(1, (16, 8), &jpeg(&halves().into())), small);
    assert!(matches!(made, Err(VelError::ImageTooLarge { pixels: 128, limit: 127, .. })), "{made:?}");
}

/// A small file can declare a huge image. So the limits of the full image also apply to previews.
#[test]
fn a_preview_has_the_limits_of_the_image() {
    let mut data = jpeg(&halves().into());
    let at = data.windows(2).position(|pair| pair == [0xFF, 0xC0]).expect("a frame header");
    data[at + 5..at + 9].copy_from_slice(&[0xFF; 4]);
    let log = log(1, (65_535, 65_535), &data);
    let (message, payload) = log.payloads(Kind::Image).next().expect("an image");
    let Payload::Image(image) = payload else { panic!("{payload:?}") };
    let made = image.preview(&message, 8, PixelLimits::default());
    assert!(matches!(made, Err(VelError::ImageTooLarge { at: 12, pixels: 4_294_836_225, .. })), "{made:?}");
    let bytes = PixelLimits { pixels: u64::MAX, bytes: 1 << 20 };
    let made = image.preview(&message, 8, bytes);
    let Err(VelError::BadImage { why, .. }) = made else { panic!("{made:?}") };
    assert_eq!(why, "its pixels need 201326592 bytes, but the limit is 1048576", "nothing was decoded");
}

#[test]
fn a_preview_is_a_fraction_of_the_image() {
    let picture = RgbImage::from_pixel(64, 32, Rgb([90, 160, 30]));
    let log = log(1, (64, 32), &jpeg(&picture.into()));
    let (message, payload) = log.payloads(Kind::Image).next().expect("an image");
    let Payload::Image(image) = payload else { panic!("{payload:?}") };
    let small = image.preview(&message, 4, PixelLimits::default()).expect("a preview").to_rgb8();
    assert_eq!(small.dimensions(), (8, 4));
    let near = |pixel: &Rgb<u8>| pixel.0.iter().zip([90, 160, 30]).all(|(a, b)| a.abs_diff(b) <= 4);
    assert!(small.pixels().all(near));
}
