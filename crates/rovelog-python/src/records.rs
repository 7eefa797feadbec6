//! Iterator over records in time order.
//!
//! A decoder thread decodes blocks of up to 256 records and puts them into a queue. The Python
//! thread returns the records of the current block one by one. It takes the next block from the
//! queue only when the current block is empty. So the decoder works while Python processes records,
//! and the GIL is released once for each block instead of once for each record.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, TryLockError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use rovelog::core::internal::parallel::lock;
use rovelog::rosbag12::Publisher;
use rovelog::{AnyLog, Records, Select, Value};
use self_cell::self_cell;

use crate::errors;
use crate::origin::Origin;
use crate::reader::Reader;
use crate::select::{Step, steps};
use crate::values::{from_python, to_python};

/// Maximum number of records in a block (`Piece`).
const MAX_PIECE_RECORDS: usize = 256;
/// Maximum number of blocks in the queue. Two more blocks exist: Python reads one of them, and the
/// decoder fills the other.
const QUEUED_PIECES: usize = 2;
/// Size in bytes of the records after which a block ends. It limits the memory for logs with large
/// records.
const MAX_PIECE_BYTES: usize = 1 << 20;

self_cell!(
    struct Cell {
        owner: Arc<AnyLog>,
        #[not_covariant]
        dependent: Records,
    }
);

/// A decoded record.
pub(crate) struct DecodedRecord {
    /// Index of the record's topic.
    pub(crate) topic: usize,
    /// Time of the record in nanoseconds on the log's clock. `None` if the record has no time.
    pub(crate) t_ns: Option<i64>,
    /// Offset in the file of the record's first byte.
    pub(crate) offset: u64,
    /// Index of the record among the records of its topic, in file order.
    seq: u64,
    pub(crate) value: Value,
    /// Publisher of a message in a bag. `None` if publishers were not requested.
    pub(crate) publisher: Option<Publisher>,
}

/// Decoder of records, which runs on a separate thread.
struct Decoder {
    cell: Cell,
    /// True if the records are returned as undecoded payloads.
    raw: bool,
    /// True if the records of a bag are returned with their publishers.
    with_publisher: bool,
}

/// A block of consecutive records. An empty block means that there are no more records.
type Piece = VecDeque<rovelog::Result<DecodedRecord>>;

impl Decoder {
    /// Decodes blocks until there are no more records. Stops early if the receiver has been
    /// dropped.
    fn run(mut self, pieces: &SyncSender<Piece>) {
        loop {
            let piece = self.decode_piece();
            let ended = piece.is_empty();
            if pieces.send(piece).is_err() || ended {
                return;
            }
        }
    }

    /// Decodes the next block of records.
    fn decode_piece(&mut self) -> Piece {
        let (mut piece, mut bytes) = (Piece::new(), 0);
        let Self { raw, with_publisher, .. } = *self;
        while piece.len() < MAX_PIECE_RECORDS && bytes < MAX_PIECE_BYTES {
            let decoded = self.cell.with_dependent_mut(|log, records| {
                let record = match records.next()? {
                    Ok(record) => record,
                    Err(error) => return Some(Err(error)),
                };
                bytes += record.payload.len();
                let value = if raw { Ok(Value::Bytes(record.payload.to_vec())) } else { record.value() };
                let publisher = match &**log {
                    AnyLog::Rosbag(bag) if with_publisher => Some(bag.publisher(&record)),
                    _ => None,
                };
                let (topic, t_ns) = (record.topic.id.index(), record.time.map(|time| time.nanos));
                let (offset, seq) = (record.offset, record.seq);
                Some(value.map(|value| DecodedRecord { topic, t_ns, offset, seq, value, publisher }))
            });
            let Some(decoded) = decoded else { break };
            piece.push_back(decoded);
        }
        piece
    }
}

/// State of an iterator over records.
struct ReadState {
    /// The current block, without the records that have already been returned.
    ready: Piece,
    /// The decoder, until its thread is started. The first read starts the thread, so that an
    /// iterator that is never read costs nothing.
    decoder: Option<Decoder>,
    /// Queue of decoded blocks. It exists from the first read until there are no more records.
    pieces: Option<Receiver<Piece>>,
}

impl ReadState {
    /// Waits for the next block of records. The block is empty if there are no more records.
    fn wait(&mut self) {
        if let Some(decoder) = self.decoder.take() {
            // The queue has a limited length. If Python is slower than the decoder, the decoder
            // waits, so that memory is limited.
            let (send, receive) = mpsc::sync_channel(QUEUED_PIECES);
            std::thread::spawn(move || decoder.run(&send));
            self.pieces = Some(receive);
        }
        if let Some(pieces) = &self.pieces {
            // The decoder sends an empty block before it ends. If it ended without doing so, it has
            // panicked.
            self.ready = pieces.recv().expect("the decoder has panicked");
            if self.ready.is_empty() {
                self.pieces = None;
            }
        }
    }
}

/// Iterator over records, ordered by time. Records with equal times are ordered by offset.
#[pyclass(frozen, module = "rovelog._core")]
pub(crate) struct Messages {
    state: Mutex<ReadState>,
    /// Names of the topics as Python strings. They are created once and not for each record.
    names: Vec<Py<PyString>>,
    origin: Origin,
    log: Arc<AnyLog>,
}

impl Messages {
    /// Returns an iterator over the selected records.
    ///
    /// - `raw`: true if payloads are not decoded
    /// - `with_publisher`: true if messages of a bag are returned with their publishers
    pub(crate) fn new(
        py: Python<'_>,
        reader: &Reader,
        select: &Select,
        raw: bool,
        with_publisher: bool,
    ) -> PyResult<Self> {
        let log = reader.log_for(py, select)?;
        let names = log.topics().iter().map(|topic| PyString::new(py, &topic.name).unbind()).collect();
        let cell = reader.run(py, || Ok(Cell::new(Arc::clone(&log), |log| log.intact_records(select))))?;
        let decoder = Some(Decoder { cell, raw, with_publisher });
        let state = ReadState { ready: Piece::new(), decoder, pieces: None };
        Ok(Self { state: Mutex::new(state), names, origin: reader.origin.clone(), log })
    }

    /// Returns the next record. Returns `None` if there are no more records.
    pub(crate) fn next_record(&self, py: Python<'_>) -> PyResult<Option<DecodedRecord>> {
        // In most calls, the current block contains a record, which is returned without releasing
        // the GIL. If another thread holds the lock, it may be waiting for a block. Waiting for
        // this lock while holding the GIL would block all Python threads.
        let ready = match self.state.try_lock() {
            Ok(mut state) => state.ready.pop_front(),
            Err(TryLockError::Poisoned(state)) => state.into_inner().ready.pop_front(),
            Err(TryLockError::WouldBlock) => None,
        };
        let decoded = if ready.is_some() {
            ready
        } else {
            py.check_signals()?;
            // `run` checks that the file has not been truncated. This check covers all records of
            // the new block, because they have been decoded by then.
            self.origin.run(py, || {
                let mut state = lock(&self.state);
                if state.ready.is_empty() {
                    state.wait();
                }
                Ok(state.ready.pop_front())
            })?
        };
        // All records have been read. If some data could not be read, this has therefore been found
        // out.
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
        Ok(self.next_record(py)?.map(|decoded| {
            let topic = self.names[decoded.topic].clone_ref(py);
            let DecodedRecord { t_ns, offset, seq, value, .. } = decoded;
            Message { topic, t_ns, offset, seq, value }
        }))
    }
}

/// A record of a log.
///
/// Fields are `m["q"]`, `m["q[0]"]` or `m["pos.x"]`. An unknown field raises `FieldNotFound`, which
/// is a `KeyError`.
#[pyclass(frozen, module = "rovelog._core")]
pub(crate) struct Message {
    /// Name of the topic.
    #[pyo3(get)]
    topic: Py<PyString>,
    /// Time in ns on the log clock; None if the record has no time.
    #[pyo3(get)]
    t_ns: Option<i64>,
    /// Offset of the first byte in the file.
    #[pyo3(get)]
    offset: u64,
    /// Number of the record within its topic, in file order from 0.
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
        let field_not_found =
            py.import(intern!(py, "rovelog._suggest"))?.getattr(intern!(py, "field_not_found"))?;
        Err(PyErr::from_value(field_not_found.call1((&self.topic, name, self.keys()))?))
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

    /// Always true. Without this method, Python would call `__len__`, and a record without fields
    /// would be false.
    #[expect(clippy::unused_self, reason = "Python prescribes the signature")]
    fn __bool__(&self) -> bool {
        true
    }

    fn _ipython_key_completions_(&self) -> Vec<String> {
        self.keys()
    }

    /// Pickles the values of the record. The log is not needed to unpickle them.
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

/// Creates a record from its values. Python calls this function to unpickle or copy a record.
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

/// Returns the value at a path such as `pos.x` or `q[0]`. Returns `None` if the path does not
/// exist.
fn find<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    steps(path).try_fold(value, |value, step| match (step?, value) {
        (Step::Field(name), value) => value.get(name),
        (Step::Element(element), Value::List(items)) => items.get(element),
        (Step::Element(_), _) => None,
    })
}
