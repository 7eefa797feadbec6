//! Overviews of whole signals. Most time ranges can be drawn from an overview without reading the
//! log again.
//!
//! An overview is a pyramid of blocks. A block at the lowest level summarizes 256 values by their
//! first, minimum, maximum and last value. A block at a higher level summarizes 8 blocks of the
//! level below. For example, 100 million values have 390,625 blocks at the lowest level, 48,829
//! blocks at the next level, and 6,104 blocks at the level above that.
//!
//! A time range is drawn from the highest level that has at least two blocks per pixel column. If
//! even the lowest level has fewer blocks in the time range, the values are read from the log.

use rovelog::core::internal::parallel::{Jobs, in_order};
use rovelog::{LogReader, Select};

use super::model::Panel;
use super::series::{Look, Reducer, Series, Side, SignalInfo, Sink, Summary, collect, is_direct};
use crate::ExportError;
use crate::signal::Signal;

/// Number of values that a block at the lowest level summarizes.
const BLOCK_VALUES: usize = 256;
/// Number of blocks that one block at the next level summarizes.
const BLOCKS_PER_BLOCK: usize = 8;

/// Size in bytes of the part of a log that a thread reads as one task.
const PART_BYTES: u64 = 32 << 20;

/// Minimum number of blocks per pixel column. A block at the border of two columns is drawn in both
/// columns. With only one block per column, each column would also show values of its neighbors.
const MIN_BLOCKS_PER_COLUMN: usize = 2;

/// The overview of a signal: blocks of values at several levels.
#[derive(Default)]
struct Pyramid {
    /// Blocks of each level, starting with the lowest level.
    levels: Vec<Vec<Summary>>,
    /// The incomplete last block at the lowest level, and the number of values in it.
    open: Option<(Summary, usize)>,
    /// Number of values in all blocks.
    count: u64,
}

impl Sink for Pyramid {
    #[inline]
    fn push(&mut self, time: i64, value: f64) {
        self.count += 1;
        match &mut self.open {
            Some((column, values)) if *values < BLOCK_VALUES => {
                column.push(time, value);
                *values += 1;
            }
            open => {
                let full = open.replace((Summary::new(time, value), 1));
                self.push_block(full);
            }
        }
    }
}

impl Pyramid {
    /// Appends a block to the lowest level. Does nothing if `full` is `None`.
    fn push_block(&mut self, full: Option<(Summary, usize)>) {
        if self.levels.is_empty() {
            self.levels.push(Vec::new());
        }
        self.levels[0].extend(full.map(|(column, _)| column));
    }

    /// Appends the overview of the next part of the log.
    fn append(&mut self, next: Self) {
        let last = self.open.take();
        self.push_block(last);
        self.count += next.count;
        self.levels[0].extend(next.levels.into_iter().flatten());
        self.open = next.open;
    }

    /// Builds the higher levels. Called after all values have been added.
    fn finish(&mut self) {
        let last = self.open.take();
        self.push_block(last);
        while let Some(top) = self.levels.last().filter(|level| level.len() > BLOCKS_PER_BLOCK) {
            let joined =
                top.chunks(BLOCKS_PER_BLOCK).filter_map(|few| few.iter().copied().reduce(Summary::join));
            let joined = joined.collect();
            self.levels.push(joined);
        }
    }

    /// Returns the times of the first and last value.
    fn span(&self) -> (i64, i64) {
        let top = self.levels.last().into_iter().flatten();
        let spans = top.map(Summary::span);
        spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or_default()
    }

    /// Returns the blocks of a level that overlap a time range. All blocks are checked. Their time
    /// ranges may overlap each other, because rows are not always in time order.
    fn within(level: &[Summary], span: (i64, i64)) -> impl Iterator<Item = &Summary> {
        level.iter().filter(move |column| column.overlaps(span))
    }

    /// Returns whether the lowest level has enough blocks to draw the time range `span` with
    /// `width` pixel columns.
    fn is_fine_enough(&self, span: (i64, i64), width: usize) -> bool {
        self.levels
            .first()
            .is_some_and(|base| Self::within(base, span).count() >= MIN_BLOCKS_PER_COLUMN * width)
    }

    /// Reduces a time range to pixel columns. The highest level with enough blocks is used.
    fn reduce(&self, span: (i64, i64), width: usize) -> Reducer {
        let enough =
            |level: &&Vec<Summary>| Self::within(level, span).count() >= MIN_BLOCKS_PER_COLUMN * width;
        let level = self.levels.iter().rev().find(enough).or(self.levels.first());
        let mut reducer = Reducer::new(span, width);
        level.into_iter().flat_map(|level| Self::within(level, span)).for_each(|column| reducer.add(column));
        reducer
    }
}

/// The overviews of all signals for a part of a log. An entry is `None` if the log lacks the
/// signal.
type Part = Vec<Option<(SignalInfo, Pyramid)>>;

/// Reads the parts of a log in parallel on all processors. `bytes` is the size of a part. The size
/// does not depend on the number of processors, so the result does not depend on this number
/// either.
fn in_parts(log: &dyn LogReader, signals: &[Signal], bytes: u64) -> Result<Vec<Part>, ExportError> {
    // If a signal depends on earlier rows, the log must be read from its start as a single part.
    let is_divided = signals.iter().all(is_direct);
    let parts = usize::try_from(log.info().size / bytes).ok().filter(|_| is_divided);
    let parts = parts.unwrap_or(0).max(1);
    let read = |part: usize| {
        let mut select = Select::all();
        if parts > 1 {
            // Offsets in a compressed log may exceed the size of the file, so the last part has no
            // end.
            let end = if part + 1 == parts { u64::MAX } else { (part as u64 + 1) * bytes };
            select.blocks = Some(part as u64 * bytes..end);
        }
        collect(log, signals, &select, Pyramid::default)
    };
    let jobs = if parts == 1 { Jobs::ONE } else { Jobs::all() };
    let mut found = Vec::new();
    in_order(
        jobs,
        || (),
        |(), part| read(part),
        |push| (0..parts).try_for_each(push),
        |part: Result<Part, ExportError>| {
            found.push(part?);
            Ok::<_, ExportError>(())
        },
    )?;
    Ok(found)
}

/// Joins the overviews of consecutive parts of a log.
fn join_parts(parts: Vec<Part>) -> Part {
    let mut parts = parts.into_iter();
    let mut joined = parts.next().unwrap_or_default();
    for part in parts {
        for (joined, part) in joined.iter_mut().zip(part) {
            if let (Some((_, joined)), Some((_, part))) = (joined, part) {
                joined.append(part);
            }
        }
    }
    joined
}

/// A compact overview of a whole signal. It needs about 1/60 of the memory of all values.
#[derive(Debug)]
pub struct Overview {
    signal: Signal,
    /// Name, unit and drawing style of the signal, without points.
    series: Series,
    /// Divisor for the labels of the value axis, and the unit with the prefix for this divisor.
    prefixed: (f64, Option<String>),
    pyramid: Pyramid,
    /// True if only samples of the signal were read, for a preview.
    is_sample: bool,
}

impl std::fmt::Debug for Pyramid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pyramid").field("count", &self.count).finish_non_exhaustive()
    }
}

impl Overview {
    /// Reads whole signals in one pass over the log. The results are in the order of `signals`. The
    /// result for a signal is `None` if the log lacks its topic or field.
    ///
    /// # Errors
    /// Returns an error if the log cannot be read, or a topic has no columns.
    pub fn read(log: &dyn LogReader, signals: &[Signal]) -> Result<Vec<Option<Self>>, ExportError> {
        Ok(Self::of(signals, in_parts(log, signals, PART_BYTES)?, false))
    }

    /// Reads only the values of signals in the selected parts of a log, for a preview. The parts
    /// are in time order.
    ///
    /// # Errors
    /// Returns the same errors as [`read`](Self::read).
    pub fn sample(
        log: &dyn LogReader,
        signals: &[Signal],
        parts: &[Select],
    ) -> Result<Vec<Option<Self>>, ExportError> {
        let read = |part| collect(log, signals, part, Pyramid::default);
        Ok(Self::of(signals, parts.iter().map(read).collect::<Result<_, _>>()?, true))
    }

    /// Joins what was read of signals to their overviews.
    fn of(signals: &[Signal], parts: Vec<Part>, is_sample: bool) -> Vec<Option<Self>> {
        let overview = |(signal, found): (&Signal, Option<_>)| {
            let (info, mut pyramid): (SignalInfo, Pyramid) = found?;
            pyramid.finish();
            // The drawing style of an integer signal depends on its values. 2000 columns contain
            // enough values to choose the style.
            let points = pyramid.reduce(pyramid.span(), 2000).points(0);
            let series = info.series(points, pyramid.count);
            let panel = Panel::new("", vec![series]);
            let prefixed = panel.prefixed(Side::Left);
            let mut series = panel.series.into_iter().next()?;
            series.points = Vec::new();
            Some(Self { signal: signal.clone(), series, prefixed, pyramid, is_sample })
        };
        signals.iter().zip(join_parts(parts)).map(overview).collect()
    }

    /// Returns the signal that the overview summarizes.
    pub fn signal(&self) -> &Signal {
        &self.signal
    }

    /// Returns the points of several signals in a time range, each reduced to `width` columns.
    /// `span` is in nanoseconds of the log's clock. The seconds of the points count from `zero`. If
    /// an overview is too coarse for the time range, its signal is read from the log, unless the
    /// overview is that of a preview. All such signals are read in one pass.
    ///
    /// If the range has at most 512 values per column, the minimum and maximum of each column are
    /// exact. Otherwise, an extreme value near the border of a column may appear in the next
    /// column.
    ///
    /// # Errors
    /// Returns an error if the log cannot be read.
    pub fn parts<'o>(
        log: &dyn LogReader,
        overviews: impl IntoIterator<Item = &'o Self>,
        span: (i64, i64),
        width: usize,
        zero: i64,
    ) -> Result<Vec<Series>, ExportError> {
        let (mut parts, mut coarse, mut signals) = (Vec::new(), Vec::new(), Vec::new());
        for (number, overview) in overviews.into_iter().enumerate() {
            let mut series = overview.series.clone();
            if overview.is_sample || overview.pyramid.is_fine_enough(span, width) {
                series.points = overview.pyramid.reduce(span, width).points(zero);
            } else {
                coarse.push(number);
                signals.push(overview.signal.clone());
            }
            parts.push(series);
        }
        if signals.is_empty() {
            return Ok(parts);
        }
        for (number, read) in coarse.into_iter().zip(super::read(log, &signals, span, width, zero)?) {
            parts[number].points = read.map(|series| series.points).unwrap_or_default();
        }
        Ok(parts)
    }

    /// Returns the divisor for the labels of the value axis, and the unit with the prefix for this
    /// divisor, such as `mA`.
    pub fn prefixed(&self) -> (f64, Option<&str>) {
        (self.prefixed.0, self.prefixed.1.as_deref())
    }

    /// Returns the memory use of the overview in bytes.
    pub fn bytes(&self) -> usize {
        self.pyramid.levels.iter().map(|level| level.capacity() * size_of::<Summary>()).sum()
    }
}

impl Series {
    /// Returns whether the line has steps. In such a line, each value remains in effect until the
    /// next value.
    pub fn is_step(&self) -> bool {
        self.look != Look::Line
    }

    /// Returns whether the values are states, which are drawn as a lane instead of a line.
    pub fn is_lane(&self) -> bool {
        self.look == Look::Lane
    }

    /// Returns the values that have names, each with its name.
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
            assert!(all.is_fine_enough((0, 10_000_000), width));
            let points = all.reduce((0, 10_000_000), width).points(0);
            assert!(points.contains(&(6.54321e-3, 999.0)), "{width}");
            assert!(points.len() <= 4 * width && points.is_sorted_by(|a, b| a.0 <= b.0));
        }
        // The overview has less than one block per column, so such a time range must be read from
        // the log.
        assert!(!all.is_fine_enough((0, 100_000), 100));
    }

    #[test]
    fn a_gap_stays_a_gap() {
        let all = pyramid((0..100_000).map(|i| if i == 50_000 { f64::NAN } else { 1.0 }));
        let points = all.reduce((0, 999_990), 50).points(0);
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
                [u64::MAX, 64].map(|bytes| join_parts(in_parts(&*log, &signals, bytes).unwrap()));
            for (signal, (whole, parts)) in signals.iter().zip(whole.into_iter().zip(parts)) {
                let [whole, parts] = [whole, parts].map(|found| {
                    let mut pyramid = found.unwrap().1;
                    pyramid.finish();
                    let blocks = pyramid.levels[0].iter().copied().reduce(Summary::join);
                    (pyramid.count, format!("{blocks:?}"))
                });
                assert_eq!(parts, whole, "{name}: {signal:?}");
            }
        }
    }
}
