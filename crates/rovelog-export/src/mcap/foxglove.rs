//! The well-known types that viewers draw by themselves: `foxglove.LocationFix`, `Log`, `PoseInFrame`,
//! `FrameTransform`. Field numbers are those of <https://github.com/foxglove/foxglove-sdk/tree/main/schemas/proto>.

use rovelog::Text;

use super::proto::{
    FieldProto, FileProto, MessageProto, Type, descriptor_set, double, element, fixed32, int, message, uint,
};

/// A schema of a well-known type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum WellKnown {
    LocationFix,
    Log,
    PoseInFrame,
    FrameTransform,
}

impl WellKnown {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::LocationFix => "foxglove.LocationFix",
            Self::Log => "foxglove.Log",
            Self::PoseInFrame => "foxglove.PoseInFrame",
            Self::FrameTransform => "foxglove.FrameTransform",
        }
    }

    pub(super) fn descriptor(self) -> Vec<u8> {
        let timestamp = MessageProto::new(
            "Timestamp",
            vec![FieldProto::new("seconds", 1, Type::Int64), FieldProto::new("nanos", 2, Type::Int32)],
        );
        let time = || FieldProto::new("timestamp", 1, Type::Message).of(".google.protobuf.Timestamp");
        let text = |name: &str, number| FieldProto::new(name, number, Type::String);
        let number = |name: &str, number| FieldProto::new(name, number, Type::Double);
        let inner = |name: &str, number, ty: &str| {
            FieldProto::new(name, number, Type::Message).of(format!(".foxglove.{ty}"))
        };
        let vector = || MessageProto::new("Vector3", vec![number("x", 1), number("y", 2), number("z", 3)]);
        let quaternion = || {
            let fields = vec![number("x", 1), number("y", 2), number("z", 3), number("w", 4)];
            MessageProto::new("Quaternion", fields)
        };
        let messages = match self {
            Self::LocationFix => {
                let kind = "PositionCovarianceType";
                let fields = vec![
                    number("latitude", 1),
                    number("longitude", 2),
                    number("altitude", 3),
                    number("position_covariance", 4).repeated(),
                    FieldProto::new("position_covariance_type", 5, Type::Enum)
                        .of(format!(".foxglove.LocationFix.{kind}")),
                    FieldProto { number: 6, ..time() },
                    text("frame_id", 7),
                ];
                let mut fix = MessageProto::new("LocationFix", fields);
                fix.enums = vec![(kind, &["UNKNOWN", "APPROXIMATED", "DIAGONAL_KNOWN", "KNOWN"])];
                vec![fix]
            }
            Self::Log => {
                let fields = vec![
                    time(),
                    FieldProto::new("level", 2, Type::Enum).of(".foxglove.Log.Level"),
                    text("message", 3),
                    text("name", 4),
                    text("file", 5),
                    FieldProto::new("line", 6, Type::Fixed32),
                ];
                let mut log = MessageProto::new("Log", fields);
                log.enums = vec![("Level", &["UNKNOWN", "DEBUG", "INFO", "WARNING", "ERROR", "FATAL"])];
                vec![log]
            }
            Self::PoseInFrame => {
                let pose = vec![inner("position", 1, "Vector3"), inner("orientation", 2, "Quaternion")];
                let fields = vec![time(), text("frame_id", 2), inner("pose", 3, "Pose")];
                vec![
                    vector(),
                    quaternion(),
                    MessageProto::new("Pose", pose),
                    MessageProto::new("PoseInFrame", fields),
                ]
            }
            Self::FrameTransform => {
                let fields = vec![
                    time(),
                    text("parent_frame_id", 2),
                    text("child_frame_id", 3),
                    inner("translation", 4, "Vector3"),
                    inner("rotation", 5, "Quaternion"),
                ];
                vec![vector(), quaternion(), MessageProto::new("FrameTransform", fields)]
            }
        };
        let google = FileProto {
            name: "google/protobuf/timestamp.proto",
            package: "google.protobuf",
            dependencies: &[],
            messages: &[timestamp],
        };
        let short = self.name().trim_start_matches("foxglove.");
        let file = format!("foxglove/{short}.proto");
        let dependencies = ["google/protobuf/timestamp.proto"];
        let ours =
            FileProto { name: &file, package: "foxglove", dependencies: &dependencies, messages: &messages };
        descriptor_set(&[google, ours])
    }
}

/// A `google.protobuf.Timestamp`, which rounds down.
fn time(field: u32, nanos: i64, out: &mut Vec<u8>) {
    message(field, out, |out| {
        int(1, nanos.div_euclid(1_000_000_000), out);
        int(2, nanos.rem_euclid(1_000_000_000), out);
    });
}

/// A place on the earth.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fix<'a> {
    pub(super) latitude: f64,
    pub(super) longitude: f64,
    pub(super) altitude: f64,
    /// Standard deviations in metres, horizontal and vertical.
    pub(super) accuracy: Option<(f64, f64)>,
    pub(super) frame: &'a str,
}

pub(super) fn location_fix(nanos: i64, fix: &Fix<'_>, out: &mut Vec<u8>) {
    double(1, fix.latitude, out);
    double(2, fix.longitude, out);
    double(3, fix.altitude, out);
    if let Some((horizontal, vertical)) = fix.accuracy {
        let (h, v) = (horizontal * horizontal, vertical * vertical);
        let covariance = [h, 0.0, 0.0, 0.0, h, 0.0, 0.0, 0.0, v];
        let bytes: Vec<u8> = covariance.iter().flat_map(|value| value.to_le_bytes()).collect();
        element(4, &bytes, out);
        uint(5, 2, out);
    }
    time(6, nanos, out);
    super::proto::bytes(7, fix.frame.as_bytes(), out);
}

/// A console line; `source` becomes the name.
pub(super) fn log(nanos: i64, text: &Text, out: &mut Vec<u8>) {
    let level = match text.level {
        0 => 5,
        1..=3 => 4,
        4 | 5 => 3,
        6 => 2,
        _ => 1,
    };
    time(1, nanos, out);
    uint(2, level, out);
    super::proto::bytes(3, text.text.as_bytes(), out);
    super::proto::bytes(4, text.source.as_deref().unwrap_or_default().as_bytes(), out);
    fixed32(6, 0, out);
}

/// Where something is and how it is turned: metres; a quaternion as w, x, y, z.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pose {
    pub(super) position: [f64; 3],
    pub(super) orientation: [f64; 4],
}

fn vector(field: u32, [x, y, z]: [f64; 3], out: &mut Vec<u8>) {
    message(field, out, |out| {
        double(1, x, out);
        double(2, y, out);
        double(3, z, out);
    });
}

fn quaternion(field: u32, [w, x, y, z]: [f64; 4], out: &mut Vec<u8>) {
    message(field, out, |out| {
        double(1, x, out);
        double(2, y, out);
        double(3, z, out);
        double(4, w, out);
    });
}

pub(super) fn pose_in_frame(nanos: i64, frame: &str, pose: &Pose, out: &mut Vec<u8>) {
    time(1, nanos, out);
    super::proto::bytes(2, frame.as_bytes(), out);
    message(3, out, |out| {
        vector(1, pose.position, out);
        quaternion(2, pose.orientation, out);
    });
}

pub(super) fn frame_transform(nanos: i64, (parent, child): (&str, &str), pose: &Pose, out: &mut Vec<u8>) {
    time(1, nanos, out);
    super::proto::bytes(2, parent.as_bytes(), out);
    super::proto::bytes(3, child.as_bytes(), out);
    vector(4, pose.position, out);
    quaternion(5, pose.orientation, out);
}
