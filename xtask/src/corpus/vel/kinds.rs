//! The messages of the specification, section by section: 3.4.1 to 3.4.6.

use serde_json::Value as Json;

use super::log::{Id, Log, Message, given};
use crate::corpus::lay::{base64, lay};
use crate::corpus::shape::{Shape, Value, Words, values};

/// A type of message: its name in expected results, and its fields.
pub(super) struct Kind {
    pub(super) id: Id,
    name: &'static str,
    fields: &'static str,
}

pub(super) const OBD: Kind = Kind {
    id: (0x0001_4043, 100),
    name: "OBDDataM",
    fields: "int32 speed;int32 rpm;float32 unused0;int32 unused1;int32 unused2;float32 throttle;int32 unused3",
};
pub(super) const GPS: Kind = Kind {
    id: (0x0001_4A32, 100),
    name: "GPSDataM",
    fields: "int32 hour;int32 minute;int32 second;int32 warning;float64 latitude;float64 longitude;float32 speed;\
             float32 course;int32 day;int32 month;int32 year;int32 quality;int32 satellites;float32 hdop;float32 height;\
             float32 geoid_height;float32 vdop;float32 pdop",
};
pub(super) const IMAGE: Kind = Kind {
    id: (0x0001_09C9, 100),
    name: "ImageM",
    fields: "int32 source;bool32 is_compressed;int32 width;int32 height;uint8[] data",
};
pub(super) const POSE: Kind = Kind {
    id: (0x0001_E342, 100),
    name: "RobotPoseM",
    fields: "float32[4] quaternion;float32[3] acceleration",
};
pub(super) const VELODYNE: Kind =
    Kind { id: (0x0003_112B, 100), name: "VelodyneRawDataM", fields: "uint32 count;uint8[] packets" };
pub(super) const LASER: Kind = Kind {
    id: (0x0003_0910, 101),
    name: "LaserRange2DDataM",
    fields: "string sensor_type;string sensor_name;uint32[] ranges",
};

pub(super) const KINDS: [Kind; 6] = [OBD, GPS, IMAGE, POSE, VELODYNE, LASER];

impl Kind {
    fn shape(&self) -> Shape {
        Shape::parse(self.name, self.fields, Words::Ros, &|name| panic!("{name} is no type"))
    }

    /// Returns the data of a message with these values.
    pub(super) fn data(&self, values: &[Value]) -> Vec<u8> {
        self.shape().full(values)
    }
}

/// A position.
#[derive(Clone, Copy)]
pub(super) struct Position {
    pub(super) time: (i32, i32, i32),
    pub(super) date: (i32, i32, i32),
    pub(super) latitude: f64,
    pub(super) longitude: f64,
    pub(super) speed: f32,
    pub(super) quality: i32,
    pub(super) warning: i32,
}

/// Returns a valid position near Koblenz.
pub(super) fn position(second: i32) -> Position {
    let (time, date) = ((12, 34, second), (14, 6, 2010));
    Position { time, date, latitude: 50.36, longitude: 7.56, speed: 0.0, quality: 1, warning: 0 }
}

impl Position {
    /// Returns the values of its message.
    pub(super) fn values(&self) -> Vec<Value> {
        let ((hour, minute, second), (day, month, year)) = (self.time, self.date);
        values![
            hour,
            minute,
            second,
            self.warning,
            self.latitude,
            self.longitude,
            self.speed,
            90.0,
            day,
            month,
            year,
            self.quality,
            7,
            1.1,
            72.5,
            47.9,
            1.6,
            1.9
        ]
    }
}

/// Returns the values of a vehicle at this speed.
pub(super) fn vehicle(speed: i32) -> Vec<Value> {
    values![speed, 1500, 0.0, 0, 0, 12.5, 0]
}

/// Returns the values of a scan; names are pairs of bytes and expected text.
pub(super) fn scan(kind: (&[u8], &str), name: (&[u8], &str), ranges: Vec<u32>) -> Vec<Value> {
    values![given(kind.0, kind.1), given(name.0, name.1), ranges]
}

impl Log {
    /// Adds a message of this kind.
    pub(super) fn say(self, kind: &Kind, millis: f64, values: &[Value]) -> Self {
        self.say_as(kind, kind.name, millis, values)
    }

    fn say_as(self, kind: &Kind, topic: &str, millis: f64, values: &[Value]) -> Self {
        self.say_message(kind, topic, &Message::new(kind.id, millis, kind.data(values)), values)
    }

    /// Adds a message with its own framing.
    pub(super) fn say_message(self, kind: &Kind, topic: &str, message: &Message, values: &[Value]) -> Self {
        let shape = kind.shape();
        self.put(message, [topic, kind.name], shape.fields(), &shape.data(values))
    }

    /// Adds vehicle data.
    pub(super) fn obd(self, millis: f64, speed: i32) -> Self {
        self.put_obd(&Message::obd(millis, speed), speed)
    }

    /// Adds vehicle data with its own framing.
    pub(super) fn put_obd(self, message: &Message, speed: i32) -> Self {
        self.say_message(&OBD, OBD.name, message, &vehicle(speed))
    }

    /// Adds `n` messages of vehicle data, 100 ms apart from `start` on.
    pub(super) fn drive(self, start: f64, n: i32) -> Self {
        self.each(0..n, |log, i| log.obd(start + 100.0 * f64::from(i), i))
    }

    pub(super) fn gps(self, millis: f64, place: Position) -> Self {
        self.say(&GPS, millis, &place.values())
    }

    pub(super) fn pose(self, millis: f64, q: [f32; 4], a: [f32; 3]) -> Self {
        self.say(&POSE, millis, &values![q, a])
    }

    pub(super) fn image(
        self,
        millis: f64,
        source: i32,
        compressed: bool,
        size: (i32, i32),
        data: &[u8],
    ) -> Self {
        let values = values![source, compressed, size.0, size.1, data];
        self.say_as(&IMAGE, &format!("ImageM/{source}"), millis, &values)
    }

    /// Adds a scan; names are pairs of bytes and expected text.
    pub(super) fn laser(self, millis: f64, kind: (&[u8], &str), name: (&[u8], &str), ranges: &[u32]) -> Self {
        let topic = format!("LaserRange2DDataM/{}", name.1);
        self.say_as(&LASER, topic.trim_end_matches('/'), millis, &scan(kind, name, ranges.to_vec()))
    }

    pub(super) fn velodyne(self, millis: f64, packets: &[Vec<u8>]) -> Self {
        let count = u32::try_from(packets.len()).expect("small");
        let bytes = packets.concat();
        let json: Json = base64(&bytes).into();
        self.say(&VELODYNE, millis, &values![count, Value::As(bytes, json)])
    }
}

/// Returns a JPEG of one grey block, as short as the standard allows.
pub(super) fn jpeg(width: u16, height: u16) -> Vec<u8> {
    // One code of one bit in both tables: no difference, and end of block.
    let table = |class: u8| lay![[0xFF, 0xC4, 0, 20, class, 1], [0_u8; 16]];
    // Two bits per block, all 0; padded with ones.
    let blocks = usize::from(width.div_ceil(8)) * usize::from(height.div_ceil(8));
    let mut bits = vec![false; 2 * blocks];
    bits.resize(bits.len().next_multiple_of(8), true);
    let bits = bits.chunks(8).map(|byte| byte.iter().fold(0_u8, |byte, bit| byte << 1 | u8::from(*bit)));
    lay![
        [0xFF, 0xD8, 0xFF, 0xDB, 0, 67, 0_u8],
        [16_u8; 64],
        [0xFF, 0xC0, 0, 11, 8_u8],
        height.to_be_bytes(),
        width.to_be_bytes(),
        [1, 1, 0x11, 0_u8],
        table(0),
        table(0x10),
        [0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0_u8],
        bits.collect::<Vec<_>>(),
        [0xFF, 0xD9_u8]
    ]
}
