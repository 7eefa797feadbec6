//! Number of bytes that a log uses for each kind of content: header, index, and the messages of
//! each topic.

use rovelog_core::LogReader as _;
use rovelog_core::internal::usage::{Usage, UsageTally};

use crate::reader::{PartKind, VelReader};
use crate::wire::INDEX_AT;

pub(crate) fn usage(log: &VelReader) -> Vec<Usage> {
    let mut tally = UsageTally::default();
    let size = log.info().size;
    let (header, index) = (INDEX_AT.min(size), log.scanner.start.index_end.saturating_sub(INDEX_AT));
    tally.add("file header", None, header);
    tally.add_all("index", None, u64::from(index > 0), index);
    for entry in log.entries.iter() {
        let bytes = log.end_of(entry.at) - entry.at;
        let topic = log.topic_of(entry).map(|topic| topic.id);
        tally.add(if topic.is_some() { "message" } else { "message that cannot be read" }, topic, bytes);
    }
    for part in &log.parts {
        let kind = match part.what {
            PartKind::Invalid => "message marked as invalid",
            PartKind::Joined => "header of a joined log",
            PartKind::Terminator => "end mark",
            PartKind::AfterEnd => "message after the end mark",
            PartKind::Tail => "bytes after the end mark",
            PartKind::Lost => continue,
        };
        tally.add(kind, None, part.range.end - part.range.start);
    }
    tally.finish(size)
}
