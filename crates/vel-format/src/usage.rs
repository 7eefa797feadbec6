//! Number of bytes that a log uses for each kind of content: header, index, and the messages of
//! each topic.

use rovelog_core::LogReader as _;
use rovelog_core::internal::usage::{Usage, UsageTally};

use crate::reader::VelReader;
use crate::structure::{messages, other_regions};

pub(crate) fn usage(log: &VelReader) -> Vec<Usage> {
    let mut tally = UsageTally::default();
    for region in other_regions(log).into_iter().chain(messages(log)) {
        tally.add(region.kind, region.topic, region.range.end - region.range.start);
    }
    tally.finish(log.info().size)
}
