//! Additional messages for PX4 logs: console lines, parameters, and the position and attitude of
//! the vehicle.
//!
//! The names of types and fields follow the mapping that is proposed for `mcap convert` in issue
//! 1675 of foxglove/mcap.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use rovelog::core::internal::layout::Row;
use rovelog::ulog_format::UlogReader;
use rovelog::{Field, FieldType, LogReader as _, Record, Scalar, Schema, TopicId, Value};

use super::extras::{Extra, ExtraSchema, Extras};
use super::foxglove::{self, Fix, WellKnown};
use super::options::McapOptions;
use super::plain::log_message;
use super::proto;
use crate::pose::{Pose, east_north_up};
use crate::vehicle::{self, Motion, Moved, PositionSource, position_sources};
use crate::{ExportError, TimeBase};

/// Additional messages of a PX4 log.
pub(super) struct Px4<'a> {
    reader: &'a UlogReader,
    /// True if messages are added that viewers can draw.
    typed: bool,
    /// True if poses are written in the axes of the vehicle, which are north, east and down.
    keep_ned: bool,
    /// Topics from which positions are written.
    positions: BTreeMap<TopicId, PositionSource>,
    motion: Motion,
}

impl<'a> Px4<'a> {
    pub(super) fn new(reader: &'a UlogReader, options: &McapOptions) -> Result<Self, ExportError> {
        Ok(Self {
            reader,
            typed: options.typed,
            keep_ned: options.keep_ned,
            positions: if options.typed { position_sources(reader)? } else { BTreeMap::new() },
            motion: Motion::new(reader),
        })
    }

    /// Returns the `foxglove.LocationFix` for a row of a position topic.
    fn fix(&self, record: &Record<'_>, row: &Row<'_>, at: i64) -> Option<Extra> {
        let source = self.positions.get(&record.topic.id)?;
        let position = source.position(row).ok()?;
        let fix = Fix {
            latitude: position.latitude,
            longitude: position.longitude,
            altitude: position.altitude_msl.unwrap_or(0.0),
            accuracy: source.accuracy(row),
            frame: if record.topic.type_name == "vehicle_global_position" { "estimate" } else { "gps" },
            heading: None,
            metadata: &[],
        };
        let topic: Cow<'static, str> = match source.number {
            0 => "/foxglove/gps".into(),
            number => format!("/foxglove/gps/{number}").into(),
        };
        Some(Extra::drawn(0, topic, WellKnown::LocationFix, foxglove::location_fix(at, &fix)))
    }

    /// Adds the messages for the pose of the vehicle. The position in the pose is the last known
    /// position.
    fn poses(&self, at: i64, out: &mut Vec<Extra>) {
        let Some((_, orientation)) = self.motion.orientation else { return };
        let ned = Pose { position: self.motion.position.map(Option::unwrap_or_default), orientation };
        let (pose, parent, child) = if self.keep_ned {
            (ned, "map_ned", "base_link_frd")
        } else {
            (east_north_up(&ned), "map", "base_link")
        };
        let in_frame = foxglove::pose_in_frame(at, parent, &pose);
        let transform = foxglove::frame_transform(at, parent, child, &pose);
        out.push(Extra::drawn(0, "/foxglove/pose", WellKnown::PoseInFrame, in_frame));
        out.push(Extra::drawn(0, "/tf", WellKnown::FrameTransform, transform));
    }
}

fn schema(name: &str, fields: &[(&'static str, FieldType)]) -> Schema {
    let field = |(name, ty): &(&'static str, FieldType)| Field::new(*name, ty.clone(), ty.to_string());
    Schema { name: name.to_owned(), fields: fields.iter().map(field).collect() }
}

/// Schema of the messages for console lines.
static LOG_MESSAGE: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    Arc::new(schema(
        "log_message",
        &[
            ("timestamp", FieldType::Scalar(Scalar::UInt64)),
            ("severity", FieldType::Scalar(Scalar::UInt32)),
            ("text", FieldType::Text),
            ("tag", FieldType::Text),
        ],
    ))
});

/// Schema of the messages for parameters.
static PARAMETER: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    Arc::new(schema(
        "parameter",
        &[
            ("timestamp", FieldType::Scalar(Scalar::UInt64)),
            ("name", FieldType::Text),
            ("type", FieldType::Text),
            ("int_value", FieldType::Scalar(Scalar::Int32)),
            ("float_value", FieldType::Scalar(Scalar::Float32)),
            ("other_value", FieldType::Text),
            ("default", FieldType::Scalar(Scalar::Bool)),
        ],
    ))
});

impl Extras for Px4<'_> {
    fn profile(&self) -> &'static str {
        "px4"
    }

    fn instance_key(&self) -> &'static str {
        "multi_id"
    }

    fn messages(&self, from: Option<i64>) -> Vec<Extra> {
        let base = TimeBase::of(self.reader);
        let mut found = Vec::new();
        for text in self.reader.texts().into_iter().flatten() {
            if self.typed {
                found.push(log_message(&text, &base));
            }
            let nanos = text.time.map_or(0, |time| time.nanos);
            let mut bytes = Vec::new();
            proto::uint(1, micros(nanos), &mut bytes);
            proto::uint(2, text.level.into(), &mut bytes);
            proto::bytes(3, text.text, &mut bytes);
            proto::bytes(4, text.source.unwrap_or_default(), &mut bytes);
            found.push(own(nanos, "log_message", &LOG_MESSAGE, bytes));
        }
        let parameters = self.reader.parameters();
        let start = self.reader.info().start.map_or(0, |time| time.nanos);
        let start = start.max(from.unwrap_or(i64::MIN));
        let defaults = parameters.system_defaults.iter().chain(&parameters.setup_defaults);
        found.extend(defaults.map(|(name, value)| parameter(start, name, value, true)));
        let values = vehicle::parameters(self.reader, from);
        found.extend(values.iter().map(|set| parameter(set.nanos, &set.name, &set.value, false)));
        found
    }

    fn on_record(&mut self, record: &Record<'_>, at: i64, out: &mut Vec<Extra>) {
        let topic = record.topic.id;
        if !self.motion.uses(topic) && !self.positions.contains_key(&topic) {
            return;
        }
        let Ok(row) = self.reader.row(record) else { return };
        out.extend(self.fix(record, &row, at));
        if self.motion.update(topic, &row, at) == Some(Moved::Attitude) {
            self.poses(at, out);
        }
    }

    fn info(&self) -> BTreeMap<String, String> {
        let text = |value: Value| match value {
            Value::Text(text) => Some(text),
            Value::Bytes(_) => None,
            value => Some(value.to_json().trim_matches('"').to_owned()),
        };
        self.reader.infos().into_iter().filter_map(|(name, value)| Some((name, text(value)?))).collect()
    }
}

/// Converts nanoseconds to a PX4 timestamp, which is in microseconds.
fn micros(nanos: i64) -> u64 {
    u64::try_from(nanos / 1000).unwrap_or(0)
}

/// Returns an additional message whose type is in the protobuf package `px4`.
fn own(nanos: i64, topic: &'static str, schema: &Arc<Schema>, bytes: Vec<u8>) -> Extra {
    Extra { nanos, topic: topic.into(), schema: ExtraSchema::Own(Arc::clone(schema)), bytes }
}

/// Returns a message with the value of a parameter. `default` is true if the value is the
/// parameter's default.
fn parameter(nanos: i64, name: &str, value: &Value, default: bool) -> Extra {
    let mut bytes = Vec::new();
    proto::uint(1, micros(nanos), &mut bytes);
    proto::bytes(2, name, &mut bytes);
    match value {
        Value::Int(value, _) => {
            proto::bytes(3, b"int32", &mut bytes);
            proto::int(4, *value, &mut bytes);
        }
        Value::F32(value) => {
            proto::bytes(3, b"float", &mut bytes);
            proto::float(5, *value, &mut bytes);
        }
        other => {
            proto::bytes(3, b"other", &mut bytes);
            proto::bytes(6, other.to_json(), &mut bytes);
        }
    }
    proto::uint(7, default.into(), &mut bytes);
    own(nanos, "parameters", &PARAMETER, bytes)
}
