//! The index of a new log. It has an entry for each second, which is the offset of the first
//! message at or after this second.

use crate::indexing::IndexOrigin;

/// Maximum number of index entries. They cover eleven and a half days.
const MAX_ENTRIES: f64 = 1_000_000.0;

/// Number of index entries that a log may always have, even if it has few messages.
const MIN_ALLOWED_ENTRIES: f64 = 4096.0;

/// Number of index entries that a log may have for each of its messages. A log with few messages
/// may have more entries, up to [`MIN_ALLOWED_ENTRIES`].
const ENTRIES_PER_MESSAGE: f64 = 64.0;

/// Returns the index entries for messages. `places` has the offset and the time of each message.
/// The second result is true if the entries end early, because a timestamp jumps too far for an
/// index.
pub(crate) fn entries(places: &[(u64, f64)], origin: IndexOrigin) -> (Vec<u64>, bool) {
    let start = match (origin, places.first()) {
        (IndexOrigin::FirstMessage, Some((_, first))) if first.is_finite() => *first,
        _ => 0.0,
    };
    let allowed = MAX_ENTRIES.min(MIN_ALLOWED_ENTRIES.max(ENTRIES_PER_MESSAGE * places.len() as f64));
    let mut entries = Vec::new();
    for (at, millis) in places {
        if !millis.is_finite() {
            continue;
        }
        if (millis - start) / 1000.0 >= allowed {
            return (entries, true);
        }
        // The second condition prevents an endless loop. If the start is so large that adding a
        // second does not change it, the first condition never becomes false.
        let seconds = (millis - start) / 1000.0;
        while *millis >= start + 1000.0 * entries.len() as f64 && (entries.len() as f64) < seconds + 1.0 {
            entries.push(*at);
        }
    }
    (entries, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_that_is_too_large_ends_the_index() {
        let places = [(0, 0.0), (50, 999.0), (100, 2500.0), (150, f64::NAN), (200, 1e15), (250, 3000.0)];
        assert_eq!(entries(&places, IndexOrigin::FirstMessage), (vec![0, 100, 100], true));
        assert_eq!(entries(&places[..4], IndexOrigin::FirstMessage), (vec![0, 100, 100], false));
        assert_eq!(entries(&[(0, 2000.0)], IndexOrigin::ProgramStart), (vec![0, 0, 0], false));
        assert_eq!(entries(&[], IndexOrigin::FirstMessage), (vec![], false));
        // At 1e300 ms, adding a second does not change the floating-point number.
        assert_eq!(entries(&[(7, 1e300), (9, 1e300)], IndexOrigin::FirstMessage), (vec![7], false));
        assert_eq!(entries(&[(7, -1e300), (9, 1e300)], IndexOrigin::FirstMessage), (vec![7], true));
    }
}
