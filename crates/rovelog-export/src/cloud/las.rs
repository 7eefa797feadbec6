//! Point clouds as LAS 1.4 and LAZ (compressed LAS), with points of format 6.
//!
//! Coordinates are stored in units of 0.1 mm, and intensities as integers. The laser ring is an
//! extra field. The GPS time field holds seconds since the start of the cloud.

use std::io::{self, Cursor, Write};

use las::point::Format;
use las::{Builder, Point, Transform, Vector, Vlr, Writer};
use rovelog::vel_format::velodyne;

use super::point::seconds;

/// Meters per coordinate unit.
const UNIT: f64 = 1e-4;

/// Record id that declares extra fields in the header.
const EXTRA_BYTES: u16 = 4;

pub(super) fn write(
    points: &[velodyne::Point],
    compressed: bool,
    comment: &str,
    out: &mut impl Write,
) -> io::Result<()> {
    let bad = |error: las::Error| io::Error::new(io::ErrorKind::InvalidInput, error);
    let mut builder = Builder::from((1, 4));
    builder.point_format = Format::new(6).map_err(bad)?;
    builder.point_format.extra_bytes = 2;
    builder.point_format.is_compressed = compressed;
    let transform = Transform { scale: UNIT, offset: 0.0 };
    builder.transforms = Vector { x: transform, y: transform, z: transform };
    // A date would make the output differ from day to day.
    builder.date = None;
    builder.system_identifier = text(comment);
    builder.generating_software = text(concat!("rovelog ", env!("CARGO_PKG_VERSION")));
    builder.vlrs.push(ring());
    // The writer seeks back to its header, so the file is built in memory.
    let mut writer =
        Writer::new(Cursor::new(Vec::new()), builder.into_header().map_err(bad)?).map_err(bad)?;
    for point in points {
        writer.write_point(las_point(point)).map_err(bad)?;
    }
    out.write_all(writer.into_inner().map_err(bad)?.get_ref())
}

fn las_point(point: &velodyne::Point) -> Point {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let intensity = point.intensity.round().clamp(0.0, 65535.0) as u16;
    Point {
        x: point.x.into(),
        y: point.y.into(),
        z: point.z.into(),
        intensity,
        return_number: 1,
        number_of_returns: 1,
        gps_time: Some(seconds(point).into()),
        extra_bytes: u16::from(point.ring).to_le_bytes().to_vec(),
        ..Point::default()
    }
}

/// Truncates a text to the length of a header field.
fn text(text: &str) -> String {
    text.chars().filter(char::is_ascii).take(32).collect()
}

/// Returns the record that declares the ring, see "Extra Bytes" in the specification. It has 192
/// bytes per field.
fn ring() -> Vlr {
    let mut data = vec![0; 192];
    // Data type 3 is an unsigned 16-bit integer.
    data[2] = 3;
    for (at, text) in [(4, "ring"), (160, "ring of lasers, 0 the lowest")] {
        data[at..at + text.len()].copy_from_slice(text.as_bytes());
    }
    Vlr {
        user_id: "LASF_Spec".to_owned(),
        record_id: EXTRA_BYTES,
        description: "Extra fields".to_owned(),
        data,
    }
}
