//! The bytes of an RLD file, declared in the order of the specification.
//!
//! Section names are those of the published "RocketLogger Data (RLD) Format Specification", which
//! describes version 2. [`VERSIONS`] lists what the other versions changed: the bytes are the same
//! in all of them, only meanings differ. Everything is little endian, packed and unaligned. A
//! fixed-size structure is declared once for binrw and for the zero-copy view.
//!
//! These declarations read *and* write. Other modules interpret the values and resolve
//! contradictions between them.

use std::io::Cursor;

use binrw::{BinRead, BinResult, BinWrite, binrw};
use rovelog_core::reader::Files;
use rovelog_core::text::padded;
use rovelog_core::wire::{F64Le, I32Le, I64Le, U16Le, U32Le, U64Le};
use rovelog_core::{FormatInfo, Signature};

use crate::names;

/// The format's constants.
pub(crate) const INFO: FormatInfo = FormatInfo {
    id: "rld",
    name: "RLD",
    about: "RocketLogger power and sensor log",
    extensions: &["rld"],
    signatures: &[Signature(&MAGIC), Signature(&MAGIC_V1)],
    files: Some(Files { others: names::companions, part: names::part_name }),
};

/// The first four bytes of versions 2 to 4. "Lead-In", `0x444C5225`
pub const MAGIC: [u8; 4] = *b"%RLD";

/// The first four bytes of version 1. Not in the specification: taken from the first public writer.
pub const MAGIC_V1: [u8; 4] = *b"BLR%";

/// The first four bytes of a calibration file of version 2. Not in the specification.
pub const CALIBRATION_MAGIC: [u8; 4] = *b"%RLC";

/// A channel's link to no other channel. Not in the specification: taken from the writer.
pub const NO_LINK: u16 = 0xFFFF;

/// Maximum length of a comment, in bytes, that fits the 16-bit header length.
pub const COMMENT_MAX: u32 = 65_479;

/// Differences between the file versions; everything else is the same in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// `file_version`.
    pub number: u16,
    /// The magic number.
    pub magic: [u8; 4],
    /// The releases of the logger that wrote this version.
    pub software: &'static str,
    /// The number that links use for the first channel.
    pub link_base: u16,
    /// True if unit 0 means "without a unit"; in earlier versions it means "undefined".
    pub unit_zero_is_unitless: bool,
    /// Maximum unit code that its writer knew, except 0xFFFFFFFF.
    pub last_unit: u32,
    /// True if a comment ends with at least one NUL.
    pub comment_has_nul: bool,
    /// True if comments are padded to a multiple of four bytes.
    pub comment_is_padded: bool,
}

/// The versions, in order.
pub const VERSIONS: [Version; 4] = [
    Version {
        number: 1,
        magic: MAGIC_V1,
        software: "0.2",
        link_base: 1,
        unit_zero_is_unitless: false,
        last_unit: 4,
        comment_has_nul: false,
        comment_is_padded: false,
    },
    Version {
        number: 2,
        magic: MAGIC,
        software: "1.0",
        link_base: 1,
        unit_zero_is_unitless: false,
        last_unit: 4,
        comment_has_nul: false,
        comment_is_padded: true,
    },
    Version {
        number: 3,
        magic: MAGIC,
        software: "1.1",
        link_base: 0,
        unit_zero_is_unitless: true,
        last_unit: 9,
        comment_has_nul: true,
        comment_is_padded: true,
    },
    Version {
        number: 4,
        magic: MAGIC,
        software: "2.0 to 2.1",
        link_base: 0,
        unit_zero_is_unitless: true,
        last_unit: 10,
        comment_has_nul: true,
        comment_is_padded: true,
    },
];

impl Version {
    /// Returns the version with this number.
    pub fn of(number: u16) -> Option<&'static Self> {
        VERSIONS.iter().find(|version| version.number == number)
    }
}

rovelog_core::fixed! {
    /// The start of the file. "Lead-In"
    pub struct LeadIn[56] {
        /// [`MAGIC`], or [`MAGIC_V1`] in version 1.
        pub magic: [u8; 4],
        /// The file version, 1 to 4: see [`VERSIONS`].
        pub file_version: U16Le,
        /// The offset of the first block: 56, the comment, and 28 for each channel.
        pub header_length: U16Le,
        /// Rows of a full block.
        pub data_block_size: U32Le,
        /// Blocks in this file; the last one can be shorter.
        pub data_block_count: U32Le,
        /// Rows in this file.
        pub sample_count: U64Le,
        /// Nominal rows per second; the true rate is 3125/3136 of it.
        pub sample_rate: U16Le,
        /// Six octets in the order in which they are printed.
        pub mac: [u8; 6],
        /// Start of the measurement, UTC seconds; the same in all parts of a split set.
        pub start_sec: I64Le,
        /// Nanoseconds to add.
        pub start_nsec: I64Le,
        /// Bytes of the comment, padding included.
        pub comment_length: U32Le,
        /// Binary channels, nb.
        pub binary_count: U16Le,
        /// Analog channels, na.
        pub analog_count: U16Le,
    }

    /// One channel: first nb binary ones, then na analog ones. "Channels"
    pub struct ChannelRecord[28] {
        /// The unit's code; 5 to 10 and 0xFFFFFFFF are newer than the specification.
        pub unit: U32Le,
        /// The exponent of ten: physical = raw * 10^scale. Ignored for binary channels.
        pub scale: I32Le,
        /// Bytes of one value. Ignored for binary channels.
        pub data_size: U16Le,
        /// The binary channel that tells whether a value is in range, or [`NO_LINK`]; see
        /// [`Version::link_base`].
        pub valid_link: U16Le,
        /// Up to 16 characters, padded with NUL.
        pub name: [u8; 16],
    }

    /// The start of a block: the times at which its first row was sampled. "Channel Data"
    pub struct BlockTimes[32] {
        /// Unix seconds of the clock that is set from the network.
        pub realtime_sec: I64Le,
        /// Nanoseconds to add; can be negative in version 4.
        pub realtime_nsec: I64Le,
        /// Seconds of the monotonic clock.
        pub monotonic_sec: I64Le,
        /// Nanoseconds to add; can be negative in version 4.
        pub monotonic_nsec: I64Le,
    }

    /// A calibration file of version 2. Not in the specification: taken from the writer. Values are
    /// in the order V1 V2 V3 V4 I1L I1H I2L I2H DT.
    pub struct CalibrationV2[124] {
        /// [`CALIBRATION_MAGIC`].
        pub magic: [u8; 4],
        /// 2.
        pub file_version: U16Le,
        /// 16: the offset of `offset`.
        pub header_length: U16Le,
        /// Unix seconds of the calibration.
        pub time: U64Le,
        /// Integers to add to a converter code.
        pub offset: [I32Le; 9],
        /// Factors of the sum.
        pub scale: [F64Le; 9],
    }

    /// A calibration file of version 1, identified by its size. Values are in the order I1H I1L V1
    /// V2 I2H I2L V3 V4.
    pub struct CalibrationV1[104] {
        /// Unix seconds of the calibration.
        pub time: I64Le,
        /// Integers to add to a converter code.
        pub offset: [I32Le; 8],
        /// Factors of the sum.
        pub scale: [F64Le; 8],
    }
}

/// Bytes of the lead-in.
pub const LEAD_IN_LEN: u64 = size_of::<LeadIn>() as u64;

/// Bytes of a channel in the table.
pub const CHANNEL_LEN: u64 = size_of::<ChannelRecord>() as u64;

/// Bytes of the times at the start of a block.
pub const BLOCK_TIMES_LEN: u64 = size_of::<BlockTimes>() as u64;

impl LeadIn {
    /// Returns the number of channels of both kinds.
    pub fn channels(&self) -> u64 {
        u64::from(self.binary_count.get()) + u64::from(self.analog_count.get())
    }

    /// Returns the size of a header with this lead-in, in bytes: `header_length` has it modulo
    /// 2^16.
    pub fn header_size(&self) -> u64 {
        LEAD_IN_LEN + u64::from(self.comment_length.get()) + CHANNEL_LEN * self.channels()
    }

    /// Returns the MAC address in the usual notation: `12:34:56:78:90:ab`.
    pub fn mac_text(&self) -> String {
        self.mac.map(|octet| format!("{octet:02x}")).join(":")
    }
}

/// The header: lead-in, comment, channels. "File Header"
///
/// `left` is the number of bytes from the start of the file to its end; nothing is allocated before
/// the header is known to fit. `comment_len` replaces a wrong comment length of the lead-in.
#[binrw]
#[derive(Clone, Debug, PartialEq, Eq)]
#[brw(little)]
#[br(import(left: u64, comment_len: Option<u32>))]
pub struct Header {
    /// The lead-in.
    #[br(assert(LEAD_IN_LEN + u64::from(comment_len.unwrap_or(lead_in.comment_length.get()))
        + CHANNEL_LEN * lead_in.channels() <= left, "a header that passes the end of {left} bytes"))]
    pub lead_in: LeadIn,
    /// The comment with its padding.
    #[br(count = comment_len.unwrap_or(lead_in.comment_length.get()))]
    pub comment: Vec<u8>,
    /// The channels: binary ones first.
    #[br(count = lead_in.channels())]
    pub channels: Vec<ChannelRecord>,
}

impl Header {
    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    /// Returns an error if `bytes` ends inside the header.
    pub fn from_bytes(bytes: &[u8], comment_len: Option<u32>) -> BinResult<Self> {
        Self::read_args(&mut Cursor::new(bytes), (bytes.len() as u64, comment_len))
    }

    /// Returns the size of this header in bytes: the offset of the first block.
    pub fn size(&self) -> u64 {
        LEAD_IN_LEN + self.comment.len() as u64 + CHANNEL_LEN * self.channels.len() as u64
    }

    /// Returns the bytes of the header.
    ///
    /// # Panics
    /// Never panics: writing to memory does not fail.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Cursor::new(Vec::new());
        self.write(&mut out).expect("memory can be written");
        out.into_inner()
    }

    /// Returns the comment up to its first NUL; bytes that are not UTF-8 are replaced.
    pub fn comment_text(&self) -> String {
        padded(&self.comment)
    }
}

impl ChannelRecord {
    /// Returns the name up to its first NUL; bytes that are not UTF-8 are replaced.
    pub fn name_text(&self) -> String {
        padded(&self.name)
    }
}

impl BlockTimes {
    /// Returns nanoseconds on the Unix clock; exact for any bytes.
    pub fn realtime(&self) -> i128 {
        i128::from(self.realtime_sec.get()) * 1_000_000_000 + i128::from(self.realtime_nsec.get())
    }

    /// Returns nanoseconds on the monotonic clock; exact for any bytes.
    pub fn monotonic(&self) -> i128 {
        i128::from(self.monotonic_sec.get()) * 1_000_000_000 + i128::from(self.monotonic_nsec.get())
    }

    /// Makes block times with nanoseconds from 0 to 999 999 999; `None` if the seconds exceed 64
    /// bits.
    pub fn new(realtime: i128, monotonic: i128) -> Option<Self> {
        let split = |time: i128| {
            let sec = i64::try_from(time.div_euclid(1_000_000_000)).ok()?;
            let nsec = i64::try_from(time.rem_euclid(1_000_000_000)).ok()?;
            Some((I64Le::new(sec), I64Le::new(nsec)))
        };
        let (unix, boot) = (split(realtime)?, split(monotonic)?);
        Some(Self {
            realtime_sec: unix.0,
            realtime_nsec: unix.1,
            monotonic_sec: boot.0,
            monotonic_nsec: boot.1,
        })
    }
}
