//! Shapes: what stays the same in the headers of a connection's messages.
//!
//! All but the stamp repeats from message to message. A header that equals a known shape outside of
//! its eight bytes of time needs no parsing: that is what makes a scan fast.

use std::collections::HashMap;
use std::mem::offset_of;

use rovelog_core::wire::{U32Le, U64Le};
use zerocopy::FromBytes;

use crate::headers::Fields;
use crate::wire::{Data, Header, OldStamp, RecordHead};

/// Bytes of a number of 32 bits.
const LEN: usize = size_of::<U32Le>();

/// What the records with one header have in common, times left out.
#[derive(Debug)]
pub(crate) struct Shape {
    /// A record up to the length of its data, with zeros for the time.
    template: Box<[u8]>,
    /// Offsets of seconds and nanoseconds in it, and the same in ascending order.
    sec_at: usize,
    nsec_at: usize,
    holes: [usize; 2],
    pub(crate) connection: u32,
    /// Whether the publisher latches.
    pub(crate) latching: bool,
    /// An index into the names of publishers.
    pub(crate) callerid: Option<u32>,
    /// Messages with this header.
    pub(crate) count: u64,
    /// The shape that came behind this one last time.
    next: u32,
}

impl Shape {
    #[inline]
    fn matches(&self, bytes: &[u8]) -> bool {
        let [low, high] = self.holes;
        let template = &*self.template;
        let Some(bytes) = bytes.get(..template.len()) else { return false };
        // The end differs most often: there are topic and type.
        bytes[high + LEN..] == template[high + LEN..]
            && bytes[..low] == template[..low]
            && bytes[low + LEN..high] == template[low + LEN..high]
    }
}

/// What a matched header says of its message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matched {
    pub(crate) shape: u32,
    pub(crate) sec: u32,
    pub(crate) nsec: u32,
    /// Bytes before the data: lengths and header.
    pub(crate) head: usize,
    /// Bytes of data.
    pub(crate) len: usize,
}

impl Matched {
    /// Returns the number of bytes of the whole record.
    #[inline]
    pub(crate) fn size(&self) -> usize {
        self.head + self.len
    }
}

const SLOTS: usize = 1 << 10;

/// The shapes met so far.
#[derive(Debug)]
pub(crate) struct Shapes {
    pub(crate) list: Vec<Shape>,
    /// A shape that had this hash; none is a number past the list.
    slots: Box<[u32; SLOTS]>,
    by_template: HashMap<Box<[u8]>, u32>,
    scratch: Vec<u8>,
}

impl Default for Shapes {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            slots: Box::new([u32::MAX; SLOTS]),
            by_template: HashMap::new(),
            scratch: Vec::new(),
        }
    }
}

impl Shapes {
    /// Returns the message that starts at the start of `bytes` and is in them whole, if its header
    /// has a known shape. `after` is the shape of the message before.
    #[inline]
    pub(crate) fn find(&self, bytes: &[u8], after: u32) -> Option<Matched> {
        let guess = self.list.get(after as usize).map_or(u32::MAX, |shape| shape.next);
        let known = |number: u32| self.list.get(number as usize).filter(|shape| shape.matches(bytes));
        let (number, shape) = if let Some(shape) = known(guess) {
            (guess, shape)
        } else {
            let number = self.slots[slot(bytes)?];
            (number, known(number)?)
        };
        shape.read(number, bytes)
    }

    /// Notes that `shape` came behind `after`.
    #[inline]
    pub(crate) fn follow(&mut self, after: u32, shape: u32) {
        if let Some(before) = self.list.get_mut(after as usize) {
            before.next = shape;
        }
    }

    /// Returns the message at the start of `bytes` by its header, whose time is at these offsets:
    /// the long way.
    pub(crate) fn look_up(&self, bytes: &[u8], head: Head, scratch: &mut Vec<u8>) -> Option<Matched> {
        head.zeroed(bytes, scratch)?;
        let number = *self.by_template.get(&**scratch)?;
        self.list.get(number as usize)?.read(number, bytes)
    }

    /// As [`look_up`](Self::look_up); a header not met before is added by `add`, which may refuse.
    pub(crate) fn intern(
        &mut self,
        bytes: &[u8],
        head: Head,
        add: impl FnOnce() -> Option<(u32, bool, Option<u32>)>,
    ) -> Option<Matched> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut matched = self.look_up(bytes, head, &mut scratch);
        if matched.is_none() && head.zeroed(bytes, &mut scratch).is_some() {
            let (connection, latching, callerid) = add()?;
            let number = u32::try_from(self.list.len()).ok()?;
            let template: Box<[u8]> = scratch.as_slice().into();
            let (sec_at, nsec_at) = (head.sec_at, head.nsec_at);
            let shape = Shape {
                template: template.clone(),
                sec_at,
                nsec_at,
                holes: [sec_at.min(nsec_at), sec_at.max(nsec_at)],
                connection,
                latching,
                callerid,
                count: 0,
                next: number,
            };
            matched = shape.read(number, bytes);
            self.list.push(shape);
            self.by_template.insert(template, number);
        }
        self.scratch = scratch;
        if let (Some(matched), Some(slot)) = (matched, slot(bytes)) {
            self.slots[slot] = matched.shape;
        }
        matched
    }
}

impl Shape {
    #[inline]
    fn read(&self, number: u32, bytes: &[u8]) -> Option<Matched> {
        let number_at = |at: usize| number_at(bytes, at);
        let template = self.template.len();
        let len = number_at(template)? as usize;
        let head = template + LEN;
        if bytes.len() - head < len {
            return None;
        }
        Some(Matched {
            shape: number,
            sec: number_at(self.sec_at)?,
            nsec: number_at(self.nsec_at)?,
            head,
            len,
        })
    }
}

/// Returns the number at an offset.
#[inline]
fn number_at(bytes: &[u8], at: usize) -> Option<u32> {
    U32Le::ref_from_prefix(bytes.get(at..)?).ok().map(|(number, _)| number.get())
}

/// Where the time is in a record, and how long it is up to the length of its data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    len: usize,
    sec_at: usize,
    nsec_at: usize,
}

impl Head {
    /// Of the message at the start of `bytes`, with what its header says.
    pub(crate) fn of(bytes: &[u8]) -> Option<(Self, Data<'_>)> {
        let head = RecordHead::read(bytes)?;
        let (Header::Data(data), _) = Header::meant(&Fields::read(head.header)?)? else { return None };
        let place = |number: &U32Le| std::ptr::from_ref(number) as usize - bytes.as_ptr() as usize;
        let (sec_at, nsec_at) = (place(data.sec), place(data.nsec));
        Some((Self { len: head.size() - LEN, sec_at, nsec_at }, data))
    }

    /// Of a message of an old version behind its lines of text.
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

/// Returns a hash of the last 40 bytes of the header that starts at the start of `bytes`: type and
/// topic, as a rule.
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
    fn a_header_is_parsed_once_and_then_known() {
        let mut shapes = Shapes::default();
        let (a, b) = (record("/topic/number/one/a", 1), record("/topic/number/one/b", 2));
        assert!(shapes.find(&a, 0).is_none());
        assert_eq!(shapes.intern(&a, head(&a), || Some((0, false, None))).unwrap().shape, 0);
        assert_eq!(shapes.intern(&b, head(&b), || Some((1, true, None))).unwrap().shape, 1);
        let later = record("/topic/number/one/a", 9);
        let found = shapes.find(&later, 1).unwrap();
        assert_eq!((found.shape, found.sec, found.nsec, found.len), (0, 9, 7, 2));
        assert_eq!(found.size(), later.len());
        // Cut anywhere it is none.
        assert!((0..later.len()).all(|len| shapes.find(&later[..len], 0).is_none()));
        assert!(shapes.find(&record("/topic/number/one/c", 9), 0).is_none());
    }
}
