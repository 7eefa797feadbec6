//! Flight modes and their names.
//!
//! The source is PX4 `msg/versioned/VehicleStatus.msg` (`NAVIGATION_STATE_*`) and earlier versions
//! of this file.

use std::fmt;

/// A flight mode of PX4.
///
/// `Display` writes the name and the number, such as `Mission (3)`, because the meaning of a few
/// numbers has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mode {
    /// Value of the field `nav_state` in the topic `vehicle_status`.
    pub nav_state: u8,
    /// True if the log is from a PX4 release before 1.14. In these releases, the mode numbers 6 to
    /// 9 and 16 had other meanings.
    pub old: bool,
}

impl Mode {
    /// Returns the name of the flight mode, as in QGroundControl and the PX4 documentation. Returns
    /// `None` for an unknown mode number.
    pub const fn name(self) -> Option<&'static str> {
        Some(match (self.nav_state, self.old) {
            (0, _) => "Manual",
            (1, _) => "Altitude",
            (2, _) => "Position",
            (3, _) => "Mission",
            (4, _) => "Hold",
            (5, _) => "Return",
            (6, false) => "Position slow",
            (6, true) => "RC recovery",
            (7, true) => "Return to groundstation",
            (8, false) => "Altitude cruise",
            (8, true) => "Land on engine failure",
            (9, true) => "Land on GPS failure",
            (10, _) => "Acro",
            (12, _) => "Descend",
            (13, _) => "Termination",
            (14, _) => "Offboard",
            (15, _) => "Stabilized",
            (16, true) => "Rattitude",
            (17, _) => "Takeoff",
            (18, _) => "Land",
            (19, _) => "Follow target",
            (20, _) => "Precision land",
            (21, _) => "Orbit",
            (22, _) => "VTOL takeoff",
            (23, _) => "External 1",
            (24, _) => "External 2",
            (25, _) => "External 3",
            (26, _) => "External 4",
            (27, _) => "External 5",
            (28, _) => "External 6",
            (29, _) => "External 7",
            (30, _) => "External 8",
            _ => return None,
        })
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name().unwrap_or("Unknown mode"), self.nav_state)
    }
}
