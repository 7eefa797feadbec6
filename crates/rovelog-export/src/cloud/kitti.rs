//! Writes point clouds in the format of the KITTI data set. A file has no header. Each point
//! consists of x, y, z and intensity as 32-bit floats.

use std::io::{self, Write};

use super::{Cloud, no_position};

pub(super) fn write(cloud: &Cloud, out: &mut impl Write) -> io::Result<()> {
    for point in cloud.positions().ok_or_else(no_position)? {
        #[expect(clippy::cast_possible_truncation, reason = "the width of the file")]
        point.iter().try_for_each(|value| out.write_all(&(*value as f32).to_le_bytes()))?;
    }
    Ok(())
}
