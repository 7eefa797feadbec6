//! Stale segments: rows that a damaged storage has mixed into a log from another time.
//!
//! A cluster that was never written keeps what it held before, often a piece of an older log with
//! the same ids: valid rows of the wrong time. Only their order gives them away. Section 5 of
//! docs/formats/ulog.md.

use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};

use rovelog_core::Segment;

use crate::clock::RowMicros;
use crate::reader::UlogReader;

/// Rows whose median tells where time jumps.
const WINDOW: usize = 8;

/// A jump, microseconds.
const JUMP: u64 = 1_000_000;

/// Pairs of segments that are compared at most, so that a hostile log with a jump at each row ends
/// too.
const COMPARISONS: usize = 1 << 18;

/// Segments looked back through for a topic's last time.
const LOOK_BACK: usize = 16;

/// A row with a time that counts.
#[derive(Clone, Copy)]
struct Timed {
    at: u64,
    series: u32,
    time: u64,
    /// Rows behind it, up to the next one of these.
    others: u64,
}

/// First and last time of a topic.
#[derive(Clone, Copy)]
struct Span {
    series: u32,
    first: u64,
    last: u64,
}

/// A segment in the making.
#[derive(Default)]
struct Part {
    start: u64,
    rows: u64,
    timed_rows: u64,
    /// Ascending by topic once complete.
    topics: Vec<Span>,
}

/// Cuts a log into parts, row by row.
#[derive(Default)]
struct Cutter {
    parts: Vec<Part>,
    part: Part,
    /// Rows not yet assigned to a part: those before and behind the place that is looked at.
    rows: VecDeque<Timed>,
    /// Places in a row at which time jumps, the best one and how well it separates.
    run: usize,
    best: (usize, usize),
    /// By topic: its entry in the part, and which part that is.
    entries: Vec<(usize, usize)>,
}

impl Cutter {
    fn row(&mut self, at: u64, series: u32, time: Option<u64>) {
        match (time, self.rows.back_mut()) {
            (Some(time), _) => {
                self.rows.push_back(Timed { at, series, time, others: 0 });
                self.look();
            }
            (None, Some(last)) => last.others += 1,
            (None, None) => self.part.rows += 1,
        }
    }

    fn median(&self, from: usize) -> u64 {
        let mut times = [0; WINDOW];
        for (time, row) in times.iter_mut().zip(self.rows.range(from..from + WINDOW)) {
            *time = row.time;
        }
        times.sort_unstable();
        times[WINDOW / 2]
    }

    /// Looks for a jump where there are enough rows on both sides.
    fn look(&mut self) {
        while self.rows.len() >= 2 * WINDOW + self.run {
            let place = WINDOW + self.run;
            let (before, behind) = (self.median(place - WINDOW), self.median(place));
            if before.abs_diff(behind) > JUMP {
                // Around a joint several places jump; the joint is where the sides are cleanest.
                let from = self.median(0);
                let near = |row: &Timed| row.time.abs_diff(from) <= row.time.abs_diff(behind);
                let clean = self.rows.range(place - WINDOW..place).filter(|row| near(row)).count()
                    + self.rows.range(place..place + WINDOW).filter(|row| !near(row)).count();
                if self.run == 0 || clean > self.best.1 {
                    self.best = (place, clean);
                }
                self.run += 1;
                if self.run == WINDOW {
                    self.cut();
                }
            } else if self.run > 0 {
                self.cut();
            } else if let Some(row) = self.rows.pop_front() {
                self.assign(row);
            }
        }
    }

    /// Starts a part at the best place of a run.
    fn cut(&mut self) {
        for _ in 0..self.best.0 {
            let Some(row) = self.rows.pop_front() else { return };
            self.assign(row);
        }
        self.run = 0;
        if let Some(row) = self.rows.front() {
            self.close(row.at);
        }
    }

    /// Ends the part for certain, at the end of lost bytes or of the file.
    fn end(&mut self, at: u64) {
        if self.run > 0 {
            self.cut();
        }
        while let Some(row) = self.rows.pop_front() {
            self.assign(row);
        }
        self.close(at);
    }

    fn assign(&mut self, row: Timed) {
        let part = &mut self.part;
        part.rows += 1 + row.others;
        part.timed_rows += 1;
        let (topic, number) = (row.series as usize, self.parts.len() + 1);
        if self.entries.len() <= topic {
            self.entries.resize(topic + 1, (0, 0));
        }
        if self.entries[topic].1 == number {
            part.topics[self.entries[topic].0].last = row.time;
        } else {
            self.entries[topic] = (part.topics.len(), number);
            part.topics.push(Span { series: row.series, first: row.time, last: row.time });
        }
    }

    fn close(&mut self, end: u64) {
        let mut part = std::mem::replace(&mut self.part, Part { start: end, ..Part::default() });
        part.topics.sort_unstable_by_key(|span| span.series);
        self.parts.push(part);
    }
}

/// A part as the end of a chain that starts with the first one.
struct Link {
    part: usize,
    /// The link before it.
    before: Option<usize>,
    /// Rows of the chain.
    rows: u64,
}

/// Returns whether most of the topics that `part` shares with the chain ending at `link` go on in
/// it.
fn goes_on(part: &Part, parts: &[Part], links: &[Link], link: usize) -> bool {
    let (mut common, mut behind) = (0, 0);
    let mut open: Vec<Span> = part.topics.clone();
    let mut at = Some(link);
    for _ in 0..LOOK_BACK {
        let Some(link) = at.map(|at| &links[at]) else { break };
        let mut earlier = parts[link.part].topics.iter().peekable();
        open.retain(|span| {
            while earlier.next_if(|known| known.series < span.series).is_some() {}
            let known = earlier.next_if(|known| known.series == span.series);
            common += usize::from(known.is_some());
            behind += usize::from(known.is_some_and(|known| span.first <= known.last));
            known.is_none()
        });
        if open.is_empty() {
            break;
        }
        at = link.before;
    }
    2 * behind <= common
}

/// Returns which parts are in order: the heaviest chain from the first part on.
fn in_order(parts: &[Part]) -> Vec<bool> {
    let mut links = vec![Link { part: 0, before: None, rows: parts[0].rows }];
    // The links by weight, the earlier of two alike the heavier: the heaviest that a part can follow is
    // its best one.
    let mut by_weight = BTreeSet::from([(links[0].rows, Reverse(0))]);
    let tries = (COMPARISONS / parts.len()).clamp(8, 4096);
    for (number, part) in parts.iter().enumerate().skip(1) {
        let mut candidates = by_weight.iter().rev().take(tries).map(|(_, Reverse(link))| *link);
        let before = candidates.find(|link| goes_on(part, parts, &links, *link));
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

/// The first and the last times of a segment.
#[derive(Default)]
struct Ends {
    first: Vec<u64>,
    last: VecDeque<u64>,
}

/// Rows whose median says when a segment starts and ends.
const ENDS: usize = 16;

impl Ends {
    fn take(&mut self, time: u64) {
        if self.first.len() < ENDS {
            self.first.push(time);
        }
        if self.last.len() == ENDS {
            self.last.pop_front();
        }
        self.last.push_back(time);
    }

    fn medians(self) -> Option<(u64, u64)> {
        Some((median(self.first)?, median(self.last.into())?))
    }
}

fn median(mut times: Vec<u64>) -> Option<u64> {
    times.sort_unstable();
    let upper = *times.get(times.len() / 2)?;
    let lower = times[(times.len() - 1) / 2];
    // Between the two in the middle, without overflow.
    Some(lower + (upper - lower) / 2)
}

impl UlogReader {
    /// Returns the parts of a damaged log by whether their rows follow each other in time; empty
    /// where nothing is damaged. Rows of a segment that is not in order come from another time, as
    /// from a storage cluster that was never written: they are valid and are in the log's records
    /// like all others.
    #[doc(hidden)]
    pub fn segments(&self) -> Vec<Segment> {
        let mut lost = self.lost().iter().map(|range| range.end).peekable();
        if lost.peek().is_none() {
            return Vec::new();
        }
        let len = self.bytes().len() as u64;
        let mut cutter = Cutter::default();
        for (at, series, time) in self.timed_rows() {
            while let Some(end) = lost.next_if(|end| *end <= at) {
                cutter.end(end);
            }
            cutter.row(at, series, time);
        }
        // Skips behind the last row; the last part ends with the file.
        lost.filter(|end| *end < len).for_each(|end| cutter.end(end));
        cutter.end(len);
        let parts = cutter.parts;
        let kept = in_order(&parts);
        let ends = parts.iter().skip(1).map(|part| part.start).chain([len]);
        let mut segments: Vec<Segment> = Vec::new();
        for ((part, end), in_time_order) in parts.iter().zip(ends).zip(kept) {
            match segments.last_mut() {
                // Nothing says whether a part without times belongs to the log: it goes with the one before.
                Some(before) if before.in_time_order == in_time_order || part.timed_rows == 0 => {
                    before.range.end = end;
                    before.records += part.rows;
                    before.timed_records += part.timed_rows;
                }
                _ => segments.push(Segment {
                    range: part.start..end,
                    records: part.rows,
                    timed_records: part.timed_rows,
                    first: None,
                    last: None,
                    in_time_order,
                }),
            }
        }
        self.date(&mut segments);
        segments
    }

    /// Says when each segment starts and ends.
    fn date(&self, segments: &mut [Segment]) {
        let mut rows = self.timed_rows().filter_map(|(at, _, time)| Some((at, time?))).peekable();
        for segment in segments {
            let mut ends = Ends::default();
            while let Some((_, time)) = rows.next_if(|(at, _)| *at < segment.range.end) {
                ends.take(time);
            }
            if let Some((first, last)) = ends.medians() {
                (segment.first, segment.last) = (self.timestamp(first), self.timestamp(last));
            }
        }
    }

    /// Returns all rows: offset, topic, and the time if it counts.
    fn timed_rows(&self) -> impl Iterator<Item = (u64, u32, Option<u64>)> + '_ {
        let mut started = vec![false; self.definitions().subscriptions().len()];
        self.cursor().filter_map(move |met| {
            let row = met.row?;
            // A topic's first row often is a value published long before.
            let first = !std::mem::replace(&mut started[row.series as usize], true);
            let time = match row.time {
                RowMicros::At(micros @ 1..) if !first => Some(micros),
                _ => None,
            };
            Some((met.at, row.series, time))
        })
    }
}
