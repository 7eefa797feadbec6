//! Computes how the size of a bag is divided among record types and topics.

use rovelog_core::internal::usage::{Usage, UsageTally};
use rovelog_core::{Diagnostic, LogReader as _};

use crate::diagnostics as rules;
use crate::reader::BagReader;
use crate::structure::{frame, records};
use crate::version::Version;

pub(crate) fn usage(bag: &BagReader) -> Vec<Usage> {
    let mut tally = UsageTally::default();
    if bag.version() == Version::V2_0 {
        bag.chunk_usage(&mut tally);
        let zeros = |problem: &&Diagnostic| problem.rule == &rules::ZEROS_BEFORE_INDEX;
        for problem in bag.diagnostics().list().iter().filter(zeros) {
            tally.add("zero bytes", None, problem.range.end - problem.range.start);
        }
        return tally.finish(bag.info().size);
    }
    for region in frame(bag).into_iter().chain(records(bag)) {
        tally.add(region.kind, region.topic, region.range.end - region.range.start);
    }
    tally.finish(bag.info().size)
}
