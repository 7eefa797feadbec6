//! Reads point clouds from the messages of a ROS bag.

use std::collections::HashSet;

use rovelog::core::backend::Backend as _;
use rovelog::rosbag12::BagReader;
use rovelog::vel_format::VelError;
use rovelog::vel_format::velodyne::{Calibration, Decoder, ReturnMode, Sensor, detect};
use rovelog::vel_format::wire::VelodynePacket;
use rovelog::{Error, Scalar, Select, Topic, Value};
use zerocopy::FromBytes as _;

use super::Cloud;
use super::model::{Field, unique};
use crate::cloud::VelodyneOptions;

/// Type of the ROS messages that contain the packets of a Velodyne.
pub const VELODYNE_SCAN: &str = "velodyne_msgs/VelodyneScan";

/// Maximum number of values in a point of a `sensor_msgs/PointCloud2`.
const MAX_VALUES: u64 = 4096;

/// Maximum size of a point's values, as a multiple of the size of the point in the message. The
/// fields of a hostile message may overlap, and would make the cloud many times as large as the
/// message.
const MAX_OVERLAP: u64 = 4;

/// Maximum number of packets that are examined to detect the model of a Velodyne.
const MODEL_PACKETS: usize = 256;

/// Maximum number of packets that are searched for the calibration of an HDL-64E. The sensor sends
/// its calibration once in 4160 packets.
const CALIBRATION_PACKETS: usize = 20_000;

/// Reads the point clouds of one topic.
pub struct CloudReader(Kind);

/// Types of messages with point clouds.
enum Kind {
    PointCloud,
    Scan,
    MultiEcho,
    Livox,
    Velodyne(Box<Decoder>),
}

/// Returns whether messages of the ROS type `type_name` contain point clouds.
pub fn is_cloud(type_name: &str) -> bool {
    type_name == VELODYNE_SCAN || kind(type_name).is_some()
}

/// Returns the type of messages. `None` if they contain no points, or if a decoder is needed.
fn kind(type_name: &str) -> Option<Kind> {
    Some(match type_name {
        "sensor_msgs/PointCloud2" => Kind::PointCloud,
        "sensor_msgs/LaserScan" => Kind::Scan,
        "sensor_msgs/MultiEchoLaserScan" => Kind::MultiEcho,
        "livox_ros_driver/CustomMsg" | "livox_ros_driver2/CustomMsg" => Kind::Livox,
        _ => return None,
    })
}

impl CloudReader {
    /// Creates a reader for the point clouds of `topic`. If the topic contains the packets of a
    /// Velodyne, its model and its calibration are searched in the packets, unless `options` has
    /// them.
    ///
    /// # Errors
    /// Returns an error if the model of the Velodyne is unknown, or if it is an HDL-64E without a
    /// calibration.
    pub fn new(bag: &BagReader, topic: &Topic, options: &VelodyneOptions) -> Result<Self, Error> {
        if let Some(kind) = kind(&topic.type_name) {
            return Ok(Self(kind));
        }
        let first = |len: usize| {
            let records = bag.intact_records(&Select::topic(&topic.name));
            let packets = records.filter_map(|record| packets(&record.ok()?.value().ok()?).ok()).flatten();
            packets.map(|packet| packet.data).take(len).collect::<Vec<_>>()
        };
        let samples = first(MODEL_PACKETS);
        let detected = detect(&samples);
        let mode = detected.as_ref().map_or(ReturnMode::Strongest, |sensor| sensor.mode);
        let sensor = options.model.map(|model| Sensor::named(model, mode)).or(detected);
        let sensor = sensor.ok_or(VelError::UnknownModel { packets: samples.len() })?;
        let own = if sensor.model.is_hdl64() && options.calibration.is_none() {
            Calibration::from_status(&first(CALIBRATION_PACKETS))
        } else {
            None
        };
        let decoder = Decoder::of(&sensor, options.calibration.as_ref().or(own.as_ref()), options.points)?;
        Ok(Self(Kind::Velodyne(Box::new(decoder))))
    }

    /// Returns the point cloud of a message.
    ///
    /// # Errors
    /// Returns the reason if the message contradicts itself, for example if it has fewer bytes than
    /// its points need.
    pub fn read(&mut self, value: &Value) -> Result<Cloud, String> {
        match &mut self.0 {
            Kind::PointCloud => point_cloud(value),
            Kind::Scan => scan(value, false),
            Kind::MultiEcho => scan(value, true),
            Kind::Livox => livox(value),
            Kind::Velodyne(decoder) => velodyne(decoder, value),
        }
    }
}

/// Returns the integer in a field of a message.
fn integer(value: &Value, name: &str) -> Result<u64, String> {
    match value.get(name) {
        Some(Value::UInt(number, _)) => Ok(*number),
        Some(Value::Bool(flag)) => Ok(u64::from(*flag)),
        _ => Err(missing(name)),
    }
}

/// Returns the number in a field of a message.
fn number(value: &Value, name: &str) -> Result<f64, String> {
    value.get(name).and_then(Value::as_f64).ok_or_else(|| missing(name))
}

fn list<'a>(value: &'a Value, name: &str) -> Result<&'a [Value], String> {
    match value.get(name) {
        Some(Value::List(list)) => Ok(list),
        _ => Err(missing(name)),
    }
}

fn missing(name: &str) -> String {
    format!("the message has no field {name} of the expected type")
}

/// A field of a `sensor_msgs/PointCloud2`.
struct PackedField {
    field: Field,
    /// Offset of the field in a point.
    offset: usize,
}

/// Returns the fields of a `sensor_msgs/PointCloud2`. `step` is the size in bytes of a point.
fn packed_fields(value: &Value, step: u64) -> Result<Vec<PackedField>, String> {
    let (mut fields, mut taken) = (Vec::new(), HashSet::new());
    let (mut values, mut size) = (0_u64, 0_u64);
    for (i, part) in list(value, "fields")?.iter().enumerate() {
        let name = part.get("name").and_then(Value::as_str).unwrap_or_default();
        let ty = match integer(part, "datatype")? {
            1 => Scalar::Int8,
            2 => Scalar::UInt8,
            3 => Scalar::Int16,
            4 => Scalar::UInt16,
            5 => Scalar::Int32,
            6 => Scalar::UInt32,
            7 => Scalar::Float32,
            8 => Scalar::Float64,
            other => return Err(format!("the field {name:?} has the unknown type {other}")),
        };
        // Some publishers write the count 0 for a single value.
        let (offset, count) = (integer(part, "offset")?, integer(part, "count")?.max(1));
        let len = count.saturating_mul(ty.size() as u64);
        if offset.saturating_add(len) > step {
            return Err(format!("the field {name:?} ends beyond the {step} bytes of a point"));
        }
        values += count;
        size += len;
        if values > MAX_VALUES || size > step.saturating_mul(MAX_OVERLAP) {
            return Err(format!("the fields of a point are implausible: {values} values, {size} bytes"));
        }
        // Names are words in the headers of files, and NPZ uses them as names of files.
        let plain = |c: char| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' };
        let name: String = name.chars().map(plain).collect();
        let name = unique(&mut taken, &if name.is_empty() { format!("f{i}") } else { name });
        #[expect(clippy::cast_possible_truncation, reason = "at most 4096 values")]
        let field = Field { name, ty, count: count as usize };
        #[expect(clippy::cast_possible_truncation, reason = "less than the 32-bit size of a point")]
        fields.push(PackedField { field, offset: offset as usize });
    }
    if fields.is_empty() { Err("the points have no fields".to_owned()) } else { Ok(fields) }
}

/// Reads a `sensor_msgs/PointCloud2`.
fn point_cloud(value: &Value) -> Result<Cloud, String> {
    let Some(Value::Bytes(data)) = value.get("data") else { return Err(missing("data")) };
    let [step, row, width, height] =
        ["point_step", "row_step", "width", "height"].map(|name| integer(value, name));
    let (step, row, width, height) = (step?, row?, width?, height?);
    let fields = packed_fields(value, step)?;
    let line = width.saturating_mul(step);
    // The last row may lack the padding after its points.
    let needed = row.saturating_mul(height.saturating_sub(1)).saturating_add(line);
    let is_empty = width == 0 || height == 0;
    if !is_empty && (needed > data.len() as u64 || (height > 1 && row < line)) {
        return Err(format!(
            "{width} x {height} points of {step} bytes do not fit in {} bytes with rows of {row} bytes",
            data.len()
        ));
    }
    let is_big = integer(value, "is_bigendian")? != 0;
    // The sizes fit in `usize`, because the points fit in `data`.
    #[expect(clippy::cast_possible_truncation, reason = "checked above")]
    let [step, row, width, height] = [step, row, width, height].map(|number| number as usize);
    let mut packed = Vec::new();
    for y in 0..if is_empty { 0 } else { height } {
        for point in data[y * row..][..width * step].chunks_exact(step) {
            for PackedField { field, offset } in &fields {
                let start = packed.len();
                packed.extend_from_slice(&point[*offset..][..field.size()]);
                if is_big {
                    packed[start..].chunks_exact_mut(field.ty.size()).for_each(<[u8]>::reverse);
                }
            }
        }
    }
    let fields = fields.into_iter().map(|field| field.field).collect();
    Ok(Cloud { fields, width, height, data: packed })
}

/// Reads a `sensor_msgs/LaserScan` or a `sensor_msgs/MultiEchoLaserScan`. Ranges outside of the
/// limits in the message have no point, because the definition says that they should be discarded.
/// The field `index` is the number of the beam.
fn scan(value: &Value, is_multi: bool) -> Result<Cloud, String> {
    let (first, step) = (number(value, "angle_min")?, number(value, "angle_increment")?);
    let limits = number(value, "range_min")?..=number(value, "range_max")?;
    let period = number(value, "time_increment")?;
    let (ranges, bright) = (list(value, "ranges")?, list(value, "intensities")?);
    let float = |name| Field::new(name, Scalar::Float32);
    let mut fields = vec![float("x"), float("y"), float("z"), float("range"), float("t")];
    fields.push(Field::new("index", Scalar::UInt32));
    fields.extend(is_multi.then(|| Field::new("echo", Scalar::UInt32)));
    fields.extend((!bright.is_empty()).then(|| float("intensity")));
    let mut data = Vec::new();
    for (i, beam) in (0_u32..).zip(ranges) {
        let bright = bright.get(i as usize);
        let (echoes, bright) = if is_multi {
            (list(beam, "echoes")?, bright.map_or(Ok(&[][..]), |bright| list(bright, "echoes"))?)
        } else {
            (std::slice::from_ref(beam), bright.map_or(&[][..], std::slice::from_ref))
        };
        for (echo, range) in (0_u32..).zip(echoes) {
            let Some(range) = range.as_f64().filter(|range| limits.contains(range)) else { continue };
            let angle = first + step * f64::from(i);
            let time = period * f64::from(i);
            #[expect(clippy::cast_possible_truncation, reason = "the width of the ranges")]
            let floats = [range * angle.cos(), range * angle.sin(), 0.0, range, time].map(|v| v as f32);
            data.extend(floats.into_iter().flat_map(f32::to_le_bytes));
            data.extend(i.to_le_bytes());
            if is_multi {
                data.extend(echo.to_le_bytes());
            }
            if fields.last().is_some_and(|field| field.name == "intensity") {
                let bright = bright.get(echo as usize).and_then(Value::as_f64).unwrap_or(f64::NAN);
                #[expect(clippy::cast_possible_truncation, reason = "the width of the field")]
                data.extend((bright as f32).to_le_bytes());
            }
        }
    }
    Ok(Cloud::unorganized(fields, data))
}

/// Reads a `livox_ros_driver/CustomMsg`. The field `offset_time` of a point is the number of
/// nanoseconds between the time `timebase` of the message and the point.
fn livox(value: &Value) -> Result<Cloud, String> {
    let points = list(value, "points")?;
    let fields = [
        ("x", Scalar::Float32),
        ("y", Scalar::Float32),
        ("z", Scalar::Float32),
        ("reflectivity", Scalar::UInt8),
        ("tag", Scalar::UInt8),
        ("line", Scalar::UInt8),
        ("offset_time", Scalar::UInt32),
    ];
    let mut data = Vec::with_capacity(points.len() * 19);
    for point in points {
        for (name, ty) in &fields {
            match (ty, point.get(name)) {
                (Scalar::Float32, Some(Value::F32(value))) => data.extend(value.to_le_bytes()),
                (_, Some(Value::UInt(value, _))) => data.extend(&value.to_le_bytes()[..ty.size()]),
                _ => return Err(missing(name)),
            }
        }
    }
    Ok(Cloud::unorganized(fields.into_iter().map(|(name, ty)| Field::new(name, ty)).collect(), data))
}

/// A packet of a `velodyne_msgs/VelodyneScan`.
struct StampedPacket {
    /// Time stamp of the packet in nanoseconds.
    nanos: i64,
    data: VelodynePacket,
}

/// Returns the packets of a `velodyne_msgs/VelodyneScan`.
fn packets(value: &Value) -> Result<Vec<StampedPacket>, String> {
    let packet = |packet: &Value| {
        let stamp = packet.get("stamp").and_then(nanos).ok_or_else(|| missing("stamp"))?;
        let Some(Value::Bytes(data)) = packet.get("data") else { return Err(missing("data")) };
        let data = VelodynePacket::read_from_bytes(data).map_err(|_| missing("data"))?;
        Ok(StampedPacket { nanos: stamp, data })
    };
    list(value, "packets")?.iter().map(packet).collect()
}

/// Returns the nanoseconds of a ROS time.
pub fn nanos(time: &Value) -> Option<i64> {
    let part = |name: &str| i64::try_from(integer(time, name).ok()?).ok();
    part("sec")?.checked_mul(1_000_000_000)?.checked_add(part("nsec")?)
}

/// Reads a `velodyne_msgs/VelodyneScan`. The field `t` of a point is its time in seconds since the
/// first packet of the message.
fn velodyne(decoder: &mut Decoder, value: &Value) -> Result<Cloud, String> {
    let packets = packets(value)?;
    let start = packets.first().map_or(0, |packet| packet.nanos);
    let mut points = Vec::new();
    for packet in &packets {
        let since_start = packet.nanos.saturating_sub(start);
        let since_start = since_start.clamp(i32::MIN.into(), i32::MAX.into());
        #[expect(clippy::cast_possible_truncation, reason = "clamped")]
        decoder.packet(&packet.data, since_start as i32, &mut points);
    }
    Ok(Cloud::from(&points[..]))
}

#[cfg(test)]
mod tests {
    use super::super::{Format, write};
    use super::*;

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    /// Returns a message with `fields`, each a name, an offset, a type and a count. `sizes` are the
    /// width, height, size of a point, and size of a row.
    fn message(fields: &[(&str, u64, u64, u64)], sizes: [u64; 4], is_big: bool, data: Vec<u8>) -> Value {
        let field = |(name, offset, kind, count): &(&str, u64, u64, u64)| {
            Value::record([
                ("name", text(name)),
                ("offset", Value::count(*offset)),
                ("datatype", Value::count(*kind)),
                ("count", Value::count(*count)),
            ])
        };
        let [width, height, step, row] = sizes.map(Value::count);
        Value::record([
            ("width", width),
            ("height", height),
            ("fields", Value::List(fields.iter().map(field).collect())),
            ("is_bigendian", Value::Bool(is_big)),
            ("point_step", step),
            ("row_step", row),
            ("data", Value::Bytes(data)),
        ])
    }

    fn written(cloud: &Cloud, format: Format) -> std::io::Result<Vec<u8>> {
        let mut out = Vec::new();
        write(cloud, format, "test", &mut out).map(|_| out)
    }

    #[test]
    fn numbers_of_all_types_and_byte_orders_are_read() {
        let numbers: [(u64, &[u8]); 8] = [
            (1, &3_i8.to_le_bytes()),
            (2, &3_u8.to_le_bytes()),
            (3, &3_i16.to_le_bytes()),
            (4, &3_u16.to_le_bytes()),
            (5, &3_i32.to_le_bytes()),
            (6, &3_u32.to_le_bytes()),
            (7, &3_f32.to_le_bytes()),
            (8, &3_f64.to_le_bytes()),
        ];
        for (kind, bytes) in numbers {
            let reversed: Vec<u8> = bytes.iter().rev().copied().collect();
            let len = bytes.len() as u64;
            let fields =
                [("x", 0, kind, 1), ("y", len, kind, 0), ("z", 0, kind, 1), ("intensity", 0, kind, 1)];
            for (bytes, is_big) in [(bytes, false), (&reversed[..], true)] {
                let value = message(&fields, [1, 1, 2 * len, 0], is_big, bytes.repeat(2));
                let cloud = point_cloud(&value).unwrap();
                assert_eq!(cloud.positions().unwrap().collect::<Vec<_>>(), [[3.0; 4]], "{kind} {is_big}");
            }
        }
    }

    #[test]
    fn padding_and_fields_with_several_values_are_kept_apart() {
        // Two rows of two points. Each point has the values 1, 2 and a byte of padding, and each
        // row ends with two bytes of padding, which the last row lacks.
        let data = vec![1, 2, 0, 3, 4, 0, 0, 0, 5, 6, 0, 7, 8, 0];
        let cloud = point_cloud(&message(&[("a b", 0, 2, 2)], [2, 2, 3, 8], false, data)).unwrap();
        assert_eq!(cloud.data, [1, 2, 3, 4, 5, 6, 7, 8]);
        let header = |format| String::from_utf8_lossy(&written(&cloud, format).unwrap()).into_owned();
        assert!(header(Format::Ply).contains("vertex 4\nproperty uchar a_b_0\nproperty uchar a_b_1\nend_"));
        let pcd = header(Format::Pcd);
        assert!(pcd.contains("FIELDS a_b\nSIZE 1\nTYPE U\nCOUNT 2\nWIDTH 2\nHEIGHT 2\n"), "{pcd}");
        assert!(header(Format::Npz).contains("'|u1', 'fortran_order': False, 'shape': (2,2,2,)"));
        for format in [Format::Kitti, Format::Las, Format::Laz] {
            let error = written(&cloud, format).unwrap_err();
            assert_eq!(error.to_string(), "the points have no fields x, y and z");
        }
    }

    #[test]
    fn contradictory_and_hostile_messages_are_refused() {
        let byte = [("x", 0, 2, 1)];
        let refused =
            |fields: &[_], sizes, len| point_cloud(&message(fields, sizes, false, vec![0; len])).unwrap_err();
        assert!(refused(&byte, [4, 1, 1, 4], 3).contains("do not fit in 3 bytes"));
        assert!(refused(&byte, [2, u64::MAX, 1, 0], 4).contains("rows of 0 bytes"));
        assert!(refused(&byte, [u64::MAX, u64::MAX, 1, u64::MAX], 4).contains("do not fit"));
        assert!(refused(&byte, [u64::MAX, 1, 0, 0], 4).contains("ends beyond the 0 bytes"));
        assert!(refused(&[("x", 0, 9, 1)], [1, 1, 1, 1], 1).contains("unknown type 9"));
        assert!(refused(&[("x", 0, 2, u64::MAX)], [1, 1, 1, 1], 1).contains("ends beyond"));
        assert!(refused(&[], [1, 1, 1, 1], 1).contains("no fields"));
        // Overlapping fields would make the cloud larger than the message.
        assert!(refused(&[("x", 0, 2, 1); 5], [4, 1, 1, 4], 4).contains("implausible: 5 values, 5 bytes"));
        assert!(refused(&[("x", 0, 2, 5000)], [1, 1, 5000, 5000], 5000).contains("implausible: 5000 values"));
    }

    #[test]
    fn fields_without_a_name_and_clouds_without_points_are_read() {
        let fields = [("", 0, 2, 1), ("x", 1, 7, 1), ("x", 1, 7, 1)];
        let cloud = point_cloud(&message(&fields, [0, 1, 5, 0], false, Vec::new())).unwrap();
        assert!(cloud.is_empty());
        let names: Vec<_> = cloud.columns().into_iter().map(|column| column.name).collect();
        assert_eq!(names, ["f0", "x", "x_3"]);
    }

    #[test]
    fn ranges_outside_of_the_limits_have_no_point() {
        let floats = |values: &[f32]| Value::List(values.iter().map(|value| Value::F32(*value)).collect());
        let echoes = |values| Value::record([("echoes", floats(values))]);
        let scan_of = |ranges, intensities| {
            Value::record([
                ("angle_min", Value::F32(0.0)),
                ("angle_increment", Value::F32(std::f32::consts::FRAC_PI_2)),
                ("time_increment", Value::F32(0.5)),
                ("range_min", Value::F32(1.0)),
                ("range_max", Value::F32(9.0)),
                ("ranges", ranges),
                ("intensities", intensities),
            ])
        };
        let single = scan(&scan_of(floats(&[0.5, 2.0, f32::NAN, 9.0]), floats(&[1.0, 2.0])), false).unwrap();
        let columns = single.columns();
        let rows: Vec<Vec<f64>> = single
            .points()
            .map(|point| columns.iter().map(|column| column.number(point)).collect())
            .collect();
        let names: Vec<_> = columns.iter().map(|column| &*column.name).collect();
        assert_eq!(names, ["x", "y", "z", "range", "t", "index", "intensity"]);
        assert!(rows[0][0].abs() < 1e-6 && rows[0][1..] == [2.0, 0.0, 2.0, 0.5, 1.0, 2.0], "{rows:?}");
        assert!(rows.len() == 2 && rows[1][3..6] == [9.0, 1.5, 3.0] && rows[1][6].is_nan(), "{rows:?}");
        let beams = Value::List(vec![echoes(&[1.0, 20.0, 3.0]), echoes(&[])]);
        let multi = scan(&scan_of(beams, Value::List(Vec::new())), true).unwrap();
        let echo = multi.columns().into_iter().find(|column| column.name == "echo").unwrap();
        assert_eq!(multi.points().map(|point| echo.number(point)).collect::<Vec<_>>(), [0.0, 2.0]);
    }
}
