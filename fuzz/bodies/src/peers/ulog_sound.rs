//! Finds the parts of a ULog file that follow the specification. This module uses no code of our
//! reader, so that a mistake of the reader cannot hide a difference.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Size in bytes of the file header.
pub(super) const FILE_HEADER_LEN: usize = 16;

/// Size in bytes of a message header, which contains the length and the type of the message.
pub(super) const HEADER_LEN: usize = 3;

/// Maximum number of array elements. A larger array does not fit into a message.
const MAX_COUNT: usize = 65_535;

/// Maximum size in bytes of a type. Only 65 533 bytes of a row can be written, but a type may also
/// have padding at its end, which is not written.
const MAX_SIZE: usize = 1 << 24;

/// A part of a file that follows the specification.
#[derive(Debug)]
pub(super) struct SoundPart {
    /// Range of the part in the file.
    pub(super) range: Range<usize>,
    /// Offset at which the comparison ends. The messages from this offset on are not compared, because
    /// damage may have replaced their last bytes.
    pub(super) compared_until: usize,
    /// Offsets of the messages that come directly before an unknown message. An unknown message may be
    /// damage, which may have replaced their last bytes. So these messages are not compared.
    pub(super) before_unknown: Vec<usize>,
    /// True if the part has no unknown messages.
    pub(super) all_known: bool,
    /// True if the part ends where a complete file, or data before appended data, ends.
    pub(super) complete: bool,
}

/// The two sizes in bytes that the rows of a format may have.
#[derive(Clone, Copy)]
struct Sizes {
    full: usize,
    /// Size without the padding fields at the end of the format.
    trimmed: usize,
}

/// A message type, which the specification defines or not.
enum Type {
    Known,
    Unknown,
}

/// A field of a format.
struct Field<'a> {
    ty: &'a str,
    /// Number of elements. It is 1 if the field is not an array.
    count: usize,
    name: &'a str,
}

/// The definitions and subscriptions of the messages read so far.
#[derive(Default)]
struct Definitions<'a> {
    /// Fields of each format, by the name of the format.
    formats: HashMap<&'a str, Vec<Field<'a>>>,
    /// Sizes of the rows, by the message id of the subscription.
    topics: HashMap<u16, Sizes>,
    /// Format and instance of each subscription.
    instances: HashSet<(&'a str, u8)>,
}

/// Returns the parts of a file that follow the specification. These are the data section and each
/// section of appended data, up to the first damage. The list is empty if the file header is wrong.
pub(super) fn sound_parts(data: &[u8]) -> Vec<SoundPart> {
    let mut parts = Vec::new();
    if data.len() < FILE_HEADER_LEN || !data.starts_with(b"ULog\x01\x12\x35") {
        return parts;
    }
    let Some(ends) = ends_of_parts(data) else { return parts };
    let mut definitions = Definitions::default();
    let mut at = FILE_HEADER_LEN;
    for end in ends {
        let start = if parts.is_empty() { 0 } else { at };
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        let mut before_unknown = Vec::new();
        let mut is_damaged = false;
        while let Some((kind, payload)) = message(&data[at..end]) {
            match definitions.accept(kind, payload, at == FILE_HEADER_LEN) {
                Some(Type::Known) => known.push(at),
                Some(Type::Unknown) => {
                    before_unknown.extend(known.last());
                    unknown.push(at);
                }
                None => {
                    is_damaged = true;
                    break;
                }
            }
            at += HEADER_LEN + payload.len();
        }
        // An offset of appended data is only certain if at least three known messages follow it.
        let is_certain = known.get(2).is_some_and(|third| unknown.first().is_none_or(|at| at > third));
        if start > 0 && !is_certain {
            break;
        }
        // A message that the end cuts off is damage, too.
        let complete = !is_damaged && at == end;
        let damage_at = (!complete).then(|| known.last().copied().unwrap_or(start));
        let compared_until = first_uncertain(&known, &unknown).or(damage_at).unwrap_or(at);
        let all_known = unknown.is_empty();
        parts.push(SoundPart { range: start..at, compared_until, before_unknown, all_known, complete });
        if is_damaged {
            break;
        }
        at = end;
    }
    parts
}

/// Returns the offset from which messages are not compared: that of the fourth-last known message, if
/// an unknown message follows it. An unknown message near the end may be damage. `known` and `unknown`
/// are the offsets of all known and unknown messages.
fn first_uncertain(known: &[usize], unknown: &[usize]) -> Option<usize> {
    let earlier = known.len().checked_sub(4).map_or(0, |index| known[index]);
    unknown.last().filter(|at| **at > earlier).map(|_| earlier)
}

/// Returns the type and the payload of the first message, or `None` if it is incomplete.
fn message(data: &[u8]) -> Option<(u8, &[u8])> {
    let (header, rest) = data.split_first_chunk::<HEADER_LEN>()?;
    let payload = rest.get(..usize::from(u16::from_le_bytes([header[0], header[1]])))?;
    Some((header[2], payload))
}

/// Returns the ends of the data section and of all appended data. Returns `None` if the offsets of
/// the appended data contradict the size of the file or the flag.
fn ends_of_parts(data: &[u8]) -> Option<Vec<usize>> {
    let mut ends = Vec::new();
    if let Some((b'B', flags)) = message(&data[FILE_HEADER_LEN..]) {
        let offsets = flags.get(16..40)?.chunks_exact(8);
        let offsets = offsets.map(|bytes| u64::from_le_bytes(bytes.try_into().expect("8 bytes")));
        let used: Vec<u64> = offsets.take_while(|offset| *offset != 0).collect();
        if (flags[8] & 1 != 0) == used.is_empty() {
            return None;
        }
        ends = used.into_iter().map(|offset| usize::try_from(offset).ok()).collect::<Option<_>>()?;
    }
    ends.push(data.len());
    let ascending = ends.windows(2).all(|pair| pair[0] < pair[1]);
    (ascending && ends[0] >= FILE_HEADER_LEN).then_some(ends)
}

impl<'a> Definitions<'a> {
    /// Adds the content of a message. Returns `None` if the message does not follow the specification.
    fn accept(&mut self, kind: u8, payload: &'a [u8], first: bool) -> Option<Type> {
        let valid = match kind {
            b'B' => {
                let known = |flags: &[u8]| flags[8] <= 1 && flags[9..16].iter().all(|byte| *byte == 0);
                first && payload.len() >= 40 && known(payload)
            }
            b'F' => self.define(std::str::from_utf8(payload).ok()?).is_some(),
            b'I' => keyed(payload).is_some(),
            b'P' => is_parameter(payload),
            b'Q' => {
                payload.split_first().is_some_and(|(of, rest)| (1..=3).contains(of) && is_parameter(rest))
            }
            b'M' => payload.split_first().is_some_and(|(more, rest)| *more <= 1 && keyed(rest).is_some()),
            b'A' => self.subscribe(payload).is_some(),
            b'D' => {
                let (id, row) = payload.split_first_chunk()?;
                let sizes = self.topics.get(&u16::from_le_bytes(*id))?;
                row.len() == sizes.full || row.len() == sizes.trimmed
            }
            b'L' => payload.len() >= 9 && payload[0].wrapping_sub(b'0') < 8,
            b'C' => payload.len() >= 11 && payload[0].wrapping_sub(b'0') < 8,
            b'S' => payload == b"\x2f\x73\x13\x20\x25\x0c\xbb\x12",
            b'O' | b'R' => payload.len() == 2,
            _ => return Some(Type::Unknown),
        };
        valid.then_some(Type::Known)
    }

    fn define(&mut self, text: &'a str) -> Option<()> {
        let (format, fields) = text.split_once(':')?;
        let mut parsed = Vec::new();
        for field in fields.strip_suffix(';')?.split(';') {
            let (ty, name) = field.split_once(' ')?;
            let (ty, count) = match ty.split_once('[') {
                None => (ty, 1),
                Some((ty, count)) => (ty, count.strip_suffix(']')?.parse().ok()?),
            };
            let named =
                is_name(ty) && is_name(name) && parsed.iter().all(|field: &Field<'_>| field.name != name);
            if !named || count > MAX_COUNT {
                return None;
            }
            parsed.push(Field { ty, count, name });
        }
        // px4-ulog would not return from an array of arrays of a type without data.
        if parsed.iter().all(|field| field.count == 0) {
            return None;
        }
        let is_new = is_name(format) && basic_size(format).is_none() && !self.formats.contains_key(format);
        is_new.then(|| drop(self.formats.insert(format, parsed)))
    }

    fn subscribe(&mut self, payload: &'a [u8]) -> Option<()> {
        let ([instance, id @ ..], name) = payload.split_first_chunk::<3>()?;
        let name = std::str::from_utf8(name).ok()?;
        let sizes = self.sizes(name)?;
        let is_new = self.instances.insert((name, *instance));
        (is_new && self.topics.insert(u16::from_le_bytes(*id), sizes).is_none()).then_some(())
    }

    fn sizes(&self, name: &str) -> Option<Sizes> {
        let full = self.size(name, 0)?;
        let fields = self.formats[name].iter().rev();
        let padding = fields.take_while(|field| field.name.starts_with("_padding"));
        let padding = padding.map(|field| Some(self.size(field.ty, 1)? * field.count));
        let padding: usize = padding.sum::<Option<_>>()?;
        Some(Sizes { full, trimmed: full - padding })
    }

    /// Returns the size in bytes of a type, or `None` if it is not defined, contains itself, or is
    /// too large.
    fn size(&self, ty: &str, depth: usize) -> Option<usize> {
        if let Some(size) = basic_size(ty) {
            return Some(size);
        }
        let mut total = 0;
        for field in self.formats.get(ty).filter(|_| depth < 16)? {
            total += self.size(field.ty, depth + 1)? * field.count;
            if total > MAX_SIZE {
                return None;
            }
        }
        Some(total)
    }
}

fn basic_size(ty: &str) -> Option<usize> {
    match ty {
        "int8_t" | "uint8_t" | "bool" | "char" => Some(1),
        "int16_t" | "uint16_t" => Some(2),
        "int32_t" | "uint32_t" | "float" => Some(4),
        "int64_t" | "uint64_t" | "double" => Some(8),
        _ => None,
    }
}

/// Returns true for the names that PX4 writes.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_/-".contains(&byte))
}

/// Returns the type and the value of a payload that begins with a key, such as `float x`.
fn keyed(payload: &[u8]) -> Option<(&str, &[u8])> {
    let (len, rest) = payload.split_first()?;
    let (key, value) = rest.split_at_checked(usize::from(*len))?;
    let (ty, name) = std::str::from_utf8(key).ok()?.split_once(' ')?;
    let (base, count) = ty.split_once('[').unwrap_or((ty, "1]"));
    let count: usize = count.strip_suffix(']')?.parse().ok()?;
    let size = basic_size(base)?;
    (is_name(name) && count.checked_mul(size)? == value.len()).then_some((ty, value))
}

fn is_parameter(payload: &[u8]) -> bool {
    keyed(payload).is_some_and(|(ty, _)| ty == "int32_t" || ty == "float")
}
