//! Additional messages for PX4 logs: console lines, parameters, and the position and attitude of
//! the vehicle.
//!
//! The names of types and fields follow the mapping that is proposed for `mcap convert` in issue
//! 1675 of foxglove/mcap.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use rovelog::core::internal::layout::{Layout, Place, Row, scalar_value};
use rovelog::ulog_format::UlogReader;
use rovelog::ulog_format::px4::{self, POSITION_TOPICS, PositionFields};
use rovelog::{Field, FieldType, LogReader as _, Record, Scalar, Schema, Select, Topic, TopicId, Value};

use super::extras::{Extra, ExtraSchema, Extras};
use super::foxglove::{self, Fix, WellKnown};
use super::options::McapOptions;
use super::plain::log_message;
use super::proto;
use crate::pose::{Pose, east_north_up};
use crate::track::px4::MIN_FIX;
use crate::{ExportError, TimeBase};

/// Additional messages of a PX4 log.
pub(super) struct Px4<'a> {
    reader: &'a UlogReader,
    /// True if messages are added that viewers can draw.
    typed: bool,
    /// True if poses are written in the axes of the vehicle, which are north, east and down.
    keep_ned: bool,
    /// Topics from which positions are written, with their fields.
    positions: BTreeMap<TopicId, Source>,
    /// Topic of the attitude, and the fields w, x, y and z of its quaternion.
    attitude: Option<(TopicId, [Place; 4])>,
    /// Topic of the local position, with its fields.
    local_position: Option<(TopicId, LocalPosition)>,
    /// Last known local position: north, east and down in meters.
    place: [f64; 3],
}

/// A topic with positions.
struct Source {
    fields: PositionFields,
    /// Fields that contain the horizontal and vertical standard deviation of a position.
    accuracy: [Option<Place>; 2],
    /// Name of the channel for the positions.
    channel: String,
}

/// Fields of the topic `vehicle_local_position`.
struct LocalPosition {
    xyz: [Option<Place>; 3],
    xy_valid: Option<Place>,
    z_valid: Option<Place>,
}

impl LocalPosition {
    fn of(layout: &Layout) -> Self {
        Self {
            xyz: ["x", "y", "z"].map(|name| layout.place(name)),
            xy_valid: layout.place("xy_valid"),
            z_valid: layout.place("z_valid"),
        }
    }

    /// Updates `position` with those coordinates of a row that are valid.
    fn update(&self, row: &Row<'_>, position: &mut [f64; 3]) {
        let [x, y, z] = self.xyz.map(|place| number(row, place));
        let valid = |place: Option<Place>| place.and_then(|place| row.read::<bool>(place)) != Some(false);
        if let (Some(x), Some(y), true) = (x, y, valid(self.xy_valid)) {
            (position[0], position[1]) = (x, y);
        }
        if let (Some(z), true) = (z, valid(self.z_valid)) {
            position[2] = z;
        }
    }
}

/// Returns the value of a field if it is a finite number.
fn number(row: &Row<'_>, place: Option<Place>) -> Option<f64> {
    let place = place.filter(|place| place.elements().is_none())?;
    let value = scalar_value(place.scalar()?, row.bytes().get(place.offset()..)?);
    value.as_f64().filter(|number| number.is_finite())
}

impl<'a> Px4<'a> {
    pub(super) fn new(reader: &'a UlogReader, options: &McapOptions) -> Result<Self, ExportError> {
        let first = |name: &str| {
            let topic = *px4::instances(reader, name).first()?;
            Some((topic.id, reader.definitions().layout(topic).ok()?))
        };
        // The attitude is used only if all four components of the quaternion exist.
        let quaternion = |layout: &Layout| {
            let parts = [0, 1, 2, 3].map(|part| layout.place(&format!("q[{part}]")));
            parts.iter().all(Option::is_some).then(|| parts.map(|part| part.expect("all are there")))
        };
        let attitude = first("vehicle_attitude");
        Ok(Self {
            reader,
            typed: options.typed,
            keep_ned: options.keep_ned,
            positions: if options.typed { positions(reader)? } else { BTreeMap::new() },
            attitude: attitude.and_then(|(topic, layout)| Some((topic, quaternion(layout)?))),
            local_position: first("vehicle_local_position")
                .map(|(topic, layout)| (topic, LocalPosition::of(layout))),
            place: [0.0; 3],
        })
    }

    /// Returns the `foxglove.LocationFix` for a row of a position topic.
    fn fix(&self, record: &Record<'_>, row: &Row<'_>, at: i64) -> Option<Extra> {
        let Source { fields, accuracy: [eph, epv], channel } = self.positions.get(&record.topic.id)?;
        let position = fields.position(row, MIN_FIX).ok()?;
        let fix = Fix {
            latitude: position.latitude,
            longitude: position.longitude,
            altitude: position.altitude_msl.unwrap_or(0.0),
            accuracy: number(row, *eph).zip(number(row, *epv)),
            frame: if record.topic.type_name == "vehicle_global_position" { "estimate" } else { "gps" },
            heading: None,
            metadata: &[],
        };
        let mut bytes = Vec::with_capacity(192);
        foxglove::location_fix(at, &fix, &mut bytes);
        let schema = ExtraSchema::WellKnown(WellKnown::LocationFix);
        Some(Extra { nanos: 0, topic: channel.clone().into(), schema, bytes })
    }

    /// Adds the messages for the pose of the vehicle. `row` is a row of the attitude topic. The
    /// position in the pose is the last known position.
    fn poses(&self, row: &Row<'_>, quaternion: [Place; 4], at: i64, out: &mut Vec<Extra>) {
        let [Some(w), Some(x), Some(y), Some(z)] = quaternion.map(|part| number(row, Some(part))) else {
            return;
        };
        let ned = Pose { position: self.place, orientation: [w, x, y, z] };
        let (pose, parent, child) = if self.keep_ned {
            (ned, "map_ned", "base_link_frd")
        } else {
            (east_north_up(&ned), "map", "base_link")
        };
        let (mut in_frame, mut transform) = (Vec::with_capacity(128), Vec::with_capacity(128));
        foxglove::pose_in_frame(at, parent, &pose, &mut in_frame);
        foxglove::frame_transform(at, (parent, child), &pose, &mut transform);
        for (topic, kind, bytes) in [
            ("/foxglove/pose", WellKnown::PoseInFrame, in_frame),
            ("/tf", WellKnown::FrameTransform, transform),
        ] {
            out.push(Extra { nanos: 0, topic: topic.into(), schema: ExtraSchema::WellKnown(kind), bytes });
        }
    }
}

/// Returns the topics from which positions are written. Of the topic types with positions, the best
/// type with at least one fix is used. The result contains all of its instances.
fn positions(reader: &UlogReader) -> Result<BTreeMap<TopicId, Source>, ExportError> {
    for name in POSITION_TOPICS {
        let mut found = BTreeMap::new();
        for topic in px4::instances(reader, name) {
            if let Some((fields, accuracy)) = fields_with_fix(reader, topic)? {
                let channel = if found.is_empty() {
                    "/foxglove/gps".to_owned()
                } else {
                    format!("/foxglove/gps/{}", found.len())
                };
                found.insert(topic.id, Source { fields, accuracy, channel });
            }
        }
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(BTreeMap::new())
}

/// Fields of a position, and fields that contain its horizontal and vertical standard deviation.
type Fields = (PositionFields, [Option<Place>; 2]);

/// Returns the fields of a topic with positions. Returns `None` if the topic has no fix.
fn fields_with_fix(reader: &UlogReader, topic: &Topic) -> Result<Option<Fields>, ExportError> {
    for record in reader.records(&Select::topic(topic.name.clone())) {
        let record = record?;
        let Ok(row) = reader.row(&record) else { continue };
        let Some(fields) = PositionFields::of(row.layout()) else { return Ok(None) };
        if fields.position(&row, MIN_FIX).is_ok() {
            return Ok(Some((fields, ["eph", "epv"].map(|name| row.layout().place(name)))));
        }
    }
    Ok(None)
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

    fn messages(&self) -> Vec<Extra> {
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
            proto::bytes(3, text.text.as_bytes(), &mut bytes);
            proto::bytes(4, text.source.unwrap_or_default().as_bytes(), &mut bytes);
            found.push(own(nanos, "log_message", &LOG_MESSAGE, bytes));
        }
        let parameters = self.reader.parameters();
        let start = self.reader.info().start.map_or(0, |time| time.nanos);
        let defaults = parameters.system_defaults.iter().chain(&parameters.setup_defaults);
        let snapshot = parameters.initial.iter().map(|(name, value)| (start, name, value, false));
        let changes = parameters.changed.iter();
        let changes = changes
            .map(|change| (change.time.map_or(start, |time| time.nanos), &change.name, &change.value, false));
        let all = defaults.map(|(name, value)| (start, name, value, true)).chain(snapshot).chain(changes);
        found.extend(all.map(|(nanos, name, value, default)| parameter(nanos, name, value, default)));
        found
    }

    fn on_record(&mut self, record: &Record<'_>, at: i64, out: &mut Vec<Extra>) {
        let topic = record.topic.id;
        let attitude = self.attitude.filter(|(id, _)| *id == topic);
        let local_position = self.local_position.as_ref().filter(|(id, _)| *id == topic);
        if attitude.is_none() && local_position.is_none() && !self.positions.contains_key(&topic) {
            return;
        }
        let Ok(row) = self.reader.row(record) else { return };
        out.extend(self.fix(record, &row, at));
        if let Some((_, fields)) = local_position {
            fields.update(&row, &mut self.place);
        }
        if let Some((_, quaternion)) = attitude {
            self.poses(&row, quaternion, at, out);
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
    proto::bytes(2, name.as_bytes(), &mut bytes);
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
            proto::bytes(6, other.to_json().as_bytes(), &mut bytes);
        }
    }
    proto::uint(7, default.into(), &mut bytes);
    own(nanos, "parameters", &PARAMETER, bytes)
}
