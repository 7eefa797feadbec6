//! Parameters of a log.

use std::collections::BTreeMap;

use rovelog::{AnyLog, Timestamp, Value};
use rovelog_export::text::{cell, plain};

/// Prefixes of parameters that a vehicle sets by itself.
const CALIBRATION: [&str; 8] = [
    "CAL_",
    "TC_",
    "SENS_BOARD_",
    "SENS_DPRES_OFF",
    "EKF2_MAGBIAS",
    "LND_FLIGHT_T",
    "COM_FLIGHT_UUID",
    "RC_CHAN_CNT",
];

/// Returns whether a vehicle sets the parameter by itself.
pub(in crate::commands) fn is_calibration(name: &str) -> bool {
    CALIBRATION.iter().any(|start| name.starts_with(start))
}

/// A parameter with its default and changes.
#[derive(Default)]
pub(in crate::commands) struct Param {
    pub(in crate::commands) value: Option<Value>,
    pub(super) system_default: Option<Value>,
    pub(super) setup_default: Option<Value>,
    pub(super) changes: Vec<Change>,
}

/// A change of a parameter during the log.
pub(in crate::commands) struct Change {
    pub(super) time: Option<Timestamp>,
    pub(super) value: Value,
    pub(super) offset: u64,
}

impl Param {
    /// Makes the value active at `nanos` the current one, and drops the changes up to it.
    pub(super) fn move_to(&mut self, nanos: i64) {
        let later = self.changes.iter().position(|change| change.time.is_some_and(|time| time.nanos > nanos));
        let mut before = self.changes.drain(..later.unwrap_or(self.changes.len()));
        if let Some(last) = before.next_back() {
            self.value = Some(last.value);
        }
    }

    /// Returns whether the value differs from a default. A log holds only defaults that differ from
    /// the value.
    pub(super) fn is_changed(&self) -> bool {
        let differs = |default: &Option<Value>| default.is_some() && *default != self.value;
        !self.changes.is_empty() || differs(&self.system_default) || differs(&self.setup_default)
    }
}

/// Returns the parameters by name; `None` if the format has none.
pub(in crate::commands) fn parameters(log: &AnyLog) -> Option<BTreeMap<String, Param>> {
    let AnyLog::Ulog(log) = log else { return None };
    let found = log.parameters();
    let mut params: BTreeMap<String, Param> = BTreeMap::new();
    for (name, value) in found.initial {
        params.entry(name).or_default().value = Some(value);
    }
    for (name, value) in found.system_defaults {
        params.entry(name).or_default().system_default = Some(value);
    }
    for (name, value) in found.setup_defaults {
        params.entry(name).or_default().setup_default = Some(value);
    }
    for change in found.changed {
        let param = params.entry(change.name).or_default();
        param.changes.push(Change { time: change.time, value: change.value, offset: change.offset });
    }
    Some(params)
}

/// Returns whether two values are equal; a NaN equals itself.
pub(in crate::commands) fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (Some(Value::F32(a)), Some(Value::F32(b))) => a.to_bits() == b.to_bits(),
        (Some(Value::F64(a)), Some(Value::F64(b))) => a.to_bits() == b.to_bits(),
        (a, b) => a == b,
    }
}

/// Returns a value as text; empty if there is none.
pub(in crate::commands) fn shown(value: Option<&Value>) -> String {
    let mut text = String::new();
    if let Some(value) = value
        && !cell(value, &mut text)
    {
        text.clear();
        plain(value, &mut text);
    }
    text
}
