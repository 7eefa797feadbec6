//! The steps that build a `ULog` file: its messages, as in the specification.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Value as Json, json};

use super::{PLAIN, START, time};
use crate::Made;
use crate::lay::{escaped, lay};
use crate::shape::{Shape, Type, Value, Words, values};

/// A `ULog` file during construction.
pub(super) type Log = crate::log::Log<Own>;

/// `ULog`-specific parts.
#[derive(Default)]
pub(super) struct Own {
    version: u8,
    start: u64,
    /// The maximum time of a row so far, in microseconds: the time of messages without a timestamp.
    clock: u64,
    /// The maximum time that is far after the data.
    stale: Option<u64>,
    in_data_section: bool,
    utc: Json,
    /// Definition text of each format.
    formats: BTreeMap<String, String>,
    /// Id of each topic, and the format it had when it was subscribed.
    subscribed: Vec<(u16, Shape)>,
    truth: Json,
}

/// The eight bytes of `S`, as PX4 writes them.
pub(super) const SYNC: [u8; 8] = [0x2F, 0x73, 0x13, 0x20, 0x25, 0x0C, 0xBB, 0x12];

/// Offset of the incompatible flags: after the 16 bytes of the header and the message header.
const INCOMPAT_AT: usize = 16 + 3 + 8;
const OFFSETS_AT: usize = INCOMPAT_AT + 8;

const LEVELS: [&str; 8] = ["emergency", "alert", "critical", "error", "warning", "notice", "info", "debug"];

/// Returns the first 16 bytes of a `ULog` file: magic, version, start time in microseconds.
pub(super) fn header(version: u8, start_us: u64) -> Vec<u8> {
    lay![b"ULog\x01\x12\x35", version, start_us]
}

/// Returns `message_header_s` and its payload: the size does not count the three bytes of the
/// header.
pub(super) fn message(kind: u8, payload: impl AsRef<[u8]>) -> Vec<u8> {
    let payload = payload.as_ref();
    lay![u16::try_from(payload.len()).expect("a payload has at most 65535 bytes"), kind, payload]
}

/// Returns the payload of `I` and `P`: length of the key, key, value.
pub(super) fn keyed(key: &str, value: &[u8]) -> Vec<u8> {
    lay![u8::try_from(key.len()).expect("a key has at most 255 bytes"), key, value]
}

/// Returns the payload of `A`.
pub(super) fn subscription(multi_id: u8, msg_id: u16, name: &str) -> Vec<u8> {
    lay![multi_id, msg_id, name]
}

/// Returns a whole `D` message.
pub(super) fn data(msg_id: u16, row: impl AsRef<[u8]>) -> Vec<u8> {
    message(b'D', lay![msg_id, row.as_ref()])
}

/// Returns the whole `D` message of plain row `i`.
pub(super) fn plain_row(i: u16) -> Vec<u8> {
    data(0, lay![time(i), f32::from(i)])
}

/// Returns microseconds as nanoseconds.
fn ns(us: u64) -> String {
    (u128::from(us) * 1000).to_string()
}

fn push(list: &mut Json, item: Json) {
    list.as_array_mut().expect("a list").push(item);
}

/// Returns the shape of a format, with those of its nested formats.
pub(super) fn shape(formats: &BTreeMap<String, String>, name: &str) -> Shape {
    let text = formats.get(name).unwrap_or_else(|| panic!("no format is called {name}"));
    Shape::parse(name, text, Words::Ulog, &|name| shape(formats, name))
}

impl Log {
    /// Returns a log of version 1 with flag bits that are all zero.
    pub(super) fn new() -> Self {
        Self::starting(1, START).flag_bits([0; 8], [0; 8], b"")
    }

    /// Returns a log with only the header.
    pub(super) fn starting(version: u8, start: u64) -> Self {
        let truth = json!({
            "info": {}, "info_multi": {}, "dropouts": [], "messages": {}, "appended_offsets": [],
            "parameters": {"initial": {}, "changed": [], "default_system": {}, "default_setup": {}},
        });
        Self::of(header(version, start), Own { version, start, clock: start, truth, ..Own::default() })
    }

    /// Returns a log that starts with these bytes instead of a header; `start` is the time of its
    /// first row.
    pub(super) fn headless(bytes: &[u8], start: u64) -> Self {
        let mut log = Self::starting(1, start);
        log.bytes = bytes.to_vec();
        log.note_at(0, "damaged_header")
    }

    /// Starts another log in the same file.
    pub(super) fn second_header(mut self, start: u64) -> Self {
        self.own.in_data_section = false;
        self.note("second_header").lay(header(1, start))
    }

    /// Adds the `B` message without offsets, with additional bytes after the 40 known ones.
    pub(super) fn flag_bits(self, compat: [u8; 8], incompat: [u8; 8], more: &[u8]) -> Self {
        self.take(b'B', lay![compat, incompat, [0_u64; 3], more])
    }

    /// Adds a message that a reader accepts.
    pub(super) fn take(mut self, kind: u8, payload: impl AsRef<[u8]>) -> Self {
        let count = &mut self.own.truth["messages"][char::from(kind).to_string()];
        *count = (count.as_u64().unwrap_or(0) + 1).into();
        self.own.in_data_section |= b"ALCDSOR".contains(&kind);
        self.lay(message(kind, payload))
    }

    /// Adds a message with a valid frame and an invalid payload.
    pub(super) fn bad(self, kind: u8, payload: impl AsRef<[u8]>) -> Self {
        self.lose("bad_message", message(kind, payload))
    }

    /// Adds an unknown kind of message: kept, counted and noted.
    pub(super) fn unknown(self, kind: u8, payload: impl AsRef<[u8]>) -> Self {
        self.note("unknown_message").take(kind, payload)
    }

    /// Adds `F` with this text.
    pub(super) fn format(self, text: &str) -> Self {
        self.format_as(text, text)
    }

    /// Adds `F` with other bytes than the text that a reader takes them for.
    pub(super) fn format_as(mut self, text: &str, bytes: &str) -> Self {
        if let Some((name, fields)) = text.split_once(':') {
            self.own.formats.insert(name.to_owned(), fields.to_owned());
        }
        self.take(b'F', bytes)
    }

    /// Adds `A` for a format that is defined, or follows before the first row.
    pub(super) fn subscribe(self, name: &str, multi_id: u8, msg_id: u16) -> Self {
        self.subscribe_as(name, name, multi_id, msg_id)
    }

    /// Adds `A` with other bytes than the name that a reader takes them for.
    pub(super) fn subscribe_as(mut self, name: &str, bytes: &str, multi_id: u8, msg_id: u16) -> Self {
        let shape = self.shape(name);
        self.add(name, multi_id, shape.fields());
        self.own.subscribed.push((msg_id, shape));
        self.take(b'A', subscription(multi_id, msg_id, bytes))
    }

    /// Adds `A` for a topic whose rows cannot be decoded, with the code that a reader gives.
    pub(super) fn undecodable(mut self, code: &'static str, name: &str, multi_id: u8, msg_id: u16) -> Self {
        self.add(name, multi_id, Json::Null);
        self.own
            .subscribed
            .push((msg_id, Shape::parse(name, "", Words::Ulog, &|_| unreachable!("no field"))));
        self.note(code).take(b'A', subscription(multi_id, msg_id, name))
    }

    fn add(&mut self, name: &str, multi_id: u8, fields: Json) {
        let plain = format!("{name}/{multi_id}");
        let series = self.topics.iter().filter(|topic| topic.name.split('#').next() == Some(&plain));
        let full = match series.count() {
            0 => plain,
            n => format!("{plain}#{}", n + 1),
        };
        self.add_topic(&full, name, fields);
    }

    /// Adds a format and its first instance with id 0, as in most logs here.
    pub(super) fn topic(self, text: &str) -> Self {
        let name = text.split(':').next().unwrap_or_default();
        self.format(text).subscribe(name, 0, 0)
    }

    /// Adds the format of a topic that was subscribed before it: later rows can be decoded.
    pub(super) fn late_format(self, topic: usize, text: &str) -> Self {
        let mut log = self.format(text);
        let shape = log.shape(&log.topics[topic].type_name);
        log.topics[topic].fields = shape.fields();
        log.own.subscribed[topic].1 = shape;
        log
    }

    /// Returns the format with this name as a shape.
    pub(super) fn shape(&self, name: &str) -> Shape {
        shape(&self.own.formats, name)
    }

    /// Returns the shape of a format that is not written yet.
    pub(super) fn shape_of(&self, text: &str) -> Shape {
        let (name, fields) = text.split_once(':').expect("a format");
        Shape::parse(name, fields, Words::Ulog, &|name| self.shape(name))
    }

    /// Adds a row without the padding at its end. Its time is its own if that has 64 bits.
    pub(super) fn row(self, topic: usize, row: impl AsRef<[Value]>) -> Self {
        let bytes = self.own.subscribed[topic].1.trimmed(row.as_ref());
        self.row_bytes(topic, row.as_ref(), &bytes)
    }

    /// Adds a row with the padding at its end.
    pub(super) fn full_row(self, topic: usize, row: impl AsRef<[Value]>) -> Self {
        let bytes = self.own.subscribed[topic].1.full(row.as_ref());
        self.row_bytes(topic, row.as_ref(), &bytes)
    }

    fn row_bytes(mut self, topic: usize, row: &[Value], bytes: &[u8]) -> Self {
        let time = self.own.subscribed[topic].1.position("timestamp").map(|at| match &row[at] {
            Value::Int(us) => u64::try_from(*us).expect("a time"),
            other => panic!("{other:?} is no time"),
        });
        self.own.clock = self.own.clock.max(time.unwrap_or(0));
        self.store(topic, row, time, bytes)
    }

    /// Adds a row whose stored time has fewer bits or is far off, and the intended time, if any. It
    /// does not change the log time.
    pub(super) fn row_at(self, topic: usize, us: Option<u64>, row: impl AsRef<[Value]>) -> Self {
        let bytes = self.own.subscribed[topic].1.trimmed(row.as_ref());
        self.store(topic, row.as_ref(), us, &bytes)
    }

    /// Adds a row with a narrow time after the year 2262; the log time becomes that of its topic's
    /// previous row.
    pub(super) fn late_row(mut self, topic: usize, previous_us: u64, row: impl AsRef<[Value]>) -> Self {
        self.own.clock = self.own.clock.max(previous_us);
        self.row_at(topic, None, row)
    }

    /// Adds a row with a time far after the data.
    pub(super) fn stale_row(mut self, topic: usize, us: u64, row: impl AsRef<[Value]>) -> Self {
        self.own.stale = self.own.stale.max(Some(us));
        self.note("stale_times").row_at(topic, Some(us), row)
    }

    fn store(mut self, topic: usize, row: &[Value], us: Option<u64>, bytes: &[u8]) -> Self {
        let (msg_id, shape) = &self.own.subscribed[topic];
        let (msg_id, data) = (*msg_id, shape.data(row));
        self.record(topic, us.map(|us| i128::from(us) * 1000), &data);
        self.take(b'D', lay![msg_id, bytes])
    }

    /// Adds rows of the plain topic, the first of the log.
    pub(super) fn rows(self, numbers: Range<u16>) -> Self {
        self.rows_of(0, numbers)
    }

    /// Adds plain rows of this topic.
    pub(super) fn rows_of(self, topic: usize, numbers: Range<u16>) -> Self {
        self.each(numbers, |log, i| log.row(topic, values![time(i), f32::from(i)]))
    }

    /// Adds `L` with the level as stored in the file.
    pub(super) fn text(mut self, level: u8, us: u64, text: impl AsRef<[u8]>) -> Self {
        self.say(level, None, us, text.as_ref());
        self.take(b'L', lay![level, us, text.as_ref()])
    }

    /// Adds `C`.
    pub(super) fn tagged(mut self, level: u8, tag: u16, us: u64, text: impl AsRef<[u8]>) -> Self {
        self.say(level, Some(tag), us, text.as_ref());
        self.take(b'C', lay![level, tag, us, text.as_ref()])
    }

    fn say(&mut self, level: u8, tag: Option<u16>, us: u64, text: &[u8]) {
        let level = LEVELS[usize::from(level.checked_sub(b'0').unwrap_or(level))];
        let text = escaped(text);
        self.texts.push(json!({"t_ns": ns(us), "level": level, "tag": tag, "text": text}));
    }

    /// Adds `S`.
    pub(super) fn sync(self) -> Self {
        self.take(b'S', SYNC)
    }

    /// Adds `O` at the log time.
    pub(super) fn dropout(mut self, ms: u16) -> Self {
        let t_ns = ns(self.own.clock);
        push(&mut self.own.truth["dropouts"], json!({"t_ns": t_ns, "ms": ms}));
        self.take(b'O', lay![ms])
    }

    /// Returns the key `type name`, the bytes of a value, and the value that a reader gives.
    fn value(&self, key: &str, value: &Value) -> (String, Vec<u8>, Json) {
        let (kind, name) = key.split_once(' ').expect("a type and a name");
        if let Value::As(bytes, json) = value {
            return (name.to_owned(), keyed(key, bytes), json.clone());
        }
        let kind = Type::parse(kind, Words::Ulog, &|name| self.shape(name));
        let mut bytes = Vec::new();
        value.lay(&kind, &mut bytes);
        (name.to_owned(), keyed(key, &bytes), value.json(&kind))
    }

    /// Adds `I`: the last one of a name wins.
    pub(super) fn info(mut self, key: &str, value: impl Into<Value>) -> Self {
        let (name, payload, json) = self.value(key, &value.into());
        self.own.truth["info"][name] = json;
        self.take(b'I', payload)
    }

    /// Adds `M`: a part that is not continued starts a list.
    pub(super) fn part(mut self, continued: bool, key: &str, value: impl Into<Value>) -> Self {
        let (name, payload, json) = self.value(key, &value.into());
        let lists = &mut self.own.truth["info_multi"][name];
        if lists.is_null() {
            *lists = json!([]);
        }
        match lists.as_array_mut().and_then(|lists| lists.last_mut()) {
            Some(list) if continued => push(list, json),
            _ => push(lists, json!([json])),
        }
        self.take(b'M', lay![u8::from(continued), payload])
    }

    /// Adds `P`: an initial value, or a change at the log time after data started.
    pub(super) fn parameter(mut self, key: &str, value: impl Into<Value>) -> Self {
        let (name, payload, json) = self.value(key, &value.into());
        let parameters = &mut self.own.truth["parameters"];
        if self.own.in_data_section {
            push(
                &mut parameters["changed"],
                json!({"t_ns": ns(self.own.clock), "name": name, "value": json}),
            );
        } else {
            parameters["initial"][name] = json;
        }
        self.take(b'P', payload)
    }

    /// Adds `Q`: bit 0 = for all systems, bit 1 = for this setup.
    pub(super) fn default(mut self, bits: u8, key: &str, value: impl Into<Value>) -> Self {
        let (name, payload, json) = self.value(key, &value.into());
        for (bit, table) in [(1, "default_system"), (2, "default_setup")] {
            if bits & bit != 0 {
                self.own.truth["parameters"][table][&name] = json.clone();
            }
        }
        self.take(b'Q', lay![bits, payload])
    }

    /// Sets the flag for appended data.
    pub(super) fn appended_bit(self) -> Self {
        self.set(INCOMPAT_AT, [1])
    }

    /// Writes one of the three offsets of appended data.
    pub(super) fn appended_offset(self, slot: usize, offset: usize) -> Self {
        self.set(OFFSETS_AT + 8 * slot, lay![offset as u64])
    }

    /// Starts appended data that a reader uses: the offset goes to the next free slot.
    pub(super) fn append_here(mut self) -> Self {
        let at = self.at();
        let used = &mut self.own.truth["appended_offsets"];
        push(used, at.to_string().into());
        let slot = used.as_array().map_or(0, Vec::len) - 1;
        self.appended_offset(slot, at)
    }

    /// Sets the conversion of times to UTC.
    pub(super) fn utc(mut self, rule: &'static str, us: u64) -> Self {
        self.own.utc = json!({"rule": rule, "offset_ns": ns(us)});
        self
    }
}

impl From<Log> for Made {
    fn from(mut log: Log) -> Self {
        let own = &mut log.own;
        let mut head = json!({
            "format": {"id": "ulog", "version": own.version.to_string()},
            "clock": if own.utc["rule"] == "clock_is_unix" { "unix" } else { "boot" },
            "utc": own.utc.take(),
            "start_ns": ns(own.start),
            "end_ns": ns(own.stale.unwrap_or(own.clock)),
            "texts": std::mem::take(&mut log.texts),
            "ulog": own.truth.take(),
        });
        if own.stale.is_some() {
            head["data_ns"] = json!([ns(own.start), ns(own.clock)]);
        }
        log.made(head)
    }
}

/// Returns a log with the plain topic, id 0.
pub(super) fn plain() -> Log {
    Log::new().topic(PLAIN)
}

/// Returns a log that must be refused, with version 1 in its header.
pub(super) fn refused(bytes: Vec<u8>, kind: &str, contains: &str) -> Made {
    Made::refused(bytes, ["ulog", "1"], kind, contains)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_have_the_sizes_of_the_specification() {
        let header = header(1, 0x0102_0304_0506_0708);
        assert_eq!(header[..8], *b"ULog\x01\x12\x35\x01");
        assert_eq!(header[8..], [8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(message(b'O', [26, 0]), [2, 0, b'O', 26, 0]);
        assert_eq!(message(b'X', []), [0, 0, b'X']);
        assert_eq!(Log::new().at(), 16 + 3 + 40);
    }
}
