//! Finds problems in VEL logs: lost packets and frozen sensors.

use rovelog::LogReader as _;
use rovelog::core::health::{Health, Pace};
use rovelog::core::internal::text::count;
use rovelog::vel_format::VelReader;
use rovelog::vel_format::velodyne::PacketClock;

use super::scan::Scan;
use super::watch::{Holds, Span};
use super::{Evidence, Finding, Kind, Severity, seconds};
use crate::ExportError;

/// Time in nanoseconds for which all values of an inertial sensor must stay the same. Normally,
/// noise changes them in each message.
const FROZEN_TIME: i64 = 1_000_000_000;

/// Time in nanoseconds for which the position must stay the same while the vehicle moves. GPS
/// receivers measure about one position per second, so a shorter time would be normal.
const FROZEN_POSITION_TIME: i64 = 5_000_000_000;

/// Speed in km/h above which the vehicle is considered to move.
const MIN_SPEED: f64 = 5.0;

/// Fields of an inertial sensor.
#[rustfmt::skip]
const POSE: [&str; 7] = [
    "quaternion[0]", "quaternion[1]", "quaternion[2]", "quaternion[3]", "acceleration[0]",
    "acceleration[1]", "acceleration[2]",
];

/// Fields of a GPS receiver. The first is the speed.
const POSITION: [&str; 3] = ["speed", "latitude", "longitude"];

/// Number of lost packets from which the severity is medium. A revolution at 10 Hz has about 75
/// packets.
const MANY_PACKETS: i64 = 75;

/// Adds the findings of a VEL log.
pub(super) fn findings(log: &VelReader, found: &mut Vec<Finding>) -> Result<(), ExportError> {
    lost_packets(log, found);
    let mut scan = Scan::default();
    for topic in log.topics().iter().filter(|topic| topic.count > 0) {
        let (fields, min, has_speed) = match &*topic.type_name {
            "RobotPoseM" => (&POSE[..], FROZEN_TIME, false),
            "GPSDataM" => (&POSITION[..], FROZEN_POSITION_TIME, true),
            _ => continue,
        };
        // The value of a frozen row is the time since the first of them, in seconds.
        let (mut last, mut last_time, mut since) = (Vec::<f64>::new(), 0, None);
        let test = move |time: i64, row: &[f64]| {
            let (speed, values) = row.split_at(usize::from(has_speed));
            let is_moving = speed.first().is_none_or(|speed| *speed > MIN_SPEED);
            let is_frozen = is_moving && last == values;
            last.clear();
            last.extend(values);
            since = is_frozen.then(|| since.unwrap_or(last_time));
            last_time = time;
            since.map(|since| time.saturating_sub(since) as f64 / 1e9)
        };
        let report = move |topic: &str, span: &Span| {
            let what = if has_speed { "position" } else { "measured values" };
            let sentence = format!("The {what} of {topic} did not change for {}.", seconds(span.longest));
            span.finding(Kind::FrozenSensor, Severity::Medium, sentence, topic.to_owned(), min as f64 / 1e9)
        };
        scan.check(topic, fields.iter().copied(), Holds::above(min), test, report);
    }
    scan.run(log, found)
}

/// Adds a finding if the times of Velodyne packets have gaps.
fn lost_packets(log: &VelReader, found: &mut Vec<Finding>) {
    let Some(sensor) = &log.meaning().velodyne else { return };
    let clock = log.packet_clock(sensor);
    // If the packets have no times of their own, lost packets leave no gap.
    let PacketClock::Timestamps(_) = clock else { return };
    let mut pace = Pace::default();
    for (message, packets) in log.packets() {
        (0..packets.len()).for_each(|i| pace.push(clock.at(message.nanos, packets, i)));
    }
    let health = Health::new(vec![pace], None, &[]).topics;
    let Some((health, period)) = health.first().and_then(|health| Some((health, health.period?))) else {
        return;
    };
    let (Some(longest), true) = (health.longest_gaps.first(), health.steady) else { return };
    let lost = |length: i64| (length + period / 2) / period - 1;
    let total: i64 = health.longest_gaps.iter().map(|gap| lost(gap.length)).sum();
    let severity = if total >= MANY_PACKETS { Severity::Medium } else { Severity::Low };
    // Only the longest gaps are listed, so a log with more gaps lacks even more packets.
    let is_all = health.longest_gaps.len() as u64 >= health.gaps;
    let sentence = format!(
        "{} {} of the Velodyne are missing in {}, the longest of {}.",
        if is_all { "About" } else { "At least" },
        count(total, "packet"),
        count(health.gaps, "gap"),
        seconds(longest.length)
    );
    let start = health.longest_gaps.iter().map(|gap| gap.start).min().unwrap_or(0);
    let ends = health.longest_gaps.iter().map(|gap| gap.start.saturating_add(gap.length));
    let end = ends.max().unwrap_or(start);
    let evidence = health.longest_gaps.iter().map(|gap| {
        let length = Evidence::value("VelodyneRawDataM.packets", gap.start, gap.length as f64 / 1e9);
        length.with_limit(period as f64 / 1e9)
    });
    found.push(Finding::new(Kind::LostPackets, severity, start..end, sentence, evidence.collect()));
}
