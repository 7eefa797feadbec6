//! Timestamps: integer nanoseconds, always with the clock they were read from.

use std::fmt;
use std::sync::Arc;

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
            (_, Some(offset)) => Some(Self::new(offset.unix(self.nanos)?, Clock::Unix)),
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
    /// Unix time minus log time at the start of the log, in nanoseconds.
    pub nanos: i64,
    /// The difference at later times of the log, by ascending log time; empty if it never changes.
    pub knots: Arc<[UtcKnot]>,
    /// The rule's stable name, for example `gps`.
    pub rule: &'static str,
    /// What the rule rests on, in words: `240 fixes of vehicle_gps_position/0`.
    pub evidence: String,
}

/// The difference between the Unix clock and the log's clock at one time. Between two knots it
/// changes linearly; before the first and after the last knot it is constant.
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

/// Changes of the difference up to one millisecond are drift, not a clock that was set.
const DRIFT: i64 = 1_000_000;

impl UtcOffset {
    /// Returns an offset that never changes.
    pub fn new(nanos: i64, rule: &'static str, evidence: impl Into<String>) -> Self {
        Self { nanos, knots: Arc::default(), rule, evidence: evidence.into() }
    }

    /// Returns the same offset with the differences at later times.
    #[must_use]
    pub fn with_knots(mut self, knots: Vec<UtcKnot>) -> Self {
        self.knots = knots.into();
        self
    }

    /// Returns the Unix time of a log time; `None` beyond 64 bits.
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
                i64::try_from(i128::from(a.nanos) + (2 * change + length).div_euclid(2 * length)).ok()?
            }
        };
        log.checked_add(nanos)
    }

    /// Returns the first log time whose Unix time is not before `unix`; `None` beyond 64 bits.
    ///
    /// If the Unix clock was set back, a Unix time can occur twice.
    pub fn first_log_time(&self, unix: i64) -> Option<i64> {
        let unix = i128::from(unix);
        let before = match self.knots.iter().position(|knot| knot.unix() >= unix) {
            Some(0) => None,
            Some(reached) => Some(reached - 1),
            None => self.knots.len().checked_sub(1),
        };
        self.log_time_after(before, unix)
    }

    /// Returns the first log time from which on no Unix time is before `unix`; `None` beyond 64 bits.
    pub fn last_log_time(&self, unix: i64) -> Option<i64> {
        let unix = i128::from(unix);
        self.log_time_after(self.knots.iter().rposition(|knot| knot.unix() < unix), unix)
    }

    /// Returns the log time at which `unix` is reached after the knot with this number, whose Unix
    /// time is earlier. `None` stands for the time before the first knot.
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
                let passed = ((unix - a.unix()) * length + risen - 1).div_euclid(risen.max(1));
                i128::from(a.log) + passed.clamp(0, length)
            }
        };
        i64::try_from(log).ok()
    }

    /// Returns the difference if it stays the same to the millisecond; `None` if the Unix clock was
    /// set during the log.
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
    fn unix_time_is_reached_only_with_an_offset() {
        let boot = Timestamp::new(5_000_000_000, Clock::Boot);
        assert_eq!(boot.to_unix(None), None);
        let offset = UtcOffset::new(1_700_000_000_000_000_000, "gps", "");
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

    fn offset(knots: &[(i64, i64)]) -> UtcOffset {
        let knots = knots.iter().map(|(log, nanos)| UtcKnot { log: *log, nanos: *nanos });
        UtcOffset::new(0, "block_times", "").with_knots(knots.collect())
    }

    /// Log time 100 to 110 drifts by 10 ns; then the clock is set by 1000 ns.
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
