//! Writes point clouds in the format of the KITTI data set. A file has no header. Each point
//! consists of x, y, z and intensity as 32-bit floats.

use std::io::{self, Write};

use rovelog::vel_format::velodyne::Point;

use super::point::bytes;

pub(super) fn write(points: &[Point], out: &mut impl Write) -> io::Result<()> {
    for point in points {
        // The first 16 bytes of a point are x, y, z and intensity.
        out.write_all(&bytes(point)[..16])?;
    }
    Ok(())
}
