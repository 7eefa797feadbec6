//! The records of a bag of V2.0 outside of chunks, and where each chunk ends: one scan for files
//! and pipes.

use rovelog_core::Rule;
use rovelog_core::scan::{NeedMore, Scan, Window};

use super::buffer::{Buffer, Ending};
use super::probe::{Found, Probe, follows, follows_top, is_line, probe, starts};
use super::unpack::{Cap, Compression, unpack};
use super::wire::{ConnectionCount, ConnectionHeader, Header, IndexEntry};
use crate::diagnostics as rules;
use crate::error::BagError;
use crate::sections::MAX_SECTIONS;
use crate::validate::Search;
use crate::version;
use crate::wire::{is_list_of, list_len};

/// What tells how long a chunk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// Its header.
    Stored,
    /// Its data: the header says something else.
    Found,
    /// Its data: the header was never completed.
    Unterminated,
    /// The end of the file.
    Cut,
}

/// A chunk record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) at: u64,
    pub(crate) data_at: u64,
    pub(crate) end: u64,
    /// `None` of one that is not known.
    pub(crate) compression: Option<Compression>,
    /// Bytes of its data, packed and unpacked, as the header has them.
    pub(crate) data_len: u32,
    pub(crate) size: u32,
    pub(crate) length: Length,
    /// Whether its header is lost.
    pub(crate) headless: bool,
}

impl Extent {
    /// Returns an error if the chunk is compressed and the feature `compressed` is off. Otherwise the
    /// reader would call an intact bag damaged.
    pub(crate) fn check_built_in(&self) -> Result<(), BagError> {
        let is_built_in = |compression| compression == Compression::None || cfg!(feature = "compressed");
        match self.compression {
            Some(compression) if !is_built_in(compression) => {
                Err(BagError::CompressionNotBuiltIn { at: self.at, name: compression.name() })
            }
            _ => Ok(()),
        }
    }

    /// Returns the bytes of its records, as far as the header says.
    pub(super) fn claimed(&self) -> u32 {
        self.size.max(self.data_len)
    }

    /// Returns where the bytes start that are lost if its data end in this way: behind what was used, or
    /// at its start if no message could be read. Damage inside intact compressed data has no bytes.
    pub(super) fn kept_to(&self, ending: Ending, used: usize, messages: u64) -> u64 {
        match ending {
            Ending::Whole => self.end,
            Ending::Cut | Ending::Broken | Ending::Limit if messages > 0 => {
                (self.data_at + used as u64).min(self.end)
            }
            _ => self.data_at,
        }
    }
}

/// What comes next in a bag.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// A version line; behind the first one another bag starts.
    Line {
        at: u64,
        end: u64,
    },
    /// A record that is no chunk; it ends where its data do in truth.
    Record {
        at: u64,
        end: u64,
    },
    Chunk(Extent),
    /// Bytes that cannot be read.
    Lost {
        at: u64,
        end: u64,
        rule: &'static Rule,
    },
    End,
}

/// The scan: where it is.
#[derive(Debug)]
pub(crate) struct TopScan {
    at: u64,
    line: u64,
    /// Version lines so far.
    sections: usize,
    cap: Cap,
}

impl Scan for TopScan {
    type Step = Step;

    // Every byte of the file is part of exactly one step.
    fn step(&mut self, window: Window<'_>) -> Result<Step, NeedMore> {
        let at = self.at;
        let step = self.look(window, at)?;
        self.at = match step {
            Step::Line { end, .. } | Step::Record { end, .. } | Step::Lost { end, .. } => end,
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
    /// Returns a scan from the version line on, which has so many bytes.
    pub(crate) fn new(line: u64, cap: Cap) -> Self {
        Self { at: 0, line, sections: 0, cap }
    }

    fn look(&self, window: Window<'_>, at: u64) -> Result<Step, NeedMore> {
        // Without a version line, records start at once.
        if at == 0 && self.line > 0 {
            return Ok(Step::Line { at, end: self.line });
        }
        if !window.has(at)? {
            return Ok(Step::End);
        }
        if is_line(window, at)? {
            let head = window.upto(at, version::LINE_MAX as u64)?;
            let end = at + version::parse(head).map_or(1, |line| line.len);
            if self.sections >= MAX_SECTIONS {
                return Ok(Step::Lost { at, end, rule: &rules::TOO_MANY_SECTIONS });
            }
            return Ok(Step::Line { at, end });
        }
        match probe(window, at)? {
            Probe::Good(found) => match found.header {
                Header::Chunk(_) => self.chunk(window, at, &found),
                Header::Message(_) => headless(window, at),
                _ => record(window, at, &found),
            },
            Probe::Cut => lost(window, at, at + 1, true),
            Probe::Bad => lost(window, at, at + 1, false),
        }
    }

    /// Returns where a chunk ends.
    fn chunk(&self, window: Window<'_>, at: u64, found: &Found<'_>) -> Result<Step, NeedMore> {
        let Header::Chunk(chunk) = found.header else { return Ok(Step::End) };
        let data_at = found.data_at;
        let (data_len, size) = (found.data_len, chunk.size.get());
        let compression = Compression::of(chunk.compression);
        let extent = |end, length| {
            let headless = false;
            Ok(Step::Chunk(Extent { at, data_at, end, compression, data_len, size, length, headless }))
        };
        let claimed = found.end();
        let is_open = data_len == 0 && size == 0;
        // The bytes must be at hand, whatever follows them.
        let is_whole = window.slice(data_at, claimed)?.is_some();
        if is_whole && (if is_open { is_closed(window, claimed)? } else { follows_top(window, claimed)? }) {
            return extent(claimed, Length::Stored);
        }
        let found_by = if is_open { Length::Unterminated } else { Length::Found };
        let length = |end: u64| {
            if end == claimed && !is_open {
                Length::Stored
            } else if end == window.end() && !is_whole {
                Length::Cut
            } else {
                found_by
            }
        };
        let end = match compression {
            Some(Compression::None) => Some(measure(window, data_at, claimed)?),
            Some(compression) => self.packed_end(window, data_at, compression, size)?,
            None => None,
        };
        if let Some(end) = end {
            return extent(end, length(end));
        }
        // The data do not tell: up to the next record of the file, or as the header has it.
        let mut search = Search::from(data_at);
        let next = search.run_to(window, search_end(window)?, |window, at| {
            Ok(starts(window, at)? && is_of_file(window, at)?)
        })?;
        let end = next.unwrap_or(window.end());
        let end = if is_open { end } else { claimed.min(end) };
        extent(end, length(end))
    }

    /// Returns where packed data that begin at `from` end, if a record follows there and they unpack to
    /// no more than is read of a chunk that claims `size`.
    pub(super) fn packed_end(
        &self,
        window: Window<'_>,
        from: u64,
        compression: Compression,
        size: u32,
    ) -> Result<Option<u64>, NeedMore> {
        let data = window.upto(from, search_end(window)?.saturating_sub(from))?;
        let limit = self.cap.limit(size, data.len() as u64);
        let (ending, used) = unpack(compression, data, limit, &mut Buffer::default());
        let end = from + used as u64;
        // A stream that the end of the file cuts says nothing about where the chunk ends.
        let says = used > 0 && !matches!(ending, Ending::Cut | Ending::Limit);
        Ok((says && follows_top(window, end)?).then_some(end))
    }
}

/// Returns the end of the file, which must be at hand.
fn search_end(window: Window<'_>) -> Result<u64, NeedMore> {
    if window.eof { Ok(window.end()) } else { Err(NeedMore(window.end() + 1)) }
}

/// Returns whether an empty chunk was closed: what follows is no record of a chunk, and not the
/// end.
fn is_closed(window: Window<'_>, at: u64) -> Result<bool, NeedMore> {
    Ok(match probe(window, at)? {
        Probe::Good(found) => found.is_top(),
        _ => false,
    })
}

/// Returns whether the record at `at` is between chunks.
fn is_of_file(window: Window<'_>, at: u64) -> Result<bool, NeedMore> {
    Ok(match probe(window, at)? {
        Probe::Good(found) => found.is_top(),
        _ => true,
    })
}

/// Returns where the records of an uncompressed chunk end that begin at `from`; `claimed` is where
/// its header says.
fn measure(window: Window<'_>, from: u64, claimed: u64) -> Result<u64, NeedMore> {
    let mut at = from;
    loop {
        if at == claimed && at > from {
            return Ok(at);
        }
        if !window.has(at)? {
            return Ok(at);
        }
        if is_line(window, at)? {
            return Ok(at);
        }
        let next = match probe(window, at)? {
            Probe::Good(found) if found.is_top() => return Ok(at),
            Probe::Good(found) if !window.has(found.end().saturating_sub(1))? => {
                if found.end() <= claimed {
                    // Both lengths say that the end of the file cuts this record: its payload may be a bag.
                    return search_end(window);
                }
                None
            }
            Probe::Good(found) if follows(window, found.end())? => Some(found.end()),
            Probe::Good(found) if found.end() == claimed => Some(claimed),
            Probe::Good(found) => {
                // Its length may be damaged, or the record behind it.
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

/// Returns the records of a chunk whose header is lost.
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
    let length = Length::Found;
    let extent = Extent { at, data_at: at, end, compression, data_len: 0, size: 0, length, headless: true };
    Ok(Step::Chunk(extent))
}

/// Returns a record that is no chunk and no message.
fn record(window: Window<'_>, at: u64, found: &Found<'_>) -> Result<Step, NeedMore> {
    let data_at = found.data_at;
    let step = |end| Ok(Step::Record { at, end });
    let claimed = found.end();
    let mut ends = [Some(claimed), None];
    if let Header::IndexData(index) = found.header {
        let entries = list_len::<IndexEntry>(index.count.get());
        // Recorders of before 1.1.15 wrote 20 bytes for each entry, and 12 follow.
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
    // What follows may be damaged, and not this record, if its data agree with its length.
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

/// Returns bytes that cannot be read, up to the next record from `from` on.
fn lost(window: Window<'_>, at: u64, from: u64, cut: bool) -> Result<Step, NeedMore> {
    // A pipe looks at what is at hand, and asks for more behind it.
    let limit = if window.eof { window.end() } else { u64::MAX };
    let next = Search::from(from).run_to(window, limit, starts)?;
    let rule = if next.is_none() && cut { &rules::CUT } else { &rules::LOST };
    Ok(Step::Lost { at, end: next.unwrap_or(limit), rule })
}
