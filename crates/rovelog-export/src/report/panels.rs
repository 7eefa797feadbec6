//! The signals of a report: the most important ones of a PX4 log, and for other logs the first
//! fields of the busiest topics.

use arrow_array::Array as _;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float32Type, Int64Type};
use rovelog::ulog_format::px4::roll_pitch_yaw;
use rovelog::{LogReader, Select, Topic};

use crate::ExportError;
use crate::leaf::{Names, leaves};
use crate::plot::{Panel, Series, Signal, Thin, numeric_fields, read};

/// A title, the unit, and topics, of which the first with any of the fields is used.
struct Main {
    title: &'static str,
    unit: &'static str,
    sources: &'static [(&'static str, &'static [&'static str])],
    /// True if it shows where the vehicle was.
    place: bool,
}

const fn main(
    title: &'static str,
    unit: &'static str,
    sources: &'static [(&'static str, &'static [&'static str])],
) -> Main {
    Main { title, unit, sources, place: false }
}

/// Panels of a PX4 report, below the attitude.
const PX4: &[Main] = &[
    main(
        "Angular velocity",
        "rad/s",
        &[
            ("vehicle_angular_velocity", &["xyz[0]", "xyz[1]", "xyz[2]"]),
            ("vehicle_attitude", &["rollspeed", "pitchspeed", "yawspeed"]),
        ],
    ),
    Main {
        title: "Local position",
        unit: "m",
        sources: &[("vehicle_local_position", &["x", "y", "z"])],
        place: true,
    },
    main("Velocity", "m/s", &[("vehicle_local_position", &["vx", "vy", "vz"])]),
    main(
        "Acceleration",
        "m/s²",
        &[("sensor_combined", &["accelerometer_m_s2[0]", "accelerometer_m_s2[1]", "accelerometer_m_s2[2]"])],
    ),
    main(
        "Vibration",
        "",
        &[
            ("vehicle_imu_status", &["accel_vibration_metric", "gyro_vibration_metric"]),
            ("estimator_status", &["vibe[0]", "vibe[1]", "vibe[2]"]),
        ],
    ),
    main(
        "Actuators",
        "",
        &[
            ("actuator_motors", &["control[0]", "control[1]", "control[2]", "control[3]"]),
            (
                "actuator_outputs",
                &["output[0]", "output[1]", "output[2]", "output[3]", "output[4]", "output[5]"],
            ),
            ("actuator_controls_0", &["control[0]", "control[1]", "control[2]", "control[3]"]),
        ],
    ),
    main("Battery voltage", "V", &[("battery_status", &["voltage_v", "voltage_filtered_v"])]),
    main("Battery current", "A", &[("battery_status", &["current_a", "current_filtered_a"])]),
    main("GPS accuracy", "m", &[("vehicle_gps_position", &["eph", "epv"]), ("sensor_gps", &["eph", "epv"])]),
    main(
        "Satellites",
        "",
        &[("vehicle_gps_position", &["satellites_used"]), ("sensor_gps", &["satellites_used"])],
    ),
    main("Processor and memory", "", &[("cpuload", &["load", "ram_usage"])]),
];

/// Maximum number of panels for other logs, of lines in each, and of signals per topic.
const MOST: usize = 12;
const LINES: usize = 6;
const SIGNALS: usize = 32;

/// Suffixes of field names that are not measurements, or that the track shows better.
const ABOUT: &[&str] = &[
    "seq",
    "version",
    "source",
    "width",
    "step",
    "is_bigendian",
    "is_compressed",
    "hour",
    "minute",
    "second",
    "day",
    "month",
    "year",
    "latitude",
    "longitude",
];

/// Time range and resolution for reading.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub(super) times: (i64, i64),
    pub(super) zero: i64,
    pub(super) width: usize,
}

pub(super) fn panels(log: &dyn LogReader, at: Span, redact: bool) -> Result<Vec<Panel>, ExportError> {
    let mut panels = Vec::new();
    if log.format().id == "ulog" {
        panels.extend(attitude(log, at)?);
        for main in PX4.iter().filter(|main| !(redact && main.place)) {
            panels.extend(self::panel(log, main, at)?);
        }
    }
    if panels.is_empty() { any(log, at) } else { Ok(panels) }
}

/// Returns panels of the busiest topics: one for each unit; fields without a unit are grouped by
/// their parent.
fn any(log: &dyn LogReader, at: Span) -> Result<Vec<Panel>, ExportError> {
    let mut panels = Vec::new();
    let mut topics: Vec<_> = log.topics().iter().filter(|topic| topic.count > 1).collect();
    topics.sort_by_key(|topic| (std::cmp::Reverse(topic.count), topic.id));
    for topic in topics.into_iter().take(MOST) {
        let fields = numeric_fields(log, topic).into_iter().filter(|field| measures(topic, field));
        let signal = |field| Signal { topic: topic.name.clone(), field };
        let signals: Vec<_> = fields.take(SIGNALS).map(signal).collect();
        let mut groups: Vec<(String, Panel)> = Vec::new();
        for mut series in short(series(log, &signals, at)?) {
            if series.range().is_none() {
                continue;
            }
            let part = part(&series.name).to_owned();
            let (group, title) = match &series.unit {
                Some(unit) => (format!("[{unit}]"), topic.name.clone()),
                None => (part.clone(), format!("{} {part}", topic.name).trim_end().to_owned()),
            };
            if series.unit.is_none() && !part.is_empty() {
                let dot = series.name[part.len()..].starts_with('.');
                series.name.drain(..part.len() + usize::from(dot));
            }
            match groups.iter_mut().find(|(known, _)| *known == group) {
                Some((_, panel)) if panel.series.len() < LINES => panel.series.push(series),
                Some(_) => {}
                None => groups.push((group, Panel::new(title, vec![series]))),
            }
        }
        panels.extend(groups.into_iter().map(|(_, panel)| panel));
    }
    // Changing signals before constant ones, measurements before on/off signals.
    panels.sort_by_key(|panel| (panel.series.iter().all(is_flat), panel.unit() == Some("bit")));
    panels.truncate(MOST);
    Ok(panels)
}

/// Returns whether a field is one of the log's own and holds a measurement.
fn measures(topic: &Topic, field: &str) -> bool {
    let path = |name: &str| name.split(['.', '[']).next().map(str::to_owned);
    let own = topic.schema.as_ref().is_none_or(|schema| {
        schema.fields.iter().any(|of_schema| path(field).as_deref() == Some(&of_schema.name))
    });
    let last = field.rsplit('.').next().unwrap_or(field);
    let aside = ["timestamp", "covariance", "unused"].iter().any(|word| last.contains(word));
    own && !aside && !ABOUT.contains(&last)
}

/// Returns the parent of a field without a unit: `pose.position` of `pose.position.x`, `q` of
/// `q[0]`.
fn part(field: &str) -> &str {
    field.rfind(['.', '[']).map_or("", |end| &field[..end])
}

fn is_flat(series: &Series) -> bool {
    series.range().is_none_or(|(low, high)| low >= high)
}

fn panel(log: &dyn LogReader, main: &Main, at: Span) -> Result<Option<Panel>, ExportError> {
    for (name, wanted) in main.sources {
        let Some(topic) = log.topic(name).filter(|topic| topic.count > 0) else { continue };
        let there = numeric_fields(log, topic.get());
        let fields = wanted.iter().filter(|field| there.iter().any(|name| name == *field));
        let signals: Vec<_> =
            fields.map(|field| Signal { topic: topic.name.clone(), field: (*field).to_owned() }).collect();
        let mut series = self::series(log, &signals, at)?;
        series.retain(|series| series.range().is_some());
        if series.is_empty() {
            continue;
        }
        for series in &mut series {
            series.unit = Some(main.unit.to_owned()).filter(|unit| !unit.is_empty());
        }
        return Ok(Some(Panel::new(format!("{} ({name})", main.title), short(series))));
    }
    Ok(None)
}

/// Reads the signals that exist.
fn series(log: &dyn LogReader, signals: &[Signal], at: Span) -> Result<Vec<Series>, ExportError> {
    Ok(read(log, signals, at.times, at.width, at.zero)?.into_iter().flatten().collect())
}

/// Removes the topic from the names; it is in the title.
fn short(mut series: Vec<Series>) -> Vec<Series> {
    for series in &mut series {
        if let Some((_, field)) = series.name.split_once('.') {
            series.name = field.to_owned();
        }
    }
    series
}

/// Returns roll, pitch and yaw in degrees, from the attitude quaternion.
fn attitude(log: &dyn LogReader, at: Span) -> Result<Option<Panel>, ExportError> {
    let Some(topic) = log.topic("vehicle_attitude").filter(|topic| topic.count > 0) else { return Ok(None) };
    let select = Select::topic(topic.name.clone()).with_fields(["q"]);
    let columns = topic.columns(&select.between(Some(at.times.0), at.times.1.checked_add(1)))?;
    let schema = arrow_array::RecordBatchReader::schema(&columns);
    let all = leaves(&schema, Names::Bracket);
    let parts: Vec<_> =
        (0..4).filter_map(|i| all.iter().find(|leaf| leaf.name == format!("q[{i}]"))).collect();
    if parts.len() != 4 || parts.iter().any(|leaf| leaf.data_type != arrow_schema::DataType::Float32) {
        return Ok(None);
    }
    let mut angles = [(); 3].map(|()| Thin::new(at.times, at.width));
    for batch in columns {
        let batch = batch?;
        let bound: Vec<_> = parts.iter().map(|leaf| leaf.bind(&batch)).collect();
        let times = batch.column(0).as_primitive::<Int64Type>();
        for row in (0..batch.num_rows()).filter(|row| times.is_valid(*row)) {
            let part = |i: usize| {
                let at = bound[i].at(row);
                at.map_or(f32::NAN, |at| bound[i].array.as_primitive::<Float32Type>().value(at))
            };
            let radians = roll_pitch_yaw([part(0), part(1), part(2), part(3)]);
            for (thin, radians) in angles.iter_mut().zip(radians) {
                thin.push(times.value(row), f64::from(radians).to_degrees());
            }
        }
    }
    let series = ["roll", "pitch", "yaw"].into_iter().zip(&angles).map(|(name, thin)| {
        let mut series = Series::new(name, thin.points(at.zero));
        series.unit = Some("°".to_owned());
        series
    });
    Ok(Some(Panel::new("Attitude (vehicle_attitude)", series.collect())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_of_a_field_is_the_part_before_its_last_name_or_index() {
        assert_eq!(["pose.position.x", "q[3]", "speed"].map(part), ["pose.position", "q", ""]);
    }
}
