//! Meaning of fields and values by their names.

/// Names of a latitude and of the longitude that belongs to it, as words of a field's name.
const PAIRS: [[&str; 2]; 4] = [["latitude", "longitude"], ["lat", "lon"], ["lat", "lng"], ["lat", "long"]];

/// Names that are a position only if their values are near a position of the log: parameters of
/// MAVLink commands, waypoints of mavros, and arrays of PX4's estimator, which have both numbers.
const LOOSE_PAIRS: [[&str; 2]; 3] =
    [["param5", "param6"], ["x_lat", "y_long"], ["observation", "observation"]];

/// Words in the names of coordinates.
const COORDINATES: [&str; 10] =
    ["lat", "latitude", "lon", "lng", "longitude", "utm", "easting", "northing", "ecef", "geohash"];

/// Words that show that a number is not a coordinate, such as a change or an accuracy of one.
const NOT_COORDINATES: [&str; 20] = [
    "delta", "reset", "counter", "valid", "acc", "accuracy", "accel", "err", "error", "std", "stdev", "dev",
    "sigma", "var", "variance", "vel", "speed", "rate", "dist", "hp",
];

/// Names of values that identify a device or a person.
#[rustfmt::skip]
const IDENTITIES: [&str; 17] = [
    "sys_uuid", "uuid", "guid", "uid", "mac", "mac_address", "comment", "hostname", "host_name",
    "serial", "serial_number", "serial_num", "hardware_id", "uas_id", "operator_id", "user",
    "username",
];

/// Types of records and their fields with raw data of a receiver or of MAVLink, which may contain
/// positions.
const RAW: [[&str; 2]; 6] = [
    ["gps_dump", "data"],
    ["gps_inject_data", "data"],
    ["mavlink_tunnel", "payload"],
    ["mavros_msgs/Mavlink", "payload64"],
    ["mavros_msgs/RTCM", "data"],
    ["rtcm_msgs/Message", "message"],
];

/// Types of records that contain lines of a console, and the field with the text.
const CONSOLES: [[&str; 2]; 4] =
    [["rosgraph_msgs/Log", "msg"], ["roslib/Log", "msg"], ["mavlink_log", "text"], ["log_message", "text"]];

/// Fields next to the field `data` of an image or a video.
const IMAGE_FIELDS: [&str; 3] = ["encoding", "format", "is_compressed"];

/// Divides a name into words in lower case. Both `home_lat` and `homeLat0` have the words `home` and
/// `lat`.
fn words(name: &str) -> Vec<String> {
    let (mut words, mut was_lower) = (vec![String::new()], false);
    for c in name.chars() {
        if !c.is_alphabetic() || (was_lower && c.is_uppercase()) {
            words.push(String::new());
        }
        if c.is_alphabetic() {
            words.last_mut().expect("never empty").extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Longitude that belongs to a latitude.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Partner {
    /// Index of the longitude in the names.
    pub(super) index: usize,
    /// True if the values are a position only if they are near a position of the log.
    pub(super) is_loose: bool,
}

/// Returns the longitude among `names` that belongs to the latitude with the index `latitude`.
pub(super) fn partner(names: &[&str], latitude: usize) -> Option<Partner> {
    let name = names[latitude];
    let find = |is_same: &dyn Fn(&str) -> bool| names.iter().position(|name| is_same(name));
    let loose = LOOSE_PAIRS.iter().find(|[lat, _]| *lat == name);
    if let Some(index) = loose.and_then(|[_, lon]| find(&|name| name == *lon)) {
        return Some(Partner { index, is_loose: true });
    }
    let own = words(name);
    PAIRS.iter().find_map(|[lat, lon]| {
        let at = own.iter().position(|word| word == lat)?;
        let mut wanted = own.clone();
        (*lon).clone_into(&mut wanted[at]);
        let digits = |name: &str| name.chars().filter(char::is_ascii_digit).collect::<String>();
        let is_partner = |other: &str| words(other) == wanted && digits(other) == digits(name);
        Some(Partner { index: find(&is_partner)?, is_loose: false })
    })
}

/// Returns whether a number with this name may be a coordinate.
pub(super) fn is_coordinate(name: &str) -> bool {
    let words = words(name);
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&&**word));
    has(&COORDINATES) && !has(&NOT_COORDINATES)
}

/// Returns whether a number with this name may be a time.
pub(super) fn is_time(name: &str) -> bool {
    words(name).iter().any(|word| ["time", "timestamp", "stamp", "utc", "unix", "epoch"].contains(&&**word))
}

/// Returns whether a value with this name identifies a device or a person.
pub(super) fn is_identity(name: &str) -> bool {
    IDENTITIES.contains(&&*name.to_lowercase())
}

/// Returns whether the field of a record type contains raw data of a receiver.
pub(super) fn is_raw(ty: &str, field: &str) -> bool {
    RAW.contains(&[ty, field])
}

/// Returns whether the field of a record type is a line of a console.
pub(super) fn is_console(ty: &str, field: &str) -> bool {
    CONSOLES.contains(&[ty, field])
}

/// Returns whether the field of a struct with the fields `names` is an image or a video.
pub(super) fn is_image(names: &[&str], field: &str) -> bool {
    field == "data" && IMAGE_FIELDS.iter().any(|name| names.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_divided_into_words() {
        assert_eq!(words("home_lat"), ["home", "lat"]);
        assert_eq!(words("SIH_LOC_LAT0"), ["sih", "loc", "lat"]);
        assert_eq!(words("gpsLat"), ["gps", "lat"]);
        assert!(words("__7").is_empty());
    }

    #[test]
    fn a_latitude_has_the_longitude_with_the_same_other_words() {
        let index = |names: &[&str], at| partner(names, at).map(|partner| partner.index);
        assert_eq!(index(&["lon", "ref_lat", "lat", "ref_lon"], 1), Some(3));
        assert_eq!(index(&["latitude_deg", "longitude_deg"], 0), Some(1));
        assert_eq!(index(&["lat1", "lon2", "lon1"], 0), Some(2));
        assert_eq!(index(&["homeLat", "homeLng"], 0), Some(1));
        assert_eq!(index(&["lat_accel", "lon"], 0), None);
        assert_eq!(index(&["platform", "plonform"], 0), None);
        assert_eq!(partner(&["param5", "param6"], 0), Some(Partner { index: 1, is_loose: true }));
    }

    #[test]
    fn coordinates_are_told_from_their_accuracy() {
        assert!(["lat", "lon_1", "utm_easting", "ecefX"].map(is_coordinate).iter().all(|is| *is));
        assert!(
            !["delta_lat_lon", "lat_accel", "platform", "translation"].map(is_coordinate).contains(&true)
        );
    }
}
