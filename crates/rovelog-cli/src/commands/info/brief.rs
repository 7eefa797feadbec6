//! The output of `rovelog info --brief` and `rovelog info -f csv`, with one line for each log.

use rovelog::Timestamp;

use crate::failure::Failure;
use crate::output::Out;
use crate::survey::Survey;
use crate::table::Table;
use crate::text::{cell, size};
use crate::times::{TimeArgs, Times};
use rovelog_export::duration_text;

/// Columns of the CSV output. Programs of users rely on them, so new columns are only added at the
/// end, and existing columns never change.
const HEAD: [&str; 18] = [
    "file",
    "format",
    "version",
    "dialect",
    "size",
    "state",
    "clock",
    "utc_rule",
    "start",
    "end",
    "start_ns",
    "end_ns",
    "duration_ns",
    "records",
    "topics",
    "problems",
    "lost_bytes",
    "stale_records",
];

/// The values of one output line, in the order of the CSV columns.
pub(super) struct Brief([String; 18]);

impl Brief {
    pub(super) fn new(file: &str, survey: &Survey) -> Result<Self, Failure> {
        let info = &survey.info;
        // The options for the format of times apply to text output only, so the defaults are used
        // here.
        let times = Times::new(info, TimeArgs::default())?;
        let (start, end) = (info.data_start(), info.data_end());
        let text = |time: Option<Timestamp>| times.machine(time).unwrap_or_default();
        let nanos = |time: Option<Timestamp>| cell(time.map(|time| time.nanos));
        let stale: u64 = info.outside().iter().map(|outside| outside.count).sum();
        Ok(Self([
            file.to_owned(),
            survey.format.id.to_owned(),
            info.version.clone(),
            info.dialect.unwrap_or_default().to_owned(),
            info.size.to_string(),
            info.state.name().to_owned(),
            times.clock.name().to_owned(),
            info.utc.as_ref().map(|utc| utc.rule).unwrap_or_default().to_owned(),
            text(start),
            text(end),
            nanos(start),
            nanos(end),
            cell(info.data_duration()),
            info.records.to_string(),
            survey.topics.iter().filter(|topic| topic.count > 0).count().to_string(),
            info.problems.to_string(),
            info.lost.bytes.to_string(),
            stale.to_string(),
        ]))
    }

    /// Writes the line as CSV. If `first` is true, a header row is written before the line, and
    /// `first` is set to false.
    pub(super) fn csv(&self, out: Out, first: &mut bool) -> Result<(), Failure> {
        let mut csv = csv::Writer::from_writer(out);
        if std::mem::take(first) {
            csv.write_record(HEAD)?;
        }
        csv.write_record(&self.0)?;
        Ok(csv.flush()?)
    }

    /// Returns an empty table for text output.
    pub(super) fn table() -> Table<'static> {
        let numbers = ["DURATION", "RECORDS", "TOPICS", "SIZE", "PROBLEMS"];
        Table::default().left(["FILE", "FORMAT", "STATE", "START"]).right(numbers)
    }

    /// Returns the line as a row of the table.
    pub(super) fn row(self, survey: &Survey, times: &Times) -> [String; 9] {
        let info = &survey.info;
        let [file, _, version, _, _, _, _, _, _, _, _, _, _, records, topics, problems, ..] = self.0;
        [
            file,
            format!("{} {version}", survey.format.name),
            info.state.name().to_owned(),
            info.data_start().map_or_else(|| "-".to_owned(), |start| times.brief(start)),
            info.data_duration().map_or_else(|| "-".to_owned(), duration_text),
            records,
            topics,
            size(info.size),
            problems,
        ]
    }
}
