//! State of reading a log block by block, which the random-access reader and the stream share.

use std::ops::Range;
use std::sync::Arc;

use rovelog_core::{Diagnostics, ReadOptions, Rule, Topic, TopicId};

use crate::clock::{ClockChange, Tracker};
use crate::diagnostics as rules;
use crate::resync::LeftOut;
use crate::row::{Row, Table};
use crate::schema;
use crate::validate::{Extent, Validated};
use crate::watch::RowChecks;
use crate::wire::BlockTimes;

/// Name of the topic that contains the rows of a log.
const SAMPLES: &str = "samples";

/// Name of the topic that contains the rows of an ambient file, which are values of environmental
/// sensors.
pub const AMBIENT: &str = "ambient";

/// Returns a function that adds diagnostics about the file with the number `part` to the
/// diagnostics of the log.
fn part_notes(diagnostics: &mut Diagnostics, part: usize) -> impl FnMut(&'static Rule, Range<u64>, String) {
    move |rule, range, text| {
        diagnostics.push(rule, range, || if part == 0 { text } else { format!("part {part}: {text}") });
    }
}

/// State of reading a log block by block, which the random-access reader and the stream share.
#[derive(Debug)]
pub(crate) struct LogScan {
    /// Header of the first file.
    pub(crate) validated: Validated,
    /// Channels and layout of rows. `None` if the header does not allow rows to be located.
    pub(crate) table: Option<Table>,
    /// Topic that contains the rows. It counts the rows that have been read so far.
    pub(crate) topic: Topic,
    /// Index of the current file in the list of the log's files.
    pub(crate) part: usize,
    /// Total size in bytes of all files of the log before the current file.
    pub(crate) base: u64,
    pub(crate) tracker: Tracker,
    pub(crate) row_checks: RowChecks,
    pub(crate) diagnostics: Diagnostics,
}

impl LogScan {
    pub(crate) fn new(validated: Validated, options: &ReadOptions) -> Self {
        let (table, topic) = topic(&validated);
        let mut diagnostics = options.diagnostics();
        for (rule, range, text) in &validated.notes {
            diagnostics.push(rule, range.clone(), || text.clone());
        }
        let tracker = Tracker::new(&validated.header.lead_in);
        let row_checks = RowChecks::new(&validated, table.as_ref());
        Self { validated, table, topic, part: 0, base: 0, tracker, row_checks, diagnostics }
    }

    /// Adds a diagnostic about a byte range of the current file.
    pub(crate) fn note(&mut self, rule: &'static Rule, range: Range<u64>, text: String) {
        let range = self.base + range.start..self.base + range.end;
        part_notes(&mut self.diagnostics, self.part)(rule, range, text);
    }

    /// Adds a block of `rows` rows, whose times are stored at offset `at` in the current file.
    pub(crate) fn add_block(&mut self, at: u64, block_times: &BlockTimes, rows: u64) -> ClockChange {
        let note = part_notes(&mut self.diagnostics, self.part);
        self.tracker.block(self.base + at, block_times, self.topic.count, rows, note)
    }

    /// Adds blocks that are left out, because their total length is wrong.
    pub(crate) fn leave_out(&mut self, blocks: &LeftOut) {
        self.note(&rules::BLOCK_LENGTH, blocks.range.clone(), blocks.text(self.topic.count));
        self.diagnostics.count_missing(blocks.rows);
        self.tracker.leave_out();
        self.skip_unread_rows();
    }

    /// Checks the row with this number, which is stored at offset `at` in the current file.
    pub(crate) fn check_row(&mut self, number: u64, at: u64, bytes: &[u8]) {
        let Some(table) = &self.table else { return };
        let note = part_notes(&mut self.diagnostics, self.part);
        self.row_checks.row(number, self.base + at, Row::new(bytes, table), note);
    }

    /// Skips rows that are not read, so that they are not checked.
    pub(crate) fn skip_unread_rows(&mut self) {
        self.row_checks.skip_unread(part_notes(&mut self.diagnostics, self.part));
    }

    /// Adds the diagnostics that need all rows of the log.
    pub(crate) fn end_rows(&mut self) {
        self.row_checks.end(part_notes(&mut self.diagnostics, 0));
    }

    /// Adds diagnostics about the bytes of the current file that do not belong to any row.
    pub(crate) fn add_extent(&mut self, extent: Extent) {
        for (rule, range, text) in extent.notes {
            self.note(rule, range, text);
        }
        self.diagnostics.count_missing(extent.missing);
        self.diagnostics.count_left_out(extent.left_out);
    }
}

/// Returns the topic of a log's rows, and a table with their channels and layout. The table is
/// `None` if the header does not allow rows to be located.
fn topic(validated: &Validated) -> (Option<Table>, Topic) {
    let name = if validated.is_ambient() { AMBIENT } else { SAMPLES };
    let table = validated.layout.as_ref().ok().map(|layout| Table {
        channels: validated.channels.clone(),
        layout: layout.clone(),
        fields: Arc::new(schema::fields(&validated.channels, name)),
    });
    let schema = table.as_ref().map(|table| Arc::clone(table.fields.schema()));
    (table, Topic::new(TopicId(0), name.to_owned(), name.to_owned(), schema))
}
