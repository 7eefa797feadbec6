//! Messages as borrowed views: nothing is copied, counts are checked against the bytes at hand.

use std::borrow::Cow;

use rovelog_core::wire::U32Le;
use zerocopy::FromBytes;

use crate::wire::{
    GpsData, ImageHead, MARKER_ASCII, MARKER_PRINTED, MessageHeader, ObdData, RobotPose, VelodyneHead,
    VelodynePacket, type_id,
};

/// What the size of a message counts (decisions 1 and 3 of docs/formats/vel.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SizeRule {
    /// 17 + data: everything but the size itself. "Message data: message size - 17".
    #[default]
    Exclusive,
    /// 21 + data: "size of the message incl. header".
    Inclusive,
    /// The data alone.
    DataOnly,
}

impl SizeRule {
    /// All of them, the likeliest first.
    pub const ALL: [Self; 3] = [Self::Exclusive, Self::Inclusive, Self::DataOnly];

    /// What the size counts besides the data.
    pub const fn overhead(self) -> u64 {
        match self {
            Self::Exclusive => 17,
            Self::Inclusive => 21,
            Self::DataOnly => 0,
        }
    }

    /// The word used in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exclusive => "exclusive",
            Self::Inclusive => "inclusive",
            Self::DataOnly => "data_only",
        }
    }
}

/// The types of message that the specification describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names of the specification")]
pub enum Kind {
    Obd,
    Gps,
    Image,
    Pose,
    Velodyne,
    Laser,
}

impl Kind {
    /// All of them, in the specification's order.
    pub const ALL: [Self; 6] = [Self::Obd, Self::Gps, Self::Image, Self::Pose, Self::Velodyne, Self::Laser];

    /// The kind of a type and version; `None` where the layout is not described.
    #[inline]
    pub fn of(type_id: u32, version: i32) -> Option<Self> {
        Self::of_id(type_id).filter(|kind| kind.version() == version)
    }

    /// The kind with this id, whatever its version.
    #[inline]
    pub fn of_id(type_id: u32) -> Option<Self> {
        Some(match type_id {
            type_id::OBD => Self::Obd,
            type_id::GPS => Self::Gps,
            type_id::IMAGE => Self::Image,
            type_id::POSE => Self::Pose,
            type_id::VELODYNE => Self::Velodyne,
            type_id::LASER => Self::Laser,
            _ => return None,
        })
    }

    /// The id.
    pub const fn type_id(self) -> u32 {
        match self {
            Self::Obd => type_id::OBD,
            Self::Gps => type_id::GPS,
            Self::Image => type_id::IMAGE,
            Self::Pose => type_id::POSE,
            Self::Velodyne => type_id::VELODYNE,
            Self::Laser => type_id::LASER,
        }
    }

    /// The version that the specification describes.
    pub const fn version(self) -> i32 {
        match self {
            Self::Laser => 101,
            _ => 100,
        }
    }

    /// The name of the type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Obd => "OBDDataM",
            Self::Gps => "GPSDataM",
            Self::Image => "ImageM",
            Self::Pose => "RobotPoseM",
            Self::Velodyne => "VelodyneRawDataM",
            Self::Laser => "LaserRange2DDataM",
        }
    }

    /// The length that the content of `data` asks for: "self-length" in docs/formats/vel.md. `None` where
    /// `data` ends before that can be said.
    #[inline]
    pub fn self_length(self, data: &[u8]) -> Option<u64> {
        Some(match self {
            Self::Obd => size_of::<ObdData>() as u64,
            Self::Gps => size_of::<GpsData>() as u64,
            Self::Pose => size_of::<RobotPose>() as u64,
            Self::Image => 20 + u64::from(u32_at(data, 16)?),
            Self::Velodyne => 4 + 1206 * u64::from(u32_at(data, 0)?),
            Self::Laser => {
                let kind = 4 + u64::from(u32_at(data, 0)?);
                let name = kind + 4 + u64::from(u32_at(data, kind)?);
                name + 4 + 4 * u64::from(u32_at(data, name)?)
            }
        })
    }
}

fn u32_at(data: &[u8], at: u64) -> Option<u32> {
    let at = usize::try_from(at).ok()?;
    Some(u32::from_le_bytes(*data.get(at..)?.first_chunk()?))
}

/// How the size of a message's data agrees with its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The length is that of the content.
    Exact,
    /// There are this many bytes behind the content; a later writer may append fields.
    Longer(u64),
    /// The data ends before its content does.
    Short,
    /// Nothing can be said: the layout is not known.
    Unknown,
}

impl Fit {
    /// How `data` fits the content of `kind`.
    #[inline]
    pub fn of(kind: Option<Kind>, data: &[u8]) -> Self {
        let Some(kind) = kind else { return Self::Unknown };
        match kind.self_length(data) {
            Some(wanted) => Self::of_length(wanted, data.len() as u64),
            None => Self::Short,
        }
    }

    pub(crate) fn of_length(wanted: u64, got: u64) -> Self {
        match got.checked_sub(wanted) {
            Some(0) => Self::Exact,
            Some(rest) => Self::Longer(rest),
            None => Self::Short,
        }
    }
}

/// One message of a log.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Message<'a> {
    /// Offset of its header from the start of the file.
    pub offset: u64,
    /// Its header.
    pub header: &'a MessageHeader,
    /// Its time in nanoseconds since the recording program started; that of the message before it where
    /// its own is no number.
    pub nanos: i64,
    /// Its data.
    pub data: &'a [u8],
}

impl<'a> Message<'a> {
    /// The kind, where the specification describes its type and version.
    pub fn kind(&self) -> Option<Kind> {
        Kind::of(self.header.type_id.get(), self.header.version.get())
    }

    /// Whether its writer declared it valid.
    pub fn is_valid(&self) -> bool {
        matches!(self.header.marker, MARKER_ASCII | MARKER_PRINTED)
    }

    /// How its size agrees with its content.
    pub fn fit(&self) -> Fit {
        Fit::of(self.kind(), self.data)
    }

    /// Its content; `None` where the data ends before its content does.
    pub fn payload(&self) -> Option<Payload<'a>> {
        match self.kind() {
            Some(kind) => Payload::view(kind, self.data),
            None => Some(Payload::Raw(self.data)),
        }
    }

    /// The bytes it takes in the log.
    pub fn wire_len(&self) -> u64 {
        size_of::<MessageHeader>() as u64 + self.data.len() as u64
    }
}

/// The content of a message. What a later writer appended to it is not part of it.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// Data of the vehicle.
    Obd(&'a ObdData),
    /// A position.
    Gps(&'a GpsData),
    /// A picture.
    Image(ImageRef<'a>),
    /// Orientation and acceleration.
    Pose(&'a RobotPose),
    /// Velodyne packets.
    Velodyne(&'a [VelodynePacket]),
    /// A scan of laser ranges.
    Laser(LaserRef<'a>),
    /// The data of a type that the specification does not describe.
    Raw(&'a [u8]),
}

impl<'a> Payload<'a> {
    /// The content of `data`; `None` where it ends too early.
    pub fn view(kind: Kind, data: &'a [u8]) -> Option<Self> {
        Some(match kind {
            Kind::Obd => Self::Obd(ObdData::ref_from_prefix(data).ok()?.0),
            Kind::Gps => Self::Gps(GpsData::ref_from_prefix(data).ok()?.0),
            Kind::Pose => Self::Pose(RobotPose::ref_from_prefix(data).ok()?.0),
            Kind::Image => Self::Image(ImageRef::view(data)?),
            Kind::Velodyne => Self::Velodyne(packets(data)?),
            Kind::Laser => Self::Laser(LaserRef::view(data)?),
        })
    }
}

/// The packets of a `VelodyneRawDataM`; `None` where the data ends before the last one.
pub fn packets(data: &[u8]) -> Option<&[VelodynePacket]> {
    let (head, rest) = VelodyneHead::ref_from_prefix(data).ok()?;
    let count = usize::try_from(head.packets.get()).ok()?;
    if count > rest.len() / size_of::<VelodynePacket>() {
        return None;
    }
    Some(<[VelodynePacket]>::ref_from_prefix_with_elems(rest, count).ok()?.0)
}

/// An `ImageM`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageRef<'a> {
    /// What is before the data.
    pub head: &'a ImageHead,
    /// A JPEG, as a rule.
    pub data: &'a [u8],
}

impl<'a> ImageRef<'a> {
    /// The image in the data of a message; `None` where it ends before its content does.
    pub fn view(data: &'a [u8]) -> Option<Self> {
        let (head, rest) = ImageHead::ref_from_prefix(data).ok()?;
        Some(Self { head, data: rest.get(..usize::try_from(head.size.get()).ok()?)? })
    }
}

/// A `LaserRange2DDataM`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaserRef<'a> {
    /// `Hokuyo_URG-04LX` or `Hokuyo_UTM-30LX`.
    pub sensor_type: &'a [u8],
    /// Any name.
    pub sensor_name: &'a [u8],
    /// Millimetres, or a code.
    pub ranges: &'a [U32Le],
}

impl<'a> LaserRef<'a> {
    /// The scan in the data of a message; `None` where it ends before its content does.
    pub fn view(data: &'a [u8]) -> Option<Self> {
        let (sensor_type, rest) = string(data)?;
        let (sensor_name, rest) = string(rest)?;
        let (count, rest) = U32Le::ref_from_prefix(rest).ok()?;
        let count = usize::try_from(count.get()).ok()?;
        if count > rest.len() / 4 {
            return None;
        }
        let ranges = <[U32Le]>::ref_from_prefix_with_elems(rest, count).ok()?.0;
        Some(Self { sensor_type, sensor_name, ranges })
    }
}

fn string(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = U32Le::ref_from_prefix(data).ok()?;
    rest.split_at_checked(usize::try_from(len.get()).ok()?)
}

/// The text of a string: UTF-8, or else Latin-1, in which every byte is a character.
pub fn text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().map(|byte| char::from(*byte)).collect()),
    }
}

/// Nanoseconds of a timestamp in milliseconds, correctly rounded, halves away from zero. What an `i64` cannot
/// hold stops at its end; `None` where the timestamp is no finite number.
pub fn nanos(millis: f64) -> Option<i64> {
    if !millis.is_finite() {
        return None;
    }
    // Below this the whole and the broken part multiply exactly: both have at most 53 bits.
    if millis.abs() >= 9.3e12 {
        return Some(if millis > 0.0 { i64::MAX } else { i64::MIN });
    }
    #[expect(clippy::cast_possible_truncation, reason = "within the range checked above")]
    let (whole, part) = (millis.trunc() as i64, (millis.fract() * 1e6).round() as i64);
    Some(whole.saturating_mul(1_000_000).saturating_add(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_rounded_once() {
        for (millis, want) in [
            (7322.625, 7_322_625_000),
            (0.1, 100_000),
            (-1.5, -1_500_000),
            (8521.4, 8_521_400_000),
            (1e300, i64::MAX),
            (-9.4e12, i64::MIN),
        ] {
            assert_eq!(nanos(millis), Some(want), "{millis}");
        }
        assert_eq!((nanos(f64::NAN), nanos(f64::INFINITY)), (None, None));
    }

    #[test]
    fn a_string_that_is_no_utf8_is_latin_1() {
        assert_eq!(text(b"vorn\xfc"), "vorn\u{fc}");
        assert_eq!(text("h\u{e4}".as_bytes()), "h\u{e4}");
    }

    /// Counts that would overflow anything do not.
    #[test]
    fn hostile_counts_are_short() {
        let mut data = vec![0xFF; 64];
        for kind in Kind::ALL {
            let fixed = matches!(kind, Kind::Obd | Kind::Gps | Kind::Pose);
            if !fixed {
                assert_eq!(Fit::of(Some(kind), &data), Fit::Short, "{kind:?}");
                assert!(Payload::view(kind, &data).is_none());
            }
        }
        data.truncate(3);
        assert!(Kind::ALL.iter().all(|kind| Payload::view(*kind, &data).is_none()));
    }
}
