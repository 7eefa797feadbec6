//! Reads a bag from a stream in one pass and in bounded memory. The returned records are the same
//! as those of the random-access reader.

use std::io::Read;

use rovelog_core::internal::layout::EscapedTexts;
use rovelog_core::internal::scan::{Source, Stream};
use rovelog_core::{Diagnostics, FormatInfo, LogInfo, LogStream, Record, Timestamp, Topic};

use crate::error::BagError;
use crate::message::MessageRef;
use crate::options::BagOptions;
use crate::scan::{Scanner, Step};
use crate::tables::Connection;
use crate::v2;
use crate::version::{self, LINE_MAX, Version};

/// A bag that is read from a stream.
///
/// The buffer contains one chunk, or one record and the bytes after the record that the scanner
/// examines. The size of the buffer does not depend on the size of the bag.
pub struct BagStream<R> {
    stream: Stream<R, Scanner>,
    /// Reader of the chunks of a V2.0 bag. `None` for older versions.
    chunked: Option<v2::ChunkedStream>,
    /// Maximum size in bytes of one record in the stream.
    limit: u64,
}

impl<R: Read> BagStream<R> {
    /// Reads the version line of a bag, and creates a stream.
    ///
    /// # Errors
    /// Returns an error if the input cannot be read, or if the input is not a ROS 1 bag.
    pub fn new(input: R, options: &BagOptions) -> Result<Self, BagError> {
        let mut source = Source::new(input);
        source.fill(0, LINE_MAX as u64)?;
        // If the version line is damaged, the first record is searched in more bytes. These bytes
        // are read only now, because reading them at once would delay the first record of a slow
        // stream.
        if !options.version_0 && version::parse(source.window().data).is_err() {
            source.fill(0, Scanner::START as u64)?;
        }
        let mut scanner = Scanner::start(source.window().data, options)?;
        let cap = v2::DecompressionLimit::of(&options.read.limits);
        let chunked =
            (scanner.line.version == Version::V2_0).then(|| v2::ChunkedStream::new(&mut scanner, cap));
        let stream = Stream { source, scan: scanner };
        Ok(Self { stream, chunked, limit: options.streamed_record })
    }

    /// Returns the next message in file order, or `None` at the end of the stream.
    fn next(&mut self) -> Result<Option<MessageRef>, BagError> {
        let limit = self.limit;
        let fill = |source: &mut Source<R>, from, until| fill(source, from, until, limit);
        if let Some(chunked) = &mut self.chunked {
            return chunked.next(&mut self.stream.scan, &mut self.stream.source, fill);
        }
        loop {
            match self.stream.step(fill)? {
                Step::Message(message) => return Ok(Some(message)),
                Step::End => return Ok(None),
                _ => {}
            }
        }
    }

    /// Returns the connections found so far. The connection and the topic with the same index
    /// belong together.
    pub fn connections(&self) -> &[Connection] {
        &self.stream.scan.tables.connections
    }
}

/// Reads bytes until the window reaches offset `until`. Returns an error if a record of more than
/// `limit` bytes would have to be buffered.
fn fill<R: Read>(source: &mut Source<R>, from: u64, until: u64, limit: u64) -> Result<(), BagError> {
    // Reading one byte more than the limit shows whether the record exceeds the limit.
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
        let Some(message) = self.next()? else { return Ok(None) };
        let Stream { source, scan } = &mut self.stream;
        // A definition record that was found since the last message of the topic may give a better
        // definition.
        scan.tables.resolve(message.connection);
        scan.tables.publish(message.connection);
        let tables = &scan.tables;
        let (topic, time) = (&tables.topics[message.connection as usize], message.time());
        let time = Some(Timestamp::new(time, tables.clock));
        let located = self.chunked.as_ref().and_then(|chunked| chunked.locate(source, &message));
        if let Some((offset, payload)) = located {
            let record = Record::new(topic, time, offset, message.seq, payload, tables);
            return Ok(Some(record.with_origin(message.origin + 1)));
        }
        let payload = source.bytes(message.payload_at(), message.end());
        Ok(Some(Record::new(topic, time, message.at, message.seq, payload, tables)))
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
