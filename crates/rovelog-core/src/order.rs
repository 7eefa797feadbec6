//! Records in time order, in bounded memory, whatever their order in the file.
//!
//! A reader notes for each block of its file the span of times in it. [`InOrder`] then takes, again
//! and again, the next hundred thousand places in the order of (time, offset) from those blocks
//! alone that can hold them: nearly one pass over a log that is nearly in order, and no more memory
//! for any other.

use std::collections::BTreeMap;
use std::iter::Chain;
use std::ops::{Range, RangeInclusive};
use std::vec::IntoIter;

use crate::{Select, Topic};

/// Places kept at once: 4 MiB of them, and less than twice that.
const KEPT: usize = 1 << 17;

/// Where a record is in the order and in the file. Ordered by time, then offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The time by which it is ordered, nanoseconds of the log's clock.
    pub time: i64,
    /// The offset of its first byte.
    pub offset: u64,
    /// Its topic.
    pub topic: u32,
    /// Its number within the topic, in file order.
    pub seq: u64,
}

/// A log that can be scanned block by block.
pub trait Blocks {
    /// Returns the times within each block, by which its records are ordered; `None` for a block
    /// without any.
    fn span(&self, block: usize) -> Option<RangeInclusive<i64>>;

    /// Returns the bytes of the file that a block is made of.
    fn offsets(&self, _block: usize) -> Range<u64> {
        0..u64::MAX
    }

    /// Returns the number of blocks.
    fn count(&self) -> usize;

    /// Visits the records of a block in file order.
    fn visit(&self, block: usize, visit: impl FnMut(Place));
}

/// Of some blocks what is in the window of a selection.
#[derive(Debug)]
pub struct Within<B> {
    blocks: B,
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

/// What [`selected`] gives: the last places before the window, then those in the window.
pub type Selected<B> = Chain<IntoIter<Place>, InOrder<Within<B>>>;

/// Returns the places that `select` keeps of a log with `topics`: the last one before the window of
/// each topic for which `select` asks for it, then all within the window, both in time order. `of`
/// returns the blocks with the places of the marked topics, and no other.
pub fn selected<B: Blocks>(topics: &[Topic], select: &Select, of: impl Fn(Vec<bool>) -> B) -> Selected<B> {
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

/// Returns the last place of each topic before `start`, in time order.
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

/// A time and an offset: what records are ordered by.
type Moment = (i64, u64);

/// An iterator over places in the order of (time, offset).
#[derive(Debug)]
pub struct InOrder<B> {
    blocks: B,
    /// Blocks that hold anything, by the first time and offset: these, the last ones, and the
    /// block.
    order: Vec<(Moment, Moment, usize)>,
    ready: IntoIter<Place>,
    last: Option<Place>,
    kept: usize,
    done: bool,
}

impl<B: Blocks> InOrder<B> {
    /// Returns all places of `blocks`.
    pub fn new(blocks: B) -> Self {
        Self::keeping(blocks, KEPT)
    }

    fn keeping(blocks: B, kept: usize) -> Self {
        let mut order: Vec<_> = (0..blocks.count())
            .filter_map(|block| {
                let (span, bytes) = (blocks.span(block)?, blocks.offsets(block));
                Some(((*span.start(), bytes.start), (*span.end(), bytes.end), block))
            })
            .collect();
        order.sort_unstable();
        Self { blocks, order, ready: Vec::new().into_iter(), last: None, kept, done: false }
    }

    fn refill(&mut self) {
        let (after, kept) = (self.last, self.kept);
        let mut found: Vec<Place> = Vec::new();
        // The largest place worth keeping, once there are enough.
        let mut bound: Option<Place> = None;
        for &(first, last, block) in &self.order {
            if after.is_some_and(|after| last < (after.time, after.offset)) {
                continue;
            }
            if bound.is_some_and(|bound| first > (bound.time, bound.offset)) {
                break;
            }
            self.blocks.visit(block, |place| {
                if Some(place) > after && bound.is_none_or(|bound| place < bound) {
                    found.push(place);
                    if found.len() == 2 * kept {
                        bound = Some(*found.select_nth_unstable(kept - 1).1);
                        found.truncate(kept);
                    }
                }
            });
        }
        // All places up to the bound were found.
        self.done = bound.is_none();
        found.sort_unstable();
        self.last = found.last().copied();
        self.ready = found.into_iter();
    }
}

impl<B: Blocks> Iterator for InOrder<B> {
    type Item = Place;

    fn next(&mut self) -> Option<Place> {
        loop {
            if let Some(place) = self.ready.next() {
                return Some(place);
            }
            if self.done {
                return None;
            }
            self.refill();
        }
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

    /// Blocks of 100 bytes that count how often they are visited.
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
    fn blocks_that_hold_nothing_of_the_next_places_are_not_visited() {
        let times = (0..4).map(|block| (0..6).map(|i| 6 * block + i).collect()).collect();
        let blocks = Visited(Times(times), RefCell::new(vec![0; 4]));
        let mut all = InOrder::keeping(blocks, 3);
        let got: Vec<_> = all.by_ref().map(|place| place.time).collect();
        assert_eq!(got, (0..24).collect::<Vec<_>>());
        // Three of six places at once: twice each block, once for the places behind those of the
        // block before it, and once because its last bytes may have a place of the last time.
        assert_eq!(*all.blocks.1.borrow(), [3, 4, 4, 3]);
    }

    /// Any disorder, any amount kept: the same as sorting everything.
    #[test]
    fn equals_a_sort() {
        let mut state = 1u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        for kept in [1, 2, 7, 64, 5000] {
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
            let got: Vec<_> = InOrder::keeping(Times(blocks), kept).collect();
            assert_eq!(got, want, "keeping {kept}");
        }
    }

    /// Blocks of (time, topic), of the topics that are wanted.
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
    fn a_window_has_its_places_and_the_last_ones_before_it() {
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
        // A block before the window is not visited.
        let within = Within { blocks: Wanted(blocks.to_vec(), vec![true; 3]), select: of_a };
        assert_eq!((within.span(0), within.span(1), within.offsets(1)), (None, Some(9..=30), 10..20));
    }
}
