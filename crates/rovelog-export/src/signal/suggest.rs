//! Errors for unknown names, with suggestions for misspelled names.

use rovelog::core::internal::topic::short;

/// Maximum number of names that are compared with a misspelled name. A hostile log can declare
/// 65,536 topics, and each comparison takes quadratic time.
const MAX_COMPARED: usize = 4096;

/// Error for a text that does not name a signal, with a hint for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
#[non_exhaustive]
pub struct NoSignal {
    /// The problem, such as `the log has no topic x`.
    pub cause: String,
    /// The hint for the user, such as `did you mean y?`. Empty if the problem needs no hint.
    pub next: String,
}

impl NoSignal {
    pub(super) fn new(cause: impl Into<String>, next: impl Into<String>) -> Self {
        Self { cause: cause.into(), next: next.into() }
    }
}

/// Returns a hint that suggests at most three of `names` that are similar to `name`, such as `did
/// you mean a, b or c? List all: COMMAND`. If no name is similar, the hint is `list all: COMMAND`.
/// `all` is the command.
pub fn suggest<'a>(name: &str, names: impl Iterator<Item = &'a str>, all: &str) -> String {
    match nearest(name, names).as_slice() {
        [] => format!("list all: {all}"),
        [one] => format!("did you mean {one}? List all: {all}"),
        [rest @ .., last] => format!("did you mean {} or {last}? List all: {all}", rest.join(", ")),
    }
}

/// Returns at most three of `names` that are similar to `name`, the most similar first.
pub(crate) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = name.to_lowercase();
    let names = names.take(MAX_COMPARED);
    let mut ranked: Vec<_> = names.filter_map(|other| Some((distance(&wanted, other)?, other))).collect();
    ranked.sort_unstable();
    ranked.dedup();
    ranked.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Ranks how similar `name` is to `wanted`, ignoring case. Returns `None` for unrelated names.
///
/// The first number is the kind of similarity: 0 for a typing error, up to 4 if only a few words
/// are shared. The second number is the edit distance. A smaller rank means a more similar name.
///
/// For example, `vehicle_position` has an edit distance of 6 from `vehicle_local_position`, and
/// both words of `vehicle_position` occur in the longer name, so the rank is `(2, 6)`.
fn distance(wanted: &str, name: &str) -> Option<(u8, usize)> {
    let name = name.to_lowercase();
    let name = short(&name);
    let is_part = |inner: &str, outer: &str| inner.len() > 2 && outer.contains(inner);
    let edits = strsim::osa_distance(wanted, name);
    let letters = wanted.chars().count().min(name.chars().count());
    // At most a third of the letters may be wrong, but never all of them. Otherwise, every name of
    // one letter would be suggested for every other name of one letter.
    let is_misspelled = edits <= letters.div_ceil(3).min(letters.saturating_sub(1));
    let words: Vec<_> = wanted.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2).collect();
    // The words of two names are compared in any order, and half of the words must match. For
    // example, `battery_volts` suggests `battery_status`. Words of one or two letters are ignored,
    // because they would match almost anything.
    let shared = words.iter().filter(|word| is_part(word, name)).count();
    let relation = match () {
        () if is_misspelled && edits <= 1 => 0,
        () if is_part(wanted, name) => 1,
        () if shared > 0 && shared == words.len() => 2,
        () if is_misspelled => 3,
        () if is_part(name, wanted) || (shared > 0 && 2 * shared >= words.len()) => 4,
        () => return None,
    };
    Some((relation, edits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_suggested() {
        let names = [
            "vehicle_attitude/0",
            "vehicle_status/0",
            "vehicle_local_position/0",
            "battery_status/0",
            "imu/0",
            "cpuload/0",
        ];
        let of = |name: &str| nearest(name, names.into_iter());
        assert_eq!(of("vehicle_atitude")[0], "vehicle_attitude/0");
        assert_eq!(of("battery"), ["battery_status/0"]);
        assert_eq!(of("IMU"), ["imu/0"]);
        assert_eq!(of("cpulaod"), ["cpuload/0"]);
        assert_eq!(of("vehicle_position")[0], "vehicle_local_position/0");
        assert_eq!(of("battery_voltage"), ["battery_status/0"]);
    }

    #[test]
    fn unrelated_names_are_not_suggested() {
        let names = ["voltage_v", "current_a", "x", "y", "vx", "V1", "t/0"];
        for name in ["temperature", "zzz", "z", "gps", "q", ""] {
            assert_eq!(nearest(name, names.into_iter()), [""; 0], "{name}");
        }
        assert_eq!(suggest("gps", names.into_iter(), "rovelog topics FILE"), "list all: rovelog topics FILE");
        // `V1` and `vx` share one of the two characters with `V2`, so they are suggested.
        assert_eq!(nearest("V2", names.into_iter()), ["V1", "vx"]);
    }
}
