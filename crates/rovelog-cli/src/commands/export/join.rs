//! The options `--on` and `--every` of `rovelog export`, which write several topics into one table.

use rovelog::{AnyLog, Timestamp, Topic};
use rovelog_export::signal::{Base, JoinOptions, check_regular_rows, join};
use rovelog_export::table::{self, Kind as Table};

use super::args::{Args, Target};
use super::job::{Done, Job, decodable, file};
use crate::failure::Failure;
use crate::select::unknown_topic;
use crate::window::span;

/// Returns the topics of the table. The topic given by `--on` comes first, followed by the topics
/// of `--join`. If only `--every` is given, the table contains all selected topics.
pub(super) fn topics<'t>(
    args: &Args,
    log: &'t AnyLog,
    selected: Vec<&'t Topic>,
) -> Result<Vec<&'t Topic>, Failure> {
    let names: Vec<&String> = args.join.on.iter().chain(&args.join.join).collect();
    if args.join.join.is_empty() && args.join.on.is_none() {
        return Ok(selected.into_iter().filter(|topic| topic.count > 0).collect());
    }
    let mut topics: Vec<&Topic> = Vec::new();
    for name in names {
        let topic = log.topic(name).ok_or_else(|| unknown_topic(name, log.topics()))?.get();
        if topics.iter().all(|known| known.id != topic.id) {
            topics.push(topic);
        }
    }
    Ok(topics)
}

impl Job<'_> {
    /// Returns the times of the first and the last row of a table with rows at regular times. Without
    /// `-S` and `-E`, the rows cover the data, without stale times. A window that is wider than the
    /// log is shortened by whole steps. Returns `None` if no record has a time.
    fn regular_rows(&self, step: i64) -> Option<(i64, i64)> {
        let (info, (earliest, latest)) = (self.log.info(), span(&**self.log)?);
        let first = match self.window.start {
            Some(start) if start < earliest => {
                let phase = (i128::from(start) - i128::from(earliest)).rem_euclid(i128::from(step));
                earliest.saturating_add(i64::try_from(phase).ok()?)
            }
            Some(start) => start,
            None => info.data_start()?.nanos,
        };
        let last = match self.window.end {
            Some(end) => end.saturating_sub(1).min(latest),
            None => info.data_end()?.nanos,
        };
        Some((first, last))
    }

    /// Writes all `topics` into one table.
    pub(super) fn joined(
        &self,
        kind: Table,
        target: &Target<'_>,
        topics: &[&Topic],
    ) -> Result<Done, Failure> {
        let args = &self.args.join;
        if let Target::Folder(folder) = target {
            return Err(Failure::usage("--on and --every write one file, but the output is a folder")
                .next(format!("name a file in the folder: -o {}/joined.{}", folder.display(), kind.name())));
        }
        let mut done = Done::default();
        let topics = &decodable(self.log, topics.to_vec(), &mut done.losses)?[..];
        let mut select = self.select(topics);
        if let Some(fields) = self.args.fields.paths(topics) {
            select = select.with_fields(fields);
        }
        let here = |failure: Failure| failure.at(&self.input.path);
        let (base, others) = match (args.every, topics) {
            (Some(step), _) => {
                let nothing = || Failure::failed("no record in this log has a time");
                let (first, last) = self.regular_rows(step).ok_or_else(|| here(nothing()))?;
                let checked = check_regular_rows(&**self.log, first, last, step);
                if let (Err(cause), false) = (checked, self.args.out.force) {
                    let next = "give a time range with -S and -E or a longer --every, or write all rows \
                                with --force";
                    return Err(here(Failure::usage(cause).next(next)));
                }
                let is_inside = |time: Timestamp| (first..=last).contains(&time.nanos);
                for outside in self.log.info().outside() {
                    if let Some(topic) = topics.iter().find(|topic| topic.id == outside.topic)
                        && !(is_inside(outside.first) && is_inside(outside.last))
                    {
                        let sentence = outside.sentence(&topic.name);
                        self.context.note(&format!("the table has no rows at stale times: {sentence}"));
                    }
                }
                (Base::Every { first, last, step }, topics)
            }
            (None, [on, others @ ..]) => (Base::Topic(on), others),
            (None, []) => return Err(here(Failure::usage("the selected topics have no records"))),
        };
        let mut options = JoinOptions::default();
        options.method = args.method.unwrap_or_default();
        options.tolerance = args.tolerance.map(i64::unsigned_abs);
        let failed = |error| here(Failure::from(error));
        let table = join(&**self.log, base, others, &select, (options, &self.derived)).map_err(failed)?;
        // The number of rows is not known in advance, so the progress bar only shows the number of
        // bytes written so far.
        let progress = &self.context.progress;
        progress.start(None);
        let how = (kind, &self.options());
        let mut out = self.table_output(kind, target, "joined")?;
        let mut counting = progress.counting(&mut out);
        let written = table::write_joined(&**self.log, table, &mut counting, how, self.provenance);
        let (rows, losses) = written.map_err(failed)?;
        out.finish()?;
        done.files.extend(target.path().map(|path| file(path, None, rows)));
        done.losses.extend(losses);
        Ok(done)
    }
}
