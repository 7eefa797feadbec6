//! Message types and messages of a bag, for the drop-in replacement of the Python package rosbag.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple, PyType};
use rovelog::core::LogReader as _;
use rovelog::core::internal::names::UniqueNames;
use rovelog::rosbag12::Publisher;
use rovelog::rosbag12::msg::{FieldText, Sum, Type};
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
    /// Connection header for each publisher, which is identified by `latching` and `callerid`. A
    /// message is skipped if the header of its publisher is `None`.
    #[pyo3(item)]
    headers: HashMap<(bool, Option<String>), Option<Py<PyAny>>>,
    /// Connection header for publishers that are not in `headers`.
    #[pyo3(item)]
    header: Option<Py<PyAny>>,
}

impl Connection {
    /// Returns the connection header for a message of `publisher`. Returns `None` if the message is
    /// skipped.
    fn header_of(&self, py: Python<'_>, publisher: Publisher) -> Option<Py<PyAny>> {
        let Publisher { latching, callerid, .. } = publisher;
        let header = self.headers.get(&(latching, callerid)).unwrap_or(&self.header);
        header.as_ref().map(|header| header.clone_ref(py))
    }

    /// Returns true if the messages of some publishers are skipped.
    fn skips_messages(&self) -> bool {
        self.headers.values().any(Option::is_none)
    }
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
    /// True if connection headers are returned.
    with_header: bool,
    stamps: TimeClasses,
    origin: Origin,
}

#[pymethods]
impl BagMessages {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (found, connection, header) = loop {
            let Some(mut found) = self.messages.next_record(py)? else { return Ok(None) };
            let Some(connection) = &mut self.connections[found.topic] else { continue };
            let Some(publisher) = found.publisher.take() else { break (found, connection, None) };
            if let Some(header) = connection.header_of(py, publisher) {
                break (found, connection, self.with_header.then_some(header));
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
        let given = match header {
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
/// - `with_header`: true if connection headers are returned
/// - `given`: class of the returned named tuples
/// - `time_classes`: classes for times and durations; `None` selects the classes of this package
#[pyfunction]
#[pyo3(signature = (reader, connections, window, *, raw, with_header, given, time_classes))]
#[expect(clippy::too_many_arguments, reason = "Python passes most of them by name")]
pub(crate) fn bag_messages(
    py: Python<'_>,
    reader: &Reader,
    connections: Vec<Option<Connection>>,
    window: Window,
    raw: bool,
    with_header: bool,
    given: Py<PyType>,
    time_classes: Option<(Py<PyType>, Py<PyType>)>,
) -> PyResult<BagMessages> {
    bag(py, reader)?;
    let mut select = window.limit(Select::all());
    let log = Arc::clone(reader.whole_log(py)?);
    let both = log.topics().iter().zip(&connections);
    select.topics =
        Some(both.filter(|(_, read)| read.is_some()).map(|(topic, _)| topic.name.clone()).collect());
    // Finding the publisher of each message takes time.
    let with_publisher = with_header || connections.iter().flatten().any(Connection::skips_messages);
    let messages = Messages::new(py, reader, &select, true, with_publisher)?;
    let tuple_new = py.get_type::<PyTuple>().getattr(intern!(py, "__new__"))?.unbind();
    let (stamps, origin) = (TimeClasses(time_classes), reader.origin.clone());
    Ok(BagMessages { log, messages, connections, given, tuple_new, raw, with_header, stamps, origin })
}

/// A message type. The names are keys of `BagType` in Python.
#[derive(IntoPyObject)]
pub(crate) struct BagType {
    /// Full name of the type.
    name: String,
    /// MD5 sum of the type.
    md5: String,
    /// Text of this type, without the texts of nested types.
    text: String,
    /// Fields: name, type, and if the field is a message, the index of its type.
    fields: Vec<(String, String, Option<usize>)>,
    /// Constants: type, name, and value as written in the text.
    constants: Vec<(String, String, String)>,
}

impl BagType {
    /// Returns the type at `index` of the list `types`, whose MD5 sum is `md5`.
    fn new(types: &[Type], index: usize, md5: String) -> Self {
        // genpy renames this type in the same way. The type was renamed in 2010, and readers may
        // know only the new name.
        let renamed = |text: &str| text.replace("roslib/Header", "std_msgs/Header");
        let ty = &types[index];
        let mut names = UniqueNames::default();
        let fields = ty.message().fields.iter().zip(ty.nested()).map(|(field, nested)| {
            let ty = nested.map_or(field.ty.as_str(), |nested| types[nested].name());
            let spelled = FieldText { ty: renamed(ty), ..field.clone() }.spelled();
            // As in the layout of the type, the names of fields are unique.
            (names.assign(&field.name), spelled, *nested)
        });
        let constants = ty.message().constants.iter();
        Self {
            name: renamed(ty.name()),
            md5,
            text: renamed(&String::from_utf8_lossy(ty.text())),
            fields: fields.collect(),
            constants: constants.map(|c| (c.ty.clone(), c.name.clone(), c.value.clone())).collect(),
        }
    }
}

/// Returns the types of a topic's messages. Each type comes after the types of its fields, and the
/// type of the messages is last. The list is empty if no definition can be used.
#[pyfunction]
pub(crate) fn bag_types(py: Python<'_>, reader: &Reader, topic: usize) -> PyResult<Vec<BagType>> {
    let connection = &bag(py, reader)?.connections()[topic];
    let Some(definition) = connection.definition() else { return Ok(Vec::new()) };
    let (types, sums) = (definition.types.all(), definition.types.sums_v2());
    let of = |(index, sum): (usize, Sum)| BagType::new(types, index, sum.0);
    Ok(sums.into_iter().enumerate().map(of).collect())
}
