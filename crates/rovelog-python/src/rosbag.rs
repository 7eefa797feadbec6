//! What only a ROS bag has: its connections, and messages as the objects of the drop-in for rosbag.

use std::collections::BTreeMap;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple, PyType};
use rovelog::core::LogReader as _;
use rovelog::{AnyLog, Select, Value};

use crate::errors::Raise;
use crate::reader::Reader;
use crate::records::Messages;
use crate::values::{Item, to_python};

/// The connections, parallel to the topics: topic, type and md5 sum as they stand in the bag, how many messages are
/// latched, the text of the definition, the nodes that sent latched messages with how many of them.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "a row of a table")]
pub(crate) fn bag_connections(
    py: Python<'_>,
    reader: &Reader,
) -> PyResult<Vec<(String, String, String, u64, Option<String>, BTreeMap<String, u64>)>> {
    let AnyLog::Rosbag(bag) = &*reader.log else {
        let format = reader.log.format();
        let message = format!("this log is no ROS bag, it is {}", format.name);
        return Err(Raise::new("UnsupportedError", message).of(format.id, reader.path.as_deref()).raise(py));
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let both = bag.connections().iter().zip(bag.topics());
    let rows = both.map(|(found, topic)| {
        let (name, ty, md5) = (text(&found.topic), text(&found.ty), text(&found.md5));
        (name, ty, md5, found.latched(), bag.definition(topic), bag.callerids(topic))
    });
    Ok(rows.collect())
}

/// What a field's value becomes: itself, a tuple of numbers, a time of this class, a message; or a list of these.
#[derive(FromPyObject)]
pub(crate) struct Part {
    #[pyo3(item)]
    numbers: bool,
    #[pyo3(item)]
    many: bool,
    #[pyo3(item)]
    stamp: Option<Py<PyType>>,
    #[pyo3(item)]
    message: Option<Maker>,
}

impl Part {
    fn make<'py>(
        &self,
        py: Python<'py>,
        value: &Value,
        new: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match value {
            Value::List(values) if self.numbers => Ok(PyTuple::new(py, values.iter().map(Item))?.into_any()),
            Value::List(values) if self.many => {
                let values = values.iter().map(|value| self.one(py, value, new));
                Ok(values.collect::<PyResult<Vec<_>>>()?.into_pyobject(py)?)
            }
            value => self.one(py, value, new),
        }
    }

    fn one<'py>(
        &self,
        py: Python<'py>,
        value: &Value,
        new: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match (value, &self.stamp, &self.message) {
            (Value::Struct(parts), Some(class), _) => {
                let [secs, nsecs] = [0, 1].map(|at| parts.get(at).map(|(_, value)| Item(value)));
                stamp(py, class, secs, nsecs, new)
            }
            (Value::Struct(_), _, Some(maker)) => maker.make(py, value, new),
            _ => to_python(py, value),
        }
    }
}

/// How the messages of a type become objects, without any of Python's code: the class, and its fields in order.
#[derive(FromPyObject)]
pub(crate) struct Maker(Py<PyType>, Vec<(Py<PyString>, Part)>);

impl Maker {
    fn make<'py>(
        &self,
        py: Python<'py>,
        value: &Value,
        new: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Value::Struct(values) = value else { return to_python(py, value) };
        let message = self.0.bind(py).call0()?;
        for ((name, part), (_, value)) in self.1.iter().zip(values) {
            message.setattr(name.bind(py), part.make(py, value, new)?)?;
        }
        Ok(message)
    }
}

fn stamp<'py, N: IntoPyObject<'py>>(
    py: Python<'py>,
    class: &Py<PyType>,
    secs: N,
    nsecs: N,
    new: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let stamp = new.call1((class,))?;
    stamp.setattr(intern!(py, "secs"), secs)?;
    stamp.setattr(intern!(py, "nsecs"), nsecs)?;
    Ok(stamp)
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
    /// What each message is handed out with beside topic, message and time.
    #[pyo3(item)]
    header: Option<Py<PyAny>>,
}

/// Messages as `read_messages` gives them.
#[pyclass(frozen, module = "rovelog._core")]
pub(crate) struct BagMessages {
    messages: Messages,
    /// By topic; none for those that are not read.
    connections: Vec<Option<Connection>>,
    time: Py<PyType>,
    /// The class of what is given.
    given: Py<PyType>,
    new: Py<PyAny>,
    tuple_new: Py<PyAny>,
    raw: bool,
}

#[pymethods]
impl BagMessages {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let new = self.new.bind(py);
        let (found, connection) = loop {
            let Some(found) = self.messages.take(py)? else { return Ok(None) };
            if let Some(connection) = &self.connections[found.topic] {
                break (found, connection);
            }
        };
        let nanos = found.t_ns.unwrap_or(0);
        let (secs, nsecs) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
        let time = stamp(py, &self.time, secs, nsecs, new)?;
        let message = match &found.value {
            Value::Bytes(payload) if self.raw => {
                let payload = PyBytes::new(py, payload);
                (&connection.kind, payload, &connection.md5, found.offset, py.None())
                    .into_pyobject(py)?
                    .into_any()
            }
            value => connection.maker.make(py, value, new)?,
        };
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
#[expect(clippy::too_many_arguments, reason = "one caller, who names them")]
#[pyo3(signature = (reader, connections, *, start, end, raw, time, given))]
pub(crate) fn bag_messages(
    py: Python<'_>,
    reader: &Reader,
    connections: Vec<Option<Connection>>,
    start: Option<i64>,
    end: Option<i64>,
    raw: bool,
    time: Py<PyType>,
    given: Py<PyType>,
) -> PyResult<BagMessages> {
    let mut select = Select::all().between(start, end);
    let both = reader.log.topics().iter().zip(&connections);
    select.topics =
        Some(both.filter(|(_, read)| read.is_some()).map(|(topic, _)| topic.name.clone()).collect());
    let messages = Messages::new(py, &reader.log, &select, reader.path.clone(), raw)?;
    let new = py.get_type::<PyAny>().getattr(intern!(py, "__new__"))?.unbind();
    let tuple_new = py.get_type::<PyTuple>().getattr(intern!(py, "__new__"))?.unbind();
    Ok(BagMessages { messages, connections, time, given, new, tuple_new, raw })
}
