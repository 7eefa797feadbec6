//! What only a ULog has: parameters, information, dropouts, events, and what the drop-in for pyulog needs.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use memmap2::MmapMut;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use rovelog::core::LogReader as _;
use rovelog::ulog_format::message::Message;
use rovelog::ulog_format::{Part, Scanned, UlogReader, px4};
use rovelog::{AnyLog, Error, ErrorKind, Result, Select, Timestamp, Topic};

use crate::errors;
use crate::memory::Memory;
use crate::parallel;
use crate::reader::Reader;
use crate::values::map_to_python;

/// All rows of a topic in one batch, where the format is ULog and the topic has rows.
pub(crate) fn table(log: &AnyLog, topic: &Topic, select: &Select) -> Option<Result<RecordBatch>> {
    let AnyLog::Ulog(log) = log else { return None };
    let wrong = |error| Error::new("ulog", ErrorKind::InvalidArgument, None, error);
    match log.tables(select).map_err(wrong) {
        Ok(tables) => tables.into_iter().find(|(id, _)| *id == topic.id).map(|(_, batch)| Ok(batch)),
        Err(error) => Some(Err(error)),
    }
}

fn ulog<'a>(py: Python<'_>, reader: &'a Reader) -> PyResult<&'a UlogReader> {
    reader.only(py, "ULog", |log| if let AnyLog::Ulog(log) = log { Some(log) } else { None })
}

fn nanos(time: Option<Timestamp>) -> Option<i64> {
    time.map(|time| time.nanos)
}

/// Parameters: `initial`, `changed`, `system_defaults`, `setup_defaults`.
#[pyfunction]
pub(crate) fn ulog_parameters<'py>(py: Python<'py>, reader: &Reader) -> PyResult<Bound<'py, PyDict>> {
    let log = ulog(py, reader)?;
    let parameters = errors::run(py, || log.parameters())?;
    let dict = PyDict::new(py);
    dict.set_item("initial", map_to_python(py, &parameters.initial)?)?;
    let changed = parameters.changed.iter().map(|change| {
        let value = crate::values::to_python(py, &change.value)?;
        Ok((nanos(change.time), &change.name, value))
    });
    dict.set_item("changed", changed.collect::<PyResult<Vec<_>>>()?)?;
    dict.set_item("system_defaults", map_to_python(py, &parameters.system_defaults)?)?;
    dict.set_item("setup_defaults", map_to_python(py, &parameters.setup_defaults)?)?;
    Ok(dict)
}

/// Information messages: the last value of each key.
#[pyfunction]
pub(crate) fn ulog_infos<'py>(py: Python<'py>, reader: &Reader) -> PyResult<Bound<'py, PyDict>> {
    let log = ulog(py, reader)?;
    map_to_python(py, &errors::run(py, || log.infos())?)
}

/// Dropouts: time, milliseconds, offset.
#[pyfunction]
pub(crate) fn ulog_dropouts(py: Python<'_>, reader: &Reader) -> PyResult<Vec<(Option<i64>, u16, u64)>> {
    let log = ulog(py, reader)?;
    let dropouts = errors::run(py, || log.dropouts())?;
    Ok(dropouts.iter().map(|dropout| (nanos(dropout.time), dropout.millis, dropout.offset)).collect())
}

/// Events of PX4: time, level, message, name.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "a row of a table")]
pub(crate) fn ulog_events(
    py: Python<'_>,
    reader: &Reader,
) -> PyResult<Vec<(i64, &'static str, String, Option<String>)>> {
    let log = ulog(py, reader)?;
    errors::run(py, || {
        let events = px4::events(log).list.into_iter();
        let events = events.filter(px4::Event::is_message);
        let row = |event: px4::Event| {
            (event.time.nanos, event.level_name(), event.message(), event.text.map(|text| text.name))
        };
        events.map(row).collect()
    })
}

/// Changes of PX4's flight mode: time, name, number.
#[pyfunction]
pub(crate) fn ulog_modes(py: Python<'_>, reader: &Reader) -> PyResult<Vec<(i64, String, u8)>> {
    let log = ulog(py, reader)?;
    let modes = errors::run(py, || px4::mode_changes(log))?;
    let row = |change: &px4::Change<px4::Mode>| {
        let name = change.value.name().map_or_else(|| change.value.to_string(), str::to_owned);
        (change.time.nanos, name, change.value.nav_state)
    };
    Ok(modes.iter().map(row).collect())
}

/// The header and the flag bits: version, start in microseconds, compatible and incompatible flags.
#[pyfunction]
pub(crate) fn ulog_header(py: Python<'_>, reader: &Reader) -> PyResult<(u8, u64, [u8; 8], [u8; 8])> {
    let log = ulog(py, reader)?;
    let header = log.header();
    let flags = log.flag_bits();
    let compat = flags.map_or([0; 8], |flags| flags.compat_flags);
    let incompat = flags.map_or([0; 8], |flags| flags.incompat_flags);
    Ok((header.version, header.timestamp.get(), compat, incompat))
}

/// The subscriptions, parallel to the topics: message id, instance, name of the format, rows.
#[pyfunction]
pub(crate) fn ulog_subscriptions(py: Python<'_>, reader: &Reader) -> PyResult<Vec<(u16, u8, String, u64)>> {
    let log = ulog(py, reader)?;
    let both = log.definitions().subscriptions().iter().zip(log.topics());
    Ok(both.map(|(sub, topic)| (sub.msg_id, sub.multi_id, topic.type_name.clone(), topic.count)).collect())
}

/// What stands in a log beside its rows, in file order: type of message, payload, whether the data section has
/// begun, and the greatest timestamp of the rows before it, microseconds.
///
/// `stamps` has, by subscription, where rows carry their timestamp and the sizes they may have; rows of other
/// subscriptions do not move that time. With `definitions_only` it ends where the data section begins.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "a row of a table")]
pub(crate) fn ulog_messages<'py>(
    py: Python<'py>,
    reader: &Reader,
    stamps: HashMap<usize, (usize, usize, usize)>,
    definitions_only: bool,
) -> PyResult<(Vec<(u8, Bound<'py, PyBytes>, bool, u64)>, u64)> {
    let log = ulog(py, reader)?;
    let (found, last) = errors::run(py, || beside_rows(log, &stamps, definitions_only))?;
    let found = found
        .into_iter()
        .map(|(kind, payload, in_data, last)| (kind, PyBytes::new(py, &payload), in_data, last));
    Ok((found.collect(), last))
}

/// A message with what came before it.
type Beside = (u8, Vec<u8>, bool, u64);

/// By subscription: where rows carry their timestamp, and the sizes they may have.
type Stamps = HashMap<usize, (usize, usize, usize)>;

fn beside_rows(log: &UlogReader, stamps: &Stamps, definitions_only: bool) -> (Vec<Beside>, u64) {
    let parts = if definitions_only { Vec::new() } else { log.parts(parallel::processors()) };
    if parts.is_empty() {
        let mut whole = Besides::new(log, stamps, 0);
        for (_, message) in log.messages() {
            whole.take(message);
            if definitions_only && whole.in_data {
                whole.found.retain(|(_, _, in_data, _)| !in_data);
                break;
            }
        }
        return (whole.found, whole.last);
    }
    let walk = |part: Part<'_>| {
        let mut besides = Besides::new(log, stamps, part.start());
        part.scan(|_, met| match met {
            Scanned::Record(topic, row) => besides.record(topic.id.index(), row),
            Scanned::Message(message) => besides.take(message),
        });
        besides
    };
    let parts: Vec<Besides> = std::thread::scope(|scope| {
        let walks: Vec<_> = parts.into_iter().map(|part| scope.spawn(move || walk(part))).collect();
        let walked = walks.into_iter().map(|walk| match walk.join() {
            Ok(besides) => besides,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        walked.collect()
    });
    let (mut found, mut last) = (Vec::new(), 0);
    for part in parts {
        let later = |(kind, payload, in_data, before): Beside| (kind, payload, in_data, last.max(before));
        found.extend(part.found.into_iter().map(later));
        last = last.max(part.last);
    }
    (found, last)
}

/// What stands beside the rows of a part of a log.
struct Besides {
    /// By subscription.
    stamps: Vec<Option<(usize, usize, usize)>>,
    /// The subscriptions by message id.
    subscribed: HashMap<u16, usize>,
    subscriptions: usize,
    found: Vec<Beside>,
    last: u64,
    in_data: bool,
}

impl Besides {
    /// For what begins at an offset, behind the subscriptions before it.
    fn new(log: &UlogReader, stamps: &Stamps, start: u64) -> Self {
        let subscriptions = log.definitions().subscriptions();
        let mut new = Self {
            stamps: (0..subscriptions.len()).map(|number| stamps.get(&number).copied()).collect(),
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
        if let Some(Some((at, least, most))) = self.stamps.get(subscription)
            && (*least..=*most).contains(&row.len())
            && let Some(time) = row.get(*at..).and_then(|bytes| bytes.first_chunk())
        {
            self.last = self.last.max(u64::from_le_bytes(*time));
        }
    }

    fn take(&mut self, message: Message<'_>) {
        let (kind, payload) = match message {
            Message::Data { msg_id, row } => {
                self.in_data = true;
                if let Some(subscription) = self.subscribed.get(&msg_id) {
                    self.record(*subscription, row);
                }
                return;
            }
            Message::Subscription { msg_id, .. } => return self.subscribe(msg_id),
            Message::Format(text) => (b'F', text.to_vec()),
            Message::Info(part) => (b'I', key_value(&part)),
            Message::MultiInfo { continued, part } => {
                (b'M', [&[u8::from(continued)], &*key_value(&part)].concat())
            }
            Message::Parameter(part) => (b'P', key_value(&part)),
            Message::DefaultParameter { types, default } => {
                (b'Q', [&[types], &*key_value(&default)].concat())
            }
            Message::Text { level, tag, timestamp, text } => {
                self.in_data = true;
                let tag = tag.map(u16::to_le_bytes);
                let kind = if tag.is_some() { b'C' } else { b'L' };
                let tag = tag.as_ref().map_or(&[][..], |tag| tag);
                (kind, [&[level], tag, &timestamp.to_le_bytes(), text].concat())
            }
            Message::Dropout { millis } => (b'O', millis.to_le_bytes().to_vec()),
            _ => return,
        };
        self.found.push((kind, payload, self.in_data, self.last));
    }
}

fn key_value(part: &rovelog::ulog_format::message::KeyValue<'_>) -> Vec<u8> {
    // A key's length stood in one byte.
    let len = u8::try_from(part.key.len()).unwrap_or(u8::MAX);
    [&[len], part.key, part.value].concat()
}

/// The rows of some subscriptions, each one's behind each other in file order, the first `size` bytes of each
/// row: memory for structured arrays that may be written.
#[pyfunction]
pub(crate) fn ulog_rows(
    py: Python<'_>,
    reader: &Reader,
    sizes: Vec<(usize, usize)>,
) -> PyResult<Vec<Memory>> {
    let log = ulog(py, reader)?;
    let rows = errors::run(py, || gather(log, &sizes))?;
    let rows = rows.map_err(|error| {
        let error = Error::io("ulog", error);
        errors::raise(py, &error, reader.path.as_deref())
    });
    py.check_signals()?;
    let rows = rows?.into_iter().zip(&sizes);
    let len =
        |topic: usize| log.topics().get(topic).map_or(0, |known| usize::try_from(known.count).unwrap_or(0));
    Ok(rows.map(|(memory, (topic, size))| Memory::owned(memory, len(*topic) * size)).collect())
}

fn gather(log: &UlogReader, sizes: &[(usize, usize)]) -> std::io::Result<Vec<MmapMut>> {
    let topics = log.topics();
    let rows = |topic: usize| topics.get(topic).map_or(0, |known| usize::try_from(known.count).unwrap_or(0));
    let found = sizes.iter().map(|(topic, size)| parallel::pages(rows(*topic) * size));
    let mut found = found.collect::<std::io::Result<Vec<_>>>()?;
    // Each part fills its own stretch of each array.
    let mut rest: Vec<_> = found.iter_mut().map(|memory| &mut memory[..]).collect();
    let parts = log.parts(parallel::processors());
    std::thread::scope(|scope| {
        for (number, part) in parts.iter().enumerate() {
            let next = parts.get(number + 1).map(Part::first_rows);
            let mut mine: Vec<Option<(&mut [u8], usize)>> = topics.iter().map(|_| None).collect();
            for ((topic, size), rest) in sizes.iter().zip(&mut rest) {
                let Some(place) = mine.get_mut(*topic) else { continue };
                let end = next.map_or(topics[*topic].count, |next| next[*topic]);
                let count = usize::try_from(end - part.first_rows()[*topic]).unwrap_or(0);
                let (stretch, behind) = std::mem::take(rest).split_at_mut(count * size);
                *rest = behind;
                *place = Some((stretch, *size));
            }
            scope.spawn(move || copy(part, &mut mine));
        }
    });
    Ok(found)
}

/// Copies the rows of a part behind each other, each topic's to its stretch, in rows of a size.
fn copy(part: &Part<'_>, stretches: &mut [Option<(&mut [u8], usize)>]) {
    part.scan(|_, met| {
        let Scanned::Record(topic, payload) = met else { return };
        let Some((stretch, size)) = &mut stretches[topic.id.index()] else { return };
        let (row, rest) = std::mem::take(stretch).split_at_mut(*size);
        // A row may lack padding at its end, which is zero then.
        let len = row.len().min(payload.len());
        row[..len].copy_from_slice(&payload[..len]);
        *stretch = rest;
    });
}

/// Adds the functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(ulog_parameters, module)?)?;
    module.add_function(wrap_pyfunction!(ulog_infos, module)?)?;
    module.add_function(wrap_pyfunction!(ulog_dropouts, module)?)?;
    module.add_function(wrap_pyfunction!(ulog_events, module)?)?;
    module.add_function(wrap_pyfunction!(ulog_modes, module)?)?;
    module.add_function(wrap_pyfunction!(ulog_header, module)?)?;
    module.add_function(wrap_pyfunction!(ulog_subscriptions, module)?)?;
    module.add_function(wrap_pyfunction!(ulog_messages, module)?)?;
    module.add_function(wrap_pyfunction!(ulog_rows, module)?)
}
