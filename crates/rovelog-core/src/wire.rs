//! Little-endian numbers that serve declarative parsing (binrw) and zero-copy views alike.
//!
//! A fixed-size wire struct built of them is declared once, with [`fixed!`](crate::fixed): the same declaration reads,
//! writes, and is viewed in place at any alignment.

use std::fmt;
use std::io::{Read, Seek, Write};

use binrw::{BinRead, BinResult, BinWrite, Endian};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Declares structs of fixed size, once for binrw and for zero-copy views: little endian, packed, at any alignment. The
/// number of bytes in brackets is checked. The crate that uses it depends on `binrw` and `zerocopy`.
///
/// ```
/// use rovelog_core::wire::{U16Le, U32Le};
///
/// rovelog_core::fixed! {
///     /// Before each message.
///     pub struct Header[6] {
///         /// Bytes that follow.
///         pub size: U32Le,
///         /// Which kind of message.
///         pub kind: U16Le,
///     }
/// }
/// # fn main() {
/// let header: &Header = zerocopy::FromBytes::ref_from_bytes(b"\x02\0\0\0\x07\0").unwrap();
/// assert_eq!((header.size.get(), header.kind.get()), (2, 7));
/// # }
/// ```
#[macro_export]
macro_rules! fixed {
    ($(
        $(#[$doc:meta])*
        pub struct $name:ident[$size:literal] { $( $(#[$field_doc:meta])* pub $field:ident: $ty:ty, )* }
    )*) => { $(
        $(#[$doc])*
        #[derive(::binrw::BinRead, ::binrw::BinWrite)]
        #[derive(::zerocopy::FromBytes, ::zerocopy::IntoBytes, ::zerocopy::KnownLayout)]
        #[derive(::zerocopy::Immutable, ::zerocopy::Unaligned)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[brw(little)]
        #[repr(C)]
        pub struct $name { $( $(#[$field_doc])* pub $field: $ty, )* }

        const _: () = assert!(size_of::<$name>() == $size);
    )* };
}

macro_rules! le_ints {
    ($($(#[$doc:meta])* $name:ident($int:ty)),* $(,)?) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
        #[repr(transparent)]
        pub struct $name([u8; size_of::<$int>()]);

        impl $name {
            /// Stores `value`.
            pub const fn new(value: $int) -> Self {
                Self(value.to_le_bytes())
            }

            /// The value.
            #[inline]
            pub const fn get(self) -> $int {
                <$int>::from_le_bytes(self.0)
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
    /// Two bytes, little endian, unsigned.
    U16Le(u16),
    /// Four bytes, little endian, unsigned.
    U32Le(u32),
    /// Eight bytes, little endian, unsigned.
    U64Le(u64),
    /// Four bytes, little endian, signed.
    I32Le(i32),
    /// Eight bytes, little endian, signed.
    I64Le(i64),
    /// Four bytes, little endian, IEEE 754; equal where the bits are.
    F32Le(f32),
    /// Eight bytes, little endian, IEEE 754; equal where the bits are.
    F64Le(f64),
}
