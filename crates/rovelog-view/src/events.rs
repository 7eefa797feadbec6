//! Messages and events of a log in time order.

use rovelog::AnyLog;
use rovelog::ulog_format::px4::{self, Change};
use serde_json::{Value, json};

use crate::logs::Opened;

/// Most lines that are sent.
const MOST: usize = 20_000;

/// Returns seconds, level (0 emergency to 7 debug), kind and text of each line, and how many are
/// left out.
pub(crate) fn list(opened: &Opened) -> Result<Value, String> {
    let seconds = |nanos: i64| opened.seconds(nanos);
    let mut lines: Vec<(f64, u8, String, String)> = Vec::new();
    let mut left_out = 0_usize;
    for text in opened.log.texts().into_iter().flatten() {
        let Some(time) = text.time else { continue };
        if lines.len() < MOST {
            lines.push((seconds(time.nanos), text.level, text.source.unwrap_or_default(), text.text));
        } else {
            left_out += 1;
        }
    }
    if let AnyLog::Ulog(reader) = &opened.log {
        let events = px4::events(reader).list.into_iter().filter(px4::Event::is_message);
        lines.extend(
            events.map(|event| (seconds(event.time.nanos), event.level, "event".to_owned(), event.message())),
        );
        let modes = px4::mode_changes(reader);
        lines.extend(
            modes
                .into_iter()
                .map(|mode| (seconds(mode.time.nanos), 6, "mode".to_owned(), mode.value.to_string())),
        );
        let mut states = |kind: &str, changes: Vec<Change<bool>>, on: (u8, &str), off: &str| {
            let changes = changes.into_iter().skip_while(|change| !change.value);
            lines.extend(changes.map(|change| {
                let (level, text) = if change.value { on } else { (6, off) };
                (seconds(change.time.nanos), level, kind.to_owned(), text.to_owned())
            }));
        };
        states("arming", px4::arming_changes(reader), (6, "armed"), "disarmed");
        states("failsafe", px4::failsafe_changes(reader), (4, "failsafe"), "failsafe over");
    }
    lines.sort_by(|a, b| a.0.total_cmp(&b.0));
    left_out += lines.len().saturating_sub(MOST);
    lines.truncate(MOST);
    let lines: Vec<Value> =
        lines.into_iter().map(|(time, level, kind, text)| json!([time, level, kind, text])).collect();
    opened.checked(json!({ "lines": lines, "left_out": left_out }))
}
