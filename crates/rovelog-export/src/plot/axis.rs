//! Axes: round numbers at even distances.

/// Returns round numbers within `low..=high`, about `wanted` of them, and the number of decimals
/// that they need.
pub(super) fn ticks((low, high): (f64, f64), wanted: usize) -> (Vec<f64>, usize) {
    let span = high - low;
    if span <= 0.0 || !span.is_finite() {
        return (vec![low], 3);
    }
    let rough = span / wanted.max(1) as f64;
    let magnitude = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * magnitude).into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or(10.0 * magnitude);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 308")]
    let digits = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
    let first = (low / step).ceil();
    let mut found = Vec::new();
    let mut i = 0.0;
    while (first + i) * step <= high + step * 1e-9 && found.len() < 100 {
        found.push((first + i) * step + 0.0);
        i += 1.0;
    }
    (found, digits)
}

/// Returns a tick's text.
pub(super) fn label(value: f64, digits: usize) -> String {
    let magnitude = value.abs();
    if magnitude >= 1e6 || (magnitude > 0.0 && magnitude < 1e-4) {
        return format!("{value:.2e}");
    }
    // Next to numbers with exponents, 0 needs no decimals.
    format!("{value:.*}", if magnitude == 0.0 && digits > 4 { 0 } else { digits })
}

/// Returns the range of values with a margin; a flat line gets a range too.
pub(super) fn with_air(range: Option<(f64, f64)>) -> (f64, f64) {
    let (low, high) = range.unwrap_or((0.0, 1.0));
    let span = high - low;
    if span > 0.0 && span.is_finite() {
        return (low - span * 0.04, high + span * 0.04);
    }
    let air = if low == 0.0 { 1.0 } else { low.abs() * 0.1 };
    (low - air, high + air)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks((0.0, 10.0), 5), (vec![0.0, 2.0, 4.0, 6.0, 8.0, 10.0], 0));
        assert_eq!(ticks((-0.13, 0.12), 5).0, [-0.1, -0.05, 0.0, 0.05, 0.1].map(|v: f64| v));
        assert_eq!(ticks((3.0, 3.0), 5).0, [3.0]);
        assert_eq!(label(0.05, 2), "0.05");
        assert_eq!((label(0.0, 2), label(0.0, 9)), ("0.00".to_owned(), "0".to_owned()));
        assert_eq!(label(2.5e7, 0), "2.50e7");
        assert!(ticks((f64::MIN, f64::MAX), 5).0.len() < 101);
    }
}
