//! Point clouds: PLY, PCD, LAS and NPZ with every field, KITTI's `.bin` with those it has. All little endian.

mod kitti;
mod las;
mod npz;
mod pcd;
mod ply;

use std::io::{self, BufWriter, Write};

use rovelog::vel_format::velodyne;

/// A point of a cloud.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CloudPoint {
    /// Metres.
    pub x: f32,
    /// Metres.
    pub y: f32,
    /// Metres.
    pub z: f32,
    /// In the sensor's own scale: 0 to 255 for a Velodyne.
    pub intensity: f32,
    /// The ring of lasers it belongs to, 0 the lowest.
    pub ring: u16,
    /// Seconds from the start of the cloud.
    pub t: f32,
}

impl From<&velodyne::Point> for CloudPoint {
    fn from(point: &velodyne::Point) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "rounded once, to the width of the file")]
        let t = (f64::from(point.nanos) / 1e9) as f32;
        let (intensity, ring) = (point.intensity, point.ring.into());
        Self { x: point.x, y: point.y, z: point.z, intensity, ring, t }
    }
}

/// Bytes of a point in a file.
pub(crate) const POINT: usize = 22;

impl CloudPoint {
    pub(crate) fn bytes(&self) -> [u8; POINT] {
        let mut bytes = [0; POINT];
        for (i, value) in [self.x, self.y, self.z, self.intensity].into_iter().enumerate() {
            bytes[4 * i..4 * i + 4].copy_from_slice(&value.to_le_bytes());
        }
        bytes[16..18].copy_from_slice(&self.ring.to_le_bytes());
        bytes[18..].copy_from_slice(&self.t.to_le_bytes());
        bytes
    }
}

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numeric {
    /// 16 bits without a sign.
    UInt16,
    /// 32 bits.
    Float32,
}

impl Numeric {
    pub(crate) const fn size(self) -> usize {
        match self {
            Self::UInt16 => 2,
            Self::Float32 => 4,
        }
    }

    const fn numpy(self) -> &'static str {
        match self {
            Self::UInt16 => "<u2",
            Self::Float32 => "<f4",
        }
    }
}

/// The fields of a point in the order of its bytes.
pub(crate) const FIELDS: [(&str, Numeric); 6] = [
    ("x", Numeric::Float32),
    ("y", Numeric::Float32),
    ("z", Numeric::Float32),
    ("intensity", Numeric::Float32),
    ("ring", Numeric::UInt16),
    ("t", Numeric::Float32),
];

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
