//! The output of `rovelog info --brief` and `rovelog info -f csv`, with one line for each log.

use rovelog::Timestamp;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::Out;
use crate::survey::Survey;
use crate::table::Table;
use crate::text::size;
use crate::times::{TimeArgs, Times};
use rovelog_export::duration_text;

/// The summary of a log in one line. The fields are the columns of the CSV output. Programs of
/// users rely on them, so new columns are only added at the end, and existing columns never change.
#[derive(Serialize)]
pub(super) struct Brief<'a> {
    file: &'a str,
    format: &'a str,
    version: &'a str,
    dialect: Option<&'a str>,
    size: u64,
    state: &'static str,
    clock: &'static str,
    utc_rule: Option<&'a str>,
    start: Option<String>,
    end: Option<String>,
    start_ns: Option<i64>,
    end_ns: Option<i64>,
    duration_ns: Option<i64>,
    records: u64,
    topics: usize,
    problems: u64,
    lost_bytes: u64,
    stale_records: u64,
}

impl<'a> Brief<'a> {
    pub(super) fn new(file: &'a str, survey: &'a Survey) -> Result<Self, Failure> {
        let info = &survey.info;
        // The options for the format of times apply to text output only, so the defaults are used
        // here.
        let times = Times::new(info, TimeArgs::default())?;
        let (start, end) = (info.data_start(), info.data_end());
        let nanos = |time: Option<Timestamp>| time.map(|time| time.nanos);
        Ok(Self {
            file,
            format: survey.format.id,
            version: &info.version,
            dialect: info.dialect,
            size: info.size,
            state: info.state.name(),
            clock: times.clock.name(),
            utc_rule: info.utc.as_ref().map(|utc| utc.rule),
            start: times.machine(start),
            end: times.machine(end),
            start_ns: nanos(start),
            end_ns: nanos(end),
            duration_ns: info.data_duration(),
            records: info.records,
            topics: survey.topics.iter().filter(|topic| topic.count > 0).count(),
            problems: info.problems,
            lost_bytes: info.lost.bytes,
            stale_records: info.outside().iter().map(|outside| outside.count).sum(),
        })
    }

    /// Writes the line as CSV. If `first` is true, a header row is written before the line, and
    /// `first` is set to false.
    pub(super) fn csv(&self, out: Out, first: &mut bool) -> Result<(), Failure> {
        let mut csv = csv::WriterBuilder::new().has_headers(std::mem::take(first)).from_writer(out);
        csv.serialize(self)?;
        Ok(csv.flush()?)
    }

    /// Returns an empty table for text output.
    pub(super) fn table() -> Table<'static> {
        let numbers = ["DURATION", "RECORDS", "TOPICS", "SIZE", "PROBLEMS"];
        Table::default().left(["FILE", "FORMAT", "STATE", "START"]).right(numbers)
    }

    /// Returns the line as a row of the table.
    pub(super) fn row(&self, survey: &Survey, times: &Times) -> [String; 9] {
        let start = survey.info.data_start();
        [
            self.file.to_owned(),
            format!("{} {}", survey.format.name, self.version),
            self.state.to_owned(),
            start.map_or_else(|| "-".to_owned(), |start| times.brief(start)),
            self.duration_ns.map_or_else(|| "-".to_owned(), duration_text),
            self.records.to_string(),
            self.topics.to_string(),
            size(self.size),
            self.problems.to_string(),
        ]
    }
}
