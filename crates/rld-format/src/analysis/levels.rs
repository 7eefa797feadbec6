//! Sums over the rows of a log at several levels of detail, for plots of any size. A node of the
//! first level has the sums over about a thousand rows. A node of each higher level has the sums of
//! eight nodes of the level below.
//!
//! The sums over any range of rows are merged from nodes, and from single rows at the edges of the
//! range. All sums are exact, so the result is the same as if all rows were read.

use std::ops::Range;

use super::accumulate::Accumulator;
use super::stats::Stats;
use crate::error::RldError;

/// Number of nodes that are merged into one node of the next level.
const FACTOR: u64 = 8;

/// Sums over the rows of a log at several levels of detail.
#[derive(Clone, Debug)]
pub struct Levels {
    base: u64,
    rows: u64,
    /// Nodes of each level. All nodes of a level have the same number of rows, except that the last
    /// node can have fewer rows.
    nodes: Vec<Vec<Stats>>,
}

impl Levels {
    /// Builds the levels for the first `rows` rows of a log. Each node of the first level has
    /// `base` rows.
    ///
    /// # Errors
    /// Returns an error if `base` is less than 64 or greater than 65 536.
    pub fn build(sums: &mut Accumulator<'_>, rows: u64, base: u64) -> Result<Self, RldError> {
        if !(64..=65_536).contains(&base) {
            return Err(RldError::refused(format!("nodes of {base} rows; 64 to 65536 are possible")));
        }
        let nodes = (0..rows.div_ceil(base)).map(|node| sums.stats(node * base..rows.min((node + 1) * base)));
        let mut levels: Vec<Vec<Stats>> = vec![nodes.collect()];
        while let Some(last) = levels.last().filter(|last| last.len() > 1) {
            let factor = usize::try_from(FACTOR).unwrap_or(8);
            let next = last.chunks(factor).map(|nodes| {
                let mut all = nodes[0].clone();
                nodes[1..].iter().for_each(|node| all.merge(node));
                all
            });
            let next = next.collect();
            levels.push(next);
        }
        Ok(Self { base, rows, nodes: levels })
    }

    /// Returns the number of rows in a node of a level.
    fn span(&self, level: usize) -> u64 {
        FACTOR.pow(u32::try_from(level).unwrap_or(u32::MAX)).saturating_mul(self.base)
    }

    /// Returns the number of levels.
    pub fn depth(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the sums over a range of rows. Only the rows at both edges of the range are read
    /// from the log.
    pub fn stats(&self, sums: &mut Accumulator<'_>, rows: Range<u64>) -> Stats {
        let mut total = sums.empty();
        let (mut at, end) = (rows.start, rows.end.min(self.rows));
        while at < end {
            // Find the largest node that starts at row `at` and ends within the range.
            let fits = |level: &usize| {
                let span = self.span(*level);
                at.is_multiple_of(span) && (at + span <= end || end == self.rows)
            };
            if let Some(level) = (0..self.nodes.len()).rev().find(fits) {
                let span = self.span(level);
                let node = usize::try_from(at / span).unwrap_or(usize::MAX);
                if let Some(node) = self.nodes[level].get(node) {
                    total.merge(node);
                }
                at = (at + span).min(end);
            } else {
                let next = ((at / self.base + 1) * self.base).min(end);
                sums.add(at..next, &mut total);
                at = next;
            }
        }
        total
    }

    /// Divides a range of rows into about `points` segments, one for each point of a plot. Returns
    /// the rows and the sums of each segment. Long segments consist of whole nodes, so that no rows
    /// have to be read.
    pub fn plot(
        &self,
        sums: &mut Accumulator<'_>,
        rows: Range<u64>,
        points: u64,
    ) -> Vec<(Range<u64>, Stats)> {
        let end = rows.end.min(self.rows);
        let step = end.saturating_sub(rows.start).div_ceil(points.max(1)).max(1);
        // Round the length of segments up to whole nodes, so that no rows have to be read.
        let step = if step >= self.base { step.next_multiple_of(self.base) } else { step };
        let mut segments = Vec::new();
        let mut at = rows.start;
        while at < end {
            let to = if step >= self.base { (at / step + 1) * step } else { at + step }.min(end);
            segments.push((at..to, self.stats(sums, at..to)));
            at = to;
        }
        segments
    }
}
