//! Arguments of `rovelog export`. Also checks that each given option applies to the output format.

use std::path::{Path, PathBuf};

use rovelog::rld_format::csv::CsvStyle;
use rovelog_export::Kind;
use rovelog_export::signal::Method;
use rovelog_export::table::Kind as Table;

use super::format_args::{CsvArgs, CsvDialect, MessageArgs, Profile, TableArgs};
use crate::context::Context;
use crate::failure::Failure;
use crate::input::LogArgs;
use crate::outfile::{OutArgs, unless_stdout};
use crate::select::{FieldArgs, TopicArgs};
use crate::time_point::nonzero_duration;
use crate::window::WindowArgs;

const MORE: &str = "\
Parquet, Arrow and CSV files contain one topic each; name a folder to export several. Exit code 3: \
the output lacks some data. See docs/reference/export.md.

Examples:
  rovelog export flight.ulg -o flight/ --to parquet             a file per topic
  rovelog export flight.ulg -o flight.mcap                      for Foxglove
  rovelog export flight.ulg -o q.parquet --topics vehicle_attitude -S +1m -E +2m
  rovelog export power.rld -o p.csv --fields 'V1,I1,P=V1*I1,E=integral(V1*I1)'
  rovelog export drive.vel -o drive.bag                         for SLAM in ROS
  rovelog export flights/ -o mcap/ --to mcap                    a file per log";

/// Convert to Parquet, Arrow, CSV, NDJSON, MCAP, ROS bag V2.0
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) logs: LogArgs,
    /// Output file, whose extension selects the format, or output folder for one file per topic
    #[arg(short, long, value_name = "OUT")]
    pub(super) output: Option<PathBuf>,
    /// Output format, if the output file has no extension: parquet, arrow, csv, ndjson, mcap or bag2
    #[arg(long, value_name = "KIND", value_parser = kind)]
    pub(super) to: Option<Kind>,
    #[command(flatten)]
    pub(super) window: WindowArgs,
    #[command(flatten)]
    pub(super) topics: TopicArgs,
    #[command(flatten)]
    pub(super) fields: FieldArgs,
    #[command(flatten)]
    pub(super) join: JoinArgs,
    #[command(flatten)]
    pub(super) out: OutArgs,
    #[command(flatten)]
    pub(super) csv: CsvArgs,
    #[command(flatten)]
    pub(super) tables: TableArgs,
    #[command(flatten)]
    pub(super) messages: MessageArgs,
}

/// Options for writing several topics into a single table.
#[derive(clap::Args)]
pub(super) struct JoinArgs {
    /// Write one table of several topics, with a row for each record of this topic
    #[arg(long, value_name = "TOPIC", conflicts_with = "every")]
    pub(super) on: Option<String>,
    /// Write one table of several topics, with rows at regular intervals, such as 10ms or 1s
    #[arg(long, value_name = "SPAN", value_parser = nonzero_duration)]
    pub(super) every: Option<i64>,
    /// Topics to join; default with --every: all selected
    #[arg(long, value_name = "TOPIC,..", value_delimiter = ',')]
    pub(super) join: Vec<String>,
    /// Values of joined topics: from the previous record (previous, default) or the nearest one
    /// (nearest), or interpolated (linear)
    #[arg(long, value_name = "HOW", value_parser = method)]
    pub(super) method: Option<Method>,
    /// Leave a cell empty if its record is farther away in time than this, such as 20ms; default:
    /// no limit
    #[arg(long, value_name = "SPAN", value_parser = nonzero_duration)]
    pub(super) tolerance: Option<i64>,
}

impl JoinArgs {
    /// Returns true if the options request that several topics are written into a single table.
    pub(super) fn is_asked(&self) -> bool {
        self.on.is_some() || self.every.is_some()
    }
}

fn method(name: &str) -> Result<Method, String> {
    Method::by_name(name).ok_or_else(|| "expected previous, nearest or linear".to_owned())
}

fn kind(name: &str) -> Result<Kind, String> {
    Kind::by_name(name).ok_or_else(|| match name {
        "bag" | "bag1" | "bag12" => {
            "bags are written as V2.0 (bag2), because V1.2 cannot store publishers, latching and \
             compression, and current tools read V2.0"
                .to_owned()
        }
        _ => "expected parquet, arrow, csv, ndjson, mcap or bag2".to_owned(),
    })
}

impl Args {
    /// Returns the CSV style of the RocketLogger software if `--dialect` selects one of its
    /// versions.
    pub(super) fn logger_csv(&self) -> Option<CsvStyle> {
        match self.csv.dialect? {
            CsvDialect::Plain | CsvDialect::Pyulog => None,
            CsvDialect::Rocketlogger => Some(CsvStyle::Nanoseconds),
            CsvDialect::RocketloggerV2 => Some(CsvStyle::Dates),
        }
    }

    /// Returns the path given by the user, or `None` if the output goes to stdout.
    pub(super) fn path(&self) -> Option<&Path> {
        unless_stdout(self.output.as_deref())
    }

    /// Returns true if the export writes one table for each topic.
    pub(super) fn makes_tables(&self, kind: Kind) -> bool {
        matches!(kind, Kind::Table(_)) && !self.join.is_asked() && self.logger_csv().is_none()
    }
}

/// Destination of an export.
pub(super) enum Target<'a> {
    Stdout,
    File(&'a Path),
    Folder(&'a Path),
}

impl Target<'_> {
    /// Returns the path given by the user, or `None` if the output goes to stdout.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Stdout => None,
            Self::File(path) | Self::Folder(path) => Some(path),
        }
    }
}

/// Returns the output format that the extension of a file name stands for.
pub(super) fn by_name(path: &Path) -> Option<Kind> {
    Kind::by_name(path.extension()?.to_str()?)
}

/// Returns the output format that `--to` or the extension of the output file selects.
pub(super) fn kind_of(args: &Args) -> Result<Kind, Failure> {
    let path = args.path();
    let Some(kind) = args.to.or_else(|| by_name(path?)) else {
        let extension = path.and_then(|path| path.extension()).and_then(|extension| extension.to_str());
        return Err(match (path, extension) {
            (Some(path), Some(extension)) => Failure::usage(format!(
                "no output format has the extension .{extension}"
            ))
            .next(
                "use .parquet, .arrow, .csv, .ndjson, .mcap or .bag, or name the format, such as --to \
                 parquet",
            )
            .at(path),
            _ => Failure::usage("the output format is not specified")
                .next("name a format, such as --to parquet, or a file, such as -o topic.parquet"),
        });
    };
    match kind.missing() {
        Some(feature) => Err(Failure::not_built_in(&format!("cannot write {}", kind.name()), feature)),
        None => Ok(kind),
    }
}

/// Determines where the export of one log is written. This happens before the log is read, so that
/// an error in the arguments is reported early.
pub(super) fn target(args: &Args, kind: Kind) -> Result<Target<'_>, Failure> {
    let Some(path) = args.path() else { return Ok(Target::Stdout) };
    let slash = path.as_os_str().as_encoded_bytes().ends_with(b"/");
    if !matches!(kind, Kind::Table(_)) && (slash || path.is_dir()) {
        let (kind, example) = (kind.name(), path.join("log").with_extension(kind.extension()));
        return Err(Failure::usage(format!("{kind} output is one file, but the output path is a folder"))
            .next(format!("name a file in the folder: -o {}", example.display()))
            .at(path));
    }
    let extension = path.extension().and_then(|extension| extension.to_str());
    // A path without an extension is taken as a folder, unless a file with this name exists.
    let folder = slash || path.is_dir() || (extension.is_none() && !path.exists());
    Ok(if folder && matches!(kind, Kind::Table(_)) { Target::Folder(path) } else { Target::File(path) })
}

/// Returns an error if the user gave an option that has no effect on the output format.
pub(super) fn check_options(args: &Args, kind: Kind, context: &Context) -> Result<(), Failure> {
    let (csv, parquet) = (kind == Kind::Table(Table::Csv), kind == Kind::Table(Table::Parquet));
    let spark = args.tables.profile == Some(Profile::Spark);
    let table = matches!(kind, Kind::Table(_));
    let (mcap, bag2) = (kind == Kind::Mcap, kind == Kind::Bag2);
    let time = context.global.time;
    let logger = args.logger_csv().is_some();
    let viewers = mcap && !args.messages.no_typed && !args.messages.ros2;
    let velodyne = args.messages.velodyne.chosen();
    let joined = table && args.csv.dialect.is_none_or(|dialect| dialect == CsvDialect::Plain);
    let join = &args.join;
    if !join.is_asked() && (!join.join.is_empty() || join.method.is_some() || join.tolerance.is_some()) {
        return Err(Failure::usage(
            "--join, --method and --tolerance apply only to a joined table, which needs --on or --every",
        )
        .next(
            "write a row for each record of a topic with --on TOPIC, or rows at regular times with --every \
             10ms",
        ));
    }
    // Each entry consists of three values: whether the user gave the option, whether the option
    // applies to the output format, and the name of the option.
    let options = [
        (args.csv.dialect.is_some(), csv, "--dialect"),
        (args.csv.delimiter.is_some(), csv && !logger, "--delimiter"),
        (args.csv.names.is_some(), (csv && !logger) || args.tables.flatten, "--names"),
        (!args.topics.is_empty(), !logger, "--topics"),
        (!args.window.is_open(), !logger, "a time range (-S, -E)"),
        (args.join.on.is_some(), joined, "--on"),
        (args.join.every.is_some(), joined, "--every"),
        (!args.join.join.is_empty(), joined, "--join"),
        (args.join.method.is_some(), joined, "--method"),
        (args.join.tolerance.is_some(), joined, "--tolerance"),
        (args.tables.flatten, table && !csv, "--flatten"),
        (args.tables.profile.is_some(), parquet, "--profile"),
        (args.tables.time_unit.is_some(), parquet && !spark, "--time-unit"),
        (args.tables.blobs, parquet, "--blobs"),
        (args.messages.no_typed, mcap && !args.messages.ros2, "--no-typed"),
        (args.messages.keep_ned, viewers, "--keep-ned"),
        (velodyne.is_some(), viewers || args.messages.ros2 || bag2, velodyne.unwrap_or_default()),
        (args.messages.raw, mcap && !args.messages.ros2, "--raw"),
        (args.messages.full, mcap, "--full"),
        (args.messages.batch.is_some(), mcap, "--batch"),
        (args.messages.ros2, mcap, "--ros2"),
        (args.messages.modernize, (mcap && !args.messages.ros2) || bag2, "--modernize"),
        (args.messages.compression.is_some(), bag2 || mcap, "--compression"),
        (args.messages.compression.is_some_and(|c| c.for_mcap().is_none()), bag2, "--compression bz2"),
        (args.messages.compression.is_some_and(|c| c.for_bag().is_none()), mcap, "--compression zstd"),
        (!args.fields.is_empty(), table && !logger, "--fields"),
        (time.time_format.is_some(), false, "--time-format"),
        (time.time_base.is_some_and(|_| args.window.is_open()), csv && joined, "--time-base"),
    ];
    let Some((_, _, option)) = options.iter().find(|(is_given, applies, _)| *is_given && !applies) else {
        return Ok(());
    };
    let with = match (args.messages.ros2 && mcap, logger && csv) {
        (true, _) => " with --ros2",
        (_, true) => " in the logger's format, which always contains the whole log",
        _ if spark && parquet => " with --profile spark",
        _ => "",
    };
    let next = if logger {
        "leave out this option; to export a part of the log, first write this part with rovelog slice"
    } else {
        "leave out this option"
    };
    Err(Failure::usage(format!("{option} does not apply to {}{with}", kind.name())).next(next))
}
