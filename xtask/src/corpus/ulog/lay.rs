//! The pieces of a `ULog`, as the specification lays them down.

pub(crate) use crate::corpus::lay::{Lay, hex};

/// The 16 bytes a `ULog` begins with: magic, version, start time in microseconds.
pub(crate) fn header(version: u8, start_us: u64) -> Vec<u8> {
    Lay::new().bytes(b"ULog\x01\x12\x35").u8(version).u64(start_us).done()
}

/// `message_header_s` and its payload: the size does not count the three bytes of the header.
pub(crate) fn message(kind: u8, payload: &[u8]) -> Vec<u8> {
    let size = u16::try_from(payload.len()).expect("a payload has at most 65535 bytes");
    Lay::new().u16(size).u8(kind).bytes(payload).done()
}

/// The payload of `B`: both sets of bits and the three offsets.
pub(crate) fn flag_bits(compat: [u8; 8], incompat: [u8; 8], offsets: [u64; 3]) -> Vec<u8> {
    offsets.iter().fold(Lay::new().bytes(&compat).bytes(&incompat), |lay, &at| lay.u64(at)).done()
}

/// The payload of `I` and `P`: length of the key, key, value.
pub(crate) fn keyed(key: &str, value: &[u8]) -> Vec<u8> {
    let len = u8::try_from(key.len()).expect("a key has at most 255 bytes");
    Lay::new().u8(len).bytes(key.as_bytes()).bytes(value).done()
}

/// The payload of `A`.
pub(crate) fn subscription(multi_id: u8, msg_id: u16, name: &str) -> Vec<u8> {
    Lay::new().u8(multi_id).u16(msg_id).bytes(name.as_bytes()).done()
}

/// The eight bytes of `S`, as PX4 writes them.
pub(crate) const SYNC: [u8; 8] = [0x2F, 0x73, 0x13, 0x20, 0x25, 0x0C, 0xBB, 0x12];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_sixteen_bytes() {
        let header = header(1, 0x0102_0304_0506_0708);
        assert_eq!(header[..8], *b"ULog\x01\x12\x35\x01");
        assert_eq!(header[8..], [8, 7, 6, 5, 4, 3, 2, 1]);
    }

    #[test]
    fn the_size_of_a_message_leaves_its_header_out() {
        assert_eq!(message(b'O', &[26, 0]), [2, 0, b'O', 26, 0]);
        assert_eq!(message(b'X', &[]), [0, 0, b'X']);
    }

    #[test]
    fn flag_bits_have_forty_bytes() {
        let bits = flag_bits([1; 8], [2; 8], [3, 4, 5]);
        assert_eq!((bits.len(), bits[16], bits[24], bits[32]), (40, 3, 4, 5));
    }
}
