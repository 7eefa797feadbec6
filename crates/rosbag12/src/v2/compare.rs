//! Comparison of a bag that was opened by its index with its chunks.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rovelog_core::{Error, ErrorKind, Ledger, LogReader as _};

use super::pass::Way;
use crate::reader::BagReader;
use crate::wire::INFO;

/// Results of comparing a bag with its index.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    /// Whether a chunk that was read contradicts the index.
    is_contradicted: AtomicBool,
    /// The bag with all that is in it, once that is asked for.
    pub(crate) whole: OnceLock<Box<BagReader>>,
    /// Losses in the chunks that were read, of a bag of which others were not.
    of_read: OnceLock<Ledger>,
}

impl Comparison {
    /// Notes that a chunk contradicts the index.
    pub(super) fn contradict(&self) {
        self.is_contradicted.store(true, Ordering::Relaxed);
    }
}

impl BagReader {
    /// Returns whether the bag was opened by its index.
    fn is_by_index(&self) -> bool {
        self.scanner.v2.as_ref().is_some_and(|state| state.is_by_index)
    }

    /// Returns the same bag with all that is in it read, if it was opened by its index.
    pub(crate) fn whole(&self) -> &Self {
        if !self.is_by_index() || !self.options.read.unread.is_empty() {
            return self;
        }
        self.comparison.whole.get_or_init(|| {
            let mut options = self.options.clone();
            options.read.read_all = true;
            // What was opened by its index starts with a version line.
            let mut whole = Self::new(self.bytes.clone(), &options).expect("a bag of V2.0");
            whole.compression = self.compression;
            Box::new(whole)
        })
    }

    /// Returns the losses that are known so far: those of the chunks if one of them contradicted the
    /// index or all were compared with it, else those that were known when the bag was opened.
    pub(crate) fn known_losses(&self) -> &Ledger {
        let Comparison { is_contradicted, whole, of_read } = &self.comparison;
        if is_contradicted.load(Ordering::Relaxed) || whole.get().is_some() || of_read.get().is_some() {
            self.compared_losses()
        } else {
            &self.info.lost
        }
    }

    /// Compares the index with all chunks that were read, and returns the losses.
    pub(crate) fn compared_losses(&self) -> &Ledger {
        if !self.is_by_index() || self.options.read.unread.is_empty() {
            return &self.whole().info.lost;
        }
        self.comparison.of_read.get_or_init(|| self.compare_chunks_read())
    }

    /// Returns an error for losses that were not known when the bag was opened by its index.
    pub(super) fn found_loss(&self) -> Option<Error> {
        let lost = self.losses();
        (*lost != self.info.lost).then(|| {
            let start = lost.ranges.first().map(|range| range.start);
            let why = format!("{lost}: the index of the bag names records that its chunks do not have");
            let next =
                "list the damage: rovelog check FILE; keep the intact records: rovelog recover FILE -o OUT";
            Error::new(INFO.id, ErrorKind::DataLost, start, why).with_next(next)
        })
    }

    fn compare_chunks_read(&self) -> Ledger {
        let chunks = &self.scanner.chunked().chunks;
        let plan = (0..chunks.len()).filter(|number| !chunks[*number].is_unread).collect();
        let (mut loader, mut way, mut lost) = (self.loader(plan), Way::default(), self.info.lost.clone());
        while let Some(loaded) = loader.load(chunks) {
            let chunk = &chunks[loaded.number];
            let mut messages = 0;
            way.visit(self, &loaded, |_| messages += 1);
            let missing = chunk.messages.saturating_sub(messages);
            if missing > 0 {
                let extent = &chunk.extent;
                let from = extent.kept_to(loaded.ending, loaded.used, messages);
                lost.losses += 1;
                lost.bytes += extent.end - from;
                lost.ranges.push(from..extent.end);
                lost.missing_records += missing;
            }
            loader.give_back(loaded);
        }
        lost
    }
}
