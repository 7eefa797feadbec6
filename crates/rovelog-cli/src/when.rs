//! Times given by the user (`-S`, `-E`), and their position in a log.

use std::str::FromStr;
use std::sync::LazyLock;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, NaiveDateTime};
use fundu::TimeUnit::{Hour, MicroSecond, MilliSecond, Minute, NanoSecond, Second};
use fundu::{CustomDurationParser, CustomTimeUnit};
use rovelog::{AnyLog, LogReader, Select, Timestamp};

use crate::context::Context;
use crate::failure::Failure;
use crate::select::TopicArgs;
use crate::times::{TimeBase, Times};

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;

/// A time given by the user.
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
    /// Returns the time on the log's clock in nanoseconds; `option` names the option for messages.
    pub(crate) fn resolve(&self, option: &str, times: &Times) -> Result<i64, Failure> {
        let text = &self.text;
        let unknown = |what: &str| {
            Failure::usage(format!("{what}, so {option} {text} cannot be resolved"))
                .next(format!("use {option} +10s, or a log clock time such as {option} 112.5s"))
        };
        let start = || times.start.ok_or_else(|| unknown("the start of this log is unknown"));
        let offset = || times.offset.ok_or_else(|| unknown("this log has no UTC"));
        let placed = match self.kind {
            Kind::LogClock(nanos) => Some(nanos),
            Kind::AfterStart(nanos) => start()?.checked_add(nanos),
            Kind::BeforeEnd(nanos) => {
                times.end.ok_or_else(|| unknown("the end of this log is not yet known"))?.checked_sub(nanos)
            }
            Kind::Utc(nanos) => nanos.checked_sub(offset()?),
            Kind::TimeOfDay(nanos) => {
                let (start, offset) = (start()?, offset()?);
                start.checked_add(offset).and_then(|utc| {
                    let wait = (nanos - utc.rem_euclid(DAY)).rem_euclid(DAY);
                    start.checked_add(wait)
                })
            }
            Kind::Base(nanos) => {
                if times.base == TimeBase::Relative {
                    start()?;
                }
                times.log_time_of(nanos)
            }
        };
        placed.ok_or_else(|| Failure::usage(format!("{option} {text} is out of range")))
    }

    /// Returns whether the time may have another meaning: `10s` is a time of the log's clock, not
    /// one after its start.
    fn is_ambiguous(&self) -> bool {
        matches!(self.kind, Kind::LogClock(_) | Kind::Base(_) | Kind::TimeOfDay(_))
    }

    /// Returns the probable meaning of a time outside of the log, which covers `first` to `last`.
    fn meant(&self, times: &Times, (first, last): (i64, i64)) -> Option<String> {
        let text = &self.text;
        match self.kind {
            Kind::LogClock(_) => Some(format!("+{text} (after the start), -{text} (before the end)")),
            Kind::Base(number) => {
                // Seconds, milliseconds or microseconds instead of nanoseconds.
                let inside = [SECOND, 1_000_000, 1000].into_iter().find_map(|unit| {
                    let nanos = number.checked_mul(unit)?;
                    let placed = times.log_time_of(nanos)?;
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

/// Parses `1m30s`, `1.5s`, `250ms` to exact nanoseconds.
///
/// `whole` is the user's text with its sign.
fn duration(whole: &str, text: &str) -> Result<i64, String> {
    let joined: String = text.split_whitespace().collect();
    if joined != text && duration(&joined, &joined).is_ok() {
        let whole: String = whole.split_whitespace().collect();
        return Err(format!("a duration has no spaces; write {whole}"));
    }
    let is_number = |part: &str| {
        part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && part.matches('.').count() < 2
    };
    if text.is_empty() || !text.split(|c: char| c.is_ascii_alphabetic()).all(is_number) {
        return Err(forms());
    }
    if text.ends_with(|c: char| !c.is_ascii_alphabetic()) {
        return Err(format!("{whole} has no unit; write {whole}s"));
    }
    let parsed = DURATIONS.parse(text).ok().and_then(|parsed| Duration::try_from(parsed).ok());
    i64::try_from(parsed.ok_or_else(forms)?.as_nanos()).map_err(|_| "too large".to_owned())
}

/// Units of durations. A number without a unit would be seconds; it is refused before.
static DURATIONS: LazyLock<CustomDurationParser<'static>> = LazyLock::new(|| {
    let units = [
        CustomTimeUnit::with_default(NanoSecond, &["ns"]),
        CustomTimeUnit::with_default(MicroSecond, &["us"]),
        CustomTimeUnit::with_default(MilliSecond, &["ms"]),
        CustomTimeUnit::with_default(Second, &["s"]),
        CustomTimeUnit::with_default(Minute, &["m"]),
        CustomTimeUnit::with_default(Hour, &["h"]),
    ];
    CustomDurationParser::builder()
        .time_units(&units)
        .disable_exponent()
        .disable_infinity()
        .parse_multiple(None)
        .build()
});

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

/// Selection of a part of a log by time.
#[derive(Clone, Default, clap::Args)]
pub(crate) struct WindowArgs {
    /// Start time, inclusive: +10s (after the start), -30s (before the end), 112.5s (log clock),
    /// 2026-05-20T12:01:05Z, 12:01:05, or nanoseconds
    #[arg(short = 'S', long, value_name = "TIME", allow_hyphen_values = true)]
    start: Option<Moment>,
    /// End time, exclusive; same forms as --start
    #[arg(short = 'E', long, value_name = "TIME", allow_hyphen_values = true)]
    end: Option<Moment>,
}

/// A window on the log's clock in nanoseconds, with an exclusive end.
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
    /// Returns whether neither start nor end was given.
    pub(crate) fn is_open(&self) -> bool {
        self.start.is_none() && self.end.is_none()
    }

    /// Returns the window on the log's clock. `span` is the time range of the log's records, if
    /// known: a window outside of it is refused, and so is a time outside of it that may have
    /// another meaning.
    pub(crate) fn resolve(&self, times: &Times, span: Option<(i64, i64)>) -> Result<Window, Failure> {
        let place = |moment: &Option<Moment>, option| {
            moment.as_ref().map(|moment| moment.resolve(option, times)).transpose()
        };
        let window = Window { start: place(&self.start, "-S")?, end: place(&self.end, "-E")? };
        let said = |moment: &Option<Moment>, option: &str| {
            moment.as_ref().map_or_else(String::new, |moment| format!(" {option} {}", moment.text))
        };
        let (from, until) = (said(&self.start, "-S"), said(&self.end, "-E"));
        let (start, end) = (window.start.unwrap_or(i64::MIN), window.end.unwrap_or(i64::MAX));
        let at = |nanos| times.brief(Timestamp::new(nanos, times.clock()));
        if start >= end {
            let what = if start > end { "is before" } else { "is at" };
            return Err(Failure::usage(format!(
                "the end{until} ({}) {what} the start{from} ({})",
                at(end),
                at(start)
            ))
            .next("-S is inclusive and must be before -E"));
        }
        let (first, last) = span.unwrap_or((i64::MIN, times.last.unwrap_or(i64::MAX)));
        let data = times.start.unwrap_or(first);
        let sides = [
            (&self.start, "-S", start < data || start > last, start < data),
            (&self.end, "-E", end > last || end <= data, end <= data),
        ];
        for (moment, option, outside, before) in sides {
            let Some(moment) = moment.as_ref().filter(|moment| outside && moment.is_ambiguous()) else {
                continue;
            };
            let (text, side) =
                (&moment.text, if before { "before its data" } else { "after all of its records" });
            let placed = if option == "-S" { start } else { end };
            let failure = Failure::usage(format!(
                "{option} {text} is {} on the log clock, {side}: the log covers {}",
                at(placed),
                times.span().unwrap_or_default()
            ));
            return Err(match moment.meant(times, (data, last)) {
                Some(meant) => failure.next(format!("did you mean {option} {meant}?")),
                None => failure,
            });
        }
        if span.is_some() && (start > last || end <= first) {
            let failure = Failure::usage(format!("the log has no data in the window{from}{until}"));
            return Err(match times.span() {
                Some(span) => failure.next(format!("the log covers {span}")),
                None => failure,
            });
        }
        Ok(window)
    }
}

/// Returns the time range of a log's records: a topic may hold values older than the log's start.
pub(crate) fn span(log: &dyn LogReader) -> Option<(i64, i64)> {
    let info = log.info();
    let times = || {
        let topics = log.topics().iter().flat_map(|topic| [topic.first, topic.last]);
        let outside = info.outside().iter().flat_map(|outside| [outside.first, outside.last].map(Some));
        topics.chain(outside).chain([info.start, info.end]).flatten().map(|time| time.nanos)
    };
    Some((times().min()?, times().max()?))
}

/// Returns the records of the selected topics within the window.
pub(crate) fn within(
    log: &AnyLog,
    topics: &TopicArgs,
    window: &WindowArgs,
    context: &Context,
) -> Result<Select, Failure> {
    let topics = topics.pick(log.topics())?;
    let window = window.resolve(&context.times(log.info())?, span(&**log))?;
    let names = topics.iter().map(|topic| topic.name.clone());
    Ok(Select::topics(names).between(window.start, window.end))
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
            // Before the start of the log: the next day.
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
            ("10ss", "a time is +10s"),
            ("50%", "a time is +10s"),
            ("+10 s", "write +10s"),
            ("+1:30", "write +1m30s"),
            ("-1:02:03", "write -1h02m03s"),
            ("2024-03-18", "write 2024-03-18T00:00:00Z"),
            ("2021-04-21 06:31:00", "write 2021-04-21T06:31:00Z"),
            ("2021-04-21 06:31:00.5", "write 2021-04-21T06:31:00.500Z"),
            ("+99999999999999h", "too large"),
        ] {
            let error = text.parse::<Moment>().unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    /// Each of these would select everything.
    #[test]
    fn a_time_that_names_nothing_in_the_log_is_refused_with_what_was_probably_meant() {
        let (with_utc, without) = (times(true, TimeArgs::default()), times(false, TimeArgs::default()));
        let span = Some((112_417_000_000, 661_300_000_000));
        for (times, option, text, cause, next) in [
            (&without, "-S", "10s", "-S 10s is 10.0 s on the log clock, before its data", "-S +10s"),
            (&without, "-S", "90", "before its data", "-S +90s"),
            (&without, "-S", "113000", "before its data", "-S 113.0s"),
            (&without, "-E", "20m", "after all of its records", "-E +20m"),
            (&without, "-E", "10s", "before its data", "-E +10s"),
            (&with_utc, "-S", "10s", "the log covers 2026-05-20T11:58:32.104821Z to", "-S +10s"),
            (&with_utc, "-S", "1779278313", "before its data", "-S 2026-05-20T11:58:33Z"),
            (&with_utc, "-E", "11:00", "after all of its records", ""),
        ] {
            let moment = |of: &str| (of == option).then(|| text.parse().unwrap());
            let window = WindowArgs { start: moment("-S"), end: moment("-E") };
            for span in [span, None] {
                let Err(Failure::Said(said)) = window.resolve(times, span) else { panic!("{option} {text}") };
                assert!(said.cause.contains(cause), "{option} {text}: {}", said.cause);
                assert!(
                    said.next.as_deref().unwrap_or_default().contains(next),
                    "{option} {text}: {:?}",
                    said.next
                );
            }
        }
        let day = WindowArgs {
            start: Some("2026-05-20T00:00:00Z".parse().unwrap()),
            end: Some("2026-05-21T00:00:00Z".parse().unwrap()),
        };
        assert!(day.resolve(&with_utc, span).is_ok(), "a date says exactly what it means");
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
        assert!(window("112.417s", "661.3s").is_ok());
        assert!(window("661.3s", "").is_ok());
        for (start, end) in [("662s", ""), ("", "112.417s"), ("+10s", "+10s"), ("2026-05-20T12:00:00Z", "")] {
            assert!(window(start, end).is_err(), "{start} {end}");
        }
    }
}
