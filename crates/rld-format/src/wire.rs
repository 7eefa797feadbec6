//! The bytes of an RLD file, declared in the order of the specification.
//!
//! Section names are those of the published "RocketLogger Data (RLD) Format Specification", which
//! describes version 2. [`VERSIONS`] lists the changes in other versions: the layout of the bytes
//! is the same in all versions, and only meanings differ. All values are little endian, packed and
//! unaligned. A fixed-size structure is declared once for both binrw and the zero-copy view.
//!
//! These declarations are used for reading *and* writing. Other modules interpret the values and
//! resolve contradictions between them.

use std::io::Cursor;

use binrw::{BinRead, BinResult, BinWrite, binrw};
use rovelog_core::format::Files;
use rovelog_core::internal::text::padded;
use rovelog_core::internal::wire::{F64Le, I32Le, I64Le, U16Le, U32Le, U64Le};
use rovelog_core::{FormatInfo, Signature, structure};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::names;

/// Name, file extensions and signatures of the RLD format.
pub(crate) const INFO: FormatInfo = FormatInfo {
    id: "rld",
    name: "RLD",
    about: "RocketLogger power and sensor log",
    extensions: &["rld"],
    signatures: &[Signature(&MAGIC), Signature(&MAGIC_V1)],
    recognizes: None,
    files: Some(Files { others: names::companions, part: names::part_name }),
};

/// The first four bytes of a file of version 2 to 4. As a number, they are `0x444C5225`. See
/// "Lead-In" in the specification.
pub const MAGIC: [u8; 4] = *b"%RLD";

/// The first four bytes of a file of version 1. The specification does not define them. They come
/// from the source code of the logger's first public release.
pub const MAGIC_V1: [u8; 4] = *b"BLR%";

/// The first four bytes of a calibration file of version 2. The specification does not describe
/// calibration files.
pub const CALIBRATION_MAGIC: [u8; 4] = *b"%RLC";

/// Value of `valid_link` for a channel without a link. The specification does not define this
/// value. It comes from the source code of the logger.
pub const NO_LINK: u16 = 0xFFFF;

/// Maximum length of a comment in bytes. The header length has 16 bits, so the header has no room
/// for a longer comment.
pub const COMMENT_MAX: u32 = 65_479;

/// A file version of RLD. The fields are the properties in which the versions differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Number of the version, which is stored in `file_version`.
    pub number: u16,
    /// Magic number of files of this version.
    pub magic: [u8; 4],
    /// Releases of the logger's software that write files of this version.
    pub software: &'static str,
    /// The number with which links refer to the first channel: 0 or 1.
    pub link_base: u16,
    /// True if unit code 0 means "without a unit". In earlier versions, this code means
    /// "undefined".
    pub unit_zero_is_unitless: bool,
    /// Largest unit code that loggers write in files of this version, apart from 0xFFFFFFFF.
    pub last_unit: u32,
    /// True if at least one NUL follows the text of a comment.
    pub comment_has_nul: bool,
    /// True if comments are padded with NUL to a multiple of four bytes.
    pub comment_is_padded: bool,
}

/// All file versions, in ascending order.
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
    /// Returns the file version with this number.
    pub fn of(number: u16) -> Option<&'static Self> {
        VERSIONS.iter().find(|version| version.number == number)
    }
}

/// The start of an RLD file. See "Lead-In" in the specification.
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct LeadIn {
    /// Magic number: [`MAGIC`], or [`MAGIC_V1`] in version 1.
    pub magic: [u8; 4],
    /// File version, 1 to 4. See [`VERSIONS`].
    pub file_version: U16Le,
    /// Offset of the first block: 56 plus the comment length, plus 28 for each channel.
    pub header_length: U16Le,
    /// Number of rows in a full block.
    pub data_block_size: U32Le,
    /// Number of blocks in this file. The last block can be shorter than the others.
    pub data_block_count: U32Le,
    /// Number of rows in this file.
    pub sample_count: U64Le,
    /// Nominal number of rows per second. The true rate is 3125/3136 of this number.
    pub sample_rate: U16Le,
    /// MAC address of the logger, in the order in which its octets are printed.
    pub mac: [u8; 6],
    /// Start time of the measurement in seconds of Unix time. All parts of a split recording have
    /// the same start time.
    pub start_sec: I64Le,
    /// Nanoseconds to add to `start_sec`.
    pub start_nsec: I64Le,
    /// Length of the comment in bytes, including padding.
    pub comment_length: U32Le,
    /// Number of binary channels.
    pub binary_count: U16Le,
    /// Number of analog channels.
    pub analog_count: U16Le,
}

const _: () = assert!(size_of::<LeadIn>() == 56);

structure!(LeadIn, "Lead-In", {
    magic, file_version, header_length, data_block_size, data_block_count, sample_count, sample_rate, mac,
    start_sec, start_nsec, comment_length, binary_count, analog_count,
});

/// An entry of the channel table, see "Channels" in the specification. Entries of binary channels
/// come before those of analog channels.
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct ChannelRecord {
    /// Code of the channel's unit. The codes 5 to 10 and 0xFFFFFFFF are newer than the
    /// specification.
    pub unit: U32Le,
    /// Exponent of ten of the channel: a physical value is the raw value times 10^scale. Ignored
    /// for binary channels.
    pub scale: I32Le,
    /// Size of a value in bytes. Ignored for binary channels.
    pub data_size: U16Le,
    /// Number of the binary channel that states whether the value of this channel is within its
    /// measuring range. [`NO_LINK`] if there is none. Numbers count from [`Version::link_base`].
    pub valid_link: U16Le,
    /// Name of the channel, padded with NUL.
    pub name: [u8; 16],
}

const _: () = assert!(size_of::<ChannelRecord>() == 28);

structure!(ChannelRecord, "Channels", { unit, scale, data_size, valid_link, name });

/// The start of a block: the time of the block's first row on two clocks. See "Channel Data" in the
/// specification.
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct BlockTimes {
    /// Seconds of Unix time, by the logger's clock that is set from the network.
    pub realtime_sec: I64Le,
    /// Nanoseconds to add to `realtime_sec`. They can be negative in version 4.
    pub realtime_nsec: I64Le,
    /// Seconds on the monotonic clock, which starts with the logger's computer.
    pub monotonic_sec: I64Le,
    /// Nanoseconds to add to `monotonic_sec`. They can be negative in version 4.
    pub monotonic_nsec: I64Le,
}

const _: () = assert!(size_of::<BlockTimes>() == 32);

structure!(BlockTimes, "Channel Data", { realtime_sec, realtime_nsec, monotonic_sec, monotonic_nsec });

/// A calibration file of version 2. The specification does not describe it, so this layout comes
/// from the source code of the logger. Values are in the order V1 V2 V3 V4 I1L I1H I2L I2H DT.
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct CalibrationV2 {
    /// Always [`CALIBRATION_MAGIC`].
    pub magic: [u8; 4],
    /// Always 2.
    pub file_version: U16Le,
    /// Always 16, which is the offset of the field `offset`.
    pub header_length: U16Le,
    /// Time of the calibration in seconds of Unix time.
    pub time: U64Le,
    /// For each channel, the integer that is added to a converter code.
    pub offset: [I32Le; 9],
    /// For each channel, the factor by which the sum of converter code and offset is multiplied.
    pub scale: [F64Le; 9],
}

const _: () = assert!(size_of::<CalibrationV2>() == 124);

/// A calibration file of version 1. It has no magic number and is identified by its size. Values
/// are in the order I1H I1L V1 V2 I2H I2L V3 V4.
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct CalibrationV1 {
    /// Time of the calibration in seconds of Unix time.
    pub time: I64Le,
    /// For each channel, the integer that is added to a converter code.
    pub offset: [I32Le; 8],
    /// For each channel, the factor by which the sum of converter code and offset is multiplied.
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
    /// Returns the total number of binary and analog channels.
    pub fn channels(&self) -> u64 {
        u64::from(self.binary_count.get()) + u64::from(self.analog_count.get())
    }

    /// Returns the size in bytes of a header with this lead-in. The field `header_length` stores
    /// this size modulo 2^16.
    pub fn header_size(&self) -> u64 {
        LEAD_IN_LEN + u64::from(self.comment_length.get()) + CHANNEL_LEN * self.channels()
    }

    /// Returns the MAC address in the usual notation: `12:34:56:78:90:ab`.
    pub fn mac_text(&self) -> String {
        self.mac.map(|octet| format!("{octet:02x}")).join(":")
    }
}

/// The header of an RLD file: lead-in, comment and channel table. See "File Header" in the
/// specification.
///
/// The parser takes two arguments. `left` is the number of bytes up to the end of the file. If the
/// header does not fit into them, it is refused before memory is allocated. `comment_len` replaces
/// the comment length of the lead-in if that length is wrong.
#[binrw]
#[derive(Clone, Debug, PartialEq, Eq)]
#[brw(little)]
#[br(import(left: u64, comment_len: Option<u32>))]
pub struct Header {
    /// The lead-in.
    #[br(assert(LEAD_IN_LEN + u64::from(comment_len.unwrap_or(lead_in.comment_length.get()))
        + CHANNEL_LEN * lead_in.channels() <= left, "a header that passes the end of {left} bytes"))]
    pub lead_in: LeadIn,
    /// The comment, including padding.
    #[br(count = comment_len.unwrap_or(lead_in.comment_length.get()))]
    pub comment: Vec<u8>,
    /// The channel table. Binary channels come before analog channels.
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

    /// Returns the size of this header in bytes, which is the offset of the first block.
    pub fn size(&self) -> u64 {
        LEAD_IN_LEN + self.comment.len() as u64 + CHANNEL_LEN * self.channels.len() as u64
    }

    /// Returns the encoded header.
    ///
    /// # Panics
    /// Never panics: writing to memory does not fail.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Cursor::new(Vec::new());
        self.write(&mut out).expect("memory can be written");
        out.into_inner()
    }

    /// Returns the comment up to its first NUL. Bytes that are not UTF-8 are replaced.
    pub fn comment_text(&self) -> String {
        padded(&self.comment)
    }
}

impl ChannelRecord {
    /// Returns the channel's name up to its first NUL. Bytes that are not UTF-8 are replaced.
    pub fn name_text(&self) -> String {
        padded(&self.name)
    }
}

impl BlockTimes {
    /// Returns the block time on the Unix clock in nanoseconds. The result is exact for any stored
    /// values.
    pub fn realtime(&self) -> i128 {
        i128::from(self.realtime_sec.get()) * 1_000_000_000 + i128::from(self.realtime_nsec.get())
    }

    /// Returns the block time on the monotonic clock in nanoseconds. The result is exact for any
    /// stored values.
    pub fn monotonic(&self) -> i128 {
        i128::from(self.monotonic_sec.get()) * 1_000_000_000 + i128::from(self.monotonic_nsec.get())
    }

    /// Creates block times from nanoseconds on the Unix clock and on the monotonic clock. Returns
    /// `None` if the seconds do not fit into 64 bits.
    pub fn new(realtime: i128, monotonic: i128) -> Option<Self> {
        let sec = |time: i128| i64::try_from(time.div_euclid(1_000_000_000)).ok().map(I64Le::new);
        let nsec = |time: i128| i64::try_from(time.rem_euclid(1_000_000_000)).ok().map(I64Le::new);
        Some(Self {
            realtime_sec: sec(realtime)?,
            realtime_nsec: nsec(realtime)?,
            monotonic_sec: sec(monotonic)?,
            monotonic_nsec: nsec(monotonic)?,
        })
    }
}
