//! Reads the trajectory of a VEL log: positions of the GPS receiver, and orientations that are
//! interpolated at the times of the positions.

use rovelog::AnyLog;
use rovelog::vel_format::{Kind, VelReader};

use super::{Trajectory, global, orient};
use crate::ExportError;
use crate::track::TrackOptions;

pub(super) fn read(
    log: &AnyLog,
    reader: &VelReader,
    options: &TrackOptions,
) -> Result<Trajectory, ExportError> {
    let mut trajectory = global::read(log, options)?;
    orient(&mut trajectory, reader, Kind::Pose.name(), ["qw", "qx", "qy", "qz"])?;
    Ok(trajectory)
}
