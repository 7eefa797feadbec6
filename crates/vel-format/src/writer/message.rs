//! Messages that are to be written.

use std::borrow::Cow;

use binrw::BinWrite;
use rovelog_core::Value;
use rovelog_core::wire::{I32Le, U32Le};
use zerocopy::IntoBytes;

use crate::declared::Declared;
use crate::error::VelError;
use crate::images::JpegHeader;
use crate::message::{Kind, Message};
use crate::wire::{
    GpsData, ImageData, ImageHead, LaserRange, ObdData, RobotPose, VelString, VelodyneHead, VelodynePacket,
};

/// A message that is to be written.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NewMessage<'a> {
    /// The id of its type.
    pub type_id: u32,
    /// The version of its type.
    pub version: i32,
    /// Milliseconds since the recording program started.
    pub millis: f64,
    /// The byte that marks it; `None` takes the one of the log.
    pub marker: Option<u8>,
    /// Its data.
    pub data: Cow<'a, [u8]>,
}

impl<'a> NewMessage<'a> {
    /// A message of any type.
    pub fn raw(type_id: u32, version: i32, millis: f64, data: impl Into<Cow<'a, [u8]>>) -> Self {
        Self { type_id, version, millis, marker: None, data: data.into() }
    }

    /// A message of another log, with its own marker.
    pub fn copy(message: &Message<'a>) -> Self {
        let header = message.header;
        let marker = Some(header.marker);
        let copy =
            Self::raw(header.type_id.get(), header.version.get(), header.timestamp.get(), message.data);
        Self { marker, ..copy }
    }

    fn of(kind: Kind, millis: f64, data: impl Into<Cow<'a, [u8]>>) -> Self {
        Self::raw(kind.type_id(), kind.version(), millis, data)
    }

    /// Data of the vehicle.
    pub fn obd(millis: f64, data: &'a ObdData) -> Self {
        Self::of(Kind::Obd, millis, data.as_bytes())
    }

    /// A position.
    pub fn gps(millis: f64, data: &'a GpsData) -> Self {
        Self::of(Kind::Gps, millis, data.as_bytes())
    }

    /// Orientation and acceleration.
    pub fn pose(millis: f64, data: &'a RobotPose) -> Self {
        Self::of(Kind::Pose, millis, data.as_bytes())
    }

    /// A JPEG; its size comes from its own header.
    ///
    /// # Errors
    /// Where the JPEG has no header that can be read, or more bytes than a message can hold.
    pub fn jpeg(millis: f64, source: i32, jpeg: &[u8]) -> Result<Self, VelError> {
        let bad = |why: String| VelError::BadValue { field: "data".to_owned(), why };
        let header = JpegHeader::read(jpeg).map_err(|why| bad(format!("no JPEG header: {why}")))?;
        let size = u32::try_from(jpeg.len()).map_err(|_| bad("more than 4 GiB".to_owned()))?;
        let head = ImageHead {
            source: I32Le::new(source),
            is_compressed: U32Le::new(1),
            width: I32Le::new(header.width.into()),
            height: I32Le::new(header.height.into()),
            size: U32Le::new(size),
        };
        Ok(Self::of(Kind::Image, millis, to_bytes(&ImageData { head, data: jpeg.to_vec() })))
    }

    /// Velodyne packets.
    ///
    /// # Panics
    /// With more than 4 billion packets.
    pub fn velodyne(millis: f64, packets: &[VelodynePacket]) -> Self {
        let count = u32::try_from(packets.len()).expect("fewer than 4 billion packets");
        let head = VelodyneHead { packets: U32Le::new(count) };
        Self::of(Kind::Velodyne, millis, [head.as_bytes(), packets.as_bytes()].concat())
    }

    /// A scan.
    ///
    /// # Panics
    /// With more than 4 billion ranges.
    pub fn laser(millis: f64, sensor_type: &[u8], sensor_name: &[u8], ranges: &[u32]) -> Self {
        let scan = LaserRange {
            sensor_type: VelString::new(sensor_type),
            sensor_name: VelString::new(sensor_name),
            count: u32::try_from(ranges.len()).expect("fewer than 4 billion ranges"),
            ranges: ranges.iter().map(|range| U32Le::new(*range)).collect(),
        };
        Self::of(Kind::Laser, millis, to_bytes(&scan))
    }

    /// A message of a declared type.
    ///
    /// # Errors
    /// Where a value does not fit its field.
    pub fn declared(millis: f64, declared: &Declared, value: &Value) -> Result<Self, VelError> {
        Ok(Self::raw(declared.type_id(), declared.version(), millis, declared.encode(value)?))
    }
}

/// The bytes of a declared struct.
pub(crate) fn to_bytes<T>(value: &T) -> Vec<u8>
where
    T: for<'a> BinWrite<Args<'a> = ()> + binrw::meta::WriteEndian,
{
    let mut out = std::io::Cursor::new(Vec::new());
    value.write(&mut out).expect("memory takes any bytes");
    out.into_inner()
}
