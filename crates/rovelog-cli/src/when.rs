//! How a user names times (`-S`, `-E`), and where in a log they are.

use std::str::FromStr;

use chrono::{DateTime, NaiveDateTime};
use rovelog::LogReader;

use crate::failure::Failure;
use crate::times::{TimeBase, Times};

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;

/// A time as a user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    text: String,
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
    /// The time on the clock of the log that `times` belongs to, nanoseconds; `option` named it.
    pub(crate) fn resolve(&self, option: &str, times: &Times) -> Result<i64, Failure> {
        let text = &self.text;
        let unknown = |what: &str| {
            Failure::usage(format!("{what}, so {option} {text} cannot be placed"))
                .next(format!("use {option} +10s, or a time of the log's clock such as {option} 112.5s"))
        };
        let start = || times.start.ok_or_else(|| unknown("the start of this log is not known"));
        let offset = || times.offset.ok_or_else(|| unknown("this log has no UTC"));
        let placed = match self.kind {
            Kind::LogClock(nanos) => Some(nanos),
            Kind::AfterStart(nanos) => start()?.checked_add(nanos),
            Kind::BeforeEnd(nanos) => {
                times.end.ok_or_else(|| unknown("the end of this log is not known yet"))?.checked_sub(nanos)
            }
            Kind::Utc(nanos) => nanos.checked_sub(offset()?),
            Kind::TimeOfDay(nanos) => {
                let (start, offset) = (start()?, offset()?);
                start.checked_add(offset).and_then(|utc| {
                    let wait = (nanos - utc.rem_euclid(DAY)).rem_euclid(DAY);
                    start.checked_add(wait)
                })
            }
            Kind::Base(nanos) => match times.base {
                TimeBase::Utc => nanos.checked_sub(offset()?),
                TimeBase::Boot => Some(nanos),
                TimeBase::Relative => start()?.checked_add(nanos),
            },
        };
        placed.ok_or_else(|| Failure::usage(format!("{option} {text} is out of range")))
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self { text: text.to_owned(), kind: kind(text.trim())? })
    }
}

fn kind(text: &str) -> Result<Kind, String> {
    if let Some(rest) = text.strip_prefix('+') {
        return Ok(Kind::AfterStart(duration(rest)?));
    }
    let unsigned = text.strip_prefix('-');
    if text.parse::<i64>().is_ok() {
        // -30 has no unit: the sign asks for "before the end", so a unit is missing.
        return match unsigned {
            Some(_) => Err(format!("{text} has no unit; write {text}s")),
            None => Ok(Kind::Base(text.parse().map_err(|_| "too large".to_owned())?)),
        };
    }
    if let Some(rest) = unsigned {
        return Ok(Kind::BeforeEnd(duration(rest)?));
    }
    if let Ok(utc) = DateTime::parse_from_rfc3339(text) {
        return utc
            .timestamp_nanos_opt()
            .map(Kind::Utc)
            .ok_or_else(|| "out of range (1677 to 2262)".to_owned());
    }
    if text.parse::<NaiveDateTime>().is_ok() {
        return Err(format!("{text} has no zone; for UTC write {text}Z"));
    }
    if text.contains(':') {
        return time_of_day(text).map(Kind::TimeOfDay).ok_or_else(|| "a time of day is HH:MM:SS".to_owned());
    }
    duration(text).map(Kind::LogClock)
}

/// `1m30s`, `1.5s`, `250ms`: exact nanoseconds.
fn duration(text: &str) -> Result<i64, String> {
    let mut rest = text;
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let unit: i128 = match unit {
            "ns" => 1,
            "us" => 1000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "" if !number.is_empty() => return Err(format!("{text} has no unit; write {text}s")),
            _ => return Err(forms()),
        };
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        let value: i128 = format!("{whole}{part}").parse().map_err(|_| forms())?;
        let scale = u32::try_from(part.len()).ok().and_then(|len| 10_i128.checked_pow(len));
        let nanos = value.checked_mul(unit).zip(scale).map(|(value, scale)| value / scale);
        total = nanos.and_then(|nanos| total.checked_add(nanos)).ok_or("too large")?;
        rest = tail;
    }
    if text.is_empty() {
        return Err(forms());
    }
    i64::try_from(total).map_err(|_| "too large".to_owned())
}

/// A span of time that is not empty: `60s`, `500ms`.
pub(crate) fn span_of_time(text: &str) -> Result<i64, String> {
    match duration(text)? {
        0 => Err("a span cannot be without length".to_owned()),
        nanos => Ok(nanos),
    }
}

fn time_of_day(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, ':');
    let (hours, minutes): (i64, i64) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let seconds = match parts.next() {
        Some(seconds) => duration(&format!("{seconds}s")).ok()?,
        None => 0,
    };
    let valid = (0..24).contains(&hours) && (0..60).contains(&minutes) && (0..60 * SECOND).contains(&seconds);
    valid.then(|| (hours * 60 + minutes) * 60 * SECOND + seconds)
}

fn forms() -> String {
    "a time is +10s (after the start), -30s (before the end), 112.5s (the log's clock), \
     2026-05-20T12:01:05Z, 12:01:05 (UTC) or nanoseconds"
        .to_owned()
}

/// The part of a log that a command looks at.
#[derive(Clone, Default, clap::Args)]
pub(crate) struct WindowArgs {
    /// From this time on: +10s, -30s, 112.5s, 2026-05-20T12:01:05Z, 12:01:05, or nanoseconds
    #[arg(short = 'S', long, value_name = "TIME", allow_hyphen_values = true)]
    start: Option<Moment>,
    /// Until before this time
    #[arg(short = 'E', long, value_name = "TIME", allow_hyphen_values = true)]
    end: Option<Moment>,
}

/// A window on the log's clock: nanoseconds, the end excluded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) start: Option<i64>,
    pub(crate) end: Option<i64>,
}

impl Window {
    pub(crate) fn keeps(&self, nanos: i64) -> bool {
        self.start.is_none_or(|start| nanos >= start) && self.end.is_none_or(|end| nanos < end)
    }
}

impl WindowArgs {
    /// Whether neither end was named.
    pub(crate) fn is_open(&self) -> bool {
        self.start.is_none() && self.end.is_none()
    }

    /// The window on the clock of the log that `times` belongs to. `span` is what the log's records cover,
    /// where that is known: a window that misses it is refused.
    pub(crate) fn resolve(&self, times: &Times, span: Option<(i64, i64)>) -> Result<Window, Failure> {
        let place = |moment: &Option<Moment>, option| {
            moment.as_ref().map(|moment| moment.resolve(option, times)).transpose()
        };
        let window = Window { start: place(&self.start, "-S")?, end: place(&self.end, "-E")? };
        let (first, last) = span.unwrap_or((i64::MIN, i64::MAX));
        let (start, end) = (window.start.unwrap_or(i64::MIN), window.end.unwrap_or(i64::MAX));
        if start >= end || start > last || end <= first {
            let option = |moment: &Option<Moment>, option| {
                moment
                    .as_ref()
                    .map_or_else(String::new, |moment: &Moment| format!(" {option} {}", moment.text))
            };
            let failure = Failure::usage(format!(
                "the window{}{} holds nothing of this log",
                option(&self.start, "-S"),
                option(&self.end, "-E")
            ));
            return Err(match times.span() {
                Some(span) => failure.next(format!("choose from {span}")),
                None => failure,
            });
        }
        Ok(window)
    }
}

/// What the records of a log cover: a topic may hold older values than the log's start.
pub(crate) fn span(log: &dyn LogReader) -> Option<(i64, i64)> {
    let times = || {
        let topics = log.topics().iter().flat_map(|topic| [topic.first, topic.last]);
        topics.chain([log.info().start, log.info().end]).flatten().map(|time| time.nanos)
    };
    Some((times().min()?, times().max()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::times::TimeArgs;
    use crate::times::tests::times;

    fn placed(text: &str, times: &Times) -> i64 {
        text.parse::<Moment>().unwrap().resolve("-S", times).ok().unwrap()
    }

    #[test]
    fn every_form_of_a_time_is_placed_on_the_logs_clock() {
        let times = times(true, TimeArgs::default());
        for (text, nanos) in [
            ("+10s", 122_417_000_000),
            ("+1m30s", 202_417_000_000),
            ("-30s", 631_300_000_000),
            ("112.5s", 112_500_000_000),
            ("0.000000001s", 1),
            ("2026-05-20T11:58:33Z", 113_312_179_000),
            ("2026-05-20T13:58:33+02:00", 113_312_179_000),
            ("11:58:33.5", 113_812_179_000),
            // Before the start of the log: the next day's.
            ("11:58", 112_417_000_000 + DAY - 32_104_821_000),
            ("1779278313000000000", 113_312_179_000),
        ] {
            assert_eq!(placed(text, &times), nanos, "{text}");
        }
    }

    #[test]
    fn a_bare_integer_counts_in_the_base() {
        let base = |time_base| TimeArgs { time_base: Some(time_base), time_format: None };
        assert_eq!(placed("5", &times(true, base(TimeBase::Boot))), 5);
        assert_eq!(placed("5", &times(true, base(TimeBase::Relative))), 112_417_000_005);
        assert_eq!(placed("5", &times(false, TimeArgs::default())), 5);
    }

    #[test]
    fn what_is_no_time_says_what_is_missing() {
        for (text, said) in [
            ("-30", "-30 has no unit; write -30s"),
            ("112.5", "112.5 has no unit; write 112.5s"),
            ("2026-05-20T12:01:05", "for UTC write 2026-05-20T12:01:05Z"),
            ("25:00", "HH:MM:SS"),
            ("yesterday", "a time is +10s"),
            ("", "a time is +10s"),
            ("1.2.3s", "a time is +10s"),
            ("+99999999999999h", "too large"),
        ] {
            let error = text.parse::<Moment>().unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn a_window_that_misses_the_log_is_refused() {
        let times = times(false, TimeArgs::default());
        let window = |start: &str, end: &str| {
            let moment = |text: &str| (!text.is_empty()).then(|| text.parse().unwrap());
            WindowArgs { start: moment(start), end: moment(end) }
                .resolve(&times, Some((112_417_000_000, 661_300_000_000)))
        };
        assert_eq!(window("+1s", "").ok().unwrap().start, Some(113_417_000_000));
        assert!(window("661.3s", "").is_ok());
        for (start, end) in [("662s", ""), ("", "112.417s"), ("+10s", "+10s"), ("2026-05-20T12:00:00Z", "")] {
            assert!(window(start, end).is_err(), "{start} {end}");
        }
    }
}
