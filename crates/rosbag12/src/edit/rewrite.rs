//! A copy of a bag in which values are changed in place. Compressed chunks are compressed again.

use std::io::{self, Write};

use rovelog_core::internal::edit::{Edit, EditCopy, Part, Patcher};
use rovelog_core::internal::structure::part;
use rovelog_core::internal::wire::whole;
use zerocopy::IntoBytes as _;

use crate::error::BagError;
use crate::index::RecordRef;
use crate::reader::BagReader;
use crate::v2::{self, CALLER, edit_payload};
use crate::version::Version;
use crate::wire::{Data, Header, IndexEntry, OldStamp, Record};

/// Writes a copy of `bag`. Messages, times, node names and bytes that cannot be read are passed to
/// `edit`.
pub(crate) fn rewrite(bag: &BagReader, edit: &mut Edit<'_>, out: &mut dyn Write) -> Result<(), BagError> {
    if bag.is_chunked() { v2::rewrite(bag, edit, out) } else { Ok(rewrite_records(bag, edit, out)?) }
}

/// Writes a copy of a bag before V2.0.
fn rewrite_records(bag: &BagReader, edit: &mut Edit<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut patcher = Patcher::new(&bag.bytes, out);
    edit(Part::Start, &mut []);
    let mut lost = bag.index.lost().iter().peekable();
    for record in bag.full_cursor() {
        while let Some(range) = lost.next_if(|range| range.start < record.at) {
            patcher.edit(edit, Part::Unreadable, range.clone())?;
        }
        let mut copy = EditCopy::new(part(&bag.bytes, record.at..record.end));
        edit_record(bag, &record, edit, &mut copy);
        patcher.replace(record.at..record.end, &copy.bytes)?;
    }
    lost.try_for_each(|range| patcher.edit(edit, Part::Unreadable, range.clone()))?;
    patcher.finish()
}

/// Edits a record of a bag before V2.0.
fn edit_record(bag: &BagReader, record: &RecordRef, edit: &mut Edit<'_>, copy: &mut EditCopy<'_>) {
    let has_fields = bag.version() == Version::V1_2;
    if let Some(message) = record.message {
        let payload = message.payload(&bag.bytes);
        edit_payload(bag, &message, payload, edit, copy);
        // Before V1.2, the time is at the end of the head. In V1.2, it is in the fields below.
        let head = part(&bag.bytes, record.at..message.payload_at());
        let stamp = head.len().checked_sub(size_of::<OldStamp>()).and_then(|at| head.get(at..));
        if let (false, Some([stamp])) = (has_fields, stamp.map(whole::<OldStamp>)) {
            copy.edit(edit, Part::Time(1), stamp.sec.as_bytes());
        }
    }
    match bag.wire_record(record).filter(|_| has_fields) {
        Some(Record { header: Header::Data(Data { sec, callerid, .. }), .. }) => {
            copy.edit(edit, Part::Time(1), sec.as_bytes());
            if let Some(caller) = callerid {
                copy.edit(edit, CALLER, caller);
            }
        }
        Some(Record { header: Header::Index(_), data }) => {
            for entry in IndexEntry::all_of(data) {
                copy.edit(edit, Part::Time(1), entry.sec.as_bytes());
            }
        }
        _ => {}
    }
}
