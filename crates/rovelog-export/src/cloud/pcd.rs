//! Writes the header of point clouds in PCD 0.7, the format of the Point Cloud Library.

use super::Cloud;
use super::model::Field;
use super::types::names;

/// Returns the header of a PCD file.
pub(super) fn header(cloud: &Cloud, comment: &str) -> String {
    let line = |name: &str, of: fn(&Field) -> String| {
        let words: Vec<_> = cloud.fields.iter().map(of).collect();
        format!("{name} {}\n", words.join(" "))
    };
    let Cloud { width, height, .. } = cloud;
    [
        format!("# .PCD v0.7 - {comment}\nVERSION 0.7\n"),
        line("FIELDS", |field| field.name.clone()),
        line("SIZE", |field| field.ty.size().to_string()),
        line("TYPE", |field| names(field.ty).pcd.to_string()),
        line("COUNT", |field| field.count.to_string()),
        format!("WIDTH {width}\nHEIGHT {height}\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS {}\n", cloud.len()),
        "DATA binary\n".to_owned(),
    ]
    .concat()
}
