//! Binary encoding of a point, which most point cloud formats share.

use rovelog::vel_format::velodyne::Point;

/// Size in bytes of an encoded point.
pub(crate) const POINT: usize = 22;

/// Returns the time of a point in seconds since the start of the cloud.
pub(super) fn seconds(point: &Point) -> f32 {
    #[expect(clippy::cast_possible_truncation, reason = "rounded once, to the width of the file")]
    let seconds = (f64::from(point.nanos) / 1e9) as f32;
    seconds
}

/// Encodes the [`FIELDS`] of a point in little-endian order, without padding.
pub(crate) fn bytes(point: &Point) -> [u8; POINT] {
    let mut bytes = [0; POINT];
    for (i, value) in [point.x, point.y, point.z, point.intensity].into_iter().enumerate() {
        bytes[4 * i..4 * i + 4].copy_from_slice(&value.to_le_bytes());
    }
    bytes[16..18].copy_from_slice(&u16::from(point.ring).to_le_bytes());
    bytes[18..].copy_from_slice(&seconds(point).to_le_bytes());
    bytes
}

/// Type of a point's field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numeric {
    /// Unsigned 16-bit integer.
    UInt16,
    /// 32-bit float.
    Float32,
}

impl Numeric {
    /// Returns the size of a value in bytes.
    pub(crate) const fn size(self) -> usize {
        match self {
            Self::UInt16 => 2,
            Self::Float32 => 4,
        }
    }

    /// Returns the name of the type in `numpy`.
    pub(super) const fn numpy(self) -> &'static str {
        match self {
            Self::UInt16 => "<u2",
            Self::Float32 => "<f4",
        }
    }
}

/// Names and types of a point's fields in the order in which they are stored.
pub(crate) const FIELDS: [(&str, Numeric); 6] = [
    ("x", Numeric::Float32),
    ("y", Numeric::Float32),
    ("z", Numeric::Float32),
    ("intensity", Numeric::Float32),
    ("ring", Numeric::UInt16),
    ("t", Numeric::Float32),
];
