//! What only a ROS bag has: its connections.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use rovelog::AnyLog;
use rovelog::core::LogReader as _;

use crate::errors::Raise;
use crate::reader::Reader;

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
