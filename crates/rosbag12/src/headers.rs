//! Record headers, which are lists of named fields, and the macros that declare typed headers.

use std::fmt::Debug;
use std::io::{Cursor, ErrorKind, Read, Seek, SeekFrom};

use binrw::{BinRead, BinResult, Endian, binrw};
use rovelog_core::internal::structure::{FieldList, bytes_text};
use rovelog_core::internal::wire::counted;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Size in bytes of the length before a header field.
const LEN: usize = size_of::<u32>();

/// Maximum number of fields in a record header.
pub(crate) const MAX_FIELDS: u32 = 256;

/// A header field, encoded as `<field_len><field_name>=<field_value>`.
#[binrw]
#[brw(little)]
#[br(import(all: &'a [u8]))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Size in bytes of the field name, the character `=` and the field value.
    #[br(temp)]
    #[bw(try_calc = u32::try_from(name.len() + 1 + value.len()))]
    len: u32,
    /// Name of the field: at least one printable ASCII character (0x20 to 0x7e), except `=`.
    #[br(parse_with = name, args(all, len))]
    pub name: &'a [u8],
    /// Value of the field, which is all bytes after the first `=`.
    #[brw(magic = b'=')]
    #[br(parse_with = counted, args(all, u64::from(len) - name.len() as u64 - 1))]
    pub value: &'a [u8],
}

/// Adds the head of a record to `list`: both lengths, and the header. `text_of` returns the value of
/// the field with this name as text.
pub(crate) fn show_head(
    (header, data_len): (&[u8], u32),
    text_of: impl Fn(&[u8]) -> Option<String>,
    list: &mut FieldList,
) {
    list.group("record", "Format", |list| {
        list.leaf("header_len", LEN, header.len().to_string());
        list.group("header", "Header format", |list| show_fields(header, text_of, list));
        list.leaf("data_len", LEN, data_len.to_string());
    });
}

/// Adds the fields of a header to `list`. `text_of` takes the name of a field and returns its value
/// as text, or `None` if the field is unknown.
pub(crate) fn show_fields(header: &[u8], text_of: impl Fn(&[u8]) -> Option<String>, list: &mut FieldList) {
    let mut rest = header;
    for Field { name, value } in fields_of(header) {
        let (text, len) = (text_of(name), LEN + name.len() + 1 + value.len());
        rest = rest.get(len..).unwrap_or_default();
        list.leaf(&name.escape_ascii().to_string(), len, text.unwrap_or_else(|| bytes_text(value)));
    }
    if !rest.is_empty() {
        list.leaf("(not a field)", rest.len(), bytes_text(rest));
    }
}

/// Reads the name of a header field that has `len` bytes in total.
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

/// Returns whether `name` is a valid field name.
pub(crate) fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| (0x20..=0x7e).contains(byte))
}

/// Returns the fields of a header, up to the first invalid field.
pub(crate) fn fields_of(header: &[u8]) -> impl Iterator<Item = Field<'_>> {
    let mut reader = Cursor::new(header);
    std::iter::from_fn(move || Field::read_args(&mut reader, (header,)).ok())
}

/// Declares the names of header fields that the specifications define.
macro_rules! names {
    ($($name:ident = $text:literal,)*) => {
        /// Names of the header fields that the specifications define.
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
    // The following fields occur only in V2.0.
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

/// Values of the fields in a record header.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    /// Value of each field, by its name. Fields may appear in any order. If a name occurs more than
    /// once, the last value is used.
    values: [Option<&'a [u8]>; Name::COUNT],
    /// Number of fields whose name occurred before in the same header.
    pub(crate) duplicates: u32,
    /// Number of fields whose name is not defined by the specification.
    pub(crate) unknown: u32,
}

impl<'a> Fields<'a> {
    /// Reads the fields of a header. Returns `None` if the fields do not fill the header exactly,
    /// or if there are more than [`MAX_FIELDS`].
    pub(crate) fn read(header: &'a [u8]) -> Option<Self> {
        let mut found = Self { values: [None; Name::COUNT], duplicates: 0, unknown: 0 };
        let mut reader = Cursor::new(header);
        for _ in 0..MAX_FIELDS {
            if reader.position() == header.len() as u64 {
                return Some(found);
            }
            let field = Field::read_args(&mut reader, (header,)).ok()?;
            match Name::of(field.name) {
                Some(name) => {
                    let before = found.values[name as usize].replace(field.value);
                    found.duplicates += u32::from(before.is_some());
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

/// Value of a header field, as a typed reference into the bytes of the header.
pub(crate) trait Value<'a>: Sized {
    /// Reads the value of a field. Returns `None` if the value has the wrong size, or if a required
    /// value is missing.
    fn read(value: Option<&'a [u8]>) -> Option<Self>;

    fn stored(&self) -> Option<&[u8]>;

    /// Returns the value as text. The default is for texts.
    fn text(&self) -> String {
        bytes_text(self.stored().unwrap_or_default())
    }
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

// Numbers are references into the header, so that a caller can compute their offset from their
// address.
impl<'a, T: FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned + Debug> Value<'a> for &'a T {
    fn read(value: Option<&'a [u8]>) -> Option<Self> {
        T::ref_from_bytes(value?).ok()
    }

    fn stored(&self) -> Option<&[u8]> {
        Some(self.as_bytes())
    }

    fn text(&self) -> String {
        format!("{self:?}")
    }
}

/// Declares a structure whose members are the values of header fields.
macro_rules! fields {
    ($(#[$doc:meta])* $kind:ident {
        $($(#[$field_doc:meta])* $field:ident: $ty:ty = $name:ident,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $kind<'a> { $($(#[$field_doc])* pub $field: $ty,)* }

        impl<'a> $kind<'a> {
            /// Reads the structure from the fields of a header. Returns `None` if a required field
            /// is missing or has the wrong size.
            pub(crate) fn from_fields(fields: &Fields<'a>) -> Option<Self> {
                Some(Self { $($field: fields.get(Name::$name)?,)* })
            }

            /// Returns the value of the field with the name `name` as text. Returns `None` if the
            /// structure has no such field.
            pub(crate) fn text_of(&self, name: &[u8]) -> Option<String> {
                $(if name == Name::$name.text() {
                    return Some($crate::headers::Value::text(&self.$field));
                })*
                None
            }

            /// Returns the fields that are present, in the order of declaration.
            pub(crate) fn stored_fields(&self) -> impl Iterator<Item = Field<'_>> {
                [$((Name::$name, $crate::headers::Value::stored(&self.$field)),)*].into_iter().filter_map(|(name, value)| {
                    Some(Field { name: name.text(), value: value? })
                })
            }
        }
    };
}

pub(crate) use fields;

/// Declares the headers of all record types, each with its op (the number of the type), its name in
/// the specification and its fields.
macro_rules! headers {
    ($(#[$about:meta])* $Header:ident; $($(#[$doc:meta])* $op:literal $kind:ident $section:literal {
        $($(#[$field_doc:meta])* $field:ident: $ty:ty = $name:ident,)*
    })*) => {
        $(
            $crate::headers::fields! { $(#[$doc])* $kind { $($(#[$field_doc])* $field: $ty = $name,)* } }

            impl $kind<'_> {
                /// Value of the field `op` in headers of this type.
                pub const OP: u8 = $op;
            }
        )*

        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $Header<'a> {
            $($(#[$doc])* $kind($kind<'a>),)*
            /// A header whose op (record type) the specification does not define.
            Unknown(u8),
        }

        impl<'a> $Header<'a> {
            /// All values of the field `op` that the specification defines.
            pub(crate) const OPS: &'static [u8] = &[$($op),*];

            /// Interprets the fields of a header whose op (record type) may be damaged.
            ///
            /// If the fields do not match the stored op, but match another op, the stored op is
            /// damaged. In this case, the second value of the result is the matching op. Returns
            /// `None` if the op is missing, or if the op is defined and the fields match no op.
            pub(crate) fn interpret(fields: &Fields<'a>) -> Option<(Self, Option<u8>)> {
                let op = *fields.get::<&u8>(Name::Op)?;
                let is_known = Self::OPS.contains(&op);
                if is_known && let Some(header) = Self::of_op(fields, op) {
                    return Some((header, None));
                }
                let meant = Self::OPS.iter().find_map(|op| Some((Self::of_op(fields, *op)?, Some(*op))));
                meant.or((!is_known).then_some((Self::Unknown(op), None)))
            }

            /// Returns a header with the op (record type) `op`, if the fields match this op.
            fn of_op(fields: &Fields<'a>, op: u8) -> Option<Self> {
                Some(match op {
                    $($op => Self::$kind($kind::from_fields(fields)?),)*
                    op => Self::Unknown(op),
                })
            }

            /// Returns the op of the header, that is, the number of the record type.
            pub fn op(&self) -> u8 {
                match self {
                    $(Self::$kind(_) => $op,)*
                    Self::Unknown(op) => *op,
                }
            }

            /// Adds the head of a record to `list`: both lengths, and the fields of the header.
            /// Returns the header and the data of the record. Returns `None` if the head is invalid.
            pub(crate) fn show(
                record: &'a [u8],
                list: &mut rovelog_core::internal::structure::FieldList,
            ) -> Option<(Self, &'a [u8])> {
                let head = RecordHead::read(record)?;
                let header = Self::interpret(&Fields::read(head.header)?)?.0;
                let section = match &header {
                    $(Self::$kind(_) => $section,)*
                    Self::Unknown(_) => "",
                };
                let text_of = |name: &[u8]| match &header {
                    _ if name == Name::Op.text() => Some(format!("{} {section}", header.op())),
                    $(Self::$kind(header) => header.text_of(name),)*
                    Self::Unknown(_) => None,
                };
                $crate::headers::show_head((head.header, head.data_len), text_of, list);
                list.section = section;
                Some((header, &record[head.size()..]))
            }

            /// Reads a header. Returns `None` if the fields do not fill the header exactly, a name
            /// is not printable, the op is missing, or a required field is missing or has the wrong
            /// size.
            pub fn read(header: &'a [u8]) -> Option<Self> {
                let fields = Fields::read(header)?;
                Self::of_op(&fields, *fields.get::<&u8>(Name::Op)?)
            }

            /// Returns the encoded head of a record with this header, that is, the header and both
            /// length fields.
            ///
            /// # Panics
            /// Panics in the cases listed at [`head_of`].
            pub fn to_head(&self, data_len: u32) -> Vec<u8> {
                self.write(|fields| head_of(fields, data_len))
            }

            /// Calls `write` with the fields of the header. The fields are sorted by name, as in
            /// bags from recorders.
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
