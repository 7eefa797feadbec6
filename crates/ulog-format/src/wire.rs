//! The bytes of a ULog, declared in the order of the specification. All readers and writers use
//! these declarations.
//!
//! Section names are those of the published "ULog File Format"; **newer** marks what later editions
//! added. Everything is little endian, packed and unaligned. A structure of fixed size that occurs
//! with each row is viewed in place; a message borrows its texts and values from the payload it is
//! read from.
//!
//! They do not detect damage: whether a message is plausible is decided by the scan.

use std::io::Cursor;

use binrw::{BinRead, BinResult, BinWrite, binrw};
use rovelog_core::wire::{U16Le, U64Le, counted, rest};
use rovelog_core::{FormatInfo, Signature};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The format's constants.
pub(crate) const INFO: FormatInfo = FormatInfo {
    id: "ulog",
    name: "ULog",
    about: "PX4 flight log",
    extensions: &["ulg", "ulog"],
    signatures: &[Signature(&MAGIC)],
    recognizes: None,
    files: None,
};

/// The first seven bytes of every ULog. "Header Section"
#[doc(hidden)]
pub const MAGIC: [u8; 7] = [0x55, 0x4c, 0x6f, 0x67, 0x01, 0x12, 0x35];

/// The payload of a synchronization message. The text says "to be defined"; **newer** editions
/// define it.
#[doc(hidden)]
pub const SYNC_MAGIC: [u8; 8] = [0x2f, 0x73, 0x13, 0x20, 0x25, 0x0c, 0xbb, 0x12];

/// The start of the file. "Header Section"
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct FileHeader {
    /// [`MAGIC`].
    pub magic: [u8; 7],
    /// The version of the format, currently 1; unknown ones are read all the same.
    pub version: u8,
    /// When logging started, microseconds.
    pub timestamp: U64Le,
}

const _: () = assert!(size_of::<FileHeader>() == 16);

/// `message_header_s`: before every message. "Definitions Section"
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct MessageHeader {
    /// Bytes of the payload, this header not counted.
    pub msg_size: U16Le,
    /// What the payload is: see [`kind`].
    pub msg_type: u8,
}

const _: () = assert!(size_of::<MessageHeader>() == 3);

/// `ulog_message_flag_bits_s`: at offset 16 if it is there at all. "'B': Flag bitset message"
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct FlagBits {
    /// Bits that a reader may ignore. **Newer**: bit 0 of byte 0 says that 'Q' messages occur.
    pub compat_flags: [u8; 8],
    /// Bits that a reader must know. Bit 0 of byte 0: data is appended.
    pub incompat_flags: [u8; 8],
    /// Where appended data starts, from the start of the file; 0 is unused.
    pub appended_offsets: [U64Le; 3],
}

const _: () = assert!(size_of::<FlagBits>() == 40);

/// Bytes of a message's header.
pub(crate) const HEADER_SIZE: usize = size_of::<MessageHeader>();

/// The same as a length in the file.
pub(crate) const HEADER_LEN: u64 = HEADER_SIZE as u64;

/// Where a flag bits message is, if there is one.
pub(crate) const FLAG_BITS_AT: u64 = size_of::<FileHeader>() as u64;

impl MessageHeader {
    /// Returns the message that `bytes` start with: its header and its payload; `None` if they end
    /// before it does.
    #[inline]
    pub(crate) fn split(bytes: &[u8]) -> Option<(&Self, &[u8])> {
        let (header, rest) = Self::ref_from_prefix(bytes).ok()?;
        Some((header, rest.get(..usize::from(header.msg_size.get()))?))
    }
}

/// Returns the number or structure at `at`; `None` if `bytes` end before it does.
#[inline]
pub(crate) fn number<T: FromBytes>(bytes: &[u8], at: usize) -> Option<T> {
    Some(T::read_from_prefix(bytes.get(at..)?).ok()?.0)
}

impl FlagBits {
    /// Returns the same flags for a log in which appended data is ordinary data: for copies whose
    /// messages move.
    #[must_use]
    pub(crate) fn merged(mut self) -> Self {
        self.incompat_flags[0] &= !1;
        self.appended_offsets = [U64Le::new(0); 3];
        self
    }
}

/// Flag bits with what a later edition may have added. "'B': Flag bitset message"
#[binrw]
#[brw(little)]
#[br(import(all: &'a [u8]))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlagBitsMessage<'a> {
    /// The flags.
    pub flags: FlagBits,
    /// Ignored, kept for rewriting.
    #[br(parse_with = rest, args(all))]
    pub more: &'a [u8],
}

/// `message_format_s`. "'F': format definition"
#[binrw]
#[brw(little)]
#[br(import(all: &'a [u8]))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format<'a> {
    /// `message_name:type field;type[n] field;`
    #[br(parse_with = rest, args(all))]
    pub format: &'a [u8],
}

/// `message_info_s`, and a parameter. "'I': information message", "'P': parameter message"
#[binrw]
#[brw(little)]
#[br(import(all: &'a [u8]))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info<'a> {
    #[br(temp)]
    #[bw(try_calc = u8::try_from(key.len()))]
    key_len: u8,
    /// `type name` or `type[n] name`.
    #[br(parse_with = counted, args(all, key_len.into()))]
    pub key: &'a [u8],
    /// The value, of the key's type.
    #[br(parse_with = rest, args(all))]
    pub value: &'a [u8],
}

/// `ulog_message_info_multiple_header_s`. "'M': information message multi"
#[binrw]
#[brw(little)]
#[br(import(all: &'a [u8]))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultiInfo<'a> {
    /// 1: part of the previous message with the same key.
    pub is_continued: u8,
    /// Key and value.
    #[br(args(all))]
    pub info: Info<'a>,
}

/// `message_parameter_default_s`, **newer**. "'Q': parameter default message"
#[binrw]
#[brw(little)]
#[br(import(all: &'a [u8]))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultParameter<'a> {
    /// Bit 0: system-wide default; bit 1: default of the current setup (airframe).
    pub default_types: u8,
    /// Key and value.
    #[br(args(all))]
    pub info: Info<'a>,
}

/// `message_add_logged_s`. "'A': subscribe a message by name"
#[binrw]
#[brw(little)]
#[br(import(all: &'a [u8]))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscription<'a> {
    /// Instance of the topic, the first is 0.
    pub multi_id: u8,
    /// The id under which data messages refer to this subscription.
    pub msg_id: u16,
    /// The name of a format.
    #[br(parse_with = rest, args(all))]
    pub message_name: &'a [u8],
}

/// `message_remove_logged_s`. "'R': unsubscribe a message"
#[derive(BinRead, BinWrite, Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
pub struct Unsubscription {
    /// The id of the subscription that ends.
    pub msg_id: u16,
}

/// `message_data_s`. "'D': contains logged data"
#[binrw]
#[brw(little)]
#[br(import(all: &'a [u8]))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data<'a> {
    /// The id of a subscription.
    pub msg_id: u16,
    /// The fields of the subscribed format; trailing padding may be left out.
    #[br(parse_with = rest, args(all))]
    pub row: &'a [u8],
}

/// Size in bytes of `msg_id` in [`Data`].
pub(crate) const MSG_ID_LEN: usize = size_of::<u16>();

impl<'a> Data<'a> {
    /// Reads the payload in place, as its declaration does: rows are most of a log.
    #[inline]
    pub(crate) fn view(payload: &'a [u8]) -> Option<Self> {
        let (msg_id, row) = payload.split_first_chunk::<MSG_ID_LEN>()?;
        Some(Self { msg_id: u16::from_le_bytes(*msg_id), row })
    }
}

/// `message_logging_s`. "'L': Logged string message"
#[binrw]
#[brw(little)]
#[br(import(all: &'a [u8]))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedString<'a> {
    /// `'0'` (emergency) to `'7'` (debug), as in the Linux kernel; some writers store the bare
    /// number.
    pub log_level: u8,
    /// Microseconds.
    pub timestamp: u64,
    /// The text, without NUL.
    #[br(parse_with = rest, args(all))]
    pub message: &'a [u8],
}

/// `message_logging_tagged_s`, **newer**. "'C': Tagged Logged string message"
#[binrw]
#[brw(little)]
#[br(import(all: &'a [u8]))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaggedString<'a> {
    /// As in [`LoggedString`].
    pub log_level: u8,
    /// The process or module that wrote the text.
    pub tag: u16,
    /// Microseconds.
    pub timestamp: u64,
    /// The text, without NUL.
    #[br(parse_with = rest, args(all))]
    pub message: &'a [u8],
}

/// `message_sync_s`. "'S': synchronization message"
#[derive(BinRead, BinWrite, Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
pub struct Sync {
    /// [`SYNC_MAGIC`].
    pub sync_magic: [u8; 8],
}

/// `message_dropout_s`. "'O': mark a dropout"
#[derive(BinRead, BinWrite, Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
pub struct Dropout {
    /// Milliseconds of lost messages.
    pub duration: u16,
}

/// What a declaration needs to be read: the payload, if it borrows from it.
macro_rules! args {
    ($payload:ident) => {
        ()
    };
    ($payload:ident $a:lifetime) => {
        ($payload,)
    };
}

/// Declares all messages by the letter of their type.
macro_rules! messages {
    ($( $(#[$doc:meta])* $letter:literal $kind:ident $name:ident($ty:ident $(<$a:lifetime>)?), )*) => {
        /// The letters of `msg_type`. "Definitions Section", "Data Section"
        pub mod kind {
            $( $(#[$doc])* pub const $kind: u8 = $letter; )*
            /// All of them.
            pub const ALL: [u8; [$($letter),*].len()] = [$($letter),*];
        }

        /// Any message, its payload read.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Message<'a> {
            $( $(#[$doc])* $name($ty $(<$a>)?), )*
            /// Any other letter: kept as it is. "Requirements for Parsers"
            Unknown {
                /// The letter.
                msg_type: u8,
                /// The payload.
                payload: &'a [u8],
            },
        }

        impl<'a> Message<'a> {
            /// Reads the payload of a message of type `msg_type`, all of it; `None` if it is too
            /// short for that, or longer than a type of fixed size.
            #[inline]
            pub fn parse(msg_type: u8, payload: &'a [u8]) -> Option<Self> {
                if msg_type == kind::DATA {
                    return Data::view(payload).map(Self::Data);
                }
                Self::read(msg_type, payload)
            }

            fn read(msg_type: u8, payload: &'a [u8]) -> Option<Self> {
                let mut cursor = Cursor::new(payload);
                let message = match msg_type {
                    $( $letter => Self::$name($ty::read_args(&mut cursor, args!(payload $($a)?)).ok()?), )*
                    _ => return Some(Self::Unknown { msg_type, payload }),
                };
                (cursor.position() == payload.len() as u64).then_some(message)
            }

            /// Returns the letter of the message's type.
            pub fn msg_type(&self) -> u8 {
                match *self {
                    $( Self::$name(_) => $letter, )*
                    Self::Unknown { msg_type, .. } => msg_type,
                }
            }

            /// Writes the payload.
            ///
            /// # Errors
            /// Returns an error if a key is longer than 255 bytes.
            pub fn payload(&self) -> BinResult<Vec<u8>> {
                let mut out = Cursor::new(Vec::new());
                match self {
                    $( Self::$name(message) => message.write(&mut out)?, )*
                    Self::Unknown { payload, .. } => payload.write_le(&mut out)?,
                }
                Ok(out.into_inner())
            }
        }
    };
}

messages! {
    /// Flag bitset.
    b'B' FLAG_BITS FlagBits(FlagBitsMessage<'a>),
    /// Format definition.
    b'F' FORMAT Format(Format<'a>),
    /// Information.
    b'I' INFO Info(Info<'a>),
    /// Information with several values.
    b'M' MULTI_INFO MultiInfo(MultiInfo<'a>),
    /// Parameter.
    b'P' PARAMETER Parameter(Info<'a>),
    /// Default of a parameter, **newer**.
    b'Q' DEFAULT_PARAMETER DefaultParameter(DefaultParameter<'a>),
    /// Subscription.
    b'A' SUBSCRIPTION Subscription(Subscription<'a>),
    /// End of a subscription.
    b'R' UNSUBSCRIPTION Unsubscription(Unsubscription),
    /// Logged data.
    b'D' DATA Data(Data<'a>),
    /// Logged text.
    b'L' LOGGED_STRING LoggedString(LoggedString<'a>),
    /// Logged text with a tag, **newer**.
    b'C' TAGGED_STRING TaggedString(TaggedString<'a>),
    /// Synchronization.
    b'S' SYNC Sync(Sync),
    /// Dropout.
    b'O' DROPOUT Dropout(Dropout),
}

/// Returns the level of a logged text as a number 0 to 7: the ASCII digit of the specification, or
/// the bare number that some writers store; `None` for anything else.
pub(crate) fn level_number(log_level: u8) -> Option<u8> {
    match log_level {
        b'0'..=b'7' => Some(log_level - b'0'),
        0..=7 => Some(log_level),
        _ => None,
    }
}
