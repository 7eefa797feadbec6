//! The robust fit of a line to the monotonic block times, and the time maps of all axes.
//!
//! The converter's clock derives from the processor's clock, so the true sampling period is exact
//! on the monotonic clock. Block times are 8 to 500 us late and hardly ever early. So the slope of
//! the line is known, and its offset is the median delay. A fitted slope is used only if the block
//! times clearly contradict the known slope.

use rovelog_core::internal::text::count;
use rovelog_core::{UtcKnot, UtcOffset};

use super::axis::{Piece, TimeAxis, TimeBase, TimeMap, TimeOptions};
use super::track::ClockChange;
use super::{TRUE_SECOND, span};

/// The times of a block, and how the clocks changed before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// Number of the block's first row, counted from the start of the log.
    pub(crate) row: u64,
    pub(crate) rows: u64,
    /// Unix time of the block in nanoseconds. It is not used if the block times are invalid.
    pub(crate) realtime: i64,
    pub(crate) monotonic: i64,
    pub(crate) change: ClockChange,
}

/// The block times of a log, and the values of its header that concern time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blocks {
    pub(crate) list: Vec<Block>,
    pub(crate) rate: u16,
    /// Start time in the header, in nanoseconds of Unix time. It is used for rows before the first
    /// valid block time. `None` if it is invalid.
    pub(crate) start: Option<i64>,
}

/// The block times of a log, and the results of computing with them.
#[derive(Clone, Debug)]
pub(crate) struct LogTimes {
    pub(crate) blocks: Blocks,
    /// Times of all rows, on the clock that the log uses.
    pub(crate) rows: TimeMap,
    pub(crate) report: ClockReport,
}

/// A gap in a log, in which the logger lost rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Number of the first row after the gap.
    pub row: u64,
    /// Missing time in nanoseconds: the time by which the clock advanced, minus the duration of the
    /// rows.
    pub nanos: i64,
    /// Number of missing blocks, rounded to full blocks.
    pub blocks: u64,
}

/// Distribution of the delays of block times relative to the fitted line, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Residuals {
    pub min: i64,
    pub median: i64,
    pub p95: i64,
    pub max: i64,
}

/// Summary of the block times: gaps, steps, drift and delay of the log's clocks.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ClockReport {
    /// Number of segments. Gaps divide a log into segments.
    pub segments: usize,
    /// Theil-Sen slope of the monotonic block times in the longest segment, as the deviation from
    /// the true rate in ppm. `None` if the segment has fewer than two blocks.
    pub slope_ppm: Option<f64>,
    /// True if the block times contradict the true rate. The slope of the block times is then used
    /// instead.
    pub mismatch: bool,
    /// Median delay in nanoseconds of the block times in the longest segment. The delay is measured
    /// against times at the true rate that start with the first block time of the segment.
    pub offset: Option<i64>,
    /// Distribution of the delays of the block times in the longest segment.
    pub residuals: Option<Residuals>,
    /// Drift of the UTC clock against the monotonic clock in nanoseconds. Times at which the UTC
    /// clock was set are excluded.
    pub drift: i64,
    /// Steps of the UTC clock. Each item has the first row after the clock was set, and the change
    /// in nanoseconds.
    pub steps: Vec<(u64, i64)>,
    /// Gaps in which the logger lost rows.
    pub gaps: Vec<Gap>,
    /// Numbers of the rows before which the monotonic clock went back.
    pub backwards: Vec<u64>,
}

// Example of a fit: four blocks of 1000 rows at 1 kSPS. A row takes 1 003 520 ns, so the times at
// the true rate are 0, 1003.52, 2007.04 and 3010.56 ms after the first block time. The block times
// are
//
//     block times    0.00  1003.60  2007.05  3011.00 ms
//     late by        0.00     0.08     0.01     0.44 ms
//
// `line` first takes the median of the six pairwise slopes. This slope is 113 ppm off the true
// rate. For so few blocks, a difference of 200 ppm would be required to use it, so the true rate
// stays the slope. The median delay, (0.01 + 0.08) / 2 ms, is the offset. So the line starts 0.045
// ms after the first block time. The last block, which is very late, hardly affects the line.

/// A straight line through the monotonic block times of a segment.
#[derive(Clone, Copy, Debug)]
struct Line {
    piece: Piece,
    offset: i64,
    slope_ppm: Option<f64>,
    mismatch: bool,
}

impl Blocks {
    /// Returns whether some block times are invalid or earlier than those of the previous block.
    /// Bytes of the file may then be missing or added.
    pub(crate) fn is_suspect(&self) -> bool {
        let is_wrong = |change| matches!(change, ClockChange::Implausible | ClockChange::Backwards);
        self.list.iter().any(|block| is_wrong(block.change))
    }

    /// Returns the segments as ranges of block indices. The blocks of a segment have no gap between
    /// them.
    fn segments(&self) -> Vec<std::ops::Range<usize>> {
        self.split(|change| matches!(change, ClockChange::Gap { .. } | ClockChange::Backwards))
    }

    fn split(&self, starts: impl Fn(ClockChange) -> bool) -> Vec<std::ops::Range<usize>> {
        let mut segments: Vec<std::ops::Range<usize>> = Vec::new();
        for (i, block) in self.list.iter().enumerate() {
            match segments.last_mut() {
                Some(last) if !starts(block.change) => last.end = i + 1,
                _ => segments.push(i..i + 1),
            }
        }
        segments
    }

    fn timed(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = &Block> + Clone {
        self.list[range].iter().filter(|block| block.change != ClockChange::Implausible)
    }

    fn end(&self) -> u64 {
        self.list.last().map_or(0, |block| block.row + block.rows)
    }

    /// Returns the row numbers of a segment. `range` has the indices of its blocks.
    fn rows(&self, range: &std::ops::Range<usize>) -> std::ops::Range<u64> {
        let end = self.list.get(range.end).map_or(self.end(), |block| block.row);
        self.list[range.start].row..end
    }

    /// Fits a line to the monotonic block times of a segment. Returns `None` if no block in it has
    /// valid times.
    fn line(&self, range: &std::ops::Range<usize>) -> Option<Line> {
        let timed: Vec<&Block> = self.timed(range.clone()).collect();
        let first = timed.first()?;
        let rows = self.rows(range);
        let slope_ppm = theil_sen(&timed, self.rate);
        let limit = if timed.len() >= 10 { 20.0 } else { 200.0 };
        let mismatch = slope_ppm.is_some_and(|ppm| ppm.abs() > limit);
        let mut piece = Piece::at_true_rate(first.row, rows.end, first.monotonic, self.rate);
        if let Some(ppm) = slope_ppm.filter(|ppm| mismatch && ppm.abs() < 900_000.0) {
            piece.den *= 1_000_000;
            // The slope is rounded to an integer, so that the result is the same on every machine.
            #[expect(clippy::cast_possible_truncation, reason = "far below 2^53 ns per second")]
            let change = (ppm * TRUE_SECOND as f64).round() as i64;
            piece.num = TRUE_SECOND * 1_000_000 + change;
        }
        let late = |block: &&Block| Some(block.monotonic - piece.time(block.row)?);
        let mut late: Vec<i64> = timed.iter().filter_map(late).collect();
        late.sort_unstable();
        let offset = median(&late);
        piece.t0 = piece.t0.checked_add(offset)?;
        // The segment may start with blocks whose times are invalid. These blocks are on the same
        // line.
        let from_start = Piece { start: rows.start, ..piece };
        let t0 = piece.time(rows.start)?;
        Some(Line { piece: Piece { t0, ..from_start }, offset, slope_ppm, mismatch })
    }

    /// Returns the times of all rows with these options.
    pub(crate) fn map(&self, options: TimeOptions) -> TimeMap {
        let monotonic = options.base == TimeBase::Monotonic;
        let pieces = match options.axis {
            _ if self.rate == 0 || self.list.is_empty() => Vec::new(),
            TimeAxis::TrueRate => self.anchored(monotonic),
            TimeAxis::BlockInterp => self.interpolated(monotonic),
            TimeAxis::Fit => self.fitted(monotonic),
        };
        let to_unix = match options.base {
            TimeBase::Unix => 0,
            TimeBase::Monotonic => {
                let first = self.timed(0..self.list.len()).next();
                first.map_or(0, |block| block.realtime.saturating_sub(block.monotonic))
            }
        };
        TimeMap { pieces, base: options.base, to_unix }
    }

    /// Returns the time base whose clock is best for durations. This is the Unix clock, or the
    /// monotonic clock if the UTC clock was set during the log. If the monotonic clock went back,
    /// too, it is the Unix clock.
    pub(crate) fn steadiest_time_base(&self) -> TimeBase {
        let any = |is: fn(ClockChange) -> bool| self.list.iter().any(|block| is(block.change));
        let was_set = any(|change| change.step() != 0);
        let went_back = any(|change| change == ClockChange::Backwards);
        if was_set && !went_back { TimeBase::Monotonic } else { TimeBase::Unix }
    }

    /// Returns the offset of the Unix clock from the monotonic clock as a piecewise linear function
    /// of time. `unix` has the times of rows on the Unix clock. The function has a knot at both
    /// ends of each piece of `unix`.
    pub(crate) fn utc(&self, monotonic: &TimeMap, unix: &TimeMap) -> Option<UtcOffset> {
        let knot = |row: u64| {
            let log = monotonic.time(row)?;
            Some(UtcKnot { log, nanos: unix.time(row)?.checked_sub(log)? })
        };
        let mut knots: Vec<UtcKnot> = Vec::new();
        for piece in unix.pieces.iter().filter(|piece| piece.start < piece.end) {
            for knot in [knot(piece.start), knot(piece.end - 1)].into_iter().flatten() {
                match knots.as_slice() {
                    // If three consecutive knots have the same offset, the middle knot is not
                    // needed.
                    [.., a, b] if a.nanos == b.nanos && b.nanos == knot.nanos => {
                        knots.pop();
                    }
                    [.., last] if last.log >= knot.log => continue,
                    _ => {}
                }
                knots.push(knot);
            }
        }
        let first = knots.first()?.nanos;
        if knots.iter().all(|knot| knot.nanos == first) {
            knots.clear();
        }
        let evidence = count(self.timed(0..self.list.len()).count(), "block time");
        Some(UtcOffset::new(first, "block_times", evidence).with_knots(knots))
    }

    fn block_time(block: &Block, monotonic: bool) -> i64 {
        if monotonic { block.monotonic } else { block.realtime }
    }

    /// Returns the times of rows, counted at the true rate from the first block time of each
    /// segment. The rows of a segment are one piece of the time axis. The stream reader computes
    /// the same times.
    fn anchored(&self, monotonic: bool) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut known = false;
        let mut push = |start: u64, t0: i64| {
            if let Some(last) = pieces.last_mut() {
                last.end = start;
            }
            pieces.push(Piece::at_true_rate(start, self.end(), t0, self.rate));
        };
        for (i, block) in self.list.iter().enumerate() {
            match block.change {
                ClockChange::Implausible => {
                    if let (0, Some(start)) = (i, self.start) {
                        push(block.row, if monotonic { 0 } else { start });
                    }
                    continue;
                }
                ClockChange::Steady if known => {}
                // Only the UTC clock was set, so the monotonic times continue on the same piece.
                ClockChange::Step(_) if known && monotonic => {}
                _ => push(block.row, Self::block_time(block, monotonic)),
            }
            known = true;
        }
        pieces.retain(|piece| piece.start < piece.end);
        pieces
    }

    /// Returns one piece for each block. It is a straight line from the time of the block to the
    /// time of the next block.
    fn interpolated(&self, monotonic: bool) -> Vec<Piece> {
        let truth = self.anchored(monotonic);
        let mut pieces: Vec<Piece> = Vec::new();
        for (i, block) in self.list.iter().enumerate() {
            let end = block.row + block.rows;
            if block.change == ClockChange::Implausible {
                match pieces.last_mut() {
                    Some(last) => last.end = end,
                    None => pieces.extend(truth.first().map(|piece| Piece { end, ..*piece })),
                }
                continue;
            }
            let mut piece =
                Piece::at_true_rate(block.row, end, Self::block_time(block, monotonic), self.rate);
            if let Some(next) = self.list.get(i + 1)
                && (next.change == ClockChange::Steady
                    || monotonic && matches!(next.change, ClockChange::Step(_)))
            {
                let apart = Self::block_time(next, monotonic) - piece.t0;
                if let (true, Ok(rows)) = (apart > 0, i64::try_from(block.rows)) {
                    (piece.num, piece.den) = (apart, rows);
                }
            }
            pieces.push(piece);
        }
        pieces
    }

    fn fitted(&self, monotonic: bool) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut truth = None;
        for segment in self.segments() {
            let Some(line) = self.line(&segment) else {
                let truth = truth.get_or_insert_with(|| self.anchored(monotonic));
                let rows = self.rows(&segment);
                pieces.extend(truth.iter().filter(|piece| rows.contains(&piece.start)));
                continue;
            };
            if monotonic {
                pieces.push(line.piece);
            } else {
                self.unix_line(&segment, &line, &mut pieces);
            }
        }
        pieces
    }

    /// Appends the pieces of a segment on the Unix clock to `pieces`. Their times are the times of
    /// `line` plus the smoothed difference between the two clocks at each block.
    fn unix_line(&self, segment: &std::ops::Range<usize>, line: &Line, pieces: &mut Vec<Piece>) {
        let distance = self.distances(segment);
        for (i, offset) in distance.iter().enumerate() {
            let block = &self.list[segment.start + i];
            let end = block.row + block.rows;
            let place = |row: u64, offset: i64| line.piece.time(row)?.checked_add(offset);
            let Some(t0) = place(block.row, *offset) else { continue };
            let mut piece = Piece { start: block.row, end, t0, ..line.piece };
            if let Some(next) = distance.get(i + 1)
                && next != offset
                && !matches!(self.list[segment.start + i + 1].change, ClockChange::Step(_))
                && let Some(apart) =
                    place(end, *next).and_then(|next| next.checked_sub(t0)).filter(|n| *n > 0)
                && let Ok(rows) = i64::try_from(block.rows)
            {
                (piece.num, piece.den) = (apart, rows);
            }
            match pieces.last_mut() {
                // Consecutive blocks for which the clocks have the same difference share a piece.
                Some(last)
                    if (last.num, last.den, last.end) == (piece.num, piece.den, piece.start)
                        && last.time(piece.start) == Some(piece.t0)
                        && piece.num == line.piece.num =>
                {
                    last.end = piece.end;
                }
                _ => pieces.push(piece),
            }
        }
    }

    /// Returns the Unix time minus the monotonic time for each block. The differences are smoothed
    /// by the median of five blocks that have no clock step between them.
    fn distances(&self, segment: &std::ops::Range<usize>) -> Vec<i64> {
        let mut raw: Vec<Option<i64>> = Vec::new();
        let mut run = Vec::new();
        let mut runs = 0;
        for block in &self.list[segment.clone()] {
            runs += usize::from(matches!(block.change, ClockChange::Step(_)));
            run.push(runs);
            let is_timed = block.change != ClockChange::Implausible;
            raw.push(is_timed.then(|| block.realtime.saturating_sub(block.monotonic)));
        }
        let mut last = raw.iter().flatten().next().copied().unwrap_or_default();
        let mut smooth = Vec::with_capacity(raw.len());
        for i in 0..raw.len() {
            let (from, to) = (i.saturating_sub(2), (i + 3).min(raw.len()));
            let near = (from..to).filter(|k| run[*k] == run[i]).filter_map(|k| raw[k]);
            let mut near: Vec<i64> = near.collect();
            near.sort_unstable();
            if !near.is_empty() {
                last = median(&near);
            }
            smooth.push(last);
        }
        smooth
    }

    /// Creates the summary of the block times.
    pub(crate) fn report(&self) -> ClockReport {
        let segments = self.segments();
        let longest = segments.iter().max_by_key(|range| (range.len(), std::cmp::Reverse(range.start)));
        let line =
            longest.filter(|_| self.rate > 0).and_then(|range| Some((range.clone(), self.line(range)?)));
        let residuals = line.as_ref().and_then(|(range, line)| {
            let late = |block: &Block| Some(block.monotonic - line.piece.time(block.row)?);
            let mut late: Vec<i64> = self.timed(range.clone()).filter_map(late).collect();
            late.sort_unstable();
            let at = |part: usize| late.get((late.len().saturating_sub(1)) * part / 100).copied();
            Some(Residuals { min: at(0)?, median: at(50)?, p95: at(95)?, max: at(100)? })
        });
        let drift = self.split(|change| !matches!(change, ClockChange::Steady | ClockChange::Implausible));
        let drift = drift.into_iter().map(|range| {
            let distance = self.timed(range).map(|block| block.realtime.saturating_sub(block.monotonic));
            distance.clone().max().zip(distance.min()).map_or(0, |(max, min)| max.saturating_sub(min))
        });
        let steps = self.list.iter().map(|block| (block.row, block.change.step()));
        let backwards = self.list.iter().filter(|block| block.change == ClockChange::Backwards);
        let gap = |block: &Block| match block.change {
            ClockChange::Gap { nanos, blocks, .. } => Some(Gap { row: block.row, nanos, blocks }),
            _ => None,
        };
        ClockReport {
            segments: segments.len(),
            slope_ppm: line.as_ref().and_then(|(_, line)| line.slope_ppm),
            mismatch: line.as_ref().is_some_and(|(_, line)| line.mismatch),
            offset: line.as_ref().map(|(_, line)| line.offset),
            residuals,
            drift: drift.max().unwrap_or_default(),
            steps: steps.filter(|(_, step)| *step != 0).collect(),
            gaps: self.list.iter().filter_map(gap).collect(),
            backwards: backwards.map(|block| block.row).collect(),
        }
    }
}

/// Returns the median of a sorted list. If the list has an even number of elements, the median is
/// the mean of the two middle elements, rounded down. Returns 0 for an empty list.
fn median(sorted: &[i64]) -> i64 {
    match sorted {
        [] => 0,
        sorted => {
            let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
            i64::try_from((i128::from(low) + i128::from(high)).div_euclid(2)).expect("between two of 64 bits")
        }
    }
}

/// Maximum number of blocks for which the slopes of all pairs of blocks are computed.
const ALL_PAIRS: usize = 500;

/// Returns the median of the slopes between pairs of blocks (Theil-Sen), as the deviation from the
/// true rate in ppm.
fn theil_sen(blocks: &[&Block], rate: u16) -> Option<f64> {
    let slope = |a: &Block, b: &Block| {
        let want = span(b.row.checked_sub(a.row)?, rate);
        let got = i128::from(b.monotonic) - i128::from(a.monotonic);
        (want > 0).then(|| (got - want) as f64 / want as f64 * 1e6)
    };
    let mut slopes: Vec<f64> = if blocks.len() <= ALL_PAIRS {
        let pairs = blocks.iter().enumerate().flat_map(|(i, a)| blocks[i + 1..].iter().map(move |b| (a, b)));
        pairs.filter_map(|(a, b)| slope(a, b)).collect()
    } else {
        // Slopes between distant blocks are the most accurate. So each block is paired with the
        // block that is half the log away.
        let half = blocks.len() / 2;
        blocks.iter().zip(&blocks[half..]).filter_map(|(a, b)| slope(a, b)).collect()
    };
    slopes.sort_unstable_by(f64::total_cmp);
    let (low, high) = (slopes.get(slopes.len().checked_sub(1)? / 2)?, slopes.get(slopes.len() / 2)?);
    Some(f64::midpoint(*low, *high))
}
