//! Compares a bag that was opened by its index with the content of its chunks.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rovelog_core::{Error, ErrorKind, Ledger, LogReader as _};

use super::chunks::ChunkScan;
use crate::reader::BagReader;
use crate::wire::INFO;

/// Results of comparing a bag with its index. Chunks of a bag that was opened by its index are
/// compared while they are read.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    /// True if any chunk that was read does not match the index.
    has_mismatch: AtomicBool,
    /// Losses in the chunks. Set after all fetched chunks have been compared with the index.
    pub(crate) losses: OnceLock<Ledger>,
}

impl Comparison {
    /// Stores that a chunk does not match the index, so that the losses are computed again.
    pub(super) fn report_mismatch(&self) {
        // The flag does not protect other data, so relaxed ordering is enough.
        self.has_mismatch.store(true, Ordering::Relaxed);
    }
}

impl BagReader {
    /// Opens the same bag again and scans all chunks. Returns `None` if the chunks were already
    /// scanned at opening, if some chunks were not fetched, or if the file has changed.
    pub(crate) fn scanned(&self) -> Option<Box<Self>> {
        if !self.scanner.content.is_by_index || !self.options.read.unread.is_empty() {
            return None;
        }
        let mut options = self.options.clone();
        options.read.read_all = true;
        let mut scanned = Self::new(self.bytes.clone(), &options).ok()?;
        scanned.compression = self.compression;
        self.comparison.losses.get_or_init(|| scanned.info.lost.clone());
        Some(Box::new(scanned))
    }

    /// Returns the losses known so far. After a comparison of the chunks with the index, or after a
    /// chunk that did not match the index, these are the losses in the chunks. Before that, these
    /// are the losses found at opening.
    pub(crate) fn current_losses(&self) -> &Ledger {
        let Comparison { has_mismatch, losses } = &self.comparison;
        let is_compared = has_mismatch.load(Ordering::Relaxed) || losses.get().is_some();
        if is_compared { self.compared_losses() } else { &self.info.lost }
    }

    /// Compares all fetched chunks with the index, and returns the losses in the chunks.
    pub(crate) fn compared_losses(&self) -> &Ledger {
        let losses = &self.comparison.losses;
        if !self.scanner.content.is_by_index {
            return &self.info.lost;
        }
        if !self.options.read.unread.is_empty() {
            return losses.get_or_init(|| self.compare_chunks_read());
        }
        // Scanning the bag also sets `losses`.
        if losses.get().is_none() {
            self.scanned();
        }
        losses.get().unwrap_or(&self.info.lost)
    }

    /// Returns an error if reading messages found losses that were not known at opening.
    pub(super) fn loss_error(&self) -> Option<Error> {
        let lost = self.losses();
        (*lost != self.info.lost).then(|| {
            let start = lost.ranges.first().map(|range| range.start);
            let why = format!("{lost}, because the index of the bag names records that its chunks do not \
                               have");
            let next =
                "list the damage with rovelog check FILE, or keep the intact records with rovelog recover \
                 FILE -o OUT";
            Error::new(INFO.id, ErrorKind::DataLost, start, why).with_next(next)
        })
    }

    fn compare_chunks_read(&self) -> Ledger {
        let chunks = &self.scanner.content.chunks;
        let plan = (0..chunks.len()).filter(|number| !chunks[*number].is_unread).collect();
        let (mut loader, mut scan, mut lost) =
            (self.loader(plan), ChunkScan::default(), self.info.lost.clone());
        while let Some(loaded) = loader.load() {
            let chunk = &chunks[loaded.number];
            let mut messages = 0;
            scan.visit(self, &loaded, |_| messages += 1);
            let missing = chunk.messages.count.saturating_sub(messages);
            if missing > 0 {
                let extent = &chunk.extent;
                let from = extent.kept_to(loaded.result.status, loaded.result.used, messages);
                lost.losses += 1;
                lost.bytes += extent.end - from;
                lost.ranges.push(from..extent.end);
                lost.missing_records += missing;
            }
            loader.recycle(loaded);
        }
        lost
    }
}
