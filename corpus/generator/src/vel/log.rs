//! The steps that build a VEL log. The index comes before the messages, and its size is only known
//! at the end. Offsets therefore count from the first message until the log is finished.

use super::kinds::{GPS, IMAGE, KINDS, Kind, LASER, Message, OBD, POSE, Position, VELODYNE, scan, vehicle};
use crate::prelude::*;

/// A VEL log that is being built.
pub(super) type Log = crate::log::Log<Own>;

/// Meaning of the size in the header of a message. Programs that write VEL logs differ in this
/// point.
#[derive(Clone, Copy, Default)]
pub(super) struct Sizes {
    /// Number of bytes that the size includes beside the data.
    surplus: u32,
    /// Name of the convention.
    pub(super) rule: &'static str,
}

impl Sizes {
    /// The size includes the header without the size field itself.
    pub(super) const EXCLUSIVE: Self = Self { surplus: 17, rule: "exclusive" };
    /// The size includes the whole header.
    pub(super) const INCLUSIVE: Self = Self { surplus: 21, rule: "inclusive" };
    /// The size is that of the data only.
    pub(super) const DATA_ONLY: Self = Self { surplus: 0, rule: "data_only" };
}

/// Parts that only VEL logs have.
#[derive(Default)]
pub(super) struct Own {
    sizes: Sizes,
    pub(super) marker: u8,
    pub(super) version: (u16, u16),
    /// True if the index has an entry per second from the start of the program, and not from the
    /// first message.
    pub(super) from_start: bool,
    /// True if the log has no index.
    no_index: bool,
    /// Changes the correct index entries.
    change: Option<fn(&mut Vec<i64>)>,
    /// Number of entries in the header, if it is wrong.
    pub(super) claimed: Option<u32>,
    /// True if readers must rebuild the index.
    rebuilt: bool,
    /// Offset and timestamp of each message that may have an index entry.
    places: Vec<(usize, f64)>,
    markers: [u64; 2],
    now: i64,
    /// Difference between the offset of the first message and the end of the index.
    starts_at: usize,
}

impl Log {
    /// Creates an empty log with the conventions of the specification: sizes exclude the size
    /// field, the marker is 0x49, and the index starts at the first message.
    pub(super) fn new() -> Self {
        Self::of(Vec::new(), Own { sizes: Sizes::EXCLUSIVE, marker: 0x49, version: (1, 1), ..Own::default() })
    }

    /// Changes how sizes are written.
    pub(super) fn sizes(self, sizes: Sizes) -> Self {
        self.with(|log| log.own.sizes = sizes)
    }

    /// Changes the correct index entries. `rebuilt` is true if readers must rebuild the index.
    pub(super) fn index(self, rebuilt: bool, change: fn(&mut Vec<i64>)) -> Self {
        self.with(|log| (log.own.rebuilt, log.own.change) = (rebuilt, Some(change)))
    }

    /// Writes an index without entries.
    pub(super) fn no_index(self) -> Self {
        self.with(|log| log.own.no_index = true)
    }

    /// Returns the bytes of a message according to the conventions of the log.
    pub(super) fn frame(&self, message: &Message) -> Vec<u8> {
        let marker = message.marker.unwrap_or(self.own.marker);
        let (kind, version) = message.id;
        let size = u32_of(message.data.len()) + self.own.sizes.surplus;
        lay![size, marker, kind, version, message.millis, message.data]
    }

    /// Adds an intact message. `fields` and `data` are the expected result.
    pub(super) fn put(mut self, message: &Message, topic: [&str; 2], fields: Json, data: &Json) -> Self {
        let own = &mut self.own;
        own.count(message, self.bytes.len());
        let now = own.now;
        let known = self.topics.iter().position(|known| known.name == topic[0]);
        let number = known.unwrap_or_else(|| self.add_topic(topic[0], topic[1], fields));
        self.record(number, Some(now.into()), data);
        self.unseen(message)
    }

    /// Adds a message of an unknown type. `name` is the name of its topic in readers.
    pub(super) fn unknown(self, message: &Message, name: &str) -> Self {
        let fields = json!([{"name": "data", "type": "bytes"}]);
        self.put(message, [name, name], fields, &json!({"data": base64(&message.data)}))
    }

    /// Adds a message with an intact frame whose data is too short for its content.
    pub(super) fn short(mut self, message: &Message) -> Self {
        self.own.count(message, self.bytes.len());
        let bytes = self.frame(message);
        self.lose("bad_payload", bytes)
    }

    /// Adds a message that is marked as invalid.
    pub(super) fn invalid(self, message: &Message) -> Self {
        self.note("invalid_message").unseen(&Message { marker: Some(0x30), ..message.clone() })
    }

    /// Adds a message that readers do not return.
    pub(super) fn unseen(self, message: &Message) -> Self {
        let bytes = self.frame(message);
        self.lay(bytes)
    }

    /// Adds a message whose bytes are changed. Expects that the message is lost.
    pub(super) fn spoilt(self, message: &Message, change: impl FnOnce(&mut Vec<u8>)) -> Self {
        let bytes = self.frame(message).with(change);
        self.lose("gap", bytes)
    }

    /// Adds a message without its last `missing` bytes.
    pub(super) fn cut(self, message: &Message, missing: usize) -> Self {
        let bytes = self.frame(message);
        self.lose("cut", &bytes[..bytes.len() - missing])
    }

    /// Adds the end mark. Readers ignore the bytes after it.
    pub(super) fn terminate(self) -> Self {
        self.lay([0xFF; 4])
    }

    /// Expects that the first message is at this offset, and not directly after the index.
    pub(super) fn starts_here(self) -> Self {
        let at = self.at();
        self.with(|log| log.own.starts_at = at)
    }

    /// Expects that readers infer this convention from the file.
    pub(super) fn choice(self, what: &str, choice: &str) -> Self {
        self.chosen(what, choice, false)
    }

    /// Expects that readers assume this convention, because the file does not determine it.
    pub(super) fn assumed(self, what: &str, choice: &str) -> Self {
        self.chosen(what, choice, true)
    }

    fn chosen(self, what: &str, choice: &str, assumed: bool) -> Self {
        let choice = json!({"choice": choice, "assumed": assumed});
        self.with(|log| log.expected["vel"]["choices"][what] = choice)
    }

    /// Adds a member to the expected result.
    pub(super) fn fact(self, key: &str, value: impl Into<Json>) -> Self {
        self.with(|log| log.expected["vel"][key] = value.into())
    }

    pub(super) fn utc(self, offset_ns: i64) -> Self {
        let utc = json!({"rule": "gps", "offset_ns": offset_ns.to_string()});
        self.expect(json!({"utc": utc})).choice("utc", "gps")
    }

    /// Adds a message of the type `kind`.
    fn say(self, kind: &Kind, topic: &str, millis: f64, values: &[Value]) -> Self {
        let shape = kind.shape();
        self.put(&kind.message(millis, values), [topic, kind.name], shape.fields(), &shape.data(values))
    }

    /// Adds a message with vehicle data.
    pub(super) fn obd(self, millis: f64, speed: i32) -> Self {
        self.put_obd(&Message::obd(millis, speed), speed)
    }

    /// Adds a message with vehicle data whose frame differs from that of other messages.
    pub(super) fn put_obd(self, message: &Message, speed: i32) -> Self {
        self.put(message, [OBD.name; 2], OBD.shape().fields(), &OBD.shape().data(&vehicle(speed)))
    }

    /// Adds `n` messages with vehicle data. They start at the time `start` and are 100 ms apart.
    pub(super) fn drive(self, start: f64, n: i32) -> Self {
        self.each(0..n, |log, i| log.obd(start + 100.0 * f64::from(i), i))
    }

    pub(super) fn gps(self, millis: f64, place: Position) -> Self {
        self.say(&GPS, GPS.name, millis, &place.values())
    }

    pub(super) fn pose(self, millis: f64, q: [f32; 4], a: [f32; 3]) -> Self {
        self.say(&POSE, POSE.name, millis, &values![q, a])
    }

    pub(super) fn image(self, millis: f64, source: i32, jpeg: bool, size: [i32; 2], data: &[u8]) -> Self {
        let values = values![source, jpeg, size[0], size[1], data];
        self.say(&IMAGE, &format!("ImageM/{source}"), millis, &values)
    }

    /// Adds a laser scan. Names are pairs of stored bytes and expected text.
    pub(super) fn laser(self, millis: f64, kind: (&[u8], &str), name: (&[u8], &str), ranges: &[u32]) -> Self {
        let topic = format!("LaserRange2DDataM/{}", name.1);
        self.say(&LASER, topic.trim_end_matches('/'), millis, &scan(kind, name, ranges.to_vec()))
    }

    pub(super) fn velodyne(self, millis: f64, packets: &[Vec<u8>]) -> Self {
        let bytes = packets.concat();
        let json: Json = base64(&bytes).into();
        self.say(&VELODYNE, VELODYNE.name, millis, &values![u32_of(packets.len()), Value::As(bytes, json)])
    }
}

impl Own {
    /// Counts a message with an intact frame.
    fn count(&mut self, message: &Message, at: usize) {
        self.markers[usize::from(message.marker.unwrap_or(self.marker) == 0x31)] += 1;
        self.places.push((at, message.millis));
        if message.millis.is_finite() {
            #[expect(clippy::cast_possible_truncation, reason = "exact, or the last time there is")]
            let nanos = (message.millis * 1e6).round() as i64;
            self.now = nanos;
        }
    }

    /// Returns the index entries, which are correct unless the log changes them. With timestamps far
    /// apart, the correct index is huge, so it is not computed for a log without an index.
    fn entries(&self) -> Vec<i64> {
        let start = match self.places.first() {
            Some((_, first)) if first.is_finite() && !self.from_start => *first,
            _ => 0.0,
        };
        let finite = self.places.iter().map(|place| place.1).filter(|ms| ms.is_finite());
        let seconds = (finite.fold(start, f64::max) - start) / 1000.0;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and positive")]
        let count = if self.no_index || self.places.is_empty() { 0 } else { seconds as u32 + 1 };
        let entry = |second: u32| {
            let from = start + 1000.0 * f64::from(second);
            let place = self.places.iter().find(|place| place.1 >= from);
            12 + 8 * i64::from(count) + i64::from(u32_of(place.expect("the last second has a message").0))
        };
        let mut entries = (0..count).map(entry).collect();
        if let Some(change) = self.change {
            change(&mut entries);
        }
        entries
    }
}

impl From<Log> for Made {
    fn from(log: Log) -> Self {
        let own = &log.own;
        let entries = own.entries();
        let state = match entries.is_empty() {
            _ if own.rebuilt => "rebuilt",
            true => "absent",
            false => "used",
        };
        let claimed = own.claimed.unwrap_or(u32_of(entries.len()));
        let (major, minor) = own.version;
        let head = lay![b"\xa4VEL", major, minor, claimed, entries];
        let first_message = format!("byte {}", head.len() + own.starts_at);
        let marker = match own.markers {
            [_, 0] => "0x49",
            [0, _] => "0x31",
            _ => "mixed",
        };
        let origin = if own.from_start { "program_start" } else { "first_message" };
        let has_known = log.topics.iter().any(|topic| KINDS.iter().any(|kind| kind.name == topic.type_name));
        let (messages, size_rule) = (own.places.len(), own.sizes.rule);
        let format = json!({"id": "vel", "version": format!("{major}.{minor}")});
        let has_rule = !log.expected["vel"]["choices"]["size_rule"].is_null();
        log.after(head)
            .expect(json!({"format": format, "clock": "log_start"}))
            .fact("index", state)
            .fact("messages", messages.to_string())
            .chosen("marker", marker, messages == 0)
            .choice("first_message", &first_message)
            .when(!has_rule, |log| log.chosen("size_rule", size_rule, !has_known))
            .when(state == "used" && messages > 0, |log| log.choice("index_origin", origin))
            .when((major, minor) != (1, 1), |log| log.note_at(4, "unknown_version"))
            .when(state == "rebuilt", |log| log.note_at(8, "index_rebuilt"))
            .made()
    }
}
