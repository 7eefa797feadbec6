//! Parses bags before V1.2 (section 4 of docs/formats/rosbag.md). In these bags, lines of text
//! precede the messages, and there are no message definitions.

use std::collections::HashMap;

use rovelog_core::internal::scan::{NeedMore, Window};

use crate::tables::ConnectionName;
use crate::version::Version;
use crate::wire::OldStamp;

/// Maximum size in bytes of a text line.
const MAX_LINE: u64 = 64 << 10;

/// Maximum number of topics in the table of a V1.0 bag.
const MAX_TOPICS: u64 = 65_536;

/// Table of topics at the start of a V1.0 or V0 bag.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// Topics in the order of the table.
    topics: Vec<ConnectionName>,
    /// Map from a topic name to the index of the first topic with this name.
    by_name: HashMap<Box<[u8]>, usize>,
}

/// A message record of a bag before V1.2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OldRecord<'a> {
    /// Name of the topic.
    pub(crate) topic: &'a [u8],
    /// md5 sum of the message type.
    pub(crate) md5: &'a [u8],
    /// Name of the message type.
    pub(crate) ty: &'a [u8],
    /// Size in bytes of the text lines before the message.
    pub(crate) lines: u64,
    /// Offset of the end of the message record.
    pub(crate) end: u64,
}

/// Result of testing whether a message record or a line of text starts at an offset.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OldProbe<T> {
    Good(T),
    /// A message record or line that is truncated at the end of the file.
    Cut,
    /// Bytes that are not a message record or line.
    Bad,
}

/// Tests whether a line of text starts at offset `at`. Returns the text of the line without its LF,
/// and the offset of the next line.
fn line(window: Window<'_>, at: u64) -> Result<OldProbe<(&[u8], u64)>, NeedMore> {
    let is_text = |bytes: &[u8]| bytes.iter().all(|byte| *byte >= 0x20);
    let mut len = 256;
    loop {
        let bytes = window.upto(at, len)?;
        if let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let found = (&bytes[..end], at + end as u64 + 1);
            return Ok(if is_text(found.0) { OldProbe::Good(found) } else { OldProbe::Bad });
        }
        if (bytes.len() as u64) < len {
            return Ok(if is_text(bytes) { OldProbe::Cut } else { OldProbe::Bad });
        }
        if len >= MAX_LINE {
            return Ok(OldProbe::Bad);
        }
        // The window grows in steps. Lines are short, so a stream should not wait for many bytes.
        len *= 4;
    }
}

fn is_md5(line: &[u8]) -> bool {
    line == b"*" || (line.len() == 32 && line.iter().all(u8::is_ascii_hexdigit))
}

/// Tests whether a message record starts at offset `at`.
pub(crate) fn probe<'a>(
    window: Window<'a>,
    at: u64,
    version: Version,
    table: &'a Table,
) -> Result<OldProbe<OldRecord<'a>>, NeedMore> {
    let count = match version {
        Version::V0 => 0,
        Version::V1_0 => 1,
        _ => 3,
    };
    let mut lines = [&[][..]; 3];
    let mut behind = at;
    for (number, slot) in lines[..count].iter_mut().enumerate() {
        match line(window, behind)? {
            OldProbe::Good(found) => (*slot, behind) = found,
            OldProbe::Cut => return Ok(OldProbe::Cut),
            OldProbe::Bad => return Ok(OldProbe::Bad),
        }
        // The md5 sum is the only line with a fixed form, so most damage is detected here.
        if number == 1 && !is_md5(slot) {
            return Ok(OldProbe::Bad);
        }
    }
    if count < lines.len() {
        let known = match version {
            Version::V0 => table.topics.first(),
            _ => table.by_name.get(lines[0]).map(|number| &table.topics[*number]),
        };
        let Some(known) = known else { return Ok(OldProbe::Bad) };
        lines = [&known.topic, &known.md5, &known.ty];
    }
    let [topic, md5, ty] = lines;
    let Some(stamp) = window.view::<OldStamp>(behind)? else { return Ok(OldProbe::Cut) };
    let end = behind + size_of::<OldStamp>() as u64 + u64::from(stamp.data_len.get());
    if window.slice(at, end)?.is_none() {
        return Ok(OldProbe::Cut);
    }
    Ok(OldProbe::Good(OldRecord { topic, md5, ty, lines: behind - at, end }))
}

/// Returns the table of topics of a V1.0 or V0 bag, and the offset after the table. Returns `None`
/// if the table is invalid.
pub(crate) fn table(
    window: Window<'_>,
    version: Version,
    from: u64,
) -> Result<Option<(Table, u64)>, NeedMore> {
    let mut at = from;
    let mut count = 1;
    if version == Version::V1_0 {
        let OldProbe::Good((digits, behind)) = line(window, at)? else { return Ok(None) };
        let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.trim().parse::<u64>().ok());
        let Some(number) = number.filter(|number| *number <= MAX_TOPICS) else { return Ok(None) };
        (count, at) = (number, behind);
    }
    let mut table = Table::default();
    for _ in 0..count {
        let mut lines = [&[][..]; 3];
        for slot in &mut lines {
            let OldProbe::Good((text, behind)) = line(window, at)? else { return Ok(None) };
            (*slot, at) = (text, behind);
        }
        let [topic, md5, ty] = lines;
        if !is_md5(md5) {
            return Ok(None);
        }
        // If a topic name occurs twice, the first topic with this name is used.
        table.by_name.entry(topic.into()).or_insert(table.topics.len());
        table.topics.push(ConnectionName::new(topic, ty, md5));
    }
    Ok(Some((table, at)))
}

/// Returns the size in bytes of the text lines before a message.
pub(crate) fn lines_len(version: Version, topic: &[u8], md5: &[u8], ty: &[u8]) -> usize {
    match version {
        Version::V1_1 => topic.len() + md5.len() + ty.len() + 3,
        Version::V1_0 => topic.len() + 1,
        _ => 0,
    }
}
