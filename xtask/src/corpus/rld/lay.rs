//! The structures of RLD, laid down field by field in the order of the specification.

use super::super::lay::Lay;

/// A channel's 28 bytes: unit, scale, data size, valid link, name.
#[derive(Clone, Debug)]
pub(super) struct Channel {
    pub(super) unit: u32,
    pub(super) scale: i32,
    pub(super) size: u16,
    pub(super) link: u16,
    pub(super) name: Vec<u8>,
}

impl Channel {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut name = self.name.clone();
        name.resize(16, 0);
        Lay::new()
            .bytes(&self.unit.to_le_bytes())
            .bytes(&self.scale.to_le_bytes())
            .u16(self.size)
            .u16(self.link)
            .bytes(&name)
            .done()
    }
}

/// The 56 bytes of the lead-in.
#[derive(Clone, Debug)]
pub(super) struct LeadIn {
    pub(super) magic: [u8; 4],
    pub(super) version: u16,
    pub(super) header_length: u16,
    pub(super) block_size: u32,
    pub(super) block_count: u32,
    pub(super) sample_count: u64,
    pub(super) rate: u16,
    pub(super) mac: [u8; 6],
    pub(super) start: (i64, i64),
    pub(super) comment_length: u32,
    pub(super) binary: u16,
    pub(super) analog: u16,
}

impl LeadIn {
    pub(super) fn bytes(&self) -> Vec<u8> {
        Lay::new()
            .bytes(&self.magic)
            .u16(self.version)
            .u16(self.header_length)
            .bytes(&self.block_size.to_le_bytes())
            .bytes(&self.block_count.to_le_bytes())
            .u64(self.sample_count)
            .u16(self.rate)
            .bytes(&self.mac)
            .bytes(&self.start.0.to_le_bytes())
            .bytes(&self.start.1.to_le_bytes())
            .bytes(&self.comment_length.to_le_bytes())
            .u16(self.binary)
            .u16(self.analog)
            .done()
    }
}

/// The 32 bytes before a block's rows: both stamps in seconds and nanoseconds.
pub(super) fn stamps(realtime: (i64, i64), monotonic: (i64, i64)) -> Vec<u8> {
    let numbers = [realtime.0, realtime.1, monotonic.0, monotonic.1];
    numbers.iter().fold(Lay::new(), |lay, number| lay.bytes(&number.to_le_bytes())).done()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_specification() {
        let channel = Channel { unit: 1, scale: -8, size: 4, link: 0xFFFF, name: b"V1".to_vec() };
        assert_eq!(channel.bytes().len(), 28);
        assert_eq!(channel.bytes()[12..15], *b"V1\0");
        assert_eq!(stamps((1, 2), (3, -4)).len(), 32);
        let lead_in = LeadIn {
            magic: *b"%RLD",
            version: 2,
            header_length: 56,
            block_size: 1,
            block_count: 2,
            sample_count: 3,
            rate: 4,
            mac: [5; 6],
            start: (6, 7),
            comment_length: 8,
            binary: 9,
            analog: 10,
        };
        let bytes = lead_in.bytes();
        assert_eq!(bytes.len(), 56);
        // 0x1A: the MAC address; 0x34: the number of binary channels.
        assert_eq!((bytes[0x1a], bytes[0x20], bytes[0x34]), (5, 6, 9));
    }
}
