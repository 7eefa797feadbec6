//! Records in time order, decoded in pieces ahead of the reading thread.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use rovelog::{AnyLog, Records, Select, Value};
use self_cell::self_cell;

use crate::errors;
use crate::origin::Origin;
use crate::reader::Reader;
use crate::select::{Step, steps};
use crate::values::{from_python, to_python};

/// Number of records that are decoded at once, without the GIL.
const PIECE: usize = 256;
/// Number of decoded pieces in the queue, in addition to the ones being read and decoded.
const AHEAD: usize = 2;
/// Bytes of records after which a piece ends.
const PIECE_BYTES: usize = 1 << 20;

self_cell!(
    struct Cell {
        owner: Arc<AnyLog>,
        #[not_covariant]
        dependent: Records,
    }
);

/// A record after decoding.
pub(crate) struct Decoded {
    pub(crate) topic: usize,
    pub(crate) t_ns: Option<i64>,
    pub(crate) offset: u64,
    seq: u64,
    pub(crate) value: Value,
}

/// Decoder on a separate thread.
struct Decoder {
    cell: Cell,
    /// True if payloads are passed on undecoded.
    raw: bool,
}

type Piece = VecDeque<rovelog::Result<Decoded>>;

impl Decoder {
    /// Decodes piece by piece until the records end (with an empty piece), or the receiver is
    /// dropped.
    fn run(mut self, pieces: &SyncSender<Piece>) {
        loop {
            let piece = self.piece();
            let ended = piece.is_empty();
            if pieces.send(piece).is_err() || ended {
                return;
            }
        }
    }

    fn piece(&mut self) -> Piece {
        let (mut piece, mut bytes) = (Piece::new(), 0);
        let raw = self.raw;
        while piece.len() < PIECE && bytes < PIECE_BYTES {
            let decoded = self.cell.with_dependent_mut(|_, records| {
                let record = match records.next()? {
                    Ok(record) => record,
                    Err(error) => return Some(Err(error)),
                };
                bytes += record.payload.len();
                let value = if raw { Ok(Value::Bytes(record.payload.to_vec())) } else { record.value() };
                Some(value.map(|value| Decoded {
                    topic: record.topic.id.index(),
                    t_ns: record.time.map(|time| time.nanos),
                    offset: record.offset,
                    seq: record.seq,
                    value,
                }))
            });
            let Some(decoded) = decoded else { break };
            piece.push_back(decoded);
        }
        piece
    }
}

struct Reading {
    ready: Piece,
    /// Present until the first read.
    decoder: Option<Decoder>,
    /// Present from the first read until the records end.
    pieces: Option<Receiver<Piece>>,
}

impl Reading {
    /// Waits for the next piece; it is empty at the end.
    fn wait(&mut self) {
        if let Some(decoder) = self.decoder.take() {
            let (send, receive) = mpsc::sync_channel(AHEAD);
            std::thread::spawn(move || decoder.run(&send));
            self.pieces = Some(receive);
        }
        if let Some(pieces) = &self.pieces {
            // A decoder that does not send the end has panicked.
            self.ready = pieces.recv().expect("the decoder has panicked");
            if self.ready.is_empty() {
                self.pieces = None;
            }
        }
    }
}

/// Records in the order of (time, position in the file).
#[pyclass(frozen, module = "rovelog._core")]
pub(crate) struct Messages {
    reading: Mutex<Reading>,
    names: Vec<Py<PyString>>,
    origin: Origin,
    log: Arc<AnyLog>,
}

impl Messages {
    /// Returns the records of `select`; with `raw`, their undecoded payloads.
    pub(crate) fn new(py: Python<'_>, reader: &Reader, select: &Select, raw: bool) -> PyResult<Self> {
        let log = reader.with(py, select)?;
        let names = log.topics().iter().map(|topic| PyString::new(py, &topic.name).unbind()).collect();
        let cell = reader.run(py, || Ok(Cell::new(Arc::clone(&log), |log| log.intact_records(select))))?;
        let reading = Reading { ready: Piece::new(), decoder: Some(Decoder { cell, raw }), pieces: None };
        Ok(Self { reading: Mutex::new(reading), names, origin: reader.origin.clone(), log })
    }

    /// Returns the next record.
    pub(crate) fn take(&self, py: Python<'_>) -> PyResult<Option<Decoded>> {
        // Only a ready piece is taken while holding the GIL; a thread that waits must not hold it.
        let ready = match self.reading.try_lock() {
            Ok(mut reading) => reading.ready.pop_front(),
            Err(TryLockError::Poisoned(reading)) => reading.into_inner().ready.pop_front(),
            Err(TryLockError::WouldBlock) => None,
        };
        let decoded = if ready.is_some() {
            ready
        } else {
            py.check_signals()?;
            // Records of a piece that are returned later were checked with it.
            self.origin.run(py, || {
                let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
                if reading.ready.is_empty() {
                    reading.wait();
                }
                Ok(reading.ready.pop_front())
            })?
        };
        if decoded.is_none() {
            self.origin.report(py, &self.log)?;
        }
        decoded.transpose().map_err(|error| errors::raise(py, &error, self.origin.path()))
    }
}

#[pymethods]
impl Messages {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Message>> {
        Ok(self.take(py)?.map(|decoded| {
            let topic = self.names[decoded.topic].clone_ref(py);
            let Decoded { t_ns, offset, seq, value, .. } = decoded;
            Message { topic, t_ns, offset, seq, value }
        }))
    }
}

/// One record: `m["q"]`, `m["q[0]"]`, `m["pos.x"]` are fields, `FieldNotFound`, a `KeyError`, where
/// there is no such field.
#[pyclass(frozen, module = "rovelog._core")]
pub(crate) struct Message {
    /// The name of its topic.
    #[pyo3(get)]
    topic: Py<PyString>,
    /// When, int ns of the log's clock; None where it carries no time.
    #[pyo3(get)]
    t_ns: Option<i64>,
    /// First byte in the file.
    #[pyo3(get)]
    offset: u64,
    /// Number within the topic, in file order from 0.
    #[pyo3(get)]
    seq: u64,
    value: Value,
}

#[pymethods]
impl Message {
    /// Returns all fields as a dict: name -> int, float, str, bytes, list or dict.
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.value)
    }

    /// Returns the names of the fields.
    fn keys(&self) -> Vec<String> {
        match &self.value {
            Value::Struct(fields) => fields.iter().map(|(name, _)| name.to_string()).collect(),
            _ => Vec::new(),
        }
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        if let Some(value) = find(&self.value, name) {
            return to_python(py, value);
        }
        let no_field = py.import(intern!(py, "rovelog._near"))?.getattr(intern!(py, "no_field"))?;
        Err(PyErr::from_value(no_field.call1((&self.topic, name, self.keys()))?))
    }

    /// Returns a field, or `default` if there is no such field.
    #[pyo3(signature = (name, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match find(&self.value, name) {
            Some(value) => to_python(py, value),
            None => Ok(default.unwrap_or_else(|| py.None().into_bound(py))),
        }
    }

    fn __contains__(&self, name: &str) -> bool {
        find(&self.value, name).is_some()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.keys().into_pyobject(py)?.call_method0(intern!(py, "__iter__"))
    }

    fn __len__(&self) -> usize {
        match &self.value {
            Value::Struct(fields) => fields.len(),
            _ => 0,
        }
    }

    /// A record is there, with or without fields.
    #[expect(clippy::unused_self, reason = "Python's method")]
    fn __bool__(&self) -> bool {
        true
    }

    fn _ipython_key_completions_(&self) -> Vec<String> {
        self.keys()
    }

    /// A copy has the values, and needs no file.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let restore = py.import(intern!(py, "rovelog._core"))?.getattr(intern!(py, "_message"))?;
        let state = (&self.topic, self.t_ns, self.offset, self.seq, to_python(py, &self.value)?);
        Ok((restore, state.into_pyobject(py)?.into_any()))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let fields = to_python(py, &self.value)?.cast_into::<PyDict>();
        let fields =
            fields.map_or_else(|_| Ok(String::new()), |fields| fields.repr().map(|r| r.to_string()))?;
        let time = self.t_ns.map_or_else(|| "None".to_owned(), |t_ns| t_ns.to_string());
        Ok(format!("<{} t_ns={time} {fields}>", self.topic.to_str(py)?))
    }
}

/// Returns a record of its parts, for copies.
#[pyfunction]
pub(crate) fn _message(
    topic: Py<PyString>,
    t_ns: Option<i64>,
    offset: u64,
    seq: u64,
    value: &Bound<'_, PyAny>,
) -> PyResult<Message> {
    Ok(Message { topic, t_ns, offset, seq, value: from_python(value)? })
}

/// Returns the value at `pos.x`, `q[0]`.
fn find<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    steps(path).try_fold(value, |value, step| match (step?, value) {
        (Step::Field(name), value) => value.get(name),
        (Step::Element(element), Value::List(items)) => items.get(element),
        (Step::Element(_), _) => None,
    })
}
