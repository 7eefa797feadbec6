//! Reads the track of a ROS bag from messages of type `sensor_msgs/NavSatFix`.

use rovelog::core::backend::Backend as _;
use rovelog::rosbag12::BagReader;
use rovelog::{Error, ErrorKind, LogReader as _, Select, Topic, Value};

use super::build::LineBuilder;
use super::model::{Fix, Track, TrackPoint, is_on_earth};
use super::options::{Tally, TrackOptions};

/// Type of the ROS messages that contain positions.
const TYPE: &str = "sensor_msgs/NavSatFix";

pub(super) fn track(bag: &BagReader, options: &TrackOptions) -> Result<(Track, Tally), Error> {
    let has_positions = |topic: &&Topic| topic.type_name == TYPE;
    for name in &options.topics {
        if bag.topic(name).is_none_or(|topic| !has_positions(&topic.get())) {
            let why = format!("topic {name} contains no positions");
            return Err(Error::new("rosbag", ErrorKind::InvalidArgument, None, why)
                .with_next(format!("name a topic of type {TYPE}, which contains positions")));
        }
    }
    let mut tally = Tally::default();
    let mut track = Track { utc: bag.info().utc.clone(), ..Track::default() };
    let chosen = |topic: &&Topic| options.topics.is_empty() || options.topics.contains(&topic.name);
    for topic in bag.topics().iter().filter(has_positions).filter(chosen) {
        let mut line = LineBuilder::new(&topic.name, options.all);
        for record in bag.intact_records(&Select::topic(&topic.name).between(options.start, options.end)) {
            let record = record?;
            tally.rows += 1;
            let Some(time) = record.time else {
                tally.untimed += 1;
                continue;
            };
            let Ok(value) = record.value() else {
                tally.undecodable += 1;
                continue;
            };
            let number = |name: &str| value.get(name).and_then(Value::as_f64);
            let status = value.get("status").and_then(|status| status.get("status")?.as_f64());
            let fix = status.and_then(quality);
            // A `NavSatFix` message does not tell fixes in two and three dimensions apart, so each
            // fix is taken as three-dimensional.
            if fix.is_none_or(|fix| fix.level() < options.min_fix.unwrap_or(3)) {
                tally.without_fix += 1;
                continue;
            }
            let place = number("latitude").zip(number("longitude"));
            let Some((latitude, longitude)) = place.filter(|(north, east)| is_on_earth(*north, *east)) else {
                tally.implausible += 1;
                continue;
            };
            let mut point = TrackPoint::new(time, latitude, longitude);
            // The definition of `sensor_msgs/NavSatFix` says: "Altitude [m]. Positive is above the
            // WGS 84 ellipsoid."
            point.altitude_ellipsoid = number("altitude").filter(|height| height.is_finite());
            point.fix = fix;
            line.push(point);
        }
        line.finish_in(&mut track, &mut tally);
    }
    Ok((track, tally))
}

/// Converts the status number of a `sensor_msgs/NavSatStatus` to a fix quality. The status is -1
/// for no fix, 0 for a fix without corrections, 1 for satellite-based corrections, and 2 for
/// ground-based corrections.
fn quality(status: f64) -> Option<Fix> {
    match status {
        0.0 => Some(Fix::ThreeD),
        1.0 | 2.0 => Some(Fix::Differential),
        _ => None,
    }
}
