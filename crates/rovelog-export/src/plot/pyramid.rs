//! Overviews of whole signals: extremes of blocks of values, of blocks of blocks and so on, from
//! which any part is drawn without reading the log again.

use std::sync::atomic::{AtomicUsize, Ordering};

use rovelog::{LogReader, Select};

use super::model::Panel;
use super::series::{Column, Described, Look, Series, Sink, Thin, collect, is_direct};
use crate::ExportError;
use crate::signal::Signal;

/// Values in a block of the lowest level, and blocks in a block of the next.
const BASE: usize = 256;
const FACTOR: usize = 8;

/// Bytes of a log that are read by one thread at a time.
const PART: u64 = 32 << 20;

/// Fewest blocks for each column of pixels: a block on the border of two columns is drawn in both.
const FINE: usize = 2;

/// Extremes of a signal.
#[derive(Default)]
struct Pyramid {
    levels: Vec<Vec<Column>>,
    /// The block that is being filled, and its number of values.
    open: Option<(Column, usize)>,
    count: u64,
}

impl Sink for Pyramid {
    #[inline]
    fn push(&mut self, time: i64, value: f64) {
        self.count += 1;
        match &mut self.open {
            Some((column, values)) if *values < BASE => {
                column.push(time, value);
                *values += 1;
            }
            open => {
                let full = open.replace((Column::new(time, value), 1));
                self.keep(full);
            }
        }
    }
}

impl Pyramid {
    fn keep(&mut self, full: Option<(Column, usize)>) {
        if self.levels.is_empty() {
            self.levels.push(Vec::new());
        }
        self.levels[0].extend(full.map(|(column, _)| column));
    }

    /// Adds the values of the next part of the log.
    fn append(&mut self, next: Self) {
        let last = self.open.take();
        self.keep(last);
        self.count += next.count;
        self.levels[0].extend(next.levels.into_iter().flatten());
        self.open = next.open;
    }

    fn finish(&mut self) {
        let last = self.open.take();
        self.keep(last);
        while let Some(top) = self.levels.last().filter(|level| level.len() > FACTOR) {
            let joined = top.chunks(FACTOR).filter_map(|few| few.iter().copied().reduce(Column::join));
            let joined = joined.collect();
            self.levels.push(joined);
        }
    }

    /// Returns the first and the last time.
    fn span(&self) -> (i64, i64) {
        let top = self.levels.last().into_iter().flatten();
        let spans = top.map(Column::span);
        spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or_default()
    }

    fn within(level: &[Column], span: (i64, i64)) -> impl Iterator<Item = &Column> {
        level.iter().filter(move |column| column.overlaps(span))
    }

    /// Returns whether a span has blocks enough for so many columns of pixels.
    fn is_enough(&self, span: (i64, i64), width: usize) -> bool {
        self.levels.first().is_some_and(|base| Self::within(base, span).count() >= FINE * width)
    }

    /// Draws a span from the highest level that is fine enough.
    fn thin(&self, span: (i64, i64), width: usize) -> Thin {
        let enough = |level: &&Vec<Column>| Self::within(level, span).count() >= FINE * width;
        let level = self.levels.iter().rev().find(enough).or(self.levels.first());
        let mut thin = Thin::new(span, width);
        level.into_iter().flat_map(|level| Self::within(level, span)).for_each(|column| thin.add(column));
        thin
    }
}

/// Signals of a part of a log, in their order.
type Part = Vec<Option<(Described, Pyramid)>>;

/// Reads signals part by part, on all processors. Where parts start does not depend on the number
/// of processors, so neither does the result.
fn in_parts(log: &dyn LogReader, signals: &[Signal], bytes: u64) -> Result<Vec<Part>, ExportError> {
    let is_divided = signals.iter().all(is_direct);
    let parts = usize::try_from(log.info().size / bytes).ok().filter(|_| is_divided);
    let parts = parts.unwrap_or(0).max(1);
    let read = |part: usize| {
        let mut select = Select::all();
        if parts > 1 {
            // Offsets of a compressed log go beyond its size.
            let end = if part + 1 == parts { u64::MAX } else { (part as u64 + 1) * bytes };
            select.blocks = Some(part as u64 * bytes..end);
        }
        collect(log, signals, &select, Pyramid::default)
    };
    let next = AtomicUsize::new(0);
    let work = || {
        let taken = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|part| *part < parts);
        std::iter::from_fn(taken).map(|part| (part, read(part))).collect::<Vec<_>>()
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(parts);
    let mut found = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut found = work();
        for other in others {
            found.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        found
    });
    found.sort_by_key(|(part, _)| *part);
    found.into_iter().map(|(_, part)| part).collect()
}

/// Joins the parts of a log.
fn joined(parts: Vec<Part>) -> Part {
    let mut parts = parts.into_iter();
    let mut whole = parts.next().unwrap_or_default();
    for part in parts {
        for (whole, part) in whole.iter_mut().zip(part) {
            if let (Some((_, whole)), Some((_, part))) = (whole, part) {
                whole.append(part);
            }
        }
    }
    whole
}

/// A whole signal in little space, about 1/60 of its values.
#[derive(Debug)]
pub struct Overview {
    signal: Signal,
    /// Name, unit and look, without points.
    series: Series,
    prefixed: (f64, Option<String>),
    pyramid: Pyramid,
}

impl std::fmt::Debug for Pyramid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pyramid").field("count", &self.count).finish_non_exhaustive()
    }
}

impl Overview {
    /// Reads whole signals in one pass over the log. Returns them in their order; `None` if the log
    /// has no such topic or field.
    ///
    /// # Errors
    /// Returns an error if the log cannot be read, or a topic has no columns.
    pub fn read(log: &dyn LogReader, signals: &[Signal]) -> Result<Vec<Option<Self>>, ExportError> {
        let whole = joined(in_parts(log, signals, PART)?);
        let overview = |(signal, found): (&Signal, Option<_>)| {
            let (described, mut pyramid): (Described, Pyramid) = found?;
            pyramid.finish();
            // Whether an integer is drawn in steps depends on its values.
            let points = pyramid.thin(pyramid.span(), 2000).points(0);
            let series = described.series(points, pyramid.count);
            let panel = Panel::new("", vec![series]);
            let prefixed = panel.prefixed();
            let mut series = panel.series.into_iter().next()?;
            series.points = Vec::new();
            Some(Self { signal: signal.clone(), series, prefixed, pyramid })
        };
        Ok(signals.iter().zip(whole).map(overview).collect())
    }

    /// Returns which signal it is of.
    pub fn signal(&self) -> &Signal {
        &self.signal
    }

    /// Returns the part between two times of the log's clock, reduced to `width` columns. Seconds
    /// count from `zero`. The minimum and maximum of each column are exact, except at its borders
    /// where the part has more than 512 values per column: there, the extremes of 256 values belong
    /// to the column in which they are.
    ///
    /// # Errors
    /// Returns an error if the log cannot be read.
    pub fn part(
        &self,
        log: &dyn LogReader,
        span: (i64, i64),
        width: usize,
        zero: i64,
    ) -> Result<Series, ExportError> {
        let mut series = self.series.clone();
        if self.pyramid.is_enough(span, width) {
            series.points = self.pyramid.thin(span, width).points(zero);
        } else {
            let mut read = super::read(log, std::slice::from_ref(&self.signal), span, width, zero)?;
            series.points = read.pop().flatten().map(|series| series.points).unwrap_or_default();
        }
        Ok(series)
    }

    /// Returns by what values are divided on an axis, and the unit of the quotients: `mA`.
    pub fn prefixed(&self) -> (f64, Option<&str>) {
        (self.prefixed.0, self.prefixed.1.as_deref())
    }

    /// Returns the memory it uses, in bytes.
    pub fn bytes(&self) -> usize {
        self.pyramid.levels.iter().map(|level| level.capacity() * size_of::<Column>()).sum()
    }
}

impl Series {
    /// Returns whether each value holds until the next one.
    pub fn is_step(&self) -> bool {
        self.look != Look::Line
    }

    /// Returns whether the values are states, drawn as a lane.
    pub fn is_lane(&self) -> bool {
        self.look == Look::Lane
    }

    /// Returns the names of states by value; empty if they have none.
    pub fn state_names(&self) -> &'static [(i64, &'static str)] {
        self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pyramid(values: impl Iterator<Item = f64>) -> Pyramid {
        let mut pyramid = Pyramid::default();
        (0..).zip(values).for_each(|(i, value)| pyramid.push(i * 10, value));
        pyramid.finish();
        pyramid
    }

    #[test]
    fn every_extreme_is_in_the_overview() {
        let value = |i: usize| if i == 654_321 { 999.0 } else { (i % 100) as f64 };
        let all = pyramid((0..1_000_000).map(value));
        assert_eq!(all.levels.iter().map(Vec::len).collect::<Vec<_>>(), [3907, 489, 62, 8]);
        for width in [1, 10, 100, 1000] {
            assert!(all.is_enough((0, 10_000_000), width));
            let points = all.thin((0, 10_000_000), width).points(0);
            assert!(points.contains(&(6.54321e-3, 999.0)), "{width}");
            assert!(points.len() <= 4 * width && points.is_sorted_by(|a, b| a.0 <= b.0));
        }
        // A part of less than a block for each column is read from the log.
        assert!(!all.is_enough((0, 100_000), 100));
    }

    #[test]
    fn a_gap_stays_a_gap() {
        let all = pyramid((0..100_000).map(|i| if i == 50_000 { f64::NAN } else { 1.0 }));
        let points = all.thin((0, 999_990), 50).points(0);
        assert_eq!(points.iter().filter(|(_, value)| value.is_nan()).count(), 1);
    }

    #[test]
    fn parts_of_a_log_have_the_same_values_as_the_whole_log() {
        for name in ["ulog/utc-gps-int32.ulg", "rld/v4.rld", "rosbag/robot.bag", "vel/all-kinds.vel"] {
            let log = rovelog::open(rovelog_testing::root().join("corpus").join(name)).unwrap();
            let all = log.topics().iter().flat_map(|topic| {
                let fields = crate::signal::numeric_fields(&*log, topic).unwrap().into_iter();
                fields.map(|field| Signal::of(&topic.name, &field))
            });
            let signals: Vec<Signal> = all.collect();
            let [whole, parts] =
                [u64::MAX, 64].map(|bytes| joined(in_parts(&*log, &signals, bytes).unwrap()));
            for (signal, (whole, parts)) in signals.iter().zip(whole.into_iter().zip(parts)) {
                let [whole, parts] = [whole, parts].map(|found| {
                    let mut pyramid = found.unwrap().1;
                    pyramid.finish();
                    let blocks = pyramid.levels[0].iter().copied().reduce(Column::join);
                    (pyramid.count, format!("{blocks:?}"))
                });
                assert_eq!(parts, whole, "{name}: {signal:?}");
            }
        }
    }
}
