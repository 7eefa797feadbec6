//! Builds the summary of a bag that `info` shows.

use std::collections::BTreeMap;

use rovelog_core::internal::text::{count, escape_bytes};
use rovelog_core::{DataSpan, Detail, LogInfo, Timestamp, Topic, Value};

use crate::definitions::Source;
use crate::diagnostics as rules;
use crate::message::Publisher;
use crate::scan::Scanner;
use crate::sections::{IndexState, Section};
use crate::tables::Connection;
use crate::v2::wire::{Chunk, ChunkInfo, Connection as Connection2};
use crate::version::Version;
use crate::wire::{BagHeader, Data, Definition, Index};

/// Numbers of messages by publisher, for one connection.
#[derive(Debug, Default)]
pub(crate) struct Publishers {
    /// Number of messages from latching publishers. A latching publisher sends its last message to
    /// every new subscriber.
    latched: u64,
    /// Map from the node name of a publisher to the number of its messages.
    pub(crate) by_name: BTreeMap<String, u64>,
}

/// Maximum number of sections (bags within the file) that `info` lists. All sections are counted.
const SECTIONS_LISTED: usize = 1000;

/// Columns of the table of connections in `info`.
const CONNECTION: [&str; 7] = ["topic", "type", "md5", "definition", "md5_state", "latched", "callerids"];

impl Scanner {
    /// Returns the summary of a bag. `size` is the size of the file in bytes.
    pub(crate) fn info(&self, size: u64) -> LogInfo {
        let mut info = LogInfo::new(self.line.version.name(), size);
        info.set_state(&self.diagnostics, &rules::CUT);
        let time = |nanos| Timestamp::new(nanos, self.tables.clock);
        let unread = self.content.unread_span();
        let ends = self.tables.connections.iter().filter_map(Connection::span).map(|(_, max)| max);
        info.start = self.starts().into_iter().chain(unread.map(|span| span.first)).min().map(time);
        info.end = ends.chain(unread.map(|span| span.last)).max().map(time);
        info.data.clone_from(&self.data);
        info.records = self.tables.connections.iter().map(|c| c.stats.count).sum();
        info.details = self.details();
        info
    }

    /// Returns the start time of the recording. Times of 0 are ignored if later times exist,
    /// because messages have time 0 until the clock of a simulation starts.
    fn starts(&self) -> Option<i64> {
        let connections = || self.tables.connections.iter();
        let above_0 = connections().filter_map(|c| c.stats.times.min_above_0).min();
        above_0.or_else(|| connections().filter_map(Connection::span).map(|(min, _)| min).min())
    }

    /// Computes the time span of the data, and reports messages outside of this time span.
    pub(crate) fn finish_times(&mut self) {
        let mut times: Vec<_> =
            self.tables.connections.iter().map(|c| c.stats.times.intervals.intervals()).collect();
        // Messages have time 0 until the clock of a simulation starts. Such times are not part of
        // the time span.
        if self.starts() > Some(0) {
            for topic in &mut times {
                topic.retain(|interval| interval.last > 0);
            }
        }
        self.data = DataSpan::of(&times, None, self.tables.clock);
        if let Some(data) = &self.data {
            data.apply_to(&times, &mut self.tables.topics, &mut self.diagnostics);
        }
    }

    fn details(&self) -> Vec<Detail> {
        let mut details = vec![Detail::hidden("version_line", Value::Text(self.line.text.clone()))];
        if matches!(self.line.version, Version::V1_2 | Version::V2_0) {
            details.push(self.index_detail());
        }
        details.extend(self.content.details());
        if self.sections.len() > 1 {
            let offsets = self.sections.iter().take(SECTIONS_LISTED);
            let offsets = offsets.map(|section| Value::count(section.offset)).collect();
            let text = format!("{} bags in one file", self.sections.len());
            details.push(Detail::new("sections", text, Value::List(offsets)));
            details.push(Detail::hidden("section_count", Value::count(self.sections.len() as u64)));
        }
        details.extend(self.definitions_detail());
        let publishers = self.publishers(|_| true);
        details.extend(self.publishers_detail(&publishers));
        if self.order.backward > 0 {
            let text = format!("{} earlier than the message before", count(self.order.backward, "message"));
            details.push(Detail::new("order", text, Value::count(self.order.backward)));
        }
        let ops = (0..=255u8).zip(*self.ops).filter(|(_, count)| *count > 0);
        let is_chunked = self.line.version == Version::V2_0;
        let counts = ops.map(|(op, count)| (op_name(op, is_chunked), Value::count(count)));
        details.push(Detail::hidden("records_by_op", Value::record(counts)));
        let topics = self.tables.topics.iter();
        let connections = topics.map(|topic| self.connection(topic, publishers.get(&topic.id.0)));
        details.push(Detail::hidden("connections", Value::table(CONNECTION, connections)));
        details
    }

    fn index_detail(&self) -> Detail {
        let is_whole = self.diagnostics.unread() == 0;
        let state = |index: IndexState| match index {
            IndexState::Believed if !is_whole => "trusted without a check, because the chunks were not read",
            IndexState::Exact => "intact",
            IndexState::Differs => "differs from the messages",
            IndexState::Absent => "absent",
            IndexState::Empty => "empty",
            IndexState::Encrypted => "not compared, because the bag is encrypted",
            IndexState::Believed => {
                "consistent, but not compared with the messages (rovelog check compares it)"
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
        let sections = self.sections.iter().take(SECTIONS_LISTED).map(section).collect();
        Detail::new("index", text, Value::List(sections))
    }

    /// Returns the number of definitions that match their md5 sum, and for all other definitions
    /// their number by source.
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

    /// Returns the number of messages by publisher, for each selected connection whose messages
    /// name publishers.
    pub(crate) fn publishers(&self, is_selected: impl Fn(u32) -> bool) -> BTreeMap<u32, Publishers> {
        let mut counts: BTreeMap<u32, Publishers> = BTreeMap::new();
        let mut add = |connection: u32, Publisher { latching, callerid }: &Publisher, count: u64| {
            if (*latching || callerid.is_some()) && is_selected(connection) {
                let publishers = counts.entry(connection).or_default();
                publishers.latched += if *latching { count } else { 0 };
                if let Some(name) = callerid {
                    *publishers.by_name.entry(name.clone()).or_default() += count;
                }
            }
        };
        for origin in self.content.origins.iter().filter(|origin| origin.count > 0) {
            add(origin.connection, &origin.publisher, origin.count);
        }
        for shape in &self.tables.shapes.list {
            add(shape.connection, &shape.publisher, shape.count);
        }
        counts
    }

    fn publishers_detail(&self, topics: &BTreeMap<u32, Publishers>) -> Option<Detail> {
        let (mut lines, mut values) = (Vec::new(), Vec::new());
        for (connection, Publishers { latched, by_name }) in topics {
            let topic = &self.tables.topics[*connection as usize].name;
            // In V2.0, most connections name a publisher, so only topics with latched messages are
            // listed. Before V2.0, only latched messages name a publisher.
            if *latched > 0 {
                let callers = by_name.iter().map(|(name, count)| format!("{name} ({count})"));
                let callers = callers.collect::<Vec<_>>().join(", ");
                lines.push(format!("{topic}: {}, by {callers}", count(*latched, "message")));
            }
            let callers = by_name.iter().map(|(name, count)| (name.as_str(), Value::count(*count)));
            let value = [("latched", Value::count(*latched)), ("callerids", Value::record(callers))];
            values.push((topic.as_str(), Value::record(value)));
        }
        (!lines.is_empty()).then(|| Detail::new("latched", lines.join("\n"), Value::record(values)))
    }

    fn connection(&self, topic: &Topic, publishers: Option<&Publishers>) -> [Value; 7] {
        let connection = &self.tables.connections[topic.id.index()];
        let text = |text: &str| Value::Text(text.to_owned());
        let definition = connection.definition();
        let callers = publishers.into_iter().flat_map(|publishers| &publishers.by_name);
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

/// Returns the name of the record type with op `number`.
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
