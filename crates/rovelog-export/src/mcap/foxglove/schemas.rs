//! The schemas of well-known types: each with the types inside it, and nothing else. Field numbers are those of
//! <https://github.com/foxglove/foxglove-sdk/tree/main/schemas/proto>.

use super::super::proto::{FieldProto, FileProto, MessageProto, Type, descriptor_set};

/// A schema of a well-known type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum WellKnown {
    CompressedImage,
    FrameTransform,
    LaserScan,
    LocationFix,
    Log,
    PointCloud,
    PoseInFrame,
    RawImage,
}

fn text(name: &str, number: u32) -> FieldProto {
    FieldProto::new(name, number, Type::String)
}

fn number(name: &str, number: u32) -> FieldProto {
    FieldProto::new(name, number, Type::Double)
}

fn count(name: &str, number: u32) -> FieldProto {
    FieldProto::new(name, number, Type::Fixed32)
}

fn data(name: &str, number: u32) -> FieldProto {
    FieldProto::new(name, number, Type::Bytes)
}

fn inner(name: &str, number: u32, ty: &str) -> FieldProto {
    FieldProto::new(name, number, Type::Message).of(format!(".foxglove.{ty}"))
}

fn choice(name: &str, number: u32, ty: &str) -> FieldProto {
    FieldProto::new(name, number, Type::Enum).of(format!(".foxglove.{ty}"))
}

fn time(number: u32) -> FieldProto {
    FieldProto::new("timestamp", number, Type::Message).of(".google.protobuf.Timestamp")
}

fn vector() -> MessageProto {
    MessageProto::new("Vector3", vec![number("x", 1), number("y", 2), number("z", 3)])
}

fn quaternion() -> MessageProto {
    MessageProto::new("Quaternion", vec![number("x", 1), number("y", 2), number("z", 3), number("w", 4)])
}

/// A message type with a pose in it.
fn posed(message: MessageProto) -> Vec<MessageProto> {
    let pose = vec![inner("position", 1, "Vector3"), inner("orientation", 2, "Quaternion")];
    vec![vector(), quaternion(), MessageProto::new("Pose", pose), message]
}

impl WellKnown {
    pub(in super::super) const fn name(self) -> &'static str {
        match self {
            Self::CompressedImage => "foxglove.CompressedImage",
            Self::FrameTransform => "foxglove.FrameTransform",
            Self::LaserScan => "foxglove.LaserScan",
            Self::LocationFix => "foxglove.LocationFix",
            Self::Log => "foxglove.Log",
            Self::PointCloud => "foxglove.PointCloud",
            Self::PoseInFrame => "foxglove.PoseInFrame",
            Self::RawImage => "foxglove.RawImage",
        }
    }

    pub(in super::super) fn descriptor(self) -> Vec<u8> {
        let timestamp = MessageProto::new(
            "Timestamp",
            vec![FieldProto::new("seconds", 1, Type::Int64), FieldProto::new("nanos", 2, Type::Int32)],
        );
        let messages = self.messages();
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

    /// The type behind those inside it.
    fn messages(self) -> Vec<MessageProto> {
        match self {
            Self::CompressedImage => {
                let fields = vec![time(1), data("data", 2), text("format", 3), text("frame_id", 4)];
                vec![MessageProto::new("CompressedImage", fields)]
            }
            Self::FrameTransform => {
                let fields = vec![
                    time(1),
                    text("parent_frame_id", 2),
                    text("child_frame_id", 3),
                    inner("translation", 4, "Vector3"),
                    inner("rotation", 5, "Quaternion"),
                ];
                vec![vector(), quaternion(), MessageProto::new("FrameTransform", fields)]
            }
            Self::LaserScan => posed(MessageProto::new(
                "LaserScan",
                vec![
                    time(1),
                    text("frame_id", 2),
                    inner("pose", 3, "Pose"),
                    number("start_angle", 4),
                    number("end_angle", 5),
                    number("ranges", 6).repeated(),
                    number("intensities", 7).repeated(),
                ],
            )),
            Self::LocationFix => location_fix(),
            Self::Log => {
                let fields = vec![
                    time(1),
                    choice("level", 2, "Log.Level"),
                    text("message", 3),
                    text("name", 4),
                    text("file", 5),
                    count("line", 6),
                ];
                let mut log = MessageProto::new("Log", fields);
                log.enums = vec![("Level", &["UNKNOWN", "DEBUG", "INFO", "WARNING", "ERROR", "FATAL"])];
                vec![log]
            }
            Self::PointCloud => point_cloud(),
            Self::PoseInFrame => posed(MessageProto::new(
                "PoseInFrame",
                vec![time(1), text("frame_id", 2), inner("pose", 3, "Pose")],
            )),
            Self::RawImage => {
                let fields = vec![
                    time(1),
                    count("width", 2),
                    count("height", 3),
                    text("encoding", 4),
                    count("step", 5),
                    data("data", 6),
                    text("frame_id", 7),
                ];
                vec![MessageProto::new("RawImage", fields)]
            }
        }
    }
}

fn location_fix() -> Vec<MessageProto> {
    let kind = "PositionCovarianceType";
    let fields = vec![
        number("latitude", 1),
        number("longitude", 2),
        number("altitude", 3),
        number("position_covariance", 4).repeated(),
        choice("position_covariance_type", 5, &format!("LocationFix.{kind}")),
        time(6),
        text("frame_id", 7),
        inner("metadata", 9, "KeyValuePair").repeated(),
        number("heading", 10).optional(),
    ];
    let mut fix = MessageProto::new("LocationFix", fields);
    fix.enums = vec![(kind, &["UNKNOWN", "APPROXIMATED", "DIAGONAL_KNOWN", "KNOWN"])];
    vec![MessageProto::new("KeyValuePair", vec![text("key", 1), text("value", 2)]), fix]
}

fn point_cloud() -> Vec<MessageProto> {
    let kind = "NumericType";
    let fields =
        vec![text("name", 1), count("offset", 2), choice("type", 3, &format!("PackedElementField.{kind}"))];
    let mut element = MessageProto::new("PackedElementField", fields);
    element.enums = vec![(
        kind,
        &["UNKNOWN", "UINT8", "INT8", "UINT16", "INT16", "UINT32", "INT32", "FLOAT32", "FLOAT64"],
    )];
    let cloud = MessageProto::new(
        "PointCloud",
        vec![
            time(1),
            text("frame_id", 2),
            inner("pose", 3, "Pose"),
            count("point_stride", 4),
            inner("fields", 5, "PackedElementField").repeated(),
            data("data", 6),
        ],
    );
    let mut messages = posed(cloud);
    messages.insert(0, element);
    messages
}
