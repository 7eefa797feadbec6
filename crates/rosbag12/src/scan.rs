//! Scans the records of a bag. The reader, the stream and recovery share this code.
//!
//! [`Scanner`] does no I/O. It is given a [`Window`] of the file and returns the next [`Step`]. If
//! the window is too short, it requests more bytes. Every byte of the file belongs to exactly one
//! step.

use std::collections::{BTreeMap, HashSet};

use rovelog_core::format::SEARCH_LEN;
use rovelog_core::internal::layout::Fit;
use rovelog_core::internal::scan::{NeedMore, Scan, Window};
use rovelog_core::internal::text::{self, escape_bytes};
use rovelog_core::{Clock, DataSpan, Diagnostics, Rule};

use crate::diagnostics as rules;
use crate::error::BagError;
use crate::index_offsets::IndexOffsets;
use crate::message::{MessageRef, Publisher};
use crate::old::{self, OldProbe, OldRecord};
use crate::options::BagOptions;
use crate::position::{DamagedRange, LastRecord, Position, TimeOrder};
use crate::sections::{MAX_SECTIONS, Section};
use crate::shapes::{Head, MatchedHeader};
use crate::start;
use crate::tables::{Tables, Tally, fit};
use crate::v2;
use crate::validate::{Probe, ProbedRecord, Search, crossing_chain, follows, probe};
use crate::version::{self, Version, VersionLine};
use crate::wire::{BAG_HEADER_SIZE, Data, Definition, Header, IndexEntry, is_list_of};

/// A part of the file that a scan step has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A message.
    Message(MessageRef),
    /// A valid record that is not a message.
    Record { at: u64, data_at: u64, end: u64, op: u8 },
    /// Valid bytes outside of records: a version line, a table of topics, or padding that belongs
    /// to no record.
    Skipped { at: u64, end: u64 },
    /// Bytes that cannot be read.
    Lost { at: u64, end: u64, rule: &'static Rule },
    /// The end of the file.
    End,
}

/// Scanner of a bag. It contains the current position, the tables that it fills, and the problems
/// that it found.
#[derive(Debug)]
pub(crate) struct Scanner {
    /// Version line of the file.
    pub(crate) line: VersionLine,
    /// Connections, topics and definitions found so far.
    pub(crate) tables: Tables,
    /// Problems found so far.
    pub(crate) diagnostics: Diagnostics,
    /// Sections (bags within the file) found so far.
    pub(crate) sections: Vec<Section>,
    /// Number of valid records of each op (record type).
    pub(crate) ops: Box<[u64; 256]>,
    /// Comparison of each message time with the time of the previous message.
    pub(crate) order: TimeOrder,
    /// Time span of the messages. Set at the end of the scan.
    pub(crate) data: Option<DataSpan>,
    /// Chunks, connections and index of a V2.0 bag.
    pub(crate) content: v2::Content,
    /// Current position in a bag before V2.0.
    pub(crate) position: Position,
}

impl Scan for Scanner {
    type Step = Step;

    // Every byte of the file belongs to exactly one step.
    fn step(&mut self, window: Window<'_>) -> Result<Step, NeedMore> {
        if self.position.damage.is_some() {
            return self.search(window);
        }
        if !self.position.started {
            return self.begin(window);
        }
        // Fast path for streams, because most records are messages whose header is already known.
        if let Some(step) = self.plain_step(window) {
            return Ok(step);
        }
        let at = self.position.at;
        if window.eof && at >= window.end() {
            self.finish(at);
            return Ok(Step::End);
        }
        if self.line.version != Version::V1_2 {
            return self.old_step(window);
        }
        if let Some(line) = version::at(window, at, Version::V1_2)? {
            return Ok(self.begin_section(at, line.len));
        }
        if let Some(step) = self.raw_padding(window)? {
            return Ok(step);
        }
        match probe(window, at)? {
            Probe::Good(record) => {
                // The length of this record is suspicious only if no valid record follows. A
                // damaged length may reach into later records.
                if !follows(window, record.end)?
                    && let Some(found) = self.find_in_payload(window, &record)?
                {
                    return Ok(self.report_loss(at, found, &rules::LOST));
                }
                self.add_record(window, &record)
            }
            // The truncated record may be damaged, so the next record is searched right after the
            // start of the truncated record.
            Probe::Cut => self.start_damage(window, None, true),
            Probe::Bad(claimed) => self.start_damage(window, claimed, false),
        }
    }

    fn needed_from(&self) -> u64 {
        self.position.damage.map_or(self.position.at, |damage| damage.search.next)
    }
}

impl Scanner {
    /// Maximum number of bytes at the start of the file that [`start`](Self::start) examines.
    pub(crate) const START: usize = SEARCH_LEN;

    /// Creates a scanner. `bytes` are the first bytes of the file, or the whole file. `bytes` must
    /// have [`START`](Self::START) bytes, unless the file is shorter or starts with a valid version
    /// line.
    pub(crate) fn start(bytes: &[u8], options: &BagOptions) -> Result<Self, BagError> {
        let line = if options.version_0 {
            VersionLine { version: Version::V0, text: String::new(), len: 0, crlf: false, is_damaged: false }
        } else {
            start::find(&bytes[..bytes.len().min(Self::START)])?
        };
        let clock =
            if matches!(line.version, Version::V1_0 | Version::V0) { Clock::LogStart } else { Clock::Unix };
        let mut scanner = Self {
            tables: Tables::new(options, clock),
            diagnostics: options.read.diagnostics(),
            sections: vec![Section::new(0, line.len)],
            ops: Box::new([0; 256]),
            order: TimeOrder::default(),
            data: None,
            content: v2::Content::default(),
            position: Position::default(),
            line,
        };
        start::report(&scanner.line, &mut scanner.diagnostics);
        Ok(scanner)
    }

    /// Calls `sink` for messages as long as the header of the message and the header of the message
    /// after it are already known. `data` is the whole file. [`step`](Scan::step) returns the
    /// remaining records.
    #[inline]
    pub(crate) fn messages(&mut self, data: &[u8], mut sink: impl FnMut(MessageRef, &mut Tables)) {
        let Ok(start) = usize::try_from(self.position.at) else { return };
        let Some(mut rest) = data.get(start..) else { return };
        // The header of the next message is checked too, because a damaged length would otherwise
        // go unnoticed.
        let Some(mut found) = self.tables.shapes.find(rest, self.position.last_shape) else { return };
        while let Some((behind, next)) = rest
            .get(found.size()..)
            .and_then(|behind| Some((behind, self.tables.shapes.find(behind, found.shape)?)))
        {
            let message = self.count_message(found, &rest[found.head as usize..found.size()]);
            sink(message, &mut self.tables);
            (rest, found) = (behind, next);
        }
    }

    /// Returns the next message, if its header and the header of the message after it are already
    /// known.
    #[inline]
    fn plain_step(&mut self, window: Window<'_>) -> Option<Step> {
        let rest = window.slice(self.position.at, window.end()).ok()??;
        let found = self.tables.shapes.find(rest, self.position.last_shape)?;
        self.tables.shapes.find(rest.get(found.size()..)?, found.shape)?;
        Some(Step::Message(self.count_message(found, &rest[found.head as usize..found.size()])))
    }

    /// Counts a message at the current position.
    #[inline]
    fn count_message(&mut self, found: MatchedHeader, payload: &[u8]) -> MessageRef {
        let at = self.position.at;
        // Recorders write topics in repeating patterns. Record which shape (header without time)
        // follows which, so that the next shape can be guessed.
        self.tables.shapes.follow(self.position.last_shape, found.shape);
        self.position.last_shape = found.shape;
        self.ops[usize::from(Data::OP)] += 1;
        let number = self.tables.shapes.list[found.shape as usize].connection;
        // A definition record that was found since the last message may give a better definition.
        self.tables.resolve(number);
        let shape = &mut self.tables.shapes.list[found.shape as usize];
        shape.count += 1;
        let connection = &mut self.tables.connections[number as usize];
        let stats = &mut connection.stats;
        stats.latched += u64::from(shape.publisher.latching);
        let seq = stats.count;
        let time = stats.message(at, found.len as usize, found.sec, found.nsec);
        self.order.add(time);
        let section = self.sections.last_mut().expect("there is always a section");
        let pos = at - section.offset;
        // The messages are compared with the index by the sum of their hashes, so that they need
        // not be stored.
        self.position.tallies.add(number, found.sec, found.nsec, pos);
        // The first index entry of a topic has the position of the definition record before the
        // message. Record which message belongs to this definition.
        if let LastRecord::Definition { at: definition, end } = self.position.last
            && end == at
        {
            section.records.message_after_definition.insert(definition - section.offset, pos);
        }
        let message = MessageRef { seq, ..found.message(at, number) };
        let fit = fit(connection, payload);
        if fit != Fit::Exact {
            self.report_misfit(number, fit, payload.len(), message.payload_at()..message.end());
        }
        self.position.last = LastRecord::Message(message);
        self.position.at = message.end();
        message
    }

    /// Returns the version line as a step. In V1.0 and V0, the step also contains the table of
    /// topics.
    fn begin(&mut self, window: Window<'_>) -> Result<Step, NeedMore> {
        let mut end = self.line.len;
        if matches!(self.line.version, Version::V1_0 | Version::V0) {
            // If the table of topics is damaged, no topic is known, and all records are lost.
            if let Some((table, behind)) = old::table(window, self.line.version, end)? {
                (self.position.table, end) = (table, behind);
            }
            // V1.0 and V0 bags do not state whether times are absolute.
            self.diagnostics.push(&rules::RELATIVE_STAMPS, 0..end, || {
                "the times of this old bag count from the start of the recording and are shown as relative \
                 times"
                    .to_owned()
            });
        }
        self.position.started = true;
        self.position.at = end;
        Ok(Step::Skipped { at: 0, end })
    }

    fn begin_section(&mut self, at: u64, len: u64) -> Step {
        if self.sections.len() >= MAX_SECTIONS {
            return self.report_loss(at, at + len, &rules::TOO_MANY_SECTIONS);
        }
        self.end_section(at);
        self.sections.push(Section::new(at, at + len));
        self.diagnostics.push(&rules::APPENDED_SECTION, at..at + len, || {
            format!("another bag starts at byte {at}; its messages are read with the same definitions")
        });
        self.position.last = LastRecord::Other;
        self.position.at = at + len;
        Step::Skipped { at, end: self.position.at }
    }

    /// Skips spaces after a bag header without data, up to 4096 bytes from the start of the bag
    /// header. Some recorders wrote the padding after the record instead of in its data.
    fn raw_padding(&mut self, window: Window<'_>) -> Result<Option<Step>, NeedMore> {
        let at = self.position.at;
        let LastRecord::BareBagHeader { at: start } = self.position.last else { return Ok(None) };
        // A bag header with many fields may have more than 4096 bytes. No padding follows then.
        let bytes = window.upto(at, (start + u64::from(BAG_HEADER_SIZE)).saturating_sub(at))?;
        if bytes.len() < 4 || bytes.iter().any(|byte| *byte != b' ') {
            return Ok(None);
        }
        let len = bytes.len() as u64;
        self.position.last = LastRecord::Other;
        if let Some(section) = self.sections.last_mut() {
            section.raw_padding = Some(len);
        }
        self.diagnostics.push(&rules::RAW_PADDING, at..at + len, || {
            format!(
                "{len} spaces between two records are skipped; positions in the index are wrong by this \
                 number of bytes"
            )
        });
        self.position.at = at + len;
        Ok(Some(Step::Skipped { at, end: self.position.at }))
    }

    /// Searches for records in the data of a record after which no valid record follows. If bytes
    /// of this record are missing, its length reaches into later records of the bag. Returns the
    /// offset of the first such record.
    ///
    /// Complete records inside the data prove nothing, because a message may contain a bag. The
    /// length is wrong only if a chain of adjacent records leads beyond the end of the data, or if
    /// the message does not match its definition.
    fn find_in_payload(
        &mut self,
        window: Window<'_>,
        record: &ProbedRecord<'_>,
    ) -> Result<Option<u64>, NeedMore> {
        if let Some(found) = crossing_chain(window, record.data_at, record.end)? {
            return Ok(Some(found));
        }
        if self.is_confirmed(window, record)? {
            return Ok(None);
        }
        Search::from(record.data_at).run(window, record.end)
    }

    /// Returns whether the payload of a message matches its definition. If so, the length of the
    /// message is right.
    fn is_confirmed(&mut self, window: Window<'_>, record: &ProbedRecord<'_>) -> Result<bool, NeedMore> {
        let Header::Data(Data { topic, ty, md5, .. }) = record.header else { return Ok(false) };
        let Some(number) = self.tables.number(topic, ty, md5) else { return Ok(false) };
        self.tables.resolve(number);
        let known = &self.tables.connections[number as usize];
        let payload = window.slice(record.data_at, record.end)?.unwrap_or_default();
        Ok(known.definition().is_some() && fit(known, payload) == Fit::Exact)
    }

    /// Processes a valid record, and returns the record as a step.
    fn add_record(&mut self, window: Window<'_>, record: &ProbedRecord<'_>) -> Result<Step, NeedMore> {
        let (at, end) = (self.position.at, record.end);
        let bytes = window.slice(at, end)?.unwrap_or_default();
        if let Header::Data(_) = record.header {
            let shapes = self.tables.shapes.list.len();
            let Some(found) = self.intern(bytes) else {
                return Ok(self.report_loss(at, end, &rules::TOO_MANY_TOPICS));
            };
            // Problems of a header are reported once for all messages with the same header, because
            // later messages with this header are not parsed.
            if shapes < self.tables.shapes.list.len() {
                self.report_head(at..record.data_at, record.duplicates, record.corrected_op);
            }
            return Ok(Step::Message(self.count_message(found, &bytes[found.head as usize..])));
        }
        self.report_head(at..record.data_at, record.duplicates, record.corrected_op);
        let op = record.header.op();
        self.ops[usize::from(op)] += 1;
        self.position.last = LastRecord::Other;
        let data = window.slice(record.data_at, end)?.unwrap_or_default();
        match record.header {
            Header::Definition(definition) => self.define(&definition, at, data.len(), end),
            Header::BagHeader(header) => {
                let section = self.sections.last_mut().expect("there is always a section");
                let index_pos = header.index_pos.get();
                section.set_bag_header(at..end, record.data_at, index_pos, &mut self.diagnostics);
                if data.is_empty() {
                    self.position.last = LastRecord::BareBagHeader { at };
                }
            }
            Header::Index(index) => {
                let section = self.sections.last_mut().expect("there is always a section");
                let (ver, count) = (index.ver.get(), index.count.get());
                if ver != 0 || !is_list_of::<IndexEntry>(data, count) {
                    section.records.is_unusable = true;
                    self.diagnostics.push(&rules::INDEX_UNUSABLE, at..end, || {
                        let (entries, bytes) = (text::count(count, "entry"), text::count(data.len(), "byte"));
                        format!(
                            "the index is ignored, because an index record has version {ver} and {entries} \
                             in {bytes}"
                        )
                    });
                }
                section.records.add(at, index.topic, data);
            }
            Header::Data(_) | Header::Unknown(_) => self.report_unknown_op(at..end, op),
        }
        self.position.at = end;
        Ok(Step::Record { at, data_at: record.data_at, end, op })
    }

    fn define(&mut self, definition: &Definition<'_>, at: u64, data: usize, end: u64) {
        let Definition { topic, ty, md5, def } = *definition;
        if data > 0 {
            self.diagnostics.push(&rules::DEFINITION_WITH_DATA, at..end, || {
                format!("a definition record has {} of data, which is ignored", text::count(data, "byte"))
            });
        }
        self.tables.definitions.records.add(topic, ty, md5, def, at);
        let number = self.tables.connection(topic, ty, md5);
        // A topic may be defined once in each section (bag within the file).
        if !self.position.defined_topics.insert(topic.into()) {
            self.diagnostics.push(&rules::DEFINITION_REPEATED, at..end, || {
                format!("topic {} has another definition before this one; both are read", escape_bytes(topic))
            });
        }
        if number.is_some_and(|number| self.position.tallies.has_messages(number)) {
            self.diagnostics.push(&rules::DEFINITION_LATE, at..end, || {
                format!(
                    "messages of {} come before the definition of the topic, so they cannot be decoded from \
                     a pipe",
                    escape_bytes(topic)
                )
            });
        }
        self.position.last = LastRecord::Definition { at, end };
    }

    /// Returns the message at the start of `bytes`. If no known shape (header without time) matches
    /// the header, adds a new shape.
    fn intern(&mut self, bytes: &[u8]) -> Option<MatchedHeader> {
        let (head, data) = Head::of(bytes)?;
        let connection = self.tables.connection(data.topic, data.ty, data.md5)?;
        self.tables.resolve(connection);
        let publisher = || Publisher::of_fields(data.latching, data.callerid);
        self.tables.shapes.intern(bytes, head, connection, publisher)
    }

    fn old_step(&mut self, window: Window<'_>) -> Result<Step, NeedMore> {
        let table = std::mem::take(&mut self.position.table);
        let step = match old::probe(window, self.position.at, self.line.version, &table) {
            Err(need) => Err(need),
            Ok(OldProbe::Good(record)) => Ok(self.old_message(window, &record)),
            Ok(OldProbe::Cut) => self.start_damage(window, None, true),
            Ok(OldProbe::Bad) => self.start_damage(window, None, false),
        };
        self.position.table = table;
        step
    }

    fn old_message(&mut self, window: Window<'_>, record: &OldRecord<'_>) -> Step {
        let at = self.position.at;
        let bytes = window.slice(at, record.end).ok().flatten().unwrap_or_default();
        let head = Head::old(usize::try_from(record.lines).expect("within the bytes at hand"));
        let found = self.tables.connection(record.topic, record.ty, record.md5).and_then(|connection| {
            self.tables.resolve(connection);
            self.tables.shapes.intern(bytes, head, connection, Publisher::default)
        });
        match found {
            Some(found) => Step::Message(self.count_message(found, &bytes[found.head as usize..])),
            None => self.report_loss(at, record.end, &rules::TOO_MANY_TOPICS),
        }
    }

    fn start_damage(
        &mut self,
        window: Window<'_>,
        claimed: Option<u64>,
        cut: bool,
    ) -> Result<Step, NeedMore> {
        // A copy in text mode changes every LF to CR LF. There must be at least three line ends in
        // the next 64 KiB, and all except the first must be CR LF. The first line end may belong to
        // the damaged record, so it does not count.
        let is_reported = || self.diagnostics.counts().contains_key(rules::TEXT_MODE_COPY.code);
        if self.line.crlf && self.sections.len() == 1 && !is_reported() {
            let bytes = window.upto(self.position.at, 64 << 10)?;
            let ends = || bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(i, _)| i);
            if ends().count() >= 3 && ends().skip(1).all(|i| bytes[i - 1] == b'\r') {
                let len = self.line.len;
                self.diagnostics.push(&rules::TEXT_MODE_COPY, 0..len, || {
                    "the file was damaged by a copy in text mode, which changes LF to CR LF; copy it again \
                     in binary mode"
                        .to_owned()
                });
            }
        }
        let start = self.position.at;
        let search = Search::from(start + 1);
        self.position.damage = Some(DamagedRange { start, claimed, cut, search });
        self.search(window)
    }

    /// Searches for the end of the damage, and returns the lost bytes as a step.
    fn search(&mut self, window: Window<'_>) -> Result<Step, NeedMore> {
        let mut damage = self.position.damage.expect("only called with damage");
        let limit = if window.eof { window.end() } else { u64::MAX };
        let found = if self.line.version != Version::V1_2 {
            // Records before V1.2 contain no fixed bytes, so no record can be found after damage.
            damage.search.next = window.end();
            if window.eof { Ok(None) } else { Err(NeedMore(window.end() + 1)) }
        } else if let Some(place) = self.next_indexed(window, damage.start) {
            Ok(Some(place))
        } else {
            self.find(window, &mut damage, limit)
        };
        // Save the state of the search, even if the window must be extended first.
        self.position.damage = Some(damage);
        let (end, rule) = match found? {
            Some(end) if damage.claimed == Some(end) => (end, &rules::BAD_RECORD),
            Some(end) => (end, &rules::LOST),
            None if damage.cut => (limit, &rules::CUT),
            None if damage.claimed == Some(limit) => (limit, &rules::BAD_RECORD),
            None => (limit, &rules::LOST),
        };
        self.position.damage = None;
        Ok(self.report_loss(damage.start, end, rule))
    }

    /// Returns the offset of the next valid record after damage. If the damaged record extends
    /// beyond the end of the file, only a record of a known topic is accepted, because other
    /// records may be part of the truncated message.
    fn find(
        &self,
        window: Window<'_>,
        damage: &mut DamagedRange,
        limit: u64,
    ) -> Result<Option<u64>, NeedMore> {
        loop {
            let Some(found) = damage.search.run(window, limit)? else { return Ok(None) };
            // A record whose topic is unknown may be part of a bag inside the truncated message.
            let is_known = match probe(window, found)? {
                Probe::Good(ProbedRecord { header, .. }) => {
                    header.topic().is_some_and(|topic| self.tables.has_topic(topic))
                }
                _ => false,
            };
            if !damage.cut || is_known {
                return Ok(Some(found));
            }
            damage.search.next = found + 1;
        }
    }

    /// Returns the offset of the next valid record that the index of the section lists. Returns
    /// `None` for a stream, because the index comes later in the stream.
    fn next_indexed(&mut self, window: Window<'_>, start: u64) -> Option<u64> {
        if !(window.eof && window.base == 0) {
            return None;
        }
        let section = self.sections.last_mut()?;
        let offsets = section.records.offsets.get_or_insert_with(|| {
            Box::new(IndexOffsets::of(window, section.offset, section.first_record, section.index_pos))
        });
        offsets.next(window, start)
    }

    /// Adds a diagnostic for bytes that cannot be read, and continues after them.
    fn report_loss(&mut self, at: u64, end: u64, rule: &'static Rule) -> Step {
        self.report_lost_bytes(at..end, rule);
        self.position.last = LastRecord::Other;
        self.position.at = end;
        Step::Lost { at, end, rule }
    }

    /// Compares the messages of the current section with its index. The section ends at offset
    /// `end`.
    fn end_section(&mut self, end: u64) {
        if self.line.version != Version::V1_2 {
            return;
        }
        // Only the connections of this section are visited, so that the time is linear even if the
        // file has many sections.
        self.position.defined_topics = HashSet::new();
        let mut messages: BTreeMap<&[u8], Tally> = BTreeMap::new();
        for (number, tally) in self.position.tallies.drain() {
            messages.entry(&self.tables.connections[number as usize].topic).or_default().join(tally);
        }
        let section = self.sections.last_mut().expect("there is always a section");
        section.compare_index(&messages);
        section.report(end, &[], &mut self.diagnostics);
        section.report_missing(section.missing_messages(), end, &mut self.diagnostics);
    }

    /// Completes the tables and reports at the end of the file.
    fn finish(&mut self, end: u64) {
        if std::mem::replace(&mut self.position.finished, true) {
            return;
        }
        self.end_section(end);
        self.finish_topics();
    }
}
