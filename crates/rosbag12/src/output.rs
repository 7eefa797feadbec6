//! Bags made of bags: what recovery, slicing, reindexing and merging write is put together here.
//!
//! Records are copied byte for byte; new are the bag header, the index, and definitions that a topic lacks
//! in front of its first message. The layout is settled before the first byte is written, so that the output
//! need not seek.

use std::collections::HashSet;
use std::io::Write;
use std::ops::Range;

use rovelog_core::wire::U32Le;

use crate::definitions::Source;
use crate::error::BagError;
use crate::index::{Message, Record};
use crate::msg::SumMatch;
use crate::reader::{BagReader, usize_of};
use crate::tables::Connection;
use crate::version::Version;
use crate::wire::{self, BAG_HEADER_SIZE, Data, Definition, Header, VERSION_LINE, bag_header_record};
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
        match bag.wire_record(record).map(|record| record.header) {
            None | Some(Header::BagHeader(_) | Header::Index(_)) => {}
            Some(Header::Definition(Definition { topic, ty, md5, .. })) => {
                // Those of topics with messages stand in front of the first one.
                let known = bag.walk.tables.known(topic, ty, md5);
                if known.is_some_and(|connection| connection.stats.count == 0)
                    && self.defined.insert((topic.to_vec(), ty.to_vec(), md5.to_vec()))
                {
                    self.copy(source, range);
                }
            }
            Some(_) => self.copy(source, range),
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
            self.make(header.to_head(len));
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
                None => self.make(made_definition(connection, &md5)),
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

/// The first definition record of each connection, where it has no data: readers lose their place behind it.
fn definition_records(bag: &BagReader) -> Vec<Option<Range<usize>>> {
    let mut found = vec![None; bag.connections().len()];
    if bag.version() != Version::V1_2 || bag.records_of(Definition::OP) == 0 {
        return found;
    }
    for record in bag.cursor().filter(|record| record.message.is_none()) {
        if let Some(wire::Record { header: Header::Definition(header), data: [] }) = bag.wire_record(&record)
            && let Some(number) = bag.walk.tables.number(header.topic, header.ty, header.md5)
        {
            found[number as usize].get_or_insert(usize_of(record.at)..usize_of(record.end));
        }
    }
    found
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
