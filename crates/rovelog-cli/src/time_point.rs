//! Parses times and durations in the forms that users write, for example `+10s` or `12:01:05`.

use std::str::FromStr;

use chrono::{DateTime, NaiveDate, NaiveDateTime};
use rovelog_export::NotADuration;

use crate::failure::Failure;
use crate::times::{Edge, TimeBase, Times};

/// Nanoseconds per second.
const SECOND: i64 = 1_000_000_000;
/// Nanoseconds per day.
pub(crate) const DAY: i64 = 86_400 * SECOND;

/// A point in time, as given by the user in an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimePoint {
    /// Text that the user wrote, for messages.
    pub(crate) text: String,
    kind: Kind,
}

/// A point in time in the form in which the user wrote it. The form determines from which reference
/// point it is counted. All values are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// Time after the start of the log, such as `+10s`.
    AfterStart(i64),
    /// Time before the end of the log, such as `-30s`.
    BeforeEnd(i64),
    /// Time on the clock of the log, such as `112.5s`.
    LogClock(i64),
    /// Unix time, written as a date such as `2026-05-20T12:01:05Z`.
    Utc(i64),
    /// Time of day in UTC, such as `12:01:05`, as nanoseconds since midnight.
    TimeOfDay(i64),
    /// Number of nanoseconds in the time base selected by `--time-base`, such as `112500000000`.
    Base(i64),
}

impl TimePoint {
    /// Converts the point in time to nanoseconds on the clock of the log. `option` is the name of
    /// the option with this point in time, for use in error messages.
    pub(crate) fn resolve(&self, option: &str, times: &Times) -> Result<i64, Failure> {
        let text = &self.text;
        let unknown = |what: &str| {
            Failure::usage(format!("{what}, so {option} {text} cannot be used"))
                .next(format!("use {option} +10s, or a time on the log clock such as {option} 112.5s"))
        };
        let start = || times.start.ok_or_else(|| unknown("the start time of this log is unknown"));
        let utc = || times.utc.as_ref().ok_or_else(|| unknown("this log contains no UTC time"));
        // If the clock was set back during the log, a UTC time may occur twice. The time window
        // then includes both occurrences.
        let edge = if option == "-E" { Edge::End } else { Edge::Start };
        let placed = match self.kind {
            Kind::LogClock(nanos) => Some(nanos),
            Kind::AfterStart(nanos) => start()?.checked_add(nanos),
            Kind::BeforeEnd(nanos) => times
                .end
                .ok_or_else(|| unknown("the end of a log from a pipe is not yet known"))?
                .checked_sub(nanos),
            Kind::Utc(nanos) => {
                utc()?;
                times.log_time_of_utc(nanos, edge)
            }
            Kind::TimeOfDay(nanos) => utc()?.unix(start()?).and_then(|utc| {
                // A time of day before the start of the log means the next day. For example, in a
                // log that starts at 23:50:00, `00:10` is 20 minutes after the start.
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
        placed.ok_or_else(|| Failure::usage(format!("the time {option} {text} is out of range")))
    }

    /// Returns true if users easily confuse the form of this time with another form. For example,
    /// `10s` is a time on the clock of the log, but the user may have meant `+10s`, which is 10 s
    /// after the start.
    pub(crate) fn is_ambiguous(&self) -> bool {
        matches!(self.kind, Kind::LogClock(_) | Kind::Base(_) | Kind::TimeOfDay(_))
    }

    /// If the point in time is outside of the log, suggests what the user probably intended to
    /// write. The log covers the times from `first` to `last`.
    pub(crate) fn suggestion(&self, times: &Times, (first, last): (i64, i64)) -> Option<String> {
        let text = &self.text;
        match self.kind {
            Kind::LogClock(_) => Some(format!("+{text} (after the start), -{text} (before the end)")),
            Kind::Base(number) => {
                // The user may have copied nanoseconds on the log clock, such as `t_ns`.
                if (first..=last).contains(&number) {
                    return Some(format!("{number}ns (on the log clock)"));
                }
                // The user may have written a number of seconds, milliseconds or microseconds
                // instead of nanoseconds. The first unit that results in a time within the log is
                // suggested.
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

/// Parses a point in time that consists of a date, a time of day and a time zone. Returns Unix time
/// in nanoseconds.
pub(crate) fn utc(text: &str) -> Result<i64, String> {
    match kind(text.trim())? {
        Kind::Utc(nanos) => Ok(nanos),
        _ => Err("a UTC time has the form 2026-05-20T12:01:05Z".to_owned()),
    }
}

impl FromStr for TimePoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self { text: text.to_owned(), kind: kind(text.trim())? })
    }
}

/// Parses a point in time. For an invalid time that is nearly correct, such as `-30` without a
/// unit, the error message contains the correct form.
fn kind(text: &str) -> Result<Kind, String> {
    let (sign, unsigned) = match text.strip_prefix(['+', '-']) {
        Some(unsigned) => (&text[..1], unsigned),
        None => ("", text),
    };
    if text.parse::<i64>().is_ok() {
        return match sign {
            "" => Ok(Kind::Base(text.parse().map_err(|_| "the number is too large".to_owned())?)),
            // A number with a sign is always a duration, so only its unit is missing.
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
            .ok_or_else(|| "the date must be in the years 1677 to 2262".to_owned());
    }
    let formats = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"];
    if let Some(time) = formats.iter().find_map(|format| NaiveDateTime::parse_from_str(text, format).ok()) {
        return Err(format!(
            "{text} has no time zone; for UTC, write {}Z",
            time.format("%Y-%m-%dT%H:%M:%S%.f")
        ));
    }
    if text.parse::<NaiveDate>().is_ok() {
        return Err(format!("{text} has no time of day; for midnight UTC, write {text}T00:00:00Z"));
    }
    if text.contains(':') {
        return time_of_day(text)
            .map(Kind::TimeOfDay)
            .ok_or_else(|| "a time of day has the form HH:MM:SS".to_owned());
    }
    duration(text, text).map(Kind::LogClock)
}

/// Converts a clock notation such as `1:30` to the duration `1m30s`.
fn clock_as_duration(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split(':').collect();
    let text: String = match parts.as_slice() {
        [m, s] => format!("{m}m{s}s"),
        [h, m, s] => format!("{h}h{m}m{s}s"),
        _ => return None,
    };
    duration(&text, &text).ok().map(|_| text)
}

/// Parses a duration that contains no spaces. Returns nanoseconds.
///
/// `whole` is the duration with its sign, as it is shown in messages.
fn duration(whole: &str, text: &str) -> Result<i64, String> {
    let nanos = rovelog_export::duration(text).map_err(|error| match error {
        NotADuration::Form => forms(),
        NotADuration::NoUnit => format!("{whole} has no unit; write {whole}s"),
        NotADuration::TooLarge => "the number is too large".to_owned(),
    })?;
    // A space in the value of an option probably means that a quote is missing in another argument.
    // So spaces are not accepted in a duration.
    if text.contains(char::is_whitespace) {
        let whole: String = whole.split_whitespace().collect();
        return Err(format!("a duration must not contain spaces; write {whole}"));
    }
    Ok(nanos)
}

/// Parses a duration greater than zero, such as `60s` or `500ms`. Returns nanoseconds.
pub(crate) fn nonzero_duration(text: &str) -> Result<i64, String> {
    match duration(text, text)? {
        0 => Err("the duration must not be zero".to_owned()),
        nanos => Ok(nanos),
    }
}

/// Parses a time of day in the form `HH:MM` or `HH:MM:SS.sss`. Returns nanoseconds since midnight.
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

/// Lists all forms in which a time can be written, for messages.
fn forms() -> String {
    "a time has one of the forms +10s (after the start), -30s (before the end), 112.5s (log clock), \
     2026-05-20T12:01:05Z, 12:01:05 (UTC) or nanoseconds"
        .to_owned()
}
