//! Converts on/off signals and named numbers to states over time, which are drawn as lanes.

use super::series::Series;

/// State of a signal during a time range.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum State {
    /// The state of an on/off signal whose value is 0.
    Off,
    /// The state of an on/off signal whose value is not 0.
    On,
    /// A state with a name. The number is the index of its color. If a value has no name, the name
    /// is the value as text.
    Named(usize, String),
}

/// Returns the states of a signal with their time ranges in seconds, in time order. A state ends
/// when the next state starts. The last state ends at the last value.
pub(super) fn states(series: &Series) -> Vec<((f64, f64), State)> {
    let mut found: Vec<((f64, f64), f64)> = Vec::new();
    let mut open = false;
    for (time, value) in &series.points {
        if let Some((span, _)) = found.last_mut().filter(|_| open) {
            span.1 = *time;
        }
        let same = found.last().is_some_and(|(_, last)| open && last.to_bits() == value.to_bits());
        if !same && value.is_finite() {
            found.push(((*time, *time), *value));
        }
        open = value.is_finite();
    }
    // Colors are assigned in the order in which states first appear, as for the flight modes.
    let mut seen: Vec<u64> = Vec::new();
    let number = |value: f64| {
        let known = seen.iter().position(|bits| *bits == value.to_bits());
        known.unwrap_or_else(|| {
            seen.push(value.to_bits());
            seen.len() - 1
        })
    };
    let numbers: Vec<usize> = found.iter().map(|(_, value)| *value).map(number).collect();
    let all = found.into_iter().zip(numbers);
    all.map(|((span, value), number)| (span, state(series, value, number))).collect()
}

/// Returns the state for a value. `order` is the index of the state's color.
fn state(series: &Series, value: f64, order: usize) -> State {
    if series.names.is_empty() {
        return if value == 0.0 { State::Off } else { State::On };
    }
    // A value without a name occurs if the log was written by a newer version of PX4.
    #[expect(clippy::cast_possible_truncation, reason = "states are small integers")]
    let number = value as i64;
    let name = series.names.iter().find(|(of, _)| *of == number);
    let name = name.map_or_else(|| value.to_string(), |(_, name)| (*name).to_owned());
    State::Named(order, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_last_until_the_next_one() {
        let mut series =
            Series::new("s", vec![(0.0, 0.0), (1.0, 0.0), (2.0, 1.0), (3.0, f64::NAN), (4.0, 0.0)]);
        assert_eq!(
            states(&series),
            [((0.0, 2.0), State::Off), ((2.0, 3.0), State::On), ((4.0, 4.0), State::Off)]
        );
        series.names = &[(1, "armed")];
        assert_eq!(states(&series)[1].1, State::Named(1, "armed".to_owned()));
        assert_eq!(states(&series)[0].1, State::Named(0, "0".to_owned()));
    }
}
