//! Reads files that were exported from ROS bags, and compares them with the bags.
//!
//! - Bags of version 2.0 are read by an independent parser in this file.
//! - MCAP is read with the crate `mcap`.
//! - CDR is read by a decoder in this file, which only uses the schema.

use std::collections::BTreeMap;
use std::io::Cursor;

use mcap::MessageStream;
use rosbag::{ChunkRecord, MessageRecord, RosBag};
use rovelog::core::internal::text::escape_bytes;
use rovelog::rosbag12::{BagReader, BagWriter, Version};
use rovelog::{AnyLog, Field, FieldType, ReadOptions, Scalar, Select, Value};
use rovelog_export::bag2::{self, Bag2Options, Compression};
use rovelog_export::mcap::{McapOptions, RosForm};
use rovelog_export::{ExportError, Exported, Provenance};

/// Topic name, time in nanoseconds, and payload of a message.
type Message = (String, i64, Vec<u8>);

fn bags() -> Vec<(String, AnyLog)> {
    let mut logs = rovelog_testing::corpus("rosbag", "bag", 70);
    if let Some(real) = rovelog_testing::real("rosbag12") {
        logs.extend(rovelog_testing::logs_in(&real, "bag"));
    }
    let open = |log: rovelog_testing::Log| {
        Some((log.name, rovelog::from_bytes(log.bytes, &ReadOptions::default()).ok()?))
    };
    logs.into_iter().filter_map(open).collect()
}

fn reader(log: &AnyLog) -> &BagReader {
    let AnyLog::Rosbag(bag) = log else { panic!("a bag") };
    bag
}

/// Returns the messages of a bag, without those whose definition was inferred. Topics have the
/// names in the bag.
fn messages(log: &AnyLog) -> Vec<Message> {
    messages_and(log, false)
}

/// Returns the messages of a bag. If `undefined` is true, messages of topics without a definition
/// are included, too.
fn messages_and(log: &AnyLog, undefined: bool) -> Vec<Message> {
    let bag = reader(log);
    let records = log.records(&Select::all()).map(Result::unwrap);
    let message = |record: rovelog::Record<'_>| {
        let connection = &bag.connections()[record.topic.id.index()];
        let fits = match connection.definition() {
            None => undefined,
            Some(definition) => {
                !definition.is_guess()
                    || bag.decode(&record).is_ok_and(|(value, _)| value.get("raw").is_none())
            }
        };
        let name = String::from_utf8(connection.topic.clone()).unwrap_or_else(|_| record.topic.name.clone());
        fits.then(|| (name, record.time.unwrap().nanos, record.payload.to_vec()))
    };
    records.filter_map(message).collect()
}

fn bag2(log: &AnyLog, options: &Bag2Options) -> Result<(Vec<u8>, Exported), ExportError> {
    let mut out = Vec::new();
    let done = bag2::write(log, &Select::all(), options, &mut out, &mut |_| ())?;
    Ok((out, done))
}

fn ros2(log: &AnyLog) -> (Vec<u8>, Exported) {
    let mut options = McapOptions::default();
    options.ros = RosForm::Ros2;
    let provenance = Provenance::new("log");
    let mut out = Vec::new();
    let all = Select::all();
    let done = rovelog_export::mcap::write(log, &all, &options, &provenance, &mut out, &mut |_| ()).unwrap();
    (out, done)
}

fn u32_at(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[..4].try_into().unwrap())
}

/// Reads a length of 4 bytes. Returns the data with this length, and the bytes after it.
fn part(bytes: &[u8]) -> (&[u8], &[u8]) {
    bytes[4..].split_at(u32_at(bytes) as usize)
}

fn fields(mut header: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut fields = BTreeMap::new();
    while !header.is_empty() {
        let (field, rest) = part(header);
        let at = field.iter().position(|byte| *byte == b'=').unwrap();
        fields.insert(String::from_utf8(field[..at].to_vec()).unwrap(), field[at + 1..].to_vec());
        header = rest;
    }
    fields
}

fn nanos(time: &[u8]) -> i64 {
    i64::from(u32_at(time)) * 1_000_000_000 + i64::from(u32_at(&time[4..]))
}

/// Reads a bag of version 2.0 with its index, and checks all fields of its records.
fn read_bag2(bytes: &[u8]) -> Vec<Message> {
    let body = bytes.strip_prefix(b"#ROSBAG V2.0\n").unwrap();
    let record = |at: u64| {
        let (header, rest) = part(&bytes[usize::try_from(at).unwrap()..]);
        let (data, rest) = part(rest);
        (fields(header), data, (bytes.len() - rest.len()) as u64)
    };
    let (first, padding, start) = record((bytes.len() - body.len()) as u64);
    assert_eq!((first["op"][0], start), (3, 13 + 8 + 4096));
    assert!(padding.iter().all(|byte| *byte == b' '));
    let mut at = u64::from_le_bytes(first["index_pos"].clone().try_into().unwrap());
    let (mut topics, mut chunks) = (Vec::new(), Vec::new());
    while at < bytes.len() as u64 {
        let (header, data, end) = record(at);
        at = end;
        match header["op"][0] {
            7 => {
                let said = fields(data);
                assert_eq!(u32_at(&header["conn"]) as usize, topics.len());
                assert_eq!((said["md5sum"].len(), &said["topic"]), (32, &header["topic"]));
                assert!(said.contains_key("message_definition") && said.contains_key("type"));
                topics.push(String::from_utf8(header["topic"].clone()).unwrap());
            }
            6 => chunks.push((header, data.to_vec())),
            op => panic!("op {op} in the index"),
        }
    }
    assert_eq!(u32_at(&first["conn_count"]) as usize, topics.len());
    assert_eq!(u32_at(&first["chunk_count"]) as usize, chunks.len());
    let mut found = Vec::new();
    let mut at = start;
    for (info, counts) in chunks {
        assert_eq!(u64::from_le_bytes(info["chunk_pos"].clone().try_into().unwrap()), at);
        let (header, data, end) = record(at);
        at = end;
        let mut unpacked = Vec::new();
        match header["compression"].as_slice() {
            b"none" => unpacked.extend_from_slice(data),
            b"bz2" => {
                std::io::Read::read_to_end(&mut bzip2::read::BzDecoder::new(data), &mut unpacked).unwrap();
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(u32_at(&header["size"]) as usize, unpacked.len());
        let mut places = Vec::new();
        for count in counts.chunks_exact(8) {
            let (header, entries, end) = record(at);
            at = end;
            assert_eq!((&header["conn"][..], &header["count"][..]), (&count[..4], &count[4..]));
            let id = u32_at(&header["conn"]) as usize;
            places.extend(
                entries.chunks_exact(12).map(|entry| (u32_at(&entry[8..]) as usize, id, nanos(entry))),
            );
        }
        places.sort_unstable();
        let times = places.iter().map(|place| place.2);
        assert_eq!(times.clone().min(), Some(nanos(&info["start_time"])));
        assert_eq!(times.max(), Some(nanos(&info["end_time"])));
        for (offset, id, time) in places {
            let (header, rest) = part(&unpacked[offset..]);
            let header = fields(header);
            assert_eq!((header["op"][0], u32_at(&header["conn"]) as usize), (2, id));
            assert_eq!(nanos(&header["time"]), time);
            found.push((topics[id].clone(), time, part(rest).0.to_vec()));
        }
    }
    found
}

#[test]
fn bag_of_version_2_has_all_messages_unchanged() {
    for (name, log) in bags() {
        let want = messages(&log);
        for (modernize, compression) in [(false, Compression::None), (true, Compression::Bz2)] {
            let mut options = Bag2Options::default();
            (options.modernize, options.compression) = (modernize, compression);
            let Ok((bytes, done)) = bag2(&log, &options) else {
                assert!(want.is_empty(), "{name}");
                continue;
            };
            assert!(read_bag2(&bytes) == want, "{name}");
            assert_eq!(done.messages, want.len() as u64, "{name}");
            assert!(bag2(&log, &options).unwrap().0 == bytes, "{name}: other bytes the second time");
        }
    }
}

/// Bags must also be readable with an independent crate.
#[test]
fn the_crate_rosbag_reads_every_message() {
    let folder = tempfile::tempdir().unwrap();
    for (name, log) in bags() {
        let Ok((bytes, _)) = bag2(&log, &Bag2Options::default()) else { continue };
        let path = folder.path().join("new.bag");
        std::fs::write(&path, &bytes).unwrap();
        let (mut topics, mut found) = (BTreeMap::new(), Vec::new());
        for record in RosBag::new(&path).unwrap().chunk_records() {
            let ChunkRecord::Chunk(chunk) = record.unwrap() else { continue };
            for message in chunk.messages() {
                match message.unwrap() {
                    MessageRecord::Connection(connection) => {
                        topics.insert(connection.id, connection.topic.to_owned());
                    }
                    MessageRecord::MessageData(message) => {
                        let time = i64::try_from(message.time).unwrap();
                        found.push((topics[&message.conn_id].clone(), time, message.data.to_vec()));
                    }
                }
            }
        }
        assert!(found == messages(&log), "{name}");
    }
}

#[test]
fn mcap_has_unchanged_payloads_and_publishers() {
    let mut undefined = 0;
    for (name, log) in bags() {
        let mut options = McapOptions::default();
        options.typed = false;
        let provenance = Provenance::new("log");
        let mut bytes = Vec::new();
        let all = Select::all();
        let done =
            rovelog_export::mcap::write(&log, &all, &options, &provenance, &mut bytes, &mut |_| ()).unwrap();
        let mut found = Vec::new();
        for message in MessageStream::new(&bytes).unwrap() {
            let message = message.unwrap();
            let metadata = &message.channel.metadata;
            assert_eq!(metadata["topic"], message.channel.topic);
            assert_eq!(message.channel.message_encoding, "ros1");
            if let Some(schema) = &message.channel.schema {
                assert_eq!((&*schema.encoding, metadata["md5sum"].len()), ("ros1msg", 32));
            } else {
                // For each topic without a definition, there must be a note and a channel with the
                // type name.
                let of_topic = |note: &String| note.starts_with(&format!("{}: ", message.channel.topic));
                assert!(done.notes.iter().any(of_topic) && metadata.contains_key("type"), "{name}");
                undefined += 1;
            }
            // Before version 2.0, a record either has both the latching flag and the caller id, or
            // neither.
            if reader(&log).version() != Version::V2_0 {
                assert_eq!(metadata.contains_key("latching"), metadata.contains_key("callerid"), "{name}");
            }
            let time = i64::try_from(message.log_time).unwrap();
            found.push((message.channel.topic.clone(), time, message.data.into_owned()));
        }
        // In MCAP, messages with the time 0 get a different time, so they are not compared.
        let same = messages_and(&log, true).into_iter().filter(|message| message.1 != 0);
        found.retain(|message| message.1 != 0);
        if name != "stamp-zero" {
            assert!(same.eq(found), "{name}");
        }
    }
    assert!(undefined > 0, "no bag with a topic without definition");
}

/// Decoder for CDR messages that were converted from ROS 1. It uses the ROS 1 schema, except that
/// headers have no field `seq`.
struct Cdr<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cdr<'_> {
    fn take(&mut self, len: usize, width: usize) -> &[u8] {
        self.at = self.at.next_multiple_of(width) + len;
        &self.bytes[self.at - len..self.at]
    }

    fn word(&mut self) -> u32 {
        u32_at(self.take(4, 4))
    }

    fn message(&mut self, fields: &[Field]) -> Value {
        if fields.is_empty() {
            assert_eq!(self.take(1, 1), [0], "one byte for nothing");
        }
        let header = fields.iter().map(|field| &*field.name).eq(["seq", "stamp", "frame_id"]);
        let field = |field: &Field| {
            let left_out = header && &*field.name == "seq";
            (field.name.clone(), if left_out { Value::Null } else { self.value(&field.ty) })
        };
        Value::Struct(fields.iter().map(field).collect())
    }

    fn value(&mut self, ty: &FieldType) -> Value {
        match ty {
            FieldType::Scalar(scalar) => {
                let mut wide = [0; 8];
                wide[..scalar.size()].copy_from_slice(self.take(scalar.size(), scalar.size()));
                let (bits, width) = (u64::from_le_bytes(wide), u32::try_from(8 * scalar.size()).unwrap());
                match scalar {
                    Scalar::Bool => Value::Bool(bits == 1),
                    Scalar::Float32 => Value::F32(f32::from_bits(u32_at(&wide))),
                    Scalar::Float64 => Value::F64(f64::from_bits(bits)),
                    Scalar::UInt8 | Scalar::UInt16 | Scalar::UInt32 | Scalar::UInt64 => {
                        Value::UInt(bits, u8::try_from(width).unwrap())
                    }
                    _ => Value::Int(
                        (bits << (64 - width)).cast_signed() >> (64 - width),
                        u8::try_from(width).unwrap(),
                    ),
                }
            }
            FieldType::Text => {
                let len = self.word() as usize;
                let text = self.take(len, 1).strip_suffix(&[0]).unwrap().to_vec();
                Value::Text(escape_bytes(&text))
            }
            FieldType::Struct(schema) => self.message(&schema.fields),
            FieldType::Time => {
                let (sec, nsec) = (self.word(), self.word());
                Value::record([("sec", Value::UInt(sec.into(), 32)), ("nsec", Value::UInt(nsec.into(), 32))])
            }
            FieldType::Duration => {
                let (sec, nsec) = (self.word().cast_signed(), self.word());
                Value::record([("sec", Value::Int(sec.into(), 32)), ("nsec", Value::Int(nsec.into(), 32))])
            }
            FieldType::Array(element, len) => Value::List((0..*len).map(|_| self.value(element)).collect()),
            FieldType::List(element) => {
                let len = self.word();
                Value::List((0..len).map(|_| self.value(element)).collect())
            }
            other => panic!("{other}"),
        }
    }
}

/// Removes the field `seq` from the headers in a value, because CDR messages do not contain it.
fn without_seq(value: Value) -> Value {
    match value {
        Value::List(items) => Value::List(items.into_iter().map(without_seq).collect()),
        Value::Struct(mut fields) => {
            let names: Vec<_> = fields.iter().map(|(name, _)| &**name).collect();
            if names == ["seq", "stamp", "frame_id"] {
                fields[0].1 = Value::Null;
            }
            Value::Struct(fields.into_iter().map(|(name, value)| (name, without_seq(value))).collect())
        }
        other => other,
    }
}

/// Returns whether the decoder supports a schema. Byte arrays are not supported, because their
/// length is not in the schema. Durations are not supported, because ROS 2 normalizes them.
fn is_plain(fields: &[Field]) -> bool {
    fn plain(ty: &FieldType) -> bool {
        match ty {
            FieldType::Bytes | FieldType::Duration => false,
            FieldType::Struct(schema) => is_plain(&schema.fields),
            FieldType::Array(element, _) | FieldType::List(element) => plain(element),
            _ => true,
        }
    }
    fields.iter().all(|field| plain(&field.ty))
}

#[test]
fn cdr_has_the_values_of_the_bag() {
    let mut compared = 0;
    for (name, log) in bags() {
        let (bytes, _) = ros2(&log);
        let mut theirs: BTreeMap<(String, u64), Vec<Vec<u8>>> = BTreeMap::new();
        for message in MessageStream::new(&bytes).unwrap() {
            let message = message.unwrap();
            let schema = message.channel.schema.as_ref().unwrap();
            assert_eq!((&*schema.encoding, &*message.channel.message_encoding), ("ros2msg", "cdr"));
            assert_eq!(schema.name.matches("/msg/").count(), 1, "{name}: {}", schema.name);
            assert!(message.data.starts_with(&[0, 1, 0, 0]));
            let key = (message.channel.topic.clone(), message.log_time);
            theirs.entry(key).or_default().push(message.data.into_owned());
        }
        for record in log.records(&Select::all()).map(Result::unwrap) {
            let (Some(schema), Ok(value)) = (&record.topic.schema, record.value()) else { continue };
            if !is_plain(&schema.fields) || value.get("raw").is_some() || record.topic.name.contains('#') {
                continue;
            }
            let time = u64::try_from(record.time.unwrap().nanos).unwrap();
            let Some(messages) = theirs.get_mut(&(record.topic.name.clone(), time)) else { continue };
            let bytes = messages.remove(0);
            let mut cdr = Cdr { bytes: &bytes[4..], at: 0 };
            let got = cdr.message(&schema.fields);
            assert_eq!(cdr.at, bytes.len() - 4, "{name} {}", record.topic.name);
            assert_eq!(got.to_json(), without_seq(value).to_json(), "{name} {}", record.topic.name);
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared}");
}

/// If a message is truncated at any byte, the decoder and the converter must both reject it.
#[test]
fn truncated_messages_are_rejected() {
    let log = rovelog::open(rovelog_testing::root().join("corpus/rosbag/types-nested.bag")).unwrap();
    let record =
        log.records(&Select::all()).map(Result::unwrap).max_by_key(|record| record.payload.len()).unwrap();
    let (ty, text) = (&record.topic.type_name, log.own(record.topic).unwrap().definition().unwrap());
    let mut bag = BagWriter::new(Cursor::new(Vec::new())).unwrap();
    let sum = &reader(&log).connections()[record.topic.id.index()].md5;
    let topic = bag.connect(b"/t", ty.as_bytes(), sum, text.as_bytes()).unwrap();
    for len in 0..=record.payload.len() {
        bag.message(topic, 1, 0, None, &record.payload[..len]).unwrap();
    }
    let cut =
        rovelog::from_bytes(bag.finish().unwrap().into_inner().into(), &ReadOptions::default()).unwrap();
    let decoded =
        cut.records(&Select::all()).filter(|record| record.as_ref().unwrap().value().is_ok()).count();
    let (_, done) = ros2(&cut);
    assert_eq!((done.messages, decoded), (1, 1));
    assert!(
        done.losses[0].why.starts_with(&format!("{} records", record.payload.len())),
        "{:?}",
        done.losses
    );
}

#[test]
fn values_that_cannot_be_represented_are_reported() {
    let of = |name: &str| rovelog::open(rovelog_testing::root().join("corpus/rosbag").join(name)).unwrap();
    let why = |(_, done): (Vec<u8>, Exported)| {
        done.losses.into_iter().map(|loss| loss.why).collect::<Vec<_>>().join(";")
    };
    assert!(why(bag2(&of("sum-differs.bag"), &Bag2Options::default()).unwrap()).contains("md5 sum"));
    assert!(bag2(&of("definition-missing.bag"), &Bag2Options::default()).is_err());
    assert!(why(ros2(&of("payload-surplus.bag"))).contains("after the last field"));
    assert!(why(ros2(&of("payload-short.bag"))).contains("cannot be decoded"));
    assert!(why(ros2(&of("types-scalars.bag"))).contains("31 bits"));
    let (_, done) = ros2(&of("types-nested.bag"));
    assert!(done.losses.is_empty() && done.notes[0].contains("Header.seq"), "{:?}", done.losses);
}
