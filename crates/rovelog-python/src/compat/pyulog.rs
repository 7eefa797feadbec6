//! Access to ULog files for the drop-in replacement of the Python package pyulog: the header, the
//! subscriptions, the rows, and the messages that are not rows. A row is a data message with the
//! values of a topic.
//!
//! Several threads read messages and rows. Each thread scans one part of the file. For many
//! messages, pyulog stores the largest timestamp of all rows before the message. A thread only sees
//! the rows in its own part, so the largest timestamp of all earlier parts is added when the
//! results are combined:
//!
//! ```text
//! part 0: rows up to 9 s
//! part 1: a message before any row      -> largest timestamp of part 0, 9 s
//!         rows up to 8 s                -> the maximum stays 9 s
//! ```

use std::collections::HashMap;
use std::io;

use memmap2::MmapMut;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rovelog::Error;
use rovelog::core::LogReader as _;
use rovelog::core::internal::wire::U64Le;
use rovelog::ulog_format::wire::Message;
use rovelog::ulog_format::{Part, Scanned, UlogReader};

use crate::memory::Memory;
use crate::parallel;
use crate::reader::Reader;
use crate::ulog::ulog;

/// Header of a ULog file: version, start time in microseconds, compatible flags, incompatible
/// flags, and offsets of appended data.
type Header = (u8, u64, [u8; 8], [u8; 8], [u64; 3]);

/// Returns the file header of the log, together with the flags from the message "flag bits".
#[pyfunction]
pub(crate) fn ulog_header(py: Python<'_>, reader: &Reader) -> PyResult<Header> {
    let log = ulog(py, reader)?;
    let header = log.header();
    let flags = log.flag_bits();
    let compat = flags.map_or([0; 8], |flags| flags.compat_flags);
    let incompat = flags.map_or([0; 8], |flags| flags.incompat_flags);
    let appended = flags.map_or([0; 3], |flags| flags.appended_offsets.map(U64Le::get));
    Ok((header.version, header.timestamp.get(), compat, incompat, appended))
}

/// Returns the subscriptions of the log, in the order of the topics.
///
/// Each row consists of the message id, the instance, the name of the format, and the number of
/// rows.
#[pyfunction]
pub(crate) fn ulog_subscriptions(py: Python<'_>, reader: &Reader) -> PyResult<Vec<(u16, u8, String, u64)>> {
    let log = ulog(py, reader)?;
    let both = log.definitions().subscriptions().iter().zip(log.topics());
    Ok(both.map(|(sub, topic)| (sub.msg_id, sub.multi_id, topic.type_name.clone(), topic.count)).collect())
}

/// Returns all messages other than data messages, in file order, and the largest timestamp of all
/// data messages.
///
/// Each message consists of its type, its payload, a boolean that is true if the data section has
/// started, and the largest timestamp in microseconds of all data messages before it. Only data
/// messages whose subscription is in `timestamps` are considered. If `definitions_only` is true,
/// the list ends at the start of the data section.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "a row of a table")]
pub(crate) fn ulog_messages<'py>(
    py: Python<'py>,
    reader: &Reader,
    timestamps: HashMap<usize, TimestampField>,
    definitions_only: bool,
) -> PyResult<(Vec<(u8, Bound<'py, PyBytes>, bool, u64)>, u64)> {
    let log = ulog(py, reader)?;
    let (found, last) = reader.run(py, || Ok(other_messages(log, &timestamps, definitions_only)))?;
    let found = found
        .into_iter()
        .map(|(kind, payload, in_data, last)| (kind, PyBytes::new(py, &payload), in_data, last));
    Ok((found.collect(), last))
}

/// A message other than a data message: its type, its payload, true if it is in the data section,
/// and the largest timestamp of the data messages before it.
type FoundMessage = (u8, Vec<u8>, bool, u64);

/// Offset of the timestamp in the row of a topic, and the minimum and maximum size of the row in
/// bytes.
type TimestampField = (usize, usize, usize);

/// Scans the parts of a log in parallel. Returns all messages other than data messages, in file
/// order.
fn other_messages(
    log: &UlogReader,
    timestamps: &HashMap<usize, TimestampField>,
    definitions_only: bool,
) -> (Vec<FoundMessage>, u64) {
    let parts = if definitions_only { Vec::new() } else { log.parts(parallel::processors()) };
    // The definitions are at the start of the log, so one thread scans them. A log without records
    // cannot be divided into parts, so one thread scans it too.
    if parts.is_empty() {
        let mut whole = OtherMessages::new(log, timestamps, 0);
        for (_, message) in log.messages() {
            whole.add(message);
            if definitions_only && whole.in_data {
                // The message that starts the data section may already have been added to the list.
                // In this case, it is removed, because only definitions are wanted.
                whole.found.retain(|(_, _, in_data, _)| !in_data);
                break;
            }
        }
        return (whole.found, whole.last);
    }
    let scan = |part: Part<'_>| {
        let mut others = OtherMessages::new(log, timestamps, part.start());
        part.scan(|_, scanned| match scanned {
            Scanned::Record(topic, row) => others.record(topic.id.index(), row),
            Scanned::Message(message) => others.add(message),
        });
        others
    };
    let parts: Vec<OtherMessages> = std::thread::scope(|scope| {
        let scans: Vec<_> = parts.into_iter().map(|part| scope.spawn(move || scan(part))).collect();
        let scanned = scans.into_iter().map(|scan| match scan.join() {
            Ok(others) => others,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        scanned.collect()
    });
    let (mut found, mut last) = (Vec::new(), 0);
    for part in parts {
        let later =
            |(kind, payload, in_data, before): FoundMessage| (kind, payload, in_data, last.max(before));
        found.extend(part.found.into_iter().map(later));
        last = last.max(part.last);
    }
    (found, last)
}

/// Collector for the messages in a part of a log. Data messages are not collected, because they
/// contain the rows of topics.
#[derive(Default)]
struct OtherMessages {
    /// For each subscription, the location of the timestamp in its rows.
    timestamps: Vec<Option<TimestampField>>,
    /// Index of the current subscription for each message id. A message id can be subscribed
    /// several times.
    subscribed: HashMap<u16, usize>,
    /// Number of subscriptions found so far.
    subscriptions: usize,
    found: Vec<FoundMessage>,
    /// Largest timestamp of all rows found so far, in microseconds.
    last: u64,
    /// True if the scan has reached the data section.
    in_data: bool,
}

impl OtherMessages {
    /// Returns a collector for the part of the log that starts at the offset `start`. The
    /// subscriptions before this offset are added to it.
    fn new(log: &UlogReader, timestamps: &HashMap<usize, TimestampField>, start: u64) -> Self {
        let subscriptions = log.definitions().subscriptions();
        let mut new = Self {
            timestamps: (0..subscriptions.len()).map(|number| timestamps.get(&number).copied()).collect(),
            last: log.header().timestamp.get(),
            ..Self::default()
        };
        for before in subscriptions.iter().take_while(|before| before.offset < start) {
            new.subscribe(before.msg_id);
        }
        new
    }

    /// Counts a subscription. The first subscription starts the data section.
    fn subscribe(&mut self, msg_id: u16) {
        self.in_data = true;
        self.subscribed.insert(msg_id, self.subscriptions);
        self.subscriptions += 1;
    }

    /// Updates the largest timestamp with the timestamp of a row. Rows with an invalid size are
    /// ignored, because pyulog skips them.
    #[inline]
    fn record(&mut self, subscription: usize, row: &[u8]) {
        self.in_data = true;
        if let Some(Some((at, min, max))) = self.timestamps.get(subscription)
            && (*min..=*max).contains(&row.len())
            && let Some(time) = row.get(*at..).and_then(|bytes| bytes.first_chunk())
        {
            self.last = self.last.max(u64::from_le_bytes(*time));
        }
    }

    /// Adds a message to the list. Data messages and subscriptions are not added, but they update
    /// the largest timestamp and the subscribed message ids.
    fn add(&mut self, message: Message<'_>) {
        match message {
            Message::Data(data) => {
                self.in_data = true;
                if let Some(subscription) = self.subscribed.get(&data.msg_id) {
                    self.record(*subscription, data.row);
                }
                return;
            }
            Message::Subscription(subscription) => return self.subscribe(subscription.msg_id),
            Message::LoggedString(_) | Message::TaggedString(_) => self.in_data = true,
            Message::Format(_)
            | Message::Info(_)
            | Message::MultiInfo(_)
            | Message::Parameter(_)
            | Message::DefaultParameter(_)
            | Message::Dropout(_)
            | Message::Sync(_) => {}
            _ => return,
        }
        // `payload` fails only for a message that cannot be written. Any message that was read from
        // a log can be written.
        let payload = message.payload().unwrap_or_default();
        self.found.push((message.msg_type(), payload, self.in_data, self.last));
    }
}

/// Copies the rows of some subscriptions into writable memory, which Python uses as structured
/// arrays.
///
/// `sizes` contains the index of each subscription, and the number of bytes to copy from each of
/// its rows.
#[pyfunction]
pub(crate) fn ulog_rows(
    py: Python<'_>,
    reader: &Reader,
    sizes: Vec<(usize, usize)>,
) -> PyResult<Vec<Memory>> {
    let log = ulog(py, reader)?;
    let rows = reader.run(py, || copy_rows(log, &sizes).map_err(|error| Error::io("ulog", error)))?;
    py.check_signals()?;
    Ok(rows.into_iter().map(|(memory, len)| Memory::owned(memory, len)).collect())
}

/// Copies the rows of each topic into memory. Returns the memory of each topic and its size in
/// bytes.
///
/// Several threads scan parts of the log. The number of rows before each part is known. So each
/// thread can write its own range of every array.
fn copy_rows(log: &UlogReader, sizes: &[(usize, usize)]) -> io::Result<Vec<(MmapMut, usize)>> {
    let topics = log.topics();
    let rows = |topic: usize| topics.get(topic).map_or(0, |known| usize::try_from(known.count).unwrap_or(0));
    let found = sizes.iter().map(|(topic, size)| {
        let bytes = rows(*topic) * size;
        Ok((parallel::pages(bytes)?, bytes))
    });
    let mut found = found.collect::<io::Result<Vec<_>>>()?;
    // For each array, `rest` is the range of bytes that has not been assigned to a thread yet.
    let mut rest: Vec<_> = found.iter_mut().map(|(memory, _)| &mut memory[..]).collect();
    let parts = log.parts(parallel::processors());
    std::thread::scope(|scope| {
        for (number, part) in parts.iter().enumerate() {
            let next = parts.get(number + 1).map(Part::first_rows);
            let mut mine: Vec<Option<(&mut [u8], usize)>> = topics.iter().map(|_| None).collect();
            for ((topic, size), rest) in sizes.iter().zip(&mut rest) {
                let Some(place) = mine.get_mut(*topic) else { continue };
                let end = next.map_or(topics[*topic].count, |next| next[*topic]);
                let count = usize::try_from(end - part.first_rows()[*topic]).unwrap_or(0);
                let (range, behind) = std::mem::take(rest).split_at_mut(count * size);
                *rest = behind;
                *place = Some((range, *size));
            }
            scope.spawn(move || copy(part, &mut mine));
        }
    });
    Ok(found)
}

/// Copies the rows in one part of the log. `ranges` contains the memory for each topic, and the
/// size of its rows in bytes.
fn copy(part: &Part<'_>, ranges: &mut [Option<(&mut [u8], usize)>]) {
    part.scan(|_, scanned| {
        let Scanned::Record(topic, payload) = scanned else { return };
        let Some((range, size)) = &mut ranges[topic.id.index()] else { return };
        let (row, rest) = std::mem::take(range).split_at_mut(*size);
        // Loggers may omit the padding at the end of a row. In the result, this padding is zero,
        // because the memory is zeroed.
        let len = row.len().min(payload.len());
        row[..len].copy_from_slice(&payload[..len]);
        *range = rest;
    });
}
