//! Encodes point clouds, laser scans and images as messages of types that viewers can draw.

use prost::encoding;
use rovelog::Scalar;

use super::super::proto::{bytes, double, element, fixed32, message, uint};
use super::{pose, time};
use crate::pose::IDENTITY_POSE;

/// Writes a `foxglove.PointCloud`. `data` contains the points. Each point consists of the values of
/// `fields` without padding.
pub(in super::super) fn point_cloud(
    nanos: i64,
    frame: &str,
    fields: &[(&str, Scalar)],
    data: &[u8],
    out: &mut Vec<u8>,
) {
    time(1, nanos, out);
    bytes(2, frame.as_bytes(), out);
    pose(3, &IDENTITY_POSE, out);
    let mut offset = 0;
    for (name, ty) in fields {
        message(5, out, |out| {
            bytes(1, name.as_bytes(), out);
            fixed32(2, offset, out);
            // In the protobuf enum `PackedElementField.NumericType`, 3 is UINT16 and 7 is FLOAT32.
            uint(3, if *ty == Scalar::UInt16 { 3 } else { 7 }, out);
        });
        offset += if *ty == Scalar::UInt16 { 2 } else { 4 };
    }
    fixed32(4, offset, out);
    bytes(6, data, out);
}

/// Writes a `foxglove.LaserScan`. `start` and `end` are the angles of the first and last range in
/// radians. Ranges are in meters. A range is NaN if the scanner received no echo.
pub(in super::super) fn laser_scan(
    nanos: i64,
    frame: &str,
    (start, end): (f64, f64),
    ranges: &[f64],
    out: &mut Vec<u8>,
) {
    time(1, nanos, out);
    bytes(2, frame.as_bytes(), out);
    pose(3, &IDENTITY_POSE, out);
    double(4, start, out);
    double(5, end, out);
    encoding::double::encode_packed(6, ranges, out);
}

/// Writes an image file, such as a JPEG, as a `foxglove.CompressedImage`.
pub(in super::super) fn compressed_image(
    nanos: i64,
    frame: &str,
    (data, format): (&[u8], &str),
    out: &mut Vec<u8>,
) {
    time(1, nanos, out);
    element(2, data, out);
    bytes(3, format.as_bytes(), out);
    bytes(4, frame.as_bytes(), out);
}

/// Writes pixels as a `foxglove.RawImage`. `step` is the size in bytes of a row of pixels.
pub(in super::super) fn raw_image(
    nanos: i64,
    frame: &str,
    ([width, height, step], encoding): ([u32; 3], &str),
    pixels: &[u8],
    out: &mut Vec<u8>,
) {
    time(1, nanos, out);
    fixed32(2, width, out);
    fixed32(3, height, out);
    bytes(4, encoding.as_bytes(), out);
    fixed32(5, step, out);
    element(6, pixels, out);
    bytes(7, frame.as_bytes(), out);
}
