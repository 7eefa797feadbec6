//! The parameters of a log, with their defaults and changes.

use std::collections::{BTreeMap, BTreeSet};

use rovelog::ulog_format::ParameterChange;
use rovelog::{AnyLog, Value};
use rovelog_export::text::{cell, plain};

/// Prefixes of the names of parameters that a vehicle changes by itself.
#[rustfmt::skip]
const CALIBRATION: [&str; 8] = [
    "CAL_", "TC_", "SENS_BOARD_", "SENS_DPRES_OFF", "EKF2_MAGBIAS", "LND_FLIGHT_T",
    "COM_FLIGHT_UUID", "RC_CHAN_CNT",
];

/// Returns true if the vehicle changes this parameter by itself, for example by calibration. The
/// values of such a parameter differ between any two vehicles.
pub(in crate::commands) fn is_calibration(name: &str) -> bool {
    CALIBRATION.iter().any(|start| name.starts_with(start))
}

/// A parameter, with its default values and its changes during the log.
#[derive(Default)]
pub(in crate::commands) struct Param {
    /// Value of the parameter at the start of the log.
    pub(super) value: Option<Value>,
    /// Default value in the firmware.
    pub(super) system_default: Option<Value>,
    /// Default value in the configuration of the airframe.
    pub(super) setup_default: Option<Value>,
    /// Changes of the parameter during the log, in file order.
    pub(super) changes: Vec<ParameterChange>,
}

impl Param {
    /// Sets `value` to the value that the parameter has at the time `nanos`. Removes all changes up
    /// to this time.
    pub(super) fn move_to(&mut self, nanos: i64) {
        let later = self.changes.iter().position(|change| change.time.is_some_and(|time| time.nanos > nanos));
        let mut before = self.changes.drain(..later.unwrap_or(self.changes.len()));
        if let Some(last) = before.next_back() {
            self.value = Some(last.value);
        }
    }

    /// Returns true if the value differs from a default, or if it changed during the log. PX4 logs
    /// a default only if it differs from the value.
    pub(super) fn is_changed(&self) -> bool {
        let differs = |default: &Option<Value>| default.is_some() && *default != self.value;
        !self.changes.is_empty() || differs(&self.system_default) || differs(&self.setup_default)
    }
}

/// Returns the parameters of a log by name, or `None` if logs of this format have no parameters.
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
        params.entry(change.name.clone()).or_default().changes.push(change);
    }
    Some(params)
}

/// A parameter that differs between two logs: its name and its values in both logs.
pub(in crate::commands) type Differing<'a> = (&'a String, Option<&'a Value>, Option<&'a Value>);

/// Returns the parameters whose values differ between two logs, sorted by name.
pub(in crate::commands) fn differing<'a>(
    a: &'a BTreeMap<String, Param>,
    b: &'a BTreeMap<String, Param>,
) -> impl Iterator<Item = Differing<'a>> {
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let value = |params: &'a BTreeMap<String, Param>, name: &String| params.get(name)?.value.as_ref();
    let pairs = names.into_iter().map(move |name| (name, value(a, name), value(b, name)));
    pairs.filter(|(_, a, b)| !same(*a, *b))
}

/// Returns true if two values are equal. Unlike for `==`, two NaN values count as equal.
fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (Some(Value::F32(a)), Some(Value::F32(b))) => a.to_bits() == b.to_bits(),
        (Some(Value::F64(a)), Some(Value::F64(b))) => a.to_bits() == b.to_bits(),
        (a, b) => a == b,
    }
}

/// Formats a value as text. A missing value becomes an empty text.
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
