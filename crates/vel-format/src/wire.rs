//! The bytes of a VEL log, declared in the order of the specification "VEL log file format", with
//! its sections. Everything is little endian and packed.
//!
//! Each structure is declared once. One of fixed size is read by binrw or viewed in place; one of
//! variable size is read by binrw from its bytes and borrows from them. All of them can be written.

use std::borrow::Cow;
use std::io::{ErrorKind, Read, Seek, Write};

use binrw::{BinRead, BinResult, BinWrite, Endian};
use rovelog_core::layout::{self, Declared, DeclaredField, Element, Encoding, Len};
use rovelog_core::wire::{F32Le, F64Le, I16Le, I32Le, I64Le, U16Le, U32Le, counted};
use rovelog_core::{FormatInfo, Signature};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The format's constants.
pub(crate) const INFO: FormatInfo = FormatInfo {
    id: "vel",
    name: "VEL",
    about: "multi-sensor log of the University of Koblenz",
    extensions: &["vel"],
    signatures: &[Signature(&MAGIC)],
    files: None,
};

/// The first bytes of every log (section 3.2).
pub const MAGIC: [u8; 4] = *b"\xa4VEL";

/// A size that ends the log (section 4.1).
pub const TERMINATOR: u32 = 0xFFFF_FFFF;

/// Bytes of the [`TERMINATOR`].
pub(crate) const TERMINATOR_LEN: u64 = size_of_val(&TERMINATOR) as u64;

/// The byte that marks a message as valid: hexadecimal 49, as printed in the specification.
pub const MARKER_PRINTED: u8 = 0x49;
/// The same mark as the character `1`, which the text of the specification names.
pub const MARKER_ASCII: u8 = 0x31;
/// The character `0`: a message that its writer marked as invalid.
pub const MARKER_INVALID: u8 = 0x30;

rovelog_core::fixed! {
    /// The header of the file (section 3.2).
    pub struct FileHeader[8] {
        /// [`MAGIC`].
        pub magic: [u8; 4],
        /// 1.
        pub major: U16Le,
        /// 1.
        pub minor: U16Le,
    }

    /// The header of a message (section 3.4).
    pub struct MessageHeader[21] {
        /// Size of the message; what it includes is inferred per file:
        /// [`SizeRule`](crate::SizeRule).
        pub size: U32Le,
        /// [`MARKER_PRINTED`] or [`MARKER_ASCII`]; [`MARKER_INVALID`] for an invalid message.
        pub marker: u8,
        /// Type of the message: a hash of its name.
        pub type_id: U32Le,
        /// The version of the type, 100 for 1.00.
        pub version: I32Le,
        /// Milliseconds since the recording program started.
        pub timestamp: F64Le,
    }

    /// `OBDDataM`, version 100 (section 3.4.1).
    pub struct ObdData[28] {
        /// km/h.
        pub speed: I32Le as "km/h",
        /// Revolutions of the engine per minute.
        pub rpm: I32Le as "1/min",
        /// "unused".
        pub unused0: F32Le,
        /// "unused".
        pub unused1: I32Le,
        /// "unused".
        pub unused2: I32Le,
        /// Position of the throttle in percent, as the OBD interface reports it.
        pub throttle: F32Le as "%",
        /// "unused".
        pub unused3: I32Le,
    }

    /// `GPSDataM`, version 100 (section 3.4.2).
    pub struct GpsData[80] {
        /// UTC.
        pub hour: I32Le,
        /// UTC.
        pub minute: I32Le,
        /// UTC.
        pub second: I32Le,
        /// "0 or 1".
        pub warning: I32Le,
        /// Degrees, unless inferred otherwise.
        pub latitude: F64Le,
        /// Degrees, unless inferred otherwise.
        pub longitude: F64Le,
        /// km/h.
        pub speed: F32Le as "km/h",
        /// Degrees clockwise from true north.
        pub course: F32Le as "deg",
        /// Day of the month, UTC.
        pub day: I32Le,
        /// 1 to 12.
        pub month: I32Le,
        /// Four digits, or two.
        pub year: I32Le,
        /// "0=invalid, 1=gps, 2=dgps, 6=estimated".
        pub quality: I32Le,
        /// Number of satellites.
        pub satellites: I32Le,
        /// Horizontal dilution of precision.
        pub hdop: F32Le,
        /// Metres above mean sea level.
        pub height: F32Le as "m",
        /// Height of the geoid above the ellipsoid, in metres.
        pub geoid_height: F32Le as "m",
        /// Vertical dilution of precision.
        pub vdop: F32Le,
        /// Position dilution of precision.
        pub pdop: F32Le,
    }

    /// `RobotPoseM`, version 100 (section 3.4.4).
    pub struct RobotPose[28] {
        /// Components in an order that is inferred from the file.
        pub quaternion: [F32Le; 4],
        /// m/s2, unless inferred otherwise.
        pub acceleration: [F32Le; 3],
    }

    /// One return of a laser: Velodyne manuals, "Data Packet".
    pub struct LaserReturn[3] {
        /// In units of the model, 2 or 4 mm; 0 without a return.
        pub distance: U16Le,
        /// 0 to 255.
        pub intensity: u8,
    }

    /// One data block of a Velodyne packet.
    pub struct VelodyneBlock[100] {
        /// Bank of lasers: `EEFF`, `DDFF`, `CCFF`, `BBFF`.
        pub flag: U16Le,
        /// Hundredths of a degree, clockwise from above.
        pub azimuth: U16Le,
        /// The returns in firing order.
        pub returns: [LaserReturn; 32],
    }

    /// A packet "exactly as received from the Velodyne scanner" (section 3.4.5).
    pub struct VelodynePacket[1206] {
        /// The data blocks.
        pub blocks: [VelodyneBlock; 12],
        /// Microseconds since the top of the hour.
        pub stamp: U32Le,
        /// Return mode, or the type of a status byte (HDL-64E).
        pub return_mode: u8,
        /// Product id, or the value of a status byte (HDL-64E).
        pub product: u8,
    }

    /// One laser in the [`CalibrationTable`].
    pub struct LaserStatus[28] {
        /// Number of the laser.
        pub id: u8,
        /// Hundredths of a degree.
        pub vertical: I16Le,
        /// Hundredths of a degree.
        pub rotation: I16Le,
        /// Millimetres to add to a far distance.
        pub distance: I16Le,
        /// Millimetres to add to a near distance, across.
        pub distance_x: I16Le,
        /// Millimetres to add to a near distance, along.
        pub distance_y: I16Le,
        /// Millimetres.
        pub vertical_offset: I16Le,
        /// Millimetres.
        pub horizontal_offset: I16Le,
        /// Millimetres.
        pub focal_distance: I16Le,
        /// Tenths.
        pub focal_slope: I16Le,
        /// 0 to 255.
        pub min_intensity: u8,
        /// 0 to 255.
        pub max_intensity: u8,
        /// Not used here.
        pub rest: [u8; 7],
    }

    /// The calibration in the status bytes of an HDL-64E, one byte per packet: manual of the S2 and
    /// S3.
    pub struct CalibrationTable[1820] {
        /// `UNIT#` and two more bytes.
        pub start: [u8; 7],
        /// Lasers by number.
        pub lasers: [LaserStatus; 64],
        /// Not used here.
        pub rest: [u8; 19],
        /// CRC-16 of the lasers in an S3.
        pub sum: U16Le,
    }
}

/// Bytes of a message's header.
pub(crate) const HEADER_LEN: u64 = size_of::<MessageHeader>() as u64;

/// Elements after their 32-bit count. They are borrowed: nothing is copied or allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted<'a, T>(pub &'a [T]);

impl<T> std::ops::Deref for Counted<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0
    }
}

impl<'d, T: FromBytes + KnownLayout + Immutable + Unaligned> BinRead for Counted<'d, T> {
    /// The complete input.
    type Args<'a> = (&'d [u8],);

    #[inline]
    fn read_options<R: Read + Seek>(reader: &mut R, endian: Endian, (all,): (&'d [u8],)) -> BinResult<Self> {
        let count = U32Le::read_options(reader, endian, ())?.get();
        let bytes = counted(reader, endian, (all, u64::from(count) * size_of::<T>() as u64))?;
        let cut = |_| binrw::Error::Io(ErrorKind::UnexpectedEof.into());
        Ok(Self(<[T]>::ref_from_bytes(bytes).map_err(cut)?))
    }
}

impl<T: IntoBytes + Immutable> BinWrite for Counted<'_, T> {
    type Args<'a> = ();

    fn write_options<W: Write + Seek>(&self, writer: &mut W, endian: Endian, (): ()) -> BinResult<()> {
        let many = |_| binrw::Error::Io(ErrorKind::InvalidInput.into());
        U32Le::new(u32::try_from(self.len()).map_err(many)?).write_options(writer, endian, ())?;
        Ok(writer.write_all(self.0.as_bytes())?)
    }
}

/// A boolean (section 2): four bytes, true unless 0.
#[derive(BinRead, BinWrite, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VelBool(pub U32Le);

impl VelBool {
    /// Makes a boolean.
    pub const fn new(value: bool) -> Self {
        Self(U32Le::new(value as u32))
    }

    /// Returns the value.
    pub const fn get(self) -> bool {
        self.0.get() != 0
    }
}

/// A string (section 2): its characters, without NUL at the end.
#[derive(BinRead, BinWrite, Clone, Copy, Debug, PartialEq, Eq)]
#[br(import(all: &'a [u8]))]
pub struct VelString<'a>(#[br(args(all))] pub Counted<'a, u8>);

impl<'a> VelString<'a> {
    /// Returns the text: UTF-8, or else Latin-1.
    pub fn text(&self) -> Cow<'a, str> {
        layout::text(self.0.0, Encoding::Latin1)
    }
}

impl std::ops::Deref for VelString<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// The file's index (section 3.3).
#[derive(BinRead, BinWrite, Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[br(import(all: &'a [u8]))]
pub struct FileIndex<'a> {
    /// Offset in the file of the start of each second.
    #[br(args(all))]
    pub positions: Counted<'a, I64Le>,
}

/// Offset of the first index entry: behind the header of the file and the number of entries.
pub(crate) const INDEX_AT: u64 = (size_of::<FileHeader>() + size_of::<U32Le>()) as u64;

/// Returns the bytes of as many index entries.
pub(crate) const fn entries_len(entries: u64) -> u64 {
    entries * size_of::<I64Le>() as u64
}

impl<T: Declared> Declared for Counted<'_, T> {
    const ELEMENT: Element = T::ELEMENT;
    const LEN: Len = Len::Counted;
}

impl Declared for VelBool {
    const ELEMENT: Element = Element::WideBool;
    const LEN: Len = Len::One;
}

impl Declared for VelString<'_> {
    const ELEMENT: Element = Element::Text(Encoding::Latin1);
    const LEN: Len = Len::One;
}

/// Declares messages of variable size: fields of fixed size, and after `..` those that borrow from
/// the message.
macro_rules! variable {
    ($(
        $(#[$doc:meta])*
        pub struct $name:ident<$life:lifetime> {
            $( $(#[$field_doc:meta])* pub $field:ident: $ty:ty $(as $unit:literal)?, )*
            ..
            $( $(#[$tail_doc:meta])* pub $tail:ident: $tail_ty:ty $(as $tail_unit:literal)?, )*
        }
    )*) => { $(
        $(#[$doc])*
        #[derive(BinRead, BinWrite, Clone, Copy, Debug, PartialEq, Eq)]
        #[brw(little)]
        #[br(import(all: &$life [u8]))]
        pub struct $name<$life> {
            $( $(#[$field_doc])* pub $field: $ty, )*
            $( $(#[$tail_doc])* #[br(args(all))] pub $tail: $tail_ty, )*
        }

        impl<$life> $name<$life> {
            /// Fields, for a layout.
            pub(crate) const FIELDS: &'static [DeclaredField] = &[
                $( DeclaredField::new::<$ty>(stringify!($field), concat!($($unit)?)), )*
                $( DeclaredField::new::<$tail_ty>(stringify!($tail), concat!($($tail_unit)?)), )*
            ];
        }
    )* };
}

variable! {
    /// `ImageM`, version 100 (section 3.4.3).
    pub struct ImageData<'a> {
        /// Number of the camera.
        pub source: I32Le,
        /// "currently always true": JPEG.
        pub is_compressed: VelBool,
        /// Pixels.
        pub width: I32Le as "px",
        /// Pixels.
        pub height: I32Le as "px",
        ..
        /// Usually a JPEG.
        pub data: Counted<'a, u8>,
    }

    /// `LaserRange2DDataM`, version 101 (section 3.4.6).
    pub struct LaserRange<'a> {
        ..
        /// `Hokuyo_URG-04LX` or `Hokuyo_UTM-30LX`.
        pub sensor_type: VelString<'a>,
        /// Any name.
        pub sensor_name: VelString<'a>,
        /// Millimetres, or a code.
        pub ranges: Counted<'a, U32Le> as "mm",
    }
}

/// `VelodyneRawDataM`, version 100 (section 3.4.5).
#[derive(BinRead, BinWrite, Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[br(import(all: &'a [u8]))]
pub struct VelodyneRawData<'a> {
    /// The packets.
    #[br(args(all))]
    pub packets: Counted<'a, VelodynePacket>,
}

impl VelodyneRawData<'_> {
    /// Fields, for a layout: the number of packets is one of them.
    pub(crate) const FIELDS: &'static [DeclaredField] = &[
        DeclaredField::new::<U32Le>("count", ""),
        DeclaredField::new::<VelodynePacket>("packets", "").counted_by(0),
    ];
}
