//! `rovelog export`: the data of a log for other tools.

use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use rovelog::{AnyLog, Select, Topic};
use rovelog_export::bag2::{self, Bag2Options, Compression};
use rovelog_export::mcap::{self, McapOptions, RosForm};
use rovelog_export::table::{self, Dialect, Kind as Table, Names, TableOptions, TimeUnit};
use rovelog_export::{ExportError, Exported, Kind, Loss, Provenance, ndjson, topic_names};
use serde::Serialize;

use crate::args::{Context, Format};
use crate::commands::cat::span;
use crate::input::Input;
use crate::outfile::{LogOut, OutArgs, OutFile};
use crate::output::escape;
use crate::progress::Progress;
use crate::report::{Failure, Outcome, Status, count, note};
use crate::select::{FieldArgs, TopicArgs};
use crate::when::{Window, WindowArgs};

const MORE: &str = "\
Kinds: parquet, arrow and csv hold one topic per file: name a folder for several. ndjson and mcap hold all
topics in one file; in mcap, positions, poses and console lines also stand as the types that Foxglove draws, and
of VEL logs clouds, scans and images, the packets themselves with --raw; RLD logs of more than 1000 samples in
a second become an envelope of a thousand, and all samples with --full. Bags of V1.2 and before become bags of
V2.0 (bag2, .bag), which every reader of bags knows, or messages of ROS 2 in mcap (--ros2); payloads stay byte
for byte in bag2, and in mcap without --ros2. A table begins with the columns t_ns (the log's clock, nanoseconds) and time (UTC, where the log
tells it), then come the fields. What the output cannot carry is said, and the exit code is 3.

Examples:
  rovelog export flight.ulg -o flight/ --to parquet             all topics, a file each
  rovelog export flight.ulg -o flight.mcap                      for Foxglove, Rerun, PlotJuggler
  rovelog export flight.ulg -o q.parquet --topics vehicle_attitude -S +1m -E +2m
  rovelog export flight.ulg -o csv/ --to csv --dialect pyulog   as ulog2csv writes it
  rovelog export flight.ulg --to csv --topics battery_status | head
  rovelog export 2010.bag -o new.bag                            V2.0, for ROS 1 and its tools
  rovelog export 2010.bag -o new.mcap --ros2                    for ROS 2, Rerun, PlotJuggler";

/// Tables that are open at the same time.
const OPEN: usize = 200;

/// Hand the data on to other tools: Parquet, Arrow, CSV, NDJSON, MCAP, ROS bag V2.0
#[derive(clap::Args)]
#[command(after_help = MORE)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Args {
    /// A log; - is stdin
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The file to write, its extension says the kind; a folder for a file per topic
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// What to write: parquet, arrow, csv, ndjson, mcap or bag2
    #[arg(long, value_name = "KIND", value_parser = kind)]
    to: Option<Kind>,
    #[command(flatten)]
    window: WindowArgs,
    #[command(flatten)]
    topics: TopicArgs,
    #[command(flatten)]
    fields: FieldArgs,
    /// csv: ours, or pyulog to write what ulog2csv writes
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true)]
    dialect: Option<Habits>,
    /// csv: what separates cells; \t is a tab
    #[arg(long, value_name = "CHAR", value_parser = delimiter)]
    delimiter: Option<u8>,
    /// csv and flat columns: elements of arrays as bracket, q[0], or dot, q.0
    #[arg(long, value_enum, value_name = "STYLE", hide_possible_values = true)]
    names: Option<NameStyle>,
    /// parquet, arrow: nested fields and arrays as columns of their own
    #[arg(long)]
    flatten: bool,
    /// parquet: spark for types that Spark reads as they are (no unsigned 64-bit integers)
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true)]
    profile: Option<Profile>,
    /// parquet: the unit of time, us or ns; `t_ns` holds nanoseconds in any case
    #[arg(long, value_enum, value_name = "UNIT", hide_possible_values = true)]
    time_unit: Option<Unit>,
    /// parquet: fields of bytes too
    #[arg(long)]
    blobs: bool,
    /// mcap: only the log's own topics, not the types that viewers draw
    #[arg(long)]
    no_typed: bool,
    /// mcap: poses in the vehicle's axes (north, east, down), not those of viewers (east, north, up)
    #[arg(long)]
    keep_ned: bool,
    /// mcap, VEL: packets, ranges, images and unknown messages too, as they lie in the log
    #[arg(long)]
    raw: bool,
    /// mcap, RLD: every sample, however many there are in a second
    #[arg(long)]
    full: bool,
    /// mcap of a ROS bag: messages of ROS 2 (CDR); headers lose their seq, which ROS 2 does not have
    #[arg(long)]
    ros2: bool,
    /// mcap and bag2 of a ROS bag: types that were only renamed since under their new names; --ros2 does it too
    #[arg(long)]
    modernize: bool,
    /// bag2: chunks as they are, none, or compressed, bz2
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true)]
    compression: Option<Packing>,
    #[command(flatten)]
    out: OutArgs,
}

fn kind(name: &str) -> Result<Kind, String> {
    Kind::by_name(name).ok_or_else(|| "the kinds are parquet, arrow, csv, ndjson, mcap and bag2".to_owned())
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(*byte),
        _ => Err("one character, which is no quote and no end of a line".to_owned()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Habits {
    Plain,
    Pyulog,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum NameStyle {
    Bracket,
    Dot,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Profile {
    Spark,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Unit {
    Us,
    Ns,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Packing {
    None,
    Bz2,
}

/// A file that was written.
#[derive(Serialize)]
struct FileDoc {
    file: String,
    /// The only topic in it.
    topic: Option<String>,
    rows: String,
}

/// What could not be carried.
#[derive(Serialize)]
struct LossDoc {
    topic: String,
    column: Option<String>,
    why: String,
}

/// The document `rovelog.export/1`.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    file: String,
    kind: &'static str,
    files: Vec<FileDoc>,
    lost: Vec<LossDoc>,
}

/// Where it goes.
enum Target<'a> {
    Stdout,
    File(&'a Path),
    Folder(&'a Path),
}

impl Target<'_> {
    /// The path that was named.
    fn path(&self) -> Option<&Path> {
        match self {
            Self::Stdout => None,
            Self::File(path) | Self::Folder(path) => Some(path),
        }
    }
}

/// What was written, and what was not.
#[derive(Default)]
struct Done {
    files: Vec<FileDoc>,
    losses: Vec<Loss>,
    notes: Vec<String>,
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let format = context.format(&[Format::Text, Format::Json])?;
    let (kind, target) = target(args)?;
    fitting(args, kind, context)?;
    let input = Input::new(args.file.as_deref())?;
    let (log, provenance) = input.open_with_provenance(context)?;
    let here = |failure: Failure| failure.at(&input.path);
    for (option, chosen, id) in [
        ("--raw", args.raw, "vel"),
        ("--full", args.full, "rld"),
        ("--ros2", args.ros2, "rosbag"),
        ("--modernize", args.modernize, "rosbag"),
    ] {
        let format = log.format();
        if chosen && format.id != id {
            let failure = Failure::usage(format!("{option} has no meaning for {} logs", format.name));
            return Err(here(failure.next("leave it out")));
        }
    }
    let mut topics = args.topics.pick(log.topics()).map_err(here)?;
    args.fields.demand(&topics).map_err(here)?;
    topics.retain(|topic| topic.count > 0 && args.fields.keep(topic.schema.as_deref()).is_some());
    let times = context.times(log.info()).map_err(here)?;
    let window = args.window.resolve(&times, span(&*log)).map_err(here)?;
    if topics.is_empty() {
        return Err(here(
            Failure::usage("the selected topics have no records").next("see them: rovelog topics FILE"),
        ));
    }
    let job = Job { args, context, input: &input, log: &log, provenance: &provenance, window };
    let done = match kind {
        Kind::Table(table) => job.tables(table, &target, topics)?,
        Kind::Ndjson => job.ndjson(&target, &topics)?,
        Kind::Mcap => job.mcap(&target, &topics)?,
        Kind::Bag2 => job.bag2(&target, &topics)?,
    };
    for loss in &done.losses {
        let column = if loss.column.is_empty() { String::new() } else { format!(", field {}", loss.column) };
        context
            .report
            .warn("fields or records could not be carried", &format!("{}{column}: {}", loss.topic, loss.why));
    }
    for line in done.notes.iter().filter(|_| !context.global.quiet) {
        note(line);
    }
    report(&job, kind, &target, format, &done)?;
    let lost = if done.losses.is_empty() { Status::Done } else { Status::Lost };
    Ok(lost.max(context.report.loss(&log.info().lost, &input.path)))
}

/// The kind and the place that the arguments ask for, before anything is read.
fn target(args: &Args) -> Result<(Kind, Target<'_>), Failure> {
    let path = args.output.as_deref().filter(|path| *path != Path::new("-"));
    let extension = path.and_then(|path| path.extension()).and_then(|extension| extension.to_str());
    let by_name = extension.and_then(Kind::by_name);
    let Some(kind) = args.to.or(by_name) else {
        let failure = Failure::usage("what to write was not said");
        return Err(match path {
            Some(path) if extension.is_some() => failure
                .next("use .parquet, .arrow, .csv, .ndjson, .mcap or .bag, or say which: --to parquet")
                .at(path),
            _ => failure.next("say it: --to parquet, or name a file: -o topic.parquet"),
        });
    };
    let Some(path) = path else { return Ok((kind, Target::Stdout)) };
    let slash = path.as_os_str().as_encoded_bytes().ends_with(b"/");
    let folder = slash || path.is_dir() || extension.is_none();
    Ok((
        kind,
        if folder && matches!(kind, Kind::Table(_)) { Target::Folder(path) } else { Target::File(path) },
    ))
}

/// Options that would have no meaning are refused, so that nobody believes they had.
fn fitting(args: &Args, kind: Kind, context: &Context) -> Result<(), Failure> {
    let (csv, parquet) = (kind == Kind::Table(Table::Csv), kind == Kind::Table(Table::Parquet));
    let table = matches!(kind, Kind::Table(_));
    let (mcap, bag2) = (kind == Kind::Mcap, kind == Kind::Bag2);
    let time = context.global.time;
    let chosen = [
        (args.dialect.is_some(), csv, "--dialect"),
        (args.delimiter.is_some(), csv, "--delimiter"),
        (args.names.is_some(), csv || args.flatten, "--names"),
        (args.flatten, table && !csv, "--flatten"),
        (args.profile.is_some(), parquet, "--profile"),
        (args.time_unit.is_some(), parquet, "--time-unit"),
        (args.blobs, parquet, "--blobs"),
        (args.no_typed, mcap && !args.ros2, "--no-typed"),
        (args.keep_ned, mcap && !args.no_typed && !args.ros2, "--keep-ned"),
        (args.raw, mcap, "--raw"),
        (args.full, mcap, "--full"),
        (args.ros2, mcap, "--ros2"),
        (args.modernize, (mcap && !args.ros2) || bag2, "--modernize"),
        (args.compression.is_some(), bag2, "--compression"),
        (!args.fields.is_empty(), table, "--fields"),
        (time.time_format.is_some(), false, "--time-format"),
        (time.time_base.is_some_and(|_| args.window.is_open()), false, "--time-base"),
    ];
    match chosen.iter().find(|(chosen, fits, _)| *chosen && !fits) {
        Some((_, _, option)) => {
            let with = if args.ros2 && mcap { " with --ros2" } else { "" };
            Err(Failure::usage(format!("{option} has no meaning for {}{with}", kind.name()))
                .next("leave it out"))
        }
        None => Ok(()),
    }
}

/// The refusal of something that is there for ROS bags only.
fn for_bags(what: &str, log: &AnyLog) -> Failure {
    Failure::usage(format!("{what} is for ROS bags, and this is {}", log.format().name))
}

struct Job<'a> {
    args: &'a Args,
    context: &'a Context,
    input: &'a Input,
    log: &'a AnyLog,
    provenance: &'a Provenance,
    window: Window,
}

impl Job<'_> {
    fn select(&self, topics: &[&Topic]) -> Select {
        let mut select = Select::topics(topics.iter().map(|topic| topic.name.clone()));
        (select.start, select.end) = (self.window.start, self.window.end);
        select
    }

    fn options(&self) -> TableOptions {
        let args = self.args;
        let mut options = TableOptions::default();
        options.flatten = args.flatten;
        options.spark = args.profile == Some(Profile::Spark);
        options.blobs = args.blobs;
        options.delimiter = args.delimiter.unwrap_or(b',');
        if args.names == Some(NameStyle::Dot) {
            options.names = Names::Dot;
        }
        if args.time_unit == Some(Unit::Ns) {
            options.time_unit = TimeUnit::Nanoseconds;
        }
        if args.dialect == Some(Habits::Pyulog) {
            options.dialect = Dialect::Pyulog;
        }
        options
    }

    fn progress(&self) -> Progress {
        Progress::new(self.context, Some(self.log.info().size))
    }

    fn inputs(&self) -> [&Path; 1] {
        [&self.input.path]
    }

    fn ndjson(&self, target: &Target<'_>, topics: &[&Topic]) -> Result<Done, Failure> {
        let mut progress = self.progress();
        let select = self.select(topics);
        let mut take = |at| progress.at(at);
        let Some(path) = target.path() else {
            // Text may go to a terminal.
            let mut out = self.context.out();
            let (_, losses) = ndjson::write(&**self.log, &select, &mut out, &mut take)?;
            std::io::Write::flush(&mut out)?;
            return Ok(Done { losses, ..Done::default() });
        };
        let mut out = OutFile::create(path, &self.inputs(), self.args.out)?;
        let (rows, losses) = ndjson::write(&**self.log, &select, &mut out, &mut take)?;
        out.finish()?;
        Ok(Done { files: vec![file(path, None, rows)], losses, ..Done::default() })
    }

    fn mcap(&self, target: &Target<'_>, topics: &[&Topic]) -> Result<Done, Failure> {
        let mut options = McapOptions::default();
        (options.typed, options.keep_ned) = (!self.args.no_typed, self.args.keep_ned);
        (options.raw, options.full) = (self.args.raw, self.args.full);
        options.ros = match (self.args.ros2, self.args.modernize) {
            (true, _) => RosForm::Ros2,
            (false, true) => RosForm::Modernized,
            (false, false) => RosForm::Recorded,
        };
        self.messages(target, "log.mcap", |out, take| {
            Ok(mcap::write(self.log, &self.select(topics), options, self.provenance, out, take)?)
        })
    }

    fn bag2(&self, target: &Target<'_>, topics: &[&Topic]) -> Result<Done, Failure> {
        let AnyLog::Rosbag(bag) = self.log else {
            return Err(for_bags("bag2", self.log)
                .next("write MCAP, which the same viewers open: -o log.mcap")
                .at(&self.input.path));
        };
        let mut options = Bag2Options::default();
        options.modernize = self.args.modernize;
        if self.args.compression == Some(Packing::Bz2) {
            options.compression = Compression::Bz2;
        }
        self.messages(target, "log.bag", |out, take| {
            bag2::write(bag, &self.select(topics), options, out, take).map_err(|error| {
                let whole = matches!(error, ExportError::Format(_));
                let failure = Failure::from(error).at(&self.input.path);
                if whole {
                    failure.next("keep it as it is, or export the bytes: --to ndjson")
                } else {
                    failure
                }
            })
        })
    }

    /// Messages of all topics in one binary file.
    fn messages(
        &self,
        target: &Target<'_>,
        example: &str,
        write: impl FnOnce(LogOut, &mut dyn FnMut(u64)) -> Result<Exported<LogOut>, Failure>,
    ) -> Result<Done, Failure> {
        let mut progress = self.progress();
        let out = LogOut::create(target.path(), example, &self.inputs(), self.args.out, self.context)?;
        let written = write(out, &mut |at| progress.at(at))?;
        written.out.finish()?;
        let files = target.path().map(|path| file(path, None, written.messages)).into_iter().collect();
        Ok(Done { files, losses: written.losses, notes: written.notes })
    }

    fn tables(&self, kind: Table, target: &Target<'_>, topics: Vec<&Topic>) -> Result<Done, Failure> {
        let mut losses = Vec::new();
        let topics = decodable(self.log, topics, &mut losses);
        let total: u64 = topics.iter().map(|topic| topic.count).sum();
        let (mut rows, size) = (0, self.log.info().size);
        let mut progress = self.progress();
        let mut step = |more: u64| {
            rows += more;
            let done = u128::from(size) * u128::from(rows) / u128::from(total.max(1));
            progress.step(u64::try_from(done).unwrap_or(size));
        };
        let mut done = Done { losses, ..Done::default() };
        match target {
            Target::Folder(folder) => {
                for (path, topic, rows) in self.folder(kind, folder, &topics, &mut done.losses, &mut step)? {
                    done.files.push(file(&path, Some(topic), rows));
                }
            }
            Target::Stdout | Target::File(_) => {
                let path = target.path();
                let [topic] = topics.as_slice() else { return Err(self.one_topic(kind, &topics)) };
                let rows = if path.is_none() && kind == Table::Csv {
                    let out = self.context.out();
                    let mut written = self.write(kind, vec![(*topic, out)], &mut done.losses, &mut step)?;
                    std::io::Write::flush(&mut written[0].out)?;
                    written[0].rows
                } else {
                    let example = format!("topic.{}", kind.name());
                    let out = LogOut::create(path, &example, &self.inputs(), self.args.out, self.context)?;
                    let mut written = self.write(kind, vec![(*topic, out)], &mut done.losses, &mut step)?;
                    let written = written.remove(0);
                    written.out.finish()?;
                    written.rows
                };
                done.files.extend(path.map(|path| file(path, Some(topic), rows)));
            }
        }
        Ok(done)
    }

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

    /// A file for each topic.
    fn folder<'t>(
        &self,
        kind: Table,
        folder: &Path,
        topics: &[&'t Topic],
        losses: &mut Vec<Loss>,
        step: &mut dyn FnMut(u64),
    ) -> Result<Vec<(PathBuf, &'t Topic, u64)>, Failure> {
        let named = if self.input.is_stdin() { None } else { self.input.path.file_stem() };
        let log_name = named.map_or_else(|| "log".into(), |stem| stem.to_string_lossy());
        let file = |name: &String| {
            folder.join(format!("{log_name}_{}.{}", name.trim_start_matches('_'), kind.name()))
        };
        let paths: Vec<_> = topic_names(topics).iter().map(file).collect();
        // Before the first is written: whoever has to name another folder finds this one as it was.
        if let Some(path) = paths.iter().find(|path| !self.args.out.force && path.exists()) {
            return Err(Failure::usage("a file for a topic exists already")
                .next("name another folder, or replace the files in this one: --force")
                .at(path));
        }
        if folder.exists() && !folder.is_dir() {
            return Err(Failure::usage("the output is a file, not a folder")
                .next("name a folder, which need not exist")
                .at(folder));
        }
        fs::create_dir_all(folder)
            .map_err(|error| Failure::failed(format!("cannot make the folder: {error}")).at(folder))?;
        let mut done = Vec::new();
        let files: Vec<_> = topics.iter().copied().zip(paths).collect();
        for files in files.chunks(OPEN) {
            let mut outputs = Vec::new();
            for (topic, path) in files {
                outputs.push((*topic, OutFile::create(path, &self.inputs(), self.args.out)?));
            }
            let written = self.write(kind, outputs, losses, step)?;
            for ((topic, path), written) in files.iter().zip(written) {
                written.out.finish()?;
                done.push((path.clone(), *topic, written.rows));
            }
        }
        Ok(done)
    }

    fn one_topic(&self, kind: Table, topics: &[&Topic]) -> Failure {
        let name = kind.name();
        let topic = topics.first().map_or("NAME", |topic| topic.name.as_str());
        Failure::usage(format!("{name} holds one topic per file, and {} are selected", topics.len()))
            .next(format!("name a folder: -o DIR --to {name}; or a topic: --topics {topic}"))
            .at(&self.input.path)
    }
}

/// Topics that have columns; the others are losses.
fn decodable<'t>(log: &AnyLog, topics: Vec<&'t Topic>, losses: &mut Vec<Loss>) -> Vec<&'t Topic> {
    let (good, bad): (Vec<_>, Vec<_>) =
        topics.into_iter().partition(|topic| log.columns(topic, &Select::all()).is_ok());
    losses.extend(bad.into_iter().map(Loss::undecodable));
    good
}

fn file(path: &Path, topic: Option<&Topic>, rows: u64) -> FileDoc {
    FileDoc {
        file: path.to_string_lossy().into_owned(),
        topic: topic.map(|topic| topic.name.clone()),
        rows: rows.to_string(),
    }
}

/// The paths of many files on stdout, and a line about all on stderr; or all of it as JSON.
fn report(
    job: &Job<'_>,
    kind: Kind,
    target: &Target<'_>,
    format: Format,
    done: &Done,
) -> Result<(), Failure> {
    let context = job.context;
    if let Target::Stdout = target {
        return Ok(());
    }
    let mut out = context.out();
    if format == Format::Json {
        let loss = |loss: &Loss| LossDoc {
            topic: loss.topic.clone(),
            column: Some(loss.column.clone()).filter(|column| !column.is_empty()),
            why: loss.why.clone(),
        };
        let losses = done.losses.iter().map(loss).collect();
        let files = done.files.iter().map(|file| FileDoc {
            file: file.file.clone(),
            topic: file.topic.clone(),
            rows: file.rows.clone(),
        });
        let document = Document {
            schema: "rovelog.export/1",
            file: job.input.name(),
            kind: kind.name(),
            files: files.collect(),
            lost: losses,
        };
        return Ok(out.document(&document)?);
    }
    let rows: u64 = done.files.iter().filter_map(|file| file.rows.parse::<u64>().ok()).sum();
    let summary = if let Target::Folder(folder) = target {
        for file in &done.files {
            std::io::Write::write_all(&mut out, format!("{}\n", escape(&file.file)).as_bytes())?;
        }
        std::io::Write::flush(&mut out)?;
        format!(
            "{} in {} to {}",
            count(rows, "row"),
            count(done.files.len() as u64, "file"),
            folder.display()
        )
    } else {
        let file = done.files.first().map(|file| file.file.as_str()).unwrap_or_default();
        format!("{} to {file}", count(rows, "row"))
    };
    if !context.global.quiet {
        note(&format!("wrote {summary}"));
    }
    Ok(())
}
