//! Scans the records between chunks and finds the end of each chunk, in files and streams.
//!
//! A chunk header states the length of the chunk. A recorder that was killed leaves this length at
//! 0, and damage may change it. The stated length is used if a record between chunks follows at
//! this distance. If not, the end of an uncompressed chunk is found by following its records, and
//! the end of a compressed chunk by decompressing it (rule K10 in docs/formats/rosbag.md). Example:
//! a chunk header states 0 bytes, and 3 messages of 100 bytes follow, then index data. The records
//! lead from offset 0 to 100, 200 and 300. The index data at 300 end the chunk.

use rovelog_core::Rule;
use rovelog_core::internal::scan::{NeedMore, Scan, Window};

use super::buffer::{Buffer, DataStatus};
use super::compression::{Compression, DecompressionLimit, decompress};
use super::probe::{Probe, ProbedRecord, follows, follows_top, line, probe, starts};
use super::wire::{ConnectionCount, ConnectionHeader, Header, IndexEntry};
use crate::diagnostics as rules;
use crate::error::BagError;
use crate::sections::MAX_SECTIONS;
use crate::validate::Search;
use crate::wire::{is_list_of, list_len};

/// Source from which the length of a chunk was determined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LengthSource {
    /// The length stated in the chunk header.
    #[default]
    Header,
    /// The data of the chunk. The chunk header states a different length.
    Data,
    /// The data of the chunk. The chunk was never closed, so the recorder did not fill in the
    /// length in the chunk header.
    Unclosed,
    /// The end of the file. The chunk is truncated there.
    Cut,
}

/// Location of a chunk record in the file, and content of its header.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ChunkExtent {
    /// Offset of the chunk record in the file.
    pub(crate) at: u64,
    /// Offset of the stored data in the file.
    pub(crate) data_at: u64,
    /// Offset in the file of the end of the stored data.
    pub(crate) end: u64,
    /// Compression of the data. `None` if the chunk header names an unknown compression.
    pub(crate) compression: Option<Compression>,
    /// Size in bytes of the stored data, according to the chunk header.
    pub(crate) data_len: u32,
    /// Size in bytes of the decompressed data, according to the chunk header.
    pub(crate) size: u32,
    /// Source from which `end` was determined.
    pub(crate) length: LengthSource,
    /// True if the chunk header is lost, so that only the records of the chunk were found.
    pub(crate) headless: bool,
}

impl ChunkExtent {
    /// Returns an error if the chunk is compressed and the crate feature `compressed` is disabled.
    /// Without this check, the reader would report an intact bag as damaged.
    pub(crate) fn check_built_in(&self) -> Result<(), BagError> {
        let is_built_in = |compression| compression == Compression::None || cfg!(feature = "compressed");
        match self.compression {
            Some(compression) if !is_built_in(compression) => {
                Err(BagError::CompressionNotBuiltIn { at: self.at, name: compression.name() })
            }
            _ => Ok(()),
        }
    }

    /// Returns whether the data are stored uncompressed. Returns false if the compression is
    /// unknown.
    pub(crate) fn is_plain(&self) -> bool {
        self.compression == Some(Compression::None)
    }

    /// Converts an offset in the decompressed chunk data to an offset in the file. For a compressed
    /// chunk, returns the offset of the stored data.
    #[inline]
    pub(crate) fn file_offset(&self, at: u64) -> u64 {
        if self.is_plain() { self.data_at + at } else { self.data_at }
    }

    /// Returns the size in bytes of the decompressed data according to the chunk header. The header
    /// states two lengths, and the larger one is returned, so that the result is an upper bound if
    /// one of them is damaged.
    pub(super) fn declared_len(&self) -> u32 {
        self.size.max(self.data_len)
    }

    /// Returns the offset in the file of the first lost byte of the stored data.
    ///
    /// If some messages were decompressed, the loss starts after the consumed bytes. If not, all
    /// stored data are lost. If the compressed data are intact, no stored bytes are lost, even if
    /// records in the decompressed data are damaged.
    pub(super) fn kept_to(&self, status: DataStatus, used: usize, messages: u64) -> u64 {
        match status {
            DataStatus::Intact => self.end,
            DataStatus::Cut | DataStatus::Broken | DataStatus::Limit if messages > 0 => {
                (self.data_at + used as u64).min(self.end)
            }
            _ => self.data_at,
        }
    }
}

/// A range of bytes in the file that cannot be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loss {
    /// Offset of the first lost byte.
    pub(crate) at: u64,
    /// Offset of the first byte after the loss.
    pub(crate) end: u64,
    /// Diagnostic that reports the loss.
    pub(crate) rule: &'static Rule,
}

/// A part of the file that the scanner found.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// A version line. Every version line after the start of the file starts another bag.
    Line {
        at: u64,
        end: u64,
    },
    /// A record between chunks that is not a chunk. `end` is the actual end of the data, even if
    /// the stated length is wrong.
    Record {
        at: u64,
        end: u64,
    },
    Chunk(ChunkExtent),
    /// Bytes that cannot be read.
    Lost(Loss),
    End,
}

/// Scanner of the chunks and of the records between chunks.
#[derive(Debug)]
pub(crate) struct TopScan {
    /// Offset in the file of the next part.
    at: u64,
    /// Size in bytes of the version line at the start of the file. 0 if this version line is
    /// damaged.
    line: u64,
    /// Number of version lines found so far.
    sections: usize,
    /// Limit on the decompressed size of chunks whose stated length is wrong.
    cap: DecompressionLimit,
}

impl Scan for TopScan {
    type Step = Step;

    // Every byte of the file belongs to exactly one step.
    fn step(&mut self, window: Window<'_>) -> Result<Step, NeedMore> {
        let at = self.at;
        let step = self.look(window, at)?;
        self.at = match step {
            Step::Line { end, .. } | Step::Record { end, .. } | Step::Lost(Loss { end, .. }) => end,
            Step::Chunk(extent) => extent.end,
            Step::End => at,
        };
        self.sections += usize::from(matches!(step, Step::Line { .. }));
        Ok(step)
    }

    fn needed_from(&self) -> u64 {
        self.at
    }
}

impl TopScan {
    /// Creates a scanner for a file that starts with a version line of `line` bytes. If `line` is
    /// 0, the version line is damaged.
    pub(crate) fn new(line: u64, cap: DecompressionLimit) -> Self {
        Self { at: 0, line, sections: 0, cap }
    }

    fn look(&self, window: Window<'_>, at: u64) -> Result<Step, NeedMore> {
        // If the version line is damaged, the file starts with a record or lost bytes instead.
        if at == 0 && self.line > 0 {
            return Ok(Step::Line { at, end: self.line });
        }
        if !window.has(at)? {
            return Ok(Step::End);
        }
        if let Some(line) = line(window, at)? {
            let end = at + line.len;
            // The number of sections is limited, because each section needs memory and a malicious
            // file may consist of version lines only.
            if self.sections >= MAX_SECTIONS {
                return Ok(Step::Lost(Loss { at, end, rule: &rules::TOO_MANY_SECTIONS }));
            }
            return Ok(Step::Line { at, end });
        }
        match probe(window, at)? {
            Probe::Good(found) => match found.header {
                Header::Chunk(_) => self.chunk(window, at, &found),
                // Messages occur only in chunks, so the header of the chunk that contains this
                // message is lost.
                Header::Message(_) => headless(window, at),
                _ => record(window, at, &found),
            },
            Probe::Cut => lost(window, at, at + 1, true),
            Probe::Bad => lost(window, at, at + 1, false),
        }
    }

    /// Returns the chunk at offset `at` with its end.
    fn chunk(&self, window: Window<'_>, at: u64, found: &ProbedRecord<'_>) -> Result<Step, NeedMore> {
        let Header::Chunk(chunk) = found.header else { return Ok(Step::End) };
        let data_at = found.data_at;
        let (data_len, size) = (found.data_len, chunk.size.get());
        let compression = Compression::of(chunk.compression);
        let extent = |end, length| {
            let headless = false;
            Ok(Step::Chunk(ChunkExtent { at, data_at, end, compression, data_len, size, length, headless }))
        };
        let claimed = found.end();
        // A recorder first writes the chunk header with the lengths 0, and fills in the lengths
        // when it closes the chunk.
        let is_open = data_len == 0 && size == 0;
        // Request all bytes of the chunk, even if its end could be found with fewer bytes.
        let is_whole = window.slice(data_at, claimed)?.is_some();
        if is_whole && (if is_open { is_closed(window, claimed)? } else { follows_top(window, claimed)? }) {
            return extent(claimed, LengthSource::Header);
        }
        let found_by = if is_open { LengthSource::Unclosed } else { LengthSource::Data };
        let length = |end: u64| {
            if end == claimed && !is_open {
                LengthSource::Header
            } else if end == window.end() && !is_whole {
                LengthSource::Cut
            } else {
                found_by
            }
        };
        let end = match compression {
            Some(Compression::None) => Some(measure(window, data_at, claimed)?),
            // Decompressing finds the exact end of the chunk, because a compressed stream marks its
            // own end.
            Some(compression) => self.compressed_end(window, data_at, compression, size)?,
            None => None,
        };
        if let Some(end) = end {
            return extent(end, length(end));
        }
        // The end cannot be determined from the data. The chunk ends at the next record between
        // chunks, or at the stated length if that comes before.
        let mut search = Search::from(data_at);
        let next = search.run_to(window, search_end(window)?, |window, at| {
            Ok(starts(window, at)? && is_of_file(window, at)?)
        })?;
        let end = next.unwrap_or(window.end());
        let end = if is_open { end } else { claimed.min(end) };
        extent(end, length(end))
    }

    /// Decompresses the data at offset `from` and returns the offset of the end of the compressed
    /// data. Returns `None` if no record between chunks follows there. `size` is the decompressed
    /// size that the chunk header states, which limits the output.
    pub(super) fn compressed_end(
        &self,
        window: Window<'_>,
        from: u64,
        compression: Compression,
        size: u32,
    ) -> Result<Option<u64>, NeedMore> {
        let data = window.upto(from, search_end(window)?.saturating_sub(from))?;
        let limit = self.cap.limit(size, data.len() as u64);
        let (status, used) = decompress(compression, data, limit, &mut Buffer::default());
        let end = from + used as u64;
        // If the compressed stream is truncated, its end is not the end of the chunk.
        let says = used > 0 && !matches!(status, DataStatus::Cut | DataStatus::Limit);
        Ok((says && follows_top(window, end)?).then_some(end))
    }
}

/// Returns the end of the file. Requests more bytes if the window does not reach the end of the
/// file.
fn search_end(window: Window<'_>) -> Result<u64, NeedMore> {
    if window.eof { Ok(window.end()) } else { Err(NeedMore(window.end() + 1)) }
}

/// Returns whether the recorder closed the chunk whose header states the lengths 0. After a closed
/// empty chunk comes a record between chunks. After an open chunk come the records of the chunk, or
/// the end of the file.
fn is_closed(window: Window<'_>, at: u64) -> Result<bool, NeedMore> {
    Ok(matches!(probe(window, at)?, Probe::Good(found) if found.is_top()))
}

/// Returns whether the record at offset `at` is of a type that occurs only between chunks.
fn is_of_file(window: Window<'_>, at: u64) -> Result<bool, NeedMore> {
    Ok(!matches!(probe(window, at)?, Probe::Good(found) if !found.is_top()))
}

/// Follows the records of an uncompressed chunk from offset `from` on, and returns the offset where
/// the chunk ends. `claimed` is the end according to the chunk header.
fn measure(window: Window<'_>, from: u64, claimed: u64) -> Result<u64, NeedMore> {
    let mut at = from;
    loop {
        // A record ends exactly at the end that the chunk header states, so the stated end is
        // right.
        if at == claimed && at > from {
            return Ok(at);
        }
        if !window.has(at)? {
            return Ok(at);
        }
        if line(window, at)?.is_some() {
            return Ok(at);
        }
        let next = match probe(window, at)? {
            Probe::Good(found) if found.is_top() => return Ok(at),
            Probe::Good(found) if !window.has(found.end().saturating_sub(1))? => {
                if found.end() <= claimed {
                    // By the chunk header, this record ends within the chunk, so the length of the
                    // record is right and the file was truncated here. The payload is not searched
                    // for records, because it may be a bag.
                    return search_end(window);
                }
                None
            }
            Probe::Good(found) if follows(window, found.end())? => Some(found.end()),
            Probe::Good(found) if found.end() == claimed => Some(claimed),
            Probe::Good(found) => {
                // The length of this record or the start of the next record is damaged.
                let end = search_end(window)?;
                Search::from(found.data_at).run_to(window, end, starts)?
            }
            Probe::Cut => return search_end(window),
            Probe::Bad => None,
        };
        at = match next {
            Some(next) => next,
            None => match Search::from(at + 1).run_to(window, search_end(window)?, starts)? {
                Some(next) => next,
                None => return search_end(window),
            },
        };
    }
}

/// Returns a chunk whose header is lost, which extends over the records from offset `at` on.
fn headless(window: Window<'_>, at: u64) -> Result<Step, NeedMore> {
    let mut end = at;
    while let Probe::Good(found) = probe(window, end)? {
        let is_inner = matches!(found.header, Header::Message(_) | Header::Connection(_));
        if !is_inner || window.slice(end, found.end())?.is_none() {
            break;
        }
        end = found.end();
    }
    if end == at {
        return lost(window, at, at + 1, true);
    }
    let compression = Some(Compression::None);
    let length = LengthSource::Data;
    let extent =
        ChunkExtent { at, data_at: at, end, compression, length, headless: true, ..ChunkExtent::default() };
    Ok(Step::Chunk(extent))
}

/// Returns a record between chunks that is not a chunk.
fn record(window: Window<'_>, at: u64, found: &ProbedRecord<'_>) -> Result<Step, NeedMore> {
    let data_at = found.data_at;
    let step = |end| Ok(Step::Record { at, end });
    let claimed = found.end();
    let mut ends = [Some(claimed), None];
    if let Header::IndexData(index) = found.header {
        let entries = list_len::<IndexEntry>(index.count.get());
        // Recorders before version 1.1.15 state 20 bytes per index entry, but write 12 bytes.
        ends = [Some(data_at + entries), Some(claimed)];
    }
    for end in ends.into_iter().flatten() {
        if window.slice(data_at, end)?.is_some() && follows_top(window, end)? {
            return step(end);
        }
    }
    let Some(data) = window.slice(data_at, claimed)? else {
        return lost(window, at, data_at, true);
    };
    // The next record may be damaged. This record is still valid if its data match its length.
    let agrees = match found.header {
        Header::BagHeader(_) => {
            let spaces = data.iter().take_while(|byte| **byte == b' ').count() as u64;
            if follows_top(window, data_at + spaces)? {
                return step(data_at + spaces);
            }
            spaces == data.len() as u64
        }
        Header::Connection(_) => ConnectionHeader::read(data).is_some(),
        Header::ChunkInfo(info) => is_list_of::<ConnectionCount>(data, info.count.get()),
        Header::IndexData(index) => is_list_of::<IndexEntry>(data, index.count.get()),
        _ => false,
    };
    if agrees {
        return step(claimed);
    }
    lost(window, at, data_at, false)
}

/// Returns the lost bytes from offset `at` on. They end at the next record, which is searched from
/// offset `from` on.
fn lost(window: Window<'_>, at: u64, from: u64, cut: bool) -> Result<Step, NeedMore> {
    // The end of a stream is not known in advance, so more bytes are requested until a record is
    // found.
    let limit = if window.eof { window.end() } else { u64::MAX };
    let next = Search::from(from).run_to(window, limit, starts)?;
    let rule = if next.is_none() && cut { &rules::CUT } else { &rules::LOST };
    Ok(Step::Lost(Loss { at, end: next.unwrap_or(limit), rule }))
}
