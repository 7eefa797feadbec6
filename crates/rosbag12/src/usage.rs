//! Computes how the size of a bag is divided among record types and topics.

use rovelog_core::internal::usage::{Usage, UsageTally};
use rovelog_core::{Diagnostic, LogReader as _, TopicId};

use crate::diagnostics as rules;
use crate::edit::Part;
use crate::reader::BagReader;
use crate::version::Version;
use crate::wire::Header;

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
    let frame = bag.ledger().into_iter().filter(|(part, _)| *part == Part::Frame);
    for (_, range) in frame {
        tally.add("version line and padding", None, range.end - range.start);
    }
    for record in bag.full_cursor() {
        let bytes = record.end - record.at;
        if let Some(message) = record.message {
            tally.add("message", Some(TopicId(message.connection)), bytes);
            continue;
        }
        let kind = match bag.wire_record(&record).map(|record| record.header) {
            Some(Header::Definition(_)) => "definition",
            Some(Header::BagHeader(_)) => "bag header",
            Some(Header::Index(_)) => "index",
            _ => "other record",
        };
        tally.add(kind, None, bytes);
    }
    tally.finish(bag.info().size)
}
