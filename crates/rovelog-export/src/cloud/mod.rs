//! Point clouds: PLY, PCD, LAS and NPZ with every field, KITTI's `.bin` with those it has. All little endian.

mod kitti;
mod las;
mod npz;
mod pcd;
mod ply;
mod point;

use std::io::{self, BufWriter, Write};

pub use point::CloudPoint;
pub(crate) use point::{FIELDS, Numeric, POINT};

/// A file format of clouds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Stanford PLY 1.0.
    Ply,
    /// PCD 0.7 of the Point Cloud Library.
    Pcd,
    /// KITTI's floats: neither ring nor time.
    Kitti,
    /// Arrays of `numpy`.
    Npz,
    /// LAS 1.4: tenths of a millimetre, intensities without a fraction.
    Las,
    /// The same, compressed.
    Laz,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Ply, Self::Pcd, Self::Kitti, Self::Npz, Self::Las, Self::Laz];

    /// The name in options.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kitti => "kitti",
            other => other.extension(),
        }
    }

    /// The extension of files.
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

    /// The format of an option or of a file's extension.
    pub fn by_name(name: &str) -> Option<Self> {
        let called = |known: &str| known.eq_ignore_ascii_case(name);
        Self::ALL.into_iter().find(|format| called(format.name()) || called(format.extension()))
    }
}

/// Writes a cloud. `comment` goes where the format has room for one, a line of it. The same cloud gives the same
/// bytes.
///
/// # Errors
/// Where the output refuses.
pub fn write<I>(points: I, format: Format, comment: &str, out: impl Write) -> io::Result<()>
where
    I: IntoIterator<Item = CloudPoint, IntoIter: ExactSizeIterator>,
{
    let mut points = points.into_iter();
    let mut out = BufWriter::new(out);
    let comment: String = comment.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match format {
        Format::Ply => ply::header(points.len(), &comment, &mut out)?,
        Format::Pcd => pcd::header(points.len(), &comment, &mut out)?,
        Format::Kitti => kitti::write(points.by_ref(), &mut out)?,
        Format::Npz => npz::write(points.by_ref(), &mut out)?,
        Format::Las => las::write(points.by_ref(), false, &comment, &mut out)?,
        Format::Laz => las::write(points.by_ref(), true, &comment, &mut out)?,
    }
    // Those with nothing but a header before the points; the others have taken them all.
    for point in points {
        out.write_all(&point.bytes())?;
    }
    out.flush()
}
