//! The messages in sections 3.4.1 to 3.4.6 of the specification.

use crate::prelude::*;

/// A message.
#[derive(Clone)]
pub(super) struct Message {
    pub(super) id: Id,
    pub(super) millis: f64,
    pub(super) data: Vec<u8>,
    /// Marker of the message, if it differs from that of the log.
    pub(super) marker: Option<u8>,
}

impl Message {
    pub(super) fn new(id: Id, millis: f64, data: Vec<u8>) -> Self {
        Self { id, millis, data, marker: None }
    }

    /// Returns a message of vehicle data.
    pub(super) fn obd(millis: f64, speed: i32) -> Self {
        OBD.message(millis, &vehicle(speed))
    }
}

/// Type and version of a message.
pub(super) type Id = (u32, i32);

/// A type of message.
pub(super) struct Kind {
    pub(super) id: Id,
    pub(super) name: &'static str,
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
    pub(super) fn shape(&self) -> Shape {
        Shape::parse(self.name, self.fields, Words::Ros, &|name| panic!("{name} is no type"))
    }

    /// Returns the data of a message with these values.
    pub(super) fn data(&self, values: &[Value]) -> Vec<u8> {
        self.shape().full(values)
    }

    /// Returns a message with these values.
    pub(super) fn message(&self, millis: f64, values: &[Value]) -> Message {
        Message::new(self.id, millis, self.data(values))
    }
}

/// Content of a GPS message.
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
    /// Returns the values of the message.
    pub(super) fn values(&self) -> Vec<Value> {
        let ((hour, minute, second), (day, month, year)) = (self.time, self.date);
        let place = values![hour, minute, second, self.warning, self.latitude, self.longitude, self.speed];
        [place, values![90.0, day, month, year, self.quality, 7, 1.1, 72.5, 47.9, 1.6, 1.9]].concat()
    }
}

/// Returns the values of a message with vehicle data. All values follow from the speed.
pub(super) fn vehicle(speed: i32) -> Vec<Value> {
    values![speed, 1500, 0.0, 0, 0, 12.5, 0]
}

/// Returns a value that is stored as a length and `bytes`. `json` is the expected result.
fn given(bytes: &[u8], json: impl Into<Json>) -> Value {
    Value::As(lay![u32_of(bytes.len()), bytes], json.into())
}

/// Returns the values of a laser scan. Names are pairs of stored bytes and expected text.
pub(super) fn scan(kind: (&[u8], &str), name: (&[u8], &str), ranges: Vec<u32>) -> Vec<Value> {
    values![given(kind.0, kind.1), given(name.0, name.1), ranges]
}

/// Returns a grey JPEG that is as short as the standard allows.
pub(super) fn jpeg(width: u16, height: u16) -> Vec<u8> {
    // Each Huffman table has a single code of one bit. In the first table it means "no difference",
    // in the second "end of block".
    let table = |class: u8| lay![[0xFF, 0xC4, 0, 20, class, 1], [0_u8; 16]];
    // Each block has two bits that are 0. The last byte is padded with ones.
    let blocks = usize::from(width.div_ceil(8)) * usize::from(height.div_ceil(8));
    let mut bits = vec![false; 2 * blocks];
    bits.resize(bits.len().next_multiple_of(8), true);
    let bits = bits.chunks(8).map(|byte| byte.iter().fold(0_u8, |byte, bit| byte << 1 | u8::from(*bit)));
    let quantization = lay![[0xFF, 0xDB, 0, 67, 0_u8], [16_u8; 64]];
    let size = [height, width].map(u16::to_be_bytes);
    let frame = lay![[0xFF, 0xC0, 0, 11, 8_u8], size, [1, 1, 0x11, 0_u8]];
    let scan = lay![[0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0_u8], bits.collect::<Vec<_>>()];
    lay![[0xFF, 0xD8_u8], quantization, frame, table(0), table(0x10), scan, [0xFF, 0xD9_u8]]
}
