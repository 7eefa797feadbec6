//! Bags made of bags: what recovery, slicing, reindexing and merging write is put together here.
//!
//! Records are copied byte for byte; new are the bag header, the index, and definitions that a topic lacks
//! in front of its first message. The layout is settled before the first byte is written, so that the output
//! need not seek.

use std::collections::HashSet;
use std::io::Write;
use std::ops::Range;

use crate::definitions::Source;
use crate::error::BagError;
use crate::header::HeaderRef;
use crate::index::{Message, Record};
use crate::msg::SumMatch;
use crate::reader::{BagReader, usize_of};
use crate::tables::Connection;
use crate::version::Version;
use crate::wire::{BAG_HEADER_SIZE, Data, Definition, Header, VERSION_LINE, bag_header_record, op};
use crate::writer::IndexBuilder;

/// A part of the output.
#[derive(Debug)]
enum Piece {
    /// Bytes of one of the sources.
    Copied(usize, Range<usize>),
    Made(Vec<u8>),
}

/// A bag in the making.
#[derive(Debug)]
pub(crate) struct Output<'a> {
    sources: Vec<&'a BagReader>,
    pieces: Vec<Piece>,
    at: u64,
    index: IndexBuilder,
    /// Connections whose definition stands in the output; by source and number those that were looked up.
    defined: HashSet<(Vec<u8>, Vec<u8>, Vec<u8>)>,
    met: Vec<Vec<bool>>,
    pub(crate) records: u64,
    /// Definition records of each source by connection, where there is one without data.
    definitions: Vec<Vec<Option<Range<usize>>>>,
}

impl<'a> Output<'a> {
    pub(crate) fn new(sources: &[&'a BagReader]) -> Self {
        let definitions = sources.iter().map(|source| definition_records(source)).collect();
        Self {
            sources: sources.to_vec(),
            pieces: Vec::new(),
            at: VERSION_LINE.len() as u64 + 8 + u64::from(BAG_HEADER_SIZE),
            index: IndexBuilder::default(),
            defined: HashSet::new(),
            met: sources.iter().map(|source| vec![false; source.connections().len()]).collect(),
            records: 0,
            definitions,
        }
    }

    fn copy(&mut self, source: usize, range: Range<usize>) {
        self.at += range.len() as u64;
        match self.pieces.last_mut() {
            Some(Piece::Copied(last, known)) if *last == source && known.end == range.start => {
                known.end = range.end;
            }
            _ => self.pieces.push(Piece::Copied(source, range)),
        }
    }

    fn make(&mut self, bytes: Vec<u8>) {
        self.at += bytes.len() as u64;
        match self.pieces.last_mut() {
            Some(Piece::Made(last)) => last.extend(bytes),
            _ => self.pieces.push(Piece::Made(bytes)),
        }
    }

    /// Adds a record that is no message: definitions of topics without messages, and unknown kinds. What the
    /// output has of its own is left out.
    pub(crate) fn other(&mut self, source: usize, record: &Record) {
        let bag = self.sources[source];
        let range = usize_of(record.at)..usize_of(record.end);
        let bytes = &bag.bytes[range.clone()];
        let Some(header) = header_of(bytes) else { return };
        match header.op {
            op::BAG_HEADER | op::INDEX => {}
            op::DEFINITION => {
                // Those of topics with messages stand in front of the first one.
                let key = |part: Option<&[u8]>| part.unwrap_or_default().to_vec();
                let key = (key(header.topic), key(header.ty), key(header.md5));
                let known = bag.walk.tables.known(&key.0, &key.1, &key.2);
                if known.is_some_and(|connection| connection.stats.count == 0) && self.defined.insert(key) {
                    self.copy(source, range);
                }
            }
            _ => self.copy(source, range),
        }
    }

    /// Adds a message.
    pub(crate) fn message(&mut self, source: usize, record: &Record, message: &Message) {
        let bag = self.sources[source];
        let connection = &bag.connections()[message.connection as usize];
        let definition_at = self.at;
        if !std::mem::replace(&mut self.met[source][message.connection as usize], true) {
            self.define(source, message.connection as usize);
        }
        let at = self.at;
        let range = usize_of(record.at)..usize_of(record.end);
        let stamp = stamp_of(bag, record, message);
        self.index.message(&connection.topic, &connection.ty, stamp, definition_at, at);
        self.records += 1;
        if bag.version() == Version::V1_2 {
            self.copy(source, range);
        } else {
            let data = Data {
                topic: connection.topic.clone(),
                md5: written_sum(bag, connection),
                ty: connection.ty.clone(),
                sec: stamp.0,
                nsec: stamp.1,
                latching: None,
                callerid: None,
            };
            let len = u32::try_from(message.len).expect("lengths in a bag have 32 bits");
            self.make(Header::Data(data).to_head(len).to_bytes());
            self.copy(source, message.payload_at..message.payload_at + message.len);
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
                None => self.make(made_definition(connection, md5)),
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
        out.write_all(&bag_header_record(self.at))?;
        for piece in &self.pieces {
            match piece {
                Piece::Copied(source, range) => out.write_all(&self.sources[*source].bytes[range.clone()])?,
                Piece::Made(bytes) => out.write_all(bytes)?,
            }
        }
        let index = self.index.write(out)?;
        out.flush()?;
        Ok(self.at + index)
    }
}

/// The header of a whole V1.2 record.
pub(crate) fn header_of(record: &[u8]) -> Option<HeaderRef<'_>> {
    let len = u32::from_le_bytes(*record.first_chunk()?) as usize;
    HeaderRef::parse(record.get(4..)?.get(..len)?)
}

/// The stamp as it stands in the record: nanoseconds of a second or more are not carried.
fn stamp_of(bag: &BagReader, record: &Record, message: &Message) -> (u32, u32) {
    let raw = || {
        let bytes = &bag.bytes[usize_of(record.at)..message.payload_at];
        if bag.version() == Version::V1_2 {
            let header = header_of(bytes)?;
            return Some((header.sec?.0, header.nsec?.0));
        }
        let stamp = bytes.get(bytes.len() - 12..)?;
        let number = |at: usize| stamp[at..].first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        Some((number(0)?, number(4)?))
    };
    raw().expect("the first walk has read this stamp")
}

/// The first definition record of each connection, where it has no data: readers lose their place behind it.
fn definition_records(bag: &BagReader) -> Vec<Option<Range<usize>>> {
    let mut found = vec![None; bag.connections().len()];
    if bag.version() != Version::V1_2 || bag.records_of(op::DEFINITION) == 0 {
        return found;
    }
    for record in bag.cursor().filter(|record| record.message.is_none()) {
        let range = usize_of(record.at)..usize_of(record.end);
        let bytes = &bag.bytes[range.clone()];
        let Some(header) = header_of(bytes).filter(|header| header.op == op::DEFINITION) else { continue };
        let bare = bytes.ends_with(&[0; 4]) && bytes.len() == 8 + u32_at(bytes) as usize;
        let part = |part: Option<&'_ [u8]>| part.unwrap_or_default().to_vec();
        let number = bag.walk.tables.number(&part(header.topic), &part(header.ty), &part(header.md5));
        if let Some(number) = number.filter(|_| bare) {
            found[number as usize].get_or_insert(range);
        }
    }
    found
}

fn u32_at(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// The md5 sum under which a connection is written: bags of before V1.2 may say `*`, which readers refuse.
fn written_sum(bag: &BagReader, connection: &Connection) -> Vec<u8> {
    match connection.definition() {
        Some(definition) if bag.version() != Version::V1_2 && definition.sum == SumMatch::Wildcard => {
            definition.types.sum_v2().0.into_bytes()
        }
        _ => connection.md5.clone(),
    }
}

/// A definition for a connection that has no record of its own. A guess is not written down as the truth.
fn made_definition(connection: &Connection, md5: Vec<u8>) -> Vec<u8> {
    let def = match connection.definition() {
        Some(definition) if definition.sum == SumMatch::No => Vec::new(),
        Some(definition) if definition.source == Source::Catalogue => definition.types.full_text(),
        Some(definition) => definition.text.to_vec(),
        None => Vec::new(),
    };
    let header = Header::Definition(Definition {
        topic: connection.topic.clone(),
        md5,
        ty: connection.ty.clone(),
        def,
    });
    header.to_head(0).to_bytes()
}
