//! Reads the trajectory of a PX4 log.
//!
//! PX4 uses the axes north, east and down for the world, and forward, right and down for the
//! vehicle. They are converted to the axes of ROS, as MAVROS does
//! (<https://docs.px4.io/main/en/ros/external_position_estimation.html>).

use rovelog::ulog_format::UlogReader;
use rovelog::ulog_format::px4;
use rovelog::{AnyLog, LogReader as _, Topic};

use super::{Trajectory, global, orient};
use crate::ExportError;
use crate::findings::scan::each_row;
use crate::pose::{Pose, east_north_up};
use crate::track::TrackOptions;

/// Fields of `vehicle_odometry`. Up to PX4 1.13, the position is in `x`, `y` and `z`, and the frame
/// in `local_frame`.
const ODOMETRY: &str = "position[0] position[1] position[2] q[0] q[1] q[2] q[3] x y z pose_frame local_frame";

/// Value of `pose_frame` for a world with the axes forward, right and down at the start.
const POSE_FRAME_FRD: f64 = 2.0;

/// Value of `local_frame` for such a world.
const LOCAL_FRAME_FRD: f64 = 1.0;

pub(super) fn read(
    log: &AnyLog,
    reader: &UlogReader,
    options: &TrackOptions,
) -> Result<Trajectory, ExportError> {
    let first = |name: &&str| px4::instances(reader, name).first().copied();
    let topics: Vec<&Topic> = match options.topics.first() {
        Some(name) => reader.topic(name).map(|topic| topic.get()).into_iter().collect(),
        None => ["vehicle_odometry", "vehicle_local_position"].iter().filter_map(first).collect(),
    };
    for topic in topics {
        let Ok(layout) = reader.definitions().layout(topic) else { continue };
        let has = |field: &str| layout.place(field).is_some();
        let trajectory = match (has("q[3]"), has("position[2]") || has("z"), has("xy_valid")) {
            (true, true, _) => odometry(reader, topic, options)?,
            (false, true, true) => local_position(reader, topic, options)?,
            _ => continue,
        };
        if !trajectory.poses.is_empty() || !options.topics.is_empty() {
            return Ok(trajectory);
        }
    }
    global::read(log, options)
}

/// Reads the poses of a topic with the type `vehicle_odometry`.
fn odometry(reader: &UlogReader, topic: &Topic, options: &TrackOptions) -> Result<Trajectory, ExportError> {
    let mut trajectory = Trajectory::new(&topic.name);
    let fields: Vec<_> = ODOMETRY.split(' ').collect();
    each_row(reader, &topic.name, &fields, (options.start, options.end), |nanos, row| {
        let [px, py, pz, w, i, j, k, x, y, z, pose_frame, local_frame] = *row else { return };
        trajectory.tally.rows += 1;
        let position = if px.is_nan() { [x, y, z] } else { [px, py, pz] };
        let pose = Pose { position, orientation: [w, i, j, k] };
        // The heading of such a world is arbitrary, so its axes become forward, left and up.
        let is_frd = pose_frame == POSE_FRAME_FRD || local_frame == LOCAL_FRAME_FRD;
        trajectory.push(nanos, if is_frd { forward_left_up(&pose) } else { east_north_up(&pose) });
    })?;
    Ok(trajectory)
}

/// Converts a pose whose world has the axes forward, right and down. The world and the vehicle are
/// both turned by half a turn about the forward axis.
fn forward_left_up(pose: &Pose) -> Pose {
    let ([x, y, z], [w, i, j, k]) = (pose.position, pose.orientation);
    Pose { position: [x, -y, -z], orientation: [w, i, -j, -k] }
}

/// Reads the positions of a topic with the type `vehicle_local_position`, with the orientations of
/// the attitude topic that belongs to it.
fn local_position(
    reader: &UlogReader,
    topic: &Topic,
    options: &TrackOptions,
) -> Result<Trajectory, ExportError> {
    let mut trajectory = Trajectory::new(&topic.name);
    let window = (options.start, options.end);
    each_row(reader, &topic.name, &["x", "y", "z", "xy_valid", "z_valid"], window, |nanos, row| {
        let [x, y, z, xy_valid, z_valid] = *row else { return };
        trajectory.tally.rows += 1;
        let valid = xy_valid != 0.0 && z_valid != 0.0;
        let position = if valid { [x, y, z] } else { [f64::NAN; 3] };
        trajectory.push(nanos, Pose { position, orientation: [f64::NAN; 4] });
    })?;
    // Simulators also log `vehicle_local_position_groundtruth` and `vehicle_attitude_groundtruth`,
    // and several estimators log `estimator_local_position` and `estimator_attitude`.
    let attitude = topic.name.replace("local_position", "attitude");
    orient(&mut trajectory, reader, &attitude, ["q[0]", "q[1]", "q[2]", "q[3]"])?;
    trajectory.poses.iter_mut().for_each(|timed| timed.pose = east_north_up(&timed.pose));
    Ok(trajectory)
}
