//! Reads the trajectory of a topic of a ROS bag.

use rovelog::core::backend::Backend as _;
use rovelog::core::internal::layout::{TypedError, TypedReader};
use rovelog::rosbag12::BagReader;
use rovelog::{AnyLog, Record, Select, Topic};
use serde::Deserialize;

use super::{Trajectory, global, refused};
use crate::ExportError;
use crate::pose::Pose;
use crate::track::TrackOptions;

/// Header of a message (`std_msgs/Header`).
#[derive(Deserialize)]
pub(super) struct Header {
    /// Time of the measurement in nanoseconds.
    pub(super) stamp: i64,
    pub(super) frame_id: String,
}

#[derive(Deserialize)]
struct Vector {
    x: f64,
    y: f64,
    z: f64,
}

#[derive(Deserialize)]
struct Quaternion {
    x: f64,
    y: f64,
    z: f64,
    w: f64,
}

/// `geometry_msgs/Pose`.
#[derive(Deserialize)]
struct RosPose {
    position: Vector,
    orientation: Quaternion,
}

/// `geometry_msgs/PoseWithCovariance`.
#[derive(Deserialize)]
struct CovariantPose {
    pose: RosPose,
}

/// `geometry_msgs/PoseStamped`, and messages with a pose of another type.
#[derive(Deserialize)]
struct Posed<P> {
    header: Header,
    pose: P,
}

/// `geometry_msgs/Transform`.
#[derive(Deserialize)]
struct Transform {
    translation: Vector,
    rotation: Quaternion,
}

/// `geometry_msgs/TransformStamped`.
#[derive(Deserialize)]
pub(super) struct TransformStamped {
    pub(super) header: Header,
    pub(super) child_frame_id: String,
    transform: Transform,
}

fn pose(position: &Vector, orientation: &Quaternion) -> Pose {
    let Quaternion { x, y, z, w } = *orientation;
    Pose { position: [position.x, position.y, position.z], orientation: [w, x, y, z] }
}

impl TransformStamped {
    pub(super) fn pose(&self) -> Pose {
        pose(&self.transform.translation, &self.transform.rotation)
    }
}

/// The stamp and the pose of a message.
type Stamped = (i64, Pose);

/// A type of messages with a pose.
struct PoseType {
    name: &'static str,
    read: fn(&mut TypedReader, &Record<'_>) -> Result<Stamped, TypedError>,
}

/// Types of messages with a pose, in order of preference.
const TYPES: [PoseType; 4] = [
    PoseType { name: "nav_msgs/Odometry", read: covariant },
    PoseType { name: "geometry_msgs/PoseWithCovarianceStamped", read: covariant },
    PoseType {
        name: "geometry_msgs/PoseStamped",
        read: |reader, record| {
            let message: Posed<RosPose> = reader.read(record)?;
            Ok((message.header.stamp, pose(&message.pose.position, &message.pose.orientation)))
        },
    },
    PoseType {
        name: "geometry_msgs/TransformStamped",
        read: |reader, record| {
            let message: TransformStamped = reader.read(record)?;
            Ok((message.header.stamp, message.pose()))
        },
    },
];

/// Type of messages with a geographic position.
const NAV_SAT_FIX: &str = "sensor_msgs/NavSatFix";

fn covariant(reader: &mut TypedReader, record: &Record<'_>) -> Result<Stamped, TypedError> {
    let Posed::<CovariantPose> { header, pose: CovariantPose { pose: inner } } = reader.read(record)?;
    Ok((header.stamp, pose(&inner.position, &inner.orientation)))
}

pub(super) fn read(log: &AnyLog, bag: &BagReader, options: &TrackOptions) -> Result<Trajectory, ExportError> {
    let Some(topic) = choose(log, options)? else { return Ok(Trajectory::default()) };
    let Some(kind) = TYPES.iter().find(|kind| kind.name == topic.type_name) else {
        return global::read(log, &TrackOptions { topics: vec![topic.name.clone()], ..options.clone() });
    };
    let mut trajectory = Trajectory::new(&topic.name);
    let (mut reader, mut stamped) = (TypedReader::default(), false);
    let mut messages = Vec::new();
    for record in bag.intact_records(&Select::topic(&topic.name).between(options.start, options.end)) {
        let record = record?;
        if record.topic.id != topic.id {
            continue;
        }
        trajectory.tally.rows += 1;
        let Ok((stamp, pose)) = (kind.read)(&mut reader, &record) else {
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
        let found = log.topic(name).map(|topic| topic.get()).filter(|topic| rank(topic).is_some());
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
