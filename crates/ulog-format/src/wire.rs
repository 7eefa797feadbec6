//! The binary structures of a ULog, in the order of the specification. All readers and writers use
//! these declarations.
//!
//! Quoted section names refer to the published specification, "ULog File Format". **Newer** marks
//! structures that later editions added. All numbers are little endian, without alignment or gaps
//! between fields.
//!
//! [`FileHeader`], [`MessageHeader`] and [`FlagBits`] have a fixed size and can be viewed in place.
//! All other messages borrow their texts and values from the payload.
//!
//! Parsing checks lengths only. The private module `validate` decides whether a message is
//! plausible.
//!
//! # Example
//!
//! A dropout of 5 ms takes five bytes: the size of its payload, its type, the duration.
//!
//! ```text
//! 02 00  4f  05 00
//! size   'O' duration
//! ```

use std::io::Cursor;

use binrw::{BinRead, BinResult, BinWrite, binrw};
use rovelog_core::internal::structure::{FieldList, Shown as _};
use rovelog_core::internal::wire::{U16Le, U64Le, counted, rest};
use rovelog_core::{FormatInfo, Signature, structure};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Name, file extensions and signature of the ULog format.
pub(crate) const INFO: FormatInfo = FormatInfo {
    id: "ulog",
    name: "ULog",
    about: "PX4 flight log",
    extensions: &["ulg", "ulog"],
    signatures: &[Signature(&MAGIC)],
    recognizes: None,
    files: None,
};

/// The first seven bytes of every ULog. See "Header Section" in the specification.
#[doc(hidden)]
pub const MAGIC: [u8; 7] = [0x55, 0x4c, 0x6f, 0x67, 0x01, 0x12, 0x35];

/// The payload of every synchronization message. The first edition of the specification contains
/// "to be defined" instead of the value. The value comes from **newer** editions.
#[doc(hidden)]
pub const SYNC_MAGIC: [u8; 8] = [0x2f, 0x73, 0x13, 0x20, 0x25, 0x0c, 0xbb, 0x12];

/// The first 16 bytes of a file. See "Header Section" in the specification.
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct FileHeader {
    /// The magic number of the format, [`MAGIC`].
    pub magic: [u8; 7],
    /// Version of the format, currently 1. Files with unknown versions are read too, as
    /// "Requirements for Parsers" in the specification demands.
    pub version: u8,
    /// Time at which logging started, in microseconds.
    pub timestamp: U64Le,
}

const _: () = assert!(size_of::<FileHeader>() == 16);

structure!(FileHeader, "Header Section", { magic, version, timestamp });

/// The header of every message. See `message_header_s` in "Definitions Section" of the
/// specification.
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct MessageHeader {
    /// Size of the payload in bytes. It does not include this header.
    pub msg_size: U16Le,
    /// Type of the payload, which is one of the letters in [`kind`].
    pub msg_type: u8,
}

const _: () = assert!(size_of::<MessageHeader>() == 3);

structure!(MessageHeader, "Definitions Section, message_header_s", { msg_size, msg_type });

/// The flags of a log. See `ulog_message_flag_bits_s` in "'B': Flag bitset message" of the
/// specification.
///
/// The flag bits message is optional. It must be the first message, so its header is always at
/// offset 16.
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct FlagBits {
    /// Flag bits that a reader may ignore. In **newer** editions of the specification, bit 0 of
    /// byte 0 is set if the log contains 'Q' messages.
    pub compat_flags: [u8; 8],
    /// Flag bits that a reader must support to read the log. Bit 0 of byte 0 is set if the log has
    /// appended data.
    pub incompat_flags: [u8; 8],
    /// Offsets in the file at which appended data starts. An offset of 0 is unused.
    pub appended_offsets: [U64Le; 3],
}

const _: () = assert!(size_of::<FlagBits>() == 40);

structure!(FlagBits, "'B': Flag bitset message", { compat_flags, incompat_flags, appended_offsets });

/// Size of a message header in bytes, as a type for indices of slices.
pub(crate) const HEADER_SIZE: usize = size_of::<MessageHeader>();

/// Size of a message header in bytes, as a type for file offsets.
pub(crate) const HEADER_LEN: u64 = HEADER_SIZE as u64;

/// Offset of the flag bits message, which is also the length of the file header.
pub(crate) const FLAG_BITS_AT: u64 = size_of::<FileHeader>() as u64;

impl MessageHeader {
    /// Returns the header and the payload of the message at the start of `bytes`, or `None` if
    /// `bytes` do not contain the whole message.
    #[inline]
    pub(crate) fn split(bytes: &[u8]) -> Option<(&Self, &[u8])> {
        let (header, rest) = Self::ref_from_prefix(bytes).ok()?;
        Some((header, rest.get(..usize::from(header.msg_size.get()))?))
    }
}

/// Returns the number or structure at the index `at` of `bytes`, or `None` if `bytes` is too short.
#[inline]
pub(crate) fn number<T: FromBytes>(bytes: &[u8], at: usize) -> Option<T> {
    Some(T::read_from_prefix(bytes.get(at..)?).ok()?.0)
}

impl Message<'_> {
    /// Returns `true` if the message shows that the data section has started.
    pub(crate) fn is_data(&self) -> bool {
        use kind::{DATA, DROPOUT, LOGGED_STRING, SUBSCRIPTION, SYNC, TAGGED_STRING, UNSUBSCRIPTION};
        [SUBSCRIPTION, UNSUBSCRIPTION, LOGGED_STRING, TAGGED_STRING, SYNC, DROPOUT, DATA]
            .contains(&self.msg_type())
    }
}

impl FlagBits {
    /// Returns the flag bits without offsets of appended data.
    ///
    /// A copy of a log needs this if its messages have other offsets than in the original. Appended
    /// messages then become ordinary messages of the copy.
    #[must_use]
    pub(crate) fn merged(mut self) -> Self {
        self.incompat_flags[0] &= !1;
        self.appended_offsets = [U64Le::new(0); 3];
        self
    }
}

/// A whole flag bits message. See "'B': Flag bitset message" in the specification.
#[binrw]
#[brw(little)]
#[br(import(all: &'a [u8]))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlagBitsMessage<'a> {
    /// The flag bits and the offsets of appended data.
    pub flags: FlagBits,
    /// Bytes after the known fields, which later editions may have added. The specification tells a
    /// parser to ignore these bytes. They are kept, so that a copy of the log is identical.
    #[br(parse_with = rest, args(all))]
    pub more: &'a [u8],
}

structure!(FlagBitsMessage<'_>, "'B': Flag bitset message", { flags, more });

/// The definition of a format. See `message_format_s` in "'F': format definition" of the
/// specification.
#[binrw]
#[brw(little)]
#[br(import(all: &'a [u8]))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format<'a> {
    /// Definition text of the form `message_name:type field;type[n] field;`.
    #[br(parse_with = rest, args(all))]
    pub format: &'a [u8],
}

structure!(Format<'_>, "'F': format definition", { format });

/// A key with a value, which is the content of information messages and parameters. See
/// `message_info_s` in "'I': information message" and "'P': parameter message" of the
/// specification.
#[binrw]
#[brw(little)]
#[br(import(all: &'a [u8]))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info<'a> {
    #[br(temp)]
    #[bw(try_calc = u8::try_from(key.len()))]
    key_len: u8,
    /// Type and name of the value, in the form `type name` or `type[n] name`.
    #[br(parse_with = counted, args(all, key_len.into()))]
    pub key: &'a [u8],
    /// Bytes of the value, whose type is stated in `key`.
    #[br(parse_with = rest, args(all))]
    pub value: &'a [u8],
}

structure!(Info<'_>, "'I': information message", { [key_len = u8::try_from(key.len()).unwrap_or(u8::MAX)] key, value });

/// A message with one value of an information that has several values. See
/// `ulog_message_info_multiple_header_s` in "'M': information message multi" of the specification.
#[binrw]
#[brw(little)]
#[br(import(all: &'a [u8]))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultiInfo<'a> {
    /// 1 if the value belongs to the same list as the previous message with the same key. 0 if the
    /// value starts a new list.
    pub is_continued: u8,
    /// Key and value of the information.
    #[br(args(all))]
    pub info: Info<'a>,
}

structure!(MultiInfo<'_>, "'M': information message multi", { is_continued, info });

/// The default of a parameter. See `message_parameter_default_s` in "'Q': parameter default
/// message" of **newer** editions of the specification.
#[binrw]
#[brw(little)]
#[br(import(all: &'a [u8]))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefaultParameter<'a> {
    /// Bits for the kinds of default to which the value applies. Bit 0 is the system-wide default,
    /// and bit 1 is the default of the current setup (airframe).
    pub default_types: u8,
    /// Key and default value of the parameter.
    #[br(args(all))]
    pub info: Info<'a>,
}

structure!(DefaultParameter<'_>, "'Q': parameter default message", { default_types, info });

/// The start of a topic. See `message_add_logged_s` in "'A': subscribe a message by name" of the
/// specification.
#[binrw]
#[brw(little)]
#[br(import(all: &'a [u8]))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscription<'a> {
    /// Number of the topic's instance. A vehicle with two sensors of a type logs instances 0 and 1.
    pub multi_id: u8,
    /// Message id by which data messages refer to this subscription.
    pub msg_id: u16,
    /// Name of the format in which the rows are encoded.
    #[br(parse_with = rest, args(all))]
    pub message_name: &'a [u8],
}

structure!(Subscription<'_>, "'A': subscribe a message by name", { multi_id, msg_id, message_name });

/// The end of a topic. See `message_remove_logged_s` in "'R': unsubscribe a message" of the
/// specification.
#[derive(BinRead, BinWrite, Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
pub struct Unsubscription {
    /// Message id of the subscription that ends.
    pub msg_id: u16,
}

structure!(Unsubscription, "'R': unsubscribe a message", { msg_id });

/// A row of a topic. See `message_data_s` in "'D': contains logged data" of the specification.
#[binrw]
#[brw(little)]
#[br(import(all: &'a [u8]))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data<'a> {
    /// Message id of the subscription to which the row belongs.
    pub msg_id: u16,
    /// Encoded fields of the row. The padding at the end of the format is usually omitted.
    #[br(parse_with = rest, args(all))]
    pub row: &'a [u8],
}

structure!(Data<'_>, "'D': contains logged data", { msg_id, row });

/// Size in bytes of the field `msg_id` in [`Data`].
pub(crate) const MSG_ID_LEN: usize = size_of::<u16>();

impl<'a> Data<'a> {
    /// Parses the payload of a data message. Returns `None` if the payload is shorter than the
    /// message id.
    ///
    /// The result is the same as with `BinRead`. This function exists for speed, because most
    /// messages of a log are rows.
    #[inline]
    pub(crate) fn view(payload: &'a [u8]) -> Option<Self> {
        let (msg_id, row) = payload.split_first_chunk::<MSG_ID_LEN>()?;
        Some(Self { msg_id: u16::from_le_bytes(*msg_id), row })
    }
}

/// A console message. See `message_logging_s` in "'L': Logged string message" of the specification.
#[binrw]
#[brw(little)]
#[br(import(all: &'a [u8]))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedString<'a> {
    /// Severity as an ASCII digit, from `'0'` (emergency) to `'7'` (debug) as in the Linux kernel.
    /// Some writers store the numbers 0 to 7 instead of digits.
    pub log_level: u8,
    /// Time of the console message in microseconds.
    pub timestamp: u64,
    /// Text of the console message, without a NUL byte at the end.
    #[br(parse_with = rest, args(all))]
    pub message: &'a [u8],
}

structure!(LoggedString<'_>, "'L': Logged string message", { log_level, timestamp, message });

/// A console message with a tag that identifies its source. See `message_logging_tagged_s` in "'C':
/// Tagged Logged string message" of **newer** editions of the specification.
#[binrw]
#[brw(little)]
#[br(import(all: &'a [u8]))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaggedString<'a> {
    /// Severity of the console message, encoded as in [`LoggedString::log_level`].
    pub log_level: u8,
    /// Number of the process or module that wrote the text.
    pub tag: u16,
    /// Time of the console message in microseconds.
    pub timestamp: u64,
    /// Text of the console message, without a NUL byte at the end.
    #[br(parse_with = rest, args(all))]
    pub message: &'a [u8],
}

structure!(TaggedString<'_>, "'C': Tagged Logged string message", { log_level, tag, timestamp, message });

/// A fixed byte pattern at which a reader can continue after damage. See `message_sync_s` in "'S':
/// synchronization message" of the specification.
#[derive(BinRead, BinWrite, Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
pub struct Sync {
    /// The byte pattern, [`SYNC_MAGIC`].
    pub sync_magic: [u8; 8],
}

structure!(Sync, "'S': synchronization message", { sync_magic });

/// A mark that the logger has lost messages. See `message_dropout_s` in "'O': mark a dropout" of
/// the specification.
#[derive(BinRead, BinWrite, Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
pub struct Dropout {
    /// Duration of the dropout in milliseconds.
    pub duration: u16,
}

structure!(Dropout, "'O': mark a dropout", { duration });

/// Expands to the arguments for parsing a message. These are the payload if the message borrows
/// from it, and nothing otherwise.
macro_rules! args {
    ($payload:ident) => {
        ()
    };
    ($payload:ident $a:lifetime) => {
        ($payload,)
    };
}

/// Generates the module [`kind`] and the enum [`Message`] from a list of message types and their
/// letters.
macro_rules! messages {
    ($( $(#[$doc:meta])* $letter:literal $kind:ident $name:ident($ty:ident $(<$a:lifetime>)?), )*) => {
        /// Letters of the message types. See "Definitions Section" and "Data Section" in the
        /// specification.
        pub mod kind {
            $( $(#[$doc])* pub const $kind: u8 = $letter; )*
            /// The letters of all known message types.
            pub const ALL: [u8; [$($letter),*].len()] = [$($letter),*];
        }

        /// A parsed message of any type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Message<'a> {
            $( $(#[$doc])* $name($ty $(<$a>)?), )*
            /// A message of an unknown type. According to "Requirements for Parsers" in the
            /// specification, a reader must ignore such a message. The payload is kept, so that
            /// copies of the log contain the message too.
            Unknown {
                /// Letter of the unknown message type.
                msg_type: u8,
                /// The payload, which is not interpreted.
                payload: &'a [u8],
            },
        }

        impl<'a> Message<'a> {
            /// Parses the payload of a message of type `msg_type`.
            ///
            /// Returns `None` if the payload is too short for this type. Also returns `None` if the
            /// type has a fixed size and the payload is longer.
            #[inline]
            pub fn parse(msg_type: u8, payload: &'a [u8]) -> Option<Self> {
                // `Data::view` is used instead of `BinRead`, which is slower.
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

            /// Returns the letter of the message type.
            pub fn msg_type(&self) -> u8 {
                match *self {
                    $( Self::$name(_) => $letter, )*
                    Self::Unknown { msg_type, .. } => msg_type,
                }
            }

            /// Adds the fields of the payload to `fields`.
            pub(crate) fn show(&self, fields: &mut FieldList) {
                match self {
                    $( Self::$name(message) => message.show(stringify!($name), fields), )*
                    Self::Unknown { payload, .. } => payload.show("payload", fields),
                }
            }

            /// Encodes the payload of the message.
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
    /// Flags of the log, with the offsets of appended data.
    b'B' FLAG_BITS FlagBits(FlagBitsMessage<'a>),
    /// Definition of a format.
    b'F' FORMAT Format(Format<'a>),
    /// Information about the log, such as the software version.
    b'I' INFO Info(Info<'a>),
    /// One of several values that an information has.
    b'M' MULTI_INFO MultiInfo(MultiInfo<'a>),
    /// Value of a parameter.
    b'P' PARAMETER Parameter(Info<'a>),
    /// Default of a parameter, in **newer** editions of the specification.
    b'Q' DEFAULT_PARAMETER DefaultParameter(DefaultParameter<'a>),
    /// Start of a topic, which assigns a message id to it.
    b'A' SUBSCRIPTION Subscription(Subscription<'a>),
    /// Unsubscription, which marks the end of a topic.
    b'R' UNSUBSCRIPTION Unsubscription(Unsubscription),
    /// Row of a topic.
    b'D' DATA Data(Data<'a>),
    /// Console message.
    b'L' LOGGED_STRING LoggedString(LoggedString<'a>),
    /// Console message with a tag, in **newer** editions of the specification.
    b'C' TAGGED_STRING TaggedString(TaggedString<'a>),
    /// Byte pattern at which a reader can continue after damage.
    b'S' SYNC Sync(Sync),
    /// Mark that the logger has lost messages, with the duration of the loss.
    b'O' DROPOUT Dropout(Dropout),
}

/// Returns the severity of a console message as a number from 0 to 7, or `None` if it is invalid.
///
/// According to the specification, the severity is an ASCII digit. Some writers store the number
/// itself, so both encodings are accepted.
pub(crate) fn level_number(log_level: u8) -> Option<u8> {
    match log_level {
        b'0'..=b'7' => Some(log_level - b'0'),
        0..=7 => Some(log_level),
        _ => None,
    }
}
