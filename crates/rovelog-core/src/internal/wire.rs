//! Building blocks to declare the binary structures of a specification.
//!
//! A structure of fixed size is a plain struct of little-endian numbers. With the following
//! derives, binrw reads and writes it, and zerocopy gives a view of it in a buffer at any
//! alignment:
//!
//! ```
//! use binrw::{BinRead, BinWrite};
//! use rovelog_core::internal::wire::{U16Le, U32Le};
//! use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};
//!
//! /// Precedes each message.
//! #[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
//! #[repr(C)]
//! pub struct Header {
//!     /// Number of bytes that follow.
//!     pub size: U32Le,
//!     /// Kind of message.
//!     pub kind: U16Le,
//! }
//!
//! let header = Header::ref_from_bytes(b"\x02\0\0\0\x07\0").unwrap();
//! assert_eq!((header.size.get(), header.kind.get()), (2, 7));
//! ```
//!
//! A structure of variable size ends with slices that borrow from the input. The parsers [`rest`]
//! and [`counted`] read such fields.

use std::fmt;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;

use binrw::{BinRead, BinResult, BinWrite, Endian};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::structure::{FieldList, Shown};

/// Returns the byte range of a struct's field in the file. The first argument is the offset at
/// which the struct starts. The last argument is a field, or a range of fields.
///
/// ```
/// use rovelog_core::field_range;
/// use rovelog_core::internal::wire::{U16Le, U32Le};
///
/// #[repr(C)]
/// struct Header {
///     size: U32Le,
///     major: U16Le,
///     minor: U16Le,
/// }
///
/// assert_eq!(field_range!(100, Header, major), 104..106);
/// assert_eq!(field_range!(100, Header, major..=minor), 104..108);
/// ```
#[macro_export]
macro_rules! field_range {
    ($at:expr, $struct:ty, $field:ident) => {
        $crate::internal::wire::range_of($at, ::std::mem::offset_of!($struct, $field), |all: &$struct| {
            &all.$field
        })
    };
    ($at:expr, $struct:ty, $first:ident..=$last:ident) => {
        $crate::field_range!($at, $struct, $first).start..$crate::field_range!($at, $struct, $last).end
    };
}

/// Implements [`field_range!`]. Returns the byte range of a field. `at` is the offset of the struct
/// in the file, and `offset` is the offset of the field in the struct.
#[doc(hidden)]
pub fn range_of<T, F>(at: u64, offset: usize, _: fn(&T) -> &F) -> Range<u64> {
    // The function argument is never called. It only determines the type of the field, and
    // therefore the size.
    let from = at + offset as u64;
    from..from + size_of::<F>() as u64
}

/// Returns the complete elements in `bytes`. An incomplete element at the end is ignored.
///
/// ```
/// use rovelog_core::internal::wire::{U16Le, whole};
///
/// assert_eq!(whole::<U16Le>(&[1, 0, 2, 0, 3]), [U16Le::new(1), U16Le::new(2)]);
/// ```
#[inline]
pub fn whole<T: FromBytes + KnownLayout + Immutable + Unaligned>(bytes: &[u8]) -> &[T] {
    <[T]>::ref_from_prefix_with_elems(bytes, bytes.len() / size_of::<T>()).map_or(&[], |(whole, _)| whole)
}

/// Parser for the last field of a structure. It returns the bytes of `all` after the current
/// position.
///
/// `all` is the whole input. The field borrows from it, so that reading needs no copy, and writing
/// the structure gives the same bytes again.
///
/// ```
/// use binrw::{BinRead, BinWrite, binrw};
/// use rovelog_core::internal::wire::{counted, rest};
///
/// #[binrw]
/// #[brw(little)]
/// #[br(import(all: &'a [u8]))]
/// struct Info<'a> {
///     #[br(temp)]
///     #[bw(try_calc = u8::try_from(key.len()))]
///     key_len: u8,
///     #[br(parse_with = counted, args(all, key_len.into()))]
///     key: &'a [u8],
///     #[br(parse_with = rest, args(all))]
///     value: &'a [u8],
/// }
///
/// let bytes = b"\x03keyvalue";
/// let info = Info::read_args(&mut std::io::Cursor::new(bytes), (bytes,))?;
/// assert_eq!((info.key, info.value), (&b"key"[..], &b"value"[..]));
/// # let mut out = std::io::Cursor::new(Vec::new());
/// # info.write(&mut out)?;
/// # assert_eq!(out.into_inner(), bytes);
/// # Ok::<(), binrw::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the reader cannot seek.
#[inline]
pub fn rest<'a, R: Read + Seek>(reader: &mut R, _: Endian, (all,): (&'a [u8],)) -> BinResult<&'a [u8]> {
    let at = usize::try_from(reader.stream_position()?).unwrap_or(usize::MAX);
    let left = all.get(at..).unwrap_or_default();
    // The position must be at the end of the input, as if the bytes had been read.
    reader.seek(SeekFrom::Start(all.len() as u64))?;
    Ok(left)
}

/// Parser for a field of `len` bytes in the input `all`. See [`rest`] for an example.
///
/// # Errors
/// Returns an error if fewer than `len` bytes are left. The length comes from the input, so no
/// memory is allocated for it.
#[inline]
pub fn counted<'a, R: Read + Seek>(
    reader: &mut R,
    _: Endian,
    (all, len): (&'a [u8], u64),
) -> BinResult<&'a [u8]> {
    let at = reader.stream_position()?;
    let index = |at: u64| usize::try_from(at).ok();
    let bytes = index(at).zip(index(at.saturating_add(len))).and_then(|(from, to)| all.get(from..to));
    let bytes = bytes.ok_or_else(|| binrw::Error::Io(ErrorKind::UnexpectedEof.into()))?;
    reader.seek(SeekFrom::Start(at + len))?;
    Ok(bytes)
}

macro_rules! le_ints {
    ($($(#[$doc:meta])* $name:ident($int:ty)),* $(,)?) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
        #[repr(transparent)]
        pub struct $name([u8; size_of::<$int>()]);

        impl $name {
            /// Creates the little-endian number from a value.
            pub const fn new(value: $int) -> Self {
                Self(value.to_le_bytes())
            }

            /// Reads the number at the start of `bytes`. Returns `None` if `bytes` is too short.
            #[inline]
            pub fn first(bytes: &[u8]) -> Option<Self> {
                bytes.first_chunk().map(|bytes| Self(*bytes))
            }

            /// Returns the value of the number.
            #[inline]
            pub const fn get(self) -> $int {
                <$int>::from_le_bytes(self.0)
            }
        }

        impl crate::internal::layout::Declared for $name {
            const ELEMENT: crate::internal::layout::Element =
                crate::internal::layout::Element::Scalar(<$int as crate::internal::layout::Number>::SCALAR);
            const LEN: crate::internal::layout::Len = crate::internal::layout::Len::One;
        }

        impl Shown for $name {
            fn show(&self, name: &str, fields: &mut FieldList) {
                fields.leaf(name, size_of::<Self>(), self.get().to_string());
            }
        }

        impl BinRead for $name {
            type Args<'a> = ();

            #[inline]
            fn read_options<R: Read + Seek>(reader: &mut R, _: Endian, (): ()) -> BinResult<Self> {
                let mut bytes = [0; size_of::<$int>()];
                reader.read_exact(&mut bytes)?;
                Ok(Self(bytes))
            }
        }

        impl BinWrite for $name {
            type Args<'a> = ();

            fn write_options<W: Write + Seek>(&self, writer: &mut W, _: Endian, (): ()) -> BinResult<()> {
                Ok(writer.write_all(&self.0)?)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.get(), f)
            }
        }
    )* };
}

le_ints! {
    /// Unsigned 16-bit integer, stored in little-endian order.
    U16Le(u16),
    /// Unsigned 32-bit integer, stored in little-endian order.
    U32Le(u32),
    /// Unsigned 64-bit integer, stored in little-endian order.
    U64Le(u64),
    /// Signed 16-bit integer, stored in little-endian order.
    I16Le(i16),
    /// Signed 32-bit integer, stored in little-endian order.
    I32Le(i32),
    /// Signed 64-bit integer, stored in little-endian order.
    I64Le(i64),
    /// 32-bit float, stored in little-endian order. Two numbers are equal if their bits are equal.
    F32Le(f32),
    /// 64-bit float, stored in little-endian order. Two numbers are equal if their bits are equal.
    F64Le(f64),
}
