//! Reader with random access to a log in memory or in a mapped file.

use std::ops::Range;
use std::sync::Arc;

use rovelog_core::internal::memory;
use rovelog_core::internal::partial::Unread;
use rovelog_core::internal::scan::{Scan as _, Window};
use rovelog_core::{Bytes, Clock, LogInfo, LogReader as _, ReadOptions, Record, Select, Timestamp, Topic};

use crate::declared::Types;
use crate::entries::{Entries, Entry};
use crate::error::VelError;
use crate::explain::Choice;
use crate::gps::Fix;
use crate::indexing::IndexState;
use crate::locate::StartError;
use crate::message::{Kind, Message, Payload, SizeRule};
use crate::scan::{ScanOptions, Scanner, Step, view};
use crate::state::{Conclusions, Meaning, Summary};
use crate::topics::RecordType;
use crate::wire::{FileHeader, HEADER_LEN, MessageHeader, TERMINATOR_LEN};

/// Topic index of messages that belong to no topic, because their data is too short for their
/// content.
const NO_TOPIC: u32 = u32::MAX;

/// A byte range of the file that is not a valid message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) range: Range<u64>,
    pub(crate) what: PartKind,
}

/// Reason why a [`Part`] of the file is not a valid message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartKind {
    /// The part is a message that is marked as invalid.
    Invalid,
    Lost,
    /// The part is a message after an end mark.
    AfterEnd,
    /// The part is the header and the index of another log that was appended.
    Joined,
    Terminator,
    /// The part is the bytes after the last end mark, which contain no message.
    Tail,
}

/// An opened VEL log. Opening scans the message headers once. Fields are decoded only when they are
/// requested.
#[derive(Debug)]
pub struct VelReader {
    pub(crate) bytes: Bytes,
    pub(crate) scanner: Scanner,
    pub(crate) entries: Entries,
    pub(crate) parts: Vec<Part>,
    /// Byte ranges of the file that have not been fetched.
    pub(crate) unread: Unread,
    pub(crate) summary: Summary,
    conclusions: Conclusions,
    pub(crate) info: LogInfo,
}

impl VelReader {
    /// Opens the log in `bytes`.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a VEL log, if they end inside the header, or if
    /// `options.declarations` is invalid. Damage is not an error: it is reported by
    /// [`diagnostics`](rovelog_core::LogReader::diagnostics).
    pub fn new(bytes: Bytes, options: &ReadOptions) -> Result<Self, VelError> {
        Self::with(bytes, options, false)
    }

    /// Opens a file whose magic number may be damaged. If it is damaged, the file must contain at
    /// least one message.
    ///
    /// # Errors
    /// Returns the errors of [`new`](Self::new). Returns an error if no message is found.
    pub fn salvage(bytes: Bytes, options: &ReadOptions) -> Result<Self, VelError> {
        Self::with(bytes, options, true)
    }

    fn with(bytes: Bytes, options: &ReadOptions, salvage: bool) -> Result<Self, VelError> {
        let types = Arc::new(Types::parse(&options.declarations)?);
        let rules = ScanOptions { options: options.clone(), types, salvage };
        let file = bytes.clone();
        let mut windows = rules.options.unread.windows(&file).peekable();
        let window = windows.peek().map_or(Window::whole(&file), |(window, _)| *window);
        let mut scanner = match Scanner::start(window, &rules) {
            Ok(scanner) => scanner,
            Err(StartError::Refused(error)) => return Err(error),
            Err(StartError::Need(_)) => unreachable!("the window is the whole file"),
        };
        if !scanner.start.magic && scanner.start.evidence.exact == 0 {
            return Err(VelError::NotVel);
        }
        let mut summary = Summary::new(&scanner, options.utc_start);
        let (mut entries, mut parts) = (Vec::new(), Vec::new());
        for (window, part_bounds) in windows {
            scanner.enter_range(part_bounds);
            loop {
                // The window reaches the end of the file, so the scanner never requests more bytes.
                match scanner.step(window).expect("the window reaches the end of the file") {
                    Step::Message { at, end, nanos, fit } => {
                        let message = view(window, at, end, nanos);
                        let series = summary.message(&mut scanner, &message, fit);
                        let (topic, seq) = series.unwrap_or((NO_TOPIC, 0));
                        let seq = u32::try_from(seq).unwrap_or(u32::MAX);
                        entries.try_reserve(1).map_err(std::io::Error::from)?;
                        entries.push(Entry { at, nanos, topic, seq });
                    }
                    Step::End => break,
                    step => parts.extend(summary.part(&step)),
                }
            }
        }
        // The messages are sorted by time.
        memory::check(2 * size_of::<u32>() * entries.len())?;
        let conclusions = summary.finish(&mut scanner);
        let info = summary.info(&scanner, &conclusions, bytes.len() as u64);
        let (entries, unread) = (Entries::new(entries), options.unread.clone());
        Ok(Self { bytes, scanner, entries, parts, unread, summary, conclusions, info })
    }

    /// Returns the header of the file.
    pub fn header(&self) -> &FileHeader {
        &self.scanner.start.header
    }

    /// Returns the meaning of the size fields in this log.
    pub fn size_rule(&self) -> SizeRule {
        self.scanner.rule()
    }

    /// Returns the result of comparing the log's index with its messages.
    pub fn index(&self) -> &IndexState {
        &self.conclusions.index
    }

    /// Returns the stored index entries. Empty if the number of entries is invalid.
    pub fn index_entries(&self) -> &[i64] {
        &self.scanner.start.entries
    }

    /// Returns the meaning of the numbers in this log, such as their units, as inferred from the
    /// log.
    pub fn meaning(&self) -> &Meaning {
        &self.conclusions.meaning
    }

    /// Returns every setting that was inferred from this log, with the evidence for it.
    pub fn choices(&self) -> Vec<Choice> {
        self.summary.choices(&self.scanner, &self.conclusions)
    }

    /// Returns all position messages in file order, including those that cannot be used.
    pub fn fixes(&self) -> &[Fix] {
        &self.summary.fixes
    }

    /// Returns the message types whose fields are known: those of the specification, and those that
    /// the user declared.
    pub fn types(&self) -> &Types {
        &self.scanner.types
    }

    fn window(&self) -> Window<'_> {
        Window::whole(&self.bytes)
    }

    /// Returns the offset of the end of the message at offset `at`. If another program has changed
    /// the mapped file since it was scanned, the stored length may be invalid. In this case, the
    /// message is returned without data.
    pub(crate) fn end_of(&self, at: u64) -> u64 {
        let header = self.window().view::<MessageHeader>(at).ok().flatten();
        let len = header.and_then(|header| self.scanner.rule().data_len(header)).unwrap_or_default();
        let end = at.saturating_add(HEADER_LEN).saturating_add(len);
        if end > self.bytes.len() as u64 { at + HEADER_LEN } else { end }
    }

    pub(crate) fn message_of(&self, entry: &Entry) -> Message<'_> {
        view(self.window(), entry.at, self.end_of(entry.at), entry.nanos)
    }

    /// Returns the topic of a message. Returns `None` if the data of the message is too short for
    /// its content.
    pub(crate) fn topic_of(&self, entry: &Entry) -> Option<&Topic> {
        self.summary.topics.list.get(entry.topic as usize)
    }

    /// Returns the message type of the records in a topic. Returns `None` if the fields of the type
    /// are unknown.
    #[cfg(feature = "arrow")]
    pub(crate) fn record_type(&self, topic: &Topic) -> Option<&RecordType> {
        self.summary.topics.decoder.record_types.get(topic.id.index())
    }

    /// Returns the messages of the log in file order. Messages that are marked as invalid or follow
    /// an end mark are left out. Messages whose data is too short for the fields of their type are
    /// included.
    pub fn messages(&self) -> impl ExactSizeIterator<Item = Message<'_>> + '_ {
        self.entries.iter().map(|entry| self.message_of(entry))
    }

    /// Returns all messages of a kind whose content is readable, in file order.
    pub fn payloads(&self, kind: Kind) -> impl Iterator<Item = (Message<'_>, Payload<'_>)> + '_ {
        let is = |ty: &RecordType| ty.as_ref().is_some_and(|declared| declared.kind() == Some(kind));
        let wanted: Vec<bool> = self.summary.topics.decoder.record_types.iter().map(is).collect();
        let kept = move |entry: &&Entry| wanted.get(entry.topic as usize).copied().unwrap_or(false);
        self.entries.iter().filter(kept).filter_map(|entry| {
            let message = self.message_of(entry);
            Some((message, message.payload()?))
        })
    }

    /// Returns the valid message that starts at `offset`. Returns `None` if there is no such
    /// message.
    pub fn message_at(&self, offset: u64) -> Option<Message<'_>> {
        let i = self.entries.binary_search_by_key(&offset, |entry| entry.at).ok()?;
        Some(self.message_of(&self.entries[i]))
    }

    /// Returns all records in file order.
    pub fn records_in_file_order(&self) -> impl Iterator<Item = Record<'_>> + '_ {
        self.entries.iter().filter_map(|entry| self.record(entry))
    }

    /// Returns the first message in time order whose time is at least `nanos`. The message is found
    /// by binary search.
    pub fn seek(&self, nanos: i64) -> Option<Message<'_>> {
        let place = self.entries.first_at(nanos);
        (place < self.entries.len()).then(|| self.message_of(&self.entries[self.entries.place(place)]))
    }

    pub(crate) fn record(&self, entry: &Entry) -> Option<Record<'_>> {
        let topic = self.topic_of(entry)?;
        let time = Some(Timestamp::new(entry.nanos, Clock::LogStart));
        let data = self.message_of(entry).data;
        Some(Record::new(topic, time, entry.at, entry.seq.into(), data, &self.summary.topics.decoder))
    }

    /// Returns the indices of the selected messages in time order.
    pub(crate) fn selected(&self, select: &Select) -> impl Iterator<Item = usize> + '_ {
        let wanted: Vec<bool> = self.topics().iter().map(|topic| select.keeps_topic(topic)).collect();
        let from = select.start.map_or(0, |start| self.entries.first_at(start));
        let to = select.end.map_or(self.entries.len(), |end| self.entries.first_at(end)).max(from);
        let before = match select.start {
            Some(start) if select.last_before => {
                let topics = self.topics().iter();
                let keeps_last: Vec<bool> = topics.map(|topic| select.keeps_last_before(topic)).collect();
                self.entries.last_before(start, &keeps_last)
            }
            _ => Vec::new(),
        };
        let kept =
            move |place: &usize| wanted.get(self.entries[*place].topic as usize).copied().unwrap_or(false);
        before.into_iter().chain((from..to).map(|i| self.entries.place(i)).filter(kept))
    }
}

impl Summary {
    /// Counts a step of the scan. Returns the part of the file that the step covers. Returns `None`
    /// for a valid message, for bytes that were not fetched, and at the end of the file.
    pub(crate) fn part(&mut self, step: &Step) -> Option<Part> {
        let (range, what) = match *step {
            Step::Invalid { at, end } => {
                self.counts.invalid += 1;
                (at..end, PartKind::Invalid)
            }
            Step::AfterEnd { at, end, short: false } => {
                self.counts.left_out += 1;
                (at..end, PartKind::AfterEnd)
            }
            Step::Lost { at, end, .. } | Step::AfterEnd { at, end, .. } => (at..end, PartKind::Lost),
            Step::Joined { at, end } => (at..end, PartKind::Joined),
            Step::Terminator { at } => {
                self.counts.ended.get_or_insert(at + TERMINATOR_LEN);
                (at..at + TERMINATOR_LEN, PartKind::Terminator)
            }
            Step::Tail { at, end } => (at..end, PartKind::Tail),
            Step::Message { .. } | Step::Unread { .. } | Step::End => return None,
        };
        Some(Part { range, what })
    }
}
