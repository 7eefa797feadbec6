//! Reads the trajectory of a topic of a ROS bag.

use rovelog::core::backend::Backend as _;
use rovelog::rosbag12::BagReader;
use rovelog::{AnyLog, Select, Topic, TopicRef, Value};

use super::{Trajectory, global, refused};
use crate::ExportError;
use crate::pose::Pose;
use crate::track::TrackOptions;

/// A type of messages with a pose.
pub(crate) struct PoseType {
    pub(crate) name: &'static str,
    /// Path of the field with the position.
    pub(crate) position: &'static str,
    orientation: &'static str,
}

/// Types of messages with a pose, in order of preference.
pub(crate) const TYPES: [PoseType; 4] = [
    pose_type("nav_msgs/Odometry", "pose.pose.position", "pose.pose.orientation"),
    pose_type("geometry_msgs/PoseWithCovarianceStamped", "pose.pose.position", "pose.pose.orientation"),
    pose_type("geometry_msgs/PoseStamped", "pose.position", "pose.orientation"),
    TRANSFORM,
];

/// The type of a transform, which is the pose of a child frame in its parent.
pub(super) const TRANSFORM: PoseType =
    pose_type("geometry_msgs/TransformStamped", "transform.translation", "transform.rotation");

const fn pose_type(name: &'static str, position: &'static str, orientation: &'static str) -> PoseType {
    PoseType { name, position, orientation }
}

impl PoseType {
    /// Returns the pose and the stamp of a message. The stamp is in nanoseconds.
    pub(super) fn read(&self, message: &Value) -> Option<(i64, Pose)> {
        let position = numbers(at(message, self.position)?, ["x", "y", "z"])?;
        let orientation = numbers(at(message, self.orientation)?, ["w", "x", "y", "z"])?;
        #[expect(clippy::cast_possible_truncation, reason = "both parts have 32 bits")]
        let [sec, nsec] = numbers(at(message, "header.stamp")?, ["sec", "nsec"])?.map(|part| part as i64);
        Some((sec * 1_000_000_000 + nsec, Pose { position, orientation }))
    }
}

/// Returns the field with a path, such as `header.stamp`.
pub(super) fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, name| value.get(name))
}

/// Returns the fields with these names as numbers.
pub(crate) fn numbers<const N: usize>(value: &Value, names: [&str; N]) -> Option<[f64; N]> {
    let numbers: Option<Vec<f64>> = names.iter().map(|name| value.get(name)?.as_f64()).collect();
    numbers?.try_into().ok()
}

/// Type of messages with a geographic position.
const NAV_SAT_FIX: &str = "sensor_msgs/NavSatFix";

pub(super) fn read(log: &AnyLog, bag: &BagReader, options: &TrackOptions) -> Result<Trajectory, ExportError> {
    let Some(topic) = choose(log, options)? else { return Ok(Trajectory::default()) };
    let Some(kind) = TYPES.iter().find(|kind| kind.name == topic.type_name) else {
        return global::read(log, &TrackOptions { topics: vec![topic.name.clone()], ..options.clone() });
    };
    let mut trajectory = Trajectory::new(&topic.name);
    let (mut messages, mut stamped) = (Vec::new(), false);
    for record in bag.intact_records(&Select::topic(&topic.name).between(options.start, options.end)) {
        let record = record?;
        if record.topic.id != topic.id {
            continue;
        }
        trajectory.tally.rows += 1;
        let Some((stamp, pose)) = record.value().ok().and_then(|message| kind.read(&message)) else {
            trajectory.tally.undecodable += 1;
            continue;
        };
        stamped |= stamp != 0;
        messages.push((stamp, record.time, pose));
    }
    for (stamp, time, pose) in messages {
        match time {
            _ if stamped => trajectory.push(stamp, pose),
            Some(time) => trajectory.push(time.nanos, pose),
            None => trajectory.tally.untimed += 1,
        }
    }
    if !stamped && !trajectory.poses.is_empty() {
        trajectory.notes.push("all stamps are 0, so the times are those of the recording".to_owned());
    }
    Ok(trajectory)
}

/// Returns the requested topic, or the topic whose type is the first of the types with poses.
/// Returns `None` if there is no such topic.
fn choose<'a>(log: &'a AnyLog, options: &TrackOptions) -> Result<Option<&'a Topic>, ExportError> {
    let names = || TYPES.iter().map(|kind| kind.name).chain([NAV_SAT_FIX]);
    let rank = |topic: &Topic| names().position(|name| name == topic.type_name);
    if let Some(name) = options.topics.first() {
        let found = log.topic(name).map(TopicRef::get).filter(|topic| rank(topic).is_some());
        let next = format!("name a topic of one of these types: {}", names().collect::<Vec<_>>().join(", "));
        let odd = || refused(log, format!("topic {name} contains no poses"), next);
        return Ok(Some(found.ok_or_else(odd)?));
    }
    let topics = || log.topics().iter().filter(|topic| topic.count > 0);
    let Some(best) = topics().filter_map(rank).min() else { return Ok(None) };
    let found: Vec<&Topic> = topics().filter(|topic| rank(topic) == Some(best)).collect();
    if let [_, _, ..] = found[..] {
        let list: Vec<_> = found.iter().map(|topic| &*topic.name).collect();
        let why = format!("the log has {} topics of type {}", found.len(), found[0].type_name);
        return Err(refused(log, why, format!("choose one of them: {}", list.join(", "))).into());
    }
    Ok(found.first().copied())
}
