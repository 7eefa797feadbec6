//! Writes point clouds as PLY, PCD, LAS, LAZ, NPZ and KITTI `.bin`.
//!
//! All formats are little-endian and contain all fields of a point, except for KITTI `.bin`, which
//! has neither the laser ring nor the time of a point.

mod kitti;
#[cfg(feature = "las")]
mod las;
mod npz;
mod pcd;
mod ply;
mod point;

use std::io::{self, BufWriter, Write};

pub(crate) use point::{FIELDS, Numeric, POINT, bytes};
use rovelog::vel_format::velodyne::Point;

#[cfg(not(feature = "las"))]
use crate::ExportError;

/// A file format for point clouds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// PLY 1.0, the Stanford triangle format.
    Ply,
    /// PCD 0.7, the format of the Point Cloud Library.
    Pcd,
    /// KITTI `.bin`, which stores neither the laser ring nor the time of a point.
    Kitti,
    /// NPZ, an archive of `numpy` arrays.
    Npz,
    /// LAS 1.4, with coordinates in units of 0.1 mm and integer intensities.
    Las,
    /// LAZ, which is compressed LAS.
    Laz,
}

impl Format {
    /// All file formats for point clouds.
    pub const ALL: [Self; 6] = [Self::Ply, Self::Pcd, Self::Kitti, Self::Npz, Self::Las, Self::Laz];

    /// Returns the name of the format in command-line options.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kitti => "kitti",
            other => other.extension(),
        }
    }

    /// Returns the Cargo feature that is required for this format, if the crate was built without
    /// that feature.
    pub const fn missing(self) -> Option<&'static str> {
        match self {
            Self::Las | Self::Laz if cfg!(not(feature = "las")) => Some("las"),
            _ => None,
        }
    }

    /// Returns the extension of files in this format, without the dot.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Ply => "ply",
            Self::Pcd => "pcd",
            Self::Kitti => "bin",
            Self::Npz => "npz",
            Self::Las => "las",
            Self::Laz => "laz",
        }
    }

    /// Returns the format with the option name or file extension `name`, ignoring case.
    pub fn by_name(name: &str) -> Option<Self> {
        let called = |known: &str| known.eq_ignore_ascii_case(name);
        Self::ALL.into_iter().find(|format| called(format.name()) || called(format.extension()))
    }
}

/// Writes a point cloud. Times of points are counted from the start of the cloud. `comment` is a
/// single line, which is omitted if the format does not support comments. The same points always
/// give the same file.
///
/// # Errors
/// Returns an error if writing to the output fails.
pub fn write(points: &[Point], format: Format, comment: &str, out: impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    // A line break in the comment would add lines to the headers of PLY and PCD.
    let comment: String = comment.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match format {
        Format::Ply => out.write_all(ply::header(points.len(), &comment).as_bytes())?,
        Format::Pcd => out.write_all(pcd::header(points.len(), &comment).as_bytes())?,
        Format::Kitti => kitti::write(points, &mut out)?,
        Format::Npz => npz::write(points, &mut out)?,
        #[cfg(feature = "las")]
        Format::Las => las::write(points, false, &comment, &mut out)?,
        #[cfg(feature = "las")]
        Format::Laz => las::write(points, true, &comment, &mut out)?,
        #[cfg(not(feature = "las"))]
        Format::Las | Format::Laz => {
            let missing = ExportError::NotBuiltIn { what: format.name(), feature: "las" };
            return Err(io::Error::new(io::ErrorKind::Unsupported, missing));
        }
    }
    if matches!(format, Format::Ply | Format::Pcd) {
        for point in points {
            out.write_all(&bytes(point))?;
        }
    }
    out.flush()
}
