//! Parses durations that users write in options, in conditions and in Python, such as `1m30s`, and
//! formats durations for people.

use std::sync::LazyLock;
use std::time::Duration;

use fundu::TimeUnit::{Hour, MicroSecond, MilliSecond, Minute, NanoSecond, Second};
use fundu::{CustomDurationParser, CustomTimeUnit};
use rovelog::{Clock, Timestamp};

/// Reason why a text is not a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotADuration {
    /// The text does not consist of numbers and units.
    Form,
    /// The last number has no unit.
    NoUnit,
    /// The duration exceeds 292 years, the range of 64-bit nanoseconds.
    TooLarge,
}

/// Parses a duration such as `2s`, `1.5 ms` or `1m30s` to nanoseconds.
///
/// The units are `ns`, `us` or `µs`, `ms`, `s`, `m` or `min`, and `h`. Each number needs a unit,
/// and the parts are added. The arithmetic is exact. Fractions of a nanosecond are truncated.
///
/// # Errors
/// Returns an error if the text is not a duration.
pub fn duration(text: &str) -> Result<i64, NotADuration> {
    let text = text.trim();
    let is_number = |part: &str| {
        let part = part.trim();
        part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && part.matches('.').count() < 2
    };
    // The `fundu` parser also accepts signs and exponents, which make no sense for durations.
    if text.is_empty() || !text.split(char::is_alphabetic).all(is_number) {
        return Err(NotADuration::Form);
    }
    if !text.ends_with(char::is_alphabetic) {
        return Err(NotADuration::NoUnit);
    }
    let parsed = PARSER.parse(text).ok().and_then(|parsed| Duration::try_from(parsed).ok());
    i64::try_from(parsed.ok_or(NotADuration::Form)?.as_nanos()).map_err(|_| NotADuration::TooLarge)
}

/// Formats a duration, for example `9m 8.883s`.
pub fn duration_text(nanos: i64) -> String {
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

static PARSER: LazyLock<CustomDurationParser<'static>> = LazyLock::new(|| {
    let units = [
        CustomTimeUnit::with_default(NanoSecond, &["ns"]),
        CustomTimeUnit::with_default(MicroSecond, &["us", "µs"]),
        CustomTimeUnit::with_default(MilliSecond, &["ms"]),
        CustomTimeUnit::with_default(Second, &["s"]),
        CustomTimeUnit::with_default(Minute, &["m", "min"]),
        CustomTimeUnit::with_default(Hour, &["h"]),
    ];
    CustomDurationParser::builder()
        .time_units(&units)
        .allow_time_unit_delimiter()
        .disable_exponent()
        .disable_infinity()
        .parse_multiple(None)
        .build()
});

#[cfg(test)]
mod tests {
    use super::NotADuration::{Form, NoUnit, TooLarge};
    use super::{duration, duration_text};

    #[test]
    fn every_unit_counts_exactly() {
        for (text, nanos) in [
            ("7ns", 7),
            ("1.5us", 1_500),
            ("2µs", 2_000),
            ("250ms", 250_000_000),
            ("0.000000001s", 1),
            ("2m", 120_000_000_000),
            ("2min", 120_000_000_000),
            ("1h", 3_600_000_000_000),
            ("1m30s", 90_000_000_000),
            ("1h02m03s", 3_723_000_000_000),
            ("1.5 ms", 1_500_000),
            (" 1m 30s ", 90_000_000_000),
            ("1 m 30 s", 90_000_000_000),
            (".5s", 500_000_000),
            ("0s", 0),
            ("4611686018.427387905s", 4_611_686_018_427_387_905),
        ] {
            assert_eq!(duration(text), Ok(nanos), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for (text, error) in [
            ("", Form),
            ("s", Form),
            ("2V", Form),
            ("10ss", Form),
            ("1.2.3s", Form),
            ("-1s", Form),
            ("+1s", Form),
            ("1e3s", Form),
            ("1 0s", Form),
            ("50%", Form),
            ("infs", Form),
            ("2", NoUnit),
            ("1m30", NoUnit),
            ("99999999999999h", TooLarge),
        ] {
            assert_eq!(duration(text), Err(error), "{text}");
        }
    }

    #[test]
    fn spans_of_time_are_short() {
        for (nanos, text) in [
            (548_883_000_000, "9m 8.883s"),
            (0, "0.0s"),
            (3_600_000_000_000, "1h 0m 0.0s"),
            (-1, "-0.000000001s"),
        ] {
            assert_eq!(duration_text(nanos), text);
        }
    }
}
