//! The lines of `rovelog info` that only ULog files have, such as the vehicle and its software.

use rovelog_core::{Detail, Value};

use crate::px4::words;
use crate::scan::Scanner;
use crate::state::{MessageCounts, Summary};
use crate::wire::kind;

impl Summary {
    /// Returns the lines in the order in which `rovelog info` shows them. `rows` is the number of
    /// records.
    pub(crate) fn details(&self, scanner: &Scanner, rows: u64) -> Vec<Detail> {
        let mut details = Vec::new();
        details.extend(self.detector.detail());
        details.extend(self.vehicle());
        details.extend(self.hardware());
        details.extend(self.software());
        details.extend(self.system());
        if let Some(replay) = self.text("replay") {
            details.push(Detail::new("replay", replay, Value::Text(replay.to_owned())));
        }
        let is_whole = scanner.diagnostics.unread() == 0;
        // If parts of the file were not read, the messages in them are not counted. The counts
        // would be too small, so the line contains "not checked" instead.
        let checked = |detail: Detail| {
            if is_whole { detail } else { Detail::new(detail.key, "not checked", Value::Null) }
        };
        details.push(checked(self.counts.dropouts()));
        let (initial, changed) = (self.counts.parameters, self.counts.changes);
        let text = match changed {
            _ if !is_whole => format!("{initial}; changes not checked"),
            0 => initial.to_string(),
            n => format!("{initial}, {n} changed in the log"),
        };
        let changed = if is_whole { Value::count(changed) } else { Value::Null };
        let value = Value::record([("initial", Value::count(initial)), ("changed", changed)]);
        details.push(Detail::new("params", text, value));
        details.push(checked(self.counts.console()));
        if !scanner.appended.reached.is_empty() {
            let offsets = scanner.appended.reached.iter().map(|offset| Value::count(*offset)).collect();
            let text = match scanner.appended.reached.len() {
                1 => "1 section".to_owned(),
                n => format!("{n} sections"),
            };
            details.push(Detail::new("appended", text, Value::List(offsets)));
        }
        let unknown = (0..=255).filter(|msg_type| !kind::ALL.contains(msg_type));
        let types = kind::ALL.into_iter().chain(unknown);
        let by_type = types.filter_map(|msg_type| {
            let n = if msg_type == kind::DATA { rows } else { *self.counts.types.get(&msg_type)? };
            (n > 0).then(|| (msg_type.escape_ascii().to_string(), Value::count(n)))
        });
        details.push(Detail::hidden("message_types", Value::record(by_type.collect::<Vec<_>>())));
        details
    }

    fn vehicle(&self) -> Option<Detail> {
        let mut parts = Vec::new();
        let mut fields = Vec::new();
        if let Some(mav_type) = self.number("MAV_TYPE") {
            let name = i64::try_from(mav_type).ok().and_then(words::vehicle_type);
            parts.push(name.map_or_else(|| format!("MAV_TYPE {mav_type}"), str::to_owned));
            fields.push(("mav_type", Value::count(mav_type)));
            fields.push(("type", name.map_or(Value::Null, |name| Value::Text(name.to_owned()))));
        }
        if let Some(airframe) = self.number("SYS_AUTOSTART") {
            parts.push(format!("airframe {airframe}"));
            fields.push(("airframe", Value::count(airframe)));
        }
        if let Some(id) = self.text("sys_uuid") {
            parts.push(format!("id {id}"));
            fields.push(("id", Value::Text(id.to_owned())));
        }
        (!parts.is_empty()).then(|| Detail::new("vehicle", parts.join(", "), Value::record(fields)))
    }

    fn hardware(&self) -> Option<Detail> {
        let parts: Vec<_> = ["ver_hw", "ver_hw_subtype", "sys_mcu"]
            .into_iter()
            .filter_map(|name| Some((name, self.text(name)?)))
            .collect();
        joined("hardware", &parts)
    }

    fn software(&self) -> Option<Detail> {
        let release = self.release(&["ver_sw_release"]);
        // The first eight digits of a Git commit are enough to identify it. The JSON value contains
        // all digits.
        let commit = self.text("ver_sw").map(|commit| commit.get(..8).unwrap_or(commit));
        let branch = self.text("ver_sw_branch").map(|branch| format!("branch {branch}"));
        let text: Vec<&str> = [self.text("sys_name"), release.as_deref(), commit, branch.as_deref()]
            .into_iter()
            .flatten()
            .collect();
        let value = |name| self.facts.get(name).cloned().unwrap_or(Value::Null);
        let values = Value::record([
            ("name", value("sys_name")),
            ("release", release.clone().map_or(Value::Null, Value::Text)),
            ("commit", value("ver_sw")),
            ("branch", value("ver_sw_branch")),
        ]);
        (!text.is_empty()).then(|| Detail::new("software", text.join(" "), values))
    }

    fn system(&self) -> Option<Detail> {
        // The specification calls the OS release `ver_os_release`, but PX4 writes
        // `sys_os_ver_release`.
        let release = self.release(&["sys_os_ver_release", "ver_os_release"]);
        let toolchain = [self.text("sys_toolchain"), self.text("sys_toolchain_ver")];
        let toolchain = toolchain.into_iter().flatten().collect::<Vec<_>>().join(" ");
        let mut parts: Vec<_> = [("sys_os_name", self.text("sys_os_name")), ("release", release.as_deref())]
            .into_iter()
            .filter_map(|(name, text)| Some((name, text?)))
            .collect();
        if !toolchain.is_empty() {
            parts.push(("toolchain", &toolchain));
        }
        joined("system", &parts)
    }
}

impl MessageCounts {
    fn dropouts(&self) -> Detail {
        let seconds = self.dropped_millis as f64 / 1000.0;
        let text = match self.dropouts {
            0 => "none".to_owned(),
            n => format!("{n}, total {seconds:.3} s, longest {} ms", self.longest_millis),
        };
        let value = Value::record([
            ("count", Value::count(self.dropouts)),
            ("total_ms", Value::count(self.dropped_millis)),
            ("longest_ms", Value::count(self.longest_millis.into())),
        ]);
        Detail::new("dropouts", text, value)
    }

    fn console(&self) -> Detail {
        let names = rovelog_core::record::LEVELS;
        let by_level: Vec<_> = names.iter().zip(self.levels).filter(|(_, n)| *n > 0).collect();
        let text: Vec<_> = by_level.iter().map(|(name, n)| format!("{n} {name}")).collect();
        let text = if text.is_empty() { "none".to_owned() } else { text.join(", ") };
        let value = Value::record(by_level.iter().map(|(name, n)| (**name, Value::count(*n))));
        Detail::new("messages", text, value)
    }
}

/// Returns a line of `rovelog info` that contains the texts in `parts`, separated by commas. In
/// JSON, each text is stored under its name. Returns `None` if `parts` is empty.
fn joined(key: &'static str, parts: &[(&'static str, &str)]) -> Option<Detail> {
    let text = parts.iter().map(|(_, text)| *text).collect::<Vec<_>>().join(", ");
    let value = parts.iter().map(|(name, text)| (*name, Value::Text((*text).to_owned())));
    (!parts.is_empty()).then(|| Detail::new(key, text, Value::record(value)))
}
