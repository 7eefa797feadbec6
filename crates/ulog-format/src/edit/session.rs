//! Extraction of one recording from a file with several recordings. Implements rule M10 of
//! docs/formats/ulog.md.

use std::io::Write;

use rovelog_core::Sliced;
use rovelog_core::internal::splice::Splice;
use rovelog_core::internal::wire::U64Le;
use zerocopy::IntoBytes;

use super::guard::UnknownGuard;
use crate::error::UlogError;
use crate::index::MessageRef;
use crate::reader::UlogReader;
use crate::sessions::Session;
use crate::wire::{FLAG_BITS_AT, FileHeader, FlagBitsMessage, Message, kind};
use crate::writer::encoded;

/// Name of the information message from which a reader computes UTC (rule U2 of
/// docs/formats/ulog.md).
const BOOT_TIME: &str = "boot_time_utc_us";

impl UlogReader {
    /// Writes one of the recordings returned by [`sessions`](Self::sessions) as a separate log.
    ///
    /// # Errors
    /// Returns an error if the output cannot be written.
    pub fn write_session(&self, session: &Session, out: &mut dyn Write) -> rovelog_core::Result<Sliced> {
        Ok(write_session(self, session, out)?)
    }
}

/// Writes the messages of a session, after the definitions that the session needs.
///
/// If the clock restarts within a log, the new session depends on formats, information, parameters
/// and subscriptions from before the restart. These messages are copied without changes. Only
/// `boot_time_utc_us` is omitted, because it describes the previous boot.
///
/// # Errors
/// Returns an error if the output cannot be written.
fn write_session(log: &UlogReader, session: &Session, mut out: impl Write) -> Result<Sliced, UlogError> {
    let sessions = log.sessions();
    let with_header = sessions.iter().filter(|other| other.has_header).map(|other| other.range.start);
    let begin = with_header.filter(|start| *start <= session.range.start).max().unwrap_or(0);
    let mut copy = Splice::new([&**log.bytes()]);
    copy.append(header(log, session).as_bytes());
    let (mut sliced, mut guard) = (Sliced::default(), UnknownGuard::default());
    let within = |msg: &MessageRef<'_>| msg.at >= begin && msg.at < session.range.end;
    for msg in log.cursor().skip_while(|msg| msg.at < begin).take_while(within) {
        if msg.msg_type == kind::FLAG_BITS {
            if let Some(Message::FlagBits(FlagBitsMessage { flags, more })) = msg.message() {
                let flags = FlagBitsMessage { flags: flags.merged(), more };
                copy.append(&encoded(&Message::FlagBits(flags))?);
            }
            continue;
        }
        // Before the session, only definitions are copied. Rows that cannot be decoded are never
        // copied.
        let is_inside = msg.at >= session.range.start;
        let is_unneeded = !is_inside && !defines(&msg);
        let is_undecodable = msg.msg_type == kind::DATA && msg.row.is_none();
        if is_unneeded || is_undecodable {
            continue;
        }
        sliced.records += u64::from(msg.row.is_some());
        sliced.topics += usize::from(msg.msg_type == kind::SUBSCRIPTION);
        sliced.others += u64::from(is_inside && is_timed(&msg));
        if let Some(message) = msg.message() {
            guard.observe(&message);
        }
        copy.copy(0, msg.at..msg.end());
    }
    guard.finish(&mut copy)?;
    sliced.bytes = copy.len();
    copy.write(&mut out)?;
    out.flush()?;
    Ok(sliced)
}

/// Returns the header for the log with the session's messages. If the session has no header of its
/// own, the start time is the time of the session's first row.
fn header(log: &UlogReader, session: &Session) -> FileHeader {
    let bytes = usize::try_from(session.range.start).ok().and_then(|start| log.bytes().get(start..));
    let stored = bytes.and_then(|bytes| zerocopy::FromBytes::ref_from_prefix(bytes).ok());
    match stored {
        Some((header, _)) if session.has_header && session.range.start > 0 => *header,
        _ if session.has_header => *log.header(),
        _ => {
            let start = session.first.and_then(|first| u64::try_from(first.nanos / 1000).ok());
            FileHeader { timestamp: U64Le::new(start.unwrap_or(0)), ..*log.header() }
        }
    }
}

/// Returns `true` if a message from before the session is needed to read the session.
fn defines(msg: &MessageRef<'_>) -> bool {
    match msg.message() {
        Some(Message::Info(info)) => info.parse_key().is_none_or(|key| key.name != BOOT_TIME),
        Some(
            Message::Format(_)
            | Message::MultiInfo(_)
            | Message::Parameter(_)
            | Message::DefaultParameter(_)
            | Message::Subscription(_)
            | Message::Unsubscription(_),
        ) => true,
        _ => false,
    }
}

/// Returns `true` if a message is a console message, a dropout or a parameter change.
fn is_timed(msg: &MessageRef<'_>) -> bool {
    matches!(msg.msg_type, kind::LOGGED_STRING | kind::TAGGED_STRING | kind::DROPOUT | kind::PARAMETER)
}

// Flag bits directly follow the header, so the offset of the session's first message can be
// computed with `FLAG_BITS_AT`.
const _: () = assert!(size_of::<FileHeader>() as u64 == FLAG_BITS_AT);
