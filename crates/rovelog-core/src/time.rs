//! Timestamps: integer nanoseconds, always with the clock they were read from.

use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};

/// The clock of a timestamp, by its zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Clock {
    /// 1970-01-01T00:00:00Z, leap seconds not counted.
    Unix,
    /// The start of the device that wrote the log.
    Boot,
    /// The start of the log itself.
    LogStart,
}

impl Clock {
    /// Returns the word used in text and JSON: `unix`, `boot` or `log_start`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unix => "unix",
            Self::Boot => "boot",
            Self::LogStart => "log_start",
        }
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A point in time: nanoseconds since the zero of a [`Clock`].
///
/// Timestamps of different clocks have no order, so the type has none; compare
/// [`nanos`](Self::nanos) where one clock is certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timestamp {
    /// Nanoseconds since the clock's zero.
    pub nanos: i64,
    /// The clock.
    pub clock: Clock,
}

impl Timestamp {
    /// Returns a timestamp of `nanos` nanoseconds on `clock`.
    pub const fn new(nanos: i64, clock: Clock) -> Self {
        Self { nanos, clock }
    }

    /// Returns a timestamp of `micros` microseconds; `None` where nanoseconds would pass an `i64`
    /// (year 2262).
    pub fn from_micros(micros: u64, clock: Clock) -> Option<Self> {
        let nanos = i64::try_from(micros).ok()?.checked_mul(1000)?;
        Some(Self { nanos, clock })
    }

    /// Returns the same moment on the Unix clock: itself where it is Unix time, else by `offset`.
    pub fn to_unix(self, offset: Option<&UtcOffset>) -> Option<Self> {
        match (self.clock, offset) {
            (Clock::Unix, _) => Some(self),
            (_, Some(offset)) => Some(Self::new(self.nanos.checked_add(offset.nanos)?, Clock::Unix)),
            _ => None,
        }
    }

    /// Returns the time in RFC 3339 with 0, 3, 6 or 9 digits, as many as it needs; `None` if the
    /// clock is not the Unix clock.
    pub fn rfc3339(self) -> Option<String> {
        let utc = self.to_utc()?;
        Some(utc.to_rfc3339_opts(SecondsFormat::AutoSi, true))
    }

    /// Returns the time as chrono's type; `None` if the clock is not the Unix clock.
    pub fn to_utc(self) -> Option<DateTime<Utc>> {
        (self.clock == Clock::Unix).then(|| DateTime::from_timestamp_nanos(self.nanos))
    }

    /// Returns the exact decimal seconds for display: 112 417 000 000 ns are `112.417`.
    pub fn seconds(self) -> Seconds {
        Seconds(self.nanos)
    }
}

/// Displays nanoseconds as decimal seconds without a float in between.
#[derive(Clone, Copy, Debug)]
pub struct Seconds(pub i64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = self.0.unsigned_abs();
        let (whole, part) = (magnitude / 1_000_000_000, magnitude % 1_000_000_000);
        let sign = if self.0 < 0 { "-" } else { "" };
        let digits = format!("{part:09}");
        let digits = digits.trim_end_matches('0');
        let digits = if digits.is_empty() { "0" } else { digits };
        // Through `pad`, so that a column width given by the caller holds.
        f.pad(&format!("{sign}{whole}.{digits}"))
    }
}

/// How a log's clock is placed on the Unix clock, and by which rule that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UtcOffset {
    /// Unix time minus log time, in nanoseconds.
    pub nanos: i64,
    /// The rule's stable name, for example `gps`.
    pub rule: &'static str,
    /// What the rule rests on, in words: `240 fixes of vehicle_gps_position/0`.
    pub evidence: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_exact() {
        for (nanos, text) in [
            (0, "0.0"),
            (112_417_000_000, "112.417"),
            (-1, "-0.000000001"),
            (i64::MIN, "-9223372036.854775808"),
        ] {
            assert_eq!(Seconds(nanos).to_string(), text);
        }
    }

    #[test]
    fn unix_time_is_reached_only_with_an_offset() {
        let boot = Timestamp::new(5_000_000_000, Clock::Boot);
        assert_eq!(boot.to_unix(None), None);
        let offset = UtcOffset { nanos: 1_700_000_000_000_000_000, rule: "gps", evidence: String::new() };
        let unix = boot.to_unix(Some(&offset)).unwrap();
        assert_eq!(unix.rfc3339().unwrap(), "2023-11-14T22:13:25Z");
        let far = UtcOffset { nanos: i64::MAX, ..offset };
        assert_eq!(boot.to_unix(Some(&far)), None);
    }

    #[test]
    fn microseconds_past_the_range_are_refused() {
        assert_eq!(Timestamp::from_micros(u64::MAX, Clock::Boot), None);
        assert_eq!(Timestamp::from_micros(7, Clock::Boot).unwrap().nanos, 7000);
    }
}
