//! The random-access reader: a log in memory or in a mapped file.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::sync::OnceLock;

use rovelog_core::error::changed;
use rovelog_core::order::{self, Blocks, Place};
use rovelog_core::partial::Unread;
use rovelog_core::scan::{Scan as _, Window};
use rovelog_core::{
    Bytes, DataSpan, LogInfo, LogReader, ReadOptions, Record, Select, Text, Timestamp, TopicId, Value,
};

use crate::clock::{LogClock, is_time_of};
use crate::definitions::{Definitions, RowShape};
use crate::diagnostics as rules;
use crate::error::UlogError;
use crate::index::{Cursor, Era, Index, Met, message_at, row_bytes};
use crate::locate::Search;
use crate::parameters::{Parameters, Section, infos, multi_infos};
use crate::row::Row;
use crate::scan::{Scanner, Step};
use crate::sessions::{self, Boundary, Session, Tally, Watch};
use crate::state::Summary;
use crate::wire::{self, FileHeader, FlagBits, Message, MessageHeader, kind, level_number};

/// An opened ULog. Everything after its header is scanned once, at the first request for it; rows
/// are decoded on request.
#[derive(Debug)]
pub struct UlogReader {
    pub(crate) bytes: Bytes,
    header: FileHeader,
    flags: Option<FlagBits>,
    /// Offset of the first message.
    first: u64,
    search: Search,
    options: ReadOptions,
    scanned: OnceLock<Scanned>,
}

/// The result of a scan of the whole log.
#[derive(Debug)]
struct Scanned {
    scanner: Scanner,
    index: Index,
    info: LogInfo,
    /// Offsets of 'I', 'M', 'P' and 'Q' messages, with their sections.
    described: Vec<(u64, Section)>,
    summary: Summary,
}

/// What an earlier scan has found of a log.
#[derive(Default)]
struct Known {
    /// The span of its data.
    data: Option<DataSpan>,
    watch: Watch,
    /// Where its sessions start; empty if it is one.
    boundaries: Vec<Boundary>,
    /// Whether their times are moved to the clock of the first one.
    is_aligned: bool,
}

impl Scanned {
    /// Scans the log; once more if it has several sessions, and where times far behind its data have
    /// moved the log time, without them. Not if that would change timestamps: a pipe, and columns of
    /// a log that was only opened, complete narrow ones before they know the end.
    fn new(bytes: &[u8], unread: &Unread, start: impl Fn() -> Scanner) -> Self {
        let mut first = Self::scan(bytes, unread, start(), &Known::default());
        let mut known = first.sessions();
        if !known.boundaries.is_empty() {
            drop(first);
            first = Self::scan(bytes, unread, start(), &known);
        }
        let Some(data) = first.info.data.clone() else { return first };
        let ends = first.info.end.is_none_or(|end| end.nanos <= data.end.nanos);
        if ends || first.scanner.clock.has_narrow {
            return first;
        }
        let end = first.info.end;
        drop(first);
        known.data = Some(data);
        let mut again = Self::scan(bytes, unread, start(), &known);
        again.info.end = end;
        again
    }

    /// Returns the sessions that the scan has found.
    fn sessions(&self) -> Known {
        let watch = self.summary.watch.clone();
        if watch.sessions.len() < 2 {
            return Known::default();
        }
        let offsets = self.summary.offsets(&self.scanner);
        let shifts = sessions::shifts(&watch.sessions, &offsets).filter(|_| !self.scanner.clock.has_narrow);
        let boundary = |(number, session): (usize, &Tally)| Boundary {
            at: session.at,
            has_header: session.header.is_some(),
            start: session.header.map_or(session.first.unwrap_or(0), |header| header.timestamp.get()),
            shift: shifts.as_ref().map_or(0, |shifts| shifts[number]),
        };
        let boundaries = watch.sessions.iter().enumerate().skip(1).map(boundary).collect();
        Known { data: None, boundaries, is_aligned: shifts.is_some(), watch }
    }

    /// Scans the log, part by part where parts were not read.
    fn scan(bytes: &[u8], unread: &Unread, mut scanner: Scanner, known: &Known) -> Self {
        let data = known.data.clone();
        if let Some(end) = data.as_ref().and_then(|data| u64::try_from(data.end.nanos / 1000).ok()) {
            scanner.clock = scanner.clock.until(end);
        }
        scanner.boundaries.clone_from(&known.boundaries);
        let mut summary = Summary::knowing(known.watch.clone(), known.is_aligned);
        // The first log time: that of rows without a time at the start.
        let start = scanner.clock.now;
        let mut index = Index::new(start, &scanner);
        let mut described = Vec::new();
        for (window, seams) in unread.windows(bytes) {
            scanner.enter(seams);
            loop {
                scanner.rows(window, |_, row| {
                    let stats = summary.stats(row.series);
                    index.row(row.at, row.series, row.micros, row.before, stats.seen());
                    if stats.row(row.at, row.len, Some(row.micros)) || summary.watch.is_active {
                        summary.watch_row(row.series, row.at, Some(row.micros), row.before);
                    }
                });
                // The window is the whole file, so there is never more to ask for.
                match scanner.step(window).expect("the window reaches the end of the file") {
                    Step::Row { at, shape, time, before, .. } => {
                        let row = row_bytes(bytes, at).expect("a valid row is whole");
                        if shape.is_narrow() {
                            index.join();
                        }
                        let stats = summary.stats(shape.series);
                        let order = time.in_order_micros(scanner.clock.now);
                        index.row(at, shape.series, order, before, stats.seen());
                        summary.row(shape.series, at, row.len(), time.micros(), before);
                        if shape.flags & RowShape::UTC != 0 {
                            summary.gps_row(at, &scanner.definitions, shape, row);
                        }
                    }
                    Step::Message { at, msg_type, .. } => {
                        let message =
                            valid_message(&bytes[usize::try_from(at).expect("within the bytes at hand")..]);
                        let in_data = scanner.definitions.in_data;
                        summary.message(msg_type, &message, in_data);
                        // What a second log says of itself is not of the first one.
                        let is_description = matches!(
                            msg_type,
                            kind::INFO | kind::MULTI_INFO | kind::PARAMETER | kind::DEFAULT_PARAMETER
                        );
                        if is_description && !scanner.is_joined {
                            let section = if in_data {
                                Section::Data(scanner.clock.now())
                            } else {
                                Section::Definitions
                            };
                            described.push((at, section));
                        }
                    }
                    // Data without a usable subscription is framed correctly, so a second pass skips it.
                    Step::Lost { rule, .. } if [&rules::UNKNOWN_ID, &rules::UNDECODABLE].contains(&rule) => {}
                    Step::Lost { at, end, .. } | Step::Unread { at, end } => {
                        index.blocks.skip(at..end);
                        summary.lose();
                    }
                    Step::Joined { at, end, header } => {
                        index.blocks.skip(at..end);
                        summary.join(at, header, log_end(&scanner));
                    }
                    Step::End => break,
                }
            }
        }
        index.finish(&scanner.definitions, bytes.len() as u64);
        index.boundaries.clone_from(&known.boundaries);
        index.topic_eras = summary.eras(start, scanner.definitions.topics.len());
        summary.finish(&mut scanner, data);
        let info = summary.info(&scanner, bytes.len() as u64);
        Self { scanner, index, info, described, summary }
    }
}

/// Returns the latest log time so far, microseconds.
fn log_end(scanner: &Scanner) -> u64 {
    scanner.clock.end().and_then(|end| u64::try_from(end.nanos / 1000).ok()).unwrap_or(0)
}

/// Returns a scan of a whole log that is behind its header.
fn start(bytes: &[u8], options: &ReadOptions, search: Search) -> Result<Scanner, UlogError> {
    let scanner = Scanner::start(Window::whole(bytes), options, search);
    scanner.expect("the window reaches the end of the file")
}

impl UlogReader {
    /// Opens the log in `bytes`.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a ULog, end inside its header, or use incompatible
    /// features. Damage is not an error: it is reported by
    /// [`diagnostics`](LogReader::diagnostics).
    pub fn new(bytes: Bytes, options: &ReadOptions) -> Result<Self, UlogError> {
        Self::with(bytes, options, Search::Near)
    }

    /// Opens a log whose header may be damaged or missing: [`new`](Self::new) requires definitions in
    /// the first 64 KiB of such a log, this function any message in the first 40 MiB.
    ///
    /// # Errors
    /// As [`new`](Self::new), if there is neither a header nor a message.
    pub fn salvage(bytes: Bytes, options: &ReadOptions) -> Result<Self, UlogError> {
        Self::with(bytes, options, Search::Far)
    }

    fn with(bytes: Bytes, options: &ReadOptions, search: Search) -> Result<Self, UlogError> {
        let scanner = start(&bytes, options, search)?;
        let (header, flags, first) = (scanner.header, scanner.flags, scanner.first);
        let options = options.clone();
        Ok(Self { bytes, header, flags, first, search, options, scanned: OnceLock::new() })
    }

    /// Returns the ranges of the file that were not read.
    pub(crate) fn unread(&self) -> &Unread {
        &self.options.unread
    }

    /// Returns a scan that is behind the header.
    pub(crate) fn start(&self) -> Scanner {
        let scanner = start(&self.bytes, &self.options, self.search);
        scanner.expect("the header was accepted when the log was opened")
    }

    fn scanned(&self) -> &Scanned {
        self.scanned.get_or_init(|| Scanned::new(&self.bytes, &self.options.unread, || self.start()))
    }

    pub(crate) fn summary(&self) -> &LogInfo {
        &self.scanned().info
    }

    pub(crate) fn scanner(&self) -> &Scanner {
        &self.scanned().scanner
    }

    pub(crate) fn index(&self) -> &Index {
        &self.scanned().index
    }

    /// Returns whether the log was scanned already.
    #[cfg(feature = "arrow")]
    pub(crate) fn is_indexed(&self) -> bool {
        self.scanned.get().is_some()
    }

    /// Returns the offset of the first message: 16, unless the header is damaged.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// Returns the file's header; of a damaged one, what is known.
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// Returns the flag bits, if the log has them.
    pub fn flag_bits(&self) -> Option<&FlagBits> {
        self.flags.as_ref()
    }

    /// Returns the recordings in the file if there are several: logs that follow each other, or parts
    /// with a clock that restarted. A single recording is an empty list.
    pub fn sessions(&self) -> Vec<Session> {
        let summary = &self.scanned().summary;
        let tallies = &summary.watch.sessions;
        let utcs = summary.offsets(self.scanner());
        let session = |((range, tally), utc): ((Range<u64>, &Tally), _)| {
            let is_first = tally.at == 0;
            let header = if is_first { Some(self.header) } else { tally.header };
            let start = header.map_or(0, |header| header.timestamp.get());
            let clock = LogClock::new(start).clock;
            let first = if is_first { Some(start) } else { tally.first };
            Session {
                range: range.start..range.end.min(self.bytes.len() as u64),
                has_header: header.is_some(),
                records: tally.records,
                first: first.and_then(|first| Timestamp::from_micros(first, clock)),
                last: tally.last.and_then(|last| Timestamp::from_micros(last, clock)),
                utc,
            }
        };
        summary.ranges().into_iter().zip(tallies).zip(utcs).map(session).collect()
    }

    /// Returns where the sessions behind the first one start.
    pub(crate) fn boundaries(&self) -> &[Boundary] {
        &self.index().boundaries
    }

    /// Returns the microseconds that were added to the times at an offset.
    pub(crate) fn shift_at(&self, at: u64) -> u64 {
        let boundaries = self.boundaries();
        let before = boundaries.partition_point(|boundary| boundary.at <= at);
        before.checked_sub(1).map_or(0, |last| boundaries[last].shift)
    }

    /// Returns where appended data starts; at most three offsets.
    pub fn appended_offsets(&self) -> &[u64] {
        &self.scanner().appended
    }

    /// Returns the formats, the subscriptions, and the layouts of topics.
    pub fn definitions(&self) -> &Definitions {
        &self.scanner().definitions
    }

    /// Returns a record as a row, for access to single fields.
    ///
    /// # Errors
    /// Returns an error if the record is not one of this log.
    pub fn row<'a>(&'a self, record: &Record<'a>) -> Result<Row<'a>, UlogError> {
        self.scanner().definitions.row(record.topic, record.payload.borrowed().unwrap_or_default())
    }

    /// Returns all valid messages in file order, with the offset of each.
    pub fn messages(&self) -> impl Iterator<Item = (u64, Message<'_>)> + '_ {
        self.cursor().filter_map(|met| Some((met.at, met.message()?)))
    }

    /// Returns all rows in file order, as records.
    pub fn records_in_file_order(&self) -> impl Iterator<Item = Record<'_>> + '_ {
        self.records_of(self.cursor(), vec![0; self.topics().len()])
    }

    /// Returns the rows that `cursor` meets; `rows` says how many of each topic are before them.
    pub(crate) fn records_of<'a>(
        &'a self,
        cursor: Cursor<'a>,
        mut rows: Vec<u64>,
    ) -> impl Iterator<Item = Record<'a>> + use<'a> {
        cursor.filter_map(move |met| {
            let row = met.row?;
            let time = self.scanner().clock.timestamp(row.time);
            let seq = rows[row.series as usize];
            rows[row.series as usize] += 1;
            Some(self.record(row.series, time, met.at, seq, met.row_bytes()))
        })
    }

    /// Returns the parameters, with their changes and defaults.
    pub fn parameters(&self) -> Parameters {
        let mut parameters = Parameters::default();
        for (at, message, section) in self.described() {
            parameters.take(&message, at, section);
        }
        parameters
    }

    /// Returns the information messages: the last value of each key.
    pub fn infos(&self) -> BTreeMap<String, Value> {
        infos(self.described().map(|(_, message, _)| message), &self.definitions().formats)
    }

    /// Returns the information messages with several values: key, lists, parts, in file order.
    pub fn multi_infos(&self) -> BTreeMap<String, Vec<Vec<Value>>> {
        multi_infos(self.described().map(|(_, message, _)| message), &self.definitions().formats)
    }

    pub(crate) fn described(&self) -> impl Iterator<Item = (u64, Message<'_>, Section)> + '_ {
        self.scanned().described.iter().filter_map(|(at, section)| {
            let (header, payload) = message_at(&self.bytes, *at)?;
            Some((*at, Message::parse(header.msg_type, payload)?, *section))
        })
    }

    /// Returns the bytes of the file.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns a time of this log, from microseconds.
    pub(crate) fn timestamp(&self, micros: u64) -> Option<Timestamp> {
        Timestamp::from_micros(micros, self.scanner().clock.clock)
    }

    /// Returns bytes without valid framing, ascending.
    pub(crate) fn lost(&self) -> &[std::ops::Range<u64>] {
        self.index().blocks.skips()
    }

    /// Returns the cut messages at the end of the log before data was appended to it.
    pub(crate) fn cut_before_appended(&self) -> Vec<std::ops::Range<u64>> {
        let cuts = self.diagnostics().list().iter().filter(|found| found.rule == &rules::CUT);
        let cuts = cuts.map(|cut| cut.range.clone());
        cuts.filter(|range| self.appended_offsets().contains(&range.end)).collect()
    }

    pub(crate) fn cursor(&self) -> Cursor<'_> {
        Cursor::all(&self.bytes, self.index(), &self.scanner().definitions, self.header.timestamp.get())
    }

    fn record<'a>(
        &'a self,
        series: u32,
        time: Option<Timestamp>,
        at: u64,
        seq: u64,
        payload: &'a [u8],
    ) -> Record<'a> {
        let topic = &self.scanner().definitions.topics[TopicId(series).index()];
        Record::new(topic, time, at, seq, payload, &self.scanner().definitions)
    }

    /// Returns the record at a place in time order.
    fn record_at(&self, place: Place) -> Result<Record<'_>, UlogError> {
        let payload = row_bytes(&self.bytes, place.offset).ok_or_else(|| changed(place.offset))?;
        let (shape, clock) = (self.index().shape(place.topic), self.scanner().clock.clock);
        let time = match shape.plain_time(payload) {
            // What a narrow timestamp means depends on the rows before it, unlike its place in the order.
            None if shape.is_narrow() => {
                let micros = u64::try_from(place.time / 1000).unwrap_or_default();
                is_time_of(shape, payload, micros).then(|| Timestamp::new(place.time, clock))
            }
            time => {
                let shift = self.shift_at(place.offset);
                time.and_then(|micros| Timestamp::from_micros(micros.saturating_add(shift), clock))
            }
        };
        Ok(self.record(place.topic, time, place.offset, place.seq, payload))
    }

    /// Returns the records that `select` keeps, in time order.
    pub(crate) fn records_in_order<'a>(
        &'a self,
        select: &Select,
    ) -> impl Iterator<Item = Result<Record<'a>, UlogError>> + use<'a> {
        let places = order::selected(self.topics(), select, |wanted| RowsOf::new(self, wanted));
        places.map(|place| self.record_at(place))
    }

    /// Returns the logged strings in file order.
    pub(crate) fn logged_strings(&self) -> impl Iterator<Item = Text> + '_ {
        self.cursor().filter_map(|met| self.text(&met))
    }

    fn text(&self, met: &Met<'_>) -> Option<Text> {
        if !matches!(met.msg_type, kind::LOGGED_STRING | kind::TAGGED_STRING) {
            return None;
        }
        let line = |level, timestamp, text| {
            let timestamp: u64 = timestamp;
            let micros = timestamp.saturating_add(self.shift_at(met.at));
            let time = Timestamp::from_micros(micros, self.scanner().clock.clock);
            let decoding = &self.scanner().definitions.formats.decoding;
            let text = decoding.decode("logged messages", text).into_owned();
            Some(Text::new(time, met.at, level_number(level)?, text))
        };
        match met.message()? {
            Message::LoggedString(wire::LoggedString { log_level, timestamp, message }) => {
                line(log_level, timestamp, message)
            }
            Message::TaggedString(wire::TaggedString { log_level, tag, timestamp, message }) => {
                Some(line(log_level, timestamp, message)?.with_source(tag.to_string()))
            }
            _ => None,
        }
    }
}

/// Returns the message that `bytes` start with, which the scan found valid.
pub(crate) fn valid_message(bytes: &[u8]) -> Message<'_> {
    let whole = MessageHeader::split(bytes);
    whole.and_then(|(header, payload)| Message::parse(header.msg_type, payload)).expect("validated")
}

/// The rows of some topics, block by block, and those of each era by themselves.
struct RowsOf<'a> {
    reader: &'a UlogReader,
    wanted: Vec<bool>,
    /// The eras in which these topics have rows.
    eras: [bool; 3],
}

impl<'a> RowsOf<'a> {
    fn new(reader: &'a UlogReader, wanted: Vec<bool>) -> Self {
        let of_wanted = reader.index().topic_eras.iter().zip(&wanted).filter(|(_, wanted)| **wanted);
        let eras = Era::ALL.map(|era| of_wanted.clone().any(|(eras, _)| eras[era as usize]));
        Self { reader, wanted, eras }
    }

    /// Returns the era and the block of the index that a number means.
    fn part(&self, number: usize) -> (Era, usize) {
        let blocks = self.reader.index().blocks.blocks().len();
        (Era::ALL[number / blocks], number % blocks)
    }
}

impl Blocks for RowsOf<'_> {
    fn span(&self, block: usize) -> Option<RangeInclusive<i64>> {
        let (era, block) = self.part(block);
        if !self.eras[era as usize] {
            return None;
        }
        let (first, last) = self.reader.index().blocks.blocks()[block].mark.span(era)?;
        Some(first..=last)
    }

    fn offsets(&self, block: usize) -> Range<u64> {
        self.reader.index().blocks.bytes_of(self.part(block).1)
    }

    fn count(&self) -> usize {
        self.reader.index().blocks.blocks().len() * Era::ALL.len()
    }

    fn visit(&self, block: usize, mut visit: impl FnMut(Place)) {
        let reader = self.reader;
        let (era, block) = self.part(block);
        if !reader.index().blocks.has_any(block, &self.wanted) {
            return;
        }
        let mut rows = vec![0; self.wanted.len()];
        for (series, before) in reader.index().blocks.before(block) {
            rows[*series as usize] = *before;
        }
        let definitions = &reader.scanner().definitions;
        let mut cursor = Cursor::blocks(&reader.bytes, reader.index(), definitions, block..block + 1);
        cursor.rows(u64::MAX, |offset, row| {
            let series = row.series as usize;
            let time = row.time.in_order(row.now);
            if self.wanted[series] && reader.index().era(time) == era {
                visit(Place { time, offset, topic: row.series, seq: rows[series] });
            }
            rows[series] += 1;
        });
    }
}
