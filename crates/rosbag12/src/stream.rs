//! The reader of pipes: one pass over `Read`, bounded memory, the same records as the random-access
//! reader.

use std::io::Read;

use rovelog_core::layout::EscapedTexts;
use rovelog_core::scan::{Source, Stream};
use rovelog_core::{Diagnostics, FormatInfo, LogInfo, LogStream, Record, Timestamp, Topic};

use crate::error::BagError;
use crate::options::BagOptions;
use crate::scan::{Met, Scanner, Step};
use crate::tables::Connection;
use crate::v2;
use crate::version::{self, LINE_MAX, Version};

/// A bag from a pipe.
///
/// The buffer holds one chunk, or one record and what the scanner looks at after it. It does not
/// grow with the bag.
pub struct BagStream<R> {
    stream: Stream<R, Scanner>,
    /// Reader of chunks, for a bag of V2.0.
    chunked: Option<v2::Streamed>,
    /// Maximum size of one record in bytes.
    limit: u64,
}

impl<R: Read> BagStream<R> {
    /// Reads the version line of a bag.
    ///
    /// # Errors
    /// Returns an error if the input cannot be read, or is not a ROS 1 bag.
    pub fn new(input: R, options: &BagOptions) -> Result<Self, BagError> {
        let mut source = Source::new(input);
        source.fill(0, LINE_MAX as u64)?;
        if !options.version_0 && version::parse(source.window().data).is_err() {
            source.fill(0, Scanner::START as u64)?;
        }
        let mut scanner = Scanner::start(source.window().data, options)?;
        let cap = v2::Cap::of(&options.read.limits);
        let chunked = (scanner.version == Version::V2_0).then(|| v2::Streamed::new(&mut scanner, cap));
        let stream = Stream { source, scan: scanner };
        Ok(Self { stream, chunked, limit: options.streamed_record })
    }

    /// Returns the next message in file order; `None` at the end.
    fn next(&mut self) -> Result<Option<Met>, BagError> {
        let limit = self.limit;
        loop {
            match self.stream.step(|source, from, until| fill(source, from, until, limit))? {
                Step::Message(met) => return Ok(Some(met)),
                Step::End => return Ok(None),
                _ => {}
            }
        }
    }

    /// Returns the next message of a bag of V2.0.
    fn next_chunked(&mut self) -> Result<Option<v2::Arrived>, BagError> {
        let limit = self.limit;
        let Some(chunked) = &mut self.chunked else { return Ok(None) };
        let Stream { source, scan } = &mut self.stream;
        chunked.next(scan, source, |source, from, until| fill(source, from, until, limit))
    }

    /// Returns the connections met so far; each has the same index as its topic.
    pub fn connections(&self) -> &[Connection] {
        &self.stream.scan.tables.connections
    }
}

/// Reads on until the window reaches `until`, unless it would have to hold a record above `limit`
/// bytes.
fn fill<R: Read>(source: &mut Source<R>, from: u64, until: u64, limit: u64) -> Result<(), BagError> {
    let most = from.saturating_add(limit).saturating_add(1);
    source.fill(from, until.min(most))?;
    let window = source.window();
    if window.eof || window.end() >= until {
        return Ok(());
    }
    Err(BagError::RecordTooLarge { at: window.base, len: until - window.base, limit })
}

impl<R: Read + Send> LogStream for BagStream<R> {
    fn format(&self) -> &'static FormatInfo {
        &crate::wire::INFO
    }

    fn next_record(&mut self) -> rovelog_core::Result<Option<Record<'_>>> {
        if self.chunked.is_some() {
            let Some((learned, at, at_hand)) = self.next_chunked()? else { return Ok(None) };
            self.stream.scan.tables.publish(learned.connection);
            let tables = &self.stream.scan.tables;
            let unpacked = self.chunked.as_ref().map_or(&[][..], v2::Streamed::unpacked);
            let payload = match at_hand {
                v2::At::InPipe(range) => self.stream.source.bytes(range.start, range.end),
                v2::At::Unpacked(range) => &unpacked[range],
            };
            let (topic, time) =
                (&tables.topics[learned.connection as usize], Timestamp::new(learned.time, tables.clock));
            let record = Record::new(topic, Some(time), at, learned.seq, payload, tables);
            return Ok(Some(record.with_origin(learned.origin + 1)));
        }
        let Some(met) = self.next()? else { return Ok(None) };
        // A better definition may follow the last message of the topic.
        self.stream.scan.tables.resolve(met.connection);
        self.stream.scan.tables.publish(met.connection);
        let tables = &self.stream.scan.tables;
        let topic = &tables.topics[met.connection as usize];
        let payload = self.stream.source.bytes(met.payload_at, met.end);
        let time = Timestamp::new(met.time, tables.clock);
        Ok(Some(Record::new(topic, Some(time), met.at, met.seq, payload, tables)))
    }

    fn topics(&self) -> &[Topic] {
        &self.stream.scan.tables.topics
    }

    fn take_escaped_texts(&self) -> Vec<EscapedTexts> {
        self.stream.scan.tables.definitions.decoding.take_escaped()
    }

    fn info(&self) -> LogInfo {
        self.stream.scan.info(self.stream.source.window().end())
    }

    fn diagnostics(&self) -> &Diagnostics {
        &self.stream.scan.diagnostics
    }
}
