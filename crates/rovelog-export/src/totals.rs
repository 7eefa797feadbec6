//! Totals of a flight or a recording: flight time, distance, extremes, charge and energy.
//!
//! `docs/reference/totals.md` describes all totals, and from which signals they are computed.
//!
//! # Example
//!
//! A vehicle is in the air for 20 s and moves 30 m. The group `flight` then has the totals `time`
//! (20 s) and `distance` (30 m).

use rovelog::rld_format::RldReader;
use rovelog::rld_format::analysis::{MARGIN_SETTLED, StatsOptions};
use rovelog::rld_format::unit::Scale;
use rovelog::ulog_format::UlogReader;
use rovelog::{AnyLog, ErrorKind, LogReader, Topic};
use serde::Serialize;

use crate::findings::scan::{WHOLE_LOG, each_row};
use crate::findings::{recordings, time_in_air};
use crate::plot::{significant, with_prefix};
use crate::track::{self, TrackOptions, TrackPoint};
use crate::trajectory::ros::TYPES;
use crate::{ExportError, duration_text};

/// Radius of the earth in meters. It is the mean radius of the WGS 84 ellipsoid.
const EARTH_RADIUS: f64 = 6_371_008.8;

/// Maximum time in nanoseconds between two rows for which a current is integrated. During longer
/// gaps, the current is unknown.
const MAX_STEP: i64 = 10_000_000_000;

/// A total or an extreme.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Total {
    /// Name, such as `distance`.
    pub name: &'static str,
    /// Value in `unit`.
    pub value: f64,
    /// Unit of the value, such as `m`.
    pub unit: &'static str,
}

impl Total {
    fn new(name: &'static str, value: f64, unit: &'static str) -> Self {
        Self { name, value, unit }
    }

    /// Formats the name and the value for people, such as `distance 312 m`.
    pub fn text(&self) -> String {
        let value = match self.unit {
            #[expect(clippy::cast_possible_truncation, reason = "saturates")]
            "s" => duration_text(((self.value * 10.0).round() as i64).saturating_mul(100_000_000)),
            "m" if self.value >= 1000.0 => format!("{} km", significant(self.value / 1000.0, 3)),
            "A" | "W" | "J" | "C" | "Ah" => with_prefix(self.value, self.unit),
            "°" => format!("{}°", significant(self.value, 3)),
            unit => format!("{} {unit}", significant(self.value, 3)),
        };
        format!("{} {value}", self.name)
    }
}

/// Totals of one source, such as the flight, a battery, a current or a receiver.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Group {
    /// Name of the source, such as `flight`, `battery_status/0` or `V1*I1`.
    pub name: String,
    /// The totals. A group has at least one.
    pub totals: Vec<Total>,
}

impl Group {
    /// Formats all totals of the group for people, such as `time 20.0 s, distance 30.0 m`.
    pub fn text(&self) -> String {
        let texts: Vec<_> = self.totals.iter().map(Total::text).collect();
        texts.join(", ")
    }
}

/// Computes the totals of a log. Sources without data have no group.
///
/// # Errors
/// Returns an error if the log cannot be read.
pub fn totals(log: &AnyLog) -> Result<Vec<Group>, ExportError> {
    let mut groups = Vec::new();
    match log {
        AnyLog::Ulog(reader) => {
            groups.push(Group { name: "flight".to_owned(), totals: flight(reader)? });
            for topic in batteries(reader) {
                groups.push(Group { name: topic.name.clone(), totals: battery(reader, topic)? });
            }
        }
        AnyLog::Rld(reader) => power(reader, &mut groups)?,
        _ => {
            for (topic, field) in positions(&**log) {
                let totals = local_distance(&**log, topic, field)?;
                groups.push(Group { name: topic.name.clone(), totals });
            }
            global_distances(log, &mut groups)?;
        }
    }
    groups.retain(|group| !group.totals.is_empty());
    Ok(groups)
}

/// Largest value so far. Values that are no numbers are ignored.
struct Max(Option<f64>);

impl Max {
    fn push(&mut self, value: f64) {
        if !value.is_nan() {
            self.0 = Some(self.0.map_or(value, |max| max.max(value)));
        }
    }

    fn total(&self, name: &'static str, unit: &'static str) -> Option<Total> {
        self.0.map(|value| Total::new(name, value, unit))
    }
}

/// Sum of the distances between consecutive positions in meters.
#[derive(Default)]
struct Path {
    length: f64,
    /// First and last time in nanoseconds. `None` before the first position.
    span: Option<(i64, i64)>,
    last: Option<[f64; 3]>,
}

impl Path {
    /// Adds a position. An invalid position is `None` and interrupts the path.
    fn push(&mut self, time: i64, position: Option<[f64; 3]>) {
        if let (Some(before), Some(now)) = (self.last, position) {
            let step: f64 = before.iter().zip(now).map(|(a, b)| (a - b).powi(2)).sum();
            self.length += step.sqrt();
        }
        if position.is_some() {
            let first = self.span.map_or(time, |span| span.0);
            self.span = Some((first, time));
        }
        self.last = position;
    }

    fn totals(&self) -> Vec<Total> {
        let Some((first, last)) = self.span else { return Vec::new() };
        let time = last.saturating_sub(first) as f64 / 1e9;
        vec![Total::new("distance", self.length, "m"), Total::new("time", time, "s")]
    }
}

/// Returns the totals of a flight. Distance, altitude and speed are computed as in Flight Review
/// (`plotted_tables.py`).
fn flight(log: &UlogReader) -> Result<Vec<Total>, ExportError> {
    let mut totals = Vec::new();
    let in_air = time_in_air(log)? as f64 / 1e9;
    if in_air > 0.0 {
        totals.push(Total::new("time", in_air, "s"));
    }
    let (mut path, mut height, mut speed, mut tilt) = (Path::default(), Max(None), Max(None), Max(None));
    let fields = ["x", "y", "z", "xy_valid", "z_valid", "vx", "vy", "vz", "v_xy_valid", "v_z_valid"];
    for topic in recordings(log, "vehicle_local_position") {
        // Each recording has an origin of its own.
        path.last = None;
        let (mut lowest, mut highest) = (Max(None), Max(None));
        each_row(log, &topic.name, &fields, WHOLE_LOG, |time, row| {
            let [x, y, z, xy_valid, z_valid, vx, vy, vz, v_xy_valid, v_z_valid] = *row else { return };
            path.push(time, (xy_valid > 0.0 && z_valid > 0.0).then_some([x, y, z]));
            if z_valid > 0.0 {
                // The axis z points down.
                highest.push(-z);
                lowest.push(z);
            }
            if v_xy_valid > 0.0 && v_z_valid > 0.0 {
                speed.push(vx.hypot(vy).hypot(vz));
            }
        })?;
        if let (Some(highest), Some(lowest)) = (highest.0, lowest.0) {
            height.push(highest + lowest);
        }
    }
    // A vehicle that did not move has no distance. The limit is that of Flight Review.
    totals.extend(path.totals().into_iter().find(|total| total.name == "distance" && total.value >= 1.0));
    totals.extend(height.total("altitude difference", "m"));
    totals.extend(speed.total("max speed", "m/s"));
    for topic in recordings(log, "vehicle_attitude") {
        each_row(log, &topic.name, &["q[0]", "q[1]", "q[2]", "q[3]"], WHOLE_LOG, |_, q| {
            // This is the cosine of the tilt, which is the angle between the vertical axes of the
            // vehicle and the earth. It is an element of the rotation matrix.
            let cosine = 1.0 - 2.0 * (q[1] * q[1] + q[2] * q[2]);
            tilt.push(cosine.clamp(-1.0, 1.0).acos().to_degrees());
        })?;
    }
    totals.extend(tilt.total("max tilt", "°"));
    Ok(totals)
}

/// Returns the topics of batteries that have rows.
fn batteries(log: &UlogReader) -> impl Iterator<Item = &Topic> {
    log.topics().iter().filter(|topic| topic.type_name == "battery_status" && topic.count > 0)
}

/// Returns the mean and highest current of a battery, and its charge and energy. Returns no totals
/// if no current was measured.
fn battery(log: &UlogReader, topic: &Topic) -> Result<Vec<Total>, ExportError> {
    let (mut peak, mut charge, mut energy, mut seconds) = (Max(None), 0.0, 0.0, 0.0);
    let mut last: Option<(i64, [f64; 2])> = None;
    each_row(log, &topic.name, &["voltage_v", "current_a"], WHOLE_LOG, |time, row| {
        let now = [row[0], row[1]];
        peak.push(now[1]);
        if let Some((before, [volts, amperes])) = last {
            let step = time.saturating_sub(before);
            let amperes = f64::midpoint(amperes, now[1]);
            if (1..=MAX_STEP).contains(&step) && amperes.is_finite() {
                let step = step as f64 / 1e9;
                seconds += step;
                charge += amperes * step;
                let volts = f64::midpoint(volts, now[0]);
                energy += if volts.is_finite() { amperes * volts * step } else { 0.0 };
            }
        }
        last = Some((time, now));
    })?;
    // PX4 logs -1 A if the current is not measured.
    if peak.0.is_none_or(|peak| peak <= 0.0) || seconds <= 0.0 {
        return Ok(Vec::new());
    }
    let mut totals = vec![Total::new("mean current", charge / seconds, "A")];
    totals.extend(peak.total("max current", "A"));
    totals.push(Total::new("charge", charge / 3600.0, "Ah"));
    totals.push(Total::new("energy", energy / 3600.0, "Wh"));
    Ok(totals)
}

/// Adds the mean, peak and energy of each power, and the mean, peak and charge of each current.
fn power(log: &RldReader, groups: &mut Vec<Group>) -> Result<(), ExportError> {
    let mut sums = log.accumulator(&StatsOptions::default().with_margin(MARGIN_SETTLED))?;
    let stats = sums.stats(0..log.rows());
    let rate = log.header().lead_in.sample_rate.get();
    let powers = stats.powers.iter().zip(sums.powers().iter().map(|term| (&term.name, term.scale, true)));
    let currents = sums.currents().iter().map(|current| (&current.name, current.scale, false));
    let currents = stats.currents.iter().zip(currents);
    for (sums, (name, scale, is_power)) in powers.chain(currents) {
        let Some(scale) = Scale::new(scale).filter(|_| sums.count > 0) else { continue };
        let (unit, total, total_unit) = if is_power { ("W", "energy", "J") } else { ("A", "charge", "C") };
        let mut totals: Vec<Total> =
            sums.mean(scale).map(|mean| Total::new("mean", mean, unit)).into_iter().collect();
        totals.extend(sums.max(scale).map(|peak| Total::new("peak", peak, unit)));
        totals.push(Total::new(total, sums.integral(scale, rate), total_unit));
        groups.push(Group { name: name.clone(), totals });
    }
    Ok(())
}

/// Returns the topics with positions in meters, each with the field of the position.
fn positions(log: &dyn LogReader) -> impl Iterator<Item = (&Topic, &'static str)> {
    let topics = log.topics().iter().filter(|topic| topic.count > 0);
    topics.filter_map(|topic| {
        let pose = TYPES.iter().find(|pose| pose.name == topic.type_name)?;
        Some((topic, pose.position))
    })
}

/// Returns the distance and time of positions in meters.
fn local_distance(log: &dyn LogReader, topic: &Topic, field: &str) -> Result<Vec<Total>, ExportError> {
    let fields = ["x", "y", "z"].map(|axis| format!("{field}.{axis}"));
    let (mut path, mut unordered) = (Path::default(), Vec::new());
    each_row(log, &topic.name, &fields.each_ref().map(String::as_str), WHOLE_LOG, |time, row| {
        let position = [row[0], row[1], row[2]];
        let position = position.iter().all(|number| number.is_finite()).then_some(position);
        if topic.in_order { path.push(time, position) } else { unordered.push((time, position)) }
    })?;
    unordered.sort_by_key(|(time, _)| *time);
    for (time, position) in unordered {
        path.push(time, position);
    }
    Ok(path.totals())
}

/// Adds the distance and time of each receiver of a satellite navigation system.
fn global_distances(log: &AnyLog, groups: &mut Vec<Group>) -> Result<(), ExportError> {
    let track = match track::of(log, &TrackOptions::default()) {
        Ok((track, _)) => track,
        // Logs of this format never have positions.
        Err(error) if error.kind == ErrorKind::InvalidArgument => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    for line in track.lines {
        let mut path = Path::default();
        for segment in &line.segments {
            let mut before: Option<&TrackPoint> = None;
            for point in &segment.points {
                path.length += before.map_or(0.0, |before| great_circle(before, point));
                let first = path.span.map_or(point.time.nanos, |span| span.0);
                path.span = Some((first, point.time.nanos));
                before = Some(point);
            }
        }
        groups.push(Group { name: line.source, totals: path.totals() });
    }
    Ok(())
}

/// Returns the distance of two points on a sphere in meters (haversine formula).
fn great_circle(from: &TrackPoint, to: &TrackPoint) -> f64 {
    let (south, north) = (from.latitude.to_radians(), to.latitude.to_radians());
    let (rise, turn) = ((north - south) / 2.0, (to.longitude - from.longitude).to_radians() / 2.0);
    let chord = rise.sin().powi(2) + south.cos() * north.cos() * turn.sin().powi(2);
    2.0 * EARTH_RADIUS * chord.sqrt().min(1.0).asin()
}
