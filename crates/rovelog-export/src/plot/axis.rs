//! Axes with ticks at round numbers or round times, and unit prefixes.

use rovelog::{Clock, Timestamp};

/// Nanoseconds per second.
const SECOND: f64 = 1e9;

/// A tick of the time axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// Position in seconds.
    pub(super) at: f64,
    pub(super) label: String,
    /// Date, shown at the first tick of each day.
    pub(super) date: Option<String>,
}

/// The value axis of a panel.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    /// Lower and upper end of the axis.
    pub(super) range: (f64, f64),
    /// Ticks: value and label.
    pub(super) ticks: Vec<(f64, String)>,
    /// The unit with its prefix: `mV`, `×10⁶`.
    pub(super) unit: Option<String>,
}

impl Scale {
    /// Creates an axis with about `wanted` ticks.
    pub(super) fn new(extent: Option<(f64, f64)>, unit: Option<&str>, wanted: usize) -> Self {
        let range = with_air(extent);
        let (low, high) = extent.unwrap_or((0.0, 1.0));
        let (factor, unit) = prefixed(unit, low.abs().max(high.abs()));
        let (values, digits) = ticks(range, wanted, factor);
        let ticks = values.into_iter().map(|value| (value, format!("{:.digits$}", value / factor + 0.0)));
        Self { range, ticks: ticks.collect(), unit }
    }

    /// Returns the position of a value on the axis: 0 at the lower end, 1 at the upper end.
    pub(super) fn place(&self, value: f64) -> f64 {
        let (low, high) = self.range;
        // Divide first, because the difference of two large values may overflow to infinity.
        (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0)
    }
}

/// Returns about `wanted` round numbers within a range, and the number of decimals that they need
/// after division by `factor`.
fn ticks((low, high): (f64, f64), wanted: usize, factor: f64) -> (Vec<f64>, usize) {
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
    let mut found = Vec::new();
    let mut i = 0.0;
    while (first + i) * step <= high + step * 1e-9 && found.len() < 100 {
        found.push((first + i) * step + 0.0);
        i += 1.0;
    }
    (found, digits)
}

/// Formats a value with five significant digits and a unit prefix: `1.2345 mA`.
pub(crate) fn short(value: f64, unit: &str) -> String {
    let (factor, unit) = prefixed(Some(unit), value.abs());
    let value = value / factor;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let digits = (4.0 - value.abs().max(1e-9).log10().floor()).clamp(0.0, 4.0) as usize;
    format!("{value:.digits$} {}", unit.unwrap_or_default()).trim_end().to_owned()
}

/// Units that may get a prefix.
const PREFIXED: &[&str] = &["V", "A", "W", "J", "C", "F", "Ω", "Hz", "Pa", "s", "B"];

/// Returns the divisor that makes values of this size short, and the unit with the matching prefix.
/// For example, 0.02 V gives 0.001 and mV.
pub(super) fn prefixed(unit: Option<&str>, size: f64) -> (f64, Option<String>) {
    if size <= 0.0 || !size.is_finite() {
        return (1.0, unit.map(str::to_owned));
    }
    #[expect(clippy::cast_possible_truncation, reason = "clamped")]
    // Round up slightly below a power of 1000, so that 0.9999 V is not shown as 999.9 mV.
    let thousands = ((size.log10() + 4e-4) / 3.0).floor().clamp(-100.0, 100.0) as i32;
    let prefix = match thousands {
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

/// Adds a margin to a range of values. A constant signal gets a range around its value.
fn with_air(range: Option<(f64, f64)>) -> (f64, f64) {
    let (low, high) = range.unwrap_or((0.0, 1.0));
    let span = high - low;
    if !span.is_finite() {
        return (low, high);
    }
    // A smaller span is rounding noise.
    if span > f64::max(low.abs(), high.abs()) * 1e-12 {
        return (low - span * 0.05, high + span * 0.05);
    }
    let air = if low == 0.0 { 1.0 } else { low.abs() * 0.1 };
    (low - air, high + air)
}

/// Steps of the time axis in seconds. Steps below a second are 1, 2 or 5 times a power of ten
/// nanoseconds.
const STEPS: &[i64] = &[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200];

const DAY: i64 = 86_400;

/// Returns the shortest round time step, in nanoseconds, of which at most `wanted` fit into
/// `nanos`.
fn time_step(nanos: f64, wanted: usize) -> i64 {
    let rough = nanos / wanted.max(1) as f64;
    let powers = (0..9).flat_map(|power| [1, 2, 5].map(|factor| factor * 10_i64.pow(power)));
    let seconds = STEPS.iter().map(|step| step * 1_000_000_000);
    // Steps of 1, 2, 5, 10, ... days cover every range of 64-bit nanoseconds.
    let days = (0..5).flat_map(|power| {
        [1, 2, 5]
            .into_iter()
            .filter_map(move |factor| (DAY * 1_000_000_000).checked_mul(factor * 10_i64.pow(power)))
    });
    powers.chain(seconds).chain(days).find(|step| *step as f64 >= rough).unwrap_or(i64::MAX)
}

/// Returns at most `wanted` ticks at round times. `span` is in seconds, and `utc` is the Unix time
/// of second 0 in nanoseconds.
pub(super) fn times(span: (f64, f64), utc: Option<i64>, wanted: usize) -> Vec<Tick> {
    #[expect(clippy::cast_possible_truncation, reason = "saturates")]
    let nanos = |seconds: f64| (seconds * SECOND).round() as i64;
    let zero = utc.unwrap_or(0);
    let (from, to) = (nanos(span.0), nanos(span.1));
    let step = time_step(to.saturating_sub(from) as f64, wanted);
    let (Some(first), Some(last)) = (zero.checked_add(from), zero.checked_add(to)) else { return Vec::new() };
    let mut at = first.div_euclid(step).saturating_mul(step);
    if at < first {
        at = at.saturating_add(step);
    }
    let mut found = Vec::new();
    let mut day = None;
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

/// Returns ticks for an axis of plain numbers.
pub(super) fn plain(span: (f64, f64), wanted: usize) -> Vec<Tick> {
    let (values, digits) = ticks(span, wanted, 1.0);
    values.into_iter().map(|at| Tick { at, label: format!("{at:.digits$}"), date: None }).collect()
}

/// Formats a time of day with as many decimals as the step needs. Returns it with the date.
fn clock(unix: i64, step: i64) -> (String, Option<String>) {
    let Some(text) = Timestamp::new(unix, Clock::Unix).rfc3339() else {
        return (format!("{} s", unix / 1_000_000_000), None);
    };
    let (date, time) = text.trim_end_matches('Z').split_once('T').unwrap_or((&text, ""));
    let whole = time.get(..8).unwrap_or(time);
    let label = if step >= DAY * 1_000_000_000 {
        String::new()
    } else if step % 60_000_000_000 == 0 {
        whole.get(..5).unwrap_or(whole).to_owned()
    } else {
        format!("{whole}{}", fraction(unix.rem_euclid(1_000_000_000), step))
    };
    (label, Some(date.to_owned()))
}

/// Formats an elapsed time as seconds, or as minutes and hours on a long axis.
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

/// Formats the decimals of a second that a multiple of the step can have.
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
        scale.ticks.iter().map(|(_, label)| &**label).collect()
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
    fn times_are_round_and_the_date_is_said_once() {
        // 2021-04-21T23:59:58.2Z
        let utc = Some(1_619_049_598_200_000_000);
        let found = times((0.0, 4.0), utc, 5);
        let said: Vec<_> = found.iter().map(|tick| (&*tick.label, tick.date.as_deref())).collect();
        assert_eq!(
            said,
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
