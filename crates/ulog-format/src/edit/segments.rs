//! Detection of stale segments, which are rows from another time in a damaged log.
//!
//! If a storage cluster was never written, it still contains its previous contents. This is often a
//! part of an older log with the same ids, so that its rows are valid, but have wrong times. Only
//! the times distinguish these rows from the rows of the log.
//!
//! The algorithm has two steps:
//!
//! 1. [`SegmentSplitter`] divides the log into parts, at damage and wherever the median of 8 times
//!    differs from the median of the next 8 by more than a second.
//! 2. [`in_order`] selects the sequence of parts with the most rows in which each part continues
//!    the times of the parts before it. The other parts are stale.
//!
//! # Example
//!
//! A damaged log has three parts: 500 rows from 10 s to 20 s, 40 rows from 300 s to 301 s, and 600
//! rows from 20 s to 32 s. The sequence of parts 1 and 3 has 1100 rows. The sequence of parts 1 and
//! 2 has 540 rows and cannot be continued by part 3, whose times are earlier. Part 2 is stale.

use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};

use rovelog_core::Segment;

use crate::clock::RowMicros;
use crate::reader::UlogReader;
use crate::scan::RowInfo;

/// Number of rows on each side of a position whose median times are compared.
const WINDOW: usize = 8;

/// Minimum difference in microseconds between the two medians at a jump of the time.
const JUMP: u64 = 1_000_000;

/// Maximum number of comparisons between parts of a log. A hostile log could have a jump at each
/// row, so the limit bounds the processing time.
const COMPARISONS: usize = 1 << 18;

/// Maximum number of earlier parts that are searched for the last time of a topic.
const LOOK_BACK: usize = 16;

/// A row whose time can be used to detect jumps.
#[derive(Clone, Copy)]
struct Timed {
    /// Offset of the row in the file.
    at: u64,
    /// Number of the row's topic.
    topic: u32,
    /// Time of the row in microseconds.
    time: u64,
    /// Number of rows without a usable time between this row and the next row with a usable time.
    others: u64,
}

/// First and last time of a topic's rows in a part of a log, in microseconds.
#[derive(Clone, Copy)]
struct Span {
    /// Number of the topic.
    topic: u32,
    first: u64,
    last: u64,
}

/// A part of a log in which the time does not jump.
#[derive(Default)]
struct Part {
    /// Offset in the file at which the part starts.
    start: u64,
    /// Number of rows in the part.
    rows: u64,
    /// Number of rows in the part that have a usable time.
    timed_rows: u64,
    /// First and last times of the topics in the part. The list is sorted by topic when the part is
    /// complete.
    topics: Vec<Span>,
}

/// Divides a log into parts at damage and at jumps of the time.
#[derive(Default)]
struct SegmentSplitter {
    /// Complete parts of the log, in file order.
    parts: Vec<Part>,
    /// The part to which rows are currently added.
    part: Part,
    /// Rows that have not been assigned to a part of the log yet.
    rows: VecDeque<Timed>,
    /// Number of consecutive positions so far at which the medians on the two sides differ.
    run: usize,
    /// Most likely position of the current jump.
    jump: usize,
    /// Number of rows around `jump` that are on the correct side.
    clean_count: usize,
    /// The latest entry of each topic in `Part::topics`.
    entries: Vec<Entry>,
}

/// Place of an entry in `Part::topics`.
#[derive(Clone, Copy, Default)]
struct Entry {
    /// Number of the part. Parts are counted from 1.
    part: usize,
    index: usize,
}

impl SegmentSplitter {
    /// Adds the next row of the log, which is at the offset `at`.
    fn add_row(&mut self, at: u64, row: RowInfo) {
        match (row.time.micros(), self.rows.back_mut()) {
            (Some(time), _) => {
                self.rows.push_back(Timed { at, topic: row.series, time, others: 0 });
                self.find_jumps();
            }
            (None, Some(last)) => last.others += 1,
            (None, None) => self.part.rows += 1,
        }
    }

    /// Returns the median time of [`WINDOW`] rows, starting with the row at the index `from`.
    fn median(&self, from: usize) -> u64 {
        let mut times = [0; WINDOW];
        for (time, row) in times.iter_mut().zip(self.rows.range(from..from + WINDOW)) {
            *time = row.time;
        }
        times.sort_unstable();
        times[WINDOW / 2]
    }

    /// Searches for a jump of the time at all positions that have enough rows on both sides.
    fn find_jumps(&mut self) {
        while self.rows.len() >= 2 * WINDOW + self.run {
            let position = WINDOW + self.run;
            let (before, after) = (self.median(position - WINDOW), self.median(position));
            if before.abs_diff(after) > JUMP {
                // Around a jump, the medians differ at several positions. The jump is at the
                // position where most rows before it are near the old time, and most rows after it
                // are near the new time.
                let from = self.median(0);
                let is_old = |row: &Timed| row.time.abs_diff(from) <= row.time.abs_diff(after);
                let clean_count =
                    self.rows.range(position - WINDOW..position).filter(|row| is_old(row)).count()
                        + self.rows.range(position..position + WINDOW).filter(|row| !is_old(row)).count();
                if self.run == 0 || clean_count > self.clean_count {
                    (self.jump, self.clean_count) = (position, clean_count);
                }
                self.run += 1;
                if self.run == WINDOW {
                    self.split_at_jump();
                }
            } else if self.run > 0 {
                self.split_at_jump();
            } else if let Some(row) = self.rows.pop_front() {
                self.add_to_part(row);
            }
        }
    }

    /// Ends the current part at the most likely position of the jump.
    fn split_at_jump(&mut self) {
        for _ in 0..self.jump {
            let Some(row) = self.rows.pop_front() else { return };
            self.add_to_part(row);
        }
        self.run = 0;
        if let Some(row) = self.rows.front() {
            self.push_part(row.at);
        }
    }

    /// Ends the current part at the offset `at`, which is the end of lost bytes or the end of the
    /// file.
    fn finish_at(&mut self, at: u64) {
        if self.run > 0 {
            self.split_at_jump();
        }
        while let Some(row) = self.rows.pop_front() {
            self.add_to_part(row);
        }
        self.push_part(at);
    }

    /// Adds a row to the current part of the log.
    fn add_to_part(&mut self, row: Timed) {
        let part = &mut self.part;
        part.rows += 1 + row.others;
        part.timed_rows += 1;
        let (topic, number) = (row.topic as usize, self.parts.len() + 1);
        if self.entries.len() <= topic {
            self.entries.resize(topic + 1, Entry::default());
        }
        let entry = &mut self.entries[topic];
        if entry.part == number {
            part.topics[entry.index].last = row.time;
        } else {
            *entry = Entry { part: number, index: part.topics.len() };
            part.topics.push(Span { topic: row.topic, first: row.time, last: row.time });
        }
    }

    /// Completes the current part of the log. The next part starts at the offset `end`.
    fn push_part(&mut self, end: u64) {
        let mut part = std::mem::replace(&mut self.part, Part { start: end, ..Part::default() });
        part.topics.sort_unstable_by_key(|span| span.topic);
        self.parts.push(part);
    }
}

/// A sequence of parts that starts with the first part of the log. Each link stores the last part
/// and refers to the rest of the sequence.
struct Link {
    /// Index of the last part of the sequence.
    part: usize,
    /// Index of the link for the sequence without the last part. `None` if the sequence has only
    /// one part.
    before: Option<usize>,
    /// Total number of rows in the sequence.
    rows: u64,
}

/// Returns `true` if the times of `part` continue the sequence that ends at `link`.
///
/// The first time of each topic in `part` is compared with the last time of the topic in the
/// sequence. At least half of the topics that both contain must have later times in `part`. The
/// other topics may have stale values.
fn continues(part: &Part, parts: &[Part], links: &[Link], link: usize) -> bool {
    let (mut common_count, mut earlier_count) = (0, 0);
    let mut open: Vec<Span> = part.topics.clone();
    let mut at = Some(link);
    for _ in 0..LOOK_BACK {
        let Some(link) = at.map(|at| &links[at]) else { break };
        let mut earlier = parts[link.part].topics.iter().peekable();
        open.retain(|span| {
            while earlier.next_if(|known| known.topic < span.topic).is_some() {}
            let known = earlier.next_if(|known| known.topic == span.topic);
            common_count += usize::from(known.is_some());
            earlier_count += usize::from(known.is_some_and(|known| span.first <= known.last));
            known.is_none()
        });
        if open.is_empty() {
            break;
        }
        at = link.before;
    }
    // If no topic is in both, nothing contradicts the sequence.
    2 * earlier_count <= common_count
}

/// Returns a flag for each part, which is `true` if the part belongs to the sequence with the most
/// rows.
fn in_order(parts: &[Part]) -> Vec<bool> {
    let mut links = vec![Link { part: 0, before: None, rows: parts[0].rows }];
    // The links, sorted by number of rows. Each part is added to the sequence with the most rows
    // that it can continue. If two sequences have the same number of rows, the earlier sequence is
    // preferred.
    let mut by_weight = BTreeSet::from([(links[0].rows, Reverse(0))]);
    // Number of comparisons allowed for each part. It is at least 8, even if the log has very many
    // parts.
    let tries = (COMPARISONS / parts.len()).clamp(8, 4096);
    for (number, part) in parts.iter().enumerate().skip(1) {
        let mut candidates = by_weight.iter().rev().take(tries).map(|(_, Reverse(link))| *link);
        let before = candidates.find(|link| continues(part, parts, &links, *link));
        if let Some(before) = before {
            let rows = links[before].rows + part.rows;
            by_weight.insert((rows, Reverse(links.len())));
            links.push(Link { part: number, before: Some(before), rows });
        }
    }
    let mut kept = vec![false; parts.len()];
    let mut at = by_weight.last().map(|(_, Reverse(link))| *link);
    while let Some(link) = at.map(|at| &links[at]) {
        kept[link.part] = true;
        at = link.before;
    }
    kept
}

/// Times of the first and the last rows of a segment, from which its start and end times are
/// computed.
#[derive(Default)]
struct SegmentTimes {
    first: Vec<u64>,
    last: VecDeque<u64>,
}

/// Number of rows at each end of a segment from which its start and end times are computed. Each of
/// these times is a median, because a median ignores single stale times.
const MEDIAN_ROWS: usize = 16;

impl SegmentTimes {
    /// Adds the time of the segment's next row.
    fn add(&mut self, time: u64) {
        if self.first.len() < MEDIAN_ROWS {
            self.first.push(time);
        }
        if self.last.len() == MEDIAN_ROWS {
            self.last.pop_front();
        }
        self.last.push_back(time);
    }

    /// Returns the start and the end time of the segment, or `None` if it has no rows with a time.
    fn medians(self) -> Option<(u64, u64)> {
        Some((median(self.first)?, median(self.last.into())?))
    }
}

fn median(mut times: Vec<u64>) -> Option<u64> {
    times.sort_unstable();
    let upper = *times.get(times.len() / 2)?;
    let lower = times[(times.len() - 1) / 2];
    // The result is the mean of the two middle times. It is computed in this way because `lower +
    // upper` could overflow.
    Some(lower + (upper - lower) / 2)
}

impl UlogReader {
    /// Divides a damaged log into segments that are in time order and segments that are not.
    /// Returns an empty list if the log is not damaged.
    ///
    /// A segment that is not in time order contains rows from another time, for example from a
    /// storage cluster that was never written. Its rows are valid, so they are returned with the
    /// other records of the log.
    #[doc(hidden)]
    pub fn segments(&self) -> Vec<Segment> {
        let mut lost = self.lost().iter().map(|range| range.end).peekable();
        if lost.peek().is_none() {
            return Vec::new();
        }
        let len = self.bytes().len() as u64;
        let mut splitter = SegmentSplitter::default();
        for (at, row) in self.timed_rows() {
            while let Some(end) = lost.next_if(|end| *end <= at) {
                splitter.finish_at(end);
            }
            splitter.add_row(at, row);
        }
        // Damage after the last row also ends a part. The last part ends at the end of the file.
        lost.filter(|end| *end < len).for_each(|end| splitter.finish_at(end));
        splitter.finish_at(len);
        let parts = splitter.parts;
        let kept = in_order(&parts);
        let ends = parts.iter().skip(1).map(|part| part.start).chain([len]);
        let mut segments: Vec<Segment> = Vec::new();
        for ((part, end), in_time_order) in parts.iter().zip(ends).zip(kept) {
            match segments.last_mut() {
                // If a part has no usable times, nothing shows whether it is in time order. So it
                // is joined with the segment before it.
                Some(before) if before.in_time_order == in_time_order || part.timed_rows == 0 => {
                    before.range.end = end;
                    before.records += part.rows;
                    before.timed_records += part.timed_rows;
                }
                _ => {
                    segments.push(Segment {
                        range: part.start..end,
                        records: part.rows,
                        timed_records: part.timed_rows,
                        first: None,
                        last: None,
                        in_time_order,
                    });
                }
            }
        }
        self.set_times(&mut segments);
        segments
    }

    /// Sets the start and end times of the segments.
    fn set_times(&self, segments: &mut [Segment]) {
        let mut rows = self.timed_rows().filter_map(|(at, row)| Some((at, row.time.micros()?))).peekable();
        for segment in segments {
            let mut ends = SegmentTimes::default();
            while let Some((_, time)) = rows.next_if(|(at, _)| *at < segment.range.end) {
                ends.add(time);
            }
            if let Some((first, last)) = ends.medians() {
                (segment.first, segment.last) = (self.timestamp(first), self.timestamp(last));
            }
        }
    }

    /// Returns the offset, the topic and the time of each row. The row has no time if the time is 0,
    /// or if the row is the first of its topic.
    fn timed_rows(&self) -> impl Iterator<Item = (u64, RowInfo)> + '_ {
        let mut started = vec![false; self.definitions().subscriptions().len()];
        self.cursor().filter_map(move |msg| {
            let mut row = msg.row?;
            // The first row of a topic often contains a value that was published long before the
            // log started, so its time is not used.
            let first = !std::mem::replace(&mut started[row.series as usize], true);
            if first || row.time.micros() == Some(0) {
                row.time = RowMicros::None;
            }
            Some((msg.at, row))
        })
    }
}
