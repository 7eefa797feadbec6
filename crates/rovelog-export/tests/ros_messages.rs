//! Exports VEL and ULog logs as ROS messages, and reads the bags and MCAP files again.

use std::collections::BTreeMap;

use mcap::MessageStream;
use rovelog::core::internal::layout::Fit;
use rovelog::rosbag12::msg::SumMatch;
use rovelog::{AnyLog, LogReader as _, ReadOptions, Select, Value};
use rovelog_export::bag2::{self, Bag2Options};
use rovelog_export::mcap::{self as to_mcap, McapOptions, RosForm};
use rovelog_export::{Exported, Provenance};

fn bag2(log: &AnyLog) -> (Vec<u8>, Exported) {
    let mut out = Vec::new();
    let done = bag2::write(log, &Select::all(), &Bag2Options::default(), &mut out, &mut |_| ()).unwrap();
    (out, done)
}

fn ros2(log: &AnyLog) -> (Vec<u8>, Exported) {
    let mut options = McapOptions::default();
    options.ros = RosForm::Ros2;
    let provenance = Provenance::new("log");
    let mut out = Vec::new();
    let done = to_mcap::write(log, &Select::all(), &options, &provenance, &mut out, &mut |_| ()).unwrap();
    (out, done)
}

fn open(bytes: Vec<u8>) -> Option<AnyLog> {
    rovelog::from_bytes(bytes.into(), &ReadOptions::default()).ok()
}

fn corpus(path: &str) -> AnyLog {
    open(std::fs::read(rovelog_testing::root().join("corpus").join(path)).unwrap()).unwrap()
}

/// Returns the values of a topic in a bag.
fn values(bag: &AnyLog, topic: &str) -> Vec<Value> {
    let records = bag.records(&Select::topic(topic));
    records.map(|record| record.unwrap().fields().unwrap().value().unwrap()).collect()
}

fn number(value: &Value, path: &str) -> f64 {
    path.split('.').fold(value, |value, name| value.get(name).unwrap()).as_f64().unwrap()
}

/// Every payload fits its definition exactly, and the MCAP file has the same messages.
#[test]
fn every_message_fits_its_definition() {
    let mut compared = 0;
    for (format, extension) in [("ulog", "ulg"), ("vel", "vel")] {
        let mut logs = rovelog_testing::corpus(format, extension, 70);
        logs.extend(
            rovelog_testing::real(format).iter().flat_map(|real| rovelog_testing::logs_in(real, extension)),
        );
        for rovelog_testing::Log { name, bytes, .. } in logs {
            let Ok(log) = rovelog::from_bytes(bytes, &ReadOptions::default()) else { continue };
            let (bytes, done) = bag2(&log);
            let mut counts = BTreeMap::new();
            let bag = open(bytes).unwrap();
            let AnyLog::Rosbag(reader) = &bag else { panic!("{name}: a bag") };
            for record in reader.records(&Select::all()) {
                let record = record.unwrap();
                let connection = &reader.connections()[record.topic.id.index()];
                let definition = connection.definition().unwrap();
                assert_eq!(definition.sum, SumMatch::V2, "{name}: {}", record.topic.name);
                assert_eq!(
                    definition.layout.fit(&record.payload),
                    Fit::Exact,
                    "{name}: {}",
                    record.topic.name
                );
                *counts.entry(record.topic.name.clone()).or_insert(0) += 1;
                compared += 1;
            }
            assert_eq!(counts.values().sum::<u64>(), done.messages, "{name}");
            let (bytes, done) = ros2(&log);
            for message in MessageStream::new(&bytes).unwrap() {
                let topic = &message.unwrap().channel.topic;
                *counts.get_mut(topic).unwrap() -= 1;
            }
            // ROS 2 cannot represent times after 2038.
            assert!(
                done.losses.iter().any(|loss| loss.why.contains("time")) || counts.values().all(|n| *n == 0)
            );
        }
    }
    assert!(compared > 1000);
}

/// Levels of `rosgraph_msgs/Log` are powers of two, from 1 (debug) to 16 (fatal).
#[test]
fn console_messages_become_rosout() {
    let log = corpus("ulog/texts-of-all-levels.ulg");
    let AnyLog::Ulog(reader) = &log else { panic!("a ULog") };
    let bag = open(bag2(&log).0).unwrap();
    let found: Vec<_> = values(&bag, "/rosout")
        .iter()
        .map(|value| {
            let text = |name: &str| value.get(name).unwrap().as_str().unwrap().to_owned();
            (number(value, "level"), text("name"), text("msg"))
        })
        .collect();
    // The times of the log run backward, and those of the bag forward.
    let mut lines: Vec<_> = reader.texts().unwrap().collect();
    lines.sort_by_key(|line| line.time.unwrap().nanos);
    let expected: Vec<_> = lines
        .into_iter()
        .map(|line| {
            let level = match line.level {
                0 => 16.0,
                1..=3 => 8.0,
                4 | 5 => 4.0,
                6 => 2.0,
                _ => 1.0,
            };
            (level, line.source.unwrap_or_else(|| "px4".to_owned()), line.text)
        })
        .collect();
    assert_eq!(found, expected);
    assert!(found.len() > 5);
}

/// A level vehicle measures an acceleration of 9.8 m/s² upward.
#[test]
fn flights_have_the_axes_of_ros() {
    let Some(real) = rovelog_testing::real("ulog") else { return };
    let log = open(std::fs::read(real.join("sample_log_small.ulg")).unwrap()).unwrap();
    let bag = open(bag2(&log).0).unwrap();
    let imu = values(&bag, "/imu/data");
    let mean = imu.iter().map(|imu| number(imu, "linear_acceleration.z")).sum::<f64>() / imu.len() as f64;
    assert!((9.0..10.5).contains(&mean), "{mean}");
    for (odometry, row) in values(&bag, "/odom").iter().zip(values(&log, "vehicle_local_position/0")) {
        for (ros, px4, sign) in [("x", "y", 1.0), ("y", "x", 1.0), ("z", "z", -1.0)] {
            let got = number(odometry, &format!("pose.pose.position.{ros}"));
            assert!((got - sign * number(&row, px4)).abs() < 1e-12);
        }
    }
    assert_eq!(values(&bag, "/battery_1").len(), values(&log, "battery_status/1").len());
}

#[test]
fn sensors_of_vel_logs_become_standard_messages() {
    let bag = open(bag2(&corpus("vel/all-kinds.vel")).0).unwrap();
    let mut topics: Vec<_> =
        bag.topics().iter().map(|topic| (topic.name.as_str(), topic.type_name.as_str())).collect();
    topics.sort_unstable();
    let shown: Vec<_> = topics.iter().map(|(name, ty)| format!("{name} {ty}")).collect();
    let expected = [
        "/camera_0/image/compressed sensor_msgs/CompressedImage",
        "/camera_1/image/compressed sensor_msgs/CompressedImage",
        "/gps/fix sensor_msgs/NavSatFix",
        "/imu/data sensor_msgs/Imu",
        "/laser_front/scan sensor_msgs/LaserScan",
        "/vel/GPSDataM vel_msgs/GPSDataM",
        "/vel/OBDDataM vel_msgs/OBDDataM",
        "/vel/RobotPoseM vel_msgs/RobotPoseM",
        "/velodyne_packets velodyne_msgs/VelodyneScan",
    ];
    assert_eq!(shown, expected);
}
