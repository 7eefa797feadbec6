//! Parallel processing whose results do not depend on the number of threads.
//!
//! - [`in_order`] processes independent items in parallel, and passes the results to the caller in
//!   the order of the items. For example, 4 threads compress 100 chunks, which are written in file
//!   order.
//! - [`lanes`] processes items that change a state. A lane is a state with a queue of items. Items
//!   of the same lane are processed one after the other, and different lanes are processed in
//!   parallel. For example, records are appended to columns. Each topic is a lane, and its state is
//!   its columns.
//!
//! - [`both`] calls two functions in parallel.
//!
//! In `in_order` and `lanes`, the caller's thread provides the items. When two items per thread are
//! unfinished, it stops providing items and processes items itself. Memory is therefore limited to
//! a few items and results, even if the input is large.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};

/// Number of threads that process one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jobs(NonZeroUsize);

impl Jobs {
    /// A single thread, which is the thread of the caller.
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

/// Locks a mutex. If another thread has panicked while it held the lock, the mutex is locked anyway.
/// The callers keep the data valid at all times.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls two functions, on two threads if `jobs` allows it. Returns their results.
pub fn both<A: Send, B>(jobs: Jobs, first: impl FnOnce() -> A + Send, second: impl FnOnce() -> B) -> (A, B) {
    if jobs == Jobs::ONE {
        return (first(), second());
    }
    let first = Mutex::new(Some(first));
    let run_first = || {
        let first = lock(&first).take();
        first.map(|first| first())
    };
    thread::scope(|scope| {
        // If the operating system cannot create a thread, this thread calls both functions.
        let thread = thread::Builder::new().spawn_scoped(scope, run_first);
        let second = second();
        let first = match thread.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(first)) => first,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => run_first(),
        };
        (first.expect("the function is called once"), second)
    })
}

/// Buffers that all threads can reuse. Reusing a buffer is faster than allocating one, because the
/// operating system zeroes new memory page by page.
#[derive(Debug, Default)]
pub struct BufferPool<T>(Mutex<Vec<T>>);

impl<T: Default> BufferPool<T> {
    /// Removes a buffer from the pool and returns it. Returns a new buffer if the pool is empty.
    pub fn take(&self) -> T {
        lock(&self.0).pop().unwrap_or_default()
    }

    /// Returns a buffer to the pool. The caller must have emptied the buffer.
    pub fn put(&self, buffer: T) {
        lock(&self.0).push(buffer);
    }
}

/// Maximum number of unfinished items per thread. One item is being processed, and one item waits.
const ITEMS_PER_THREAD: usize = 2;

/// Calls `work` for each item that `feed` pushes, and `take` for each result, in the order of the
/// items.
///
/// Each thread creates its own state by calling `state`. The caller's thread calls `feed` and
/// `take`. It also calls `work` when two items per thread are unfinished. The results do not depend
/// on the number of threads.
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
    let shared = ResultQueue::default();
    thread::scope(|scope| {
        // If `feed` or `take` panics in this thread, the other threads must still end.
        let close = || shared.close();
        let _close = OnDrop(close);
        spawn_workers(scope, jobs, close, || {
            let mut own = state();
            while let Some((number, item)) = shared.next() {
                let result = work(&mut own, item);
                shared.put(number, result);
            }
        });
        let (mut pushed, mut taken, has_failed) = (0u64, 0u64, Cell::new(false));
        let mut take = |result| take(result).inspect_err(|_| has_failed.set(true));
        // Passes finished results to `take`, then processes items in this thread until at most
        // `most` items are unfinished.
        let mut process_until = |pushed: u64, most: u64| {
            while let Some(result) = shared.result(taken) {
                taken += 1;
                take(result)?;
            }
            while pushed - taken > most {
                match shared.result_or_item(taken) {
                    NextStep::Work(number, item) => {
                        let result = work(&mut own, item);
                        shared.put(number, result);
                    }
                    NextStep::Take(result) => {
                        taken += 1;
                        take(result)?;
                    }
                    // If another thread has panicked, the thread scope propagates this panic when
                    // the scope ends.
                    NextStep::Broken => break,
                }
            }
            Ok(())
        };
        let result = feed(&mut |item| {
            lock(&shared.queue).waiting.push_back((pushed, item));
            shared.changed.notify_one();
            pushed += 1;
            process_until(pushed, (ITEMS_PER_THREAD * jobs.get()) as u64)
        });
        // If `feed` fails, the results of the items that it pushed before are still passed to
        // `take`. If `take` fails, no more results are passed to it.
        let rest = if has_failed.get() { Ok(()) } else { process_until(pushed, 0) };
        result.and(rest)
    })
}

/// Calls `work` for items that change a state. Each item belongs to a lane, which has its own
/// state.
///
/// `feed` pushes each item with the number of its lane. The items of a lane are processed one after
/// the other, in the order in which they were pushed. Different lanes are independent of each other
/// and are processed in parallel, so the result does not depend on the number of threads.
///
/// Returns the states of the lanes.
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
    let shared = LaneQueue {
        queue: Mutex::new(LaneQueueState {
            lanes: lanes.collect(),
            ready: VecDeque::new(),
            unfinished: 0,
            error: None,
            closed: false,
        }),
        changed: Condvar::new(),
    };
    thread::scope(|scope| {
        let close = || shared.close();
        let _close = OnDrop(close);
        spawn_workers(scope, jobs, close, || while shared.step(&work, |queue| queue.closed) {});
        feed(&mut |lane, item| {
            shared.push(lane, item);
            let most = ITEMS_PER_THREAD * jobs.get();
            while shared.step(&work, |queue| queue.unfinished <= most) {}
            lock(&shared.queue).error.take().map_or(Ok(()), Err)
        })?;
        while shared.step(&work, |queue| queue.unfinished == 0) {}
        lock(&shared.queue).error.take().map_or(Ok(()), Err)
    })?;
    let queue = shared.queue.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(queue.lanes.into_iter().filter_map(|lane| lane.state).collect())
}

/// Queue of items that the threads of [`lanes`] share.
struct LaneQueue<L, T, E> {
    /// State of the queue, protected by a lock.
    queue: Mutex<LaneQueueState<L, T, E>>,
    /// Notified when a lane becomes ready, an item is finished, or the queue is closed.
    changed: Condvar,
}

/// State of a [`LaneQueue`].
struct LaneQueueState<L, T, E> {
    /// All lanes, indexed by their numbers.
    lanes: Vec<Lane<L, T>>,
    /// Numbers of the lanes that have waiting items and of which no item is being processed.
    ready: VecDeque<usize>,
    /// Number of items that are waiting or being processed.
    unfinished: usize,
    /// First error that `work` returned.
    error: Option<E>,
    /// True if the threads must end.
    closed: bool,
}

/// A lane: a state, and the items that wait to change it.
struct Lane<L, T> {
    /// State of the lane. `None` while a thread processes an item of the lane.
    state: Option<L>,
    /// Waiting items in the order in which they were pushed.
    items: VecDeque<T>,
}

impl<L, T, E> LaneQueue<L, T, E> {
    /// Adds an item to a lane.
    fn push(&self, number: usize, item: T) {
        let mut queue = lock(&self.queue);
        let lane = &mut queue.lanes[number];
        lane.items.push_back(item);
        // If an item of the lane is being processed, the lane becomes ready again afterwards, in
        // `step`.
        let is_new = lane.state.is_some() && lane.items.len() == 1;
        queue.unfinished += 1;
        if is_new {
            queue.ready.push_back(number);
            self.changed.notify_one();
        }
    }

    /// Waits for a ready lane and processes one item. Returns false without waiting if `is_enough`
    /// returns true, if the queue is closed, or after an error.
    fn step(
        &self,
        work: impl Fn(&mut L, T) -> Result<(), E>,
        is_enough: impl Fn(&LaneQueueState<L, T, E>) -> bool,
    ) -> bool {
        let mut queue = lock(&self.queue);
        let (number, mut state, item) = loop {
            if is_enough(&queue) || queue.closed || queue.error.is_some() {
                return false;
            }
            if let Some(number) = queue.ready.pop_front() {
                let lane = &mut queue.lanes[number];
                if let (Some(state), Some(item)) = (lane.state.take(), lane.items.pop_front()) {
                    break (number, state, item);
                }
            } else {
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        };
        // The queue is unlocked while the item is processed.
        drop(queue);
        let result = work(&mut state, item);
        let mut queue = lock(&self.queue);
        queue.unfinished -= 1;
        let lane = &mut queue.lanes[number];
        lane.state = Some(state);
        if !lane.items.is_empty() {
            queue.ready.push_back(number);
        }
        if let Err(error) = result {
            // If several threads fail, the error that is stored first is returned. Which error this
            // is can depend on the timing of the threads.
            queue.error.get_or_insert(error);
        }
        self.changed.notify_all();
        true
    }

    /// Closes the queue, so that all threads end.
    fn close(&self) {
        lock(&self.queue).closed = true;
        self.changed.notify_all();
    }
}

/// Next step of the caller's thread in [`in_order`].
enum NextStep<T, R> {
    /// Process an item. The number is the position of the item in the input.
    Work(u64, T),
    /// Pass a result to the caller.
    Take(R),
    /// Stop, because another thread has panicked.
    Broken,
}

/// Queue of items and results that the threads of [`in_order`] share.
struct ResultQueue<T, R> {
    /// State of the queue, protected by a lock.
    queue: Mutex<Queue<T, R>>,
    /// Notified when an item or a result is added, or when the queue is closed.
    changed: Condvar,
}

/// State of a [`ResultQueue`].
struct Queue<T, R> {
    /// Items that wait for a thread, each with its number.
    waiting: VecDeque<(u64, T)>,
    /// Results that have not been passed to the caller yet, by item number.
    done: BTreeMap<u64, R>,
    /// True if the threads must end.
    closed: bool,
}

impl<T, R> Default for ResultQueue<T, R> {
    fn default() -> Self {
        let queue = Queue { waiting: VecDeque::new(), done: BTreeMap::new(), closed: false };
        Self { queue: Mutex::new(queue), changed: Condvar::new() }
    }
}

impl<T, R> ResultQueue<T, R> {
    /// Waits for an item and returns it. Returns `None` if the queue is closed.
    fn next(&self) -> Option<(u64, T)> {
        let mut queue = lock(&self.queue);
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

    /// Adds the result of the item with this number.
    fn put(&self, number: u64, result: R) {
        lock(&self.queue).done.insert(number, result);
        self.changed.notify_all();
    }

    /// Removes and returns the result of the item with this number, if it is finished.
    fn result(&self, number: u64) -> Option<R> {
        lock(&self.queue).done.remove(&number)
    }

    /// Waits until the item with this number is finished, and returns its result. If a different
    /// item is waiting for a thread meanwhile, that item is returned instead, so that this thread
    /// does not idle.
    fn result_or_item(&self, number: u64) -> NextStep<T, R> {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(result) = queue.done.remove(&number) {
                return NextStep::Take(result);
            }
            if queue.closed {
                return NextStep::Broken;
            }
            match queue.waiting.pop_front() {
                Some((number, item)) => return NextStep::Work(number, item),
                None => queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Closes the queue, so that all threads end.
    fn close(&self) {
        lock(&self.queue).closed = true;
        self.changed.notify_all();
    }
}

/// Starts the worker threads. If a worker panics, it calls `close`, so that no thread waits for its
/// result.
fn spawn_workers<'scope>(
    scope: &'scope Scope<'scope, '_>,
    jobs: Jobs,
    close: impl Fn() + Copy + Send + 'scope,
    run: impl Fn() + Copy + Send + 'scope,
) {
    for _ in 1..jobs.get() {
        // If the operating system cannot create a thread, the caller's thread does the work.
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

/// Runs a function at the end of a scope, even if the scope ends by a panic.
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

    /// In this test, later items are finished earlier. Their results must still come later, and the
    /// number of unfinished items must be limited.
    #[test]
    fn results_come_in_the_order_of_the_items() {
        for threads in [1, 2, 3, 8] {
            let (mut found, unfinished, most) = (Vec::new(), AtomicUsize::new(0), AtomicUsize::new(0));
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
                        let now = unfinished.fetch_add(1, Ordering::Relaxed) + 1;
                        most.fetch_max(now, Ordering::Relaxed);
                        push(item)?;
                    }
                    Ok::<_, ()>(())
                },
                |result| {
                    unfinished.fetch_sub(1, Ordering::Relaxed);
                    found.push(result);
                    Ok(())
                },
            )
            .unwrap();
            assert_eq!(found, (0..200).map(|item| item * item).collect::<Vec<u64>>(), "{threads} threads");
            assert!(most.into_inner() <= ITEMS_PER_THREAD * threads + 1);
        }
    }

    /// The items of a lane must be processed in the order in which they were pushed.
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
