//! Summaries in levels, for plots of any size: nodes over a thousand rows, then over eight nodes
//! each.
//!
//! Every node has exact sums, so any range of rows, made of nodes and of single rows at its edges,
//! gives the same result as a direct pass.

use std::ops::Range;

use super::accumulate::Accumulator;
use super::stats::Stats;
use crate::error::RldError;

/// Number of nodes of a level in one node of the next.
const FACTOR: u64 = 8;

/// Summaries of a log in levels.
#[derive(Clone, Debug)]
pub struct Levels {
    base: u64,
    rows: u64,
    /// Nodes of each level; only the last of a level can be short.
    nodes: Vec<Vec<Stats>>,
}

impl Levels {
    /// Sums all `rows` of a log in nodes of `base` rows, 64 to 65 536.
    ///
    /// # Errors
    /// Returns an error if the base is out of range.
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

    /// Returns the sums over any range of rows: from nodes, and from the log at both edges.
    pub fn stats(&self, sums: &mut Accumulator<'_>, rows: Range<u64>) -> Stats {
        let mut total = sums.empty();
        let (mut at, end) = (rows.start, rows.end.min(self.rows));
        while at < end {
            // The largest node that starts here and ends within the range.
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

    /// Returns about `points` segments of a range of rows, each with its sums, for a plot of that
    /// width. Segments are whole nodes if there are more rows than points.
    pub fn plot(
        &self,
        sums: &mut Accumulator<'_>,
        rows: Range<u64>,
        points: u64,
    ) -> Vec<(Range<u64>, Stats)> {
        let end = rows.end.min(self.rows);
        let step = end.saturating_sub(rows.start).div_ceil(points.max(1)).max(1);
        // Rounded to whole nodes, so that nothing has to be read again.
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
