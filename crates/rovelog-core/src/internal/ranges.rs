//! Lists of byte ranges that are in ascending order.

use std::ops::Range;

/// Appends a range to an ascending list. If the last range in the list ends where `range` starts,
/// the last range is extended instead.
pub fn push(ranges: &mut Vec<Range<u64>>, range: Range<u64>) {
    match ranges.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => ranges.push(range),
    }
}

/// Sorts `ranges` by their start and joins adjacent ranges.
pub fn joined(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined = Vec::new();
    for range in ranges {
        push(&mut joined, range);
    }
    joined
}

/// Returns the total length of `ranges` in bytes.
pub fn total_len(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_ranges_are_joined() {
        let mut ranges = Vec::new();
        for range in [3..5, 5..9, 10..11] {
            push(&mut ranges, range);
        }
        assert_eq!(ranges, [3..9, 10..11]);
        assert_eq!(total_len(&ranges), 7);
        assert_eq!(joined(vec![10..11, 5..9, 3..5]), ranges);
    }
}
