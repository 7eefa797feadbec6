//! The fields of the message types of the specification, the names of topics, and values.

use std::fmt::Write as _;
use std::sync::Arc;

use rovelog_core::wire::{F32Le, I32Le};
use rovelog_core::{Field, FieldType, Scalar, Schema, Value};

use crate::message::{Kind, Payload, text};
use crate::wire::{GpsData, ImageData, LaserRange, ObdData, RobotPose, VelodynePacket};

/// Characters of a sensor's name that become part of a topic's name.
const NAME_LIMIT: usize = 120;

fn scalar(name: &str, scalar: Scalar, source: &str) -> Field {
    Field::new(name, FieldType::Scalar(scalar), source)
}

fn int(name: &str) -> Field {
    scalar(name, Scalar::Int32, "int")
}

fn float(name: &str) -> Field {
    scalar(name, Scalar::Float32, "float")
}

fn double(name: &str) -> Field {
    scalar(name, Scalar::Float64, "double")
}

/// The fields of a kind of message, as records hold them: the log's own numbers.
pub fn schema(kind: Kind) -> Schema {
    let fields = match kind {
        Kind::Obd => vec![
            int("speed").with_unit("km/h"),
            int("rpm").with_unit("1/min"),
            float("unused0"),
            int("unused1"),
            int("unused2"),
            float("throttle").with_unit("%"),
            int("unused3"),
        ],
        Kind::Gps => vec![
            int("hour"),
            int("minute"),
            int("second"),
            int("warning"),
            double("latitude"),
            double("longitude"),
            float("speed").with_unit("km/h"),
            float("course").with_unit("deg"),
            int("day"),
            int("month"),
            int("year"),
            int("quality"),
            int("satellites"),
            float("hdop"),
            float("height").with_unit("m"),
            float("geoid_height").with_unit("m"),
            float("vdop"),
            float("pdop"),
        ],
        Kind::Image => vec![
            int("source"),
            scalar("is_compressed", Scalar::Bool, "bool"),
            int("width").with_unit("px"),
            int("height").with_unit("px"),
            Field::new("data", FieldType::Bytes, "unsigned char[]"),
        ],
        Kind::Pose => vec![
            Field::new(
                "quaternion",
                FieldType::Array(Box::new(FieldType::Scalar(Scalar::Float32)), 4),
                "float[4]",
            ),
            Field::new(
                "acceleration",
                FieldType::Array(Box::new(FieldType::Scalar(Scalar::Float32)), 3),
                "float[3]",
            ),
        ],
        Kind::Velodyne => vec![
            scalar("count", Scalar::UInt32, "unsigned int"),
            Field::new("packets", FieldType::Bytes, "VelodynePacket[]"),
        ],
        Kind::Laser => vec![
            Field::new("sensor_type", FieldType::Text, "string"),
            Field::new("sensor_name", FieldType::Text, "string"),
            Field::new(
                "ranges",
                FieldType::List(Box::new(FieldType::Scalar(Scalar::UInt32))),
                "unsigned int[]",
            )
            .with_unit("mm"),
        ],
    };
    Schema { name: kind.name().to_owned(), fields }
}

/// The fields of a type that is not described: its bytes.
pub(crate) fn raw_schema(name: &str) -> Schema {
    let data = Field::new("data", FieldType::Bytes, "unsigned char[]");
    Schema { name: name.to_owned(), fields: vec![data] }
}

/// The name of the topic of a scan: the sensor's name as text, cut where it is very long.
pub(crate) fn laser_topic(name: &[u8]) -> String {
    let name = text(name);
    if name.is_empty() {
        return Kind::Laser.name().to_owned();
    }
    let short: String = name.chars().take(NAME_LIMIT).collect();
    let cut = if short.len() < name.len() { "..." } else { "" };
    format!("{}/{short}{cut}", Kind::Laser.name())
}

/// The name of the topic of a type that is not described.
pub(crate) fn raw_topic(type_id: u32, version: i32) -> String {
    match Kind::of_id(type_id) {
        Some(kind) => format!("{}@{version}", kind.name()),
        None => format!("0x{type_id:08X}"),
    }
}

struct Fields(Vec<(Arc<str>, Value)>);

impl Fields {
    fn int(mut self, name: &str, value: I32Le) -> Self {
        self.0.push((name.into(), Value::Int(value.get().into(), 32)));
        self
    }

    fn float(mut self, name: &str, value: F32Le) -> Self {
        self.0.push((name.into(), Value::F32(value.get())));
        self
    }

    fn push(mut self, name: &str, value: Value) -> Self {
        self.0.push((name.into(), value));
        self
    }

    fn floats(self, name: &str, values: &[F32Le]) -> Self {
        self.push(name, Value::List(values.iter().map(|value| Value::F32(value.get())).collect()))
    }

    fn done(self) -> Value {
        Value::Struct(self.0)
    }
}

/// The fields of a payload, in the schema's order.
pub(crate) fn value(payload: &Payload<'_>) -> Value {
    let fields = Fields(Vec::new());
    match payload {
        Payload::Obd(obd) => obd_value(obd, fields),
        Payload::Gps(gps) => gps_value(gps, fields),
        Payload::Image(image) => image_value(image, fields),
        Payload::Pose(pose) => pose_value(pose, fields),
        Payload::Velodyne(data) => velodyne_value(&data.packets, fields),
        Payload::Laser(laser) => laser_value(laser, fields),
    }
}

fn obd_value(obd: &ObdData, fields: Fields) -> Value {
    fields
        .int("speed", obd.speed)
        .int("rpm", obd.rpm)
        .float("unused0", obd.unused0)
        .int("unused1", obd.unused1)
        .int("unused2", obd.unused2)
        .float("throttle", obd.throttle)
        .int("unused3", obd.unused3)
        .done()
}

fn gps_value(gps: &GpsData, fields: Fields) -> Value {
    fields
        .int("hour", gps.hour)
        .int("minute", gps.minute)
        .int("second", gps.second)
        .int("warning", gps.warning)
        .push("latitude", Value::F64(gps.latitude.get()))
        .push("longitude", Value::F64(gps.longitude.get()))
        .float("speed", gps.speed)
        .float("course", gps.course)
        .int("day", gps.day)
        .int("month", gps.month)
        .int("year", gps.year)
        .int("quality", gps.quality)
        .int("satellites", gps.satellites)
        .float("hdop", gps.hdop)
        .float("height", gps.height)
        .float("geoid_height", gps.geoid_height)
        .float("vdop", gps.vdop)
        .float("pdop", gps.pdop)
        .done()
}

fn image_value(image: &ImageData<'_>, fields: Fields) -> Value {
    fields
        .int("source", image.source)
        .push("is_compressed", Value::Bool(image.is_compressed.get()))
        .int("width", image.width)
        .int("height", image.height)
        .push("data", Value::Bytes(image.data.to_vec()))
        .done()
}

fn pose_value(pose: &RobotPose, fields: Fields) -> Value {
    fields.floats("quaternion", &pose.quaternion).floats("acceleration", &pose.acceleration).done()
}

fn velodyne_value(packets: &[VelodynePacket], fields: Fields) -> Value {
    let count = Value::UInt(packets.len() as u64, 32);
    let bytes = zerocopy::IntoBytes::as_bytes(packets).to_vec();
    fields.push("count", count).push("packets", Value::Bytes(bytes)).done()
}

fn laser_value(laser: &LaserRange<'_>, fields: Fields) -> Value {
    let ranges = laser.ranges.iter().map(|range| Value::UInt(range.get().into(), 32)).collect();
    fields
        .push("sensor_type", Value::Text(text(&laser.sensor_type).into_owned()))
        .push("sensor_name", Value::Text(text(&laser.sensor_name).into_owned()))
        .push("ranges", Value::List(ranges))
        .done()
}

/// The name of a type in messages for people.
pub(crate) fn type_name(type_id: u32) -> String {
    Kind::of_id(type_id).map_or_else(|| format!("0x{type_id:08X}"), |kind| kind.name().to_owned())
}

/// The fields of a type as a declaration, in the words of section 2.
pub(crate) fn definition(schema: &Schema) -> String {
    schema.fields.iter().fold(format!("message {}\n", schema.name), |mut text, field| {
        let unit = field.unit.as_ref().map_or(String::new(), |unit| format!(" {unit}"));
        let (ty, len) = field.source_type.split_once('[').unwrap_or((&field.source_type, ""));
        let bracket = if len.is_empty() { "" } else { "[" };
        let _ = writeln!(text, "  {ty} {}{bracket}{len}{unit}", field.name);
        text
    })
}
