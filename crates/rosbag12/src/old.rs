//! Bags of before V1.2: lines of text in front of each message, and no definitions (section 4).

use std::collections::HashMap;

use rovelog_core::scan::{NeedMore, Window};

use crate::version::Version;
use crate::wire::OldStamp;

/// Bytes of one line of text.
const MAX_LINE: u64 = 64 << 10;

/// Topics that the table of a V1.0 bag may name.
const MAX_TOPICS: u64 = 65_536;

/// A topic of a V1.0 or V0 bag.
#[derive(Clone, Debug)]
struct TableTopic {
    topic: Vec<u8>,
    md5: Vec<u8>,
    ty: Vec<u8>,
}

/// The topics of a V1.0 or V0 bag.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    topics: Vec<TableTopic>,
    /// The first one of each name.
    by_name: HashMap<Vec<u8>, usize>,
}

/// The record of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OldRecord<'a> {
    pub(crate) topic: &'a [u8],
    pub(crate) md5: &'a [u8],
    pub(crate) ty: &'a [u8],
    /// Bytes of its lines.
    pub(crate) lines: u64,
    pub(crate) end: u64,
}

/// What is at a place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OldProbe<'a> {
    Good(OldRecord<'a>),
    /// A record that the file cuts.
    Cut,
    /// No record.
    Bad,
}

/// Returns the line at `at`, without its LF, and where the next one starts; `Ok(Err(true))` where
/// the file cuts it, `Ok(Err(false))` where it is none.
fn line(window: Window<'_>, at: u64) -> Result<Result<(&[u8], u64), bool>, NeedMore> {
    let mut len = 256;
    loop {
        let bytes = window.upto(at, len)?;
        if let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let line = &bytes[..end];
            let is_text = line.iter().all(|byte| *byte >= 0x20);
            return Ok(if is_text { Ok((line, at + end as u64 + 1)) } else { Err(false) });
        }
        if (bytes.len() as u64) < len {
            return Ok(Err(bytes.iter().all(|byte| *byte >= 0x20)));
        }
        if len >= MAX_LINE {
            return Ok(Err(false));
        }
        len *= 4;
    }
}

fn is_md5(line: &[u8]) -> bool {
    line == b"*" || (line.len() == 32 && line.iter().all(u8::is_ascii_hexdigit))
}

/// Looks at the message at `at`.
pub(crate) fn probe<'a>(
    window: Window<'a>,
    at: u64,
    version: Version,
    table: &'a Table,
) -> Result<OldProbe<'a>, NeedMore> {
    let failed = |cut| Ok(if cut { OldProbe::Cut } else { OldProbe::Bad });
    let (topic, md5, ty, behind) = match version {
        Version::V0 => match table.topics.first() {
            Some(one) => (&*one.topic, &*one.md5, &*one.ty, at),
            None => return Ok(OldProbe::Bad),
        },
        Version::V1_0 => {
            let (topic, behind) = match line(window, at)? {
                Ok(found) => found,
                Err(cut) => return failed(cut),
            };
            let Some(number) = table.by_name.get(topic) else { return Ok(OldProbe::Bad) };
            let known = &table.topics[*number];
            (topic, &*known.md5, &*known.ty, behind)
        }
        _ => {
            let mut lines = [&[][..]; 3];
            let mut behind = at;
            for (number, slot) in lines.iter_mut().enumerate() {
                let (text, next) = match line(window, behind)? {
                    Ok(found) => found,
                    Err(cut) => return failed(cut),
                };
                if number == 1 && !is_md5(text) {
                    return Ok(OldProbe::Bad);
                }
                (*slot, behind) = (text, next);
            }
            let [topic, md5, ty] = lines;
            (topic, md5, ty, behind)
        }
    };
    let Some(stamp) = window.view::<OldStamp>(behind)? else { return Ok(OldProbe::Cut) };
    let end = behind + size_of::<OldStamp>() as u64 + u64::from(stamp.data_len.get());
    if window.slice(at, end)?.is_none() {
        return Ok(OldProbe::Cut);
    }
    Ok(OldProbe::Good(OldRecord { topic, md5, ty, lines: behind - at, end }))
}

/// Returns the table of topics in front of the messages of a V1.0 or V0 bag, and where it ends;
/// `None` where it is broken.
pub(crate) fn table(
    window: Window<'_>,
    version: Version,
    from: u64,
) -> Result<Option<(Table, u64)>, NeedMore> {
    let mut at = from;
    let mut count = 1;
    if version == Version::V1_0 {
        let Ok((digits, behind)) = line(window, at)? else { return Ok(None) };
        let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.trim().parse::<u64>().ok());
        let Some(number) = number.filter(|number| *number <= MAX_TOPICS) else { return Ok(None) };
        (count, at) = (number, behind);
    }
    let mut table = Table::default();
    for _ in 0..count {
        let mut lines = [&[][..]; 3];
        for slot in &mut lines {
            let Ok((text, behind)) = line(window, at)? else { return Ok(None) };
            (*slot, at) = (text, behind);
        }
        let [topic, md5, ty] = lines.map(<[u8]>::to_vec);
        if !is_md5(&md5) {
            return Ok(None);
        }
        table.by_name.entry(topic.clone()).or_insert(table.topics.len());
        table.topics.push(TableTopic { topic, md5, ty });
    }
    Ok(Some((table, at)))
}

/// Returns the number of bytes of the lines in front of a message of an old version.
pub(crate) fn lines_len(version: Version, topic: &[u8], md5: &[u8], ty: &[u8]) -> usize {
    match version {
        Version::V1_1 => topic.len() + md5.len() + ty.len() + 3,
        Version::V1_0 => topic.len() + 1,
        _ => 0,
    }
}
