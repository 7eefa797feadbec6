//! Location of the header and of the first message, also where the header is damaged or missing.
//! Rule D40 of docs/formats/ulog.md.

use rovelog_core::reader::SEARCH_LEN;
use rovelog_core::scan::{NeedMore, Window};
use rovelog_core::text::count;
use rovelog_core::wire::U64Le;
use zerocopy::FromBytes as _;

use crate::definitions::Definitions;
use crate::error::UlogError;
use crate::validate::{FREE_DEFINITIONS, Scan, TYPE_AT, Validator};
use crate::wire::{FLAG_BITS_AT, FileHeader, MAGIC, kind, number};

/// Bytes that are searched for a first message on request.
const REACH: u64 = 40 << 20;

/// Times before this are believed in a damaged header, in microseconds: the year 2255. Text and
/// noise are greater.
const BELIEVED: u64 = 1 << 53;

/// How hard to look for a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    /// Definitions within the first 64 KiB make a file a ULog.
    Near,
    /// The caller says that the file is a ULog: any messages within the first 40 MiB will do.
    Far,
}

/// Where a log starts.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    /// The header as stored, or as far as it is known.
    pub(crate) header: FileHeader,
    /// Offset of the header, or of the first message if there is none.
    pub(crate) at: u64,
    /// Offset of the first message.
    pub(crate) first: u64,
    /// What is wrong with the header; `None` if the file starts with it.
    pub(crate) damage: Option<String>,
}

/// Finds the start of the log in `window`, which starts with the file.
pub(crate) fn locate(window: Window<'_>, search: Search) -> Result<Result<Start, UlogError>, NeedMore> {
    let head = window.upto(0, FLAG_BITS_AT)?;
    if let Some(what) = encrypted(head) {
        return Ok(Err(UlogError::Encrypted { what }));
    }
    if let Ok((header, _)) = FileHeader::ref_from_prefix(head)
        && header.magic == MAGIC
    {
        return Ok(Ok(Start { header: *header, at: 0, first: FLAG_BITS_AT, damage: None }));
    }
    if !head.is_empty() && (MAGIC.starts_with(head) || head.starts_with(&MAGIC)) {
        return Ok(Err(UlogError::HeaderCut { len: head.len() as u64 }));
    }
    let reach = match search {
        Search::Near => SEARCH_LEN as u64,
        Search::Far => REACH,
    };
    let near = window.upto(0, reach)?;
    let message = first_message(window, near.len() as u64, search)?;
    let magic = near.windows(MAGIC.len()).position(|bytes| bytes == MAGIC).map(|at| at as u64);
    if let Some(at) = magic
        && message.is_none_or(|message| at <= message)
        && let Some(header) = window.view::<FileHeader>(at)?
    {
        let damage = format!("{} before the header, which is at byte {at}", count(at, "byte"));
        return Ok(Ok(Start { header: *header, at, first: at + FLAG_BITS_AT, damage: Some(damage) }));
    }
    Ok(match message {
        Some(first) => Ok(without_magic(near, first)),
        None if search == Search::Near => Err(UlogError::NotUlog),
        None => Err(UlogError::NoMessages { searched: near.len() as u64 }),
    })
}

/// Returns whether a file that starts with `head` is a ULog with a damaged start.
pub(crate) fn recognizes(head: &[u8]) -> bool {
    matches!(locate(Window::whole(head), Search::Near), Ok(Ok(_)))
}

/// Returns the offset of the first message before `until` that others follow.
fn first_message(window: Window<'_>, until: u64, search: Search) -> Result<Option<u64>, NeedMore> {
    let definitions = Definitions::default();
    let limit = if window.eof { window.end() } else { u64::MAX };
    let validator = Validator::new(window, &definitions, limit, FREE_DEFINITIONS).with_flag_bits(0..until);
    let mut scan = Scan::from(0);
    while let Some(at) = validator.scan(&mut scan, until)? {
        let is_definition = window.byte(at + TYPE_AT)?.is_some_and(|letter| DEFINITIONS.contains(&letter));
        if search == Search::Far || is_definition {
            return Ok(Some(at));
        }
        scan.next = at + 1;
    }
    Ok(None)
}

/// Messages with which a log starts.
const DEFINITIONS: [u8; 6] =
    [kind::FLAG_BITS, kind::FORMAT, kind::INFO, kind::MULTI_INFO, kind::PARAMETER, kind::DEFAULT_PARAMETER];

/// Returns the start of a log whose first message is at `first`, and whose header is not intact.
fn without_magic(head: &[u8], first: u64) -> Start {
    // The start time is in the last bytes of a header.
    let place = usize::try_from(first).ok().and_then(|first| first.checked_sub(size_of::<U64Le>()));
    let stored = place.and_then(|at| number::<U64Le>(head, at)).map(U64Le::get);
    let time = stored.filter(|time| (1..BELIEVED).contains(time));
    let at = match first.checked_sub(FLAG_BITS_AT) {
        Some(at) if at == 0 || time.is_some() => at,
        None => 0,
        Some(_) => first,
    };
    let what = match first - at {
        0 => format!("no header, the first message is at byte {first}"),
        FLAG_BITS_AT => format!("the header at byte {at} does not start with 55 4c 6f 67 01 12 35"),
        left => format!("the header is cut: {} of 16 are there", count(left, "byte")),
    };
    let start = if time.is_some() { "its start time is used" } else { "the start time is not known" };
    let header = FileHeader { magic: MAGIC, version: 1, timestamp: U64Le::new(time.unwrap_or(0)) };
    Start { header, at, first, damage: Some(format!("{what}; {start}")) }
}

/// Returns which part of an encrypted log starts with `head`, if any. Rule D33 of
/// docs/formats/ulog.md.
fn encrypted(head: &[u8]) -> Option<&'static str> {
    match head {
        [b'U', b'L', b'o', b'g', b'E', b'n', b'c', ..] => Some("log"),
        [b'U', b'L', b'o', b'g', b'K', b'e', b'y', ..] => Some("key file"),
        _ => None,
    }
}
