//! What Python calls on an open log: facts, topics, and access to its data.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatchReader as _;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyCapsule, PyDict, PyList};
use pyo3_arrow::ffi::to_schema_pycapsule;
use rovelog::core::select::Names;
use rovelog::{
    AnyLog, Bytes, Clock, Error, ErrorKind, RecoverOptions, Result, Schema, Select, Timestamp, Topic, TopicId,
};
use rovelog_export::ExportError;
use rovelog_export::signal::{Extended, NoSignal, Signal, Signals, derived_fields};
use rovelog_remote::RemoteFile;

use crate::errors::{self, Raise, of_arrow, of_export};
use crate::origin::Origin;
use crate::reader::{Reader, Window};
use crate::records::Messages;
use crate::remote::{self, FileObject, Parts};
use crate::resolve::{Resolved, options, resolve};
use crate::select::Shape;
use crate::stream::{self, TopicStream};
use crate::table::{self, Batches, Table};
use crate::values::to_python;
use crate::words::in_python;
use crate::{output, signal, ulog};

/// Returns the built-in formats: id, name, description.
#[pyfunction]
pub(crate) fn formats() -> Vec<(&'static str, &'static str, &'static str)> {
    rovelog::FORMATS.iter().map(|format| (format.id, format.name, format.about)).collect()
}

/// Bytes of records above which decoding runs on another thread, so that Python handles signals.
const LARGE: u64 = 8 << 20;

/// Selected part of a topic: fields or parts of them, a window, and signals of its fields.
#[derive(Clone, FromPyObject)]
struct Part(Option<Vec<String>>, Window, Vec<String>);

/// Selected part of a topic, as its records are read for it.
struct Wanted {
    shape: Shape,
    /// What the format's reader must decode for the fields.
    select: Select,
    /// The signals, whose columns come after the fields.
    signals: Vec<Signal>,
}

impl Reader {
    fn topic(&self, py: Python<'_>, index: usize) -> PyResult<&Topic> {
        self.log.topics().get(index).ok_or_else(|| Raise::new("RovelogError", "no such topic").raise(py))
    }

    /// Returns what is to be read for a part of a topic.
    fn part(&self, py: Python<'_>, topic: &Topic, part: Part) -> PyResult<Wanted> {
        let Part(paths, window, texts) = part;
        let shape = self.shape(paths, topic.first);
        let mut select = window.of(Select::topic(&topic.name));
        select.fields = shape.fields();
        let found = Signals::among(&**self.log, &[topic]);
        let signals = texts.iter().map(|text| found.find(text));
        let signals: std::result::Result<Vec<_>, NoSignal> = signals.collect();
        let signals = signals.map_err(|error| signal::missing(self, py, error))?.concat();
        Ok(Wanted { shape, select, signals })
    }

    fn topic_stream(&self, py: Python<'_>, topic: usize, part: Part) -> PyResult<TopicStream> {
        let topic = self.topic(py, topic)?;
        let Wanted { shape, select, signals } = self.part(py, topic, part)?;
        let watch = self.origin.watch.clone();
        let log = self.with(py, &select)?;
        let id = same(py, &log, topic)?;
        self.run(py, || TopicStream::new((log, watch), id, shape, (&select, &signals)))
    }

    /// Writes a new log made from this one.
    fn rewrite<T: Send>(
        &self,
        py: Python<'_>,
        out: &Path,
        write: impl FnOnce(&mut dyn Write) -> Result<T> + Send,
    ) -> PyResult<T> {
        output::write(py, self, out, |signals| {
            let mut file = output::create(out, signals)?;
            let done = write(&mut file).map_err(|error| match error.kind {
                // The log is in memory, so the error comes from the output.
                ErrorKind::Io => ExportError::Io(match error.get_ref().downcast_ref::<io::Error>() {
                    Some(refused) if let Some(errno) = refused.raw_os_error() => {
                        io::Error::from_raw_os_error(errno)
                    }
                    _ => io::Error::other(error),
                }),
                _ => ExportError::Log(error),
            })?;
            file.flush()?;
            Ok(done)
        })
    }
}

/// Returns the id of a topic of this log in one that was opened with more of the file.
fn same(py: Python<'_>, log: &AnyLog, topic: &Topic) -> PyResult<TopicId> {
    let found = log.topics().iter().find(|other| other.name == topic.name);
    found.map(|topic| topic.id).ok_or_else(|| Raise::new("RovelogError", "no such topic").raise(py))
}

#[pymethods]
impl Reader {
    /// Opens a file; `format` is an id, or `None` to detect it. With `alone`, companion files of
    /// the log are not opened. `types` is a file that declares message types, `max_unpacked` the
    /// maximum size of a decompressed file in bytes, `utc_start` the Unix time of the start in
    /// nanoseconds, `time_base` the clock of records, `text_encoding` the encoding of texts
    /// that are not UTF-8.
    #[staticmethod]
    #[pyo3(signature = (path, format=None, alone=false, types=None, max_unpacked=None, msgs=None, utc_start=None, time_base=None, text_encoding=None))]
    #[expect(clippy::too_many_arguments, reason = "each is an option of its own")]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        format: Option<String>,
        alone: bool,
        types: Option<PathBuf>,
        max_unpacked: Option<u64>,
        msgs: Option<PathBuf>,
        utc_start: Option<i64>,
        time_base: Option<&str>,
        text_encoding: Option<&str>,
    ) -> PyResult<Self> {
        let name = path.to_string_lossy().into_owned();
        let mut options = options(py, types, max_unpacked, msgs, utc_start, time_base, text_encoding)?;
        options.alone = alone;
        let open = || rovelog::open_watched(&path, format.as_deref(), &options);
        let (log, watch) = errors::run_on(py, Some(&name), open)?;
        Ok(Self::new(log, Origin::watched(Some(name), watch), None))
    }

    /// Opens a log in memory, without copying it.
    #[staticmethod]
    #[pyo3(signature = (data, format=None, name=None, types=None, max_unpacked=None, msgs=None, utc_start=None, time_base=None, text_encoding=None))]
    #[expect(clippy::too_many_arguments, reason = "those of `open`")]
    fn from_bytes(
        py: Python<'_>,
        data: PyBackedBytes,
        format: Option<String>,
        name: Option<String>,
        types: Option<PathBuf>,
        max_unpacked: Option<u64>,
        msgs: Option<PathBuf>,
        utc_start: Option<i64>,
        time_base: Option<&str>,
        text_encoding: Option<&str>,
    ) -> PyResult<Self> {
        let (bytes, options) = (
            Bytes::from_owner(data),
            options(py, types, max_unpacked, msgs, utc_start, time_base, text_encoding)?,
        );
        let memory = Some(bytes.clone());
        let open = || rovelog::from_bytes_as(format.as_deref(), bytes, &options);
        let log = errors::run_on(py, name.as_deref(), open)?;
        Ok(Self::new(log, Origin::named(name), memory))
    }

    /// Opens a log by ranges: one at an address, or one that a file object reads, which has a
    /// name. `storage` has credentials and settings of the store, `max_bytes` limits what is moved.
    #[staticmethod]
    #[pyo3(signature = (source, name=None, format=None, types=None, max_unpacked=None, msgs=None, storage=Vec::new(), max_bytes=None, utc_start=None, time_base=None, text_encoding=None))]
    #[expect(clippy::too_many_arguments, reason = "those of `open`")]
    fn remote(
        py: Python<'_>,
        source: Bound<'_, PyAny>,
        name: Option<String>,
        format: Option<String>,
        types: Option<PathBuf>,
        max_unpacked: Option<u64>,
        msgs: Option<PathBuf>,
        storage: Vec<(String, String)>,
        max_bytes: Option<u64>,
        utc_start: Option<i64>,
        time_base: Option<&str>,
        text_encoding: Option<&str>,
    ) -> PyResult<Self> {
        let options = options(py, types, max_unpacked, msgs, utc_start, time_base, text_encoding)?;
        let address = source.extract::<String>().ok();
        let shown = name.clone();
        let object = if address.is_some() { None } else { Some(FileObject::new(&source, max_bytes)?) };
        let open = move || {
            let (file, name) = match (address, object) {
                (Some(address), _) => {
                    let (file, name) = remote::at_address(&address, storage, max_bytes)?;
                    (file, Some(name))
                }
                (None, Some(object)) => (RemoteFile::of(Box::new(object), "log")?, name),
                (None, None) => unreachable!("a source is an address or an object"),
            };
            Ok((Parts::open(file, format, options)?, name))
        };
        let opened = errors::run_aside(py, open)?;
        let (parts, name) = opened.map_err(|error: Error| errors::raise(py, &error, shown.as_deref()))?;
        let mut reader = Self::new_of(parts.known(), Origin::named(name), None);
        reader.parts = Some(Arc::new(parts));
        Ok(reader)
    }

    /// Returns a reader of all of the log, where this one has its outline.
    fn whole(&self, py: Python<'_>) -> PyResult<Self> {
        let mut whole = Self::new_of(Arc::clone(self.all(py)?), self.origin.clone(), self.memory.clone());
        whole.parts.clone_from(&self.parts);
        Ok(whole)
    }

    #[getter]
    fn path(&self) -> Option<&str> {
        self.origin.path()
    }

    /// Returns the file of the log and its companion files.
    #[getter]
    fn files(&self) -> Vec<String> {
        let Some(path) = &self.origin.place else { return Vec::new() };
        let others = rovelog::companions(path, Some(self.log.format().id));
        let files = std::iter::once(path).chain(&others);
        files.map(|file| file.to_string_lossy().into_owned()).collect()
    }

    /// Returns the summary made when the log was opened.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        // The first access to a log may scan it.
        let (info, format) = (self.run(py, || Ok(self.log.info()))?, self.log.format());
        let dict = PyDict::new(py);
        dict.set_item("format", format.id)?;
        dict.set_item("format_name", format.name)?;
        dict.set_item("version", &info.version)?;
        dict.set_item("dialect", info.dialect)?;
        dict.set_item("size", info.size)?;
        dict.set_item("state", info.state.name())?;
        dict.set_item("clock", info.start.or(info.end).map(|time| time.clock.name()))?;
        dict.set_item("start_ns", info.start.map(|time| time.nanos))?;
        dict.set_item("end_ns", info.end.map(|time| time.nanos))?;
        let utc = info.utc.as_ref();
        let is_unix = info.start.is_some_and(|start| start.clock == Clock::Unix);
        let offset = if is_unix { Some(0) } else { utc.map(|utc| utc.nanos) };
        dict.set_item("utc_offset_ns", offset.filter(|_| info.start.is_some()))?;
        let knots = utc.iter().flat_map(|utc| utc.knots.iter()).map(|knot| (knot.log, knot.nanos));
        dict.set_item("utc_knots", knots.collect::<Vec<_>>())?;
        dict.set_item("utc_rule", utc.map(|utc| utc.rule))?;
        dict.set_item("utc_evidence", utc.map(|utc| utc.evidence.clone()))?;
        dict.set_item("records", info.records)?;
        dict.set_item("unread", info.unread)?;
        dict.set_item("at_least", info.at_least)?;
        dict.set_item("problems", info.problems)?;
        dict.set_item("lost_bytes", info.lost.bytes)?;
        let lost: Vec<(u64, u64)> = info.lost.ranges.iter().map(|range| (range.start, range.end)).collect();
        dict.set_item("lost", lost)?;
        dict.set_item("missing_records", info.lost.missing_records)?;
        dict.set_item("left_out_records", info.lost.left_out_records)?;
        dict.set_item("loss", (!info.lost.is_empty()).then(|| info.lost.to_string()))?;
        let details = PyDict::new(py);
        for detail in &info.details {
            let fact = (&detail.text, to_python(py, &detail.value)?);
            details.set_item(detail.key, fact)?;
        }
        dict.set_item("details", details)?;
        let span = info.span();
        dict.set_item("data_start_ns", span.map(|(start, _)| start.nanos))?;
        dict.set_item("data_end_ns", span.map(|(_, end)| end.nanos))?;
        let topics = self.log.topics();
        let outside = info.outside().iter().map(|outside| {
            let name = topics.get(outside.topic.index()).map_or("", |topic| topic.name.as_str());
            let times = (outside.first.nanos, outside.last.nanos);
            (name, outside.count, times.0, times.1, outside.distance, outside.offset)
        });
        dict.set_item("outside", outside.collect::<Vec<_>>())?;
        Ok(dict)
    }

    /// Returns the topics in the order in which the log declares them.
    fn topics<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let nanos = |time: Option<Timestamp>| time.map(|time| time.nanos);
        let topics = self.run(py, || Ok(self.log.topics()))?.iter().map(|topic| {
            let dict = PyDict::new(py);
            dict.set_item("name", &topic.name)?;
            dict.set_item("type", &topic.type_name)?;
            dict.set_item("count", topic.count)?;
            dict.set_item("bytes", topic.bytes_known.then_some(topic.bytes))?;
            dict.set_item("rate_hz", topic.rate_hz())?;
            dict.set_item("first_ns", nanos(topic.first))?;
            dict.set_item("last_ns", nanos(topic.last))?;
            dict.set_item("decodable", topic.schema.is_some())?;
            Ok(dict)
        });
        topics.collect()
    }

    /// Returns the fields of a topic: name, type, the log's own type, unit, and nested fields.
    fn fields<'py>(&self, py: Python<'py>, topic: usize) -> PyResult<Bound<'py, PyList>> {
        match &self.topic(py, topic)?.schema {
            Some(schema) => fields(py, schema),
            None => Ok(PyList::empty(py)),
        }
    }

    /// Returns the names of what is derived of a topic's fields: `q.roll`.
    fn derived(&self, py: Python<'_>, topic: usize) -> PyResult<Vec<String>> {
        let topic = self.topic(py, topic)?;
        self.run(py, || derived_fields(&**self.log, topic))
    }

    /// Returns what a text means that is not the path of a field: the paths of fields that a pattern
    /// matches, and signals, each with the name of its column; `None` if it means nothing.
    fn resolve(&self, py: Python<'_>, topic: usize, text: &str) -> PyResult<Option<Resolved>> {
        resolve(self, py, self.topic(py, topic)?, text)
    }

    /// Returns the definition of a topic's type as stored in the log.
    fn definition(&self, py: Python<'_>, topic: usize) -> PyResult<Option<String>> {
        let topic = self.topic(py, topic)?;
        self.run(py, || Ok(self.log.own(topic)?.definition()))
    }

    /// Returns the problems of the log: code, name, severity, start, end, message, meaning.
    #[expect(clippy::type_complexity, reason = "a row of a table")]
    fn problems(&self, py: Python<'_>) -> PyResult<Vec<(&str, &str, &str, u64, u64, Cow<'_, str>, &str)>> {
        let log = self.all(py)?;
        let rows = self.run(py, || Ok(log.diagnostics().list()))?.iter().map(|found| {
            let (rule, range) = (found.rule, &found.range);
            (
                rule.code,
                rule.name,
                rule.severity.name(),
                range.start,
                range.end,
                in_python(&found.message),
                rule.meaning,
            )
        });
        Ok(rows.collect())
    }

    /// Returns the health of the times of each topic that has any, by its name.
    fn health<'py>(&self, py: Python<'py>, window: Window) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let select = window.of(Select::all());
        let log = self.with(py, &select)?;
        let health = self.run(py, || rovelog::health(&log, &select))?;
        let topics = health.topics.iter().map(|topic| {
            let dict = PyDict::new(py);
            dict.set_item("topic", &log.topics()[topic.topic.index()].name)?;
            dict.set_item("count", topic.count)?;
            dict.set_item("steady", topic.steady)?;
            dict.set_item("nominal_hz", topic.nominal_hz())?;
            dict.set_item("period_ns", topic.period)?;
            dict.set_item("shortest_ns", topic.shortest)?;
            dict.set_item("longest_ns", topic.longest)?;
            dict.set_item("jitter_ns", topic.jitter)?;
            dict.set_item("gaps", topic.gaps)?;
            dict.set_item("confirmed", topic.confirmed)?;
            dict.set_item("missing", topic.missing)?;
            let gaps: Vec<_> = topic.longest_gaps.iter().map(|gap| (gap.start, gap.length)).collect();
            dict.set_item("longest_gaps", gaps)?;
            dict.set_item("falling", topic.falling)?;
            dict.set_item("repeated", topic.repeated)?;
            dict.set_item("silent_ns", topic.silent)?;
            dict.set_item("stuck", topic.is_stuck)?;
            Ok(dict)
        });
        topics.collect()
    }

    /// Returns the console messages: time, level, name of the level, source, text, offset; `None`
    /// if the format has none.
    #[expect(clippy::type_complexity, reason = "a row of a table")]
    fn texts(
        &self,
        py: Python<'_>,
    ) -> PyResult<Option<Vec<(Option<i64>, u8, &'static str, Option<String>, String, u64)>>> {
        let log = self.all(py)?;
        self.run(py, || {
            let Some(texts) = log.texts() else { return Ok(None) };
            let texts = texts.map(|text| {
                let (time, level) = (text.time.map(|time| time.nanos), text.level_name());
                (time, text.level, level, text.source, text.text, text.offset)
            });
            Ok(Some(texts.collect()))
        })
    }

    /// Returns a topic's columns in memory.
    fn table(&self, py: Python<'_>, topic: usize, part: Part) -> PyResult<Table> {
        let known = self.topic(py, topic)?;
        let Wanted { shape, select, signals } = self.part(py, known, part)?;
        let large = known.bytes > LARGE || !known.bytes_known;
        let log = self.with(py, &select)?;
        let id = same(py, &log, known)?;
        let work = move || {
            let (topic, format) = (&log.topics()[id.index()], log.format().id);
            let mut further = stream::extended(&log, id, &select, &signals)?;
            let read = Extended::reads(&signals, &select);
            let mut batch = match ulog::table(&log, topic, &read)? {
                Some(batch) => batch,
                None => table::joined(format, log.own(topic)?.columns(&read)?)?,
            };
            if let Some(further) = &mut further {
                batch = further.extend(&batch).map_err(of_export(format))?;
            }
            shape.with(further.as_ref()).apply(&batch).map_err(of_arrow(format))
        };
        let batch = if large {
            let outcome = self.origin.checked(py, || errors::run_aside(py, work))?;
            let batch = outcome.map_err(|error: Error| self.raise(py, &error))?;
            self.report(py)?;
            batch
        } else {
            self.run(py, work)?
        };
        py.check_signals()?;
        Ok(Table { batch })
    }

    /// Returns a topic's columns in batches.
    fn batches(&self, py: Python<'_>, topic: usize, part: Part) -> PyResult<Batches> {
        Ok(Batches::new(self, self.topic_stream(py, topic, part)?))
    }

    /// Returns a topic as a stream of batches, a new one for each call.
    #[pyo3(signature = (topic, part, requested_schema=None))]
    fn stream<'py>(
        &self,
        py: Python<'py>,
        topic: usize,
        part: Part,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let mut batches = self.topic_stream(py, topic, part.clone())?;
        batches.fails_on_loss = !self.origin.is_loss_reported();
        let Part(None, window, _) = part else {
            return stream::capsule(py, Box::new(batches), requested_schema);
        };
        let Some(names) = stream::subset(&batches.schema(), requested_schema.as_ref())? else {
            return stream::capsule(py, Box::new(batches), requested_schema);
        };
        // Times are columns without being fields.
        let times = self.topic_stream(py, topic, Part(Some(Vec::new()), window, Vec::new()))?.schema();
        let fields = names.iter().filter(|name| times.column_with_name(name).is_none()).cloned().collect();
        let mut decoded = self.topic_stream(py, topic, Part(Some(fields), window, Vec::new()))?;
        decoded.fails_on_loss = !self.origin.is_loss_reported();
        let projected = stream::Projected::new(decoded, &names)
            .map_err(|error| self.raise(py, &of_arrow(self.log.format().id)(error)))?;
        stream::capsule(py, Box::new(projected), requested_schema)
    }

    /// Returns the schema of a topic's batches.
    fn schema<'py>(&self, py: Python<'py>, topic: usize, part: Part) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = self.topic_stream(py, topic, part)?;
        let schema = batches.schema();
        Ok(to_schema_pycapsule(py, schema.as_ref())?)
    }

    /// Returns records in time order.
    #[pyo3(signature = (topics, window, *, latched=false, raw=false))]
    fn messages(
        &self,
        py: Python<'_>,
        topics: Option<Vec<String>>,
        window: Window,
        latched: bool,
        raw: bool,
    ) -> PyResult<Messages> {
        let mut select = window.of(Select::all());
        select.topics = topics.map(Names::from_iter);
        select.last_before = latched;
        Messages::new(py, self, &select, raw)
    }

    /// Reads all of a log and compares it with its index; returns what it has lost.
    fn verify(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let log = self.all(py)?;
        self.origin.run(py, || {
            let lost = log.verify();
            Ok((!lost.is_empty()).then(|| lost.to_string()))
        })
    }

    /// Reads all of a log, compares it with its index, and warns of what it has lost.
    fn compare(&self, py: Python<'_>) -> PyResult<()> {
        self.verify(py)?;
        self.report(py)
    }

    /// Writes every intact record of this log to a new file.
    fn recover<'py>(&self, py: Python<'py>, out: PathBuf, drop_stale: bool) -> PyResult<Bound<'py, PyDict>> {
        let options = RecoverOptions::default();
        let options = if drop_stale { options.dropping_stale() } else { options };
        let log = self.all(py)?;
        let found = self.rewrite(py, &out, |file| log.recover(file, &options))?;
        let dict = PyDict::new(py);
        dict.set_item("records", found.records)?;
        dict.set_item("kept_bytes", found.kept_bytes)?;
        dict.set_item("lost_bytes", found.lost_bytes())?;
        let lost: Vec<(u64, u64)> = found.lost.iter().map(|range| (range.start, range.end)).collect();
        dict.set_item("lost", lost)?;
        dict.set_item("missing_records", found.missing_records)?;
        dict.set_item("stale_bytes", found.stale_bytes)?;
        dict.set_item("stale_records", found.stale_records)?;
        dict.set_item("left_out", found.left_out)?;
        dict.set_item("unchanged", found.unchanged)?;
        Ok(dict)
    }

    /// Writes a part of the log to a new file.
    fn slice<'py>(
        &self,
        py: Python<'py>,
        out: PathBuf,
        topics: Option<Vec<String>>,
        window: Window,
    ) -> PyResult<Bound<'py, PyDict>> {
        let mut select = window.of(Select::all()).with_latched();
        select.topics = topics.map(Names::from_iter);
        let log = self.with(py, &select)?;
        let sliced = self.rewrite(py, &out, |file| log.slice(&select, file))?;
        let dict = PyDict::new(py);
        dict.set_item("records", sliced.records)?;
        dict.set_item("others", sliced.others)?;
        dict.set_item("topics", sliced.topics)?;
        dict.set_item("bytes", sliced.bytes)?;
        Ok(dict)
    }
}

fn fields<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyList>> {
    let rows = schema.fields.iter().map(|field| {
        let inner = field.ty.nested().map(|schema| fields(py, schema)).transpose()?;
        Ok((&*field.name, field.ty.to_string(), &field.source_type, &field.unit, inner))
    });
    let rows: PyResult<Vec<_>> = rows.collect();
    PyList::new(py, rows?)
}
