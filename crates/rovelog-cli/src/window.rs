//! The options `-S` and `-E`, which select a time window of the log.

use rovelog::{AnyLog, LogReader, Select, Timestamp};

use crate::context::Context;
use crate::failure::Failure;
use crate::select::TopicArgs;
use crate::time_point::TimePoint;
use crate::times::Times;

/// Options that select a time window.
#[derive(Clone, Default, clap::Args)]
pub(crate) struct WindowArgs {
    /// Start (inclusive): +10s (after the log's start), -30s (before its end), 112.5s
    /// (log clock), 12:01:05 or 2026-05-20T12:01:05Z (UTC), or nanoseconds
    #[arg(short = 'S', long, value_name = "TIME", allow_hyphen_values = true)]
    start: Option<TimePoint>,
    /// End (exclusive), in the same forms
    #[arg(short = 'E', long, value_name = "TIME", allow_hyphen_values = true)]
    end: Option<TimePoint>,
}

/// A time window, in nanoseconds on the clock of the log. The end is exclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) start: Option<i64>,
    pub(crate) end: Option<i64>,
}

impl Window {
    pub(crate) fn contains(&self, nanos: i64) -> bool {
        self.start.is_none_or(|start| nanos >= start) && self.end.is_none_or(|end| nanos < end)
    }
}

impl WindowArgs {
    /// Returns true if the user gave neither a start nor an end.
    pub(crate) fn is_open(&self) -> bool {
        self.start.is_none() && self.end.is_none()
    }

    /// Converts the window to times on the clock of the log. `span` is the time range of the
    /// records, if it is known.
    ///
    /// Returns an error if the whole window is outside of the log. Also returns an error if the
    /// start or the end is outside of the log and was probably written in the wrong form. For
    /// example, a log starts at the boot time 112 s. Then `-S 10s` would select the whole log,
    /// although the user probably meant `-S +10s`.
    pub(crate) fn resolve(&self, times: &Times, span: Option<(i64, i64)>) -> Result<Window, Failure> {
        let resolve = |point: &Option<TimePoint>, option| {
            point.as_ref().map(|point| point.resolve(option, times)).transpose()
        };
        let window = Window { start: resolve(&self.start, "-S")?, end: resolve(&self.end, "-E")? };
        let said = |point: &Option<TimePoint>, option: &str| {
            point.as_ref().map_or_else(String::new, |point| format!(" {option} {}", point.text))
        };
        let (from, until) = (said(&self.start, "-S"), said(&self.end, "-E"));
        let (start, end) = (window.start.unwrap_or(i64::MIN), window.end.unwrap_or(i64::MAX));
        let at = |nanos| times.brief(times.at(nanos));
        if start >= end {
            let what = if start > end { "is before" } else { "is at" };
            return Err(Failure::usage(format!(
                "the time range is empty, because its end{until} ({}) {what} its start{from} ({})",
                at(end),
                at(start)
            ))
            .next("choose a start (-S) before the end (-E)"));
        }
        let (first, last) = span.unwrap_or((i64::MIN, times.last.unwrap_or(i64::MAX)));
        // A few records may have times before the start of the log. So the window is compared with
        // the start of the log and not with the smallest time.
        let data = times.start.unwrap_or(first);
        let side = |is_before: bool, is_after: bool| match (is_before, is_after) {
            (true, _) => Some("before its data"),
            (false, true) => Some("after all of its records"),
            (false, false) => None,
        };
        let ends = [
            ("-S", &self.start, start, side(start < data, start > last)),
            ("-E", &self.end, end, side(end <= data, end > last)),
        ];
        for (option, point, nanos, side) in ends {
            let (Some(point), Some(side)) = (point, side) else { continue };
            if !point.is_ambiguous() {
                continue;
            }
            let failure = Failure::usage(format!(
                "{option} {} means {} on the log clock, which is {side}; the log covers {}",
                point.text,
                at(nanos),
                times.span().unwrap_or_default()
            ));
            return Err(match point.suggestion(times, (data, last)) {
                Some(suggestion) => failure.next(format!("did you mean {option} {suggestion}?")),
                None => failure,
            });
        }
        // An empty output would look like the output for a log without data, so a window without
        // data is an error.
        if span.is_some() && (start > last || end <= first) {
            let failure = Failure::usage(format!("the log has no data in the time range{from}{until}"));
            return Err(match times.span() {
                Some(span) => failure.next(format!("choose a time range within {span}")),
                None => failure,
            });
        }
        Ok(window)
    }
}

/// Prints a note if the time window excludes records whose times are far outside the time range of
/// all other records. A user who selects the whole time range may expect to get all records.
pub(crate) fn note_outside(log: &dyn LogReader, select: &Select, context: &Context) {
    for outside in log.info().outside() {
        let Some(topic) = log.topics().get(outside.topic.index()) else { continue };
        let is_inside = |time: Timestamp| select.keeps_time(time.nanos);
        if select.keeps_topic(topic) && !(is_inside(outside.first) && is_inside(outside.last)) {
            context.note(&format!(
                "-S and -E leave out records with stale times: {}",
                outside.sentence(&topic.name)
            ));
        }
    }
}

/// Returns the smallest and the largest time of all records. The smallest time may be before the
/// start of the log, because a topic may contain older values.
pub(crate) fn span(log: &dyn LogReader) -> Option<(i64, i64)> {
    let info = log.info();
    let times = || {
        let topics = log.topics().iter().flat_map(|topic| [topic.first, topic.last]);
        let outside = info.outside().iter().flat_map(|outside| [outside.first, outside.last].map(Some));
        topics.chain(outside).chain([info.start, info.end]).flatten().map(|time| time.nanos)
    };
    Some((times().min()?, times().max()?))
}

/// Selects the records of the topics given by the user within the time window.
pub(crate) fn select_window(
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
    use crate::time_point::DAY;
    use crate::times::tests::times;
    use crate::times::{TimeArgs, TimeBase};

    fn placed(text: &str, times: &Times) -> i64 {
        text.parse::<TimePoint>().unwrap().resolve("-S", times).ok().unwrap()
    }

    #[test]
    fn all_forms_of_a_time_are_converted_to_the_clock_of_the_log() {
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
            // A time of day before the start of the log means the next day.
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
    fn errors_suggest_a_valid_time() {
        for (text, said) in [
            ("-30", "-30 has no unit; write -30s"),
            ("112.5", "112.5 has no unit; write 112.5s"),
            ("2026-05-20T12:01:05", "for UTC, write 2026-05-20T12:01:05Z"),
            ("25:00", "HH:MM:SS"),
            ("yesterday", "a time has one of the forms +10s"),
            ("", "a time has one of the forms +10s"),
            ("1.2.3s", "a time has one of the forms +10s"),
            ("10ss", "a time has one of the forms +10s"),
            ("50%", "a time has one of the forms +10s"),
            ("+10 s", "write +10s"),
            ("+1:30", "write +1m30s"),
            ("-1:02:03", "write -1h02m03s"),
            ("2024-03-18", "write 2024-03-18T00:00:00Z"),
            ("2021-04-21 06:31:00", "write 2021-04-21T06:31:00Z"),
            ("2021-04-21 06:31:00.5", "write 2021-04-21T06:31:00.500Z"),
            ("+99999999999999h", "too large"),
        ] {
            let error = text.parse::<TimePoint>().unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    /// Each window in this test would select all records or none.
    #[test]
    fn times_outside_of_the_log_are_refused_with_a_suggestion() {
        let (with_utc, without) = (times(true, TimeArgs::default()), times(false, TimeArgs::default()));
        let span = Some((112_417_000_000, 661_300_000_000));
        for (times, option, text, cause, next) in [
            (
                &without,
                "-S",
                "10s",
                "-S 10s means 10.0 s on the log clock, which is before its data",
                "-S +10s",
            ),
            (&without, "-S", "90", "before its data", "-S +90s"),
            (&without, "-S", "113000", "before its data", "-S 113.0s"),
            (&with_utc, "-S", "113000000000", "before its data", "-S 113000000000ns"),
            (&without, "-E", "20m", "after all of its records", "-E +20m"),
            (&without, "-E", "10s", "before its data", "-E +10s"),
            (&with_utc, "-S", "10s", "the log covers 2026-05-20T11:58:32.104821Z to", "-S +10s"),
            (&with_utc, "-S", "1779278313", "before its data", "-S 2026-05-20T11:58:33Z"),
            (&with_utc, "-E", "11:00", "after all of its records", ""),
        ] {
            let point = |of: &str| (of == option).then(|| text.parse().unwrap());
            let window = WindowArgs { start: point("-S"), end: point("-E") };
            for span in [span, None] {
                let Err(Failure::Message(said)) = window.resolve(times, span) else {
                    panic!("{option} {text}")
                };
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
            let point = |text: &str| (!text.is_empty()).then(|| text.parse().unwrap());
            WindowArgs { start: point(start), end: point(end) }
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
