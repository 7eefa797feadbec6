//! Large ROS bags with many small messages.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};

use super::log::{HEADER, Topic, VERSION_LINE, bag_header, full, index_record, text};
use crate::large::{Large, Order};
use crate::lay::{lay, random_numbers, u32_of};
use anyhow::{Result, ensure};

pub(super) const LARGE: Large = Large { stem: "rosbag", default: 200_000_000, from: None, write };

/// Returns the topics. The number is the number of messages that a topic has per 100 ms, which has
/// 20 steps of 5 ms.
fn topics() -> Vec<(Topic, u32)> {
    let vector = ("geometry_msgs/Vector3", "float64 x\nfloat64 y\nfloat64 z\n");
    let quaternion = ("geometry_msgs/Quaternion", "float64 x\nfloat64 y\nfloat64 z\nfloat64 w\n");
    let imu = full(
        "Header header\ngeometry_msgs/Quaternion orientation\nfloat64[9] orientation_covariance\n\
         geometry_msgs/Vector3 angular_velocity\nfloat64[9] angular_velocity_covariance\n\
         geometry_msgs/Vector3 linear_acceleration\nfloat64[9] linear_acceleration_covariance\n",
        "\n",
        &[HEADER, quaternion, vector],
    );
    let stamped = "Header header\nstring child_frame_id\nTransform transform\n";
    let stamped = ("geometry_msgs/TransformStamped", stamped);
    let transform = ("geometry_msgs/Transform", "Vector3 translation\nQuaternion rotation\n");
    let types = [stamped, HEADER, transform, vector, quaternion];
    let tf = full("geometry_msgs/TransformStamped[] transforms\n", "\n", &types);
    let twist = full("Vector3 linear\nVector3 angular\n", "\n", &[vector]);
    let joints = "Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort\n";
    let joints = full(joints, "\n", &[HEADER]);
    let sum = "3066dcd76a6cfaef579bd0f34173e9fd";
    let joints = Topic::new("/joint_states", "sensor_msgs/JointState", sum, &joints);
    vec![
        (Topic::new("/imu/data", "sensor_msgs/Imu", "6a62c6daae103f4ff57a132d6f95cec2", &imu), 2),
        (Topic::new("/tf", "tf/tfMessage", "94810edda583a504dfda3829e70d7eec", &tf), 2),
        (Topic::new("/cmd_vel", "geometry_msgs/Twist", "9f195f881246fdfa2798d1d3eebca84a", &twist), 4),
        (joints, 4),
        (Topic::string("/chatter"), 20),
    ]
}

fn payload(topic: &str, seq: usize, stamp: (u32, u32), noise: &mut impl Iterator<Item = u64>) -> Vec<u8> {
    let mut floats = |count| -> Vec<f64> {
        noise.by_ref().take(count).map(|number| f64::from(u32_of(number >> 33)) / 1e6).collect()
    };
    let header = |frame: &str| lay![u32_of(seq), stamp, text(frame)];
    match topic {
        "/imu/data" => lay![header("imu"), floats(37)],
        "/tf" => lay![1_u32, header("odom"), text("base_footprint"), floats(7)],
        "/cmd_vel" => lay![floats(6)],
        "/joint_states" => {
            let names = ["shoulder", "elbow", "wrist", "gripper"].map(text);
            let numbers = [(); 3].map(|()| (4_u32, floats(4)));
            lay![header(""), 4_u32, names, numbers]
        }
        _ => text(format!("all is well {seq}")),
    }
}

fn write(order: &Order, out: &mut BufWriter<File>) -> Result<String> {
    let topics = topics();
    let mut index: Vec<Vec<u8>> = vec![Vec::new(); topics.len()];
    let mut counts = vec![0; topics.len()];
    let mut noise = random_numbers();
    let head = lay![VERSION_LINE, bag_header(0)];
    out.write_all(&head)?;
    let mut at = head.len() as u64;
    for step in 0_u32.. {
        if at >= order.size {
            break;
        }
        let stamp = (1_262_304_000 + step / 200, step % 200 * 5_000_000);
        for (number, (topic, _)) in topics.iter().enumerate().filter(|(_, (_, every))| step % every == 0) {
            index[number].extend(lay![stamp, at]);
            let definition = if counts[number] == 0 { topic.definition() } else { Vec::new() };
            let message = topic.data(stamp, payload(&topic.name, counts[number], stamp, &mut noise));
            out.write_all(&definition)?;
            out.write_all(&message)?;
            at += (definition.len() + message.len()) as u64;
            counts[number] += 1;
        }
    }
    let mut by_name: Vec<_> = (0..topics.len()).collect();
    by_name.sort_by_key(|number| topics[*number].0.name.clone());
    for number in by_name {
        let topic = &topics[number].0;
        let counts = [0, u32_of(counts[number])];
        out.write_all(&index_record(&topic.name, Some(&topic.ty), counts, &index[number]))?;
    }
    out.seek(SeekFrom::Start(VERSION_LINE.len() as u64))?;
    out.write_all(&bag_header(at))?;
    let messages: usize = counts.iter().sum();
    ensure!(messages > 0, "a bag of {} bytes has no messages", order.size);
    Ok(format!("{messages} messages"))
}
