//! A copy of a file in which the header and the times are changed in place.

use std::io::{Result, Write};

use rovelog_core::internal::edit::{Edit, Part, Patcher};
use zerocopy::{FromBytes as _, IntoBytes as _};

use crate::layout::times_at;
use crate::reader::RldReader;
use crate::wire::LeadIn;

/// Writes a copy of the first file of `log`. The MAC address, the start time, the comment and the
/// times of the blocks are passed to `edit`. Rows contain no text and no position.
pub(crate) fn rewrite(log: &RldReader, edit: &mut Edit<'_>, out: &mut dyn Write) -> Result<()> {
    edit(Part::Start, &mut []);
    let Some(file) = log.parts.first() else { return Ok(()) };
    let mut patcher = Patcher::new(&file.bytes, out);
    if let Ok((lead_in, rest)) = LeadIn::ref_from_prefix(&file.bytes) {
        let value = |name, is_text| Part::Value { kind: "header", name, is_text };
        // In published files, seven bytes were overwritten instead of six, which also changed the
        // lowest byte of the start time.
        patcher.edit_slice(edit, value("mac", false), &lead_in.mac)?;
        patcher.edit_slice(edit, Part::Time(1), lead_in.start_sec.as_bytes())?;
        let comment = rest.get(..file.header.comment.len()).unwrap_or_default();
        patcher.edit_slice(edit, value("comment", true), comment)?;
    }
    if let Some(table) = &log.table {
        for segment in log.segments.iter().filter(|segment| segment.part == 0) {
            for block in segment.blocks(&table.layout).filter(|block| block.is_timed) {
                if let Some(times) = times_at(&file.bytes, block.range.start) {
                    patcher.edit_slice(edit, Part::Time(1), times.realtime_sec.as_bytes())?;
                }
            }
        }
    }
    patcher.finish()
}
