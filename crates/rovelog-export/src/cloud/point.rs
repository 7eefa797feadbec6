//! Binary encoding of Velodyne points, which all point cloud formats and MCAP share.

use rovelog::Scalar;
use rovelog::vel_format::velodyne::Point;

use super::model::{Cloud, Field};

/// Size in bytes of an encoded point.
pub(crate) const POINT: usize = 22;

/// Encodes the [`FIELDS`] of a point in little-endian order, without padding.
pub(crate) fn bytes(point: &Point) -> [u8; POINT] {
    let mut bytes = [0; POINT];
    for (i, value) in [point.x, point.y, point.z, point.intensity].into_iter().enumerate() {
        bytes[4 * i..4 * i + 4].copy_from_slice(&value.to_le_bytes());
    }
    bytes[16..18].copy_from_slice(&u16::from(point.ring).to_le_bytes());
    #[expect(clippy::cast_possible_truncation, reason = "rounded once, to the width of the file")]
    let seconds = (f64::from(point.nanos) / 1e9) as f32;
    bytes[18..].copy_from_slice(&seconds.to_le_bytes());
    bytes
}

/// Names and types of a point's fields in the order in which they are stored. The field `t` is the
/// time in seconds since the start of the cloud.
pub(crate) const FIELDS: [(&str, Scalar); 6] = [
    ("x", Scalar::Float32),
    ("y", Scalar::Float32),
    ("z", Scalar::Float32),
    ("intensity", Scalar::Float32),
    ("ring", Scalar::UInt16),
    ("t", Scalar::Float32),
];

impl From<&[Point]> for Cloud {
    fn from(points: &[Point]) -> Self {
        let fields = FIELDS.into_iter().map(|(name, ty)| Field::new(name, ty)).collect();
        Self::unorganized(fields, points.iter().flat_map(bytes).collect())
    }
}
