//! Flight modes, arming and failsafe, as lists of changes.
//!
//! Sources: PX4 `msg/versioned/VehicleStatus.msg` (`NAVIGATION_STATE_*`, `ARMING_STATE_*`) and its
//! older editions, `msg/ActuatorArmed.msg`.

use rovelog_core::Timestamp;

use super::mode::Mode;
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

impl<T> Change<T> {
    pub(super) fn map<U>(self, to: impl FnOnce(T) -> U) -> Change<U> {
        Change { time: self.time, offset: self.offset, value: to(self.value) }
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
pub(super) fn arming_changes(reader: &UlogReader) -> Vec<Change<bool>> {
    // ARMING_STATE_ARMED is 2 in all editions.
    let by_status =
        changes(reader, "vehicle_status", |row| integer(row, "arming_state").map(|state| state == 2));
    if !by_status.is_empty() {
        return by_status;
    }
    changes(reader, "actuator_armed", |row| integer(row, "armed").map(|armed| armed != 0))
}

/// When a failsafe started (`true`) and ended; the first is the state in which the log starts.
pub(super) fn failsafe_changes(reader: &UlogReader) -> Vec<Change<bool>> {
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
