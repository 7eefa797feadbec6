//! Work on several processors, with results in the order of the items.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};

/// Number of threads that work on one output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jobs(NonZeroUsize);

impl Jobs {
    /// One thread: the caller's.
    pub const ONE: Self = Self(NonZeroUsize::MIN);

    /// Returns as many threads as there are processors.
    pub fn all() -> Self {
        Self(thread::available_parallelism().unwrap_or(NonZeroUsize::MIN))
    }

    /// Returns the number of threads.
    pub const fn get(self) -> usize {
        self.0.get()
    }
}

impl Default for Jobs {
    fn default() -> Self {
        Self::all()
    }
}

impl From<NonZeroUsize> for Jobs {
    fn from(threads: NonZeroUsize) -> Self {
        Self(threads)
    }
}

/// Buffers that were used before, for all threads: memory that is new costs more than writing to it.
#[derive(Debug, Default)]
pub struct Spare<T>(Mutex<Vec<T>>);

impl<T: Default> Spare<T> {
    /// Returns a buffer that was kept, or a new one.
    pub fn take(&self) -> T {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Keeps a buffer, which the caller has emptied.
    pub fn keep(&self, buffer: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
    }
}

/// Items in flight for each thread: one that is worked on, and one that waits.
const EACH: usize = 2;

/// Runs `work` on the items that `feed` pushes, and `take` on the results, in the order of the
/// items. Each of the threads has its own state from `state`; the caller's thread is one of them:
/// it feeds, takes, and works as soon as enough items wait. So only a few items and results are in
/// memory at any time, and the results do not depend on the number of threads.
///
/// # Errors
/// Returns the first error of `feed` or `take`.
pub fn in_order<T: Send, R: Send, S, E>(
    jobs: Jobs,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, T) -> R + Sync,
    feed: impl FnOnce(&mut dyn FnMut(T) -> Result<(), E>) -> Result<(), E>,
    mut take: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    let mut own = state();
    if jobs == Jobs::ONE {
        return feed(&mut |item| take(work(&mut own, item)));
    }
    let shared = Shared::default();
    thread::scope(|scope| {
        let close = || shared.close();
        let _close = OnDrop(close);
        others(scope, jobs, close, || {
            let mut own = state();
            while let Some((number, item)) = shared.next() {
                let result = work(&mut own, item);
                shared.put(number, result);
            }
        });
        let (mut pushed, mut taken, refused) = (0u64, 0u64, Cell::new(false));
        let mut take = |result| take(result).inspect_err(|_| refused.set(true));
        let mut advance = |pushed: u64, most: u64| {
            while let Some(result) = shared.result(taken) {
                taken += 1;
                take(result)?;
            }
            while pushed - taken > most {
                match shared.waiting_or(taken) {
                    Turn::Work(number, item) => {
                        let result = work(&mut own, item);
                        shared.put(number, result);
                    }
                    Turn::Take(result) => {
                        taken += 1;
                        take(result)?;
                    }
                    // The scope panics too.
                    Turn::Broken => break,
                }
            }
            Ok(())
        };
        let result = feed(&mut |item| {
            shared.lock().waiting.push_back((pushed, item));
            shared.changed.notify_one();
            pushed += 1;
            advance(pushed, (EACH * jobs.get()) as u64)
        });
        // What was pushed before an error is still taken.
        let rest = if refused.get() { Ok(()) } else { advance(pushed, 0) };
        result.and(rest)
    })
}

/// Runs `work` on items that change a state: each item belongs to one of the `lanes`, whose items
/// are worked on one after the other, in the order in which `feed` pushes them with the number of
/// their lane. Lanes are independent of each other, so that the result does not depend on the number
/// of threads. Returns the lanes.
///
/// # Errors
/// Returns the first error of `feed` or `work`.
pub fn lanes<L: Send, T: Send, E: Send>(
    jobs: Jobs,
    mut lanes: Vec<L>,
    work: impl Fn(&mut L, T) -> Result<(), E> + Sync,
    feed: impl FnOnce(&mut dyn FnMut(usize, T) -> Result<(), E>) -> Result<(), E>,
) -> Result<Vec<L>, E> {
    if jobs == Jobs::ONE {
        feed(&mut |lane, item| work(&mut lanes[lane], item))?;
        return Ok(lanes);
    }
    let lanes = lanes.into_iter().map(|state| Lane { state: Some(state), items: VecDeque::new() });
    let shared = Roads {
        queue: Mutex::new(Traffic {
            lanes: lanes.collect(),
            ready: VecDeque::new(),
            open: 0,
            error: None,
            closed: false,
        }),
        changed: Condvar::new(),
    };
    thread::scope(|scope| {
        let close = || shared.close();
        let _close = OnDrop(close);
        others(scope, jobs, close, || while shared.step(&work, |traffic| traffic.closed) {});
        feed(&mut |lane, item| {
            shared.push(lane, item);
            let most = EACH * jobs.get();
            while shared.step(&work, |traffic| traffic.open <= most) {}
            shared.lock().error.take().map_or(Ok(()), Err)
        })?;
        while shared.step(&work, |traffic| traffic.open == 0) {}
        shared.lock().error.take().map_or(Ok(()), Err)
    })?;
    let traffic = shared.queue.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(traffic.lanes.into_iter().filter_map(|lane| lane.state).collect())
}

struct Roads<L, T, E> {
    queue: Mutex<Traffic<L, T, E>>,
    changed: Condvar,
}

struct Traffic<L, T, E> {
    lanes: Vec<Lane<L, T>>,
    /// Lanes with items on which no thread works.
    ready: VecDeque<usize>,
    /// Number of items that are not done.
    open: usize,
    error: Option<E>,
    closed: bool,
}

struct Lane<L, T> {
    /// `None` while a thread works on it.
    state: Option<L>,
    items: VecDeque<T>,
}

impl<L, T, E> Roads<L, T, E> {
    fn lock(&self) -> MutexGuard<'_, Traffic<L, T, E>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, number: usize, item: T) {
        let mut traffic = self.lock();
        let lane = &mut traffic.lanes[number];
        lane.items.push_back(item);
        let is_new = lane.state.is_some() && lane.items.len() == 1;
        traffic.open += 1;
        if is_new {
            traffic.ready.push_back(number);
            self.changed.notify_one();
        }
    }

    /// Works on one item, once there is one. Returns whether there is more to do: `false` as soon as
    /// `is_enough`, or after an error.
    fn step(
        &self,
        work: impl Fn(&mut L, T) -> Result<(), E>,
        is_enough: impl Fn(&Traffic<L, T, E>) -> bool,
    ) -> bool {
        let mut traffic = self.lock();
        let (number, mut state, item) = loop {
            if is_enough(&traffic) || traffic.closed || traffic.error.is_some() {
                return false;
            }
            if let Some(number) = traffic.ready.pop_front() {
                let lane = &mut traffic.lanes[number];
                if let (Some(state), Some(item)) = (lane.state.take(), lane.items.pop_front()) {
                    break (number, state, item);
                }
            } else {
                traffic = self.changed.wait(traffic).unwrap_or_else(PoisonError::into_inner);
            }
        };
        drop(traffic);
        let result = work(&mut state, item);
        let mut traffic = self.lock();
        traffic.open -= 1;
        let lane = &mut traffic.lanes[number];
        lane.state = Some(state);
        if !lane.items.is_empty() {
            traffic.ready.push_back(number);
        }
        if let Err(error) = result {
            traffic.error.get_or_insert(error);
        }
        self.changed.notify_all();
        true
    }

    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

/// Next step of the caller's thread.
enum Turn<T, R> {
    Work(u64, T),
    Take(R),
    Broken,
}

struct Shared<T, R> {
    queue: Mutex<Queue<T, R>>,
    changed: Condvar,
}

struct Queue<T, R> {
    waiting: VecDeque<(u64, T)>,
    done: BTreeMap<u64, R>,
    closed: bool,
}

impl<T, R> Default for Shared<T, R> {
    fn default() -> Self {
        let queue = Queue { waiting: VecDeque::new(), done: BTreeMap::new(), closed: false };
        Self { queue: Mutex::new(queue), changed: Condvar::new() }
    }
}

impl<T, R> Shared<T, R> {
    fn lock(&self) -> MutexGuard<'_, Queue<T, R>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the next item, once there is one; `None` at the end.
    fn next(&self) -> Option<(u64, T)> {
        let mut queue = self.lock();
        loop {
            if queue.closed {
                return None;
            }
            match queue.waiting.pop_front() {
                Some(item) => return Some(item),
                None => queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn put(&self, number: u64, result: R) {
        self.lock().done.insert(number, result);
        self.changed.notify_all();
    }

    /// Returns a result if it is there.
    fn result(&self, number: u64) -> Option<R> {
        self.lock().done.remove(&number)
    }

    /// Returns a result; before it is there, an item that waits.
    fn waiting_or(&self, number: u64) -> Turn<T, R> {
        let mut queue = self.lock();
        loop {
            if let Some(result) = queue.done.remove(&number) {
                return Turn::Take(result);
            }
            if queue.closed {
                return Turn::Broken;
            }
            match queue.waiting.pop_front() {
                Some((number, item)) => return Turn::Work(number, item),
                None => queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

/// Starts the threads next to the caller's. A thread that panics calls `close`.
fn others<'scope>(
    scope: &'scope Scope<'scope, '_>,
    jobs: Jobs,
    close: impl Fn() + Copy + Send + 'scope,
    run: impl Fn() + Copy + Send + 'scope,
) {
    for _ in 1..jobs.get() {
        // Without another thread, the caller's does the work.
        let _ = thread::Builder::new().spawn_scoped(scope, move || {
            let _close = OnDrop(|| {
                if thread::panicking() {
                    close();
                }
            });
            run();
        });
    }
}

/// Runs something at the end of a block, also when it panics: ends other threads, so that no thread
/// waits for a result that never comes.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn jobs(n: usize) -> Jobs {
        Jobs::from(NonZeroUsize::new(n).unwrap())
    }

    /// Later items are done earlier, and still come later; few are in flight.
    #[test]
    fn results_come_in_the_order_of_the_items() {
        for threads in [1, 2, 3, 8] {
            let (mut found, open, most) = (Vec::new(), AtomicUsize::new(0), AtomicUsize::new(0));
            let work = |count: &mut u64, item: u64| {
                *count += 1;
                thread::sleep(std::time::Duration::from_micros(300 - 3 * (item % 100)));
                item * item
            };
            in_order(
                jobs(threads),
                || 0u64,
                work,
                |push| {
                    for item in 0..200 {
                        let now = open.fetch_add(1, Ordering::Relaxed) + 1;
                        most.fetch_max(now, Ordering::Relaxed);
                        push(item)?;
                    }
                    Ok::<_, ()>(())
                },
                |result| {
                    open.fetch_sub(1, Ordering::Relaxed);
                    found.push(result);
                    Ok(())
                },
            )
            .unwrap();
            assert_eq!(found, (0..200).map(|item| item * item).collect::<Vec<u64>>(), "{threads} threads");
            assert!(most.into_inner() <= EACH * threads + 1);
        }
    }

    /// Items of a lane come in their order, and different lanes at the same time.
    #[test]
    fn lanes_keep_the_order_of_their_items() {
        for threads in [1, 2, 3, 8] {
            let work = |lane: &mut Vec<u64>, item: u64| {
                thread::sleep(std::time::Duration::from_micros(item % 7 * 30));
                lane.push(item);
                Ok::<_, ()>(())
            };
            let feed = |push: &mut dyn FnMut(usize, u64) -> Result<(), ()>| {
                (0..500u64).try_for_each(|item| push(usize::try_from(item * item % 5).unwrap(), item))
            };
            let done = lanes(jobs(threads), vec![Vec::new(); 5], work, feed).unwrap();
            for (lane, items) in (0..).zip(&done) {
                let want: Vec<u64> = (0..500).filter(|item| item * item % 5 == lane).collect();
                assert_eq!(*items, want, "{threads} threads");
            }
        }
    }

    #[test]
    fn an_error_in_a_lane_ends_the_work() {
        for threads in [1, 2, 4] {
            let feed = |push: &mut dyn FnMut(usize, u32) -> Result<(), u32>| {
                (0..).try_for_each(|item: u32| push(item as usize % 3, item))
            };
            let work = |(): &mut (), item: u32| if item == 40 { Err(item) } else { Ok(()) };
            assert_eq!(lanes(jobs(threads), vec![(); 3], work, feed), Err(40));
        }
    }

    #[test]
    fn the_first_error_ends_the_work() {
        for threads in [1, 2, 4] {
            let feed = |push: &mut dyn FnMut(u32) -> Result<(), u32>| (0..).try_for_each(push);
            let take = |result: u32| if result == 7 { Err(result) } else { Ok(()) };
            assert_eq!(in_order(jobs(threads), || (), |(), item| item, feed, take), Err(7));
            let feed = |push: &mut dyn FnMut(u32) -> Result<(), u32>| push(1).and(Err(9));
            assert_eq!(in_order(jobs(threads), || (), |(), item| item, feed, |_| Ok(())), Err(9));
        }
    }

    #[test]
    fn a_panic_ends_the_work() {
        let run = || {
            let feed = |push: &mut dyn FnMut(u32) -> Result<(), ()>| (0..1000).try_for_each(push);
            let work = |(): &mut (), item: u32| assert_ne!(item, 50);
            in_order(jobs(3), || (), work, feed, |()| Ok(()))
        };
        assert!(std::panic::catch_unwind(run).is_err());
    }
}
