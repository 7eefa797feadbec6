//! Iteration over the records of a log in time order, with bounded memory.
//!
//! The records of a log may be stored in any order. Sorting the positions of all records would need
//! memory that grows with the file. [`InOrder`] therefore sorts one batch of positions after the
//! other:
//!
//! 1. It sorts the blocks of the file by the first time in each block.
//! 2. It visits the blocks in this order, and collects their positions. All positions before the
//!    first time of the next block are complete. They are sorted and returned as a batch. The other
//!    positions are kept for the next batch.
//! 3. If the blocks overlap so much that it has collected twice the batch size, it keeps the
//!    smaller half. The largest position that remains is the bound. From then on, it only collects
//!    positions below the bound. When the next block starts after the bound, the batch is complete.
//!    The next batch visits the blocks again, and collects the positions that come after this batch.
//!
//! For example, block A has the times 1, 4, 2, and block B has the times 3, 6, 5.
//!
//! - If the batch size is 100, batch 1 collects 1, 4, 2. Block B starts at 3, so the batch is 1, 2.
//!   Batch 2 adds 3, 6, 5. No block follows, so the batch is 3, 4, 5, 6.
//! - If the batch size is 1, batch 1 has collected twice the batch size at 1, 4. Only 1 remains, and
//!   is the bound. Batch 2 visits block A again, and so on.
//!
//! If a log is almost in order, it is read once. A log in random order is read once per batch, but
//! does not need more memory.

use std::collections::BTreeMap;
use std::iter::Chain;
use std::ops::{Range, RangeInclusive};
use std::vec::IntoIter;

use crate::{Select, Topic};

/// Number of positions in a batch of blocks that overlap. They take 4 MiB. Up to twice as many
/// positions are collected at a time.
const BATCH_LEN: usize = 1 << 17;

/// Maximum number of positions in memory at a time.
pub(crate) const MAX_PLACES: usize = 2 * BATCH_LEN;

/// Position of a record, in time and in the file. Positions are ordered by time. Positions with the
/// same time are ordered by offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Time of the record in nanoseconds of the log's clock.
    pub time: i64,
    /// Offset of the record's first byte.
    pub offset: u64,
    /// Index of the record's topic.
    pub topic: u32,
    /// Number of the record within its topic, in file order, starting with 0.
    pub seq: u64,
}

impl Place {
    /// Returns the part of the position that determines its order.
    fn key(&self) -> SortKey {
        (self.time, self.offset)
    }
}

/// The blocks of a log. Each block is a part of the log whose records can be visited separately.
pub trait Blocks {
    /// Returns the earliest and the latest time in a block, or `None` if the block has no records.
    fn span(&self, block: usize) -> Option<RangeInclusive<i64>>;

    /// Returns the byte range of the file that a block occupies. The default implementation returns
    /// all possible offsets. It is for formats in which the byte ranges of blocks are unknown.
    fn offsets(&self, _block: usize) -> Range<u64> {
        0..u64::MAX
    }

    /// Returns the number of blocks.
    fn count(&self) -> usize;

    /// Calls `visit` with the position of each record in a block, in file order.
    fn visit(&self, block: usize, visit: impl FnMut(Place));
}

/// The blocks of a log, restricted to the records in the time window of a selection.
#[derive(Debug)]
pub struct Within<B> {
    /// Blocks of the whole log.
    blocks: B,
    /// Selection that contains the time window.
    select: Select,
}

impl<B: Blocks> Blocks for Within<B> {
    fn span(&self, block: usize) -> Option<RangeInclusive<i64>> {
        self.blocks.span(block).filter(|span| self.select.keeps_span(*span.start(), *span.end()))
    }

    fn offsets(&self, block: usize) -> Range<u64> {
        self.blocks.offsets(block)
    }

    fn count(&self) -> usize {
        self.blocks.count()
    }

    fn visit(&self, block: usize, mut visit: impl FnMut(Place)) {
        self.blocks.visit(block, |place| {
            if self.select.keeps_time(place.time) {
                visit(place);
            }
        });
    }
}

/// The iterator that [`selected`] returns.
pub type Selected<B> = Chain<IntoIter<Place>, InOrder<Within<B>>>;

/// Returns the positions of the selected records in a log with `topics`.
///
/// If `select` requests the last record of a topic before the time window, the position of this
/// record is returned first. The positions in the time window follow. Both groups are in time
/// order.
///
/// `of` is called with a flag for each topic. It returns blocks that only visit records of the
/// topics whose flag is true.
pub fn selected<B: Blocks>(topics: &[Topic], select: &Select, of: impl Fn(Vec<bool>) -> B) -> Selected<B> {
    // The last records before the time window may be anywhere before it, so they are searched in a
    // separate pass.
    let last = match select.start {
        Some(start) if select.last_before => {
            let wanted = topics.iter().map(|topic| select.keeps_last_before(topic)).collect();
            last_before(&of(wanted), start)
        }
        _ => Vec::new(),
    };
    let wanted = topics.iter().map(|topic| select.keeps_topic(topic)).collect();
    let within = Within { blocks: of(wanted), select: select.clone() };
    last.into_iter().chain(InOrder::new(within))
}

/// Returns the position of each topic's last record before `start`, in time order.
fn last_before(blocks: &impl Blocks, start: i64) -> Vec<Place> {
    let mut last: BTreeMap<u32, Place> = BTreeMap::new();
    for block in 0..blocks.count() {
        if blocks.span(block).is_some_and(|span| *span.start() < start) {
            blocks.visit(block, |place| {
                if place.time < start {
                    let known = last.entry(place.topic).or_insert(place);
                    *known = place.max(*known);
                }
            });
        }
    }
    let mut places: Vec<_> = last.into_values().collect();
    places.sort_unstable();
    places
}

/// Time and offset of a record, which determine its place in the order.
type SortKey = (i64, u64);

/// Lowest and highest sort key in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct BlockSpan {
    first: SortKey,
    last: SortKey,
    /// Index of the block.
    block: usize,
}

/// Iterator over positions in time order. See the [module documentation](self) for the algorithm.
#[derive(Debug)]
pub struct InOrder<B> {
    /// Blocks of the log that are visited.
    blocks: B,
    /// Blocks that have records, in ascending order.
    order: Vec<BlockSpan>,
    /// Number of entries in `order` that are visited already. The collected positions contain all
    /// remaining positions of their blocks.
    visited: usize,
    /// Positions that have been collected. The first `sorted` positions are the current batch.
    places: Vec<Place>,
    /// Number of positions in the current batch.
    sorted: usize,
    /// Number of positions in the current batch that have been returned.
    returned: usize,
    /// Maximum number of positions in a batch of blocks that overlap.
    batch_len: usize,
}

impl<B: Blocks> InOrder<B> {
    /// Returns an iterator over all positions in `blocks`.
    pub fn new(blocks: B) -> Self {
        Self::with_batch_len(blocks, BATCH_LEN)
    }

    /// Implements [`new`](Self::new). Tests call this function with small batch sizes.
    fn with_batch_len(blocks: B, batch_len: usize) -> Self {
        let span = |block: usize| {
            let (span, bytes) = (blocks.span(block)?, blocks.offsets(block));
            let (first, last) = ((*span.start(), bytes.start), (*span.end(), bytes.end));
            Some(BlockSpan { first, last, block })
        };
        let mut order: Vec<BlockSpan> = (0..blocks.count()).filter_map(span).collect();
        order.sort_unstable();
        Self { blocks, order, visited: 0, places: Vec::new(), sorted: 0, returned: 0, batch_len }
    }

    /// Collects and sorts the positions of the next batch.
    fn refill(&mut self) {
        let (places, batch_len) = (&mut self.places, self.batch_len);
        let previous = self.sorted.checked_sub(1).map(|last| places[last]);
        places.drain(..self.sorted);
        let retained = places.len();
        let mut lowest = places.first().copied();
        // The largest position of the batch, if blocks overlap so much that it is limited.
        let mut bound: Option<Place> = None;
        let mut end = None;
        while let Some(&BlockSpan { first, last, block }) = self.order.get(self.visited) {
            // Positions before the start of the next blocks are complete. Each batch at least
            // doubles the retained positions, so that they are not sorted again for each block.
            let is_complete = match bound {
                Some(bound) => bound.key() < first,
                None => places.len() >= 2 * retained && lowest.is_some_and(|lowest| lowest.key() < first),
            };
            if is_complete {
                end = Some(first);
                break;
            }
            self.visited += 1;
            if previous.is_some_and(|previous| last < previous.key()) {
                // All records of the block were returned by earlier batches.
                continue;
            }
            self.blocks.visit(block, |place| {
                if Some(place) > previous && bound.is_none_or(|bound| place < bound) {
                    places.push(place);
                    lowest = lowest.map_or(Some(place), |lowest| Some(lowest.min(place)));
                    if places.len() == 2 * batch_len {
                        // `select_nth_unstable` takes linear time. Sorting the positions here would
                        // repeat work each time that the batch is full.
                        let (_, middle, _) = places.select_nth_unstable(batch_len - 1);
                        bound = Some(*middle);
                        places.truncate(batch_len);
                    }
                }
            });
        }
        sort(places);
        (self.sorted, self.returned) = (places.len(), 0);
        if bound.is_some() {
            // Positions after the bound were not kept, so the blocks are visited again.
            self.visited = 0;
        } else if let Some(end) = end {
            self.sorted = places.partition_point(|place| place.key() < end);
        }
    }
}

/// Sorts positions that are almost in order, with few comparisons: only the parts of two sorted
/// halves that overlap are merged.
fn sort(places: &mut [Place]) {
    // Larger slices do not fit into the first cache of a processor.
    if places.len() <= 512 {
        // No two positions are equal, so an unstable sort gives the same result as a stable sort.
        return places.sort_unstable();
    }
    let middle = places.len() / 2;
    let (low, high) = places.split_at_mut(middle);
    sort(low);
    sort(high);
    let start = low.partition_point(|place| *place < high[0]);
    let end = high.partition_point(|place| *place < low[middle - 1]);
    // The stable sort detects the two sorted runs and merges them.
    places[start..middle + end].sort();
}

impl<B: Blocks> Iterator for InOrder<B> {
    type Item = Place;

    fn next(&mut self) -> Option<Place> {
        while self.returned == self.sorted {
            if self.visited == self.order.len() && self.sorted == self.places.len() {
                return None;
            }
            self.refill();
        }
        self.returned += 1;
        Some(self.places[self.returned - 1])
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::TopicId;

    struct Times(Vec<Vec<i64>>);

    impl Blocks for Times {
        fn span(&self, block: usize) -> Option<RangeInclusive<i64>> {
            let times = &self.0[block];
            Some(*times.iter().min()?..=*times.iter().max()?)
        }

        fn count(&self) -> usize {
            self.0.len()
        }

        fn visit(&self, block: usize, mut visit: impl FnMut(Place)) {
            for (i, time) in self.0[block].iter().enumerate() {
                visit(Place { time: *time, offset: (block * 1000 + i) as u64, topic: 0, seq: 0 });
            }
        }
    }

    /// Blocks of 100 bytes that count how often each block is visited.
    struct Visited(Times, RefCell<Vec<u32>>);

    impl Blocks for Visited {
        fn span(&self, block: usize) -> Option<RangeInclusive<i64>> {
            self.0.span(block)
        }

        fn offsets(&self, block: usize) -> Range<u64> {
            let start = 1000 * block as u64;
            start..start + 100
        }

        fn count(&self) -> usize {
            self.0.count()
        }

        fn visit(&self, block: usize, visit: impl FnMut(Place)) {
            self.1.borrow_mut()[block] += 1;
            self.0.visit(block, visit);
        }
    }

    #[test]
    fn blocks_outside_of_a_batch_are_not_visited() {
        let times: Vec<_> = (0..4).map(|block| (0..6).map(|i| 6 * block + i).collect()).collect();
        // Blocks that do not overlap are visited once. If a batch is only half as long as a block,
        // each block is visited a second time for its other positions.
        for (batch_len, visits) in [(100, 1), (3, 2)] {
            let blocks = Visited(Times(times.clone()), RefCell::new(vec![0; 4]));
            let mut all = InOrder::with_batch_len(blocks, batch_len);
            let got: Vec<_> = all.by_ref().map(|place| place.time).collect();
            assert_eq!(got, (0..24).collect::<Vec<_>>());
            assert_eq!(*all.blocks.1.borrow(), [visits; 4], "a batch length of {batch_len}");
        }
    }

    /// For any order of the records and any batch size, the result must equal the sorted list of
    /// all positions.
    #[test]
    fn batches_equal_a_sort_of_all_positions() {
        let mut state = 1u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        for batch_len in [1, 2, 7, 64, 5000] {
            let blocks: Vec<Vec<i64>> = (0..20u64)
                .map(|block| {
                    (0..random() % 60)
                        .map(|i| i64::try_from(block * 10 + i % 7 + random() % 40).unwrap())
                        .collect()
                })
                .collect();
            let mut want = Vec::new();
            let all = Times(blocks.clone());
            for block in 0..all.count() {
                all.visit(block, |place| want.push(place));
            }
            want.sort_unstable();
            let got: Vec<_> = InOrder::with_batch_len(Times(blocks), batch_len).collect();
            assert_eq!(got, want, "a batch length of {batch_len}");
        }
    }

    /// Blocks of (time, topic) pairs. The flags state which topics are visited.
    struct Wanted(Vec<Vec<(i64, u32)>>, Vec<bool>);

    impl Blocks for Wanted {
        fn span(&self, block: usize) -> Option<RangeInclusive<i64>> {
            let times = || self.0[block].iter().map(|(time, _)| *time);
            Some(times().min()?..=times().max()?)
        }

        fn offsets(&self, block: usize) -> Range<u64> {
            let start = 10 * block as u64;
            start..start + 10
        }

        fn count(&self) -> usize {
            self.0.len()
        }

        fn visit(&self, block: usize, mut visit: impl FnMut(Place)) {
            for ((time, topic), offset) in self.0[block].iter().zip(self.offsets(block)) {
                if self.1[*topic as usize] {
                    visit(Place { time: *time, offset, topic: *topic, seq: 0 });
                }
            }
        }
    }

    #[test]
    fn a_selection_has_its_window_and_the_last_records_before() {
        let topics: Vec<_> = ["a", "b", "c"]
            .into_iter()
            .zip(0..)
            .map(|(name, id)| Topic::new(TopicId(id), name.to_owned(), name.to_owned(), None))
            .collect();
        let blocks = [
            vec![(1, 0), (4, 1), (3, 0), (2, 0)],
            vec![(9, 2), (10, 1), (12, 0), (30, 0)],
            vec![(10, 0), (19, 1), (20, 2)],
            vec![(30, 1), (31, 1)],
        ];
        let places = |select: &Select| -> Vec<_> {
            let of = |wanted| Wanted(blocks.to_vec(), wanted);
            selected(&topics, select, of).map(|place| (place.time, place.topic)).collect()
        };
        let window = Select::all().between(Some(10), Some(20));
        let within = [(10, 1), (10, 0), (12, 0), (19, 1)];
        assert_eq!(places(&window), within);
        let before = [(3, 0), (4, 1), (9, 2)];
        assert_eq!(places(&window.clone().with_last_before()), [&before[..], &within].concat());
        assert_eq!(places(&window.with_last_before_of(["b"])), [&before[1..2], &within].concat());
        let of_a = Select::topic("a").between(Some(10), None).with_last_before();
        assert_eq!(places(&of_a), [(3, 0), (10, 0), (12, 0), (30, 0)]);
        // A block outside of the time window has no time span, so it is not visited.
        let within = Within { blocks: Wanted(blocks.to_vec(), vec![true; 3]), select: of_a };
        assert_eq!((within.span(0), within.span(1), within.offsets(1)), (None, Some(9..=30), 10..20));
    }
}
