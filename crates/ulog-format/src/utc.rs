//! Computation of the UTC offset, which is the difference between Unix time and the log's clock.
//! Rules U1 to U6 of docs/formats/ulog.md, section 3.
//!
//! # Example
//!
//! A log has GPS rows with the timestamps 10 s, 11 s and 12 s. Their UTC times are 10:00:10.1,
//! 10:00:11.0 and 10:00:12.3, so the differences are 10:00:00.1, 10:00:00.0 and 10:00:00.3. The
//! offset is their lower median, 10:00:00.1. The median ignores single rows with a wrong time.

use std::ops::Range;

use rovelog_core::internal::layout::Layout;
use rovelog_core::internal::text::count;
use rovelog_core::{Clock, Diagnostics, Scalar, Timestamp, Topic, UtcOffset};

use crate::diagnostics as rules;
use crate::row::{Place, Row};
use crate::wire::HEADER_LEN;

/// 2000-01-01T00:00:00Z in microseconds. A later start time must be Unix time, because no vehicle
/// runs for 30 years after its boot.
pub(crate) const YEAR_2000: u64 = 946_684_800_000_000;

/// 2012-01-01T00:00:00Z in microseconds. ULog did not exist before this date. An earlier date comes
/// from a GPS receiver whose week number has rolled over, so its dates are 1024 weeks (19.6 years)
/// too early.
const YEAR_2012: i64 = 1_325_376_000_000_000;

/// Topics that contain UTC from GPS receivers, in order of preference.
const GPS_TOPICS: [&str; 3] = ["vehicle_gps_position", "vehicle_gnss", "sensor_gps"];

/// Fields of a GPS topic from which the UTC offset is computed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GpsFields {
    timestamp: Place,
    time_utc: Place,
    fix: Place,
    /// Index of the topic in [`GPS_TOPICS`]. Topics with a lower index are preferred.
    rank: u8,
}

impl GpsFields {
    /// Finds the UTC fields in the layout of a topic. Returns `None` if `type_name` is not a GPS
    /// topic, or if a field is missing.
    pub(crate) fn of(type_name: &str, layout: &Layout) -> Option<Self> {
        let rank = GPS_TOPICS.iter().position(|name| *name == type_name)?;
        let scalar = |path: &str, scalar| layout.place(path).filter(|place| place.is_scalar(scalar));
        let fix = ["fix_type", "receiver.fix_type"].iter().find_map(|path| scalar(path, Scalar::UInt8))?;
        let time_utc = ["time_utc_usec", "receiver.time_utc_usec"];
        Some(Self {
            timestamp: scalar("timestamp", Scalar::UInt64)?,
            time_utc: time_utc.iter().find_map(|path| scalar(path, Scalar::UInt64))?,
            fix,
            rank: u8::try_from(rank).expect("three topics"),
        })
    }

    /// Returns the timestamp of a GPS row, and the difference between UTC and this timestamp. Both
    /// are in microseconds. Returns `None` if the row has no 3D fix or no plausible times.
    fn offset(&self, row: &Row<'_>) -> Option<(u64, i64)> {
        let timestamp: u64 = row.read(self.timestamp)?;
        let time_utc: u64 = row.read(self.time_utc)?;
        let fix: u8 = row.read(self.fix)?;
        // A timestamp of 0 is not the time of a GPS fix, because a receiver has no fix at boot.
        let placed = fix >= 3 && time_utc >= YEAR_2000 && timestamp > 0;
        let micros = || i64::try_from(time_utc).ok()?.checked_sub_unsigned(timestamp);
        placed.then(micros).flatten().map(|micros| (timestamp, micros))
    }
}

/// A GPS fix with its UTC offset.
#[derive(Clone, Copy, Debug)]
struct Fix {
    /// Offset in the file of the row with the fix.
    at: u64,
    /// Timestamp of the row with the fix, in microseconds.
    time: u64,
    /// Difference between UTC and the timestamp, in microseconds.
    micros: i64,
}

/// The GPS fixes of a topic.
#[derive(Clone, Debug)]
struct TopicFixes {
    /// Preference of the topic. Topics with lower numbers are preferred.
    rank: u8,
    multi_id: u8,
    /// Number of the topic that contains the fixes.
    series: u32,
    /// GPS fixes with plausible dates, in file order.
    fixes: Vec<Fix>,
    /// Number of GPS fixes with dates before ULog existed.
    old: u64,
    /// First GPS fix with a date before ULog existed.
    first_old: Option<Fix>,
}

/// The GPS fixes of a log, by topic.
#[derive(Clone, Debug, Default)]
pub(crate) struct GpsClock {
    series: Vec<TopicFixes>,
}

/// The UTC offset computed from the GPS fixes of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GpsOffset {
    /// Number of the topic that contains the fixes.
    pub(crate) series: u32,
    /// Number of GPS fixes from which the offset was computed.
    pub(crate) fixes: usize,
    /// Lower median of the differences between UTC and the timestamps, in microseconds.
    pub(crate) micros: i64,
    /// Largest minus smallest difference between UTC and the timestamps, in microseconds.
    pub(crate) spread: i64,
}

impl GpsClock {
    /// Adds a row of a GPS topic. `at` is the offset of the row in the file.
    pub(crate) fn row(&mut self, at: u64, series: u32, multi_id: u8, type_name: &str, row: &Row<'_>) {
        let Some(fields) = GpsFields::of(type_name, row.layout()) else { return };
        let Some((time, micros)) = fields.offset(row) else { return };
        let place = self.series.iter().position(|known| known.series == series).unwrap_or_else(|| {
            let (rank, fixes) = (fields.rank, Vec::new());
            self.series.push(TopicFixes { rank, multi_id, series, fixes, old: 0, first_old: None });
            self.series.len() - 1
        });
        let (known, fix) = (&mut self.series[place], Fix { at, time, micros });
        if micros.saturating_add_unsigned(time) < YEAR_2012 {
            known.old += 1;
            known.first_old.get_or_insert(fix);
        } else {
            known.fixes.push(fix);
        }
    }

    /// Computes the UTC offset for a byte range of the file. It is computed from the most preferred
    /// topic that has GPS fixes in this range.
    pub(crate) fn offset(&self, range: &Range<u64>) -> Option<GpsOffset> {
        let (series, fixes) = self.best(range)?;
        let mut offsets: Vec<_> = fixes.iter().map(|fix| fix.micros).collect();
        offsets.sort_unstable();
        let spread = offsets.last()?.checked_sub(*offsets.first()?)?;
        Some(GpsOffset {
            series: series.series,
            fixes: offsets.len(),
            // The lower median is the offset of an actual fix, even if the number of fixes is even.
            micros: offsets[(offsets.len() - 1) / 2],
            spread,
        })
    }

    /// Returns the most preferred topic that has GPS fixes in a byte range of the file, and these
    /// fixes.
    fn best(&self, range: &Range<u64>) -> Option<(&TopicFixes, &[Fix])> {
        let within = |series: &'_ TopicFixes| {
            let from = series.fixes.partition_point(|fix| fix.at < range.start);
            from..series.fixes.partition_point(|fix| fix.at < range.end)
        };
        let with_fixes = self.series.iter().filter(|series| !within(series).is_empty());
        let best = with_fixes.min_by_key(|series| (series.rank, series.multi_id, series.series))?;
        Some((best, &best.fixes[within(best)]))
    }

    /// Reports GPS dates before 2012 and jumps of UTC within a recording (rules U5 and U6 of
    /// docs/formats/ulog.md).
    pub(crate) fn note(&self, sessions: &[Range<u64>], topics: &[Topic], notes: &mut Diagnostics) {
        let name = |series: &TopicFixes| topics.get(series.series as usize).map_or("", |topic| &topic.name);
        for series in &self.series {
            let Some(first) = series.first_old else { continue };
            notes.push(&rules::GPS_DATE, first.at..first.at + HEADER_LEN, || {
                let utc = first.micros.saturating_add_unsigned(first.time);
                let date = |micros: i64| {
                    let utc = Timestamp::new(micros.saturating_mul(1000), Clock::Unix).to_utc();
                    utc.map_or_else(String::new, |utc| utc.date_naive().to_string())
                };
                format!(
                    "{} of {} before 2012 (first {}) are not used for UTC, because the week number of the \
                     receiver rolled over; the first date plus 1024 weeks is {}",
                    count(series.old, "date"),
                    name(series),
                    date(utc),
                    date(utc.saturating_add(ROLLOVER)),
                )
            });
        }
        for range in sessions {
            let Some((series, fixes)) = self.best(range) else { continue };
            let jumps: Vec<_> = jumps(fixes).collect();
            let Some((first, by)) = jumps.first().copied() else { continue };
            notes.push(&rules::UTC_JUMPS, first.at..first.at + HEADER_LEN, || {
                let seconds = first.time as f64 / 1e6;
                let more = match jumps.len() {
                    1 => String::new(),
                    all => format!("; {} in all", count(all as u64, "jump")),
                };
                let by = by as f64 / 1e6;
                format!(
                    "the UTC time of {} jumps by {by:+.3} s at {seconds:.3} s on the log clock{more}",
                    name(series)
                )
            });
        }
    }
}

/// Minimum size of a jump of UTC in microseconds. Smaller differences are normal, because the rows
/// of GPS fixes are late by fractions of a second.
const UTC_JUMP: u64 = 900_000;

/// Number of GPS fixes that must agree on each side of a jump. A single wrong fix is not a jump.
const AGREEING: usize = 3;

/// Returns the first GPS fix after each jump of UTC, with the size of the jump in microseconds.
fn jumps(fixes: &[Fix]) -> impl Iterator<Item = (Fix, i64)> + '_ {
    let agree = |fixes: &[Fix]| fixes.iter().all(|fix| fix.micros.abs_diff(fixes[0].micros) < UTC_JUMP / 2);
    fixes.windows(2 * AGREEING).filter_map(move |near| {
        let (before, behind) = near.split_at(AGREEING);
        let by = behind[0].micros.saturating_sub(before[AGREEING - 1].micros);
        (by.unsigned_abs() > UTC_JUMP && agree(before) && agree(behind)).then_some((behind[0], by))
    })
}

/// Period in microseconds after which the week number of GPS starts again at 0.
const ROLLOVER: i64 = 1024 * 7 * 86_400_000_000;

/// Returns the UTC offset according to the first rule among U1 to U3 of docs/formats/ulog.md that
/// applies.
///
/// `start` is the start time in the header. `boot_time` is the value of `boot_time_utc_us`. `gps`
/// is the UTC offset computed from GPS, with the name of its topic.
pub(crate) fn offset(
    start: u64,
    boot_time: Option<u64>,
    gps: Option<(&GpsOffset, &str)>,
) -> Option<UtcOffset> {
    let place =
        |micros: i64, rule, evidence: String| Some(UtcOffset::new(micros.checked_mul(1000)?, rule, evidence));
    let fixes = |gps: &GpsOffset, topic: &str| format!("{} fixes of {topic}", gps.fixes);
    if start >= YEAR_2000 {
        return place(0, "clock_is_unix", "the start time is a Unix time".to_owned());
    }
    if let Some(boot_time) = boot_time.filter(|time| *time > 0).and_then(|time| i64::try_from(time).ok()) {
        let evidence = match gps {
            Some((gps, topic)) => {
                let apart = gps.micros.saturating_sub(boot_time) as f64 / 1e6;
                format!("an info message; {} differ from it by {apart:+.3} s", fixes(gps, topic))
            }
            None => "an info message".to_owned(),
        };
        return place(boot_time, "boot_time_utc_us", evidence);
    }
    let (gps, topic) = gps?;
    place(gps.micros, "gps", format!("{}, spread {:.3} s", fixes(gps, topic), gps.spread as f64 / 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_applies_wins() {
        let gps = GpsOffset { series: 0, fixes: 3, micros: 1_700_000_000_684_000, spread: 2000 };
        let gps = Some((&gps, "sensor_gps/0"));
        let rule = |start, boot, gps| offset(start, boot, gps).map(|o| (o.rule, o.nanos));
        assert_eq!(rule(YEAR_2000, Some(5), gps), Some(("clock_is_unix", 0)));
        assert_eq!(
            rule(7, Some(1_700_000_000_000_000), gps),
            Some(("boot_time_utc_us", 1_700_000_000_000_000_000))
        );
        assert_eq!(rule(7, Some(0), gps), Some(("gps", 1_700_000_000_684_000_000)));
        assert_eq!(rule(7, None, None), None);
    }

    #[test]
    fn a_jump_needs_fixes_that_agree_on_both_sides() {
        let found = |offsets: &[i64]| {
            let fix = |(at, micros): (u64, &i64)| Fix { at, time: at, micros: *micros };
            let fixes: Vec<_> = (0..).zip(offsets).map(fix).collect();
            jumps(&fixes).map(|(fix, by)| (fix.at, by)).collect::<Vec<_>>()
        };
        let second = 1_000_000;
        assert_eq!(found(&[0, 5, 0, 2 * second, 2 * second, 2 * second + 7]), [(3, 2 * second)]);
        assert_eq!(found(&[0, 0, 0, 300_000, 0, 0, 0]), []);
        // A single late GPS fix is not a jump.
        assert_eq!(found(&[0, 0, 0, 2 * second, 0, 0, 0]), []);
    }

    #[test]
    fn a_difference_between_the_rules_is_reported() {
        let gps = GpsOffset { series: 0, fixes: 59, micros: 1_700_000_000_684_000, spread: 0 };
        let offset = offset(7, Some(1_700_000_000_000_000), Some((&gps, "sensor_gps/0"))).unwrap();
        assert_eq!(offset.evidence, "an info message; 59 fixes of sensor_gps/0 differ from it by +0.684 s");
    }
}
