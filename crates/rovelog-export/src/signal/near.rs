//! Suggestions for misspelt names.

/// Maximum number of names that are compared with a misspelt one: a hostile log has 65 536.
const MOST_COMPARED: usize = 4096;

/// Returns `did you mean a, b or c? List all: ...`, with the three of `names` that are most similar
/// to `name`; `all` is the command that lists all.
pub fn near<'a>(name: &str, names: impl Iterator<Item = &'a str>, all: &str) -> String {
    match nearest(name, names).as_slice() {
        [] => format!("list all: {all}"),
        [one] => format!("did you mean {one}? List all: {all}"),
        [rest @ .., last] => format!("did you mean {} or {last}? List all: {all}", rest.join(", ")),
    }
}

/// Returns the three of `names` that are most similar to `name`.
fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut ranked: Vec<_> = names.take(MOST_COMPARED).map(|other| (distance(name, other), other)).collect();
    ranked.sort_unstable();
    ranked.dedup();
    ranked.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Returns the edit distance of two names, ignoring case; a part of a name is nearer than any
/// misspelling.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.to_lowercase(), b.to_lowercase());
    let b = b.strip_suffix("/0").unwrap_or(&b);
    if a.len() > 2 && b.contains(&a) {
        return 1;
    }
    strsim::levenshtein(&a, b) * 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_those_a_person_would_mean() {
        let names = ["vehicle_attitude/0", "vehicle_status/0", "battery_status/0", "imu/0"];
        assert_eq!(nearest("vehicle_atitude", names.into_iter())[0], "vehicle_attitude/0");
        assert_eq!(nearest("battery", names.into_iter())[0], "battery_status/0");
        assert_eq!(nearest("IMU", names.into_iter()).len(), 3);
        assert_eq!(nearest("IMU", names.into_iter())[0], "imu/0");
    }
}
