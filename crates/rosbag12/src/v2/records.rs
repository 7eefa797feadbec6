//! Iterates over the records of a decompressed chunk and skips damage (rule K22 in
//! docs/formats/rosbag.md).
//!
//! A valid record is never searched for other records, because its payload may itself be a bag.
//!
//! After damage, the search for the next record uses the index data of the chunk, which list the
//! offset of every message. Bytes that were lost or added move all later messages by the same
//! distance, the *shift*. Example: the index lists messages at 0, 100, 200, 300 and 400, and 3
//! bytes of the message at 100 are missing. A record is found at 197. The nearest entry is 200, so
//! the shift would be -3. The records at 197, 297 and 397 match the entries 200, 300 and 400 with
//! this shift, and three matches in a row confirm it.
//!
//! Without index data, the search ends at the first record that another record follows.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::ops::Range;

use rovelog_core::internal::scan::{NeedMore, Window};

use super::content::{ConnectionRecord, IndexRange};
use super::probe::{Probe, ProbedRecord, follows, probe, starts};
use super::template::Template;
use super::wire::Header;
use crate::message::{MessageRef, usize_of};
use crate::validate::Search;

/// An item found while reading the decompressed data of a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ChunkItem<'a> {
    /// A message record. The field `origin` contains the connection id.
    Message(MessageRef),
    /// A connection record.
    Connection { at: usize, record: ConnectionRecord<'a> },
    /// A record whose op (record type) is neither message nor connection.
    Other { at: usize, end: usize, op: u8 },
    /// Bytes in which no record was recognized.
    Lost { at: usize, end: usize },
    /// A record that is truncated at the end of the chunk data.
    Tail { at: usize },
}

/// A message that the index data of the chunk list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hint {
    /// Offset of the message record in the chunk.
    pub(crate) offset: u32,
    /// Connection id of the message.
    pub(crate) conn: u32,
}

impl Hint {
    /// Returns the expected offset of the message if all records have moved by `shift` bytes,
    /// because bytes were added or lost before them.
    fn place(self, shift: i64) -> i64 {
        i64::from(self.offset) + shift
    }
}

/// Index data of a chunk, and state of the searches for indexed messages. The index data are parsed
/// only if the chunk is damaged.
#[derive(Debug, Default)]
pub(crate) struct Hints<'a> {
    /// Index data records of the chunk.
    ranges: &'a [IndexRange],
    /// Bytes of the whole bag file.
    file: &'a [u8],
    /// Size in bytes of the chunk data according to the chunk header, which is their size before
    /// any damage.
    len: u64,
    /// Index entries after parsing, sorted by offset.
    read: OnceCell<Vec<Hint>>,
    /// Connection ids that have index entries.
    conns: OnceCell<BTreeSet<u32>>,
    /// Distance in bytes between the records and their indexed offsets. Positive if bytes were
    /// added before the records, negative if bytes are missing.
    shift: i64,
    /// Number of index entries that all searches so far have examined. This number is limited, to
    /// bound the time of damaged chunks.
    checked_count: usize,
    /// Arguments and result of the last call of [`ChunkRecords::is_any_indexed`].
    last_search: Option<IndexSearch>,
}

impl<'a> Hints<'a> {
    pub(crate) fn new(ranges: &'a [IndexRange], file: &'a [u8], len: u32) -> Self {
        Self { ranges, file, len: len.into(), ..Self::default() }
    }

    /// Returns all index entries, sorted by offset.
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

    /// Returns the number of index entries whose expected offset is below `place`.
    fn first_at_or_after(&self, place: u64) -> usize {
        self.all().partition_point(|hint| hint.place(self.shift) < signed(place))
    }

    /// Returns whether the searches in this chunk have reached their limit. Without a limit, a
    /// chunk with damage in every message would take quadratic time.
    fn have_searched_enough(&self) -> bool {
        self.checked_count > MAX_SEARCHES * self.all().len().max(MIN_HINTS)
    }

    /// Returns whether the index data have any entry for the connection id `conn`.
    fn has_entries_of(&self, conn: u32) -> bool {
        self.conns.get_or_init(|| self.all().iter().map(|hint| hint.conn).collect()).contains(&conn)
    }
}

/// Result of a search for the next indexed message that is present in the chunk.
#[derive(Clone, Copy, Debug)]
struct IndexSearch {
    /// Offset in the chunk at which the search started.
    from: u64,
    /// Shift that was assumed, that is, the distance of the records from their indexed offsets.
    shift: i64,
    /// Offset of the indexed message. `None` if no indexed message was found.
    found: Option<u64>,
}

/// An iterator over the records of a chunk that skips damage.
#[derive(Debug)]
pub(crate) struct ChunkRecords<'a> {
    /// Decompressed data of the chunk.
    data: &'a [u8],
    /// Index data of the chunk.
    hints: Hints<'a>,
    /// Template of the header that the latest messages share.
    template: Option<Template>,
    /// Size in bytes of the chunk data according to the chunk header. 0 if the header does not
    /// state the size.
    declared_len: u64,
    /// Lost ranges at and after the current offset, from an earlier scan of the same chunk. `None`
    /// in the first scan.
    known_lost: Option<&'a [Range<u64>]>,
    /// Offset of the next record in the chunk.
    at: usize,
    /// Offset and corrected op (record type) of the last record, if its stored op was damaged.
    corrected_op: Option<(usize, u8)>,
}

/// Maximum number of index entries on each side of a record that are compared with the record.
const MAX_NEARBY: usize = 512;

/// Average number of times that the searches in one chunk may examine each index entry.
const MAX_SEARCHES: usize = 16;
/// Smallest number of index entries for which the limit of the searches is computed, so that chunks
/// with few entries are searched thoroughly.
const MIN_HINTS: usize = 256;

/// Number of consecutive records that must match to confirm a shift or the start of a record.
const CHAIN: usize = 3;

/// Maximum number of records among which the confirming records are searched. The records between
/// the confirming ones may belong to connections whose index data are lost.
const MAX_CHAIN: usize = 64;

impl<'a> ChunkRecords<'a> {
    pub(crate) fn new(
        data: &'a [u8],
        hints: Hints<'a>,
        declared_len: u64,
        template: Option<Template>,
    ) -> Self {
        let hints = Hints { len: hints.len.max(data.len() as u64), ..hints };
        Self { data, hints, template, declared_len, known_lost: None, at: 0, corrected_op: None }
    }

    /// Moves the iterator to offset `at` of the chunk.
    pub(crate) fn at(self, at: usize) -> Self {
        Self { at, ..self }
    }

    /// Skips the lost ranges `lost`, which an earlier scan of the same chunk found. Without this,
    /// the iterator searches for records after each damage again.
    pub(crate) fn with_known_lost(self, lost: &'a [Range<u64>]) -> Self {
        Self { known_lost: Some(lost), ..self }
    }

    /// Returns the offset of the next record in the chunk.
    pub(crate) fn place(&self) -> usize {
        self.at
    }

    /// Returns the template of the header that the latest messages share.
    pub(crate) fn template(&self) -> Option<Template> {
        self.template
    }

    /// Returns the offset and the corrected op (record type) of the record that
    /// [`next`](Iterator::next) has just returned. Returns `None` if the stored op was not damaged.
    pub(crate) fn corrected_op(&self) -> Option<(usize, u8)> {
        self.corrected_op
    }

    /// Calls `sink` for messages as long as the header of the message and the header of the message
    /// after it match the template. [`next`](Iterator::next) returns the remaining records.
    ///
    /// The header of the message after it is checked too, because a damaged length would otherwise
    /// go unnoticed.
    #[inline]
    pub(crate) fn messages(&mut self, mut sink: impl FnMut(MessageRef)) {
        // The template is created by `next` when it parses the first message.
        let Some(template) = &self.template else { return };
        let data = self.data;
        let Some(mut found) = template.find(data, self.at) else { return };
        loop {
            let end = usize_of(found.end());
            if end == data.len() {
                self.at = end;
                return sink(found);
            }
            let Some(next) = template.find(data, end) else { break };
            sink(found);
            found = next;
        }
        self.at = usize_of(found.at);
    }

    /// Calls `sink` for all messages up to the next item that is not a message, and returns this
    /// item. For a message whose op (record type) was damaged, `sink` also gets the offset and the
    /// corrected op.
    #[inline]
    pub(crate) fn next_other(
        &mut self,
        mut sink: impl FnMut(MessageRef, Option<(usize, u8)>),
    ) -> Option<ChunkItem<'a>> {
        loop {
            self.messages(|message| sink(message, None));
            match self.next()? {
                ChunkItem::Message(message) => sink(message, self.corrected_op),
                item => return Some(item),
            }
        }
    }

    fn window(&self) -> Window<'a> {
        Window::whole(self.data)
    }

    /// Reads the next item of the chunk. The window is the whole chunk, so `NeedMore` never occurs.
    fn item(&mut self) -> Result<ChunkItem<'a>, NeedMore> {
        let (window, at) = (self.window(), self.at);
        if let Some([lost, rest @ ..]) = self.known_lost
            && lost.start == at as u64
        {
            self.known_lost = Some(rest);
            return Ok(self.skip_lost(usize_of(lost.end)));
        }
        // Damage is found below only in the first scan of a chunk. Later scans skip the known
        // losses above.
        let found = match probe(window, at as u64)? {
            Probe::Good(found) => found,
            Probe::Cut => return self.resume(at as u64 + 1, true),
            Probe::Bad => return self.resume(at as u64 + 1, false),
        };
        let data_at = usize_of(found.data_at);
        if found.end() > self.data.len() as u64 {
            // By the size in the chunk header, this record ends within the chunk, so its length is
            // right, and the chunk was truncated here.
            if found.end() <= self.declared_len && self.hints.is_empty() {
                self.at = self.data.len();
                return Ok(ChunkItem::Tail { at });
            }
            return self.resume(found.data_at, true);
        }
        if self.known_lost.is_none()
            // The length of this record is suspicious only if no valid record follows. A damaged
            // length may reach into later records.
            && !follows(window, found.end())?
            && let Some(next) = self.find_in_payload(&found)?
        {
            return Ok(self.skip_lost(usize_of(next)));
        }
        let end = usize_of(found.end());
        self.at = end;
        self.corrected_op = found.corrected_op.map(|op| (at, op));
        Ok(match found.header {
            Header::Message(message) => {
                // No template can be created from a header with damaged or unusual fields. The
                // previous template is kept then, because most headers still match it.
                self.template = Template::of(&self.data[at..end]).or(self.template);
                let head_len = u32::try_from(data_at - at).expect("headers have at most 16 MiB");
                let (at, payload_len, origin) = (at as u64, found.data_len, message.conn.get());
                let (sec, nsec) = (message.time.sec.get(), message.time.nsec.get());
                let message =
                    MessageRef { at, head_len, payload_len, origin, sec, nsec, ..MessageRef::default() };
                ChunkItem::Message(message)
            }
            Header::Connection(connection) => {
                let (conn, topic) = (connection.conn.get(), connection.topic);
                let (head, data) = (&self.data[at..data_at], &self.data[data_at..end]);
                ChunkItem::Connection { at, record: ConnectionRecord { conn, topic, data, head } }
            }
            other => ChunkItem::Other { at, end, op: other.op() },
        })
    }

    fn skip_lost(&mut self, end: usize) -> ChunkItem<'a> {
        let at = std::mem::replace(&mut self.at, end);
        ChunkItem::Lost { at, end }
    }

    /// Searches the payload of a record that no valid record follows. If the length of the record
    /// is damaged, its payload may contain later records of the chunk. Returns the offset of the
    /// first such record, if the index or a chain of records shows that the length is damaged. In a
    /// chain, each record starts where the previous record ends.
    fn find_in_payload(&mut self, found: &ProbedRecord<'a>) -> Result<Option<u64>, NeedMore> {
        let (from, end) = (found.data_at, found.end());
        if !self.hints.is_empty() {
            return self.find_by_index(from, end, end);
        }
        let mut search = Search::from(from);
        while let Some(start) = search.run_to(self.window(), end, starts)? {
            // If a chain of records leads beyond the end of this record, its records belong to the
            // chunk. If the chain ends exactly at the end of this record, it may be part of the
            // payload.
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

    /// Searches `from..limit` for the next record with the help of the index. Returns the offset of
    /// an indexed message, or of a record that starts a chain of adjacent records up to an indexed
    /// message. Records before `payload_end` may be part of a payload, so a chain must lead beyond
    /// `payload_end`.
    fn find_by_index(&mut self, from: u64, limit: u64, payload_end: u64) -> Result<Option<u64>, NeedMore> {
        let mut search = Search::from(from);
        let mut number = self.hints.first_at_or_after(from);
        loop {
            let hint = self.hints.all().get(number).copied();
            let place = hint.map_or(limit, |hint| hint.place(self.hints.shift).cast_unsigned().min(limit));
            while let Some(start) = search.run_to(self.window(), place, starts)? {
                if self.leads_to_indexed(start, payload_end)? {
                    return Ok(Some(start));
                }
                search.next = start + 1;
            }
            match hint.filter(|_| place < limit) {
                None => return Ok(None),
                Some(hint) if self.is_message_at(place, hint.conn) => return Ok(Some(place)),
                Some(_) => number += 1,
            }
        }
    }

    /// Returns whether an intact indexed message starts at or after offset `from`.
    fn is_any_indexed(&mut self, from: u64) -> bool {
        // The last result is reused. Otherwise wrong index entries would be examined again for each
        // damaged record, which takes quadratic time.
        if let Some(last) = self.hints.last_search
            && last.shift == self.hints.shift
            && last.from <= from
            && last.found.is_none_or(|place| from <= place)
        {
            return last.found.is_some();
        }
        let (hints, shift) = (&self.hints.all()[self.hints.first_at_or_after(from)..], self.hints.shift);
        let places = hints.iter().map(|hint| (hint.place(shift).cast_unsigned(), hint.conn));
        let mut checked_count = 0;
        let found =
            places.inspect(|_| checked_count += 1).find(|(place, conn)| self.is_message_at(*place, *conn));
        // A new shift invalidates the last result, so the examined entries count toward the limit
        // of all searches.
        self.hints.checked_count += checked_count;
        let found = found.map(|(place, _)| place);
        self.hints.last_search = Some(IndexSearch { from, shift, found });
        found.is_some()
    }

    /// Returns whether an intact message of connection `conn` starts at offset `place`.
    fn is_message_at(&self, place: u64, conn: u32) -> bool {
        self.end_if_intact(place).is_ok_and(|found| found.is_some_and(|(of, _)| of == Some(conn)))
    }

    /// Returns the connection id and the end of the record at offset `at`, if it is an intact
    /// message. For a connection record, the returned id is `None`. Returns `None` for all other
    /// records and for damage.
    fn end_if_intact(&self, at: u64) -> Result<Option<(Option<u32>, u64)>, NeedMore> {
        let Probe::Good(found) = probe(self.window(), at)? else { return Ok(None) };
        let is_complete = found.end() <= self.data.len() as u64;
        Ok(match found.header {
            Header::Message(message) if is_complete => Some((Some(message.conn.get()), found.end())),
            Header::Connection(_) => Some((None, found.end())),
            _ => None,
        })
    }

    /// Returns whether a chain of adjacent records that starts at offset `start` leads to an
    /// indexed message. If this message is not at its indexed offset, several messages must have
    /// the same distance from their indexed offsets. This distance becomes the new shift.
    fn leads_to_indexed(&mut self, start: u64, payload_end: u64) -> Result<bool, NeedMore> {
        // The index data of some connections may be lost. Skip the records of these connections, up
        // to the first message whose connection has index entries.
        let mut at = start;
        let conn = loop {
            if self.hints.have_searched_enough() {
                return Ok(false);
            }
            self.hints.checked_count += 1;
            let Probe::Good(found) = probe(self.window(), at)? else {
                // If no later message is indexed, records of connections without index data are
                // accepted.
                return Ok(at > start.max(payload_end) && !self.is_any_indexed(start));
            };
            match found.header {
                Header::Message(message) if self.hints.has_entries_of(message.conn.get()) => {
                    break message.conn.get();
                }
                Header::Message(_) | Header::Connection(_) => at = found.end(),
                _ => return Ok(false),
            }
        };
        let hints = self.hints.all();
        let (before, behind) = hints.split_at(self.hints.first_at_or_after(at));
        let mut before = before.iter().rev().take(MAX_NEARBY).peekable();
        let mut behind = behind.iter().take(MAX_NEARBY).peekable();
        let distance = |hint: &&Hint| hint.place(self.hints.shift).abs_diff(signed(at));
        // Try the nearest index entries first, because damage more likely removes few bytes than
        // many.
        let nearest = std::iter::from_fn(|| match (before.peek(), behind.peek()) {
            (Some(one), Some(other)) if distance(one) < distance(other) => before.next(),
            (_, None) => before.next(),
            _ => behind.next(),
        });
        let (mut checked_count, mut shift) = (0, None);
        for hint in nearest {
            checked_count += 1;
            let own = signed(at) - i64::from(hint.offset);
            if hint.conn == conn && (own == self.hints.shift || self.follows_index(at, own)?) {
                shift = Some(own);
                break;
            }
        }
        self.hints.checked_count += checked_count;
        self.hints.shift = shift.unwrap_or(self.hints.shift);
        Ok(shift.is_some())
    }

    /// Returns whether the messages from offset `start` on match the index, if the offsets in the
    /// index are moved by `shift`. Three matching messages are enough. At the end of the chunk,
    /// fewer are enough.
    fn follows_index(&self, start: u64, shift: i64) -> Result<bool, NeedMore> {
        let hints = self.hints.all();
        let (mut at, mut indexed_count) = (start, 0);
        for _ in 0..MAX_CHAIN {
            let Some((conn, end)) = self.end_if_intact(at)? else { return Ok(false) };
            if let Some(conn) = conn.filter(|conn| self.hints.has_entries_of(*conn)) {
                let Ok(offset) = u32::try_from(signed(at) - shift) else { return Ok(false) };
                if hints.binary_search(&Hint { offset, conn }).is_err() {
                    return Ok(false);
                }
                indexed_count += 1;
            }
            if indexed_count == CHAIN || end == self.data.len() as u64 {
                return Ok(true);
            }
            at = end;
        }
        Ok(false)
    }

    /// Skips damage, and returns the lost bytes up to the next record. This record is searched from
    /// offset `from` on. If `cut` is true, the record at the current offset is truncated at the end
    /// of the chunk.
    fn resume(&mut self, from: u64, cut: bool) -> Result<ChunkItem<'a>, NeedMore> {
        let len = self.data.len();
        // The index lists where messages start, so it is preferred to a search for bytes that look
        // like a record.
        let next = if self.hints.is_empty() {
            match Search::from(from).run_to(self.window(), len as u64, starts)? {
                // The record at the current offset was probably truncated at the end of the chunk.
                // A record found after it may be part of its payload, unless a chain of adjacent
                // records follows.
                Some(start) if !cut || self.leads_on(start)? => Some(start),
                _ => None,
            }
        } else {
            self.find_by_index(from, len as u64, from)?
        };
        if next.is_none() && cut {
            let at = std::mem::replace(&mut self.at, len);
            return Ok(ChunkItem::Tail { at });
        }
        Ok(self.skip_lost(next.map_or(len, usize_of)))
    }

    /// Returns whether a chain of adjacent records of this chunk starts at offset `start`. The
    /// chain must have several records, or must reach the end of the data. If the recorder never
    /// closed the chunk, the last record of the chain may be truncated.
    ///
    /// A payload may contain a whole bag, whose records also form a chain. Such a chain contains a
    /// record that occurs only between chunks, such as a bag header, and is rejected.
    fn leads_on(&self, start: u64) -> Result<bool, NeedMore> {
        let (mut at, len, is_open) = (start, self.data.len() as u64, self.declared_len == 0);
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

impl<'a> Iterator for ChunkRecords<'a> {
    type Item = ChunkItem<'a>;

    fn next(&mut self) -> Option<ChunkItem<'a>> {
        self.corrected_op = None;
        (self.at < self.data.len()).then(|| self.item().expect("all bytes are at hand"))
    }
}
