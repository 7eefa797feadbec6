//! The bytes of bags, straight from the specification "Bags/Format/1.2".

use crate::corpus::lay::Lay;

/// The version line of V1.2.
pub(super) const VERSION_LINE: &[u8] = b"#ROSRECORD V1.2\n";

/// A value of 32 bits.
pub(super) fn u32_bytes(value: usize) -> [u8; 4] {
    u32::try_from(value).expect("small").to_le_bytes()
}

/// An entry of an index record: `<time><offset>`.
pub(super) fn entry((sec, nsec): (u32, u32), pos: u64) -> [u8; 16] {
    let mut entry = [0; 16];
    entry[..4].copy_from_slice(&sec.to_le_bytes());
    entry[4..8].copy_from_slice(&nsec.to_le_bytes());
    entry[8..].copy_from_slice(&pos.to_le_bytes());
    entry
}

/// `<field_len><field_name>=<field_value>`.
pub(super) fn field(name: &str, value: &[u8]) -> Vec<u8> {
    let len = name.len() + 1 + value.len();
    Lay::new().bytes(&u32_bytes(len)).bytes(name.as_bytes()).bytes(b"=").bytes(value).done()
}

/// `<header_len><header><data_len><data>`, the fields in this order.
pub(super) fn record(fields: &[(&str, &[u8])], data: &[u8]) -> Vec<u8> {
    let header: Vec<u8> = fields.iter().flat_map(|(name, value)| field(name, value)).collect();
    framed(&header, data)
}

/// A record around any header.
pub(super) fn framed(header: &[u8], data: &[u8]) -> Vec<u8> {
    Lay::new().bytes(&u32_bytes(header.len())).bytes(header).bytes(&u32_bytes(data.len())).bytes(data).done()
}

/// The bag header: header and data together have 4096 bytes.
pub(super) fn bag_header(index_pos: u64) -> Vec<u8> {
    record(&[("index_pos", &index_pos.to_le_bytes()), ("op", &[3])], &[b' '; 4066])
}

/// A text of a message: its length, then its bytes.
pub(super) fn text(text: &[u8]) -> Vec<u8> {
    [&u32_bytes(text.len()), text].concat()
}
