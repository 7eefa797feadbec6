//! PLY: the Stanford triangle format, without triangles.

use std::io::{self, Write};

pub(super) fn header(points: usize, comment: &str, out: &mut impl Write) -> io::Result<()> {
    write!(
        out,
        "ply\nformat binary_little_endian 1.0\ncomment {comment}\nelement vertex {points}\n\
         property float x\nproperty float y\nproperty float z\nproperty float intensity\n\
         property ushort ring\nproperty float t\nend_header\n"
    )
}
