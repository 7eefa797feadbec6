//! State of the vehicle over time. Most rules depend on it, because they apply only in flight or
//! while armed.

use std::collections::BTreeMap;
use std::ops::Range;

use rovelog::ulog_format::UlogReader;
use rovelog::ulog_format::px4::{Entry, status_changes};

use super::recordings;
use crate::ExportError;
use crate::findings::scan::{WHOLE_LOG, each_row};
use crate::findings::watch::States;

/// Number of the flight mode Acro in `vehicle_status.nav_state`, in all versions of PX4.
const NAV_ACRO: f64 = 10.0;

/// Value of `vehicle_status.vehicle_type` for multicopters (`VEHICLE_TYPE_ROTARY_WING`). All
/// versions of PX4 use the same number.
const ROTARY_WING: f64 = 1.0;

/// State of the vehicle over time.
#[derive(Default)]
pub(super) struct Flight {
    armed: States,
    landed: States,
    multicopter: States,
    acro: States,
    /// Numeric parameters at the start of the log.
    parameters: BTreeMap<String, f64>,
}

impl Flight {
    pub(super) fn read(log: &UlogReader) -> Result<Self, ExportError> {
        let mut flight = Self::default();
        for change in status_changes(log) {
            if let Entry::Arming(is_armed) = change.value {
                flight.armed.push(change.time.nanos, is_armed);
            }
        }
        let fields = ["nav_state", "vehicle_type", "is_rotary_wing", "in_transition_mode"];
        for topic in recordings(log, "vehicle_status") {
            each_row(log, &topic.name, &fields, WHOLE_LOG, |time, row| {
                flight.acro.push(time, row[0] == NAV_ACRO);
                let is_unknown = row[1].is_nan() && row[2].is_nan();
                let is_rotary = is_unknown || row[1] == ROTARY_WING || row[2] > 0.0;
                flight.multicopter.push(time, is_rotary && (row[3].is_nan() || row[3] == 0.0));
            })?;
        }
        for topic in recordings(log, "vehicle_land_detected") {
            each_row(log, &topic.name, &["landed"], WHOLE_LOG, |time, row| {
                flight.landed.push(time, row[0] > 0.0);
            })?;
        }
        let initial = log.parameters().initial;
        let numbers = initial.into_iter().filter_map(|(name, value)| Some((name, value.as_f64()?)));
        flight.parameters = numbers.collect();
        Ok(flight)
    }

    /// Returns whether the vehicle was armed.
    pub(super) fn is_armed(&self, time: i64) -> bool {
        self.armed.is_on(time)
    }

    /// Returns whether the vehicle was armed and not on the ground.
    pub(super) fn is_flying(&self, time: i64) -> bool {
        self.is_armed(time) && !self.landed.is_on(time)
    }

    /// Returns whether the vehicle was armed as a multicopter, in the air or on the ground. A VTOL is
    /// not a multicopter in forward flight, or during the transition from and to it.
    pub(super) fn is_hovering(&self, time: i64) -> bool {
        self.is_armed(time) && self.multicopter.is_on(time)
    }

    /// Returns the time in nanoseconds during which the vehicle was armed and not on the ground.
    /// `end` is the end of the log.
    pub(super) fn time_in_air(&self, end: i64) -> i64 {
        let armed = self.armed.spans(end);
        let overlap = |span: &Range<i64>, other: &Range<i64>| {
            span.end.min(other.end).saturating_sub(span.start.max(other.start)).max(0)
        };
        let landed =
            |span: &Range<i64>| self.landed.spans(end).map(|other| overlap(span, &other)).sum::<i64>();
        armed.map(|span| span.end.saturating_sub(span.start).saturating_sub(landed(&span))).sum()
    }

    /// Returns whether the flight mode was Acro, in which large angles are intended.
    pub(super) fn is_acro(&self, time: i64) -> bool {
        self.acro.is_on(time)
    }

    /// Returns the value of a parameter at the start of the log. Returns `None` if the log lacks
    /// the parameter.
    pub(super) fn parameter(&self, name: &str) -> Option<f64> {
        self.parameters.get(name).copied()
    }
}
