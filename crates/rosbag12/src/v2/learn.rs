//! What a scan over a bag of V2.0 learns, record by record; the reader and the stream use the same.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use rovelog_core::layout::Fit;
use rovelog_core::text::escape_bytes;
use rovelog_core::wire::U32Le;

use super::heads::{Message, Template};
use super::inner::{Inner, Item};
use super::scan::{Extent, Length};
use super::state::{Chunk, Ids, Origin, State};
use super::wire::{Connection, ConnectionHeader, Header};
use crate::diagnostics as rules;
use crate::scan::Scanner;
use crate::tables::Publisher;
use crate::tables::{MAX_CONNECTIONS, Tally, fit};
use crate::wire::RecordHead;

/// A message of a chunk: its origin, its connection, its number there and its time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Learned {
    pub(crate) origin: u32,
    pub(crate) connection: u32,
    pub(crate) seq: u64,
    pub(crate) time: i64,
}

impl State {
    /// Goes on with the next bag of the file.
    pub(super) fn begin_section(&mut self) {
        self.section = u32::try_from(self.ids.len()).unwrap_or(u32::MAX);
        self.ids.push(Ids::default());
        self.now = Ids::default();
    }

    fn add(&mut self, origin: Origin) -> Option<u32> {
        let number =
            u32::try_from(self.origins.len()).ok().filter(|_| self.origins.len() < MAX_CONNECTIONS)?;
        self.origins.push(origin);
        self.tallies.push(Tally::default());
        Some(number)
    }
}

impl Scanner {
    pub(crate) fn chunked(&self) -> &State {
        self.v2.as_deref().expect("a bag of V2.0")
    }

    pub(super) fn chunked_mut(&mut self) -> &mut State {
        self.v2.as_deref_mut().expect("a bag of V2.0")
    }

    /// Returns the origin that a connection record with this head declares; `None` where there are too
    /// many.
    pub(super) fn origin_of_record(
        &mut self,
        head: &[u8],
        (conn, topic, data): (u32, &[u8], &[u8]),
        at: u64,
    ) -> Option<u32> {
        let number = self.origin(conn, topic, data, at)?;
        let origin = &mut self.chunked_mut().origins[number as usize];
        if origin.others.is_empty()
            && let Some(head) = RecordHead::read(head)
        {
            let header = Header::Connection(Connection { conn: &U32Le::new(conn), topic });
            origin.others = header.others(head.header).into();
        }
        Some(number)
    }

    /// Returns the origin that a connection record declares; `None` where there are too many.
    pub(super) fn origin(&mut self, conn: u32, topic: &[u8], data: &[u8], at: u64) -> Option<u32> {
        let state = self.v2.as_deref_mut()?;
        let key = (state.section, conn, Box::from(topic), Box::from(data));
        if let Some(origin) = state.by_record.get(&key) {
            // The index section may have been read before the chunks in front of it.
            let first = &mut state.origins[*origin as usize].at;
            *first = at.min(*first);
            return Some(*origin);
        }
        let said = ConnectionHeader::read(data).unwrap_or_default();
        let (ty, md5) = (said.ty.unwrap_or_default(), said.md5sum.unwrap_or(b"*"));
        let connection = self.tables.connection(topic, ty, md5)?;
        if let Some(text) = said.message_definition
            && self.tables.definitions.take(topic, ty, md5, text, at)
        {
            self.tables.defined += 1;
        }
        let section = state.section;
        if let Some(other) = state.declared.get(&(section, conn)) {
            let before = escape_bytes(&state.origins[*other as usize].topic);
            self.diagnostics.push(&rules::CONNECTION_CONFLICT, at..at + 1, || {
                format!(
                    "connection {conn} of {} was declared with other data, for {before}",
                    escape_bytes(topic)
                )
            });
        }
        let callerid = said.callerid.map(escape_bytes);
        let publisher = Publisher { latching: said.latching == Some(b"1"), callerid };
        let (topic, data) = (topic.into(), data.into());
        let origin = Origin {
            section,
            id: conn,
            connection,
            publisher,
            topic,
            data,
            others: Box::default(),
            is_known: true,
            at,
            count: 0,
            named: 0,
            differs: false,
            is_right: OnceLock::new(),
        };
        let origin = state.add(origin)?;
        state.declared.entry((section, conn)).or_insert(origin);
        state.by_record.insert(key, origin);
        Some(origin)
    }

    /// Returns the origin of which a connection record of a chunk is a damaged copy: another record of
    /// its number, of the index or of an earlier chunk, contradicts neither itself nor this one's topic
    /// or data (K25).
    fn intact(&mut self, conn: u32, topic: &[u8], data: &[u8], at: u64) -> Option<u32> {
        let state = self.v2.as_deref_mut()?;
        let number = *state.declared.get(&(state.section, conn))?;
        let known = &state.origins[number as usize];
        let (is_topic, is_data) = (*known.topic == *topic, *known.data == *data);
        let key = (state.section, conn, Box::from(topic), Box::from(data));
        if is_topic == is_data || state.by_record.contains_key(&key) {
            return None;
        }
        let definitions = &self.tables.definitions;
        let is_right = |topic: &[u8], data: &[u8]| {
            let Some(said) = ConnectionHeader::read(data) else { return false };
            let (Some(ty), Some(md5), Some(text)) = (said.ty, said.md5sum, said.message_definition) else {
                return false;
            };
            said.topic == Some(topic) && definitions.are_in_agreement(ty, md5, text)
        };
        let is_known_right = *known.is_right.get_or_init(|| is_right(&known.topic, &known.data));
        if !is_known_right || is_right(topic, data) || state.by_record.len() >= MAX_CONNECTIONS {
            return None;
        }
        self.diagnostics.push(&rules::CONNECTION_DAMAGED, at..at + 1, || {
            let topic = escape_bytes(&known.topic);
            format!("the record of connection {conn} contradicts itself; another one, for {topic}, is used")
        });
        state.by_record.insert(key, number);
        Some(number)
    }

    /// Says what is remarkable about connections, at the first record of each.
    pub(super) fn settle_origins(&mut self) {
        let Some(state) = self.v2.as_deref() else { return };
        let mut first: BTreeMap<u32, u64> = BTreeMap::new();
        for origin in state.origins.iter().filter(|origin| origin.is_known) {
            let said = ConnectionHeader::read(&origin.data);
            if !said.as_ref().is_some_and(ConnectionHeader::is_whole) {
                self.diagnostics.push(&rules::CONNECTION_DAMAGED, origin.at..origin.at + 1, || {
                    let what = if said.is_some() { "lack fields" } else { "are no fields" };
                    format!("the data of connection {} of {} {what}", origin.id, escape_bytes(&origin.topic))
                });
            }
            let said = said.unwrap_or_default();
            if let Some(named) = said.topic.filter(|named| **named != *origin.topic) {
                self.diagnostics.push(&rules::OTHER_TOPIC, origin.at..origin.at + 1, || {
                    format!("{}: the publisher named it {}", escape_bytes(&origin.topic), escape_bytes(named))
                });
            }
            let at = first.entry(origin.connection).or_insert(origin.at);
            *at = origin.at.min(*at);
        }
        for (connection, first) in first {
            if let Some((at, _)) = &mut self.tables.connections[connection as usize].unusable {
                *at = first.min(*at);
            }
        }
    }

    /// Takes a connection record that is in front of messages.
    pub(super) fn declare(&mut self, head: &[u8], (conn, topic, data): (u32, &[u8], &[u8]), at: u64) {
        let known = self.intact(conn, topic, data, at);
        let origin = known.or_else(|| self.origin_of_record(head, (conn, topic, data), at));
        let Some(origin) = origin else {
            self.diagnostics
                .push(&rules::TOO_MANY_TOPICS, at..at + 1, || "a connection beyond the limit".to_owned());
            return;
        };
        let state = self.chunked_mut();
        state.now.set(conn, origin);
        let first = &mut state.ids[state.section as usize];
        match first.get(conn) {
            None => first.set(conn, origin),
            Some(_) => state.change(conn, origin),
        }
    }

    /// Returns what the number of a connection means, where a message has it for the first time
    /// since it was declared.
    #[cold]
    fn origin_of(&mut self, id: u32) -> Option<u32> {
        let state = self.v2.as_deref_mut()?;
        let section = state.section;
        let known = state.ids[section as usize].get(id);
        let origin = if let Some(origin) = known {
            origin
        } else {
            state.early.push((section, id));
            let connection = self.tables.connection(format!("conn {id}").as_bytes(), b"", b"*")?;
            let (publisher, topic, data) = (Publisher::default(), Arc::default(), Box::default());
            let origin = Origin {
                section,
                id,
                connection,
                publisher,
                topic,
                data,
                others: Box::default(),
                is_known: false,
                at: 0,
                count: 0,
                named: 0,
                differs: false,
                is_right: OnceLock::new(),
            };
            let origin = state.add(origin)?;
            state.ids[section as usize].set(id, origin);
            origin
        };
        state.now.set(id, origin);
        Some(origin)
    }

    /// Starts a chunk.
    pub(super) fn begin_chunk(&mut self, extent: Extent) {
        let state = self.chunked_mut();
        state.chunks.push(Chunk::new(extent, state.section));
    }

    /// Takes a message of the chunk at hand, whose record starts at `start` of the file and whose
    /// payload is at `at..end`, or somewhere in there.
    #[inline]
    pub(super) fn chunk_message(
        &mut self,
        message: &Message,
        payload: &[u8],
        (start, at, end): (u64, u64, u64),
    ) -> Option<Learned> {
        let origin = match self.v2.as_deref()?.now.get(message.conn) {
            Some(origin) => origin,
            None => self.origin_of(message.conn)?,
        };
        let known = self.v2.as_deref_mut()?;
        let from = &mut known.origins[origin as usize];
        from.count += 1;
        let number = from.connection;
        self.tables.resolve(number);
        let connection = &mut self.tables.connections[number as usize];
        let stats = &mut connection.stats;
        stats.latched += u64::from(from.publisher.latching);
        let seq = stats.count;
        let (sec, nsec) = (message.time.sec.get(), message.time.nsec.get());
        let time = stats.message(start, payload.len(), sec, nsec);
        self.going_back += u64::from(time < self.last_time);
        self.last_time = time;
        let tally = &mut known.tallies[origin as usize];
        if tally.count == 0 {
            known.in_chunk.push(origin);
        }
        tally.add(sec, nsec, message.at as u64);
        known.span = Some(known.span.map_or((time, time), |(min, max)| (min.min(time), max.max(time))));
        let fit = fit(connection, payload);
        if fit != Fit::Exact {
            self.note_misfit(number, fit, payload.len(), (at, end));
        }
        Some(Learned { origin, connection: number, seq, time })
    }

    /// Takes an item that is no message of the chunk at hand; `place` gives the place in the file
    /// of one in the chunk.
    pub(super) fn chunk_item(&mut self, item: Item<'_>, len: usize, place: impl Fn(usize) -> u64) {
        match item {
            Item::Message(_) => {}
            Item::Connection { at, head, conn, topic, data } => {
                self.chunked_mut().records.add(Connection::OP);
                self.declare(head, (conn, topic, data), place(at));
            }
            Item::Other { at, op, .. } => {
                let state = self.chunked_mut();
                state.records.add(op);
                state.chunks[state.at_hand].has_others = true;
                let at = place(at);
                self.diagnostics
                    .push(&rules::UNKNOWN_OP, at..at + 1, || format!("a record of op {op} in a chunk"));
            }
            Item::Lost { at, end } => self.lose_in_chunk(at, end, false, &place),
            Item::Tail { at } => self.lose_in_chunk(at, len, true, &place),
        }
    }

    fn lose_in_chunk(&mut self, at: usize, end: usize, cut: bool, place: &impl Fn(usize) -> u64) {
        let state = self.chunked_mut();
        let Some(chunk) = state.chunks.get_mut(state.at_hand) else { return };
        chunk.lost.push((at as u64, end as u64));
        let (of, range) = (chunk.extent.at, place(at)..place(end));
        // What is left of a record where the recording breaks off.
        let is_cut = cut && range.end == chunk.extent.end && chunk.extent.length != Length::Stored;
        let rule = if is_cut { &rules::CUT } else { &rules::LOST_IN_CHUNK };
        self.diagnostics.push(rule, range, || {
            let what = if is_cut { "a record that the end cuts" } else { "no record can be recognised" };
            format!("bytes {at}..{end} of the records of the chunk at byte {of}: {what}")
        });
    }

    /// Ends the chunk at hand, whose records have `len` bytes.
    pub(super) fn end_chunk(&mut self, number: usize, len: usize) {
        let Some(state) = self.v2.as_deref_mut() else { return };
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        for origin in &state.in_chunk {
            let count = state.tallies[*origin as usize].count;
            *counts.entry(state.origins[*origin as usize].connection).or_default() += count;
        }
        let before =
            |connection: u32, count: u64| self.tables.connections[connection as usize].stats.count - count;
        let mut found: BTreeMap<u32, Tally> = BTreeMap::new();
        for origin in std::mem::take(&mut state.in_chunk) {
            let tally = std::mem::take(&mut state.tallies[origin as usize]);
            found.entry(state.origins[origin as usize].id).or_default().join(tally);
        }
        let chunk = &mut state.chunks[number];
        chunk.found = found.into_iter().collect();
        chunk.messages = counts.values().sum();
        chunk.counts = counts.into_iter().map(|(c, count)| (c, before(c, count), count)).collect();
        chunk.span = state.span.take();
        chunk.unpacked = len as u64;
    }

    /// A message of a connection beyond the limit.
    #[cold]
    pub(super) fn refuse_message(&mut self, (at, _, end): (u64, u64, u64)) {
        self.diagnostics.push(&rules::TOO_MANY_TOPICS, at..end.max(at + 1), || {
            "a message of a connection beyond the limit".to_owned()
        });
    }

    /// Takes all that is in a chunk: its bytes, where its messages are in the file, and what the
    /// scan meets.
    pub(super) fn learn_chunk(
        &mut self,
        mut inner: Inner<'_>,
        data: &[u8],
        place: impl Fn(usize) -> u64 + Copy,
    ) -> Option<Template> {
        loop {
            let mut refused = None;
            inner.messages(|message| {
                let at = (place(message.at), place(message.payload_at), place(message.end));
                let payload = &data[message.payload_at..message.end];
                if self.chunk_message(&message, payload, at).is_none() {
                    refused = Some(at);
                }
            });
            let item = inner.next();
            if let Some((at, op)) = inner.meant() {
                self.note_op(place(at)..place(at) + 1, "a record in a chunk", op);
            }
            match item {
                None => {}
                Some(Item::Message(message)) => {
                    let at = (place(message.at), place(message.payload_at), place(message.end));
                    let payload = &data[message.payload_at..message.end];
                    if self.chunk_message(&message, payload, at).is_none() {
                        refused = Some(at);
                    }
                }
                Some(item) => self.chunk_item(item, data.len(), place),
            }
            if let Some(at) = refused {
                self.refuse_message(at);
            }
            if item.is_none() {
                return inner.template();
            }
        }
    }
}
