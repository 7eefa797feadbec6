//! Messages as views that borrow from the log. Nothing is copied, and element counts are checked
//! against the available bytes.

use std::borrow::Cow;

use binrw::meta::ReadEndian;
use binrw::{BinRead, BinWrite};
use rovelog_core::internal::layout::TextDecoder;
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::wire::{
    GpsData, ImageData, LaserRange, MARKER_ASCII, MARKER_PRINTED, MessageHeader, ObdData, RobotPose,
    VelodyneRawData,
};

/// Meaning of the size field of a message. See the rules D1 and D3 of docs/formats/vel.md.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SizeRule {
    /// The size counts everything except the size field: 17 bytes of the header, and the data.
    /// Section 3.4 of the VEL specification says "Message data: message size - 17".
    #[default]
    Exclusive,
    /// The size counts the whole message: 21 bytes of the header, and the data. Section 3.4 of the
    /// VEL specification says "size of the message incl. header".
    Inclusive,
    /// The size counts only the data.
    DataOnly,
}

impl SizeRule {
    /// All size rules. The most likely rule comes first.
    pub const ALL: [Self; 3] = [Self::Exclusive, Self::Inclusive, Self::DataOnly];

    /// Returns the number of header bytes that the size field counts in addition to the data.
    pub const fn overhead(self) -> u64 {
        match self {
            Self::Exclusive => 17,
            Self::Inclusive => 21,
            Self::DataOnly => 0,
        }
    }

    /// Returns the length of the data of a message with this header. Returns `None` if the size
    /// field is too small.
    #[inline]
    pub(crate) fn data_len(self, header: &MessageHeader) -> Option<u64> {
        u64::from(header.size.get()).checked_sub(self.overhead())
    }

    /// Returns the name of the size rule in text output and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exclusive => "exclusive",
            Self::Inclusive => "inclusive",
            Self::DataOnly => "data_only",
        }
    }
}

/// The kinds of messages that the VEL specification describes.
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
    /// All kinds of messages, in the order of the specification.
    pub const ALL: [Self; 6] = [Self::Obd, Self::Gps, Self::Image, Self::Pose, Self::Velodyne, Self::Laser];

    /// Returns the kind of messages with this type id and version. Returns `None` if the
    /// specification does not describe this type and version.
    #[inline]
    pub fn of(type_id: u32, version: i32) -> Option<Self> {
        Self::of_id(type_id).filter(|kind| kind.version() == version)
    }

    /// Returns the kind of messages with this type id, regardless of the version.
    #[inline]
    pub(crate) fn of_id(type_id: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.type_id() == type_id)
    }

    // The ids, versions and names are in section 3.4 of the VEL specification.

    /// Returns the type id of these messages.
    pub const fn type_id(self) -> u32 {
        match self {
            Self::Obd => 0x0001_4043,
            Self::Gps => 0x0001_4A32,
            Self::Image => 0x0001_09C9,
            Self::Pose => 0x0001_E342,
            Self::Velodyne => 0x0003_112B,
            Self::Laser => 0x0003_0910,
        }
    }

    /// Returns the version of the message type that the specification describes.
    pub const fn version(self) -> i32 {
        if matches!(self, Self::Laser) { 101 } else { 100 }
    }

    /// Returns the section of the VEL specification that describes the message type.
    pub(crate) const fn section(self) -> &'static str {
        match self {
            Self::Obd => "3.4.1",
            Self::Gps => "3.4.2",
            Self::Image => "3.4.3",
            Self::Pose => "3.4.4",
            Self::Velodyne => "3.4.5",
            Self::Laser => "3.4.6",
        }
    }

    /// Returns the name of the message type.
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
}

/// A message of a log.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Message<'a> {
    /// Offset of the message header from the start of the file.
    pub offset: u64,
    /// The header of the message.
    pub header: &'a MessageHeader,
    /// Time in nanoseconds since the recording program started. If the timestamp in the header is
    /// not a finite number, this is the time of the previous message.
    pub nanos: i64,
    /// The data of the message, which follows the header.
    pub data: &'a [u8],
}

impl<'a> Message<'a> {
    /// Returns the kind of the message. Returns `None` if the specification does not describe its
    /// type and version.
    pub fn kind(&self) -> Option<Kind> {
        Kind::of(self.header.type_id.get(), self.header.version.get())
    }

    /// Returns whether the recording program marked the message as valid.
    pub fn is_valid(&self) -> bool {
        matches!(self.header.marker, MARKER_ASCII | MARKER_PRINTED)
    }

    /// Returns the content of the message. Returns `None` if the specification does not describe
    /// its type and version, or if the data is too short.
    pub fn payload(&self) -> Option<Payload<'a>> {
        Payload::view(self.kind()?, self.data)
    }

    /// Returns the size of the message with its header in bytes.
    pub fn wire_len(&self) -> u64 {
        size_of::<MessageHeader>() as u64 + self.data.len() as u64
    }
}

/// The content of a message. If bytes follow the content, which a newer program may have added,
/// they are ignored.
#[derive(BinWrite, Clone, Copy, Debug, PartialEq, Eq)]
#[bw(little)]
pub enum Payload<'a> {
    /// Data from the on-board diagnostics of a vehicle.
    Obd(&'a ObdData),
    /// A position from a GPS receiver.
    Gps(&'a GpsData),
    /// An image from a camera.
    Image(ImageData<'a>),
    /// An orientation and an acceleration.
    Pose(&'a RobotPose),
    /// Packets of a Velodyne sensor.
    Velodyne(VelodyneRawData<'a>),
    /// A scan of laser ranges.
    Laser(LaserRange<'a>),
}

impl<'a> Payload<'a> {
    /// Returns the content of a message with this kind and data. Returns `None` if the data is too
    /// short.
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

    /// Returns the kind of messages that have this content.
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

/// Returns a reference to a structure of fixed size at the start of `data`. Returns `None` if the
/// data is too short.
#[inline]
fn fixed<T: FromBytes + KnownLayout + Immutable + Unaligned>(data: &[u8]) -> Option<&T> {
    T::ref_from_prefix(data).ok().map(|(content, _)| content)
}

/// Reads a structure of variable size that borrows from `data`. Returns `None` if the data is too
/// short.
#[inline]
fn variable<'a, T: BinRead<Args<'a> = (&'a [u8],)> + ReadEndian>(data: &'a [u8]) -> Option<T> {
    T::read_args(&mut std::io::Cursor::new(data), (data,)).ok()
}

/// Returns the text of a string. Bytes that are not valid UTF-8 are decoded as Latin-1.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    TextDecoder::LATIN1.decode(bytes)
}

/// Converts a timestamp from milliseconds to nanoseconds. The result is rounded to the nearest
/// integer, with halves away from zero, and clamped to an `i64`. Returns `None` if the timestamp is
/// not finite.
pub(crate) fn nanos(millis: f64) -> Option<i64> {
    if !millis.is_finite() {
        return None;
    }
    // Timestamps below this limit are converted exactly, because their integer and fractional parts
    // have at most 53 bits.
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
    fn strings_that_are_not_utf8_are_latin_1() {
        assert_eq!(text(b"vorn\xfc"), "vorn\u{fc}");
        assert_eq!(text("h\u{e4}".as_bytes()), "h\u{e4}");
    }

    /// If an element count is too large for the data, it must be rejected, even if the size in
    /// bytes overflows.
    #[test]
    fn hostile_counts_are_rejected() {
        let mut data = vec![0xFF; 64];
        for kind in Kind::ALL {
            let fixed = matches!(kind, Kind::Obd | Kind::Pose);
            assert_eq!(Payload::view(kind, &data).is_none(), !fixed, "{kind:?}");
        }
        data.truncate(3);
        assert!(Kind::ALL.iter().all(|kind| Payload::view(*kind, &data).is_none()));
    }
}
