//! Encodes point clouds, laser scans and images as messages of types that viewers can draw.

use prost::encoding;
use rovelog::Scalar;

use super::super::proto::{bytes, double, element, fixed32, message, uint};
use super::{pose, time};
use crate::pose::IDENTITY_POSE;

/// Encodes a `foxglove.PointCloud`. `data` contains the points. Each point consists of the values
/// of `fields` without padding.
pub(in super::super) fn point_cloud(
    nanos: i64,
    frame: &str,
    fields: &[(&str, Scalar)],
    data: &[u8],
) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() + 256);
    time(1, nanos, &mut out);
    bytes(2, frame, &mut out);
    pose(3, &IDENTITY_POSE, &mut out);
    let mut offset = 0;
    for (name, ty) in fields {
        message(5, &mut out, |out| {
            bytes(1, name, out);
            fixed32(2, offset, out);
            // In the protobuf enum `PackedElementField.NumericType`, 3 is UINT16 and 7 is FLOAT32.
            uint(3, if *ty == Scalar::UInt16 { 3 } else { 7 }, out);
        });
        offset += if *ty == Scalar::UInt16 { 2 } else { 4 };
    }
    fixed32(4, offset, &mut out);
    bytes(6, data, &mut out);
    out
}

/// Encodes a `foxglove.LaserScan`. `start` and `end` are the angles of the first and last range in
/// radians. Ranges are in meters. A range is NaN if the scanner received no echo.
pub(in super::super) fn laser_scan(nanos: i64, frame: &str, start: f64, end: f64, ranges: &[f64]) -> Vec<u8> {
    let mut out = Vec::new();
    time(1, nanos, &mut out);
    bytes(2, frame, &mut out);
    pose(3, &IDENTITY_POSE, &mut out);
    double(4, start, &mut out);
    double(5, end, &mut out);
    encoding::double::encode_packed(6, ranges, &mut out);
    out
}

/// Encodes an image file, such as a JPEG, as a `foxglove.CompressedImage`.
pub(in super::super) fn compressed_image(nanos: i64, frame: &str, data: &[u8], format: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() + 64);
    time(1, nanos, &mut out);
    element(2, data, &mut out);
    bytes(3, format, &mut out);
    bytes(4, frame, &mut out);
    out
}

/// Encodes pixels as a `foxglove.RawImage`. `step` is the size in bytes of a row of pixels.
pub(in super::super) fn raw_image(
    nanos: i64,
    frame: &str,
    [width, height, step]: [u32; 3],
    encoding: &str,
    pixels: &[u8],
) -> Vec<u8> {
    let mut out = Vec::with_capacity(pixels.len() + 64);
    time(1, nanos, &mut out);
    fixed32(2, width, &mut out);
    fixed32(3, height, &mut out);
    bytes(4, encoding, &mut out);
    fixed32(5, step, &mut out);
    element(6, pixels, &mut out);
    bytes(7, frame, &mut out);
    out
}
