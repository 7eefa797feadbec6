//! The steps that build a VEL log. The index comes before the messages, so offsets count from the
//! first message until the log is finished.

use serde_json::{Value as Json, json};

use super::kinds::{Id, KINDS, OBD, vehicle};
use crate::Made;
use crate::lay::{base64, lay};

/// A VEL log during construction.
pub(super) type Log = crate::log::Log<Own>;

/// What the size of a message counts in addition to its data.
#[derive(Clone, Copy, Default)]
pub(super) enum Sizes {
    #[default]
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

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Exclusive => "exclusive",
            Self::Inclusive => "inclusive",
            Self::DataOnly => "data_only",
        }
    }
}

/// Index of a log.
#[derive(Default)]
pub(super) enum Index {
    /// One entry per second from the first message.
    #[default]
    FromFirst,
    /// One entry per second from the start of the program.
    FromStart,
    /// No entries.
    None,
    /// The right entries from the first message, changed; `true` if a reader must rebuild the
    /// index.
    Changed(fn(&mut Vec<i64>), bool),
    /// This count, and these entries regardless of the count.
    Claimed(u32, Vec<i64>),
}

/// A message.
#[derive(Clone)]
pub(super) struct Message {
    pub(super) id: Id,
    pub(super) millis: f64,
    pub(super) data: Vec<u8>,
    /// Marker, if it is not that of the log.
    pub(super) marker: Option<u8>,
}

impl Message {
    pub(super) fn new(id: Id, millis: f64, data: Vec<u8>) -> Self {
        Self { id, millis, data, marker: None }
    }

    /// Returns a message of vehicle data.
    pub(super) fn obd(millis: f64, speed: i32) -> Self {
        Self::new(OBD.id, millis, OBD.data(&vehicle(speed)))
    }
}

/// VEL-specific parts.
#[derive(Default)]
pub(super) struct Own {
    sizes: Sizes,
    marker: u8,
    version: (u16, u16),
    index: Index,
    /// Offsets and timestamps that the index may name.
    places: Vec<(usize, f64)>,
    /// Notes about the file header.
    head_notes: Vec<(usize, &'static str)>,
    choices: Json,
    facts: Json,
    utc: Json,
    messages: u64,
    known: u64,
    markers: [u64; 2],
    times: Vec<i64>,
    now: i64,
    /// Offset of the first message from its expected position.
    starts_at: usize,
}

impl Log {
    /// Returns an empty log with the defaults of the specification: size without itself, 0x49,
    /// index from the first message.
    pub(super) fn new() -> Self {
        Self::of(Vec::new(), Own { marker: 0x49, version: (1, 1), ..Own::default() })
    }

    pub(super) fn sizes(mut self, sizes: Sizes) -> Self {
        self.own.sizes = sizes;
        self
    }

    pub(super) fn marker(mut self, marker: u8) -> Self {
        self.own.marker = marker;
        self
    }

    pub(super) fn version(mut self, major: u16, minor: u16) -> Self {
        self.own.version = (major, minor);
        self.own.head_notes.push((4, "unknown_version"));
        self
    }

    pub(super) fn index(mut self, index: Index) -> Self {
        self.own.index = index;
        self
    }

    /// Returns the bytes of a message in this log.
    pub(super) fn frame(&self, message: &Message) -> Vec<u8> {
        let len = u32::try_from(message.data.len()).expect("small");
        let marker = message.marker.unwrap_or(self.own.marker);
        let (kind, version) = message.id;
        lay![len + self.own.sizes.overhead(), marker, kind, version, message.millis, message.data]
    }

    /// Adds an intact message; its record has these fields.
    pub(super) fn put(mut self, message: &Message, topic: [&str; 2], fields: Json, data: &Json) -> Self {
        let own = &mut self.own;
        own.known += u64::from(KINDS.iter().any(|kind| kind.id == message.id));
        own.count(message, self.bytes.len());
        own.times.push(own.now);
        let now = own.now;
        let known = self.topics.iter().position(|known| known.name == topic[0]);
        let number = known.unwrap_or_else(|| self.add_topic(topic[0], topic[1], fields));
        self.record(number, Some(now.into()), data);
        self.unseen(message)
    }

    /// Adds a message of an unknown type, with the name that readers give it.
    pub(super) fn unknown(self, message: &Message, name: &str) -> Self {
        let fields = json!([{"name": "data", "type": "bytes"}]);
        self.put(message, [name, name], fields, &json!({"data": base64(&message.data)}))
    }

    /// Adds a message with intact framing whose data end before its content does.
    pub(super) fn short(mut self, message: &Message) -> Self {
        self.own.count(message, self.bytes.len());
        let bytes = self.frame(message);
        self.lose("bad_payload", bytes)
    }

    /// Adds a message that its writer marks as not valid.
    pub(super) fn invalid(self, message: &Message) -> Self {
        self.note("invalid_message").unseen(&Message { marker: Some(0x30), ..message.clone() })
    }

    /// Adds a message that no reader yields.
    pub(super) fn unseen(self, message: &Message) -> Self {
        let bytes = self.frame(message);
        self.lay(bytes)
    }

    /// Adds a message that is lost because its bytes were changed.
    pub(super) fn spoilt(self, message: &Message, change: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut bytes = self.frame(message);
        change(&mut bytes);
        self.lose("gap", bytes)
    }

    /// Adds a message whose last bytes are cut off.
    pub(super) fn cut(self, message: &Message, missing: usize) -> Self {
        let bytes = self.frame(message);
        self.lose("cut", &bytes[..bytes.len() - missing])
    }

    /// Adds the end mark. Bytes after it are not read.
    pub(super) fn terminate(self) -> Self {
        self.lay([0xFF; 4])
    }

    /// Sets the first message here instead of after the index.
    pub(super) fn starts_here(mut self) -> Self {
        self.own.starts_at = self.at();
        self
    }

    /// Notes a value that a reader infers from the file.
    pub(super) fn choice(mut self, what: &str, choice: &str) -> Self {
        self.own.choices[what] = json!({"choice": choice, "assumed": false});
        self
    }

    /// Notes a value that a reader assumes, because the file does not tell it.
    pub(super) fn assumed(mut self, what: &str, choice: &str) -> Self {
        self.own.choices[what] = json!({"choice": choice, "assumed": true});
        self
    }

    /// Adds a further fact to the expected result.
    pub(super) fn fact(mut self, key: &str, value: impl Into<Json>) -> Self {
        self.own.facts[key] = value.into();
        self
    }

    pub(super) fn utc(mut self, offset_ns: i64) -> Self {
        self.own.utc = json!({"rule": "gps", "offset_ns": offset_ns.to_string()});
        self.choice("utc", "gps")
    }
}

impl Own {
    /// Counts a message with intact framing.
    fn count(&mut self, message: &Message, at: usize) {
        self.messages += 1;
        self.markers[usize::from(message.marker.unwrap_or(self.marker) == 0x31)] += 1;
        self.places.push((at, message.millis));
        if message.millis.is_finite() {
            #[expect(clippy::cast_possible_truncation, reason = "exact, or the last time there is")]
            let nanos = (message.millis * 1e6).round() as i64;
            self.now = nanos;
        }
    }

    /// Returns the offsets of an index with an entry per second from `start` on.
    fn entries(&self, start: f64) -> Vec<i64> {
        let finite = self.places.iter().map(|place| place.1).filter(|ms| ms.is_finite());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and positive")]
        let count = match self.places.len() {
            0 => 0,
            _ => ((finite.fold(start, f64::max) - start) / 1000.0).floor() as u32 + 1,
        };
        let entry = |second: u32| {
            let from = start + 1000.0 * f64::from(second);
            let place = self.places.iter().find(|place| place.1 >= from);
            let (at, _) = place.expect("the last second has a message");
            12 + 8 * i64::from(count) + i64::try_from(*at).expect("small")
        };
        (0..count).map(entry).collect()
    }
}

impl From<Log> for Made {
    fn from(log: Log) -> Self {
        let own = &log.own;
        let first_ms =
            own.places.first().map_or(0.0, |place| if place.1.is_finite() { place.1 } else { 0.0 });
        let count = |entries: &[i64]| u32::try_from(entries.len()).expect("small");
        let first_message = Some("first_message");
        let (claimed, entries, state, origin) = match &own.index {
            Index::FromFirst => {
                let entries = own.entries(first_ms);
                let state = if entries.is_empty() { "absent" } else { "used" };
                (count(&entries), entries, state, first_message)
            }
            Index::FromStart => {
                let entries = own.entries(0.0);
                (count(&entries), entries, "used", Some("program_start"))
            }
            Index::None => (0, Vec::new(), "absent", None),
            Index::Changed(change, rebuilt) => {
                let mut entries = own.entries(first_ms);
                change(&mut entries);
                (count(&entries), entries, if *rebuilt { "rebuilt" } else { "used" }, first_message)
            }
            Index::Claimed(claimed, entries) => (*claimed, entries.clone(), "rebuilt", None),
        };
        let (major, minor) = own.version;
        let head = lay![b"\xa4VEL", major, minor, claimed, entries];
        let starts_at = head.len() + own.starts_at;
        let mut log = log.after(head);
        let own = &mut log.own;

        let choices = &mut own.choices;
        let chosen = |choice: &str, assumed: bool| json!({"choice": choice, "assumed": assumed});
        if choices["size_rule"].is_null() {
            choices["size_rule"] = chosen(own.sizes.name(), own.known == 0);
        }
        let marker = match own.markers {
            [_, 0] => "0x49",
            [0, _] => "0x31",
            _ => "mixed",
        };
        let none = own.messages == 0;
        choices["marker"] = chosen(marker, none);
        choices["first_message"] = chosen(&format!("byte {starts_at}"), false);
        if let Some(origin) = origin.filter(|_| state == "used" && !none) {
            choices["index_origin"] = chosen(origin, false);
        }
        own.facts["index"] = state.into();
        own.facts["messages"] = own.messages.to_string().into();
        own.facts["choices"] = choices.take();
        let span = |time: Option<&i64>| time.map(ToString::to_string);
        let truth = json!({
            "format": {"id": "vel", "version": format!("{major}.{minor}")},
            "clock": "log_start",
            "utc": own.utc,
            "start_ns": span(own.times.iter().min()),
            "end_ns": span(own.times.iter().max()),
            "vel": own.facts,
        });
        let mut notes = std::mem::take(&mut own.head_notes);
        if state == "rebuilt" {
            notes.push((8, "index_rebuilt"));
        }
        log.each(notes, |log, (at, code)| log.note_at(at, code)).made(truth)
    }
}

/// Returns a file that must be refused, and why.
pub(super) fn refused(bytes: &[u8], kind: &str, contains: &str) -> Made {
    Made::refused(bytes.to_vec(), ["vel", ""], kind, contains)
}
