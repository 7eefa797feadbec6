//! A record's header as a borrowed view: the twin of [`crate::wire::RecordHead`].

use crate::wire::{is_named, op};

/// Header bytes that are believed: no recorder comes near.
pub(crate) const MAX_HEADER: u32 = 16 << 20;

/// Fields of one header that are read.
const MAX_FIELDS: u32 = 256;

/// A header whose fields fill it, with what they say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeaderRef<'a> {
    /// What kind of record it is.
    pub op: u8,
    /// The topic's name.
    pub topic: Option<&'a [u8]>,
    /// The md5 sum of the type.
    pub md5: Option<&'a [u8]>,
    /// The type.
    pub ty: Option<&'a [u8]>,
    /// The full text of a definition.
    pub def: Option<&'a [u8]>,
    /// Seconds, and where they stand in the header.
    pub sec: Option<(u32, usize)>,
    /// Nanoseconds, and where they stand in the header.
    pub nsec: Option<(u32, usize)>,
    /// Whether the publisher latches; `1`.
    pub latching: Option<&'a [u8]>,
    /// The node that published.
    pub callerid: Option<&'a [u8]>,
    /// Where the index begins.
    pub index_pos: Option<u64>,
    /// The version of the index.
    pub ver: Option<u32>,
    /// The entries of the index.
    pub count: Option<u32>,
    /// Fields that are there a second time.
    pub duplicates: u32,
    /// Fields of other names.
    pub others: u32,
}

impl<'a> HeaderRef<'a> {
    /// Reads a header, without the lengths around it. `None` where its fields do not fill it, a name is not
    /// printable, the op is missing, or a field that the op requires is missing or of another width.
    pub fn parse(header: &'a [u8]) -> Option<Self> {
        let mut found = Self::default();
        let mut op = None;
        let (mut at, mut fields) = (0, 0);
        while at < header.len() {
            let len = u32::from_le_bytes(*header[at..].first_chunk()?) as usize;
            let text = header.get(at + 4..)?.get(..len)?;
            fields += 1;
            if !is_named(text) || fields > MAX_FIELDS {
                return None;
            }
            let end = text.iter().position(|byte| *byte == b'=')?;
            let (field, value) = (&text[..end], &text[end + 1..]);
            let value_at = at + 4 + end + 1;
            let mut put =
                |slot: &mut Option<&'a [u8]>| found.duplicates += u32::from(slot.replace(value).is_some());
            match field {
                b"topic" => put(&mut found.topic),
                b"md5" => put(&mut found.md5),
                b"type" => put(&mut found.ty),
                b"def" => put(&mut found.def),
                b"latching" => put(&mut found.latching),
                b"callerid" => put(&mut found.callerid),
                b"op" => put(&mut op),
                b"sec" => {
                    let new = number(value).map(|sec| (sec, value_at));
                    found.duplicates += u32::from(std::mem::replace(&mut found.sec, new).is_some());
                }
                b"nsec" => {
                    let new = number(value).map(|nsec| (nsec, value_at));
                    found.duplicates += u32::from(std::mem::replace(&mut found.nsec, new).is_some());
                }
                b"ver" => {
                    found.duplicates += u32::from(std::mem::replace(&mut found.ver, number(value)).is_some());
                }
                b"count" => {
                    found.duplicates +=
                        u32::from(std::mem::replace(&mut found.count, number(value)).is_some());
                }
                b"index_pos" => {
                    let new = value.try_into().ok().map(u64::from_le_bytes);
                    found.duplicates += u32::from(std::mem::replace(&mut found.index_pos, new).is_some());
                }
                _ => found.others += 1,
            }
            at += 4 + len;
        }
        let [op] = *op? else { return None };
        found.op = op;
        found.is_complete().then_some(found)
    }

    fn is_complete(&self) -> bool {
        let named = self.topic.is_some() && self.md5.is_some() && self.ty.is_some();
        match self.op {
            op::DEFINITION => named && self.def.is_some(),
            op::DATA => named && self.sec.is_some() && self.nsec.is_some(),
            op::BAG_HEADER => self.index_pos.is_some(),
            op::INDEX => self.topic.is_some() && self.ver.is_some() && self.count.is_some(),
            _ => true,
        }
    }

    /// Whether the op is one of the specification's.
    pub(crate) fn is_known(&self) -> bool {
        (op::DEFINITION..=op::INDEX).contains(&self.op)
    }
}

fn number(value: &[u8]) -> Option<u32> {
    value.try_into().ok().map(u32::from_le_bytes)
}

/// Whether `bytes`, which the file cuts, can be the beginning of a header of `len` bytes.
pub(crate) fn is_beginning(bytes: &[u8], len: u32) -> bool {
    let mut at = 0usize;
    for _ in 0..MAX_FIELDS {
        let Some(rest) = bytes.get(at..) else { return true };
        let Some(field) = rest.first_chunk().map(|b| u32::from_le_bytes(*b)) else { return true };
        if field < 2 || field > len.saturating_sub(u32::try_from(at).unwrap_or(len)).saturating_sub(4) {
            return false;
        }
        let text = &rest[4..];
        let whole = text.get(..field as usize);
        let named = match whole {
            Some(text) => is_named(text),
            None => text.iter().take(64).take_while(|b| **b != b'=').all(|b| (0x20..=0x7e).contains(b)),
        };
        if !named {
            return false;
        }
        if whole.is_none() {
            return true;
        }
        at += 4 + field as usize;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{BagHeader, Header};

    #[test]
    fn a_beginning_may_be_cut_anywhere() {
        let head = Header::BagHeader(BagHeader { index_pos: 7 }).to_head(0).to_bytes();
        let header = &head[4..head.len() - 4];
        let len = u32::try_from(header.len()).unwrap();
        for cut in 0..header.len() {
            assert!(is_beginning(&header[..cut], len), "{cut}");
        }
        assert!(HeaderRef::parse(header).is_some());
        assert!(!is_beginning(b"\0\0\0\0op=", 30));
        assert!(!is_beginning(b"\x05\0\0\0\x01p=", 30));
    }
}
