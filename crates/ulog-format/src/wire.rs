//! The bytes of a ULog, declared in the order of the specification.
//!
//! Section names are those of the published "ULog File Format"; **newer** marks what later editions
//! added. Everything is little endian, packed and unaligned. A fixed-size struct is declared once and
//! serves binrw and the zero-copy view alike; a message of variable size is such a head plus what is
//! left of the payload, and has a borrowed twin in [`message`](crate::message).
//!
//! These declarations read *and write*; they say nothing about damage: that is the walk's matter.

use std::io::Cursor;

use binrw::helpers::until_eof;
use binrw::{BinRead, BinResult, BinWrite, binrw};
use rovelog_core::wire::{U16Le, U64Le};

/// The first seven bytes of every ULog. "Header Section"
pub const MAGIC: [u8; 7] = [0x55, 0x4c, 0x6f, 0x67, 0x01, 0x12, 0x35];

/// The payload of a synchronization message. The text says "to be defined"; **newer** editions define it.
pub const SYNC_MAGIC: [u8; 8] = [0x2f, 0x73, 0x13, 0x20, 0x25, 0x0c, 0xbb, 0x12];

/// The letters of `msg_type`. "Definitions Section", "Data Section"
pub mod kind {
    /// Flag bitset: [`FlagBits`](super::FlagBits).
    pub const FLAG_BITS: u8 = b'B';
    /// Format definition: [`Format`](super::Format).
    pub const FORMAT: u8 = b'F';
    /// Information: [`Info`](super::Info).
    pub const INFO: u8 = b'I';
    /// Information with several values: [`MultiInfo`](super::MultiInfo).
    pub const MULTI_INFO: u8 = b'M';
    /// Parameter: laid out as [`Info`](super::Info).
    pub const PARAMETER: u8 = b'P';
    /// Default of a parameter, **newer**: [`DefaultParameter`](super::DefaultParameter).
    pub const DEFAULT_PARAMETER: u8 = b'Q';
    /// Subscription: [`Subscription`](super::Subscription).
    pub const SUBSCRIPTION: u8 = b'A';
    /// End of a subscription: [`Unsubscription`](super::Unsubscription).
    pub const UNSUBSCRIPTION: u8 = b'R';
    /// Logged data: [`Data`](super::Data).
    pub const DATA: u8 = b'D';
    /// Logged text: [`LoggedString`](super::LoggedString).
    pub const LOGGED_STRING: u8 = b'L';
    /// Logged text with a tag, **newer**: [`TaggedString`](super::TaggedString).
    pub const TAGGED_STRING: u8 = b'C';
    /// Synchronization: [`Sync`](super::Sync).
    pub const SYNC: u8 = b'S';
    /// Dropout: [`Dropout`](super::Dropout).
    pub const DROPOUT: u8 = b'O';
    /// All of them.
    pub const ALL: [u8; 13] = *b"BFIMPQARDLCSO";
}

rovelog_core::fixed! {
    /// The start of the file. "Header Section"
    pub struct FileHeader[16] {
        /// [`MAGIC`].
        pub magic: [u8; 7],
        /// The version of the format, currently 1; unknown ones are read all the same.
        pub version: u8,
        /// When logging began, microseconds.
        pub timestamp: U64Le,
    }

    /// `message_header_s`: before every message. "Definitions Section"
    pub struct MessageHeader[3] {
        /// Bytes of the payload, this header not counted.
        pub msg_size: U16Le,
        /// What the payload is: see [`kind`].
        pub msg_type: u8,
    }

    /// `ulog_message_flag_bits_s`: at offset 16 if it is there at all. "'B': Flag bitset message"
    pub struct FlagBits[40] {
        /// Bits that a reader may ignore. **Newer**: bit 0 of byte 0 says that 'Q' messages occur.
        pub compat_flags: [u8; 8],
        /// Bits that a reader must know. Bit 0 of byte 0: data is appended.
        pub incompat_flags: [u8; 8],
        /// Where appended data begins, from the start of the file; 0 is unused.
        pub appended_offsets: [U64Le; 3],
    }

    /// The head of [`Subscription`].
    pub struct SubscriptionHead[3] {
        /// Instance of the topic, the first is 0.
        pub multi_id: u8,
        /// The id under which data messages refer to this subscription.
        pub msg_id: U16Le,
    }

    /// `message_remove_logged_s`. "'R': unsubscribe a message"
    pub struct Unsubscription[2] {
        /// The id of the subscription that ends.
        pub msg_id: U16Le,
    }

    /// The head of [`Data`].
    pub struct DataHead[2] {
        /// The id of a subscription.
        pub msg_id: U16Le,
    }

    /// The head of [`LoggedString`].
    pub struct LoggedStringHead[9] {
        /// `'0'` (emergency) to `'7'` (debug), as in the Linux kernel.
        pub log_level: u8,
        /// Microseconds.
        pub timestamp: U64Le,
    }

    /// The head of [`TaggedString`].
    pub struct TaggedStringHead[11] {
        /// As in [`LoggedStringHead`].
        pub log_level: u8,
        /// The process or module that wrote the text.
        pub tag: U16Le,
        /// Microseconds.
        pub timestamp: U64Le,
    }

    /// `message_sync_s`. "'S': synchronization message"
    pub struct Sync[8] {
        /// [`SYNC_MAGIC`].
        pub sync_magic: [u8; 8],
    }

    /// `message_dropout_s`. "'O': mark a dropout"
    pub struct Dropout[2] {
        /// Milliseconds of lost messages.
        pub duration: U16Le,
    }
}

/// Bytes of a message's header.
pub(crate) const HEADER_SIZE: usize = size_of::<MessageHeader>();

/// The same as a length in the file.
pub(crate) const HEADER_LEN: u64 = HEADER_SIZE as u64;

/// Where a flag bits message stands, if there is one.
pub(crate) const FLAG_BITS_AT: u64 = size_of::<FileHeader>() as u64;

/// Declares messages of variable size: fields in order, the last one takes the rest of the payload.
macro_rules! variable {
    ($( $(#[$doc:meta])* pub struct $name:ident {
        $( $(#[$field_doc:meta])* pub $field:ident: $ty:ty, )*
        ..; $(#[$rest_doc:meta])* pub $rest:ident
    } )*) => { $(
        $(#[$doc])*
        #[derive(BinRead, BinWrite, Clone, Debug, PartialEq, Eq)]
        #[brw(little)]
        pub struct $name {
            $( $(#[$field_doc])* pub $field: $ty, )*
            $(#[$rest_doc])*
            #[br(parse_with = until_eof)]
            pub $rest: Vec<u8>,
        }
    )* };
}

/// A text of at most 255 bytes behind its length: the key of an information message.
#[binrw]
#[derive(Clone, Debug, PartialEq, Eq)]
#[brw(little)]
pub struct Key {
    // One byte bounds the allocation, so no further guard is needed.
    #[br(temp)]
    #[bw(try_calc = u8::try_from(text.len()))]
    key_len: u8,
    /// `type name` or `type[n] name`.
    #[br(count = key_len)]
    pub text: Vec<u8>,
}

variable! {
    /// `message_format_s`. "'F': format definition"
    pub struct Format {
        ..;
        /// `message_name:type field;type[n] field;`
        pub format
    }

    /// `message_info_s`, and a parameter. "'I': information message", "'P': parameter message"
    pub struct Info {
        /// Type and name.
        pub key: Key,
        ..;
        /// The value, of the key's type.
        pub value
    }

    /// `ulog_message_info_multiple_header_s`. "'M': information message multi"
    pub struct MultiInfo {
        /// 1: part of the previous message with the same key.
        pub is_continued: u8,
        /// Type and name.
        pub key: Key,
        ..;
        /// The value, of the key's type.
        pub value
    }

    /// A parameter's default, **newer**.
    pub struct DefaultParameter {
        /// Bit 0: system-wide default; bit 1: default of the current setup (airframe).
        pub default_types: u8,
        /// Type and name.
        pub key: Key,
        ..;
        /// The value, of the key's type.
        pub value
    }

    /// `message_add_logged_s`. "'A': subscribe a message by name"
    pub struct Subscription {
        /// Instance and id.
        pub head: SubscriptionHead,
        ..;
        /// The name of a format.
        pub message_name
    }

    /// `message_data_s`. "'D': contains logged data"
    pub struct Data {
        /// The subscription's id.
        pub head: DataHead,
        ..;
        /// The fields of the subscribed format; trailing padding may be left out.
        pub data
    }

    /// `message_logging_s`. "'L': Logged string message"
    pub struct LoggedString {
        /// Level and time.
        pub head: LoggedStringHead,
        ..;
        /// The text, without NUL.
        pub message
    }

    /// A logged string with a tag, **newer**.
    pub struct TaggedString {
        /// Level, tag and time.
        pub head: TaggedStringHead,
        ..;
        /// The text, without NUL.
        pub message
    }
}

/// The payload of any message, owned.
#[derive(BinRead, BinWrite, Clone, Debug, PartialEq, Eq)]
#[br(little, import(msg_type: u8))]
#[bw(little)]
#[expect(missing_docs, reason = "each variant is the struct of its name")]
pub enum Payload {
    #[br(pre_assert(msg_type == kind::FLAG_BITS))]
    FlagBits {
        flags: FlagBits,
        /// What a later edition may add; ignored, kept for rewriting.
        #[br(parse_with = until_eof)]
        more: Vec<u8>,
    },
    #[br(pre_assert(msg_type == kind::FORMAT))]
    Format(Format),
    #[br(pre_assert(msg_type == kind::INFO))]
    Info(Info),
    #[br(pre_assert(msg_type == kind::MULTI_INFO))]
    MultiInfo(MultiInfo),
    #[br(pre_assert(msg_type == kind::PARAMETER))]
    Parameter(Info),
    #[br(pre_assert(msg_type == kind::DEFAULT_PARAMETER))]
    DefaultParameter(DefaultParameter),
    #[br(pre_assert(msg_type == kind::SUBSCRIPTION))]
    Subscription(Subscription),
    #[br(pre_assert(msg_type == kind::UNSUBSCRIPTION))]
    Unsubscription(Unsubscription),
    #[br(pre_assert(msg_type == kind::DATA))]
    Data(Data),
    #[br(pre_assert(msg_type == kind::LOGGED_STRING))]
    LoggedString(LoggedString),
    #[br(pre_assert(msg_type == kind::TAGGED_STRING))]
    TaggedString(TaggedString),
    #[br(pre_assert(msg_type == kind::SYNC))]
    Sync(Sync),
    #[br(pre_assert(msg_type == kind::DROPOUT))]
    Dropout(Dropout),
    /// Any other letter: kept as it is. "Requirements for Parsers"
    #[br(pre_assert(!kind::ALL.contains(&msg_type)))]
    Unknown(#[br(parse_with = until_eof)] Vec<u8>),
}

impl Payload {
    /// Reads the payload of a message of type `msg_type`, all of it.
    ///
    /// # Errors
    /// Where `bytes` is too short for the type, or longer than a fixed-size one.
    pub fn from_bytes(msg_type: u8, bytes: &[u8]) -> BinResult<Self> {
        let mut cursor = Cursor::new(bytes);
        let payload = Self::read_args(&mut cursor, (msg_type,))?;
        let pos = cursor.position();
        if pos == bytes.len() as u64 {
            Ok(payload)
        } else {
            Err(binrw::Error::AssertFail { pos, message: "bytes behind the payload".into() })
        }
    }

    /// Writes the payload.
    ///
    /// # Errors
    /// Where a key is longer than 255 bytes.
    pub fn to_bytes(&self) -> BinResult<Vec<u8>> {
        let mut cursor = Cursor::new(Vec::new());
        self.write(&mut cursor)?;
        Ok(cursor.into_inner())
    }
}
