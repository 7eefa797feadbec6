//! The steps that build a `ULog` file. Each step adds a message of the specification.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{PLAIN, START, time};
use crate::log::{increment, push};
use crate::prelude::*;
use crate::shape::{Type, numbered};

/// A `ULog` file that is being built.
pub(super) type Log = crate::log::Log<Own>;

/// Parts that only `ULog` files have.
#[derive(Default)]
pub(super) struct Own {
    /// Maximum time of a row so far, in microseconds. It is the time of messages without a
    /// timestamp.
    clock: u64,
    in_data_section: bool,
    /// Definition text of each format.
    formats: BTreeMap<String, String>,
    /// Message id of each topic, and its format when the topic was subscribed.
    subscribed: Vec<(u16, Shape)>,
}

/// A function that returns the bytes of a row.
type Encoder = fn(&Shape, &[Value]) -> Vec<u8>;

/// Payload of the message `S`, which is always the same.
pub(super) const SYNC: [u8; 8] = [0x2F, 0x73, 0x13, 0x20, 0x25, 0x0C, 0xBB, 0x12];

/// Offset of the incompatible flags. They follow the file header (16 bytes), the message header (3
/// bytes) and the compatible flags (8 bytes).
const INCOMPAT_AT: usize = 16 + 3 + 8;
const OFFSETS_AT: usize = INCOMPAT_AT + 8;

const LEVELS: [&str; 8] = ["emergency", "alert", "critical", "error", "warning", "notice", "info", "debug"];

/// Returns the first 16 bytes of a `ULog` file: the magic number, the version, and the start time
/// in microseconds.
pub(super) fn header(version: u8, start_us: u64) -> Vec<u8> {
    lay![b"ULog\x01\x12\x35", version, start_us]
}

/// Returns a message, which consists of `message_header_s` and the payload. The size in the header
/// does not include the three bytes of the header.
pub(super) fn message(kind: u8, payload: impl AsRef<[u8]>) -> Vec<u8> {
    let payload = payload.as_ref();
    lay![u16::try_from(payload.len()).expect("a payload has at most 65535 bytes"), kind, payload]
}

/// Returns the payload of the messages `I` and `P`: the length of the key, the key, and the value.
pub(super) fn keyed(key: &str, value: &[u8]) -> Vec<u8> {
    lay![u8::try_from(key.len()).expect("a key has at most 255 bytes"), key, value]
}

/// Returns the payload of the message `A`.
pub(super) fn subscription(multi_id: u8, msg_id: u16, name: &str) -> Vec<u8> {
    lay![multi_id, msg_id, name]
}

/// Returns a message `D` with its header.
pub(super) fn data(msg_id: u16, row: impl AsRef<[u8]>) -> Vec<u8> {
    message(b'D', lay![msg_id, row.as_ref()])
}

/// Returns the message `D` of plain row `i` with its header.
pub(super) fn plain_row(i: u16) -> Vec<u8> {
    data(0, lay![time(i), f32::from(i)])
}

/// Converts microseconds to nanoseconds as text.
fn ns(us: u64) -> String {
    (u128::from(us) * 1000).to_string()
}

/// Returns the shape of a format, including its nested formats.
pub(super) fn shape(formats: &BTreeMap<String, String>, name: &str) -> Shape {
    let text = formats.get(name).unwrap_or_else(|| panic!("no format is called {name}"));
    Shape::parse(name, text, Words::Ulog, &|name| shape(formats, name))
}

impl Log {
    /// Creates a log of version 1 whose flag bits are all zero.
    pub(super) fn new() -> Self {
        Self::new_at(START)
    }

    /// Creates a log of version 1 with this start time, whose flag bits are all zero.
    pub(super) fn new_at(start: u64) -> Self {
        Self::starting(1, start).flag_bits([0; 8], [0; 8], b"")
    }

    /// Creates a log that consists of the header only.
    pub(super) fn starting(version: u8, start: u64) -> Self {
        let details = json!({
            "info": {}, "info_multi": {}, "dropouts": [], "messages": {}, "appended_offsets": [],
            "parameters": {"initial": {}, "changed": [], "default_system": {}, "default_setup": {}},
        });
        Self::of(header(version, start), Own { clock: start, ..Own::default() }).expect(json!({
            "format": {"id": "ulog", "version": version.to_string()},
            "clock": "boot", "start_ns": ns(start), "texts": [], "ulog": details,
        }))
    }

    /// Creates a log that starts with `bytes` instead of a header. `start` is the time of its first
    /// row.
    pub(super) fn headless(bytes: &[u8], start: u64) -> Self {
        Self::starting(1, start).with(|log| log.bytes = bytes.to_vec()).note_at(0, "damaged_header")
    }

    /// Starts another log in the same file.
    pub(super) fn second_header(mut self, start: u64) -> Self {
        self.own.in_data_section = false;
        self.note("second_header").lay(header(1, start))
    }

    /// Adds a message `B` without offsets of appended data. `more` are bytes after the 40 bytes of
    /// the specification.
    pub(super) fn flag_bits(self, compat: [u8; 8], incompat: [u8; 8], more: &[u8]) -> Self {
        self.take(b'B', lay![compat, incompat, [0_u64; 3], more])
    }

    /// Adds a message that a reader accepts.
    pub(super) fn take(mut self, kind: u8, payload: impl AsRef<[u8]>) -> Self {
        increment(&mut self.expected["ulog"]["messages"][char::from(kind).to_string()]);
        self.own.in_data_section |= b"ALCDSOR".contains(&kind);
        self.lay(message(kind, payload))
    }

    /// Adds a message with a valid frame and an invalid payload.
    pub(super) fn bad(self, kind: u8, payload: impl AsRef<[u8]>) -> Self {
        self.lose("bad_message", message(kind, payload))
    }

    /// Adds a message of an unknown type, which readers count and report as a note.
    pub(super) fn unknown(self, kind: u8, payload: impl AsRef<[u8]>) -> Self {
        self.note("unknown_message").take(kind, payload)
    }

    /// Adds a message `F` with this text.
    pub(super) fn format(self, text: &str) -> Self {
        self.format_as(text, text)
    }

    /// Adds a message `F` whose bytes differ from the text. Readers interpret the bytes as the
    /// text.
    pub(super) fn format_as(mut self, text: &str, bytes: &str) -> Self {
        if let Some((name, fields)) = text.split_once(':') {
            self.own.formats.insert(name.to_owned(), fields.to_owned());
        }
        self.take(b'F', bytes)
    }

    /// Adds a message `A` for a format that is defined before the first row of the topic.
    pub(super) fn subscribe(self, name: &str, multi_id: u8, msg_id: u16) -> Self {
        self.subscribe_as(name, name, multi_id, msg_id)
    }

    /// Adds a message `A` whose bytes differ from the name. Readers interpret the bytes as the
    /// name.
    pub(super) fn subscribe_as(mut self, name: &str, bytes: &str, multi_id: u8, msg_id: u16) -> Self {
        let shape = self.shape(name);
        self.add(name, multi_id, shape.fields());
        self.own.subscribed.push((msg_id, shape));
        self.take(b'A', subscription(multi_id, msg_id, bytes))
    }

    /// Adds a message `A` for a topic whose rows cannot be decoded. `code` is the code that readers
    /// report.
    pub(super) fn undecodable(mut self, code: &'static str, name: &str, multi_id: u8, msg_id: u16) -> Self {
        self.add(name, multi_id, Json::Null);
        let empty = Shape::parse(name, "", Words::Ulog, &|_| unreachable!("no field"));
        self.own.subscribed.push((msg_id, empty));
        self.note(code).take(b'A', subscription(multi_id, msg_id, name))
    }

    fn add(&mut self, name: &str, multi_id: u8, fields: Json) {
        let series = self.topics.iter().map(|topic| &topic.name);
        let full = numbered(&format!("{name}/{multi_id}"), series);
        self.add_topic(&full, name, fields);
    }

    /// Adds a format, and the first instance of its topic with the id 0.
    pub(super) fn topic(self, text: &str) -> Self {
        let name = text.split(':').next().unwrap_or_default();
        self.format(text).subscribe(name, 0, 0)
    }

    /// Adds the format of a topic that is already subscribed. Rows after the format can be decoded.
    pub(super) fn late_format(self, topic: usize, text: &str) -> Self {
        let mut log = self.format(text);
        let shape = log.shape(&log.topics[topic].type_name);
        log.topics[topic].fields = shape.fields();
        log.own.subscribed[topic].1 = shape;
        log
    }

    /// Returns the shape of the format with this name.
    pub(super) fn shape(&self, name: &str) -> Shape {
        shape(&self.own.formats, name)
    }

    /// Returns the shape of a format that is not in the log.
    pub(super) fn shape_of(&self, text: &str) -> Shape {
        let (name, fields) = text.split_once(':').expect("a format");
        Shape::parse(name, fields, Words::Ulog, &|name| self.shape(name))
    }

    /// Adds a row without the padding at its end. If the row has a time with 64 bits, the log time
    /// becomes that time.
    pub(super) fn row(self, topic: usize, row: impl AsRef<[Value]>) -> Self {
        self.timed_row(topic, row.as_ref(), Shape::trimmed)
    }

    /// Adds a row with the padding at its end.
    pub(super) fn full_row(self, topic: usize, row: impl AsRef<[Value]>) -> Self {
        self.timed_row(topic, row.as_ref(), Shape::full)
    }

    fn timed_row(mut self, topic: usize, row: &[Value], bytes: Encoder) -> Self {
        let time = self.own.subscribed[topic].1.position("timestamp").map(|at| match &row[at] {
            Value::Int(us) => u64::try_from(*us).expect("a time"),
            other => panic!("{other:?} is no time"),
        });
        self.own.clock = self.own.clock.max(time.unwrap_or(0));
        self.store(topic, row, time, bytes)
    }

    /// Adds a row whose stored time has less than 64 bits, or is far from the data. `us` is the
    /// expected time. The row does not change the log time.
    pub(super) fn row_at(self, topic: usize, us: Option<u64>, row: impl AsRef<[Value]>) -> Self {
        self.store(topic, row.as_ref(), us, Shape::trimmed)
    }

    /// Adds a row whose stored time has less than 64 bits, and whose time is after the year 2262.
    /// The log time becomes that of the previous row of its topic.
    pub(super) fn late_row(mut self, topic: usize, previous_us: u64, row: impl AsRef<[Value]>) -> Self {
        self.own.clock = self.own.clock.max(previous_us);
        self.row_at(topic, None, row)
    }

    fn store(mut self, topic: usize, row: &[Value], us: Option<u64>, bytes: Encoder) -> Self {
        let (msg_id, shape) = &self.own.subscribed[topic];
        let (payload, data) = (lay![msg_id, bytes(shape, row)], shape.data(row));
        self.record(topic, us.map(|us| i128::from(us) * 1000), &data);
        self.take(b'D', payload)
    }

    /// Adds plain rows of the first topic.
    pub(super) fn rows(self, numbers: Range<u16>) -> Self {
        self.rows_of(0, numbers)
    }

    /// Adds plain rows of the topic with this index.
    pub(super) fn rows_of(self, topic: usize, numbers: Range<u16>) -> Self {
        self.rows_with(topic, numbers, |i| values![time(i), f32::from(i)])
    }

    /// Adds a row for each item. `row` returns its values.
    pub(super) fn rows_with<I: IntoIterator>(
        self,
        topic: usize,
        items: I,
        row: impl Fn(I::Item) -> Vec<Value>,
    ) -> Self {
        self.each(items, |log, item| log.row(topic, row(item)))
    }

    /// Adds a message `L`. `level` is the stored byte.
    pub(super) fn text(self, level: u8, us: u64, text: impl AsRef<[u8]>) -> Self {
        self.say(b'L', level, None, us, text.as_ref())
    }

    /// Adds a message `C`.
    pub(super) fn tagged(self, level: u8, tag: u16, us: u64, text: impl AsRef<[u8]>) -> Self {
        self.say(b'C', level, Some(tag), us, text.as_ref())
    }

    fn say(mut self, kind: u8, level: u8, tag: Option<u16>, us: u64, text: &[u8]) -> Self {
        let name = LEVELS[usize::from(level.checked_sub(b'0').unwrap_or(level))];
        let text_json = json!({"t_ns": ns(us), "level": name, "tag": tag, "text": escaped(text)});
        push(&mut self.expected["texts"], text_json);
        self.take(kind, lay![level, Vec::from_iter(tag), us, text])
    }

    /// Adds a message `S`.
    pub(super) fn sync(self) -> Self {
        self.take(b'S', SYNC)
    }

    /// Adds a message `O`, whose time is the log time.
    pub(super) fn dropout(mut self, ms: u16) -> Self {
        let t_ns = ns(self.own.clock);
        push(&mut self.expected["ulog"]["dropouts"], json!({"t_ns": t_ns, "ms": ms}));
        self.take(b'O', lay![ms])
    }

    /// Returns the name in the key `type name`, the payload with the value, and the value that
    /// readers return.
    fn value(&self, key: &str, value: &Value) -> (String, Vec<u8>, Json) {
        let (kind, name) = key.split_once(' ').expect("a type and a name");
        if let Value::As(bytes, json) = value {
            return (name.to_owned(), keyed(key, bytes), json.clone());
        }
        let kind = Type::parse(kind, Words::Ulog, &|name| self.shape(name));
        (name.to_owned(), keyed(key, &value.bytes(&kind)), value.json(&kind))
    }

    /// Adds a message `I`. Readers return the last value of a name.
    pub(super) fn info(mut self, key: &str, value: impl Into<Value>) -> Self {
        let (name, payload, json) = self.value(key, &value.into());
        self.expected["ulog"]["info"][name] = json;
        self.take(b'I', payload)
    }

    /// Adds a message `M`. If `continued` is false, the message starts a new list.
    pub(super) fn part(mut self, continued: bool, key: &str, value: impl Into<Value>) -> Self {
        let (name, payload, json) = self.value(key, &value.into());
        let lists = &mut self.expected["ulog"]["info_multi"][name];
        if lists.is_null() {
            *lists = json!([]);
        }
        match lists.as_array_mut().and_then(|lists| lists.last_mut()) {
            Some(list) if continued => push(list, json),
            _ => push(lists, json!([json])),
        }
        self.take(b'M', lay![u8::from(continued), payload])
    }

    /// Adds a message `P`. After the start of the data, it is a change at the log time. Before, it
    /// is an initial value.
    pub(super) fn parameter(mut self, key: &str, value: impl Into<Value>) -> Self {
        let (name, payload, json) = self.value(key, &value.into());
        let parameters = &mut self.expected["ulog"]["parameters"];
        if self.own.in_data_section {
            let change = json!({"t_ns": ns(self.own.clock), "name": name, "value": json});
            push(&mut parameters["changed"], change);
        } else {
            parameters["initial"][name] = json;
        }
        self.take(b'P', payload)
    }

    /// Adds a message `Q`. If bit 0 is set, the value is the default of the system. If bit 1 is
    /// set, the value is the default of the current setup.
    pub(super) fn default(mut self, bits: u8, key: &str, value: impl Into<Value>) -> Self {
        let (name, payload, json) = self.value(key, &value.into());
        for (bit, table) in [(1, "default_system"), (2, "default_setup")] {
            if bits & bit != 0 {
                self.expected["ulog"]["parameters"][table][&name] = json.clone();
            }
        }
        self.take(b'Q', lay![bits, payload])
    }

    /// Sets the flag for appended data.
    pub(super) fn appended_bit(self) -> Self {
        self.set(INCOMPAT_AT, [1])
    }

    /// Sets one of the three offsets of appended data in the flag bits.
    pub(super) fn appended_offset(self, slot: usize, offset: usize) -> Self {
        self.set(OFFSETS_AT + 8 * slot, lay![offset as u64])
    }

    /// Starts appended data, and writes its offset to the next free slot in the flag bits.
    pub(super) fn append_here(mut self) -> Self {
        let at = self.at();
        let used = &mut self.expected["ulog"]["appended_offsets"];
        let slot = used.as_array().map_or(0, Vec::len);
        push(used, at.to_string().into());
        self.appended_offset(slot, at)
    }

    /// Sets the expected conversion of times to UTC.
    pub(super) fn utc(self, rule: &'static str, us: u64) -> Self {
        let clock = if rule == "clock_is_unix" { "unix" } else { "boot" };
        self.expect(json!({"clock": clock, "utc": {"rule": rule, "offset_ns": ns(us)}}))
    }
}

impl From<Log> for Made {
    fn from(log: Log) -> Self {
        let end = ns(log.own.clock);
        let has_end = !log.expected["end_ns"].is_null();
        log.when(!has_end, |log| log.expect(json!({"end_ns": end}))).made()
    }
}

/// Returns a log with the plain topic, which has the id 0.
pub(super) fn plain() -> Log {
    Log::new().topic(PLAIN)
}
