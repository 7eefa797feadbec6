//! Units and names of values that the log does not state: those of PX4's messages and of ROS's
//! standard packages.

use rovelog::ulog_format::px4::Mode;
use rovelog::{LogReader, Topic};

/// Names of states by value.
pub(super) type Names = &'static [(i64, &'static str)];

const fn mode(nav_state: u8, old: bool) -> (i64, &'static str) {
    let name = match (Mode { nav_state, old }).name() {
        Some(name) => name,
        None => "Unknown mode",
    };
    (nav_state as i64, name)
}

const fn modes(old: bool) -> [(i64, &'static str); 31] {
    let mut all = [(0, ""); 31];
    let mut i = 0;
    while i < 31 {
        all[i as usize] = mode(i, old);
        i += 1;
    }
    all
}

static MODES: [(i64, &str); 31] = modes(false);
static OLD_MODES: [(i64, &str); 31] = modes(true);

/// PX4: type, field, names. Sources: the enumerations in PX4's `msg/*.msg`.
const STATES: &[(&str, &str, Names)] = &[
    ("vehicle_status", "arming_state", &[(0, "Init"), (1, "Disarmed"), (2, "Armed")]),
    (
        "vehicle_status",
        "vehicle_type",
        &[(0, "Unknown"), (1, "Rotary wing"), (2, "Fixed wing"), (3, "Rover"), (4, "Airship")],
    ),
    (
        "battery_status",
        "warning",
        &[(0, "None"), (1, "Low"), (2, "Critical"), (3, "Emergency"), (4, "Failed")],
    ),
    (
        "vtol_vehicle_status",
        "vehicle_vtol_state",
        &[
            (0, "Undefined"),
            (1, "To fixed wing"),
            (2, "To multicopter"),
            (3, "Multicopter"),
            (4, "Fixed wing"),
        ],
    ),
    ("vehicle_gps_position", "fix_type", FIX),
    ("sensor_gps", "fix_type", FIX),
];

const FIX: Names = &[
    (0, "No fix"),
    (1, "No fix"),
    (2, "2D"),
    (3, "3D"),
    (4, "Differential"),
    (5, "RTK float"),
    (6, "RTK fixed"),
    (8, "Extrapolated"),
];

/// PX4: type, start of the field, unit; the first match counts. Sources: the comments in
/// PX4's `msg/*.msg`.
const PX4: &[(&str, &str, &str)] = &[
    ("vehicle_attitude", "rollspeed", "rad/s"),
    ("vehicle_attitude", "pitchspeed", "rad/s"),
    ("vehicle_attitude", "yawspeed", "rad/s"),
    ("vehicle_attitude_setpoint", "roll_body", "rad"),
    ("vehicle_attitude_setpoint", "pitch_body", "rad"),
    ("vehicle_attitude_setpoint", "yaw_body", "rad"),
    ("vehicle_rates_setpoint", "roll", "rad/s"),
    ("vehicle_rates_setpoint", "pitch", "rad/s"),
    ("vehicle_rates_setpoint", "yaw", "rad/s"),
    ("vehicle_angular_velocity", "xyz_derivative", "rad/s²"),
    ("vehicle_angular_velocity", "xyz", "rad/s"),
    ("vehicle_acceleration", "xyz", "m/s²"),
    ("sensor_combined", "gyro_rad", "rad/s"),
    ("sensor_combined", "accelerometer_m_s2", "m/s²"),
    ("sensor_combined", "magnetometer_ga", "G"),
    ("sensor_combined", "baro_alt_meter", "m"),
    ("sensor_combined", "baro_temp_celcius", "°C"),
    ("sensor_accel", "x", "m/s²"),
    ("sensor_accel", "y", "m/s²"),
    ("sensor_accel", "z", "m/s²"),
    ("sensor_gyro", "x", "rad/s"),
    ("sensor_gyro", "y", "rad/s"),
    ("sensor_gyro", "z", "rad/s"),
    ("sensor_mag", "x", "G"),
    ("sensor_mag", "y", "G"),
    ("sensor_mag", "z", "G"),
    ("vehicle_magnetometer", "magnetometer_ga", "G"),
    ("vehicle_air_data", "baro_alt_meter", "m"),
    ("vehicle_air_data", "baro_pressure_pa", "Pa"),
    ("vehicle_air_data", "baro_temp_celcius", "°C"),
    ("vehicle_air_data", "rho", "kg/m³"),
    ("sensor_baro", "temperature", "°C"),
    ("sensor_accel", "temperature", "°C"),
    ("sensor_gyro", "temperature", "°C"),
    ("sensor_mag", "temperature", "°C"),
    ("vehicle_global_position", "alt", "m"),
    ("vehicle_global_position", "lat", "°"),
    ("vehicle_global_position", "lon", "°"),
    ("vehicle_global_position", "eph", "m"),
    ("vehicle_global_position", "epv", "m"),
    ("vehicle_gps_position", "eph", "m"),
    ("vehicle_gps_position", "epv", "m"),
    ("vehicle_gps_position", "vel_", "m/s"),
    ("sensor_gps", "eph", "m"),
    ("sensor_gps", "epv", "m"),
    ("sensor_gps", "vel_", "m/s"),
    ("battery_status", "voltage", "V"),
    ("battery_status", "nominal_voltage", "V"),
    ("battery_status", "ocv_estimate", "V"),
    ("battery_status", "max_cell_voltage_delta", "V"),
    ("battery_status", "current", "A"),
    ("battery_status", "internal_resistance_estimate", "Ω"),
    ("battery_status", "full_charge_capacity_wh", "Wh"),
    ("battery_status", "remaining_capacity_wh", "Wh"),
    ("battery_status", "capacity", "mAh"),
    ("battery_status", "time_remaining_s", "s"),
    ("battery_status", "discharged_mah", "mAh"),
    ("battery_status", "temperature", "°C"),
    ("system_power", "voltage5v_v", "V"),
    ("airspeed", "true_airspeed", "m/s"),
    ("airspeed", "indicated_airspeed", "m/s"),
    ("distance_sensor", "current_distance", "m"),
    ("distance_sensor", "min_distance", "m"),
    ("distance_sensor", "max_distance", "m"),
];

/// Fields of `vehicle_local_position` and its set points, and their units.
const POSITION: &[(&[&str], &str)] = &[
    (&["x", "y", "z", "eph", "epv", "dist_bottom", "hagl_min", "hagl_max", "ref_alt"], "m"),
    (&["vx", "vy", "vz", "z_deriv", "evh", "evv", "dist_bottom_rate", "vxy_max", "vz_max"], "m/s"),
    (&["ax", "ay", "az"], "m/s²"),
    (&["heading", "yaw"], "rad"),
    (&["yawspeed"], "rad/s"),
];

/// ROS's standard packages: what a field's path contains, and the unit.
const ROS: &[(&str, &str)] = &[
    ("linear_acceleration.", "m/s²"),
    ("angular_velocity.", "rad/s"),
    ("linear.", "m/s"),
    ("angular.", "rad/s"),
    ("position.", "m"),
];

/// ROS: type, field, unit. Sources: the definitions of `sensor_msgs`.
const ROS_FIELDS: &[(&str, &str, &str)] = &[
    ("sensor_msgs/LaserScan", "angle_", "rad"),
    ("sensor_msgs/LaserScan", "range", "m"),
    ("sensor_msgs/LaserScan", "scan_time", "s"),
    ("sensor_msgs/LaserScan", "time_increment", "s"),
    ("sensor_msgs/NavSatFix", "latitude", "°"),
    ("sensor_msgs/NavSatFix", "longitude", "°"),
    ("sensor_msgs/NavSatFix", "altitude", "m"),
    ("sensor_msgs/BatteryState", "voltage", "V"),
    ("sensor_msgs/BatteryState", "current", "A"),
    ("sensor_msgs/Range", "range", "m"),
    ("sensor_msgs/Range", "min_range", "m"),
    ("sensor_msgs/Range", "max_range", "m"),
    ("sensor_msgs/Temperature", "temperature", "°C"),
    ("sensor_msgs/FluidPressure", "fluid_pressure", "Pa"),
];

/// Returns a unit as it is written on an axis.
pub(super) fn written(unit: &str) -> String {
    match unit {
        "deg" => "°".to_owned(),
        "us" => "µs".to_owned(),
        unit => unit.replace("/s2", "/s²"),
    }
}

/// Returns the unit of a field that the log does not state.
pub(super) fn unit(log: &dyn LogReader, topic: &Topic, field: &str) -> Option<&'static str> {
    let of = |list: &[(&str, &str, &'static str)]| {
        let found = list.iter().find(|(ty, start, _)| *ty == topic.type_name && field.starts_with(start));
        found.map(|(_, _, unit)| *unit)
    };
    match log.format().id {
        "ulog" if px4(log) => of(PX4).or_else(|| {
            let position = topic.type_name.starts_with("vehicle_local_position");
            let found = POSITION.iter().find(|(fields, _)| position && fields.contains(&field));
            found.map(|(_, unit)| *unit)
        }),
        "rosbag" => of(ROS_FIELDS).or_else(|| {
            let standard = ["geometry_msgs/", "sensor_msgs/", "nav_msgs/"];
            let standard = standard.iter().any(|package| topic.type_name.starts_with(package));
            ROS.iter().find(|(part, _)| standard && field.contains(part)).map(|(_, unit)| *unit)
        }),
        _ => None,
    }
}

/// Returns the names of a field's states; none if the log is not of PX4.
pub(super) fn names(log: &dyn LogReader, topic: &Topic, field: &str) -> Names {
    if log.format().id != "ulog" || !px4(log) {
        return &[];
    }
    if topic.type_name == "vehicle_status" && field.starts_with("nav_state") && field != "nav_state_timestamp"
    {
        let fields = topic.schema.as_ref().map(|schema| &schema.fields);
        // The field came with 1.14, when the old meanings had gone.
        let new =
            fields.is_some_and(|all| all.iter().any(|field| &*field.name == "nav_state_user_intention"));
        return if new { &MODES } else { &OLD_MODES };
    }
    let found = STATES.iter().find(|(ty, name, _)| *ty == topic.type_name && *name == field);
    found.map_or(&[], |(_, _, names)| *names)
}

fn px4(log: &dyn LogReader) -> bool {
    log.info().dialect == Some("px4")
}
