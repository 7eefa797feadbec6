//! Large ROS bags: many small messages.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};

use super::log::{HEADER, Topic, VERSION_LINE, bag_header, full, index_record, text, u32_of};
use crate::large::{Large, Order};
use crate::lay::lay;
use anyhow::{Result, ensure};

pub(super) const LARGE: Large = Large { stem: "rosbag", default: 200_000_000, from: None, write };

/// Returns the topics, and the number of the 20 steps of 5 ms in which each publishes.
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
    let tf = full(
        "geometry_msgs/TransformStamped[] transforms\n",
        "\n",
        &[
            ("geometry_msgs/TransformStamped", "Header header\nstring child_frame_id\nTransform transform\n"),
            HEADER,
            ("geometry_msgs/Transform", "Vector3 translation\nQuaternion rotation\n"),
            vector,
            quaternion,
        ],
    );
    let twist = full("Vector3 linear\nVector3 angular\n", "\n", &[vector]);
    let joints = full(
        "Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort\n",
        "\n",
        &[HEADER],
    );
    vec![
        (Topic::new("/imu/data", "sensor_msgs/Imu", "6a62c6daae103f4ff57a132d6f95cec2", &imu), 2),
        (Topic::new("/tf", "tf/tfMessage", "94810edda583a504dfda3829e70d7eec", &tf), 2),
        (Topic::new("/cmd_vel", "geometry_msgs/Twist", "9f195f881246fdfa2798d1d3eebca84a", &twist), 4),
        (
            Topic::new(
                "/joint_states",
                "sensor_msgs/JointState",
                "3066dcd76a6cfaef579bd0f34173e9fd",
                &joints,
            ),
            4,
        ),
        (Topic::string("/chatter"), 20),
    ]
}

/// Plausible measured values, the same on every machine.
struct Noise(u64);

impl Noise {
    fn floats(&mut self, count: usize) -> Vec<f64> {
        let next = |_| {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            f64::from(u32::try_from(self.0 >> 33).unwrap_or(0)) / 1e6
        };
        (0..count).map(next).collect()
    }
}

fn payload(topic: &str, seq: usize, stamp: (u32, u32), noise: &mut Noise) -> Vec<u8> {
    let header = |frame: &str| lay![u32_of(seq), stamp, text(frame)];
    match topic {
        "/imu/data" => lay![header("imu"), noise.floats(37)],
        "/tf" => lay![1_u32, header("odom"), text("base_footprint"), noise.floats(7)],
        "/cmd_vel" => lay![noise.floats(6)],
        "/joint_states" => {
            let names = ["shoulder", "elbow", "wrist", "gripper"].map(text);
            let numbers = [(); 3].map(|()| (4_u32, noise.floats(4)));
            lay![header(""), 4_u32, names, numbers]
        }
        _ => text(format!("all is well {seq}")),
    }
}

fn write(order: &Order, out: &mut BufWriter<File>) -> Result<String> {
    let topics = topics();
    let mut index: Vec<Vec<u8>> = vec![Vec::new(); topics.len()];
    let mut counts = vec![0; topics.len()];
    let mut noise = Noise(1);
    out.write_all(VERSION_LINE)?;
    out.write_all(&bag_header(0))?;
    let mut at = VERSION_LINE.len() as u64 + bag_header(0).len() as u64;
    for step in 0u32.. {
        if at >= order.size {
            break;
        }
        let nanos = u64::from(step) * 5_000_000;
        let stamp =
            (1_262_304_000 + u32::try_from(nanos / 1_000_000_000)?, u32::try_from(nanos % 1_000_000_000)?);
        for (number, (topic, _)) in topics.iter().enumerate().filter(|(_, (_, every))| step % every == 0) {
            let pos = at;
            if counts[number] == 0 {
                let definition = topic.definition();
                out.write_all(&definition)?;
                at += definition.len() as u64;
            }
            let record = topic.data(stamp, &payload(&topic.name, counts[number], stamp, &mut noise));
            out.write_all(&record)?;
            at += record.len() as u64;
            counts[number] += 1;
            index[number].extend(lay![stamp, pos]);
        }
    }
    let mut by_name: Vec<_> = (0..topics.len()).collect();
    by_name.sort_by_key(|number| topics[*number].0.name.clone());
    for number in by_name {
        let topic = &topics[number].0;
        out.write_all(&index_record(
            &topic.name,
            Some(&topic.ty),
            [0, u32_of(counts[number])],
            &index[number],
        ))?;
    }
    out.seek(SeekFrom::Start(VERSION_LINE.len() as u64))?;
    out.write_all(&bag_header(at))?;
    let messages: usize = counts.iter().sum();
    ensure!(messages > 0, "a bag of {} bytes has no messages", order.size);
    Ok(format!("{messages} messages"))
}
