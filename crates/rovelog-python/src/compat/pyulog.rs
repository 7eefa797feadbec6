//! Parts of a ULog that the drop-in for pyulog needs: header, subscriptions, all messages that are
//! not rows, and rows as stored.

use std::collections::HashMap;
use std::io;

use memmap2::MmapMut;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rovelog::Error;
use rovelog::core::LogReader as _;
use rovelog::core::wire::U64Le;
use rovelog::ulog_format::wire::Message;
use rovelog::ulog_format::{Part, Scanned, UlogReader};

use crate::memory::Memory;
use crate::parallel;
use crate::reader::Reader;
use crate::ulog::ulog;

/// Version, start in microseconds, compatible and incompatible flags, offsets of appended data.
type Header = (u8, u64, [u8; 8], [u8; 8], [u64; 3]);

/// Returns the header and the flag bits.
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

/// Returns the subscriptions, parallel to the topics: message id, instance, name of the format,
/// rows.
#[pyfunction]
pub(crate) fn ulog_subscriptions(py: Python<'_>, reader: &Reader) -> PyResult<Vec<(u16, u8, String, u64)>> {
    let log = ulog(py, reader)?;
    let both = log.definitions().subscriptions().iter().zip(log.topics());
    Ok(both.map(|(sub, topic)| (sub.msg_id, sub.multi_id, topic.type_name.clone(), topic.count)).collect())
}

/// Returns all messages that are not rows, in file order: type of message, payload, whether the
/// data section has started, and the maximum timestamp of the rows before it in microseconds.
///
/// Rows of subscriptions that are not in `timestamps` do not change that maximum. With
/// `definitions_only`, the list ends where the data section starts.
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

/// A message, and the state before it.
type Found = (u8, Vec<u8>, bool, u64);

/// Offset of the timestamp in rows, and the minimum and maximum size of rows.
type TimestampField = (usize, usize, usize);

fn other_messages(
    log: &UlogReader,
    timestamps: &HashMap<usize, TimestampField>,
    definitions_only: bool,
) -> (Vec<Found>, u64) {
    let parts = if definitions_only { Vec::new() } else { log.parts(parallel::processors()) };
    if parts.is_empty() {
        let mut whole = OtherMessages::new(log, timestamps, 0);
        for (_, message) in log.messages() {
            whole.take(message);
            if definitions_only && whole.in_data {
                whole.found.retain(|(_, _, in_data, _)| !in_data);
                break;
            }
        }
        return (whole.found, whole.last);
    }
    let scan = |part: Part<'_>| {
        let mut others = OtherMessages::new(log, timestamps, part.start());
        part.scan(|_, met| match met {
            Scanned::Record(topic, row) => others.record(topic.id.index(), row),
            Scanned::Message(message) => others.take(message),
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
        let later = |(kind, payload, in_data, before): Found| (kind, payload, in_data, last.max(before));
        found.extend(part.found.into_iter().map(later));
        last = last.max(part.last);
    }
    (found, last)
}

/// All messages of a part of a log that are not rows.
struct OtherMessages {
    /// By subscription.
    timestamps: Vec<Option<TimestampField>>,
    /// Subscriptions by message id.
    subscribed: HashMap<u16, usize>,
    subscriptions: usize,
    found: Vec<Found>,
    last: u64,
    in_data: bool,
}

impl OtherMessages {
    /// Starts at an offset, with the subscriptions before it.
    fn new(log: &UlogReader, timestamps: &HashMap<usize, TimestampField>, start: u64) -> Self {
        let subscriptions = log.definitions().subscriptions();
        let mut new = Self {
            timestamps: (0..subscriptions.len()).map(|number| timestamps.get(&number).copied()).collect(),
            subscribed: HashMap::new(),
            subscriptions: 0,
            found: Vec::new(),
            last: log.header().timestamp.get(),
            in_data: false,
        };
        for before in subscriptions.iter().take_while(|before| before.offset < start) {
            new.subscribe(before.msg_id);
        }
        new
    }

    fn subscribe(&mut self, msg_id: u16) {
        self.in_data = true;
        self.subscribed.insert(msg_id, self.subscriptions);
        self.subscriptions += 1;
    }

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

    fn take(&mut self, message: Message<'_>) {
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
        // A payload that was read can be written.
        let payload = message.payload().unwrap_or_default();
        self.found.push((message.msg_type(), payload, self.in_data, self.last));
    }
}

/// Returns the rows of some subscriptions in file order, the first `size` bytes of each row, as
/// writable memory for structured arrays.
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

/// Returns the memory of each topic's rows, and its size in bytes.
fn copy_rows(log: &UlogReader, sizes: &[(usize, usize)]) -> io::Result<Vec<(MmapMut, usize)>> {
    let topics = log.topics();
    let rows = |topic: usize| topics.get(topic).map_or(0, |known| usize::try_from(known.count).unwrap_or(0));
    let found = sizes.iter().map(|(topic, size)| {
        let bytes = rows(*topic) * size;
        Ok((parallel::pages(bytes)?, bytes))
    });
    let mut found = found.collect::<io::Result<Vec<_>>>()?;
    // Each part fills its own range of each array.
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

/// Copies the rows of a part one after the other, each topic's to its range, in rows of a fixed
/// size.
fn copy(part: &Part<'_>, ranges: &mut [Option<(&mut [u8], usize)>]) {
    part.scan(|_, met| {
        let Scanned::Record(topic, payload) = met else { return };
        let Some((range, size)) = &mut ranges[topic.id.index()] else { return };
        let (row, rest) = std::mem::take(range).split_at_mut(*size);
        // A row may lack the padding at its end, which is then zero.
        let len = row.len().min(payload.len());
        row[..len].copy_from_slice(&payload[..len]);
        *range = rest;
    });
}
