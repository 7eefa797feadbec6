//! Steps that add messages of the types of the specification.

use serde_json::Value as Json;

use super::kinds::{GPS, IMAGE, Kind, LASER, OBD, POSE, Position, VELODYNE, scan, vehicle};
use super::log::{Log, Message};
use crate::lay::base64;
use crate::shape::{Value, values};

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
