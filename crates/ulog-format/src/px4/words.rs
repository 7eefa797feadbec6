//! Texts for releases, vehicle types and events.

/// Name, group and message of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventText {
    /// Name of the event in the source code of the firmware, including its namespace. An example is
    /// `px4::commander_armed_by`.
    pub name: String,
    /// Group of the event, which shows its purpose.
    ///
    /// - `default`: messages for users
    /// - `health` and `arming_check`: reports that ground stations collect
    /// - `calibration`: instructions for a dialog
    pub group: String,
    /// Message on one line, with the values of the arguments and without markup.
    pub message: String,
}

/// Formats a release number of the form 0xAABBCCTT, for example as `v1.11.2 dev`. See "Predefined
/// information messages" in the specification.
pub fn release(packed: u32) -> String {
    let [major, minor, patch, kind] = packed.to_be_bytes();
    let kind = match kind {
        0..=63 => " dev",
        64..=127 => " alpha",
        128..=191 => " beta",
        192..=254 => " rc",
        255 => "",
    };
    format!("v{major}.{minor}.{patch}{kind}")
}

/// Returns the name of a MAVLink vehicle type (`MAV_TYPE`), or `None` if the number is not a
/// vehicle type.
pub(crate) fn vehicle_type(mav_type: i64) -> Option<&'static str> {
    Some(match mav_type {
        1 => "fixed wing",
        2 => "quadrotor",
        3 => "coaxial helicopter",
        4 => "helicopter",
        5 => "antenna tracker",
        6 => "ground control station",
        7 => "airship",
        8 => "balloon",
        9 => "rocket",
        10 => "rover",
        11 => "boat",
        12 => "submarine",
        13 => "hexarotor",
        14 => "octorotor",
        15 => "tricopter",
        16 => "flapping wing",
        17 => "kite",
        18 => "onboard controller",
        19 => "VTOL tailsitter duo",
        20 => "VTOL tailsitter quad",
        21 => "VTOL tiltrotor",
        22 => "VTOL standard",
        23 => "VTOL tailsitter",
        24 => "VTOL tiltwing",
        26 => "gimbal",
        28 => "parafoil",
        29 => "dodecarotor",
        35 => "decarotor",
        37 => "parachute",
        43 => "multirotor",
        45 => "spacecraft",
        46 => "quadruped",
        47 => "VTOL gyrodyne",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_formatted_as_in_the_specification() {
        assert_eq!(release(0x0104_02ff), "v1.4.2");
        assert_eq!(release(0x010b_0200), "v1.11.2 dev");
        assert_eq!(release(0x010e_0040), "v1.14.0 alpha");
        assert_eq!(release(0x010e_0080), "v1.14.0 beta");
        assert_eq!(release(0x010e_00c0), "v1.14.0 rc");
        let borders = [(0, " dev"), (63, " dev"), (64, " alpha"), (127, " alpha"), (128, " beta")];
        let others = [(191, " beta"), (192, " rc"), (254, " rc"), (255, "")];
        for (byte, kind) in borders.into_iter().chain(others) {
            assert_eq!(release(0x0102_0300 | byte), format!("v1.2.3{kind}"), "type byte {byte}");
        }
    }

    #[test]
    fn vehicles_have_the_names_of_mavlink() {
        let names = [(2, "quadrotor"), (7, "airship"), (8, "balloon"), (9, "rocket"), (22, "VTOL standard")];
        for (number, name) in names {
            assert_eq!(vehicle_type(number), Some(name));
        }
        assert_eq!(vehicle_type(0), None);
    }
}
