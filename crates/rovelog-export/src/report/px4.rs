//! The plots of a PX4 log. They are the same plots as in Flight Review, PX4's web service for logs.
//! See docs/reference/plots.md.

use std::collections::btree_map::{BTreeMap, Entry};

use rovelog::LogReader;
use rovelog::ulog_format::px4::roll_pitch_yaw;

use super::rows::{Span, bits, flags, series, short};
use crate::ExportError;
use crate::findings::MEAN_LIMIT;
use crate::findings::scan::each_row;
use crate::plot::{Look, Panel, Reducer, Series, read};
use crate::signal::{Signal, Signals, numeric_fields};

/// Number of degrees in a radian.
const DEGREES: f64 = 180.0 / std::f64::consts::PI;

/// Source from which the values of a line are read.
#[derive(Clone, Copy)]
enum LineSource {
    /// A field, given by its topic and name. The number is a factor for the values.
    Field(&'static str, &'static str, f64),
    /// An Euler angle in degrees, computed from a quaternion. The quaternion is given by its topic
    /// and field name. The number is 0 for roll, 1 for pitch and 2 for yaw.
    Angle(&'static str, &'static str, usize),
}

/// A line of a plot, given by its name and its possible sources. PX4 renamed many topics and fields
/// over time, so the first source that exists in the log is used.
type Line = (&'static str, &'static [LineSource]);

/// Description of a panel.
struct Spec {
    title: &'static str,
    unit: &'static str,
    lines: &'static [Line],
    /// True if the panel shows the position of the vehicle. Redacted reports omit such panels.
    reveals_position: bool,
}

const fn panel(title: &'static str, unit: &'static str, lines: &'static [Line]) -> Spec {
    Spec { title, unit, lines, reveals_position: false }
}

/// Describes a panel that shows the position of the vehicle.
const fn position_panel(title: &'static str, unit: &'static str, lines: &'static [Line]) -> Spec {
    Spec { title, unit, lines, reveals_position: true }
}

/// Reads a field without converting its values.
const fn f(topic: &'static str, field: &'static str) -> LineSource {
    LineSource::Field(topic, field, 1.0)
}

/// Reads a field that is in radians, and converts its values to degrees.
const fn deg(topic: &'static str, field: &'static str) -> LineSource {
    LineSource::Field(topic, field, DEGREES)
}

/// Reads a field that is in millimeters, and converts its values to meters.
const fn mm(topic: &'static str, field: &'static str) -> LineSource {
    LineSource::Field(topic, field, 1e-3)
}

const ATT: &str = "vehicle_attitude";
const ATT_SP: &str = "vehicle_attitude_setpoint";
const RATE: &str = "vehicle_angular_velocity";
const RATE_SP: &str = "vehicle_rates_setpoint";
const LOCAL: &str = "vehicle_local_position";
const LOCAL_SP: &str = "vehicle_local_position_setpoint";
const GPS: &str = "vehicle_gps_position";
const GPS_NEW: &str = "sensor_gps";
const STICKS: &str = "manual_control_setpoint";
const OLD_CONTROLS: &str = "actuator_controls_0";
const SENSORS: &str = "sensor_combined";
const BATTERY: &str = "battery_status";

#[rustfmt::skip]
const PANELS: &[Spec] = &[
    panel("Roll angle", "°", &[
        ("roll", &[LineSource::Angle(ATT, "q", 0)]),
        ("set point", &[LineSource::Angle(ATT_SP, "q_d", 0), deg(ATT_SP, "roll_body")]),
    ]),
    panel("Roll rate", "°/s", &[
        ("roll rate", &[deg(RATE, "xyz[0]"), deg(ATT, "rollspeed")]),
        ("set point", &[deg(RATE_SP, "roll")]),
    ]),
    panel("Pitch angle", "°", &[
        ("pitch", &[LineSource::Angle(ATT, "q", 1)]),
        ("set point", &[LineSource::Angle(ATT_SP, "q_d", 1), deg(ATT_SP, "pitch_body")]),
    ]),
    panel("Pitch rate", "°/s", &[
        ("pitch rate", &[deg(RATE, "xyz[1]"), deg(ATT, "pitchspeed")]),
        ("set point", &[deg(RATE_SP, "pitch")]),
    ]),
    panel("Yaw angle", "°", &[
        ("yaw", &[LineSource::Angle(ATT, "q", 2)]),
        ("set point", &[LineSource::Angle(ATT_SP, "q_d", 2), deg(ATT_SP, "yaw_body")]),
    ]),
    panel("Yaw rate", "°/s", &[
        ("yaw rate", &[deg(RATE, "xyz[2]"), deg(ATT, "yawspeed")]),
        ("set point", &[deg(RATE_SP, "yaw")]),
    ]),
    position_panel("Altitude", "m", &[
        ("GPS", &[mm(GPS, "alt"), f(GPS, "altitude_msl_m"), mm(GPS_NEW, "alt"), f(GPS_NEW, "altitude_msl_m")]),
        ("barometer", &[f("vehicle_air_data", "baro_alt_meter"), f(SENSORS, "baro_alt_meter")]),
        ("estimate", &[f("vehicle_global_position", "alt")]),
        ("set point", &[f("position_setpoint_triplet", "current.alt")]),
    ]),
    position_panel("Local position X", "m", &[("x", &[f(LOCAL, "x")]), ("set point", &[f(LOCAL_SP, "x")])]),
    position_panel("Local position Y", "m", &[("y", &[f(LOCAL, "y")]), ("set point", &[f(LOCAL_SP, "y")])]),
    position_panel("Local position Z", "m", &[("z", &[f(LOCAL, "z")]), ("set point", &[f(LOCAL_SP, "z")])]),
    panel("Velocity", "m/s", &[
        ("vx", &[f(LOCAL, "vx")]), ("vy", &[f(LOCAL, "vy")]), ("vz", &[f(LOCAL, "vz")]),
        ("vx set point", &[f(LOCAL_SP, "vx")]), ("vy set point", &[f(LOCAL_SP, "vy")]),
        ("vz set point", &[f(LOCAL_SP, "vz")]),
    ]),
    position_panel("Visual odometry position", "m", &[
        ("x", &[f("vehicle_visual_odometry", "x"), f("vehicle_visual_odometry", "position[0]")]),
        ("y", &[f("vehicle_visual_odometry", "y"), f("vehicle_visual_odometry", "position[1]")]),
        ("z", &[f("vehicle_visual_odometry", "z"), f("vehicle_visual_odometry", "position[2]")]),
    ]),
    panel("Airspeed", "m/s", &[
        ("true airspeed", &[f("airspeed_validated", "true_airspeed_m_s"), f("airspeed", "true_airspeed_m_s")]),
        ("indicated airspeed", &[f("airspeed", "indicated_airspeed_m_s")]),
        ("ground speed (GPS)", &[f(GPS, "vel_m_s"), f(GPS_NEW, "vel_m_s")]),
        ("set point", &[f("tecs_status", "true_airspeed_sp")]),
    ]),
    panel("TECS height rate", "m/s", &[
        ("height rate", &[f("tecs_status", "height_rate")]),
        ("set point", &[f("tecs_status", "height_rate_setpoint")]),
    ]),
    panel("Manual control", "", &[
        ("roll", &[f(STICKS, "roll"), f(STICKS, "y")]), ("pitch", &[f(STICKS, "pitch"), f(STICKS, "x")]),
        ("yaw", &[f(STICKS, "yaw"), f(STICKS, "r")]), ("throttle", &[f(STICKS, "throttle"), f(STICKS, "z")]),
        ("aux 1", &[f(STICKS, "aux1")]), ("aux 2", &[f(STICKS, "aux2")]),
    ]),
    panel("Actuator controls", "", &[
        ("roll", &[f("vehicle_torque_setpoint", "xyz[0]"), f(OLD_CONTROLS, "control[0]")]),
        ("pitch", &[f("vehicle_torque_setpoint", "xyz[1]"), f(OLD_CONTROLS, "control[1]")]),
        ("yaw", &[f("vehicle_torque_setpoint", "xyz[2]"), f(OLD_CONTROLS, "control[2]")]),
        ("thrust", &[LineSource::Field("vehicle_thrust_setpoint", "xyz[2]", -1.0), f(OLD_CONTROLS, "control[3]")]),
    ]),
    panel("Raw acceleration", "m/s²", &[
        ("x", &[f(SENSORS, "accelerometer_m_s2[0]")]), ("y", &[f(SENSORS, "accelerometer_m_s2[1]")]),
        ("z", &[f(SENSORS, "accelerometer_m_s2[2]")]),
    ]),
    panel("Vibration metrics", "m/s²", &[
        ("IMU 0", &[f("vehicle_imu_status", "accel_vibration_metric")]),
        ("IMU 1", &[f("vehicle_imu_status/1", "accel_vibration_metric")]),
        ("IMU 2", &[f("vehicle_imu_status/2", "accel_vibration_metric")]),
        ("IMU 3", &[f("vehicle_imu_status/3", "accel_vibration_metric")]),
    ]),
    panel("Raw angular speed", "°/s", &[
        ("x", &[deg(SENSORS, "gyro_rad[0]")]), ("y", &[deg(SENSORS, "gyro_rad[1]")]),
        ("z", &[deg(SENSORS, "gyro_rad[2]")]),
    ]),
    panel("Magnetic field", "G", &[
        ("x", &[f("vehicle_magnetometer", "magnetometer_ga[0]"), f(SENSORS, "magnetometer_ga[0]")]),
        ("y", &[f("vehicle_magnetometer", "magnetometer_ga[1]"), f(SENSORS, "magnetometer_ga[1]")]),
        ("z", &[f("vehicle_magnetometer", "magnetometer_ga[2]"), f(SENSORS, "magnetometer_ga[2]")]),
    ]),
    panel("Distance sensor", "m", &[
        ("distance", &[f("distance_sensor", "current_distance")]),
        ("estimate", &[f(LOCAL, "dist_bottom")]),
    ]),
    panel("GPS uncertainty", "", &[
        ("eph [m]", &[f(GPS, "eph"), f(GPS_NEW, "eph")]), ("epv [m]", &[f(GPS, "epv"), f(GPS_NEW, "epv")]),
        ("hdop", &[f(GPS, "hdop"), f(GPS_NEW, "hdop")]), ("vdop", &[f(GPS, "vdop"), f(GPS_NEW, "vdop")]),
        ("speed [m/s]", &[f(GPS, "s_variance_m_s"), f(GPS_NEW, "s_variance_m_s")]),
        ("satellites", &[f(GPS, "satellites_used"), f(GPS_NEW, "satellites_used")]),
        ("fix type", &[f(GPS, "fix_type"), f(GPS_NEW, "fix_type")]),
    ]),
    panel("GPS noise and jamming", "", &[
        ("noise per ms", &[f(GPS, "noise_per_ms"), f(GPS_NEW, "noise_per_ms")]),
        ("jamming indicator", &[f(GPS, "jamming_indicator"), f(GPS_NEW, "jamming_indicator")]),
    ]),
    panel("Battery voltage", "V", &[
        ("voltage", &[f(BATTERY, "voltage_v")]), ("filtered", &[f(BATTERY, "voltage_filtered_v")]),
    ]),
    panel("5 V supply", "V", &[("5 V supply", &[f("system_power", "voltage5v_v")])]),
    panel("Battery current", "A", &[
        ("current", &[f(BATTERY, "current_a")]), ("filtered", &[f(BATTERY, "current_filtered_a")]),
    ]),
    panel("Battery discharged", "mAh", &[("discharged", &[f(BATTERY, "discharged_mah")])]),
    panel("Battery remaining", "", &[("remaining", &[f(BATTERY, "remaining")])]),
    panel("Temperature", "°C", &[
        ("barometer", &[f("sensor_baro", "temperature"), f("vehicle_air_data", "baro_temp_celcius")]),
        ("accelerometer", &[f("sensor_accel", "temperature")]),
        ("battery", &[f(BATTERY, "temperature")]),
    ]),
    panel("CPU and RAM", "", &[("CPU load", &[f("cpuload", "load")]), ("RAM", &[f("cpuload", "ram_usage")])]),
];

/// Lines that are only drawn next to the values of a sensor, as titles of panels and names of
/// lines. For example, without an airspeed sensor, the panel `Airspeed` would only show the ground
/// speed.
const COMPANIONS: &[(&str, &str)] = &[("Airspeed", "ground speed (GPS)"), ("Distance sensor", "estimate")];

/// Time in seconds after which a set point is no longer valid if it was published regularly before.
const SET_POINT_TIMEOUT: f64 = 1.0;

/// Names of the bits in `estimator_status.innovation_check_flags`, starting with the lowest bit.
/// The bits are defined in `msg/EstimatorStatus.msg` of PX4.
#[rustfmt::skip]
const INNOVATIONS: &[&str] = &[
    "velocity", "horizontal position", "vertical position", "magnetometer X", "magnetometer Y",
    "magnetometer Z", "yaw", "airspeed", "sideslip", "height above ground", "optical flow X",
    "optical flow Y",
];

/// Returns the start and end of the plots in seconds.
fn shown(at: Span) -> [f64; 2] {
    [0.0, at.times.1.saturating_sub(at.times.0) as f64 / 1e9]
}

/// Returns the panels for which the log has data. If `redact` is true, positions are omitted.
pub(super) fn panels(log: &dyn LogReader, at: Span, redact: bool) -> Result<Vec<Panel>, ExportError> {
    let specs = PANELS.iter().filter(|spec| !(redact && spec.reveals_position));
    let specs = specs.map(|spec| Ok((spec, available_lines(log, spec.lines)?)));
    let specs = specs.collect::<Result<Vec<_>, ExportError>>()?;
    // The fields of all panels are read in one pass over the log.
    let sources = specs.iter().flat_map(|(_, lines)| lines).map(|(_, source)| *source);
    let signals: Vec<Signal> = sources.filter_map(|source| field_signal(log, source)).collect();
    let mut series = read(log, &signals, at.times, at.width, at.times.0)?.into_iter();
    let mut angles: BTreeMap<(&str, &str), [Series; 3]> = BTreeMap::new();
    let mut panels = Vec::new();
    for (&Spec { title, unit, .. }, lines) in specs {
        let mut drawn = Vec::new();
        for (name, source) in lines {
            let line = match source {
                LineSource::Field(_, _, factor) => series.next().flatten().map(|line| scaled(line, factor)),
                LineSource::Angle(topic, field, axis) => {
                    // Three panels show one angle each of the same quaternion, so the quaternion is
                    // read only once.
                    let by_axis = match angles.entry((topic, field)) {
                        Entry::Occupied(known) => known.into_mut(),
                        Entry::Vacant(entry) => entry.insert(self::angles(log, topic, field, at)?),
                    };
                    Some(by_axis[axis].clone())
                }
            };
            let Some(mut line) = line.filter(|line| line.range().is_some()) else { continue };
            style(&mut line, name, unit);
            if name.ends_with("set point") {
                interrupt(&mut line, source, log, at);
            }
            drawn.push(line);
        }
        // A panel of companions only is omitted, because the log has no values of the sensor.
        let is_companion =
            |line: &Series| COMPANIONS.contains(&(title, &*line.name)) || line.name.ends_with("set point");
        if drawn.iter().all(is_companion) {
            continue;
        }
        if title == "Vibration metrics" {
            let mut limit = Series::new("limit", shown(at).map(|time| (time, MEAN_LIMIT)).to_vec());
            limit.unit = Some(unit.to_owned());
            drawn.push(limit);
        }
        panels.push(Panel::new(title, drawn));
    }
    outputs(log, at, &mut panels)?;
    states(log, at, &mut panels)?;
    Ok(panels)
}

/// Returns the signal for a field. Returns `None` if the source is an angle, or the log lacks
/// the topic.
fn field_signal(log: &dyn LogReader, source: LineSource) -> Option<Signal> {
    let LineSource::Field(topic, field, _) = source else { return None };
    let topic = log.topic(topic)?;
    // An invalid set point is divided by 0, so that it is not drawn.
    let valid = field.strip_suffix(".alt").map(|stem| format!("{field} / {stem}.valid"));
    let valid = valid.and_then(|text| Signals::among(log, &[topic.get()]).one(&text).ok());
    Some(valid.unwrap_or_else(|| Signal::of(&topic.name, field)))
}

/// Sets the name, the unit and the drawing style of a line.
fn style(line: &mut Series, name: &str, unit: &str) {
    // Some values remain in effect until the next message, such as set points. They are drawn as
    // steps.
    let is_stepped = name.contains("set point") || line.look != Look::Line;
    line.look = if is_stepped { Look::Steps } else { Look::Line };
    line.names = &[];
    name.clone_into(&mut line.name);
    line.unit = Some(unit.to_owned()).filter(|unit| !unit.is_empty());
}

/// Appends the panels of states: problems of the estimator, and failsafes.
fn states(log: &dyn LogReader, at: Span, panels: &mut Vec<Panel>) -> Result<(), ExportError> {
    let innovations = bits(log, ("estimator_status", "innovation_check_flags"), INNOVATIONS, at)?;
    lanes("Estimator: rejected innovations", innovations, panels);
    let faults = flags(log, "estimator_status_flags", at, |field| {
        field.starts_with("fs_") || field.starts_with("reject_")
    })?;
    lanes("Estimator: faults and rejected measurements", faults, panels);
    let mut failsafe = flags(log, "vehicle_status", at, |field| field.starts_with("failsafe"))?;
    failsafe.extend(flags(log, "failsafe_flags", at, |field| {
        !field.starts_with("mode_req") && !field.starts_with("timestamp")
    })?);
    lanes("Failsafe", failsafe, panels);
    Ok(())
}

/// Appends a panel of on/off signals or states. Nothing is appended if `lanes` is empty.
fn lanes(title: &str, lanes: Vec<Series>, panels: &mut Vec<Panel>) {
    if !lanes.is_empty() {
        panels.push(Panel::new(title, lanes));
    }
}

/// Returns the lines of a panel for which the log has a source. For each line, the first source
/// that exists in the log is used.
fn available_lines(
    log: &dyn LogReader,
    lines: &'static [Line],
) -> Result<Vec<(&'static str, LineSource)>, ExportError> {
    let is_available = |source: &LineSource| -> Result<bool, ExportError> {
        let (topic, field) = match source {
            LineSource::Field(topic, field, _) => (topic, (*field).to_owned()),
            LineSource::Angle(topic, field, _) => (topic, format!("{field}[3]")),
        };
        match log.topic(topic).filter(|topic| topic.count > 0) {
            Some(topic) => Ok(numeric_fields(log, topic.get())?.contains(&field)),
            None => Ok(false),
        }
    };
    let mut found = Vec::new();
    for (name, sources) in lines {
        for source in *sources {
            if is_available(source)? {
                found.push((*name, *source));
                break;
            }
        }
    }
    Ok(found)
}

/// Multiplies the values of a line by a factor.
fn scaled(mut line: Series, factor: f64) -> Series {
    #[expect(clippy::float_cmp, reason = "a constant")]
    if factor != 1.0 {
        line.points.iter_mut().for_each(|(_, value)| *value *= factor);
    }
    line
}

/// Interrupts a set point where PX4 did not publish it, which means that it was not valid. A set
/// point that is only published when it changes stays valid. `source` is the source of the line.
fn interrupt(line: &mut Series, source: LineSource, log: &dyn LogReader, at: Span) {
    let (LineSource::Field(topic, ..) | LineSource::Angle(topic, ..)) = source;
    let rate = log.topic(topic).and_then(|topic| topic.rate_hz()).unwrap_or(0.0);
    let column = at.times.1.saturating_sub(at.times.0) as f64 / 1e9 / at.width.max(1) as f64;
    let timeout = SET_POINT_TIMEOUT.max(10.0 / rate).max(2.0 * column);
    let mut last = f64::INFINITY;
    for (time, value) in std::mem::take(&mut line.points) {
        if time - last > timeout {
            line.points.push((last, f64::NAN));
        }
        line.points.push((time, if value.is_finite() { value } else { f64::NAN }));
        last = time;
    }
}

/// Reads a quaternion and returns roll, pitch and yaw in degrees. The angles are computed for each
/// row before they are reduced. The components of a quaternion cannot be reduced separately.
fn angles(log: &dyn LogReader, topic: &str, field: &str, at: Span) -> Result<[Series; 3], ExportError> {
    let parts = [0, 1, 2, 3].map(|i| format!("{field}[{i}]"));
    let mut reducer = [(); 3].map(|()| Reducer::new(at.times, at.width));
    each_row(log, topic, &parts.each_ref().map(String::as_str), at.window(), |time, q| {
        #[expect(clippy::cast_possible_truncation, reason = "PX4 logs 32 bits")]
        let angles = roll_pitch_yaw([q[0] as f32, q[1] as f32, q[2] as f32, q[3] as f32]);
        for (reducer, angle) in reducer.iter_mut().zip(angles) {
            reducer.push(time, f64::from(angle).to_degrees());
        }
    })?;
    Ok(reducer.map(|reducer| Series::new("", reducer.points(at.times.0))))
}

/// Inserts panels of the motor and servo outputs before the panel of raw acceleration. Only outputs
/// that change during the flight are shown.
fn outputs(log: &dyn LogReader, at: Span, panels: &mut Vec<Panel>) -> Result<(), ExportError> {
    let sources = [
        ("Motor outputs", "actuator_motors", "control["),
        ("Servo outputs", "actuator_servos", "control["),
        ("Actuator outputs", "actuator_outputs", "output["),
        ("Motor speed", "esc_status", "].esc_rpm"),
    ];
    let insert = panels.iter().position(|panel| panel.title == "Raw acceleration").unwrap_or(panels.len());
    let mut found = Vec::new();
    for (title, topic, part) in sources {
        let Some(topic) = log.topic(topic).filter(|topic| topic.count > 0) else { continue };
        let fields = numeric_fields(log, topic.get())?.into_iter().filter(|field| field.contains(part));
        let signals: Vec<_> = fields.map(|field| Signal::of(&topic.name, &field)).collect();
        let mut lines = short(series(log, &signals, at)?);
        // PX4 logs 16 outputs. Most of them are not connected and never change.
        lines.retain(|line| line.range().is_some_and(|(low, high)| low < high));
        for line in &mut lines {
            line.look = Look::Line;
            line.unit = title.ends_with("speed").then(|| "rpm".to_owned());
        }
        if !lines.is_empty() {
            found.extend(Panel::by_unit(title, lines));
        }
    }
    panels.splice(insert..insert, found);
    Ok(())
}
