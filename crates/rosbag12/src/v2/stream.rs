//! Reads a V2.0 bag from a stream, one chunk at a time.

use std::io::Read;

use rovelog_core::internal::memory;
use rovelog_core::internal::scan::{Scan as _, Source};

use super::buffer::Buffer;
use super::compression::DecompressionLimit;
use super::loader::{LoadResult, buffer_bytes};
use super::records::{ChunkItem, Hints};
use super::scan::{ChunkExtent, Loss, Step, TopScan};
use super::template::Template;
use crate::error::BagError;
use crate::message::MessageRef;
use crate::scan::Scanner;

/// State of the chunk that is being read from the stream.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// Index of the chunk.
    number: usize,
    /// Location of the chunk in the stream, and content of the chunk header.
    extent: ChunkExtent,
    /// Offset of the next record in the decompressed chunk data.
    at: usize,
    /// Status and size of the decompressed data.
    loaded: LoadResult,
}

/// Reader of the chunks in a stream.
#[derive(Debug)]
pub(crate) struct ChunkedStream {
    /// Scanner of the records between chunks.
    scan: TopScan,
    /// Buffer for decompressed data.
    buffer: Buffer,
    /// Chunk that is being read. `None` between chunks.
    open: Option<Open>,
    /// Template of the header that the latest messages share.
    template: Option<Template>,
    /// Limits on the decompressed size of each chunk.
    cap: DecompressionLimit,
    /// True after the end of the stream was reached.
    has_ended: bool,
    /// Ranges of zero bytes between records. They are not a loss if the index follows, which is
    /// known only at the end of the stream.
    zeros: Vec<Loss>,
}

impl ChunkedStream {
    pub(crate) fn new(scanner: &mut Scanner, cap: DecompressionLimit) -> Self {
        scanner.content.begin_section();
        let (scan, buffer) = (TopScan::new(scanner.line.len, cap), Buffer::default());
        Self { scan, buffer, open: None, template: None, cap, has_ended: false, zeros: Vec::new() }
    }

    /// Returns the offset in the stream and the payload of the message that [`next`](Self::next)
    /// returned last.
    pub(crate) fn locate<'a, R: Read>(
        &'a self,
        source: &'a Source<R>,
        message: &MessageRef,
    ) -> Option<(u64, &'a [u8])> {
        let extent = self.open?.extent;
        Some(if extent.is_plain() {
            let file_offset = |at| extent.file_offset(at);
            let payload = source.bytes(file_offset(message.payload_at()), file_offset(message.end()));
            (file_offset(message.at), payload)
        } else {
            (extent.at, message.payload(self.buffer.filled()))
        })
    }

    /// Returns the next message, or `None` at the end of the stream. `fill` reads more bytes from
    /// the input.
    pub(crate) fn next<R: Read>(
        &mut self,
        scanner: &mut Scanner,
        source: &mut Source<R>,
        mut fill: impl FnMut(&mut Source<R>, u64, u64) -> Result<(), BagError>,
    ) -> Result<Option<MessageRef>, BagError> {
        loop {
            while let Some(open) = self.open {
                if let Some(message) = self.message(scanner, source, open) {
                    return Ok(Some(message));
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
                Step::Line { at, end } => scanner.start_section(at, end),
                Step::Record { at, end } => scanner.add_top_record(source.window(), at, end),
                // Zero bytes before the index are not a loss, but it is not known yet whether the
                // index follows. They are reported at the end of the stream.
                Step::Lost(loss) if loss.is_zeros(source.bytes(loss.at, loss.end)) => self.zeros.push(loss),
                Step::Lost(loss) => scanner.report_lost_record(loss),
                Step::Chunk(extent) => {
                    extent.check_built_in()?;
                    scanner.add_chunk(source.window(), extent);
                    let chunk = scanner.content.chunks.last();
                    memory::check(buffer_bytes(chunk.map_or(&[], std::slice::from_ref)))?;
                    self.open = Some(self.decompress(scanner, source));
                }
                Step::End => {
                    self.has_ended = true;
                    self.report_zeros(scanner);
                    scanner.finish_chunks(source.window().end());
                }
            }
        }
    }

    /// Reports the zero bytes between records, after the end of the stream was reached.
    fn report_zeros(&mut self, scanner: &mut Scanner) {
        for zeros in std::mem::take(&mut self.zeros) {
            if scanner.is_before_index(zeros) {
                scanner.report_zeros(zeros);
            } else {
                scanner.report_lost_record(zeros);
            }
        }
    }

    /// Decompresses the chunk that was added last, and returns its state for reading.
    fn decompress<R: Read>(&mut self, scanner: &mut Scanner, source: &Source<R>) -> Open {
        let content = &mut scanner.content;
        let number = content.chunks.len() - 1;
        content.position.chunk = number;
        let is_encrypted = content.is_encrypted(content.chunks[number].section);
        let chunk = &mut content.chunks[number];
        let extent = chunk.extent;
        let data = source.bytes(extent.data_at, extent.end);
        let loaded = extent.load(is_encrypted, data, self.cap, &mut self.buffer);
        chunk.status = loaded.status;
        Open { number, extent, at: 0, loaded }
    }

    /// Returns the next message of the current chunk. Returns `None` if the next record is not a
    /// message, and at the end of the chunk.
    fn message<R: Read>(
        &mut self,
        scanner: &mut Scanner,
        source: &Source<R>,
        open: Open,
    ) -> Option<MessageRef> {
        let chunk = &scanner.content.chunks[open.number];
        let Open { extent, loaded, .. } = open;
        let data = if extent.is_plain() {
            source.bytes(extent.data_at, extent.data_at + loaded.len as u64)
        } else {
            &self.buffer.bytes[..loaded.len]
        };
        let mut records = chunk.records(data, chunk.status, Hints::default(), self.template).at(open.at);
        let item = records.next();
        self.open = Some(Open { at: records.place(), ..open });
        self.template = records.template();
        scanner.report_op_in_chunk(&extent, records.corrected_op());
        match item {
            Some(ChunkItem::Message(mut message)) => {
                return scanner.count_chunk_message(&extent, &mut message, data).then_some(message);
            }
            Some(item) => scanner.add_item(&extent, item, data.len()),
            None => {
                self.open = None;
                scanner.end_chunk(loaded.len);
                // Before the end of the stream is reached, the end of the file is not known, so no
                // chunk can end there.
                let end = if source.window().eof { source.window().end() } else { u64::MAX };
                scanner.report_chunk(open.number, loaded.used, end);
            }
        }
        None
    }
}
