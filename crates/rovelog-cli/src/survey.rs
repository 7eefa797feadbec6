//! Facts about a log, as `info`, `check` and the lists of topics show them.

use rovelog::core::Outside;
use rovelog::core::health::{Health, Pace};
use rovelog::{AnyLog, Diagnostics, FormatInfo, LogInfo, Select, Topic};

use crate::context::Context;
use crate::failure::Failure;
use crate::input::Input;
use crate::text::natural;
use crate::when::{WindowArgs, span};

/// Facts about a log, from a file or from one pass over stdin.
pub(crate) struct Survey {
    pub(crate) format: &'static FormatInfo,
    pub(crate) info: LogInfo,
    /// Sorted by name, with instances in numeric order.
    pub(crate) topics: Vec<Topic>,
    pub(crate) diagnostics: Diagnostics,
    /// Of what was looked at for it.
    pub(crate) health: Option<Health>,
}

impl Survey {
    /// By what the log says of itself, its index included.
    pub(crate) fn new(input: &Input, context: &Context) -> Result<Self, Failure> {
        Self::with(input, context, Input::open_outline, None)
    }

    /// By all that is in it, with the health of the times in a window.
    pub(crate) fn of_all(input: &Input, context: &Context, window: &WindowArgs) -> Result<Self, Failure> {
        Self::with(input, context, Input::open_all, Some(window))
    }

    /// By all that is in it; of a remote log, by what it says of itself.
    pub(crate) fn of_topics(input: &Input, context: &Context) -> Result<Self, Failure> {
        Self::with(
            input,
            context,
            if input.is_remote() { Input::open_outline } else { Input::open_all },
            None,
        )
    }

    fn with(
        input: &Input,
        context: &Context,
        open: fn(&Input, &Context) -> Result<AnyLog, Failure>,
        health: Option<&WindowArgs>,
    ) -> Result<Self, Failure> {
        let mut survey = if input.is_stdin() {
            if health.is_some_and(|window| !window.is_open()) {
                return Err(Failure::usage("-S and -E need a file: the end of a pipe is not known"));
            }
            let mut paces: Vec<Pace> = Vec::new();
            let mut stream = input.stream(context)?;
            // Where bytes are lost between two records, records of the time between may be missing.
            let (mut interruptions, mut losses, mut last) = (Vec::new(), 0, None);
            loop {
                let record = stream.next_record().map_err(|error| Failure::from(error).at(&input.path))?;
                let Some(record) = record else { break };
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
            Self {
                health: health.map(|_| Health::new(&paces, end, &interruptions)),
                format: stream.format(),
                info: stream.info(),
                topics: stream.topics().to_vec(),
                diagnostics: stream.diagnostics().clone(),
            }
        } else {
            let log = open(input, context)?;
            let here = |failure: Failure| failure.at(&input.path);
            let health = health.map(|window| {
                let window = window.resolve(&context.times(log.info())?, span(&*log))?;
                Ok(rovelog::health(&log, &Select::all().between(window.start, window.end))?)
            });
            Self {
                health: health.transpose().map_err(here)?,
                format: log.format(),
                info: log.info().clone(),
                topics: log.topics().to_vec(),
                diagnostics: log.diagnostics().clone(),
            }
        };
        input.refuse_damage(&survey.diagnostics, context)?;
        survey.topics.sort_by(|a, b| natural(&a.name).cmp(&natural(&b.name)));
        Ok(survey)
    }

    /// Returns the records with times far outside of all others, each with the name of its topic.
    pub(crate) fn outside(&self) -> impl Iterator<Item = (&str, &Outside)> {
        self.info.outside().iter().map(|outside| {
            let topic = self.topics.iter().find(|topic| topic.id == outside.topic);
            (topic.map_or("", |topic| topic.name.as_str()), outside)
        })
    }
}
