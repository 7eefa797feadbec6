//! Little-endian numbers that serve declarative parsing (binrw) and zero-copy views alike.
//!
//! A fixed-size wire struct built of them is declared once: derive binrw's and zerocopy's traits on it,
//! and the same declaration reads, writes, and is viewed in place at any alignment.

use std::fmt;
use std::io::{Read, Seek, Write};

use binrw::{BinRead, BinResult, BinWrite, Endian};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

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
