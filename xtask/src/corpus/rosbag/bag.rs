//! A bag under construction: each step lays bytes down and writes into the truth what its author knows about
//! them.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::lay::{VERSION_LINE, bag_header, entry, record, u32_bytes};
use crate::corpus::Made;
use crate::corpus::expected::field;

/// A stamp: seconds and nanoseconds.
pub(super) type Stamp = (u32, u32);

/// A topic as its records name it, and what a right reader says of it.
#[derive(Clone)]
pub(super) struct Topic {
    pub(super) name: String,
    pub(super) ty: String,
    pub(super) md5: String,
    /// The full text of the definition record.
    pub(super) def: String,
    /// Expected: the name that readers show, where it is another.
    pub(super) shown: Option<String>,
    /// Expected: fields, or null where nothing decodes the topic.
    pub(super) fields: Json,
    /// Expected: where the definition comes from, and how its sum agrees.
    pub(super) from: Json,
    pub(super) sum: Json,
}

/// The sum of `std_msgs/String`.
const STRING_SUM: &str = "992ce8a1687cec8c8bd883ec73ca41d1";

impl Topic {
    /// A topic with a definition of its own.
    pub(super) fn new(name: &str, ty: &str, md5: &str, def: &str, fields: Json) -> Self {
        Self {
            name: name.to_owned(),
            ty: ty.to_owned(),
            md5: md5.to_owned(),
            def: def.to_owned(),
            shown: None,
            fields,
            from: "topic".into(),
            sum: "v2".into(),
        }
    }

    /// A topic of type `std_msgs/String`.
    pub(super) fn string(name: &str) -> Self {
        Self::new(name, "std_msgs/String", STRING_SUM, "string data\n", json!([field("data", "text")]))
    }

    /// The same, expected to be decoded by a definition from elsewhere.
    pub(super) fn found_in(mut self, source: &str) -> Self {
        self.from = source.into();
        self
    }

    /// The same with this text for its definition.
    pub(super) fn with_def(mut self, def: &str) -> Self {
        def.clone_into(&mut self.def);
        self
    }

    /// The same with another sum, and how the definition agrees with it.
    pub(super) fn with_sum(mut self, md5: &str, agrees: &str) -> Self {
        md5.clone_into(&mut self.md5);
        self.sum = agrees.into();
        self
    }

    /// The same, which nothing decodes.
    pub(super) fn undefined(mut self) -> Self {
        (self.fields, self.from, self.sum) = (Json::Null, Json::Null, Json::Null);
        self
    }

    /// The same under another name in readers.
    pub(super) fn shown(mut self, name: &str) -> Self {
        self.shown = Some(name.to_owned());
        self
    }

    /// The bytes of its definition record, fields in the order of recorders.
    pub(super) fn definition(&self) -> Vec<u8> {
        record(
            &[
                ("def", self.def.as_bytes()),
                ("md5", self.md5.as_bytes()),
                ("op", &[1]),
                ("topic", self.name.as_bytes()),
                ("type", self.ty.as_bytes()),
            ],
            b"",
        )
    }

    /// The bytes of a message's record, fields in the order of recorders.
    pub(super) fn data(&self, stamp: Stamp, payload: &[u8]) -> Vec<u8> {
        self.data_with(stamp, payload, &[])
    }

    /// The same with more fields in front.
    pub(super) fn data_with(&self, stamp: Stamp, payload: &[u8], more: &[(&str, &[u8])]) -> Vec<u8> {
        let (sec, nsec) = (stamp.0.to_le_bytes(), stamp.1.to_le_bytes());
        let mut fields: Vec<(&str, &[u8])> = more.to_vec();
        fields.extend::<[(&str, &[u8]); 6]>([
            ("md5", self.md5.as_bytes()),
            ("nsec", &nsec),
            ("op", &[2]),
            ("sec", &sec),
            ("topic", self.name.as_bytes()),
            ("type", self.ty.as_bytes()),
        ]);
        record(&fields, payload)
    }

    fn is(&self, other: &Self) -> bool {
        (&self.name, &self.ty, &self.md5) == (&other.name, &other.ty, &other.md5)
    }
}

/// What is known of a topic's messages.
#[derive(Default)]
struct Counted {
    count: usize,
    latched: u64,
    callerids: BTreeMap<String, u64>,
}

/// A topic of the index: its type, stamp and place of each entry.
type Entries = (String, Vec<(Stamp, u64)>);

/// A bag in the making and the truth about it.
pub(super) struct Bag {
    pub(super) bytes: Vec<u8>,
    version: &'static str,
    clock: &'static str,
    topics: Vec<(Topic, Counted)>,
    stamps: Vec<i64>,
    records: Vec<Json>,
    texts: Vec<Json>,
    lost: Vec<Json>,
    notes: Vec<(u64, &'static str)>,
    ops: BTreeMap<String, u64>,
    sections: Vec<Json>,
    /// The index under construction, by topic.
    index: BTreeMap<String, Entries>,
    /// Where a definition that was just laid begins.
    defined_at: Option<u64>,
    section_at: usize,
    header_at: Option<usize>,
}

impl Bag {
    /// A bag without any record: these bytes in front.
    pub(super) fn starting(head: &[u8], version: &'static str) -> Self {
        Self {
            bytes: head.to_vec(),
            version,
            clock: "unix",
            topics: Vec::new(),
            stamps: Vec::new(),
            records: Vec::new(),
            texts: Vec::new(),
            lost: Vec::new(),
            notes: Vec::new(),
            ops: BTreeMap::new(),
            sections: Vec::new(),
            index: BTreeMap::new(),
            defined_at: None,
            section_at: 0,
            header_at: None,
        }
    }

    /// The version line only, as recorders of ROS 0.5 to 0.10 began.
    pub(super) fn plain() -> Self {
        Self::starting(VERSION_LINE, "1.2")
    }

    /// Version line and bag header, as recorders of ROS 0.11 and later began.
    pub(super) fn recorder() -> Self {
        let mut bag = Self::plain();
        bag.begin_records();
        bag
    }

    fn begin_records(&mut self) {
        self.header_at = Some(self.bytes.len());
        self.other("3", &bag_header(0));
    }

    /// The same bag with times that count from the start of the recording.
    pub(super) fn relative(mut self) -> Self {
        self.clock = "log_start";
        self
    }

    /// Where the next record will begin.
    pub(super) fn at(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn known(&mut self, topic: &Topic) -> usize {
        self.topics.iter().position(|(known, _)| known.is(topic)).unwrap_or_else(|| {
            self.topics.push((topic.clone(), Counted::default()));
            self.topics.len() - 1
        })
    }

    /// A sound record that is no message; `op` is its number.
    pub(super) fn other(&mut self, op: &str, bytes: &[u8]) {
        *self.ops.entry(op.to_owned()).or_default() += 1;
        self.bytes.extend_from_slice(bytes);
        self.defined_at = None;
    }

    /// The definition record of a topic.
    pub(super) fn define(&mut self, topic: &Topic) {
        let at = self.at();
        self.other("1", &topic.definition());
        self.known(topic);
        self.defined_at = Some(at);
    }

    /// A message with the bytes of its record, and what is expected of it.
    pub(super) fn lay(&mut self, topic: &Topic, stamp: Stamp, bytes: &[u8], data: &Json) {
        let at = self.at();
        *self.ops.entry("2".to_owned()).or_default() += 1;
        let number = self.known(topic);
        let seq = self.topics[number].1.count;
        self.topics[number].1.count += 1;
        let nanos = i64::from(stamp.0) * 1_000_000_000 + i64::from(stamp.1);
        self.stamps.push(nanos);
        let name = topic.shown.as_ref().unwrap_or(&topic.name);
        self.records.push(json!({
            "topic": name, "t_ns": nanos.to_string(), "offset": at.to_string(), "seq": seq, "data": data,
        }));
        let base = self.section_at as u64;
        let entries =
            &mut self.index.entry(topic.name.clone()).or_insert_with(|| (topic.ty.clone(), Vec::new())).1;
        // The first entry of a topic points at its definition.
        let pos = if entries.is_empty() { self.defined_at.unwrap_or(at) } else { at };
        entries.push((stamp, pos - base));
        self.defined_at = None;
        self.bytes.extend_from_slice(bytes);
    }

    /// A message as recorders wrote it.
    pub(super) fn message(&mut self, topic: &Topic, stamp: Stamp, payload: &[u8], data: &Json) {
        self.lay(topic, stamp, &topic.data(stamp, payload), data);
    }

    /// A message of `std_msgs/String`.
    pub(super) fn say(&mut self, topic: &Topic, stamp: Stamp, text: &str) {
        self.message(topic, stamp, &super::lay::text(text.as_bytes()), &json!({"data": text}));
    }

    /// A message of a latching publisher.
    pub(super) fn latched(&mut self, topic: &Topic, stamp: Stamp, text: &str, caller: &str) {
        let more: [(&str, &[u8]); 2] = [("callerid", caller.as_bytes()), ("latching", b"1")];
        let bytes = topic.data_with(stamp, &super::lay::text(text.as_bytes()), &more);
        let number = self.known(topic);
        self.topics[number].1.latched += 1;
        *self.topics[number].1.callerids.entry(caller.to_owned()).or_default() += 1;
        self.lay(topic, stamp, &bytes, &json!({"data": text}));
    }

    /// A console line that a right reader gives.
    pub(super) fn console(&mut self, t_ns: i64, level: &str, source: &str, text: &str) {
        self.texts.push(json!({"t_ns": t_ns.to_string(), "level": level, "source": source, "text": text}));
    }

    /// Bytes that are lost, as one range.
    pub(super) fn lose(&mut self, code: &'static str, bytes: &[u8]) {
        let start = self.at().to_string();
        self.bytes.extend_from_slice(bytes);
        self.defined_at = None;
        self.lost.push(json!({"code": code, "start": start, "end": self.at().to_string()}));
    }

    /// Something worth knowing about the byte at `offset`.
    pub(super) fn note(&mut self, offset: u64, code: &'static str) {
        self.notes.push((offset, code));
    }

    /// The bytes of the index that a recorder would write now.
    pub(super) fn index_records(&self) -> Vec<Vec<u8>> {
        let record_of = |(topic, (ty, entries)): (&String, &Entries)| {
            let data: Vec<u8> = entries.iter().flat_map(|(stamp, pos)| entry(*stamp, *pos)).collect();
            index_record(topic, Some(ty), 0, entries.len(), &data)
        };
        self.index.iter().map(record_of).collect()
    }

    /// Moves the entries of the index, to lay a wrong one.
    pub(super) fn entries(&mut self, topic: &str) -> &mut Vec<(Stamp, u64)> {
        &mut self.index.get_mut(topic).expect("a topic with messages").1
    }

    /// Writes the index and the bag header, as a recorder does when it is stopped.
    pub(super) fn close(&mut self) {
        let state = if self.index.is_empty() { "empty" } else { "exact" };
        self.close_with(&self.index_records(), state);
    }

    /// The same, where the index is known to differ from the messages.
    pub(super) fn close_differing(&mut self) {
        self.note(self.at(), "index_differs");
        self.close_with(&self.index_records(), "differs");
    }

    /// The same with these records for an index, which a reader finds in this state.
    pub(super) fn close_with(&mut self, index: &[Vec<u8>], state: &str) {
        let pos = (self.bytes.len() - self.section_at) as u64;
        for record in index {
            self.other("4", record);
        }
        self.set_index_pos(pos);
        self.section(Some(pos), None, state);
    }

    /// What the bag header says.
    pub(super) fn set_index_pos(&mut self, pos: u64) {
        let at = self.header_at.expect("a bag header was laid") + 4 + 4 + "index_pos=".len();
        self.bytes[at..at + 8].copy_from_slice(&pos.to_le_bytes());
    }

    /// Ends a section: what its bag header says, raw padding, the state of its index.
    pub(super) fn section(&mut self, index_pos: Option<u64>, raw_padding: Option<u64>, state: &str) {
        self.sections.push(json!({
            "offset": self.section_at, "index_pos": index_pos, "raw_padding": raw_padding, "index": state,
        }));
        self.index.clear();
    }

    /// Ends the bag without an index, as a recorder that was killed or one that writes none.
    pub(super) fn unindexed(&mut self) {
        let at = self.header_at.unwrap_or(self.section_at);
        self.note(at as u64, "unindexed");
        let pos = self.header_at.map(|_| 0);
        self.section(pos, None, "absent");
    }

    /// Another bag in the same file.
    pub(super) fn begin_section(&mut self) {
        self.section_at = self.bytes.len();
        self.note(self.at(), "appended_section");
        self.bytes.extend_from_slice(VERSION_LINE);
        self.begin_records();
    }

    /// The file and the truth about it.
    pub(super) fn done(mut self) -> Made {
        let is_cut =
            |lost: &Json| ["cut", "packed_cut", "packed_unchecked"].iter().any(|code| lost["code"] == *code);
        let state = match &self.lost[..] {
            [] => "complete",
            lost if lost.iter().all(is_cut) => "truncated",
            _ => "damaged",
        };
        self.notes.sort_unstable();
        let end = self.stamps.iter().max();
        let start = self.stamps.iter().filter(|stamp| **stamp > 0).min().or(end);
        let topics = self.topics.iter().map(|(topic, counted)| {
            json!({
                "name": topic.shown.as_ref().unwrap_or(&topic.name),
                "type": topic.ty.replace("rostools/", "roslib/"),
                "count": counted.count.to_string(),
                "fields": topic.fields,
            })
        });
        let connections = self.topics.iter().map(|(topic, counted)| {
            json!({
                "topic": topic.shown.as_ref().unwrap_or(&topic.name),
                "type": topic.ty,
                "md5": topic.md5,
                "definition": topic.from,
                "md5_state": topic.sum,
                "latched": counted.latched,
                "callerids": counted.callerids,
            })
        });
        let notes = self.notes.iter().map(|(at, code)| json!({"code": code, "offset": at.to_string()}));
        let expected = json!({
            "format": {"id": "rosbag", "version": self.version},
            "open": "ok",
            "state": state,
            "clock": self.clock,
            "utc": null,
            "start_ns": start.map(ToString::to_string),
            "end_ns": end.map(ToString::to_string),
            "topics": topics.collect::<Json>(),
            "records": self.records,
            "texts": self.texts,
            "lost": self.lost,
            "notes": notes.collect::<Json>(),
            "rosbag": {
                "records": self.ops,
                "sections": self.sections,
                "connections": connections.collect::<Json>(),
            },
        });
        Made { bytes: self.bytes, expected }
    }
}

/// An index record.
pub(super) fn index_record(topic: &str, ty: Option<&str>, ver: u32, count: usize, data: &[u8]) -> Vec<u8> {
    let (count, ver) = (u32_bytes(count), ver.to_le_bytes());
    let mut fields: Vec<(&str, &[u8])> = vec![("count", &count), ("op", &[4]), ("topic", topic.as_bytes())];
    fields.extend(ty.map(|ty| ("type", ty.as_bytes())));
    fields.push(("ver", &ver));
    record(&fields, data)
}
