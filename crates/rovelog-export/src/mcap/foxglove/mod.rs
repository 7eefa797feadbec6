//! Encodes messages of the types that viewers draw without configuration: `foxglove.LocationFix`,
//! `foxglove.Log`, `foxglove.PoseInFrame`, `foxglove.FrameTransform`, and sensor data.
//!
//! The first argument of the writing functions in `proto` is the field number. The numbers are
//! defined in <https://github.com/foxglove/foxglove-sdk/tree/main/schemas/proto>.

mod schemas;
mod sensors;

pub(super) use self::schemas::WellKnown;
pub(super) use self::sensors::{compressed_image, laser_scan, point_cloud, raw_image};
use super::proto::{double, element, int, message, present, uint};
use crate::pose::Pose;

/// Writes a time in nanoseconds as a `google.protobuf.Timestamp`. The seconds are rounded down,
/// because the nanoseconds of a `Timestamp` must not be negative.
fn time(field: u32, nanos: i64, out: &mut Vec<u8>) {
    message(field, out, |out| {
        int(1, nanos.div_euclid(1_000_000_000), out);
        int(2, nanos.rem_euclid(1_000_000_000), out);
    });
}

/// A position on the earth.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fix<'a> {
    /// Latitude in degrees.
    pub(super) latitude: f64,
    /// Longitude in degrees.
    pub(super) longitude: f64,
    /// Altitude in meters.
    pub(super) altitude: f64,
    /// Horizontal and vertical standard deviation of the position in meters.
    pub(super) accuracy: Option<(f64, f64)>,
    /// Name of the coordinate frame of the receiver.
    pub(super) frame: &'a str,
    /// Heading in radians clockwise from north.
    pub(super) heading: Option<f64>,
    /// Other properties of the fix, as keys and values.
    pub(super) metadata: &'a [(&'a str, String)],
}

/// Writes a `foxglove.LocationFix`.
pub(super) fn location_fix(nanos: i64, fix: &Fix<'_>, out: &mut Vec<u8>) {
    double(1, fix.latitude, out);
    double(2, fix.longitude, out);
    double(3, fix.altitude, out);
    if let Some((horizontal, vertical)) = fix.accuracy {
        let (h, v) = (horizontal * horizontal, vertical * vertical);
        let covariance = [h, 0.0, 0.0, 0.0, h, 0.0, 0.0, 0.0, v];
        let bytes: Vec<u8> = covariance.iter().flat_map(|value| value.to_le_bytes()).collect();
        element(4, &bytes, out);
        // The covariance type 2 means that only the diagonal of the covariance matrix is known.
        uint(5, 2, out);
    }
    time(6, nanos, out);
    super::proto::bytes(7, fix.frame.as_bytes(), out);
    for (key, value) in fix.metadata {
        message(9, out, |out| {
            super::proto::bytes(1, key.as_bytes(), out);
            super::proto::bytes(2, value.as_bytes(), out);
        });
    }
    if let Some(heading) = fix.heading {
        // The field is optional, so a heading of 0 must be written, too.
        present(10, heading, out);
    }
}

/// Writes a console line as a `foxglove.Log`. `level` is the severity from 0 to 7, as in syslog.
/// `source` is the name of the program that printed the line.
pub(super) fn log(nanos: i64, (level, source): (u8, &str), text: &str, out: &mut Vec<u8>) {
    // Foxglove's levels are 5 for fatal, 4 for error, 3 for warning, 2 for info and 1 for debug.
    let level = match level {
        0 => 5,
        1..=3 => 4,
        4 | 5 => 3,
        6 => 2,
        _ => 1,
    };
    time(1, nanos, out);
    uint(2, level, out);
    super::proto::bytes(3, text.as_bytes(), out);
    super::proto::bytes(4, source.as_bytes(), out);
}

fn vector(field: u32, [x, y, z]: [f64; 3], out: &mut Vec<u8>) {
    message(field, out, |out| {
        double(1, x, out);
        double(2, y, out);
        double(3, z, out);
    });
}

/// Writes a `foxglove.Quaternion`, which stores w last.
fn quaternion(field: u32, [w, x, y, z]: [f64; 4], out: &mut Vec<u8>) {
    message(field, out, |out| {
        double(1, x, out);
        double(2, y, out);
        double(3, z, out);
        double(4, w, out);
    });
}

fn pose(field: u32, pose: &Pose, out: &mut Vec<u8>) {
    message(field, out, |out| {
        vector(1, pose.position, out);
        quaternion(2, pose.orientation, out);
    });
}

/// Writes a `foxglove.PoseInFrame`. `frame` is the name of the coordinate frame.
pub(super) fn pose_in_frame(nanos: i64, frame: &str, at: &Pose, out: &mut Vec<u8>) {
    time(1, nanos, out);
    super::proto::bytes(2, frame.as_bytes(), out);
    pose(3, at, out);
}

/// Writes a `foxglove.FrameTransform`. It contains the pose of the coordinate frame `child` in the
/// coordinate frame `parent`.
pub(super) fn frame_transform(nanos: i64, (parent, child): (&str, &str), pose: &Pose, out: &mut Vec<u8>) {
    time(1, nanos, out);
    super::proto::bytes(2, parent.as_bytes(), out);
    super::proto::bytes(3, child.as_bytes(), out);
    vector(4, pose.position, out);
    quaternion(5, pose.orientation, out);
}
