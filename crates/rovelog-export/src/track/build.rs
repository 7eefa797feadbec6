//! Splits the points of a track into segments.

use super::{Line, Segment, Tally, Track, TrackPoint};

/// Minimum time in nanoseconds between two points of a track. GPS receivers report up to 20
/// positions per second, which would make track files unnecessarily large.
const SPACING: i64 = 100_000_000;

/// Maximum time in nanoseconds between two points of the same segment.
const GAP: i64 = 10_000_000_000;

/// Builds a line from points in time order. A new segment starts after more than 10 s without
/// points, and where the line crosses the antimeridian. A point is omitted if it is less than 0.1 s
/// after the previous point.
#[derive(Debug)]
pub struct LineBuilder {
    line: Line,
    /// True if no point is omitted.
    all: bool,
    /// Time of the last point passed to `push`, including omitted points.
    last: Option<i64>,
    /// Number of points that were omitted because they are too close in time to the previous point.
    close: u64,
}

impl LineBuilder {
    /// Creates an empty line. `source` is the name of the topic. If `all` is true, no point is
    /// omitted.
    pub fn new(source: impl Into<String>, all: bool) -> Self {
        Self { line: Line { source: source.into(), segments: Vec::new() }, all, last: None, close: 0 }
    }

    /// Adds the next point, or omits it if it is too close in time to the previous point.
    pub fn push(&mut self, point: TrackPoint) {
        let silence = self.last.map(|last| point.time.nanos.saturating_sub(last));
        self.last = Some(point.time.nanos);
        let previous =
            self.line.segments.last_mut().and_then(|segment| Some((*segment.points.last()?, segment)));
        let Some((before, segment)) = previous else { return self.start(point) };
        // A time before that of the previous point also starts a new segment, because the line must
        // be in time order.
        if silence.is_some_and(|silence| !(0..=GAP).contains(&silence)) {
            return self.start(point);
        }
        if !self.all && point.time.nanos.saturating_sub(before.time.nanos) < SPACING {
            self.close += 1;
            return;
        }
        // A line from 179.9° to -179.9° would be drawn around the whole earth.
        if (point.longitude - before.longitude).abs() > 180.0 {
            return self.start(point);
        }
        segment.points.push(point);
    }

    /// Starts a new segment with `point`.
    fn start(&mut self, point: TrackPoint) {
        self.line.segments.push(Segment { points: vec![point] });
    }

    /// Returns whether the line has no points.
    pub fn is_empty(&self) -> bool {
        self.line.segments.is_empty()
    }

    /// Returns the line and the number of omitted points.
    pub fn finish(self) -> (Line, u64) {
        (self.line, self.close)
    }

    /// Adds the line to `track` if it has points, and the number of omitted points to `tally`.
    pub(super) fn finish_in(self, track: &mut Track, tally: &mut Tally) {
        tally.close += self.close;
        if !self.is_empty() {
            track.lines.push(self.line);
        }
    }
}

#[cfg(test)]
mod tests {
    use rovelog::{Clock, Timestamp};

    use super::*;

    fn line(all: bool, points: &[(i64, f64)]) -> (Vec<Vec<i64>>, u64) {
        let mut builder = LineBuilder::new("t", all);
        for (millis, longitude) in points {
            let time = Timestamp::new(millis * 1_000_000, Clock::Boot);
            builder.push(TrackPoint::new(time, 0.5, *longitude));
        }
        let (line, close) = builder.finish();
        let times = |segment: &Segment| segment.points.iter().map(|p| p.time.nanos / 1_000_000).collect();
        (line.segments.iter().map(times).collect(), close)
    }

    #[test]
    fn close_points_are_omitted() {
        let points: Vec<_> = (0..7).map(|i| (i * 40, 1.0)).collect();
        assert_eq!(line(false, &points), (vec![vec![0, 120, 240]], 4));
        assert_eq!(line(true, &points).0[0].len(), 7);
        assert_eq!(line(false, &[(0, 1.0), (100, 1.0), (199, 1.0)]), (vec![vec![0, 100]], 1));
    }

    #[test]
    fn segments_end_at_gaps_and_at_the_antimeridian() {
        assert_eq!(line(false, &[(0, 1.0), (10_000, 1.0)]).0, [vec![0, 10_000]]);
        assert_eq!(line(false, &[(0, 1.0), (10_001, 1.0)]).0, [vec![0], vec![10_001]]);
        assert_eq!(line(false, &[(0, 179.9), (500, -179.9), (999, -179.8)]).0, [vec![0], vec![500, 999]]);
        assert_eq!(line(false, &[(500, 1.0), (0, 1.0)]).0, [vec![500], vec![0]]);
        // Points that are omitted because they are close together do not count as a gap.
        let points: Vec<_> = (0..300).map(|i| (i * 50, 1.0)).collect();
        assert_eq!(line(false, &points).0.len(), 1);
    }
}
