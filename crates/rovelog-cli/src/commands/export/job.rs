//! Writes the output of `rovelog export`, with one function for each format.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rovelog::rld_format::csv::CsvStyle;
use rovelog::{AnyLog, LogReader as _, Select, Topic};
use rovelog_export::bag2::{self, Bag2Options};
use rovelog_export::mcap::{self, McapOptions, RosForm};
use rovelog_export::signal::Signal;
use rovelog_export::table::{self, Dialect, Kind as Table, Names, TableOptions, TimeUnit};
use rovelog_export::{ExportError, Exported, Loss, Provenance, logger_csv, ndjson, topic_names};
use serde::Serialize;

use super::args::{Args, Target};
use super::format_args::{CsvDialect, NameStyle, Profile, Unit};
use crate::compression::Compression;
use crate::context::Context;
use crate::destination::Destination;
use crate::failure::Failure;
use crate::input::Input;
use crate::machine::Count;
use crate::outfile::OutFolder;
use crate::progress::Progress;
use crate::text::short;
use crate::window::Window;

/// Maximum number of tables that are written at the same time, each to its own open file. Operating
/// systems limit the number of open files; the default limit of macOS is 256.
const MAX_OPEN_TABLES: usize = 200;

/// An output file, as described in the JSON document.
#[derive(Serialize)]
pub(super) struct FileDoc {
    pub(super) file: String,
    /// Topic in the file, or `None` if the file contains several topics.
    pub(super) topic: Option<String>,
    pub(super) rows: Count,
}

/// Result of an export.
#[derive(Default)]
pub(super) struct Done {
    /// Files that were written by the export.
    pub(super) files: Vec<FileDoc>,
    /// Data of the log that the output does not contain.
    pub(super) losses: Vec<Loss>,
    /// Notes to print for the user.
    pub(super) notes: Vec<String>,
}

/// An export of one log.
pub(super) struct Job<'a> {
    pub(super) args: &'a Args,
    pub(super) context: &'a Context,
    pub(super) input: &'a Input,
    pub(super) log: &'a AnyLog,
    pub(super) provenance: &'a Provenance,
    pub(super) window: Window,
    /// Time from which the times in CSV files count, for `--time-base relative` and `boot`.
    pub(super) times_from: Option<i64>,
    /// Derived fields and expressions that are written as additional columns.
    pub(super) derived: Vec<Signal>,
}

impl Job<'_> {
    /// Selects the records of `topics` within the time window.
    pub(super) fn select(&self, topics: &[&Topic]) -> Select {
        let names = topics.iter().map(|topic| topic.name.clone());
        Select::topics(names).between(self.window.start, self.window.end)
    }

    /// Returns the options for writing tables.
    pub(super) fn options(&self) -> TableOptions {
        let args = self.args;
        let mut options = TableOptions::default();
        options.flatten = args.tables.flatten;
        options.spark = args.tables.profile == Some(Profile::Spark);
        options.blobs = args.tables.blobs;
        options.times_from = self.times_from;
        options.derived.clone_from(&self.derived);
        options.delimiter = args.csv.delimiter;
        options.jobs = self.context.jobs();
        if args.csv.names == Some(NameStyle::Dot) {
            options.names = Names::Dot;
        }
        if args.tables.time_unit == Some(Unit::Ns) {
            options.time_unit = TimeUnit::Nanoseconds;
        }
        if args.csv.dialect == Some(CsvDialect::Pyulog) {
            options.dialect = Dialect::Pyulog;
        }
        options
    }

    /// Starts the progress bar for reading the whole log.
    pub(super) fn progress(&self) -> &Progress {
        self.context.progress.start(Some(self.log.info().size));
        &self.context.progress
    }

    /// Returns the paths of all files that are read. The output must not overwrite any of them.
    pub(super) fn inputs(&self) -> Vec<PathBuf> {
        let mut files = self.input.files(self.context);
        files.extend(self.args.messages.velodyne.calibration.clone());
        files
    }

    pub(super) fn ndjson(&self, target: &Target<'_>, topics: &[&Topic]) -> Result<Done, Failure> {
        self.messages(self.text_output(target)?, |out, take| {
            Ok(ndjson::write(&**self.log, &self.select(topics), self.context.jobs(), out, take)?)
        })
    }

    pub(super) fn mcap(&self, target: &Target<'_>, topics: &[&Topic]) -> Result<Done, Failure> {
        let mut options = McapOptions::default();
        options.velodyne = self.args.messages.velodyne.options()?;
        (options.typed, options.keep_ned) = (!self.args.messages.no_typed, self.args.messages.keep_ned);
        (options.raw, options.full, options.batch) =
            (self.args.messages.raw, self.args.messages.full, self.args.messages.batch);
        options.jobs = self.context.jobs();
        options.compression =
            self.args.messages.compression.and_then(Compression::for_mcap).unwrap_or(options.compression);
        options.ros = match (self.args.messages.ros2, self.args.messages.modernize) {
            (true, _) => RosForm::Ros2,
            (false, true) => RosForm::Modernized,
            (false, false) => RosForm::Recorded,
        };
        self.messages(self.binary_output(target, "log.mcap")?, |out, take| {
            Ok(mcap::write(self.log, &self.select(topics), &options, self.provenance, out, take)?)
        })
    }

    pub(super) fn bag2(&self, target: &Target<'_>, topics: &[&Topic]) -> Result<Done, Failure> {
        if matches!(self.log, AnyLog::Rld(_)) {
            let format = self.log.format().name;
            return Err(Failure::usage(format!("{format} logs cannot be converted to ROS messages"))
                .next("write MCAP instead, which the same viewers can open: -o log.mcap")
                .at(&self.input.path));
        }
        let mut options = Bag2Options::default();
        options.velodyne = self.args.messages.velodyne.options()?;
        options.modernize = self.args.messages.modernize;
        options.compression =
            self.args.messages.compression.and_then(Compression::for_bag).unwrap_or(options.compression);
        self.messages(self.binary_output(target, "log.bag")?, |out, take| {
            bag2::write(self.log, &self.select(topics), &options, out, take).map_err(|error| {
                // A format error means that the log contains data that a V2.0 bag cannot represent.
                let is_unfit = matches!(error, ExportError::Format(_));
                let failure = Failure::from(error).at(&self.input.path);
                if is_unfit {
                    failure.next("keep the bag unchanged, or export its bytes with --to ndjson")
                } else {
                    failure
                }
            })
        })
    }

    /// Writes all rows in the CSV format of the RocketLogger.
    pub(super) fn logger_csv(&self, style: CsvStyle, target: &Target<'_>) -> Result<Done, Failure> {
        let AnyLog::Rld(log) = self.log else {
            let format = self.log.format().name;
            return Err(Failure::usage(format!(
                "the RocketLogger dialect can only be written from RLD logs, but this is a {format} log"
            ))
            .next("leave out --dialect, as in -o DIR --to csv")
            .at(&self.input.path));
        };
        if let Target::Folder(folder) = target {
            return Err(Failure::usage(
                "the RocketLogger dialect writes one file, but the output path is a folder",
            )
            .next("name a file: -o log.csv")
            .at(folder));
        }
        let mut out = self.text_output(target)?;
        let written = logger_csv::write(log, style, &mut out)?;
        let files = out.finish()?.map(|path| file(&path, log.topics().first(), written.messages));
        let files = files.into_iter().collect();
        Ok(Done { files, losses: written.losses, notes: written.notes })
    }

    /// Opens the output for text. It is a file or stdout.
    fn text_output(&self, target: &Target<'_>) -> Result<Destination, Failure> {
        Destination::text(target.path(), &self.inputs(), self.args.out, self.context)
    }

    /// Opens the output for binary data. It is a file or stdout. Error messages suggest `example` as
    /// a file name.
    fn binary_output(&self, target: &Target<'_>, example: &str) -> Result<Destination, Failure> {
        Destination::create(target.path(), example, &self.inputs(), self.args.out, self.context)
    }

    /// Opens the output for a table. Error messages suggest a file name that starts with `stem`.
    pub(super) fn table_output(
        &self,
        kind: Table,
        target: &Target<'_>,
        stem: &str,
    ) -> Result<Destination, Failure> {
        match kind {
            Table::Csv => self.text_output(target),
            _ => self.binary_output(target, &format!("{stem}.{}", kind.name())),
        }
    }

    /// Writes the messages of the selected topics to one file.
    fn messages(
        &self,
        mut out: Destination,
        write: impl FnOnce(&mut Destination, &mut dyn FnMut(u64)) -> Result<Exported, Failure>,
    ) -> Result<Done, Failure> {
        let progress = self.progress();
        let written = write(&mut out, &mut |at| progress.at(at))?;
        let files = out.finish()?.map(|path| file(&path, None, written.messages)).into_iter().collect();
        Ok(Done { files, losses: written.losses, notes: written.notes })
    }

    /// Writes one table per topic. The tables become files in a folder, or a single table is
    /// written to a file or to stdout.
    pub(super) fn tables(
        &self,
        kind: Table,
        target: &Target<'_>,
        topics: Vec<&Topic>,
    ) -> Result<Done, Failure> {
        let mut losses = Vec::new();
        let topics = decodable(self.log, topics, &mut losses)?;
        let total: u64 = topics.iter().map(|topic| topic.count).sum();
        let (mut rows, size) = (0, self.log.info().size);
        let progress = self.progress();
        // The progress bar counts bytes of the log, so the number of written rows is converted to a
        // proportional number of bytes.
        let mut step = |more: u64| {
            rows += more;
            let done = u128::from(size) * u128::from(rows) / u128::from(total.max(1));
            progress.at(u64::try_from(done).unwrap_or(size));
        };
        let mut done = Done { losses, ..Done::default() };
        match target {
            Target::Folder(folder) => self.folder(kind, folder, &topics, &mut done, &mut step)?,
            Target::Stdout | Target::File(_) => {
                let [topic] = topics.as_slice() else { return Err(self.one_topic(kind, &topics)) };
                let out = self.table_output(kind, target, "topic")?;
                let mut written = self.write(kind, vec![(*topic, out)], &mut done.losses, &mut step)?;
                let written = written.remove(0);
                let path = written.out.finish()?;
                done.files.extend(path.map(|path| file(&path, Some(topic), written.rows)));
            }
        }
        Ok(done)
    }

    /// Writes a table for each of several topics while reading the log only once.
    fn write<W: std::io::Write + Send>(
        &self,
        kind: Table,
        outputs: Vec<(&Topic, W)>,
        losses: &mut Vec<Loss>,
        step: &mut dyn FnMut(u64),
    ) -> Result<Vec<table::Written<W>>, Failure> {
        let topics: Vec<&Topic> = outputs.iter().map(|(topic, _)| *topic).collect();
        let mut select = self.select(&topics);
        if let Some(fields) = self.args.fields.paths(&topics) {
            select = select.with_fields(fields);
        }
        let how = (kind, &self.options());
        let (written, more) = table::write(&**self.log, outputs, &select, how, self.provenance, step)
            .map_err(|error| Failure::from(error).at(&self.input.path))?;
        losses.extend(more);
        Ok(written)
    }

    /// Writes a file for each topic into the output folder.
    fn folder(
        &self,
        kind: Table,
        folder: &Path,
        topics: &[&Topic],
        done: &mut Done,
        step: &mut dyn FnMut(u64),
    ) -> Result<(), Failure> {
        let pyulog = self.args.csv.dialect == Some(CsvDialect::Pyulog);
        let name_of = if pyulog { pyulog_stem } else { Path::file_stem };
        let named = if self.input.is_stdin() { None } else { name_of(&self.input.path) };
        let log_name = named.map_or_else(|| "log".into(), |stem| stem.to_string_lossy());
        let log_name = short(&log_name);
        let path_of = |name: &String| {
            folder.join(format!("{log_name}_{}.{}", name.trim_start_matches('_'), kind.name()))
        };
        let paths: Vec<_> = topic_names(topics).iter().map(path_of).collect();
        // All paths are checked before the first file is written. If one of the files exists, the
        // folder remains unchanged.
        if let Some(path) = paths.iter().find(|path| !self.args.out.force && path.exists()) {
            return Err(Failure::usage("the output file for a topic already exists")
                .next("name another folder, or use --force to replace existing files")
                .at(path));
        }
        let folder = OutFolder::create(folder, self.args.out)?;
        let inputs = self.inputs();
        let files: Vec<_> = topics.iter().copied().zip(paths).collect();
        for files in files.chunks(MAX_OPEN_TABLES) {
            let mut outputs = Vec::new();
            for (topic, path) in files {
                outputs.push((*topic, folder.file(path, &inputs)?));
            }
            let written = self.write(kind, outputs, &mut done.losses, step)?;
            for ((topic, path), written) in files.iter().zip(written) {
                written.out.finish()?;
                done.files.push(file(path, Some(topic), written.rows));
            }
        }
        folder.finish()
    }

    fn one_topic(&self, kind: Table, topics: &[&Topic]) -> Failure {
        let name = kind.name();
        let topic = topics.first().map_or("NAME", |topic| topic.name.as_str());
        Failure::usage(format!("a {name} file can contain only one topic, but {} are selected", topics.len()))
            .next(format!(
                "write a file per topic with -o DIR --to {name}, or select one topic, such as --topics \
                 {topic}"
            ))
            .at(&self.input.path)
    }
}

/// Returns the topics whose records can be decoded. All other topics are added to `losses`. If no
/// topic can be decoded, returns the error of the first topic.
pub(super) fn decodable<'t>(
    log: &AnyLog,
    topics: Vec<&'t Topic>,
    losses: &mut Vec<Loss>,
) -> Result<Vec<&'t Topic>, Failure> {
    let (mut good, mut why) = (Vec::new(), None);
    for topic in topics {
        match log.own(topic).and_then(|topic| topic.columns(&Select::all())) {
            Ok(_) => good.push(topic),
            Err(error) => {
                losses.push(Loss::undecodable(topic, topic.count));
                why.get_or_insert(error);
            }
        }
    }
    why.filter(|_| good.is_empty()).map_or(Ok(good), |error| Err(error.into()))
}

pub(super) fn file(path: &Path, topic: Option<&Topic>, rows: u64) -> FileDoc {
    FileDoc {
        file: path.to_string_lossy().into_owned(),
        topic: topic.map(|topic| topic.name.clone()),
        rows: Count(rows),
    }
}

/// Returns the start of the output file names in the way `ulog2csv` forms it: only the extension
/// `.ulg` is removed from the name of the log.
fn pyulog_stem(path: &Path) -> Option<&OsStr> {
    let ulg = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("ulg"));
    if ulg { path.file_stem() } else { path.file_name() }
}
