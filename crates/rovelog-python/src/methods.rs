//! Methods of [`Reader`] that Python calls. They return metadata, topics, columns and records, and
//! write recovered logs and slices.

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

use crate::errors::{self, ExceptionBuilder, from_arrow, from_export};
use crate::origin::Origin;
use crate::python_terms::in_python;
use crate::reader::{Reader, Window};
use crate::records::Messages;
use crate::remote::{self, FileObject, RemoteLog};
use crate::resolve::{FieldsAndSignals, read_options, resolve};
use crate::select::Projection;
use crate::stream::{self, TopicStream};
use crate::table::{self, Batches, Table};
use crate::values::to_python;
use crate::{output, signal, ulog};

/// Returns the built-in log formats. Each row consists of the id, the name and a description.
#[pyfunction]
pub(crate) fn formats() -> Vec<(&'static str, &'static str, &'static str)> {
    rovelog::FORMATS.iter().map(|format| (format.id, format.name, format.about)).collect()
}

/// If the records of a topic have more than this number of bytes, a table of the topic is decoded
/// on another thread.
///
/// Python can then handle signals during the decoding. For a smaller topic, starting a thread takes
/// longer than decoding.
const BACKGROUND_BYTES: u64 = 8 << 20;

/// Selection of a part of a topic, in the form in which Python passes it: paths of fields (`None`
/// selects all fields), a time window, and signals to compute.
#[derive(Clone, FromPyObject)]
struct TopicPart(Option<Vec<String>>, Window, Vec<String>);

/// A [`TopicPart`] whose names have been resolved to fields and signals of a topic.
struct PartReads {
    /// Projection of the decoded columns to the columns that Python gets.
    projection: Projection,
    /// Records and fields that the format's reader must decode.
    select: Select,
    /// Signals to compute. Their columns follow the columns of the fields.
    signals: Vec<Signal>,
}

impl Reader {
    /// Returns the topic with this index, or an exception if there is none.
    fn topic(&self, py: Python<'_>, index: usize) -> PyResult<&Topic> {
        self.log
            .topics()
            .get(index)
            .ok_or_else(|| ExceptionBuilder::new("RovelogError", "no such topic").raise(py))
    }

    /// Resolves the names of fields and signals in `part`.
    fn part(&self, py: Python<'_>, topic: &Topic, part: TopicPart) -> PyResult<PartReads> {
        let TopicPart(paths, window, texts) = part;
        let projection = self.projection(paths, topic.first).for_topic(topic);
        let mut select = window.limit(Select::topic(&topic.name));
        select.fields = projection.fields();
        let found = Signals::among(&**self.log, &[topic]);
        let signals = texts.iter().map(|text| found.find(text));
        let signals: std::result::Result<Vec<_>, NoSignal> = signals.collect();
        let signals = signals.map_err(|error| signal::not_found(self, py, error))?.concat();
        Ok(PartReads { projection, select, signals })
    }

    /// Returns the batches of the part `part` of a topic.
    fn topic_stream(&self, py: Python<'_>, topic: usize, part: TopicPart) -> PyResult<TopicStream> {
        let topic = self.topic(py, topic)?;
        let PartReads { projection, select, signals } = self.part(py, topic, part)?;
        let watch = self.origin.watch.clone();
        let log = self.log_for(py, &select)?;
        let id = topic_in(py, &log, topic)?;
        self.run(py, || TopicStream::new((log, watch), id, projection, (&select, &signals)))
    }

    /// Creates a new log at `out`. `write` writes the new log from the content of this log.
    fn write_new_log<T: Send>(
        &self,
        py: Python<'_>,
        out: &Path,
        write: impl FnOnce(&mut dyn Write) -> Result<T> + Send,
    ) -> PyResult<T> {
        output::write(py, self, out, |signals| {
            let mut file = output::create(out, signals)?;
            let done = write(&mut file).map_err(|error| match error.kind {
                // This log is mapped into memory, so reading it cannot fail. An I/O error therefore
                // comes from the output. The operating system error is extracted, because the
                // advice depends on its number.
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

/// Finds `topic` in `log` and returns its id there. `log` is the same log, opened again after more
/// bytes of the file were fetched.
///
/// The ids may differ, because the additional bytes may contain more topics.
fn topic_in(py: Python<'_>, log: &AnyLog, topic: &Topic) -> PyResult<TopicId> {
    let found = log.topics().iter().find(|other| other.name == topic.name);
    found
        .map(|topic| topic.id)
        .ok_or_else(|| ExceptionBuilder::new("RovelogError", "no such topic").raise(py))
}

#[pymethods]
impl Reader {
    /// Opens a file.
    ///
    /// - `format`: id of the log format; `None` detects the format
    /// - `alone`: true if companion files of the log are not opened
    /// - `types`: file with declarations of message types
    /// - `max_unpacked`: maximum size of a decompressed file in bytes
    /// - `msgs`: file or folder with ROS message definitions
    /// - `utc_start`: Unix time at the start of the log in nanoseconds
    /// - `time_base`: clock for the times of the records
    /// - `text_encoding`: encoding of texts that are not valid UTF-8
    #[staticmethod]
    #[pyo3(signature = (path, format=None, alone=false, types=None, max_unpacked=None, msgs=None, utc_start=None, time_base=None, text_encoding=None))]
    #[expect(clippy::too_many_arguments, reason = "each argument is an independent option")]
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
        let mut options = read_options(py, types, max_unpacked, msgs, utc_start, time_base, text_encoding)?;
        options.alone = alone;
        let open = || rovelog::open_watched(&path, format.as_deref(), &options);
        let (log, watch) = errors::run_on(py, Some(&name), open)?;
        Ok(Self::new(log, Origin::watched(Some(name), watch), None))
    }

    /// Opens a log in memory without copying its bytes. For the options, see [`open`](Self::open).
    #[staticmethod]
    #[pyo3(signature = (data, format=None, name=None, types=None, max_unpacked=None, msgs=None, utc_start=None, time_base=None, text_encoding=None))]
    #[expect(clippy::too_many_arguments, reason = "the same arguments as `open`")]
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
            read_options(py, types, max_unpacked, msgs, utc_start, time_base, text_encoding)?,
        );
        let memory = Some(bytes.clone());
        let open = || rovelog::from_bytes_as(format.as_deref(), bytes, &options);
        let log = errors::run_on(py, name.as_deref(), open)?;
        Ok(Self::new(log, Origin::named(name), memory))
    }

    /// Opens a log from which only the needed byte ranges are read.
    ///
    /// - `source`: an address, or a seekable file object
    /// - `name`: name of the file object
    /// - `storage`: credentials and settings for the object store
    /// - `max_bytes`: maximum number of bytes to fetch
    ///
    /// For all other options, see [`open`](Self::open).
    #[staticmethod]
    #[pyo3(signature = (source, name=None, format=None, types=None, max_unpacked=None, msgs=None, storage=Vec::new(), max_bytes=None, utc_start=None, time_base=None, text_encoding=None))]
    #[expect(clippy::too_many_arguments, reason = "the same arguments as `open`")]
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
        let options = read_options(py, types, max_unpacked, msgs, utc_start, time_base, text_encoding)?;
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
            Ok((RemoteLog::open(file, format, options)?, name))
        };
        // The log is opened on another thread, so that Ctrl-C ends the wait for a slow server.
        let opened = errors::run_in_background(py, open)?;
        let (remote, name) = opened.map_err(|error: Error| errors::raise(py, &error, shown.as_deref()))?;
        let mut reader = Self::from_shared(remote.loaded_log(), Origin::named(name), None);
        reader.remote = Some(Arc::new(remote));
        Ok(reader)
    }

    /// Returns a reader for the complete log. If the log is remote, the missing bytes of the file
    /// are fetched.
    fn whole(&self, py: Python<'_>) -> PyResult<Self> {
        let mut whole =
            Self::from_shared(Arc::clone(self.whole_log(py)?), self.origin.clone(), self.memory.clone());
        whole.remote.clone_from(&self.remote);
        Ok(whole)
    }

    #[getter]
    fn path(&self) -> Option<&str> {
        self.origin.path()
    }

    /// Returns the paths of the log and of its companion files.
    #[getter]
    fn files(&self) -> Vec<String> {
        let Some(path) = &self.origin.absolute_path else { return Vec::new() };
        let others = rovelog::companions(path, Some(self.log.format().id));
        let files = std::iter::once(path).chain(&others);
        files.map(|file| file.to_string_lossy().into_owned()).collect()
    }

    /// Returns the summary of the log. The keys are the names of the fields of `Info` in Python.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        // The first call of `info` may scan the log, so it is made without holding the GIL.
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
        // The clock of this log is UTC, so the offset is zero although no rule determined it.
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

    /// Returns the fields of a topic. Each row consists of the name of the field, its type, its
    /// type as written in the log, its unit, and its nested fields.
    fn fields<'py>(&self, py: Python<'py>, topic: usize) -> PyResult<Bound<'py, PyList>> {
        match &self.topic(py, topic)?.schema {
            Some(schema) => fields(py, schema),
            None => Ok(PyList::empty(py)),
        }
    }

    /// Returns the names of the derived fields of a topic, such as `q.roll`.
    fn derived(&self, py: Python<'_>, topic: usize) -> PyResult<Vec<String>> {
        let topic = self.topic(py, topic)?;
        self.run(py, || derived_fields(&**self.log, topic))
    }

    /// Resolves the pattern, derived field or expression `text` for a topic. See [`resolve`].
    fn resolve(&self, py: Python<'_>, topic: usize, text: &str) -> PyResult<Option<FieldsAndSignals>> {
        resolve(self, py, self.topic(py, topic)?, text)
    }

    /// Returns the definition of a topic's type, in the form in which it is stored in the log.
    fn definition(&self, py: Python<'_>, topic: usize) -> PyResult<Option<String>> {
        let topic = self.topic(py, topic)?;
        self.run(py, || Ok(self.log.own(topic)?.definition()))
    }

    /// Returns the diagnostics of the log. Each row consists of the code, the name, the severity,
    /// the byte range, the message and the meaning of the code.
    #[expect(clippy::type_complexity, reason = "a row of a table")]
    fn problems(&self, py: Python<'_>) -> PyResult<Vec<(&str, &str, &str, u64, u64, Cow<'_, str>, &str)>> {
        let log = self.whole_log(py)?;
        let rows = self.run(py, || Ok(log.diagnostics().list()))?.iter().map(|found| {
            let (rule, range, message) = (found.rule, &found.range, in_python(&found.message));
            (rule.code, rule.name, rule.severity.name(), range.start, range.end, message, rule.meaning)
        });
        Ok(rows.collect())
    }

    /// Returns statistics about the record times of each topic that has times. The keys are the
    /// names of the fields of `TopicHealth` in Python.
    fn health<'py>(&self, py: Python<'py>, window: Window) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let select = window.limit(Select::all());
        let log = self.log_for(py, &select)?;
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

    /// Returns the console messages. Returns `None` if the log format has no console messages.
    ///
    /// Each row consists of the time, the level, the name of the level, the source, the text and
    /// the offset.
    #[expect(clippy::type_complexity, reason = "a row of a table")]
    fn texts(
        &self,
        py: Python<'_>,
    ) -> PyResult<Option<Vec<(Option<i64>, u8, &'static str, Option<String>, String, u64)>>> {
        let log = self.whole_log(py)?;
        self.run(py, || {
            let Some(texts) = log.texts() else { return Ok(None) };
            let texts = texts.map(|text| {
                let (time, level) = (text.time.map(|time| time.nanos), text.level_name());
                (time, text.level, level, text.source, text.text, text.offset)
            });
            Ok(Some(texts.collect()))
        })
    }

    /// Decodes a part of a topic into memory.
    fn table(&self, py: Python<'_>, topic: usize, part: TopicPart) -> PyResult<Table> {
        let known = self.topic(py, topic)?;
        let PartReads { projection, select, signals } = self.part(py, known, part)?;
        // The size of a topic is unknown if the log is a bag that was opened by its index. Such a
        // topic may be large.
        let in_background = known.bytes > BACKGROUND_BYTES || !known.bytes_known;
        let log = self.log_for(py, &select)?;
        let id = topic_in(py, &log, known)?;
        let work = move || {
            let (topic, format) = (&log.topics()[id.index()], log.format().id);
            let mut signal_columns = stream::signal_columns(&log, id, &select, &signals)?;
            let read = Extended::reads(&signals, &select);
            // The ULog reader can return all rows as one batch. All other readers return several
            // batches, which are concatenated.
            let mut batch = match ulog::table(&log, topic, &read)? {
                Some(batch) => batch,
                None => table::concat(format, log.own(topic)?.columns(&read)?)?,
            };
            if let Some(signal_columns) = &mut signal_columns {
                batch = signal_columns.extend(&batch).map_err(from_export(format))?;
            }
            projection.with_signals(signal_columns.as_ref()).apply(&batch).map_err(from_arrow(format))
        };
        let batch = if in_background {
            let outcome = self.origin.checked(py, || errors::run_in_background(py, work))?;
            let batch = outcome.map_err(|error: Error| self.raise(py, &error))?;
            self.report(py)?;
            batch
        } else {
            self.run(py, work)?
        };
        py.check_signals()?;
        Ok(Table { batch })
    }

    /// Returns an iterator over the batches of a part of a topic.
    fn batches(&self, py: Python<'_>, topic: usize, part: TopicPart) -> PyResult<Batches> {
        Ok(Batches::new(self, self.topic_stream(py, topic, part)?))
    }

    /// Returns a new Arrow stream over a part of a topic, as a Python capsule.
    ///
    /// If the requested schema contains only some of the columns, only these columns are decoded.
    #[pyo3(signature = (topic, part, requested_schema=None))]
    fn stream<'py>(
        &self,
        py: Python<'py>,
        topic: usize,
        part: TopicPart,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let mut batches = self.topic_stream(py, topic, part.clone())?;
        // If the loss has already been reported as a Python warning, the stream need not fail.
        batches.fails_on_loss = !self.origin.is_loss_reported();
        // If Python selected the fields explicitly, the stream decodes all of them.
        let TopicPart(None, window, _) = part else {
            return stream::capsule(py, Box::new(batches), requested_schema);
        };
        let Some(names) = stream::requested_subset(&batches.schema(), requested_schema.as_ref())? else {
            return stream::capsule(py, Box::new(batches), requested_schema);
        };
        // The columns with times are always decoded, and do not count as fields. They are the only
        // columns of a topic without fields.
        let times = self.topic_stream(py, topic, TopicPart(Some(Vec::new()), window, Vec::new()))?.schema();
        let fields = names.iter().filter(|name| times.column_with_name(name).is_none()).cloned().collect();
        let mut decoded = self.topic_stream(py, topic, TopicPart(Some(fields), window, Vec::new()))?;
        decoded.fails_on_loss = !self.origin.is_loss_reported();
        let projected = stream::ColumnSubset::new(decoded, &names)
            .map_err(|error| self.raise(py, &from_arrow(self.log.format().id)(error)))?;
        stream::capsule(py, Box::new(projected), requested_schema)
    }

    /// Returns the schema of the Arrow stream over a part of a topic, as a Python capsule.
    fn schema<'py>(&self, py: Python<'py>, topic: usize, part: TopicPart) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = self.topic_stream(py, topic, part)?;
        let schema = batches.schema();
        Ok(to_schema_pycapsule(py, schema.as_ref())?)
    }

    /// Returns an iterator over the records in time order.
    ///
    /// If `latched` is true, the last record of each topic before the window is also returned. If
    /// `raw` is true, the records are returned as undecoded payloads.
    #[pyo3(signature = (topics, window, *, latched=false, raw=false))]
    fn messages(
        &self,
        py: Python<'_>,
        topics: Option<Vec<String>>,
        window: Window,
        latched: bool,
        raw: bool,
    ) -> PyResult<Messages> {
        let mut select = window.limit(Select::all());
        select.topics = topics.map(Names::from_iter);
        select.last_before = latched;
        Messages::new(py, self, &select, raw, false)
    }

    /// Reads the whole log and compares it with its index. Returns a description of the lost data,
    /// or `None` if no data was lost.
    fn verify(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let log = self.whole_log(py)?;
        self.origin.run(py, || {
            let lost = log.verify();
            Ok((!lost.is_empty()).then(|| lost.to_string()))
        })
    }

    /// Reads the whole log and compares it with its index. Issues a Python warning if data was
    /// lost.
    fn compare(&self, py: Python<'_>) -> PyResult<()> {
        self.verify(py)?;
        self.report(py)
    }

    /// Writes every intact record to a new log. The keys are the names of the fields of `Recovered`
    /// in Python.
    fn recover<'py>(&self, py: Python<'py>, out: PathBuf, drop_stale: bool) -> PyResult<Bound<'py, PyDict>> {
        let options = RecoverOptions::default();
        let options = if drop_stale { options.dropping_stale() } else { options };
        let log = self.whole_log(py)?;
        let found = self.write_new_log(py, &out, |file| log.recover(file, &options))?;
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

    /// Copies a part of the log to a new log. The keys are the names of the fields of `Sliced` in
    /// Python.
    fn slice<'py>(
        &self,
        py: Python<'py>,
        out: PathBuf,
        topics: Option<Vec<String>>,
        window: Window,
    ) -> PyResult<Bound<'py, PyDict>> {
        let mut select = window.limit(Select::all()).with_latched();
        select.topics = topics.map(Names::from_iter);
        let log = self.log_for(py, &select)?;
        let sliced = self.write_new_log(py, &out, |file| log.slice(&select, file))?;
        let dict = PyDict::new(py);
        dict.set_item("records", sliced.records)?;
        dict.set_item("others", sliced.others)?;
        dict.set_item("topics", sliced.topics)?;
        dict.set_item("bytes", sliced.bytes)?;
        Ok(dict)
    }
}

/// Returns the rows for the Python method [`Reader::fields`]. Nested fields become nested lists.
fn fields<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyList>> {
    let rows = schema.fields.iter().map(|field| {
        let inner = field.ty.nested().map(|schema| fields(py, schema)).transpose()?;
        Ok((&*field.name, field.ty.to_string(), &field.source_type, &field.unit, inner))
    });
    let rows: PyResult<Vec<_>> = rows.collect();
    PyList::new(py, rows?)
}
