//! What only a ROS bag has: its connections, and messages as the drop-in for rosbag gives them.

use std::collections::BTreeMap;
use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple, PyType};
use rovelog::core::LogReader as _;
use rovelog::rosbag12::BagReader;
use rovelog::{AnyLog, Select, Value};

use crate::errors;
use crate::maker::Maker;
use crate::reader::Reader;
use crate::records::Messages;
use crate::stamp::Time;

fn bag<'a>(py: Python<'_>, reader: &'a Reader) -> PyResult<&'a BagReader> {
    reader.only(py, "ROS bag", |log| if let AnyLog::Rosbag(bag) = log { Some(bag) } else { None })
}

/// The connections, parallel to the topics: topic, type and md5 sum as they stand in the bag, how many messages are
/// latched, the text of the definition, the nodes that sent latched messages with how many of them.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "a row of a table")]
pub(crate) fn bag_connections(
    py: Python<'_>,
    reader: &Reader,
) -> PyResult<Vec<(String, String, String, u64, Option<String>, BTreeMap<String, u64>)>> {
    let bag = bag(py, reader)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let both = bag.connections().iter().zip(bag.topics());
    let rows = both.map(|(found, topic)| {
        let (name, ty, md5) = (text(&found.topic), text(&found.ty), text(&found.md5));
        (name, ty, md5, found.latched(), bag.definition(topic), bag.callerids(topic))
    });
    Ok(rows.collect())
}

/// What is told of the messages of a connection.
#[derive(FromPyObject)]
pub(crate) struct Connection {
    #[pyo3(item)]
    topic: Py<PyString>,
    /// Type and md5 sum, as raw messages have them.
    #[pyo3(item)]
    kind: Py<PyString>,
    #[pyo3(item)]
    md5: Py<PyString>,
    #[pyo3(item)]
    maker: Maker,
    /// The class of messages that no definition decodes.
    #[pyo3(item)]
    undecoded: Py<PyType>,
    /// What each message is handed out with beside topic, message and time.
    #[pyo3(item)]
    header: Option<Py<PyAny>>,
}

/// Messages as `read_messages` gives them.
#[pyclass(module = "rovelog._core")]
pub(crate) struct BagMessages {
    log: Arc<AnyLog>,
    messages: Messages,
    /// By topic; none for those that are not read.
    connections: Vec<Option<Connection>>,
    /// The class of what is given.
    given: Py<PyType>,
    tuple_new: Py<PyAny>,
    raw: bool,
    path: Option<String>,
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
            (&connection.kind, payload, &connection.md5, found.offset, py.None())
                .into_pyobject(py)?
                .into_any()
        } else {
            match bag.plan(&bag.topics()[found.topic], payload) {
                Ok(Some(plan)) => connection.maker.make(py, plan, payload)?,
                Ok(None) => {
                    let message = connection.undecoded.bind(py).call0()?;
                    message.setattr(intern!(py, "raw"), PyBytes::new(py, payload))?;
                    message
                }
                Err(error) => return Err(errors::raise(py, &error.into(), self.path.as_deref())),
            }
        };
        let nanos = found.t_ns.unwrap_or(0);
        let (secs, nsecs) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
        let time = Bound::new(py, Time { secs, nsecs })?;
        let given = match &connection.header {
            None => (&connection.topic, message, time).into_pyobject(py)?,
            Some(header) => (&connection.topic, message, time, header).into_pyobject(py)?,
        };
        self.tuple_new.bind(py).call1((&self.given, given)).map(Some)
    }
}

/// The messages of some connections in the order of time; `connections` is parallel to the topics, `start` inclusive,
/// `end` exclusive, nanoseconds.
#[pyfunction]
#[pyo3(signature = (reader, connections, *, start, end, raw, given))]
pub(crate) fn bag_messages(
    py: Python<'_>,
    reader: &Reader,
    connections: Vec<Option<Connection>>,
    start: Option<i64>,
    end: Option<i64>,
    raw: bool,
    given: Py<PyType>,
) -> PyResult<BagMessages> {
    bag(py, reader)?;
    let mut select = Select::all().between(start, end);
    let both = reader.log.topics().iter().zip(&connections);
    select.topics =
        Some(both.filter(|(_, read)| read.is_some()).map(|(topic, _)| topic.name.clone()).collect());
    let messages = Messages::new(py, &reader.log, &select, reader.path.clone(), true)?;
    let tuple_new = py.get_type::<PyTuple>().getattr(intern!(py, "__new__"))?.unbind();
    let (log, path) = (Arc::clone(&reader.log), reader.path.clone());
    Ok(BagMessages { log, messages, connections, given, tuple_new, raw, path })
}
