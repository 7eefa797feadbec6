//! Timestamps: an integer number of nanoseconds together with a clock.

use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, Utc};

/// The clock of a timestamp. The description of each variant states when the clock is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Clock {
    /// The clock is zero at 1970-01-01T00:00:00Z. Leap seconds are not counted.
    Unix,
    /// The clock is zero when the device that wrote the log starts.
    Boot,
    /// The clock is zero at the start of the log.
    LogStart,
}

impl Clock {
    /// Returns the name of the clock as used in text and JSON output: `unix`, `boot` or
    /// `log_start`.
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

/// A point in time, in nanoseconds since the clock was zero.
///
/// Timestamps of different clocks cannot be compared, so the type implements no order. If two
/// timestamps have the same clock, compare [`nanos`](Self::nanos).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timestamp {
    /// Nanoseconds since the clock was zero.
    pub nanos: i64,
    /// Clock that measured the time.
    pub clock: Clock,
}

impl Timestamp {
    /// Creates a timestamp from `nanos` nanoseconds on `clock`.
    pub const fn new(nanos: i64, clock: Clock) -> Self {
        Self { nanos, clock }
    }

    /// Creates a timestamp from `micros` microseconds on `clock`. Returns `None` if the time in
    /// nanoseconds does not fit into an `i64`. On the Unix clock, this happens in the year 2262.
    pub fn from_micros(micros: u64, clock: Clock) -> Option<Self> {
        let nanos = i64::try_from(micros).ok()?.checked_mul(1000)?;
        Some(Self { nanos, clock })
    }

    /// Converts the timestamp to the Unix clock with `offset`. If the timestamp is already on the
    /// Unix clock, it is returned unchanged. Returns `None` if the offset is unknown.
    pub fn to_unix(self, offset: Option<&UtcOffset>) -> Option<Self> {
        match (self.clock, offset) {
            (Clock::Unix, _) => Some(self),
            (_, Some(offset)) => Some(Self::new(offset.unix(self.nanos)?, Clock::Unix)),
            _ => None,
        }
    }

    /// Formats the time in the format of RFC 3339. The number of decimals is 0, 3, 6 or 9,
    /// whichever is the smallest that shows the time exactly. Returns `None` if the clock is not
    /// the Unix clock.
    pub fn rfc3339(self) -> Option<String> {
        let utc = self.to_utc()?;
        Some(utc.to_rfc3339_opts(SecondsFormat::AutoSi, true))
    }

    /// Converts the time to a [`DateTime`]. Returns `None` if the clock is not the Unix clock.
    pub fn to_utc(self) -> Option<DateTime<Utc>> {
        (self.clock == Clock::Unix).then(|| DateTime::from_timestamp_nanos(self.nanos))
    }

    /// Returns a value that displays the time as exact decimal seconds. For example, a time of
    /// 112417000000 ns is displayed as `112.417`.
    pub fn seconds(self) -> Seconds {
        Seconds(self.nanos)
    }
}

/// Displays nanoseconds as decimal seconds. The conversion uses no floats, so no digit is lost.
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
        // `pad` applies the width and alignment of the caller's format string.
        f.pad(&format!("{sign}{whole}.{digits}"))
    }
}

/// Offset between a log's clock and the Unix clock, and the rule by which the offset was found.
///
/// The offset may change over time. For example, the offset is 1000 ns until log time 100, then
/// changes linearly to 1010 ns at log time 110. This is stored as two knots, (100, 1000) and (110,
/// 1010). Log time 105 is Unix time 105 + 1005 = 1110.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UtcOffset {
    /// Unix time minus log time at the start of the log, in nanoseconds.
    pub nanos: i64,
    /// Offsets at later times of the log, sorted by log time. Empty if the offset is constant.
    pub knots: Arc<[UtcKnot]>,
    /// Stable name of the rule by which the offset was found, such as `gps`.
    pub rule: &'static str,
    /// Description of the data that the rule used, such as `240 fixes of vehicle_gps_position/0`.
    pub evidence: String,
}

/// The offset between the Unix clock and the log's clock at one log time. Offsets between two knots
/// are interpolated linearly. Before the first and after the last knot, the offset is constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UtcKnot {
    /// Log time in nanoseconds.
    pub log: i64,
    /// Unix time minus log time, in nanoseconds.
    pub nanos: i64,
}

impl UtcKnot {
    /// Returns the Unix time of this knot.
    fn unix(self) -> i128 {
        i128::from(self.log) + i128::from(self.nanos)
    }
}

/// Maximum change of the offset between two clocks, in nanoseconds, that counts as drift. A larger
/// change means that a clock was set.
const DRIFT: i64 = 1_000_000;

impl UtcOffset {
    /// Creates a constant offset.
    pub fn new(nanos: i64, rule: &'static str, evidence: impl Into<String>) -> Self {
        Self { nanos, knots: Arc::default(), rule, evidence: evidence.into() }
    }

    /// Sets the offsets at later log times.
    #[must_use]
    pub fn with_knots(mut self, knots: Vec<UtcKnot>) -> Self {
        self.knots = knots.into();
        self
    }

    /// Converts a log time to Unix time. Returns `None` if the result does not fit into 64 bits.
    pub fn unix(&self, log: i64) -> Option<i64> {
        let after = self.knots.partition_point(|knot| knot.log <= log);
        let nanos = match (after.checked_sub(1).map(|at| self.knots[at]), self.knots.get(after)) {
            (None, None) => self.nanos,
            (None, Some(knot)) => knot.nanos,
            (Some(knot), None) => knot.nanos,
            (Some(a), Some(b)) if a.nanos == b.nanos => a.nanos,
            (Some(a), Some(b)) => {
                let (passed, length) =
                    (i128::from(log) - i128::from(a.log), i128::from(b.log) - i128::from(a.log));
                let change = (i128::from(b.nanos) - i128::from(a.nanos)) * passed;
                // The division rounds to the nearest integer, and halves up. The products need 128
                // bits.
                i64::try_from(i128::from(a.nanos) + (2 * change + length).div_euclid(2 * length)).ok()?
            }
        };
        log.checked_add(nanos)
    }

    /// Returns the first log time whose Unix time is `unix` or later. Returns `None` if the result
    /// does not fit into 64 bits.
    ///
    /// If the Unix clock was set back while the log was recorded, a Unix time can occur twice. This
    /// function returns the log time of the first occurrence.
    pub fn first_log_time(&self, unix: i64) -> Option<i64> {
        let unix = i128::from(unix);
        // The Unix times of the knots do not always ascend, because the clock may have been set
        // back. A binary search would therefore be wrong.
        let before = match self.knots.iter().position(|knot| knot.unix() >= unix) {
            Some(0) => None,
            Some(reached) => Some(reached - 1),
            None => self.knots.len().checked_sub(1),
        };
        self.log_time_after(before, unix)
    }

    /// Returns the first log time after which no Unix time is earlier than `unix`. Returns `None`
    /// if the result does not fit into 64 bits.
    pub fn last_log_time(&self, unix: i64) -> Option<i64> {
        let unix = i128::from(unix);
        self.log_time_after(self.knots.iter().rposition(|knot| knot.unix() < unix), unix)
    }

    /// Returns the first log time after a knot at which `unix` is reached. `before` is the index of
    /// the knot, whose Unix time must be earlier than `unix`. If `before` is `None`, the log time
    /// is before the first knot.
    fn log_time_after(&self, before: Option<usize>, unix: i128) -> Option<i64> {
        let Some(before) = before else {
            let nanos = self.knots.first().map_or(self.nanos, |knot| knot.nanos);
            return i64::try_from(unix - i128::from(nanos)).ok();
        };
        let a = self.knots[before];
        let log = match self.knots.get(before + 1) {
            None => unix - i128::from(a.nanos),
            Some(b) => {
                let (length, risen) = (i128::from(b.log) - i128::from(a.log), b.unix() - a.unix());
                // The division rounds up, so that the Unix time of the result is not before `unix`.
                let passed = ((unix - a.unix()) * length + risen - 1).div_euclid(risen.max(1));
                i128::from(a.log) + passed.clamp(0, length)
            }
        };
        i64::try_from(log).ok()
    }

    /// Returns the offset if it changes by at most a millisecond. Returns `None` if the Unix clock
    /// was set while the log was recorded.
    pub fn constant(&self) -> Option<i64> {
        let all = || self.knots.iter().map(|knot| knot.nanos);
        let (least, most) = (all().min().unwrap_or(self.nanos), all().max().unwrap_or(self.nanos));
        most.checked_sub(least).is_some_and(|apart| apart <= DRIFT).then_some(self.nanos)
    }
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
    fn unix_time_needs_an_offset() {
        let boot = Timestamp::new(5_000_000_000, Clock::Boot);
        assert_eq!(boot.to_unix(None), None);
        let offset = UtcOffset::new(1_700_000_000_000_000_000, "gps", "");
        let unix = boot.to_unix(Some(&offset)).unwrap();
        assert_eq!(unix.rfc3339().unwrap(), "2023-11-14T22:13:25Z");
        let far = UtcOffset { nanos: i64::MAX, ..offset };
        assert_eq!(boot.to_unix(Some(&far)), None);
    }

    #[test]
    fn microseconds_out_of_range_are_rejected() {
        assert_eq!(Timestamp::from_micros(u64::MAX, Clock::Boot), None);
        assert_eq!(Timestamp::from_micros(7, Clock::Boot).unwrap().nanos, 7000);
    }

    fn offset(knots: &[(i64, i64)]) -> UtcOffset {
        let knots = knots.iter().map(|(log, nanos)| UtcKnot { log: *log, nanos: *nanos });
        UtcOffset::new(0, "block_times", "").with_knots(knots.collect())
    }

    /// The offset drifts by 10 ns between the log times 100 and 110. Then the Unix clock is set
    /// forward by 1000 ns.
    #[test]
    fn unix_time_follows_drift_and_steps() {
        let forward = offset(&[(100, 50), (110, 60), (111, 1060), (200, 1060)]);
        for (log, unix) in [(0, 50), (100, 150), (105, 160), (110, 170), (111, 1171), (300, 1360)] {
            assert_eq!(forward.unix(log), Some(unix), "log time {log}");
            assert_eq!(forward.first_log_time(unix), Some(log), "Unix time {unix}");
            assert_eq!(forward.last_log_time(unix), Some(log), "Unix time {unix}");
        }
        assert_eq!(forward.first_log_time(500), Some(111), "a Unix time that the step passed over");
        assert_eq!(offset(&[]).unix(7), Some(7));
    }

    #[test]
    fn a_unix_time_that_occurs_twice_has_two_log_times() {
        let back = offset(&[(100, 1000), (110, 1000), (111, 995), (200, 995)]);
        assert_eq!((back.unix(110), back.unix(111)), (Some(1110), Some(1106)));
        assert_eq!((back.first_log_time(1108), back.last_log_time(1108)), (Some(108), Some(113)));
        assert_eq!((back.first_log_time(1120), back.last_log_time(1120)), (Some(125), Some(125)));
    }

    #[test]
    fn an_offset_is_constant_if_it_only_drifts() {
        assert_eq!(offset(&[]).constant(), Some(0));
        assert_eq!(offset(&[(0, 0), (9, DRIFT)]).constant(), Some(0));
        assert_eq!(offset(&[(0, 0), (9, DRIFT + 1)]).constant(), None);
    }
}
