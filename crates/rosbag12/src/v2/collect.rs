//! Collects connections, messages and losses while a V2.0 bag is scanned. The reader of files and
//! the reader of streams share this code.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use rovelog_core::internal::layout::Fit;
use rovelog_core::internal::text::escape_bytes;
use rovelog_core::internal::wire::U32Le;

use super::content::{Chunk, ConnectionKey, ConnectionRecord, OriginRecord, ScopedConn};
use super::records::{ChunkItem, ChunkRecords};
use super::scan::{ChunkExtent, LengthSource};
use super::template::Template;
use super::wire::{Connection, ConnectionHeader, Header};
use crate::diagnostics as rules;
use crate::message::{MessageRef, Publisher};
use crate::scan::Scanner;
use crate::tables::{MAX_CONNECTIONS, Tally, fit};
use crate::wire::RecordHead;

impl Scanner {
    /// Returns the index of the origin that a connection record declares. An origin is a distinct
    /// connection record. Returns `None` if the file has too many connections.
    pub(super) fn origin(&mut self, record: &ConnectionRecord<'_>, at: u64) -> Option<u32> {
        let (content, ConnectionRecord { conn, topic, data, head }) = (&mut self.content, *record);
        let section = content.position.section;
        let id = ScopedConn { section, conn };
        let key = ConnectionKey::new(section, record);
        let other_fields = || {
            let head = RecordHead::read(head)?;
            let header = Header::Connection(Connection { conn: &U32Le::new(conn), topic });
            Some(header.others(head.header).into())
        };
        if let Some(origin) = content.ids.by_record.get(&key) {
            if let Some(known) = &mut content.origins[*origin as usize].record {
                // The index section is scanned before the chunks although it comes last in the
                // file, so this record may have a lower offset than the known record.
                known.at = at.min(known.at);
                if known.other_fields.is_empty() {
                    known.other_fields = other_fields().unwrap_or_default();
                }
            }
            return Some(*origin);
        }
        let stated = ConnectionHeader::read(data).unwrap_or_default();
        let (ty, md5) = (stated.ty.unwrap_or_default(), stated.md5sum.unwrap_or(b"*"));
        let connection = self.tables.connection(topic, ty, md5)?;
        if let Some(text) = stated.message_definition {
            self.tables.definitions.records.add(topic, ty, md5, text, at);
        }
        if let Some(declared) = content.ids.declared.get(&id)
            && let Some(declared) = &content.origins[*declared as usize].record
        {
            let (topic, before) = (escape_bytes(topic), escape_bytes(&declared.topic));
            self.diagnostics.push(&rules::CONNECTION_CONFLICT, at..at + 1, || {
                format!(
                    "connection id {conn} of {topic} was used before for {before} with different data; \
                     messages after this record belong to {topic}"
                )
            });
        }
        let publisher = Publisher::of_fields(stated.latching, stated.callerid);
        let (topic, data, is_consistent) = (topic.into(), data.into(), OnceLock::new());
        let other_fields = other_fields().unwrap_or_default();
        let record = OriginRecord { topic, data, other_fields, at, is_consistent };
        let origin = content.add_origin(conn, connection, publisher, Some(record))?;
        content.ids.declared.entry(id).or_insert(origin);
        content.ids.by_record.insert(key, origin);
        Some(origin)
    }

    /// If a connection record in a chunk is a damaged copy of another connection record, returns
    /// the origin of the undamaged record (rule K25 in docs/formats/rosbag.md).
    ///
    /// The undamaged record is the first connection record with the same id, from the index or from
    /// an earlier chunk. Its fields must agree with each other, and either its topic or its data
    /// must be equal to those of the damaged record. Example: the index declares id 0 as `/imu`,
    /// and a chunk has a record with id 0, the same data, but topic `/imv`. One byte of the topic
    /// was damaged, so the messages belong to `/imu`.
    fn find_original(&mut self, record: &ConnectionRecord<'_>, at: u64) -> Option<u32> {
        let (content, ConnectionRecord { conn, topic, data, .. }) = (&mut self.content, *record);
        let section = content.position.section;
        let number = *content.ids.declared.get(&ScopedConn { section, conn })?;
        let known = content.origins[number as usize].record.as_ref()?;
        let key = ConnectionKey::new(section, record);
        // If topic and data both differ, the record declares another connection. If both are equal,
        // the record is an undamaged copy.
        let is_one_equal = (*known.topic == *topic) != (*known.data == *data);
        if !is_one_equal || content.ids.by_record.contains_key(&key) {
            return None;
        }
        let definitions = &self.tables.definitions;
        let is_consistent = |topic: &[u8], data: &[u8]| {
            let Some(stated) = ConnectionHeader::read(data) else { return false };
            let (Some(ty), Some(md5), Some(text)) = (stated.ty, stated.md5sum, stated.message_definition)
            else {
                return false;
            };
            stated.topic == Some(topic) && definitions.are_in_agreement(ty, md5, text)
        };
        if !*known.is_consistent.get_or_init(|| is_consistent(&known.topic, &known.data))
            || is_consistent(topic, data)
            // Damaged copies may all differ from each other. The limit bounds the memory for them.
            || content.ids.by_record.len() >= MAX_CONNECTIONS
        {
            return None;
        }
        self.diagnostics.push(&rules::CONNECTION_DAMAGED, at..at + 1, || {
            let topic = escape_bytes(&known.topic);
            format!(
                "the record of connection {conn} contradicts itself, so the record for {topic} is used \
                 instead"
            )
        });
        content.ids.by_record.insert(key, number);
        Some(number)
    }

    /// Reports damaged connection data, and topics in the connection data that differ from the
    /// header. Each problem is reported at the first record of the connection.
    pub(crate) fn report_connections(&mut self) {
        let mut first: BTreeMap<u32, u64> = BTreeMap::new();
        for origin in &self.content.origins {
            let Some(record) = &origin.record else { continue };
            let (at, topic) = (record.at, &record.topic);
            let stated = ConnectionHeader::read(&record.data);
            if !stated.as_ref().is_some_and(ConnectionHeader::is_complete) {
                self.diagnostics.push(&rules::CONNECTION_DAMAGED, at..at + 1, || {
                    let what = if stated.is_some() { "lacks fields" } else { "cannot be parsed" };
                    let (id, topic) = (origin.id, escape_bytes(topic));
                    format!("the record of connection {id} of {topic} {what}; its messages are kept")
                });
            }
            if let Some(named) = stated.and_then(|stated| stated.topic).filter(|named| **named != **topic) {
                self.diagnostics.push(&rules::OTHER_TOPIC, at..at + 1, || {
                    let (topic, named) = (escape_bytes(topic), escape_bytes(named));
                    format!("messages on topic {topic} were published as {named}; they are read as recorded")
                });
            }
            let first = first.entry(origin.connection).or_insert(at);
            *first = at.min(*first);
        }
        for (connection, first) in first {
            if let Some(unusable) = &mut self.tables.connections[connection as usize].unusable {
                unusable.at = first.min(unusable.at);
            }
        }
    }

    /// Declares the connection of a connection record in a chunk. The declaration applies to the
    /// messages after the record.
    fn declare(&mut self, record: &ConnectionRecord<'_>, at: u64) {
        // A damaged connection record must not become a new connection, because its messages would
        // get a wrong topic.
        let origin = self.find_original(record, at).or_else(|| self.origin(record, at));
        let Some(origin) = origin else {
            self.diagnostics.push(&rules::TOO_MANY_TOPICS, at..at + 1, || {
                "a connection is skipped, because the bag has more than 65536 topics".to_owned()
            });
            return;
        };
        let content = &mut self.content;
        content.ids.current.set(record.conn, origin);
        // If no connection record declared this id before, this record also applies to earlier
        // chunks. If the id was declared before, this record applies only to the messages after it.
        let first = &mut content.ids.first[content.position.section as usize];
        match first.get(record.conn) {
            None => first.set(record.conn, origin),
            Some(_) => content.change(record.conn, origin),
        }
    }

    /// Returns the origin (connection record) of a connection id that no record in the chunks has
    /// declared so far. If the index declares the id, this is the record in the index. If not, the
    /// messages get the topic `conn ID`.
    #[cold]
    fn origin_of(&mut self, id: u32) -> Option<u32> {
        let content = &mut self.content;
        let section = content.position.section;
        let origin = if let Some(origin) = content.ids.first[section as usize].get(id) {
            origin
        } else {
            // A connection record for this id may still follow in a later chunk. The bag is scanned
            // again in this case.
            content.ids.undeclared.push(ScopedConn { section, conn: id });
            let connection = self.tables.connection(format!("conn {id}").as_bytes(), b"", b"*")?;
            let origin = content.add_origin(id, connection, Publisher::default(), None)?;
            content.ids.first[section as usize].set(id, origin);
            origin
        };
        content.ids.current.set(id, origin);
        Some(origin)
    }

    /// Adds a chunk, which becomes the current chunk of the scan.
    pub(super) fn begin_chunk(&mut self, extent: ChunkExtent) {
        let section = self.content.position.section;
        self.content.chunks.push(Chunk { extent, section, ..Chunk::default() });
    }

    /// Counts a message of the current chunk, and sets the origin, connection and sequence number
    /// of the message. `data` is the decompressed chunk. Returns false if the file has too many
    /// connections.
    #[inline]
    pub(super) fn count_chunk_message(
        &mut self,
        extent: &ChunkExtent,
        message: &mut MessageRef,
        data: &[u8],
    ) -> bool {
        let id = message.origin;
        let Some(origin) = self.content.ids.current.get(id).or_else(|| self.origin_of(id)) else {
            self.report_refused_message(extent, message);
            return false;
        };
        let from = &mut self.content.origins[origin as usize];
        from.count += 1;
        (message.origin, message.connection) = (origin, from.connection);
        // A connection record that precedes the message in the same chunk may have added a
        // definition.
        self.tables.resolve(message.connection);
        let connection = &mut self.tables.connections[message.connection as usize];
        let stats = &mut connection.stats;
        stats.latched += u64::from(from.publisher.latching);
        message.seq = stats.count;
        let (payload, MessageRef { at, sec, nsec, .. }) = (message.payload(data), *message);
        let time = stats.message(extent.file_offset(at), payload.len(), sec, nsec);
        self.order.add(time);
        let position = &mut self.content.position;
        position.tallies.add(origin, sec, nsec, at);
        position.span.add(time);
        let fit = fit(connection, payload);
        // Payloads are checked while scanning, so that damaged payloads are reported even if no
        // caller decodes the messages.
        if fit != Fit::Exact {
            let range = extent.file_offset(message.payload_at())..extent.file_offset(message.end());
            self.report_misfit(message.connection, fit, payload.len(), range);
        }
        true
    }

    /// Reports a message whose connection exceeds the limit on connections.
    #[cold]
    fn report_refused_message(&mut self, extent: &ChunkExtent, message: &MessageRef) {
        let (at, end) = (extent.file_offset(message.at), extent.file_offset(message.end()));
        self.diagnostics.push(&rules::TOO_MANY_TOPICS, at..end.max(at + 1), || {
            "a message is skipped, because the bag has more than 65536 topics".to_owned()
        });
    }

    /// Processes an item of the current chunk that is not a message. `len` is the size in bytes of
    /// the decompressed chunk.
    pub(super) fn add_item(&mut self, extent: &ChunkExtent, item: ChunkItem<'_>, len: usize) {
        match item {
            ChunkItem::Message(_) => {}
            ChunkItem::Connection { at, record } => {
                self.ops[usize::from(Connection::OP)] += 1;
                self.declare(&record, extent.file_offset(at as u64));
            }
            ChunkItem::Other { at, op, .. } => {
                self.ops[usize::from(op)] += 1;
                let content = &mut self.content;
                content.chunks[content.position.chunk].has_unknown_records = true;
                let at = extent.file_offset(at as u64);
                self.diagnostics.push(&rules::UNKNOWN_OP, at..at + 1, || {
                    format!("a record with the unknown type (op) {op} in a chunk is skipped")
                });
            }
            ChunkItem::Lost { at, end } => self.add_lost_in_chunk(extent, at, end, false),
            ChunkItem::Tail { at } => self.add_lost_in_chunk(extent, at, len, true),
        }
    }

    fn add_lost_in_chunk(&mut self, extent: &ChunkExtent, at: usize, end: usize, cut: bool) {
        let lost = at as u64..end as u64;
        let range = extent.file_offset(lost.start)..extent.file_offset(lost.end);
        self.content.chunks[self.content.position.chunk].lost_ranges.push(lost);
        // If the chunk header does not state where the chunk ends, a truncated record at the end of
        // the chunk was truncated by the end of the recording. Such a record is not a loss inside
        // the chunk.
        let is_cut = cut && range.end == extent.end && extent.length != LengthSource::Header;
        let rule = if is_cut { &rules::CUT } else { &rules::LOST_IN_CHUNK };
        self.diagnostics.push(rule, range, || {
            let what = if is_cut {
                "are lost, because the file ends inside a record"
            } else {
                "are lost, because they contain no valid record"
            };
            format!("bytes {at}..{end} of the decompressed chunk at byte {} {what}", extent.at)
        });
    }

    /// Finishes the current chunk. `len` is the size in bytes of the decompressed chunk.
    pub(super) fn end_chunk(&mut self, len: usize) {
        let content = &mut self.content;
        let position = &mut content.position;
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        let mut tallies: BTreeMap<u32, Tally> = BTreeMap::new();
        for (number, tally) in position.tallies.drain() {
            let origin = &content.origins[number as usize];
            *counts.entry(origin.connection).or_default() += tally.count;
            tallies.entry(origin.id).or_default().join(tally);
        }
        let chunk = &mut content.chunks[position.chunk];
        chunk.decompressed_len = len as u64;
        chunk.messages.span = std::mem::take(&mut position.span);
        chunk.messages.tallies = tallies.into_iter().collect();
        chunk.messages.set_counts(counts, &self.tables.connections);
    }

    /// Counts all records of a chunk. `data` is the decompressed chunk. Returns the template of the
    /// header that the last messages share.
    pub(super) fn count_chunk_records(
        &mut self,
        extent: &ChunkExtent,
        mut records: ChunkRecords<'_>,
        data: &[u8],
    ) -> Option<Template> {
        loop {
            let item = records.next_other(|mut message, corrected_op| {
                self.report_op_in_chunk(extent, corrected_op);
                self.count_chunk_message(extent, &mut message, data);
            });
            let Some(item) = item else { return records.template() };
            self.report_op_in_chunk(extent, records.corrected_op());
            self.add_item(extent, item, data.len());
        }
    }

    /// Reports a message whose op (record type) is damaged. `corrected` has the offset of the
    /// record in the chunk and the right op.
    #[inline]
    pub(super) fn report_op_in_chunk(&mut self, extent: &ChunkExtent, corrected: Option<(usize, u8)>) {
        if let Some((at, op)) = corrected {
            let at = extent.file_offset(at as u64);
            self.report_op(at..at + 1, "a record in a chunk", op);
        }
    }
}
