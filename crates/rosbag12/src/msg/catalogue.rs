//! Built-in definitions of common message types, for bags without definitions.
//!
//! The catalogue contains the fields and constants of types in `std_msgs`, `roslib`,
//! `rosgraph_msgs`, `sensor_msgs`, `geometry_msgs`, `nav_msgs` and `tf` as of 2007 to 2010. A test
//! verifies their md5 sums.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::text::FullText;
use super::types::Types;

/// Definitions of all types in the catalogue, in the form of one full text: a list of type names,
/// each with the text of the type.
static TEXT: &str = include_str!("catalogue.msg");

struct Catalogue {
    /// Names and texts of all types in the catalogue.
    full: FullText<'static>,
    /// Map from the md5 sum of a type to the name of the type.
    by_sum: HashMap<String, String>,
}

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| {
    let full = FullText::split(TEXT.as_bytes());
    let own = |name: &str| full.section(name).map(<[u8]>::to_vec);
    let mut by_sum = HashMap::new();
    for (name, text) in &full.sections {
        if let Ok(types) = Types::resolve(name, text, 64, &own) {
            // If two types have the same md5 sum, the newer type comes later in the text and
            // replaces the older type.
            by_sum.insert(types.sum_v1().0, name.to_string());
            by_sum.insert(types.sum_v2().0, name.to_string());
        }
    }
    Catalogue { full, by_sum }
});

/// Returns the text of a type in the catalogue, by its full name.
///
/// ```
/// assert_eq!(rosbag12::msg::known("std_msgs/String"), Some("string data\n"));
/// ```
pub fn known(name: &str) -> Option<&'static str> {
    let name =
        name.strip_prefix("rostools/").map_or_else(|| name.to_owned(), |rest| format!("roslib/{rest}"));
    CATALOGUE.full.section(&name).and_then(|text| std::str::from_utf8(text).ok())
}

/// Returns the name of the type in the catalogue that has this md5 sum.
pub(crate) fn name_of_sum(sum: &str) -> Option<&'static str> {
    CATALOGUE.by_sum.get(sum).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(name: &str) -> String {
        let text = known(name).unwrap();
        let own = |name: &str| known(name).map(|text| text.as_bytes().to_vec());
        Types::resolve(name, text.as_bytes(), 64, &own).unwrap().sum_v2().0
    }

    #[test]
    fn entries_have_the_sums_of_the_real_messages() {
        for (name, want) in [
            ("std_msgs/Empty", "d41d8cd98f00b204e9800998ecf8427e"),
            ("std_msgs/String", "992ce8a1687cec8c8bd883ec73ca41d1"),
            ("std_msgs/Header", "2176decaecbce78abc3b96ef049fabed"),
            ("roslib/Header", "2176decaecbce78abc3b96ef049fabed"),
            ("std_msgs/UInt8MultiArray", "82373f1612381bb6ee473b5cd6f5d89c"),
            ("geometry_msgs/Twist", "9f195f881246fdfa2798d1d3eebca84a"),
            ("geometry_msgs/PoseStamped", "d3812c3cbc69362b77dc0b19b345f8f5"),
            ("tf/tfMessage", "94810edda583a504dfda3829e70d7eec"),
            ("sensor_msgs/Imu", "6a62c6daae103f4ff57a132d6f95cec2"),
            ("sensor_msgs/LaserScan", "90c7ef2dc6895d81024acba2ac42f369"),
            ("sensor_msgs/Image", "060021388200f6f0f447d0fcd9c64743"),
            ("sensor_msgs/CameraInfo", "c9a58c1b0b154e0e6da7578cb991d214"),
            ("sensor_msgs/PointCloud2", "1158d486dd51d683ce2f1be655c3c181"),
            ("nav_msgs/Odometry", "cd5e73d190d741a2f92e81eda573aca7"),
            ("rosgraph_msgs/Log", "acffd30cd6b6de30f120938c17c593fb"),
            ("roslib/Log", "acffd30cd6b6de30f120938c17c593fb"),
        ] {
            assert_eq!(sum(name), want, "{name}");
        }
    }

    #[test]
    fn every_entry_resolves_and_is_found_by_its_sum() {
        for (name, _) in &CATALOGUE.full.sections {
            assert!(name_of_sum(&sum(name)).is_some(), "{name}");
        }
        assert_eq!(name_of_sum("6a62c6daae103f4ff57a132d6f95cec2"), Some("sensor_msgs/Imu"));
        assert_eq!(known("rostools/Header"), known("roslib/Header"));
        assert_eq!(known("none/None"), None);
    }
}
