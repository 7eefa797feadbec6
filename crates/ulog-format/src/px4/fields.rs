//! Units and value names of PX4's fields.
//!
//! Logs do not contain units and value names, so they come from the table `fields.txt`. The script
//! `oracle/px4_fields.py` creates the table from the message definitions of PX4. The script also
//! names their source and license.

use std::collections::HashMap;
use std::sync::LazyLock;

use rovelog_core::schema::ValueNames;

use super::mode::Mode;

/// Major and minor version number of a PX4 release.
pub(crate) type Release = (u8, u8);

/// Unit of a field, and names of its values.
#[derive(Debug, Default)]
struct FieldFacts {
    unit: Option<&'static str>,
    /// Names of the field's values, which have changed between releases. Each entry contains the
    /// last release that uses its names. The release is `None` if the names are still in use.
    names: Vec<(Option<Release>, ValueNames)>,
}

/// Units and value names of the fields of one type, by field name.
type Fields = HashMap<&'static str, FieldFacts>;

/// Fields by the name of the topic's type. Types with identical fields share one table.
static TABLE: LazyLock<HashMap<&'static str, &'static Fields>> = LazyLock::new(|| {
    let mut table = HashMap::new();
    for part in include_str!("fields.txt").split("\n= ").skip(1) {
        let (topics, lines) = part.split_once('\n').unwrap_or((part, ""));
        // The static table is never freed, so the memory of its fields may be leaked.
        let fields: &'static Fields = Box::leak(Box::new(fields(lines)));
        table.extend(topics.split(' ').map(|topic| (topic, fields)));
    }
    table
});

/// Parses the lines of `fields.txt` for one type.
fn fields(lines: &'static str) -> Fields {
    let mut fields = Fields::new();
    for line in lines.lines() {
        let mut columns = line.split('\t');
        let mut column = || columns.next().unwrap_or_default();
        let (name, unit, until, names) = (column(), column(), column(), column());
        let known = fields.entry(name).or_default();
        known.unit = Some(unit).filter(|unit| !unit.is_empty());
        if !names.is_empty() {
            let names = names.split('|').filter_map(|pair| pair.split_once(' '));
            let names: Vec<_> = names.filter_map(|(value, name)| Some((value.parse().ok()?, name))).collect();
            known.names.push((release(until), Box::leak(names.into_boxed_slice())));
        }
    }
    fields
}

/// Parses the number of a release, such as `1.14`.
fn release(text: &str) -> Option<Release> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Names of the flight modes as in QGroundControl. The first table is for logs of PX4 1.14 and
/// later, the second table for older logs.
static MODES: LazyLock<[ValueNames; 2]> = LazyLock::new(|| {
    [false, true].map(|old| {
        let name = |nav_state: u8| Some((i64::from(nav_state), Mode { nav_state, old }.name()?));
        let names: Vec<_> = (0..31).filter_map(name).collect();
        &*Box::leak(names.into_boxed_slice())
    })
});

/// Returns the unit of a field in a PX4 topic, or `None` if it is unknown.
pub(crate) fn unit(type_name: &str, field: &str) -> Option<&'static str> {
    TABLE.get(type_name)?.get(field)?.unit
}

/// Returns the names of a field's values in a PX4 topic.
///
/// If `release` is `None`, the names of the latest release are returned. `old_modes` is true if
/// flight modes in the log have the meanings before PX4 1.14. The caller determines this from the
/// log's fields, because not all logs contain the release.
pub(crate) fn names(
    type_name: &str,
    field: &str,
    release: Option<Release>,
    old_modes: bool,
) -> Option<ValueNames> {
    let is_mode = matches!(field, "nav_state" | "nav_state_user_intention" | "nav_state_display");
    if type_name == "vehicle_status" && is_mode {
        return Some(MODES[usize::from(old_modes)]);
    }
    let known = &TABLE.get(type_name)?.get(field)?.names;
    let holds = |until: &Option<Release>| until.is_none_or(|until| release.is_some_and(|own| own <= until));
    known.iter().find(|(until, _)| holds(until)).map(|(_, names)| *names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(of: Option<ValueNames>, value: i64) -> Option<&'static str> {
        of?.iter().find(|(known, _)| *known == value).map(|(_, name)| *name)
    }

    #[test]
    fn the_table_is_read_whole() {
        let lines = include_str!("fields.txt").lines();
        let rows = lines.clone().filter(|line| !line.starts_with(['#', '='])).count();
        let topics = lines.filter(|line| line.starts_with('=')).map(|line| line.split(' ').count() - 1);
        assert_eq!(TABLE.len(), topics.sum::<usize>(), "each topic once");
        // Types with identical fields share one section of `fields.txt`.
        let mut parts: Vec<&Fields> = TABLE.values().copied().collect();
        parts.sort_unstable_by_key(|part| std::ptr::from_ref(*part));
        parts.dedup_by_key(|part| std::ptr::from_ref(*part));
        let read = parts.iter().flat_map(|fields| fields.values()).map(|known| known.names.len().max(1));
        assert_eq!(read.sum::<usize>(), rows, "each line is a unit or names");
        for known in TABLE.values().flat_map(|fields| fields.values()) {
            assert_eq!(known.unit.is_some(), known.names.is_empty(), "{known:?}");
            // Only the last list of value names has no last release, and the last releases are in
            // ascending order.
            let ends: Vec<_> = known.names.iter().map(|(until, _)| until.unwrap_or((u8::MAX, 0))).collect();
            assert!(ends.is_sorted() && ends.last().is_none_or(|last| last.0 == u8::MAX), "{known:?}");
        }
    }

    #[test]
    fn units_and_names_are_those_of_the_definitions() {
        assert_eq!(unit("battery_status", "voltage_v"), Some("V"));
        assert_eq!(unit("vehicle_local_position_setpoint", "vx"), Some("m/s"));
        assert_eq!(unit("vehicle_gps_position", "lat"), None, "counts of 1e-7 degrees");
        assert_eq!(unit("esc_report", "esc_rpm"), Some("rpm"));
        assert_eq!(name(names("battery_status", "warning", None, false), 2), Some("Critical"));
        let armed = |release, value| name(names("vehicle_status", "arming_state", release, false), value);
        assert_eq!(armed(Some((1, 14)), 1), Some("Standby"));
        assert_eq!(armed(Some((1, 15)), 1), Some("Disarmed"));
        assert_eq!((armed(None, 1), armed(Some((1, 8)), 4)), (Some("Disarmed"), Some("Reboot")));
        let mode = |old| name(names("vehicle_status", "nav_state", None, old), 8);
        assert_eq!((mode(true), mode(false)), (Some("Land on engine failure"), Some("Altitude cruise")));
        assert!(names("vehicle_status", "nav_state_timestamp", None, false).is_none());
    }
}
