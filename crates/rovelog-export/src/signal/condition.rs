//! Conditions over signals, and the events during which they hold.

use rovelog::{LogReader, Select};

use super::expression::{Node, is_true};
use super::find::{Signal, Signals};
use super::rows::Stream;
use super::suggest::NoSignal;
use crate::{ExportError, duration, meaning};

/// A condition over a signal, such as `battery_status.voltage_v < 3.4 for 2s` or
/// `vehicle_status.nav_state changes`.
#[derive(Clone, Debug)]
pub struct Condition {
    text: String,
    /// The whole condition as a signal, which is 1 while the condition holds. If the condition is
    /// `SIGNAL changes`, this is the signal itself.
    signal: Signal,
    /// The compared signal, whose minimum and maximum are reported: `x` for `x > 2`.
    value: Signal,
    /// True if the condition has the form `SIGNAL changes`.
    changes: bool,
    /// Minimum duration of an event in nanoseconds. Shorter events are ignored.
    duration: u64,
}

/// A period during which a condition holds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// Time of the first row that fulfills the condition, in nanoseconds of the log's clock.
    pub start: i64,
    /// Time of the first row that no longer fulfills the condition, in nanoseconds of the log's
    /// clock. If the condition holds until the end of the log, this is the time of the last row.
    pub end: i64,
    /// True if the condition still holds at the last row.
    pub is_open: bool,
    /// Number of rows that fulfill the condition.
    pub rows: u64,
    /// Minimum of the compared signal during the event. `None` for `SIGNAL changes`.
    pub min: Option<f64>,
    /// Maximum of the compared signal during the event. `None` for `SIGNAL changes`.
    pub max: Option<f64>,
    /// Value before the change. `None` unless the condition is `SIGNAL changes`.
    pub from: Option<f64>,
    /// Value after the change. `None` unless the condition is `SIGNAL changes`.
    pub to: Option<f64>,
}

impl Condition {
    /// Parses a condition. The text is one of:
    ///
    /// - a comparison, or several joined with `and`, `or` and `not`,
    /// - `SIGNAL changes`.
    ///
    /// If the text ends with `for DURATION`, shorter events are ignored.
    ///
    /// # Errors
    /// Returns an error if the text is not a condition, or if the log lacks one of its signals.
    pub fn new(signals: &Signals<'_>, text: &str) -> Result<Self, NoSignal> {
        let text = text.trim();
        // A duration cannot contain ` for `, so the last ` for ` in the text precedes the duration.
        // The name of a state may contain ` for ` too, but is not followed by a number.
        let is_duration =
            |text: &str| text.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '.');
        let (body, duration) = match text.rsplit_once(" for ").filter(|(_, end)| is_duration(end)) {
            Some((body, duration)) => (body.trim(), parse_nanos(duration)?),
            None => (text, 0),
        };
        if let Some(name) = body.strip_suffix(" changes") {
            let signal = signals.one(name)?;
            let value = signal.clone();
            return Ok(Self { text: text.to_owned(), signal, value, changes: true, duration });
        }
        let signal = signals.expression(body)?;
        // An expression such as `voltage` would count as true whenever it is not 0, which is hardly
        // ever intended. Only expressions that result in a truth value are accepted.
        let is_truth = matches!(&signal.node, Node::Binary(binary, _) if binary.is_truth())
            || matches!(&signal.node, Node::Not(_));
        let next = format!("write a condition such as '{body} > 0' or '{body} changes'");
        if !is_truth {
            return Err(NoSignal::new(format!("{text} is not a condition"), next));
        }
        let value = signal.compared();
        Ok(Self { text: text.to_owned(), signal, value, changes: false, duration })
    }

    /// Returns whether a command-line argument looks like a condition rather than a file name.
    pub fn looks_like_condition(text: &str) -> bool {
        text.contains(['<', '>', '=', '!'])
            || text.contains(" changes")
            || ["not ", "not("].iter().any(|word| text.starts_with(word))
    }

    /// Returns the text of the condition.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the names of the topics that the condition uses.
    #[doc(hidden)]
    pub fn topics(&self) -> Vec<&str> {
        self.signal.topics()
    }

    /// Returns the unit of the compared signal, if known.
    pub fn unit(&self) -> Option<&str> {
        self.value.unit()
    }

    /// Returns the name of a value of the compared signal, if the value has a name. For example,
    /// the value 5 of `nav_state` has the name `Return`.
    pub fn state(&self, log: &dyn LogReader, value: f64) -> Option<&'static str> {
        let (topic, field) = self.value.field()?;
        let names = meaning::names(log.topic(topic)?.get(), field);
        #[expect(clippy::float_cmp, reason = "states are integers")]
        names.iter().find(|(number, _)| *number as f64 == value).map(|(_, name)| *name)
    }

    /// Calls `visit` for each event within the time range of `select`.
    ///
    /// # Errors
    /// Returns an error if the log cannot be read.
    pub fn each(
        &self,
        log: &dyn LogReader,
        select: &Select,
        visit: &mut dyn FnMut(Event),
    ) -> Result<(), ExportError> {
        let mut runs =
            EventDetector { changes: self.changes, duration: self.duration, current: None, last: None };
        for item in Stream::new(log, &[&self.signal, &self.value], select)? {
            let (times, values) = item?;
            for (i, time) in times.iter().enumerate() {
                runs.add(*time, values[0][i], values[1][i], visit);
            }
        }
        // If a condition still holds at the last row, no later row ends the event.
        if let (Some(event), Some((time, _))) = (runs.current.take(), runs.last) {
            runs.end(Event { is_open: true, ..event }, time, visit);
        }
        Ok(())
    }
}

/// Turns the rows of a condition into events.
///
/// For example, `x > 1` over the rows (0 s, 0), (1 s, 2), (2 s, 3), (3 s, 0) gives one event from
/// 1 s to 3 s with 2 rows. The event ends at 3 s, because the value is known to be too low only
/// from that row on.
struct EventDetector {
    /// True if the condition has the form `SIGNAL changes`.
    changes: bool,
    /// Minimum duration of an event in nanoseconds.
    duration: u64,
    /// The event that contains the latest row. `None` if the condition does not hold at this row.
    current: Option<Event>,
    /// Time of the previous row, and the last value that was not missing.
    last: Option<(i64, f64)>,
}

impl EventDetector {
    /// Adds a row. `holds` is the value of the condition, and `value` is that of the compared
    /// signal.
    fn add(&mut self, time: i64, holds: f64, value: f64, visit: &mut dyn FnMut(Event)) {
        let new = Event { start: time, end: time, ..Event::default() };
        let last = self.last;
        // A missing value is not a change, so the previous value stays in effect.
        let known = if value.is_nan() { last.map_or(value, |(_, value)| value) } else { value };
        self.last = Some((time, known));
        if self.changes {
            // Each change starts an event, which lasts until the next change. The first value of
            // the log is not a change.
            let old = last.map(|(_, value)| value).filter(|value| !value.is_nan());
            #[expect(clippy::float_cmp, reason = "any other value is a change")]
            if let Some(old) = old.filter(|old| *old != known) {
                if let Some(event) = self.current.take() {
                    self.end(event, time, visit);
                }
                self.current = Some(Event { from: Some(old), to: Some(known), ..new });
            }
        } else if is_true(holds) {
            self.current.get_or_insert(new);
        } else if let Some(event) = self.current.take() {
            self.end(event, time, visit);
        }
        if let Some(event) = &mut self.current {
            event.rows += 1;
            if !value.is_nan() && !self.changes {
                event.min = Some(event.min.map_or(value, |min| min.min(value)));
                event.max = Some(event.max.map_or(value, |max| max.max(value)));
            }
        }
    }

    /// Passes a complete event to `visit`, unless the event is shorter than the minimum duration.
    fn end(&self, event: Event, end: i64, visit: &mut dyn FnMut(Event)) {
        if end.abs_diff(event.start) >= self.duration {
            visit(Event { end, ..event });
        }
    }
}

/// Parses the duration after `for` to nanoseconds.
fn parse_nanos(text: &str) -> Result<u64, NoSignal> {
    let nanos = duration(text).ok().and_then(|nanos| u64::try_from(nanos).ok());
    nanos.ok_or_else(|| {
        NoSignal::new(
            format!("{} is not a duration", text.trim()),
            "write a duration such as for 2s, for 500ms or for 1m30s",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(changes: bool, duration: u64, rows: &[(i64, f64)]) -> Vec<(i64, i64, u64)> {
        let mut runs = EventDetector { changes, duration, current: None, last: None };
        let mut found = Vec::new();
        let mut visit = |event: Event| found.push((event.start, event.end, event.rows));
        for (time, value) in rows {
            runs.add(*time, f64::from(u8::from(*value > 1.0)), *value, &mut visit);
        }
        if let (Some(event), Some((time, _))) = (runs.current.take(), runs.last) {
            runs.end(event, time, &mut visit);
        }
        found
    }

    #[test]
    fn runs_start_and_end_at_rows() {
        let rows = [(0, 0.0), (10, 2.0), (20, 3.0), (30, f64::NAN), (40, 2.0), (50, 2.0)];
        assert_eq!(runs(false, 0, &rows), [(10, 30, 2), (40, 50, 2)]);
        assert_eq!(runs(false, 20, &rows), [(10, 30, 2)]);
        assert_eq!(runs(true, 0, &rows), [(10, 20, 1), (20, 40, 2), (40, 50, 2)]);
    }

    #[test]
    fn durations_have_a_unit_of_time() {
        assert_eq!(parse_nanos("2s").unwrap(), 2_000_000_000);
        assert_eq!(parse_nanos("1.5 ms").unwrap(), 1_500_000);
        assert_eq!(parse_nanos("1m30s").unwrap(), 90_000_000_000);
        assert!(parse_nanos("2").is_err() && parse_nanos("2V").is_err() && parse_nanos("s").is_err());
    }
}
