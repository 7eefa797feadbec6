//! What PX4 means by the information it logs: versions and vehicle types.

/// A release as information messages store it, 0xAABBCCTT: `v1.11.2 dev`. "Predefined information messages"
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

/// The name of a MAVLink vehicle type (`MAV_TYPE`), for those that PX4 flies and drives.
pub fn vehicle_type(mav_type: i64) -> Option<&'static str> {
    Some(match mav_type {
        1 => "fixed wing",
        2 => "quadrotor",
        3 => "coaxial helicopter",
        4 => "helicopter",
        10 => "rover",
        11 => "boat",
        12 => "submarine",
        13 => "hexarotor",
        14 => "octorotor",
        15 => "tricopter",
        19 => "VTOL tailsitter duo",
        20 => "VTOL tailsitter quad",
        21 => "VTOL tiltrotor",
        22 => "VTOL standard",
        23 => "VTOL tailsitter",
        29 => "dodecarotor",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_read_as_the_specification_says() {
        assert_eq!(release(0x0104_02ff), "v1.4.2");
        assert_eq!(release(0x010b_0200), "v1.11.2 dev");
        assert_eq!(release(0x010e_0040), "v1.14.0 alpha");
        assert_eq!(release(0x010e_0080), "v1.14.0 beta");
        assert_eq!(release(0x010e_00c0), "v1.14.0 rc");
    }
}
