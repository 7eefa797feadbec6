//! The bytes of a VEL log, declared in the order of the specification "VEL log file format"; its sections
//! are cited. Everything is little endian and packed.
//!
//! A struct of fixed size is declared once and serves binrw and the views of [`message`](crate::message)
//! alike. Those of variable size check a count against what is left before anything is reserved.

use binrw::{BinRead, BinWrite};
use rovelog_core::wire::{F32Le, F64Le, I32Le, I64Le, U16Le, U32Le};
use rovelog_core::{FormatInfo, Signature};

/// The format's constants.
pub(crate) const INFO: FormatInfo = FormatInfo {
    id: "vel",
    name: "VEL",
    about: "mixed-sensor log of Koblenz",
    extensions: &["vel"],
    signatures: &[Signature(&MAGIC)],
};

/// The first bytes of every log (section 3.2).
pub const MAGIC: [u8; 4] = *b"\xa4VEL";

/// A size that ends the log (section 4.1).
pub const TERMINATOR: u32 = 0xFFFF_FFFF;

/// The byte that marks a message as valid: hexadecimal 49 as the text prints it.
pub const MARKER_PRINTED: u8 = 0x49;
/// The same byte as the character `1`, which the text names.
pub const MARKER_ASCII: u8 = 0x31;
/// The character `0`: a message that its writer declared invalid.
pub const MARKER_INVALID: u8 = 0x30;

/// Message types: the ids of section 3.4.
pub mod type_id {
    #![expect(missing_docs, reason = "the names of the specification")]
    pub const OBD: u32 = 0x0001_4043;
    pub const GPS: u32 = 0x0001_4A32;
    pub const IMAGE: u32 = 0x0001_09C9;
    pub const POSE: u32 = 0x0001_E342;
    pub const VELODYNE: u32 = 0x0003_112B;
    pub const LASER: u32 = 0x0003_0910;
}

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
        /// Size of the message; what it counts is settled per file: [`SizeRule`](crate::SizeRule).
        pub size: U32Le,
        /// [`MARKER_PRINTED`] or [`MARKER_ASCII`]; [`MARKER_INVALID`] for one that is not valid.
        pub marker: u8,
        /// Which type of message; a hash of its name.
        pub type_id: U32Le,
        /// The version of the type, 100 for 1.00.
        pub version: I32Le,
        /// Milliseconds since the recording program started.
        pub timestamp: F64Le,
    }

    /// `OBDDataM`, version 100 (section 3.4.1).
    pub struct ObdData[28] {
        /// km/h.
        pub speed: I32Le,
        /// Revolutions of the engine per minute.
        pub rpm: I32Le,
        /// "unused".
        pub unused0: F32Le,
        /// "unused".
        pub unused1: I32Le,
        /// "unused".
        pub unused2: I32Le,
        /// Position of the throttle; per cent, as the interface reports it.
        pub throttle: F32Le,
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
        /// Degrees, unless the file says otherwise.
        pub latitude: F64Le,
        /// Degrees, unless the file says otherwise.
        pub longitude: F64Le,
        /// km/h.
        pub speed: F32Le,
        /// Degrees clockwise from true north.
        pub course: F32Le,
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
        pub height: F32Le,
        /// Metres of the geoid above the ellipsoid.
        pub geoid_height: F32Le,
        /// Vertical dilution of precision.
        pub vdop: F32Le,
        /// Dilution of precision of the position.
        pub pdop: F32Le,
    }

    /// `ImageM`, version 100, up to its data (section 3.4.3).
    pub struct ImageHead[20] {
        /// Which camera.
        pub source: I32Le,
        /// "currently always true": JPEG.
        pub is_compressed: U32Le,
        /// Pixels.
        pub width: I32Le,
        /// Pixels.
        pub height: I32Le,
        /// Bytes of data that follow.
        pub size: U32Le,
    }

    /// `RobotPoseM`, version 100 (section 3.4.4).
    pub struct RobotPose[28] {
        /// The order of its components is settled from the file.
        pub quaternion: [F32Le; 4],
        /// m/s2, unless the file says otherwise.
        pub acceleration: [F32Le; 3],
    }

    /// One return of a laser: Velodyne manuals, "Data Packet".
    pub struct LaserReturn[3] {
        /// In units of the model: 2 or 4 mm. 0 is no return.
        pub distance: U16Le,
        /// 0 to 255.
        pub intensity: u8,
    }

    /// One data block of a Velodyne packet.
    pub struct VelodyneBlock[100] {
        /// Which bank of lasers: `EEFF`, `DDFF`, `CCFF`, `BBFF`.
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

    /// `VelodyneRawDataM`, version 100, up to its packets (section 3.4.5).
    pub struct VelodyneHead[4] {
        /// Packets that follow.
        pub packets: U32Le,
    }
}

/// Bytes of a message's header.
pub(crate) const HEADER_LEN: u64 = size_of::<MessageHeader>() as u64;

/// The file's index (section 3.3). `left` is the number of bytes from its start to the end of the file.
#[derive(BinRead, BinWrite, Clone, Debug, PartialEq, Eq)]
#[brw(little)]
#[br(import(left: u64))]
pub struct FileIndex {
    /// Entries.
    #[br(assert(u64::from(size) <= left.saturating_sub(4) / 8, "{size} entries exceed the {left} bytes left"))]
    pub size: u32,
    /// Where in the file each second begins.
    #[br(count = size)]
    pub positions: Vec<I64Le>,
}

/// A string (section 2). `left` is the number of bytes from its start to the end of what holds it.
#[derive(BinRead, BinWrite, Clone, Debug, Default, PartialEq, Eq)]
#[brw(little)]
#[br(import(left: u64))]
pub struct VelString {
    /// Bytes.
    #[br(assert(u64::from(len) <= left.saturating_sub(4), "a string of {len} bytes where {left} are left"))]
    pub len: u32,
    /// The characters; no NUL at the end.
    #[br(count = len)]
    pub bytes: Vec<u8>,
}

impl VelString {
    /// A string of these bytes.
    pub fn new(bytes: &[u8]) -> Self {
        Self { len: u32::try_from(bytes.len()).unwrap_or(u32::MAX), bytes: bytes.to_vec() }
    }

    /// Bytes it takes in the log.
    pub fn wire_len(&self) -> u64 {
        4 + self.bytes.len() as u64
    }
}

/// `ImageM` (section 3.4.3); `left` is the size of the message's data.
#[derive(BinRead, BinWrite, Clone, Debug, PartialEq, Eq)]
#[brw(little)]
#[br(import(left: u64))]
pub struct ImageData {
    /// What is before the data.
    #[br(assert(u64::from(head.size.get()) <= left.saturating_sub(20), "an image of {:?} bytes where {left} are left", head.size))]
    pub head: ImageHead,
    /// A JPEG, as a rule.
    #[br(count = head.size.get())]
    pub data: Vec<u8>,
}

/// `VelodyneRawDataM` (section 3.4.5); `left` is the size of the message's data.
#[derive(BinRead, BinWrite, Clone, Debug, PartialEq, Eq)]
#[brw(little)]
#[br(import(left: u64))]
pub struct VelodyneRawData {
    /// What is before the packets.
    #[br(assert(u64::from(head.packets.get()) <= left.saturating_sub(4) / 1206, "{:?} packets where {left} bytes are left", head.packets))]
    pub head: VelodyneHead,
    /// The packets.
    #[br(count = head.packets.get())]
    pub packets: Vec<VelodynePacket>,
}

/// `LaserRange2DDataM`, version 101 (section 3.4.6); `left` is the size of the message's data.
#[derive(BinRead, BinWrite, Clone, Debug, PartialEq, Eq)]
#[brw(little)]
#[br(import(left: u64))]
pub struct LaserRange {
    /// `Hokuyo_URG-04LX` or `Hokuyo_UTM-30LX`.
    #[br(args(left))]
    pub sensor_type: VelString,
    /// Any name.
    #[br(args(left.saturating_sub(sensor_type.wire_len())))]
    pub sensor_name: VelString,
    /// Ranges.
    #[br(assert(
        u64::from(count) <= left.saturating_sub(sensor_type.wire_len() + sensor_name.wire_len() + 4) / 4,
        "{count} ranges exceed what is left of {left} bytes"
    ))]
    pub count: u32,
    /// Millimetres, or a code.
    #[br(count = count)]
    pub ranges: Vec<U32Le>,
}
