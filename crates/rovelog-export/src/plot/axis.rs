//! Axes with ticks at round numbers or round times, and units with a prefix.
//!
//! For example, values from 0 to 0.0234 A with about 5 ticks are shown in mA. The range with a
//! margin is about 0.0257 A. A fifth of this range is 0.0051 A, and the next round step is 0.01 A.
//! The ticks are therefore labeled 0, 10 and 20.

use rovelog::{Clock, Timestamp};

/// Number of nanoseconds in a second.
const SECOND: f64 = 1e9;

/// A tick of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// Position of the tick in the unit of the axis. The unit of a horizontal axis is seconds
    /// or hertz.
    pub(super) at: f64,
    pub(super) label: String,
    /// Date of the tick. `None` unless the tick is the first tick of a day on a time axis.
    pub(super) date: Option<String>,
}

/// The value axis of a panel.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    /// Lower and upper end of the axis.
    pub(super) range: (f64, f64),
    pub(super) ticks: Vec<Tick>,
    /// Unit of the tick labels, with a prefix or a power of ten. For example, `mV` or `×10⁶ m`.
    pub(super) unit: Option<String>,
}

impl Scale {
    /// Creates an axis with about `wanted` ticks. `extent` is the minimum and maximum of the values
    /// on the axis.
    pub(super) fn new(extent: Option<(f64, f64)>, unit: Option<&str>, wanted: usize) -> Self {
        let range = with_margin(extent);
        let (low, high) = extent.unwrap_or((0.0, 1.0));
        let (factor, unit) = prefixed(unit, low.abs().max(high.abs()));
        Self { range, ticks: ticks(range, wanted, factor), unit }
    }

    /// Returns the position of a value on the axis. The position is 0 at the lower end and 1 at the
    /// upper end.
    pub(super) fn place(&self, value: f64) -> f64 {
        let (low, high) = self.range;
        // The values are halved before the subtraction, because the difference of two large values
        // may overflow.
        (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0)
    }
}

/// Returns about `wanted` ticks at round numbers within a range. The labels are the numbers
/// divided by `factor`, with as many decimals as they need to be exact.
fn ticks(range: (f64, f64), wanted: usize, factor: f64) -> Vec<Tick> {
    let (values, digits) = round_numbers(range, wanted, factor);
    // The addition of 0 turns -0 into 0, so that the label has no minus sign.
    let label = |value: f64| format!("{:.digits$}", value / factor + 0.0);
    values.into_iter().map(|at| Tick { at, label: label(at), date: None }).collect()
}

/// Returns about `wanted` round numbers within a range. Also returns the number of decimals that
/// show these numbers exactly after they are divided by `factor`.
fn round_numbers((low, high): (f64, f64), wanted: usize, factor: f64) -> (Vec<f64>, usize) {
    let span = high - low;
    if span <= 0.0 || !span.is_finite() {
        return (vec![low], 3);
    }
    let rough = span / wanted.max(1) as f64;
    let magnitude = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * magnitude).into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or(10.0 * magnitude);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 12")]
    let digits = (-((step / factor).log10() + 1e-9).floor()).clamp(0.0, 12.0) as usize;
    let first = (low / step).ceil();
    // Each tick is computed from its index. Adding up the steps would also add up their rounding
    // errors.
    let mut found = Vec::new();
    let mut i = 0.0;
    while (first + i) * step <= high + step * 1e-9 && found.len() < 100 {
        found.push((first + i) * step + 0.0);
        i += 1.0;
    }
    (found, digits)
}

/// Formats a value with five significant digits and a unit prefix, such as `1.2345 mA`.
pub fn with_prefix(value: f64, unit: &str) -> String {
    let (factor, unit) = prefixed(Some(unit), value.abs());
    let number = significant(value / factor, 5);
    format!("{number} {}", unit.unwrap_or_default()).trim_end().to_owned()
}

/// Formats a number with this many significant digits, but at most twelve decimals. The integer part
/// is never rounded: 5 digits of 123456.7 are `123457`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
pub fn significant(value: f64, digits: u8) -> String {
    let exponent = if value == 0.0 { 0.0 } else { value.abs().log10().floor() };
    let decimals = (f64::from(digits) - 1.0 - exponent).clamp(0.0, 12.0) as usize;
    format!("{value:.decimals$}")
}

/// Units that are combined with a prefix, as in `mV`. Other units, such as `m/s²`, are combined
/// with a power of ten.
const PREFIXED: &[&str] = &["V", "A", "W", "J", "C", "F", "Ω", "Hz", "Pa", "s", "B", "Ah"];

/// Returns whether values of a unit are shown with prefixes, such as mV.
pub fn has_prefixes(unit: &str) -> bool {
    PREFIXED.contains(&unit)
}

/// Returns the divisor for the labels of values up to `size`, and the unit with the prefix for this
/// divisor. For example, the size 0.02 and the unit V give the divisor 0.001 and the unit mV.
pub(super) fn prefixed(unit: Option<&str>, size: f64) -> (f64, Option<String>) {
    if size <= 0.0 || !size.is_finite() {
        return (1.0, unit.map(str::to_owned));
    }
    #[expect(clippy::cast_possible_truncation, reason = "clamped")]
    // A value slightly below a power of 1000 is rounded up. Otherwise, 0.9999 V would be shown in
    // mV.
    let thousands = ((size.log10() + 4e-4) / 3.0).floor().clamp(-100.0, 100.0) as i32;
    let prefix = match thousands {
        -5 => "f",
        -4 => "p",
        -3 => "n",
        -2 => "µ",
        -1 => "m",
        1 => "k",
        2 => "M",
        3 => "G",
        _ => "",
    };
    let factor = 1000f64.powi(thousands);
    match unit {
        Some(unit) if PREFIXED.contains(&unit) && !prefix.is_empty() => {
            (factor, Some(format!("{prefix}{unit}")))
        }
        unit if (1e-3..1e5).contains(&size) => (1.0, unit.map(str::to_owned)),
        unit => {
            let power = format!("×10{}", superscript(thousands * 3));
            (factor, Some(unit.map_or_else(|| power.clone(), |unit| format!("{power} {unit}"))))
        }
    }
}

/// Returns a number in superscript digits.
fn superscript(number: i32) -> String {
    let digit = |c: char| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        c => c.to_digit(10).and_then(|digit| char::from_u32(0x2070 + digit)).unwrap_or(c),
    };
    number.to_string().chars().map(digit).collect()
}

/// Adds a margin to a range of values. If the range is a single value, a range around this value is
/// returned.
fn with_margin(range: Option<(f64, f64)>) -> (f64, f64) {
    let (low, high) = range.unwrap_or((0.0, 1.0));
    let span = high - low;
    if !span.is_finite() {
        return (low, high);
    }
    // A relative span of less than 1e-12 only consists of rounding errors, so the signal is
    // constant.
    if span > f64::max(low.abs(), high.abs()) * 1e-12 {
        return (low - span * 0.05, high + span * 0.05);
    }
    let margin = if low == 0.0 { 1.0 } else { low.abs() * 0.1 };
    (low - margin, high + margin)
}

/// Round distances in seconds between ticks of the time axis, up to half a day. Distances below a
/// second are computed: they are 1, 2 or 5 times a power of ten in nanoseconds.
const STEPS: &[i64] = &[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200];

/// Seconds per day.
const DAY: i64 = 86_400;

/// Returns the distance between ticks of the time axis in nanoseconds. This is the shortest round
/// distance that divides a range of `nanos` nanoseconds into at most `wanted` steps.
fn time_step(nanos: f64, wanted: usize) -> i64 {
    let rough = nanos / wanted.max(1) as f64;
    let powers = (0..9).flat_map(|power| [1, 2, 5].map(|factor| factor * 10_i64.pow(power)));
    let seconds = STEPS.iter().map(|step| step * 1_000_000_000);
    // Distances of 1, 2, 5, 10, ... days cover every range of 64-bit nanoseconds.
    let days = (0..5).flat_map(|power| {
        [1, 2, 5]
            .into_iter()
            .filter_map(move |factor| (DAY * 1_000_000_000).checked_mul(factor * 10_i64.pow(power)))
    });
    powers.chain(seconds).chain(days).find(|step| *step as f64 >= rough).unwrap_or(i64::MAX)
}

/// Returns at most `wanted` ticks at round times. `span` is the time range in seconds. `utc` is the
/// Unix time of second 0 in nanoseconds.
pub(super) fn times(span: (f64, f64), utc: Option<i64>, wanted: usize) -> Vec<Tick> {
    #[expect(clippy::cast_possible_truncation, reason = "saturates")]
    let nanos = |seconds: f64| (seconds * SECOND).round() as i64;
    let zero = utc.unwrap_or(0);
    let (from, to) = (nanos(span.0), nanos(span.1));
    let step = time_step(to.saturating_sub(from) as f64, wanted);
    let (Some(first), Some(last)) = (zero.checked_add(from), zero.checked_add(to)) else { return Vec::new() };
    // Ticks are at multiples of their distance since 1970, so that they are at round times of day.
    let mut at = first.div_euclid(step).saturating_mul(step);
    if at < first {
        at = at.saturating_add(step);
    }
    let mut found = Vec::new();
    let mut day = None;
    // The loop also limits the number of ticks, because the range in nanoseconds may have been
    // rounded.
    while at <= last && found.len() <= wanted + 1 {
        let seconds = at.wrapping_sub(zero) as f64 / SECOND;
        let (label, date) = match utc {
            Some(_) => clock(at, step),
            None => (elapsed(at, step, to), None),
        };
        let new = date.is_some() && date != day;
        found.push(Tick { at: seconds, label, date: date.clone().filter(|_| new) });
        day = date;
        let Some(next) = at.checked_add(step) else { break };
        at = next;
    }
    found
}

/// Returns ticks for a horizontal axis of numbers, such as frequencies.
pub(super) fn plain(span: (f64, f64), wanted: usize) -> Vec<Tick> {
    ticks(span, wanted, 1.0)
}

/// Formats a Unix time as a time of day and a date. The time of day has as many decimals as the
/// distance `step` between ticks requires.
fn clock(unix: i64, step: i64) -> (String, Option<String>) {
    let Some(text) = Timestamp::new(unix, Clock::Unix).rfc3339() else {
        return (format!("{} s", unix / 1_000_000_000), None);
    };
    let (date, time) = text.trim_end_matches('Z').split_once('T').unwrap_or((&text, ""));
    let seconds = time.get(..8).unwrap_or(time);
    let label = if step >= DAY * 1_000_000_000 {
        String::new()
    } else if step % 60_000_000_000 == 0 {
        seconds.get(..5).unwrap_or(seconds).to_owned()
    } else {
        format!("{seconds}{}", fraction(unix.rem_euclid(1_000_000_000), step))
    };
    (label, Some(date.to_owned()))
}

/// Formats an elapsed time in seconds. On a long axis, minutes and hours are used.
fn elapsed(nanos: i64, step: i64, last: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let part = fraction((nanos.unsigned_abs() % 1_000_000_000).cast_signed(), step);
    let seconds = nanos.unsigned_abs() / 1_000_000_000;
    if last.unsigned_abs() < 600_000_000_000 {
        return format!("{sign}{seconds}{part}");
    }
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{sign}{hours}:{minutes:02}:{seconds:02}{part}")
}

/// Formats the fraction of a second. It has as many decimals as multiples of `step` nanoseconds
/// need. For example, a step of 200 ms needs one decimal.
fn fraction(nanos: i64, step: i64) -> String {
    let mut digits = 9;
    let mut rest = step;
    while digits > 0 && rest % 10 == 0 {
        rest /= 10;
        digits -= 1;
    }
    if digits == 0 { String::new() } else { format!(".{}", &format!("{nanos:09}")[..digits]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale) -> Vec<&str> {
        scale.ticks.iter().map(|tick| &*tick.label).collect()
    }

    #[test]
    fn values_are_round_and_short() {
        let scale = Scale::new(Some((0.0, 10.0)), None, 6);
        assert_eq!((labels(&scale), scale.unit.as_deref()), (vec!["0", "2", "4", "6", "8", "10"], None));
        let scale = Scale::new(Some((-5e-6, 5e-6)), Some("A"), 5);
        assert_eq!((labels(&scale), scale.unit.as_deref()), (vec!["-5", "0", "5"], Some("µA")));
        let scale = Scale::new(Some((0.0, 1.0)), Some("V"), 5);
        assert_eq!((labels(&scale)[1], scale.unit.as_deref()), ("0.5", Some("V")));
        let scale = Scale::new(Some((0.0, 2.5e7)), Some("m"), 3);
        assert_eq!((labels(&scale), scale.unit.as_deref()), (vec!["0", "10", "20"], Some("×10⁶ m")));
        let flat = Scale::new(Some((3.0, 3.0)), None, 5);
        assert!(flat.range.0 < 3.0 && flat.range.1 > 3.0 && flat.ticks.len() > 2);
        assert!(Scale::new(Some((f64::MIN, f64::MAX)), None, 5).ticks.len() < 101);
        assert!(Scale::new(Some((0.0, 5e-324)), Some("V"), 5).unit.is_some());
        assert!((Scale::new(Some((f64::MIN, f64::MAX)), None, 5).place(0.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn times_are_round_and_each_date_is_shown_once() {
        // The number is 2021-04-21T23:59:58.2Z in nanoseconds since 1970.
        let utc = Some(1_619_049_598_200_000_000);
        let found = times((0.0, 4.0), utc, 5);
        let shown: Vec<_> = found.iter().map(|tick| (&*tick.label, tick.date.as_deref())).collect();
        assert_eq!(
            shown,
            [
                ("23:59:59", Some("2021-04-21")),
                ("00:00:00", Some("2021-04-22")),
                ("00:00:01", None),
                ("00:00:02", None)
            ]
        );
        assert!((found[0].at - 0.8).abs() < 1e-9);
        let seconds: Vec<_> = times((0.0, 1.0), None, 5).into_iter().map(|tick| tick.label).collect();
        assert_eq!(seconds, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(times((0.0, 7200.0), None, 5)[1].label, "0:30:00");
        assert!(times((0.0, 9e9), None, 8).len() <= 10);
        assert!(times((-9e9, 9e9), Some(i64::MAX), 8).is_empty());
    }
}
