//! The steps that build a bag, from the specification "Bags/Format/1.2".

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Value as Json, json};

use super::stamp;
use crate::Made;
use crate::lay::lay;
use crate::shape::{Shape, Value, Words, values};

/// A bag during construction.
pub(super) type Bag = crate::log::Log<Own>;

/// A time: seconds and nanoseconds.
pub(super) type Stamp = (u32, u32);

/// Bag-specific parts.
#[derive(Default)]
pub(super) struct Own {
    version: &'static str,
    clock: &'static str,
    topics: Vec<(Topic, Publishers)>,
    times: Vec<i64>,
    ops: BTreeMap<String, u64>,
    sections: Vec<Json>,
    /// The index under construction, by topic: its type, and time and offset of each entry.
    index: BTreeMap<String, (String, Vec<(Stamp, u64)>)>,
    /// Offset of the last definition, if nothing follows it yet.
    defined_at: Option<usize>,
    section_at: usize,
    header_at: Option<usize>,
}

/// Number of latched messages of a topic, and number of messages by publisher.
#[derive(Default)]
pub(super) struct Publishers {
    pub(super) latched: u64,
    pub(super) callerids: BTreeMap<String, u64>,
}

/// The version line of V1.2.
pub(super) const VERSION_LINE: &[u8] = b"#ROSRECORD V1.2\n";

/// `std_msgs/Header`.
pub(super) const HEADER: (&str, &str) = ("std_msgs/Header", "uint32 seq\ntime stamp\nstring frame_id\n");

/// Returns a number as 32 bits.
pub(super) fn u32_of(value: usize) -> u32 {
    u32::try_from(value).expect("small")
}

/// Returns a text of a message: its length, then its bytes.
pub(super) fn text(text: impl AsRef<[u8]>) -> Vec<u8> {
    lay![u32_of(text.as_ref().len()), text.as_ref()]
}

/// Returns the fields of a header in this order, each `<field_len><field_name>=<field_value>`.
pub(super) fn fields(fields: &[(&str, &[u8])]) -> Vec<u8> {
    let fields = fields.iter().map(|(name, value)| text([name.as_bytes(), b"=", value].concat()));
    fields.collect::<Vec<_>>().concat()
}

/// Returns `<header_len><header><data_len><data>` with the fields in this order.
pub(super) fn record(named: &[(&str, &[u8])], data: &[u8]) -> Vec<u8> {
    lay![text(fields(named)), text(data)]
}

/// Returns the bag header: header and data together have 4096 bytes.
pub(super) fn bag_header(index_pos: u64) -> Vec<u8> {
    record(&[("index_pos", &index_pos.to_le_bytes()), ("op", &[3])], &[b' '; 4066])
}

/// Returns an index record with entries of `<time><offset>` each.
pub(super) fn index_record(topic: &str, ty: Option<&str>, [ver, count]: [u32; 2], data: &[u8]) -> Vec<u8> {
    let (count, ver) = (count.to_le_bytes(), ver.to_le_bytes());
    let mut fields: Vec<(&str, &[u8])> = vec![("count", &count), ("op", &[4]), ("topic", topic.as_bytes())];
    fields.extend(ty.map(|ty| ("type", ty.as_bytes())));
    fields.push(("ver", &ver));
    record(&fields, data)
}

/// Returns a full definition: the root's own text, then the nested types, with `gap` before each
/// separator.
pub(super) fn full(root: &str, gap: &str, types: &[(&str, &str)]) -> String {
    let line = "=".repeat(80);
    types.iter().fold(root.to_owned(), |text, (name, own)| format!("{text}{gap}{line}\nMSG: {name}\n{own}"))
}

/// Returns the shape of a definition, without comments and constants; nested types are found
/// further down.
fn shape(ty: &str, definition: &str) -> Shape {
    let mut sections: Vec<(String, String)> = vec![(ty.to_owned(), String::new())];
    for line in definition.lines() {
        let line = line.split('#').next().unwrap_or_default();
        if let Some(name) = line.strip_prefix("MSG: ") {
            sections.push((name.to_owned(), String::new()));
        } else if let [kind, name] = line.split_whitespace().collect::<Vec<_>>()[..]
            && !line.contains('=')
        {
            let fields = &mut sections.last_mut().expect("the root").1;
            fields.extend([kind, " ", name, ";"]);
        }
    }
    resolve(&sections, 0)
}

fn resolve(sections: &[(String, String)], number: usize) -> Shape {
    let known = |name: &str| {
        let package = format!("/{name}");
        let section = sections.iter().position(|section| section.0 == name || section.0.ends_with(&package));
        match section {
            Some(section) => resolve(sections, section),
            None if name == "Header" => {
                Shape::parse(HEADER.0, HEADER.1, Words::Ros, &|_| unreachable!("plain"))
            }
            None => panic!("{name} is not defined"),
        }
    };
    Shape::parse(&sections[number].0, &sections[number].1, Words::Ros, &known)
}

/// A topic as in its records, and its expected form in readers.
#[derive(Clone)]
pub(super) struct Topic {
    pub(super) name: String,
    pub(super) ty: String,
    pub(super) md5: String,
    /// Full text of the definition record.
    pub(super) def: String,
    /// Expected: the name that readers show, if it differs.
    shown: Option<String>,
    /// Expected: the shape that decodes the topic, if any.
    shape: Option<Shape>,
    /// Expected: the source of the definition, and its agreement with the MD5 sum.
    from: Json,
    sum: Json,
}

impl Topic {
    /// Returns a topic with its own definition.
    pub(super) fn new(name: &str, ty: &str, md5: &str, def: &str) -> Self {
        let sum = if md5 == "*" { "wildcard" } else { "v2" };
        let topic = Self::undefined(name, ty, md5, def);
        Self { shape: Some(shape(ty, def)), from: "topic".into(), sum: sum.into(), ..topic }
    }

    /// Returns a topic that no definition decodes.
    pub(super) fn undefined(name: &str, ty: &str, md5: &str, def: &str) -> Self {
        let [name, ty, md5, def] = [name, ty, md5, def].map(str::to_owned);
        Self { name, ty, md5, def, shown: None, shape: None, from: Json::Null, sum: Json::Null }
    }

    /// Returns a topic of type `std_msgs/String`.
    pub(super) fn string(name: &str) -> Self {
        Self::new(name, "std_msgs/String", "992ce8a1687cec8c8bd883ec73ca41d1", "string data\n")
    }

    /// Expects the topic to be decoded by a definition from another source.
    pub(super) fn found_in(mut self, source: &str) -> Self {
        self.from = source.into();
        self
    }

    /// Replaces the text of the definition.
    pub(super) fn with_def(mut self, def: &str) -> Self {
        def.clone_into(&mut self.def);
        self
    }

    /// Replaces the MD5 sum, and the expected agreement of the definition.
    pub(super) fn with_sum(mut self, md5: &str, agrees: &str) -> Self {
        md5.clone_into(&mut self.md5);
        self.sum = agrees.into();
        self
    }

    /// Expects another name in readers.
    pub(super) fn shown(mut self, name: &str) -> Self {
        self.shown = Some(name.to_owned());
        self
    }

    /// Returns the bytes of its definition record, with the fields in the order of recorders.
    pub(super) fn definition(&self) -> Vec<u8> {
        let [def, md5, topic, ty] = [&self.def, &self.md5, &self.name, &self.ty].map(String::as_bytes);
        record(&[("def", def), ("md5", md5), ("op", &[1]), ("topic", topic), ("type", ty)], b"")
    }

    /// Returns the bytes of a message's record, with the fields in the order of recorders.
    pub(super) fn data(&self, stamp: Stamp, payload: &[u8]) -> Vec<u8> {
        self.data_with(stamp, payload, &[])
    }

    /// Returns the bytes of a message's record with additional fields at its start.
    pub(super) fn data_with(&self, stamp: Stamp, payload: &[u8], more: &[(&str, &[u8])]) -> Vec<u8> {
        let (sec, nsec) = (stamp.0.to_le_bytes(), stamp.1.to_le_bytes());
        let [md5, topic, ty] = [&self.md5, &self.name, &self.ty].map(String::as_bytes);
        let fields: [(&str, &[u8]); 6] =
            [("md5", md5), ("nsec", &nsec), ("op", &[2]), ("sec", &sec), ("topic", topic), ("type", ty)];
        record(&[more, &fields].concat(), payload)
    }

    /// Returns `fields` of the expected result.
    pub(super) fn fields(&self) -> Json {
        self.shape.as_ref().map_or(Json::Null, Shape::fields)
    }

    /// Returns `data` of the expected result of these values.
    pub(super) fn value(&self, values: &[Value]) -> Json {
        self.shape.as_ref().expect("a definition").data(values)
    }

    /// Returns whether it has the same name, type and MD5 sum.
    pub(super) fn is(&self, other: &Self) -> bool {
        (&self.name, &self.ty, &self.md5) == (&other.name, &other.ty, &other.md5)
    }

    /// Returns the name that readers show.
    pub(super) fn shown_name(&self) -> &str {
        self.shown.as_ref().unwrap_or(&self.name)
    }

    /// Returns its entry in `connections` of the expected result.
    pub(super) fn connection(&self, publishers: &Publishers) -> Json {
        json!({
            "topic": self.shown_name(), "type": self.ty, "md5": self.md5,
            "definition": self.from, "md5_state": self.sum,
            "latched": publishers.latched, "callerids": publishers.callerids,
        })
    }

    /// Returns the payload of these values.
    pub(super) fn payload(&self, values: &[Value]) -> Vec<u8> {
        self.shape.as_ref().expect("a definition").full(values)
    }
}

impl Bag {
    /// Returns a bag without records that starts with these bytes.
    pub(super) fn starting(head: &[u8], version: &'static str) -> Self {
        Self::of(head.to_vec(), Own { version, clock: "unix", ..Own::default() })
    }

    /// Returns a bag with only the version line, as recorders of ROS 0.5 to 0.10 started.
    pub(super) fn plain() -> Self {
        Self::starting(VERSION_LINE, "1.2")
    }

    /// Returns a bag with version line and bag header, as recorders of ROS 0.11 and later started.
    pub(super) fn recorder() -> Self {
        Self::plain().begin_records()
    }

    fn begin_records(mut self) -> Self {
        self.own.header_at = Some(self.at());
        self.other("3", bag_header(0))
    }

    /// Declares that times count from the start of the recording.
    pub(super) fn relative(mut self) -> Self {
        self.own.clock = "log_start";
        self.note_at(0, "relative_stamps")
    }

    fn known(&mut self, topic: &Topic) -> usize {
        self.own.topics.iter().position(|(known, _)| known.is(topic)).unwrap_or_else(|| {
            self.own.topics.push((topic.clone(), Publishers::default()));
            self.add_topic(topic.shown_name(), &topic.ty.replace("rostools/", "roslib/"), topic.fields())
        })
    }

    /// Adds an intact record that is not a message; `op` is its number.
    pub(super) fn other(mut self, op: &str, bytes: impl AsRef<[u8]>) -> Self {
        *self.own.ops.entry(op.to_owned()).or_default() += 1;
        self.own.defined_at = None;
        self.lay(bytes)
    }

    /// Adds the definition record of a topic.
    pub(super) fn define(self, topic: &Topic) -> Self {
        self.define_as(topic, topic.definition())
    }

    /// Adds a definition record with these bytes.
    pub(super) fn define_as(mut self, topic: &Topic, bytes: impl AsRef<[u8]>) -> Self {
        self.known(topic);
        let at = self.at();
        let mut bag = self.other("1", bytes);
        bag.own.defined_at = Some(at);
        bag
    }

    /// Adds a message with these bytes of its record, and its expected result.
    pub(super) fn message_as(
        mut self,
        topic: &Topic,
        stamp: Stamp,
        bytes: impl AsRef<[u8]>,
        data: &Json,
    ) -> Self {
        let at = self.at();
        let number = self.known(topic);
        let nanos = i64::from(stamp.0) * 1_000_000_000 + i64::from(stamp.1);
        self.own.times.push(nanos);
        self.record(number, Some(nanos.into()), data);
        let own = &mut self.own;
        let (_, entries) =
            own.index.entry(topic.name.clone()).or_insert_with(|| (topic.ty.clone(), Vec::new()));
        // The first entry of a topic points to its definition.
        let pos = if entries.is_empty() { own.defined_at.unwrap_or(at) } else { at };
        entries.push((stamp, (pos - own.section_at) as u64));
        self.other("2", bytes)
    }

    /// Adds a message as recorders wrote it.
    pub(super) fn message(self, topic: &Topic, stamp: Stamp, values: impl AsRef<[Value]>) -> Self {
        let data = topic.value(values.as_ref());
        self.message_as(topic, stamp, topic.data(stamp, &topic.payload(values.as_ref())), &data)
    }

    /// Adds a message of which readers return only the bytes.
    pub(super) fn raw(self, topic: &Topic, stamp: Stamp, payload: &[u8]) -> Self {
        let data = json!({"raw": crate::lay::base64(payload)});
        self.message_as(topic, stamp, topic.data(stamp, payload), &data)
    }

    /// Adds a message of `std_msgs/String`.
    pub(super) fn say(self, topic: &Topic, stamp: Stamp, text: &str) -> Self {
        self.message(topic, stamp, values![text])
    }

    /// Adds messages of a topic of texts, the first one after its definition.
    pub(super) fn talk(self, topic: &Topic, numbers: Range<u32>) -> Self {
        self.each(numbers, |bag, i| {
            let bag = if i == 0 { bag.define(topic) } else { bag };
            bag.say(topic, stamp(i), &format!("m{i}"))
        })
    }

    /// Adds a message of a latching publisher.
    pub(super) fn latched(mut self, topic: &Topic, stamp: Stamp, said: &str, caller: &str) -> Self {
        let more: [(&str, &[u8]); 2] = [("callerid", caller.as_bytes()), ("latching", b"1")];
        let number = self.known(topic);
        let publishers = &mut self.own.topics[number].1;
        publishers.latched += 1;
        *publishers.callerids.entry(caller.to_owned()).or_default() += 1;
        self.message_as(topic, stamp, topic.data_with(stamp, &text(said), &more), &json!({"data": said}))
    }

    /// Adds an expected console line.
    pub(super) fn console(mut self, time: Stamp, level: &str, source: &str, text: &str) -> Self {
        let t_ns = (i64::from(time.0) * 1_000_000_000 + i64::from(time.1)).to_string();
        self.texts.push(json!({"t_ns": t_ns, "level": level, "source": source, "text": text}));
        self
    }

    /// Returns the index that a recorder would write now.
    pub(super) fn index_records(&self) -> Vec<Vec<u8>> {
        let record_of = |(topic, (ty, entries)): (&String, &(String, Vec<_>))| {
            index_record(topic, Some(ty), [0, u32_of(entries.len())], &lay![entries])
        };
        self.own.index.iter().map(record_of).collect()
    }

    /// Changes the entries of the index, to write a wrong one.
    pub(super) fn entries(mut self, topic: &str, change: impl FnOnce(&mut Vec<(Stamp, u64)>)) -> Self {
        change(&mut self.own.index.get_mut(topic).expect("a topic with messages").1);
        self
    }

    /// Writes the index and the bag header, as a recorder does when it is stopped.
    pub(super) fn close(self) -> Self {
        let records = self.index_records();
        let state = if records.is_empty() { "empty" } else { "exact" };
        self.close_with(&records, state)
    }

    /// Closes the bag with an index that differs from the messages.
    pub(super) fn close_differing(self) -> Self {
        let records = self.index_records();
        self.note("index_differs").close_with(&records, "differs")
    }

    /// Closes the bag with these index records, which a reader finds in this state.
    pub(super) fn close_with(self, index: &[Vec<u8>], state: &str) -> Self {
        let pos = (self.at() - self.own.section_at) as u64;
        self.each(index, |bag, record| bag.other("4", record)).index_pos(pos).section(Some(pos), None, state)
    }

    /// Sets the index position in the bag header.
    pub(super) fn index_pos(self, pos: u64) -> Self {
        let at = self.own.header_at.expect("a bag header was laid") + 4 + 4 + "index_pos=".len();
        self.set(at, pos.to_le_bytes())
    }

    /// Ends a section: position in its bag header, raw padding, and state of its index.
    pub(super) fn section(mut self, index_pos: Option<u64>, raw_padding: Option<u64>, state: &str) -> Self {
        let at = self.own.section_at;
        self.own.sections.push(json!({
            "offset": at, "index_pos": index_pos, "raw_padding": raw_padding, "index": state,
        }));
        self.own.index.clear();
        self
    }

    /// Ends the bag without an index, like a killed recorder or one that writes no index.
    pub(super) fn unindexed(self) -> Self {
        let at = self.own.header_at;
        self.unindexed_at(at.unwrap_or(0), at.map(|_| 0))
    }

    /// Ends the bag without an index; the bag header, or the section without one, starts at `at`
    /// and has the position `pos`.
    pub(super) fn unindexed_at(self, at: usize, pos: Option<u64>) -> Self {
        self.note_at(at, "unindexed").section(pos, None, "absent")
    }

    /// Starts another bag in the same file.
    pub(super) fn begin_section(mut self) -> Self {
        self.own.section_at = self.at();
        self.note("appended_section").lay(VERSION_LINE).begin_records()
    }
}

impl From<Bag> for Made {
    fn from(mut bag: Bag) -> Self {
        let own = &bag.own;
        let end = own.times.iter().max();
        let start = own.times.iter().filter(|time| **time > 0).min().or(end);
        let connection = |(topic, publishers): &(Topic, Publishers)| topic.connection(publishers);
        let head = json!({
            "format": {"id": "rosbag", "version": own.version},
            "clock": own.clock,
            "start_ns": start.map(ToString::to_string),
            "end_ns": end.map(ToString::to_string),
            "texts": std::mem::take(&mut bag.texts),
            "rosbag": {
                "records": own.ops,
                "sections": own.sections,
                "connections": own.topics.iter().map(connection).collect::<Json>(),
            },
        });
        bag.made(head)
    }
}

/// Returns a bag that must be refused.
pub(super) fn refused(bytes: impl AsRef<[u8]>, version: &str, kind: &str, contains: &str) -> Made {
    Made::refused(bytes.as_ref().to_vec(), ["rosbag", version], kind, contains)
}

/// Returns the topic of most bags here.
pub(super) fn chatter() -> Topic {
    Topic::string("/chatter")
}

/// Returns a recorder's bag with that topic, not closed yet.
pub(super) fn recorded(numbers: Range<u32>) -> Bag {
    Bag::recorder().talk(&chatter(), numbers)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_bag_header_has_the_size_of_a_recorders() {
        assert_eq!(super::bag_header(0).len(), 4104);
    }
}
