//! Writes point clouds as LAS 1.4 or LAZ, which is compressed LAS. The points have LAS point format
//! 6.
//!
//! Coordinates are integers in units of 0.1 mm, and intensities are integers. LAS has no field for
//! the number of the laser ring, so the ring is declared as an extra field. The field for GPS times
//! contains seconds since the start of the cloud.

use std::io::{self, Cursor, Write};

use las::point::Format;
use las::{Builder, Point, Transform, Vector, Vlr, Writer};
use rovelog::vel_format::velodyne;

use super::point::seconds;

/// Size of a coordinate unit in meters.
const UNIT: f64 = 1e-4;

/// Identifier of the header record that declares extra fields.
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
    // The library would set the current date by default, so the same points would give different
    // files on different days.
    builder.date = None;
    builder.system_identifier = text(comment);
    builder.generating_software = text(concat!("rovelog ", env!("CARGO_PKG_VERSION")));
    builder.vlrs.push(ring());
    // The writer updates the file header at the end, so it needs a seekable output. `out` may be a
    // pipe, so the file is built in memory first.
    let mut writer =
        Writer::new(Cursor::new(Vec::new()), builder.into_header().map_err(bad)?).map_err(bad)?;
    for point in points {
        writer.write_point(las_point(point)).map_err(bad)?;
    }
    out.write_all(writer.into_inner().map_err(bad)?.get_ref())
}

/// Converts a point to LAS. LAS counts the returns (echoes) of a laser pulse from 1. Each Velodyne
/// point is stored as the only return of its pulse.
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

/// Truncates a text to the 32 bytes of a header field. Characters outside of ASCII are omitted.
fn text(text: &str) -> String {
    text.chars().filter(char::is_ascii).take(32).collect()
}

/// Returns the header record that declares the laser ring as an extra field. The declaration has
/// 192 bytes. See section "Extra Bytes" of the LAS 1.4 specification.
fn ring() -> Vlr {
    let mut data = vec![0; 192];
    // In the declaration, data type 3 means an unsigned 16-bit integer. The name of the field
    // starts at byte 4, and the description at byte 160.
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
