//! Bags made of bags: what recovery, slicing, reindexing and merging write is put together here.
//!
//! Records are copied byte for byte; new are the bag header, the index, and definitions that a
//! topic lacks in front of its first message. The layout is resolved before the first byte is
//! written, so that the output need not seek.

use std::collections::HashSet;
use std::io::Write;
use std::ops::Range;

use rovelog_core::splice::Splice;
use rovelog_core::wire::U32Le;

use crate::definitions::Source;
use crate::diagnostics as rules;
use crate::error::BagError;
use crate::index::{Message, Record};
use crate::msg::SumMatch;
use crate::reader::BagReader;
use crate::tables::Connection;
use crate::validate::LEN;
use crate::version::Version;
use crate::wire::{
    self, BAG_HEADER_SIZE, Data, Definition, Header, VERSION_LINE, bag_header_record, damaged_op,
};
use crate::writer::IndexBuilder;

/// Where the first record behind the bag header starts.
const FIRST_RECORD: u64 = VERSION_LINE.len() as u64 + 2 * LEN + BAG_HEADER_SIZE as u64;

/// A bag in the making.
#[derive(Debug)]
pub(crate) struct Output<'a> {
    sources: Vec<&'a BagReader>,
    /// Whether records of a source have ops that are damaged.
    op_damaged: Vec<bool>,
    bytes: Splice<'a>,
    index: IndexBuilder,
    /// Connections whose definition is in the output; by source and number those that were looked
    /// up.
    defined: HashSet<(Vec<u8>, Vec<u8>, Vec<u8>)>,
    met: Vec<Vec<bool>>,
    pub(crate) records: u64,
    /// Definition records of each source by connection, where there is one without data.
    definitions: Vec<Vec<Option<Range<u64>>>>,
}

impl<'a> Output<'a> {
    pub(crate) fn new(sources: &[&'a BagReader]) -> Self {
        let definitions = sources.iter().map(|source| definition_records(source)).collect();
        let op_damaged =
            |bag: &&BagReader| bag.scanner.diagnostics.counts().contains_key(rules::OP_DAMAGED.code);
        Self {
            sources: sources.to_vec(),
            op_damaged: sources.iter().map(op_damaged).collect(),
            bytes: Splice::new(sources.iter().map(|source| &*source.bytes)),
            index: IndexBuilder::default(),
            defined: HashSet::new(),
            met: sources.iter().map(|source| vec![false; source.connections().len()]).collect(),
            records: 0,
            definitions,
        }
    }

    /// Returns the offset of what is added next.
    fn at(&self) -> u64 {
        FIRST_RECORD + self.bytes.len()
    }

    /// Adds a record that is no message: definitions of topics without messages, and unknown kinds.
    /// What the output has of its own is left out.
    pub(crate) fn other(&mut self, source: usize, record: &Record) {
        let bag = self.sources[source];
        let range = record.at..record.end;
        match bag.wire_record(record).map(|record| record.header) {
            None | Some(Header::BagHeader(_) | Header::Index(_)) => {}
            Some(Header::Definition(Definition { topic, ty, md5, .. })) => {
                // Those of topics with messages are in front of the first one.
                let known = bag.scanner.tables.known(topic, ty, md5);
                if known.is_some_and(|connection| connection.stats.count == 0)
                    && self.defined.insert((topic.to_vec(), ty.to_vec(), md5.to_vec()))
                {
                    self.copy(source, range);
                }
            }
            Some(_) => self.copy(source, range),
        }
    }

    /// Adds a record as it is, but an op that is damaged as it is meant: other readers refuse it.
    fn copy(&mut self, source: usize, range: Range<u64>) {
        let bag = self.sources[source];
        let bytes = bag.bytes_of(&range).filter(|_| self.op_damaged[source]);
        let Some((at, op)) = bytes.and_then(damaged_op) else { return self.bytes.copy(source, range) };
        let at = range.start + at as u64;
        self.bytes.copy(source, range.start..at);
        self.bytes.make(&[op]);
        self.bytes.copy(source, at + 1..range.end);
    }

    /// Adds a message.
    pub(crate) fn message(&mut self, source: usize, record: &Record, message: &Message) {
        let bag = self.sources[source];
        let connection = &bag.connections()[message.connection as usize];
        let definition_at = self.at();
        if !std::mem::replace(&mut self.met[source][message.connection as usize], true) {
            self.define(source, message.connection as usize);
        }
        let at = self.at();
        let range = record.at..record.end;
        let stamp = (message.sec, message.nsec);
        self.index.message(&connection.topic, &connection.ty, stamp, definition_at, at);
        self.records += 1;
        if bag.version() == Version::V1_2 {
            self.copy(source, range);
        } else {
            let header = Header::Data(Data {
                topic: &connection.topic,
                md5: &written_sum(bag, connection),
                ty: &connection.ty,
                sec: &U32Le::new(message.sec),
                nsec: &U32Le::new(message.nsec),
                latching: None,
                callerid: None,
            });
            let len = u32::try_from(message.len).expect("lengths in a bag have 32 bits");
            self.bytes.make(&header.to_head(len));
            self.bytes.copy(source, record.end - message.len as u64..record.end);
        }
    }

    /// Puts the definition of a connection in front of its first message, unless the output has it.
    fn define(&mut self, source: usize, number: usize) {
        let bag = self.sources[source];
        let connection = &bag.connections()[number];
        let md5 = written_sum(bag, connection);
        if self.defined.insert((connection.topic.clone(), connection.ty.clone(), md5.clone())) {
            match self.definitions[source][number].clone() {
                Some(range) => self.copy(source, range),
                None => self.bytes.make(&made_definition(connection, &md5)),
            }
        }
    }

    /// Topics with messages.
    pub(crate) fn topics(&self) -> usize {
        self.index.topics()
    }

    /// Writes the bag; how many bytes it has.
    pub(crate) fn write(self, out: &mut dyn Write) -> Result<u64, BagError> {
        out.write_all(VERSION_LINE)?;
        out.write_all(&bag_header_record(self.at()))?;
        self.bytes.write(out)?;
        let index = self.index.write(out)?;
        out.flush()?;
        Ok(self.at() + index)
    }
}

/// Returns the first definition record of each connection, where it has no data: readers lose their
/// place behind it.
fn definition_records(bag: &BagReader) -> Vec<Option<Range<u64>>> {
    let mut found = vec![None; bag.connections().len()];
    if bag.version() != Version::V1_2 || bag.records_of(Definition::OP) == 0 {
        return found;
    }
    for record in bag.cursor().filter(|record| record.message.is_none()) {
        if let Some(wire::Record { header: Header::Definition(header), data: [] }) = bag.wire_record(&record)
            && let Some(number) = bag.scanner.tables.number(header.topic, header.ty, header.md5)
        {
            found[number as usize].get_or_insert(record.at..record.end);
        }
    }
    found
}

/// Returns the md5 sum under which a connection is written: bags of before V1.2 may say `*`, which
/// readers refuse.
fn written_sum(bag: &BagReader, connection: &Connection) -> Vec<u8> {
    match connection.definition() {
        Some(definition) if bag.version() != Version::V1_2 && definition.sum == SumMatch::Wildcard => {
            definition.types.sum_v2().0.into_bytes()
        }
        _ => connection.md5.clone(),
    }
}

/// Returns a definition for a connection that has no record of its own. A guess is not written down
/// as the truth.
fn made_definition(connection: &Connection, md5: &[u8]) -> Vec<u8> {
    let def = match connection.definition() {
        Some(definition) if definition.sum == SumMatch::No => Vec::new(),
        Some(definition) if definition.source == Source::Catalogue => definition.types.full_text(),
        Some(definition) => definition.text.to_vec(),
        None => Vec::new(),
    };
    let (topic, ty) = (&*connection.topic, &*connection.ty);
    Header::Definition(Definition { topic, md5, ty, def: &def }).to_head(0)
}
