//! The messages of the specification, laid down field by field: sections 3.4.1 to 3.4.6.

use serde_json::{Value as Json, json};

use super::log::{GPS, IMAGE, LASER, Log, Message, OBD, POSE, VELODYNE, narrow};
use crate::corpus::expected::field;
use crate::corpus::lay::{Lay, base64};

/// A position.
#[derive(Clone, Copy)]
pub(crate) struct Position {
    pub(crate) time: (i32, i32, i32),
    pub(crate) date: (i32, i32, i32),
    pub(crate) latitude: f64,
    pub(crate) longitude: f64,
    pub(crate) speed: f32,
    pub(crate) quality: i32,
    pub(crate) warning: i32,
}

/// A position near Koblenz that is fit for use.
pub(crate) fn position(second: i32) -> Position {
    Position {
        time: (12, 34, second),
        date: (14, 6, 2010),
        latitude: 50.36,
        longitude: 7.56,
        speed: 0.0,
        quality: 1,
        warning: 0,
    }
}

pub(crate) fn obd_data(speed: i32, rpm: i32, throttle: f32) -> Vec<u8> {
    Lay::new().i32(speed).i32(rpm).f32(0.0).i32(0).i32(0).f32(throttle).i32(0).done()
}

fn obd_fields() -> Json {
    let names = ["speed", "rpm", "unused0", "unused1", "unused2", "throttle", "unused3"];
    let ty = |name: &str| if ["unused0", "throttle"].contains(&name) { "float32" } else { "int32" };
    names.iter().map(|name| field(name, ty(name))).collect()
}

fn obd_json(speed: i32, rpm: i32, throttle: f32) -> Json {
    json!({
        "speed": speed, "rpm": rpm, "unused0": 0.0, "unused1": 0, "unused2": 0,
        "throttle": narrow(throttle), "unused3": 0,
    })
}

pub(crate) fn gps_data(p: &Position) -> Vec<u8> {
    Lay::new()
        .i32(p.time.0)
        .i32(p.time.1)
        .i32(p.time.2)
        .i32(p.warning)
        .f64(p.latitude)
        .f64(p.longitude)
        .f32(p.speed)
        .f32(90.0)
        .i32(p.date.0)
        .i32(p.date.1)
        .i32(p.date.2)
        .i32(p.quality)
        .i32(7)
        .f32(1.1)
        .f32(72.5)
        .f32(47.9)
        .f32(1.6)
        .f32(1.9)
        .done()
}

fn gps_fields() -> Json {
    let names = [
        ("hour", "int32"),
        ("minute", "int32"),
        ("second", "int32"),
        ("warning", "int32"),
        ("latitude", "float64"),
        ("longitude", "float64"),
        ("speed", "float32"),
        ("course", "float32"),
        ("day", "int32"),
        ("month", "int32"),
        ("year", "int32"),
        ("quality", "int32"),
        ("satellites", "int32"),
        ("hdop", "float32"),
        ("height", "float32"),
        ("geoid_height", "float32"),
        ("vdop", "float32"),
        ("pdop", "float32"),
    ];
    names.iter().map(|(name, ty)| field(name, ty)).collect()
}

fn gps_json(p: &Position) -> Json {
    json!({
        "hour": p.time.0, "minute": p.time.1, "second": p.time.2, "warning": p.warning,
        "latitude": p.latitude, "longitude": p.longitude, "speed": narrow(p.speed), "course": narrow(90.0),
        "day": p.date.0, "month": p.date.1, "year": p.date.2, "quality": p.quality, "satellites": 7,
        "hdop": narrow(1.1), "height": narrow(72.5), "geoid_height": narrow(47.9), "vdop": narrow(1.6),
        "pdop": narrow(1.9),
    })
}

pub(crate) fn pose_data(q: [f32; 4], a: [f32; 3]) -> Vec<u8> {
    q.iter().chain(&a).fold(Lay::new(), |lay, x| lay.f32(*x)).done()
}

pub(crate) fn image_data(source: i32, compressed: u32, width: i32, height: i32, data: &[u8]) -> Vec<u8> {
    let len = u32::try_from(data.len()).expect("small");
    Lay::new().i32(source).u32(compressed).i32(width).i32(height).u32(len).bytes(data).done()
}

pub(crate) fn laser_data(kind: &[u8], name: &[u8], ranges: &[u32]) -> Vec<u8> {
    let len = |n: usize| u32::try_from(n).expect("small");
    let lay =
        Lay::new().u32(len(kind.len())).bytes(kind).u32(len(name.len())).bytes(name).u32(len(ranges.len()));
    ranges.iter().fold(lay, |lay, range| lay.u32(*range)).done()
}

pub(crate) fn velodyne_data(packets: &[Vec<u8>]) -> Vec<u8> {
    Lay::new().u32(u32::try_from(packets.len()).expect("small")).bytes(&packets.concat()).done()
}

impl Log {
    /// Data of the vehicle.
    pub(crate) fn obd(&mut self, millis: f64, speed: i32) {
        let message = Message::new(OBD, millis, obd_data(speed, 1500, 12.5));
        self.put_obd(&message, speed);
    }

    /// The same with a message of its own framing.
    pub(crate) fn put_obd(&mut self, message: &Message, speed: i32) {
        self.put(message, "OBDDataM", "OBDDataM", &obd_fields(), &obd_json(speed, 1500, 12.5));
    }

    /// `n` messages of the vehicle's data, 100 ms apart from `start` on.
    pub(crate) fn drive(&mut self, start: f64, n: i32) {
        for i in 0..n {
            self.obd(start + 100.0 * f64::from(i), i);
        }
    }

    pub(crate) fn gps(&mut self, millis: f64, p: &Position) {
        let message = Message::new(GPS, millis, gps_data(p));
        self.put(&message, "GPSDataM", "GPSDataM", &gps_fields(), &gps_json(p));
    }

    pub(crate) fn pose(&mut self, millis: f64, q: [f32; 4], a: [f32; 3]) {
        let fields = json!([field("quaternion", "float32[4]"), field("acceleration", "float32[3]")]);
        let list = |v: &[f32]| v.iter().map(|x| narrow(*x)).collect::<Json>();
        let data = json!({"quaternion": list(&q), "acceleration": list(&a)});
        let message = Message::new(POSE, millis, pose_data(q, a));
        self.put(&message, "RobotPoseM", "RobotPoseM", &fields, &data);
    }

    pub(crate) fn image(&mut self, millis: f64, source: i32, compressed: u32, size: (i32, i32), data: &[u8]) {
        let fields = json!([
            field("source", "int32"),
            field("is_compressed", "bool"),
            field("width", "int32"),
            field("height", "int32"),
            field("data", "bytes"),
        ]);
        let json = json!({
            "source": source, "is_compressed": compressed != 0, "width": size.0, "height": size.1,
            "data": base64(data),
        });
        let message = Message::new(IMAGE, millis, image_data(source, compressed, size.0, size.1, data));
        self.put(&message, &format!("ImageM/{source}"), "ImageM", &fields, &json);
    }

    /// A scan; `name` and `kind` are what the bytes read as.
    pub(crate) fn laser(&mut self, millis: f64, kind: (&[u8], &str), name: (&[u8], &str), ranges: &[u32]) {
        let fields =
            json!([field("sensor_type", "text"), field("sensor_name", "text"), field("ranges", "uint32[]"),]);
        let json = json!({"sensor_type": kind.1, "sensor_name": name.1, "ranges": ranges});
        let topic = if name.1.is_empty() {
            "LaserRange2DDataM".to_owned()
        } else {
            format!("LaserRange2DDataM/{}", name.1)
        };
        let message = Message::new(LASER, millis, laser_data(kind.0, name.0, ranges));
        self.put(&message, &topic, "LaserRange2DDataM", &fields, &json);
    }

    pub(crate) fn velodyne(&mut self, millis: f64, packets: &[Vec<u8>]) {
        let fields = json!([field("count", "uint32"), field("packets", "bytes")]);
        let json = json!({"count": packets.len(), "packets": base64(&packets.concat())});
        let message = Message::new(VELODYNE, millis, velodyne_data(packets));
        self.put(&message, "VelodyneRawDataM", "VelodyneRawDataM", &fields, &json);
    }
}

/// A JPEG of one grey block: as few bytes as the standard allows.
pub(crate) fn jpeg(width: u16, height: u16) -> Vec<u8> {
    let mut lay = Lay::new().bytes(&[0xFF, 0xD8, 0xFF, 0xDB, 0, 67, 0]).bytes(&[16; 64]);
    lay = lay.bytes(&[0xFF, 0xC0, 0, 11, 8]);
    lay = lay.bytes(&height.to_be_bytes()).bytes(&width.to_be_bytes()).bytes(&[1, 1, 0x11, 0]);
    // One code of one bit in both tables: no difference, and end of block.
    for class in [0x00, 0x10] {
        lay = lay.bytes(&[0xFF, 0xC4, 0, 20, class, 1]).bytes(&[0; 15]).u8(0);
    }
    lay = lay.bytes(&[0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0]);
    // Two bits a block, all 0; filled up with ones.
    let blocks = usize::from(width.div_ceil(8)) * usize::from(height.div_ceil(8));
    let mut bits = vec![false; 2 * blocks];
    while !bits.len().is_multiple_of(8) {
        bits.push(true);
    }
    for byte in bits.chunks(8) {
        lay = lay.u8(byte.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit)));
    }
    lay.bytes(&[0xFF, 0xD9]).done()
}
