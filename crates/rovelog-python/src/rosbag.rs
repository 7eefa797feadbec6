//! Functions for ROS bags, which Python calls in `log.bag`. They return the connections of a bag.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use rovelog::AnyLog;
use rovelog::core::LogReader as _;
use rovelog::rosbag12::BagReader;

use crate::reader::Reader;

/// Returns the bag reader of a log, or an exception if the log has another format.
pub(crate) fn bag<'a>(py: Python<'_>, reader: &'a Reader) -> PyResult<&'a BagReader> {
    reader.format_reader(py, "ROS bag", |log| if let AnyLog::Rosbag(bag) = log { Some(bag) } else { None })
}

/// Returns the connections of a bag, in the order of the topics.
///
/// Each row consists of the topic, the type and the MD5 sum as stored in the bag, the number of
/// latched messages, the publishers of latched messages with their counts, and the text of the
/// message definition.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "a row of a table")]
pub(crate) fn bag_connections(
    py: Python<'_>,
    reader: &Reader,
) -> PyResult<Vec<(String, String, String, u64, BTreeMap<String, u64>, Option<String>)>> {
    let bag = bag(py, reader)?;
    let text = rovelog::core::internal::text::escape_bytes;
    // Names in a bag are bytes that may not be valid UTF-8.
    let both = bag.connections().iter().zip(bag.topics());
    let rows = both.map(|(found, topic)| {
        let (name, ty, md5) = (text(&found.topic), text(&found.ty), text(&found.md5));
        let definition = bag.own(topic).ok().and_then(rovelog::TopicRef::definition);
        (name, ty, md5, found.latched(), bag.callerids(topic), definition)
    });
    reader.origin.checked(py, || Ok(rows.collect()))
}
