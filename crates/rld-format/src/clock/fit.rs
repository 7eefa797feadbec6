//! The robust fit over the monotonic block times, and the maps of all axes.
//!
//! The converter's clock derives from the processor's, so the true period is exact against the
//! monotonic clock. Block times are 8 to 500 us late and never much early. So the slope is known,
//! the offset is a median, and a fitted slope is used only if the block times clearly contradict
//! the known one.

use super::axis::{Piece, TimeAxis, TimeBase, TimeMap, TimeOptions};
use super::track::Noticed;
use super::{TRUE_SECOND, span};

/// The times of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// Number of its first row in the log.
    pub(crate) row: u64,
    pub(crate) rows: u64,
    /// Block times in nanoseconds; not used in implausible blocks.
    pub(crate) realtime: i64,
    pub(crate) monotonic: i64,
    pub(crate) noticed: Noticed,
}

/// All blocks of a log, and the times in its header.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blocks {
    pub(crate) list: Vec<Block>,
    pub(crate) rate: u16,
    /// Start time in the header, if valid; used for logs without valid block times.
    pub(crate) start: Option<i64>,
    pub(crate) latency: i64,
}

/// Rows that the logger lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Number of the first row after the gap.
    pub row: u64,
    /// Missing nanoseconds: how much further the clock went than the rows.
    pub nanos: i64,
    /// Missing blocks of full size, rounded.
    pub blocks: u64,
}

/// Delay of block times against the fit, in nanoseconds.
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
    /// Number of segments without a gap.
    pub segments: usize,
    /// Slope of the monotonic block times of the longest segment against the true rate, by Theil
    /// and Sen, in ppm; `None` for fewer than two blocks.
    pub slope_ppm: Option<f64>,
    /// True if the block times contradict the true rate, so that their own slope is used.
    pub mismatch: bool,
    /// Median of the differences between block times and true time in the longest segment, counted
    /// from its first block time, in nanoseconds.
    pub offset: Option<i64>,
    /// Delay of the block times in the longest segment.
    pub residuals: Option<Residuals>,
    /// Drift of the UTC clock against the monotonic one between steps, nanoseconds.
    pub drift: i64,
    /// Rows before which the UTC clock was set, with the change in nanoseconds.
    pub steps: Vec<(u64, i64)>,
    /// Rows that the logger lost.
    pub gaps: Vec<Gap>,
    /// Rows before which the monotonic clock went back.
    pub backwards: Vec<u64>,
}

/// A straight line through the monotonic block times of a segment.
#[derive(Clone, Copy, Debug)]
struct Line {
    piece: Piece,
    offset: i64,
    slope_ppm: Option<f64>,
    mismatch: bool,
}

impl Blocks {
    /// Returns the segments without a gap of blocks with plausible times, by index.
    fn segments(&self) -> Vec<std::ops::Range<usize>> {
        self.split(|noticed| matches!(noticed, Noticed::Gap { .. } | Noticed::Backwards))
    }

    fn split(&self, starts: impl Fn(Noticed) -> bool) -> Vec<std::ops::Range<usize>> {
        let mut segments: Vec<std::ops::Range<usize>> = Vec::new();
        for (i, block) in self.list.iter().enumerate() {
            match segments.last_mut() {
                Some(last) if !starts(block.noticed) => last.end = i + 1,
                _ => segments.push(i..i + 1),
            }
        }
        segments
    }

    fn timed(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = &Block> + Clone {
        self.list[range].iter().filter(|block| block.noticed != Noticed::Implausible)
    }

    fn end(&self) -> u64 {
        self.list.last().map_or(0, |block| block.row + block.rows)
    }

    /// Returns the rows of a segment.
    fn rows(&self, range: &std::ops::Range<usize>) -> std::ops::Range<u64> {
        let end = self.list.get(range.end).map_or(self.end(), |block| block.row);
        self.list[range.start].row..end
    }

    /// Returns the line of a segment; `None` without valid block times.
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
            // Parts per million of a known integer: the same on every machine.
            #[expect(clippy::cast_possible_truncation, reason = "far below 2^53 ns per second")]
            let change = (ppm * TRUE_SECOND as f64).round() as i64;
            piece.num = TRUE_SECOND * 1_000_000 + change;
        }
        let late = |block: &&Block| Some(block.monotonic - piece.time(block.row)?);
        let mut late: Vec<i64> = timed.iter().filter_map(late).collect();
        late.sort_unstable();
        let offset = median(&late);
        piece.t0 = piece.t0.checked_add(offset)?;
        // Rows before the first valid block time are on the same line.
        let from_start = Piece { start: rows.start, ..piece };
        let t0 = piece.time(rows.start)?;
        Some(Line { piece: Piece { t0, ..from_start }, offset, slope_ppm, mismatch })
    }

    /// Returns the times of all rows.
    pub(crate) fn map(&self, options: TimeOptions) -> TimeMap {
        let mut pieces = if self.rate == 0 || self.list.is_empty() {
            Vec::new()
        } else if options.base == TimeBase::Relative {
            self.relative(options.axis)
        } else {
            let monotonic = options.base == TimeBase::Monotonic;
            match options.axis {
                TimeAxis::Nominal => self.anchored(monotonic, 1_000_000_000),
                TimeAxis::TrueRate => self.anchored(monotonic, TRUE_SECOND),
                TimeAxis::BlockInterp => self.interpolated(monotonic),
                TimeAxis::Fit => self.fitted(monotonic),
            }
        };
        if options.align && options.base != TimeBase::Relative {
            for piece in &mut pieces {
                piece.t0 = piece.t0.saturating_sub(self.latency);
            }
        }
        TimeMap { pieces }
    }

    /// Returns times from the first row on: the monotonic axis minus its start. It has gaps but no
    /// steps.
    fn relative(&self, axis: TimeAxis) -> Vec<Piece> {
        let mut pieces = match axis {
            TimeAxis::Nominal => self.anchored(true, 1_000_000_000),
            TimeAxis::TrueRate => self.anchored(true, TRUE_SECOND),
            TimeAxis::BlockInterp => self.interpolated(true),
            TimeAxis::Fit => self.fitted(true),
        };
        let zero = pieces.first().map_or(0, |piece| piece.t0);
        for piece in &mut pieces {
            piece.t0 = piece.t0.saturating_sub(zero);
        }
        pieces
    }

    fn block_time(block: &Block, monotonic: bool) -> i64 {
        if monotonic { block.monotonic } else { block.realtime }
    }

    /// Returns pieces at one rate from the first block time of each segment, as in a stream.
    fn anchored(&self, monotonic: bool, second: i64) -> Vec<Piece> {
        let den = i64::from(self.rate);
        let mut pieces: Vec<Piece> = Vec::new();
        let mut known = false;
        let mut push = |start: u64, t0: i64| {
            if let Some(last) = pieces.last_mut() {
                last.end = start;
            }
            pieces.push(Piece { start, end: self.end(), t0, num: second, den });
        };
        for (i, block) in self.list.iter().enumerate() {
            match block.noticed {
                Noticed::Implausible => {
                    if let (0, Some(start)) = (i, self.start) {
                        push(block.row, if monotonic { 0 } else { start });
                    }
                    continue;
                }
                Noticed::Steady if known => {}
                _ => push(block.row, Self::block_time(block, monotonic)),
            }
            known = true;
        }
        pieces.retain(|piece| piece.start < piece.end);
        pieces
    }

    /// Returns a line from each block time to the next.
    fn interpolated(&self, monotonic: bool) -> Vec<Piece> {
        let truth = self.anchored(monotonic, TRUE_SECOND);
        let mut pieces: Vec<Piece> = Vec::new();
        for (i, block) in self.list.iter().enumerate() {
            let end = block.row + block.rows;
            if block.noticed == Noticed::Implausible {
                match pieces.last_mut() {
                    Some(last) => last.end = end,
                    None => pieces.extend(truth.first().map(|piece| Piece { end, ..*piece })),
                }
                continue;
            }
            let mut piece =
                Piece::at_true_rate(block.row, end, Self::block_time(block, monotonic), self.rate);
            if let Some(next) = self.list.get(i + 1)
                && (next.noticed == Noticed::Steady || monotonic && matches!(next.noticed, Noticed::Step(_)))
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
                let truth = truth.get_or_insert_with(|| self.anchored(monotonic, TRUE_SECOND));
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

    /// Appends the line of a segment on the Unix clock to `pieces`: `line` plus the smoothed
    /// difference of the clocks at each block.
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
                && !matches!(self.list[segment.start + i + 1].noticed, Noticed::Step(_))
                && let Some(apart) =
                    place(end, *next).and_then(|next| next.checked_sub(t0)).filter(|n| *n > 0)
                && let Ok(rows) = i64::try_from(block.rows)
            {
                (piece.num, piece.den) = (apart, rows);
            }
            match pieces.last_mut() {
                // One line for as long as the difference of the clocks stays the same.
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

    /// Returns realtime minus monotonic for each block: the median of five neighbours without a
    /// step between them.
    fn distances(&self, segment: &std::ops::Range<usize>) -> Vec<i64> {
        let mut raw: Vec<Option<i64>> = Vec::new();
        let mut run = Vec::new();
        let mut runs = 0;
        for block in &self.list[segment.clone()] {
            runs += usize::from(matches!(block.noticed, Noticed::Step(_)));
            run.push(runs);
            let is_timed = block.noticed != Noticed::Implausible;
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

    /// Summarises the block times.
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
        let drift = self.split(|noticed| !matches!(noticed, Noticed::Steady | Noticed::Implausible));
        let drift = drift.into_iter().map(|range| {
            let distance = self.timed(range).map(|block| block.realtime.saturating_sub(block.monotonic));
            distance.clone().max().zip(distance.min()).map_or(0, |(max, min)| max.saturating_sub(min))
        });
        let of =
            |pick: fn(&Block) -> Option<(u64, i64)>| self.list.iter().filter_map(pick).collect::<Vec<_>>();
        let gap = |block: &Block| match block.noticed {
            Noticed::Gap { nanos, blocks } => Some(Gap { row: block.row, nanos, blocks }),
            _ => None,
        };
        ClockReport {
            segments: segments.len(),
            slope_ppm: line.as_ref().and_then(|(_, line)| line.slope_ppm),
            mismatch: line.as_ref().is_some_and(|(_, line)| line.mismatch),
            offset: line.as_ref().map(|(_, line)| line.offset),
            residuals,
            drift: drift.max().unwrap_or_default(),
            steps: of(|block| match block.noticed {
                Noticed::Step(nanos) => Some((block.row, nanos)),
                _ => None,
            }),
            gaps: self.list.iter().filter_map(gap).collect(),
            backwards: of(|block| (block.noticed == Noticed::Backwards).then_some((block.row, 0)))
                .into_iter()
                .map(|(row, _)| row)
                .collect(),
        }
    }
}

/// Returns the median of sorted numbers: the mean of the two middle ones, rounded down; 0 for an
/// empty list.
fn median(sorted: &[i64]) -> i64 {
    match sorted {
        [] => 0,
        sorted => {
            let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
            i64::try_from((i128::from(low) + i128::from(high)).div_euclid(2)).expect("between two of 64 bits")
        }
    }
}

/// Maximum number of blocks for which all pairs are compared.
const ALL_PAIRS: usize = 500;

/// Returns the median slope over pairs of block times, as ppm off the true rate.
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
        // Distant pairs are the most accurate: each block with the one half the log away.
        let half = blocks.len() / 2;
        blocks.iter().zip(&blocks[half..]).filter_map(|(a, b)| slope(a, b)).collect()
    };
    slopes.sort_unstable_by(f64::total_cmp);
    let (low, high) = (slopes.get(slopes.len().checked_sub(1)? / 2)?, slopes.get(slopes.len() / 2)?);
    Some(f64::midpoint(*low, *high))
}
