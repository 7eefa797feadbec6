//! Writes point clouds as LAS 1.4 or LAZ, which is compressed LAS. The points have LAS point format
//! 6.
//!
//! Coordinates are integers in units of 0.1 mm, and intensities are integers. The field for GPS times
//! contains the times of the points in seconds, which count from the start of the cloud for most
//! sensors. All other fields of the cloud are declared as extra fields.

use std::io::{self, Cursor, Write};

use las::point::Format;
use las::{Builder, Point, Transform, Vector, Vlr, Writer};
use rovelog::Scalar;

use super::model::Column;
use super::types::names;
use super::{Cloud, no_position};

/// Size of a coordinate unit in meters.
const UNIT: f64 = 1e-4;

/// Identifier of the header record that declares extra fields.
const EXTRA_BYTES: u16 = 4;

/// Names of fields with the time of a point, if it is a float in seconds.
const TIMES: [&str; 3] = ["t", "time", "timestamp"];

/// Names that programs use for the standard fields of a LAS point. An extra field of such a name
/// gets a `_` at its end.
const STANDARD: [&str; 5] = ["intensity", "classification", "user_data", "scan_angle", "gps_time"];

/// Columns of a cloud by their place in a LAS point.
struct Places {
    position: [Column; 3],
    intensity: Option<Column>,
    time: Option<Column>,
    /// Columns that become extra fields.
    extra: Vec<Column>,
}

/// Writes a file and returns the number of points that have no position. These points are not
/// written.
pub(super) fn write(
    cloud: &Cloud,
    compressed: bool,
    comment: &str,
    out: &mut impl Write,
) -> io::Result<usize> {
    let bad = |error: las::Error| io::Error::new(io::ErrorKind::InvalidInput, error);
    let places = places(cloud)?;
    let mut builder = Builder::from((1, 4));
    builder.point_format = Format::new(6).map_err(bad)?;
    let size: usize = places.extra.iter().map(|column| column.ty.size()).sum();
    builder.point_format.extra_bytes = u16::try_from(size).unwrap_or(u16::MAX);
    builder.point_format.is_compressed = compressed;
    let [x, y, z] = places.position.each_ref().map(|axis| transform(cloud, axis));
    builder.transforms = Vector { x, y, z };
    // The library would set the current date by default, so the same points would give different
    // files on different days.
    builder.date = None;
    builder.system_identifier = text(comment);
    builder.generating_software = text(concat!("rovelog ", env!("CARGO_PKG_VERSION")));
    if !places.extra.is_empty() {
        builder.vlrs.push(declaration(&places.extra));
    }
    // The writer updates the file header at the end, so it needs a seekable output. `out` may be a
    // pipe, so the file is built in memory first.
    let mut writer =
        Writer::new(Cursor::new(Vec::new()), builder.into_header().map_err(bad)?).map_err(bad)?;
    let mut left_out = 0;
    for point in cloud.points() {
        let point = places.point(point);
        if [point.x, point.y, point.z].iter().all(|value| value.is_finite()) {
            writer.write_point(point).map_err(bad)?;
        } else {
            left_out += 1;
        }
    }
    out.write_all(writer.into_inner().map_err(bad)?.get_ref())?;
    Ok(left_out)
}

/// Assigns the columns of a cloud to the fields of a LAS point.
fn places(cloud: &Cloud) -> io::Result<Places> {
    let position = cloud.position().ok_or_else(no_position)?;
    let intensity = cloud.intensity();
    let is_float = |column: &&Column| matches!(column.ty, Scalar::Float32 | Scalar::Float64);
    let mut extra = cloud.columns();
    let time = extra.iter().filter(is_float).find(|column| TIMES.contains(&&*column.name)).cloned();
    // Some sensors have intensities from 0 to 1. Rounding alone would lose them.
    let is_exact = |column: &&Column| {
        let is_whole = |value: f64| (0.0..=65535.0).contains(&value) && value.fract() == 0.0;
        cloud.points().all(|point| is_whole(column.number(point)))
    };
    let placed = position.iter().chain(&time).chain(intensity.as_ref().filter(is_exact));
    let placed: Vec<_> = placed.map(|column| column.offset).collect();
    extra.retain(|column| !placed.contains(&column.offset));
    if extra.len() > MAX_EXTRA {
        let why = format!("LAS cannot store {} extra fields", extra.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    Ok(Places { position, intensity, time, extra })
}

/// Returns the conversion from coordinates to 32-bit integers. Large coordinates, such as those of
/// a map projection, get an offset.
fn transform(cloud: &Cloud, axis: &Column) -> Transform {
    let values = || cloud.points().map(|point| axis.number(point)).filter(|value| value.is_finite());
    let is_large = values().any(|value| value.abs() > UNIT * f64::from(i32::MAX));
    Transform { scale: UNIT, offset: if is_large { values().fold(f64::MAX, f64::min).floor() } else { 0.0 } }
}

impl Places {
    /// Converts a point to LAS. LAS counts the returns (echoes) of a laser pulse from 1. Each point
    /// is stored as the only return of its pulse.
    fn point(&self, point: &[u8]) -> Point {
        let [x, y, z] = self.position.each_ref().map(|column| column.number(point));
        let intensity = self.intensity.as_ref().map_or(0.0, |column| column.number(point));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let intensity = intensity.round().clamp(0.0, 65535.0) as u16;
        Point {
            x,
            y,
            z,
            intensity,
            return_number: 1,
            number_of_returns: 1,
            gps_time: Some(self.time.as_ref().map_or(0.0, |column| column.number(point))),
            extra_bytes: self.extra.iter().flat_map(|column| column.bytes(point)).copied().collect(),
            ..Point::default()
        }
    }
}

/// Truncates a text to the 32 bytes of a header field. Characters outside of ASCII are omitted.
fn text(text: &str) -> String {
    text.chars().filter(char::is_ascii).take(32).collect()
}

/// Size in bytes of the declaration of an extra field.
const DECLARATION: usize = 192;

/// Maximum number of extra fields. The size of a header record is a 16-bit number.
const MAX_EXTRA: usize = u16::MAX as usize / DECLARATION;

/// Returns the header record that declares the extra fields. See section "Extra Bytes" of the LAS
/// 1.4 specification.
fn declaration(extra: &[Column]) -> Vlr {
    let mut data = vec![0; extra.len() * DECLARATION];
    for (column, data) in extra.iter().zip(data.chunks_exact_mut(DECLARATION)) {
        // Byte 2 is the type of the field. Its name has up to 32 bytes and starts at byte 4.
        data[2] = names(column.ty).las;
        let end = if STANDARD.contains(&&*column.name) { "_" } else { "" };
        let name = text(&format!("{}{end}", column.name));
        data[4..4 + name.len()].copy_from_slice(name.as_bytes());
    }
    Vlr {
        user_id: "LASF_Spec".to_owned(),
        record_id: EXTRA_BYTES,
        description: "Extra fields".to_owned(),
        data,
    }
}
