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
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::names;

/// Name, file extensions and signatures of the format.
pub(crate) const INFO: FormatInfo = FormatInfo {
    id: "rld",
    name: "RLD",
    about: "RocketLogger power and sensor log",
    extensions: &["rld"],
    signatures: &[Signature(&MAGIC), Signature(&MAGIC_V1)],
    recognizes: None,
    files: Some(Files { others: names::companions, part: names::part_name }),
};

/// The first four bytes of a file of version 2 to 4. As a number, it is `0x444C5225`, see
/// "Lead-In".
pub const MAGIC: [u8; 4] = *b"%RLD";

/// The first four bytes of a file of version 1. Not in the specification: taken from the first
/// public writer.
pub const MAGIC_V1: [u8; 4] = *b"BLR%";

/// The first four bytes of a calibration file of version 2. Not in the specification.
pub const CALIBRATION_MAGIC: [u8; 4] = *b"%RLC";

/// Value of `valid_link` for a channel without a link. Not in the specification: taken from the
/// writer.
pub const NO_LINK: u16 = 0xFFFF;

/// Maximum length of a comment in bytes. The 16-bit header length allows no more.
pub const COMMENT_MAX: u32 = 65_479;

/// Differences between the file versions; everything else is the same in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// `file_version`.
    pub number: u16,
    /// The magic number of this version.
    pub magic: [u8; 4],
    /// The releases of the logger that wrote this version.
    pub software: &'static str,
    /// The number by which links refer to the first channel: 0 or 1.
    pub link_base: u16,
    /// True if unit 0 means "without a unit"; in earlier versions it means "undefined".
    pub unit_zero_is_unitless: bool,
    /// Largest unit code that writers of this version use, apart from 0xFFFFFFFF.
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

/// The start of the file, see "Lead-In".
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct LeadIn {
    /// [`MAGIC`], or [`MAGIC_V1`] in version 1.
    pub magic: [u8; 4],
    /// The file version, 1 to 4: see [`VERSIONS`].
    pub file_version: U16Le,
    /// The offset of the first block: 56 plus the comment length plus 28 for each channel.
    pub header_length: U16Le,
    /// Number of rows in a full block.
    pub data_block_size: U32Le,
    /// Number of blocks in this file. The last one can be shorter.
    pub data_block_count: U32Le,
    /// Number of rows in this file.
    pub sample_count: U64Le,
    /// Nominal number of rows per second. The true rate is 3125/3136 of it.
    pub sample_rate: U16Le,
    /// MAC address of the logger, in the order in which its octets are printed.
    pub mac: [u8; 6],
    /// Start of the measurement in seconds of Unix time, the same in all parts of a split
    /// recording.
    pub start_sec: I64Le,
    /// Nanoseconds to add to `start_sec`.
    pub start_nsec: I64Le,
    /// Length of the comment in bytes, with padding.
    pub comment_length: U32Le,
    /// Number of binary channels, nb.
    pub binary_count: U16Le,
    /// Number of analog channels, na.
    pub analog_count: U16Le,
}

const _: () = assert!(size_of::<LeadIn>() == 56);

/// An entry of the channel table, see "Channels". The table has nb binary channels followed by na
/// analog ones.
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct ChannelRecord {
    /// The unit's code; 5 to 10 and 0xFFFFFFFF are newer than the specification.
    pub unit: U32Le,
    /// The exponent of ten: physical = raw * 10^scale. Ignored for binary channels.
    pub scale: I32Le,
    /// Size of a value in bytes. Ignored for binary channels.
    pub data_size: U16Le,
    /// Number of the binary channel whose bit is 1 if a value is in range, or [`NO_LINK`]. See
    /// [`Version::link_base`].
    pub valid_link: U16Le,
    /// The name, padded with NUL.
    pub name: [u8; 16],
}

const _: () = assert!(size_of::<ChannelRecord>() == 28);

/// The start of a block: the time of its first row on two clocks, see "Channel Data".
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct BlockTimes {
    /// Seconds of Unix time, by the clock that is set from the network.
    pub realtime_sec: I64Le,
    /// Nanoseconds to add to `realtime_sec`. Can be negative in version 4.
    pub realtime_nsec: I64Le,
    /// Seconds of the monotonic clock.
    pub monotonic_sec: I64Le,
    /// Nanoseconds to add to `monotonic_sec`. Can be negative in version 4.
    pub monotonic_nsec: I64Le,
}

const _: () = assert!(size_of::<BlockTimes>() == 32);

/// A calibration file of version 2. Not in the specification: taken from the writer. Values are
/// in the order V1 V2 V3 V4 I1L I1H I2L I2H DT.
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct CalibrationV2 {
    /// Always [`CALIBRATION_MAGIC`].
    pub magic: [u8; 4],
    /// Always 2.
    pub file_version: U16Le,
    /// Always 16, the offset of the field `offset`.
    pub header_length: U16Le,
    /// Unix seconds of the calibration.
    pub time: U64Le,
    /// Integers to add to a converter code.
    pub offset: [I32Le; 9],
    /// Factors of the sum.
    pub scale: [F64Le; 9],
}

const _: () = assert!(size_of::<CalibrationV2>() == 124);

/// A calibration file of version 1, identified by its size. Values are in the order I1H I1L V1
/// V2 I2H I2L V3 V4.
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct CalibrationV1 {
    /// Unix seconds of the calibration.
    pub time: I64Le,
    /// Integers to add to a converter code.
    pub offset: [I32Le; 8],
    /// Factors of the sum.
    pub scale: [F64Le; 8],
}

const _: () = assert!(size_of::<CalibrationV1>() == 104);

/// Length of the lead-in in bytes.
pub const LEAD_IN_LEN: u64 = size_of::<LeadIn>() as u64;

/// Length of an entry of the channel table in bytes.
pub const CHANNEL_LEN: u64 = size_of::<ChannelRecord>() as u64;

/// Length of the times at the start of a block, in bytes.
pub const BLOCK_TIMES_LEN: u64 = size_of::<BlockTimes>() as u64;

impl LeadIn {
    /// Returns the number of binary and analog channels.
    pub fn channels(&self) -> u64 {
        u64::from(self.binary_count.get()) + u64::from(self.analog_count.get())
    }

    /// Returns the size of a header with this lead-in, in bytes. `header_length` is this size
    /// modulo 2^16.
    pub fn header_size(&self) -> u64 {
        LEAD_IN_LEN + u64::from(self.comment_length.get()) + CHANNEL_LEN * self.channels()
    }

    /// Returns the MAC address in the usual notation: `12:34:56:78:90:ab`.
    pub fn mac_text(&self) -> String {
        self.mac.map(|octet| format!("{octet:02x}")).join(":")
    }
}

/// The header: lead-in, comment, channel table, see "File Header".
///
/// To parse it, `left` is the number of bytes up to the end of the file. The header must fit into
/// them before anything is allocated. `comment_len` replaces the comment length of the lead-in if
/// that one is wrong.
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
    /// The channel table, binary channels first.
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
    /// Returns the time on the Unix clock in nanoseconds. Exact for any bytes.
    pub fn realtime(&self) -> i128 {
        i128::from(self.realtime_sec.get()) * 1_000_000_000 + i128::from(self.realtime_nsec.get())
    }

    /// Returns the time on the monotonic clock in nanoseconds. Exact for any bytes.
    pub fn monotonic(&self) -> i128 {
        i128::from(self.monotonic_sec.get()) * 1_000_000_000 + i128::from(self.monotonic_nsec.get())
    }

    /// Creates block times from nanoseconds on the Unix clock and on the monotonic clock. Returns
    /// `None` if the seconds do not fit 64 bits.
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
