//! Times: how they are written (format and base), and how a user names them (`-S`, `-E`).

use std::cell::RefCell;
use std::fmt::Write as _;
use std::str::FromStr;

use chrono::{DateTime, NaiveDateTime};
use clap::ValueEnum;
use rovelog::{Clock, LogInfo, Timestamp};

use crate::args::TimeArgs;
use crate::report::Failure;

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;
/// 2000-01-01: no vehicle has been up since, and no log is older.
const YEAR_2000: i64 = 946_684_800 * SECOND;

/// How times are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimeFormat {
    Auto,
    Rfc3339,
    Seconds,
    Nanoseconds,
}

/// What times count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimeBase {
    Utc,
    Boot,
    Relative,
}

/// Digits behind the second.
#[derive(Clone, Copy)]
enum Digits {
    /// As many as the value needs: 0, 3, 6 or 9.
    Needed,
    /// Six, so that columns align; nine where microseconds do not do.
    Aligned,
    /// Always nine.
    Nine,
}

/// How the times of one log are written; decided once.
pub(crate) struct Times {
    /// Unix time minus log time, where the log can be placed.
    offset: Option<i64>,
    start: Option<i64>,
    end: Option<i64>,
    clock: Clock,
    base: TimeBase,
    format: TimeFormat,
    asked: TimeArgs,
    /// What the longest time takes in text.
    width: usize,
    /// The last whole second that was written as a date, and its text: records come in time order.
    second: RefCell<(i64, String)>,
}

impl Times {
    pub(crate) fn new(info: &LogInfo, asked: TimeArgs) -> Result<Self, Failure> {
        let nanos = |time: Option<Timestamp>| time.map(|time| time.nanos);
        let clock = info.start.or(info.end).map_or(Clock::Boot, |time| time.clock);
        let offset = if clock == Clock::Unix { Some(0) } else { info.utc.as_ref().map(|utc| utc.nanos) };
        let base = asked.time_base.unwrap_or(if offset.is_some() { TimeBase::Utc } else { TimeBase::Boot });
        if base == TimeBase::Utc && offset.is_none() {
            return Err(Failure::usage("this log has no UTC, so --time-base utc cannot be used")
                .next("use --time-base boot or --time-base relative"));
        }
        let mut times = Self {
            offset,
            start: nanos(info.start),
            end: nanos(info.end),
            clock,
            base,
            format: TimeFormat::Seconds,
            asked,
            width: 0,
            second: RefCell::new((i64::MIN, String::new())),
        };
        times.format = match asked.time_format.unwrap_or(TimeFormat::Auto) {
            TimeFormat::Auto => {
                let first = times.start.and_then(|start| times.in_base(start));
                let dated = first.is_some_and(|first| first >= YEAR_2000);
                if dated { TimeFormat::Rfc3339 } else { TimeFormat::Seconds }
            }
            format => format,
        };
        for end in [times.start, times.end] {
            let mut text = String::new();
            times.push_text(end.map(|nanos| Timestamp::new(nanos, clock)), &mut text);
            times.width = times.width.max(text.len());
        }
        Ok(times)
    }

    /// Whether the user chose how times are written.
    pub(crate) fn format_was_chosen(&self) -> bool {
        self.asked.time_format.is_some_and(|format| format != TimeFormat::Auto)
    }

    /// Whether text shows UTC.
    pub(crate) fn shows_utc(&self) -> bool {
        self.base == TimeBase::Utc
    }

    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// Where a time of the log's clock stands in the base; `None` past the range of nanoseconds.
    fn in_base(&self, nanos: i64) -> Option<i64> {
        match self.base {
            TimeBase::Utc => nanos.checked_add(self.offset?),
            TimeBase::Boot => Some(nanos),
            TimeBase::Relative => nanos.checked_sub(self.start.unwrap_or(0)),
        }
    }

    /// Writes a time for people, in a width that aligns; `-` where there is none.
    pub(crate) fn push_text(&self, time: Option<Timestamp>, text: &mut String) {
        let start = text.len();
        match time.and_then(|time| self.in_base(time.nanos)) {
            Some(nanos) => self.push(nanos, Digits::Aligned, text),
            None => text.push('-'),
        }
        for _ in text.len() - start..self.width {
            text.insert(start, ' ');
        }
    }

    /// A time for people, as short as it is exact.
    pub(crate) fn brief(&self, time: Timestamp) -> String {
        let mut text = String::new();
        match self.in_base(time.nanos) {
            Some(nanos) => self.push(nanos, Digits::Needed, &mut text),
            None => text.push('-'),
        }
        if self.format == TimeFormat::Seconds {
            text.push_str(" s");
        }
        text
    }

    /// Seconds on the Unix clock, for `-v`.
    pub(crate) fn epoch(&self, time: Timestamp) -> Option<String> {
        Some(Timestamp::new(time.nanos.checked_add(self.offset?)?, Clock::Unix).seconds().to_string())
    }

    /// The key `time` of machine formats: RFC 3339, nothing without UTC, or what the user insists on.
    pub(crate) fn push_machine(&self, time: Option<Timestamp>, text: &mut String) -> bool {
        self.push_machine_digits(time, Digits::Needed, text)
    }

    /// The same with nine digits, as CSV has it.
    pub(crate) fn push_csv(&self, time: Option<Timestamp>, text: &mut String) -> bool {
        self.push_machine_digits(time, Digits::Nine, text)
    }

    fn push_machine_digits(&self, time: Option<Timestamp>, digits: Digits, text: &mut String) -> bool {
        let Some(time) = time else { return false };
        if self.format_was_chosen() {
            let Some(nanos) = self.in_base(time.nanos) else { return false };
            self.push(nanos, digits, text);
            return true;
        }
        let Some(nanos) = self.offset.and_then(|offset| time.nanos.checked_add(offset)) else { return false };
        self.push_rfc3339(nanos, digits, text);
        true
    }

    /// The key `time` of machine formats as an owned string.
    pub(crate) fn machine(&self, time: Option<Timestamp>) -> Option<String> {
        let mut text = String::new();
        self.push_machine(time, &mut text).then_some(text)
    }

    /// The key `t_ns` of machine formats: the log's clock, or the base that the user insists on.
    pub(crate) fn t_ns(&self, time: Option<Timestamp>) -> Option<i64> {
        let nanos = time?.nanos;
        if self.asked.time_base.is_some() { self.in_base(nanos) } else { Some(nanos) }
    }

    /// Time since the log began, `+00:02:33.2`.
    pub(crate) fn since_start(&self, time: Timestamp) -> Option<String> {
        let nanos = time.nanos.checked_sub(self.start?)?;
        let tenths = nanos.unsigned_abs() / 100_000_000;
        let sign = if nanos < 0 && tenths > 0 { '-' } else { '+' };
        let (seconds, tenth) = (tenths / 10, tenths % 10);
        Some(format!("{sign}{:02}:{:02}:{:02}.{tenth}", seconds / 3600, seconds / 60 % 60, seconds % 60))
    }

    fn push(&self, nanos: i64, digits: Digits, text: &mut String) {
        match self.format {
            TimeFormat::Auto | TimeFormat::Rfc3339 => self.push_rfc3339(nanos, digits, text),
            TimeFormat::Nanoseconds => {
                let _ = write!(text, "{nanos}");
            }
            TimeFormat::Seconds => {
                let seconds = Timestamp::new(nanos, Clock::Boot).seconds();
                let _ = match digits {
                    Digits::Needed => write!(text, "{seconds}"),
                    Digits::Aligned | Digits::Nine => {
                        let width = if matches!(digits, Digits::Nine) || nanos % 1000 != 0 { 9 } else { 6 };
                        let sign = if nanos < 0 { "-" } else { "" };
                        let (whole, part) =
                            (nanos.unsigned_abs() / 1_000_000_000, nanos.unsigned_abs() % 1_000_000_000);
                        let part = if width == 6 { part / 1000 } else { part };
                        write!(text, "{sign}{whole}.{part:0width$}")
                    }
                };
            }
        }
    }

    fn push_rfc3339(&self, nanos: i64, digits: Digits, text: &mut String) {
        let (second, part) = (nanos.div_euclid(SECOND), nanos.rem_euclid(SECOND));
        let mut cached = self.second.borrow_mut();
        if cached.0 != second {
            let date = DateTime::from_timestamp(second, 0).unwrap_or_default();
            *cached = (second, date.format("%Y-%m-%dT%H:%M:%S").to_string());
        }
        text.push_str(&cached.1);
        let width = match digits {
            Digits::Needed if part == 0 => 0,
            Digits::Needed if part % 1_000_000 == 0 => 3,
            Digits::Needed | Digits::Aligned if part % 1000 == 0 => 6,
            _ => 9,
        };
        if width > 0 {
            let _ = write!(text, ".{:0width$}", part / 10_i64.pow(9 - u32::try_from(width).unwrap_or(9)));
        }
        text.push('Z');
    }

    /// The log's span, for messages about windows that miss it.
    pub(crate) fn span(&self) -> Option<String> {
        let at = |nanos| self.brief(Timestamp::new(nanos, self.clock));
        Some(format!("{} to {}", at(self.start?), at(self.end?)))
    }
}

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
        place(self, option, times)
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
pub(crate) fn duration(text: &str) -> Result<i64, String> {
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
            moment.as_ref().map(|moment| place(moment, option, times)).transpose()
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

fn place(moment: &Moment, option: &str, times: &Times) -> Result<i64, Failure> {
    let text = &moment.text;
    let unknown = |what: &str| {
        Failure::usage(format!("{what}, so {option} {text} cannot be placed"))
            .next(format!("use {option} +10s, or a time of the log's clock such as {option} 112.5s"))
    };
    let start = || times.start.ok_or_else(|| unknown("the start of this log is not known"));
    let offset = || times.offset.ok_or_else(|| unknown("this log has no UTC"));
    let placed = match moment.kind {
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

/// `9m 8.883s`.
pub(crate) fn span_text(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    let (minutes, rest) = (nanos / 60_000_000_000, nanos % 60_000_000_000);
    let seconds = Timestamp::new(i64::try_from(rest).unwrap_or_default(), Clock::Boot).seconds();
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, minutes) => format!("{sign}{minutes}m {seconds}s"),
        (hours, minutes) => format!("{sign}{hours}h {minutes}m {seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use rovelog::UtcOffset;

    use super::*;

    /// A log from boot 112.417 s to 661.3 s; with UTC it begins at 2026-05-20T11:58:32.104821Z.
    fn times(utc: bool, asked: TimeArgs) -> Times {
        let mut info = LogInfo::new("1", 0);
        info.start = Some(Timestamp::new(112_417_000_000, Clock::Boot));
        info.end = Some(Timestamp::new(661_300_000_000, Clock::Boot));
        info.utc =
            utc.then(|| UtcOffset { nanos: 1_779_278_199_687_821_000, rule: "gps", evidence: String::new() });
        Times::new(&info, asked).ok().unwrap()
    }

    fn placed(text: &str, times: &Times) -> i64 {
        place(&text.parse().unwrap(), "-S", times).ok().unwrap()
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

    #[test]
    fn times_are_written_in_the_base_and_the_format() {
        let time = Timestamp::new(112_417_000_000, Clock::Boot);
        let text = |times: &Times| {
            let mut text = String::new();
            times.push_text(Some(time), &mut text);
            (text, times.brief(time), times.machine(Some(time)))
        };
        let asked = |time_format, time_base| TimeArgs { time_format, time_base };
        let utc = "2026-05-20T11:58:32.104821Z".to_owned();
        let auto = times(true, TimeArgs::default());
        assert_eq!(text(&auto), (utc.clone(), utc.clone(), Some(utc.clone())));
        assert_eq!(auto.t_ns(Some(time)), Some(112_417_000_000));
        let no_utc = times(false, TimeArgs::default());
        assert_eq!(text(&no_utc), ("112.417000".into(), "112.417 s".into(), None));
        let relative = times(true, asked(None, Some(TimeBase::Relative)));
        assert_eq!(text(&relative), ("  0.000000".into(), "0.0 s".into(), Some(utc)));
        assert_eq!(relative.t_ns(Some(time)), Some(0));
        let nanos = times(true, asked(Some(TimeFormat::Nanoseconds), Some(TimeBase::Boot)));
        let chosen = "112417000000".to_owned();
        assert_eq!(text(&nanos), (chosen.clone(), chosen.clone(), Some(chosen)));
        assert_eq!(auto.since_start(Timestamp::new(265_700_000_000, Clock::Boot)).unwrap(), "+00:02:33.2");
        assert!(Times::new(&LogInfo::new("1", 0), asked(None, Some(TimeBase::Utc))).is_err());
    }

    #[test]
    fn spans_of_time_are_short() {
        for (nanos, text) in [
            (548_883_000_000, "9m 8.883s"),
            (0, "0.0s"),
            (3_600_000_000_000, "1h 0m 0.0s"),
            (-1, "-0.000000001s"),
        ] {
            assert_eq!(span_text(nanos), text);
        }
    }
}
