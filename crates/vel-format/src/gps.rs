//! Inference of the unit of positions, and of the log's UTC offset from the times that positions
//! contain. See section 6 of docs/formats/vel.md.

use chrono::{DateTime, NaiveDate, Utc};
use rovelog_core::UtcOffset;
use rovelog_core::time::Seconds;

use crate::wire::GpsData;

/// Unit in which latitude and longitude are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AngleUnit {
    /// Angles are in degrees.
    #[default]
    Degrees,
    /// Angles are degrees and minutes in one number, `ddmm.mmmm`, as in NMEA.
    DegreesMinutes,
    /// Angles are in radians.
    Radians,
}

impl AngleUnit {
    const ALL: [Self; 3] = [Self::Degrees, Self::DegreesMinutes, Self::Radians];

    /// Returns the name of the unit in text output and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Degrees => "degrees",
            Self::DegreesMinutes => "ddmm.mmmm",
            Self::Radians => "radians",
        }
    }

    /// Returns the unit's symbol for a column of stored angles.
    #[cfg(feature = "arrow")]
    pub(crate) const fn symbol(self) -> &'static str {
        match self {
            Self::Degrees => "deg",
            Self::DegreesMinutes => "ddmm.mmmm",
            Self::Radians => "rad",
        }
    }

    /// Converts a stored angle to degrees.
    pub fn degrees(self, value: f64) -> f64 {
        match self {
            Self::Degrees => value,
            Self::DegreesMinutes => {
                let whole = (value.abs() / 100.0).floor();
                (whole + (value.abs() - 100.0 * whole) / 60.0).copysign(value)
            }
            Self::Radians => value.to_degrees(),
        }
    }

    /// Returns whether a stored position would be valid in this unit.
    fn allows(self, latitude: f64, longitude: f64) -> bool {
        let minutes = |value: f64| value.abs() % 100.0 < 60.0;
        let plausible = self != Self::DegreesMinutes || (minutes(latitude) && minutes(longitude));
        plausible && self.degrees(latitude).abs() <= 90.0 && self.degrees(longitude).abs() <= 180.0
    }
}

/// A position message, with its time on the log's clock.
#[derive(Clone, Copy, Debug)]
pub struct Fix {
    /// Time of the message in nanoseconds since the recording program started.
    pub nanos: i64,
    /// Offset of the message from the start of the file.
    pub offset: u64,
    /// Content of the message.
    pub data: GpsData,
}

impl Fix {
    /// Returns whether the position can be used. The quality must not be 0, and the numbers must be
    /// finite.
    pub fn is_usable(&self) -> bool {
        let data = &self.data;
        data.quality.get() != 0 && data.latitude.get().is_finite() && data.longitude.get().is_finite()
    }

    /// Returns the UTC time according to the receiver. Returns `None` if the date or the time is
    /// invalid. Two-digit years are 1980 to 2079, because GPS started in 1980.
    pub fn utc(&self) -> Option<DateTime<Utc>> {
        let data = &self.data;
        let year = match data.year.get() {
            year @ 0..=79 => year + 2000,
            year @ 80..=99 => year + 1900,
            year => year,
        };
        let [month, day, hour, minute, second] =
            [data.month, data.day, data.hour, data.minute, data.second].map(|n| u32::try_from(n.get()).ok());
        let midnight = NaiveDate::from_ymd_opt(year, month?, day?)?;
        // `chrono` does not support second 60. So a leap second becomes the second after it.
        let second = second?;
        let time = midnight.and_hms_opt(hour?, minute?, second.min(59))?.and_utc();
        match second {
            0..=59 => Some(time),
            60 => time.checked_add_signed(chrono::TimeDelta::seconds(1)),
            _ => None,
        }
    }
}

/// Returns the name of a fix quality. The numbers have the same meaning as in NMEA.
pub fn quality_name(quality: i32) -> &'static str {
    match quality {
        0 => "invalid",
        1 => "gps",
        2 => "dgps",
        3 => "pps",
        4 => "rtk",
        5 => "float rtk",
        6 => "estimated",
        7 => "manual",
        8 => "simulator",
        _ => "other",
    }
}

/// The meaning of the position messages in a log, as inferred from the log.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct GpsMeaning {
    /// Unit of the stored latitudes and longitudes.
    pub unit: AngleUnit,
    /// Evidence for the inferred unit.
    pub evidence: String,
    /// True if the unit is a default, because the log does not determine it.
    pub assumed: bool,
    /// UTC offset of the log's clock. `None` if no position has a usable date.
    pub utc: Option<UtcFit>,
}

impl GpsMeaning {
    fn new(unit: AngleUnit, evidence: String, assumed: bool) -> Self {
        Self { unit, evidence, assumed, utc: None }
    }
}

/// UTC offset of the log's clock, inferred from the times that positions contain.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct UtcFit {
    /// UTC minus log time in nanoseconds, as the lower median over all used positions.
    pub offset_nanos: i64,
    /// UTC minus log time in nanoseconds, as the maximum over all used positions. The true offset
    /// is at least this large, because receivers report whole seconds, and report them late.
    pub bound_nanos: i64,
    /// Difference between the maximum and the minimum of UTC minus log time over all used
    /// positions, in nanoseconds.
    pub spread_nanos: i64,
    /// Drift of the log's clock against UTC in ppm, positive if the clock is too slow. `None` if
    /// the log is too short or the drift is small.
    pub drift_ppm: Option<f64>,
    /// Number of positions from which the offset was inferred.
    pub fixes: usize,
    /// Positions whose date was wrong by whole days. Each item has the offset of the message and
    /// the number of days.
    pub unwrapped: Vec<(u64, i64)>,
}

impl UtcFit {
    /// Converts a time of the log to UTC. Returns `None` if the result is beyond the range of
    /// `chrono`.
    pub fn at(&self, nanos: i64) -> Option<DateTime<Utc>> {
        Some(DateTime::from_timestamp_nanos(nanos.checked_add(self.offset_nanos)?))
    }

    /// Returns the UTC offset as the type that all log formats use.
    pub fn offset(&self) -> UtcOffset {
        let drift = self.drift_ppm.map_or(String::new(), |ppm| format!(", drift {ppm:.1} ppm"));
        let late = Seconds(self.bound_nanos.saturating_sub(self.offset_nanos));
        let fixes = if self.fixes == 1 { "1 fix".to_owned() } else { format!("{} fixes", self.fixes) };
        let spread = Seconds(self.spread_nanos);
        let evidence = format!("{fixes} of GPSDataM, spread {spread} s, at most {late} s early{drift}");
        UtcOffset::new(self.offset_nanos, "gps", evidence)
    }
}

const DAY: i64 = 86_400 * 1_000_000_000;

/// Infers the unit of positions and the UTC offset of a log. `fixes` are all position messages of
/// the log in file order.
pub fn infer(fixes: &[Fix]) -> GpsMeaning {
    let usable: Vec<&Fix> = fixes.iter().filter(|fix| fix.is_usable()).collect();
    GpsMeaning { utc: fit(&usable), ..infer_unit(&usable) }
}

/// Infers the unit of positions. The UTC offset of the result is `None`.
fn infer_unit(usable: &[&Fix]) -> GpsMeaning {
    let place = |fix: &&Fix| (fix.data.latitude.get(), fix.data.longitude.get());
    let possible: Vec<AngleUnit> = AngleUnit::ALL
        .into_iter()
        .filter(|unit| usable.iter().map(place).all(|(lat, lon)| unit.allows(lat, lon)))
        .collect();
    match possible[..] {
        _ if usable.is_empty() => GpsMeaning::new(AngleUnit::Degrees, "no usable position".to_owned(), true),
        [] => GpsMeaning::new(AngleUnit::Degrees, "no unit fits all positions".to_owned(), true),
        [only] => {
            let why = format!("the only unit that fits {} positions", usable.len());
            GpsMeaning::new(only, why, false)
        }
        _ => by_distance(usable, &possible),
    }
}

/// Selects the unit in which the distance between positions best matches the speed of the vehicle.
fn by_distance(usable: &[&Fix], possible: &[AngleUnit]) -> GpsMeaning {
    let mut path = 0.0;
    let mut errors = vec![0.0; possible.len()];
    for pair in usable.windows(2) {
        let seconds = (pair[1].nanos.saturating_sub(pair[0].nanos)) as f64 / 1e9;
        let speed = f64::from(pair[1].data.speed.get()) / 3.6;
        if !(0.01..=10.0).contains(&seconds) || !speed.is_finite() {
            continue;
        }
        path += speed * seconds;
        for (unit, error) in possible.iter().zip(&mut errors) {
            *error += (distance(pair[0], pair[1], *unit) - speed * seconds).abs();
        }
    }
    let best = (0..possible.len()).min_by(|a, b| errors[*a].total_cmp(&errors[*b])).unwrap_or(0);
    let others = (0..possible.len()).filter(|i| *i != best).map(|i| errors[i]).fold(f64::INFINITY, f64::min);
    if path < 1.0 || errors[best] * 2.0 > others {
        let why = if path < 1.0 { "the vehicle hardly moves" } else { "the speed does not decide" };
        let why = format!("{} units fit; {why}", possible.len());
        return GpsMeaning::new(AngleUnit::Degrees, why, true);
    }
    let why =
        format!("the distance between fixes differs by {:.1} m from {path:.0} m by speed", errors[best]);
    GpsMeaning::new(possible[best], why, false)
}

/// Returns the distance between two positions in meters, on a sphere.
fn distance(a: &Fix, b: &Fix, unit: AngleUnit) -> f64 {
    let at = |fix: &Fix| {
        let (lat, lon) = (unit.degrees(fix.data.latitude.get()), unit.degrees(fix.data.longitude.get()));
        (lat.to_radians(), lon.to_radians())
    };
    let ((lat_a, lon_a), (lat_b, lon_b)) = (at(a), at(b));
    let (north, east) = (lat_b - lat_a, (lon_b - lon_a) * f64::midpoint(lat_a, lat_b).cos());
    6_371_000.0 * north.hypot(east)
}

// Example: the program started at 23:59:50 UTC on June 14. At midnight, the date of the receiver
// changed one second too late:
//
//     log time     receiver             UTC minus log time
//      9 s         June 14, 23:59:59    June 14, 23:59:50
//     10 s         June 14, 00:00:00    June 13, 23:59:50, a day off the median: a day is added
//     11 s         June 15, 00:00:01    June 14, 23:59:50
//
// After this correction, all positions give the same offset.

/// UTC offset according to a position.
struct OffsetSample {
    /// UTC minus log time in nanoseconds.
    utc: i64,
    /// Log time of the position in nanoseconds.
    nanos: i64,
    /// Offset of the message with the position.
    at: u64,
}

/// Infers the UTC offset of the log's clock from usable positions.
fn fit(usable: &[&Fix]) -> Option<UtcFit> {
    let sample = |fix: &&Fix| {
        let utc = fix.utc()?.timestamp_nanos_opt()?.checked_sub(fix.nanos)?;
        Some(OffsetSample { utc, nanos: fix.nanos, at: fix.offset })
    };
    let mut samples: Vec<_> = usable.iter().filter_map(sample).collect();
    let rough = lower_median(samples.iter().map(|sample| sample.utc).collect())?;
    let mut unwrapped = Vec::new();
    for sample in &mut samples {
        let off = sample.utc.saturating_sub(rough);
        let days = off.saturating_add(DAY / 2).div_euclid(DAY);
        // If an offset is off by whole days, with a tolerance of a minute, the date changed too
        // late, or the receiver's week number overflowed. Other differences are noise.
        let Some(whole) = days.checked_mul(DAY).filter(|_| days != 0) else { continue };
        if off.abs_diff(whole) < 60_000_000_000
            && let Some(unwound) = sample.utc.checked_sub(whole)
        {
            sample.utc = unwound;
            unwrapped.push((sample.at, days));
        }
    }
    let all: Vec<i64> = samples.iter().map(|sample| sample.utc).collect();
    let (min, max) = (all.iter().min().copied()?, all.iter().max().copied()?);
    let (offset_nanos, spread_nanos) = (lower_median(all)?, max.saturating_sub(min));
    let (drift_ppm, fixes) = (drift(&samples), samples.len());
    Some(UtcFit { offset_nanos, bound_nanos: max, spread_nanos, drift_ppm, fixes, unwrapped })
}

fn lower_median(mut values: Vec<i64>) -> Option<i64> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable(middle).1)
}

/// Returns the slope of the offsets over time in ppm. Returns `None` if it is at most 20 ppm, or if
/// the log is shorter than ten minutes.
fn drift(samples: &[OffsetSample]) -> Option<f64> {
    let (first, last) = (samples.first()?, samples.last()?);
    if last.nanos.saturating_sub(first.nanos) < 600_000_000_000 {
        return None;
    }
    let n = samples.len() as f64;
    let seconds = |to: i64, from: i64| to.saturating_sub(from) as f64 / 1e9;
    let at = |sample: &OffsetSample| (seconds(sample.nanos, first.nanos), seconds(sample.utc, first.utc));
    let (mean_x, mean_y) = samples.iter().map(at).fold((0.0, 0.0), |(a, b), (x, y)| (a + x / n, b + y / n));
    let (over, under) = samples.iter().map(at).fold((0.0, 0.0), |(over, under), (x, y)| {
        (over + (x - mean_x) * (y - mean_y), under + (x - mean_x).powi(2))
    });
    let ppm = over / under * 1e6;
    (ppm.abs() > 20.0).then_some(ppm)
}

#[cfg(test)]
mod tests {
    use rovelog_core::internal::wire::{F32Le, F64Le, I32Le};

    use super::*;

    fn fix(seconds: i64, latitude: f64, longitude: f64, speed: f32) -> Fix {
        let zero = [0_u8; 80];
        let mut data: GpsData = zerocopy::FromBytes::read_from_bytes(&zero[..]).unwrap();
        (data.latitude, data.longitude) = (F64Le::new(latitude), F64Le::new(longitude));
        (data.quality, data.speed) = (I32Le::new(1), F32Le::new(speed));
        (data.hour, data.minute, data.second) = (I32Le::new(23), I32Le::new(59), I32Le::new(50));
        (data.day, data.month, data.year) = (I32Le::new(14), I32Le::new(6), I32Le::new(10));
        data.second = I32Le::new(50 + i32::try_from(seconds).unwrap());
        if seconds >= 10 {
            // After midnight, the date changes one second too late.
            (data.hour, data.minute) = (I32Le::new(0), I32Le::new(0));
            data.second = I32Le::new(i32::try_from(seconds).unwrap() - 10);
            data.day = I32Le::new(if seconds == 10 { 14 } else { 15 });
        }
        Fix { nanos: seconds * 1_000_000_000, offset: 0, data }
    }

    #[test]
    fn units_are_inferred_from_range_or_distance() {
        assert_eq!(infer(&[fix(0, 5021.7698, 733.5059, 0.0)]).unit, AngleUnit::DegreesMinutes);
        assert!((AngleUnit::DegreesMinutes.degrees(-5021.6) + 50.36).abs() < 1e-9);
        // These positions are valid in all units. At 18 km/h, the vehicle moves north by 5 m per
        // second, which are 4.5e-5 degrees.
        let north = |unit: f64| -> Vec<Fix> {
            (0..10).map(|i| fix(i.into(), 0.5 + f64::from(i) * unit, 0.1, 18.0)).collect()
        };
        let degree = 5.0 / 6_371_000.0_f64;
        for (step, unit) in [
            (degree.to_degrees(), AngleUnit::Degrees),
            (degree, AngleUnit::Radians),
            (degree.to_degrees() * 60.0, AngleUnit::DegreesMinutes),
        ] {
            let meaning = infer(&north(step));
            assert_eq!((meaning.unit, meaning.assumed), (unit, false), "{}", meaning.evidence);
        }
        assert!(infer(&[fix(0, 0.5, 0.1, 0.0), fix(1, 0.5, 0.1, 0.0)]).assumed);
    }

    #[test]
    fn lagging_dates_are_corrected() {
        let fixes: Vec<Fix> = (0..20).map(|i| fix(i, 50.0, 7.0, 0.0)).collect();
        let fit = infer(&fixes).utc.unwrap();
        assert_eq!((fit.spread_nanos, fit.unwrapped.len()), (0, 1));
        assert_eq!(fit.at(0).unwrap().to_rfc3339(), "2010-06-14T23:59:50+00:00");
        assert_eq!(fit.fixes, 20);
    }
}
