//! Bags of V2.0 from a pipe: a chunk at a time.

use std::io::Read;
use std::ops::Range;

use rovelog_core::scan::{Scan as _, Source};

use super::buffer::{Buffer, Ending};
use super::heads::Template;
use super::inner::{Hints, Item};
use super::learn::Learned;
use super::open::is_zeros;
use super::scan::{Step, TopScan};
use super::state::State;
use super::unpack::{Cap, Compression, unpack_chunk};
use crate::diagnostics as rules;
use crate::error::BagError;
use crate::scan::Scanner;

/// A chunk that is being read.
#[derive(Clone, Copy, Debug)]
struct Open {
    number: usize,
    /// Position of the next record in the bytes of the chunk.
    at: usize,
    /// Number of these bytes.
    len: usize,
    /// Offset of these bytes in the pipe; `None` if they were unpacked.
    data_at: Option<u64>,
    /// Number of stored bytes that they take.
    used: usize,
}

/// What reads a pipe.
#[derive(Debug)]
pub(crate) struct Streamed {
    scan: TopScan,
    buffer: Buffer,
    open: Option<Open>,
    template: Option<Template>,
    cap: Cap,
    has_ended: bool,
    /// Zero bytes that may be those in front of the index.
    zeros: Vec<Range<u64>>,
}

/// Where the payload of a message is.
#[derive(Clone, Debug)]
pub(crate) enum At {
    InPipe(Range<u64>),
    Unpacked(Range<usize>),
}

/// A message of a pipe: what it is, where its record starts, where its payload is.
pub(crate) type Arrived = (Learned, u64, At);

impl Streamed {
    pub(crate) fn new(scanner: &mut Scanner, cap: Cap) -> Self {
        scanner.v2 = Some(Box::new(State::default()));
        scanner.chunked_mut().begin_section();
        let scan = TopScan::new(scanner.line.len, cap);
        Self {
            scan,
            buffer: Buffer::default(),
            open: None,
            template: None,
            cap,
            has_ended: false,
            zeros: Vec::new(),
        }
    }

    /// Returns the bytes of the chunk that was unpacked last.
    pub(crate) fn unpacked(&self) -> &[u8] {
        self.buffer.filled()
    }

    /// Returns the next message; `None` at the end. `fill` reads on.
    pub(crate) fn next<R: Read>(
        &mut self,
        scanner: &mut Scanner,
        source: &mut Source<R>,
        mut fill: impl FnMut(&mut Source<R>, u64, u64) -> Result<(), BagError>,
    ) -> Result<Option<Arrived>, BagError> {
        loop {
            if let Some(open) = self.open {
                match self.message(scanner, source, open) {
                    Some(arrived) => return Ok(Some(arrived)),
                    None => continue,
                }
            }
            if self.has_ended {
                return Ok(None);
            }
            let step = loop {
                match self.scan.step(source.window()) {
                    Ok(step) => break step,
                    Err(need) => fill(source, self.scan.needed_from(), need.0)?,
                }
            };
            match step {
                Step::Line { at, end } => scanner.take_line(at, end),
                Step::Record { at, end } => scanner.take_record(source.window(), at, end),
                Step::Lost { at, end, rule } if rule == &rules::LOST && is_zeros(source.bytes(at, end)) => {
                    self.zeros.push(at..end);
                }
                Step::Lost { at, end, rule } => scanner.lose_record(at, end, rule),
                Step::Chunk(extent) => {
                    extent.check_built_in()?;
                    scanner.take_chunk(source.window(), extent);
                    self.open = Some(self.unpack(scanner, source));
                }
                Step::End => {
                    self.has_ended = true;
                    for Range { start, end } in std::mem::take(&mut self.zeros) {
                        if scanner.is_before_index(start, end) {
                            scanner.note_zeros(start, end);
                        } else {
                            scanner.lose_record(start, end, &rules::LOST);
                        }
                    }
                    scanner.settle_chunks(source.window().end());
                }
            }
        }
    }

    /// Unpacks the chunk that has just started.
    fn unpack<R: Read>(&mut self, scanner: &mut Scanner, source: &Source<R>) -> Open {
        let state = scanner.chunked_mut();
        let is_encrypted = state.header.as_ref().is_some_and(|header| header.encryption.is_some());
        let number = state.chunks.len() - 1;
        state.at_hand = number;
        let chunk = &mut state.chunks[number];
        let extent = chunk.extent;
        let data = source.bytes(extent.data_at, extent.end);
        let mut open = Open { number, at: 0, len: data.len(), data_at: None, used: data.len() };
        chunk.ending = match extent.compression {
            _ if is_encrypted => Ending::Encrypted,
            None => Ending::Unknown,
            Some(Compression::None) => {
                open.data_at = Some(extent.data_at);
                if extent.length == super::scan::Length::Cut { Ending::Cut } else { Ending::Whole }
            }
            Some(compression) => {
                let limit = self.cap.limit(extent.size, data.len() as u64);
                let ending;
                (ending, open.used) = unpack_chunk(compression, data, limit, &mut self.buffer);
                open.len = self.buffer.len;
                ending
            }
        };
        if matches!(chunk.ending, Ending::Encrypted | Ending::Unknown) {
            open.len = 0;
        }
        open
    }

    /// Returns the next message of the chunk at hand; `None` where it is another record, or the end
    /// of it.
    fn message<R: Read>(&mut self, scanner: &mut Scanner, source: &Source<R>, open: Open) -> Option<Arrived> {
        let chunk = &scanner.chunked().chunks[open.number];
        let extent = chunk.extent;
        let data = match open.data_at {
            Some(at) => source.bytes(at, at + open.len as u64),
            None => &self.buffer.bytes[..open.len],
        };
        let mut inner = chunk.inner(data, chunk.ending, Hints::default(), self.template).at(open.at);
        let item = inner.next();
        let place = |at: usize| extent.data_at + if open.data_at.is_some() { at as u64 } else { 0 };
        self.open = Some(Open { at: inner.place(), ..open });
        self.template = inner.template();
        if let Some((at, op)) = inner.meant() {
            scanner.note_op(place(at)..place(at) + 1, "a record in a chunk", op);
        }
        match item {
            Some(Item::Message(message)) => {
                let range = message.payload_at..message.end;
                let at = (place(message.at), place(range.start), place(range.end));
                let learned = scanner.chunk_message(&message, &data[range.clone()], at);
                let Some(learned) = learned else {
                    scanner.refuse_message(at);
                    return None;
                };
                Some(match open.data_at {
                    Some(_) => (learned, at.0, At::InPipe(at.1..at.2)),
                    None => (learned, extent.at, At::Unpacked(range)),
                })
            }
            Some(item) => {
                scanner.chunk_item(item, data.len(), place);
                None
            }
            None => {
                self.open = None;
                scanner.end_chunk(open.number, open.len);
                let end = if source.window().eof { source.window().end() } else { u64::MAX };
                scanner.note_chunk(open.number, open.used, end, &mut Vec::new());
                None
            }
        }
    }
}
