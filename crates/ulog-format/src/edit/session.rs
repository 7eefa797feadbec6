//! A recording of a file with several, as a log of its own.
//!
//! Rule M10 of docs/formats/ulog.md.

use std::io::Write;

use rovelog_core::Sliced;
use rovelog_core::splice::Splice;
use rovelog_core::wire::U64Le;
use zerocopy::IntoBytes;

use crate::error::UlogError;
use crate::index::Met;
use crate::reader::UlogReader;
use crate::sessions::Session;
use crate::wire::{FLAG_BITS_AT, FileHeader, FlagBitsMessage, Message, kind};
use crate::writer::encoded;

/// The information by which a reader places a log on UTC.
const BOOT_TIME: &str = "boot_time_utc_us";

impl UlogReader {
    /// Writes one of the [`sessions`](Self::sessions) as a log of its own.
    ///
    /// # Errors
    /// Returns an error if the output refuses.
    pub fn write_session(&self, session: &Session, out: &mut dyn Write) -> rovelog_core::Result<Sliced> {
        Ok(write_session(self, session, out)?)
    }
}

/// Writes the messages of a session of `log` behind the definitions that were active at its start:
/// all formats, information, parameters and subscriptions of the log that it is part of. The bytes of
/// messages stay the same. A session that starts with a restart of the clock has no
/// `boot_time_utc_us`, which is that of the boot before.
///
/// # Errors
/// Returns an error if the output refuses.
fn write_session(log: &UlogReader, session: &Session, mut out: impl Write) -> Result<Sliced, UlogError> {
    let sessions = log.sessions();
    let with_header = sessions.iter().filter(|other| other.has_header).map(|other| other.range.start);
    let begin = with_header.filter(|start| *start <= session.range.start).max().unwrap_or(0);
    let mut copy = Splice::new([&**log.bytes()]);
    copy.make(header(log, session).as_bytes());
    let mut sliced = Sliced::default();
    let within = |met: &Met<'_>| met.at >= begin && met.at < session.range.end;
    for met in log.cursor().skip_while(|met| met.at < begin).take_while(within) {
        if met.msg_type == kind::FLAG_BITS {
            if let Some(Message::FlagBits(FlagBitsMessage { flags, more })) = met.message() {
                let flags = FlagBitsMessage { flags: flags.merged(), more };
                copy.make(&encoded(&Message::FlagBits(flags))?);
            }
            continue;
        }
        let is_inside = met.at >= session.range.start;
        if !is_inside && !defines(&met) || met.msg_type == kind::DATA && met.row.is_none() {
            continue;
        }
        sliced.records += u64::from(met.row.is_some());
        sliced.topics += usize::from(met.msg_type == kind::SUBSCRIPTION);
        sliced.others += u64::from(is_inside && is_timed(&met));
        copy.copy(0, met.at..met.end());
    }
    sliced.bytes = copy.len();
    copy.write(&mut out)?;
    out.flush()?;
    Ok(sliced)
}

/// Returns the header of a session, which starts with its first row if it has none.
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

/// Returns whether a message before the session is needed in it.
fn defines(met: &Met<'_>) -> bool {
    match met.message() {
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

/// Returns whether a message is a text, a dropout or a change of a parameter.
fn is_timed(met: &Met<'_>) -> bool {
    matches!(met.msg_type, kind::LOGGED_STRING | kind::TAGGED_STRING | kind::DROPOUT | kind::PARAMETER)
}

/// The header of a file is as long as the place of its flag bits.
const _: () = assert!(size_of::<FileHeader>() as u64 == FLAG_BITS_AT);
