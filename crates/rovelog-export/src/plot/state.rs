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

/// A state and its time range in seconds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StateSpan {
    pub(super) start: f64,
    pub(super) end: f64,
    pub(super) state: State,
}

/// Returns the states of a signal in time order. A state ends when the next state starts. The last
/// state ends at the last value.
pub(super) fn states(series: &Series) -> Vec<StateSpan> {
    let mut spans: Vec<StateSpan> = Vec::new();
    // The value of the last state. `None` after a missing value, which interrupts the lane.
    let mut current: Option<f64> = None;
    // Colors are assigned in the order in which states first appear, as for the flight modes.
    let mut seen: Vec<u64> = Vec::new();
    for &(time, value) in &series.points {
        if let Some(last) = spans.last_mut().filter(|_| current.is_some()) {
            last.end = time;
        }
        let is_same = current.is_some_and(|current| current.to_bits() == value.to_bits());
        current = Some(value).filter(|value| value.is_finite());
        if is_same || current.is_none() {
            continue;
        }
        let color = seen.iter().position(|bits| *bits == value.to_bits()).unwrap_or(seen.len());
        if color == seen.len() {
            seen.push(value.to_bits());
        }
        spans.push(StateSpan { start: time, end: time, state: state(series, value, color) });
    }
    spans
}

/// Returns the state for a value. `color` is the index of the state's color.
fn state(series: &Series, value: f64, color: usize) -> State {
    if series.names.is_empty() {
        return if value == 0.0 { State::Off } else { State::On };
    }
    // A value without a name occurs if the log was written by a newer version of PX4.
    #[expect(clippy::cast_possible_truncation, reason = "states are small integers")]
    let number = value as i64;
    let name = series.names.iter().find(|(of, _)| *of == number);
    let name = name.map_or_else(|| value.to_string(), |(_, name)| (*name).to_owned());
    State::Named(color, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_last_until_the_next_one() {
        let mut series =
            Series::new("s", vec![(0.0, 0.0), (1.0, 0.0), (2.0, 1.0), (3.0, f64::NAN), (4.0, 0.0)]);
        let span = |start, end, state| StateSpan { start, end, state };
        let spans = [(0.0, 2.0, State::Off), (2.0, 3.0, State::On), (4.0, 4.0, State::Off)];
        assert_eq!(states(&series), spans.map(|(start, end, state)| span(start, end, state)));
        series.names = &[(1, "armed")];
        assert_eq!(states(&series)[1].state, State::Named(1, "armed".to_owned()));
        assert_eq!(states(&series)[0].state, State::Named(0, "0".to_owned()));
    }
}
