//! Shapes of message headers, which make a scan fast.
//!
//! The headers of all messages of a connection have the same bytes, except for the eight bytes of
//! the time. A shape stores these common bytes. If a header matches a known shape, the scan does not
//! parse the header.

use std::collections::HashMap;
use std::mem::offset_of;

use rovelog_core::internal::wire::{U32Le, U64Le};
use zerocopy::FromBytes;

use crate::headers::Fields;
use crate::message::{MessageRef, Publisher};
use crate::wire::{Data, Header, OldStamp, RecordHead};

/// Size in bytes of a length field, and of the seconds or nanoseconds of the time.
const LEN: usize = size_of::<U32Le>();

/// The bytes that equal message headers have in common. Only the time differs.
#[derive(Debug)]
pub(crate) struct Shape {
    /// Bytes of the record up to and including the length of its data, with zeros in place of the
    /// time.
    template: Box<[u8]>,
    /// Offset of the seconds in the record.
    sec_at: usize,
    /// Offset of the nanoseconds in the record.
    nsec_at: usize,
    /// Offsets of the seconds and nanoseconds, in ascending order.
    holes: [usize; 2],
    /// Index of the connection that the header names.
    pub(crate) connection: u32,
    /// Publisher that the header names.
    pub(crate) publisher: Publisher,
    /// Number of messages with this header.
    pub(crate) count: u64,
    /// Index of the shape that the next message had the last time. The next message probably has
    /// this shape again.
    next: u32,
}

impl Shape {
    #[inline]
    fn matches(&self, bytes: &[u8]) -> bool {
        let [low, high] = self.holes;
        let template = &*self.template;
        let Some(bytes) = bytes.get(..template.len()) else { return false };
        // Compare the end of the header first. The type and the topic are there, and they differ
        // most often.
        bytes[high + LEN..] == template[high + LEN..]
            && bytes[..low] == template[..low]
            && bytes[low + LEN..high] == template[low + LEN..high]
    }
}

/// A message whose header matched a known shape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MatchedHeader {
    /// Index of the shape that the header matched.
    pub(crate) shape: u32,
    /// Seconds part of the message time.
    pub(crate) sec: u32,
    /// Nanoseconds part of the message time.
    pub(crate) nsec: u32,
    /// Size in bytes of the part of the record before its data.
    pub(crate) head: u32,
    /// Size in bytes of the record data.
    pub(crate) len: u32,
}

impl MatchedHeader {
    /// Returns a reference to the message whose record is at offset `at`. The field `seq` is set to
    /// 0.
    #[inline]
    pub(crate) fn message(&self, at: u64, connection: u32) -> MessageRef {
        let Self { sec, nsec, head: head_len, len: payload_len, .. } = *self;
        MessageRef { at, head_len, payload_len, connection, sec, nsec, ..MessageRef::default() }
    }

    /// Returns the size in bytes of the message record.
    #[inline]
    pub(crate) fn size(&self) -> usize {
        self.head as usize + self.len as usize
    }
}

const SLOTS: usize = 1 << 10;

/// All shapes of message headers found so far.
#[derive(Debug)]
pub(crate) struct Shapes {
    /// All shapes, in the order in which they were found.
    pub(crate) list: Vec<Shape>,
    /// Map from the hash of a header to the index of the shape that was found last. Empty slots
    /// have an index that no shape has.
    slots: Box<[u32; SLOTS]>,
    /// Map from the template of a shape to the index of the shape.
    by_template: HashMap<Box<[u8]>, u32>,
    /// Reusable buffer for building templates.
    scratch: Vec<u8>,
}

impl Default for Shapes {
    fn default() -> Self {
        let slots = Box::new([u32::MAX; SLOTS]);
        Self { list: Vec::new(), slots, by_template: HashMap::new(), scratch: Vec::new() }
    }
}

impl Shapes {
    /// Returns the message at the start of `bytes`, if its header matches a known shape and the
    /// whole record is in `bytes`. `after` is the index of the shape of the previous message.
    #[inline]
    pub(crate) fn find(&self, bytes: &[u8], after: u32) -> Option<MatchedHeader> {
        // Topics alternate in a pattern, so the shape that came after the previous shape last time
        // is tried first.
        let guess = self.list.get(after as usize).map_or(u32::MAX, |shape| shape.next);
        let known = |number: u32| self.list.get(number as usize).filter(|shape| shape.matches(bytes));
        let (number, shape) = if let Some(shape) = known(guess) {
            (guess, shape)
        } else {
            // A wrong guess costs one hash of 40 bytes, which is faster than looking up the whole
            // header in a hash map.
            let number = self.slots[slot(bytes)?];
            (number, known(number)?)
        };
        shape.read(number, bytes)
    }

    /// Records that a message with the shape `shape` came directly after a message with the shape
    /// `after`.
    #[inline]
    pub(crate) fn follow(&mut self, after: u32, shape: u32) {
        if let Some(before) = self.list.get_mut(after as usize) {
            before.next = shape;
        }
    }

    /// Returns the message at the start of `bytes`, if its whole header matches any known shape.
    /// This function is slower than [`find`](Self::find).
    pub(crate) fn look_up(&self, bytes: &[u8], head: Head, scratch: &mut Vec<u8>) -> Option<MatchedHeader> {
        head.zeroed(bytes, scratch)?;
        let number = *self.by_template.get(&**scratch)?;
        self.list.get(number as usize)?.read(number, bytes)
    }

    /// Returns the message at the start of `bytes` like [`look_up`](Self::look_up). If no shape
    /// matches, a new shape is added, for the connection with index `connection` and the publisher
    /// that `publisher` returns.
    pub(crate) fn intern(
        &mut self,
        bytes: &[u8],
        head: Head,
        connection: u32,
        publisher: impl FnOnce() -> Publisher,
    ) -> Option<MatchedHeader> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut matched = self.look_up(bytes, head, &mut scratch);
        if matched.is_none() && head.zeroed(bytes, &mut scratch).is_some() {
            let number = u32::try_from(self.list.len()).ok()?;
            let template: Box<[u8]> = scratch.as_slice().into();
            let (sec_at, nsec_at) = (head.sec_at, head.nsec_at);
            let shape = Shape {
                template: template.clone(),
                sec_at,
                nsec_at,
                holes: [sec_at.min(nsec_at), sec_at.max(nsec_at)],
                connection,
                publisher: publisher(),
                count: 0,
                next: number,
            };
            matched = shape.read(number, bytes);
            self.list.push(shape);
            self.by_template.insert(template, number);
        }
        self.scratch = scratch;
        if let (Some(matched), Some(slot)) = (matched, slot(bytes)) {
            // Headers with equal hashes replace each other in the table. This costs time but never
            // gives a wrong result, because `find` compares the header with the shape.
            self.slots[slot] = matched.shape;
        }
        matched
    }
}

impl Shape {
    #[inline]
    fn read(&self, number: u32, bytes: &[u8]) -> Option<MatchedHeader> {
        let template = self.template.len();
        let len = number_at(bytes, template)?;
        let head = u32::try_from(template + LEN).ok()?;
        if bytes.len() - (head as usize) < len as usize {
            return None;
        }
        let (sec, nsec) = (number_at(bytes, self.sec_at)?, number_at(bytes, self.nsec_at)?);
        Some(MatchedHeader { shape: number, sec, nsec, head, len })
    }
}

/// Returns the 32-bit number at offset `at`.
#[inline]
fn number_at(bytes: &[u8], at: usize) -> Option<u32> {
    U32Le::ref_from_prefix(bytes.get(at..)?).ok().map(|(number, _)| number.get())
}

/// Layout of the head of a message record: its size and the offsets of the time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    /// Size in bytes of the record up to and including the length of its data.
    len: usize,
    /// Offset of the seconds in the record.
    sec_at: usize,
    /// Offset of the nanoseconds in the record.
    nsec_at: usize,
}

impl Head {
    /// Returns the layout of the head and the parsed header of the message at the start of `bytes`.
    pub(crate) fn of(bytes: &[u8]) -> Option<(Self, Data<'_>)> {
        let head = RecordHead::read(bytes)?;
        let (Header::Data(data), _) = Header::interpret(&Fields::read(head.header)?)? else { return None };
        let place = |number: &U32Le| std::ptr::from_ref(number) as usize - bytes.as_ptr() as usize;
        let (sec_at, nsec_at) = (place(data.sec), place(data.nsec));
        Some((Self { len: head.size() - LEN, sec_at, nsec_at }, data))
    }

    /// Returns the layout of a message before V1.2, whose record starts with text lines of `lines`
    /// bytes in total.
    pub(crate) fn old(lines: usize) -> Self {
        let [len, sec_at, nsec_at] =
            [offset_of!(OldStamp, data_len), offset_of!(OldStamp, sec), offset_of!(OldStamp, nsec)];
        Self { len: lines + len, sec_at: lines + sec_at, nsec_at: lines + nsec_at }
    }

    fn zeroed(self, bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
        out.clear();
        out.extend_from_slice(bytes.get(..self.len)?);
        out.get_mut(self.sec_at..self.sec_at + LEN)?.fill(0);
        out.get_mut(self.nsec_at..self.nsec_at + LEN)?.fill(0);
        Some(())
    }
}

/// Returns a hash of the message header at the start of `bytes`. Only the last 40 bytes of the
/// header are hashed, because they usually contain the type and the topic.
#[inline]
fn slot(bytes: &[u8]) -> Option<usize> {
    let (len, rest) = U32Le::ref_from_prefix(bytes).ok()?;
    let len = len.get();
    let header = rest.get(..usize::try_from(len).ok()?)?;
    let mut hash = u64::from(len).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for word in header.rchunks_exact(8).take(5) {
        let word = U64Le::ref_from_bytes(word).map_or(0, |word| word.get());
        hash = (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    usize::try_from(hash >> 54).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(topic: &str, sec: u32) -> Vec<u8> {
        let header = Header::Data(Data {
            topic: topic.as_bytes(),
            md5: b"*",
            ty: b"a/B",
            sec: &U32Le::new(sec),
            nsec: &U32Le::new(7),
            latching: None,
            callerid: None,
        });
        [header.to_head(2), b"hi".to_vec()].concat()
    }

    fn head(record: &[u8]) -> Head {
        Head::of(record).unwrap().0
    }

    #[test]
    fn a_known_header_is_not_parsed_again() {
        let mut shapes = Shapes::default();
        let (a, b) = (record("/topic/number/one/a", 1), record("/topic/number/one/b", 2));
        assert!(shapes.find(&a, 0).is_none());
        assert_eq!(shapes.intern(&a, head(&a), 0, Publisher::default).unwrap().shape, 0);
        assert_eq!(shapes.intern(&b, head(&b), 0, Publisher::default).unwrap().shape, 1);
        let later = record("/topic/number/one/a", 9);
        let found = shapes.find(&later, 1).unwrap();
        assert_eq!((found.shape, found.sec, found.nsec, found.len), (0, 9, 7, 2));
        assert_eq!(found.size(), later.len());
        // A truncated record never matches a shape.
        assert!((0..later.len()).all(|len| shapes.find(&later[..len], 0).is_none()));
        assert!(shapes.find(&record("/topic/number/one/c", 9), 0).is_none());
    }
}
