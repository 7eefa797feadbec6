//! The reader of pipes: one pass over `Read`, bounded memory, the same records as the random-access reader.

use std::io::{self, Chain, Cursor, Read};

use rovelog_core::{Diagnostics, FormatInfo, LogInfo, LogStream, ReadOptions, Record, Timestamp, Topic};

use crate::error::BagError;
use crate::frame::{Met, Step, Walk};
use crate::options::BagOptions;
use crate::tables::Connection;
use crate::unpack::{self, Limited, Packed};
use crate::window::Window;

/// Bytes asked for at once.
const CHUNK: usize = 256 << 10;

/// Where bytes come from: as they are, or unpacked.
enum Input<'a, R> {
    Plain(Chain<Cursor<Vec<u8>>, R>),
    Unpacked(Limited<Box<dyn Read + Send + 'a>>),
}

impl<R: Read> Read for Input<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(input) => input.read(out),
            Self::Unpacked(input) => input.read(out),
        }
    }
}

/// The bytes at hand of an input.
struct Source<R> {
    input: R,
    /// Room for bytes, the first `filled` of them read. Never shrinks, so nothing is zeroed twice.
    buffer: Vec<u8>,
    filled: usize,
    /// Offset of the first byte of the buffer.
    base: u64,
    eof: bool,
    limit: u64,
}

impl<R: Read> Source<R> {
    fn new(input: R, limit: u64) -> Self {
        Self { input, buffer: vec![0; CHUNK], filled: 0, base: 0, eof: false, limit }
    }

    fn window(&self) -> Window<'_> {
        Window { data: &self.buffer[..self.filled], base: self.base, eof: self.eof }
    }

    /// Lets go of what is before `keep_from` and reads until the buffer reaches `until`, or the input ends.
    fn fill(&mut self, keep_from: u64, until: u64) -> Result<(), BagError> {
        let keep_from = keep_from.clamp(self.base, self.window().end());
        let done = usize::try_from(keep_from - self.base).expect("within the buffer");
        self.buffer.copy_within(done..self.filled, 0);
        self.filled -= done;
        self.base = keep_from;
        while !self.eof && self.window().end() < until {
            if self.filled as u64 > self.limit {
                let len = until - keep_from;
                return Err(BagError::RecordTooLarge { at: keep_from, len, limit: self.limit });
            }
            if self.filled == self.buffer.len() {
                self.buffer.resize(2 * self.filled, 0);
            }
            match self.input.read(&mut self.buffer[self.filled..]) {
                Ok(0) => self.eof = true,
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// A bag that comes from a pipe.
///
/// The buffer holds one chunk and what the walk still looks at: a record and the header behind it. It does
/// not grow with the bag.
pub struct BagStream<'a, R> {
    source: Source<Input<'a, R>>,
    walk: Walk,
}

impl<'a, R: Read + Send + 'a> BagStream<'a, R> {
    /// Reads the version line of a bag.
    ///
    /// # Errors
    /// Where the input cannot be read, or is no bag of V1.2 or before.
    pub fn new(mut input: R, options: &BagOptions) -> Result<Self, BagError> {
        let mut head = vec![0; 4];
        let mut got = 0;
        while got < head.len() {
            match input.read(&mut head[got..]) {
                Ok(0) => break,
                Ok(read) => got += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        head.truncate(got);
        let packed = Packed::of(&head);
        let input = Cursor::new(head).chain(input);
        let input = match packed {
            None => Input::Plain(input),
            Some(packed) => {
                let input = unpack::reader(packed, input);
                Input::Unpacked(Limited { input, left: options.unpacked })
            }
        };
        let mut source = Source::new(input, options.streamed_record);
        source.fill(0, Walk::START as u64)?;
        let head = &source.buffer[..source.filled.min(Walk::START)];
        let mut walk = Walk::start(head, options)?;
        if let Some(packed) = packed {
            unpack::note(packed, &mut walk.diagnostics);
        }
        Ok(Self { source, walk })
    }

    /// The next message in file order; `None` at the end.
    fn next(&mut self) -> Result<Option<Met>, BagError> {
        loop {
            match self.walk.step(self.source.window()) {
                Ok(Step::Message(met)) => return Ok(Some(met)),
                Ok(Step::End) => return Ok(None),
                Ok(_) => {}
                Err(need) => self.source.fill(self.walk.needed_from(), need.0)?,
            }
        }
    }

    /// The connections met so far; each has the same index as its topic.
    pub fn connections(&self) -> &[Connection] {
        &self.walk.tables.connections
    }
}

impl<'a, R: Read + Send + 'a> LogStream for BagStream<'a, R> {
    fn format(&self) -> &'static FormatInfo {
        &crate::INFO
    }

    fn next_record(&mut self) -> rovelog_core::Result<Option<Record<'_>>> {
        let Some(met) = self.next()? else { return Ok(None) };
        // A better definition may have come meanwhile.
        self.walk.tables.resolve(met.connection);
        self.walk.tables.publish(met.connection);
        let tables = &self.walk.tables;
        let topic = &tables.topics[met.connection as usize];
        let payload = self.source.window().slice(met.payload_at, met.end).ok().flatten();
        let payload = payload.expect("the walk has seen these bytes");
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

/// The stream that the facade opens, with the options of all formats.
pub(crate) fn open(
    input: Box<dyn Read + Send>,
    options: &ReadOptions,
) -> Result<BagStream<'static, Box<dyn Read + Send>>, BagError> {
    BagStream::new(input, &BagOptions::from(options))
}
