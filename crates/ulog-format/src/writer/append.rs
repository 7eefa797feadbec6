//! Functions that append data to a complete log.

use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use rovelog_core::ReadOptions;
use rovelog_core::internal::wire::U64Le;
use zerocopy::IntoBytes;

use super::{Stage, UlogWriter};
use crate::error::UlogError;
use crate::stream::{StreamItem, UlogStream};
use crate::wire::{FLAG_BITS_AT, FileHeader, FlagBits, HEADER_LEN, Message};

/// Appends messages to the log in `file`. PX4 appends crash data after a flight in the same way.
///
/// The specification describes the procedure: "Set the relevant `incompat_flags` bit, set the first
/// `appended_offsets` that is 0 to the length of the log file, then append any type of messages
/// that are valid for the Data section." The existing log may end in the middle of a message. Data
/// can be appended three times.
///
/// `add` is called with a writer that contains the formats and topics of the log and writes to
/// memory. The file is changed only if `add` succeeds and has written something.
///
/// - [`topic`](UlogWriter::topic) returns an existing topic, to which rows can be added.
/// - [`subscribe`](UlogWriter::subscribe) adds a new instance of a format that the log contains.
///   Some readers, such as pyulog 1.3, forget all subscriptions at the start of appended data, and
///   can read rows of new instances only.
/// - New formats are rejected.
///
/// # Errors
/// Returns an error in the following cases:
///
/// - The file is not a ULog, or cannot be read or written.
/// - The log has no flag bits, or all three offsets are used.
/// - `add` returns an error.
pub fn append<F: Read + Write + Seek>(
    file: &mut F,
    add: impl FnOnce(&mut UlogWriter<Vec<u8>>) -> Result<(), UlogError>,
) -> Result<(), UlogError> {
    file.seek(SeekFrom::Start(0))?;
    let mut log = UlogStream::new(&mut *file, &ReadOptions::default())?;
    if log.scanner().start.damage.is_some() {
        return Err(UlogError::CannotAppend { why: "its header is damaged" });
    }
    let mut more = UlogWriter::at_stage(Vec::new(), Stage::Data);
    let mut flags = None;
    while let Some(item) = log.next_item()? {
        if let StreamItem::Message(at, message) = item {
            if let Message::FlagBits(found) = message
                && at == FLAG_BITS_AT
            {
                flags = Some(found.flags);
            }
            more.tables.add(&message);
        }
    }
    more.now = log.log_time();
    drop(log);
    let Some(mut flags) = flags else {
        return Err(UlogError::CannotAppend {
            why: "it has no flag bits message, so the offset of appended data cannot be stored",
        });
    };

    let end = file.seek(SeekFrom::End(0))?;
    announce(&mut flags, end)?;
    add(&mut more)?;
    let bytes = more.finish()?;
    if bytes.is_empty() {
        return Ok(());
    }
    // The flag bits are written before the data. If the program is interrupted between the two
    // writes, the offset is the end of the file. The appended data is then empty, and the log is
    // valid. In the reverse order, a reader could not separate a cut message from the appended
    // data.
    file.seek(SeekFrom::Start(FLAG_BITS_AT + HEADER_LEN))?;
    file.write_all(flags.as_bytes())?;
    file.seek(SeekFrom::Start(end))?;
    file.write_all(&bytes)?;
    file.flush()?;
    Ok(())
}

/// Appends messages to the log at `path`. See [`append`].
///
/// # Errors
/// Returns an error if the file cannot be opened, and for the same reasons as [`append`].
pub fn append_to_file(
    path: impl AsRef<Path>,
    add: impl FnOnce(&mut UlogWriter<Vec<u8>>) -> Result<(), UlogError>,
) -> Result<(), UlogError> {
    append(&mut OpenOptions::new().read(true).write(true).open(path)?, add)
}

/// Stores `end`, the offset at which data will be appended, in the flag bits.
///
/// # Errors
/// Returns an error if all offsets are used, or if the stored offsets are invalid.
fn announce(flags: &mut FlagBits, end: u64) -> Result<(), UlogError> {
    let first = size_of::<FileHeader>() as u64 + HEADER_LEN + size_of::<FlagBits>() as u64;
    let used = flags.appended_offsets.map(U64Le::get);
    let free = used.iter().position(|offset| *offset == 0);
    let last = free.unwrap_or(used.len());
    // If all programs follow the procedure of the specification, the used offsets come first and
    // are in ascending order. Any other order is damage.
    let ascending =
        used[..last].is_sorted_by(|a, b| a < b) && used[..last].iter().all(|offset| *offset >= first);
    let inside = used[..last].last().is_none_or(|offset| *offset <= end);
    if !ascending || !inside || used[last..].iter().any(|offset| *offset != 0) {
        return Err(UlogError::CannotAppend { why: "its offsets of appended data contradict its file size" });
    }
    flags.incompat_flags[0] |= 1;
    if last > 0 && used[last - 1] == end {
        // An earlier program stored this offset, but was interrupted before it appended any data.
        return Ok(());
    }
    match free {
        Some(free) => flags.appended_offsets[free] = U64Le::new(end),
        None => {
            return Err(UlogError::CannotAppend {
                why: "data was already appended three times, and the header has no room for a fourth offset",
            });
        }
    }
    Ok(())
}
