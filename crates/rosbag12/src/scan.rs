//! The scanner of the records of a bag, shared by reader, stream and recovery.
//!
//! [`Scanner`] does no I/O. It looks at a [`Window`] of the file and returns the next [`Step`]; if the
//! window ends too early, it requests more. Every byte of the file is part of exactly one step.

use std::collections::{BTreeMap, HashMap};

use rovelog_core::layout::Fit;
use rovelog_core::reader::SEARCH_LEN;
use rovelog_core::scan::{NeedMore, Scan, Window};
use rovelog_core::text::escape_bytes;
use rovelog_core::{Clock, DataSpan, Diagnostics, Rule, text};

use crate::diagnostics as rules;
use crate::error::BagError;
use crate::named::Named;
use crate::old::{self, OldProbe, OldRecord, Table};
use crate::options::BagOptions;
use crate::sections::{self, MAX_SECTIONS, Section};
use crate::shapes::{Head, Matched};
use crate::start;
use crate::tables::{Tables, Tally, fit};
use crate::v2;
use crate::validate::{Found, Probe, Search, crossing, follows, probe};
use crate::version::{self, Version, VersionLine};
use crate::wire::{BAG_HEADER_SIZE, Data, Definition, Header, IndexEntry, is_list_of};

/// What comes next in a bag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A message.
    Message(Met),
    /// A valid record that is no message.
    Record { at: u64, data_at: u64, end: u64, op: u8 },
    /// Bytes that are valid and no record: a version line, a table of topics, raw padding.
    Passed { at: u64, end: u64 },
    /// Bytes that cannot be read.
    Lost { at: u64, end: u64, rule: &'static Rule },
    /// The end of the file.
    End,
}

/// A message that was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Met {
    pub(crate) at: u64,
    pub(crate) payload_at: u64,
    pub(crate) end: u64,
    pub(crate) connection: u32,
    /// Its number within the connection.
    pub(crate) seq: u64,
    pub(crate) time: i64,
}

/// A lost range whose end is being looked for.
#[derive(Clone, Copy, Debug)]
struct Damage {
    start: u64,
    /// Where the record that was due would have ended, if its lengths were valid.
    claimed: Option<u64>,
    /// Whether it passes the end of the file.
    cut: bool,
    search: Search,
}

/// Scans a bag: where it is, what it learned, what it noticed.
#[derive(Debug)]
pub(crate) struct Scanner {
    pub(crate) version: Version,
    pub(crate) line: VersionLine,
    pub(crate) tables: Tables,
    pub(crate) diagnostics: Diagnostics,
    pub(crate) sections: Vec<Section>,
    /// Valid records by op.
    pub(crate) ops: Box<[u64; 256]>,
    /// Messages with a lower stamp than the one before.
    pub(crate) going_back: u64,
    /// The span of the data, once all of the bag was scanned.
    pub(crate) data: Option<DataSpan>,
    /// The topics of a V1.0 or V0 bag.
    pub(crate) table: Table,
    pub(crate) last_time: i64,
    pub(crate) v2: Option<Box<v2::State>>,
    /// The last message: where it started and ended, and its connection.
    last_message: (u64, u64, u32),
    /// Connections with messages in this section.
    in_section: Vec<u32>,
    /// By topic: the last section that defines it.
    defined_in: HashMap<Box<[u8]>, usize>,
    at: u64,
    damage: Option<Damage>,
    /// The shape of the last message.
    last_shape: u32,
    /// The last record, if it was a definition: where it started and ended.
    definition: Option<(u64, u64)>,
    /// The last record, if it was a bag header without data: where it started and ended.
    bare_bag_header: Option<(u64, u64)>,
    text_mode: bool,
    started: bool,
    finished: bool,
}

impl Scan for Scanner {
    type Step = Step;

    // Every byte of the file is part of exactly one step.
    fn step(&mut self, window: Window<'_>) -> Result<Step, NeedMore> {
        if self.damage.is_some() {
            return self.search(window);
        }
        if !self.started {
            return self.begin(window);
        }
        if let Some(step) = self.plain_step(window) {
            return Ok(step);
        }
        let at = self.at;
        if window.eof && at >= window.end() {
            self.finish(at);
            return Ok(Step::End);
        }
        if self.version != Version::V1_2 {
            return self.old_step(window);
        }
        if let Some(line) = version::at(window, at)? {
            return Ok(self.begin_section(at, line.len));
        }
        if let Some(step) = self.raw_padding(window)? {
            return Ok(step);
        }
        match probe(window, at)? {
            Probe::Good(record) => {
                if !follows(window, record.end)?
                    && let Some(found) = self.swallowed(window, &record)?
                {
                    return Ok(self.lose(at, found, &rules::LOST));
                }
                self.take(window, &record)
            }
            Probe::Cut => self.begin_gap(window, None, true),
            Probe::Bad(claimed) => self.begin_gap(window, claimed, false),
        }
    }

    fn needed_from(&self) -> u64 {
        self.damage.map_or(self.at, |damage| damage.search.next)
    }
}

impl Scanner {
    /// How much of the file [`start`](Self::start) must see, if the file has that much.
    pub(crate) const START: usize = SEARCH_LEN;

    /// Reads the version line. `head` is the start of the file: a version line, or
    /// [`START`](Self::START) bytes if it is damaged.
    pub(crate) fn start(head: &[u8], options: &BagOptions) -> Result<Self, BagError> {
        let line = if options.version_0 {
            VersionLine { version: Version::V0, text: String::new(), len: 0, crlf: false, is_damaged: false }
        } else {
            start::find(head)?
        };
        let clock =
            if matches!(line.version, Version::V1_0 | Version::V0) { Clock::LogStart } else { Clock::Unix };
        let mut scanner = Self {
            version: line.version,
            tables: Tables::new(options, clock),
            diagnostics: options.read.diagnostics(),
            sections: vec![Section::new(0, line.len)],
            ops: Box::new([0; 256]),
            going_back: 0,
            data: None,
            table: Table::default(),
            last_time: i64::MIN,
            v2: None,
            last_message: (0, 0, 0),
            in_section: Vec::new(),
            defined_in: HashMap::new(),
            at: 0,
            damage: None,
            last_shape: 0,
            definition: None,
            bare_bag_header: None,
            text_mode: false,
            started: false,
            finished: false,
            line,
        };
        if scanner.line.is_damaged {
            let len = scanner.line.len;
            scanner.diagnostics.push(&rules::VERSION_LINE_DAMAGED, 0..len, || {
                format!("no version line at the start of the file: the first record of a V2.0 bag is at byte {len}")
            });
        }
        if scanner.line.crlf {
            let len = scanner.line.len;
            scanner
                .diagnostics
                .push(&rules::VERSION_LINE_CRLF, 0..len, || "the version line ends in CR LF".to_owned());
        }
        Ok(scanner)
    }

    /// Hands messages of a file, all of which is in `data`, to `sink` as long as each and the next
    /// one have known headers.
    #[inline]
    pub(crate) fn messages(&mut self, data: &[u8], mut sink: impl FnMut(Met, &mut Tables)) {
        let Ok(start) = usize::try_from(self.at) else { return };
        let Some(mut rest) = data.get(start..) else { return };
        let Some(mut found) = self.tables.shapes.find(rest, self.last_shape) else { return };
        while let Some((behind, next)) = rest
            .get(found.size()..)
            .and_then(|behind| Some((behind, self.tables.shapes.find(behind, found.shape)?)))
        {
            let met = self.count(found, &rest[found.head..found.size()]);
            sink(met, &mut self.tables);
            (rest, found) = (behind, next);
        }
    }

    /// Returns the message at the place, if it and the next one have known headers.
    #[inline]
    fn plain_step(&mut self, window: Window<'_>) -> Option<Step> {
        let rest = window.slice(self.at, window.end()).ok()??;
        let found = self.tables.shapes.find(rest, self.last_shape)?;
        self.tables.shapes.find(rest.get(found.size()..)?, found.shape)?;
        Some(Step::Message(self.count(found, &rest[found.head..found.size()])))
    }

    /// Takes the message at the place.
    #[inline]
    fn count(&mut self, found: Matched, payload: &[u8]) -> Met {
        let at = self.at;
        self.tables.shapes.follow(self.last_shape, found.shape);
        self.last_shape = found.shape;
        self.ops[usize::from(Data::OP)] += 1;
        let number = self.tables.shapes.list[found.shape as usize].connection;
        // There may be a better definition than for the message before.
        self.tables.resolve(number);
        let shape = &mut self.tables.shapes.list[found.shape as usize];
        shape.count += 1;
        let connection = &mut self.tables.connections[number as usize];
        let stats = &mut connection.stats;
        stats.latched += u64::from(shape.latching);
        let seq = stats.count;
        let time = stats.message(at, found.len, found.sec, found.nsec);
        self.going_back += u64::from(time < self.last_time);
        self.last_time = time;
        let section = self.sections.last_mut().expect("there is always a section");
        let pos = at - section.offset;
        if stats.in_section.count == 0 {
            self.in_section.push(number);
        }
        stats.in_section.add(found.sec, found.nsec, pos);
        if let Some((definition, end)) = self.definition.take()
            && end == at
        {
            section.behind_definition.insert(definition - section.offset, pos);
        }
        let payload_at = at + found.head as u64;
        let end = at + found.size() as u64;
        let fit = fit(connection, payload);
        if fit != Fit::Exact {
            self.note_misfit(number, fit, payload.len(), (payload_at, end));
        }
        self.bare_bag_header = None;
        self.last_message = (at, end, number);
        self.at = end;
        Met { at, payload_at, end, connection: number, seq, time }
    }

    /// Returns the version line, and the table of topics behind it; no bytes where there is neither.
    fn begin(&mut self, window: Window<'_>) -> Result<Step, NeedMore> {
        let mut end = self.line.len;
        if matches!(self.version, Version::V1_0 | Version::V0) {
            // Without a table no record is known, and all that follows is lost.
            if let Some((table, behind)) = old::table(window, self.version, end)? {
                (self.table, end) = (table, behind);
            }
            self.diagnostics.push(&rules::RELATIVE_STAMPS, 0..end, || {
                "times are shown as counted from the start of the recording".to_owned()
            });
        }
        self.started = true;
        self.at = end;
        Ok(Step::Passed { at: 0, end })
    }

    fn begin_section(&mut self, at: u64, len: u64) -> Step {
        if self.sections.len() >= MAX_SECTIONS {
            return self.lose(at, at + len, &rules::TOO_MANY_SECTIONS);
        }
        self.end_section(at);
        self.sections.push(Section::new(at, at + len));
        self.diagnostics.push(&rules::APPENDED_SECTION, at..at + len, || {
            format!("another bag starts at byte {at}: it is read with the same definitions")
        });
        (self.definition, self.bare_bag_header) = (None, None);
        self.at = at + len;
        Step::Passed { at, end: self.at }
    }

    /// Spaces up to 4096 bytes behind the start of a bag header without data; a longer one has none.
    fn raw_padding(&mut self, window: Window<'_>) -> Result<Option<Step>, NeedMore> {
        let at = self.at;
        let Some((start, _)) = self.bare_bag_header.filter(|(_, end)| *end == at) else { return Ok(None) };
        // A header of many fields is longer.
        let bytes = window.upto(at, (start + u64::from(BAG_HEADER_SIZE)).saturating_sub(at))?;
        if bytes.len() < 4 || bytes.iter().any(|byte| *byte != b' ') {
            return Ok(None);
        }
        let len = bytes.len() as u64;
        self.bare_bag_header = None;
        if let Some(section) = self.sections.last_mut() {
            section.raw_padding = Some(len);
        }
        self.diagnostics.push(&rules::RAW_PADDING, at..at + len, || {
            format!("{len} spaces outside of any record; index positions point past their records")
        });
        self.at = at + len;
        Ok(Some(Step::Passed { at, end: self.at }))
    }

    /// Returns where the records of the bag go on inside of a record that nothing valid follows:
    /// bytes of it are lost, and its length reaches into the next one. A message that fits its
    /// definition may still hold whole records.
    fn swallowed(&mut self, window: Window<'_>, record: &Found<'_>) -> Result<Option<u64>, NeedMore> {
        if let Some(found) = crossing(window, record.data_at, record.end)? {
            return Ok(Some(found));
        }
        if self.is_confirmed(window, record)? {
            return Ok(None);
        }
        Search::from(record.data_at).run(window, record.end)
    }

    /// Returns whether the content of a record confirms its length, whatever follows it.
    fn is_confirmed(&mut self, window: Window<'_>, record: &Found<'_>) -> Result<bool, NeedMore> {
        let Header::Data(Data { topic, ty, md5, .. }) = record.header else { return Ok(false) };
        let Some(number) = self.tables.number(topic, ty, md5) else { return Ok(false) };
        self.tables.resolve(number);
        let known = &self.tables.connections[number as usize];
        let payload = window.slice(record.data_at, record.end)?.unwrap_or_default();
        Ok(known.definition().is_some() && fit(known, payload) == Fit::Exact)
    }

    /// Takes a valid record.
    fn take(&mut self, window: Window<'_>, record: &Found<'_>) -> Result<Step, NeedMore> {
        let (at, end) = (self.at, record.end);
        let bytes = window.slice(at, end)?.unwrap_or_default();
        if let Header::Data(_) = record.header {
            let shapes = self.tables.shapes.list.len();
            let Some(found) = self.intern(bytes) else {
                return Ok(self.lose(at, end, &rules::TOO_MANY_TOPICS));
            };
            // Once for each header: the messages that follow are not parsed any more.
            if shapes < self.tables.shapes.list.len() {
                self.note_head(at..record.data_at, record.repeated, record.meant);
            }
            return Ok(Step::Message(self.count(found, &bytes[found.head..])));
        }
        self.note_head(at..record.data_at, record.repeated, record.meant);
        let op = record.header.op();
        self.ops[usize::from(op)] += 1;
        (self.definition, self.bare_bag_header) = (None, None);
        let data = window.slice(record.data_at, end)?.unwrap_or_default();
        match record.header {
            Header::Definition(definition) => self.define(&definition, at, data.len(), end),
            Header::BagHeader(header) => {
                let section = self.sections.last_mut().expect("there is always a section");
                if at != section.first_record {
                    self.diagnostics.push(&rules::BAG_HEADER_LATE, at..end, || {
                        format!("the bag header is not the first record, at byte {}", section.first_record)
                    });
                }
                section.index_pos = Some(header.index_pos.get());
                section.bag_header_at = Some((at, record.data_at));
                self.bare_bag_header = data.is_empty().then_some((at, end));
            }
            Header::Index(index) => {
                let section = self.sections.last_mut().expect("there is always a section");
                let (ver, count) = (index.ver.get(), index.count.get());
                if ver != 0 || !is_list_of::<IndexEntry>(data, count) {
                    section.unusable = true;
                    self.diagnostics.push(&rules::INDEX_UNUSABLE, at..end, || {
                        let (entries, bytes) = (text::count(count, "entry"), text::count(data.len(), "byte"));
                        format!("version {ver}, {entries} in {bytes}")
                    });
                }
                section.index_record(at, index.topic, data);
            }
            Header::Data(_) | Header::Unknown(_) => {
                self.diagnostics.push(&rules::UNKNOWN_OP, at..end, || format!("a record of op {op}"));
            }
        }
        self.at = end;
        Ok(Step::Record { at, data_at: record.data_at, end, op })
    }

    fn define(&mut self, definition: &Definition<'_>, at: u64, data: usize, end: u64) {
        let Definition { topic, ty, md5, def } = *definition;
        if data > 0 {
            self.diagnostics.push(&rules::DEFINITION_WITH_DATA, at..end, || {
                format!("a definition is followed by {} of data", text::count(data, "byte"))
            });
        }
        if self.tables.definitions.take(topic, ty, md5, def, at) {
            self.tables.defined += 1;
        }
        let number = self.tables.connection(topic, ty, md5);
        if self.defined_in.insert(topic.into(), self.sections.len()) == Some(self.sections.len()) {
            self.diagnostics.push(&rules::DEFINITION_REPEATED, at..end, || {
                format!("{} has a definition already", escape_bytes(topic))
            });
        }
        if let Some(number) = number
            && self.tables.connections[number as usize].stats.in_section.count > 0
        {
            self.diagnostics.push(&rules::DEFINITION_LATE, at..end, || {
                format!("messages of {} come before their definition", escape_bytes(topic))
            });
        }
        self.definition = Some((at, end));
    }

    /// Returns the shape of a message, a new one if need be.
    fn intern(&mut self, bytes: &[u8]) -> Option<Matched> {
        let (head, data) = Head::of(bytes)?;
        let connection = self.tables.connection(data.topic, data.ty, data.md5)?;
        let callerid = data.callerid.map(|name| self.tables.callerid(name));
        let latching = data.latching == Some(b"1");
        self.tables.resolve(connection);
        self.tables.shapes.intern(bytes, head, || Some((connection, latching, callerid)))
    }

    fn old_step(&mut self, window: Window<'_>) -> Result<Step, NeedMore> {
        let table = std::mem::take(&mut self.table);
        let step = match old::probe(window, self.at, self.version, &table) {
            Err(need) => Err(need),
            Ok(OldProbe::Good(record)) => Ok(self.old_message(window, &record)),
            Ok(OldProbe::Cut) => self.begin_gap(window, None, true),
            Ok(OldProbe::Bad) => self.begin_gap(window, None, false),
        };
        self.table = table;
        step
    }

    fn old_message(&mut self, window: Window<'_>, record: &OldRecord<'_>) -> Step {
        let at = self.at;
        let bytes = window.slice(at, record.end).ok().flatten().unwrap_or_default();
        let head = Head::old(usize::try_from(record.lines).expect("within the bytes at hand"));
        let found = self.tables.connection(record.topic, record.ty, record.md5).and_then(|connection| {
            self.tables.resolve(connection);
            self.tables.shapes.intern(bytes, head, || Some((connection, false, None)))
        });
        match found {
            Some(found) => Step::Message(self.count(found, &bytes[found.head..])),
            None => self.lose(at, record.end, &rules::TOO_MANY_TOPICS),
        }
    }

    fn begin_gap(&mut self, window: Window<'_>, claimed: Option<u64>, cut: bool) -> Result<Step, NeedMore> {
        if self.line.crlf && !self.text_mode && self.sections.len() == 1 {
            let bytes = window.upto(self.at, 64 << 10)?;
            let ends = || bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(i, _)| i);
            if ends().count() >= 3 && ends().skip(1).all(|i| bytes[i - 1] == b'\r') {
                self.text_mode = true;
                let len = self.line.len;
                self.diagnostics.push(&rules::TEXT_MODE_COPY, 0..len, || {
                    "the file was copied in text mode: copy it again in binary mode".to_owned()
                });
            }
        }
        self.damage = Some(Damage { start: self.at, claimed, cut, search: Search::from(self.at + 1) });
        self.search(window)
    }

    /// Looks for the end of the damage.
    fn search(&mut self, window: Window<'_>) -> Result<Step, NeedMore> {
        let mut damage = self.damage.expect("only called with damage");
        let limit = if window.eof { window.end() } else { u64::MAX };
        let found = if self.version != Version::V1_2 {
            // Records of old versions have nothing by which they could be found again.
            damage.search.next = window.end();
            if window.eof { Ok(None) } else { Err(NeedMore(window.end() + 1)) }
        } else if let Some(place) = self.named_by_index(window, damage.start) {
            Ok(Some(place))
        } else {
            self.find(window, &mut damage, limit)
        };
        // What was searched is searched, whatever is missing now.
        self.damage = Some(damage);
        let (end, rule) = match found? {
            Some(end) if damage.claimed == Some(end) => (end, &rules::BAD_RECORD),
            Some(end) => (end, &rules::LOST),
            None if damage.cut => (limit, &rules::CUT),
            None if damage.claimed == Some(limit) => (limit, &rules::BAD_RECORD),
            None => (limit, &rules::LOST),
        };
        self.damage = None;
        Ok(self.lose(damage.start, end, rule))
    }

    /// Returns the next valid record. Behind a record that is valid but for its end, which most
    /// likely the file cuts, it must be of a topic that was met before: what else is found may be
    /// part of the message.
    fn find(&self, window: Window<'_>, damage: &mut Damage, limit: u64) -> Result<Option<u64>, NeedMore> {
        loop {
            let Some(found) = damage.search.run(window, limit)? else { return Ok(None) };
            let is_known = match probe(window, found)? {
                Probe::Good(Found { header, .. }) => {
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

    /// Returns where records go on by the index of the section, which a pipe does not have yet.
    fn named_by_index(&mut self, window: Window<'_>, start: u64) -> Option<u64> {
        if !(window.eof && window.base == 0) {
            return None;
        }
        let section = self.sections.last_mut()?;
        if section.named.is_none() {
            let named = Named::of(window, section.offset, section.first_record, section.index_pos);
            section.named = Some(Box::new(named));
        }
        section.named.as_mut()?.next(window, start)
    }

    fn lose(&mut self, at: u64, end: u64, rule: &'static Rule) -> Step {
        self.diagnostics.push(rule, at..end, || {
            let bytes = text::count(end - at, "byte");
            if rule == &rules::CUT {
                format!("the record at byte {at} is cut by the end of the file; {bytes} of it are present")
            } else if rule == &rules::BAD_RECORD {
                format!("{bytes}: invalid record header")
            } else if rule == &rules::TOO_MANY_TOPICS {
                "a record of a topic beyond the limit".to_owned()
            } else if rule == &rules::TOO_MANY_SECTIONS {
                sections::beyond_limit(at)
            } else {
                let (from, behind, connection) = self.last_message;
                let before = (behind == at && behind > 0).then(|| {
                    let name = &self.tables.topics[connection as usize].name;
                    format!("; the message of {name} at byte {from} right before may be corrupt")
                });
                format!("no valid record in {bytes}{}", before.unwrap_or_default())
            }
        });
        (self.definition, self.bare_bag_header) = (None, None);
        self.at = end;
        Step::Lost { at, end, rule }
    }

    /// Settles the index of the section that ends at `end`.
    fn end_section(&mut self, end: u64) {
        if self.version != Version::V1_2 {
            return;
        }
        let with_messages = std::mem::take(&mut self.in_section);
        let mut messages: BTreeMap<&[u8], Tally> = BTreeMap::new();
        for number in &with_messages {
            let connection = &self.tables.connections[*number as usize];
            messages.entry(&connection.topic).or_default().join(connection.stats.in_section);
        }
        let section = self.sections.last_mut().expect("there is always a section");
        section.settle(&messages);
        for number in with_messages {
            self.tables.connections[number as usize].stats.in_section = Tally::default();
        }
        section.note(end, &mut self.diagnostics);
    }

    /// Everything that can be said at the end only.
    fn finish(&mut self, end: u64) {
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        self.end_section(end);
        self.settle_tables();
    }

    /// Completes the connections.
    pub(crate) fn settle_tables(&mut self) {
        for number in 0..self.tables.connections.len() {
            let id = u32::try_from(number).expect("connections are limited");
            self.tables.resolve(id);
            self.tables.publish(id);
            self.tables.note(number, &mut self.diagnostics);
        }
        self.settle_times();
    }
}
