//! The random-access reader: a log in memory or in a mapped file.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::sync::OnceLock;

use rovelog_core::order::{self, Blocks, Place};
use rovelog_core::scan::{Scan as _, Window};
use rovelog_core::{
    Bytes, DataSpan, Limits, LogInfo, LogReader, ReadOptions, Record, Select, Text, Timestamp, TopicId, Value,
};

use crate::definitions::{Definitions, RowShape};
use crate::diagnostics as rules;
use crate::error::UlogError;
use crate::index::{Cursor, Era, Index, Met, message_at, row_bytes};
use crate::parameters::{Parameters, Section, infos, multi_infos};
use crate::row::Row;
use crate::scan::{Step, Walk};
use crate::state::Summary;
use crate::wire::{self, FileHeader, FlagBits, Message, MessageHeader, kind, level_number};

/// A ULog, opened. What stands behind its header is walked over once, when something of it is first asked
/// for; rows are decoded when asked for.
#[derive(Debug)]
pub struct UlogReader {
    pub(crate) bytes: Bytes,
    header: FileHeader,
    flags: Option<FlagBits>,
    limits: Limits,
    walked: OnceLock<Walked>,
}

/// What a walk over all of a log leaves.
#[derive(Debug)]
struct Walked {
    walk: Walk,
    index: Index,
    info: LogInfo,
    /// Where 'I', 'M', 'P' and 'Q' messages stand.
    described: Vec<(u64, Section)>,
}

impl Walked {
    /// Scans the log; once more where times far behind its data have moved the log time, without them.
    fn new(bytes: &[u8], start: impl Fn() -> Walk) -> Self {
        let first = Self::scan(bytes, start(), None);
        let Some(data) = first.info.data.clone() else { return first };
        if first.info.end.is_none_or(|end| end.nanos <= data.end.nanos) {
            return first;
        }
        let end = first.info.end;
        drop(first);
        let mut again = Self::scan(bytes, start(), Some(data));
        again.info.end = end;
        again
    }

    /// Scans the log. `data` is the span of its data, where it is known from a scan before.
    fn scan(bytes: &[u8], mut walk: Walk, data: Option<DataSpan>) -> Self {
        if let Some(end) = data.as_ref().and_then(|data| u64::try_from(data.end.nanos / 1000).ok()) {
            walk.clock = walk.clock.until(end);
        }
        let mut summary = Summary::new();
        // The first log time: that of rows without a time at the start.
        let start = walk.clock.now;
        let mut index = Index::new(start, walk.clock.data_end);
        let mut described = Vec::new();
        let window = Window::whole(bytes);
        loop {
            walk.rows(window, |_, row| {
                let stats = summary.stats(row.series);
                index.row(row.at, row.series, row.micros, row.before, stats.seen());
                stats.row(row.at, row.len, Some(row.micros));
            });
            // The window is the whole file, so there is never more to ask for.
            match walk.step(window).expect("the window reaches the end of the file") {
                Step::Row { at, shape, time, before, .. } => {
                    let row = row_bytes(bytes, at).expect("a sound row is whole");
                    if shape.is_narrow() {
                        index.join();
                    }
                    let stats = summary.stats(shape.series);
                    let order = time.in_order_micros(walk.clock.now);
                    index.row(at, shape.series, order, before, stats.seen());
                    stats.row(at, row.len(), time.micros());
                    if shape.flags & RowShape::UTC != 0 {
                        summary.gps_row(&walk.definitions, shape, row);
                    }
                }
                Step::Message { at, msg_type, .. } => {
                    let message =
                        sound_message(&bytes[usize::try_from(at).expect("within the bytes at hand")..]);
                    let in_data = walk.definitions.in_data;
                    summary.message(msg_type, &message, in_data);
                    if matches!(
                        msg_type,
                        kind::INFO | kind::MULTI_INFO | kind::PARAMETER | kind::DEFAULT_PARAMETER
                    ) {
                        let section =
                            if in_data { Section::Data(walk.clock.now()) } else { Section::Definitions };
                        described.push((at, section));
                    }
                }
                // Data without a usable subscription is framed soundly: a second walk passes it by itself.
                Step::Lost { rule, .. } if rule.name == "unknown_id" || rule.name == "undecodable" => {}
                Step::Lost { at, end, .. } => index.blocks.gap(at..end),
                Step::End => break,
            }
        }
        index.finish(&walk.definitions, bytes.len() as u64);
        index.topic_eras = summary.eras(start, walk.definitions.topics.len());
        summary.finish(&mut walk, data);
        let info = summary.info(&walk, bytes.len() as u64);
        Self { walk, index, info, described }
    }
}

impl UlogReader {
    /// Opens the log that `bytes` holds.
    ///
    /// # Errors
    /// Where the bytes are no ULog, end inside its header, or use incompatible features. Damage is no
    /// error: it is in [`diagnostics`](LogReader::diagnostics).
    pub fn new(bytes: Bytes, options: &ReadOptions) -> Result<Self, UlogError> {
        let walk = Walk::start(&bytes, &options.limits)?;
        let (header, flags, limits) = (walk.header, walk.flags, options.limits.clone());
        Ok(Self { bytes, header, flags, limits, walked: OnceLock::new() })
    }

    /// A walk that stands behind the header.
    pub(crate) fn start(&self) -> Walk {
        Walk::start(&self.bytes, &self.limits).expect("the header was accepted when the log was opened")
    }

    fn walked(&self) -> &Walked {
        self.walked.get_or_init(|| Walked::new(&self.bytes, || self.start()))
    }

    pub(crate) fn summary(&self) -> &LogInfo {
        &self.walked().info
    }

    pub(crate) fn walk(&self) -> &Walk {
        &self.walked().walk
    }

    pub(crate) fn index(&self) -> &Index {
        &self.walked().index
    }

    /// Whether the index is there already.
    #[cfg(feature = "arrow")]
    pub(crate) fn is_indexed(&self) -> bool {
        self.walked.get().is_some()
    }

    /// The file's header.
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// The flag bits, where the log has them.
    pub fn flag_bits(&self) -> Option<&FlagBits> {
        self.flags.as_ref()
    }

    /// Where appended data begins; at most three offsets.
    pub fn appended_offsets(&self) -> &[u64] {
        &self.walk().appended
    }

    /// Formats, subscriptions, and the layouts of topics.
    pub fn definitions(&self) -> &Definitions {
        &self.walk().definitions
    }

    /// A record as a row, for access to single fields.
    ///
    /// # Errors
    /// Where the record is not one of this log.
    pub fn row<'a>(&'a self, record: &Record<'a>) -> Result<Row<'a>, UlogError> {
        self.walk().definitions.row(record.topic, record.payload)
    }

    /// All sound messages in file order, with the offset of each.
    pub fn messages(&self) -> impl Iterator<Item = (u64, Message<'_>)> + '_ {
        self.cursor().filter_map(|met| Some((met.at, met.message()?)))
    }

    /// All rows in file order, as records.
    pub fn records_in_file_order(&self) -> impl Iterator<Item = Record<'_>> + '_ {
        self.records_of(self.cursor(), vec![0; self.topics().len()])
    }

    /// The rows that `cursor` meets; `rows` says how many of each topic are before them.
    pub(crate) fn records_of<'a>(
        &'a self,
        cursor: Cursor<'a>,
        mut rows: Vec<u64>,
    ) -> impl Iterator<Item = Record<'a>> + use<'a> {
        cursor.filter_map(move |met| {
            let row = met.row?;
            let time = self.walk().clock.timestamp(row.time);
            let seq = rows[row.series as usize];
            rows[row.series as usize] += 1;
            Some(self.record(row.series, time, met.at, seq, met.row_bytes()))
        })
    }

    /// The parameters, with their changes and defaults.
    pub fn parameters(&self) -> Parameters {
        let mut parameters = Parameters::default();
        for (at, message, section) in self.described() {
            parameters.take(&message, at, section);
        }
        parameters
    }

    /// The information messages: the last value of each key.
    pub fn infos(&self) -> BTreeMap<String, Value> {
        infos(self.described().map(|(_, message, _)| message), &self.definitions().formats)
    }

    /// The information messages with several values: key, lists, parts, in file order.
    pub fn multi_infos(&self) -> BTreeMap<String, Vec<Vec<Value>>> {
        multi_infos(self.described().map(|(_, message, _)| message), &self.definitions().formats)
    }

    pub(crate) fn described(&self) -> impl Iterator<Item = (u64, Message<'_>, Section)> + '_ {
        self.walked().described.iter().filter_map(|(at, section)| {
            let (header, payload) = message_at(&self.bytes, *at)?;
            Some((*at, Message::parse(header.msg_type, payload)?, *section))
        })
    }

    /// The bytes of the file.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// A time of this log, from microseconds.
    pub(crate) fn timestamp(&self, micros: u64) -> Option<Timestamp> {
        Timestamp::from_micros(micros, self.walk().clock.clock)
    }

    /// Bytes without sound framing, ascending.
    pub(crate) fn gaps(&self) -> &[std::ops::Range<u64>] {
        self.index().blocks.gaps()
    }

    /// Pieces of messages at which the log ended before data was appended to it.
    pub(crate) fn cut_before_appended(&self) -> Vec<std::ops::Range<u64>> {
        let cuts = self.diagnostics().list().iter().filter(|found| found.rule == &rules::CUT);
        let cuts = cuts.map(|cut| cut.range.clone());
        cuts.filter(|range| self.appended_offsets().contains(&range.end)).collect()
    }

    pub(crate) fn cursor(&self) -> Cursor<'_> {
        Cursor::all(&self.bytes, self.index(), &self.walk().definitions, self.header.timestamp.get())
    }

    fn record<'a>(
        &'a self,
        series: u32,
        time: Option<Timestamp>,
        at: u64,
        seq: u64,
        payload: &'a [u8],
    ) -> Record<'a> {
        let topic = &self.walk().definitions.topics[TopicId(series).index()];
        Record::new(topic, time, at, seq, payload, &self.walk().definitions)
    }

    /// The record at a place in the order of time.
    fn record_at(&self, place: Place) -> Record<'_> {
        let payload = row_bytes(&self.bytes, place.offset).expect("the index points at whole rows");
        let (shape, clock) = (self.index().shape(place.topic), self.walk().clock.clock);
        let time = match shape.plain_time(payload) {
            // A narrow time stands in the order by itself, unless it could not be held.
            None if shape.is_narrow() => Some(Timestamp::new(place.time, clock)),
            time => time.and_then(|micros| Timestamp::from_micros(micros, clock)),
        };
        self.record(place.topic, time, place.offset, place.seq, payload)
    }

    /// The records that `select` keeps, in the order of time.
    pub(crate) fn records_in_order<'a>(
        &'a self,
        select: &Select,
    ) -> impl Iterator<Item = Record<'a>> + use<'a> {
        let places = order::selected(self.topics(), select, |wanted| RowsOf::new(self, wanted));
        places.map(|place| self.record_at(place))
    }

    /// The logged strings in file order.
    pub(crate) fn logged_strings(&self) -> impl Iterator<Item = Text> + '_ {
        self.cursor().filter_map(|met| self.text(&met))
    }

    fn text(&self, met: &Met<'_>) -> Option<Text> {
        if !matches!(met.msg_type, kind::LOGGED_STRING | kind::TAGGED_STRING) {
            return None;
        }
        let line = |level, timestamp, text| {
            let time = Timestamp::from_micros(timestamp, self.walk().clock.clock);
            let text = String::from_utf8_lossy(text).into_owned();
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

/// The message that `bytes` begin with, which the walk found sound.
pub(crate) fn sound_message(bytes: &[u8]) -> Message<'_> {
    let whole = MessageHeader::split(bytes);
    whole.and_then(|(header, payload)| Message::parse(header.msg_type, payload)).expect("judged sound")
}

/// The rows of some topics, block by block, and those of each era by themselves.
struct RowsOf<'a> {
    reader: &'a UlogReader,
    wanted: Vec<bool>,
    /// In which eras these topics have rows.
    eras: [bool; 3],
}

impl<'a> RowsOf<'a> {
    fn new(reader: &'a UlogReader, wanted: Vec<bool>) -> Self {
        let of_wanted = reader.index().topic_eras.iter().zip(&wanted).filter(|(_, wanted)| **wanted);
        let eras = Era::ALL.map(|era| of_wanted.clone().any(|(eras, _)| eras[era as usize]));
        Self { reader, wanted, eras }
    }

    /// The era and the block of the index that a number stands for.
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
        let definitions = &reader.walk().definitions;
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
