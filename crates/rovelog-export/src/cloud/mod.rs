//! Point cloud files: PLY, PCD, LAS and NPZ with every field, and KITTI `.bin` without ring and
//! time. All are little endian.

mod kitti;
#[cfg(feature = "las")]
mod las;
mod npz;
mod pcd;
mod ply;
mod point;

use std::io::{self, BufWriter, Write};

pub(crate) use point::bytes;
#[cfg(feature = "mcap")]
pub(crate) use point::{FIELDS, Numeric, POINT};
use rovelog::vel_format::velodyne::Point;

#[cfg(not(feature = "las"))]
use crate::ExportError;

/// A file format for point clouds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Stanford PLY 1.0.
    Ply,
    /// PCD 0.7, the format of the Point Cloud Library.
    Pcd,
    /// KITTI `.bin`, which has neither ring nor time.
    Kitti,
    /// NPZ, an archive of `numpy` arrays.
    Npz,
    /// LAS 1.4, with coordinates in units of 0.1 mm and integer intensities.
    Las,
    /// LAZ, which is compressed LAS.
    Laz,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 6] = [Self::Ply, Self::Pcd, Self::Kitti, Self::Npz, Self::Las, Self::Laz];

    /// Returns the name used in command-line options.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kitti => "kitti",
            other => other.extension(),
        }
    }

    /// Returns the missing feature if this build cannot write the format, otherwise `None`.
    pub const fn missing(self) -> Option<&'static str> {
        match self {
            Self::Las | Self::Laz if cfg!(not(feature = "las")) => Some("las"),
            _ => None,
        }
    }

    /// Returns the file extension.
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

    /// Returns the format with this option name or file extension.
    pub fn by_name(name: &str) -> Option<Self> {
        let called = |known: &str| known.eq_ignore_ascii_case(name);
        Self::ALL.into_iter().find(|format| called(format.name()) || called(format.extension()))
    }
}

/// Writes a point cloud. Point times count from the start of the cloud. `comment` is a single line,
/// which is written if the format has a place for comments. The output is reproducible.
///
/// # Errors
/// Returns an error if writing to the output fails.
pub fn write(points: &[Point], format: Format, comment: &str, out: impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
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
