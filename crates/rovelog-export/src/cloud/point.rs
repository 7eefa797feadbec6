//! Binary form of a point in cloud files.

use rovelog::vel_format::velodyne::Point;

/// Size in bytes of a point.
pub(crate) const POINT: usize = 22;

/// Returns the time of a point in seconds since the start of the cloud.
pub(super) fn seconds(point: &Point) -> f32 {
    #[expect(clippy::cast_possible_truncation, reason = "rounded once, to the width of the file")]
    let seconds = (f64::from(point.nanos) / 1e9) as f32;
    seconds
}

/// Encodes the [`FIELDS`] of a point.
pub(crate) fn bytes(point: &Point) -> [u8; POINT] {
    let mut bytes = [0; POINT];
    for (i, value) in [point.x, point.y, point.z, point.intensity].into_iter().enumerate() {
        bytes[4 * i..4 * i + 4].copy_from_slice(&value.to_le_bytes());
    }
    bytes[16..18].copy_from_slice(&u16::from(point.ring).to_le_bytes());
    bytes[18..].copy_from_slice(&seconds(point).to_le_bytes());
    bytes
}

/// Type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numeric {
    /// Unsigned 16-bit integer.
    UInt16,
    /// 32-bit float.
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

/// Fields of a point, in storage order.
pub(crate) const FIELDS: [(&str, Numeric); 6] = [
    ("x", Numeric::Float32),
    ("y", Numeric::Float32),
    ("z", Numeric::Float32),
    ("intensity", Numeric::Float32),
    ("ring", Numeric::UInt16),
    ("t", Numeric::Float32),
];
