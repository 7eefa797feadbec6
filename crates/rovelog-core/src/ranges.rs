//! Ascending ranges of bytes, as ledgers and indices hold them.

use std::ops::Range;

/// Adds a range behind the others; where it starts at the end of the last one, both become one.
pub fn push(ranges: &mut Vec<Range<u64>>, range: Range<u64>) {
    match ranges.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => ranges.push(range),
    }
}

/// Returns the ranges in ascending order, neighbours as one.
pub fn joined(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined = Vec::new();
    for range in ranges {
        push(&mut joined, range);
    }
    joined
}

/// Returns the bytes of all of them.
pub fn total(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_become_one() {
        let mut ranges = Vec::new();
        for range in [3..5, 5..9, 10..11] {
            push(&mut ranges, range);
        }
        assert_eq!(ranges, [3..9, 10..11]);
        assert_eq!(total(&ranges), 7);
        assert_eq!(joined(vec![10..11, 5..9, 3..5]), ranges);
    }
}
