//! Recognizes message headers without parsing them. The headers of consecutive messages usually
//! differ only in the connection id and the time. Comparing all other bytes with the previous
//! header is therefore enough.

use rovelog_core::internal::scan::Window;
use rovelog_core::internal::wire::{U32Le, U64Le};
use zerocopy::FromBytes;

use super::probe::{Probe, probe};
use super::wire::{self, Header, Stamp};
use crate::message::{MessageRef, usize_of};
use crate::wire::RecordHead;

const WORD: usize = size_of::<U64Le>();
const LEN: usize = size_of::<U32Le>();

/// Maximum number of 8-byte words in a template. Headers that need more words are always parsed.
const WORDS: usize = 8;

/// Eight consecutive bytes of a message header.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    /// Offset of the eight bytes in the record.
    at: usize,
    /// Mask of the bits that are compared.
    mask: u64,
    /// Expected value of the bits that are compared.
    value: u64,
}

/// Header of a message with its length field, for comparison with other headers. The bytes of the
/// connection id and of the time are masked out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Template {
    /// Header in words of eight bytes.
    words: [Word; WORDS],
    /// Number of entries of `words` that are used.
    word_count: usize,
    /// Size in bytes of the header, including the length field of the header.
    len: usize,
    /// Size in bytes of the message record without its data.
    head_len: u32,
    /// Offset of the connection id in the record.
    conn_at: usize,
    /// Offset of the time in the record.
    time_at: usize,
}

impl Template {
    /// Creates a template from the message at the start of `record`. Returns `None` if the message
    /// header is too long for a template. No recorder writes such long headers.
    pub(crate) fn of(record: &[u8]) -> Option<Self> {
        let head = RecordHead::read(record)?;
        let Some(Header::Message(wire::Message { conn, time })) = Header::read(head.header) else {
            return None;
        };
        let len = head.size() - LEN;
        // The fields `conn` and `time` are references into the record, so their addresses give
        // their offsets.
        let place = |value: *const u8| value as usize - record.as_ptr() as usize;
        let (conn_at, time_at) =
            (place(std::ptr::from_ref(conn).cast()), place(std::ptr::from_ref(time).cast()));
        let mut mask = [u8::MAX; WORDS * WORD];
        mask.get_mut(..len)?;
        // The connection id and the time differ between messages, so they are not compared.
        mask[conn_at..conn_at + size_of::<U32Le>()].fill(0);
        mask[time_at..time_at + size_of::<Stamp>()].fill(0);
        let mut words = [Word::default(); WORDS];
        let word_count = len.div_ceil(WORD);
        for (number, word) in words.iter_mut().enumerate().take(word_count) {
            // The last word overlaps the word before it, so that the last word ends where the
            // header ends.
            let at = (number * WORD).min(len - WORD);
            let mask = U64Le::first(&mask[at..])?.get();
            *word = Word { at, mask, value: U64Le::first(&record[at..])?.get() & mask };
        }
        let head_len = u32::try_from(head.size()).ok()?;
        Some(Self { words, word_count, len, head_len, conn_at, time_at })
    }

    /// Returns the message at offset `at`, if its header matches the template and `data` contains
    /// the whole record. The field `origin` of the message contains the connection id.
    #[inline]
    pub(crate) fn find(&self, data: &[u8], at: usize) -> Option<MessageRef> {
        let head = data.get(at..)?.get(..self.len + LEN)?;
        for &Word { at, mask, value } in &self.words[..self.word_count] {
            let (word, _) = U64Le::ref_from_prefix(head.get(at..)?).ok()?;
            if word.get() & mask != value {
                return None;
            }
        }
        let (conn, _) = U32Le::ref_from_prefix(head.get(self.conn_at..)?).ok()?;
        let (time, _) = Stamp::ref_from_prefix(head.get(self.time_at..)?).ok()?;
        let (data_len, _) = U32Le::ref_from_prefix(head.get(self.len..)?).ok()?;
        let (head_len, payload_len) = (self.head_len, data_len.get());
        if data.len() - at - (head_len as usize) < payload_len as usize {
            return None;
        }
        let (at, origin, sec, nsec) = (at as u64, conn.get(), time.sec.get(), time.nsec.get());
        Some(MessageRef { at, head_len, payload_len, origin, sec, nsec, ..MessageRef::default() })
    }
}

/// Reads the heads of messages that are copied to another bag.
#[derive(Debug, Default)]
pub(crate) struct HeadReader {
    /// Template of the header of the last message.
    template: Option<Template>,
    /// Fields in the header of the last message that the specification does not define, encoded.
    other_fields: Vec<u8>,
}

impl HeadReader {
    /// Returns the time of a message and the offset of the payload in `record`. Returns `None` if
    /// `record` is not a message.
    pub(crate) fn read(&mut self, record: &[u8]) -> Option<(Stamp, usize)> {
        // A header that matches the template has the same additional fields as the previous header.
        if let Some(message) = self.template.as_ref().and_then(|template| template.find(record, 0)) {
            return Some((Stamp::new(message.sec, message.nsec), message.head_len as usize));
        }
        let Ok(Probe::Good(found)) = probe(Window::whole(record), 0) else { return None };
        let Header::Message(wire::Message { time, .. }) = found.header else { return None };
        self.other_fields = found.header.others(RecordHead::read(record)?.header);
        self.template = Template::of(record);
        Some((*time, usize_of(found.data_at)))
    }

    /// Returns the fields in the header of the last message that the specification does not define.
    pub(crate) fn other_fields(&self) -> &[u8] {
        &self.other_fields
    }
}
