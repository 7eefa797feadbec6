//! Iterator over the messages of a bag, for the drop-in replacement of the Python package rosbag.

use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple, PyType};
use rovelog::core::LogReader as _;
use rovelog::{AnyLog, Select, Value};

use crate::compat::maker::Maker;
use crate::compat::stamp::TimeClasses;
use crate::errors;
use crate::origin::Origin;
use crate::reader::{Reader, Window};
use crate::records::Messages;
use crate::rosbag::bag;

const NANOS: i64 = 1_000_000_000;

/// Values that all messages of a connection have in common. The names are keys of `BagConnection`
/// in Python.
#[derive(FromPyObject)]
pub(crate) struct Connection {
    /// Name of the topic.
    #[pyo3(item)]
    topic: Py<PyString>,
    /// Name of the message type. It is returned with undecoded messages.
    #[pyo3(item)]
    kind: Py<PyString>,
    /// MD5 sum of the message type. It is returned with undecoded messages.
    #[pyo3(item)]
    md5: Py<PyString>,
    /// Deserializer for the messages of the connection.
    #[pyo3(item)]
    maker: Maker,
    /// Python class for messages that cannot be decoded with their definition.
    #[pyo3(item)]
    undecoded: Py<PyType>,
    /// Connection header. If it is not `None`, it is returned with each message.
    #[pyo3(item)]
    header: Option<Py<PyAny>>,
}

/// Iterator over messages in the form that `Bag.read_messages` of rosbag returns them: topic,
/// message, and time.
#[pyclass(module = "rovelog._core")]
pub(crate) struct BagMessages {
    log: Arc<AnyLog>,
    messages: Messages,
    /// Connection of each topic. `None` for a topic that is not read.
    connections: Vec<Option<Connection>>,
    /// Python class of the returned named tuples.
    given: Py<PyType>,
    /// The function `tuple.__new__`. It creates the named tuples faster than their own `__new__`,
    /// which is written in Python.
    tuple_new: Py<PyAny>,
    /// True if messages are returned as undecoded payloads.
    raw: bool,
    stamps: TimeClasses,
    origin: Origin,
}

#[pymethods]
impl BagMessages {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (found, connection) = loop {
            let Some(found) = self.messages.next_record(py)? else { return Ok(None) };
            if let Some(connection) = &mut self.connections[found.topic] {
                break (found, connection);
            }
        };
        // The iterator over records was created with `raw`, because the deserializer needs the
        // bytes.
        let (AnyLog::Rosbag(bag), Value::Bytes(payload)) = (&*self.log, &found.value) else {
            unreachable!("raw messages of a bag were asked for")
        };
        let message = if self.raw {
            let payload = PyBytes::new(py, payload);
            (&connection.kind, payload, &connection.md5, found.offset, connection.maker.class())
                .into_pyobject(py)?
                .into_any()
        } else {
            match bag.layout(&bag.topics()[found.topic], payload) {
                Ok(Some(plan)) => connection.maker.make(py, &self.stamps, plan, payload)?,
                Ok(None) => {
                    let message = connection.undecoded.bind(py).call0()?;
                    message.setattr(intern!(py, "raw"), PyBytes::new(py, payload))?;
                    message
                }
                Err(error) => return Err(errors::raise(py, &error.into(), self.origin.path())),
            }
        };
        let nanos = found.t_ns.unwrap_or(0);
        let time = self.stamps.time(py, nanos.div_euclid(NANOS), nanos.rem_euclid(NANOS))?;
        let given = match &connection.header {
            None => (&connection.topic, message, time).into_pyobject(py)?,
            Some(header) => (&connection.topic, message, time, header).into_pyobject(py)?,
        };
        self.tuple_new.bind(py).call1((&self.given, given)).map(Some)
    }
}

/// Returns an iterator over the messages of some connections, in time order.
///
/// - `connections`: for each topic, the values of its connection; `None` for a topic that is not
///   read
/// - `raw`: true if messages are returned as undecoded payloads
/// - `given`: class of the returned named tuples
/// - `time_classes`: classes for times and durations; `None` selects the classes of this package
#[pyfunction]
#[pyo3(signature = (reader, connections, window, *, raw, given, time_classes))]
pub(crate) fn bag_messages(
    py: Python<'_>,
    reader: &Reader,
    connections: Vec<Option<Connection>>,
    window: Window,
    raw: bool,
    given: Py<PyType>,
    time_classes: Option<(Py<PyType>, Py<PyType>)>,
) -> PyResult<BagMessages> {
    bag(py, reader)?;
    let mut select = window.limit(Select::all());
    let log = Arc::clone(reader.whole_log(py)?);
    let both = log.topics().iter().zip(&connections);
    select.topics =
        Some(both.filter(|(_, read)| read.is_some()).map(|(topic, _)| topic.name.clone()).collect());
    let messages = Messages::new(py, reader, &select, true)?;
    let tuple_new = py.get_type::<PyTuple>().getattr(intern!(py, "__new__"))?.unbind();
    let origin = reader.origin.clone();
    Ok(BagMessages {
        log,
        messages,
        connections,
        given,
        tuple_new,
        raw,
        stamps: TimeClasses(time_classes),
        origin,
    })
}
