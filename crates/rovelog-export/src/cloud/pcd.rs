//! Writes the header of point clouds in PCD 0.7, the format of the Point Cloud Library. The clouds
//! are unorganized, that is, their height is 1.

use super::point::{FIELDS, Numeric};

/// Returns the header of a PCD file. `points` is the number of points.
pub(super) fn header(points: usize, comment: &str) -> String {
    let line = |name: &str, of: fn(&str, Numeric) -> String| {
        let words: Vec<_> = FIELDS.into_iter().map(|(name, ty)| of(name, ty)).collect();
        format!("{name} {}\n", words.join(" "))
    };
    // In PCD, the type `U` is an unsigned integer, and `F` is a float.
    let ty = |_: &str, ty| if ty == Numeric::UInt16 { "U" } else { "F" }.to_owned();
    [
        format!("# .PCD v0.7 - {comment}\nVERSION 0.7\n"),
        line("FIELDS", |name, _| name.to_owned()),
        line("SIZE", |_, ty| ty.size().to_string()),
        line("TYPE", ty),
        line("COUNT", |_, _| "1".to_owned()),
        format!("WIDTH {points}\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS {points}\nDATA binary\n"),
    ]
    .concat()
}
