//! Messages as borrowed views: the zero-copy twins of the declarations in [`wire`].

use rovelog_core::wire::{U16Le, U64Le};
use zerocopy::FromBytes;

use crate::schema::{Key, split_key};
use crate::wire::{self, Payload, kind};

/// A message's payload, viewed in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Message<'a> {
    /// Flag bits, and what a later edition may have added behind them.
    FlagBits(&'a wire::FlagBits, &'a [u8]),
    /// The text of a format definition.
    Format(&'a [u8]),
    /// An information message.
    Info(KeyValue<'a>),
    /// One part of an information message with several values.
    MultiInfo {
        /// Whether it continues the previous message of the same key.
        continued: bool,
        /// Key and value.
        part: KeyValue<'a>,
    },
    /// A parameter.
    Parameter(KeyValue<'a>),
    /// A parameter's default.
    DefaultParameter {
        /// Bit 0: system-wide; bit 1: of the current setup.
        types: u8,
        /// Key and value.
        default: KeyValue<'a>,
    },
    /// A subscription.
    Subscription {
        /// Instance of the topic.
        multi_id: u8,
        /// The id used by data messages.
        msg_id: u16,
        /// The format's name.
        name: &'a [u8],
    },
    /// The end of a subscription.
    Unsubscription {
        /// Its id.
        msg_id: u16,
    },
    /// A row of data.
    Data {
        /// The subscription's id.
        msg_id: u16,
        /// The fields.
        row: &'a [u8],
    },
    /// A logged text; `tag` in those of type 'C'.
    Text {
        /// The level as it stands in the file: an ASCII digit, in some files a number.
        level: u8,
        /// The process or module.
        tag: Option<u16>,
        /// Microseconds.
        timestamp: u64,
        /// The text.
        text: &'a [u8],
    },
    /// A synchronization message, its magic not yet compared.
    Sync(&'a [u8; 8]),
    /// A dropout.
    Dropout {
        /// Its length in milliseconds.
        millis: u16,
    },
    /// A message of a type that is not in the specification.
    Unknown {
        /// The letter.
        msg_type: u8,
        /// The payload.
        payload: &'a [u8],
    },
}

/// Key and value of an information message or a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyValue<'a> {
    /// `type name` or `type[n] name`, as it stands in the file.
    pub key: &'a [u8],
    /// The value's bytes.
    pub value: &'a [u8],
}

impl<'a> KeyValue<'a> {
    fn view(payload: &'a [u8]) -> Option<Self> {
        let (&len, rest) = payload.split_first()?;
        let (key, value) = rest.split_at_checked(usize::from(len))?;
        Some(Self { key, value })
    }

    /// The key's type and name; `None` where it is not printable `type name`.
    pub fn parse_key(&self) -> Option<Key<'a>> {
        split_key(self.key)
    }

    /// Whether the value is as long as the type in the key says.
    pub(crate) fn confirms_length(&self) -> bool {
        let ty = self.parse_key().and_then(|key| key.type_name());
        ty.and_then(|ty| ty.fits_value(self.value.len())) == Some(true)
    }
}

impl<'a> Message<'a> {
    /// Views `payload` as a message of type `msg_type`; `None` where it is too short for that, or longer
    /// than a fixed-size type.
    pub fn view(msg_type: u8, payload: &'a [u8]) -> Option<Self> {
        Some(match msg_type {
            kind::FLAG_BITS => {
                let (flags, more) = wire::FlagBits::ref_from_prefix(payload).ok()?;
                Self::FlagBits(flags, more)
            }
            kind::FORMAT => Self::Format(payload),
            kind::INFO => Self::Info(KeyValue::view(payload)?),
            kind::MULTI_INFO => {
                let (&is_continued, rest) = payload.split_first()?;
                Self::MultiInfo { continued: is_continued != 0, part: KeyValue::view(rest)? }
            }
            kind::PARAMETER => Self::Parameter(KeyValue::view(payload)?),
            kind::DEFAULT_PARAMETER => {
                let (&types, rest) = payload.split_first()?;
                Self::DefaultParameter { types, default: KeyValue::view(rest)? }
            }
            kind::SUBSCRIPTION => {
                let (head, name) = wire::SubscriptionHead::ref_from_prefix(payload).ok()?;
                Self::Subscription { multi_id: head.multi_id, msg_id: head.msg_id.get(), name }
            }
            kind::UNSUBSCRIPTION => {
                let message = wire::Unsubscription::ref_from_bytes(payload).ok()?;
                Self::Unsubscription { msg_id: message.msg_id.get() }
            }
            kind::DATA => {
                let (head, row) = wire::DataHead::ref_from_prefix(payload).ok()?;
                Self::Data { msg_id: head.msg_id.get(), row }
            }
            kind::LOGGED_STRING => {
                let (head, text) = wire::LoggedStringHead::ref_from_prefix(payload).ok()?;
                Self::Text { level: head.log_level, tag: None, timestamp: head.timestamp.get(), text }
            }
            kind::TAGGED_STRING => {
                let (head, text) = wire::TaggedStringHead::ref_from_prefix(payload).ok()?;
                let tag = Some(head.tag.get());
                Self::Text { level: head.log_level, tag, timestamp: head.timestamp.get(), text }
            }
            kind::SYNC => Self::Sync(&wire::Sync::ref_from_bytes(payload).ok()?.sync_magic),
            kind::DROPOUT => {
                let message = wire::Dropout::ref_from_bytes(payload).ok()?;
                Self::Dropout { millis: message.duration.get() }
            }
            msg_type => Self::Unknown { msg_type, payload },
        })
    }
}

impl Message<'_> {
    /// The letter of the message's type.
    pub fn msg_type(&self) -> u8 {
        match *self {
            Self::FlagBits(..) => kind::FLAG_BITS,
            Self::Format(_) => kind::FORMAT,
            Self::Info(_) => kind::INFO,
            Self::MultiInfo { .. } => kind::MULTI_INFO,
            Self::Parameter(_) => kind::PARAMETER,
            Self::DefaultParameter { .. } => kind::DEFAULT_PARAMETER,
            Self::Subscription { .. } => kind::SUBSCRIPTION,
            Self::Unsubscription { .. } => kind::UNSUBSCRIPTION,
            Self::Data { .. } => kind::DATA,
            Self::Text { tag: None, .. } => kind::LOGGED_STRING,
            Self::Text { tag: Some(_), .. } => kind::TAGGED_STRING,
            Self::Sync(_) => kind::SYNC,
            Self::Dropout { .. } => kind::DROPOUT,
            Self::Unknown { msg_type, .. } => msg_type,
        }
    }

    /// The same message as its owned declaration, which writes it.
    pub fn to_payload(&self) -> Payload {
        let key = |text: &[u8]| wire::Key { text: text.to_vec() };
        let info = |part: KeyValue<'_>| wire::Info { key: key(part.key), value: part.value.to_vec() };
        match *self {
            Self::FlagBits(flags, more) => Payload::FlagBits { flags: *flags, more: more.to_vec() },
            Self::Format(text) => Payload::Format(wire::Format { format: text.to_vec() }),
            Self::Info(part) => Payload::Info(info(part)),
            Self::Parameter(part) => Payload::Parameter(info(part)),
            Self::MultiInfo { continued, part } => Payload::MultiInfo(wire::MultiInfo {
                is_continued: continued.into(),
                key: key(part.key),
                value: part.value.to_vec(),
            }),
            Self::DefaultParameter { types, default } => Payload::DefaultParameter(wire::DefaultParameter {
                default_types: types,
                key: key(default.key),
                value: default.value.to_vec(),
            }),
            Self::Subscription { multi_id, msg_id, name } => Payload::Subscription(wire::Subscription {
                head: wire::SubscriptionHead { multi_id, msg_id: U16Le::new(msg_id) },
                message_name: name.to_vec(),
            }),
            Self::Unsubscription { msg_id } => {
                Payload::Unsubscription(wire::Unsubscription { msg_id: U16Le::new(msg_id) })
            }
            Self::Data { msg_id, row } => Payload::Data(wire::Data {
                head: wire::DataHead { msg_id: U16Le::new(msg_id) },
                data: row.to_vec(),
            }),
            Self::Text { level, tag: None, timestamp, text } => Payload::LoggedString(wire::LoggedString {
                head: wire::LoggedStringHead { log_level: level, timestamp: U64Le::new(timestamp) },
                message: text.to_vec(),
            }),
            Self::Text { level, tag: Some(tag), timestamp, text } => {
                Payload::TaggedString(wire::TaggedString {
                    head: wire::TaggedStringHead {
                        log_level: level,
                        tag: U16Le::new(tag),
                        timestamp: U64Le::new(timestamp),
                    },
                    message: text.to_vec(),
                })
            }
            Self::Sync(magic) => Payload::Sync(wire::Sync { sync_magic: *magic }),
            Self::Dropout { millis } => Payload::Dropout(wire::Dropout { duration: U16Le::new(millis) }),
            Self::Unknown { payload, .. } => Payload::Unknown(payload.to_vec()),
        }
    }
}

/// The level of a logged text as a number 0 to 7: the ASCII digit of the specification, or the bare
/// number that some writers store; `None` for anything else.
pub fn level_number(level: u8) -> Option<u8> {
    match level {
        b'0'..=b'7' => Some(level - b'0'),
        0..=7 => Some(level),
        _ => None,
    }
}
