//! Sensor data as messages of well-known types: clouds, scans, images.

use prost::encoding;

use super::super::proto::{bytes, double, element, fixed32, message, uint};
use super::{NOWHERE, pose, time};
use crate::cloud::Numeric;

/// Writes a cloud of points packed in `data`, each with `fields` one after the other.
pub(in super::super) fn point_cloud(
    nanos: i64,
    frame: &str,
    fields: &[(&str, Numeric)],
    data: &[u8],
    out: &mut Vec<u8>,
) {
    time(1, nanos, out);
    bytes(2, frame.as_bytes(), out);
    pose(3, &NOWHERE, out);
    let mut offset = 0;
    for (name, ty) in fields {
        message(5, out, |out| {
            bytes(1, name.as_bytes(), out);
            fixed32(2, offset, out);
            // `PackedElementField.NumericType`
            uint(3, if *ty == Numeric::UInt16 { 3 } else { 7 }, out);
        });
        offset += if *ty == Numeric::UInt16 { 2 } else { 4 };
    }
    fixed32(4, offset, out);
    bytes(6, data, out);
}

/// Writes a scan: angles of the first and last range in radians, distances in metres; NaN where
/// there is no distance.
pub(in super::super) fn laser_scan(
    nanos: i64,
    frame: &str,
    (start, end): (f64, f64),
    ranges: &[f64],
    out: &mut Vec<u8>,
) {
    time(1, nanos, out);
    bytes(2, frame.as_bytes(), out);
    pose(3, &NOWHERE, out);
    double(4, start, out);
    double(5, end, out);
    encoding::double::encode_packed(6, ranges, out);
}

/// Writes a JPEG unchanged.
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

/// Writes raw pixels: width, height, bytes per line, and encoding.
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
