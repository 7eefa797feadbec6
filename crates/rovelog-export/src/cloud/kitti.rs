//! Point clouds as KITTI `.bin`: x, y, z and intensity of each point as 32-bit floats, without a
//! header.

use std::io::{self, Write};

use rovelog::vel_format::velodyne::Point;

use super::point::bytes;

pub(super) fn write(points: &[Point], out: &mut impl Write) -> io::Result<()> {
    for point in points {
        out.write_all(&bytes(point)[..16])?;
    }
    Ok(())
}
