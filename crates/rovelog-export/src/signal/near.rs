//! Suggestions for misspelled names.

use rovelog::core::topic::short;

/// Maximum number of names to compare with a misspelled one. A hostile log can declare 65,536
/// topics, and each comparison takes quadratic time.
const MOST_COMPARED: usize = 4096;

/// Returns a hint such as `did you mean a, b or c? List all: COMMAND`, with at most three similar
/// names. Without a similar name, the hint is `list all: COMMAND`. `all` is the command.
pub fn near<'a>(name: &str, names: impl Iterator<Item = &'a str>, all: &str) -> String {
    match nearest(name, names).as_slice() {
        [] => format!("list all: {all}"),
        [one] => format!("did you mean {one}? List all: {all}"),
        [rest @ .., last] => format!("did you mean {} or {last}? List all: {all}", rest.join(", ")),
    }
}

/// Returns at most three of `names` that are similar to `name`, the most similar first.
fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = name.to_lowercase();
    let names = names.take(MOST_COMPARED);
    let mut ranked: Vec<_> = names.filter_map(|other| Some((distance(&wanted, other)?, other))).collect();
    ranked.sort_unstable();
    ranked.dedup();
    ranked.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Ranks how similar `other` is to `wanted`, ignoring case; smaller is more similar. The first
/// number is the kind of similarity (0 for a typing error, up to 4 for a few shared words), the
/// second is the edit distance. Returns `None` for unrelated names.
///
/// For example, `vehicle_position` has an edit distance of 6 from `vehicle_local_position`, and all
/// of its words occur there, so the rank is `(2, 6)`.
fn distance(wanted: &str, other: &str) -> Option<(u8, usize)> {
    let other = other.to_lowercase();
    let other = short(&other);
    let is_part = |inner: &str, outer: &str| inner.len() > 2 && outer.contains(inner);
    let edits = strsim::osa_distance(wanted, other);
    let letters = wanted.chars().count().min(other.chars().count());
    // At least one letter must be right. Names of one letter allow no edit, because any other
    // letter is one edit away.
    let is_misspelt = edits <= letters.div_ceil(3).min(letters.saturating_sub(1));
    let words: Vec<_> = wanted.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2).collect();
    // Words match in any order, so `battery_volts` finds `battery_status`.
    let shared = words.iter().filter(|word| is_part(word, other)).count();
    let relation = match () {
        () if is_misspelt && edits <= 1 => 0,
        () if is_part(wanted, other) => 1,
        () if shared > 0 && shared == words.len() => 2,
        () if is_misspelt => 3,
        () if is_part(other, wanted) || (shared > 0 && 2 * shared >= words.len()) => 4,
        () => return None,
    };
    Some((relation, edits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_those_a_person_would_mean() {
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
        assert_eq!(near("gps", names.into_iter(), "rovelog topics FILE"), "list all: rovelog topics FILE");
        // The suggestions differ from `V2` by one edit.
        assert_eq!(nearest("V2", names.into_iter()), ["V1", "vx"]);
    }
}
