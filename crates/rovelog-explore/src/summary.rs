//! The summary of a log for the page in the browser. It contains general information, the topics,
//! and the plots that are shown first.

use rovelog::core::internal::partial::Unread;
use rovelog::rld_format::analysis::StatsOptions;
use rovelog::{AnyLog, Error, Timestamp, Topic};
use rovelog_export::report;
use rovelog_export::signal::{derived_fields, measured_fields, numeric_fields};
use serde_json::{Value, json};

use crate::Explore;

/// Maximum number of fields that are listed for a topic.
const MAX_TOPIC_FIELDS: usize = 500;

/// Maximum number of fields that are listed for all topics of a log.
const MAX_FIELDS: usize = 100_000;

/// Maximum number of signals in a plot that is shown first.
const MAX_PLOT_SIGNALS: usize = 4;

/// Plots that are shown first. Each entry has the type of a topic and the fields of a plot. A name
/// that ends with `.` or `[` stands for all members. The most important entries of a format come
/// first.
const BY_TYPE: &[(&str, &[&str])] = &[
    ("vehicle_attitude", &["q.roll", "q.pitch"]),
    ("vehicle_local_position", &["z"]),
    ("battery_status", &["voltage_v"]),
    ("nav_msgs/Odometry", &["pose.pose.position."]),
    ("geometry_msgs/PoseStamped", &["pose.position."]),
    ("geometry_msgs/PoseWithCovarianceStamped", &["pose.pose.position."]),
    ("geometry_msgs/Pose", &["position."]),
    ("geometry_msgs/TransformStamped", &["transform.translation."]),
    ("turtlesim/Pose", &["x", "y"]),
    ("OBDDataM", &["speed"]),
    ("GPSDataM", &["speed"]),
    ("sensor_msgs/Imu", &["linear_acceleration."]),
    ("sensor_msgs/Imu", &["angular_velocity."]),
    ("nav_msgs/Odometry", &["twist.twist.linear."]),
    ("geometry_msgs/TwistStamped", &["twist.linear."]),
    ("geometry_msgs/Twist", &["linear."]),
    ("sensor_msgs/NavSatFix", &["altitude"]),
    ("GPSDataM", &["height"]),
    ("RobotPoseM", &["roll", "pitch"]),
    ("RobotPoseM", &["ax", "ay", "az"]),
    ("sensor_msgs/JointState", &["position["]),
];

/// Maximum number of plots that are shown first.
const MAX_PLOTS: usize = 3;

/// Returns the row of a log in the list of logs.
pub(crate) fn row(explore: &Explore) -> Value {
    let info = explore.log.info();
    let start = info.data_start();
    let utc = start.and_then(|start| start.to_unix(info.utc.as_ref())).and_then(Timestamp::rfc3339);
    json!({
        "format": explore.log.format().name,
        "version": info.version,
        "state": info.state.name(),
        "records": info.records,
        "seconds": info.data_duration().map(|nanos| nanos as f64 / 1e9),
        "utc": utc,
        "lost": info.lost.bytes,
    })
}

/// Returns the summary that the page needs to show a log.
pub(crate) fn log(explore: &Explore) -> Result<Value, Error> {
    let log = &explore.log;
    let info = log.info();
    let mut free = MAX_FIELDS;
    let topics = log.topics().iter().filter(|topic| topic.count > 0);
    let topics: Vec<Value> =
        topics.map(|topic| describe_topic(log, topic, &mut free)).collect::<Result<_, Error>>()?;
    let bands = report::bands(log, explore.span);
    // The page assigns a color to each distinct name, in the order in which the names first occur.
    let mut names: Vec<&str> = Vec::new();
    for band in &bands {
        if !names.contains(&&*band.name) {
            names.push(&band.name);
        }
    }
    let is_partly = !log.unread().is_none_or(Unread::is_empty);
    let number = |name: &str| names.iter().position(|known| *known == name);
    let shown: Vec<_> =
        bands.iter().map(|band| json!([band.span.0, band.span.1, number(&band.name), band.name])).collect();
    Ok(json!({
        "name": explore.name,
        "path": explore.path,
        "format": log.format().name,
        "id": log.format().id,
        "version": info.version,
        "size": info.size,
        "state": info.state.name(),
        "lost": if log.losses().is_empty() { Value::Null } else { log.losses().to_string().into() },
        "records": info.records,
        "problems": log.diagnostics().total(),
        "seconds": explore.seconds(explore.span.1).max(1e-9),
        "unix_ms": explore.unix_ms(),
        "bands": shown,
        "topics": topics,
        "start": initial_plots(log)?,
        "partly": is_partly,
        // Bags are compressed in chunks, so that a preview would read nearly all of them.
        "preview": is_partly && matches!(log, AnyLog::Rld(_)),
    }))
}

/// Describes a topic as an array. The elements are the name, type, number of records, rate, fields,
/// derived signals, and the number of fields that are not listed.
///
/// `free` is the number of fields that may still be listed for the log.
fn describe_topic(log: &AnyLog, topic: &Topic, free: &mut usize) -> Result<Value, Error> {
    // If the limit of listed fields is reached, the fields need not be read.
    let mut fields = if *free > 0 { numeric_fields(&**log, topic)? } else { Vec::new() };
    let mut derived = if *free > 0 { derived_fields(&**log, topic)? } else { Vec::new() };
    let all = fields.len();
    fields.truncate(MAX_TOPIC_FIELDS.min(*free));
    derived.truncate(MAX_TOPIC_FIELDS);
    *free -= fields.len();
    let more = all - fields.len();
    Ok(json!([topic.name, topic.type_name, topic.count, topic.rate_hz(), fields, derived, more]))
}

/// Returns the plots that are shown first. Each signal in a plot is a topic and a field.
///
/// - PX4 logs: attitude, altitude and battery voltage.
/// - RLD logs: powers, currents and voltages.
/// - ROS bags and VEL logs: poses, speeds and accelerations.
/// - If a log has none of these: the measured values of the two topics with the most records.
fn initial_plots(log: &AnyLog) -> Result<Vec<Vec<[String; 2]>>, Error> {
    let plot = |topic: &Topic, fields: &[String]| -> Vec<[String; 2]> {
        fields.iter().map(|field| [topic.name.clone(), field.clone()]).collect()
    };
    let mut topics: Vec<&Topic> = log.topics().iter().filter(|topic| topic.count > 1).collect();
    // Topics with many records usually contain measurements.
    topics.sort_by_key(|topic| (std::cmp::Reverse(topic.count), topic.id));
    if let (AnyLog::Rld(reader), Some(topic)) = (log, topics.first()) {
        let fields = numeric_fields(&**log, topic)?;
        let currents = derived_fields(&**log, topic)?;
        let sums = reader.accumulator(&StatsOptions::default())?;
        let powers = sums.powers().iter().map(|power| [String::new(), power.name.clone()]);
        let powers: Vec<_> = powers.take(MAX_PLOT_SIGNALS).collect();
        let volts: Vec<_> = fields.iter().filter(|name| name.starts_with('V')).cloned().collect();
        let some = |fields: &[String]| plot(topic, &fields[..fields.len().min(MAX_PLOT_SIGNALS)]);
        let all = [powers, some(&currents), some(&volts)];
        let shown: Vec<_> = all.into_iter().filter(|signals| !signals.is_empty()).collect();
        if !shown.is_empty() {
            return Ok(shown);
        }
    }
    let mut plots = Vec::new();
    for (type_name, names) in BY_TYPE {
        if plots.len() == MAX_PLOTS {
            break;
        }
        let Some(topic) = topics.iter().find(|topic| topic.type_name == *type_name) else { continue };
        let is_wanted = |field: &String| {
            names.iter().any(|name| field == name || (name.ends_with(['.', '[']) && field.starts_with(name)))
        };
        let fields = numeric_fields(&**log, topic)?.into_iter().chain(derived_fields(&**log, topic)?);
        let fields: Vec<_> = fields.filter(is_wanted).collect();
        if !fields.is_empty() {
            plots.push(plot(topic, &fields[..fields.len().min(MAX_PLOT_SIGNALS)]));
        }
    }
    if !plots.is_empty() {
        return Ok(plots);
    }
    for topic in topics {
        let mut fields = measured_fields(&**log, topic)?;
        fields.retain(|field| report::is_stored_measurement(topic, field));
        // Members of different structs, such as a position and an orientation, have different
        // units.
        if let Some(first) = fields.first().cloned() {
            fields.retain(|field| report::parent(field) == report::parent(&first));
        }
        fields.truncate(MAX_PLOT_SIGNALS);
        if !fields.is_empty() {
            plots.push(plot(topic, &fields));
        }
        if plots.len() == 2 {
            break;
        }
    }
    Ok(plots)
}
