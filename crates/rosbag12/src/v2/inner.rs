//! The records of an unpacked chunk, one after the other, damage included. A record that is good is
//! never looked into: its payload may be a bag.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use rovelog_core::scan::{NeedMore, Window};

use super::heads::{Message, Template};
use super::probe::{Found, Probe, follows, probe, starts};
use super::state::IndexRange;
use super::wire::Header;
use crate::tables::usize_of;
use crate::validate::Search;

/// What comes next in a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Item<'a> {
    Message(Message),
    /// A connection record: its head, number, topic and data.
    Connection {
        at: usize,
        head: &'a [u8],
        conn: u32,
        topic: &'a [u8],
        data: &'a [u8],
    },
    /// A record of another kind.
    Other {
        at: usize,
        end: usize,
        op: u8,
    },
    /// Bytes in which no record was recognised.
    Lost {
        at: usize,
        end: usize,
    },
    /// A record that the end of the bytes cuts.
    Tail {
        at: usize,
    },
}

/// A message that the index data of a chunk name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hint {
    pub(crate) offset: u32,
    pub(crate) conn: u32,
}

/// What the index data of a chunk name, read where damage asks for it.
#[derive(Debug, Default)]
pub(crate) struct Hints<'a> {
    ranges: &'a [IndexRange],
    file: &'a [u8],
    /// Bytes that the chunk has or had, by its header.
    len: u64,
    read: OnceCell<Vec<Hint>>,
    conns: OnceCell<BTreeSet<u32>>,
}

impl<'a> Hints<'a> {
    pub(crate) fn new(ranges: &'a [IndexRange], file: &'a [u8], len: u32) -> Self {
        Self { ranges, file, len: len.into(), ..Self::default() }
    }

    /// Returns all of them, ascending.
    fn all(&self) -> &[Hint] {
        self.read.get_or_init(|| {
            let mut hints = Vec::new();
            for range in self.ranges {
                let entries = range.entries(self.file, self.len).iter();
                hints.extend(entries.map(|e| Hint { offset: e.offset.get(), conn: range.conn }));
            }
            hints.sort_unstable();
            hints
        })
    }

    fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// Returns whether they name messages of a connection.
    fn name(&self, conn: u32) -> bool {
        self.conns.get_or_init(|| self.all().iter().map(|hint| hint.conn).collect()).contains(&conn)
    }
}

/// A scan over the bytes of a chunk.
#[derive(Debug)]
pub(crate) struct Inner<'a> {
    data: &'a [u8],
    hints: Hints<'a>,
    template: Option<Template>,
    /// Bytes that the chunk has by its header; 0 if that does not say.
    claimed: u64,
    at: usize,
    /// By how much the records are behind the places that the index names: bytes that were added to
    /// the chunk before this place, or with a minus those that are missing.
    shift: i64,
    /// How many places of the index the search for a shift has looked at.
    looked_at: usize,
    /// The last answer of [`hinted`](Self::hinted): from where, with which shift, and what.
    last: Option<(usize, i64, Option<usize>)>,
}

/// Places of the index before and behind a record that may be its own.
const NEAR: usize = 512;

/// Records that follow each other, so that a shift or a start is sure.
const CHAIN: usize = 3;

/// Records among which those must be; the index data of others may be lost.
const CHAIN_OF_ALL: usize = 64;

impl<'a> Inner<'a> {
    pub(crate) fn new(data: &'a [u8], hints: Hints<'a>, claimed: u64, template: Option<Template>) -> Self {
        let hints = Hints { len: hints.len.max(data.len() as u64), ..hints };
        Self { data, hints, template, claimed, at: 0, shift: 0, looked_at: 0, last: None }
    }

    /// Returns a scan that goes on at `at`.
    pub(crate) fn at(self, at: usize) -> Self {
        Self { at, ..self }
    }

    /// Returns where the next record starts.
    pub(crate) fn place(&self) -> usize {
        self.at
    }

    /// Returns how the headers of messages look.
    pub(crate) fn template(&self) -> Option<Template> {
        self.template
    }

    /// Hands messages to `sink` as long as each has a header as the last one had, and the next one
    /// has too. What is left is for [`next`](Iterator::next).
    #[inline]
    pub(crate) fn messages(&mut self, mut sink: impl FnMut(Message)) {
        let Some(template) = &self.template else { return };
        let data = self.data;
        let Some(mut found) = template.find(data, self.at) else { return };
        loop {
            if found.end == data.len() {
                self.at = found.end;
                return sink(found);
            }
            let Some(next) = template.find(data, found.end) else { break };
            sink(found);
            found = next;
        }
        self.at = found.at;
    }

    fn window(&self) -> Window<'a> {
        Window::whole(self.data)
    }

    /// Returns the item at the place. The window is whole, so nothing is ever missing.
    fn item(&mut self) -> Result<Item<'a>, NeedMore> {
        let (window, at) = (self.window(), self.at);
        let found = match probe(window, at as u64)? {
            Probe::Good(found) => found,
            Probe::Cut => return self.resume(at + 1, true),
            Probe::Bad => return self.resume(at + 1, false),
        };
        let data_at = usize_of(found.data_at);
        if found.end() > self.data.len() as u64 {
            // The chunk is cut as its header says, and so is the record.
            if found.end() <= self.claimed && self.hints.is_empty() {
                self.at = self.data.len();
                return Ok(Item::Tail { at });
            }
            return self.resume(data_at, true);
        }
        if !follows(window, found.end())?
            && let Some(next) = self.swallowed(&found)?
        {
            return Ok(self.lose(next));
        }
        let end = usize_of(found.end());
        self.at = end;
        Ok(match found.header {
            Header::Message(message) => {
                self.template = Template::of(&self.data[at..end]).or(self.template);
                let (conn, time) = (message.conn.get(), *message.time);
                Item::Message(Message { at, payload_at: data_at, end, conn, time })
            }
            Header::Connection(connection) => {
                let (conn, topic) = (connection.conn.get(), connection.topic);
                let (head, data) = (&self.data[at..data_at], &self.data[data_at..end]);
                Item::Connection { at, head, conn, topic, data }
            }
            other => Item::Other { at, end, op: other.op() },
        })
    }

    fn lose(&mut self, end: usize) -> Item<'a> {
        let at = std::mem::replace(&mut self.at, end);
        Item::Lost { at, end }
    }

    /// Returns where records go on inside of a record that none follows: its length is damaged, if
    /// the index or the records themselves say so.
    fn swallowed(&mut self, found: &Found<'a>) -> Result<Option<usize>, NeedMore> {
        let (from, end) = (usize_of(found.data_at), found.end());
        let mut search = Search::from(from as u64);
        if !self.hints.is_empty() {
            let hinted = self.hinted(from).filter(|place| (*place as u64) < end);
            let limit = hinted.map_or(end, |place| place as u64);
            while let Some(start) = search.run_to(self.window(), limit, starts)? {
                if self.is_displaced(start)? {
                    return Ok(Some(usize_of(start)));
                }
                search.next = start + 1;
            }
            return Ok(hinted);
        }
        while let Some(start) = search.run_to(self.window(), end, starts)? {
            // A chain of records that leads beyond the end is the bag's; one that ends there may be the payload's.
            let mut at = start;
            while at < end {
                let Probe::Good(next) = probe(self.window(), at)? else { break };
                at = next.end();
            }
            if at > end && follows(self.window(), at)? {
                return Ok(Some(usize_of(start)));
            }
            search.next = at.max(start + 1);
        }
        Ok(None)
    }

    /// Returns the next place from `from` on that the index names, and where a message of that
    /// connection starts.
    fn hinted(&mut self, from: usize) -> Option<usize> {
        // Places that are wrong must not be looked at again for each damage in front of them.
        if let Some((start, shift, found)) = self.last
            && shift == self.shift
            && start <= from
            && found.is_none_or(|found| from <= found)
        {
            return found;
        }
        let hints = self.hints.all();
        let place = |hint: &Hint| u64::try_from(i64::from(hint.offset) + self.shift).ok();
        let first = hints.partition_point(|hint| place(hint).is_none_or(|place| place < from as u64));
        let right = |hint: &Hint| place(hint).filter(|place| self.is_right(*place, hint.conn));
        let found = hints[first..].iter().enumerate().find_map(|(n, hint)| Some((n, right(hint)?)));
        // Nor for each shift: they count as places that the search for one has looked at.
        let wrong = found.map_or(hints.len() - first, |(wrong, _)| wrong);
        let found = found.map(|(_, place)| usize_of(place));
        self.looked_at += wrong;
        self.last = Some((from, self.shift, found));
        found
    }

    /// Returns whether a whole message of a connection starts at a place that the index names.
    fn is_right(&self, place: u64, conn: u32) -> bool {
        self.whole(place).is_ok_and(|found| found.is_some_and(|(of, _)| of == Some(conn)))
    }

    /// Returns the connection and the end of the whole message at `at`, or the end of a connection
    /// record.
    fn whole(&self, at: u64) -> Result<Option<(Option<u32>, u64)>, NeedMore> {
        let Probe::Good(found) = probe(self.window(), at)? else { return Ok(None) };
        let whole = found.end() <= self.data.len() as u64;
        Ok(match found.header {
            Header::Message(message) if whole => Some((Some(message.conn.get()), found.end())),
            Header::Connection(_) => Some((None, found.end())),
            _ => None,
        })
    }

    /// Returns whether the messages from `start` on follow each other as the index says, only at
    /// other places: bytes before them are missing or were added. Goes on with that shift.
    fn is_displaced(&mut self, start: u64) -> Result<bool, NeedMore> {
        // The index data of a connection may be lost: the first message that has some.
        let mut start = start;
        let conn = loop {
            if self.has_searched_enough() {
                return Ok(false);
            }
            let Some((conn, end)) = self.whole(start)? else { return Ok(false) };
            if let Some(conn) = conn.filter(|conn| self.hints.name(*conn)) {
                break conn;
            }
            self.looked_at += 1;
            start = end;
        };
        let mut shifts = Vec::new();
        {
            let hints = self.hints.all();
            let place = signed(start) - self.shift;
            let next = hints.partition_point(|hint| i64::from(hint.offset) < place);
            let near = &hints[next.saturating_sub(NEAR)..(next + NEAR).min(hints.len())];
            let own = near.iter().filter(|hint| hint.conn == conn);
            shifts.extend(own.map(|hint| signed(start) - i64::from(hint.offset)));
            self.looked_at += near.len();
        }
        // The smallest change is the most likely.
        shifts.sort_by_key(|shift| shift.abs_diff(self.shift));
        for shift in shifts {
            if self.is_chain(start, shift)? {
                self.shift = shift;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Damage at every message must not cost a search among all places of the index each time.
    fn has_searched_enough(&self) -> bool {
        self.looked_at > 16 * self.hints.all().len()
    }

    /// Returns whether messages follow each other from `start` on as the index says, with this
    /// shift: several, or all that are left.
    fn is_chain(&self, start: u64, shift: i64) -> Result<bool, NeedMore> {
        let hints = self.hints.all();
        let (mut at, mut named) = (start, 0);
        for _ in 0..CHAIN_OF_ALL {
            let Some((conn, end)) = self.whole(at)? else { return Ok(false) };
            if let Some(conn) = conn.filter(|conn| self.hints.name(*conn)) {
                let Ok(offset) = u32::try_from(signed(at) - shift) else { return Ok(false) };
                if hints.binary_search(&Hint { offset, conn }).is_err() {
                    return Ok(false);
                }
                named += 1;
            }
            if named == CHAIN || end == self.data.len() as u64 {
                return Ok(true);
            }
            at = end;
        }
        Ok(false)
    }

    /// Goes on behind damage at the place: the next record from `from` on.
    fn resume(&mut self, from: usize, cut: bool) -> Result<Item<'a>, NeedMore> {
        let (window, len) = (self.window(), self.data.len());
        let hinted = self.hinted(from);
        let limit = hinted.unwrap_or(len);
        let mut search = Search::from(from as u64);
        while let Some(start) = search.run_to(window, limit as u64, starts)? {
            if self.hints.is_empty() || self.leads(start, hinted)? {
                // Behind a record that most likely the end cuts only what is sure to be none of its payload counts.
                if !cut || !self.hints.is_empty() || self.leads_on(start)? {
                    return Ok(self.lose(usize_of(start)));
                }
                break;
            }
            if self.is_displaced(start)? {
                return Ok(self.lose(usize_of(start)));
            }
            search.next = start + 1;
        }
        if let Some(hinted) = hinted {
            return Ok(self.lose(hinted));
        }
        if cut {
            let at = std::mem::replace(&mut self.at, len);
            return Ok(Item::Tail { at });
        }
        Ok(self.lose(len))
    }

    /// Returns whether records from `start` on, of connections that the index leaves out, lead
    /// exactly to the hint or the end.
    fn leads(&self, start: u64, hinted: Option<usize>) -> Result<bool, NeedMore> {
        let end = hinted.unwrap_or(self.data.len()) as u64;
        let mut at = start;
        while at < end {
            let Probe::Good(found) = probe(self.window(), at)? else {
                return Ok(hinted.is_none() && at > start);
            };
            let may_be = match found.header {
                Header::Connection(_) => true,
                Header::Message(message) => !self.hints.name(message.conn.get()),
                _ => false,
            };
            if !may_be {
                return Ok(false);
            }
            at = found.end();
        }
        Ok(at == end || hinted.is_none())
    }

    /// Returns whether records of a chunk follow each other from `start` on: several, or all up to
    /// the very end, which cuts the last one if the chunk was never closed. Those of a bag that is a
    /// payload come behind the bag header of that bag.
    fn leads_on(&self, start: u64) -> Result<bool, NeedMore> {
        let (mut at, len, is_open) = (start, self.data.len() as u64, self.claimed == 0);
        for _ in 0..CHAIN {
            at = match probe(self.window(), at)? {
                Probe::Good(found) if found.is_top() => return Ok(false),
                Probe::Good(found) if found.end() > len => return Ok(is_open),
                Probe::Good(found) => found.end(),
                Probe::Cut | Probe::Bad => return Ok(at == len),
            };
        }
        Ok(true)
    }
}

fn signed(place: u64) -> i64 {
    i64::try_from(place).expect("within a chunk")
}

impl<'a> Iterator for Inner<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        (self.at < self.data.len()).then(|| self.item().expect("all bytes are at hand"))
    }
}
