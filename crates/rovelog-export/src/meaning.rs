//! Units of fields, and names of values such as flight modes. ROS message definitions state units
//! only in comments, so the units of ROS's standard messages are listed here.

use rovelog::core::schema::ValueNames;
use rovelog::{LogReader, Schema, Topic};

/// Units of fields in ROS's standard packages, by a part of the field's path.
const ROS: &[(&str, &str)] = &[
    ("linear_acceleration.", "m/s²"),
    ("angular_velocity.", "rad/s"),
    ("linear.", "m/s"),
    ("angular.", "rad/s"),
    ("position.", "m"),
];

/// Units of fields in message types whose name starts with [`ACCEL`], by a part of the field's
/// path.
const ROS_ACCEL: &[(&str, &str)] = &[("linear.", "m/s²"), ("angular.", "rad/s²")];
/// Start of the names of ROS message types for accelerations. These types use the same field names
/// as the types for velocities, so they need a separate list of units.
const ACCEL: &str = "geometry_msgs/Accel";

/// Units of fields in single ROS message types. Each entry has the message type, the start of the
/// field's path, and the unit. The units come from comments in the message definitions.
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

/// Returns a unit as it is shown on the axis of a plot, such as `m/s²` for `m/s2`.
pub(crate) fn written(unit: &str) -> String {
    match unit {
        "deg" => return "°".to_owned(),
        "degC" => return "°C".to_owned(),
        "Ohm" => return "Ω".to_owned(),
        "us" => return "µs".to_owned(),
        _ => {}
    }
    // A digit after a letter is an exponent, as in `m/s2` and `kg/m3`.
    let power = |text: &str, digit: char, written: char| {
        let mut before = ' ';
        let powers = text.chars().map(|c| {
            let is_power = c == digit && before.is_ascii_alphabetic();
            before = c;
            if is_power { written } else { c }
        });
        powers.collect::<String>()
    };
    power(&power(unit, '2', '²'), '3', '³')
}

/// Returns the unit of a field according to the documentation of its message type.
pub(crate) fn unit(log: &dyn LogReader, topic: &Topic, field: &str) -> Option<&'static str> {
    (log.format().id == "rosbag").then(|| of_ros(&topic.type_name, field)).flatten()
}

fn of_ros(type_name: &str, field: &str) -> Option<&'static str> {
    let of_type = ROS_FIELDS.iter().find(|(ty, start, _)| *ty == type_name && field.starts_with(start));
    of_type.map(|(_, _, unit)| *unit).or_else(|| {
        let standard = ["geometry_msgs/", "sensor_msgs/", "nav_msgs/"];
        let standard = standard.iter().any(|package| type_name.starts_with(package));
        let parts = if type_name.starts_with(ACCEL) { ROS_ACCEL } else { ROS };
        parts.iter().find(|(part, _)| standard && field.contains(part)).map(|(_, unit)| *unit)
    })
}

/// Returns the names of the values of a field, such as the names of flight modes. `field` is the
/// path of the field.
pub(crate) fn names(topic: &Topic, field: &str) -> ValueNames {
    let named = |schema: &Schema| schema.fields.iter().find(|known| *known.name == *field)?.names;
    topic.schema.as_deref().and_then(named).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::of_ros;

    #[test]
    fn accelerations_are_no_speeds() {
        for (type_name, field, unit) in [
            ("geometry_msgs/Accel", "linear.x", Some("m/s²")),
            ("geometry_msgs/AccelWithCovarianceStamped", "accel.accel.angular.z", Some("rad/s²")),
            ("geometry_msgs/TwistStamped", "twist.linear.x", Some("m/s")),
            ("geometry_msgs/Twist", "angular.z", Some("rad/s")),
            ("sensor_msgs/Imu", "linear_acceleration.x", Some("m/s²")),
            ("own_msgs/Accel", "linear.x", None),
        ] {
            assert_eq!(of_ros(type_name, field), unit, "{type_name} {field}");
        }
    }
}
