//! The steps that build a bag. Those of bags before version 2.0 are according to the specification
//! "Bags/Format/1.2".

use std::collections::BTreeMap;
use std::ops::Range;

use super::stamp;
use crate::log::{Log, increment, push};
use crate::prelude::*;

/// A bag before version 2.0 that is being built.
pub(super) type Bag = Log<Own<ByTopic>>;

/// A time in seconds and nanoseconds.
pub(super) type Stamp = (u32, u32);

/// Parts that only bags have. `Index` collects the content of the index.
#[derive(Default)]
pub(super) struct Own<Index> {
    topics: Vec<Topic>,
    section_at: usize,
    /// Offset of the bag header.
    pub(super) header_at: Option<usize>,
    pub(super) index: Index,
}

/// Content of the index of a bag before version 2.0.
#[derive(Default)]
pub(super) struct ByTopic {
    /// For each topic, its type, and the time and offset of each entry.
    topics: BTreeMap<String, (String, Vec<(Stamp, u64)>)>,
    /// Byte range of the last definition.
    defined: Range<usize>,
}

/// The version line of V1.2.
pub(super) const VERSION_LINE: &[u8] = b"#ROSRECORD V1.2\n";

/// Name and definition of the standard header.
pub(super) const HEADER: (&str, &str) = ("std_msgs/Header", "uint32 seq\ntime stamp\nstring frame_id\n");

/// Names and values of the fields of a header.
pub(super) type Fields<'a> = [(&'a str, &'a dyn Laid)];

/// Encodes a text as its length and its bytes.
pub(super) fn text(text: impl AsRef<[u8]>) -> Vec<u8> {
    lay![u32_of(text.as_ref().len()), text.as_ref()]
}

/// Encodes the fields of a header in this order. Each field has the form
/// `<field_len><field_name>=<field_value>`.
pub(super) fn fields(fields: &Fields<'_>) -> Vec<u8> {
    fields.iter().flat_map(|(name, value)| text(lay![name, "=", value])).collect()
}

/// Encodes a record, which has the form `<header_len><header><data_len><data>`.
pub(super) fn record(named: &Fields<'_>, data: impl AsRef<[u8]>) -> Vec<u8> {
    lay![text(fields(named)), text(data)]
}

/// Returns the offset of the value of the first field with this name.
pub(super) fn place_of(name: &str, record: &[u8]) -> usize {
    let name = format!("{name}=");
    record.windows(name.len()).position(|part| part == name.as_bytes()).expect("a field") + name.len()
}

/// Returns the bag header record, whose header and data together have 4096 bytes.
pub(super) fn bag_header(index_pos: u64) -> Vec<u8> {
    record(&[("index_pos", &index_pos), ("op", &3_u8)], [b' '; 4066])
}

/// Returns an index record. Each entry in `data` has the form `<time><offset>`.
pub(super) fn index_record(topic: &str, ty: Option<&String>, [ver, count]: [u32; 2], data: &[u8]) -> Vec<u8> {
    let mut fields: Vec<(&str, &dyn Laid)> = vec![("count", &count), ("op", &4_u8), ("topic", &topic)];
    fields.extend(ty.map(|ty| ("type", ty as &dyn Laid)));
    fields.push(("ver", &ver));
    record(&fields, data)
}

/// Returns a full definition, which is the text of the type followed by its nested types. `gap` is
/// written before each separator.
pub(super) fn full(root: &str, gap: &str, types: &[(&str, &str)]) -> String {
    let line = "=".repeat(80);
    types.iter().fold(root.to_owned(), |text, (name, own)| format!("{text}{gap}{line}\nMSG: {name}\n{own}"))
}

/// Parses a full definition. Comments and constants are ignored.
fn shape(ty: &str, definition: &str) -> Shape {
    // Readers know the standard header, even if the definition lacks it.
    let text = format!("MSG: {ty}\n{definition}\nMSG: {}\n{}", HEADER.0, HEADER.1);
    let sections: Vec<_> = text.split("MSG: ").filter_map(|section| section.split_once('\n')).collect();
    resolve(&sections, sections[0])
}

/// Parses the type with this name and text. `sections` are all types of the definition.
fn resolve(sections: &[(&str, &str)], (name, text): (&str, &str)) -> Shape {
    let field = |line: &str| match line.split('#').next()?.split_whitespace().collect::<Vec<_>>()[..] {
        [kind, name] if !line.contains('=') => Some(format!("{kind} {name};")),
        _ => None,
    };
    let known = |name: &str| {
        let package = format!("/{name}");
        let is = |section: &&(&str, &str)| {
            section.0.trim_end() == name || section.0.trim_end().ends_with(&package)
        };
        resolve(sections, *sections.iter().find(is).expect("a type that is defined"))
    };
    Shape::parse(name.trim_end(), &text.lines().filter_map(field).collect::<String>(), Words::Ros, &known)
}

/// A topic, with its records and its expected result.
#[derive(Clone)]
pub(super) struct Topic {
    pub(super) name: String,
    pub(super) ty: String,
    pub(super) md5: String,
    /// Full text of the definition record.
    pub(super) def: String,
    /// Expected name in readers.
    shown: String,
    /// Expected layout of the messages. `None` if they cannot be decoded.
    shape: Option<Shape>,
    /// Expected source of the definition.
    from: Json,
    /// Expected result of comparing the definition with the MD5 sum.
    sum: Json,
}

impl Topic {
    /// Creates a topic that is decoded by its own definition.
    pub(super) fn new(name: &str, ty: &str, md5: &str, def: &str) -> Self {
        let sum = if md5 == "*" { "wildcard" } else { "v2" };
        let topic = Self::undefined(name, ty, md5, def);
        Self { shape: Some(shape(ty, def)), from: "topic".into(), sum: sum.into(), ..topic }
    }

    /// Creates a topic whose messages cannot be decoded.
    pub(super) fn undefined(name: &str, ty: &str, md5: &str, def: &str) -> Self {
        let [name, ty, md5, def, shown] = [name, ty, md5, def, name].map(str::to_owned);
        Self { name, ty, md5, def, shown, shape: None, from: Json::Null, sum: Json::Null }
    }

    /// Creates a topic of type `std_msgs/String`.
    pub(super) fn string(name: &str) -> Self {
        Self::new(name, "std_msgs/String", "992ce8a1687cec8c8bd883ec73ca41d1", "string data\n")
    }

    /// Expects that the topic is decoded by a definition from another source.
    pub(super) fn found_in(self, source: &str) -> Self {
        Self { from: source.into(), ..self }
    }

    /// Replaces the text of the definition.
    pub(super) fn with_def(self, def: &str) -> Self {
        Self { def: def.to_owned(), ..self }
    }

    /// Replaces the MD5 sum, and the expected result of comparing the definition with the sum.
    pub(super) fn with_sum(self, md5: &str, agrees: &str) -> Self {
        Self { md5: md5.to_owned(), sum: agrees.into(), ..self }
    }

    /// Sets the name that readers show.
    pub(super) fn shown(self, name: &str) -> Self {
        Self { shown: name.to_owned(), ..self }
    }

    /// Returns the definition record. Its fields have the same order as in recorders.
    pub(super) fn definition(&self) -> Vec<u8> {
        let Self { name, ty, md5, def, .. } = self;
        record(&[("def", def), ("md5", md5), ("op", &1_u8), ("topic", name), ("type", ty)], b"")
    }

    /// Returns the record of a message. Its fields have the same order as in recorders.
    pub(super) fn data(&self, stamp: Stamp, payload: impl AsRef<[u8]>) -> Vec<u8> {
        self.data_with(stamp, payload, &[])
    }

    /// Returns the record of a message. The additional fields `more` come first in its header.
    pub(super) fn data_with(&self, stamp: Stamp, payload: impl AsRef<[u8]>, more: &Fields<'_>) -> Vec<u8> {
        let Self { name, ty, md5, .. } = self;
        let fields: &Fields<'_> = &[
            ("md5", md5),
            ("nsec", &stamp.1),
            ("op", &2_u8),
            ("sec", &stamp.0),
            ("topic", name),
            ("type", ty),
        ];
        record(&[more, fields].concat(), payload)
    }

    /// Returns the member `data` of the expected result for a message with these values.
    pub(super) fn value(&self, values: &[Value]) -> Json {
        self.shape.as_ref().expect("a definition").data(values)
    }

    /// Returns the payload of a message with these values.
    pub(super) fn payload(&self, values: &[Value]) -> Vec<u8> {
        self.shape.as_ref().expect("a definition").full(values)
    }
}

fn nanos((sec, nsec): Stamp) -> i64 {
    i64::from(sec) * 1_000_000_000 + i64::from(nsec)
}

/// Steps for bags of all versions.
impl<Index: Default> Log<Own<Index>> {
    /// Creates a bag without records that starts with the bytes `head`.
    pub(super) fn starting(head: &[u8], version: &'static str) -> Self {
        Self::of(head.to_vec(), Own::default()).expect(json!({
            "format": {"id": "rosbag", "version": version}, "clock": "unix", "texts": [],
            "rosbag": {"records": {}, "sections": [], "connections": []},
        }))
    }

    /// Adds a bag header.
    pub(super) fn header(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.own.header_at = Some(self.at());
        self.other(3, bytes)
    }

    /// Changes the value of a field of the bag header.
    pub(super) fn set_header(self, name: &str, value: impl Laid) -> Self {
        let header_at = self.own.header_at.expect("a bag header was laid");
        let at = header_at + place_of(name, &self.bytes[header_at..]);
        self.set(at, lay![value])
    }

    /// Expects a note about the bag header, or about the start of a bag without a bag header.
    pub(super) fn note_header(self, code: &'static str) -> Self {
        let at = self.own.header_at.unwrap_or(0);
        self.note_at(at, code)
    }

    /// Returns the offset of the next bytes in the section.
    pub(super) fn pos(&self) -> u64 {
        (self.at() - self.own.section_at) as u64
    }

    fn known(&mut self, topic: &Topic) -> usize {
        let key = |topic: &Topic| [&topic.name, &topic.ty, &topic.md5].map(String::clone);
        self.own.topics.iter().position(|known| key(known) == key(topic)).unwrap_or_else(|| {
            self.own.topics.push(topic.clone());
            let connection = json!({
                "topic": topic.shown, "type": topic.ty, "md5": topic.md5,
                "definition": topic.from, "md5_state": topic.sum, "latched": 0, "callerids": {},
            });
            push(&mut self.expected["rosbag"]["connections"], connection);
            let fields = topic.shape.as_ref().map_or(Json::Null, Shape::fields);
            self.add_topic(&topic.shown, &topic.ty.replace("rostools/", "roslib/"), fields)
        })
    }

    /// Expects an intact record with this operation code.
    pub(super) fn count(&mut self, op: u8) {
        increment(&mut self.expected["rosbag"]["records"][op.to_string()]);
    }

    /// Expects a topic, even if it has no messages.
    pub(super) fn declare(mut self, topic: &Topic) -> Self {
        self.known(topic);
        self
    }

    /// Adds an intact record that is not a message. `op` is its operation code.
    pub(super) fn other(mut self, op: u8, bytes: impl AsRef<[u8]>) -> Self {
        self.count(op);
        self.lay(bytes)
    }

    /// Adds intact records that are not messages.
    pub(super) fn others(self, op: u8, records: impl IntoIterator<Item = Vec<u8>>) -> Self {
        self.each(records, |bag, record| bag.other(op, record))
    }

    /// Expects that a message is from the publisher with this name, which is latching or not.
    pub(super) fn publish(&mut self, topic: &Topic, node: &str, latching: bool) {
        let number = self.known(topic);
        let connection = &mut self.expected["rosbag"]["connections"][number];
        increment(&mut connection["callerids"][node]);
        if latching {
            increment(&mut connection["latched"]);
        }
    }

    /// Expects a message at the offset `at`.
    pub(super) fn found(&mut self, at: usize, topic: &Topic, stamp: Stamp, data: &Json) {
        let number = self.known(topic);
        self.record_at(at, number, Some(nanos(stamp).into()), data);
    }

    /// Adds the current section to the expected result, with the index position in its bag header
    /// and the state of its index.
    pub(super) fn section(mut self, index_pos: impl Into<Option<u64>>, state: &str) -> Self {
        let (at, index_pos) = (self.own.section_at, index_pos.into());
        let section = json!({"offset": at, "index_pos": index_pos, "raw_padding": null, "index": state});
        push(&mut self.expected["rosbag"]["sections"], section);
        self
    }

    /// Changes a member of the first section in the expected result.
    pub(super) fn in_first_section(self, key: &str, value: impl Into<Json>) -> Self {
        self.with(|bag| bag.expected["rosbag"]["sections"][0][key] = value.into())
    }

    /// Ends the bag without an index, as a recorder that is killed.
    pub(super) fn unindexed(self) -> Self {
        let pos = self.own.header_at.map(|_| 0);
        self.unindexed_at(pos)
    }

    /// Ends the bag without an index. `pos` is the index position in the bag header.
    pub(super) fn unindexed_at(self, pos: impl Into<Option<u64>>) -> Self {
        self.note_header("unindexed").section(pos, "absent")
    }

    /// Starts another bag in the same file.
    pub(super) fn begin_section(mut self, line: &[u8], header: &[u8]) -> Self {
        self.own.section_at = self.at();
        self.own.index = Index::default();
        self.note("appended_section").lay(line).header(header)
    }
}

/// Steps for bags before version 2.0.
impl Bag {
    /// Creates a bag that starts with the version line only, as those of ROS 0.5 to 0.10.
    pub(super) fn plain() -> Self {
        Self::starting(VERSION_LINE, "1.2")
    }

    /// Creates a bag that starts with the version line and a bag header, as those of ROS 0.11 and
    /// later.
    pub(super) fn recorder() -> Self {
        Self::plain().header(bag_header(0))
    }

    /// Expects that times count from the start of the recording.
    pub(super) fn relative(self) -> Self {
        self.expect(json!({"clock": "log_start"})).note_at(0, "relative_stamps")
    }

    /// Adds the definition record of a topic.
    pub(super) fn define(self, topic: &Topic) -> Self {
        self.define_as(topic, topic.definition())
    }

    /// Adds a definition record with other bytes than those of recorders.
    pub(super) fn define_as(self, topic: &Topic, bytes: impl AsRef<[u8]>) -> Self {
        let at = self.at();
        self.declare(topic).other(1, bytes).with(|bag| bag.own.index.defined = at..bag.at())
    }

    /// Adds a message whose record has the bytes `bytes`. `data` is the expected result.
    pub(super) fn message_as(mut self, topic: &Topic, stamp: Stamp, bytes: Vec<u8>, data: &Json) -> Self {
        let at = self.at();
        self.found(at, topic, stamp, data);
        self.count(2);
        let ByTopic { topics, defined } = &mut self.own.index;
        let (_, entries) = topics.entry(topic.name.clone()).or_insert_with(|| (topic.ty.clone(), Vec::new()));
        // In a bag of a recorder, the first index entry of a topic points to its definition.
        let pos = if entries.is_empty() && defined.end == at { defined.start } else { at };
        entries.push((stamp, (pos - self.own.section_at) as u64));
        self.lay(bytes)
    }

    /// Adds a message in the form of recorders.
    pub(super) fn message(self, topic: &Topic, stamp: Stamp, values: impl AsRef<[Value]>) -> Self {
        let data = topic.value(values.as_ref());
        self.message_as(topic, stamp, topic.data(stamp, topic.payload(values.as_ref())), &data)
    }

    /// Adds the definition of a topic, and its messages in the form of recorders. Message `i` has the
    /// time `stamp(i)`.
    pub(super) fn messages(self, topic: &Topic, rows: impl IntoIterator<Item = Vec<Value>>) -> Self {
        self.define(topic).each((0..).zip(rows), |bag, (i, row)| bag.message(topic, stamp(i), row))
    }

    /// Adds a message that readers return as bytes.
    pub(super) fn raw(self, topic: &Topic, stamp: Stamp, payload: &[u8]) -> Self {
        let data = json!({"raw": crate::lay::base64(payload)});
        self.message_as(topic, stamp, topic.data(stamp, payload), &data)
    }

    /// Adds a message of `std_msgs/String`.
    pub(super) fn say(self, topic: &Topic, stamp: Stamp, text: &str) -> Self {
        self.message(topic, stamp, values![text])
    }

    /// Adds messages of a topic of texts. The definition is added before message 0.
    pub(super) fn talk(self, topic: &Topic, numbers: Range<u32>) -> Self {
        self.each(numbers, |bag, i| {
            bag.when(i == 0, |bag| bag.define(topic)).say(topic, stamp(i), &format!("m{i}"))
        })
    }

    /// Adds a message of a latching publisher.
    pub(super) fn latched(mut self, topic: &Topic, stamp: Stamp, said: &str, caller: &str) -> Self {
        let bytes = topic.data_with(stamp, text(said), &[("callerid", &caller), ("latching", b"1")]);
        self.publish(topic, caller, true);
        self.message_as(topic, stamp, bytes, &json!({"data": said}))
    }

    /// Expects a console line.
    pub(super) fn console(mut self, time: Stamp, level: &str, source: &str, text: &str) -> Self {
        let t_ns = nanos(time).to_string();
        let line = json!({"t_ns": t_ns, "level": level, "source": source, "text": text});
        push(&mut self.expected["texts"], line);
        self
    }

    /// Returns the index records that a recorder would write at this point.
    pub(super) fn index_records(&self) -> Vec<Vec<u8>> {
        let record_of = |(topic, (ty, entries)): (&String, &(String, Vec<_>))| {
            index_record(topic, Some(ty), [0, u32_of(entries.len())], &lay![entries])
        };
        self.own.index.topics.iter().map(record_of).collect()
    }

    /// Changes the index entries of a topic, to write a wrong index.
    pub(super) fn entries(mut self, topic: &str, change: impl FnOnce(&mut Vec<(Stamp, u64)>)) -> Self {
        change(&mut self.own.index.topics.get_mut(topic).expect("a topic with messages").1);
        self
    }

    /// Writes the index and the bag header, as a recorder does when it is stopped.
    pub(super) fn close(self) -> Self {
        let records = self.index_records();
        let state = if records.is_empty() { "empty" } else { "exact" };
        self.close_with(records, state)
    }

    /// Closes the bag, and expects that its index differs from the messages.
    pub(super) fn close_differing(self) -> Self {
        let records = self.index_records();
        self.note("index_differs").close_with(records, "differs")
    }

    /// Closes the bag with the index records `index`. `state` is the expected state of the index.
    pub(super) fn close_with(self, index: Vec<Vec<u8>>, state: &str) -> Self {
        let pos = self.pos();
        self.others(4, index).set_header("index_pos", pos).section(pos, state)
    }
}

impl<Index: Default> From<Log<Own<Index>>> for Made {
    fn from(bag: Log<Own<Index>>) -> Self {
        // The time 0 is not the start of a bag.
        let start = bag.times.iter().filter(|time| **time > 0).min().map(ToString::to_string);
        bag.expect(json!({"start_ns": start})).made()
    }
}

/// Returns the topic of most test bags.
pub(super) fn chatter() -> Topic {
    Topic::string("/chatter")
}

/// Returns a bag with messages of [`chatter`] that is not closed yet.
pub(super) fn recorded(numbers: Range<u32>) -> Bag {
    Bag::recorder().talk(&chatter(), numbers)
}
