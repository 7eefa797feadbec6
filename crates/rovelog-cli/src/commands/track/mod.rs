//! The command `rovelog track`, which exports the track of a vehicle for maps, or its poses as a
//! trajectory.

mod poses;
mod table;

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use rovelog_export::track::{self, Altitude, Tally, Track, TrackOptions, WriteError};
use rovelog_export::trajectory;

use crate::context::{Context, Format};
use crate::failure::{Failure, Outcome, Status};
use crate::input::{Input, LogArgs};
use crate::outfile::{OutArgs, OutFile, unless_stdout};
use crate::outputs::Outputs;
use crate::select::unknown_topic;
use crate::text::{count, counts};
use crate::window::{WindowArgs, span};

const MORE: &str = "\
Maps (kml, gpx, geojson, -f) of PX4 logs: without --topic, all instances of the first of these \
topics with a fix: vehicle_gps_position, vehicle_gnss, sensor_gps, sensor_gnss, \
vehicle_global_position. If a log has no fix, nothing is written (exit code 1).

Trajectories (tum, kitti, euroc, csv): all poses of one topic, in the axes of ROS. Bags: Odometry, \
PoseWithCovarianceStamped, PoseStamped, TransformStamped or NavSatFix, with the times of header.stamp. \
PX4: vehicle_odometry, or vehicle_local_position with vehicle_attitude. Other positions become \
meters east, north and up. Times are UTC if it is known; see --time-base.

Several logs become files in a folder or, with -f csv, one table.

Examples:
  rovelog track flight.ulg -o flight.kml       for Google Earth
  rovelog track flight.ulg --to geojson | jq .features[0].geometry
  rovelog track flight.ulg -f csv > flight.csv every GPS point with its quality
  rovelog track run.bag -o run.tum --topic /odom    for evo
  rovelog track run.bag -o run.tum --tf map base_link
  rovelog track flights/ -o tracks/ --to kml   a file for each log";

/// Export the track for maps (KML, GPX, GeoJSON), or poses (TUM, KITTI, EuRoC, CSV)
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    #[command(flatten)]
    logs: LogArgs,
    /// Output file, whose extension selects the format; without it, --to prints the track
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Output format: kml, gpx or geojson for maps; tum, kitti, euroc or csv for trajectories;
    /// default: by the extension of the output file
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    to: Option<Target>,
    /// Use only positions from this topic; a name without an instance number (imu for imu/0, imu/1,
    /// ..) selects all instances; repeatable
    #[arg(long, value_name = "NAME")]
    topic: Vec<String>,
    /// Bags: trajectory of the frame CHILD in PARENT, from the topics of transforms (TF)
    #[arg(long, num_args = 2, value_names = ["PARENT", "CHILD"])]
    tf: Vec<String>,
    /// Leave out points with a worse GPS fix than this: 2 (2D), 3 (3D, default), 4 (differential),
    /// 5 or 6 (RTK)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(2..=6))]
    min_fix: Option<u8>,
    /// Also write points less than 0.1 s after the previous point, which are left out by default
    #[arg(long)]
    all: bool,
    /// KML: altitudes are above sea level (absolute, default), above the first point (relative) or
    /// on the ground (clamp)
    #[arg(long, value_enum, value_name = "MODE", hide_possible_values = true)]
    altitude: Option<Heights>,
    #[command(flatten)]
    window: WindowArgs,
    #[command(flatten)]
    out: OutArgs,
}

/// Reference level of the altitudes in a KML file.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Heights {
    Absolute,
    Relative,
    Clamp,
}

fn format(name: &str) -> Result<Target, String> {
    Target::by_name(name)
        .ok_or_else(|| "expected kml, gpx or geojson, or tum, kitti, euroc or csv".to_owned())
}

/// Output of the command: a track for maps, a trajectory, or a printed table of points.
#[derive(Clone, Copy)]
enum Target {
    Map(track::Format),
    Poses(trajectory::Format),
    Table(Format),
}

impl Target {
    /// Returns the track format or trajectory format with an option name or file extension.
    fn by_name(name: &str) -> Option<Self> {
        let poses = || trajectory::Format::by_name(name).map(Self::Poses);
        track::Format::by_name(name).map(Self::Map).or_else(poses)
    }

    /// Returns the format that the extension of a file name stands for.
    fn by_extension(path: &Path) -> Option<Self> {
        Self::by_name(path.extension()?.to_str()?)
    }
}

pub(super) fn run(args: &Args, context: &Context) -> Outcome {
    let kind = target(args, context)?;
    let path = unless_stdout(args.output.as_deref());
    let (name, extension) = match kind {
        Target::Map(format) => (Some(format.name()), Some(format.name())),
        Target::Poses(format) => (Some(format.name()), Some(format.extension())),
        Target::Table(_) => (None, None),
    };
    let outputs = Outputs {
        path,
        is_file: path.and_then(Target::by_extension).is_some(),
        extension,
        folder: name.map(|name| format!("-o tracks/ --to {name}")),
        out: args.out,
    };
    outputs.each(&args.logs.files, context, |input, path| one(args, input, kind, path, context))
}

/// Writes the track of one log.
fn one(args: &Args, input: &Input, target: Target, path: Option<&Path>, context: &Context) -> Outcome {
    // The output file is created before the log is read. If it cannot be created, the user sees the
    // error immediately.
    let file = match path {
        Some(path) => Some((OutFile::create(path, &input.files(context), args.out)?, path)),
        None => None,
    };
    let log = input.open(context)?;
    let here = |failure: Failure| failure.at(&input.path);
    let times = context.times(log.info()).map_err(here)?;
    let window = args.window.resolve(&times, span(&*log)).map_err(here)?;
    for name in &args.topic {
        let known = |name: &str| log.topics().iter().any(|t| t.answers_to(name) || t.type_name == name);
        if !known(name) {
            return Err(here(unknown_topic(name, log.topics())));
        }
    }
    let mut options = TrackOptions::default();
    (options.topics, options.min_fix, options.all) = (args.topic.clone(), args.min_fix, args.all);
    (options.start, options.end) = (window.start, window.end);
    let tally = if let Target::Poses(format) = target {
        let trajectory = poses::read(&log, args, &options, &times).map_err(here)?;
        poses::write(&trajectory, format, file, context)?;
        trajectory.tally
    } else {
        let (mut track, tally) = track::of(&log, &options).map_err(|error| here(error.into()))?;
        if track.is_empty() {
            return Err(here(no_fix_failure("track", &tally, args)));
        }
        track.name = input.stem().unwrap_or_default();
        match (target, file) {
            (Target::Map(format), Some((mut out, path))) => {
                write(&track, format, args, &mut out)?;
                out.finish()?;
                context.note(&summary(path, &track, &tally));
            }
            (Target::Map(format), None) => write(&track, format, args, &mut context.out())?,
            (Target::Table(format), _) => table::write(&track, format, &times, input, context)?,
            (Target::Poses(_), _) => {}
        }
        tally
    };
    let mut lost = Status::Done;
    if tally.undecodable > 0 {
        let records = count(tally.undecodable, "record");
        context
            .notices
            .warn("records cannot be decoded", &format!("{records} with a position cannot be decoded"));
        lost = Status::Lost;
    }
    Ok(lost.max(context.notices.end_of_log(log.as_log(), &input.path)))
}

/// Determines from the arguments what to write. This happens before a log is read.
fn target(args: &Args, context: &Context) -> Result<Target, Failure> {
    let asked = context.global.format;
    let format = args.to.or_else(|| Target::by_extension(args.output.as_deref()?));
    let is_kml = format.is_none_or(|format| matches!(format, Target::Map(track::Format::Kml)));
    if args.altitude.is_some() && (asked != Format::Text || !is_kml) {
        return Err(Failure::usage("--altitude applies only to KML").next("leave out --altitude"));
    }
    let is_map = format.is_some_and(|format| matches!(format, Target::Map(_)));
    if !args.tf.is_empty() && (asked != Format::Text || is_map) {
        return Err(Failure::usage("--tf applies only to trajectories")
            .next("choose a format for trajectories, such as --to tum"));
    }
    if asked != Format::Text {
        if args.output.is_some() || args.to.is_some() {
            return Err(Failure::usage(
                "-f prints a table to stdout, so it cannot be combined with -o or --to",
            )
            .next("leave out -f to write a track file, or leave out -o and --to to print a table"));
        }
        let format = context.format(&[Format::Json, Format::Ndjson, Format::Csv])?;
        return Ok(Target::Table(format));
    }
    match (format, unless_stdout(args.output.as_deref())) {
        (Some(format), _) => Ok(format),
        (None, Some(path)) => {
            Err(Failure::usage("the extension of the output file does not belong to a track format")
                .next("use .kml, .gpx, .geojson, .tum or .csv, or name the format, such as --to kml")
                .at(path))
        }
        (None, None) => Err(Failure::usage("the output format is not specified").next(
            "name a file, such as -o track.kml, or a format, such as --to gpx, or print a table with -f csv",
        )),
    }
}

fn write(
    track: &Track,
    format: track::Format,
    args: &Args,
    out: &mut impl std::io::Write,
) -> Result<(), Failure> {
    let altitude = match args.altitude {
        None | Some(Heights::Absolute) => Altitude::Absolute,
        Some(Heights::Relative) => Altitude::Relative,
        Some(Heights::Clamp) => Altitude::Clamp,
    };
    match track::write(track, format, altitude, out) {
        Ok(()) => Ok(()),
        Err(WriteError::Io(error)) => Err(error.into()),
        Err(error) => Err(Failure::failed(error.to_string())),
    }
}

/// Returns the failure for a log without a GPS fix or without a pose. The message lists how many
/// rows were skipped and why. `what` is `track` or `trajectory`.
fn no_fix_failure(what: &str, tally: &Tally, args: &Args) -> Failure {
    let why = skipped_rows(tally);
    let cause = match why.as_str() {
        "" => format!("the log has no {what}, because no topic contains positions"),
        why => {
            format!("the log has no {what}, because no point is left of {}: {why}", count(tally.rows, "row"))
        }
    };
    let failure = Failure::failed(cause);
    if tally.without_fix > 0 && args.min_fix != Some(2) {
        return failure
            .next("accept 2D fixes with --min-fix 2, or look at the records with rovelog cat FILE");
    }
    failure.next("name a topic with positions (--topic NAME), or list the topics: rovelog topics FILE")
}

/// Lists how many rows were skipped for each reason, for example `160 without a fix, 3 without a
/// position`.
fn skipped_rows(tally: &Tally) -> String {
    counts(&[
        (tally.without_fix, "without a fix"),
        (tally.implausible, "without a position"),
        (tally.undecodable, "that cannot be decoded"),
        (tally.untimed, "without a time"),
        (tally.close, "closer than 0.1 s"),
        (tally.unmatched, "outside the times of a transform or an attitude"),
    ])
}

/// Summarizes the written track, for example `wrote track.kml: 423 points in 1 segment of
/// vehicle_gps_position/0; left out: 160 without a fix`.
fn summary(path: &Path, track: &Track, tally: &Tally) -> String {
    let segments: usize = track.lines.iter().map(|line| line.segments.len()).sum();
    let sources: Vec<_> = track.lines.iter().map(|line| line.source.as_str()).collect();
    let mut text = format!(
        "wrote {}: {} in {} of {}",
        path.display(),
        count(track.points().count() as u64, "point"),
        count(segments as u64, "segment"),
        sources.join(", ")
    );
    let skipped_rows = skipped_rows(tally);
    if !skipped_rows.is_empty() {
        text = format!("{text}; left out: {skipped_rows}");
    }
    text
}
