//! Logs of which parts are read: the index at the start of the file tells where each second starts.

use std::ops::Range;

use rovelog_core::partial::{END, Ranges};
use rovelog_core::scan::Window;
use rovelog_core::{Result, Select};

use crate::locate::{Found, MAX_ENTRIES};
use crate::reader::VelReader;
use crate::wire::{FileHeader, INDEX_AT, entries_len};

const SECOND: i64 = 1_000_000_000;

/// Fetches the index, and as many bytes of messages behind it as there are at the start of a log
/// without one.
pub(crate) fn outline(file: &dyn Ranges) -> Result<()> {
    let head = file.read(0..END)?;
    let entries = Window::whole(&head).u32(size_of::<FileHeader>() as u64).ok().flatten();
    let index = entries_len(u64::from(entries.unwrap_or_default()).min(MAX_ENTRIES));
    file.fetch(std::slice::from_ref(&(0..(INDEX_AT + index + END).min(file.size()))))
}

impl VelReader {
    /// Returns what is to be fetched to read the messages of a window, by the index: from a second
    /// before it to one behind it. `None` without an index to go by.
    pub(crate) fn still_needed(&self, select: &Select) -> Option<Vec<Range<u64>>> {
        if self.unread.is_empty() {
            return Some(Vec::new());
        }
        let start = &self.scanner.start;
        let places: Vec<u64> = start.entries.iter().filter_map(|place| u64::try_from(*place).ok()).collect();
        let size = self.bytes.len() as u64;
        let is_usable = start.found == Found::BehindIndex
            && places.len() == start.entries.len()
            && places.is_sorted()
            && places.last().is_some_and(|last| *last <= size);
        if !is_usable || select.last_before {
            return None;
        }
        // Seconds count from the first message or from the start of the program.
        let first = self.entries.first().map_or(0, |entry| entry.nanos).max(0);
        let second = |nanos: i64, origin: i64| nanos.saturating_sub(origin).div_euclid(SECOND);
        let entry = |second: i64| usize::try_from(second.max(0)).unwrap_or(usize::MAX);
        let from = select.start.map_or(0, |start| entry(second(start, first).saturating_sub(1)));
        let to = select.end.map_or(usize::MAX, |end| entry(second(end, 0).saturating_add(2)));
        let from = if from == 0 { start.first } else { places.get(from).copied().unwrap_or(size) };
        let to = places.get(to).copied().unwrap_or(size);
        // Behind the last entry, the messages end where the file does.
        let last = places.last().copied().unwrap_or_default();
        let from = if from >= size { last } else { from };
        let needed = self.unread.missing(std::iter::once(from..to));
        (!needed.is_empty() || self.begins_at(from, select.start)).then_some(needed)
    }

    /// Returns whether the index is right about a message at `from` that is not behind the start of
    /// the window.
    fn begins_at(&self, from: u64, start: Option<i64>) -> bool {
        let found = self.entries.binary_search_by_key(&from, |entry| entry.at);
        let is_first = from == self.scanner.start.first || from == self.bytes.len() as u64;
        is_first || found.is_ok_and(|i| start.is_none_or(|start| self.entries[i].nanos <= start))
    }
}
