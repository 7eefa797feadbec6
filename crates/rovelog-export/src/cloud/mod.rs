//! Point clouds: PLY and PCD, binary little endian, every field kept.

mod pcd;
mod ply;

use std::io::{self, BufWriter, Write};

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

/// Bytes of a point in a file.
const POINT: usize = 22;

impl CloudPoint {
    fn bytes(&self) -> [u8; POINT] {
        let mut bytes = [0; POINT];
        for (i, value) in [self.x, self.y, self.z, self.intensity].into_iter().enumerate() {
            bytes[4 * i..4 * i + 4].copy_from_slice(&value.to_le_bytes());
        }
        bytes[16..18].copy_from_slice(&self.ring.to_le_bytes());
        bytes[18..].copy_from_slice(&self.t.to_le_bytes());
        bytes
    }
}

/// A file format of clouds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Stanford PLY 1.0.
    Ply,
    /// PCD 0.7 of the Point Cloud Library.
    Pcd,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Ply, Self::Pcd];

    /// The name in options, which is the extension too.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ply => "ply",
            Self::Pcd => "pcd",
        }
    }

    /// The format of an option or of a file's extension.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name().eq_ignore_ascii_case(name))
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
    let points = points.into_iter();
    let mut out = BufWriter::new(out);
    let comment: String = comment.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match format {
        Format::Ply => ply::header(points.len(), &comment, &mut out)?,
        Format::Pcd => pcd::header(points.len(), &comment, &mut out)?,
    }
    for point in points {
        out.write_all(&point.bytes())?;
    }
    out.flush()
}
