//! Laying bytes down, straight from the specification's words.
//!
//! Nothing here knows what a reader does: the corpus must not be able to agree with a mistake
//! of ours, so neither our crates nor any other `ULog` library may be used below this folder.

/// Bytes in the order they will stand in the file, little endian.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lay(Vec<u8>);

impl Lay {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Bytes as they are.
    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// One byte.
    pub(crate) fn u8(self, value: u8) -> Self {
        self.bytes(&[value])
    }

    /// Two bytes.
    pub(crate) fn u16(self, value: u16) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    /// Eight bytes.
    pub(crate) fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    /// What was laid down.
    pub(crate) fn done(self) -> Vec<u8> {
        self.0
    }
}

/// Two lower-case digits for each byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16);
    let digits = bytes.iter().flat_map(|&b| [digit(b >> 4), digit(b & 15)]);
    digits.flatten().collect()
}

/// The 16 bytes a `ULog` begins with: magic, version, start time in microseconds.
pub(crate) fn ulog_header(version: u8, start_us: u64) -> Vec<u8> {
    Lay::new().bytes(b"ULog\x01\x12\x35").u8(version).u64(start_us).done()
}

/// `message_header_s` and its payload: the size does not count the three bytes of the header.
pub(crate) fn ulog_message(kind: u8, payload: &[u8]) -> Vec<u8> {
    let size = u16::try_from(payload.len()).expect("a payload has at most 65535 bytes");
    Lay::new().u16(size).u8(kind).bytes(payload).done()
}

/// The payload of `B`: both sets of bits and the three offsets.
pub(crate) fn ulog_flag_bits(compat: [u8; 8], incompat: [u8; 8], offsets: [u64; 3]) -> Vec<u8> {
    offsets.iter().fold(Lay::new().bytes(&compat).bytes(&incompat), |lay, &at| lay.u64(at)).done()
}

/// The payload of `I` and `P`: length of the key, key, value.
pub(crate) fn ulog_keyed(key: &str, value: &[u8]) -> Vec<u8> {
    let len = u8::try_from(key.len()).expect("a key has at most 255 bytes");
    Lay::new().u8(len).bytes(key.as_bytes()).bytes(value).done()
}

/// The payload of `A`.
pub(crate) fn ulog_subscription(multi_id: u8, msg_id: u16, name: &str) -> Vec<u8> {
    Lay::new().u8(multi_id).u16(msg_id).bytes(name.as_bytes()).done()
}

/// The eight bytes of `S`, as PX4 writes them.
pub(crate) const ULOG_SYNC: [u8; 8] = [0x2F, 0x73, 0x13, 0x20, 0x25, 0x0C, 0xBB, 0x12];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_sixteen_bytes() {
        let header = ulog_header(1, 0x0102_0304_0506_0708);
        assert_eq!(header[..8], *b"ULog\x01\x12\x35\x01");
        assert_eq!(header[8..], [8, 7, 6, 5, 4, 3, 2, 1]);
    }

    #[test]
    fn the_size_of_a_message_leaves_its_header_out() {
        assert_eq!(ulog_message(b'O', &[26, 0]), [2, 0, b'O', 26, 0]);
        assert_eq!(ulog_message(b'X', &[]), [0, 0, b'X']);
    }

    #[test]
    fn flag_bits_have_forty_bytes() {
        let bits = ulog_flag_bits([1; 8], [2; 8], [3, 4, 5]);
        assert_eq!((bits.len(), bits[16], bits[24], bits[32]), (40, 3, 4, 5));
    }
}
