//! Composes the transforms of a ROS bag to the trajectory of one frame in another.
//!
//! The rules are those of tf2. Each transform states the pose of a child frame in its parent. A
//! static transform holds at all times. Between two transforms of a child, the position is
//! interpolated linearly, and the rotation at constant angular velocity. There is no pose before
//! the first and after the last transform of a child.
//!
//! # Example
//!
//! A bag has the pose of `odom` in `map` at 0 s and 4 s, and the pose of `base_link` in `odom` at 1 s,
//! 2 s and 5 s. The trajectory of `base_link` in `map` then has poses at 1 s, 2 s and 4 s. It has no
//! poses at 0 s and 5 s, because one of the two transforms is unknown then.

use std::collections::{BTreeSet, HashMap, HashSet};

use rovelog::core::backend::Backend as _;
use rovelog::core::internal::text::count;
use rovelog::rosbag12::BagReader;
use rovelog::{AnyLog, Clock, LogReader as _, Select, Timestamp, Topic, Value};

use super::ros::{TRANSFORM, at};
use super::{Trajectory, neighbors, refused};
use crate::ExportError;
use crate::pose::{IDENTITY_POSE, Pose, length};
use crate::signal::nearest;
use crate::track::TrackOptions;

/// Types of messages with transforms. `tf/tfMessage` is the older of the two.
const TYPES: [&str; 2] = ["tf2_msgs/TFMessage", "tf/tfMessage"];

/// Maximum number of frames above a frame. Real trees have less than 30. A hostile bag could have a
/// long chain, which would be followed at the time of each transform.
const MAX_DEPTH: usize = 100;

/// Maximum deviation of the length of a quaternion from 1, as in tf2.
const TOLERANCE: f64 = 0.01;

/// Maximum number of frames or transforms that an error message lists.
const MAX_LISTED: usize = 10;

/// Pose of a frame in its parent.
#[derive(Clone, Copy)]
struct Transform {
    nanos: i64,
    parent: usize,
    pose: Pose,
}

/// A coordinate frame, with the transforms to its parents.
#[derive(Default)]
struct Frame {
    name: String,
    /// Static transform, which holds at all times.
    fixed: Option<Transform>,
    /// Transforms in time order, at most one for each time.
    transforms: Vec<Transform>,
}

/// The coordinate frames of a bag. Frames are identified by their indices.
#[derive(Default)]
struct Frames {
    list: Vec<Frame>,
    ids: HashMap<String, usize>,
}

/// Reads the trajectory of the frame `child` in the frame `parent`. It has a pose at the time of
/// each transform between the two frames for which all other transforms are known. If all
/// transforms are static, it has one pose, at the start of the log.
///
/// # Errors
/// Returns an error if the log has no such frames, or if the transforms do not connect them.
pub fn between_frames(
    log: &AnyLog,
    [parent, child]: [&str; 2],
    options: &TrackOptions,
) -> Result<Trajectory, ExportError> {
    let AnyLog::Rosbag(bag) = log else {
        let why = format!("{} logs have no transforms between frames", log.format().name);
        return Err(refused(log, why, "name a ROS bag").into());
    };
    let mut trajectory = Trajectory::new(format!("{child} in {parent}"));
    let frames = Frames::read(log, bag, options, &mut trajectory)?;
    let [parent, child] = [frames.id(log, parent)?, frames.id(log, child)?];
    let mut times = frames.times(parent, child);
    if times.is_empty() {
        times.extend(log.info().start.map(|start| start.nanos));
    }
    times.retain(|time| options.keeps_time(*time));
    trajectory.tally.rows = times.len() as u64;
    for &nanos in &times {
        match frames.pose(parent, child, nanos) {
            Some(pose) => trajectory.push(nanos, pose),
            None => trajectory.tally.unmatched += 1,
        }
    }
    match times.first() {
        Some(first) if trajectory.poses.is_empty() => Err(frames.unconnected(log, parent, child, *first)),
        _ => Ok(trajectory.finish()),
    }
}

impl Frames {
    /// Reads all transforms. Transforms that are no rotations are counted and left out.
    fn read(
        log: &AnyLog,
        bag: &BagReader,
        options: &TrackOptions,
        trajectory: &mut Trajectory,
    ) -> Result<Self, ExportError> {
        let is_tf = |topic: &&Topic| TYPES.contains(&&*topic.type_name);
        let is_usual = |topic: &&Topic| ["tf", "tf_static"].contains(&topic.name.trim_start_matches('/'));
        let mut topics: Vec<&Topic> = bag.topics().iter().filter(is_tf).collect();
        if !options.topics.is_empty() {
            topics.retain(|topic| options.topics.contains(&topic.name));
        } else if topics.iter().any(is_usual) {
            topics.retain(is_usual);
        }
        if topics.is_empty() {
            let next = format!("transforms are in topics of type {}", TYPES.join(" or "));
            return Err(refused(log, "the log has no topic with transforms".to_owned(), next).into());
        }
        let mut frames = Self::default();
        let select = Select::topics(topics.iter().map(|topic| topic.name.clone()));
        let mut odd = 0_u64;
        for record in bag.intact_records(&select) {
            let record = record?;
            let message = record.value();
            let Some(Value::List(list)) = message.as_ref().ok().and_then(|all| all.get("transforms")) else {
                trajectory.tally.undecodable += 1;
                continue;
            };
            let is_static = record.topic.name.ends_with("tf_static");
            odd += list.iter().filter(|transform| frames.add(transform, is_static).is_none()).count() as u64;
        }
        if odd > 0 {
            let odd = count(odd, "transform");
            trajectory.notes.push(format!("{odd} left out, as in tf2: not finite, or without a rotation"));
        }
        for frame in &mut frames.list {
            frame.transforms.sort_by_key(|transform| transform.nanos);
            // As in tf2, the first of several transforms with the same time is used.
            frame.transforms.dedup_by_key(|transform| transform.nanos);
        }
        Ok(frames)
    }

    /// Adds a transform. Returns `None` if it is not finite or no rotation.
    fn add(&mut self, transform: &Value, is_static: bool) -> Option<()> {
        let (nanos, pose) = TRANSFORM.read(transform)?;
        let is_finite = pose.position.iter().all(|part| part.is_finite());
        if !is_finite || (length(pose.orientation) - 1.0).abs() > TOLERANCE {
            return None;
        }
        let parent = self.intern(at(transform, "header.frame_id")?.as_str()?);
        let child = self.intern(transform.get("child_frame_id")?.as_str()?);
        let transform = Transform { nanos, parent, pose };
        if is_static {
            self.list[child].fixed = Some(transform);
        } else {
            self.list[child].transforms.push(transform);
        }
        Some(())
    }

    /// Returns the index of a frame, which is added if it is new. Older programs write names with a
    /// slash in front.
    fn intern(&mut self, name: &str) -> usize {
        let name = name.trim_start_matches('/');
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        self.ids.insert(name.to_owned(), self.list.len());
        self.list.push(Frame { name: name.to_owned(), ..Frame::default() });
        self.list.len() - 1
    }

    /// Returns the index of a frame that the user named.
    fn id(&self, log: &AnyLog, name: &str) -> Result<usize, ExportError> {
        if let Some(id) = self.ids.get(name.trim_start_matches('/')) {
            return Ok(*id);
        }
        let mut names: Vec<_> = self.list.iter().map(|frame| &*frame.name).collect();
        names.sort_unstable();
        let next = match nearest(name, names.iter().copied()).first() {
            Some(near) => format!("did you mean {near}? The"),
            None => "the".to_owned(),
        };
        let more = if names.len() > MAX_LISTED { " ..." } else { "" };
        names.truncate(MAX_LISTED);
        let next = format!("{next} frames are: {}{more}", names.join(" "));
        Err(refused(log, format!("no transform names a frame {name}"), next).into())
    }

    /// Returns all parents that a frame has at any time.
    fn parents(&self, frame: usize) -> BTreeSet<usize> {
        let Frame { fixed, transforms, .. } = &self.list[frame];
        transforms.iter().chain(fixed).map(|transform| transform.parent).collect()
    }

    /// Returns a frame with all frames above it at any time.
    fn above(&self, frame: usize) -> HashSet<usize> {
        let (mut above, mut pending) = (HashSet::new(), vec![frame]);
        while let Some(frame) = pending.pop() {
            if above.insert(frame) {
                pending.extend(self.parents(frame));
            }
        }
        above
    }

    /// Returns the frames whose transforms are between `parent` and `child`. Frames above both are
    /// not between them.
    fn between(&self, parent: usize, child: usize) -> Vec<usize> {
        let mut between: Vec<_> =
            self.above(parent).symmetric_difference(&self.above(child)).copied().collect();
        between.sort_unstable();
        between
    }

    /// Returns the times of all transforms between two frames that are not static.
    fn times(&self, parent: usize, child: usize) -> Vec<i64> {
        let transforms = |frame: usize| self.list[frame].transforms.iter().map(|transform| transform.nanos);
        let mut times: Vec<_> = self.between(parent, child).into_iter().flat_map(transforms).collect();
        times.sort_unstable();
        times.dedup();
        times
    }

    /// Returns the transform of a frame to its parent at a time.
    fn transform(&self, frame: usize, nanos: i64) -> Option<Transform> {
        let Frame { fixed, transforms, .. } = &self.list[frame];
        if transforms.is_empty() {
            return *fixed;
        }
        let near = neighbors(transforms, nanos, |transform| transform.nanos)?;
        let (before, after) = (near.before, near.after);
        // As in tf2, a frame stays with its parent until the first transform to another parent.
        let moved = before.parent == after.parent && near.share > 0.0;
        let pose = if moved { before.pose.interpolate(&after.pose, near.share) } else { before.pose };
        Some(Transform { nanos, parent: before.parent, pose })
    }

    /// Returns a frame and the frames above it at a time, each with the pose of the first frame in
    /// it. There are at most [`MAX_DEPTH`] frames above it.
    fn chain(&self, frame: usize, nanos: i64) -> Vec<(usize, Pose)> {
        let step = |(frame, pose): &(usize, Pose)| {
            let transform = self.transform(*frame, nanos)?;
            Some((transform.parent, transform.pose.then(pose)))
        };
        std::iter::successors(Some((frame, IDENTITY_POSE)), step).take(MAX_DEPTH + 1).collect()
    }

    /// Returns the pose of `child` in `parent` at a time. Returns `None` if a transform between
    /// them is unknown.
    fn pose(&self, parent: usize, child: usize, nanos: i64) -> Option<Pose> {
        let above: HashMap<usize, Pose> = self.chain(parent, nanos).into_iter().rev().collect();
        let below = self.chain(child, nanos);
        let (common, child_pose) = below.iter().find(|(frame, _)| above.contains_key(frame))?;
        // Both poses are in the first frame that is above both frames.
        Some(if *common == parent { *child_pose } else { above[common].inverse().then(child_pose) })
    }

    /// Returns the error for two frames that are not connected at any time. `nanos` is one of these
    /// times.
    fn unconnected(&self, log: &AnyLog, parent: usize, child: usize, nanos: i64) -> ExportError {
        let name = |frame: usize| &*self.list[frame].name;
        let ends = format!("no transforms lead from {} to {}", name(parent), name(child));
        for frame in [parent, child] {
            let names: Vec<_> =
                self.chain(frame, nanos).iter().rev().map(|(frame, _)| name(*frame)).collect();
            if names.len() > MAX_DEPTH {
                // In a cycle, the last frame was reached before.
                let cycle = names[1..].iter().position(|name| *name == names[0]);
                let why = match cycle {
                    Some(at) => format!("they form a cycle: {}", names[..at + 2].join(" -> ")),
                    None => format!("more than {MAX_DEPTH} frames are above {}", name(frame)),
                };
                let next = "find the program that publishes a wrong child frame, and leave out its topic";
                return refused(log, format!("{ends}, because {why}"), next).into();
            }
        }
        let above = [parent, child].map(|frame| self.above(frame));
        let roots = above.each_ref().map(|above| above.iter().find(|frame| self.parents(**frame).is_empty()));
        if let ([Some(one), Some(other)], true) = (roots, above[0].is_disjoint(&above[1])) {
            let (one, other) = (name(*one), name(*other));
            let why = format!("{ends}, because no transform connects the trees of {one} and {other}");
            let next =
                format!("the missing link is a transform that has {one} or {other} as its child frame");
            return refused(log, why, next).into();
        }
        let spans = self.spans(parent, child);
        let why = format!("{ends}, because at no time are all transforms known: {spans}");
        refused(log, why, "choose frames whose transforms overlap in time").into()
    }

    /// Lists the time ranges of the transforms between two frames that are not static.
    fn spans(&self, parent: usize, child: usize) -> String {
        let at = |nanos| Timestamp::new(nanos, Clock::Unix).rfc3339().unwrap_or_default();
        let span = |frame: usize| {
            let Frame { name, transforms, .. } = &self.list[frame];
            let (first, last) = (transforms.first()?, transforms.last()?);
            let parent = &self.list[first.parent].name;
            Some(format!("{parent} -> {name} from {} to {}", at(first.nanos), at(last.nanos)))
        };
        let spans = self.between(parent, child).into_iter().filter_map(span).take(MAX_LISTED);
        spans.collect::<Vec<_>>().join(", ")
    }
}
