//! Tests whether a V2.0 record starts at a given offset, in a file or in a decompressed chunk.

use rovelog_core::internal::scan::{NeedMore, Window};
use rovelog_core::internal::wire::U32Le;

use super::wire::{Chunk, Header, IndexEntry};
use crate::headers::Fields;
use crate::validate::{LEN, MAX_HEADER, MAX_NAME_LEN, MORE_THAN_OP, is_beginning, may_start};
use crate::version::{self, Version, VersionLine};
use crate::wire::list_len;

/// Maximum size in bytes of a record header that a search for the next record accepts. Recorders
/// never write headers of this size.
const MAX_SEARCHED_HEADER: u32 = 64 << 10;

/// The head of a record, that is, its header and length fields. The data of the record need not be
/// in the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbedRecord<'a> {
    /// Parsed header of the record.
    pub(super) header: Header<'a>,
    /// The right op (record type) according to the header fields, if the stored op is damaged.
    pub(super) corrected_op: Option<u8>,
    /// Number of header fields whose name occurs more than once.
    pub(super) duplicates: u32,
    /// Offset of the record data.
    pub(super) data_at: u64,
    /// Size in bytes of the record data.
    pub(super) data_len: u32,
}

impl ProbedRecord<'_> {
    /// Returns the offset of the end of the record, according to its length fields.
    pub(super) fn end(&self) -> u64 {
        self.data_at + u64::from(self.data_len)
    }

    /// Returns whether records of this type occur only between chunks, never inside a chunk.
    pub(super) fn is_top(&self) -> bool {
        matches!(
            self.header,
            Header::BagHeader(_) | Header::Chunk(_) | Header::IndexData(_) | Header::ChunkInfo(_)
        )
    }
}

/// Result of testing whether a record starts at an offset.
#[derive(Clone, Copy, Debug)]
pub(super) enum Probe<'a> {
    /// A record whose head is valid.
    Good(ProbedRecord<'a>),
    /// The start of a record that is truncated at the end of the file or chunk.
    Cut,
    /// Bytes that are not the start of a record.
    Bad,
}

/// Tests whether the head of a record starts at offset `at`.
pub(super) fn probe(window: Window<'_>, at: u64) -> Result<Probe<'_>, NeedMore> {
    let Some(len) = window.view::<U32Le>(at)? else {
        let rest = window.upto(at, LEN)?;
        return Ok(if rest.is_empty() { Probe::Bad } else { Probe::Cut });
    };
    let len = len.get();
    // Every V2.0 record header has at least one field besides the field `op`.
    if !(MORE_THAN_OP..=MAX_HEADER).contains(&len) {
        return Ok(Probe::Bad);
    }
    let end = at + LEN + u64::from(len);
    // The header length may be damaged. Check the first bytes of the header before requesting all
    // of them.
    let start = window.upto(at + LEN, len.min(MAX_NAME_LEN).into())?;
    if !is_beginning(start, len) {
        return Ok(Probe::Bad);
    }
    let Some(header) = window.slice(at + LEN, end)? else {
        let rest = window.upto(at + LEN, u64::from(len))?;
        return Ok(if is_beginning(rest, len) { Probe::Cut } else { Probe::Bad });
    };
    let Some(fields) = Fields::read(header) else { return Ok(Probe::Bad) };
    let Some((header, corrected_op)) = Header::interpret(&fields) else { return Ok(Probe::Bad) };
    let Some(data_len) = window.view::<U32Le>(end)? else { return Ok(Probe::Cut) };
    let (duplicates, data_at, data_len) = (fields.duplicates, end + LEN, data_len.get());
    Ok(Probe::Good(ProbedRecord { header, corrected_op, duplicates, data_at, data_len }))
}

/// Returns whether the file ends at offset `at`, or another bag starts there.
fn ends(window: Window<'_>, at: u64) -> Result<bool, NeedMore> {
    if !window.has(at)? {
        return Ok(at == window.end());
    }
    Ok(line(window, at)?.is_some())
}

/// Returns the version line of a V2.0 bag at offset `at`, or `None` if there is no such line.
pub(super) fn line(window: Window<'_>, at: u64) -> Result<Option<VersionLine>, NeedMore> {
    version::at(window, at, Version::V2_0)
}

/// Returns the offset of the first record of a file whose version line is damaged. `head` are the
/// first bytes of the file. The record is a bag header, a chunk, or the first record after a
/// version line at a later offset.
pub(crate) fn first_record(head: &[u8]) -> Option<u64> {
    let window = Window::whole(head);
    (0..head.len() as u64).find_map(|at| {
        if let Ok(Some(line)) = line(window, at) {
            return Some(at + line.len);
        }
        if !matches!(may_start(window, at, MAX_SEARCHED_HEADER), Ok(true)) {
            return None;
        }
        let Ok(Probe::Good(found)) = probe(window, at) else { return None };
        matches!(found.header, Header::BagHeader(_) | Header::Chunk(_)).then_some(at)
    })
}

/// Returns whether the bytes at offset `at` can follow a record between chunks. This is the case at
/// the end of the bag, and at the head of another record between chunks, even if this head is
/// truncated.
pub(super) fn follows_top(window: Window<'_>, at: u64) -> Result<bool, NeedMore> {
    Ok(ends(window, at)?
        || match probe(window, at)? {
            Probe::Good(found) => !matches!(found.header, Header::Message(_)),
            Probe::Cut => true,
            Probe::Bad => false,
        })
}

/// Returns whether the bytes at offset `at` can follow any record. This is the case at the end of
/// the bag, and at the head of a record, even if this head is truncated.
pub(super) fn follows(window: Window<'_>, at: u64) -> Result<bool, NeedMore> {
    Ok(ends(window, at)? || !matches!(probe(window, at)?, Probe::Bad))
}

/// Returns whether a record starts at offset `at`. The check is strict, so that reading can resume
/// at this record after damage. The bytes after the record must be valid too. For a chunk, a valid
/// head is enough, because the chunk length may be missing.
pub(super) fn starts(window: Window<'_>, at: u64) -> Result<bool, NeedMore> {
    if line(window, at)?.is_some() {
        return Ok(true);
    }
    if !may_start(window, at, MAX_SEARCHED_HEADER)? {
        return Ok(false);
    }
    let Probe::Good(found) = probe(window, at)? else { return Ok(false) };
    match found.header {
        // Without this case, any bytes with a field `op` would count as a record.
        Header::Unknown(_) => Ok(false),
        Header::Chunk(Chunk { .. }) => Ok(true),
        Header::IndexData(index) => {
            // Recorders before September 2010 stated 20 bytes per index entry but wrote 12 bytes.
            // Both possible ends of the record are tested (rule K18 in docs/formats/rosbag.md).
            let whole = found.data_at + list_len::<IndexEntry>(index.count.get());
            Ok(follows_top(window, whole)? || follows_top(window, found.end())?)
        }
        // The length of a record that extends beyond the end of the file is probably damaged.
        _ if window.eof && found.end() > window.end() => Ok(false),
        _ => follows(window, found.end()),
    }
}
