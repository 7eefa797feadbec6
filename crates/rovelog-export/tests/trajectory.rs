//! Trajectories of logs that the tests write. The expected poses follow from what is written.

#[path = "common/flight.rs"]
mod flight;

use std::f64::consts::FRAC_1_SQRT_2;
use std::io::Cursor;

use rovelog::rosbag12::{BagWriter, ConnectionId};
use rovelog::{AnyLog, ReadOptions};
use rovelog_export::track::TrackOptions;
use rovelog_export::trajectory::{self, Format, Trajectory};
use rovelog_testing::root;

use flight::Flight;

/// Quarter turn to the left, in the order w, x, y, z.
const LEFT: [f64; 4] = [FRAC_1_SQRT_2, 0.0, 0.0, FRAC_1_SQRT_2];
const IDENTITY: [f64; 4] = [1.0, 0.0, 0.0, 0.0];
/// Time of the first message of a bag in seconds.
const START: u32 = 1_000_000_000;

fn options(topic: &str) -> TrackOptions {
    let mut options = TrackOptions::default();
    options.topics.push(topic.to_owned());
    options
}

fn of(log: &AnyLog) -> Trajectory {
    trajectory::of(log, &TrackOptions::default()).unwrap()
}

/// Checks the times in nanoseconds, the positions and the orientations of a trajectory.
fn check(found: &Trajectory, expected: &[(i64, [f64; 3], [f64; 4])]) {
    let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9);
    assert_eq!(found.poses.len(), expected.len(), "{found:#?}");
    for (timed, (nanos, position, orientation)) in found.poses.iter().zip(expected) {
        assert_eq!(timed.nanos, *nanos);
        assert!(close(&timed.pose.position, position), "{timed:?}");
        // A quaternion and its negative are the same rotation.
        let negative = orientation.map(|part| -part);
        let turned = &timed.pose.orientation;
        assert!(close(turned, orientation) || close(turned, &negative), "{timed:?}");
    }
}

#[test]
fn local_positions_of_px4_get_interpolated_attitudes() {
    let mut flight = Flight::default();
    let position = |flight: &mut Flight, time: f64, xyz: [f64; 3], valid: f64| {
        let [x, y, z] = xyz;
        let values = [("x", x), ("y", y), ("z", z), ("xy_valid", valid), ("z_valid", 1.0)];
        flight.row(time, "vehicle_local_position", &values);
    };
    position(&mut flight, 1.0, [9.0, 9.0, 9.0], 1.0);
    position(&mut flight, 2.0, [1.0, 2.0, -3.0], 1.0);
    position(&mut flight, 2.5, [9.0, 9.0, 9.0], 0.0);
    position(&mut flight, 3.0, [4.0, 5.0, -6.0], 1.0);
    // The vehicle points north at 2 s, and south at 4 s. It turns to the right, over east.
    for (time, heading) in [(2.0, 0.0), (4.0, 179.999_999_9_f64)] {
        let (sin, cos) = (heading.to_radians() / 2.0).sin_cos();
        flight.row(time, "vehicle_attitude", &[("q[0]", cos), ("q[1]", 0.0), ("q[2]", 0.0), ("q[3]", sin)]);
    }
    let found = of(&flight.log());
    assert_eq!(found.source, "vehicle_local_position/0 with vehicle_attitude/0");
    check(&found, &[(2_000_000_000, [2.0, 1.0, 3.0], LEFT), (3_000_000_000, [5.0, 4.0, 6.0], IDENTITY)]);
    assert_eq!((found.tally.rows, found.tally.unmatched, found.tally.implausible), (4, 1, 1));
}

#[test]
fn odometry_of_px4_is_in_the_axes_of_ros() {
    let odometry = |frame: f64, q: [f64; 4]| {
        let mut flight = Flight::default();
        let mut values: Vec<_> = vec![("position[0]", 1.0), ("position[1]", 2.0), ("position[2]", -3.0)];
        values.extend(["q[0]", "q[1]", "q[2]", "q[3]"].into_iter().zip(q));
        values.push(("pose_frame", frame));
        flight.row(1.0, "vehicle_odometry", &values);
        // It is preferred to the local position.
        flight.row(1.0, "vehicle_local_position", &[("x", 7.0), ("y", 7.0), ("z", 7.0), ("xy_valid", 1.0)]);
        of(&flight.log())
    };
    check(&odometry(1.0, IDENTITY), &[(1_000_000_000, [2.0, 1.0, 3.0], LEFT)]);
    // The world of the second frame has no north.
    check(&odometry(2.0, IDENTITY), &[(1_000_000_000, [1.0, -2.0, 3.0], IDENTITY)]);
    // A turn to the right is a turn about the axis that points down.
    let right = [FRAC_1_SQRT_2, 0.0, 0.0, FRAC_1_SQRT_2];
    check(&odometry(1.0, right), &[(1_000_000_000, [2.0, 1.0, 3.0], IDENTITY)]);
    let unknown = odometry(1.0, [f64::NAN; 4]);
    check(&unknown, &[(1_000_000_000, [2.0, 1.0, 3.0], IDENTITY)]);
    assert_eq!(unknown.notes, ["no pose has an orientation; the identity was written for 1 of 1 poses"]);
}

/// A bag that a test writes.
struct Bag(BagWriter<Cursor<Vec<u8>>>);

impl Bag {
    fn new() -> Self {
        Self(BagWriter::new(Cursor::new(Vec::new())).unwrap())
    }

    /// Adds a topic of a type whose definition is in the catalog.
    fn topic(&mut self, name: &str, ty: &str) -> ConnectionId {
        let sum = match ty {
            "tf2_msgs/TFMessage" => "94810edda583a504dfda3829e70d7eec",
            "geometry_msgs/PoseStamped" => "d3812c3cbc69362b77dc0b19b345f8f5",
            "nav_msgs/Odometry" => "cd5e73d190d741a2f92e81eda573aca7",
            ty => panic!("{ty}"),
        };
        self.0.connect(name.as_bytes(), ty.as_bytes(), sum.as_bytes(), b"").unwrap()
    }

    /// Writes a message. `after` is the time of its record in seconds after the start.
    fn message(&mut self, topic: ConnectionId, after: u32, payload: &[u8]) {
        self.0.message(topic, START + after, 0, None, payload).unwrap();
    }

    fn log(self) -> AnyLog {
        let bytes = self.0.finish().unwrap().into_inner();
        rovelog::from_bytes(bytes.into(), &ReadOptions::default()).unwrap()
    }
}

fn text(text: &str, out: &mut Vec<u8>) {
    out.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
    out.extend(text.as_bytes());
}

fn header(stamp: u32, frame: &str) -> Vec<u8> {
    let mut out: Vec<u8> = [0, stamp, 0].iter().flat_map(|part: &u32| part.to_le_bytes()).collect();
    text(frame, &mut out);
    out
}

/// Encodes a position and a quaternion, whose order in messages is x, y, z, w.
fn pose(position: [f64; 3], [w, x, y, z]: [f64; 4]) -> impl Iterator<Item = u8> {
    position.into_iter().chain([x, y, z, w]).flat_map(f64::to_le_bytes)
}

/// Seconds, parent frame, child frame, translation and rotation of a transform.
type Transform<'a> = (u32, &'a str, &'a str, [f64; 3], [f64; 4]);

/// Encodes a message with transforms.
fn transforms(list: &[Transform<'_>]) -> Vec<u8> {
    let mut out = u32::try_from(list.len()).unwrap().to_le_bytes().to_vec();
    for (stamp, parent, child, position, orientation) in list {
        out.extend(header(*stamp, parent));
        text(child, &mut out);
        out.extend(pose(*position, *orientation));
    }
    out
}

#[test]
fn the_topic_and_the_times_of_poses_are_chosen() {
    let mut bag = Bag::new();
    let [first, second] = ["/a", "/b"].map(|name| bag.topic(name, "geometry_msgs/PoseStamped"));
    for (after, stamp, x, orientation) in [(1, 7, 1.0, LEFT), (2, 6, 2.0, [0.0; 4]), (3, 8, f64::NAN, LEFT)] {
        let mut stamped = header(stamp, "map");
        stamped.extend(pose([x, 0.0, 0.0], orientation));
        bag.message(first, after, &stamped);
        let mut unstamped = header(0, "map");
        unstamped.extend(pose([x, 0.0, 0.0], orientation));
        bag.message(second, after, &unstamped);
    }
    let log = bag.log();
    let error = trajectory::of(&log, &TrackOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "the log has 2 topics of type geometry_msgs/PoseStamped");
    // Poses are sorted by their stamps.
    let a = trajectory::of(&log, &options("/a")).unwrap();
    let [six, seven] = [6_000_000_000, 7_000_000_000];
    check(&a, &[(six, [2.0, 0.0, 0.0], IDENTITY), (seven, [1.0, 0.0, 0.0], LEFT)]);
    assert_eq!(a.tally.implausible, 1);
    assert_eq!(a.notes, ["some poses lack an orientation; the identity was written for 1 of 2 poses"]);
    // Without stamps, the times of the records are used.
    let b = trajectory::of(&log, &options("/b")).unwrap();
    assert_eq!(b.poses[0].nanos, i64::from(START + 1) * 1_000_000_000);
    assert!(b.notes.iter().any(|note| note.starts_with("all stamps are 0")), "{:?}", b.notes);
    // A topic without poses.
    let error = trajectory::of(&log, &options("/c")).unwrap_err();
    assert_eq!(error.to_string(), "topic /c contains no poses");
}

/// Writes a bag with transforms. Those of `fixed` are static.
fn tree(fixed: &[Transform<'_>], moving: &[Transform<'_>]) -> AnyLog {
    let mut bag = Bag::new();
    let (tf, tf_static) =
        (bag.topic("/tf", "tf2_msgs/TFMessage"), bag.topic("/tf_static", "tf2_msgs/TFMessage"));
    for one in moving {
        bag.message(tf, one.0, &transforms(std::slice::from_ref(one)));
    }
    bag.message(tf_static, 0, &transforms(fixed));
    bag.log()
}

fn between(log: &AnyLog, parent: &str, child: &str) -> Result<Trajectory, String> {
    let found = trajectory::between_frames(log, [parent, child], &TrackOptions::default());
    found.map_err(|error| error.to_string())
}

#[test]
fn transforms_are_composed_and_interpolated() {
    let forward = |x: f64| [x, 0.0, 0.0];
    let log = tree(
        &[(0, "base", "laser", [0.0, 0.0, 1.0], IDENTITY)],
        &[
            (0, "/map", "odom", forward(0.0), LEFT),
            (4, "/map", "odom", forward(4.0), LEFT),
            (1, "odom", "base", forward(1.0), IDENTITY),
            (2, "odom", "base", forward(2.0), IDENTITY),
            (5, "odom", "base", forward(5.0), IDENTITY),
            // Not a rotation.
            (3, "odom", "base", forward(9.0), [0.0; 4]),
        ],
    );
    let at = |second: i64| second * 1_000_000_000;
    // In `map`, the axis x of `odom` points along y. At 4 s, `base` is two thirds of the way from 2
    // to 5.
    let found = between(&log, "map", "laser").unwrap();
    let expected =
        [(at(1), [1.0, 1.0, 1.0], LEFT), (at(2), [2.0, 2.0, 1.0], LEFT), (at(4), [4.0, 4.0, 1.0], LEFT)];
    check(&found, &expected);
    assert_eq!((found.tally.rows, found.tally.unmatched), (5, 2));
    assert_eq!(found.notes, ["1 transform left out, as in tf2: not finite, or without a rotation"]);
    // The inverse.
    let right = [FRAC_1_SQRT_2, 0.0, 0.0, -FRAC_1_SQRT_2];
    let inverse = between(&log, "base", "map").unwrap();
    check(
        &inverse,
        &[
            (at(1), [-1.0, 1.0, 0.0], right),
            (at(2), [-2.0, 2.0, 0.0], right),
            (at(4), [-4.0, 4.0, 0.0], right),
        ],
    );
    // Static transforms have one pose.
    let fixed = between(&log, "base", "laser").unwrap();
    assert_eq!(fixed.poses.len(), 1);
    assert_eq!(fixed.poses[0].pose.position[2].to_bits(), 1f64.to_bits());
    let error = between(&log, "map", "lazer").unwrap_err();
    assert_eq!(error, "no transform names a frame lazer");
}

#[test]
fn a_frame_can_change_its_parent() {
    let log = tree(
        &[(0, "map", "left", [0.0, 1.0, 0.0], IDENTITY), (0, "map", "right", [0.0, -1.0, 0.0], IDENTITY)],
        &[(1, "left", "cup", [1.0, 0.0, 0.0], IDENTITY), (3, "right", "cup", [5.0, 0.0, 0.0], IDENTITY)],
    );
    let found = between(&log, "map", "cup").unwrap();
    check(&found, &[(1_000_000_000, [1.0, 1.0, 0.0], IDENTITY), (3_000_000_000, [5.0, -1.0, 0.0], IDENTITY)]);
}

#[test]
fn errors_name_the_missing_link() {
    let still =
        |after: u32, parent: &'static str, child: &'static str| (after, parent, child, [0.0; 3], IDENTITY);
    let apart = tree(&[still(0, "base", "laser")], &[still(1, "map", "odom"), still(1, "foot", "base")]);
    let error = between(&apart, "odom", "laser").unwrap_err();
    assert_eq!(
        error,
        "no transforms lead from odom to laser, because no transform connects the trees of map and foot"
    );
    let late = tree(&[], &[still(1, "map", "odom"), still(2, "map", "odom"), still(3, "odom", "base")]);
    let error = between(&late, "map", "base").unwrap_err();
    assert_eq!(
        error,
        "no transforms lead from map to base, because at no time are all transforms known: map -> odom from \
         1970-01-01T00:00:01Z to 1970-01-01T00:00:02Z, odom -> base from 1970-01-01T00:00:03Z to \
         1970-01-01T00:00:03Z"
    );
    let circle = tree(&[still(0, "c", "map")], &[still(1, "b", "a"), still(1, "a", "b")]);
    let error = between(&circle, "map", "a").unwrap_err();
    assert_eq!(error, "no transforms lead from map to a, because they form a cycle: a -> b -> a");
    let file = root().join("corpus/ulog/one-topic.ulg");
    let error = between(&rovelog::open(file).unwrap(), "map", "base").unwrap_err();
    assert_eq!(error, "ULog logs have no transforms between frames");
}

#[test]
fn each_format_has_its_columns() {
    let log =
        tree(&[], &[(1, "map", "base", [1.5, -2.0, 0.25], LEFT), (2, "map", "base", [3.0, 0.0, 1e-7], LEFT)]);
    let found = between(&log, "map", "base").unwrap();
    let first = |format| {
        let mut out = Vec::new();
        trajectory::write(&found, format, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().filter(|line| line.contains("0.0000001")).count(), 1, "{text}");
        text.lines().find(|line| line.contains("1.5")).unwrap().to_owned()
    };
    let half = FRAC_1_SQRT_2;
    assert_eq!(first(Format::Tum), format!("1.000000000 1.5 -2 0.25 0 0 {half} {half}"));
    assert_eq!(first(Format::Euroc), format!("1000000000,1.5,-2,0.25,{half},0,0,{half}"));
    assert_eq!(first(Format::Csv), format!("1000000000,1.5,-2,0.25,0,0,{half},{half}"));
    let kitti: Vec<f64> = first(Format::Kitti).split(' ').map(|number| number.parse().unwrap()).collect();
    let expected = [0.0, -1.0, 0.0, 1.5, 1.0, 0.0, 0.0, -2.0, 0.0, 0.0, 1.0, 0.25];
    assert!(kitti.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12) && kitti.len() == 12, "{kitti:?}");
}

#[test]
fn positions_of_receivers_are_meters_from_the_first() {
    let of_file = |name: &str| of(&rovelog::open(root().join("corpus").join(name)).unwrap());
    let fixes = of_file("rosbag/robot.bag");
    assert_eq!(fixes.source, "/fix");
    assert_eq!(fixes.poses[0].pose.position.map(f64::to_bits), [0.0_f64; 3].map(f64::to_bits));
    assert!(fixes.notes.iter().any(|note| note.starts_with("positions are meters east, north and up of ")));
    assert!(fixes.notes.iter().any(|note| note.starts_with("no pose has an orientation")));
}
