//! Messages as borrowed views: nothing is copied, counts are checked against the bytes at hand.

use std::borrow::Cow;

use binrw::meta::ReadEndian;
use binrw::{BinRead, BinWrite};
use rovelog_core::layout;
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::wire::{
    GpsData, ImageData, LaserRange, MARKER_ASCII, MARKER_PRINTED, MessageHeader, ObdData, RobotPose,
    VelodyneRawData,
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

    /// Bytes of the data of a message with this header; `None` where its size is smaller than it can be.
    #[inline]
    pub(crate) fn data_len(self, header: &MessageHeader) -> Option<u64> {
        u64::from(header.size.get()).checked_sub(self.overhead())
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
    pub(crate) fn of_id(type_id: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.type_id() == type_id)
    }

    /// Id, version and name of the type (section 3.4).
    const fn facts(self) -> (u32, i32, &'static str) {
        match self {
            Self::Obd => (0x0001_4043, 100, "OBDDataM"),
            Self::Gps => (0x0001_4A32, 100, "GPSDataM"),
            Self::Image => (0x0001_09C9, 100, "ImageM"),
            Self::Pose => (0x0001_E342, 100, "RobotPoseM"),
            Self::Velodyne => (0x0003_112B, 100, "VelodyneRawDataM"),
            Self::Laser => (0x0003_0910, 101, "LaserRange2DDataM"),
        }
    }

    /// The id.
    pub const fn type_id(self) -> u32 {
        self.facts().0
    }

    /// The version that the specification describes.
    pub const fn version(self) -> i32 {
        self.facts().1
    }

    /// The name of the type.
    pub const fn name(self) -> &'static str {
        self.facts().2
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

    /// Its content; `None` where the specification does not describe it, or the data ends before its content does.
    pub fn payload(&self) -> Option<Payload<'a>> {
        Payload::view(self.kind()?, self.data)
    }

    /// The bytes it takes in the log.
    pub fn wire_len(&self) -> u64 {
        size_of::<MessageHeader>() as u64 + self.data.len() as u64
    }
}

/// The content of a message. What a later writer appended to it is not part of it.
#[derive(BinWrite, Clone, Copy, Debug, PartialEq, Eq)]
#[bw(little)]
pub enum Payload<'a> {
    /// Data of the vehicle.
    Obd(&'a ObdData),
    /// A position.
    Gps(&'a GpsData),
    /// A picture.
    Image(ImageData<'a>),
    /// Orientation and acceleration.
    Pose(&'a RobotPose),
    /// Velodyne packets.
    Velodyne(VelodyneRawData<'a>),
    /// A scan of laser ranges.
    Laser(LaserRange<'a>),
}

impl<'a> Payload<'a> {
    /// The content of `data`; `None` where it ends too early.
    pub fn view(kind: Kind, data: &'a [u8]) -> Option<Self> {
        Some(match kind {
            Kind::Obd => Self::Obd(fixed(data)?),
            Kind::Gps => Self::Gps(fixed(data)?),
            Kind::Pose => Self::Pose(fixed(data)?),
            Kind::Image => Self::Image(variable(data)?),
            Kind::Velodyne => Self::Velodyne(variable(data)?),
            Kind::Laser => Self::Laser(variable(data)?),
        })
    }

    /// What it is the content of.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Obd(_) => Kind::Obd,
            Self::Gps(_) => Kind::Gps,
            Self::Image(_) => Kind::Image,
            Self::Pose(_) => Kind::Pose,
            Self::Velodyne(_) => Kind::Velodyne,
            Self::Laser(_) => Kind::Laser,
        }
    }
}

/// A structure of fixed size at the start of `data`, viewed in place.
#[inline]
fn fixed<T: FromBytes + KnownLayout + Immutable + Unaligned>(data: &[u8]) -> Option<&T> {
    T::ref_from_prefix(data).ok().map(|(content, _)| content)
}

/// One of variable size, which borrows from `data`.
#[inline]
fn variable<'a, T: BinRead<Args<'a> = (&'a [u8],)> + ReadEndian>(data: &'a [u8]) -> Option<T> {
    T::read_args(&mut std::io::Cursor::new(data), (data,)).ok()
}

/// The text of a string: UTF-8, or else Latin-1, in which every byte is a character.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    layout::text(bytes, layout::Encoding::Latin1)
}

/// Nanoseconds of a timestamp in milliseconds, correctly rounded, halves away from zero. What an `i64` cannot
/// hold stops at its end; `None` where the timestamp is no finite number.
pub(crate) fn nanos(millis: f64) -> Option<i64> {
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
            let fixed = matches!(kind, Kind::Obd | Kind::Pose);
            assert_eq!(Payload::view(kind, &data).is_none(), !fixed, "{kind:?}");
        }
        data.truncate(3);
        assert!(Kind::ALL.iter().all(|kind| Payload::view(*kind, &data).is_none()));
    }
}
