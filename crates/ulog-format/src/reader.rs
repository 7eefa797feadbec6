//! The random-access reader for logs in memory or in a mapped file.
//!
//! When a log is opened, only its header is parsed. The first request for anything else scans the
//! whole log and builds the index. Later requests use the index.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Range, RangeInclusive};
use std::sync::OnceLock;

use rovelog_core::error::changed;
use rovelog_core::internal::order::{self, Blocks, Place};
use rovelog_core::internal::partial::Unread;
use rovelog_core::internal::scan::{Scan as _, Window};
use rovelog_core::{
    Bytes, DataSpan, LogInfo, LogReader, ReadOptions, Record, Select, Text, Timestamp, TopicId, Value,
};

use crate::clock::{LogClock, is_time_of};
use crate::definitions::{Definitions, RowShape};
use crate::diagnostics as rules;
use crate::error::UlogError;
use crate::flags::flag_bits;
use crate::index::{Cursor, Era, Index, MessageRef, Visited, message_at, row_bytes};
use crate::locate::{Search, Start};
use crate::parameters::{Description, Parameters, Section, infos, multi_infos};
use crate::px4::StateChanges;
use crate::row::Row;
use crate::scan::{Scanner, Step};
use crate::sessions::{self, Boundaries, Boundary, Session, SessionDetector, SessionStats};
use crate::state::Summary;
use crate::wire::{self, FileHeader, FlagBits, Message, MessageHeader, kind, level_number};

/// Number of bytes of the log in which console messages are searched at a time.
const TEXT_BYTES: u64 = 1 << 20;

/// A ULog that was opened for random access.
///
/// The first request for anything but the header scans the whole log. Rows are decoded when they
/// are requested.
#[derive(Debug)]
pub struct UlogReader {
    pub(crate) bytes: Bytes,
    start: Start,
    search: Search,
    options: ReadOptions,
    scanned: OnceLock<Scanned>,
    /// Changes of the vehicle's state. They are read when they are requested for the first time.
    state_changes: OnceLock<StateChanges>,
}

/// Results of scanning the whole log.
#[derive(Debug)]
struct Scanned {
    scanner: Scanner,
    index: Index,
    info: LogInfo,
    /// Offsets of the 'I', 'M', 'P' and 'Q' messages in the first log of the file, each with the
    /// section of the log that contains the message.
    descriptions: Vec<(u64, Section)>,
    summary: Summary,
}

/// Results of an earlier scan that a second scan of the same log needs.
#[derive(Default)]
struct EarlierScan {
    /// Time range of the data, or `None` if it does not affect the scan.
    data: Option<DataSpan>,
    detector: SessionDetector,
    /// Starts of the recordings in the file, except the first.
    boundaries: Boundaries,
    /// True if the times of all recordings are moved to the clock of the first recording.
    is_aligned: bool,
}

impl Scanned {
    /// Scans the log up to three times.
    ///
    /// - If the file has several recordings, a second scan is needed, because the clock of each
    ///   recording is known only at its end.
    /// - If stale times after the end of the data have advanced the log time, another scan ignores
    ///   them. A log that has timestamps of fewer than 64 bits is not scanned again. Its times
    ///   depend on the log time, and a pipe computes them before it knows the end of the data.
    fn new(bytes: &[u8], options: &ReadOptions, start: impl Fn() -> Scanner) -> Self {
        let mut scanned = Self::scan(bytes, options, start(), &EarlierScan::default());
        let mut known = scanned.sessions();
        if !known.boundaries.list.is_empty() {
            // The index of the first scan is freed before the second scan builds its index.
            drop(scanned);
            scanned = Self::scan(bytes, options, start(), &known);
        }
        let Some(data) = scanned.info.data.clone() else { return scanned };
        let log_end = scanned.info.end;
        let has_stale_end = log_end.is_some_and(|end| end.nanos > data.end.nanos);
        if !has_stale_end || scanned.scanner.clock.has_narrow {
            return scanned;
        }
        drop(scanned);
        known.data = Some(data);
        let mut rescanned = Self::scan(bytes, options, start(), &known);
        rescanned.info.end = log_end;
        rescanned
    }

    /// Returns the recordings found by this scan, as input for the next scan.
    fn sessions(&self) -> EarlierScan {
        let detector = self.summary.detector.clone();
        if detector.sessions.len() < 2 {
            return EarlierScan::default();
        }
        let offsets = self.summary.offsets(&self.scanner);
        let shifts =
            sessions::shifts(&detector.sessions, &offsets).filter(|_| !self.scanner.clock.has_narrow);
        let boundary = |(number, session): (usize, &SessionStats)| Boundary {
            at: session.at,
            has_header: session.header.is_some(),
            // If the recording has no header, it starts at the time of its first row.
            start: session.header.map_or(session.first.unwrap_or(0), |header| header.timestamp.get()),
            shift: shifts.as_ref().map_or(0, |shifts| shifts[number]),
        };
        let list = detector.sessions.iter().enumerate().skip(1).map(boundary).collect();
        let boundaries = Boundaries { list, entered: 0 };
        EarlierScan { data: None, boundaries, is_aligned: shifts.is_some(), detector }
    }

    /// Scans the log once. If the log was fetched in part, each fetched byte range is scanned as a
    /// separate window.
    fn scan(bytes: &[u8], options: &ReadOptions, mut scanner: Scanner, known: &EarlierScan) -> Self {
        let data = known.data.clone();
        if let Some(end) = data.as_ref().and_then(|data| u64::try_from(data.end.nanos / 1000).ok()) {
            scanner.clock = scanner.clock.until(end);
        }
        scanner.boundaries = known.boundaries.clone();
        let mut summary = Summary::new(options.utc_start);
        (summary.detector, summary.is_aligned) = (known.detector.clone(), known.is_aligned);
        // Log time at the start of the log, which applies to the rows before the first timestamp.
        let start = scanner.clock.now;
        let mut index = Index::new(start, &scanner);
        let mut descriptions = Vec::new();
        for (window, part) in options.unread.windows(bytes) {
            scanner.enter(part);
            loop {
                scanner.rows(window, |_, row| {
                    let stats = summary.stats(row.series);
                    index.row(row.at, row.series, row.micros, row.before, &mut stats.block, stats.count);
                    let decreased = stats.row(row.at, row.len, Some(row.micros));
                    if decreased || summary.detector.is_active {
                        summary.detect_session(row.series, row.at, Some(row.micros), row.before, decreased);
                    }
                });
                // The window contains all bytes that are available, so the scanner cannot request
                // more bytes.
                match scanner.step(window).expect("the window reaches the end of the file") {
                    Step::Row { at, shape, time, before, .. } => {
                        let row = row_bytes(bytes, at).expect("a valid row is whole");
                        if shape.is_narrow() {
                            index.merge_blocks();
                        }
                        let stats = summary.stats(shape.series);
                        let order = time.in_order_micros(scanner.clock.now);
                        index.row(at, shape.series, order, before, &mut stats.block, stats.count);
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
                        // Information and parameters of a second log in the file do not describe
                        // the first log.
                        let is_description = matches!(
                            msg_type,
                            kind::INFO | kind::MULTI_INFO | kind::PARAMETER | kind::DEFAULT_PARAMETER
                        );
                        if is_description && !scanner.is_second_log() {
                            let section = if in_data {
                                Section::Data(scanner.clock.now())
                            } else {
                                Section::Definitions
                            };
                            descriptions.push((at, section));
                        }
                    }
                    // Rows without a usable subscription have a valid header, so the cursor can
                    // skip them by their size.
                    Step::Lost { rule, .. } if [&rules::UNKNOWN_ID, &rules::UNDECODABLE].contains(&rule) => {}
                    Step::Lost { at, end, .. } | Step::Unread { at, end } => {
                        index.blocks.skip(at..end);
                        summary.data_lost();
                    }
                    Step::SecondHeader { at, end, header } => {
                        index.blocks.skip(at..end);
                        summary.start_log(at, header, scanner.clock.end_micros());
                    }
                    Step::End => break,
                }
            }
        }
        index.finish(&scanner.definitions, bytes.len() as u64);
        index.boundaries = known.boundaries.clone();
        index.topic_eras = summary.eras(start, scanner.definitions.topics.len());
        summary.finish(&mut scanner, data);
        let info = summary.info(&scanner, bytes.len() as u64);
        Self { scanner, index, info, descriptions, summary }
    }
}

/// Creates a scanner for the log in `bytes`, which must contain the whole log.
fn start(bytes: &[u8], options: &ReadOptions, search: Search) -> Result<Scanner, UlogError> {
    let scanner = Scanner::start(Window::whole(bytes), options, search);
    scanner.expect("the window reaches the end of the file")
}

impl UlogReader {
    /// Opens the log in `bytes`.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a ULog, end inside its header, or use incompatible
    /// features. Damage does not cause an error. It is reported by
    /// [`diagnostics`](LogReader::diagnostics).
    pub fn new(bytes: Bytes, options: &ReadOptions) -> Result<Self, UlogError> {
        Self::with(bytes, options, Search::Near)
    }

    /// Opens a log whose header may be damaged or missing.
    ///
    /// If the header is damaged, [`new`](Self::new) requires definitions in the first 64 KiB. This
    /// function accepts any message in the first 40 MiB.
    ///
    /// # Errors
    /// Returns an error if there is neither a header nor a message, and for the same reasons as
    /// [`new`](Self::new).
    pub fn salvage(bytes: Bytes, options: &ReadOptions) -> Result<Self, UlogError> {
        Self::with(bytes, options, Search::Far)
    }

    fn with(bytes: Bytes, options: &ReadOptions, search: Search) -> Result<Self, UlogError> {
        let start = start(&bytes, options, search)?.start;
        let options = options.clone();
        let (scanned, state_changes) = (OnceLock::new(), OnceLock::new());
        Ok(Self { bytes, start, search, options, scanned, state_changes })
    }

    /// Returns the byte ranges of the file that were not read.
    pub(crate) fn unread(&self) -> &Unread {
        &self.options.unread
    }

    /// Creates a scanner for this log, which starts after the header.
    pub(crate) fn start(&self) -> Scanner {
        let scanner = start(&self.bytes, &self.options, self.search);
        scanner.expect("the header was accepted when the log was opened")
    }

    fn scanned(&self) -> &Scanned {
        self.scanned.get_or_init(|| Scanned::new(&self.bytes, &self.options, || self.start()))
    }

    pub(crate) fn state_changes(&self) -> &StateChanges {
        self.state_changes.get_or_init(|| StateChanges::read(self))
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

    /// Returns `true` if the whole log has been scanned and its index exists.
    #[cfg(feature = "arrow")]
    pub(crate) fn is_indexed(&self) -> bool {
        self.scanned.get().is_some()
    }

    /// Returns the offset of the first message in the file. It is 16, unless the header is damaged.
    pub(crate) fn first(&self) -> u64 {
        self.start.first
    }

    /// Returns the header of the file. If the header is damaged, the result contains the stored
    /// start time if this time is plausible, otherwise 0.
    pub fn header(&self) -> &FileHeader {
        &self.start.header
    }

    /// Returns the flag bits, or `None` if the log has none.
    pub fn flag_bits(&self) -> Option<&FlagBits> {
        flag_bits(self.bytes.get(usize::try_from(self.start.first).ok()?..)?)
    }

    /// Returns the recordings in the file, if there are several.
    ///
    /// A file has several recordings if it consists of concatenated logs, or if the clock restarts
    /// within a log. For a single recording, the list is empty.
    pub fn sessions(&self) -> Vec<Session> {
        let summary = &self.scanned().summary;
        let tallies = &summary.detector.sessions;
        let utcs = summary.offsets(self.scanner());
        let session = |((range, tally), utc): ((Range<u64>, &SessionStats), _)| {
            let is_first = tally.at == 0;
            let header = if is_first { Some(self.start.header) } else { tally.header };
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

    /// Returns the starts of the recordings in the file, except the first.
    pub(crate) fn boundaries(&self) -> &[Boundary] {
        &self.index().boundaries.list
    }

    /// Returns the number of microseconds that are added to the stored times of rows at the offset
    /// `at`.
    pub(crate) fn shift_at(&self, at: u64) -> u64 {
        let boundaries = self.boundaries();
        let before = boundaries.partition_point(|boundary| boundary.at <= at);
        before.checked_sub(1).map_or(0, |last| boundaries[last].shift)
    }

    /// Returns the offsets in the file at which appended data starts. There are at most three.
    pub fn appended_offsets(&self) -> &[u64] {
        &self.scanner().appended.reached
    }

    /// Returns the formats, the subscriptions and the layouts of the topics.
    pub fn definitions(&self) -> &Definitions {
        &self.scanner().definitions
    }

    /// Returns a view of a record that provides access to its fields.
    ///
    /// # Errors
    /// Returns an error if the record belongs to another log.
    pub fn row<'a>(&'a self, record: &Record<'a>) -> Result<Row<'a>, UlogError> {
        self.scanner().definitions.row(record.topic, record.payload.borrowed().unwrap_or_default())
    }

    /// Returns all valid messages in file order, each with its offset.
    pub fn messages(&self) -> impl Iterator<Item = (u64, Message<'_>)> + '_ {
        self.cursor().filter_map(|msg| Some((msg.at, msg.message()?)))
    }

    /// Returns all records in file order.
    pub fn records_in_file_order(&self) -> impl Iterator<Item = Record<'_>> + '_ {
        self.records_of(self.cursor(), vec![0; self.topics().len()])
    }

    /// Returns the rows of `cursor` as records. `rows` contains the number of rows of each topic
    /// before the start of the cursor.
    pub(crate) fn records_of<'a>(
        &'a self,
        cursor: Cursor<'a>,
        mut rows: Vec<u64>,
    ) -> impl Iterator<Item = Record<'a>> + use<'a> {
        cursor.filter_map(move |msg| {
            let row = msg.row?;
            let time = self.scanner().clock.timestamp(row.time);
            let seq = rows[row.series as usize];
            rows[row.series as usize] += 1;
            Some(self.record(row.series, time, msg.at, seq, msg.row_bytes()))
        })
    }

    /// Returns the parameters with their changes and defaults.
    pub fn parameters(&self) -> Parameters {
        let mut parameters = Parameters::default();
        self.descriptions().for_each(|description| parameters.add(description));
        parameters
    }

    /// Returns the values of the information messages by name. If a name occurs several times, the
    /// last value is returned.
    pub fn infos(&self) -> BTreeMap<String, Value> {
        infos(self.descriptions().map(|description| description.message), &self.definitions().formats)
    }

    /// Returns the values of the multi information messages by name. Each name has one or more
    /// lists of values in file order.
    pub fn multi_infos(&self) -> BTreeMap<String, Vec<Vec<Value>>> {
        multi_infos(self.descriptions().map(|description| description.message), &self.definitions().formats)
    }

    /// Returns the messages with information, parameters and defaults in file order.
    pub(crate) fn descriptions(&self) -> impl Iterator<Item = Description<'_>> + '_ {
        self.scanned().descriptions.iter().filter_map(|(at, section)| {
            let (header, payload) = message_at(&self.bytes, *at)?;
            let message = Message::parse(header.msg_type, payload)?;
            Some(Description { at: *at, message, section: *section })
        })
    }

    /// Returns the bytes of the file.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Converts microseconds on the clock of this log to a timestamp.
    pub(crate) fn timestamp(&self, micros: u64) -> Option<Timestamp> {
        Timestamp::from_micros(micros, self.scanner().clock.clock)
    }

    /// Returns the damaged ranges of the file in ascending order.
    pub(crate) fn lost(&self) -> &[std::ops::Range<u64>] {
        self.index().blocks.skips()
    }

    /// Returns the byte ranges of messages that are cut by the start of appended data.
    pub(crate) fn cut_before_appended(&self) -> Vec<std::ops::Range<u64>> {
        let cuts = self.diagnostics().list().iter().filter(|found| found.rule == &rules::CUT);
        let cuts = cuts.map(|cut| cut.range.clone());
        cuts.filter(|range| self.appended_offsets().contains(&range.end)).collect()
    }

    /// Returns a cursor over all messages of the log.
    pub(crate) fn cursor(&self) -> Cursor<'_> {
        Cursor::all(&self.bytes, self.index(), self.start.header.timestamp.get())
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

    /// Returns the record at the location `place`, which sorting by time has returned.
    fn record_at(&self, place: Place) -> Result<Record<'_>, UlogError> {
        let payload = row_bytes(&self.bytes, place.offset).ok_or_else(|| changed(place.offset))?;
        let (shape, clock) = (self.index().shape(place.topic), self.scanner().clock.clock);
        let time = match shape.plain_time(payload) {
            // A timestamp of fewer than 64 bits depends on earlier rows, so its time cannot be
            // computed from this row alone. `place` contains the time that the scan has computed.
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

    /// Returns the records selected by `select` in time order.
    pub(crate) fn records_in_order<'a>(
        &'a self,
        select: &Select,
    ) -> impl Iterator<Item = Result<Record<'a>, UlogError>> + use<'a> {
        let places = order::selected(self.topics(), select, |wanted| RowsOf::new(self, wanted));
        places.map(|place| self.record_at(place))
    }

    /// Returns the console messages in file order.
    pub(crate) fn logged_strings(&self) -> impl Iterator<Item = Text> + '_ {
        let (mut cursor, mut found) = (self.cursor(), VecDeque::new());
        let mut rest = self.has_messages(&[kind::LOGGED_STRING, kind::TAGGED_STRING]);
        std::iter::from_fn(move || {
            while found.is_empty() && rest {
                // The cursor passes over rows faster than it returns them.
                rest = cursor.messages(cursor.at + TEXT_BYTES, |msg| match msg {
                    Visited::Other(msg) => found.extend(self.text(&msg)),
                    Visited::Row(..) => {}
                });
            }
            found.pop_front()
        })
    }

    /// Returns whether the log has a message of one of the types `kinds`, according to the scan.
    pub(crate) fn has_messages(&self, kinds: &[u8]) -> bool {
        let counts = &self.scanned().summary.counts;
        kinds.iter().any(|kind| counts.types.contains_key(kind))
    }

    /// Returns the console message in `msg`, or `None` if `msg` is not a console message.
    fn text(&self, msg: &MessageRef<'_>) -> Option<Text> {
        if !matches!(msg.msg_type, kind::LOGGED_STRING | kind::TAGGED_STRING) {
            return None;
        }
        let line = |level, timestamp, text| {
            let timestamp: u64 = timestamp;
            let micros = timestamp.saturating_add(self.shift_at(msg.at));
            let time = Timestamp::from_micros(micros, self.scanner().clock.clock);
            let decoding = &self.scanner().definitions.formats.decoding;
            let text = decoding.decode("logged messages", text).into_owned();
            Some(Text::new(time, msg.at, level_number(level)?, text))
        };
        match msg.message()? {
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

/// Parses the message at the start of `bytes`, which the scan of the log has validated.
pub(crate) fn valid_message(bytes: &[u8]) -> Message<'_> {
    let whole = MessageHeader::split(bytes);
    whole.and_then(|(header, payload)| Message::parse(header.msg_type, payload)).expect("validated")
}

/// The rows of the selected topics, divided into parts for sorting by time. A part contains the
/// rows of one index block that have the same time class ([`Era`]).
///
/// The number of a part is `era * block_count + block`. With 10 blocks, part 23 contains the rows
/// of block 3 in the third class, [`Era::Log`].
struct RowsOf<'a> {
    reader: &'a UlogReader,
    /// For each topic number, true if the topic is selected.
    wanted: Vec<bool>,
    /// For each time class ([`Era`]), true if a selected topic has rows in it.
    eras: [bool; 3],
}

impl<'a> RowsOf<'a> {
    fn new(reader: &'a UlogReader, wanted: Vec<bool>) -> Self {
        let of_wanted = reader.index().topic_eras.iter().zip(&wanted).filter(|(_, wanted)| **wanted);
        let eras = Era::ALL.map(|era| of_wanted.clone().any(|(eras, _)| eras[era as usize]));
        Self { reader, wanted, eras }
    }

    /// Returns the time class and the block number of the part with the given number.
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
        let mut cursor = Cursor::blocks(&reader.bytes, reader.index(), block..block + 1);
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
