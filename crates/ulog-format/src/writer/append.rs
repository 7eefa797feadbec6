//! Appending to a finished log by the specification's own procedure.

use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use rovelog_core::ReadOptions;
use rovelog_core::wire::U64Le;
use zerocopy::IntoBytes;

use super::{Stage, UlogWriter};
use crate::error::UlogError;
use crate::stream::{StreamItem, UlogStream};
use crate::wire::{FLAG_BITS_AT, FileHeader, FlagBits, HEADER_LEN, Message};

/// Appends messages to the log in `file`, as is done with crash data after a flight.
///
/// "Set the relevant `incompat_flags` bit, set the first `appended_offsets` that is 0 to the length
/// of the log file, then append any type of messages that are valid for the Data section": the log
/// may be cut anywhere before that, and three times is all. `add` writes to memory; the file is
/// only touched when it has succeeded and written something. It knows the log's formats and topics:
/// [`topic`](UlogWriter::topic) finds a topic to add rows to, [`subscribe`](UlogWriter::subscribe)
/// adds an instance of a format the log has; new formats are refused. Some readers, pyulog 1.3
/// among them, forget the earlier subscriptions at the offset: rows of an instance that is
/// subscribed here reach them too.
///
/// # Errors
/// Returns an error if the file is no ULog, has no flag bits or no offset left, and whatever `add`
/// returns.
pub fn append<F: Read + Write + Seek>(
    file: &mut F,
    add: impl FnOnce(&mut UlogWriter<Vec<u8>>) -> Result<(), UlogError>,
) -> Result<(), UlogError> {
    file.seek(SeekFrom::Start(0))?;
    let mut log = UlogStream::new(&mut *file, &ReadOptions::default())?;
    if !log.scanner().is_intact {
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
            more.tables.learn(&message);
        }
    }
    more.now = log.log_time();
    drop(log);
    let Some(mut flags) = flags else {
        return Err(UlogError::CannotAppend {
            why: "it has no flag bits, so there is no place for the offset",
        });
    };

    let end = file.seek(SeekFrom::End(0))?;
    announce(&mut flags, end)?;
    add(&mut more)?;
    let bytes = more.finish()?;
    if bytes.is_empty() {
        return Ok(());
    }
    // In this order: whenever it is interrupted, the log is valid, and cut at worst.
    file.seek(SeekFrom::Start(FLAG_BITS_AT + HEADER_LEN))?;
    file.write_all(flags.as_bytes())?;
    file.seek(SeekFrom::Start(end))?;
    file.write_all(&bytes)?;
    file.flush()?;
    Ok(())
}

/// Appends messages to the log at `path`: see [`append`].
///
/// # Errors
/// As there.
pub fn append_to_file(
    path: impl AsRef<Path>,
    add: impl FnOnce(&mut UlogWriter<Vec<u8>>) -> Result<(), UlogError>,
) -> Result<(), UlogError> {
    append(&mut OpenOptions::new().read(true).write(true).open(path)?, add)
}

/// Notes that data starts at `end`.
fn announce(flags: &mut FlagBits, end: u64) -> Result<(), UlogError> {
    let first = size_of::<FileHeader>() as u64 + HEADER_LEN + size_of::<FlagBits>() as u64;
    let used = flags.appended_offsets.map(U64Le::get);
    let free = used.iter().position(|offset| *offset == 0);
    let last = free.unwrap_or(used.len());
    // A reader takes ascending offsets only, and no reader leaves holes between them, only damage does.
    let ascending =
        used[..last].is_sorted_by(|a, b| a < b) && used[..last].iter().all(|offset| *offset >= first);
    let inside = used[..last].last().is_none_or(|offset| *offset <= end);
    if !ascending || !inside || used[last..].iter().any(|offset| *offset != 0) {
        return Err(UlogError::CannotAppend { why: "its offsets of appended data contradict its length" });
    }
    flags.incompat_flags[0] |= 1;
    if last > 0 && used[last - 1] == end {
        // The last one to append had announced itself and written nothing.
        return Ok(());
    }
    match free {
        Some(free) => flags.appended_offsets[free] = U64Le::new(end),
        None => {
            return Err(UlogError::CannotAppend {
                why: "data was appended three times, and there are no more offsets",
            });
        }
    }
    Ok(())
}
