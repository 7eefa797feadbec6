//! The reader of pipes: one pass over `Read`, bounded memory, the same records as the random-access reader.

use std::io::{self, BufReader, Chain, Cursor, Read};

use rovelog_core::scan::Source;
use rovelog_core::{Diagnostics, FormatInfo, LogInfo, LogStream, Record, Timestamp, Topic};

use crate::error::BagError;
use crate::options::BagOptions;
use crate::scan::{Met, Step, Walk};
use crate::tables::Connection;
use crate::unpack::{self, Packed, Unpacked};

/// A pipe of which the first bytes were looked at.
type Begun<R> = Chain<Cursor<Vec<u8>>, R>;

/// Where bytes come from: as they are, or unpacked.
enum Input<R> {
    Plain(Begun<R>),
    Unpacked(Box<Unpacked<BufReader<Begun<R>>>>),
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(input) => input.read(out),
            Self::Unpacked(input) => input.read(out),
        }
    }
}

/// A bag that comes from a pipe.
///
/// The buffer holds one chunk and what the walk still looks at: a record and the header behind it. It does
/// not grow with the bag.
pub struct BagStream<R> {
    source: Source<Input<R>>,
    packed: Option<Packed>,
    /// Bytes of one record that are taken into memory.
    limit: u64,
    walk: Walk,
}

impl<R: Read> BagStream<R> {
    /// Reads the version line of a bag.
    ///
    /// # Errors
    /// Where the input cannot be read or unpacked, or is no bag of V1.2 or before.
    pub fn new(mut input: R, options: &BagOptions) -> Result<Self, BagError> {
        let mut head = Vec::new();
        input.by_ref().take(4).read_to_end(&mut head)?;
        let packed = Packed::of(&head);
        let input = Cursor::new(head).chain(input);
        let input = match packed {
            None => Input::Plain(input),
            Some(packed) => Input::Unpacked(Box::new(unpack::reader(packed, BufReader::new(input)))),
        };
        let mut source = Source::new(input);
        source.fill(0, Walk::START as u64).map_err(|error| unpack::failed(packed, 0, error))?;
        let window = source.window();
        let ending = match source.input() {
            Input::Unpacked(input) if window.eof => packed.map(|packed| (packed, input.ending())),
            _ => None,
        };
        let mut walk = Walk::start(window.data, options).map_err(|error| unpack::not_begun(ending, error))?;
        if let Some(packed) = packed {
            unpack::note(packed, &mut walk.diagnostics);
        }
        Ok(Self { source, packed, limit: options.streamed_record, walk })
    }

    /// Reads on until the window reaches `until`, if no record must be taken into memory for that which is too large.
    fn fill(&mut self, until: u64) -> Result<(), BagError> {
        let from = self.walk.needed_from();
        let most = from.saturating_add(self.limit).saturating_add(1);
        let read = self.source.fill(from, until.min(most));
        let window = self.source.window();
        read.map_err(|error| unpack::failed(self.packed, window.end(), error))?;
        if window.eof || window.end() >= until {
            return Ok(());
        }
        Err(BagError::RecordTooLarge { at: window.base, len: until - window.base, limit: self.limit })
    }

    /// The next message in file order; `None` at the end.
    fn next(&mut self) -> Result<Option<Met>, BagError> {
        loop {
            match self.walk.step(self.source.window()) {
                Ok(Step::Message(met)) => return Ok(Some(met)),
                Ok(Step::End) => {
                    self.end();
                    return Ok(None);
                }
                Ok(_) => {}
                Err(need) => self.fill(need.0)?,
            }
        }
    }

    /// Takes note of how compressed data end, once.
    fn end(&mut self) {
        if let (Some(packed), Input::Unpacked(input)) = (self.packed, self.source.input()) {
            let size = self.source.window().end();
            unpack::note_ending(packed, input.ending(), size, &mut self.walk.diagnostics);
            self.packed = None;
        }
    }

    /// The connections met so far; each has the same index as its topic.
    pub fn connections(&self) -> &[Connection] {
        &self.walk.tables.connections
    }
}

impl<R: Read + Send> LogStream for BagStream<R> {
    fn format(&self) -> &'static FormatInfo {
        &crate::wire::INFO
    }

    fn next_record(&mut self) -> rovelog_core::Result<Option<Record<'_>>> {
        let Some(met) = self.next()? else { return Ok(None) };
        // A better definition may have come meanwhile.
        self.walk.tables.resolve(met.connection);
        self.walk.tables.publish(met.connection);
        let tables = &self.walk.tables;
        let topic = &tables.topics[met.connection as usize];
        let payload = self.source.bytes(met.payload_at, met.end);
        let time = Timestamp::new(met.time, tables.clock);
        Ok(Some(Record::new(topic, Some(time), met.at, met.seq, payload, tables)))
    }

    fn topics(&self) -> &[Topic] {
        &self.walk.tables.topics
    }

    fn info(&self) -> LogInfo {
        self.walk.info(self.source.window().end())
    }

    fn diagnostics(&self) -> &Diagnostics {
        &self.walk.diagnostics
    }
}
