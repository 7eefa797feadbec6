//! ROS bags only: connections; `log.bag`.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use rovelog::AnyLog;
use rovelog::core::LogReader as _;
use rovelog::rosbag12::BagReader;

use crate::reader::Reader;

pub(crate) fn bag<'a>(py: Python<'_>, reader: &'a Reader) -> PyResult<&'a BagReader> {
    reader.only(py, "ROS bag", |log| if let AnyLog::Rosbag(bag) = log { Some(bag) } else { None })
}

/// Returns the connections, parallel to the topics: topic, type and MD5 sum as in the bag, number
/// of latched messages, publishers of latched messages with their counts, and the text of the
/// definition.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "a row of a table")]
pub(crate) fn bag_connections(
    py: Python<'_>,
    reader: &Reader,
) -> PyResult<Vec<(String, String, String, u64, BTreeMap<String, u64>, Option<String>)>> {
    let bag = bag(py, reader)?;
    let text = rovelog::core::text::escape_bytes;
    let both = bag.connections().iter().zip(bag.topics());
    let rows = both.map(|(found, topic)| {
        let (name, ty, md5) = (text(&found.topic), text(&found.ty), text(&found.md5));
        (
            name,
            ty,
            md5,
            found.latched(),
            bag.callerids(topic),
            bag.own(topic).ok().and_then(rovelog::TopicRef::definition),
        )
    });
    reader.origin.checked(py, || Ok(rows.collect()))
}
