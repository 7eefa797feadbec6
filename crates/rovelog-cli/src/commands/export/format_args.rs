//! Options of `rovelog export` that only some output formats have, and their help.

use clap::{Arg, Command, ValueEnum};

use crate::args::option_names;
use crate::compression::{Compression, parse_compression};
use crate::velodyne::VelodyneArgs;

/// Start of the headings above these options. The names of the formats follow.
const HEADING: &str = "Options of ";

/// Options of CSV files.
#[derive(clap::Args)]
#[command(next_help_heading = "Options of csv")]
pub(super) struct CsvArgs {
    /// Dialect: plain (default), pyulog (as written by ulog2csv), rocketlogger (as written by the
    /// logger) or rocketlogger-v2 (as written by loggers up to version 2)
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true)]
    pub(super) dialect: Option<CsvDialect>,
    /// Column separator, such as ';', or \t for a tab; default ','
    #[arg(long, value_name = "CHAR", value_parser = delimiter)]
    pub(super) delimiter: Option<u8>,
    /// Write the names of array elements as q[0] (bracket, default) or q.0 (dot); for parquet and
    /// arrow, with --flatten
    #[arg(long, value_enum, value_name = "STYLE", hide_possible_values = true)]
    #[arg(help_heading = "Options of csv, parquet and arrow")]
    pub(super) names: Option<NameStyle>,
}

/// Options of Parquet and Arrow files.
#[derive(clap::Args)]
#[command(next_help_heading = "Options of parquet and arrow")]
pub(super) struct TableArgs {
    /// Write each nested field and each array element as a separate column
    #[arg(long)]
    pub(super) flatten: bool,
    /// parquet: use the value spark to write only types that Spark supports, so no unsigned 64-bit
    /// integers
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true)]
    pub(super) profile: Option<Profile>,
    /// parquet: unit of the column `time`: us (default) or ns. The column `t_ns` always has
    /// nanoseconds
    #[arg(long, value_enum, value_name = "UNIT", hide_possible_values = true)]
    pub(super) time_unit: Option<Unit>,
    /// parquet: also write fields that contain raw bytes
    #[arg(long)]
    pub(super) blobs: bool,
}

/// Options of MCAP files and ROS bags.
#[derive(clap::Args)]
#[command(next_help_heading = "Options of mcap and bag2")]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(super) struct MessageArgs {
    /// mcap: write only the topics of the log, without copies of their data in the message types of
    /// Foxglove
    #[arg(long)]
    pub(super) no_typed: bool,
    /// mcap: write poses in north-east-down axes instead of east-north-up
    #[arg(long)]
    pub(super) keep_ned: bool,
    /// mcap, VEL: also write the original packets, ranges, images and unknown messages
    #[arg(long)]
    pub(super) raw: bool,
    /// mcap, RLD: write one message per sample, even if the log has more than 1 kHz. Without this
    /// option, such a log becomes the minimum, mean and maximum of each millisecond
    #[arg(long)]
    pub(super) full: bool,
    /// mcap, RLD: write every sample as --full does, but with N samples (2 to 65536) in each
    /// message
    #[arg(long, value_name = "N", conflicts_with = "full", value_parser = clap::value_parser!(u32).range(2..=65536))]
    pub(super) batch: Option<u32>,
    /// mcap, ROS bag, ULog, VEL: write ROS 2 messages (CDR), without Header.seq of bags, which ROS 2
    /// does not have
    #[arg(long)]
    pub(super) ros2: bool,
    /// mcap, bag2, ROS bag: use the new names of message types that ROS has renamed, as --ros2 does
    #[arg(long)]
    pub(super) modernize: bool,
    /// Compression of the output: for mcap zstd[:LEVEL] (default zstd:1), lz4 or none; for bag2
    /// none (default), lz4 or bz2
    #[arg(long, value_name = "NAME", value_parser = parse_compression)]
    pub(super) compression: Option<Compression>,
    #[command(flatten)]
    pub(super) velodyne: VelodyneArgs,
}

/// Variant of CSV output.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum CsvDialect {
    Plain,
    Pyulog,
    Rocketlogger,
    RocketloggerV2,
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

/// Unit of the Parquet column `time`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Unit {
    Us,
    Ns,
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        // Numbers and times are not quoted, so their characters cannot be delimiters.
        [byte] if byte.is_ascii() && !byte.is_ascii_alphanumeric() && !b"\"\n\r.:+-".contains(byte) => {
            Ok(*byte)
        }
        _ => {
            Err("expected one character that is not part of a number or a time, such as , ; | or \\t"
                .to_owned())
        }
    }
}

/// Returns the help of `export`. If `to` is a format with options of its own, the help explains only
/// these options. Otherwise, it explains the common options, and lists the names of the options that
/// only some formats have.
pub(crate) fn help(export: Command, to: Option<&str>) -> Command {
    let formats = |arg: &Arg| Some(arg.get_help_heading()?.strip_prefix(HEADING)?.to_owned());
    let applies_to = |arg: &Arg, to: &str| {
        formats(arg).is_some_and(|names| names.split([' ', ',']).any(|name| name == to))
    };
    if let Some(to) = to.filter(|to| export.get_arguments().any(|arg| applies_to(arg, to))) {
        let all_others = "All other options: rovelog export --help";
        return export
            .mut_args(|arg| if applies_to(&arg, to) { arg } else { arg.hide(true) })
            .after_help(all_others);
    }
    let mut groups: Vec<_> = export.get_arguments().filter_map(formats).collect();
    groups.dedup();
    let lines = groups.iter().map(|group| {
        let in_group = export.get_arguments().filter(|arg| formats(arg).as_ref() == Some(group));
        format!("\n  {group}: {}", option_names(in_group))
    });
    let list = format!(
        "Options of one format; for help, rovelog export --to FORMAT --help:{}",
        lines.collect::<String>()
    );
    let text = export.get_after_help().map(ToString::to_string).unwrap_or_default();
    export
        .mut_args(|arg| if formats(&arg).is_some() { arg.hide(true) } else { arg })
        .after_help(format!("{list}\n\n{text}"))
}
