//! Reads the trajectory of a VEL log: positions of the GPS receiver, and orientations that are
//! interpolated at the times of the positions.

use rovelog::AnyLog;
use rovelog::vel_format::{Kind, VelReader};

use super::{TimedPose, Trajectory, global, orient};
use crate::ExportError;
use crate::findings::scan::{WHOLE_LOG, each_row};
use crate::pose::{IDENTITY_POSE, Pose, length};
use crate::track::TrackOptions;

pub(super) fn read(
    log: &AnyLog,
    reader: &VelReader,
    options: &TrackOptions,
) -> Result<Trajectory, ExportError> {
    let mut trajectory = global::read(log, options)?;
    let mut turns = Vec::new();
    each_row(reader, Kind::Pose.name(), &["qw", "qx", "qy", "qz"], WHOLE_LOG, |nanos, row| {
        let Ok(orientation) = <[f64; 4]>::try_from(row) else { return };
        if (length(orientation) - 1.0).abs() <= 0.05 {
            turns.push(TimedPose { nanos, pose: Pose { orientation, ..IDENTITY_POSE } });
        }
    })?;
    orient(&mut trajectory, turns);
    Ok(trajectory)
}
