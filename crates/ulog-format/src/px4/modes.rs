//! Changes of the flight mode, the arming state and the failsafe state.
//!
//! The sources are PX4 `msg/versioned/VehicleStatus.msg` (`NAVIGATION_STATE_*`, `ARMING_STATE_*`)
//! with its earlier versions, and `msg/ActuatorArmed.msg`.

use rovelog_core::Timestamp;

use super::mode::Mode;
use super::{TimedRow, first_instance, integer, timed_rows};
use crate::UlogReader;
use crate::row::Row;

/// A change of the vehicle's state, such as its flight mode, to a new value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<T> {
    /// Time of the change on the clock of the log.
    pub time: Timestamp,
    /// Offset in the file of the first row with the new value.
    pub offset: u64,
    /// Value after the change.
    pub value: T,
}

impl<T> Change<T> {
    /// Converts the value with the function `to`. Time and offset stay the same.
    pub(super) fn map<U>(self, to: impl FnOnce(T) -> U) -> Change<U> {
        Change { time: self.time, offset: self.offset, value: to(self.value) }
    }
}

/// Returns the changes of the flight mode in time order. The first element is the mode at the start
/// of the log.
pub fn mode_changes(reader: &UlogReader) -> Vec<Change<Mode>> {
    changes(reader, "vehicle_status", |row| {
        let nav_state = u8::try_from(integer(row, "nav_state")?).ok()?;
        // PX4 1.14 added this field, and changed the meaning of some flight mode numbers.
        let old = row.layout().place("nav_state_user_intention").is_none();
        Some(Mode { nav_state, old })
    })
}

/// Returns the changes of the arming state in time order. The value is `true` if the vehicle is
/// armed. The first element is the state at the start of the log.
pub(super) fn arming_changes(reader: &UlogReader) -> Vec<Change<bool>> {
    // `ARMING_STATE_ARMED` is 2 in all versions of the message definition.
    let by_status =
        changes(reader, "vehicle_status", |row| integer(row, "arming_state").map(|state| state == 2));
    if !by_status.is_empty() {
        return by_status;
    }
    changes(reader, "actuator_armed", |row| integer(row, "armed").map(|armed| armed != 0))
}

/// Returns the changes of the failsafe state in time order. The value is `true` while a failsafe is
/// active. The first element is the state at the start of the log.
pub(super) fn failsafe_changes(reader: &UlogReader) -> Vec<Change<bool>> {
    changes(reader, "vehicle_status", |row| integer(row, "failsafe").map(|failsafe| failsafe != 0))
}

/// Returns the changes of a value in the rows of a topic. `read` returns the value in a row, or
/// `None` if the row has no value.
fn changes<T: PartialEq + Copy>(
    reader: &UlogReader,
    type_name: &str,
    read: impl Fn(&Row<'_>) -> Option<T>,
) -> Vec<Change<T>> {
    let topics = first_instance(reader, type_name);
    let mut changes: Vec<Change<T>> = Vec::new();
    for TimedRow { time, offset, row } in timed_rows(reader, &topics) {
        let Some(value) = read(&row) else { continue };
        if changes.last().is_none_or(|last| last.value != value) {
            changes.push(Change { time, offset, value });
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
