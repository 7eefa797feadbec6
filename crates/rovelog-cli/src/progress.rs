//! The progress bar on stderr. It is shown only on a terminal, and only if a command takes long.

use std::io::{self, IsTerminal as _, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rovelog::core::internal::parallel::lock;

use indicatif::{DecimalBytes, ProgressBar, ProgressStyle};

/// Time after which the progress bar appears.
const DELAY: Duration = Duration::from_millis(700);
/// Time between two updates of the progress bar.
const REFRESH: Duration = Duration::from_millis(100);

/// Progress of a command. The progress bar disappears when the command ends, or when it writes
/// results to the terminal.
#[derive(Clone, Default)]
pub(crate) struct Progress(Option<Arc<Shared>>);

/// State that the command and the thread that draws the progress bar share.
struct Shared {
    started: Instant,
    /// Total amount of work in bytes, or 0 if the amount is unknown.
    total: AtomicU64,
    /// Amount of finished work in bytes.
    done: AtomicU64,
    bar: Mutex<Bar>,
}

#[derive(Default)]
struct Bar {
    /// The progress bar on the terminal, and the total amount of work for which it was created.
    shown: Option<(ProgressBar, u64)>,
    /// True if the progress bar must not be shown again.
    has_ended: bool,
}

/// Guard of the progress bar. When it is dropped, the bar is removed, and the thread that draws the
/// bar is stopped.
pub(crate) struct Watcher {
    progress: Progress,
    /// The thread that draws the progress bar. `None` if no progress bar is shown.
    thread: Option<JoinHandle<()>>,
    /// Closing this channel stops the thread.
    stop: Option<Sender<()>>,
}

impl Progress {
    /// Starts the thread that draws the progress bar. Does nothing if stderr is not a terminal or
    /// `quiet` is true.
    pub(crate) fn watch(quiet: bool) -> (Self, Watcher) {
        if quiet || !io::stderr().is_terminal() {
            return (Self(None), Watcher { progress: Self(None), thread: None, stop: None });
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
        // If the thread cannot be started, the command runs without a progress bar.
        (progress.clone(), Watcher { progress, thread: thread.ok(), stop: Some(stop) })
    }

    /// Sets the amount of work to `total` bytes. `None` means that the amount is unknown.
    pub(crate) fn start(&self, total: Option<u64>) {
        if let Some(shared) = &self.0 {
            shared.total.store(total.unwrap_or(0), Relaxed);
            shared.done.store(0, Relaxed);
        }
    }

    /// Sets the number of bytes that are finished.
    pub(crate) fn at(&self, offset: u64) {
        if let Some(shared) = &self.0 {
            shared.done.store(offset, Relaxed);
        }
    }

    /// Wraps the writer `out`. Bytes written to it count as finished work.
    pub(crate) fn counting<W: Write>(&self, out: W) -> Counting<'_, W> {
        Counting { out, progress: self }
    }

    /// Removes the progress bar. It does not appear again in this process.
    pub(crate) fn end(&self) {
        if let Some(shared) = &self.0 {
            let mut bar = lock(&shared.bar);
            bar.has_ended = true;
            bar.clear();
        }
    }

    /// Hides the progress bar while `write` writes a line to stderr.
    pub(crate) fn above(&self, write: impl FnOnce()) {
        let Some(shared) = &self.0 else { return write() };
        let bar = lock(&shared.bar);
        match &bar.shown {
            Some((shown, _)) => shown.suspend(write),
            None => write(),
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.progress.end();
        // The thread waits for a message. Closing the channel wakes it, and it ends.
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A writer that adds the number of written bytes to the finished work.
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

/// Draws the progress bar at regular intervals until the command ends.
fn draw(shared: &Shared, stopped: &Receiver<()>) {
    let mut wait = DELAY;
    while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        wait = REFRESH;
        let mut bar = lock(&shared.bar);
        if bar.has_ended {
            return;
        }
        let total = shared.total.load(Relaxed);
        // If the total is known, a bar is shown, otherwise a spinner. The shown bar or spinner must
        // be replaced when the total changes.
        if bar.shown.as_ref().is_some_and(|(_, of)| *of != total) {
            bar.clear();
        }
        let (shown, _) = bar.shown.get_or_insert_with(|| (new_bar(total, shared.started), total));
        let done = shared.done.load(Relaxed);
        shown.set_position(done);
        // Only the spinner shows this message. A bar with a known total shows its own counters.
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
