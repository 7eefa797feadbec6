//! Reads the poses of a vehicle from a log, and writes them in the formats of tools that compare
//! trajectories, such as `evo`.
//!
//! The axes of all trajectories are those of ROS (REP 103). The vehicle has the axes forward, left
//! and up. The world has the axes of the recorded frame or, if the positions are geographic, east,
//! north and up.

mod global;
mod px4;
pub(crate) mod ros;
mod transforms;
mod vel;
mod write;

use rovelog::{AnyLog, Error, ErrorKind, LogReader};

pub use self::transforms::between_frames;
pub use self::write::{Format, write};
use crate::ExportError;
use crate::findings::scan::{WHOLE_LOG, each_row};
pub use crate::pose::Pose;
use crate::pose::{IDENTITY_POSE, length};
use crate::track::{Tally, TrackOptions};

/// Poses of one object over time.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Trajectory {
    /// Name of the topic, or of the two frames, from which the poses were read.
    pub source: String,
    /// Poses in time order.
    pub poses: Vec<TimedPose>,
    /// Sentences about the poses for the user, for example that the log has no orientations.
    pub notes: Vec<String>,
    /// Numbers of rows that were read, and of rows that were not used.
    pub tally: Tally,
}

/// A pose with its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimedPose {
    /// Time in nanoseconds on the log's clock.
    pub nanos: i64,
    /// Pose of the object.
    pub pose: Pose,
}

impl Trajectory {
    fn new(source: impl Into<String>) -> Self {
        Self { source: source.into(), ..Self::default() }
    }

    /// Adds a pose. A pose without a finite position is counted, but not added.
    fn push(&mut self, nanos: i64, pose: Pose) {
        if pose.position.iter().all(|part| part.is_finite()) {
            self.poses.push(TimedPose { nanos, pose });
        } else {
            self.tally.implausible += 1;
        }
    }

    /// Sorts the poses by time, and replaces orientations that are no rotations by the identity.
    fn finish(mut self) -> Self {
        self.poses.sort_by_key(|timed| timed.nanos);
        let mut replaced = 0;
        for TimedPose { pose, .. } in &mut self.poses {
            let length = length(pose.orientation);
            if !length.is_finite() || length < 1e-3 {
                pose.orientation = IDENTITY_POSE.orientation;
                replaced += 1;
            }
        }
        if replaced > 0 {
            let which = if replaced == self.poses.len() { "no pose has" } else { "some poses lack" };
            self.notes.push(format!(
                "{which} an orientation; the identity was written for {replaced} of {} poses",
                self.poses.len()
            ));
        }
        self
    }
}

/// Reads the trajectory of the topic in `options`, or of the best topic with poses. The trajectory
/// is empty if the log has no such topic.
///
/// # Errors
/// Returns an error if several topics are equally good, if the requested topic has no poses, or if
/// the log cannot be read.
pub fn of(log: &AnyLog, options: &TrackOptions) -> Result<Trajectory, ExportError> {
    if options.topics.len() > 1 {
        let why = "a trajectory file can have the poses of only one topic".to_owned();
        return Err(refused(log, why, "name only one topic").into());
    }
    let found = match log {
        AnyLog::Rosbag(bag) => ros::read(log, bag, options),
        AnyLog::Ulog(reader) => px4::read(log, reader, options),
        AnyLog::Vel(reader) => vel::read(log, reader, options),
        log => global::read(log, options),
    };
    found.map(Trajectory::finish)
}

fn refused(log: &AnyLog, why: String, next: impl Into<String>) -> Error {
    Error::new(log.format().id, ErrorKind::InvalidArgument, None, why).with_next(next.into())
}

/// The neighbors of a time in a list.
struct Neighbors<'a, T> {
    before: &'a T,
    after: &'a T,
    /// Position of the time between the neighbors: 0 at `before`, 1 at `after`.
    share: f64,
}

/// Finds the neighbors of a time in a list that is sorted by `time`. If an item has exactly this
/// time, this item is both neighbors. Returns `None` outside the times of the list.
fn neighbors<T>(items: &[T], nanos: i64, time: impl Fn(&T) -> i64) -> Option<Neighbors<'_, T>> {
    let at = items.partition_point(|item| time(item) < nanos);
    let after = items.get(at)?;
    if time(after) == nanos {
        return Some(Neighbors { before: after, after, share: 0.0 });
    }
    let before = items.get(at.checked_sub(1)?)?;
    let since = |from: i64, to: i64| to.abs_diff(from) as f64;
    let share = since(time(before), nanos) / since(time(before), time(after));
    Some(Neighbors { before, after, share })
}

/// Sets the orientation of each pose to the interpolated orientation at its time. `fields` are the
/// parts w, x, y and z of a quaternion in the topic `topic`. Poses outside the times of this topic
/// are removed and counted. If the topic has no orientations, the poses stay unchanged.
fn orient(
    trajectory: &mut Trajectory,
    log: &dyn LogReader,
    topic: &str,
    fields: [&str; 4],
) -> Result<(), ExportError> {
    let mut turns = Vec::new();
    each_row(log, topic, &fields, WHOLE_LOG, |nanos, row| {
        let Ok(orientation) = <[f64; 4]>::try_from(row) else { return };
        if (length(orientation) - 1.0).abs() <= 0.05 {
            turns.push(TimedPose { nanos, pose: Pose { orientation, ..IDENTITY_POSE } });
        }
    })?;
    if turns.is_empty() {
        return Ok(());
    }
    trajectory.source = format!("{} with {topic}", trajectory.source);
    turns.sort_by_key(|turn| turn.nanos);
    let before = trajectory.poses.len();
    trajectory.poses.retain_mut(|timed| {
        let Some(near) = neighbors(&turns, timed.nanos, |turn| turn.nanos) else { return false };
        timed.pose.orientation = near.before.pose.interpolate(&near.after.pose, near.share).orientation;
        true
    });
    trajectory.tally.unmatched += (before - trajectory.poses.len()) as u64;
    Ok(())
}
