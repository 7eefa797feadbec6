//! Times and durations as users write them.

use std::str::FromStr;

use chrono::{DateTime, NaiveDate, NaiveDateTime};
use rovelog_export::NotADuration;

use crate::failure::Failure;
use crate::times::{Edge, TimeBase, Times};

const SECOND: i64 = 1_000_000_000;
pub(crate) const DAY: i64 = 86_400 * SECOND;

/// A time given by the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) text: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    AfterStart(i64),
    BeforeEnd(i64),
    LogClock(i64),
    Utc(i64),
    TimeOfDay(i64),
    Base(i64),
}

impl Moment {
    /// Returns the time on the log's clock in nanoseconds; `option` names the option for messages.
    pub(crate) fn resolve(&self, option: &str, times: &Times) -> Result<i64, Failure> {
        let text = &self.text;
        let unknown = |what: &str| {
            Failure::usage(format!("{what}, so {option} {text} cannot be resolved"))
                .next(format!("use {option} +10s, or a log clock time such as {option} 112.5s"))
        };
        let start = || times.start.ok_or_else(|| unknown("the start of this log is unknown"));
        let utc = || times.utc.as_ref().ok_or_else(|| unknown("this log has no UTC"));
        let edge = if option == "-E" { Edge::End } else { Edge::Start };
        let placed = match self.kind {
            Kind::LogClock(nanos) => Some(nanos),
            Kind::AfterStart(nanos) => start()?.checked_add(nanos),
            Kind::BeforeEnd(nanos) => {
                times.end.ok_or_else(|| unknown("the end of this log is not yet known"))?.checked_sub(nanos)
            }
            Kind::Utc(nanos) => {
                utc()?;
                times.log_time_of_utc(nanos, edge)
            }
            Kind::TimeOfDay(nanos) => utc()?.unix(start()?).and_then(|utc| {
                let wait = (nanos - utc.rem_euclid(DAY)).rem_euclid(DAY);
                times.log_time_of_utc(utc.checked_add(wait)?, edge)
            }),
            Kind::Base(nanos) => {
                if times.base == TimeBase::Relative {
                    start()?;
                }
                times.log_time_of(nanos, edge)
            }
        };
        placed.ok_or_else(|| Failure::usage(format!("{option} {text} is out of range")))
    }

    /// Returns whether the time may have another meaning: `10s` is a time of the log's clock, not
    /// one after its start.
    pub(crate) fn is_ambiguous(&self) -> bool {
        matches!(self.kind, Kind::LogClock(_) | Kind::Base(_) | Kind::TimeOfDay(_))
    }

    /// Returns the probable meaning of a time outside of the log, which covers `first` to `last`.
    pub(crate) fn meant(&self, times: &Times, (first, last): (i64, i64)) -> Option<String> {
        let text = &self.text;
        match self.kind {
            Kind::LogClock(_) => Some(format!("+{text} (after the start), -{text} (before the end)")),
            Kind::Base(number) => {
                // Seconds, milliseconds or microseconds instead of nanoseconds.
                let inside = [SECOND, 1_000_000, 1000].into_iter().find_map(|unit| {
                    let nanos = number.checked_mul(unit)?;
                    let placed = times.log_time_of(nanos, Edge::Start)?;
                    ((first..=last).contains(&placed)).then(|| times.as_option(nanos))?
                });
                Some(inside.unwrap_or_else(|| {
                    format!("+{number}s (after the start); a bare number counts nanoseconds")
                }))
            }
            _ => None,
        }
    }
}

/// Parses a point in time of the Unix clock.
pub(crate) fn utc(text: &str) -> Result<i64, String> {
    match kind(text.trim())? {
        Kind::Utc(nanos) => Ok(nanos),
        _ => Err("a UTC time is 2026-05-20T12:01:05Z".to_owned()),
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self { text: text.to_owned(), kind: kind(text.trim())? })
    }
}

fn kind(text: &str) -> Result<Kind, String> {
    let (sign, unsigned) = match text.strip_prefix(['+', '-']) {
        Some(unsigned) => (&text[..1], unsigned),
        None => ("", text),
    };
    if text.parse::<i64>().is_ok() {
        return match sign {
            "" => Ok(Kind::Base(text.parse().map_err(|_| "too large".to_owned())?)),
            // The sign asks for "after the start" or "before the end", so a unit is missing.
            _ => Err(format!("{text} has no unit; write {text}s")),
        };
    }
    if !sign.is_empty() && unsigned.contains(':') {
        return Err(match clock_as_duration(unsigned) {
            Some(duration) => format!("{text} is not a duration; write {sign}{duration}"),
            None => forms(),
        });
    }
    match sign {
        "+" => return duration(text, unsigned).map(Kind::AfterStart),
        "-" => return duration(text, unsigned).map(Kind::BeforeEnd),
        _ => {}
    }
    if let Ok(utc) = DateTime::parse_from_rfc3339(text) {
        return utc
            .timestamp_nanos_opt()
            .map(Kind::Utc)
            .ok_or_else(|| "out of range (1677 to 2262)".to_owned());
    }
    let formats = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"];
    if let Some(time) = formats.iter().find_map(|format| NaiveDateTime::parse_from_str(text, format).ok()) {
        return Err(format!(
            "{text} has no time zone; for UTC write {}Z",
            time.format("%Y-%m-%dT%H:%M:%S%.f")
        ));
    }
    if text.parse::<NaiveDate>().is_ok() {
        return Err(format!("{text} has no time of day; for midnight UTC write {text}T00:00:00Z"));
    }
    if text.contains(':') {
        return time_of_day(text).map(Kind::TimeOfDay).ok_or_else(|| "a time of day is HH:MM:SS".to_owned());
    }
    duration(text, text).map(Kind::LogClock)
}

/// Returns `1:30` as `1m30s`.
fn clock_as_duration(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split(':').collect();
    let text: String = match parts.as_slice() {
        [m, s] => format!("{m}m{s}s"),
        [h, m, s] => format!("{h}h{m}m{s}s"),
        _ => return None,
    };
    duration(&text, &text).ok().map(|_| text)
}

/// Parses a duration without spaces to nanoseconds.
///
/// `whole` is the user's text with its sign.
fn duration(whole: &str, text: &str) -> Result<i64, String> {
    let nanos = rovelog_export::duration(text).map_err(|error| match error {
        NotADuration::Form => forms(),
        NotADuration::NoUnit => format!("{whole} has no unit; write {whole}s"),
        NotADuration::TooLarge => "too large".to_owned(),
    })?;
    // In an option, a space is more likely a missing quote of another argument.
    if text.contains(char::is_whitespace) {
        let whole: String = whole.split_whitespace().collect();
        return Err(format!("a duration has no spaces; write {whole}"));
    }
    Ok(nanos)
}

/// Parses a duration that is not zero: `60s`, `500ms`.
pub(crate) fn span_of_time(text: &str) -> Result<i64, String> {
    match duration(text, text)? {
        0 => Err("the duration must not be zero".to_owned()),
        nanos => Ok(nanos),
    }
}

fn time_of_day(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, ':');
    let (hours, minutes): (i64, i64) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let seconds = match parts.next() {
        Some(seconds) => {
            let seconds = format!("{seconds}s");
            duration(&seconds, &seconds).ok()?
        }
        None => 0,
    };
    let valid = (0..24).contains(&hours) && (0..60).contains(&minutes) && (0..60 * SECOND).contains(&seconds);
    valid.then(|| (hours * 60 + minutes) * 60 * SECOND + seconds)
}

fn forms() -> String {
    "a time is +10s (after the start), -30s (before the end), 112.5s (log clock), \
     2026-05-20T12:01:05Z, 12:01:05 (UTC) or nanoseconds"
        .to_owned()
}
