//! Composes a V1.2 bag for recovery, slicing, reindexing and merging.
//!
//! Records are copied byte for byte. The bag header and the index are new. If a topic has no
//! definition before its first message, a new definition is written there. All offsets are computed
//! before the first byte is written, so the output need not support seeking.

use std::collections::HashSet;
use std::io::Write;
use std::ops::Range;

use rovelog_core::internal::splice::Splice;
use rovelog_core::internal::wire::U32Le;

use crate::definitions::Source;
use crate::diagnostics as rules;
use crate::error::BagError;
use crate::index::RecordRef;
use crate::message::MessageRef;
use crate::msg::SumMatch;
use crate::reader::BagReader;
use crate::tables::{Connection, ConnectionName};
use crate::validate::LEN;
use crate::version::Version;
use crate::wire::{
    self, BAG_HEADER_SIZE, Data, Definition, Header, VERSION_LINE, bag_header_record, damaged_op,
};
use crate::writer::IndexBuilder;

/// Offset in the new bag of the first record after the bag header.
const FIRST_RECORD: u64 = VERSION_LINE.len() as u64 + 2 * LEN + BAG_HEADER_SIZE as u64;

/// A V1.2 bag that is composed before it is written.
#[derive(Debug)]
pub(crate) struct Output<'a> {
    /// Bags from which records are copied.
    sources: Vec<&'a BagReader>,
    /// By index of the source bag, true if the op (record type) of any record is damaged.
    op_damaged: Vec<bool>,
    /// Content of the new bag after the bag header. It consists of ranges of the source bags and of
    /// new bytes.
    bytes: Splice<'a>,
    /// Index of the new bag.
    index: IndexBuilder,
    /// Topic, type and md5 sum of each connection whose definition is already in the new bag.
    defined: HashSet<ConnectionName>,
    /// By source bag and connection, true if the definition of the connection is already in the new
    /// bag or is not needed.
    is_defined: Vec<Vec<bool>>,
    /// Number of messages in the new bag.
    pub(crate) records: u64,
    /// By source bag and connection, the range of a definition record without data. `None` if the
    /// source bag has no such record.
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
            is_defined: sources.iter().map(|source| vec![false; source.connections().len()]).collect(),
            records: 0,
            definitions,
        }
    }

    /// Returns the offset in the new bag of the next record.
    fn at(&self) -> u64 {
        FIRST_RECORD + self.bytes.len()
    }

    /// Adds a record that is not a message. Definitions of topics without messages and records of
    /// undefined op (record type) are copied. All other records are omitted, because new records
    /// replace them.
    pub(crate) fn other(&mut self, source: usize, record: &RecordRef) {
        let bag = self.sources[source];
        let range = record.at..record.end;
        match bag.wire_record(record).map(|record| record.header) {
            None | Some(Header::BagHeader(_) | Header::Index(_)) => {}
            Some(Header::Definition(Definition { topic, ty, md5, .. })) => {
                // The definition of a topic with messages is not copied here, because it is written
                // before the first message of the topic.
                if let Some(number) = bag.scanner.tables.number(topic, ty, md5)
                    && bag.connections()[number as usize].stats.count == 0
                    && self.defined.insert(ConnectionName::new(topic, ty, md5))
                {
                    self.copy(source, range);
                }
            }
            Some(_) => self.copy(source, range),
        }
    }

    /// Copies a record. If the op (record type) of the record is damaged, the right op is written
    /// instead, because other readers refuse damaged ops.
    fn copy(&mut self, source: usize, range: Range<u64>) {
        let bag = self.sources[source];
        let bytes = bag.bytes_of(&range).filter(|_| self.op_damaged[source]);
        let Some((at, op)) = bytes.and_then(damaged_op) else { return self.bytes.copy(source, range) };
        let at = range.start + at as u64;
        self.bytes.copy(source, range.start..at);
        self.bytes.append(&[op]);
        self.bytes.copy(source, at + 1..range.end);
    }

    /// Adds a message, and before it the definition of its connection if necessary.
    pub(crate) fn message(&mut self, source: usize, message: &MessageRef) {
        let bag = self.sources[source];
        let connection = &bag.connections()[message.connection as usize];
        let definition_at = self.at();
        if !std::mem::replace(&mut self.is_defined[source][message.connection as usize], true) {
            self.define(source, message.connection as usize);
        }
        let at = self.at();
        let stamp = (message.sec, message.nsec);
        self.index.message(&connection.topic, &connection.ty, stamp, definition_at, at);
        self.records += 1;
        if bag.version() == Version::V1_2 {
            self.copy(source, message.at..message.end());
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
            self.bytes.append(&header.to_head(message.payload_len));
            self.bytes.copy(source, message.payload_at()..message.end());
        }
    }

    /// Adds the definitions of the connections that have no messages.
    pub(super) fn rest(&mut self) {
        for source in 0..self.sources.len() {
            for number in 0..self.definitions[source].len() {
                let is_unused =
                    self.definitions[source][number].is_some() && !self.is_defined[source][number];
                if is_unused {
                    self.define(source, number);
                }
            }
        }
    }

    /// Adds the definition of a connection, unless the new bag already has this definition.
    fn define(&mut self, source: usize, number: usize) {
        let bag = self.sources[source];
        let connection = &bag.connections()[number];
        let md5 = written_sum(bag, connection);
        if self.defined.insert(ConnectionName::new(&connection.topic, &connection.ty, &md5)) {
            match self.definitions[source][number].clone() {
                Some(range) if connection.borrowed_definition().is_none() => self.copy(source, range),
                _ => self.bytes.append(&made_definition(connection, &md5)),
            }
        }
    }

    /// Returns the number of topics that have messages in the new bag.
    pub(crate) fn topics(&self) -> usize {
        self.index.topics()
    }

    /// Writes the bag and returns its size in bytes.
    pub(crate) fn write(self, out: &mut dyn Write) -> Result<u64, BagError> {
        out.write_all(VERSION_LINE)?;
        out.write_all(&bag_header_record(self.at()))?;
        self.bytes.write(out)?;
        let index = self.index.write(out)?;
        out.flush()?;
        Ok(self.at() + index)
    }
}

/// Returns, by connection, the range of the first definition record. Definition records with data
/// are ignored, because other readers do not skip the data.
fn definition_records(bag: &BagReader) -> Vec<Option<Range<u64>>> {
    let mut found = vec![None; bag.connections().len()];
    if bag.version() != Version::V1_2 || bag.records_of(Definition::OP) == 0 {
        return found;
    }
    for record in bag.full_cursor().filter(|record| record.message.is_none()) {
        if let Some(wire::Record { header: Header::Definition(header), data: [] }) = bag.wire_record(&record)
            && let Some(number) = bag.scanner.tables.number(header.topic, header.ty, header.md5)
        {
            found[number as usize].get_or_insert(record.at..record.end);
        }
    }
    found
}

/// Returns the md5 sum that is written for the messages of a connection. Bags before V1.2 may
/// contain `*` instead of an md5 sum, and other readers refuse `*`.
fn written_sum(bag: &BagReader, connection: &Connection) -> Vec<u8> {
    match connection.definition() {
        Some(definition) if bag.version() != Version::V1_2 && definition.sum == SumMatch::Wildcard => {
            definition.types.sum_v2().0.into_bytes()
        }
        _ => connection.md5.clone(),
    }
}

/// Returns a new definition record for a connection that has no usable one. If the definition is
/// only a guess, the record has an empty text.
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
