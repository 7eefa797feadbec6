//! Arguments of `rovelog export`. Also checks that each given option applies to the output format.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use rovelog::rld_format::csv::CsvStyle;
use rovelog_export::Kind;
use rovelog_export::signal::Method;
use rovelog_export::table::Kind as Table;

use crate::compression::{FileCompression, parse_compression};
use crate::context::Context;
use crate::failure::Failure;
use crate::input::LogArgs;
use crate::outfile::{OutArgs, unless_stdout};
use crate::select::{FieldArgs, TopicArgs};
use crate::time_point::nonzero_duration;
use crate::velodyne::VelodyneArgs;
use crate::window::WindowArgs;

const MORE: &str = "\
Parquet, Arrow and CSV files contain one topic each. To export several topics, name a folder. \
NDJSON and MCAP files contain all topics. Tables start with the columns t_ns (nanoseconds on the \
log clock) and time (UTC, if the log has it).

--on and --every join several topics into one table with columns named TOPIC.FIELD. --fields also \
accepts derived fields and expressions (see rovelog plot --help), which become columns. Arrays are \
always written whole: --fields 'q[0]' writes q.

Several logs are written to a folder, which contains a file for each log or, for tables, a folder \
for each log.

MCAP files also contain positions, poses and console messages in the types that Foxglove displays. \
For VEL logs, they contain point clouds, scans and images. RLD logs above 1 kHz become a 1 kHz \
min/mean/max envelope, unless --full or --batch is given. ROS bags are written with ROS 1 messages \
or, with --ros2, with ROS 2 messages.

bag2 (.bag) writes ROS bags of any version as V2.0 and copies the message payloads byte for byte.

CSV cells are not escaped for spreadsheets, so a spreadsheet may read text that starts with = + - \
or @ as a formula. Data that the output cannot contain is reported, and the exit code is then 3.

Examples:
  rovelog export flight.ulg -o flight/ --to parquet             a file per topic
  rovelog export flight.ulg -o flight.mcap                      for Foxglove
  rovelog export flight.ulg -o q.parquet --topics vehicle_attitude -S +1m -E +2m
  rovelog export flight.ulg -o one.csv --on vehicle_attitude --join cpuload
  rovelog export flight.ulg -o 50hz.parquet --every 20ms --method linear \\
      --join vehicle_attitude,cpuload --tolerance 1s
  rovelog export power.rld -o p.csv --fields 'V1,I1,P=V1*I1,E=integral(V1*I1)'
  rovelog export flight.ulg -o csv/ --to csv --dialect pyulog   like ulog2csv
  rovelog export flight.ulg --to csv --topics battery_status | head
  rovelog export x.rld -o x.csv --dialect rocketlogger          for rld import
  rovelog export drive.vel -o drive.mcap --calibration db.xml   of an HDL-64E
  rovelog export 2010.bag -o new.bag                            for ROS 1
  rovelog export 2010.bag -o new.mcap --ros2                    for ROS 2
  rovelog export flights/ -o mcap/ --to mcap                    a file per log";

/// Convert to Parquet, Arrow, CSV, NDJSON, MCAP, ROS bag V2.0
#[derive(clap::Args)]
#[command(after_help = MORE)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) logs: LogArgs,
    /// Output file, whose extension selects the format, or output folder for one file per topic
    #[arg(short, long, value_name = "OUT")]
    pub(super) output: Option<PathBuf>,
    /// Output format: parquet, arrow, csv, ndjson, mcap or bag2 (ROS bag V2.0); default: by the
    /// extension of the output file
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
    /// csv: dialect plain (default), pyulog (as written by ulog2csv), rocketlogger (as written by
    /// the logger) or rocketlogger-v2 (as written by loggers up to version 2)
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true)]
    pub(super) dialect: Option<CsvDialect>,
    /// csv: column separator, such as ';', or \t for a tab; default ','
    #[arg(long, value_name = "CHAR", value_parser = delimiter)]
    pub(super) delimiter: Option<u8>,
    /// csv, --flatten: write the names of array elements as q[0] (bracket, default) or q.0 (dot)
    #[arg(long, value_enum, value_name = "STYLE", hide_possible_values = true)]
    pub(super) names: Option<NameStyle>,
    /// parquet, arrow: write each nested field and each array element as a separate column
    #[arg(long)]
    pub(super) flatten: bool,
    /// parquet: use the value spark to write only types that Spark supports, so no unsigned 64-bit
    /// integers
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true)]
    pub(super) profile: Option<Profile>,
    /// parquet: unit of the `time` column, us (default) or ns; the `t_ns` column always has
    /// nanoseconds
    #[arg(long, value_enum, value_name = "UNIT", hide_possible_values = true)]
    pub(super) time_unit: Option<Unit>,
    /// parquet: also write fields that contain raw bytes; by default, they are left out
    #[arg(long)]
    pub(super) blobs: bool,
    /// mcap: write only the topics of the log; by default, copies of their data in message types
    /// that Foxglove displays are added
    #[arg(long)]
    pub(super) no_typed: bool,
    /// mcap: keep poses in north-east-down axes; by default, they are converted to east-north-up
    #[arg(long)]
    pub(super) keep_ned: bool,
    /// mcap, VEL: also write the original packets, ranges, images and unknown messages
    #[arg(long)]
    pub(super) raw: bool,
    /// mcap, RLD: write one message per sample; by default, logs above 1 kHz are reduced to the
    /// minimum, mean and maximum of each millisecond
    #[arg(long)]
    pub(super) full: bool,
    /// mcap, RLD: write every sample as --full does, but with N samples (2 to 65536) in each
    /// message
    #[arg(long, value_name = "N", conflicts_with = "full", value_parser = clap::value_parser!(u32).range(2..=65536))]
    pub(super) batch: Option<u32>,
    /// mcap, ROS bag: write ROS 2 messages (CDR) instead of ROS 1 messages; Header.seq is left out,
    /// because ROS 2 does not have this field
    #[arg(long)]
    pub(super) ros2: bool,
    /// mcap, bag2, ROS bag: use the new names of message types that ROS has renamed; --ros2 does
    /// this, too
    #[arg(long)]
    pub(super) modernize: bool,
    /// Compression of the output: for mcap zstd[:LEVEL] (default zstd:1), lz4 or none; for bag2
    /// none (default), lz4 or bz2
    #[arg(long, value_name = "NAME", value_parser = parse_compression)]
    pub(super) compression: Option<FileCompression>,
    #[command(flatten)]
    pub(super) velodyne: VelodyneArgs,
    #[command(flatten)]
    pub(super) out: OutArgs,
}

/// Options for writing several topics into a single table.
#[derive(clap::Args)]
pub(super) struct JoinArgs {
    /// Write one table that joins several topics, with a row for each record of this topic
    #[arg(long, value_name = "TOPIC", conflicts_with = "every")]
    pub(super) on: Option<String>,
    /// Write one table that joins several topics, with rows at regular intervals, such as 10ms or
    /// 1s
    #[arg(long, value_name = "SPAN", value_parser = nonzero_duration)]
    pub(super) every: Option<i64>,
    /// With --on or --every: topics to add as columns; default with --every: all selected topics
    #[arg(long, value_name = "TOPIC,..", value_delimiter = ',')]
    pub(super) join: Vec<String>,
    /// With --on or --every: take the value of a topic from its previous record (previous,
    /// default), from its nearest record (nearest), or interpolate linearly (linear)
    #[arg(long, value_name = "HOW", value_parser = method)]
    pub(super) method: Option<Method>,
    /// With --on or --every: leave a cell empty if the record for it is farther away in time than
    /// this, such as 20ms; default: no limit
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

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(*byte),
        _ => Err("expected one character other than a quote or a line break".to_owned()),
    }
}

/// Variant of CSV output.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum CsvDialect {
    Plain,
    Pyulog,
    Rocketlogger,
    RocketloggerV2,
}

impl Args {
    /// Returns the CSV style of the RocketLogger software if `--dialect` selects one of its
    /// versions.
    pub(super) fn logger_csv(&self) -> Option<CsvStyle> {
        match self.dialect? {
            CsvDialect::Plain | CsvDialect::Pyulog => None,
            CsvDialect::Rocketlogger => Some(CsvStyle::Nanoseconds),
            CsvDialect::RocketloggerV2 => Some(CsvStyle::Dates),
        }
    }
}

/// Notation for columns that contain array elements: `q[0]` or `q.0`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum NameStyle {
    Bracket,
    Dot,
}

/// Program that must be able to read a Parquet file.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Profile {
    Spark,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
/// Unit of the Parquet column `time`.
pub(super) enum Unit {
    Us,
    Ns,
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

impl Args {
    /// Returns the path given by the user, or `None` if the output goes to stdout.
    pub(super) fn path(&self) -> Option<&Path> {
        unless_stdout(self.output.as_deref())
    }

    /// Returns true if the export writes one table for each topic.
    pub(super) fn makes_tables(&self, kind: Kind) -> bool {
        matches!(kind, Kind::Table(_)) && !self.join.is_asked() && self.logger_csv().is_none()
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
    let table = matches!(kind, Kind::Table(_));
    let (mcap, bag2) = (kind == Kind::Mcap, kind == Kind::Bag2);
    let time = context.global.time;
    let logger = args.logger_csv().is_some();
    let viewers = mcap && !args.no_typed && !args.ros2;
    let velodyne = args.velodyne.chosen();
    let joined = table && args.dialect.is_none_or(|dialect| dialect == CsvDialect::Plain);
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
    let chosen = [
        (args.dialect.is_some(), csv, "--dialect"),
        (args.delimiter.is_some(), csv && !logger, "--delimiter"),
        (args.names.is_some(), (csv && !logger) || args.flatten, "--names"),
        (!args.topics.is_empty(), !logger, "--topics"),
        (!args.window.is_open(), !logger, "a time range (-S, -E)"),
        (args.join.on.is_some(), joined, "--on"),
        (args.join.every.is_some(), joined, "--every"),
        (!args.join.join.is_empty(), joined, "--join"),
        (args.join.method.is_some(), joined, "--method"),
        (args.join.tolerance.is_some(), joined, "--tolerance"),
        (args.flatten, table && !csv, "--flatten"),
        (args.profile.is_some(), parquet, "--profile"),
        (args.time_unit.is_some(), parquet, "--time-unit"),
        (args.blobs, parquet, "--blobs"),
        (args.no_typed, mcap && !args.ros2, "--no-typed"),
        (args.keep_ned, viewers, "--keep-ned"),
        (velodyne.is_some(), viewers, velodyne.unwrap_or_default()),
        (args.raw, mcap, "--raw"),
        (args.full, mcap, "--full"),
        (args.batch.is_some(), mcap, "--batch"),
        (args.ros2, mcap, "--ros2"),
        (args.modernize, (mcap && !args.ros2) || bag2, "--modernize"),
        (args.compression.is_some(), bag2 || mcap, "--compression"),
        (args.compression.is_some_and(|c| c.for_mcap().is_none()), bag2, "--compression bz2"),
        (args.compression.is_some_and(|c| c.for_bag().is_none()), mcap, "--compression zstd"),
        (!args.fields.is_empty(), table && !logger, "--fields"),
        (time.time_format.is_some(), false, "--time-format"),
        (time.time_base.is_some_and(|_| args.window.is_open()), csv && joined, "--time-base"),
    ];
    match chosen.iter().find(|(chosen, fits, _)| *chosen && !fits) {
        Some((_, _, option)) => {
            let with = match (args.ros2 && mcap, logger && csv) {
                (true, _) => " with --ros2",
                (_, true) => " in the logger's format, which always contains the whole log",
                _ => "",
            };
            let next = if logger {
                "leave out this option; to export a part of the log, first write this part with rovelog slice"
            } else {
                "leave out this option"
            };
            Err(Failure::usage(format!("{option} does not apply to {}{with}", kind.name())).next(next))
        }
        None => Ok(()),
    }
}
