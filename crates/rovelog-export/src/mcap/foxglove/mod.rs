//! Encodes messages of the types that viewers draw without configuration: `foxglove.LocationFix`,
//! `foxglove.Log`, `foxglove.PoseInFrame`, `foxglove.FrameTransform`, and sensor data.
//!
//! The first argument of the writing functions in `proto` is the field number. The numbers are
//! defined in <https://github.com/foxglove/foxglove-sdk/tree/main/schemas/proto>.

mod schemas;
mod sensors;

pub(super) use self::schemas::WellKnown;
pub(super) use self::sensors::{compressed_image, laser_scan, point_cloud, raw_image};
use super::proto::{bytes, double, element, int, message, present, uint};
use crate::pose::Pose;
use crate::vehicle::severity;

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

/// Encodes a `foxglove.LocationFix`.
pub(super) fn location_fix(nanos: i64, fix: &Fix<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(192);
    double(1, fix.latitude, &mut out);
    double(2, fix.longitude, &mut out);
    double(3, fix.altitude, &mut out);
    if let Some((horizontal, vertical)) = fix.accuracy {
        let (h, v) = (horizontal * horizontal, vertical * vertical);
        let covariance = [h, 0.0, 0.0, 0.0, h, 0.0, 0.0, 0.0, v];
        element(4, &covariance.map(f64::to_le_bytes).concat(), &mut out);
        // The covariance type 2 means that only the diagonal of the covariance matrix is known.
        uint(5, 2, &mut out);
    }
    time(6, nanos, &mut out);
    bytes(7, fix.frame, &mut out);
    for (key, value) in fix.metadata {
        message(9, &mut out, |out| {
            bytes(1, key, out);
            bytes(2, value, out);
        });
    }
    if let Some(heading) = fix.heading {
        // The field is optional, so a heading of 0 must be written, too.
        present(10, heading, &mut out);
    }
    out
}

/// Encodes a console line as a `foxglove.Log`. `level` is the severity from 0 to 7, as in syslog.
/// `source` is the name of the program that printed the line.
pub(super) fn log(nanos: i64, level: u8, source: &str, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    // Foxglove's levels are 1 for debug, 2 for info, 3 for warning, 4 for error and 5 for fatal.
    let level = u64::from(severity(level)) + 1;
    time(1, nanos, &mut out);
    uint(2, level, &mut out);
    bytes(3, text, &mut out);
    bytes(4, source, &mut out);
    out
}

fn vector(field: u32, [x, y, z]: [f64; 3], out: &mut Vec<u8>) {
    message(field, out, |out| {
        double(1, x, out);
        double(2, y, out);
        double(3, z, out);
    });
}

/// Encodes a `foxglove.Quaternion`, which stores w last.
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

/// Encodes a `foxglove.PoseInFrame`. `frame` is the name of the coordinate frame.
pub(super) fn pose_in_frame(nanos: i64, frame: &str, at: &Pose) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    time(1, nanos, &mut out);
    bytes(2, frame, &mut out);
    pose(3, at, &mut out);
    out
}

/// Encodes a `foxglove.FrameTransform`. It contains the pose of the coordinate frame `child` in the
/// coordinate frame `parent`.
pub(super) fn frame_transform(nanos: i64, parent: &str, child: &str, pose: &Pose) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    time(1, nanos, &mut out);
    bytes(2, parent, &mut out);
    bytes(3, child, &mut out);
    vector(4, pose.position, &mut out);
    quaternion(5, pose.orientation, &mut out);
    out
}
