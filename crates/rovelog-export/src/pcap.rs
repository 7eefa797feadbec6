//! Velodyne packets as a network capture, which the sensor's own tools and other decoders read.

use std::io::{self, Write};

use rovelog::vel_format::wire::VelodynePacket;
use zerocopy::IntoBytes as _;

/// Bytes of the Ethernet, IPv4 and UDP headers.
const HEAD: usize = 42;

/// Data bytes of a packet.
const DATA: usize = size_of::<VelodynePacket>();

/// Writer for captures with microseconds, little endian, Ethernet frames. Each packet goes from the
/// sensor's usual address to broadcast, port 2368.
#[derive(Debug)]
pub struct PcapWriter<W> {
    out: W,
    packets: u16,
}

impl<W: Write> PcapWriter<W> {
    /// Starts a capture.
    ///
    /// # Errors
    /// Returns an error if writing to the output fails.
    pub fn new(mut out: W) -> io::Result<Self> {
        // Version 2.4, no time offset, whole packets, Ethernet.
        for word in [0xA1B2_C3D4_u32, 4 << 16 | 2, 0, 0, 0xFFFF, 1] {
            out.write_all(&word.to_le_bytes())?;
        }
        Ok(Self { out, packets: 0 })
    }

    /// Adds a packet. Returns false if a capture cannot hold its time (1970 to 2106): the packet
    /// then gets the nearest time that it can hold.
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

    /// Returns the complete output.
    ///
    /// # Errors
    /// Returns an error if writing to the output fails.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Returns the headers of the packet with this number.
fn head(number: u16) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    // To broadcast, from a Velodyne; IPv4.
    head[..6].fill(0xFF);
    head[6..14].copy_from_slice(&[0x60, 0x76, 0x88, 0, 0, 0, 8, 0]);
    let udp = u16::try_from(8 + DATA).unwrap_or(u16::MAX);
    let ip = &mut head[14..34];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&(20 + udp).to_be_bytes());
    ip[4..6].copy_from_slice(&number.to_be_bytes());
    // Time to live 64; UDP.
    ip[8..10].copy_from_slice(&[64, 17]);
    ip[12..20].copy_from_slice(&[192, 168, 3, 43, 192, 168, 3, 255]);
    let (words, _) = ip.as_chunks::<2>();
    let sum: u32 = words.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    let folded = u16::try_from((folded & 0xFFFF) + (folded >> 16)).unwrap_or_default();
    ip[10..12].copy_from_slice(&(!folded).to_be_bytes());
    // Ports 443 and 2368, no checksum.
    head[34..36].copy_from_slice(&443_u16.to_be_bytes());
    head[36..38].copy_from_slice(&2368_u16.to_be_bytes());
    head[38..40].copy_from_slice(&udp.to_be_bytes());
    head
}
