//! Messages of a bag in the form of the rosbag package.

use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple, PyType};
use rovelog::core::LogReader as _;
use rovelog::{AnyLog, Select, Value};

use crate::compat::maker::Maker;
use crate::compat::stamp::Stamps;
use crate::errors;
use crate::origin::Origin;
use crate::reader::{Reader, Window};
use crate::records::Messages;
use crate::rosbag::bag;

const NANOS: i64 = 1_000_000_000;

/// Constant values for the messages of a connection.
#[derive(FromPyObject)]
pub(crate) struct Connection {
    #[pyo3(item)]
    topic: Py<PyString>,
    /// Type and MD5 sum, as raw messages have them.
    #[pyo3(item)]
    kind: Py<PyString>,
    #[pyo3(item)]
    md5: Py<PyString>,
    #[pyo3(item)]
    maker: Maker,
    /// Class of messages that no definition decodes.
    #[pyo3(item)]
    undecoded: Py<PyType>,
    /// Connection header that is returned with topic, message and time.
    #[pyo3(item)]
    header: Option<Py<PyAny>>,
}

/// Messages in the form of `read_messages`.
#[pyclass(module = "rovelog._core")]
pub(crate) struct BagMessages {
    log: Arc<AnyLog>,
    messages: Messages,
    /// By topic; `None` for topics that are not read.
    connections: Vec<Option<Connection>>,
    /// Class of the returned tuples.
    given: Py<PyType>,
    tuple_new: Py<PyAny>,
    raw: bool,
    stamps: Stamps,
    origin: Origin,
}

#[pymethods]
impl BagMessages {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (found, connection) = loop {
            let Some(found) = self.messages.take(py)? else { return Ok(None) };
            if let Some(connection) = &mut self.connections[found.topic] {
                break (found, connection);
            }
        };
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

/// Returns the messages of some connections in time order; `connections` is parallel to the topics.
///
/// `time_classes` are those of times and durations, if they are not ours.
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
    let mut select = window.of(Select::all());
    let log = Arc::clone(reader.all(py)?);
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
        stamps: Stamps(time_classes),
        origin,
    })
}
