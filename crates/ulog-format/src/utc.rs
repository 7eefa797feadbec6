//! Where the log's clock is on the Unix clock. Rules U1 to U4 of docs/formats/ulog.md, section 3.

use rovelog_core::layout::Layout;
use rovelog_core::{Scalar, UtcOffset};

use crate::row::{Place, Row};

/// 2000-01-01T00:00:00Z in microseconds: a later time can only be a Unix time.
pub(crate) const YEAR_2000: u64 = 946_684_800_000_000;

/// Topics that may hold GPS time, the first that has any wins.
const GPS_TOPICS: [&str; 3] = ["vehicle_gps_position", "vehicle_gnss", "sensor_gps"];

/// The fields of a GPS topic that place the clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GpsFields {
    timestamp: Place,
    time_utc: Place,
    fix: Place,
    rank: u8,
}

impl GpsFields {
    /// Returns the fields of a topic of type `type_name`; `None` where it is no GPS topic or lacks
    /// one.
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

    /// UTC minus log time of a row with a fix and a time, microseconds.
    fn offset(&self, row: &Row<'_>) -> Option<i64> {
        let timestamp: u64 = row.read(self.timestamp)?;
        let time_utc: u64 = row.read(self.time_utc)?;
        let fix: u8 = row.read(self.fix)?;
        // A receiver has no fix at boot: 0 is no time of a fix.
        let placed = fix >= 3 && time_utc >= YEAR_2000 && timestamp > 0;
        placed.then(|| i64::try_from(time_utc).ok()?.checked_sub_unsigned(timestamp)).flatten()
    }
}

/// What the GPS topics of a log say about UTC.
#[derive(Clone, Debug, Default)]
pub(crate) struct GpsClock {
    /// Per series: rank of the topic, instance, series, offsets of its fixes.
    series: Vec<(u8, u8, u32, Vec<i64>)>,
}

/// The offset by GPS, with the fixes it rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GpsOffset {
    /// The series of the topic.
    pub(crate) series: u32,
    /// Fixes with a time.
    pub(crate) fixes: usize,
    /// Lower median of UTC minus log time, microseconds.
    pub(crate) micros: i64,
    /// Largest minus smallest offset, microseconds.
    pub(crate) spread: i64,
}

impl GpsClock {
    /// Takes a row of a GPS topic.
    pub(crate) fn row(&mut self, series: u32, multi_id: u8, type_name: &str, row: &Row<'_>) {
        let Some(fields) = GpsFields::of(type_name, row.layout()) else { return };
        let Some(offset) = fields.offset(row) else { return };
        match self.series.iter_mut().find(|(_, _, known, _)| *known == series) {
            Some((.., offsets)) => offsets.push(offset),
            None => self.series.push((fields.rank, multi_id, series, vec![offset])),
        }
    }

    /// Returns the offset by the best topic that has any fix.
    pub(crate) fn offset(&self) -> Option<GpsOffset> {
        let (_, _, series, offsets) =
            self.series.iter().min_by_key(|(rank, multi_id, series, _)| (rank, multi_id, series))?;
        let mut offsets = offsets.clone();
        offsets.sort_unstable();
        let spread = offsets.last()?.checked_sub(*offsets.first()?)?;
        Some(GpsOffset {
            series: *series,
            fixes: offsets.len(),
            micros: offsets[(offsets.len() - 1) / 2],
            spread,
        })
    }
}

/// Applies the rules in order. `start` is the header's time, `boot_time` the information of that
/// name.
pub(crate) fn offset(
    start: u64,
    boot_time: Option<u64>,
    gps: Option<(&GpsOffset, &str)>,
) -> Option<UtcOffset> {
    let place =
        |micros: i64, rule, evidence| Some(UtcOffset { nanos: micros.checked_mul(1000)?, rule, evidence });
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
    fn a_difference_between_the_rules_is_reported() {
        let gps = GpsOffset { series: 0, fixes: 59, micros: 1_700_000_000_684_000, spread: 0 };
        let offset = offset(7, Some(1_700_000_000_000_000), Some((&gps, "sensor_gps/0"))).unwrap();
        assert_eq!(offset.evidence, "an info message; 59 fixes of sensor_gps/0 differ from it by +0.684 s");
    }
}
