//! Reads the track of a VEL log.

use rovelog::vel_format::VelReader;
use rovelog::vel_format::gps::{AngleUnit, Fix as VelFix};
use rovelog::{Clock, Error, ErrorKind, LogReader as _, Timestamp};

use super::build::LineBuilder;
use super::model::{Fix, Track, TrackPoint, is_on_earth};
use super::options::{Tally, TrackOptions};

/// Name of the only topic in VEL logs that has positions.
const TOPIC: &str = "GPSDataM";

pub(super) fn track(reader: &VelReader, options: &TrackOptions) -> Result<(Track, Tally), Error> {
    if let Some(odd) = options.topics.iter().find(|name| *name != TOPIC) {
        let why = format!("topic {odd} contains no positions");
        return Err(Error::new("vel", ErrorKind::InvalidArgument, None, why)
            .with_next(format!("name the topic {TOPIC}, which contains the positions")));
    }
    let mut tally = Tally::default();
    let mut line = LineBuilder::new(TOPIC, options.all);
    let unit = reader.meaning().gps.unit;
    let mut fixes: Vec<_> = reader.fixes().iter().collect();
    // Fixes are stored in file order, which is not always time order.
    fixes.sort_by_key(|fix| fix.nanos);
    for fix in fixes.into_iter().filter(|fix| options.keeps_time(fix.nanos)) {
        tally.rows += 1;
        let data = &fix.data;
        let quality = quality(data.quality.get());
        // If the caller set a minimum fix, a fix of unknown quality is not used.
        let is_worse = quality
            .map_or(options.min_fix.is_some(), |quality| quality.level() < options.min_fix.unwrap_or(3));
        if !fix.is_usable() || is_worse {
            tally.without_fix += 1;
            continue;
        }
        let Some((latitude, longitude)) = place(fix, unit) else {
            tally.implausible += 1;
            continue;
        };
        let mut point = TrackPoint::new(Timestamp::new(fix.nanos, Clock::LogStart), latitude, longitude);
        let finite = |value: f32| value.is_finite().then_some(value);
        let height = finite(data.height.get()).map(f64::from);
        let geoid = finite(data.geoid_height.get()).map(f64::from);
        point.altitude_msl = height;
        point.altitude_ellipsoid = height.zip(geoid).map(|(height, geoid)| height + geoid);
        point.fix = quality;
        point.satellites = u8::try_from(data.satellites.get()).ok();
        point.hdop = finite(data.hdop.get());
        // The receiver reports the speed in km/h.
        point.speed = finite(data.speed.get()).map(|speed| speed / 3.6);
        point.course = course(fix);
        line.push(point);
    }
    let mut track = Track { utc: reader.info().utc.clone(), ..Track::default() };
    line.finish_in(&mut track, &mut tally);
    Ok((track, tally))
}

/// Returns the position of a fix in degrees, or `None` if it has no valid position.
pub(crate) fn place(fix: &VelFix, unit: AngleUnit) -> Option<(f64, f64)> {
    let (latitude, longitude) =
        (unit.degrees(fix.data.latitude.get()), unit.degrees(fix.data.longitude.get()));
    (fix.is_usable() && is_on_earth(latitude, longitude)).then_some((latitude, longitude))
}

/// Returns the course over ground in degrees. Returns `None` below 1 km/h, because the course of a
/// vehicle at rest is noise.
pub(crate) fn course(fix: &VelFix) -> Option<f32> {
    let course = fix.data.course.get();
    (course.is_finite() && fix.data.speed.get() >= 1.0).then_some(course)
}

/// Converts the fix quality number of NMEA messages. Receivers that report this number also report
/// a height, so the fix is taken as three-dimensional.
fn quality(quality: i32) -> Option<Fix> {
    match quality {
        1 | 3 => Some(Fix::ThreeD),
        2 => Some(Fix::Differential),
        4 => Some(Fix::RtkFixed),
        5 => Some(Fix::RtkFloat),
        6 => Some(Fix::Extrapolated),
        _ => None,
    }
}
