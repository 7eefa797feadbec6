//! Formats times for output, with the time format and the time base that the user selected.

use std::fmt::Write as _;
use std::sync::Mutex;

use chrono::DateTime;
use clap::ValueEnum;
use rovelog::core::internal::parallel::lock;
use rovelog::{Clock, LogInfo, Record, Timestamp, UtcOffset};
use rovelog_export::ndjson::{Lines, Time};

use crate::failure::Failure;

const SECOND: i64 = 1_000_000_000;
/// Unix time of 2000-01-01 in nanoseconds. A log cannot have an earlier date, so earlier times are
/// shown as seconds.
const YEAR_2000: i64 = 946_684_800 * SECOND;

/// Options for the format of times in the output.
#[derive(Clone, Copy, Default, clap::Args)]
pub(crate) struct TimeArgs {
    /// Format of printed times: auto (default), rfc3339, seconds or nanoseconds
    #[arg(long, global = true, value_enum, value_name = "FORMAT", hide_possible_values = true)]
    pub(crate) time_format: Option<TimeFormat>,
    /// Show times in UTC (utc), since boot (boot) or since the start of the log (relative);
    /// default: utc if UTC is known, otherwise boot
    #[arg(long, global = true, value_enum, value_name = "BASE", hide_possible_values = true)]
    pub(crate) time_base: Option<TimeBase>,
}

/// Format in which times are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimeFormat {
    Auto,
    Rfc3339,
    Seconds,
    Nanoseconds,
}

/// Reference point of printed times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimeBase {
    Utc,
    Boot,
    Relative,
}

/// Number of decimal places in a time in seconds.
#[derive(Clone, Copy)]
enum Digits {
    /// As many decimal places as the time needs: 0, 3, 6 or 9.
    Needed,
    /// Six decimal places, so that columns are aligned. Nine if the time is not a multiple of 1 µs.
    Aligned,
    /// Always nine decimal places.
    Nine,
}

/// Formats the times of one log.
pub(crate) struct Times {
    /// Offset between the log's clock and UTC, if it is known.
    pub(crate) utc: Option<UtcOffset>,
    /// Time of the first record of the log, in nanoseconds on the log's clock.
    pub(crate) start: Option<i64>,
    /// Time of the last record of the log, in nanoseconds on the log's clock.
    pub(crate) end: Option<i64>,
    /// Largest time of all records, in nanoseconds. Unlike `end`, it includes records whose times
    /// are far outside the time range of all other records.
    pub(crate) last: Option<i64>,
    pub(crate) clock: Clock,
    pub(crate) base: TimeBase,
    format: TimeFormat,
    /// Options that the user gave.
    asked: TimeArgs,
    /// Width in characters of the column of times in text output.
    width: usize,
    /// The last second that was formatted as a date, and the resulting text. Formatting a date is
    /// slow, and most records are in the same second as the record before.
    second: Mutex<(i64, String)>,
}

/// A clone is made for another thread. It starts with an empty cache.
impl Clone for Times {
    fn clone(&self) -> Self {
        let (utc, second) = (self.utc.clone(), Mutex::new((i64::MIN, String::new())));
        Self { utc, second, ..*self }
    }
}

impl Times {
    pub(crate) fn new(info: &LogInfo, asked: TimeArgs) -> Result<Self, Failure> {
        let nanos = |time: Option<Timestamp>| time.map(|time| time.nanos);
        let clock = info.start.or(info.end).map_or(Clock::Boot, |time| time.clock);
        // The clock of this log is UTC, so the offset is zero.
        let utc = if clock == Clock::Unix { Some(UtcOffset::new(0, "", "")) } else { info.utc.clone() };
        let base = asked.time_base.unwrap_or(if utc.is_some() { TimeBase::Utc } else { TimeBase::Boot });
        if base == TimeBase::Utc && utc.is_none() {
            return Err(Failure::usage("the log contains no UTC time, so --time-base utc cannot be used")
                .next("use --time-base boot or --time-base relative"));
        }
        if base == TimeBase::Boot && clock == Clock::Unix {
            return Err(Failure::usage("the log has only UTC times, so --time-base boot cannot be used")
                .next("use --time-base relative, or leave out --time-base"));
        }
        let mut times = Self {
            utc,
            start: nanos(info.data_start()),
            end: nanos(info.data_end()),
            last: nanos(info.end).max(nanos(info.span().map(|span| span.1))),
            clock,
            base,
            format: TimeFormat::Seconds,
            asked,
            width: 0,
            second: Mutex::new((i64::MIN, String::new())),
        };
        times.format = match asked.time_format.unwrap_or(TimeFormat::Auto) {
            TimeFormat::Auto => {
                let first = times.start.and_then(|start| times.in_base(start));
                // If the clock of a device was never set, its dates are near 1970. Such times are
                // more useful as seconds.
                let dated = first.is_some_and(|first| first >= YEAR_2000);
                if dated { TimeFormat::Rfc3339 } else { TimeFormat::Seconds }
            }
            format => format,
        };
        // The width of the column must be known before the first record is printed. It is the width
        // of the first or last time, because no time between them is longer.
        for end in [nanos(info.start), nanos(info.end), times.start, times.end] {
            times.width = times.width.max(times.aligned(end.map(|nanos| times.at(nanos))).len());
        }
        Ok(times)
    }

    /// Returns true if the user selected a time format other than `auto`.
    pub(crate) fn format_was_chosen(&self) -> bool {
        self.asked.time_format.is_some_and(|format| format != TimeFormat::Auto)
    }

    /// Returns true if times are printed in UTC.
    pub(crate) fn shows_utc(&self) -> bool {
        self.base == TimeBase::Utc
    }

    /// Returns the Unix time at the start of a time axis. Returns `None` if times are not shown in
    /// UTC, or if the clock was set during the log. An axis with constant steps cannot show such a
    /// change of the clock.
    pub(crate) fn axis_start(&self, start: i64) -> Option<i64> {
        let utc = self.utc.as_ref().filter(|utc| self.shows_utc() && utc.constant().is_some());
        utc?.unix(start)
    }

    /// Converts nanoseconds on the clock of the log to a timestamp.
    pub(crate) fn at(&self, nanos: i64) -> Timestamp {
        Timestamp::new(nanos, self.clock)
    }

    /// Converts a time on the clock of the log to the selected time base. Returns `None` on
    /// overflow.
    pub(crate) fn in_base(&self, nanos: i64) -> Option<i64> {
        match self.base {
            TimeBase::Utc => self.utc.as_ref()?.unix(nanos),
            TimeBase::Boot => Some(nanos),
            TimeBase::Relative => nanos.checked_sub(self.start.unwrap_or(0)),
        }
    }

    /// Appends a time to `text`, padded to the width of the column of times. Appends `-` if there
    /// is no time.
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

    /// Formats a time, padded to the width of the column of times. The result is `-` if there is no
    /// time.
    pub(crate) fn aligned(&self, time: Option<Timestamp>) -> String {
        let mut text = String::new();
        self.push_text(time, &mut text);
        text
    }

    /// Formats a time as short as possible, but without loss of precision. Times in seconds have no
    /// unit. The result is `None` if the time cannot be converted to the time base.
    pub(crate) fn short(&self, time: Timestamp) -> Option<String> {
        let mut text = String::new();
        self.push(self.in_base(time.nanos)?, Digits::Needed, &mut text);
        Some(text)
    }

    /// Formats a time as [`short`](Self::short) does, with the unit of seconds.
    pub(crate) fn brief(&self, time: Timestamp) -> String {
        let mut text = self.short(time).unwrap_or_else(|| "-".to_owned());
        if self.format == TimeFormat::Seconds {
            text.push_str(" s");
        }
        text
    }

    /// Formats a time as seconds of Unix time, which are shown with `-v`.
    pub(crate) fn epoch(&self, time: Timestamp) -> Option<String> {
        Some(Timestamp::new(self.utc.as_ref()?.unix(time.nanos)?, Clock::Unix).seconds().to_string())
    }

    /// Appends a time with nine decimal places, as in CSV output. Appends nothing if the record has
    /// no time or the log has no UTC.
    pub(crate) fn push_csv(&self, time: Option<Timestamp>, text: &mut String) {
        self.push_machine(time, Digits::Nine, text);
    }

    /// Formats a time for a cell of CSV output. The result is empty if the record has no time or the
    /// log has no UTC.
    pub(crate) fn csv(&self, time: Option<Timestamp>) -> String {
        let mut text = String::new();
        self.push_csv(time, &mut text);
        text
    }

    /// Appends a Unix time as a date with nine decimal places, as in CSV output.
    pub(crate) fn push_date(&self, nanos: i64, text: &mut String) {
        self.push_rfc3339(nanos, Digits::Nine, text);
    }

    /// Appends a time for CSV or JSON, as an RFC 3339 date or in the format that the user selected.
    /// Returns false and appends nothing if the record has no time, or if the log has no UTC.
    fn push_machine(&self, time: Option<Timestamp>, digits: Digits, text: &mut String) -> bool {
        let Some(time) = time else { return false };
        if self.format_was_chosen() {
            let Some(nanos) = self.in_base(time.nanos) else { return false };
            self.push(nanos, digits, text);
            return true;
        }
        let Some(nanos) = self.utc.as_ref().and_then(|utc| utc.unix(time.nanos)) else { return false };
        self.push_rfc3339(nanos, digits, text);
        true
    }

    /// Returns a time as text for CSV or JSON. Returns `None` if the record has no time, or if the log
    /// has no UTC.
    pub(crate) fn machine(&self, time: Option<Timestamp>) -> Option<String> {
        let mut text = String::new();
        self.push_machine(time, Digits::Needed, &mut text).then_some(text)
    }

    /// Writes the start of a line of NDJSON, which consists of all keys before the data of the
    /// record.
    pub(crate) fn head(&self, record: &Record<'_>, topic: &str, lines: &mut Lines, out: &mut Vec<u8>) {
        let chosen = self.format_was_chosen().then(|| self.machine(record.time)).flatten();
        let time = match (&chosen, record.time.zip(self.utc.as_ref())) {
            (Some(text), _) => Time::Text(text),
            (None, Some((time, utc))) if !self.format_was_chosen() => {
                utc.unix(time.nanos).map_or(Time::None, Time::Unix)
            }
            _ => Time::None,
        };
        lines.head(time, self.t_ns(record.time), topic, record, out);
    }

    /// Returns the number for the key `t_ns` in machine-readable output. It is the time on the
    /// clock of the log, unless the user selected another time base.
    pub(crate) fn t_ns(&self, time: Option<Timestamp>) -> Option<i64> {
        let nanos = time?.nanos;
        if self.asked.time_base.is_some() { self.in_base(nanos) } else { Some(nanos) }
    }

    /// Returns [`t_ns`](Self::t_ns) as text. In JSON, 64-bit integers are strings.
    pub(crate) fn t_ns_text(&self, time: Option<Timestamp>) -> Option<String> {
        self.t_ns(time).map(|nanos| nanos.to_string())
    }

    /// Formats the time since the start of the log, for example as `+00:02:33.2`. The result is `-`
    /// if there is no time.
    pub(crate) fn since_start(&self, time: Option<Timestamp>) -> String {
        let since = time.zip(self.start).and_then(|(time, start)| time.nanos.checked_sub(start));
        let Some(nanos) = since else { return "-".to_owned() };
        let tenths = nanos.unsigned_abs() / 100_000_000;
        // A time before the start that is rounded to zero has no minus sign.
        let sign = if nanos < 0 && tenths > 0 { '-' } else { '+' };
        let (seconds, tenth) = (tenths / 10, tenths % 10);
        format!("{sign}{:02}:{:02}:{:02}.{tenth}", seconds / 3600, seconds / 60 % 60, seconds % 60)
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
                        let (seconds, nanos) =
                            (nanos.unsigned_abs() / 1_000_000_000, nanos.unsigned_abs() % 1_000_000_000);
                        let fraction = if width == 6 { nanos / 1000 } else { nanos };
                        write!(text, "{sign}{seconds}.{fraction:0width$}")
                    }
                };
            }
        }
    }

    fn push_rfc3339(&self, nanos: i64, digits: Digits, text: &mut String) {
        let (second, part) = (nanos.div_euclid(SECOND), nanos.rem_euclid(SECOND));
        let mut cached = lock(&self.second);
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

    /// Returns the time range of the log as text. Messages about time windows outside of the log
    /// show it.
    pub(crate) fn span(&self) -> Option<String> {
        let at = |nanos| self.brief(self.at(nanos));
        Some(format!("{} to {}", at(self.start?), at(self.end?)))
    }

    /// Formats a time in the selected time base as the user would write it after `-S` or `-E`.
    pub(crate) fn as_option(&self, in_base: i64) -> Option<String> {
        match self.base {
            TimeBase::Utc => Timestamp::new(in_base, Clock::Unix).rfc3339(),
            TimeBase::Boot => Some(format!("{}s", Timestamp::new(in_base, Clock::Boot).seconds())),
            TimeBase::Relative => Some(format!("+{}s", Timestamp::new(in_base, Clock::Boot).seconds())),
        }
    }

    /// Converts a UTC time to the clock of the log. If the clock was set back, the time may occur
    /// twice. `edge` then selects the first or the last occurrence.
    pub(crate) fn log_time_of_utc(&self, unix: i64, edge: Edge) -> Option<i64> {
        let utc = self.utc.as_ref()?;
        match edge {
            Edge::Start => utc.first_log_time(unix),
            Edge::End => utc.last_log_time(unix),
        }
    }

    /// Converts a time in the selected time base to the clock of the log.
    pub(crate) fn log_time_of(&self, in_base: i64, edge: Edge) -> Option<i64> {
        match self.base {
            TimeBase::Utc => self.log_time_of_utc(in_base, edge),
            TimeBase::Boot => Some(in_base),
            TimeBase::Relative => self.start?.checked_add(in_base),
        }
    }
}

/// Start or end of a time window. If the clock of a log was set back, a UTC time occurs twice. A
/// window starts at the first occurrence and ends at the last occurrence, so that it includes both.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edge {
    Start,
    End,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a formatter for a test log that covers the boot times 112.417 s to 661.3 s. If `utc`
    /// is true, the log starts at 2026-05-20T11:58:32.104821Z.
    pub(crate) fn times(utc: bool, asked: TimeArgs) -> Times {
        let mut info = LogInfo::new("1", 0);
        info.start = Some(Timestamp::new(112_417_000_000, Clock::Boot));
        info.end = Some(Timestamp::new(661_300_000_000, Clock::Boot));
        info.utc = utc.then(|| UtcOffset::new(1_779_278_199_687_821_000, "gps", ""));
        Times::new(&info, asked).ok().unwrap()
    }

    #[test]
    fn times_are_written_in_the_base_and_the_format() {
        let time = Timestamp::new(112_417_000_000, Clock::Boot);
        let text = |times: &Times| (times.aligned(Some(time)), times.brief(time), times.machine(Some(time)));
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
        assert_eq!(auto.since_start(Some(Timestamp::new(265_700_000_000, Clock::Boot))), "+00:02:33.2");
        assert!(Times::new(&LogInfo::new("1", 0), asked(None, Some(TimeBase::Utc))).is_err());
    }
}
