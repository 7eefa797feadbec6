//! A point of a cloud, and how it is packed in files.

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

    pub(super) const fn numpy(self) -> &'static str {
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
