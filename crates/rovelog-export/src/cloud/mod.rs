//! Writes point clouds as PLY, PCD, LAS, LAZ, NPZ and KITTI `.bin`, and reads them from messages of
//! ROS bags.
//!
//! All formats are little-endian and contain all fields of a point, except for KITTI `.bin`, which
//! has only the coordinates and the intensity.

mod kitti;
#[cfg(feature = "las")]
mod las;
mod model;
mod npz;
mod pcd;
mod ply;
mod point;
pub mod ros;
mod types;
mod velodyne;

use std::io::{self, BufWriter, Write};

pub use model::Cloud;
pub(crate) use point::{FIELDS, POINT, bytes};
pub use velodyne::VelodyneOptions;

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
    /// KITTI `.bin`, which stores only the coordinates and the intensity.
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

/// Writes a point cloud, and returns the number of points that the format cannot store. These are
/// points without a position, which LAS cannot store. `comment` is a single line, which is omitted
/// if the format does not support comments. The same cloud always gives the same file.
///
/// # Errors
/// Returns an error if writing to the output fails. Returns an error of the kind
/// [`InvalidInput`](io::ErrorKind::InvalidInput) if the format cannot store the cloud.
pub fn write(cloud: &Cloud, format: Format, comment: &str, out: impl Write) -> io::Result<usize> {
    let mut out = BufWriter::new(out);
    // A line break in the comment would add lines to the headers of PLY and PCD.
    let comment: String = comment.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let left_out = match format {
        Format::Ply => out.write_all(ply::header(cloud, &comment).as_bytes()).map(|()| 0)?,
        Format::Pcd => out.write_all(pcd::header(cloud, &comment).as_bytes()).map(|()| 0)?,
        Format::Kitti => kitti::write(cloud, &mut out).map(|()| 0)?,
        Format::Npz => npz::write(cloud, &mut out).map(|()| 0)?,
        #[cfg(feature = "las")]
        Format::Las | Format::Laz => las::write(cloud, format == Format::Laz, &comment, &mut out)?,
        #[cfg(not(feature = "las"))]
        Format::Las | Format::Laz => {
            let missing = ExportError::NotBuiltIn { what: format.name(), feature: "las" };
            return Err(io::Error::new(io::ErrorKind::Unsupported, missing));
        }
    };
    if matches!(format, Format::Ply | Format::Pcd) {
        out.write_all(&cloud.data)?;
    }
    out.flush()?;
    Ok(left_out)
}

/// Returns the error for a cloud whose points have no position.
fn no_position() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "the points have no fields x, y and z")
}
