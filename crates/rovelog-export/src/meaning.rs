//! Units that neither the log nor its format states: those of ROS's standard packages.

use rovelog::core::schema::ValueNames;
use rovelog::{LogReader, Schema, Topic};

/// ROS's standard packages: what a field's path contains, and the unit.
const ROS: &[(&str, &str)] = &[
    ("linear_acceleration.", "m/s²"),
    ("angular_velocity.", "rad/s"),
    ("linear.", "m/s"),
    ("angular.", "rad/s"),
    ("position.", "m"),
];

/// The same for types whose name starts with [`ACCEL`].
const ROS_ACCEL: &[(&str, &str)] = &[("linear.", "m/s²"), ("angular.", "rad/s²")];
const ACCEL: &str = "geometry_msgs/Accel";

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
pub(crate) fn written(unit: &str) -> String {
    match unit {
        "deg" => return "°".to_owned(),
        "degC" => return "°C".to_owned(),
        "Ohm" => return "Ω".to_owned(),
        "us" => return "µs".to_owned(),
        _ => {}
    }
    // Powers: m/s2, kg/m3.
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

/// Returns the unit of a field that the log does not state.
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

/// Returns the names of a field's values, by its path.
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
