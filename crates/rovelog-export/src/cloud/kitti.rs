//! KITTI's `.bin`: x, y, z and intensity of each point as 32-bit floats, nothing else.

use std::io::{self, Write};

use super::point::CloudPoint;

pub(super) fn write(points: impl Iterator<Item = CloudPoint>, out: &mut impl Write) -> io::Result<()> {
    for point in points {
        out.write_all(&point.bytes()[..16])?;
    }
    Ok(())
}
