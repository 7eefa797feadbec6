//! Where the bytes of a bag are: by kind of record, messages by topic.

use rovelog_core::LogReader as _;
use rovelog_core::TopicId;
use rovelog_core::usage::{Usage, UsageTally};

use crate::output::header_of;
use crate::reader::BagReader;
use crate::recover::Part;
use crate::wire::op;

pub(crate) fn usage(bag: &BagReader) -> Vec<Usage> {
    let mut tally = UsageTally::default();
    let frame = bag.ledger().into_iter().filter(|(part, _)| *part == Part::Frame);
    for (_, range) in frame {
        tally.add("version line and padding", None, range.end - range.start);
    }
    for record in bag.cursor() {
        let bytes = record.end - record.at;
        if let Some(message) = record.message {
            tally.add("message", Some(TopicId(message.connection)), bytes);
            continue;
        }
        let header = usize::try_from(record.at).ok().and_then(|at| header_of(bag.bytes.get(at..)?));
        tally.add(header.map_or("other record", |header| name(header.op)), None, bytes);
    }
    tally.finish(bag.info().size)
}

fn name(op: u8) -> &'static str {
    match op {
        op::DEFINITION => "definition",
        op::BAG_HEADER => "bag header",
        op::INDEX => "index",
        _ => "other record",
    }
}
