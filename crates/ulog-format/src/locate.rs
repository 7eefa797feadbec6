//! Search for the header and the first message of a log. The header may be damaged or missing.
//! Implements rule D40 of docs/formats/ulog.md.

use rovelog_core::format::SEARCH_LEN;
use rovelog_core::internal::scan::{NeedMore, Window};
use rovelog_core::internal::text::count;
use rovelog_core::internal::wire::U64Le;
use zerocopy::FromBytes as _;

use crate::definitions::Definitions;
use crate::error::UlogError;
use crate::validate::{FREE_DEFINITIONS, Scan, TYPE_AT, Validator};
use crate::wire::{FLAG_BITS_AT, FileHeader, MAGIC, kind, number};

/// Number of bytes at the start of the file that are searched for a message, if the user states
/// that the file is a ULog.
const FAR_SEARCH_LEN: u64 = 40 << 20;

/// Upper limit in microseconds for the start time in a damaged header. The limit is in the year
/// 2255. If text or noise is read as a number, the result is nearly always greater.
const MAX_START_TIME: u64 = 1 << 53;

/// Number of bytes that are searched for the start of a log, and the messages that are accepted
/// there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    /// Used to detect the format. A file without a header is a ULog if its first 64 KiB contain
    /// definitions.
    Near,
    /// Used if the caller states that the file is a ULog. All types of messages in the first 40 MiB
    /// are accepted.
    Far,
}

/// Header and first message of a log.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    /// Header of the log. In a damaged header, the start time is the stored time if it is
    /// plausible, otherwise 0.
    pub(crate) header: FileHeader,
    /// Offset of the header. If the header is missing, this is the offset of the first message.
    pub(crate) at: u64,
    /// Offset of the first message in the file.
    pub(crate) first: u64,
    /// Description of the damage to the header. `None` if the file starts with a valid header.
    pub(crate) damage: Option<String>,
}

/// Finds the header and the first message of the log. `window` must start at the start of the file.
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
    // A file that ends inside the header has no messages. An empty file is not a ULog.
    if !head.is_empty() && (MAGIC.starts_with(head) || head.starts_with(&MAGIC)) {
        return Ok(Err(UlogError::HeaderCut { len: head.len() as u64 }));
    }
    let reach = match search {
        Search::Near => SEARCH_LEN as u64,
        Search::Far => FAR_SEARCH_LEN,
    };
    // Other bytes may precede the header, or the header may be damaged. The log starts at the first
    // intact header or at the first message, whichever is earlier in the file.
    let searched = window.upto(0, reach)?;
    let message = first_message(window, searched.len() as u64, search)?;
    let magic = searched.windows(MAGIC.len()).position(|bytes| bytes == MAGIC).map(|at| at as u64);
    if let Some(at) = magic
        && message.is_none_or(|message| at <= message)
        && let Some(header) = window.view::<FileHeader>(at)?
    {
        let before = count(at, "byte");
        let damage = format!("the header starts at byte {at}, after {before} that do not belong to the log");
        return Ok(Ok(Start { header: *header, at, first: at + FLAG_BITS_AT, damage: Some(damage) }));
    }
    Ok(match message {
        Some(first) => Ok(without_magic(searched, first)),
        None if search == Search::Near => Err(UlogError::NotUlog),
        None => Err(UlogError::NoMessages { searched: searched.len() as u64 }),
    })
}

/// Returns `true` if a file that starts with `head` is a ULog. The header may be damaged.
pub(crate) fn recognizes(head: &[u8]) -> bool {
    matches!(locate(Window::whole(head), Search::Near), Ok(Ok(_)))
}

/// Returns the offset of the first valid message before the offset `until`. A message is valid if
/// it starts a chain, that is three consecutive messages that agree with their types.
fn first_message(window: Window<'_>, until: u64, search: Search) -> Result<Option<u64>, NeedMore> {
    let definitions = Definitions::default();
    let limit = if window.eof { window.end() } else { u64::MAX };
    let validator = Validator::new(window, &definitions, limit, FREE_DEFINITIONS).with_flag_bits(0..until, 0);
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

/// Types of the definition messages, with which a log starts.
const DEFINITIONS: [u8; 6] =
    [kind::FLAG_BITS, kind::FORMAT, kind::INFO, kind::MULTI_INFO, kind::PARAMETER, kind::DEFAULT_PARAMETER];

/// Returns the start of a log with a damaged or missing magic number. `first` is the offset of the
/// first message.
fn without_magic(head: &[u8], first: u64) -> Start {
    // The start time is the last field of the header, directly before the first message.
    let place = usize::try_from(first).ok().and_then(|first| first.checked_sub(size_of::<U64Le>()));
    let stored = place.and_then(|at| number::<U64Le>(head, at)).map(U64Le::get);
    let time = stored.filter(|time| (1..MAX_START_TIME).contains(time));
    // A plausible start time shows that a header precedes the first message. If the time is not
    // plausible, a header is assumed only if the message is exactly 16 bytes after the start of the
    // file. If fewer bytes precede the message, they are the rest of a header whose start is
    // missing.
    let at = match first.checked_sub(FLAG_BITS_AT) {
        Some(at) if at == 0 || time.is_some() => at,
        None => 0,
        Some(_) => first,
    };
    let what = match first - at {
        0 => format!("the log has no header, and its first message is at byte {first}"),
        FLAG_BITS_AT => format!("the header at byte {at} does not start with 55 4c 6f 67 01 12 35"),
        left => format!("the header has only its last {} of 16", count(left, "byte")),
    };
    let start = if time.is_some() { "its start time is used" } else { "the start time is unknown" };
    let header = FileHeader { magic: MAGIC, version: 1, timestamp: U64Le::new(time.unwrap_or(0)) };
    Start { header, at, first, damage: Some(format!("{what}; {start}")) }
}

/// Returns `log` or `key file` if `head` is the start of an encrypted log or of its key file.
/// Otherwise returns `None` (rule D33 of docs/formats/ulog.md).
fn encrypted(head: &[u8]) -> Option<&'static str> {
    match head {
        [b'U', b'L', b'o', b'g', b'E', b'n', b'c', ..] => Some("log"),
        [b'U', b'L', b'o', b'g', b'K', b'e', b'y', ..] => Some("key file"),
        _ => None,
    }
}
