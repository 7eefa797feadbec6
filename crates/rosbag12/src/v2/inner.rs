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

impl Hint {
    /// Returns its place where records are so many bytes behind those that the index names.
    fn place(self, shift: i64) -> i64 {
        i64::from(self.offset) + shift
    }
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

    /// Returns the number of the first one at or behind a place.
    fn first_from(&self, place: u64, shift: i64) -> usize {
        self.all().partition_point(|hint| hint.place(shift) < signed(place))
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
    /// What is lost from the place on, where a scan before this one has found it.
    known: Option<&'a [(u64, u64)]>,
    at: usize,
    /// By how much the records are behind the places that the index names: bytes that were added to
    /// the chunk before this place, or with a minus those that are missing.
    shift: i64,
    /// How many places of the index the search for a shift has looked at.
    looked_at: usize,
    /// The last answer of [`is_any_named`](Self::is_any_named): from where, with which shift, and the
    /// place of that message.
    named: Option<(u64, i64, Option<u64>)>,
    /// Where the last record starts and what its fields say that its op is, if that is damaged.
    meant: Option<(usize, u8)>,
}

/// Places of the index before and behind a record that may be its own.
const NEAR: usize = 512;

/// How many times all places of the index may be looked at, and how many they are taken for at least.
const EFFORT: usize = 16;
const FEW: usize = 256;

/// Records that follow each other, so that a shift or a start is sure.
const CHAIN: usize = 3;

/// Records among which those must be; the index data of others may be lost.
const CHAIN_OF_ALL: usize = 64;

impl<'a> Inner<'a> {
    pub(crate) fn new(data: &'a [u8], hints: Hints<'a>, claimed: u64, template: Option<Template>) -> Self {
        let hints = Hints { len: hints.len.max(data.len() as u64), ..hints };
        Self {
            data,
            hints,
            template,
            claimed,
            known: None,
            at: 0,
            shift: 0,
            looked_at: 0,
            named: None,
            meant: None,
        }
    }

    /// Returns a scan that goes on at `at`.
    pub(crate) fn at(self, at: usize) -> Self {
        Self { at, ..self }
    }

    /// Returns a scan that finds what one before it has found, which lost these bytes: it searches
    /// nothing.
    pub(crate) fn again(self, lost: &'a [(u64, u64)]) -> Self {
        Self { known: Some(lost), ..self }
    }

    /// Returns where the next record starts.
    pub(crate) fn place(&self) -> usize {
        self.at
    }

    /// Returns how the headers of messages look.
    pub(crate) fn template(&self) -> Option<Template> {
        self.template
    }

    /// Returns where the record that [`next`](Iterator::next) returned starts and which op is meant, if
    /// its own is damaged.
    pub(crate) fn meant(&self) -> Option<(usize, u8)> {
        self.meant
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
        if let Some([(start, end), rest @ ..]) = self.known
            && *start == at as u64
        {
            self.known = Some(rest);
            return Ok(self.lose(usize_of(*end)));
        }
        let found = match probe(window, at as u64)? {
            Probe::Good(found) => found,
            Probe::Cut => return self.resume(at as u64 + 1, true),
            Probe::Bad => return self.resume(at as u64 + 1, false),
        };
        let data_at = usize_of(found.data_at);
        if found.end() > self.data.len() as u64 {
            // The chunk is cut as its header says, and so is the record.
            if found.end() <= self.claimed && self.hints.is_empty() {
                self.at = self.data.len();
                return Ok(Item::Tail { at });
            }
            return self.resume(found.data_at, true);
        }
        if self.known.is_none()
            && !follows(window, found.end())?
            && let Some(next) = self.swallowed(&found)?
        {
            return Ok(self.lose(usize_of(next)));
        }
        let end = usize_of(found.end());
        self.at = end;
        self.meant = found.meant.map(|op| (at, op));
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
    fn swallowed(&mut self, found: &Found<'a>) -> Result<Option<u64>, NeedMore> {
        let (from, end) = (found.data_at, found.end());
        if !self.hints.is_empty() {
            return self.by_index(from, end, end);
        }
        let mut search = Search::from(from);
        while let Some(start) = search.run_to(self.window(), end, starts)? {
            // A chain of records that leads beyond the end is the bag's; one that ends there may be the payload's.
            let mut at = start;
            while at < end {
                let Probe::Good(next) = probe(self.window(), at)? else { break };
                at = next.end();
            }
            if at > end && follows(self.window(), at)? {
                return Ok(Some(start));
            }
            search.next = at.max(start + 1);
        }
        Ok(None)
    }

    /// Returns where between `from` and `limit` records go on by the index: where a message starts
    /// that it names, or from where records lead to such a one. Records up to `payload_end` may be
    /// those of a payload.
    fn by_index(&mut self, from: u64, limit: u64, payload_end: u64) -> Result<Option<u64>, NeedMore> {
        let mut search = Search::from(from);
        let mut number = self.hints.first_from(from, self.shift);
        loop {
            let hint = self.hints.all().get(number).copied();
            let place = hint.map_or(limit, |hint| hint.place(self.shift).cast_unsigned().min(limit));
            while let Some(start) = search.run_to(self.window(), place, starts)? {
                if self.is_led(start, payload_end)? {
                    return Ok(Some(start));
                }
                search.next = start + 1;
            }
            match hint.filter(|_| place < limit) {
                None => return Ok(None),
                Some(hint) if self.is_right(place, hint.conn) => return Ok(Some(place)),
                Some(_) => number += 1,
            }
        }
    }

    /// Returns whether the index names the place of a message from `from` on.
    fn is_any_named(&mut self, from: u64) -> bool {
        // Places that are wrong must not be looked at again for each damage in front of them.
        if let Some((start, shift, found)) = self.named
            && shift == self.shift
            && start <= from
            && found.is_none_or(|place| from <= place)
        {
            return found.is_some();
        }
        let hints = &self.hints.all()[self.hints.first_from(from, self.shift)..];
        let places = hints.iter().map(|hint| (hint.place(self.shift).cast_unsigned(), hint.conn));
        let mut looked_at = 0;
        let found = places.inspect(|_| looked_at += 1).find(|(place, conn)| self.is_right(*place, *conn));
        // Nor for each shift.
        self.looked_at += looked_at;
        self.named = Some((from, self.shift, found.map(|(place, _)| place)));
        found.is_some()
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

    /// Returns whether records from `start` on lead to a message where the index names it, or to
    /// several that follow each other as it says, only at other places: bytes before them are missing
    /// or were added. Goes on with that shift.
    fn is_led(&mut self, start: u64, payload_end: u64) -> Result<bool, NeedMore> {
        // The index data of a connection may be lost: the first message that has some.
        let mut at = start;
        let conn = loop {
            if self.has_searched_enough() {
                return Ok(false);
            }
            self.looked_at += 1;
            let Probe::Good(found) = probe(self.window(), at)? else {
                // Where the index names nothing more, only such records are left.
                return Ok(at > start.max(payload_end) && !self.is_any_named(start));
            };
            match found.header {
                Header::Message(message) if self.hints.name(message.conn.get()) => break message.conn.get(),
                Header::Message(_) | Header::Connection(_) => at = found.end(),
                _ => return Ok(false),
            }
        };
        let hints = self.hints.all();
        let (before, behind) = hints.split_at(self.hints.first_from(at, self.shift));
        let mut before = before.iter().rev().take(NEAR).peekable();
        let mut behind = behind.iter().take(NEAR).peekable();
        let distance = |hint: &&Hint| hint.place(self.shift).abs_diff(signed(at));
        // The smallest change is the most likely.
        let nearest = std::iter::from_fn(|| match (before.peek(), behind.peek()) {
            (Some(one), Some(other)) if distance(one) < distance(other) => before.next(),
            (_, None) => before.next(),
            _ => behind.next(),
        });
        for hint in nearest {
            self.looked_at += 1;
            let shift = signed(at) - i64::from(hint.offset);
            if hint.conn == conn && (shift == self.shift || self.is_chain(at, shift)?) {
                self.shift = shift;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Damage at every message must not cost a search among all places of the index each time; in a
    /// short chunk it may.
    fn has_searched_enough(&self) -> bool {
        self.looked_at > EFFORT * self.hints.all().len().max(FEW)
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
    fn resume(&mut self, from: u64, cut: bool) -> Result<Item<'a>, NeedMore> {
        let len = self.data.len();
        let next = if self.hints.is_empty() {
            match Search::from(from).run_to(self.window(), len as u64, starts)? {
                // Behind a record that most likely the end cuts only what is sure to be none of its payload counts.
                Some(start) if !cut || self.leads_on(start)? => Some(start),
                _ => None,
            }
        } else {
            self.by_index(from, len as u64, from)?
        };
        if next.is_none() && cut {
            let at = std::mem::replace(&mut self.at, len);
            return Ok(Item::Tail { at });
        }
        Ok(self.lose(next.map_or(len, usize_of)))
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
        self.meant = None;
        (self.at < self.data.len()).then(|| self.item().expect("all bytes are at hand"))
    }
}
