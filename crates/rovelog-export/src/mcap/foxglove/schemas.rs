//! Schemas of the message types that viewers can draw without configuration. Each schema contains
//! only the type and its nested types. The field numbers are defined in
//! <https://github.com/foxglove/foxglove-sdk/tree/main/schemas/proto>.

use prost::Message as _;
use prost_types::field_descriptor_proto::Type;
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorSet, OneofDescriptorProto};

use super::super::proto::{enum_type, field, field_of, file, google, message_type, repeated};

/// A type that viewers draw without configuration. The variants have the names of the types.
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

fn text(name: &str, number: i32) -> FieldDescriptorProto {
    field(name, number, Type::String)
}

fn number(name: &str, number: i32) -> FieldDescriptorProto {
    field(name, number, Type::Double)
}

fn count(name: &str, number: i32) -> FieldDescriptorProto {
    field(name, number, Type::Fixed32)
}

fn data(name: &str, number: i32) -> FieldDescriptorProto {
    field(name, number, Type::Bytes)
}

fn inner(name: &str, number: i32, ty: &str) -> FieldDescriptorProto {
    field_of(name, number, Type::Message, format!(".foxglove.{ty}"))
}

fn choice(name: &str, number: i32, ty: &str) -> FieldDescriptorProto {
    field_of(name, number, Type::Enum, format!(".foxglove.{ty}"))
}

fn time(number: i32) -> FieldDescriptorProto {
    field_of("timestamp", number, Type::Message, ".google.protobuf.Timestamp".to_owned())
}

fn vector() -> DescriptorProto {
    message_type("Vector3", vec![number("x", 1), number("y", 2), number("z", 3)])
}

fn quaternion() -> DescriptorProto {
    message_type("Quaternion", vec![number("x", 1), number("y", 2), number("z", 3), number("w", 4)])
}

/// Returns `message`, preceded by the types that its pose field needs.
fn posed(message: DescriptorProto) -> Vec<DescriptorProto> {
    let pose = vec![inner("position", 1, "Vector3"), inner("orientation", 2, "Quaternion")];
    vec![vector(), quaternion(), message_type("Pose", pose), message]
}

impl WellKnown {
    pub(in super::super) fn name(self) -> String {
        format!("foxglove.{self:?}")
    }

    pub(in super::super) fn descriptor(self) -> Vec<u8> {
        let google = google("Timestamp");
        let ours = file(
            format!("foxglove/{self:?}.proto"),
            "foxglove",
            std::slice::from_ref(&google),
            self.messages(),
        );
        FileDescriptorSet { file: vec![google, ours] }.encode_to_vec()
    }

    /// Returns the nested types of the message type, followed by the message type itself.
    fn messages(self) -> Vec<DescriptorProto> {
        match self {
            Self::CompressedImage => {
                let fields = vec![time(1), data("data", 2), text("format", 3), text("frame_id", 4)];
                vec![message_type("CompressedImage", fields)]
            }
            Self::FrameTransform => {
                let fields = vec![
                    time(1),
                    text("parent_frame_id", 2),
                    text("child_frame_id", 3),
                    inner("translation", 4, "Vector3"),
                    inner("rotation", 5, "Quaternion"),
                ];
                vec![vector(), quaternion(), message_type("FrameTransform", fields)]
            }
            Self::LaserScan => posed(message_type(
                "LaserScan",
                vec![
                    time(1),
                    text("frame_id", 2),
                    inner("pose", 3, "Pose"),
                    number("start_angle", 4),
                    number("end_angle", 5),
                    repeated(number("ranges", 6)),
                    repeated(number("intensities", 7)),
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
                let mut log = message_type("Log", fields);
                log.enum_type =
                    vec![enum_type("Level", &["UNKNOWN", "DEBUG", "INFO", "WARNING", "ERROR", "FATAL"])];
                vec![log]
            }
            Self::PointCloud => point_cloud(),
            Self::PoseInFrame => posed(message_type(
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
                vec![message_type("RawImage", fields)]
            }
        }
    }
}

fn location_fix() -> Vec<DescriptorProto> {
    let kind = "PositionCovarianceType";
    let fields = vec![
        number("latitude", 1),
        number("longitude", 2),
        number("altitude", 3),
        repeated(number("position_covariance", 4)),
        choice("position_covariance_type", 5, &format!("LocationFix.{kind}")),
        time(6),
        text("frame_id", 7),
        repeated(inner("metadata", 9, "KeyValuePair")),
        // The protobuf compiler `protoc` represents an optional field of proto3 as a `oneof` with a
        // single field.
        FieldDescriptorProto { oneof_index: Some(0), proto3_optional: Some(true), ..number("heading", 10) },
    ];
    let mut fix = message_type("LocationFix", fields);
    fix.enum_type = vec![enum_type(kind, &["UNKNOWN", "APPROXIMATED", "DIAGONAL_KNOWN", "KNOWN"])];
    fix.oneof_decl = vec![OneofDescriptorProto { name: Some("_heading".to_owned()), options: None }];
    vec![message_type("KeyValuePair", vec![text("key", 1), text("value", 2)]), fix]
}

fn point_cloud() -> Vec<DescriptorProto> {
    let kind = "NumericType";
    let fields =
        vec![text("name", 1), count("offset", 2), choice("type", 3, &format!("PackedElementField.{kind}"))];
    let mut element = message_type("PackedElementField", fields);
    element.enum_type = vec![enum_type(
        kind,
        &["UNKNOWN", "UINT8", "INT8", "UINT16", "INT16", "UINT32", "INT32", "FLOAT32", "FLOAT64"],
    )];
    let cloud = message_type(
        "PointCloud",
        vec![
            time(1),
            text("frame_id", 2),
            inner("pose", 3, "Pose"),
            count("point_stride", 4),
            repeated(inner("fields", 5, "PackedElementField")),
            data("data", 6),
        ],
    );
    let mut messages = posed(cloud);
    messages.insert(0, element);
    messages
}
