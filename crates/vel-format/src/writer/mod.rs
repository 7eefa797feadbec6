//! Writing of new logs. Messages are written one by one, or all at once with an exact index. See
//! sections 2 and 5 of docs/formats/vel.md.

mod index;
mod message;

use std::borrow::Borrow;
use std::io::{Read, Seek, SeekFrom, Write};

use binrw::BinWrite as _;
use rovelog_core::internal::output::FailFast;
use rovelog_core::internal::scan::Window;
use rovelog_core::internal::wire::{F64Le, I32Le, I64Le, U16Le, U32Le};
use zerocopy::IntoBytes;

use index::entries as index_entries;
pub use message::NewMessage;

use crate::declared::Types;
use crate::error::VelError;
use crate::indexing::IndexOrigin;
use crate::message::SizeRule;
use crate::validate::{CHAIN, MAX_DATA, Seen, size_rule};
use crate::wire::{
    Counted, FileHeader, FileIndex, HEADER_LEN, INDEX_AT, MAGIC, MARKER_INVALID, MARKER_PRINTED,
    MessageHeader, TERMINATOR, entries_len,
};

/// Options for writing a log. The default follows the VEL specification literally.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteOptions {
    /// Meaning of the size field of messages. By default, the size counts everything except the
    /// size field.
    pub size_rule: SizeRule,
    /// Marker of valid messages. The default is 0x49.
    pub marker: u8,
    /// Major and minor version in the file header. The default is 1.1.
    pub version: (u16, u16),
    /// Time from which the index counts seconds. The default is the time of the first message.
    pub origin: IndexOrigin,
    /// True to end the log with an end mark. The default is false.
    pub terminator: bool,
    /// Number of index entries that are reserved at the start of a recording, one for each second.
    /// The default is 3600.
    pub reserve: u32,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            size_rule: SizeRule::Exclusive,
            marker: MARKER_PRINTED,
            version: (1, 1),
            origin: IndexOrigin::FirstMessage,
            terminator: false,
            reserve: 3600,
        }
    }
}

impl WriteOptions {
    /// Sets the meaning of the size field of messages.
    #[must_use]
    pub fn with_size_rule(mut self, rule: SizeRule) -> Self {
        self.size_rule = rule;
        self
    }

    /// Sets the marker of valid messages.
    #[must_use]
    pub fn with_marker(mut self, marker: u8) -> Self {
        self.marker = marker;
        self
    }

    /// Ends the log with an end mark.
    #[must_use]
    pub fn with_terminator(mut self) -> Self {
        self.terminator = true;
        self
    }

    /// Returns the bytes after the last message: the end mark, or no bytes.
    pub(crate) fn end(&self) -> &'static [u8] {
        if self.terminator { &const { TERMINATOR.to_le_bytes() } } else { &[] }
    }

    /// Sets the number of index entries that are reserved at the start of a recording. One entry is
    /// needed for each second.
    #[must_use]
    pub fn with_reserve(mut self, entries: u32) -> Self {
        self.reserve = entries;
        self
    }
}

/// Number of messages, bytes and index entries that were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// Number of messages that were written.
    pub messages: u64,
    /// Size of the log in bytes.
    pub bytes: u64,
    /// Number of index entries. 0 if the output cannot seek.
    pub index_entries: u64,
    /// True if the index ends early, because a timestamp jumps too far for an index.
    pub index_cut: bool,
}

/// Returns the header of a file with these options.
pub(crate) fn file_header(options: &WriteOptions) -> FileHeader {
    let (major, minor) = options.version;
    FileHeader { magic: MAGIC, major: U16Le::new(major), minor: U16Le::new(minor) }
}

/// Returns the header of a message. Its size follows from the length of the data and the size rule.
fn message_header(message: &NewMessage<'_>, options: &WriteOptions) -> Result<MessageHeader, VelError> {
    let len = message.data.len() as u64;
    if len > MAX_DATA {
        return Err(VelError::TooLong { len, max: MAX_DATA });
    }
    let size = u32::try_from(len + options.size_rule.overhead()).expect("at most 1 GiB and a header");
    Ok(MessageHeader {
        size: U32Le::new(size),
        marker: message.marker.unwrap_or(options.marker),
        type_id: U32Le::new(message.type_id),
        version: I32Le::new(message.version),
        timestamp: F64Le::new(message.millis),
    })
}

/// Returns whether an index entry may refer to a message. Entries never refer to messages that are
/// marked as invalid.
fn is_indexed(message: &NewMessage<'_>, options: &WriteOptions) -> bool {
    message.marker.unwrap_or(options.marker) != MARKER_INVALID
}

/// Returns the bytes of a file header followed by an index.
pub(crate) fn head(header: FileHeader, entries: &[u64]) -> Result<Vec<u8>, VelError> {
    let positions: Vec<_> =
        entries.iter().map(|at| I64Le::new(i64::try_from(*at).unwrap_or(i64::MAX))).collect();
    let mut out = std::io::Cursor::new(header.as_bytes().to_vec());
    out.set_position(size_of::<FileHeader>() as u64);
    let index = FileIndex { positions: Counted(&positions) };
    index.write(&mut out).map_err(|error| VelError::Io(std::io::Error::other(error)))?;
    Ok(out.into_inner())
}

/// Writes a log in one pass, with an exact index. All messages must be known.
///
/// # Errors
/// Returns an error if writing fails, or if a message is longer than readers accept.
pub fn write_log(
    messages: &[NewMessage<'_>],
    options: &WriteOptions,
    out: impl Write,
) -> Result<Written, VelError> {
    write_all(messages.iter(), options, options.end(), out)
}

/// Writes messages of other logs, followed by the bytes `end`. If a reader would not infer the size
/// rule in `options` from these messages, another size rule is used: the first rule in
/// [`SizeRule::ALL`] that a reader would infer correctly. See section 3 of docs/formats/vel.md.
pub(crate) fn write_copies<'a>(
    messages: impl ExactSizeIterator<Item = NewMessage<'a>> + Clone,
    options: &WriteOptions,
    end: &[u8],
    types: &Types,
    out: impl Write,
) -> Result<Written, VelError> {
    let size_rule = readable_size_rule(&messages, end, options, types)?;
    write_all(messages, &WriteOptions { size_rule, ..options.clone() }, end, out)
}

/// Maximum number of messages that are encoded to find out which size rule a reader would infer. A
/// reader uses one message less.
const RULE_MESSAGES: usize = CHAIN as usize + 1;

/// Maximum number of bytes that are encoded to find out which size rule a reader would infer.
const RULE_BYTES: u64 = 32 << 20;

/// Returns a size rule that a reader would infer correctly from these messages and the bytes `tail`
/// after them. This is the rule in `options` if possible. If not, it is the first such rule in
/// [`SizeRule::ALL`].
fn readable_size_rule<'a>(
    messages: &(impl ExactSizeIterator<Item = NewMessage<'a>> + Clone),
    tail: &[u8],
    options: &WriteOptions,
    types: &Types,
) -> Result<SizeRule, VelError> {
    let (wanted, count) = (options.size_rule, messages.len());
    for rule in std::iter::once(wanted).chain(SizeRule::ALL.into_iter().filter(|rule| *rule != wanted)) {
        let options = WriteOptions { size_rule: rule, ..options.clone() };
        if is_inferred(messages.clone(), tail, &options, types)? {
            return Ok(rule);
        }
    }
    Err(VelError::SizesAmbiguous { messages: count })
}

/// Returns whether a reader would infer the size rule in `options` from these messages and the
/// bytes `tail` after them.
pub(crate) fn is_inferred<'a>(
    messages: impl ExactSizeIterator<Item = NewMessage<'a>>,
    tail: &[u8],
    options: &WriteOptions,
    types: &Types,
) -> Result<bool, VelError> {
    let (mut encoded, mut first) = (Vec::new(), 0);
    let count = messages.len();
    for message in messages.take(RULE_MESSAGES) {
        if encoded.len() as u64 >= RULE_BYTES {
            break;
        }
        encoded.extend_from_slice(message_header(&message, options)?.as_bytes());
        encoded.extend_from_slice(&message.data);
        first += 1;
    }
    // The bytes after the last message affect the inference only if the reader uses all messages
    // for it.
    if first == count {
        encoded.extend_from_slice(tail);
    }
    let read = size_rule(Window::whole(&encoded), 0, types, &Seen::new()).expect("all bytes are there");
    Ok(count == 0 || read.rule == options.size_rule)
}

/// Writes the header, the index, the messages, and the bytes `end`.
fn write_all<'a, M: Borrow<NewMessage<'a>>>(
    messages: impl ExactSizeIterator<Item = M> + Clone,
    options: &WriteOptions,
    end: &[u8],
    mut out: impl Write,
) -> Result<Written, VelError> {
    let mut at = 0;
    let count = messages.len() as u64;
    // The index precedes the messages in the file, so the offsets of all messages are computed
    // first.
    let mut places: Vec<(u64, f64)> = Vec::with_capacity(messages.len());
    for message in messages.clone() {
        let message = message.borrow();
        if is_indexed(message, options) {
            places.push((at, message.millis));
        }
        at += HEADER_LEN + message.data.len() as u64;
    }
    let (mut entries, index_cut) = index_entries(&places, options.origin);
    let first = INDEX_AT + entries_len(entries.len() as u64);
    for entry in &mut entries {
        *entry += first;
    }
    out.write_all(&head(file_header(options), &entries)?)?;
    for message in messages {
        let message = message.borrow();
        out.write_all(message_header(message, options)?.as_bytes())?;
        out.write_all(&message.data)?;
    }
    out.write_all(end)?;
    out.flush()?;
    let (bytes, index_entries) = (first + at + end.len() as u64, entries.len() as u64);
    Ok(Written { messages: count, bytes, index_entries, index_cut })
}

/// A writer for recording a log message by message.
///
/// ```
/// use vel_format::{NewMessage, VelWriter, WriteOptions};
///
/// let mut log = VelWriter::new(std::io::Cursor::new(Vec::new()), WriteOptions::default())?;
/// for i in 0..3 {
///     log.write(&NewMessage::raw(0x0001_806E, 100, 1000.0 * f64::from(i), vec![0; 8]))?;
/// }
/// let (file, written) = log.finish()?;
/// assert_eq!((written.messages, written.index_entries), (3, 3600));
/// # let log = vel_format::VelReader::new(file.into_inner().into(), &Default::default())?;
/// # assert_eq!(log.messages().len(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct VelWriter<W> {
    out: FailFast<W>,
    options: WriteOptions,
    messages: u64,
    /// Offset and time in milliseconds of each message to which an index entry may refer.
    places: Vec<(u64, f64)>,
    at: u64,
}

impl<W: Write> VelWriter<W> {
    /// Starts a log and reserves space for an index, which [`finish`](Self::finish) writes. The
    /// output `out` must be empty.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn new(out: W, options: WriteOptions) -> Result<Self, VelError> {
        let at = INDEX_AT + entries_len(options.reserve.into());
        let mut writer = Self { out: FailFast::new(out), options, messages: 0, places: Vec::new(), at };
        let index = vec![0; writer.options.reserve as usize];
        let head = head(file_header(&writer.options), &index)?;
        writer.put(&head)?;
        Ok(writer)
    }

    /// Starts a log on an output that cannot seek. The index of such a log has no entries.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn streaming(out: W, options: &WriteOptions) -> Result<Self, VelError> {
        Self::new(out, WriteOptions { reserve: 0, ..options.clone() })
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), VelError> {
        Ok(self.out.write_all(bytes)?)
    }

    /// Writes a message to the log.
    ///
    /// # Errors
    /// Returns an error if writing fails, or if the message is longer than readers accept.
    pub fn write(&mut self, message: &NewMessage<'_>) -> Result<(), VelError> {
        let header = message_header(message, &self.options)?;
        self.put(header.as_bytes())?;
        self.put(&message.data)?;
        self.messages += 1;
        if is_indexed(message, &self.options) {
            self.places.push((self.at, message.millis));
        }
        self.at += HEADER_LEN + message.data.len() as u64;
        Ok(())
    }

    /// Finishes a log on an output that cannot seek.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn finish_streaming(mut self) -> Result<(W, Written), VelError> {
        self.end()?;
        let entries = u64::from(self.options.reserve);
        let written = self.written(entries, false);
        Ok((self.out.into_inner()?, written))
    }

    fn end(&mut self) -> Result<(), VelError> {
        // If there is no end mark, this writes zero bytes, which still reports an earlier write
        // error.
        self.put(self.options.end())?;
        self.out.flush()?;
        Ok(())
    }

    fn written(&self, index_entries: u64, index_cut: bool) -> Written {
        let end = if self.options.terminator { 4 } else { 0 };
        Written { messages: self.messages, bytes: self.at + end, index_entries, index_cut }
    }
}

/// Number of bytes that are moved at once.
const MOVE_BYTES: u64 = 1 << 20;

impl<W: Read + Write + Seek> VelWriter<W> {
    /// Finishes the log and writes its index. Reserved entries that are not needed get the offset
    /// at which the messages end. If too few entries were reserved, all messages are moved once.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn finish(mut self) -> Result<(W, Written), VelError> {
        self.end()?;
        let (mut entries, cut) = index_entries(&self.places, self.options.origin);
        let reserve = self.options.reserve as usize;
        if entries.len() > reserve {
            let by = entries_len((entries.len() - reserve) as u64);
            self.grow_index(by)?;
            for entry in &mut entries {
                *entry += by;
            }
            self.at += by;
        }
        entries.resize(entries.len().max(reserve), self.at);
        self.out.seek(SeekFrom::Start(0))?;
        self.put(&head(file_header(&self.options), &entries)?)?;
        self.out.seek(SeekFrom::End(0))?;
        self.out.flush()?;
        let written = self.written(entries.len() as u64, cut);
        Ok((self.out.into_inner()?, written))
    }

    /// Moves everything after the index by `by` bytes. The last bytes are moved first, so that
    /// nothing is overwritten before it is moved.
    fn grow_index(&mut self, by: u64) -> Result<(), VelError> {
        let from = INDEX_AT + entries_len(self.options.reserve.into());
        let mut end = self.out.seek(SeekFrom::End(0))?;
        let mut buffer = Vec::new();
        while end > from {
            let start = end.saturating_sub(MOVE_BYTES).max(from);
            buffer.resize(usize::try_from(end - start).expect("a mebibyte"), 0);
            self.out.seek(SeekFrom::Start(start))?;
            self.out.read_exact(&mut buffer)?;
            self.out.seek(SeekFrom::Start(start + by))?;
            self.put(&buffer)?;
            end = start;
        }
        Ok(())
    }
}
