//! Numbers of records as degrees and as times.

use rovelog::core::internal::layout::{Element, Len, Slot, scalar_value};
use rovelog::{Field, Scalar};

use super::place::Place;

/// Unit of a stored coordinate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Degrees,
    Radians,
    /// Degrees times 10⁷, as in MAVLink and in PX4.
    E7,
    /// Degrees and minutes in one number, `ddmm.mmmm`, as in NMEA.
    Minutes,
}

impl Unit {
    pub(super) const ALL: [Self; 4] = [Self::Degrees, Self::Radians, Self::E7, Self::Minutes];

    /// Returns the unit of a coordinate. `usual` is the unit of floating-point numbers without a
    /// stated unit.
    pub(super) fn of(field: &Field, scalar: Scalar, usual: Self) -> Self {
        match scalar {
            Scalar::Float32 | Scalar::Float64 if field.unit.as_deref() == Some("rad") => Self::Radians,
            Scalar::Float32 | Scalar::Float64 => usual,
            _ => Self::E7,
        }
    }

    pub(super) fn degrees(self, value: f64) -> f64 {
        match self {
            Self::Degrees => value,
            Self::Radians => value.to_degrees(),
            Self::E7 => value / 1e7,
            Self::Minutes => {
                let degrees = (value.abs() / 100.0).floor();
                (degrees + (value.abs() - 100.0 * degrees) / 60.0).copysign(value)
            }
        }
    }

    fn stored(self, degrees: f64) -> f64 {
        match self {
            Self::Degrees => degrees,
            Self::Radians => degrees.to_radians(),
            Self::E7 => degrees * 1e7,
            Self::Minutes => {
                let full = degrees.abs().floor();
                (full * 100.0 + (degrees.abs() - full) * 60.0).copysign(degrees)
            }
        }
    }

    /// Returns whether a coordinate in this unit may be stored as `scalar`.
    pub(super) fn suits(self, scalar: Scalar) -> bool {
        let is_float = matches!(scalar, Scalar::Float32 | Scalar::Float64);
        is_float || (self == Self::E7 && matches!(scalar, Scalar::Int32 | Scalar::Int64))
    }
}

/// Returns the type of the numbers in a field, if coordinates may be stored in it.
pub(super) fn coordinate_type(slot: &Slot) -> Option<Scalar> {
    match slot.element {
        Element::Scalar(scalar) if Unit::E7.suits(scalar) => Some(scalar),
        _ => None,
    }
}

/// Returns the offset in a field of the first element, which follows the count of a list.
pub(super) fn first(slot: &Slot) -> usize {
    if slot.len == Len::Counted { size_of::<u32>() } else { 0 }
}

/// Decodes a number.
pub(super) fn read(scalar: Scalar, bytes: &[u8]) -> f64 {
    scalar_value(scalar, bytes).as_f64().unwrap_or(f64::NAN)
}

/// Type and unit in which a latitude and a longitude are stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    pub(super) scalar: Scalar,
    pub(super) unit: Unit,
}

impl Stored {
    /// Returns the position that is stored in two numbers. Returns `None` if they are no position.
    /// Devices without a position store zeros or NaN.
    pub(super) fn place(self, latitude: &[u8], longitude: &[u8]) -> Option<Place> {
        let [latitude, longitude] = [latitude, longitude].map(|bytes| read(self.scalar, bytes));
        let is_set = latitude != 0.0 || longitude != 0.0;
        Place::new(self.unit.degrees(latitude), self.unit.degrees(longitude)).filter(|_| is_set)
    }

    /// Encodes a coordinate in degrees.
    #[expect(clippy::cast_possible_truncation, reason = "integers have room for 180e7")]
    pub(super) fn write(self, degrees: f64, bytes: &mut [u8]) {
        let value = self.unit.stored(degrees);
        match self.scalar {
            Scalar::Float32 => bytes.copy_from_slice(&(value as f32).to_le_bytes()),
            Scalar::Float64 => bytes.copy_from_slice(&value.to_le_bytes()),
            Scalar::Int32 => bytes.copy_from_slice(&(value.round() as i32).to_le_bytes()),
            _ => bytes.copy_from_slice(&(value.round() as i64).to_le_bytes()),
        }
    }
}

/// First and last second of Unix time that are taken for a date: 2001 to 2099. Other numbers are
/// times since the start of a device.
const DATES: std::ops::Range<i64> = 1_000_000_000..4_102_444_800;

/// Shifts a little-endian integer of 4 or 8 bytes by `days`, if it is a date. `units` is the number
/// of units per second. Returns whether the number has changed.
pub(super) fn shift(bytes: &mut [u8], units: i64, days: i64) -> bool {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let value = i64::from_le_bytes(wide);
    let seconds =
        days.checked_mul(86_400).filter(|seconds| *seconds != 0 && DATES.contains(&(value / units)));
    let new = seconds.and_then(|seconds| value.checked_add(seconds.checked_mul(units)?));
    // A 32-bit time ends in the year 2106.
    let new = new.filter(|new| *new >= 0 && (bytes.len() == 8 || u32::try_from(*new).is_ok()));
    let Some(new) = new else { return false };
    bytes.copy_from_slice(&new.to_le_bytes()[..bytes.len()]);
    true
}

/// Shifts a number whose name says that it is a time, if it is a date in a usual unit.
pub(super) fn shift_number(scalar: Scalar, bytes: &mut [u8], days: i64) -> bool {
    match scalar {
        Scalar::UInt32 | Scalar::Int32 => shift(bytes, 1, days),
        // Seconds and milliseconds are not tried, because times since boot have such values.
        Scalar::UInt64 | Scalar::Int64 => shift(bytes, 1_000_000, days) || shift(bytes, 1_000_000_000, days),
        Scalar::Float64 => {
            let value = read(scalar, bytes);
            #[expect(clippy::cast_precision_loss, reason = "these numbers are small")]
            let (start, end, seconds) = (DATES.start as f64, DATES.end as f64, days as f64 * 86_400.0);
            let is_date = (start..end).contains(&value) && days != 0;
            if is_date {
                bytes.copy_from_slice(&(value + seconds).to_le_bytes());
            }
            is_date
        }
        _ => false,
    }
}
