//! The progress bar: on stderr, only when somebody watches, and only when it takes a while.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::context::Context;

/// A command that is done sooner shows no bar.
const PATIENCE: Duration = Duration::from_millis(500);
/// Records between two looks at the clock.
const STRIDE: u32 = 4096;

/// Progress by bytes of the log.
pub(crate) struct Progress {
    total: Option<u64>,
    started: Instant,
    bar: Option<ProgressBar>,
    wanted: bool,
    skipped: u32,
}

impl Progress {
    /// `total` is the size of the log, where that is known.
    pub(crate) fn new(context: &Context, total: Option<u64>) -> Self {
        // Results that scroll over the same terminal show progress enough.
        let watched = std::io::stderr().is_terminal() && !std::io::stdout().is_terminal();
        let wanted = watched && !context.global.quiet;
        Self { total, started: Instant::now(), bar: None, wanted, skipped: 0 }
    }

    /// Work has come to `offset`.
    pub(crate) fn at(&mut self, offset: u64) {
        if !self.wanted {
            return;
        }
        self.skipped += 1;
        if self.skipped < STRIDE {
            return;
        }
        self.skipped = 0;
        self.step(offset);
    }

    /// Work has come to `offset`, in a step large enough for a look at the clock.
    pub(crate) fn step(&mut self, offset: u64) {
        if !self.wanted || self.started.elapsed() < PATIENCE {
            return;
        }
        let bar = || bar(self.total).with_elapsed(self.started.elapsed());
        self.bar.get_or_insert_with(bar).set_position(offset);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(total: Option<u64>) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => {
            (ProgressBar::new(total), "{bar:30} {decimal_bytes} of {decimal_total_bytes}, {eta} left")
        }
        None => (ProgressBar::new_spinner(), "{spinner} {decimal_bytes}, {elapsed}"),
    };
    bar.with_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()))
}
