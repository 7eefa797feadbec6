//! The bytes of a VEL log, declared in the order of the specification "VEL log file format".
//! Section numbers in comments refer to this specification. All values are little endian and
//! packed.
//!
//! Each structure is declared once, for both reading and writing. Structures of fixed size can be
//! viewed in place. Structures of variable size are read by binrw and borrow from the bytes.

use std::borrow::Cow;
use std::io::{ErrorKind, Read, Seek, Write};

use binrw::{BinRead, BinResult, BinWrite, Endian};
use rovelog_core::internal::layout::{Declared, DeclaredField, Element, Len, TextDecoder};
use rovelog_core::internal::wire::{F32Le, F64Le, I16Le, I32Le, I64Le, U16Le, U32Le, counted};
use rovelog_core::{FormatInfo, Signature, declared_fields, structure};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Name, file extensions and signatures of the VEL format.
pub(crate) const INFO: FormatInfo = FormatInfo {
    id: "vel",
    name: "VEL",
    about: "multi-sensor log of the University of Koblenz",
    extensions: &["vel"],
    signatures: &[Signature(&MAGIC)],
    recognizes: None,
    files: None,
};

/// The first bytes of every log (section 3.2 of the VEL specification).
pub const MAGIC: [u8; 4] = *b"\xa4VEL";

/// The end mark: a message size that means the end of the log (section 4.1 of the VEL
/// specification).
pub const TERMINATOR: u32 = 0xFFFF_FFFF;

/// Length of the end mark in bytes.
pub(crate) const TERMINATOR_LEN: u64 = size_of_val(&TERMINATOR) as u64;

/// Marker of a valid message, if the "49" in the specification is a hexadecimal number.
pub const MARKER_PRINTED: u8 = 0x49;
/// Marker of a valid message, if the "1" in the specification is a character.
pub const MARKER_ASCII: u8 = 0x31;
/// Marker of an invalid message, which is the character `0`.
pub const MARKER_INVALID: u8 = 0x30;

/// The header of a log (section 3.2 of the VEL specification).
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct FileHeader {
    /// Always [`MAGIC`].
    pub magic: [u8; 4],
    /// Major version of the format, which is 1.
    pub major: U16Le,
    /// Minor version of the format, which is 1.
    pub minor: U16Le,
}

const _: () = assert!(size_of::<FileHeader>() == 8);

structure!(FileHeader, "3.2", { magic, major, minor });

/// The header of a message (section 3.4 of the VEL specification).
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct MessageHeader {
    /// Size of the message in bytes. It is inferred for each log which bytes the size counts, see
    /// [`SizeRule`](crate::SizeRule).
    pub size: U32Le,
    /// Marker of the message. It is [`MARKER_PRINTED`] or [`MARKER_ASCII`] for a valid message, and
    /// [`MARKER_INVALID`] for an invalid message.
    pub marker: u8,
    /// Type id of the message, which is a hash of the type name.
    pub type_id: U32Le,
    /// Version of the message type. For example, 100 means 1.00.
    pub version: I32Le,
    /// Time in milliseconds since the recording program started.
    pub timestamp: F64Le,
}

const _: () = assert!(size_of::<MessageHeader>() == 21);

structure!(MessageHeader, "3.4", { size, marker, type_id, version, timestamp });

/// The data of an `OBDDataM` message, version 100 (section 3.4.1 of the VEL specification).
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct ObdData {
    /// Speed in km/h.
    pub speed: I32Le,
    /// Engine speed in revolutions per minute.
    pub rpm: I32Le,
    /// A field that the specification calls unused.
    pub unused0: F32Le,
    /// A field that the specification calls unused.
    pub unused1: I32Le,
    /// A field that the specification calls unused.
    pub unused2: I32Le,
    /// Position of the throttle in percent, as the OBD interface reports it.
    pub throttle: F32Le,
    /// A field that the specification calls unused.
    pub unused3: I32Le,
}

const _: () = assert!(size_of::<ObdData>() == 28);

impl ObdData {
    pub(crate) const FIELDS: &'static [DeclaredField] = declared_fields!(ObdData {
        speed: "km/h",
        rpm: "1/min",
        unused0,
        unused1,
        unused2,
        throttle: "%",
        unused3,
    });
}

/// The data of a `GPSDataM` message, version 100 (section 3.4.2 of the VEL specification).
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct GpsData {
    /// Hour of the time in UTC.
    pub hour: I32Le,
    /// Minute of the time in UTC.
    pub minute: I32Le,
    /// Second of the time in UTC.
    pub second: I32Le,
    /// Warning flag. The specification only says "0 or 1".
    pub warning: I32Le,
    /// Latitude in degrees, unless another unit is inferred from the file.
    pub latitude: F64Le,
    /// Longitude in degrees, unless another unit is inferred from the file.
    pub longitude: F64Le,
    /// Speed over ground in km/h.
    pub speed: F32Le,
    /// Course in degrees clockwise from true north.
    pub course: F32Le,
    /// Day of the month in UTC.
    pub day: I32Le,
    /// Month in UTC, 1 to 12.
    pub month: I32Le,
    /// Year in UTC, with two or four digits.
    pub year: I32Le,
    /// Quality of the position. The specification says "0=invalid, 1=gps, 2=dgps, 6=estimated".
    pub quality: I32Le,
    /// Number of satellites that the receiver used.
    pub satellites: I32Le,
    /// Horizontal dilution of precision.
    pub hdop: F32Le,
    /// Height above mean sea level in meters.
    pub height: F32Le,
    /// Height of the geoid above the ellipsoid in meters.
    pub geoid_height: F32Le,
    /// Vertical dilution of precision.
    pub vdop: F32Le,
    /// Position dilution of precision.
    pub pdop: F32Le,
}

const _: () = assert!(size_of::<GpsData>() == 80);

impl GpsData {
    pub(crate) const FIELDS: &'static [DeclaredField] = declared_fields!(GpsData {
        hour,
        minute,
        second,
        warning,
        latitude,
        longitude,
        speed: "km/h",
        course: "deg",
        day,
        month,
        year,
        quality,
        satellites,
        hdop,
        height: "m",
        geoid_height: "m",
        vdop,
        pdop,
    });
}

/// The data of a `RobotPoseM` message, version 100 (section 3.4.4 of the VEL specification).
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct RobotPose {
    /// The orientation as a quaternion. The order of its components is inferred from the log.
    pub quaternion: [F32Le; 4],
    /// Acceleration in m/s², unless another unit is inferred from the log.
    pub acceleration: [F32Le; 3],
}

const _: () = assert!(size_of::<RobotPose>() == 28);

impl RobotPose {
    pub(crate) const FIELDS: &'static [DeclaredField] =
        declared_fields!(RobotPose { quaternion, acceleration });
}

/// Section of the Velodyne manuals that describes the packets.
const VELODYNE: &str = "Velodyne manual, Data Packet";

/// A return of a laser. See "Data Packet" in the Velodyne manuals.
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct LaserReturn {
    /// Distance in units that depend on the model, which are 2 or 4 mm. 0 means that there was no
    /// return.
    pub distance: U16Le,
    /// Intensity of the return, 0 to 255.
    pub intensity: u8,
}

const _: () = assert!(size_of::<LaserReturn>() == 3);

structure!(LaserReturn, VELODYNE, { distance, intensity });

/// A data block of a Velodyne packet, with the returns of 32 shots.
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct VelodyneBlock {
    /// Identifier of the bank of lasers that fired, for example 0xEEFF for the first bank.
    pub flag: U16Le,
    /// Azimuth of the sensor in hundredths of a degree, clockwise as seen from above.
    pub azimuth: U16Le,
    /// Returns of the lasers in firing order.
    pub returns: [LaserReturn; 32],
}

const _: () = assert!(size_of::<VelodyneBlock>() == 100);

structure!(VelodyneBlock, VELODYNE, { flag, azimuth, returns });

/// A packet of a Velodyne sensor. Section 3.4.5 of the VEL specification says that it is stored
/// "exactly as received from the Velodyne scanner".
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct VelodynePacket {
    /// Data blocks of the packet, in firing order.
    pub blocks: [VelodyneBlock; 12],
    /// Time of the packet in microseconds since the start of the hour.
    pub stamp: U32Le,
    /// Return mode of the sensor. In packets of an HDL-64E, the type of a status byte.
    pub return_mode: u8,
    /// Product id of the sensor. In packets of an HDL-64E, the value of a status byte.
    pub product: u8,
}

const _: () = assert!(size_of::<VelodynePacket>() == 1206);

structure!(VelodynePacket, VELODYNE, { blocks, stamp, return_mode, product });

/// In records, a packet is a field of bytes, because its points depend on the calibration of the
/// sensor.
impl Declared for VelodynePacket {
    const ELEMENT: Element = Element::Packed(1206);
    const LEN: Len = Len::One;
}

/// The constants of one laser in a [`CalibrationTable`].
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct LaserStatus {
    /// Number of the laser.
    pub id: u8,
    /// Vertical angle of the laser in hundredths of a degree.
    pub vertical: I16Le,
    /// Angle in hundredths of a degree to subtract from the azimuth.
    pub rotation: I16Le,
    /// Correction in millimeters that is added to far distances.
    pub distance: I16Le,
    /// Correction in millimeters that is added to near distances in the sideways direction.
    pub distance_x: I16Le,
    /// Correction in millimeters that is added to near distances in the forward direction.
    pub distance_y: I16Le,
    /// Upward offset of the laser in millimeters.
    pub vertical_offset: I16Le,
    /// Sideways offset of the laser in millimeters.
    pub horizontal_offset: I16Le,
    /// Focal distance of the laser in millimeters.
    pub focal_distance: I16Le,
    /// Slope with which the intensity depends on the difference from the focal distance, in tenths.
    pub focal_slope: I16Le,
    /// Minimum intensity of the laser.
    pub min_intensity: u8,
    /// Maximum intensity of the laser.
    pub max_intensity: u8,
    /// Bytes that this crate does not use.
    pub rest: [u8; 7],
}

const _: () = assert!(size_of::<LaserStatus>() == 28);

/// The calibration table of an HDL-64E, according to the manual of the S2 and S3. The sensor sends
/// it in the status bytes, one byte per packet.
#[derive(BinRead, BinWrite, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[repr(C)]
pub struct CalibrationTable {
    /// Start of the table: the text `UNIT#` and two more bytes.
    pub start: [u8; 7],
    /// Constants of the lasers in the order of their numbers.
    pub lasers: [LaserStatus; 64],
    /// Bytes that this crate does not use.
    pub rest: [u8; 19],
    /// CRC-16 checksum of the constants. Only an S3 sends a valid checksum.
    pub sum: U16Le,
}

const _: () = assert!(size_of::<CalibrationTable>() == 1820);

/// Length of a message header in bytes.
pub(crate) const HEADER_LEN: u64 = size_of::<MessageHeader>() as u64;

/// An array that is stored after a 32-bit count of its elements. It borrows from the log, so
/// nothing is copied or allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted<'a, T>(pub &'a [T]);

impl<T> std::ops::Deref for Counted<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0
    }
}

impl<'d, T: FromBytes + KnownLayout + Immutable + Unaligned> BinRead for Counted<'d, T> {
    /// The argument is the complete input, from which the elements are borrowed.
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

/// A boolean that takes four bytes (section 2 of the VEL specification). Every value except 0 is
/// true.
#[derive(BinRead, BinWrite, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VelBool(pub U32Le);

impl VelBool {
    /// Creates a boolean.
    pub const fn new(value: bool) -> Self {
        Self(U32Le::new(value as u32))
    }

    /// Returns the value.
    pub const fn get(self) -> bool {
        self.0.get() != 0
    }
}

/// A string without a NUL at its end (section 2 of the VEL specification).
#[derive(BinRead, BinWrite, Clone, Copy, Debug, PartialEq, Eq)]
#[br(import(all: &'a [u8]))]
pub struct VelString<'a>(#[br(args(all))] pub Counted<'a, u8>);

impl<'a> VelString<'a> {
    /// Returns the string as text. Bytes that are not valid UTF-8 are decoded as Latin-1.
    pub fn text(&self) -> Cow<'a, str> {
        TextDecoder::LATIN1.decode(self.0.0)
    }
}

impl std::ops::Deref for VelString<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// The index of a log (section 3.3 of the VEL specification).
#[derive(BinRead, BinWrite, Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[br(import(all: &'a [u8]))]
pub struct FileIndex<'a> {
    /// For each second, the offset of the first message at or after this second.
    #[br(args(all))]
    pub positions: Counted<'a, I64Le>,
}

/// Offset of the first index entry, which follows the file header and the number of entries.
pub(crate) const INDEX_AT: u64 = (size_of::<FileHeader>() + size_of::<U32Le>()) as u64;

/// Returns the size in bytes of `entries` index entries.
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
    const ELEMENT: Element = Element::Text(TextDecoder::LATIN1);
    const LEN: Len = Len::One;
}

/// The data of an `ImageM` message, version 100 (section 3.4.3 of the VEL specification).
#[derive(BinRead, BinWrite, Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[br(import(all: &'a [u8]))]
pub struct ImageData<'a> {
    /// Number of the camera that took the image.
    pub source: I32Le,
    /// True if the image is a JPEG. The specification says "currently always true".
    pub is_compressed: VelBool,
    /// Width of the image in pixels.
    pub width: I32Le,
    /// Height of the image in pixels.
    pub height: I32Le,
    /// The bytes of the image, usually a JPEG file.
    #[br(args(all))]
    pub data: Counted<'a, u8>,
}

impl ImageData<'_> {
    pub(crate) const FIELDS: &'static [DeclaredField] =
        declared_fields!(ImageData { source, is_compressed, width: "px", height: "px", data });
}

/// The data of a `LaserRange2DDataM` message, version 101 (section 3.4.6 of the VEL specification).
#[derive(BinRead, BinWrite, Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[br(import(all: &'a [u8]))]
pub struct LaserRange<'a> {
    /// Type of the laser scanner: `Hokuyo_URG-04LX` or `Hokuyo_UTM-30LX`.
    #[br(args(all))]
    pub sensor_type: VelString<'a>,
    /// Name of the laser scanner.
    #[br(args(all))]
    pub sensor_name: VelString<'a>,
    /// Measured distances in millimeters. Small numbers are codes, for example for a missing echo.
    #[br(args(all))]
    pub ranges: Counted<'a, U32Le>,
}

impl LaserRange<'_> {
    pub(crate) const FIELDS: &'static [DeclaredField] =
        declared_fields!(LaserRange { sensor_type, sensor_name, ranges: "mm" });
}

/// The data of a `VelodyneRawDataM` message, version 100 (section 3.4.5 of the VEL specification).
#[derive(BinRead, BinWrite, Clone, Copy, Debug, PartialEq, Eq)]
#[brw(little)]
#[br(import(all: &'a [u8]))]
pub struct VelodyneRawData<'a> {
    /// Packets of the sensor, in the order in which they were received.
    #[br(args(all))]
    pub packets: Counted<'a, VelodynePacket>,
}

impl VelodyneRawData<'_> {
    /// The fields for a layout. Unlike in the structure, the number of packets is a field of its
    /// own.
    pub(crate) const FIELDS: &'static [DeclaredField] = &[
        DeclaredField::new::<U32Le>("count", ""),
        DeclaredField::new::<VelodynePacket>("packets", "").counted_by(0),
    ];
}
