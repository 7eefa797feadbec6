//! Headers of messages that look like the one before: all but connection and time repeats, so a
//! comparison is enough.

use rovelog_core::scan::Window;
use rovelog_core::wire::{U32Le, U64Le};
use zerocopy::FromBytes;

use super::probe::{Probe, probe};
use super::wire::{self, Header, Stamp};
use crate::tables::usize_of;
use crate::wire::RecordHead;

const WORD: usize = size_of::<U64Le>();
const LEN: usize = size_of::<U32Le>();

/// A message of a chunk; places count in its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub(crate) at: usize,
    pub(crate) payload_at: usize,
    pub(crate) end: usize,
    pub(crate) conn: u32,
    pub(crate) time: Stamp,
}

/// Words of a header that are compared; longer ones are parsed.
const WORDS: usize = 8;

/// How the header of a message looks, its length included and that of the data not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Template {
    /// Where a word is, which of its bits count, and what they are.
    words: [(usize, u64, u64); WORDS],
    count: usize,
    len: usize,
    conn_at: usize,
    time_at: usize,
}

impl Template {
    /// Returns the one of the message that starts `record`; `None` if its header is longer than
    /// those of recorders.
    pub(crate) fn of(record: &[u8]) -> Option<Self> {
        let head = RecordHead::read(record)?;
        let Some(Header::Message(wire::Message { conn, time })) = Header::read(head.header) else {
            return None;
        };
        let len = head.size() - LEN;
        let place = |value: *const u8| value as usize - record.as_ptr() as usize;
        let (conn_at, time_at) =
            (place(std::ptr::from_ref(conn).cast()), place(std::ptr::from_ref(time).cast()));
        let mut mask = [u8::MAX; WORDS * WORD];
        mask.get_mut(..len)?;
        mask[conn_at..conn_at + size_of::<U32Le>()].fill(0);
        mask[time_at..time_at + size_of::<Stamp>()].fill(0);
        let mut words = [(0, 0, 0); WORDS];
        let count = len.div_ceil(WORD);
        for (number, word) in words.iter_mut().enumerate().take(count) {
            // The last one ends where the header does.
            let at = (number * WORD).min(len - WORD);
            let mask = U64Le::first(&mask[at..])?.get();
            *word = (at, mask, U64Le::first(&record[at..])?.get() & mask);
        }
        Some(Self { words, count, len, conn_at, time_at })
    }

    /// Returns the message at `at`, if it looks so and is in `data` whole.
    #[inline]
    pub(crate) fn find(&self, data: &[u8], at: usize) -> Option<Message> {
        let head = data.get(at..)?.get(..self.len + LEN)?;
        for &(at, mask, value) in &self.words[..self.count] {
            let (word, _) = U64Le::ref_from_prefix(head.get(at..)?).ok()?;
            if word.get() & mask != value {
                return None;
            }
        }
        let (conn, _) = U32Le::ref_from_prefix(head.get(self.conn_at..)?).ok()?;
        let (time, _) = Stamp::ref_from_prefix(head.get(self.time_at..)?).ok()?;
        let (data_len, _) = U32Le::ref_from_prefix(head.get(self.len..)?).ok()?;
        let payload_at = at + self.len + LEN;
        // A length of 4 GiB must not overflow on machines of 32 bits.
        let end = payload_at.checked_add(data_len.get() as usize).filter(|end| *end <= data.len())?;
        Some(Message { at, payload_at, end, conn: conn.get(), time: *time })
    }
}

/// Reads the heads of messages that are copied.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    template: Option<Template>,
    others: Vec<u8>,
}

impl Heads {
    /// Returns the time of the message of a record as it is stored, and where its payload starts;
    /// `None` of what is no message.
    pub(crate) fn read(&mut self, record: &[u8]) -> Option<(Stamp, usize)> {
        // Headers that are equal but for connection and time have the same other fields.
        if let Some(message) = self.template.as_ref().and_then(|template| template.find(record, 0)) {
            return Some((message.time, message.payload_at));
        }
        let Ok(Probe::Good(found)) = probe(Window::whole(record), 0) else { return None };
        let Header::Message(wire::Message { time, .. }) = found.header else { return None };
        self.others = found.header.others(RecordHead::read(record)?.header);
        self.template = Template::of(record);
        Some((*time, usize_of(found.data_at)))
    }

    /// Returns the fields without a meaning of the header that was read last.
    pub(crate) fn others(&self) -> &[u8] {
        &self.others
    }
}
