//! The progress bar: on stderr, only on a terminal, and only for longer work.

use std::io::{self, IsTerminal as _, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{DecimalBytes, ProgressBar, ProgressStyle};

/// Time before the bar appears.
const PATIENCE: Duration = Duration::from_millis(700);
/// Time between two updates of the bar.
const REFRESH: Duration = Duration::from_millis(100);

/// Progress of a command. The bar appears when the command has taken a while, and disappears when
/// the command ends or writes to the same terminal.
#[derive(Clone, Default)]
pub(crate) struct Progress(Option<Arc<Shared>>);

struct Shared {
    started: Instant,
    /// Total amount of work; 0 if unknown.
    total: AtomicU64,
    done: AtomicU64,
    bar: Mutex<Bar>,
}

#[derive(Default)]
struct Bar {
    shown: Option<(ProgressBar, u64)>,
    over: bool,
}

/// Ends the bar when it is dropped.
pub(crate) struct Watcher(Progress, Option<(Sender<()>, JoinHandle<()>)>);

impl Progress {
    /// Starts the bar's thread if stderr is a terminal.
    pub(crate) fn watch(quiet: bool) -> (Self, Watcher) {
        if quiet || !io::stderr().is_terminal() {
            return (Self(None), Watcher(Self(None), None));
        }
        let shared = Arc::new(Shared {
            started: Instant::now(),
            total: AtomicU64::new(0),
            done: AtomicU64::new(0),
            bar: Mutex::default(),
        });
        let (stop, stopped) = channel();
        let drawn = Arc::clone(&shared);
        let thread = std::thread::Builder::new().spawn(move || draw(&drawn, &stopped));
        let progress = Self(Some(shared));
        // Without a thread there is no bar, and the command works all the same.
        (progress.clone(), Watcher(progress, thread.ok().map(|thread| (stop, thread))))
    }

    /// Starts work of this many bytes, or of an unknown amount.
    pub(crate) fn start(&self, total: Option<u64>) {
        if let Some(shared) = &self.0 {
            shared.total.store(total.unwrap_or(0), Relaxed);
            shared.done.store(0, Relaxed);
        }
    }

    /// Sets the current position to this byte.
    pub(crate) fn at(&self, offset: u64) {
        if let Some(shared) = &self.0 {
            shared.done.store(offset, Relaxed);
        }
    }

    /// Counts the bytes that are written to `out`.
    pub(crate) fn counting<W: Write>(&self, out: W) -> Counting<'_, W> {
        Counting { out, progress: self }
    }

    /// Removes the bar from the terminal for the rest of the run.
    pub(crate) fn end(&self) {
        if let Some(shared) = &self.0 {
            let mut bar = shared.bar.lock().unwrap_or_else(PoisonError::into_inner);
            bar.over = true;
            bar.clear();
        }
    }

    /// Writes a line above the bar.
    pub(crate) fn above(&self, write: impl FnOnce()) {
        let Some(shared) = &self.0 else { return write() };
        let bar = shared.bar.lock().unwrap_or_else(PoisonError::into_inner);
        match &bar.shown {
            Some((shown, _)) => shown.suspend(write),
            None => write(),
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.0.end();
        if let Some((stop, thread)) = self.1.take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}

/// An output whose bytes are counted.
pub(crate) struct Counting<'a, W> {
    out: W,
    progress: &'a Progress,
}

impl<W: Write> Write for Counting<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        if let Some(shared) = &self.progress.0 {
            shared.done.fetch_add(written as u64, Relaxed);
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Draws the bar until the command ends.
fn draw(shared: &Shared, stopped: &Receiver<()>) {
    let mut wait = PATIENCE;
    while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        wait = REFRESH;
        let mut bar = shared.bar.lock().unwrap_or_else(PoisonError::into_inner);
        if bar.over {
            return;
        }
        let total = shared.total.load(Relaxed);
        if bar.shown.as_ref().is_some_and(|(_, of)| *of != total) {
            bar.clear();
        }
        let (shown, _) = bar.shown.get_or_insert_with(|| (new_bar(total, shared.started), total));
        let done = shared.done.load(Relaxed);
        shown.set_position(done);
        if done > 0 {
            shown.set_message(format!("{}, ", DecimalBytes(done)));
        }
        shown.tick();
    }
}

impl Bar {
    fn clear(&mut self) {
        if let Some((bar, _)) = self.shown.take() {
            bar.finish_and_clear();
        }
    }
}

fn new_bar(total: u64, started: Instant) -> ProgressBar {
    let (bar, template) = match total {
        0 => (ProgressBar::new_spinner(), "{spinner} {msg}{elapsed}"),
        total => (ProgressBar::new(total), "{bar:30} {decimal_bytes} of {decimal_total_bytes}, {eta} left"),
    };
    let style = ProgressStyle::with_template(template);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())).with_elapsed(started.elapsed())
}
