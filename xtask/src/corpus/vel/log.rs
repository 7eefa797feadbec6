//! A VEL log under construction: each step lays bytes down and writes into the truth what its author knows
//! about them. The index comes before the messages, so offsets are set when the log is finished.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::corpus::Made;
use crate::corpus::expected::field;
use crate::corpus::lay::Lay;

/// What the size of a message counts besides its data.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sizes {
    Exclusive,
    Inclusive,
    DataOnly,
}

impl Sizes {
    fn overhead(self) -> u32 {
        match self {
            Self::Exclusive => 17,
            Self::Inclusive => 21,
            Self::DataOnly => 0,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Exclusive => "exclusive",
            Self::Inclusive => "inclusive",
            Self::DataOnly => "data_only",
        }
    }
}

/// The index of a log.
pub(crate) enum Index {
    /// One entry a second from the first message.
    FromFirst,
    /// One entry a second from the start of the program.
    FromStart,
    /// None at all.
    None,
    /// The right entries from the first message, changed; `true` where a reader must make a new one.
    Changed(fn(Vec<i64>) -> Vec<i64>, bool),
    /// This count, and these entries whatever the count says.
    Claimed(u32, Vec<i64>),
}

/// A type of message: name in the truth, id, version.
pub(crate) const OBD: (u32, i32) = (0x0001_4043, 100);
pub(crate) const GPS: (u32, i32) = (0x0001_4A32, 100);
pub(crate) const IMAGE: (u32, i32) = (0x0001_09C9, 100);
pub(crate) const POSE: (u32, i32) = (0x0001_E342, 100);
pub(crate) const VELODYNE: (u32, i32) = (0x0003_112B, 100);
pub(crate) const LASER: (u32, i32) = (0x0003_0910, 101);

/// A message that is laid down.
pub(crate) struct Message {
    pub(crate) kind: (u32, i32),
    pub(crate) millis: f64,
    pub(crate) data: Vec<u8>,
    pub(crate) marker: u8,
}

impl Message {
    pub(crate) fn new(kind: (u32, i32), millis: f64, data: Vec<u8>) -> Self {
        Self { kind, millis, data, marker: 0 }
    }
}

/// A topic of the truth.
struct Topic {
    name: String,
    type_name: String,
    count: u64,
    fields: Json,
}

/// A file in the making and the truth about it.
pub(crate) struct Log {
    sizes: Sizes,
    marker: u8,
    version: (u16, u16),
    magic: [u8; 4],
    index: Index,
    body: Vec<u8>,
    /// Offsets from the first message, and timestamps, of what the index may name.
    places: Vec<(usize, f64)>,
    topics: Vec<Topic>,
    records: Vec<(usize, Json)>,
    lost: Vec<(&'static str, usize, usize)>,
    notes: Vec<(&'static str, Option<usize>, i64)>,
    choices: BTreeMap<&'static str, Json>,
    extra: BTreeMap<&'static str, Json>,
    utc: Json,
    messages: u64,
    known: u64,
    markers: [u64; 2],
    times: Vec<i64>,
    now: i64,
    state: &'static str,
    /// Where the first message stands, from where it should.
    starts_at: usize,
}

/// The number as JSON, with the shortest digits of 32 bits.
pub(crate) fn narrow(value: f32) -> Json {
    match value {
        v if v.is_nan() => "NaN".into(),
        v if v.is_infinite() => if v > 0.0 { "inf" } else { "-inf" }.into(),
        v => format!("{v:?}").parse::<serde_json::Number>().map(Json::Number).expect("a number"),
    }
}

impl Log {
    /// An empty log in the defaults of the text: size without itself, 0x49, index from the first message.
    pub(crate) fn new() -> Self {
        Self {
            sizes: Sizes::Exclusive,
            marker: 0x49,
            version: (1, 1),
            magic: *b"\xa4VEL",
            index: Index::FromFirst,
            body: Vec::new(),
            places: Vec::new(),
            topics: Vec::new(),
            records: Vec::new(),
            lost: Vec::new(),
            notes: Vec::new(),
            choices: BTreeMap::new(),
            extra: BTreeMap::new(),
            utc: Json::Null,
            messages: 0,
            known: 0,
            markers: [0; 2],
            times: Vec::new(),
            now: 0,
            state: "complete",
            starts_at: 0,
        }
    }

    pub(crate) fn sizes(&mut self, sizes: Sizes) {
        self.sizes = sizes;
    }

    pub(crate) fn marker(&mut self, marker: u8) {
        self.marker = marker;
    }

    pub(crate) fn version(&mut self, major: u16, minor: u16) {
        self.version = (major, minor);
    }

    pub(crate) fn index(&mut self, index: Index) {
        self.index = index;
    }

    /// The bytes of a message in this log.
    pub(crate) fn message_bytes(&self, message: &Message) -> Vec<u8> {
        let len = u32::try_from(message.data.len()).expect("small");
        self.message_of_size(message, len + self.sizes.overhead())
    }

    /// The same with a size of its own.
    pub(crate) fn message_of_size(&self, message: &Message, size: u32) -> Vec<u8> {
        let marker = if message.marker == 0 { self.marker } else { message.marker };
        Lay::new()
            .u32(size)
            .u8(marker)
            .u32(message.kind.0)
            .i32(message.kind.1)
            .f64(message.millis)
            .bytes(&message.data)
            .done()
    }

    /// Lays a sound message down; its record has these fields.
    pub(crate) fn put(
        &mut self,
        message: &Message,
        topic: &str,
        type_name: &str,
        fields: &Json,
        data: &Json,
    ) {
        let at = self.count(message);
        let known = [OBD, GPS, IMAGE, POSE, VELODYNE, LASER].contains(&message.kind);
        self.known += u64::from(known);
        let found = self.topics.iter().position(|known| known.name == topic);
        let i = found.unwrap_or_else(|| {
            let (name, type_name) = (topic.to_owned(), type_name.to_owned());
            self.topics.push(Topic { name, type_name, count: 0, fields: fields.clone() });
            self.topics.len() - 1
        });
        let seq = self.topics[i].count;
        self.topics[i].count += 1;
        self.times.push(self.now);
        let t_ns = self.now.to_string();
        self.records.push((at, json!({"topic": topic, "t_ns": t_ns, "seq": seq, "data": data})));
    }

    /// Lays a message down that has sound framing; its offset from the first message.
    fn count(&mut self, message: &Message) -> usize {
        let at = self.body.len();
        self.body.extend(self.message_bytes(message));
        self.messages += 1;
        let marker = if message.marker == 0 { self.marker } else { message.marker };
        self.markers[usize::from(marker == 0x31)] += 1;
        self.places.push((at, message.millis));
        if message.millis.is_finite() {
            // All timestamps here are far below the limits, and exact to the nanosecond.
            #[expect(clippy::cast_possible_truncation, reason = "small")]
            let nanos = (message.millis * 1e6).round() as i64;
            self.now = nanos;
        }
        at
    }

    /// A message with sound framing whose data ends before its content does.
    pub(crate) fn short(&mut self, message: &Message) {
        let at = self.count(message);
        self.lose("bad_payload", at, self.body.len());
    }

    /// A message that its writer marks as not valid.
    pub(crate) fn invalid(&mut self, message: &Message) {
        let at = self.body.len();
        let bytes = self.message_bytes(&Message { marker: 0x30, data: message.data.clone(), ..*message });
        self.body.extend(bytes);
        self.note("invalid_message", at);
    }

    /// Bytes that no reader can use.
    pub(crate) fn garbage(&mut self, bytes: &[u8]) {
        let at = self.body.len();
        self.body.extend_from_slice(bytes);
        self.lose("gap", at, self.body.len());
    }

    /// Bytes that a reader need not speak of.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
    }

    /// The end mark. What is laid down behind it is not read.
    pub(crate) fn terminate(&mut self) {
        self.body.extend([0xFF; 4]);
    }

    /// How many bytes of messages are laid down.
    pub(crate) fn at(&self) -> usize {
        self.body.len()
    }

    pub(crate) fn lose(&mut self, code: &'static str, start: usize, end: usize) {
        self.lost.push((code, start, end));
        self.state = match (self.state, code) {
            ("complete" | "truncated", "cut") => "truncated",
            _ => "damaged",
        };
    }

    /// A note at an offset from the first message.
    pub(crate) fn note(&mut self, code: &'static str, at: usize) {
        self.notes.push((code, Some(at), 0));
    }

    /// A note at an offset from the start of the file.
    pub(crate) fn note_in_head(&mut self, code: &'static str, at: i64) {
        self.notes.push((code, None, at));
    }

    /// The first message stands here, and not behind the index.
    pub(crate) fn starts_here(&mut self) {
        self.starts_at = self.body.len();
    }

    /// What a reader settles from the file.
    pub(crate) fn choice(&mut self, what: &'static str, choice: &str, assumed: bool) {
        self.choices.insert(what, json!({"choice": choice, "assumed": assumed}));
    }

    /// A further fact of the truth.
    pub(crate) fn fact(&mut self, key: &'static str, value: Json) {
        self.extra.insert(key, value);
    }

    pub(crate) fn utc(&mut self, offset_ns: i64) {
        self.utc = json!({"rule": "gps", "offset_ns": offset_ns.to_string()});
    }

    fn right_entries(&self, start: f64, first: usize, entries: usize) -> Vec<i64> {
        let mut all = Vec::new();
        for second in 0..entries {
            let from = start + 1000.0 * f64::from(u32::try_from(second).expect("small"));
            let place =
                self.places.iter().find(|place| place.1 >= from).expect("the last second has a message");
            all.push(i64::try_from(first + place.0).expect("small"));
        }
        all
    }

    /// The log, cut so many bytes before its end.
    pub(crate) fn cut(mut self, bytes: usize, from: usize) -> Made {
        let end = self.body.len() - bytes;
        self.body.truncate(end);
        self.lose("cut", from, end);
        self.finish()
    }

    pub(crate) fn finish(self) -> Made {
        let first_ms =
            self.places.first().map_or(0.0, |place| if place.1.is_finite() { place.1 } else { 0.0 });
        let last_ms =
            self.places.iter().map(|place| place.1).filter(|ms| ms.is_finite()).fold(first_ms, f64::max);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and positive")]
        let seconds = |start: f64| ((last_ms - start) / 1000.0).floor() as usize + 1;
        let with = |start: f64| {
            let n = if self.places.is_empty() { 0 } else { seconds(start) };
            self.right_entries(start, 12 + 8 * n, n)
        };
        let (claimed, entries, state, origin) = match &self.index {
            Index::FromFirst => {
                let entries = with(first_ms);
                let state = if entries.is_empty() { "absent" } else { "used" };
                (entries.len(), entries, state, Some("first_message"))
            }
            Index::FromStart => {
                let entries = with(0.0);
                (entries.len(), entries, "used", Some("program_start"))
            }
            Index::None => (0, Vec::new(), "absent", None),
            Index::Changed(change, rebuilt) => {
                let right = with(first_ms);
                let entries = change(right);
                let state = if *rebuilt { "rebuilt" } else { "used" };
                (entries.len(), entries, state, Some("first_message"))
            }
            Index::Claimed(claimed, entries) => (*claimed as usize, entries.clone(), "rebuilt", None),
        };
        let first = 12 + 8 * entries.len();
        let mut lay = Lay::new().bytes(&self.magic).u16(self.version.0).u16(self.version.1);
        lay = lay.u32(u32::try_from(claimed).expect("an index count has 32 bits"));
        for entry in &entries {
            lay = lay.u64(entry.cast_unsigned());
        }
        let bytes = lay.bytes(&self.body).done();
        let expected = self.truth(first, state, origin.filter(|_| state == "used"));
        Made { bytes, expected }
    }

    fn truth(mut self, first: usize, state: &'static str, origin: Option<&'static str>) -> Json {
        let at = |offset: usize| (first + offset).to_string();
        if state == "rebuilt" {
            self.note_in_head("index_rebuilt", 8);
        }
        let mut notes: Vec<(usize, &str)> = self
            .notes
            .iter()
            .map(|(code, offset, head)| {
                (offset.map_or_else(|| usize::try_from(*head).expect("in the file"), |at| first + at), *code)
            })
            .collect();
        notes.sort_unstable();
        let none = self.messages == 0;
        let walked = self.known > 0;
        self.choices
            .entry("size_rule")
            .or_insert_with(|| json!({"choice": self.sizes.name(), "assumed": !walked}));
        let marker = match self.markers {
            [_, 0] => "0x49",
            [0, _] => "0x31",
            _ => "mixed",
        };
        self.choices.insert("marker", json!({"choice": marker, "assumed": none}));
        let place = format!("byte {}", first + self.starts_at);
        self.choices.insert("first_message", json!({"choice": place, "assumed": false}));
        if let Some(origin) = origin.filter(|_| !none) {
            self.choices.insert("index_origin", json!({"choice": origin, "assumed": false}));
        }
        let topics = self.topics.iter().map(|topic| {
            json!({
                "name": topic.name,
                "type": topic.type_name,
                "count": topic.count.to_string(),
                "fields": topic.fields,
            })
        });
        let records = self.records.iter().map(|(offset, record)| {
            let mut record = record.clone();
            record["offset"] = at(*offset).into();
            record
        });
        let span = |time: Option<&i64>| time.map(ToString::to_string);
        let lost = self.lost.iter().map(|(code, a, b)| json!({"code": code, "start": at(*a), "end": at(*b)}));
        let mut own = json!({
            "index": state,
            "messages": self.messages.to_string(),
            "choices": self.choices,
        });
        for (key, value) in self.extra {
            own[key] = value;
        }
        json!({
            "format": {"id": "vel", "version": format!("{}.{}", self.version.0, self.version.1)},
            "open": "ok",
            "state": self.state,
            "clock": "log_start",
            "utc": self.utc,
            "start_ns": span(self.times.iter().min()),
            "end_ns": span(self.times.iter().max()),
            "topics": topics.collect::<Json>(),
            "records": records.collect::<Json>(),
            "lost": lost.collect::<Json>(),
            "notes": notes.iter().map(|(at, code)| json!({"code": code, "offset": at.to_string()})).collect::<Json>(),
            "vel": own,
        })
    }
}

/// The only field of a message that is not described.
pub(crate) fn raw_fields() -> Json {
    json!([field("data", "bytes")])
}

/// A file that must be refused, and why.
pub(crate) fn refused(bytes: Vec<u8>, kind: &str, contains: &str) -> Made {
    Made { bytes, expected: crate::corpus::expected::refused("vel", "", kind, contains) }
}
