//! Writes Velodyne packets as a network capture (pcap), which the tools of Velodyne and other
//! decoders can read. The Internet-Draft `draft-ietf-opsawg-pcap` describes the file format.

use std::io::{self, Write};

use rovelog::vel_format::wire::VelodynePacket;
use zerocopy::IntoBytes as _;

/// Size in bytes of the Ethernet (14), IPv4 (20) and UDP (8) headers before the data of a packet.
const HEAD: usize = 42;

/// Size in bytes of the data of a Velodyne packet.
const DATA: usize = size_of::<VelodynePacket>();

/// Writes little-endian captures of Ethernet frames, with times in microseconds.
///
/// VEL logs do not contain network headers, so the writer creates them. Each packet is sent from
/// the default address of the sensor to the broadcast address, and to port 2368, on which decoders
/// expect Velodyne data.
#[derive(Debug)]
pub struct PcapWriter<W> {
    out: W,
    packets: u16,
}

impl<W: Write> PcapWriter<W> {
    /// Starts a capture by writing the file header.
    ///
    /// # Errors
    /// Returns an error if writing to the output fails.
    pub fn new(mut out: W) -> io::Result<Self> {
        // The values are: the magic number for microseconds, version 2.4, two reserved numbers, a
        // maximum packet length that does not truncate packets, and link type 1 (Ethernet).
        for word in [0xA1B2_C3D4_u32, 4 << 16 | 2, 0, 0, 0xFFFF, 1] {
            out.write_all(&word.to_le_bytes())?;
        }
        Ok(Self { out, packets: 0 })
    }

    /// Adds a packet. `nanos` is the Unix time of the packet in nanoseconds.
    ///
    /// A capture stores unsigned 32-bit seconds, that is, times from 1970 to 2106. If the time is
    /// earlier or later, the nearest possible time is written and the function returns false.
    ///
    /// # Errors
    /// Returns an error if writing to the output fails.
    pub fn packet(&mut self, nanos: i64, packet: &VelodynePacket) -> io::Result<bool> {
        let seconds = nanos.div_euclid(1_000_000_000);
        let held = u32::try_from(seconds);
        let micros = u32::try_from(nanos.rem_euclid(1_000_000_000) / 1000).unwrap_or_default();
        let nearest = if seconds < 0 { 0 } else { u32::MAX };
        let len = u32::try_from(HEAD + DATA).unwrap_or(u32::MAX);
        for word in [held.unwrap_or(nearest), micros, len, len] {
            self.out.write_all(&word.to_le_bytes())?;
        }
        self.out.write_all(&head(self.packets))?;
        self.out.write_all(packet.as_bytes())?;
        self.packets = self.packets.wrapping_add(1);
        Ok(held.is_ok())
    }

    /// Flushes and returns the output.
    ///
    /// # Errors
    /// Returns an error if writing to the output fails.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Returns the Ethernet, IPv4 and UDP headers of a packet. `number` becomes the IPv4
/// identification.
fn head(number: u16) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    // The destination is the broadcast address, the source is an address with Velodyne's prefix,
    // and the EtherType is IPv4.
    head[..6].fill(0xFF);
    head[6..14].copy_from_slice(&[0x60, 0x76, 0x88, 0, 0, 0, 8, 0]);
    let udp = u16::try_from(8 + DATA).unwrap_or(u16::MAX);
    let ip = &mut head[14..34];
    // The first byte has the IP version 4, and the length of the header: 5 words of 32 bits.
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&(20 + udp).to_be_bytes());
    ip[4..6].copy_from_slice(&number.to_be_bytes());
    // The time to live is 64, and the protocol number is 17 (UDP).
    ip[8..10].copy_from_slice(&[64, 17]);
    ip[12..20].copy_from_slice(&[192, 168, 3, 43, 192, 168, 3, 255]);
    // The header checksum is the complement of the one's complement sum of all words (RFC 1071).
    // Decoders such as Wireshark mark packets with a wrong checksum.
    let (words, _) = ip.as_chunks::<2>();
    let sum: u32 = words.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    let folded = u16::try_from((folded & 0xFFFF) + (folded >> 16)).unwrap_or_default();
    ip[10..12].copy_from_slice(&(!folded).to_be_bytes());
    // The source port is 443, and the destination port is 2368. The checksum 0 means that the UDP
    // packet has no checksum, which IPv4 allows.
    head[34..36].copy_from_slice(&443_u16.to_be_bytes());
    head[36..38].copy_from_slice(&2368_u16.to_be_bytes());
    head[38..40].copy_from_slice(&udp.to_be_bytes());
    head
}
