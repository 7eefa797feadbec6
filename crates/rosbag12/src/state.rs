//! Summary of a scan, and the lines of `info` that only bags have.

use std::collections::BTreeMap;

use rovelog_core::text::{count, escape_bytes};
use rovelog_core::{DataSpan, Detail, LogInfo, Timestamp, Value};

use crate::definitions::Source;
use crate::diagnostics as rules;
use crate::scan::Scanner;
use crate::sections::{IndexState, Section};
use crate::tables::Connection;
use crate::v2::wire::{Chunk, ChunkInfo, Connection as Connection2};
use crate::version::Version;
use crate::wire::{BagHeader, Data, Definition, Index};

/// By connection: latched messages, and messages by publisher.
type Publishers = BTreeMap<u32, (u64, BTreeMap<String, u64>)>;

/// Sections that `info` lists one by one; all are counted.
const SECTIONS_LISTED: usize = 1000;

/// What `info` lists of a connection.
const CONNECTION: [&str; 7] = ["topic", "type", "md5", "definition", "md5_state", "latched", "callerids"];

impl Scanner {
    /// Returns the summary of what was passed of a file of `size` bytes.
    pub(crate) fn info(&self, size: u64) -> LogInfo {
        let mut info = LogInfo::new(self.version.name(), size);
        info.set_state(&self.diagnostics, &rules::CUT);
        let time = |nanos| Timestamp::new(nanos, self.tables.clock);
        let unread = self.v2.as_ref().and_then(|state| state.unread_span);
        let ends = self.tables.connections.iter().filter_map(Connection::span).map(|(_, max)| max);
        info.start = self.starts().into_iter().chain(unread.map(|(start, _)| start)).min().map(time);
        info.end = ends.chain(unread.map(|(_, end)| end)).max().map(time);
        info.data.clone_from(&self.data);
        info.records = self.tables.connections.iter().map(|c| c.stats.count).sum();
        info.details = self.details();
        info
    }

    /// Returns where the recording starts. Stamps of 0 come before the clock of a simulation runs,
    /// and say nothing about when that was.
    fn starts(&self) -> Option<i64> {
        let connections = || self.tables.connections.iter();
        let above_0 = connections().filter_map(|c| c.stats.min_above_0).min();
        above_0.or_else(|| connections().filter_map(Connection::span).map(|(min, _)| min).min())
    }

    /// Finds the span of the data, when all of the bag was scanned, and notes what is outside of
    /// it.
    pub(crate) fn settle_times(&mut self) {
        let mut times: Vec<_> = self.tables.connections.iter().map(|c| c.stats.times.intervals()).collect();
        if self.starts() > Some(0) {
            for topic in &mut times {
                topic.retain(|interval| interval.last > 0);
            }
        }
        self.data = DataSpan::of(&times, None, self.tables.clock);
        if let Some(data) = &self.data {
            data.settle(&times, &mut self.tables.topics, &mut self.diagnostics);
        }
    }

    fn details(&self) -> Vec<Detail> {
        let mut details = vec![Detail::hidden("version_line", Value::Text(self.line.text.clone()))];
        if matches!(self.version, Version::V1_2 | Version::V2_0) {
            details.push(self.index_detail());
        }
        details.extend(self.v2.as_ref().into_iter().flat_map(|state| state.details()));
        if self.sections.len() > 1 {
            let offsets = self.sections.iter().take(SECTIONS_LISTED);
            let offsets = offsets.map(|section| Value::count(section.offset)).collect();
            details.push(Detail::new(
                "sections",
                format!("{} bags in one file", self.sections.len()),
                Value::List(offsets),
            ));
            details.push(Detail::hidden("section_count", Value::count(self.sections.len() as u64)));
        }
        details.extend(self.definitions_detail());
        let publishers = self.publishers();
        details.extend(self.publishers_detail(&publishers));
        if self.going_back > 0 {
            let text = format!("{} earlier than the one before", count(self.going_back, "message"));
            details.push(Detail::new("order", text, Value::count(self.going_back)));
        }
        let ops = (0..=255u8).zip(*self.ops).filter(|(_, count)| *count > 0);
        let is_chunked = self.v2.is_some();
        let ops = ops.map(|(op, count)| (op_name(op, is_chunked), Value::count(count)));
        details.push(Detail::hidden("records_by_op", Value::record(ops)));
        let connections = (0..self.tables.topics.len()).zip(0u32..);
        let connections = connections.map(|(n, id)| self.connection(n, publishers.get(&id)));
        details.push(Detail::hidden("connections", Value::table(CONNECTION, connections)));
        details
    }

    fn index_detail(&self) -> Detail {
        let is_whole = self.diagnostics.unread() == 0;
        let state = |index: IndexState| match index {
            IndexState::Believed if !is_whole => "believed: the chunks were not read",
            IndexState::Exact => "intact",
            IndexState::Differs => "differs from the messages",
            IndexState::Absent => "absent",
            IndexState::Empty => "empty",
            IndexState::Encrypted => "not compared: the bag is encrypted",
            IndexState::Believed => {
                "agrees with itself; messages were not compared with it (rovelog check does)"
            }
        };
        let mut counts: Vec<(&str, u64)> = Vec::new();
        for word in self.sections.iter().map(|section| state(section.index)) {
            match counts.iter_mut().find(|(known, _)| *known == word) {
                Some((_, count)) => *count += 1,
                None => counts.push((word, 1)),
            }
        }
        let text = match counts[..] {
            [(word, _)] => word.to_owned(),
            _ => counts.iter().map(|(word, count)| format!("{count} {word}")).collect::<Vec<_>>().join(", "),
        };
        let section = |section: &Section| {
            let topics = section.index_topics.iter().map(|topic| {
                let (entries, in_scan) = (Value::count(topic.entries), Value::count(topic.in_scan));
                [Value::Text(escape_bytes(&topic.topic)), entries, in_scan, Value::Bool(topic.exact)]
            });
            let number = |number: Option<u64>| number.map_or(Value::Null, Value::count);
            Value::record([
                ("offset", Value::count(section.offset)),
                ("state", Value::Text(section.index.name().to_owned())),
                ("index_pos", number(section.index_pos)),
                ("raw_padding", number(section.raw_padding)),
                ("topics", Value::table(["topic", "entries", "in_scan", "exact"], topics)),
            ])
        };
        Detail::new(
            "index",
            text,
            Value::List(self.sections.iter().take(SECTIONS_LISTED).map(section).collect()),
        )
    }

    /// Returns how many definitions agree with their sums, and where those come from that are not
    /// the topic's own.
    fn definitions_detail(&self) -> Option<Detail> {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for connection in self.tables.connections.iter().filter(|c| c.stats.count > 0) {
            let word = match connection.definition() {
                None => "missing".to_owned(),
                Some(definition) => {
                    let source = match definition.source {
                        Source::Topic => String::new(),
                        source => format!(" from {}", source.name()),
                    };
                    format!("md5 {}{source}", definition.sum.name())
                }
            };
            *counts.entry(word).or_default() += 1;
        }
        let text: Vec<_> = counts.iter().map(|(word, count)| format!("{count} {word}")).collect();
        let value = Value::record(counts.iter().map(|(word, count)| (word.as_str(), Value::count(*count))));
        (!counts.is_empty()).then(|| Detail::new("definitions", text.join(", "), value))
    }

    /// Returns the latched messages and the messages by publisher, of each connection that names
    /// publishers.
    fn publishers(&self) -> Publishers {
        let mut topics = Publishers::new();
        for origin in self.v2.iter().flat_map(|state| &state.origins).filter(|origin| origin.count > 0) {
            let publisher = &origin.publisher;
            if publisher.latching || publisher.callerid.is_some() {
                let entry = topics.entry(origin.connection).or_default();
                entry.0 += if publisher.latching { origin.count } else { 0 };
                if let Some(name) = &publisher.callerid {
                    *entry.1.entry(name.clone()).or_default() += origin.count;
                }
            }
        }
        for shape in self.tables.shapes.list.iter().filter(|s| s.latching || s.callerid.is_some()) {
            let entry = topics.entry(shape.connection).or_default();
            entry.0 += if shape.latching { shape.count } else { 0 };
            if let Some(name) = shape.callerid.and_then(|id| self.tables.callerids.get(id as usize)) {
                *entry.1.entry(escape_bytes(name)).or_default() += shape.count;
            }
        }
        topics
    }

    fn publishers_detail(&self, topics: &Publishers) -> Option<Detail> {
        let name = |connection: u32| self.tables.topics[connection as usize].name.clone();
        let lines: Vec<_> = topics
            .iter()
            // Of V2.0 bags most connections name their publisher; of those before only the latched ones.
            .filter(|(_, (latched, _))| *latched > 0)
            .map(|(connection, (latched, callers))| {
                let callers: Vec<_> =
                    callers.iter().map(|(name, count)| format!("{name} ({count})")).collect();
                format!("{}: {}, by {}", name(*connection), count(*latched, "message"), callers.join(", "))
            })
            .collect();
        let value = Value::record(topics.iter().map(|(connection, (latched, callers))| {
            let callers = callers.iter().map(|(name, count)| (name.as_str(), Value::count(*count)));
            let value =
                Value::record([("latched", Value::count(*latched)), ("callerids", Value::record(callers))]);
            (name(*connection), value)
        }));
        (!lines.is_empty()).then(|| Detail::new("latched", lines.join("\n"), value))
    }

    fn connection(&self, number: usize, publishers: Option<&(u64, BTreeMap<String, u64>)>) -> [Value; 7] {
        let (topic, connection) = (&self.tables.topics[number], &self.tables.connections[number]);
        let text = |text: &str| Value::Text(text.to_owned());
        let definition = connection.definition();
        let callers = publishers.into_iter().flat_map(|(_, callers)| callers);
        let callers = callers.map(|(name, count)| (name.as_str(), Value::count(*count)));
        [
            Value::Text(topic.name.clone()),
            Value::Text(escape_bytes(&connection.ty)),
            Value::Text(escape_bytes(&connection.md5)),
            definition.map_or(Value::Null, |d| text(d.source.name())),
            definition.map_or(Value::Null, |d| text(d.sum.name())),
            Value::count(connection.latched()),
            Value::record(callers),
        ]
    }
}

/// Returns the word for a kind of record.
fn op_name(number: u8, is_chunked: bool) -> String {
    match number {
        Chunk::OP if is_chunked => "chunk".to_owned(),
        ChunkInfo::OP if is_chunked => "chunk_info".to_owned(),
        Connection2::OP if is_chunked => "connection".to_owned(),
        Definition::OP => "definition".to_owned(),
        Data::OP => "message".to_owned(),
        BagHeader::OP => "bag_header".to_owned(),
        Index::OP => "index".to_owned(),
        number => format!("op_{number}"),
    }
}
