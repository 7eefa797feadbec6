//! Headers of records: their fields by name, and the macros that declare them.

use std::io::{Cursor, ErrorKind, Read, Seek, SeekFrom};

use binrw::{BinRead, BinResult, Endian, binrw};
use rovelog_core::wire::counted;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Maximum number of fields of a header.
pub(crate) const MAX_FIELDS: u32 = 256;

/// `<field_len><field_name>=<field_value>`.
#[binrw]
#[brw(little)]
#[br(import(all: &'a [u8]))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Length of name, `=` and value.
    #[br(temp)]
    #[bw(try_calc = u32::try_from(name.len() + 1 + value.len()))]
    len: u32,
    /// "Any printable ASCII character (0x20 - 0x7e), except = (0x3d)", at least one.
    #[br(parse_with = name, args(all, len))]
    pub name: &'a [u8],
    /// Everything behind the first `=`.
    #[brw(magic = b'=')]
    #[br(parse_with = counted, args(all, u64::from(len) - name.len() as u64 - 1))]
    pub value: &'a [u8],
}

/// Reads the name of a field of `len` bytes.
#[inline]
fn name<'a, R: Read + Seek>(
    reader: &mut R,
    endian: Endian,
    (all, len): (&'a [u8], u32),
) -> BinResult<&'a [u8]> {
    let at = reader.stream_position()?;
    let text = counted(reader, endian, (all, len.into()))?;
    let name = text.iter().position(|byte| *byte == b'=').map(|end| &text[..end]);
    let name = name.filter(|name| is_name(name));
    let name = name.ok_or_else(|| binrw::Error::Io(ErrorKind::InvalidData.into()))?;
    reader.seek(SeekFrom::Start(at + name.len() as u64))?;
    Ok(name)
}

/// Returns whether a field may have this name.
pub(crate) fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| (0x20..=0x7e).contains(byte))
}

/// Returns the fields of a header, up to the first bytes that are none.
pub(crate) fn fields_of(header: &[u8]) -> impl Iterator<Item = Field<'_>> {
    let mut reader = Cursor::new(header);
    std::iter::from_fn(move || Field::read_args(&mut reader, (header,)).ok())
}

/// Declares the names of the header fields.
macro_rules! names {
    ($($name:ident = $text:literal,)*) => {
        /// The names of the header fields that have a meaning.
        #[derive(Clone, Copy)]
        pub(crate) enum Name { $($name,)* }

        impl Name {
            const COUNT: usize = [$(Self::$name),*].len();

            #[inline]
            fn of(text: &[u8]) -> Option<Self> {
                match text {
                    $($text => Some(Self::$name),)*
                    _ => None,
                }
            }

            pub(crate) const fn text(self) -> &'static [u8] {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

names! {
    Op = b"op",
    Topic = b"topic",
    Md5 = b"md5",
    Type = b"type",
    Def = b"def",
    Sec = b"sec",
    Nsec = b"nsec",
    Latching = b"latching",
    CallerId = b"callerid",
    IndexPos = b"index_pos",
    Ver = b"ver",
    Count = b"count",
    // V2.0 only.
    Conn = b"conn",
    Time = b"time",
    Compression = b"compression",
    Size = b"size",
    ConnCount = b"conn_count",
    ChunkCount = b"chunk_count",
    ChunkPos = b"chunk_pos",
    StartTime = b"start_time",
    EndTime = b"end_time",
    Encryptor = b"encryptor",
    GpgUser = b"gpg_user",
    EncryptedKey = b"encrypted_key",
    Md5Sum = b"md5sum",
    MessageDefinition = b"message_definition",
}

/// The fields of a header, by name.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    /// "Header fields may appear in any order." Of a field that is repeated the last value.
    values: [Option<&'a [u8]>; Name::COUNT],
    /// Number of fields that repeat the name of another.
    pub(crate) repeated: u32,
    /// Number of fields with other names.
    pub(crate) unknown: u32,
}

impl<'a> Fields<'a> {
    /// Reads the fields of a header; `None` if they do not fill it, or are too many.
    pub(crate) fn read(header: &'a [u8]) -> Option<Self> {
        let mut found = Self { values: [None; Name::COUNT], repeated: 0, unknown: 0 };
        let mut reader = Cursor::new(header);
        for _ in 0..MAX_FIELDS {
            if reader.position() == header.len() as u64 {
                return Some(found);
            }
            let field = Field::read_args(&mut reader, (header,)).ok()?;
            match Name::of(field.name) {
                Some(name) => {
                    let before = found.values[name as usize].replace(field.value);
                    found.repeated += u32::from(before.is_some());
                }
                None => found.unknown += 1,
            }
        }
        (reader.position() == header.len() as u64).then_some(found)
    }

    pub(crate) fn get<T: Value<'a>>(&self, name: Name) -> Option<T> {
        T::read(self.values[name as usize])
    }
}

/// The value of a header field.
pub(crate) trait Value<'a>: Sized {
    /// `None` if the value has another width, or is missing and must not be.
    fn read(value: Option<&'a [u8]>) -> Option<Self>;

    fn stored(&self) -> Option<&[u8]>;
}

impl<'a> Value<'a> for &'a [u8] {
    fn read(value: Option<&'a [u8]>) -> Option<Self> {
        value
    }

    fn stored(&self) -> Option<&[u8]> {
        Some(self)
    }
}

impl<'a> Value<'a> for Option<&'a [u8]> {
    fn read(value: Option<&'a [u8]>) -> Option<Self> {
        Some(value)
    }

    fn stored(&self) -> Option<&[u8]> {
        *self
    }
}

/// A number is where it is stored, so that its place is known.
impl<'a, T: FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned> Value<'a> for &'a T {
    fn read(value: Option<&'a [u8]>) -> Option<Self> {
        T::ref_from_bytes(value?).ok()
    }

    fn stored(&self) -> Option<&[u8]> {
        Some(self.as_bytes())
    }
}

/// Declares a structure of header fields, each by its name.
macro_rules! fields {
    ($(#[$doc:meta])* $kind:ident {
        $($(#[$field_doc:meta])* $field:ident: $ty:ty = $name:ident,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $kind<'a> { $($(#[$field_doc])* pub $field: $ty,)* }

        impl<'a> $kind<'a> {
            /// Returns the structure; `None` if a field that it requires is missing or has another
            /// width.
            pub(crate) fn from_fields(fields: &Fields<'a>) -> Option<Self> {
                Some(Self { $($field: fields.get(Name::$name)?,)* })
            }

            /// Returns the fields that are present, in the order of their declaration.
            pub(crate) fn stored_fields(&self) -> impl Iterator<Item = Field<'_>> {
                [$((Name::$name, $crate::headers::Value::stored(&self.$field)),)*].into_iter().filter_map(|(name, value)| {
                    Some(Field { name: name.text(), value: value? })
                })
            }
        }
    };
}

pub(crate) use fields;

/// Declares the headers of all kinds of records: the op, and each field by its name.
macro_rules! headers {
    ($(#[$about:meta])* $Header:ident; $($(#[$doc:meta])* $op:literal $kind:ident {
        $($(#[$field_doc:meta])* $field:ident: $ty:ty = $name:ident,)*
    })*) => {
        $(
            $crate::headers::fields! { $(#[$doc])* $kind { $($(#[$field_doc])* $field: $ty = $name,)* } }

            impl $kind<'_> {
                /// The field `op` of its records.
                pub const OP: u8 = $op;
            }
        )*

        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $Header<'a> {
            $($(#[$doc])* $kind($kind<'a>),)*
            /// Any other op.
            Unknown(u8),
        }

        impl<'a> $Header<'a> {
            /// The ops that have a meaning.
            pub(crate) const OPS: &'static [u8] = &[$($op),*];

            /// Returns what the fields say, and the op that is meant if the one that is stored is
            /// damaged: it is none, or that of another record, and the fields are those of a record.
            /// `None` if the op is missing, or has a meaning and the fields have none.
            pub(crate) fn meant(fields: &Fields<'a>) -> Option<(Self, Option<u8>)> {
                let op = *fields.get::<&u8>(Name::Op)?;
                let is_known = Self::OPS.contains(&op);
                if is_known && let Some(header) = Self::of_op(fields, op) {
                    return Some((header, None));
                }
                let meant = Self::OPS.iter().find_map(|op| Some((Self::of_op(fields, *op)?, Some(*op))));
                meant.or((!is_known).then_some((Self::Unknown(op), None)))
            }

            /// Returns what the fields say if they are those of this op.
            fn of_op(fields: &Fields<'a>, op: u8) -> Option<Self> {
                Some(match op {
                    $($op => Self::$kind($kind::from_fields(fields)?),)*
                    op => Self::Unknown(op),
                })
            }

            /// Returns its op.
            pub fn op(&self) -> u8 {
                match self {
                    $(Self::$kind(_) => $op,)*
                    Self::Unknown(op) => *op,
                }
            }

            /// Reads a header, without the lengths around it. `None` if its fields do not fill it,
            /// a name is not printable, the op is missing, or a field that the op requires is
            /// missing or of another width.
            pub fn read(header: &'a [u8]) -> Option<Self> {
                let fields = Fields::read(header)?;
                Self::of_op(&fields, *fields.get::<&u8>(Name::Op)?)
            }

            /// Returns the head of a record with this header, as it is stored.
            ///
            /// # Panics
            /// As [`head_of`].
            pub fn to_head(&self, data_len: u32) -> Vec<u8> {
                self.write(|fields| head_of(fields, data_len))
            }

            /// Returns its fields in the byte order of their names, as recorders wrote them.
            pub(crate) fn write<T>(&self, write: impl FnOnce(&[Field<'_>]) -> T) -> T {
                let op = self.op();
                let mut fields = vec![Field { name: Name::Op.text(), value: std::slice::from_ref(&op) }];
                match self {
                    $(Self::$kind(header) => fields.extend(header.stored_fields()),)*
                    Self::Unknown(_) => {}
                }
                fields.sort_by_key(|field| field.name);
                write(&fields)
            }
        }
    };
}

pub(crate) use headers;
