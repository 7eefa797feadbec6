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

/// Changes of the vehicle's state. All lists are in time order, and start with the state at the
/// start of the log.
#[derive(Debug, Default)]
pub(crate) struct StateChanges {
    pub(super) modes: Vec<Change<Mode>>,
    /// True if the vehicle is armed.
    pub(super) arming: Vec<Change<bool>>,
    /// True while a failsafe is active.
    pub(super) failsafes: Vec<Change<bool>>,
}

impl StateChanges {
    /// Reads the state of the vehicle in one pass over the log.
    pub(crate) fn read(reader: &UlogReader) -> Self {
        let mut changes = Self::default();
        for row in timed_rows(reader, &first_instance(reader, "vehicle_status")) {
            add(&mut changes.modes, &row, mode);
            // `ARMING_STATE_ARMED` is 2 in all versions of the message definition.
            add(&mut changes.arming, &row, |row| integer(row, "arming_state").map(|state| state == 2));
            add(&mut changes.failsafes, &row, |row| integer(row, "failsafe").map(|failsafe| failsafe != 0));
        }
        if changes.arming.is_empty() {
            for row in timed_rows(reader, &first_instance(reader, "actuator_armed")) {
                add(&mut changes.arming, &row, |row| integer(row, "armed").map(|armed| armed != 0));
            }
        }
        changes
    }
}

/// Returns the flight mode in a row of `vehicle_status`.
fn mode(row: &Row<'_>) -> Option<Mode> {
    let nav_state = u8::try_from(integer(row, "nav_state")?).ok()?;
    // PX4 1.14 added this field, and changed the meaning of some flight mode numbers.
    let old = row.layout().place("nav_state_user_intention").is_none();
    Some(Mode { nav_state, old })
}

/// Adds the value in a row if it differs from the value before. `value` returns the value in a row,
/// or `None` if the row has no value.
fn add<T: PartialEq>(
    changes: &mut Vec<Change<T>>,
    row: &TimedRow<'_>,
    value: impl Fn(&Row<'_>) -> Option<T>,
) {
    if let Some(value) = value(&row.row)
        && changes.last().is_none_or(|last| last.value != value)
    {
        changes.push(Change { time: row.time, offset: row.offset, value });
    }
}

/// Returns the changes of the flight mode in time order. The first element is the mode at the start
/// of the log.
pub fn mode_changes(reader: &UlogReader) -> &[Change<Mode>] {
    &reader.state_changes().modes
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
