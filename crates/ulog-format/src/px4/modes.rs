//! Flight modes, arming and failsafe, as lists of changes.
//!
//! Sources: PX4 `msg/versioned/VehicleStatus.msg` (`NAVIGATION_STATE_*`, `ARMING_STATE_*`) and its
//! older editions, `msg/ActuatorArmed.msg`; section 8 of docs/formats/ulog.md.

use std::fmt;

use rovelog_core::Timestamp;

use super::{first_instance, integer, timed_rows};
use crate::UlogReader;
use crate::row::Row;

/// A value that holds from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<T> {
    /// From when it holds, on the log's clock.
    pub time: Timestamp,
    /// The offset of the row that says so, from the start of the file.
    pub offset: u64,
    /// What holds.
    pub value: T,
}

/// A flight mode: the number that PX4 logs as `nav_state`.
///
/// Displays the name with the number, because a few numbers have changed their meaning: `Mission
/// (3)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mode {
    /// The value of `vehicle_status.nav_state`.
    pub nav_state: u8,
    /// The log is of a PX4 before 1.14, where 6 to 9 and 16 meant something else.
    pub old: bool,
}

impl Mode {
    /// Returns the name that QGroundControl and the documentation of PX4 use; `None` for a number
    /// without one.
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

/// Returns the flight modes in time order; the first is the one in which the log starts.
pub fn mode_changes(reader: &UlogReader) -> Vec<Change<Mode>> {
    changes(reader, "vehicle_status", |row| {
        let nav_state = u8::try_from(integer(row, "nav_state")?).ok()?;
        // The field came with 1.14, as the old meanings had gone.
        let old = row.layout().place("nav_state_user_intention").is_none();
        Some(Mode { nav_state, old })
    })
}

/// When the vehicle was armed (`true`) and disarmed; the first is the state in which the log
/// starts.
pub fn arming_changes(reader: &UlogReader) -> Vec<Change<bool>> {
    // ARMING_STATE_ARMED is 2 in all editions.
    let by_status =
        changes(reader, "vehicle_status", |row| integer(row, "arming_state").map(|state| state == 2));
    if !by_status.is_empty() {
        return by_status;
    }
    changes(reader, "actuator_armed", |row| integer(row, "armed").map(|armed| armed != 0))
}

/// When a failsafe started (`true`) and ended; the first is the state in which the log starts.
pub fn failsafe_changes(reader: &UlogReader) -> Vec<Change<bool>> {
    changes(reader, "vehicle_status", |row| integer(row, "failsafe").map(|failsafe| failsafe != 0))
}

fn changes<T: PartialEq + Copy>(
    reader: &UlogReader,
    type_name: &str,
    read: impl Fn(&Row<'_>) -> Option<T>,
) -> Vec<Change<T>> {
    let topics = first_instance(reader, type_name);
    let mut changes: Vec<Change<T>> = Vec::new();
    for (time, record, row) in timed_rows(reader, &topics) {
        let Some(value) = read(&row) else { continue };
        if changes.last().is_none_or(|last| last.value != value) {
            changes.push(Change { time, offset: record.offset, value });
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_shown_with_its_number() {
        let shown = |nav_state, old| Mode { nav_state, old }.to_string();
        assert_eq!(shown(3, false), "Mission (3)");
        assert_eq!(shown(6, false), "Position slow (6)");
        assert_eq!(shown(6, true), "RC recovery (6)");
        assert_eq!(shown(11, false), "Unknown mode (11)");
        assert_eq!(shown(255, true), "Unknown mode (255)");
    }
}
