//! Writes the header of point clouds in PLY, the Stanford triangle format. The points are vertices
//! without faces.

use super::point::{FIELDS, Numeric};

/// Returns the header of a PLY file. `points` is the number of points.
pub(super) fn header(points: usize, comment: &str) -> String {
    let property = |(name, ty): (&str, Numeric)| {
        let ty = if ty == Numeric::UInt16 { "ushort" } else { "float" };
        format!("property {ty} {name}\n")
    };
    let properties: String = FIELDS.into_iter().map(property).collect();
    format!(
        "ply\nformat binary_little_endian 1.0\ncomment {comment}\nelement vertex {points}\n{properties}end_header\n"
    )
}
