//! Reading of logs of which only some byte ranges are fetched, for example from a server. The index
//! at the start of the file has the offset of the first message of each second.

use std::ops::Range;

use rovelog_core::internal::partial::{END, Ranges};
use rovelog_core::internal::scan::Window;
use rovelog_core::{Result, Select};

use crate::locate::{LocatedBy, MAX_ENTRIES};
use crate::reader::VelReader;
use crate::wire::{FileHeader, INDEX_AT, entries_len};

const SECOND: i64 = 1_000_000_000;

/// Fetches the header, the index, and the first [`END`] bytes of the messages.
pub(crate) fn outline(file: &dyn Ranges) -> Result<()> {
    let head = file.read(0..END)?;
    let entries = Window::whole(&head).u32(size_of::<FileHeader>() as u64).ok().flatten();
    let index = entries_len(u64::from(entries.unwrap_or_default()).min(MAX_ENTRIES));
    file.fetch(std::slice::from_ref(&(0..(INDEX_AT + index + END).min(file.size()))))
}

impl VelReader {
    /// Returns the byte ranges that must be fetched to read the messages of a time window.
    /// According to the index, these ranges extend from a second before the window to a second
    /// after it. Returns `None` if the index cannot be used.
    pub(crate) fn still_needed(&self, select: &Select) -> Option<Vec<Range<u64>>> {
        if self.unread.is_empty() {
            return Some(Vec::new());
        }
        let start = &self.scanner.start;
        let places: Vec<u64> = start.entries.iter().filter_map(|place| u64::try_from(*place).ok()).collect();
        let size = self.bytes.len() as u64;
        let is_usable = start.found == LocatedBy::AfterIndex
            && places.len() == start.entries.len()
            && places.is_sorted()
            && places.last().is_some_and(|last| *last <= size);
        if !is_usable || select.last_before {
            return None;
        }
        // The index counts seconds from the first message or from the start of the program. The
        // file does not state which, so the range of bytes is large enough for both.
        let first = self.entries.first().map_or(0, |entry| entry.nanos).max(0);
        let second = |nanos: i64, origin: i64| nanos.saturating_sub(origin).div_euclid(SECOND);
        let entry = |second: i64| usize::try_from(second.max(0)).unwrap_or(usize::MAX);
        let from = select.start.map_or(0, |start| entry(second(start, first).saturating_sub(1)));
        let to = select.end.map_or(usize::MAX, |end| entry(second(end, 0).saturating_add(2)));
        let from = if from == 0 { start.first } else { places.get(from).copied().unwrap_or(size) };
        let to = places.get(to).copied().unwrap_or(size);
        // If the time window starts after the second of the last index entry, its messages are
        // between the offset in this entry and the end of the file.
        let last = places.last().copied().unwrap_or_default();
        let from = if from >= size { last } else { from };
        let needed = self.unread.missing(std::iter::once(from..to));
        (!needed.is_empty() || self.begins_at(from, select.start)).then_some(needed)
    }

    /// Checks the offset `from` of an index entry, after the bytes at this offset have been
    /// fetched. Returns whether a message starts at `from` whose time is at or before `start`, the
    /// start of the time window.
    fn begins_at(&self, from: u64, start: Option<i64>) -> bool {
        let found = self.entries.binary_search_by_key(&from, |entry| entry.at);
        let is_first = from == self.scanner.start.first || from == self.bytes.len() as u64;
        is_first || found.is_ok_and(|i| start.is_none_or(|start| self.entries[i].nanos <= start))
    }
}
