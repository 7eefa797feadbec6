//! Writes the header of point clouds in PLY, the Stanford triangle format. The points are vertices
//! without faces.

use super::Cloud;
use super::types::names;

/// Returns the header of a PLY file.
pub(super) fn header(cloud: &Cloud, comment: &str) -> String {
    let property =
        |column: super::model::Column| format!("property {} {}\n", names(column.ty).ply, column.name);
    let properties: String = cloud.columns().into_iter().map(property).collect();
    format!(
        "ply\nformat binary_little_endian 1.0\ncomment {comment}\nelement vertex {}\n{properties}end_header\n",
        cloud.len()
    )
}
