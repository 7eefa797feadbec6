//! An open log: what it says about itself, its topics, and the ways into its data.

use std::fs::OpenOptions;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use arrow_select::concat::concat_batches;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyCapsule, PyDict, PyList};
use pyo3_arrow::ffi::to_schema_pycapsule;
use rovelog::{
    AnyLog, Bytes, Error, RecoverOptions, Recovery, Result, Schema, Select, Sliced, Timestamp, Topic,
};

use crate::errors::{self, Raise, columns};
use crate::records::Messages;
use crate::select::Shape;
use crate::stream::{self, TopicStream};
use crate::table::{Batches, Table};
use crate::ulog;
use crate::values::to_python;
use crate::vel;

/// The formats that are built in: id, name, what it is.
#[pyfunction]
pub(crate) fn formats() -> Vec<(&'static str, &'static str, &'static str)> {
    rovelog::FORMATS.iter().map(|format| (format.id, format.name, format.about)).collect()
}

/// An open log.
#[pyclass(frozen, module = "rovelog._core")]
pub(crate) struct Reader {
    pub(crate) log: Arc<AnyLog>,
    pub(crate) path: Option<String>,
    /// The bytes, where they were given and not read from the path.
    pub(crate) memory: Option<Bytes>,
}

/// What part of a topic is wanted: fields or parts of them, and a time window of the log's clock.
#[derive(Clone, Debug, FromPyObject)]
struct Part(Option<Vec<String>>, Option<i64>, Option<i64>);

impl Reader {
    fn topic(&self, py: Python<'_>, index: usize) -> PyResult<&Topic> {
        self.log.topics().get(index).ok_or_else(|| Raise::new("RovelogError", "no such topic").raise(py))
    }

    /// The reader of the one format that has what is asked for, or an error that names the log's own.
    pub(crate) fn only<'a, T>(
        &'a self,
        py: Python<'_>,
        what: &str,
        of_format: impl FnOnce(&'a AnyLog) -> Option<&'a T>,
    ) -> PyResult<&'a T> {
        of_format(&self.log).ok_or_else(|| {
            let format = self.log.format();
            let message = format!("this log is no {what}, it is {}", format.name);
            Raise::new("UnsupportedError", message).of(format.id, self.path.as_deref()).raise(py)
        })
    }

    pub(crate) fn raise(&self, py: Python<'_>, error: &Error) -> PyErr {
        errors::raise(py, error, self.path.as_deref())
    }

    /// How columns are shaped whose times are of the clock of `time`, or else of the log's.
    pub(crate) fn shape(&self, paths: Option<Vec<String>>, time: Option<Timestamp>) -> Shape {
        let info = self.log.info();
        let clock = time.or(info.start).map(|time| time.clock);
        let unix = clock.and_then(|clock| Timestamp::new(0, clock).to_unix(info.utc.as_ref()));
        Shape::new(paths, unix.map(|time| time.nanos))
    }

    /// How columns are shaped, and what the format's reader has to decode for that.
    fn part(&self, topic: &Topic, part: Part) -> (Shape, Select) {
        let Part(paths, start, end) = part;
        let shape = self.shape(paths, topic.first);
        let mut select = Select::topic(&topic.name).between(start, end);
        select.fields = shape.fields();
        (shape, select)
    }

    fn topic_stream(&self, py: Python<'_>, topic: usize, part: Part) -> PyResult<TopicStream> {
        let topic = self.topic(py, topic)?;
        let (shape, select) = self.part(topic, part);
        let mean = topic.bytes / topic.count.max(1);
        let log = Arc::clone(&self.log);
        let stream = errors::run(py, || {
            TopicStream::new(log, shape, mean, |log| log.columns(&log.topics()[topic.id.index()], &select))
        })?;
        stream.map_err(|error| self.raise(py, &error))
    }
}

#[pymethods]
impl Reader {
    /// Opens a file; `format` is an id, or none to look at the first bytes. With `alone`, files of the same log that
    /// lie beside it stay closed. `types` is a file that declares message types.
    #[staticmethod]
    #[pyo3(signature = (path, format=None, alone=false, types=None))]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        format: Option<String>,
        alone: bool,
        types: Option<PathBuf>,
    ) -> PyResult<Self> {
        let name = path.to_string_lossy().into_owned();
        let mut options = vel::declaring(py, types)?;
        options.alone = alone;
        let opened = errors::run(py, || match &format {
            None => rovelog::open_with(&path, &options),
            Some(format) => rovelog::open_as(format, &path, &options),
        })?;
        let log = opened.map_err(|error| errors::raise(py, &error, Some(&name)))?;
        Ok(Self { log: Arc::new(log), path: Some(name), memory: None })
    }

    /// Opens a log in memory, without copying it.
    #[staticmethod]
    #[pyo3(signature = (data, format=None, name=None, types=None))]
    fn from_bytes(
        py: Python<'_>,
        data: PyBackedBytes,
        format: Option<String>,
        name: Option<String>,
        types: Option<PathBuf>,
    ) -> PyResult<Self> {
        let (bytes, options) = (Bytes::from_owner(data), vel::declaring(py, types)?);
        let memory = Some(bytes.clone());
        let opened = errors::run(py, || match &format {
            None => rovelog::from_bytes(bytes, &options),
            Some(format) => rovelog::from_bytes_as(format, bytes, &options),
        })?;
        let log = opened.map_err(|error| errors::raise(py, &error, name.as_deref()))?;
        Ok(Self { log: Arc::new(log), path: name, memory })
    }

    #[getter]
    fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// The summary that was made when the log was opened.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (info, format) = (self.log.info(), self.log.format());
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
        let unix = info.start.map(|start| Timestamp::new(0, start.clock));
        dict.set_item("utc_offset_ns", unix.and_then(|zero| zero.to_unix(utc)).map(|time| time.nanos))?;
        dict.set_item("utc_rule", utc.map(|utc| utc.rule))?;
        dict.set_item("utc_evidence", utc.map(|utc| utc.evidence.clone()))?;
        dict.set_item("records", info.records)?;
        dict.set_item("problems", info.problems)?;
        dict.set_item("lost_bytes", info.lost.bytes)?;
        let lost: Vec<(u64, u64)> = info.lost.ranges.iter().map(|range| (range.start, range.end)).collect();
        dict.set_item("lost", lost)?;
        let details = PyDict::new(py);
        for detail in &info.details {
            let fact = (&detail.text, to_python(py, &detail.value)?);
            details.set_item(detail.key, fact)?;
        }
        dict.set_item("details", details)?;
        Ok(dict)
    }

    /// Topics in the order in which the log declares them.
    fn topics<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let nanos = |time: Option<Timestamp>| time.map(|time| time.nanos);
        let topics = self.log.topics().iter().map(|topic| {
            let dict = PyDict::new(py);
            dict.set_item("name", &topic.name)?;
            dict.set_item("type", &topic.type_name)?;
            dict.set_item("count", topic.count)?;
            dict.set_item("bytes", topic.bytes)?;
            dict.set_item("rate_hz", topic.rate_hz())?;
            dict.set_item("first_ns", nanos(topic.first))?;
            dict.set_item("last_ns", nanos(topic.last))?;
            dict.set_item("decodable", topic.schema.is_some())?;
            Ok(dict)
        });
        topics.collect()
    }

    /// The fields of a topic: name, type, the log's own type, unit, and the fields inside.
    fn fields<'py>(&self, py: Python<'py>, topic: usize) -> PyResult<Bound<'py, PyList>> {
        match &self.topic(py, topic)?.schema {
            Some(schema) => fields(py, schema),
            None => Ok(PyList::empty(py)),
        }
    }

    /// The definition of a topic's type as the log holds it.
    fn definition(&self, py: Python<'_>, topic: usize) -> PyResult<Option<String>> {
        Ok(self.log.definition(self.topic(py, topic)?))
    }

    /// What was noticed in the bytes: code, name, severity, start, end, message, meaning.
    fn problems(&self) -> Vec<(&str, &str, &str, u64, u64, &str, &str)> {
        let rows = self.log.diagnostics().list().iter().map(|found| {
            let (rule, range) = (found.rule, &found.range);
            (
                rule.code,
                rule.name,
                rule.severity.name(),
                range.start,
                range.end,
                &*found.message,
                rule.meaning,
            )
        });
        rows.collect()
    }

    /// The console: time, level, level's name, source, text, offset; none where the format has none.
    #[expect(clippy::type_complexity, reason = "a row of a table")]
    fn texts(
        &self,
        py: Python<'_>,
    ) -> PyResult<Option<Vec<(Option<i64>, u8, &'static str, Option<String>, String, u64)>>> {
        errors::run(py, || {
            let texts = self.log.texts()?.map(|text| {
                let (time, level) = (text.time.map(|time| time.nanos), text.level_name());
                (time, text.level, level, text.source, text.text, text.offset)
            });
            Some(texts.collect())
        })
    }

    /// A topic's columns in memory.
    fn table(&self, py: Python<'_>, topic: usize, part: Part) -> PyResult<Table> {
        let topic = self.topic(py, topic)?;
        let (shape, select) = self.part(topic, part);
        let mut pieces = Pieces::default();
        let mut interrupted = None;
        let read = || -> Result<()> {
            if let Some(batch) = ulog::table(&self.log, topic, &select).transpose()? {
                pieces.batches.push(batch);
                return Ok(());
            }
            let mut batches = self.log.columns(topic, &select)?;
            pieces.schema = Some(batches.schema());
            // A look at the signals now and then, not for each of thousands of small batches.
            let mut bytes = 0;
            while let Some(batch) = batches.next().transpose().map_err(columns)? {
                bytes += batch.get_array_memory_size();
                pieces.batches.push(batch);
                if bytes > SIGNAL_BYTES {
                    bytes = 0;
                    interrupted = errors::signal();
                    if interrupted.is_some() {
                        break;
                    }
                }
            }
            Ok(())
        };
        let read = errors::run(py, read)?;
        if let Some(signal) = interrupted {
            return Err(signal);
        }
        py.check_signals()?;
        read.map_err(|error| self.raise(py, &error))?;
        let batch = errors::run(py, || pieces.join().and_then(|batch| shape.apply(&batch)).map_err(columns))?;
        Ok(Table { batch: batch.map_err(|error| self.raise(py, &error))? })
    }

    /// A topic's columns a piece at a time.
    fn batches(&self, py: Python<'_>, topic: usize, part: Part) -> PyResult<Batches> {
        Ok(Batches::new(self.topic_stream(py, topic, part)?, self.path.clone()))
    }

    /// A topic as a stream of batches; a fresh one per call.
    #[pyo3(signature = (topic, part, requested_schema=None))]
    fn stream<'py>(
        &self,
        py: Python<'py>,
        topic: usize,
        part: Part,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = self.topic_stream(py, topic, part)?;
        stream::capsule(py, Box::new(batches), requested_schema)
    }

    /// The schema of a topic's batches.
    fn schema<'py>(&self, py: Python<'py>, topic: usize, part: Part) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = self.topic_stream(py, topic, part)?;
        let schema = arrow_array::RecordBatchReader::schema(&batches);
        Ok(to_schema_pycapsule(py, schema.as_ref())?)
    }

    /// Records in the order of time.
    #[pyo3(signature = (topics, start, end, latched, raw=false))]
    fn messages(
        &self,
        py: Python<'_>,
        topics: Option<Vec<String>>,
        start: Option<i64>,
        end: Option<i64>,
        latched: bool,
        raw: bool,
    ) -> PyResult<Messages> {
        let mut select = Select::all().between(start, end);
        select.topics = topics;
        select.latched = latched;
        Messages::new(py, &self.log, &select, self.path.clone(), raw)
    }

    /// Writes the best sound log that this one still holds to a new file.
    fn recover<'py>(&self, py: Python<'py>, out: PathBuf, drop_stale: bool) -> PyResult<Bound<'py, PyDict>> {
        let options = RecoverOptions::default();
        let options = if drop_stale { options.dropping_stale() } else { options };
        let found: Recovery = written(py, &out, |file| self.log.recover(file, &options))?;
        let dict = PyDict::new(py);
        dict.set_item("records", found.records)?;
        dict.set_item("kept_bytes", found.kept_bytes)?;
        dict.set_item("lost_bytes", found.lost_bytes())?;
        let lost: Vec<(u64, u64)> = found.lost.iter().map(|range| (range.start, range.end)).collect();
        dict.set_item("lost", lost)?;
        dict.set_item("stale_bytes", found.stale_bytes)?;
        dict.set_item("stale_records", found.stale_records)?;
        dict.set_item("unchanged", found.unchanged)?;
        Ok(dict)
    }

    /// Writes a part of the log to a new file.
    fn slice<'py>(
        &self,
        py: Python<'py>,
        out: PathBuf,
        topics: Option<Vec<String>>,
        start: Option<i64>,
        end: Option<i64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let mut select = Select::all().between(start, end);
        select.topics = topics;
        let sliced: Sliced = written(py, &out, |file| self.log.slice(&select, file))?;
        let dict = PyDict::new(py);
        dict.set_item("records", sliced.records)?;
        dict.set_item("others", sliced.others)?;
        dict.set_item("topics", sliced.topics)?;
        dict.set_item("bytes", sliced.bytes)?;
        Ok(dict)
    }
}

/// Bytes of columns between two looks at the signals.
const SIGNAL_BYTES: usize = 64 << 20;

/// Writes a new file; what fails leaves none behind.
fn written<T: Send>(
    py: Python<'_>,
    out: &PathBuf,
    write: impl FnOnce(&mut dyn std::io::Write) -> Result<T> + Send,
) -> PyResult<T> {
    let io = |error| Error::io("rovelog", error);
    let outcome = errors::run(py, || -> Result<T> {
        let file = OpenOptions::new().write(true).create_new(true).open(out).map_err(io)?;
        let mut file = BufWriter::with_capacity(1 << 20, file);
        let done = write(&mut file).and_then(|done| file.flush().map_err(io).map(|()| done));
        if done.is_err() {
            // The error that is reported is the one of the writing.
            let _ = std::fs::remove_file(out);
        }
        done
    })?;
    outcome.map_err(|error| errors::raise(py, &error, Some(&out.to_string_lossy())))
}

/// Batches to be joined.
#[derive(Default)]
pub(crate) struct Pieces {
    pub(crate) schema: Option<arrow_schema::SchemaRef>,
    pub(crate) batches: Vec<RecordBatch>,
}

impl Pieces {
    pub(crate) fn join(mut self) -> std::result::Result<RecordBatch, ArrowError> {
        match (self.batches.len(), self.schema) {
            (1, _) => Ok(self.batches.remove(0)),
            (_, Some(schema)) => concat_batches(&schema, &self.batches),
            (_, None) => Err(ArrowError::InvalidArgumentError("no batches".to_owned())),
        }
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
