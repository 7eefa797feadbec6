//! Information about a log that `info`, `check` and `topics` print, such as its topics and
//! problems.

use rovelog::core::Outside;
use rovelog::core::health::{Health, Pace};
use rovelog::{AnyLog, Diagnostics, FormatInfo, LogInfo, Select, Topic};
use rovelog_export::ExportError;
use rovelog_export::findings::{Finding, findings};
use rovelog_export::totals::{Group, totals};

use crate::context::Context;
use crate::failure::Failure;
use crate::input::Input;
use crate::text::natural;
use crate::window::{WindowArgs, span};

/// Information about a log, such as its topics and problems. It is collected from a file, or from
/// stdin while stdin is read once.
pub(crate) struct Survey {
    pub(crate) format: &'static FormatInfo,
    pub(crate) info: LogInfo,
    /// Topics sorted by name. The instances of a topic are sorted by number.
    pub(crate) topics: Vec<Topic>,
    pub(crate) diagnostics: Diagnostics,
    /// Result of the check of the time stamps for gaps, jitter and order. `None` unless the command
    /// needs it.
    pub(crate) health: Option<Health>,
    /// Problems and totals of the flight or the recording. `None` unless the command needs them.
    pub(crate) analysis: Option<Analysis>,
}

/// Results that require the records to be decoded. If the records of a log cannot be read at all,
/// each result is the reason.
pub(crate) struct Analysis {
    pub(crate) findings: Result<Vec<Finding>, ExportError>,
    /// Flight time, distance, extremes, charge and energy. `None` unless they were requested.
    pub(crate) totals: Option<Result<Vec<Group>, ExportError>>,
}

impl Survey {
    /// Collects the information from the summary of a log. If the log has an index, the index is
    /// the summary, and the records are not read.
    pub(crate) fn new(input: &Input, context: &Context) -> Result<Self, Failure> {
        Self::with(input, context, Input::open_summary, None)
    }

    /// Collects the information as [`Self::new`] does. In addition, the records of a local log are
    /// decoded to find problems if the log has at most `limit` bytes. `with_totals` also requests
    /// the totals.
    pub(crate) fn analyzed(
        input: &Input,
        context: &Context,
        limit: u64,
        with_totals: bool,
    ) -> Result<Self, Failure> {
        if input.is_stdin() || input.is_remote() {
            return Self::new(input, context);
        }
        let log = input.open_summary(context)?;
        let analyze = || Analysis { findings: findings(&log), totals: with_totals.then(|| totals(&log)) };
        let analysis = (log.info().size <= limit).then(analyze);
        Self { analysis, ..Self::of(&log, None) }.finish(input, context)
    }

    /// Reads all records of a log to collect information such as its topics and problems. Also
    /// checks the time stamps within the time window `window` for gaps, jitter and order.
    pub(crate) fn read_all(input: &Input, context: &Context, window: &WindowArgs) -> Result<Self, Failure> {
        Self::with(input, context, Input::open_all, Some(window))
    }

    /// Collects the information for `rovelog topics`. All records of a local log are read. From a
    /// remote log, only the summary is downloaded.
    pub(crate) fn for_topics(input: &Input, context: &Context) -> Result<Self, Failure> {
        let open = if input.is_remote() { Input::open_summary } else { Input::open_all };
        Self::with(input, context, open, None)
    }

    fn with(
        input: &Input,
        context: &Context,
        open: fn(&Input, &Context) -> Result<AnyLog, Failure>,
        health: Option<&WindowArgs>,
    ) -> Result<Self, Failure> {
        if input.is_stdin() {
            return Self::of_stdin(input, context, health)?.finish(input, context);
        }
        let log = open(input, context)?;
        let here = |failure: Failure| failure.at(&input.path);
        let health = health.map(|window| {
            let window = window.resolve(&context.times(log.info())?, span(&*log))?;
            Ok(rovelog::health(&log, &Select::all().between(window.start, window.end))?)
        });
        Self::of(&log, health.transpose().map_err(here)?).finish(input, context)
    }

    /// Reads a log from stdin, and collects the information at the same time.
    fn of_stdin(input: &Input, context: &Context, health: Option<&WindowArgs>) -> Result<Self, Failure> {
        // A time such as `-10s` counts from the end of the log. While stdin is read, the end of the
        // log is not known yet.
        if health.is_some_and(|window| !window.is_open()) {
            return Err(Failure::usage("-S and -E need a file, because the end of a pipe is not known"));
        }
        let mut paces: Vec<Pace> = Vec::new();
        let mut stream = input.stream(context)?;
        // If bytes were lost between two records, there may have been records with times between
        // them. If a topic has a gap at this time, the lost bytes show that records are missing in
        // the gap.
        let (mut interruptions, mut losses, mut last) = (Vec::new(), 0, None);
        while let Some(record) = stream.next_record().map_err(|error| Failure::from(error).at(&input.path))? {
            context.progress.at(record.offset);
            let index = record.topic.id.index();
            paces.resize_with(paces.len().max(index + 1), Pace::default);
            let Some(nanos) = record.time.map(|time| time.nanos) else { continue };
            paces[index].push(nanos);
            let before = last.replace(nanos);
            let losses_before = std::mem::replace(&mut losses, stream.diagnostics().ledger().losses);
            interruptions.extend(before.filter(|_| losses > losses_before).map(|before| before..nanos));
        }
        let end = stream.info().span().map(|span| span.1.nanos);
        Ok(Self {
            health: health.map(|_| Health::new(paces, end, &interruptions)),
            format: stream.format(),
            info: stream.info(),
            topics: stream.topics().to_vec(),
            diagnostics: stream.diagnostics().clone(),
            analysis: None,
        })
    }

    /// Collects the information from an open log.
    fn of(log: &AnyLog, health: Option<Health>) -> Self {
        Self {
            health,
            format: log.format(),
            info: log.info().clone(),
            topics: log.topics().to_vec(),
            diagnostics: log.diagnostics().clone(),
            analysis: None,
        }
    }

    /// Sorts the topics. Returns an error if the log is damaged and the user passed `--strict`.
    fn finish(mut self, input: &Input, context: &Context) -> Result<Self, Failure> {
        input.refuse_damage(&self.diagnostics, context)?;
        self.topics.sort_by(|a, b| natural(&a.name).cmp(&natural(&b.name)));
        Ok(self)
    }

    /// Returns the records with times far outside the time range of all other records. They are
    /// grouped by topic and paired with the name of the topic.
    pub(crate) fn outside(&self) -> impl Iterator<Item = (&str, &Outside)> {
        self.info.outside().iter().map(|outside| {
            let topic = self.topics.iter().find(|topic| topic.id == outside.topic);
            (topic.map_or("", |topic| topic.name.as_str()), outside)
        })
    }
}
