//! A log under construction: each step lays bytes down and writes into the truth what its
//! author knows about them.

use serde_json::Value as Json;

use super::shape::{Shape, Type, Value};
use crate::corpus::Made;
use crate::corpus::ulog::expected::{
    Changed, Dropout, Expected, FormatId, Lost, Note, Own, Record, Text, Topic, Utc, ns,
};
use crate::corpus::ulog::lay::{Lay, SYNC, flag_bits, header, hex, keyed, message, subscription};

/// Where the flag bits' message begins, and fields in it.
const FLAG_BITS_AT: usize = 16;
const INCOMPAT_AT: usize = FLAG_BITS_AT + 3 + 8;
const OFFSETS_AT: usize = INCOMPAT_AT + 8;

const LEVELS: [&str; 8] = ["emergency", "alert", "critical", "error", "warning", "notice", "info", "debug"];

/// A file in the making and the truth about it.
pub(crate) struct Log {
    bytes: Vec<u8>,
    truth: Expected,
    /// The greatest time of a row so far, in microseconds: what messages without a time get.
    clock: u64,
    /// The greatest time that lies far behind the data, in microseconds.
    stale: Option<u64>,
    in_data_section: bool,
    /// Rows of each topic so far.
    counts: Vec<usize>,
}

/// What `subscribe` hands out, to name the topic of a row.
#[derive(Clone)]
pub(crate) struct Subscribed {
    index: usize,
    msg_id: u16,
    shape: Shape,
}

impl Subscribed {
    /// The bytes of a whole `D` message with this row.
    pub(crate) fn message(&self, row: &[Value]) -> Vec<u8> {
        self.message_of(&self.shape.trimmed_bytes(row))
    }

    /// The bytes of a whole `D` message with these bytes for a row.
    pub(crate) fn message_of(&self, row: &[u8]) -> Vec<u8> {
        let payload = Lay::new().u16(self.msg_id).bytes(row).done();
        message(b'D', &payload)
    }
}

/// A key, its value's bytes, and what a reader makes of them.
pub(crate) struct Keyed {
    pub(crate) type_name: String,
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) json: Json,
}

impl Keyed {
    /// A scalar, written with the type the value has.
    pub(crate) fn scalar(kind: &Type, name: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        let one = Shape::new("").with("v", kind.clone());
        let Type::Basic(type_name, _) = kind else {
            panic!("{kind:?} is no scalar");
        };
        Self {
            type_name: (*type_name).to_owned(),
            name: name.to_owned(),
            bytes: one.full_bytes(std::slice::from_ref(&value)),
            json: value.json(kind),
        }
    }

    /// A text, with the right length in its type.
    pub(crate) fn text(name: &str, text: &str) -> Self {
        Self {
            type_name: format!("char[{}]", text.len()),
            name: name.to_owned(),
            bytes: text.as_bytes().to_vec(),
            json: text.into(),
        }
    }

    /// An array of numbers; `bytes` are laid as they are.
    pub(crate) fn array(type_name: &str, name: &str, bytes: &[u8], json: Json) -> Self {
        Self { type_name: type_name.to_owned(), name: name.to_owned(), bytes: bytes.to_vec(), json }
    }

    /// Anything a reader keeps as bytes.
    pub(crate) fn opaque(type_name: &str, name: &str, bytes: &[u8]) -> Self {
        let hex = hex(bytes);
        Self {
            type_name: type_name.to_owned(),
            name: name.to_owned(),
            bytes: bytes.to_vec(),
            json: serde_json::json!({"type": type_name, "hex": hex}),
        }
    }

    /// The payload of `I` and `P`.
    pub(crate) fn payload(&self) -> Vec<u8> {
        keyed(&format!("{} {}", self.type_name, self.name), &self.bytes)
    }
}

impl Log {
    /// A log of version 1 with flag bits that are all zero.
    pub(crate) fn new(start_us: u64) -> Self {
        let mut log = Self::without_flag_bits(1, start_us);
        log.flag_bits([0; 8], [0; 8], [0; 3], &[]);
        log
    }

    /// Only the header.
    pub(crate) fn without_flag_bits(version: u8, start_us: u64) -> Self {
        let truth = Expected {
            format: FormatId { id: "ulog", version: version.to_string() },
            open: "ok",
            state: "complete",
            clock: "boot",
            utc: None,
            start_ns: ns(start_us),
            end_ns: ns(start_us),
            data_ns: None,
            topics: Vec::new(),
            records: Vec::new(),
            texts: Vec::new(),
            own: Own::default(),
            lost: Vec::new(),
            notes: Vec::new(),
        };
        Self {
            bytes: header(version, start_us),
            truth,
            clock: start_us,
            stale: None,
            in_data_section: false,
            counts: Vec::new(),
        }
    }

    /// The `B` message, with bytes after the 40 that are known today.
    pub(crate) fn flag_bits(&mut self, compat: [u8; 8], incompat: [u8; 8], offsets: [u64; 3], more: &[u8]) {
        let mut payload = flag_bits(compat, incompat, offsets);
        payload.extend_from_slice(more);
        self.take(b'B', &payload);
    }

    /// Where the next message will begin.
    pub(crate) fn at(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// A message that a reader accepts.
    pub(crate) fn take(&mut self, kind: u8, payload: &[u8]) {
        let letter = char::from(kind).to_string();
        *self.truth.own.ulog.messages.entry(letter).or_default() += 1;
        self.in_data_section |= b"ALCDSOR".contains(&kind);
        self.bytes.extend(message(kind, payload));
    }

    /// Bytes that are lost, as one range.
    pub(crate) fn lose(&mut self, code: &'static str, bytes: &[u8]) {
        let start = self.at().to_string();
        self.bytes.extend_from_slice(bytes);
        let end = self.at().to_string();
        self.truth.lost.push(Lost { code, start, end });
    }

    /// A note about the message that comes next.
    pub(crate) fn note(&mut self, code: &'static str) {
        self.note_at(self.at(), code);
    }

    /// A note about something else.
    pub(crate) fn note_at(&mut self, offset: u64, code: &'static str) {
        let offset = offset.to_string();
        self.truth.notes.push(Note { code, offset });
    }

    /// An unknown kind of message: kept, counted and noted.
    pub(crate) fn unknown(&mut self, kind: u8, payload: &[u8]) {
        self.note("unknown_message");
        self.take(kind, payload);
    }

    /// `F` of a shape.
    pub(crate) fn format(&mut self, shape: &Shape) {
        self.format_text(&shape.text());
    }

    /// `F` with this text.
    pub(crate) fn format_text(&mut self, text: &str) {
        self.take(b'F', text.as_bytes());
    }

    /// `A` of a shape that can be decoded.
    pub(crate) fn subscribe(&mut self, shape: &Shape, multi_id: u8, msg_id: u16) -> Subscribed {
        let mut subscribed = self.subscribe_undecodable(&shape.name, multi_id, msg_id);
        self.truth.topics[subscribed.index].fields = Some(shape.fields_json());
        subscribed.shape = shape.clone();
        subscribed
    }

    /// `A` of a topic whose rows cannot be decoded.
    pub(crate) fn subscribe_undecodable(&mut self, name: &str, multi_id: u8, msg_id: u16) -> Subscribed {
        self.take(b'A', &subscription(multi_id, msg_id, name));
        let plain = format!("{name}/{multi_id}");
        let series = self.truth.topics.iter();
        let earlier = series.filter(|t| t.name.split('#').next() == Some(&plain)).count();
        let full = match earlier {
            0 => plain,
            n => format!("{plain}#{}", n + 1),
        };
        self.truth.topics.push(Topic {
            name: full,
            type_name: name.to_owned(),
            count: String::new(),
            fields: None,
        });
        self.counts.push(0);
        Subscribed { index: self.counts.len() - 1, msg_id, shape: Shape::new(name) }
    }

    /// A format and its first instance with id 0: how most logs here begin.
    pub(crate) fn topic(&mut self, shape: &Shape) -> Subscribed {
        self.format(shape);
        self.subscribe(shape, 0, 0)
    }

    /// The format of a topic that was subscribed before it: what follows can be decoded.
    pub(crate) fn late_format(&mut self, topic: &mut Subscribed, shape: &Shape) {
        self.format(shape);
        self.truth.topics[topic.index].fields = Some(shape.fields_json());
        topic.shape = shape.clone();
    }

    /// A row, the padding at its end left out. Its time is its own if that has 64 bits.
    pub(crate) fn row(&mut self, topic: &Subscribed, row: &[Value]) {
        self.row_bytes(topic, row, &topic.shape.trimmed_bytes(row));
    }

    /// A row with the padding at its end.
    pub(crate) fn full_row(&mut self, topic: &Subscribed, row: &[Value]) {
        self.row_bytes(topic, row, &topic.shape.full_bytes(row));
    }

    fn row_bytes(&mut self, topic: &Subscribed, row: &[Value], bytes: &[u8]) {
        let time = match topic.shape.timestamp(row) {
            Some(Value::U64(us)) => {
                self.clock = self.clock.max(*us);
                Some(*us)
            }
            None => None,
            Some(narrow) => panic!("say which time {narrow:?} means"),
        };
        self.record(topic, row, time, bytes);
    }

    /// A row whose stored time has fewer bits, and the time it means.
    pub(crate) fn row_at(&mut self, topic: &Subscribed, us: u64, row: &[Value]) {
        self.record(topic, row, Some(us), &topic.shape.trimmed_bytes(row));
    }

    /// A row with a time far behind the data: noted, and it does not move the log time.
    pub(crate) fn stale_row(&mut self, topic: &Subscribed, us: u64, row: &[Value]) {
        self.stale = self.stale.max(Some(us));
        self.note("stale_times");
        self.row_at(topic, us, row);
    }

    /// A row whose time cannot be told; it does not move the log time.
    pub(crate) fn row_without_time(&mut self, topic: &Subscribed, row: &[Value]) {
        self.record(topic, row, None, &topic.shape.trimmed_bytes(row));
    }

    fn record(&mut self, topic: &Subscribed, row: &[Value], time: Option<u64>, bytes: &[u8]) {
        self.truth.records.push(Record {
            topic: self.truth.topics[topic.index].name.clone(),
            t_ns: time.map(ns),
            offset: self.at().to_string(),
            seq: self.counts[topic.index],
            data: topic.shape.data_json(row),
        });
        self.counts[topic.index] += 1;
        let payload = Lay::new().u16(topic.msg_id).bytes(bytes).done();
        self.take(b'D', &payload);
    }

    /// `L`, with the level as it stands in the file and as it is meant.
    pub(crate) fn text(&mut self, level: u8, us: u64, text: &[u8]) {
        let payload = Lay::new().u8(level).u64(us).bytes(text).done();
        self.say(level, None, us, text);
        self.take(b'L', &payload);
    }

    /// `C`.
    pub(crate) fn tagged(&mut self, level: u8, tag: u16, us: u64, text: &[u8]) {
        let payload = Lay::new().u8(level).u16(tag).u64(us).bytes(text).done();
        self.say(level, Some(tag), us, text);
        self.take(b'C', &payload);
    }

    fn say(&mut self, level: u8, tag: Option<u16>, us: u64, text: &[u8]) {
        let digit = level.checked_sub(b'0').unwrap_or(level);
        self.truth.texts.push(Text {
            t_ns: ns(us),
            level: LEVELS[usize::from(digit)],
            tag,
            words: String::from_utf8_lossy(text).into_owned(),
        });
    }

    /// `S`.
    pub(crate) fn sync(&mut self) {
        self.take(b'S', &SYNC);
    }

    /// `O`, at the log time.
    pub(crate) fn dropout(&mut self, ms: u16) {
        let t_ns = ns(self.clock);
        self.truth.own.ulog.dropouts.push(Dropout { t_ns, ms });
        self.take(b'O', &ms.to_le_bytes());
    }

    /// `R`.
    pub(crate) fn unsubscribe(&mut self, topic: &Subscribed) {
        self.take(b'R', &topic.msg_id.to_le_bytes());
    }

    /// `I`: the last one of a name wins.
    pub(crate) fn info(&mut self, info: &Keyed) {
        let infos = &mut self.truth.own.ulog.info;
        infos.insert(info.name.clone(), info.json.clone());
        self.take(b'I', &info.payload());
    }

    /// `M`: a part that is not continued begins a list.
    pub(crate) fn multi_info(&mut self, continued: bool, part: &Keyed) {
        let multi = &mut self.truth.own.ulog.info_multi;
        let lists = multi.entry(part.name.clone()).or_default();
        match lists.last_mut() {
            Some(list) if continued => list.push(part.json.clone()),
            _ => lists.push(vec![part.json.clone()]),
        }
        let payload = Lay::new().u8(u8::from(continued)).bytes(&part.payload());
        self.take(b'M', &payload.done());
    }

    /// `P`: a first value, or a change at the log time once data began.
    pub(crate) fn parameter(&mut self, parameter: &Keyed) {
        let (name, value) = (parameter.name.clone(), parameter.json.clone());
        let parameters = &mut self.truth.own.ulog.parameters;
        if self.in_data_section {
            let t_ns = ns(self.clock);
            parameters.changed.push(Changed { t_ns, name, value });
        } else {
            parameters.initial.insert(name, value);
        }
        self.take(b'P', &parameter.payload());
    }

    /// `Q`: bit 0 = for all systems, bit 1 = for this setup.
    pub(crate) fn default_parameter(&mut self, bits: u8, parameter: &Keyed) {
        let parameters = &mut self.truth.own.ulog.parameters;
        let (name, value) = (&parameter.name, &parameter.json);
        if bits & 1 != 0 {
            let table = &mut parameters.default_system;
            table.insert(name.clone(), value.clone());
        }
        if bits & 2 != 0 {
            let table = &mut parameters.default_setup;
            table.insert(name.clone(), value.clone());
        }
        let payload = Lay::new().u8(bits).bytes(&parameter.payload()).done();
        self.take(b'Q', &payload);
    }

    /// Sets the bit that says data was appended.
    pub(crate) fn set_appended_bit(&mut self) {
        self.bytes[INCOMPAT_AT] |= 1;
    }

    /// Writes one of the three offsets of appended data.
    pub(crate) fn set_appended_offset(&mut self, slot: usize, offset: u64) {
        let at = OFFSETS_AT + 8 * slot;
        self.bytes[at..at + 8].copy_from_slice(&offset.to_le_bytes());
    }

    /// Appended data that a reader uses begins here: the offset goes to the next free slot.
    pub(crate) fn append_here(&mut self) {
        let used = &mut self.truth.own.ulog.appended_offsets;
        let (slot, offset) = (used.len(), self.bytes.len() as u64);
        used.push(offset.to_string());
        self.set_appended_offset(slot, offset);
    }

    /// How times become UTC.
    pub(crate) fn utc(&mut self, rule: &'static str, us: i128) {
        let offset_ns = (us * 1000).to_string();
        self.truth.utc = Some(Utc { rule, offset_ns });
        if rule == "clock_is_unix" {
            self.truth.clock = "unix";
        }
    }

    /// The file and the truth.
    pub(crate) fn done(mut self) -> Made {
        let losses = &self.truth.lost;
        self.truth.state = if losses.is_empty() {
            "complete"
        } else if losses.iter().all(|lost| lost.code == "cut") {
            "truncated"
        } else {
            "damaged"
        };
        self.truth.end_ns = ns(self.clock);
        if let Some(stale) = self.stale {
            self.truth.data_ns = Some([self.truth.start_ns.clone(), ns(self.clock)]);
            self.truth.end_ns = ns(stale);
        }
        for (topic, count) in self.truth.topics.iter_mut().zip(&self.counts) {
            topic.count = count.to_string();
        }
        let place = |note: &Note| note.offset.parse::<u64>().expect("written above");
        let notes = &mut self.truth.notes;
        notes.sort_by(|a, b| (place(a), a.code).cmp(&(place(b), b.code)));
        Made {
            bytes: self.bytes,
            expected: serde_json::to_value(&self.truth).expect("the truth is plain data"),
        }
    }
}
