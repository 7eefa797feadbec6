//! What the index of a section names. Behind damage that tells the records of a bag from those
//! inside of messages (section 5, D5).

use std::collections::HashMap;

use rovelog_core::scan::Window;

use crate::validate::{Found, Probe, Search, are_damaged, probe};
use crate::wire::{Data, Header, IndexEntry};

/// The first entry of a topic: its place and the stamp of the message that it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct First {
    place: u64,
    sec: u32,
    nsec: u32,
}

/// The places that the index of a section names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Named {
    /// All of them, and that of the index itself; ascending.
    places: Vec<u64>,
    /// The first entry of each topic. As a rule it names the definition; the message behind it is
    /// named by its stamp alone.
    firsts: HashMap<Box<[u8]>, First>,
    /// The places of these, ascending.
    first_places: Vec<u64>,
    /// The answer of the last search for a place with a valid record: where it started, what it
    /// found.
    last: Option<(u64, u64)>,
}

impl Named {
    /// Reads the index that the section at `offset`, whose records start at `first_record`, has at
    /// `index_pos`, counted from `offset`. It is empty where its records do not fill the file to its
    /// end, or name places that are none: reading would jump over the messages whose places are
    /// damaged.
    pub(crate) fn of(window: Window<'_>, offset: u64, first_record: u64, index_pos: Option<u64>) -> Self {
        Self::read(window, offset, first_record, index_pos).unwrap_or_default()
    }

    fn read(window: Window<'_>, offset: u64, first_record: u64, index_pos: Option<u64>) -> Option<Self> {
        let start = index_pos.filter(|pos| *pos > 0)?.checked_add(offset)?;
        let mut named = Self { places: vec![start], ..Self::default() };
        let (mut at, end) = (start, window.end());
        let is_outside = |place: u64| place < first_record || place >= start;
        while at < end {
            let Ok(Probe::Good(Found { header, data_at, end: behind, .. })) = probe(window, at) else {
                return None;
            };
            let Header::Index(index) = header else { return None };
            let entries = IndexEntry::all_of(window.slice(data_at, behind).ok().flatten()?);
            let place = |pos: u64| offset.saturating_add(pos);
            let places = entries.iter().map(|entry| place(entry.pos.get()));
            if are_damaged(places.clone(), is_outside) {
                return None;
            }
            named.places.extend(places.filter(|place| *place < end));
            if let Some(entry) = entries.first() {
                let first =
                    First { place: place(entry.pos.get()), sec: entry.sec.get(), nsec: entry.nsec.get() };
                named.first_places.push(first.place);
                named.firsts.insert(index.topic.into(), first);
            }
            at = behind;
        }
        named.places.sort_unstable();
        named.first_places.sort_unstable();
        Some(named)
    }

    /// Returns where records of the bag go on behind damage that starts at `start`: the next place
    /// that the index names and where a valid record starts, or a message before it that the index
    /// means by the entry of its definition.
    pub(crate) fn next(&mut self, window: Window<'_>, start: u64) -> Option<u64> {
        let next = self.next_place(window, start)?;
        // The entry that the damage starts at or behind counts too: it may name the definition that is gone.
        let before = self.places.partition_point(|place| *place <= start).checked_sub(1);
        let from = before.map_or(start, |before| self.places[before]);
        let first = self.first_places.partition_point(|place| *place < from);
        if self.first_places.get(first).is_none_or(|place| *place >= next) {
            return Some(next);
        }
        let mut search = Search::from(start + 1);
        // The window is the whole file, so nothing is missing.
        while let Some(found) = search.run(window, next).ok().flatten() {
            if self.is_first(window, found, from) {
                return Some(found);
            }
            search.next = found + 1;
        }
        Some(next)
    }

    /// Returns whether the message at `at` is the first of its topic, by an entry of the index that
    /// names a place in front of it, at or behind `from`.
    fn is_first(&self, window: Window<'_>, at: u64, from: u64) -> bool {
        let Ok(Probe::Good(Found { header: Header::Data(Data { topic, sec, nsec, .. }), .. })) =
            probe(window, at)
        else {
            return false;
        };
        self.firsts.get(topic).is_some_and(|first| {
            (first.sec, first.nsec) == (sec.get(), nsec.get()) && (from..at).contains(&first.place)
        })
    }

    /// Returns the first place behind `start` that is named and where a valid record starts.
    fn next_place(&mut self, window: Window<'_>, start: u64) -> Option<u64> {
        if let Some((from, found)) = self.last
            && (from..found).contains(&start)
        {
            return Some(found);
        }
        let is_valid = |place: u64| matches!(probe(window, place), Ok(Probe::Good(found)) if !matches!(found.header, Header::Unknown(_)));
        let behind = &self.places[self.places.partition_point(|place| *place <= start)..];
        let found = behind.iter().copied().find(|place| is_valid(*place))?;
        self.last = Some((start, found));
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use rovelog_core::wire::{U32Le, U64Le};
    use zerocopy::IntoBytes as _;

    use super::*;
    use crate::wire::{Index, VERSION_LINE};

    /// Returns whether an index that starts at 1000 and names these places in a row is used.
    fn is_used(places: [u64; 3]) -> bool {
        let entry =
            |place: u64| IndexEntry { sec: U32Le::new(0), nsec: U32Le::new(0), pos: U64Le::new(place) };
        let data = places.map(entry);
        let (ver, count) = (U32Le::new(0), U32Le::new(3));
        let index = Index { topic: b"/a", ty: None, ver: &ver, count: &count };
        let head = Header::Index(index).to_head(u32::try_from(data.as_bytes().len()).unwrap());
        let bytes = [&[0; 1000][..], &head, data.as_bytes()].concat();
        let named = Named::of(Window::whole(&bytes), 0, VERSION_LINE.len() as u64, Some(1000));
        !named.places.is_empty()
    }

    #[test]
    fn an_index_that_names_itself_and_what_is_behind_is_damaged() {
        assert!(is_used([100, 500, 900]));
        assert!(is_used([100, 500, 1000]), "one place may be wrong");
        assert!(is_used([500, 2000, 900]));
        assert!(!is_used([500, 1000, 2000]));
        assert!(!is_used([2000, 3000, 900]));
    }
}
